"""Every implementation of every hot operation does what the reference says."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from kernlets.loops import table
from kernlets.loops.budget import reference as budget_reference
from kernlets.loops.budget.types import ERROR, BudgetPursuit, Rules, Stock
from kernlets.loops.lasso import reference as lasso_reference
from kernlets.loops.omp import reference as omp_reference
from kernlets.loops.updates import reference as updates_reference

# "cuda" has the twins for torch, with their arguments on a GPU: Triton's if installed
LIBRARIES = ("reference", "numba", "torch", "cuda")
DTYPES = (np.float64, np.float32)
OPERATIONS = {
    name: value
    for name, value in vars(table).items()
    if isinstance(value, table.Operation)
}


@pytest.fixture(params=LIBRARIES)
def library(request):
    if request.param in ("torch", "cuda"):
        torch = pytest.importorskip("torch", reason="torch is not installed")
        if request.param == "cuda" and not torch.cuda.is_available():
            pytest.skip("no GPU")
    return request.param


def call(library, name, *args):
    """Run one operation of a library on NumPy arrays; in-place changes return."""
    if library in ("reference", "numba"):
        return OPERATIONS[name].loop(library)(*args)
    import torch

    device = "cuda" if library == "cuda" else "cpu"

    def there(a):
        if isinstance(a, Stock):
            return Stock(*map(there, a))
        return torch.as_tensor(a, device=device) if isinstance(a, np.ndarray) else a

    def back(before, after):
        if isinstance(before, Stock):
            for part, changed in zip(before, after, strict=True):
                back(part, changed)
        elif isinstance(before, np.ndarray):
            before[...] = after.cpu().numpy()

    def here(a):
        return a.cpu().numpy() if isinstance(a, torch.Tensor) else a

    moved = [there(a) for a in args]
    result = OPERATIONS[name].loop("torch")(*moved)
    for before, after in zip(args, moved, strict=True):
        back(before, after)
    return tuple(map(here, result)) if isinstance(result, tuple) else here(result)


def problem(rng, n=60, p=20, m=30, dtype=np.float64):
    atoms = rng.standard_normal((m, p))
    atoms /= np.linalg.norm(atoms, axis=1, keepdims=True)
    X = rng.standard_normal((n, p))
    return X.astype(dtype), atoms.astype(dtype)


def products(X, atoms):
    return atoms @ atoms.T, X @ atoms.T, (X * X).sum(1)


def dense(indices, values, m):
    codes = np.zeros((len(indices), m), values.dtype)
    for code, where, value in zip(codes, indices, values, strict=True):
        code[where[where >= 0]] = value[where >= 0]
    return codes


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_operation_has_every_implementation(library, name):
    assert callable(OPERATIONS[name].loop("torch" if library == "cuda" else library))


def test_there_are_operations():
    assert len(OPERATIONS) == 21


@pytest.mark.parametrize("dtype", DTYPES)
def test_omp_is_the_textbook_algorithm(library, rng, dtype):
    X, atoms = problem(rng, dtype=dtype)
    expected = omp_reference.omp(*products(X, atoms), 6, 0.0)
    found = call(library, "omp", *products(X, atoms), 6, 0.0)
    tolerance = 1e-10 if dtype == np.float64 else 2e-3
    assert found[1].dtype == dtype
    np.testing.assert_array_equal(found[0], expected[0])
    np.testing.assert_allclose(found[1], expected[1], rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(found[2], expected[2], rtol=tolerance, atol=tolerance)


def test_omp_residual_is_orthogonal_to_the_chosen_atoms(library, rng):
    X, atoms = problem(rng)
    indices, values, error = call(library, "omp", *products(X, atoms), 5, 0.0)
    left = X - dense(indices, values, len(atoms)) @ atoms
    chosen = np.take_along_axis(left @ atoms.T, indices.astype(int), axis=1)
    np.testing.assert_allclose(chosen, 0, atol=1e-12)
    np.testing.assert_allclose(error, (left**2).sum(1), rtol=1e-10)


def test_omp_stops_at_the_error_asked_for(library, rng):
    X, atoms = problem(rng)
    indices, values, error = call(library, "omp", *products(X, atoms), 20, 4.0)
    steps = (indices >= 0).sum(1)
    assert (error <= 4.0).all() and steps.min() < steps.max()
    _, _, before = call(library, "omp", *products(X, atoms), int(steps.max()) - 1, 4.0)
    assert (before[steps == steps.max()] > 4.0).all()


def test_omp_of_an_atom_is_that_atom(library, rng):
    _, atoms = problem(rng)
    indices, values, error = call(library, "omp", *products(3 * atoms, atoms), 4, 0.0)
    np.testing.assert_allclose(dense(indices, values, 30), 3 * np.eye(30), atol=1e-12)
    assert (indices[:, 1:] == -1).all() and error.max() < 1e-12


@pytest.mark.parametrize("dtype", DTYPES)
def test_omp_survives_zero_signals_ties_and_repeated_atoms(library, rng, dtype):
    X, atoms = problem(rng, n=8, p=4, m=6, dtype=dtype)
    atoms = np.concatenate([atoms, atoms, -atoms])  # every atom three times
    X[0] = 0
    indices, values, error = call(library, "omp", *products(X, atoms), 10, 0.0)
    assert (indices[0] == -1).all() and (values[0] == 0).all() and error[0] == 0
    assert np.isfinite(values).all()
    for row in indices:
        used = row[row >= 0]
        assert len(set(used % 6)) == len(used)  # no atom and its copy together
    left = X - dense(indices, values, 18) @ atoms
    assert np.abs(left).max() < (1e-10 if dtype == np.float64 else 1e-4)


def lasso_codes(library, gram, corr, *parameters):
    """Dense codes of `lasso`, and which of them have converged."""
    indices, values, explained, converged = call(
        library, "lasso", gram, corr, *parameters
    )
    codes = dense(indices, values, len(gram)).astype(values.dtype)
    expected = np.sum(codes * (2 * corr - codes @ gram), axis=1)
    tolerance = 100 * np.finfo(corr.dtype).eps * max(1, np.abs(expected).max())
    np.testing.assert_allclose(explained, expected, atol=tolerance)
    return codes, converged


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_lasso_meets_the_optimality_conditions(library, rng, positive, dtype):
    X, atoms = problem(rng, dtype=dtype)
    gram, corr, _ = products(X, atoms)
    tol = 8 * np.finfo(dtype).eps  # as fine as the dtype allows
    codes, _ = lasso_codes(library, gram, corr, 0.3, positive, 5000, float(tol))
    slope = corr - codes @ gram
    tolerance = 1e-10 if dtype == np.float64 else 1e-4
    assert codes.dtype == dtype
    assert not positive or (codes >= 0).all()
    np.testing.assert_allclose(
        slope[codes != 0], 0.3 * np.sign(codes[codes != 0]), atol=tolerance
    )
    limit = slope if positive else np.abs(slope)
    assert (limit[codes == 0] <= 0.3 + tolerance).all()
    assert 0 < (codes != 0).mean() < 1


def test_lasso_leaves_atoms_that_are_zero_alone(library, rng):
    X, atoms = problem(rng, n=10)
    atoms[4] = 0
    gram, corr, _ = products(X, atoms)
    codes, _ = lasso_codes(library, gram, corr, 0.3, False, 5000, 1e-12)
    rest = np.delete(np.arange(30), 4)
    part = corr[:, rest], 0.3, False, 5000, 1e-12
    expected, _ = lasso_reference.descend(gram[np.ix_(rest, rest)], *part)
    assert not codes[:, 4].any()
    np.testing.assert_allclose(codes[:, rest], expected, atol=1e-10)


def test_lasso_is_scikit_learns(library, rng):
    from sklearn.linear_model import Lasso

    X, atoms = problem(rng, n=10)
    gram, corr, _ = products(X, atoms)
    codes, _ = lasso_codes(library, gram, corr, 0.2, False, 5000, 1e-9)
    peer = Lasso(alpha=0.2 / X.shape[1], fit_intercept=False, tol=1e-12, max_iter=10**5)
    np.testing.assert_allclose(codes, peer.fit(atoms.T, X.T).coef_, atol=1e-6)


@pytest.mark.parametrize("dtype", DTYPES)
def test_l1_distances(library, rng, dtype):
    X, Y = rng.standard_normal((7, 5)).astype(dtype), rng.random((4, 5)).astype(dtype)
    found = call(library, "l1_distances", X, Y)
    naive = [[sum(abs(a - b) for a, b in zip(x, y, strict=True)) for y in Y] for x in X]
    assert found.dtype == dtype
    np.testing.assert_allclose(found, naive, rtol=1e-5)


def naive_hadamard(X):
    """Entry (i, j) of H is −1 to the number of ones that i and j share."""
    d = X.shape[1]
    signs = [[(-1) ** (i & j).bit_count() for j in range(d)] for i in range(d)]
    return X.astype(np.float64) @ np.array(signs, dtype=np.float64)


@pytest.mark.parametrize("d", [1, 2, 4, 8, 16, 32, 128, 512])
@pytest.mark.parametrize("dtype", DTYPES)
def test_fwht(library, rng, d, dtype):
    X = rng.standard_normal((5, d)).astype(dtype)
    expected = naive_hadamard(X)
    call(library, "fwht", X)
    np.testing.assert_allclose(X, expected, atol=2 * d * np.finfo(dtype).eps)


def test_fwht_twice_is_d_times_the_identity(library, rng):
    X = rng.standard_normal((3, 64))
    twice = X.copy()
    call(library, "fwht", twice)
    call(library, "fwht", twice)
    np.testing.assert_allclose(twice, 64 * X, atol=1e-12)


def test_fwht_wants_a_power_of_two(rng):
    with pytest.raises(ValueError, match=r"12 columns.*pad"):
        table.fwht(rng.standard_normal((3, 12)))


def test_subtract_codes(library, rng):
    X, atoms = problem(rng)
    indices, values, _ = omp_reference.omp(*products(X, atoms), 5, 6.0)
    assert (indices == -1).any()
    expected = X - dense(indices, values, 30) @ atoms
    found = call(library, "subtract_codes", X, indices.astype(np.int64), values, atoms)
    np.testing.assert_allclose(found, expected, atol=1e-12)


def swept(library, rng, exact, dtype=np.float64):
    X, atoms = problem(rng, n=200, m=15, dtype=dtype)
    indices, values, _ = omp_reference.omp(*products(X, atoms), 3, 2.0)
    indices = indices.astype(np.int64)
    indices[indices == 7] = -1  # an atom that nobody uses
    values[indices == -1] = 0
    residual = X - dense(indices, values, 15) @ atoms
    before = {"values": values.copy(), "atoms": atoms.copy(), "X": X}
    order = np.random.default_rng(5).permutation(15)
    call(library, "ksvd_sweep", residual, atoms, indices, values, order, exact)
    return X, atoms, indices, values, residual, before


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_sweep_is_the_reference_sweep(library, rng, exact, dtype):
    seed = rng.integers(2**31)
    found = swept(library, np.random.default_rng(seed), exact, dtype)
    expected = swept("reference", np.random.default_rng(seed), exact, dtype)
    tolerance = 1e-9 if dtype == np.float64 else 2e-4
    for ours, theirs in zip(found[1:5], expected[1:5], strict=True):
        np.testing.assert_allclose(ours, theirs, atol=tolerance)


@pytest.mark.parametrize("exact", [False, True])
def test_sweep_keeps_supports_and_norms_and_never_raises_the_error(library, rng, exact):
    X, atoms, indices, values, residual, before = swept(library, rng, exact)
    np.testing.assert_allclose((atoms**2).sum(1), 1)
    np.testing.assert_array_equal(values[indices == -1], 0)
    np.testing.assert_array_equal(atoms[7], before["atoms"][7])
    left = X - dense(indices, values, 15) @ atoms
    np.testing.assert_allclose(residual, left, atol=1e-10)
    old = X - dense(indices, before["values"], 15) @ before["atoms"]
    assert (left**2).sum() < (old**2).sum()


def test_exact_sweep_takes_the_leading_singular_pair(library, rng):
    X, atoms = problem(rng, n=50, m=1)
    indices, values = np.zeros((50, 1), np.int64), X @ atoms.T
    residual = X - values @ atoms
    call(library, "ksvd_sweep", residual, atoms, indices, values, np.array([0]), True)
    left, scale, right = np.linalg.svd(X)
    expected = scale[0] * np.outer(left[:, 0], right[0])
    np.testing.assert_allclose(values @ atoms, expected, atol=1e-10)


def gram_problem(rng, dtype=np.float64):
    """Kernel and explicit form of one problem, with the linear kernel."""
    X, atoms = problem(rng, n=80, m=15, dtype=dtype)
    coefs = rng.standard_normal((15, 80)).astype(dtype)
    atoms = coefs @ X
    scale = np.linalg.norm(atoms, axis=1, keepdims=True)
    coefs, atoms = coefs / scale, atoms / scale
    indices, values, _ = omp_reference.omp(*products(X, atoms), 3, 2.0)
    return X, coefs, atoms, indices.astype(np.int64), values


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_gram_sweep_is_the_explicit_sweep_in_feature_space(library, rng, exact, dtype):
    X, coefs, atoms, indices, values = gram_problem(rng, dtype)
    order = rng.permutation(15)
    residual = X - dense(indices, values, 15) @ atoms
    explicit = atoms.copy(), values.copy()
    updates_reference.ksvd_sweep(
        residual, explicit[0], indices, explicit[1], order, exact
    )
    matrix, gram = X @ X.T, atoms @ atoms.T
    products_ = coefs @ matrix
    call(
        library,
        "gram_sweep",
        matrix,
        coefs,
        products_,
        gram,
        indices,
        values,
        order,
        exact,
    )
    tolerance = 1e-9 if dtype == np.float64 else 2e-3
    np.testing.assert_allclose(coefs @ X, explicit[0], atol=tolerance)
    np.testing.assert_allclose(values, explicit[1], atol=tolerance)
    np.testing.assert_allclose(products_, explicit[0] @ X.T, atol=10 * tolerance)
    np.testing.assert_allclose(gram, explicit[0] @ explicit[0].T, atol=tolerance)


def budget_problem(rng, dtype, pruning, width):
    """Sixty samples, none of them an anchor yet, and room for twelve."""
    X, _ = problem(rng, p=6, dtype=dtype)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    c, m = 13, 5
    stock = Stock(
        matrix=np.zeros((c, c), dtype),
        coefs=np.zeros((c, m), dtype),
        products=np.zeros((c, m), dtype),
        gram=np.zeros((m, m), dtype),
        inverse=np.zeros((c, c)),
        slots=np.zeros(c, np.int64),
        start=(0.1 * rng.standard_normal((8, m))).astype(dtype),
        idle=np.zeros(m, np.int64),
    )
    tiny = float(np.finfo(dtype).eps)
    rules = Rules(
        budget=12,
        feature_space=pruning == ERROR,
        penalty=0.1,
        reach=1.8,
        guard=True,
        learn_rejected=True,
        patience=5,
        coherence=0.9,
        cost=1.0,
        babel=np.inf,
        distance=-np.inf,
        dependence=-1.0,
        repeats=False,
        pruning=pruning,
        unit=width > 0,
        tiny=100 * tiny,
        jitter=tiny**0.5,
    )
    pursuit = BudgetPursuit(width, 0.05 * (width == 0), False, 5000, 8 * tiny)
    return (X @ X.T + 1) ** 3, stock, rules, pursuit


@pytest.mark.parametrize("width", [0, 2], ids=["lasso", "omp"])
@pytest.mark.parametrize("pruning", [0, 1, 2], ids=["row-norm", "error", "merge"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_budget_stream_is_the_reference_stream(library, rng, dtype, pruning, width):
    matrix, stock, rules, pursuit = budget_problem(rng, dtype, pruning, width)
    twin = Stock(*[part.copy() for part in stock])
    rates = np.linspace(0.05, 0.01, 60).astype(dtype)
    block = matrix, np.diagonal(matrix).copy(), rates, rules, pursuit
    expected = budget_reference.budget_stream(twin, 0, *block)
    found = call(library, "budget_stream", stock, 0, *block)
    assert found[:3] == expected[:3]
    np.testing.assert_array_equal(stock.slots, twin.slots)
    np.testing.assert_array_equal(stock.idle, twin.idle)
    tolerance = 1e-8 if dtype == np.float64 else 2e-3
    for ours, theirs in zip(
        (*stock[:4], *found[3:]), (*twin[:4], *expected[3:]), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, atol=tolerance)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "criterion",
    [
        {"babel": 4.0},
        {"distance": 8.0},
        {"dependence": 2.0},
        {"repeats": True, "coherence": np.inf},
    ],
    ids=lambda criterion: min(criterion),
)
def test_budget_stream_has_the_same_criteria_in_all_homes(
    library, rng, dtype, criterion
):
    matrix, stock, rules, pursuit = budget_problem(rng, dtype, ERROR, 0)
    rules = rules._replace(cost=-1.0, budget=60, **criterion)
    room, m = 61, len(stock.gram)
    stock = stock._replace(
        matrix=np.zeros((room, room), dtype),
        coefs=np.zeros((room, m), dtype),
        products=np.zeros((room, m), dtype),
        inverse=np.zeros((room, room)),
        slots=np.zeros(room, np.int64),
    )
    twice = np.r_[:30, :30]  # each sample comes again
    matrix = np.ascontiguousarray(matrix[np.ix_(twice, twice)])
    twin = Stock(*[part.copy() for part in stock])
    rates = np.linspace(0.05, 0.01, 60).astype(dtype)
    block = matrix, np.diagonal(matrix).copy(), rates, rules, pursuit
    expected = budget_reference.budget_stream(twin, 0, *block)
    found = call(library, "budget_stream", stock, 0, *block)
    assert found[:2] == expected[:2]
    np.testing.assert_array_equal(stock.slots, twin.slots)
    kept = stock.slots[: found[0]] % 30
    assert (len(set(kept)) < len(kept)) == rules.repeats


def test_budget_stream_keeps_what_belongs_together(library, rng):
    """Kernel matrix, products and Gram matrix after 60 admissions and removals."""
    matrix, stock, rules, pursuit = budget_problem(rng, np.float64, ERROR, 0)
    block = matrix, np.diagonal(matrix).copy(), np.full(60, 0.02), rules, pursuit
    size, n_admitted, *_ = call(library, "budget_stream", stock, 0, *block)
    assert size == 12 and n_admitted > 24
    kept = matrix[np.ix_(stock.slots[:12], stock.slots[:12])]
    np.testing.assert_array_equal(stock.matrix[:12, :12], kept)
    coefs = stock.coefs[:12]
    np.testing.assert_allclose(stock.products[:12], kept @ coefs, atol=1e-10)
    np.testing.assert_allclose(stock.gram, coefs.T @ kept @ coefs, atol=1e-10)
    more = kept + np.diag(rules.jitter * np.diagonal(kept))
    np.testing.assert_allclose(stock.inverse[:12, :12] @ more, np.eye(12), atol=1e-7)
    assert not any(part[12:].any() for part in (stock.coefs, stock.products))


# ------------------------------------------------- numbers that are none, or too large

NASTY = (np.nan, np.inf, -np.inf)
SCALES = (2.0**-40, 2.0**40)  # squares of squares leave the range of float32


def assert_other_rows_equal(found, expected, row):
    for parts in zip(found, expected, strict=True):
        np.testing.assert_array_equal(*(np.delete(part, row, 0) for part in parts))


@pytest.mark.parametrize("where", ["corr", "energy"])
@pytest.mark.parametrize("value", NASTY)
@pytest.mark.parametrize("dtype", DTYPES)
def test_omp_of_what_is_no_number_is_empty_and_says_so(
    library, rng, dtype, value, where
):
    X, atoms = problem(rng, n=12, dtype=dtype)
    gram, corr, energy = products(X, atoms)
    expected = call(library, "omp", gram, corr, energy, 5, 0.0)
    if where == "corr":
        corr[3, 17] = value
    else:
        energy[3] = abs(value)
    found = call(library, "omp", gram, corr, energy, 5, 0.0)
    assert (found[0][3] == -1).all() and (found[1][3] == 0).all()
    assert np.isnan(found[2][3])
    assert_other_rows_equal(found, expected, 3)


@pytest.mark.parametrize("value", [*NASTY, 0.0, 1e30, 1e-30])
@pytest.mark.parametrize("dtype", DTYPES)
def test_omp_stays_within_its_arrays_whatever_the_gram_matrix(
    library, rng, dtype, value
):
    X, atoms = problem(rng, n=12, dtype=dtype)
    gram, corr, energy = products(X, atoms)
    for spoiled in (np.s_[:], np.s_[7], np.s_[:, 7], np.s_[7, 7]):
        bad = gram.copy()
        bad[spoiled] = value
        indices, values, error = call(library, "omp", bad, corr, energy, 30, 0.0)
        assert indices.min() >= -1 and indices.max() < 30
        assert np.isfinite(values).all()
        assert ((error >= 0) | np.isnan(error)).all()
        for row in indices:
            assert len(set(row[row >= 0])) == (row >= 0).sum()


@pytest.mark.parametrize("scale", [1e30, 1e-30])
def test_omp_of_correlations_whose_squares_overflow(library, rng, scale):
    X, atoms = problem(rng, n=5, dtype=np.float32)
    gram, corr, energy = products(X, atoms)
    found = call(library, "omp", gram, corr * np.float32(scale), energy, 3, 0.0)
    assert np.isfinite(found[1]).all()
    assert np.isnan(found[2]).all() if scale > 1 else np.isfinite(found[2]).all()


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("value", NASTY)
@pytest.mark.parametrize("dtype", DTYPES)
def test_lasso_of_what_is_no_number_is_nan(library, rng, dtype, value, positive):
    X, atoms = problem(rng, n=8, dtype=dtype)
    gram, corr, _ = products(X, atoms)
    expected = call(library, "lasso", gram, corr, 0.3, positive, 500, 1e-6)
    corr[3, 17] = value
    results = call(library, "lasso", gram, corr, 0.3, positive, 500, 1e-6)
    assert np.isnan(results[2][3]) and (results[0][3] == -1).all()
    complete = [dense(*those[:2], 30) for those in (results, expected)]
    np.testing.assert_array_equal(*[np.delete(codes, 3, 0) for codes in complete])


@pytest.mark.parametrize("positive", [False, True])
def test_lasso_in_step_takes_the_steps_of_each_sample_alone(rng, positive):
    """What a GPU does, here on the processor: the same codes, also when time is up."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    from kernlets.loops.lasso import numba_descent
    from kernlets.loops.lasso.torch import lasso_in_step

    X, atoms = problem(rng, n=40, p=8, m=15)
    gram, corr, _ = products(X, atoms)
    both = torch.as_tensor(gram), torch.as_tensor(corr)
    for max_iter in (1, 2, 30, 2000):
        expected = np.zeros_like(corr), np.zeros(len(corr), bool)
        problem_ = gram, corr, 0.1, positive, max_iter, 1e-6
        numba_descent.lasso_samples(*problem_, *expected)
        found = lasso_in_step(*both, 0.1, positive, max_iter, 1e-6)
        np.testing.assert_allclose(found[0], expected[0], atol=1e-11)
        np.testing.assert_array_equal(found[1], expected[1])
    assert found[1].float().mean() > 0.9
    some, _ = lasso_in_step(both[0], both[1][7:9], 0.1, positive, 2000, 1e-6)
    np.testing.assert_allclose(some, found[0][7:9], atol=1e-13)


