"""Orthonormal dictionaries: thresholds that are exact, a Procrustes update, the fit."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from kernlets import (
    OMP,
    Lasso,
    NystroemMap,
    OrthogonalDictionary,
    Schedule,
    Threshold,
    datasets,
)
from kernlets.coders import encode
from kernlets.coders.encoding import statistics
from kernlets.contracts import Statistics
from kernlets.dictionaries import ExplicitDictionary
from kernlets.updates import OrthogonalUpdate
from kernlets.updates.orthogonal import (
    by_products,
    is_orthonormal,
    nearest_orthonormal,
    procrustes,
)


def orthonormal(rng, m, p):
    return np.linalg.qr(rng.standard_normal((p, m)))[0].T


def signals(rng, n=200, p=10):
    """Sparse over a hidden orthonormal basis, with a little noise."""
    codes = np.where(rng.random((n, p)) < 0.25, rng.standard_normal((n, p)), 0)
    return codes @ orthonormal(rng, p, p) + 0.01 * rng.standard_normal((n, p))


def full_objective(X, learner):
    codes = learner.transform(X)
    error = X - codes @ learner.components_
    return 0.5 * (error**2).sum() + learner.alpha * np.abs(codes).sum()


# the update


@pytest.mark.parametrize("shape", [(6, 6), (4, 9)])
def test_procrustes_is_optimal(shape, rng):
    cross = rng.standard_normal(shape)
    Z = procrustes(cross, orthonormal(rng, *shape))
    np.testing.assert_allclose(Z @ Z.T, np.eye(shape[0]), atol=1e-12)
    nuclear = np.linalg.svd(cross, compute_uv=False).sum()
    assert (cross * Z).sum() == pytest.approx(nuclear, rel=1e-7)
    others = [(cross * orthonormal(rng, *shape)).sum() for _ in range(200)]
    assert max(others) < nuclear


def test_procrustes_keeps_what_the_codes_leave_open(rng):
    """Atoms that no sample uses stay, if they are orthogonal to the others already."""
    cross = np.zeros((3, 5))
    cross[0, 0] = 2.0
    previous = np.eye(5)[[1, 3, 4]]
    Z = procrustes(cross, previous)
    np.testing.assert_allclose(Z, np.eye(5)[[0, 3, 4]], atol=1e-6)
    np.testing.assert_allclose(procrustes(0 * cross, previous), previous, atol=1e-12)


def test_nearest_orthonormal(rng):
    rows = rng.standard_normal((4, 7))
    nearest = nearest_orthonormal(rows)
    best = ((rows - nearest) ** 2).sum()
    others = [((rows - orthonormal(rng, 4, 7)) ** 2).sum() for _ in range(200)]
    assert best < min(others)
    again = nearest_orthonormal(3 * nearest)
    np.testing.assert_allclose(again, nearest, atol=1e-12)


@pytest.mark.parametrize("condition", [1.0, 1e3, 1e7])
def test_products_alone_give_the_same_factor(condition, xp, rng):
    left, right = orthonormal(rng, 12, 12), orthonormal(rng, 12, 20)
    rows = (left * np.geomspace(5.0, 5.0 / condition, 12)) @ right
    factor = by_products(xp.asarray(rows))
    assert is_orthonormal(factor)
    np.testing.assert_allclose(
        xp.to_numpy(factor), left @ right, atol=1e-14 * max(condition, 100)
    )


def test_rows_that_products_cannot_make_orthonormal_are_seen(xp, rng):
    rows = rng.standard_normal((6, 8))
    rows[5] = rows[4]
    assert not is_orthonormal(by_products(xp.asarray(rows)))
    nearest = xp.to_numpy(nearest_orthonormal(xp.asarray(rows)))
    np.testing.assert_allclose(nearest @ nearest.T, np.eye(6), atol=1e-12)


def test_update_reports_its_error(xp, rng):
    X, first = signals(rng), orthonormal(rng, 6, 10)
    dictionary = ExplicitDictionary(xp.asarray(first))
    codes = encode(dictionary, Threshold(0.2), xp.asarray(X))
    sums = statistics(dictionary, xp.asarray(X), codes)
    assert isinstance(sums, Statistics)
    step = OrthogonalUpdate().step(dictionary, sums, rng)
    dense, atoms = xp.to_numpy(codes.toarray()), xp.to_numpy(step.dictionary.atoms)
    after, before = (((X - dense @ Z) ** 2).sum() for Z in (atoms, first))
    assert step.error == pytest.approx(after)
    assert after < before


# coding over orthonormal atoms


def test_soft_threshold_is_the_lasso(rng):
    X, dictionary = signals(rng), ExplicitDictionary(orthonormal(rng, 8, 10))
    soft = encode(dictionary, Threshold(0.3), X).toarray()
    lasso = encode(dictionary, Lasso(0.3, tol=1e-12), X).toarray()
    np.testing.assert_allclose(soft, lasso, atol=1e-9)


def test_largest_correlations_are_the_best_code(rng):
    X, Z = signals(rng, n=10), orthonormal(rng, 6, 10)
    found = encode(ExplicitDictionary(Z), Threshold(kind="top-k", n_nonzero_coefs=2), X)
    for x, error in zip(X, found.residual, strict=True):
        supports = combinations(range(6), 2)
        best = min(((x - Z[list(s)].T @ (Z[list(s)] @ x)) ** 2).sum() for s in supports)
        assert error == pytest.approx(best)
    omp = encode(ExplicitDictionary(Z), OMP(2), X)
    np.testing.assert_allclose(found.toarray(), omp.toarray(), atol=1e-12)


# the learner


def test_full_objective_never_rises(rng):
    X, seen = signals(rng), []

    def note(state):
        atoms = state["dictionary"].atoms
        corr = X @ atoms.T
        codes = np.sign(corr) * np.maximum(np.abs(corr) - 0.2, 0)
        error = 0.5 * ((X - codes @ atoms) ** 2).sum()
        seen.append(error + 0.2 * np.abs(codes).sum())
        np.testing.assert_allclose(atoms @ atoms.T, np.eye(8), atol=1e-12)

    schedule = Schedule(callback=note)
    learner = OrthogonalDictionary(8, alpha=0.2, schedule=schedule, random_state=0)
    learner.fit(X)
    assert (np.diff(seen) <= 1e-12).all()
    assert seen[-1] < 0.9 * seen[0]
    assert full_objective(X, learner) == pytest.approx(seen[-1])


def test_most_of_a_hidden_basis_is_found(rng):
    hidden = orthonormal(rng, 10, 10)
    codes = np.where(rng.random((500, 10)) < 0.2, rng.standard_normal((500, 10)), 0)
    X = codes @ hidden
    learner = OrthogonalDictionary(10, alpha=0.1, max_iter=100, random_state=0).fit(X)
    overlap = np.abs(learner.components_ @ hidden.T)
    assert (overlap.max(axis=1) > 0.99).sum() >= 8  # pairs of atoms may stay mixed


def test_coder_follows_the_parameters(rng):
    X = signals(rng)
    assert OrthogonalDictionary(3, alpha=0.2).fit(X).coder_.get_params() == {
        "alpha": 0.2,
        "kind": "soft",
        "n_nonzero_coefs": None,
        "positive": False,
    }
    top = OrthogonalDictionary(3, 2).fit(X).coder_
    assert (top.n_nonzero_coefs, top.kind) == (2, "top-k")
    assert isinstance(OrthogonalDictionary(3, coder=OMP(1)).fit(X).coder_, OMP)


def test_default_number_of_atoms(rng):
    assert OrthogonalDictionary().fit(signals(rng)).components_.shape == (10, 10)
    assert OrthogonalDictionary().fit(signals(rng, n=4)).components_.shape == (4, 10)


@pytest.mark.parametrize("init", ["samples", "kmeans", "svd", "normal"])
def test_first_atoms_are_made_orthonormal(init, rng):
    X = signals(rng)
    learner = OrthogonalDictionary(7, max_iter=1, init=init, random_state=0)
    first = learner._first_dictionary(X, rng).atoms
    np.testing.assert_allclose(first @ first.T, np.eye(7), atol=1e-12)


def test_more_given_atoms_than_features_are_refused(rng):
    with pytest.raises(ValueError, match="n_components=12"):
        OrthogonalDictionary(init=rng.standard_normal((12, 10))).fit(signals(rng))


def test_behind_a_feature_map():
    X = datasets.load("digits").X_train[:300]
    F = NystroemMap("poly:2", n_landmarks=120, random_state=0).fit_transform(X)
    learner = OrthogonalDictionary(100, 10, random_state=0).fit(F)
    atoms = learner.components_
    assert atoms.dtype == np.float32
    np.testing.assert_allclose(atoms @ atoms.T, np.eye(100), atol=1e-5)


def test_blocks_and_array_give_the_same(rng):
    X = signals(rng)
    learner = OrthogonalDictionary(8, init=X[:8], random_state=0)
    whole = learner.fit(X).components_
    parts = learner.fit([X[:90], X[90:]]).components_
    np.testing.assert_allclose(parts, whole, atol=1e-10)
