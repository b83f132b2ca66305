"""The K-SVD update with frozen residuals, against loops over dense matrices."""

from __future__ import annotations

import numpy as np
import pytest

from kernlets import KSVD, KernelKSVD, Polynomial, datasets
from kernlets.coders import OMP, encode
from kernlets.contracts import Coded
from kernlets.dictionaries import ExplicitDictionary, GramDictionary
from kernlets.loops.codes import pack
from kernlets.updates import JacobiKSVDUpdate


def naive_step(X, D, codes, min_uses=1, max_coherence=0.98, repeats=None):
    """One pass in the words of the docstring, by singular value decompositions."""
    frozen = X - codes @ D
    errors = (frozen**2).sum(axis=1)
    worst = list(np.argsort(-errors, kind="stable"))
    repeats = np.ones(len(X), int) if repeats is None else repeats
    made = []
    for j in range(len(D)):
        users = np.flatnonzero(codes[:, j])
        atom = D[j]
        if len(users):
            E = frozen[users] + np.outer(codes[users, j], D[j])
            U, _, Vt = np.linalg.svd(np.repeat(E, repeats[users], axis=0))
            atom = Vt[0] * np.sign((E @ Vt[0]) @ (repeats[users] * codes[users, j]))
        is_rare = repeats[users].sum() < min_uses
        if is_rare or any(abs(atom @ d) > max_coherence for d in made):
            row = worst.pop(0)
            atom = X[row] / np.linalg.norm(X[row])
        made.append(atom)
    return np.array(made)


@pytest.fixture
def problem(rng):
    """Samples, atoms of which two are copies and one is not used, and codes."""
    X = rng.standard_normal((60, 8))
    D = rng.standard_normal((7, 8))
    D[4] = D[1] + 1e-3 * D[0]
    D /= np.linalg.norm(D, axis=1, keepdims=True)
    codes = np.where(rng.random((60, 7)) < 0.3, rng.standard_normal((60, 7)), 0.0)
    codes[:, 4] = codes[:, 1]  # their fits are nearly the same atom
    codes[:, 5] = 0.0
    return X, D, codes


def coded(X, D, dense, weights=None):
    """Codes of a dictionary as the coders give them."""
    errors = ((X - dense @ D) ** 2).sum(axis=1)
    return Coded(X, pack(dense, errors), weights)


def test_a_pass_as_its_words_say(problem):
    X, D, dense = problem
    step = JacobiKSVDUpdate().step(ExplicitDictionary(D), coded(X, D, dense), None)
    np.testing.assert_allclose(
        step.dictionary.atoms, naive_step(X, D, dense), atol=1e-9
    )
    expected = ((X - dense @ D) ** 2).sum()
    np.testing.assert_allclose(step.error, expected)


def test_limits_decide_which_atoms_become_samples(problem):
    X, D, dense = problem
    for limits in ((0, 2.0), (25, 2.0), (1, 0.3)):
        step = JacobiKSVDUpdate(*limits).step(
            ExplicitDictionary(D), coded(X, D, dense), None
        )
        expected = naive_step(X, D, dense, *limits)
        np.testing.assert_allclose(step.dictionary.atoms, expected, atol=1e-9)


def test_a_weight_repeats_a_sample(problem, rng):
    X, D, dense = problem
    repeats = rng.integers(1, 4, len(X))
    step = JacobiKSVDUpdate().step(
        ExplicitDictionary(D), coded(X, D, dense, repeats.astype(float)), None
    )
    expected = naive_step(X, D, dense, repeats=repeats)
    np.testing.assert_allclose(step.dictionary.atoms, expected, atol=1e-9)


def test_a_kernel_is_an_inner_product_of_monomials(rng):
    """Kernel K-SVD in the space of (xᵀy)² is K-SVD of all products of two entries."""
    X = rng.standard_normal((50, 3))
    Phi = (X[:, :, None] * X[:, None, :]).reshape(50, -1)
    rows = np.arange(6)
    kernel = GramDictionary.of_samples(Polynomial(2)(X), rows)
    D = Phi[rows] / np.linalg.norm(Phi[rows], axis=1, keepdims=True)
    for _ in range(3):
        codes = encode(kernel, OMP(2), np.arange(50))
        update = JacobiKSVDUpdate()
        kernel = update.step(kernel, Coded(np.arange(50), codes), None).dictionary
        D = naive_step(Phi, D, codes.toarray())
        np.testing.assert_allclose(kernel.coefs @ Phi, D, atol=1e-7)


def test_learners_take_it_by_name():
    X = datasets.load("digits").X_train[:120]
    one = KernelKSVD(
        "linear", 8, n_nonzero_coefs=2, update="ksvd-jacobi", random_state=0
    )
    two = KSVD(8, 2, update=JacobiKSVDUpdate(), init="samples", random_state=0)
    one.fit(X), two.fit(X)
    assert one.history_["objective"][-1] < one.history_["objective"][0]
    assert two.history_["objective"][-1] < two.history_["objective"][0]


def test_what_it_cannot_do_is_said():
    X = datasets.load("digits").X_train[:60].copy()
    with pytest.raises(ValueError, match="update='ksvd'"):
        KSVD(5, 2, update="ksvd-jacobi", schedule="steady=True").fit(X)
    X[0, 0] = np.nan
    with pytest.raises(ValueError, match="without missing values"):
        KSVD(5, 2, update="ksvd-jacobi").fit(X)