def test_lasso_says_which_codes_have_converged(library, rng):
    X, atoms = problem(rng, n=20)
    gram, corr, _ = products(X, atoms)
    corr[5] = 0
    codes, few = lasso_codes(library, gram, corr, 0.05, False, 2, 1e-6)
    best, all_of_them = lasso_codes(library, gram, corr, 0.05, False, 20_000, 1e-6)
    assert few[5] and not few.all() and all_of_them.all()
    assert not lasso_codes(library, gram, corr, 0.05, False, 0, 1e-6)[1].any()
    np.testing.assert_allclose(codes[few], best[few], atol=1e-4)


@pytest.mark.parametrize("dtype", DTYPES)
def test_lasso_that_has_no_minimum_ends_and_says_so(library, rng, dtype):
    """An indefinite Gram matrix, as a kernel that is not positive may give."""
    gram = np.array([[1, 1.5], [1.5, 1]], dtype)
    corr = np.array([[1, 0.4], [0.05, 0.02]], dtype)
    found = call(library, "lasso", gram, corr, 0.1, False, 10**6, 1e-6)
    assert np.isnan(found[2][0]) and found[2][1] == 0 and (found[0] == -1).all()


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("value", NASTY)
def test_sweeps_over_what_is_no_number_end(library, rng, exact, value):
    X, atoms = problem(rng, n=60, m=15)
    indices, values, _ = omp_reference.omp(*products(X, atoms), 3, 0.0)
    indices, order = indices.astype(np.int64), np.arange(15)
    residual = X - dense(indices, values, 15) @ atoms
    residual[4, 2] = value
    coefs = np.linalg.lstsq(X.T, atoms.T, rcond=None)[0].T
    matrix, gram = X @ X.T, atoms @ atoms.T
    matrix[4, 9] = value
    by_matrix = coefs.copy(), coefs @ (X @ X.T), gram, indices, values.copy(), order
    call(library, "ksvd_sweep", residual, atoms, indices, values, order, exact)
    call(library, "gram_sweep", matrix, *by_matrix, exact)
    assert not np.isfinite(residual).all()  # so that the caller can see it
    assert not all(np.isfinite(part).all() for part in by_matrix)


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_sweeps_do_not_depend_on_the_unit_of_the_data(
    library, rng, dtype, scale, exact
):
    """Bit by bit, for a power of two: nothing overflows and nothing vanishes."""
    scale = dtype(scale)
    X, coefs, atoms, indices, values = gram_problem(rng, dtype)
    order, swept = np.arange(15), []
    for unit in (dtype(1), scale):
        codes, moved = values * unit, atoms.copy()
        residual = unit * (X - dense(indices, values, 15) @ atoms)
        call(library, "ksvd_sweep", residual, moved, indices, codes, order, exact)
        kernel = coefs / unit, coefs @ (X @ X.T) * unit, atoms @ atoms.T
        by_matrix = values * unit
        matrix = X @ X.T * unit * unit
        call(library, "gram_sweep", matrix, *kernel, indices, by_matrix, order, exact)
        swept.append((moved, codes / unit, kernel[0] * unit, by_matrix / unit))
    for plain, scaled in zip(*swept, strict=True):
        np.testing.assert_array_equal(scaled, plain)


