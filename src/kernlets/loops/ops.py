"""Chooses the loop for each hot operation, from a closed table.

Each call goes to the best implementation for the arrays at hand: torch tensors to
`loops.torch_`, NumPy arrays to `loops.numba_` (or to `loops.reference` when the option
``loops="reference"`` asks for it). The implementations are imported on first use.
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

from ..config import options
from ..contracts import Array
from ..numerics.arrays import eps, is_torch, numpy_dtype
from .budget import ERROR as ERROR
from .budget import BudgetOutcome, BudgetPursuit, Rules, Stock
from .lanes import LANES as LANES
from .lanes import Lanes as Lanes
from .lanes import Series as Series
from .masked import FAINT as FAINT
from .reference import least_independent as least_independent
from .waves import Waves as Waves

MANY_ATOMS = 2**15  # a Gram matrix of more takes gigabytes

OPERATIONS = (
    "omp",
    "positive_omp",
    "rows_omp",
    "positive_rows_omp",
    "lasso",
    "l1_distances",
    "fwht",
    "subtract_codes",
    "ksvd_sweep",
    "gram_sweep",
    "budget_stream",
    "masked_omp",
    "masked_ksvd_sweep",
    "log_gak",
    "dtw",
    "stein",
    "log_local",
    "convolve",
)


MASKED = {
    "reference": "masked",
    "numba_": "numba_masked",
    "torch_": "torch_masked",
}

FROM_ROWS = {
    "reference": "rows_omp",
    "numba_": "rows_omp",
    "torch_": "torch_rows",
}
#: Series and matrices are compared on the host, whatever the device of rows is.
SERIES = {"reference": "series", "numba_": "numba_series", "torch_": "series"}
MATRICES = {"reference": "matrices", "numba_": "numba_matrices", "torch_": "matrices"}
STRINGS = {"reference": "strings", "numba_": "numba_strings", "torch_": "strings"}
WAVES = {"reference": "waves", "numba_": "numba_waves", "torch_": "waves"}

#: Modules of the operations that are not in the common modules.
OTHER_MODULES = {
    "budget_stream": {
        "reference": "reference_budget",
        "numba_": "numba_budget",
        "torch_": "torch_budget",
    },
    "positive_omp": {
        "reference": "positive",
        "numba_": "numba_positive",
        "torch_": "torch_positive",
    },
    "rows_omp": FROM_ROWS,
    "positive_rows_omp": FROM_ROWS,
    "masked_omp": MASKED,
    "masked_ksvd_sweep": MASKED,
    "log_gak": SERIES,
    "dtw": SERIES,
    "stein": MATRICES,
    "log_local": STRINGS,
    "convolve": WAVES,
}


def implementation(name: str, array: Array) -> Any:
    """The function behind a hot operation for arrays like this one."""
    if name not in OPERATIONS:
        raise KeyError(name)
    if is_torch(array):
        module_name = "torch_"
    else:
        module_name = "reference" if options.loops == "reference" else "numba_"
    return getattr(load_loops(module_name, name), name)


def load_loops(module_name: str, name: str) -> ModuleType:
    """The module with an operation: `module_name`, or another for this one."""
    module_name = OTHER_MODULES.get(name, {}).get(module_name, module_name)
    return importlib.import_module(f"kernlets.loops.{module_name}")


def _check_gram(gram: Array, corr: Array) -> None:
    """Loops do not check bounds: refuse arrays whose shapes disagree."""
    m = corr.shape[1]
    if tuple(gram.shape) != (m, m):
        raise ValueError(
            f"correlations with {m} atoms, but a Gram matrix of shape "
            f"{tuple(gram.shape)}"
        )


def omp(
    gram: Array,  # (m, m)
    corr: Array,  # (n, m)
    energy: Array,  # (n,)
    width: int,
    tol: float,
    positive: bool = False,
) -> tuple[Array, Array, Array]:
    """Indices (n, width), values (n, width) and squared residuals (n,) by OMP."""
    _check_gram(gram, corr)
    pursue = implementation("positive_omp" if positive else "omp", corr)
    return pursue(gram, corr, energy, width, tol)


def needs_rows(n_atoms: int, width: int, like: Array) -> bool:
    """Whether OMP is better off without a Gram matrix of the atoms.

    On a GPU this holds if the state of a sample does not fit into registers.
    """
    if is_torch(like) and like.is_cuda and numpy_dtype(like) == "float32":
        triton_ops = load_loops("torch_", "omp")._triton_module()
        return triton_ops is None or not triton_ops.fits(n_atoms, width)
    return n_atoms > MANY_ATOMS


def rows_omp(
    atoms: Array,  # (m, p)
    X: Array,  # (n, p)
    energy: Array,  # (n,)
    width: int,
    tol: float,
    positive: bool = False,
) -> tuple[Array, Array, Array]:
    """The results of `omp` without a Gram matrix, from correlations of residuals."""
    if X.shape[1] != atoms.shape[1]:
        raise ValueError(f"X has {X.shape[1]} features, but atoms {atoms.shape[1]}")
    pursue = implementation("positive_rows_omp" if positive else "rows_omp", X)
    return pursue(atoms, X, energy, width, tol)


def code_gram(indices: Array, values: Array, m: int) -> Array:  # (m, m)
    """ΓᵀΓ for codes that are torch tensors."""
    return _torch_codes().code_gram(indices, values, m)


def code_cross(indices: Array, values: Array, X: Array, m: int) -> Array:  # (m, p)
    """ΓᵀX for codes that are torch tensors."""
    return _torch_codes().code_cross(indices, values, X, m)


def _torch_codes() -> ModuleType:
    return importlib.import_module("kernlets.loops.torch_codes")


def lasso(
    gram: Array,  # (m, m)
    corr: Array,  # (n, m)
    alpha: float,
    positive: bool,
    max_iter: int,
    tol: float,
) -> tuple[Array, Array]:  # (n, m), (n,)
    """Codes that minimise ½ γᵀGγ − γᵀc + alpha‖γ‖₁, and which have converged."""
    _check_gram(gram, corr)
    solve = implementation("lasso", corr)
    return solve(gram, corr, alpha, positive, max_iter, lasso_tol(tol, corr))


def lasso_tol(tol: float, like: Array) -> float:
    """The tolerance, or what coordinate descent reaches with the rounding of a dtype.

    Below it steps never rest, and errors pile up.
    """
    return max(tol, 64 * eps(like))


def l1_distances(X: Array, Y: Array) -> Array:  # (n, m)
    """Σ |xᵢ − yⱼ| over the features."""
    if X.shape[1] != Y.shape[1]:
        raise ValueError(f"X has {X.shape[1]} features, but Y has {Y.shape[1]}")
    return implementation("l1_distances", X)(X, Y)


def fwht(X: Array) -> None:  # (n, d)
    """X ← X H in place, H the Hadamard matrix; d must be a power of two."""
    if X.shape[1].bit_count() != 1:
        raise ValueError(f"X has {X.shape[1]} columns, not a power of two: pad it")
    implementation("fwht", X)(X)


def subtract_codes(
    X: Array,  # (n, p)
    indices: Array,  # (n, width)
    values: Array,  # (n, width)
    atoms: Array,  # (m, p)
) -> Array:  # (n, p)
    """The residuals X − Γ·atoms."""
    return implementation("subtract_codes", X)(X, indices, values, atoms)


def ksvd_sweep(
    residual: Array,  # (n, p)
    atoms: Array,  # (m, p)
    indices: Array,  # (n, width)
    values: Array,  # (n, width)
    order: Array,  # (m,)
    exact: bool,
    positive: bool = False,
    positive_atoms: bool = False,
) -> None:
    """One K-SVD pass; it changes residual, atoms and values in place."""
    sweep = implementation("ksvd_sweep", residual)
    flags = exact, positive, positive_atoms
    sweep(residual, atoms, indices, values, order, *flags)


def gram_sweep(
    matrix: Array,  # (N, N)
    coefs: Array,  # (m, N)
    products: Array,  # (m, N)
    gram: Array,  # (m, m)
    indices: Array,  # (N, width)
    values: Array,  # (N, width)
    order: Array,  # (m,)
    exact: bool,
    positive: bool = False,
    weights: Array | None = None,  # (N,)
) -> None:
    """One K-SVD pass in feature space; it changes coefs, products, gram and values."""
    sweep = implementation("gram_sweep", matrix)
    state = coefs, products, gram, indices, values, order
    sweep(matrix, *state, exact, positive, weights)


def budget_stream(
    stock: Stock,  # changed in place
    size: int,
    cross: Array,  # (n, size + n)
    energy: Array,  # (n,)
    rates: Array,  # (n,)
    rules: Rules,
    pursuit: BudgetPursuit,
) -> BudgetOutcome:
    """A dictionary on a budget learns from a block, sample by sample."""
    learn = implementation("budget_stream", cross)
    return learn(stock, size, cross, energy, rates, rules, pursuit)


def masked_omp(
    atoms: Array,  # (m, p)
    X: Array,  # (n, p), zero where it is missing
    observed: Array,  # (n, p) booleans
    width: int,
    tol: float,
) -> tuple[Array, Array, Array]:
    """`omp` of each sample over its observed features; see `loops.masked`."""
    _check_mask(X, observed, atoms)
    return implementation("masked_omp", X)(atoms, X, observed, width, tol)


def masked_ksvd_sweep(
    residual: Array,  # (n, p), zero where X is missing
    observed: Array,  # (n, p) booleans
    atoms: Array,  # (m, p)
    indices: Array,  # (n, width)
    values: Array,  # (n, width)
    order: Array,  # (m,)
) -> None:
    """One K-SVD pass over observed entries; it changes residual, atoms and values."""
    _check_mask(residual, observed, atoms)
    sweep = implementation("masked_ksvd_sweep", residual)
    sweep(residual, observed, atoms, indices, values, order)


def _check_mask(X: Array, observed: Array, atoms: Array) -> None:
    if X.shape != observed.shape or X.shape[1] != atoms.shape[1]:
        raise ValueError(
            f"rows of shape {tuple(X.shape)}, a mask of shape {tuple(observed.shape)} "
            f"and atoms of shape {tuple(atoms.shape)} do not fit"
        )


def log_gak(
    rows: Series,
    columns: Lanes,
    first: int,
    n: int,
    rate: float,
    band: int,
    geometric: bool = True,
) -> Array:  # (rows, n - first)
    """Logarithms of sums over all alignments, for columns `first` to n."""
    _check_lanes(rows.values.shape[1], columns, n)
    align = implementation("log_gak", rows.values)
    return align(rows, columns, first, n, float(rate), int(band), bool(geometric))


def dtw(
    rows: Series, columns: Lanes, first: int, n: int, radius: int
) -> Array:  # (rows, n - first)
    """Squared DTW distances, for columns `first` to n."""
    _check_lanes(rows.values.shape[1], columns, n)
    return implementation("dtw", rows.values)(rows, columns, first, n, int(radius))


def stein(
    rows: Array,  # (k, d, d)
    columns: Array,  # (groups, d, d, LANES)
    first: int,
    n: int,
) -> Array:  # (k, n - first)
    """log det((A + B)/2) of symmetric matrices, for columns `first` to n."""
    if columns.shape[1:3] != rows.shape[1:] or columns.shape[0] * LANES < n:
        raise ValueError(f"matrices {rows.shape} and {columns.shape} do not fit")
    return implementation("stein", rows)(rows, columns, first, n)


def log_local(
    rows: Series,
    columns: Series,
    match: float,
    mismatch: float,
    opened: float,
    extended: float,
) -> Array:  # (rows, columns)
    """Logarithms of the local alignment kernel of strings, given as character codes."""
    align = implementation("log_local", rows.values)
    return align(rows, columns, match, mismatch, opened, extended)


def convolve(series: Series, waves: Waves) -> Array:  # (n, 2 k)
    """Share of positive values, and the largest, of each series with each wave."""
    if series.values.shape[1] < waves.n_channels:
        raise ValueError(f"waves of {waves.n_channels} channels do not fit the series")
    return implementation("convolve", series.values)(series, waves)


def _check_lanes(width: int, columns: Lanes, n: int) -> None:
    """Loops do not check bounds: refuse arrays whose shapes disagree."""
    n_steps = int(columns.lengths.max(axis=1, initial=0).sum())
    if n_steps * width * LANES != len(columns.values) or n > columns.lengths.size:
        raise ValueError(f"series of {width} channels do not fit the others")
