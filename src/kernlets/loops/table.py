"""The table of hot operations: for each its reference, its fast twins and a check.

An operation is called as its reference is. It runs in the library of its first array:
on torch tensors by the twin for torch, on NumPy arrays by the one for Numba, or by the
reference where the option ``loops="reference"`` asks for it. Compiled loops check no
bounds, so the shapes are checked here. Twins are imported when they are first called.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import update_wrapper
from typing import Any, Generic, ParamSpec, TypeVar

import numpy as np

from ..config import current_settings
from ..contracts import Array
from ..numerics.arrays import is_torch, numpy_dtype
from .budget import reference as budget_reference
from .import_lock import import_lock
from .kernels import reference as kernels_reference
from .kernels.layout import LANES, GroupedSeries, Series, Waves
from .lasso import reference as lasso_reference
from .omp import reference as omp_reference
from .updates import reference as updates_reference

MANY_ATOMS = 2**15  # a Gram matrix of more takes gigabytes
P = ParamSpec("P")
R = TypeVar("R")


class Operation(Generic[P, R]):
    """A hot operation, which runs in the library of its first argument.

    `numba` and `torch` name the modules of its twins, beside that of the reference.
    """

    def __init__(
        self,
        reference: Callable[P, R],
        check: Callable[..., None] | None = None,
        *,
        numba: str = "numba",
        torch: str = "torch",
    ) -> None:
        update_wrapper(self, reference)
        self._folder = reference.__module__.rpartition(".")[0]
        self._name = reference.__name__
        self._modules = {"numba": numba, "torch": torch}
        self._loops = {"reference": reference}
        self._check = check

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if self._check is not None:
            self._check(*args, **kwargs)
        library = _library(args[0])
        loop = self._loops.get(library) or self.loop(library)
        return loop(*args, **kwargs)

    def loop(self, library: str) -> Callable[P, R]:
        """The function for "reference", "numba" or "torch"."""
        if library not in self._loops:
            module = f"{self._folder}.{self._modules[library]}"
            with import_lock:
                loop = getattr(importlib.import_module(module), self._name)
            self._loops[library] = loop
        return self._loops[library]


def _library(first: Any) -> str:
    while isinstance(first, tuple):  # the arrays of series, or of a budget's stock
        first = first[0]
    if not isinstance(first, np.ndarray) and is_torch(first):
        return "torch"
    loops = current_settings().loops
    return "reference" if loops == "reference" else "numba"


def _check_gram(gram: Array, corr: Array, *_rest: Any, **_keywords: Any) -> None:
    m = corr.shape[1]
    if tuple(gram.shape) != (m, m):
        raise ValueError(
            f"correlations with {m} atoms, but a Gram matrix of shape "
            f"{tuple(gram.shape)}"
        )


def _check_atoms(atoms: Array, X: Array, *_rest: Any) -> None:
    if X.shape[1] != atoms.shape[1]:
        raise ValueError(f"X has {X.shape[1]} features, but atoms {atoms.shape[1]}")


def _check_rows(X: Array, Y: Array) -> None:
    if X.shape[1] != Y.shape[1]:
        raise ValueError(f"X has {X.shape[1]} features, but Y has {Y.shape[1]}")


def _check_power_of_two(X: Array) -> None:
    if X.shape[1].bit_count() != 1:
        raise ValueError(f"X has {X.shape[1]} columns, not a power of two: pad it")


def _check_observed(atoms: Array, X: Array, observed: Array, *_rest: Any) -> None:
    if X.shape != observed.shape or X.shape[1] != atoms.shape[1]:
        raise ValueError(
            f"rows of shape {tuple(X.shape)}, a mask of shape {tuple(observed.shape)} "
            f"and atoms of shape {tuple(atoms.shape)} do not fit"
        )


def _check_code_rows(indices: Array, values: Array, X: Array, m: int) -> None:
    if len(X) != len(indices):
        raise ValueError(f"X has {len(X)} rows, but there are {len(indices)} codes")


def _check_block(residuals: Array, gram: Array, atoms: Array) -> None:
    b = len(atoms)
    if residuals.shape != atoms.shape or tuple(gram.shape) != (b, b):
        raise ValueError(
            f"residuals of shape {tuple(residuals.shape)}, sums of shape "
            f"{tuple(gram.shape)} and atoms of shape {tuple(atoms.shape)} do not fit"
        )


def _check_swept(residual: Array, observed: Array, atoms: Array, *_rest: Any) -> None:
    _check_observed(atoms, residual, observed)


def _check_series(
    rows: Series, columns: GroupedSeries, first: int, n: int, *_rest: Any, **_more: Any
) -> None:
    n_channels = rows.values.shape[1]
    n_steps = int(columns.lengths.max(axis=1, initial=0).sum())
    if n_steps * n_channels * LANES != len(columns.values) or n > columns.lengths.size:
        raise ValueError(f"series of {n_channels} channels do not fit the others")


def _check_matrices(rows: Array, columns: Array, first: int, n: int) -> None:
    if columns.shape[1:3] != rows.shape[1:] or columns.shape[0] * LANES < n:
        raise ValueError(f"matrices {rows.shape} and {columns.shape} do not fit")


def _check_waves(series: Series, waves: Waves) -> None:
    if series.values.shape[1] < waves.n_channels:
        raise ValueError(f"waves of {waves.n_channels} channels do not fit the series")


omp = Operation(omp_reference.omp, _check_gram)
positive_omp = Operation(omp_reference.positive_omp, _check_gram)
rows_omp = Operation(
    omp_reference.rows_omp, _check_atoms, numba="reference", torch="torch_rows"
)
positive_rows_omp = Operation(
    omp_reference.positive_rows_omp, _check_atoms, numba="reference", torch="torch_rows"
)
masked_omp = Operation(omp_reference.masked_omp, _check_observed, numba="numba_masked")
lasso = Operation(lasso_reference.lasso, _check_gram)

code_gram = Operation(updates_reference.code_gram)
code_cross = Operation(updates_reference.code_cross, _check_code_rows)
subtract_codes = Operation(updates_reference.subtract_codes, torch="reference")
ksvd_sweep = Operation(updates_reference.ksvd_sweep, torch="reference")
gram_sweep = Operation(updates_reference.gram_sweep, torch="reference")
block_sweep = Operation(updates_reference.block_sweep, _check_block, torch="reference")
masked_ksvd_sweep = Operation(
    updates_reference.masked_ksvd_sweep, _check_swept, torch="reference"
)
budget_stream = Operation(budget_reference.budget_stream)

l1_distances = Operation(kernels_reference.l1_distances, _check_rows)
fwht = Operation(kernels_reference.fwht, _check_power_of_two)
# series, strings and matrices are on the host, whatever the device of the rows is
log_gak = Operation(
    kernels_reference.log_gak, _check_series, numba="numba_alignment", torch="reference"
)
dtw = Operation(
    kernels_reference.dtw, _check_series, numba="numba_alignment", torch="reference"
)
log_local = Operation(kernels_reference.log_local, torch="reference")
stein = Operation(kernels_reference.stein, _check_matrices, torch="reference")
convolve = Operation(kernels_reference.convolve, _check_waves, torch="reference")


def needs_rows(n_atoms: int, width: int, like: Array) -> bool:
    """Whether OMP is better off without a Gram matrix of the atoms.

    On a GPU this holds if the state of a sample does not fit into registers.
    """
    if is_torch(like) and like.is_cuda and numpy_dtype(like) == "float32":
        from .omp.torch import load_triton

        triton_omp = load_triton("omp.triton")
        return triton_omp is None or not triton_omp.fits(n_atoms, width)
    return n_atoms > MANY_ATOMS