@pytest.mark.parametrize("dtype", DTYPES)
def test_an_atom_that_cannot_move_keeps_its_coefficients(library, rng, dtype):
    """Users whose codes are zero leave nothing to divide by."""
    X, coefs, atoms, indices, values = gram_problem(rng, dtype)
    values[indices == 3] = 0
    before, matrix = coefs.copy(), X @ X.T
    state = coefs, coefs @ matrix, atoms @ atoms.T, indices, values, np.arange(15)
    call(library, "gram_sweep", matrix, *state, False)
    np.testing.assert_allclose(coefs[3], before[3], rtol=1e-5)
    assert np.abs(coefs - before).max() > 1e-3


@pytest.mark.parametrize("value", NASTY)
def test_distances_transforms_and_residuals_pass_on_what_is_no_number(
    library, rng, value
):
    X, atoms = problem(rng, n=9, p=16)
    X[4, 2] = value
    distances = call(library, "l1_distances", X, X)
    assert not np.isfinite([distances[4], distances[:, 4]]).any()
    indices = np.zeros((9, 2), np.int64)
    left = call(library, "subtract_codes", X, indices, np.ones((9, 2)), atoms)
    call(library, "fwht", X)
    for found in (np.delete(distances, 4, 1), left, X):
        assert np.isfinite(np.delete(found, 4, 0)).all()
        assert not np.isfinite(found[4]).all()


