"""What every dictionary answers, against dense arithmetic with explicit features.

The kernel is (xᵀy)², whose feature space is known: φ(x) = vec(x xᵀ). So atoms, samples
and coordinates can be written out, and each answer is one NumPy line.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from kernlets import OMP, Polynomial, load, save
from kernlets.coders import encode
from kernlets.contracts import Dictionary
from kernlets.dictionaries import (
    AnchoredDictionary,
    ExplicitDictionary,
    GramDictionary,
    KernelDictionary,
)

N, P, R, M = 30, 3, 5, 4
KERNEL = Polynomial(2)
CLOSE = {"rtol": 1e-9, "atol": 1e-9}


def phi(X):
    """φ of the rows of X: all products of two features."""
    return np.einsum("ni,nj->nij", X, X).reshape(len(X), -1)


@dataclass
class Case:
    """A dictionary beside what it stands for, written out in a space of features."""

    dictionary: Dictionary
    samples: Any  # as the dictionary takes them
    features: np.ndarray  # (N, q) of the samples, as far as a pursuit may see them
    atoms: np.ndarray  # (m, q)
    basis: np.ndarray  # (r, q) unit vectors of the coordinates


def explicit(rng, xp):
    X, atoms = rng.standard_normal((N, P)), rng.standard_normal((M, P))
    dictionary = ExplicitDictionary(xp.asarray(atoms))
    return Case(dictionary, xp.asarray(X), X, atoms, np.eye(P))


def kernel(rng, xp):
    X, Z = rng.standard_normal((N, P)), rng.standard_normal((R, P))
    coefs = rng.standard_normal((M, R))
    dictionary = KernelDictionary(KERNEL, xp.asarray(Z), xp.asarray(coefs))
    return Case(dictionary, xp.asarray(X), phi(X), coefs @ phi(Z), phi(Z))


def trained(rng, xp):
    X, coefs = rng.standard_normal((N, P)), rng.standard_normal((M, N))
    K = phi(X) @ phi(X).T
    arrays = [xp.asarray(a) for a in (K, coefs, coefs @ K)]
    rows = xp.asarray(np.arange(N))
    return Case(GramDictionary(*arrays), rows, phi(X), coefs @ phi(X), phi(X))


def anchored(rng, xp):
    X, Z = rng.standard_normal((N, P)), rng.standard_normal((R, P))
    coefs = rng.standard_normal((M, R))
    energies = (X**2).sum(axis=1) ** 2
    arrays = [xp.asarray(a) for a in (X, energies, Z, coefs)]
    dictionary = AnchoredDictionary.over_anchors(KERNEL, *arrays)
    basis = xp.to_numpy(dictionary.basis).T @ phi(Z)
    inside = phi(X) @ basis.T @ basis  # what lies outside the span is not shown
    return Case(dictionary, xp.asarray(np.arange(N)), inside, coefs @ phi(Z), basis)


CASES = {
    ExplicitDictionary: explicit,
    KernelDictionary: kernel,
    GramDictionary: trained,
    AnchoredDictionary: anchored,
}


def concrete(cls):
    own = [] if getattr(cls, "__abstractmethods__", None) else [cls]
    return own + [found for sub in cls.__subclasses__() for found in concrete(sub)]


def test_every_dictionary_is_tested():
    ours = {cls for cls in concrete(Dictionary) if cls.__module__.startswith("kern")}
    assert ours == set(CASES)


@pytest.fixture(params=CASES, ids=lambda cls: cls.__name__)
def case(request, rng, xp):
    return CASES[request.param](rng, xp)


def test_inner_products(case, xp):
    d, X = case.dictionary, case.samples
    assert d.n_atoms == M and d.row_bytes > 0
    for found, expected in (
        (d.gram(), case.atoms @ case.atoms.T),
        (d.correlate(X), case.features @ case.atoms.T),
        (d.energy(X), (case.features**2).sum(axis=1)),
        (d.dual(), case.atoms @ case.basis.T),
    ):
        np.testing.assert_allclose(xp.to_numpy(found), expected, **CLOSE)


def test_coordinates_are_the_projection_on_the_basis(case, xp):
    coordinates = xp.to_numpy(case.dictionary.coordinates(case.samples))
    weights = xp.to_numpy(case.dictionary.weights)
    onto = np.linalg.pinv(case.basis) @ case.basis
    np.testing.assert_allclose(coordinates @ case.basis, case.features @ onto, **CLOSE)
    np.testing.assert_allclose(weights @ case.basis, case.atoms, **CLOSE)


def test_cross_is_a_sum_over_samples(case, xp):
    d = case.dictionary
    codes = encode(d, OMP(2), case.samples)
    dense = xp.to_numpy(codes.toarray())
    coordinates = xp.to_numpy(d.coordinates(case.samples))
    found = xp.to_numpy(d.cross(codes, case.samples))
    np.testing.assert_allclose(found, dense.T @ coordinates, **CLOSE)


def test_other_weights_give_other_atoms(case, rng, xp):
    mix = rng.standard_normal((M, M))
    weights = mix @ xp.to_numpy(case.dictionary.weights)
    changed = case.dictionary.with_weights(xp.asarray(weights))
    atoms = mix @ case.atoms
    found = xp.to_numpy(changed.correlate(case.samples))
    np.testing.assert_allclose(found, case.features @ atoms.T, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(
        xp.to_numpy(changed.gram()), atoms @ atoms.T, rtol=1e-8, atol=1e-8
    )
    scaled = case.dictionary.rescaled(xp.asarray(np.arange(1.0, M + 1)))
    expected = case.features @ (case.atoms * np.arange(1.0, M + 1)[:, None]).T
    found = xp.to_numpy(scaled.correlate(case.samples))
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-8)


def test_nothing_is_changed_in_place(case, xp):
    before = xp.to_numpy(case.dictionary.weights).copy()
    d = case.dictionary
    d.gram(), d.correlate(case.samples), d.coordinates(case.samples)
    d.rescaled(xp.asarray(np.full(M, 2.0))), encode(d, OMP(2), case.samples)
    np.testing.assert_array_equal(xp.to_numpy(d.weights), before)


@pytest.mark.parametrize("make", [explicit, kernel], ids=lambda make: make.__name__)
def test_saved_and_pickled_dictionaries_answer_the_same(make, rng, tmp_path):
    class NumPy:
        asarray = staticmethod(np.asarray)

    case = make(rng, NumPy)
    save(case.dictionary, tmp_path / "atoms.kernlets")
    for twin in (
        load(tmp_path / "atoms.kernlets"),
        pickle.loads(pickle.dumps(case.dictionary)),
    ):
        assert type(twin) is type(case.dictionary)
        np.testing.assert_array_equal(
            twin.correlate(case.samples), case.dictionary.correlate(case.samples)
        )
        np.testing.assert_array_equal(twin.gram(), case.dictionary.gram())
