"""Codes by the lasso and the elastic net: optimality, degenerate atoms, warnings."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import ElasticNet

from kernlets import OMP, BudgetKernelDL, KernelKSVD, Lasso, Ridge, Threshold, options
from kernlets.coders import encode
from kernlets.loops.lasso import numba as compiled
from kernlets.loops.lasso import reference
from kernlets.loops.lasso.numba_descent import descend

N, M, P = 40, 60, 20


def unit(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def objectives(X, atoms, codes, alpha, l1_ratio=1.0):
    residual = X - codes @ atoms
    penalty = l1_ratio * np.abs(codes).sum(1) + (1 - l1_ratio) / 2 * (codes**2).sum(1)
    return 0.5 * (residual**2).sum(1) + alpha * penalty


def largest_violation(X, atoms, codes, alpha, positive=False, l1_ratio=1.0):
    """Of the optimality conditions, relative to the largest correlation."""
    corr = X @ atoms.T
    slope = corr - codes @ (atoms @ atoms.T) - alpha * (1 - l1_ratio) * codes
    outside = (slope if positive else np.abs(slope)) - alpha * l1_ratio
    inside = np.abs(slope - alpha * l1_ratio * np.sign(codes))
    return np.where(codes == 0, outside, inside).max() / np.abs(corr).max()


def plain(rng):
    return rng.standard_normal((M, P))


def repeated(rng):
    half = rng.standard_normal((M // 2, P))
    return np.concatenate([half, half[::2], -half[::2]])


def nearly_repeated(rng):
    half = unit(rng.standard_normal((M // 2, P)))
    return np.concatenate([half, half + 1e-4 * rng.standard_normal(half.shape)])


def with_zeros(rng):
    atoms = plain(rng)
    atoms[::7] = 0
    return atoms


def of_low_rank(rng):
    return rng.standard_normal((M, 4)) @ rng.standard_normal((4, P))


def coherent(rng):
    return 0.2 * plain(rng) + rng.standard_normal(P)


def of_any_length(rng):
    return unit(plain(rng)) * 10 ** rng.uniform(-1, 1, (M, 1))


KINDS = [
    plain,
    repeated,
    nearly_repeated,
    with_zeros,
    of_low_rank,
    coherent,
    of_any_length,
]


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("alpha", [0.3, 0.05, 0.003])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_codes_are_optimal(rng, dtype, kind, alpha, positive):
    atoms, X = kind(rng), unit(rng.standard_normal((N, P)))
    if kind is not of_any_length:
        atoms = atoms / np.maximum(np.linalg.norm(atoms, axis=1, keepdims=True), 1e-9)
    atoms, X = atoms.astype(dtype), X.astype(dtype)
    codes = encode(atoms, Lasso(alpha, positive), X)
    values = codes.toarray().astype(float)
    atoms, X = atoms.astype(float), X.astype(float)
    assert codes.values.dtype == dtype
    assert not positive or (values >= 0).all()
    # a thousandth of the largest correlation times 1e-6, or float32's rounding
    limit = 1e-6 if dtype == np.float64 else 3e-5
    assert largest_violation(X, atoms, values, alpha, positive) < limit
    residual = ((X - values @ atoms) ** 2).sum(1)
    np.testing.assert_allclose(codes.residual, residual, atol=20 * limit)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_objectives_are_those_of_coordinate_descent(rng, dtype):
    atoms, X = unit(plain(rng)).astype(dtype), unit(rng.standard_normal((9, P)))
    X = X.astype(dtype)
    codes = encode(atoms, Lasso(0.05), X).toarray().astype(float)
    atoms, X = atoms.astype(float), X.astype(float)
    best, _ = reference.descend(atoms @ atoms.T, X @ atoms.T, 0.05, False, 10**5, 1e-7)
    ours, theirs = (objectives(X, atoms, each, 0.05) for each in (codes, best))
    np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def test_an_alpha_above_all_correlations_gives_empty_codes(rng):
    atoms, X = unit(plain(rng)), rng.standard_normal((N, P))
    codes = encode(atoms, Lasso(np.abs(X @ atoms.T).max() * 1.001), X)
    assert (codes.indices == -1).all() and codes.width == 1
    np.testing.assert_allclose(codes.residual, (X**2).sum(1))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_without_a_penalty_codes_explain_all_that_atoms_span(rng, dtype):
    atoms = unit(of_low_rank(rng)).astype(dtype)
    X = rng.standard_normal((N, P)).astype(dtype)
    codes = encode(atoms, Lasso(0.0), X)
    basis = np.linalg.qr(atoms[:4].astype(float).T)[0]
    beyond = X - X @ basis @ basis.T
    tolerance = 1e-9 if dtype == np.float64 else 1e-3
    np.testing.assert_allclose(codes.residual, (beyond**2).sum(1), rtol=tolerance)


def test_a_tiny_alpha_gives_the_code_of_least_l1_norm(rng):
    """More atoms than the rank are tried on the way; x is then D γ nearly."""
    atoms, X = unit(plain(rng)), unit(rng.standard_normal((N, P)))
    codes = encode(atoms, Lasso(1e-6), X)
    assert codes.residual.max() < 1e-8 and codes.width <= P + 2
    from scipy.optimize import linprog

    split = np.concatenate([atoms, -atoms]).T
    for x, code in zip(X[:5], codes.toarray(), strict=False):
        least = linprog(np.ones(2 * M), A_eq=split, b_eq=x).fun
        assert np.abs(code).sum() == pytest.approx(least, rel=1e-3)


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("l1_ratio", [0.9, 0.3])
def test_the_elastic_net_is_scikit_learns(rng, l1_ratio, positive):
    atoms, X = unit(plain(rng)), unit(rng.standard_normal((N, P)))
    coder = Lasso(0.05, positive, l1_ratio=l1_ratio)
    codes = encode(atoms, coder, X)
    peer = ElasticNet(
        alpha=0.05 / P,  # scikit-learn divides the squared error by P
        l1_ratio=l1_ratio,
        positive=positive,
        fit_intercept=False,
        tol=1e-12,
        max_iter=10**6,
    )
    expected = peer.fit(atoms.T, X.T).coef_
    np.testing.assert_allclose(codes.toarray(), expected, atol=1e-5)
    residual = ((X - codes.toarray() @ atoms) ** 2).sum(1)
    np.testing.assert_allclose(codes.residual, residual, atol=1e-12)
    assert largest_violation(X, atoms, codes.toarray(), 0.05, positive, l1_ratio) < 1e-6


def test_repeated_atoms_share_under_the_elastic_net(rng):
    atoms = unit(plain(rng))
    X = unit(rng.standard_normal((N, P)))
    twice = np.concatenate([atoms, atoms])
    codes = encode(twice, Lasso(0.1, l1_ratio=0.5), X).toarray()
    np.testing.assert_allclose(codes[:, :M], codes[:, M:], atol=1e-6)


@pytest.mark.parametrize("l1_ratio", [0, -0.5, 1.5])
def test_a_ratio_that_is_none_is_refused(rng, l1_ratio):
    with pytest.raises(ValueError, match="l1_ratio"):
        KernelKSVD("rbf", 4, coder=Lasso(l1_ratio=l1_ratio)).fit(plain(rng))


def test_a_ratio_of_nothing_is_ridge(rng):
    with pytest.raises(ValueError, match="use Ridge"):
        encode(unit(plain(rng)), Lasso(l1_ratio=0), plain(rng))
    atoms, X = unit(plain(rng)), unit(rng.standard_normal((N, P)))
    nearly = encode(atoms, Lasso(0.5, l1_ratio=1e-9), X).toarray()
    ridge = encode(atoms, Ridge(0.5), X).toarray()  # both ‖γ‖² and ‖x − Dγ‖² twice
    np.testing.assert_allclose(nearly, ridge, atol=1e-6)


def test_a_budget_has_no_elastic_net(rng):
    model = BudgetKernelDL("rbf", 4, coder=Lasso(l1_ratio=0.5), random_state=0)
    with pytest.raises(ValueError, match="set l1_ratio=1"):
        model.fit(plain(rng))


@pytest.mark.rounding
def test_threads_and_neighbours_change_nothing(rng):
    atoms, X = unit(plain(rng)), unit(rng.standard_normal((700, P)))
    coder = Lasso(0.02)
    with options(n_threads=1, block_rows=64):
        serial = encode(atoms, coder, X).toarray()
    with options(n_threads=3, block_rows=64):
        parallel = encode(atoms, coder, X).toarray()
    np.testing.assert_array_equal(serial, parallel)
    gram, corr = atoms @ atoms.T, X @ atoms.T
    alone = np.concatenate(
        [coder.solve(gram, row[None], np.ones(1)).toarray() for row in corr[:50]]
    )
    together = coder.solve(gram, corr, np.ones(700)).toarray()[:50]
    np.testing.assert_array_equal(alone, together)


def test_codes_with_more_atoms_than_there_was_room_for(rng, monkeypatch):
    """Room grows while samples are coded; beyond it coordinate descent takes over."""
    atoms, X = unit(rng.standard_normal((200, 150))), rng.standard_normal((N, 150))
    X[::2] *= 0.01  # codes with few atoms between those with many
    coder = Lasso(0.1, tol=1e-9)
    codes = encode(atoms, coder, X)
    sizes = (codes.toarray() != 0).sum(1)
    assert sizes[1::2].min() > 2 * compiled.FIRST_WIDTH > sizes[::2].max()
    assert largest_violation(X, atoms, codes.toarray(), 0.1) < 1e-6
    calls = []

    def counted(gram, corr, *parameters):
        calls.append(len(corr))
        return descend(gram, corr, *parameters)

    monkeypatch.setattr(compiled, "LARGEST_WIDTH", 64)
    monkeypatch.setattr(compiled, "descend", counted)
    descended = encode(atoms, coder, X)
    assert calls == [N // 2]
    np.testing.assert_allclose(descended.toarray(), codes.toarray(), atol=1e-6)
    np.testing.assert_allclose(descended.residual, codes.residual, atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_descent_starts_from_codes_and_from_zero_where_they_are_worse(rng, dtype):
    atoms = unit(plain(rng)).astype(dtype)
    corr = (unit(rng.standard_normal((N, P))) @ atoms.T).astype(dtype)
    gram = atoms @ atoms.T
    problem = gram, corr, 0.1, False, 10**4, 1e-9
    cold, _ = reference.descend(*problem)
    start = cold + 0.01 * rng.standard_normal(cold.shape)
    start[0] = 1e30
    start[1] = np.nan
    *_, converged = descend(*problem, start := start.astype(dtype))
    assert converged.all()
    np.testing.assert_allclose(start, cold, atol=1e-5 if dtype is np.float64 else 1e-3)


def test_too_few_passes_warn_once_and_name_the_remedy(rng):
    atoms, X = unit(plain(rng)), unit(rng.standard_normal((N, P)))
    with options(block_rows=5), pytest.warns(ConvergenceWarning) as warned:
        encode(atoms, Lasso(0.01, max_iter=2), X)
    assert len(warned) == 1
    assert "raise max_iter or tol of the coder" in str(warned[0].message)


@pytest.mark.parametrize("kind", ["soft", "hard", "top-k"])
def test_positive_thresholds_are_the_best_codes_over_orthonormal_atoms(rng, kind):
    atoms = np.linalg.qr(rng.standard_normal((6, 6)))[0]
    X = rng.standard_normal((N, 6))
    count = 2 if kind == "top-k" else None
    coder = Threshold(0.4, kind, n_nonzero_coefs=count, positive=True)
    codes = encode(atoms, coder, X).toarray()
    peers = {"soft": Lasso(0.4, True), "top-k": OMP(2, positive=True)}
    if kind in peers:
        expected = encode(atoms, peers[kind], X).toarray()
        np.testing.assert_allclose(codes, expected, atol=1e-9)
    else:
        corr = X @ atoms.T
        np.testing.assert_allclose(codes, np.where(corr > 0.4, corr, 0), atol=1e-12)