@pytest.mark.parametrize("width", [0, 2], ids=["lasso", "omp"])
@pytest.mark.parametrize("pruning", [0, 1, 2], ids=["row-norm", "error", "merge"])
@pytest.mark.parametrize("value", [*NASTY, 1e30])
def test_budget_stream_stays_within_its_arrays(library, rng, value, pruning, width):
    matrix, stock, rules, pursuit = budget_problem(rng, np.float32, pruning, width)
    matrix[20:23], matrix[:, 20:23] = value, value
    rates = np.full(60, 0.05, np.float32)
    block = matrix, np.abs(np.diagonal(matrix)), rates, rules, pursuit
    size, *_ = call(library, "budget_stream", stock, 0, *block)
    assert 0 < size <= rules.budget
    assert (stock.slots >= 0).all() and (stock.slots < 60).all()


def test_fused_omp_in_tritons_interpreter():
    """The CUDA program without a GPU, where Triton can be had at all."""
    pytest.importorskip("torch", reason="torch is not installed")
    pytest.importorskip("triton", reason="triton is not installed")
    done = subprocess.run(
        [sys.executable, "-c", FUSED],
        env={**os.environ, "TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


FUSED = """
import numpy as np, torch
from kernlets.loops.omp import reference, triton
rng = np.random.default_rng(0)
atoms = rng.standard_normal((30, 20))
atoms /= np.linalg.norm(atoms, axis=1, keepdims=True)
X = rng.standard_normal((12, 20))
X[0], X[1] = 0, 2 * atoms[3]
args = [a.astype(np.float32) for a in (atoms @ atoms.T, X @ atoms.T, (X * X).sum(1))]
expected = reference.omp(*args, 5, 0.3)
found = triton.omp(*map(torch.as_tensor, args), 5, 0.3)
np.testing.assert_array_equal(found[0], expected[0])
np.testing.assert_allclose(found[1], expected[1], atol=1e-4)
np.testing.assert_allclose(found[2], expected[2], atol=1e-4)
for value in (np.nan, np.inf, -np.inf, 1e30):
    gram, corr, energy = (a.copy() for a in args)
    corr[3, 29] = value
    spoiled = triton.omp(*map(torch.as_tensor, (gram, corr, energy)), 5, 0.3)
    assert (spoiled[0][3] == -1).all() and (spoiled[1][3] == 0).all()
    assert spoiled[2][3].isnan()
    for ours, theirs in zip(spoiled, found):
        np.testing.assert_array_equal(np.delete(ours, 3, 0), np.delete(theirs, 3, 0))
    gram[:] = value
    indices, values, _ = triton.omp(*map(torch.as_tensor, (gram, *args[1:])), 5, 0.3)
    assert indices.min() >= -1 and indices.max() < 30 and values.isfinite().all()
"""


def holes(rng, X, share=0.4):
    """Rows with zeros where they are not known, and where they are."""
    known = rng.random(X.shape) > share
    known[0] = False  # nothing at all
    known[1] = True
    return np.where(known, X, 0), known


@pytest.mark.parametrize("dtype", DTYPES)
def test_masked_omp_is_omp_over_what_was_observed(library, rng, dtype):
    X, atoms = problem(rng, dtype=dtype)
    rows, known = holes(rng, X)
    expected = omp_reference.masked_omp(atoms, rows, known, 5, 0.0)
    found = call(library, "masked_omp", atoms, rows, known, 5, 0.0)
    tolerance = 1e-10 if dtype == np.float64 else 5e-3
    assert found[1].dtype == dtype
    np.testing.assert_array_equal(found[0], expected[0])
    np.testing.assert_allclose(found[1], expected[1], rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(found[2], expected[2], rtol=tolerance, atol=tolerance)
    assert (found[0][0] == -1).all() and found[2][0] == 0  # nothing observed


def test_masked_omp_tells_atoms_apart_that_float32_does_not(library, rng):
    """Each atom has a twin that differs from it in the eighth digit."""
    X, atoms = problem(rng)
    rows, known = holes(rng, X)
    atoms = np.concatenate([atoms, atoms + 1e-8 * rng.standard_normal(atoms.shape)])
    expected = omp_reference.masked_omp(atoms, rows, known, 1, 0.0)
    found = call(library, "masked_omp", atoms, rows, known, 1, 0.0)
    np.testing.assert_array_equal(found[0], expected[0])
    assert (expected[0] >= len(atoms) // 2).any()
    scaled = call(library, "masked_omp", 1e60 * atoms, 1e-60 * rows, known, 1, 0.0)
    np.testing.assert_array_equal(scaled[0], expected[0])


def test_masked_omp_leaves_errors_orthogonal_where_observed(library, rng):
    X, atoms = problem(rng)
    rows, known = holes(rng, X)
    indices, values, error = call(library, "masked_omp", atoms, rows, known, 5, 0.0)
    left = (rows - dense(indices, values, len(atoms)) @ atoms) * known
    chosen = np.take_along_axis(left @ atoms.T, indices.astype(int), axis=1)
    np.testing.assert_allclose(np.where(indices >= 0, chosen, 0), 0, atol=1e-12)
    np.testing.assert_allclose(error, (left**2).sum(1), rtol=1e-9, atol=1e-12)


def test_masked_omp_without_holes_is_omp(library, rng):
    X, atoms = problem(rng)
    expected = omp_reference.omp(*products(X, atoms), 6, 0.0)
    found = call(library, "masked_omp", atoms, X, np.ones(X.shape, bool), 6, 0.0)
    np.testing.assert_array_equal(found[0], expected[0])
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-9)


def test_masked_omp_stops_at_its_share_of_the_tolerance(library, rng):
    X, atoms = problem(rng)
    rows, known = holes(rng, X)
    _, _, error = call(library, "masked_omp", atoms, rows, known, 20, 4.0)
    assert (error <= 4.0 * known.mean(1) + 1e-12).all()


def test_masked_omp_survives_numbers_without_bound(library, rng):
    X, atoms = problem(rng, dtype=np.float32)
    rows, known = holes(rng, X)
    rows[2] *= np.float32(1e30)
    indices, values, error = call(library, "masked_omp", atoms, rows, known, 4, 0.0)
    assert np.isnan(error[2]) and (indices[2] == -1).all() and (values[2] == 0).all()
    assert np.isfinite(error[3:]).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_sums_over_codes_are_products_of_dense_codes(library, rng, dtype):
    n, m, width = 70, 30, 4
    indices = np.stack([rng.permutation(m)[:width] for _ in range(n)])
    values = rng.standard_normal((n, width)).astype(dtype)
    indices[3, 2:], values[3, 2:] = -1, 0
    X, Gamma = rng.standard_normal((n, 20)).astype(dtype), dense(indices, values, m)
    gram = call(library, "code_gram", indices, values, m)
    cross = call(library, "code_cross", indices, values, X, m)
    assert gram.dtype == cross.dtype == dtype
    tolerance = 1e-12 if dtype == np.float64 else 1e-4
    np.testing.assert_allclose(gram, Gamma.T @ Gamma, atol=tolerance)
    np.testing.assert_allclose(cross, Gamma.T @ X, atol=tolerance)


@pytest.mark.parametrize("dtype", DTYPES)
def test_block_sweep_gives_each_atom_its_best_direction(library, rng, dtype):
    """Atom by atom from ΓᵀΓ and ΓᵀX; one atom without sums stays."""
    G, X = rng.standard_normal((60, 9)), rng.standard_normal((60, 20))
    G[:, 4] = 0
    A, B = G.T @ G, G.T @ X
    start = rng.standard_normal((9, 20))
    start /= np.linalg.norm(start, axis=1, keepdims=True)
    expected, gains = start.copy(), []
    for j in range(9):
        target = B[j] - A[j] @ expected + A[j, j] * expected[j]
        before = np.sum((X - G @ expected) ** 2)
        if j != 4:
            expected[j] = target / np.linalg.norm(target)
        gains.append((before - np.sum((X - G @ expected) ** 2)) / 2)
    atoms = start.astype(dtype)
    residuals = B.astype(dtype) - A.astype(dtype) @ atoms
    found = call(library, "block_sweep", residuals, A.astype(dtype), atoms)
    tolerance = 1e-10 if dtype == np.float64 else 2e-4
    assert found.dtype == atoms.dtype == dtype
    np.testing.assert_allclose(atoms, expected, atol=tolerance)
    np.testing.assert_allclose(found, gains, rtol=tolerance, atol=50 * tolerance)


@pytest.mark.parametrize("dtype", DTYPES)
def test_masked_ksvd_sweep_is_the_loop_over_entries(library, rng, dtype):
    X, atoms = problem(rng, dtype=dtype)
    rows, known = holes(rng, X)
    indices, values, _ = omp_reference.masked_omp(atoms, rows, known, 3, 0.0)
    residual = (rows - dense(indices, values, len(atoms)) @ atoms) * known
    order = rng.permutation(len(atoms))
    state = [part.astype(dtype) for part in (residual, atoms, values)]
    expected, found = ([part.copy() for part in state] for _ in range(2))

    def sweep(where, parts):
        args = parts[0], known, parts[1], indices.astype(np.int64), parts[2], order
        call(where, "masked_ksvd_sweep", *args)

    sweep("reference", expected)
    sweep(library, found)
    tolerance = 1e-9 if dtype == np.float64 else 5e-3
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)
    assert (found[0] ** 2).sum() < (residual**2).sum()  # never raises the error
    codes = dense(indices, found[2], len(atoms))
    left = (rows - codes @ found[1]) * known
    np.testing.assert_allclose(found[0], left, atol=1e-4)
    np.testing.assert_allclose(np.linalg.norm(found[1], axis=1), 1, rtol=1e-5)
