"""What every atom update promises, for everything registered."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from kernlets import OMP
from kernlets.coders import encode
from kernlets.coders.encoding import statistics
from kernlets.contracts import Coded
from kernlets.dictionaries import ExplicitDictionary, GramDictionary
from kernlets.loops.codes import pack
from kernlets.updates import UPDATES, KSVDUpdate

N, P, M = 80, 10, 6
ASIDE = {"min_uses": 0, "max_coherence": 2.0}  # no atom gives way to a sample


def without_refresh(update):
    """The rule itself, without the exchange of atoms that are hardly used."""
    return update.set_params(**{k: v for k, v in ASIDE.items() if hasattr(update, k)})


INSTANCES = {
    **{name: without_refresh(kind()) for name, kind in UPDATES.items()},
    "ksvd exact": without_refresh(KSVDUpdate(exact=True)),
}
#: Updates that may raise the error at fixed codes, as their docstrings say: K-SVD moves
#: coefficients with each atom, MOD and the parallel update scale atoms to unit norm
#: after the fit. The error that they report is that of codes with the inverse factor.
MAY_RISE = {"ksvd", "ksvd exact", "ksvd-jacobi", "mod", "ksvd-parallel"}
ROWS_ONLY = {"coordinate", "orthogonal"}  # atoms must be rows of a matrix


@pytest.fixture(params=INSTANCES)
def name(request):
    return request.param


def problem(rng, xp, dtype=np.float64):
    """Samples, orthonormal atoms (which every update takes), and codes over them."""
    X = rng.standard_normal((N, P)).astype(dtype)
    atoms = np.linalg.qr(rng.standard_normal((P, M)))[0].T.astype(dtype)
    dictionary = ExplicitDictionary(xp.asarray(np.ascontiguousarray(atoms)))
    return xp.asarray(X), dictionary, encode(dictionary, OMP(3), xp.asarray(X))


def step(name, dictionary, X, codes):
    update = clone(INSTANCES[name])
    coded = Coded(X, codes)
    if update.needs == "statistics":
        coded = statistics(dictionary, X, codes)
    return update.step(dictionary, coded, np.random.default_rng(0))


def error(X, codes, atoms, xp):
    X, codes, atoms = (xp.to_numpy(a) for a in (X, codes.toarray(), atoms))
    return float(((X - codes @ atoms) ** 2).sum())


def test_atoms_have_unit_norm_and_keep_shape_and_dtype(name, rng, xp):
    for dtype in (np.float32, np.float64):
        X, dictionary, codes = problem(rng, xp, dtype)
        atoms = xp.to_numpy(step(name, dictionary, X, codes).dictionary.atoms)
        assert atoms.shape == (M, P) and atoms.dtype == dtype
        within = 50 * np.finfo(dtype).eps
        np.testing.assert_allclose((atoms**2).sum(axis=1), 1, atol=within)


def test_the_error_does_not_rise(name, rng, xp):
    X, dictionary, codes = problem(rng, xp)
    before = error(X, codes, dictionary.atoms, xp)
    done = step(name, dictionary, X, codes)
    assert done.error <= before * (1 + 1e-12)
    after = error(X, codes, done.dictionary.atoms, xp)
    if name not in MAY_RISE:
        assert after < before
        np.testing.assert_allclose(done.error, after, rtol=1e-9)


@pytest.mark.parametrize("name", ["ksvd", "ksvd exact"])
def test_ksvd_reports_an_error_that_codes_on_the_same_atoms_reach(name, rng, xp):
    X, dictionary, codes = problem(rng, xp)
    before = error(X, codes, dictionary.atoms, xp)
    done = step(name, dictionary, X, codes)
    atoms, least = xp.to_numpy(done.dictionary.atoms), 0.0
    for x, code in zip(xp.to_numpy(X), xp.to_numpy(codes.toarray()), strict=True):
        used = atoms[code != 0]
        gap = x - np.linalg.lstsq(used.T, x, rcond=None)[0] @ used
        least += gap @ gap
    assert least * (1 - 1e-12) <= done.error < before


def test_the_method_of_optimal_directions_reports_the_least_squares_error(rng, xp):
    X, dictionary, codes = problem(rng, xp)
    done = step("mod", dictionary, X, codes)
    dense = xp.to_numpy(codes.toarray())
    best = np.linalg.lstsq(dense, xp.to_numpy(X), rcond=None)[0]
    expected = ((xp.to_numpy(X) - dense @ best) ** 2).sum()
    np.testing.assert_allclose(done.error, expected, rtol=1e-9)
    best /= np.linalg.norm(best, axis=1, keepdims=True)
    np.testing.assert_allclose(xp.to_numpy(done.dictionary.atoms), best, atol=1e-9)


def test_the_parallel_update_reports_the_error_of_its_atoms(rng, xp):
    """With the best factor for the codes of each atom, which it knows, at most that."""
    X, dictionary, codes = problem(rng, xp)
    before = error(X, codes, dictionary.atoms, xp)
    done = step("ksvd-parallel", dictionary, X, codes)
    atoms, dense = xp.to_numpy(done.dictionary.atoms), xp.to_numpy(codes.toarray())
    pairs = zip(dense.T, atoms, strict=True)
    parts = np.stack([np.outer(code, atom).ravel() for code, atom in pairs])
    rows = xp.to_numpy(X).ravel()
    factors = np.linalg.lstsq(parts.T, rows, rcond=None)[0]
    least = ((rows - factors @ parts) ** 2).sum()
    assert least * (1 - 1e-9) <= done.error < before


@pytest.mark.parametrize(
    "name",
    sorted(
        name
        for name, update in INSTANCES.items()
        if name != "orthogonal" and not update.may_raise_error
    ),
)
@pytest.mark.parametrize("case", ["coherent", "badly scaled", "repeated"])
def test_the_error_does_not_rise_in_bad_cases(name, case, rng, xp):
    """Atoms that are nearly or quite the same, codes of very different sizes."""
    X = rng.standard_normal((N, P))
    atoms = rng.standard_normal((3 * M, P))
    if case != "badly scaled":
        atoms = atoms[0] + (0.05 if case == "coherent" else 0) * atoms
    atoms /= np.linalg.norm(atoms, axis=1, keepdims=True)
    live = rng.random((N, 3 * M)) < 0.3
    dense = np.where(live, rng.standard_normal((N, 3 * M)), 0)
    if case == "badly scaled":
        dense *= 10.0 ** rng.uniform(-4, 4, 3 * M)
    dictionary = ExplicitDictionary(xp.asarray(atoms))
    left = ((X - dense @ atoms) ** 2).sum(1)
    codes = pack(xp.asarray(dense), xp.asarray(left))
    assert step(name, dictionary, xp.asarray(X), codes).error < left.sum()


def test_the_dictionary_that_was_given_stays(name, rng, xp):
    X, dictionary, codes = problem(rng, xp)
    atoms, samples = (xp.to_numpy(a).copy() for a in (dictionary.atoms, X))
    step(name, dictionary, X, codes)
    np.testing.assert_array_equal(xp.to_numpy(dictionary.atoms), atoms)
    np.testing.assert_array_equal(xp.to_numpy(X), samples)


@pytest.mark.parametrize("name", sorted(INSTANCES.keys() - ROWS_ONLY))
def test_kernel_atoms_move_as_explicit_ones(name, rng, xp):
    """With a linear kernel matrix both are the same atoms."""
    X, dictionary, codes = problem(rng, xp)
    rows = xp.asarray(np.arange(M))
    K = xp.asarray(xp.to_numpy(X) @ xp.to_numpy(X).T)
    trained = GramDictionary.of_samples(K, rows)
    atoms = xp.to_numpy(trained.coefs) @ xp.to_numpy(X)
    explicit = ExplicitDictionary(xp.asarray(atoms))
    samples = xp.asarray(np.arange(N))
    moved = step(name, explicit, X, encode(explicit, OMP(3), X))
    other = step(name, trained, samples, encode(trained, OMP(3), samples))
    found = xp.to_numpy(other.dictionary.coefs) @ xp.to_numpy(X)
    np.testing.assert_allclose(found, xp.to_numpy(moved.dictionary.atoms), atol=1e-7)
    np.testing.assert_allclose(other.error, moved.error, rtol=1e-8)


def test_clone(name):
    assert repr(clone(INSTANCES[name])) == repr(INSTANCES[name])
