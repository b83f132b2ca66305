"""Non-negative OMP: feasible, least squares on its support, the same everywhere."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import nnls
from sklearn.datasets import load_digits

from kernlets import KSVD, MOD, OMP, KernelKSVD
from kernlets.loops import table
from kernlets.loops.omp import reference

from .test_operations import DTYPES, NASTY, call, dense, library, products  # noqa: F401


def problem(rng, n=60, p=20, m=30, dtype=np.float64):
    """Atoms on one side of the space: their coefficients get into each other's way."""
    atoms = rng.standard_normal((m, p))
    atoms[m // 2 :] += 1.5 * rng.standard_normal(p)
    atoms /= np.linalg.norm(atoms, axis=1, keepdims=True)
    return (rng.standard_normal((n, p)) + 1).astype(dtype), atoms.astype(dtype)


def naive(x, atoms, width):
    """Take the best atom, let SciPy solve on the support, drop zeros, again."""
    support, code = [], np.zeros(0)
    for _ in range(reference.TRIES * width):
        slope = atoms @ (x - code @ atoms[support])
        slope[support] = 0
        if len(support) == width or slope.max() <= 1e-12:
            break
        support.append(int(slope.argmax()))
        code = nnls(atoms[support].T, x)[0]
        support = [atom for atom, value in zip(support, code, strict=True) if value > 0]
        code = code[code > 0]
    return support, code


def test_it_is_the_naive_loop(library, rng):  # noqa: F811
    X, atoms = problem(rng)
    indices, values, error = call(library, "positive_omp", *products(X, atoms), 8, 0.0)
    dropped = 0
    for x, row, code, left in zip(X, indices, values, error, strict=True):
        support, expected = naive(x, atoms, 8)
        assert row[row >= 0].tolist() == support
        np.testing.assert_allclose(code[row >= 0], expected, atol=1e-9)
        assert left == pytest.approx(((x - expected @ atoms[support]) ** 2).sum())
        signed = reference.omp(*products(x[None], atoms), len(support), 0.0)
        dropped += not set(support) <= set(signed[0][0])
    assert dropped > 10  # so that the problem is one where signs matter


@pytest.mark.parametrize("shape", [(60, 20, 30, 8), (40, 10, 60, 9), (30, 12, 12, 12)])
def test_codes_are_the_best_on_their_support(library, rng, shape):  # noqa: F811
    *sizes, width = shape
    X, atoms = problem(rng, *sizes)
    indices, values, error = call(
        library, "positive_omp", *products(X, atoms), width, 0.0
    )
    for x, row, code, left in zip(X, indices, values, error, strict=True):
        best, distance = nnls(atoms[row[row >= 0]].T, x)
        assert (code[row >= 0] > 0).all() and (code[row < 0] == 0).all()
        np.testing.assert_allclose(code[row >= 0], best, atol=1e-9)
        assert left == pytest.approx(distance**2, abs=1e-9)


def test_without_a_limit_it_is_non_negative_least_squares(library, rng):  # noqa: F811
    X, atoms = problem(rng, n=30, m=15)
    indices, values, _ = call(library, "positive_omp", *products(X, atoms), 15, 0.0)
    best = np.array([nnls(atoms.T, x)[0] for x in X])
    assert 0 < (best > 0).mean() < 0.9
    np.testing.assert_allclose(dense(indices, values, 15), best, atol=1e-9)


def test_no_pursuit_ends_because_of_its_number_of_tries(monkeypatch, rng):
    """Two atoms for each non-zero are enough; three are allowed."""
    digits = load_digits().data[::12]
    digit_atoms = digits[:60] / np.linalg.norm(digits[:60], axis=1, keepdims=True)
    assert reference.TRIES > 2
    for samples, D in (problem(rng, n=30, m=40), (digits[60:80], digit_atoms)):
        results = []
        for tries in (2, 100):
            monkeypatch.setattr(reference, "TRIES", tries)
            found = reference.positive_omp(*products(samples, D), len(D), 1e-6)
            results.append(dense(*found[:2], len(D)))
        np.testing.assert_array_equal(*results)


@pytest.mark.parametrize("dtype", DTYPES)
def test_it_is_the_reference(library, rng, dtype):  # noqa: F811
    X, atoms = problem(rng, dtype=dtype)
    X[5], X[6] = 0, -X[6]
    expected = reference.positive_omp(*products(X, atoms), 8, 2.0)
    found = call(library, "positive_omp", *products(X, atoms), 8, 2.0)
    tolerance = 1e-10 if dtype == np.float64 else 2e-3
    assert found[1].dtype == dtype
    np.testing.assert_array_equal(found[0], expected[0])
    for ours, theirs in zip(found[1:], expected[1:], strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)


def test_it_is_omp_where_codes_are_positive_anyway(library, rng):  # noqa: F811
    atoms = np.linalg.qr(rng.standard_normal((20, 12)))[0].T
    X = rng.random((40, 12)) @ atoms
    found = call(library, "positive_omp", *products(X, atoms), 5, 0.0)
    for ours, theirs in zip(
        found, reference.omp(*products(X, atoms), 5, 0.0), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, atol=1e-12)


@pytest.mark.parametrize("dtype", DTYPES)
def test_it_survives_repeated_and_opposite_atoms(library, rng, dtype):  # noqa: F811
    X, atoms = problem(rng, n=20, p=4, m=6, dtype=dtype)
    atoms = np.concatenate([atoms, atoms, -atoms])
    indices, values, error = call(library, "positive_omp", *products(X, atoms), 10, 0.0)
    assert np.isfinite(values).all() and (values >= 0).all()
    left = X - dense(indices, values, 18) @ atoms
    rounding = 8 * np.finfo(dtype).eps  # a pursuit ends at half of it
    assert ((left**2).sum(1) <= rounding * (X**2).sum(1)).all()
    for row in indices:
        used = row[row >= 0]
        assert len(set(used % 6)) == len(used)


@pytest.mark.parametrize("where", ["corr", "energy"])
@pytest.mark.parametrize("value", NASTY)
@pytest.mark.parametrize("dtype", DTYPES)
def test_what_is_no_number_is_empty(library, rng, dtype, value, where):  # noqa: F811
    X, atoms = problem(rng, n=12, dtype=dtype)
    gram, corr, energy = products(X, atoms)
    expected = call(library, "positive_omp", gram, corr, energy, 5, 0.0)
    if where == "corr":
        corr[3, 17] = value
    else:
        energy[3] = abs(value)
    found = call(library, "positive_omp", gram, corr, energy, 5, 0.0)
    assert (found[0][3] == -1).all() and (found[1][3] == 0).all()
    assert np.isnan(found[2][3])
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(np.delete(ours, 3, 0), np.delete(theirs, 3, 0))


@pytest.mark.rounding
@pytest.mark.parametrize("width", [3, 5, 7])
def test_rounding_does_not_depend_on_where_arrays_are(rng, width):
    X, atoms = problem(rng, n=12)
    expected = table.positive_omp(*products(X, atoms), width, 0.0)
    kept = []  # so that work spaces come to lie elsewhere, and next to others
    for _ in range(300):
        kept.append([np.empty(size) for size in rng.integers(1, 12, 3)])
        kept = kept[len(kept) // 2 :] if rng.random() < 0.2 else kept
        found = table.positive_omp(*products(X, atoms), width, 0.0)
        for ours, theirs in zip(found, expected, strict=True):
            np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("value", [*NASTY, 0.0, 1e30, 1e-30])
@pytest.mark.parametrize("dtype", DTYPES)
def test_it_ends_whatever_the_gram_matrix(library, rng, dtype, value):  # noqa: F811
    X, atoms = problem(rng, n=12, dtype=dtype)
    gram, corr, energy = products(X, atoms)
    for spoiled in (np.s_[:], np.s_[7], np.s_[:, 7], np.s_[7, 7]):
        bad = gram.copy()
        bad[spoiled] = value
        indices, values, error = call(
            library, "positive_omp", bad, corr, energy, 30, 0.0
        )
        assert indices.min() >= -1 and indices.max() < 30
        assert np.isfinite(values).all() and (values >= 0).all()
        assert ((error >= 0) | np.isnan(error)).all()
        for row in indices:
            assert len(set(row[row >= 0])) == (row >= 0).sum()


@pytest.mark.parametrize("scale", [2.0**90, 2.0**-90])
def test_correlations_whose_squares_overflow(library, rng, scale):  # noqa: F811
    X, atoms = problem(rng, n=5, dtype=np.float32)
    gram, corr, energy = products(X, atoms)
    found = call(
        library, "positive_omp", gram, corr * np.float32(scale), energy, 3, 0.0
    )
    assert np.isfinite(found[1]).all()
    assert np.isnan(found[2]).all() if scale > 1 else np.isfinite(found[2]).all()


@pytest.mark.parametrize(
    "learner",
    [KSVD(8), KSVD(8, update="ksvd-parallel"), MOD(8), KernelKSVD("poly:2", 8)],
)
def test_learners_take_it(learner, xp, rng):
    X = np.abs(rng.standard_normal((60, 10)))
    coder = OMP(3, positive=True)
    learner.set_params(coder=coder, max_iter=3, random_state=0).fit(xp.asarray(X))
    codes = xp.to_numpy(learner.transform(xp.asarray(X)))
    assert (codes >= 0).all() and (codes > 0).sum() > 100


def test_shapes_that_disagree_are_refused():
    with pytest.raises(ValueError, match="Gram"):
        table.positive_omp(np.eye(3), np.ones((5, 4)), np.ones(5), 2, 0.0)
