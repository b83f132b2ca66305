"""Matrices of ordinary and odd numbers, before they are put into a container."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .draw import Draw

ROWS = {0: 1, 1: 2, 2: 2, 3: 2, 5: 2, 8: 3, 13: 4, 20: 8, 33: 5, 60: 2}
COLUMNS = {0: 0.2, 1: 1.5, 2: 2, 3: 3, 5: 6, 8: 4, 16: 2, 70: 1}
SCALES = {"one": 12, "large": 2, "small": 2, "extreme": 2}
DTYPES = {
    **{"float64": 40, "float32": 25, "float16": 4, ">f8": 3, ">f4": 2, "longdouble": 1},
    **{"int64": 4, "uint8": 4, "int8": 2, "int16": 2, "int32": 3, "uint64": 1},
    **{">i4": 1, "bool": 2, "complex128": 1, "object": 1},
}
ENOUGH = 12  # rows with which nothing ordinary has a reason to be refused


@dataclass(frozen=True)
class Matrix:
    """Rows of numbers, and what is to be expected of them."""

    values: np.ndarray  # (n, p)
    text: str
    is_valid: bool  # finite and real: whatever is not must be refused
    is_plain: bool  # as ordinary as data can be: must not be refused

    @property
    def dtype(self) -> np.dtype:
        return self.values.dtype

    @property
    def n_rows(self) -> int:
        return self.values.shape[0]


def draw_matrix(draw: Draw, n_columns: int | None = None, tame: float = 0.25) -> Matrix:
    """A matrix; with probability `tame` one that is plain."""
    n = draw.weighted(ROWS)
    p = draw.weighted(COLUMNS) if n_columns is None else n_columns
    if draw.chance(tame):
        return _plain(draw, max(n, ENOUGH), max(p, 2))
    kind = draw.weighted({name: weight for name, (weight, _) in KINDS.items()})
    dtype, scale = draw.weighted(DTYPES), _scale(draw)
    with np.errstate(all="ignore"):
        values = KINDS[kind][1](draw, n, p) * scale
        values = cast(values, dtype)
    is_valid = dtype != "complex128" and is_finite(values)
    text = f"{kind} × {scale:.3g}, {dtype} {values.shape}"
    return Matrix(values, text, is_valid, is_plain=False)


def _plain(draw: Draw, n: int, p: int) -> Matrix:
    dtype = draw.pick(["float64", "float32"])
    values = draw.rng.standard_normal((n, p)).astype(dtype)
    if draw.chance(0.5):  # histograms, for kernels that need them
        values = np.abs(values) + 0.1
    return Matrix(values, f"plain, {dtype} {values.shape}", True, True)


def is_finite(values: np.ndarray) -> bool:
    """Whether all numbers are finite in float64 (a long double may not be)."""
    if values.dtype == object:
        values = values.astype(np.float64)
    with np.errstate(over="ignore"):
        narrow = values.astype(np.float64) if values.dtype.kind == "f" else values
    return bool(np.isfinite(narrow).all())


def cast(values: np.ndarray, dtype: str) -> np.ndarray:
    """Values in a type; whole numbers are moved into its range first."""
    if dtype == "object":
        return values.astype(object)
    if np.dtype(dtype).kind in "iu":
        limits = np.iinfo(dtype)
        low, high = max(limits.min, -(2.0**53)), min(limits.max, 2.0**53)
        values = np.clip(np.nan_to_num(np.rint(values * 3)), low, high)
    if dtype == "bool":
        return values > 0
    return values.astype(dtype)


def _scale(draw: Draw) -> float:
    kind = draw.weighted(SCALES)
    low, high = {
        "one": (0, 0),
        "large": (2, 10),
        "small": (-10, -2),
        "extreme": (-30, 30),
    }[kind]
    return draw.power(low, high)


# ------------------------------------------------------------- kinds of numbers


def _normal(draw: Draw, n: int, p: int) -> np.ndarray:
    return draw.rng.standard_normal((n, p))


def _positive(draw: Draw, n: int, p: int) -> np.ndarray:
    return draw.rng.random((n, p))


def _constant(draw: Draw, n: int, p: int) -> np.ndarray:
    return np.full((n, p), draw.pick([1.0, -1.0, 0.1]))


def _zeros(draw: Draw, n: int, p: int) -> np.ndarray:
    return np.zeros((n, p))


def _constant_columns(draw: Draw, n: int, p: int) -> np.ndarray:
    return np.ones((n, 1)) * draw.rng.standard_normal(p)


def _duplicates(draw: Draw, n: int, p: int) -> np.ndarray:
    few = draw.rng.standard_normal((draw.count(1, 3), p))
    return few[draw.rng.integers(len(few), size=n)]


def _line(draw: Draw, n: int, p: int) -> np.ndarray:
    """Rows on one line through the origin."""
    return draw.rng.standard_normal((n, 1)) * draw.rng.standard_normal(p)


def _small_integers(draw: Draw, n: int, p: int) -> np.ndarray:
    return draw.rng.integers(-2, 3, size=(n, p)).astype(float)


def _mostly_zero(draw: Draw, n: int, p: int) -> np.ndarray:
    X = draw.rng.standard_normal((n, p))
    return np.where(draw.rng.random((n, p)) < 0.2, X, 0.0)


def _one_hot(draw: Draw, n: int, p: int) -> np.ndarray:
    """Rows that are multiples of unit vectors: many are orthogonal."""
    X = np.zeros((n, p))
    if p:
        X[np.arange(n), draw.rng.integers(p, size=n)] = draw.rng.standard_normal(n)
    return X


def _with_row(change: Callable[[Draw, np.ndarray], Any]) -> Callable[..., np.ndarray]:
    """Normal numbers, one row of which is changed."""

    def make(draw: Draw, n: int, p: int) -> np.ndarray:
        X = draw.rng.standard_normal((n, p))
        if n:
            change(draw, X[draw.count(0, n - 1)])
        return X

    return make


def _huge_row(draw: Draw, row: np.ndarray) -> None:
    row *= draw.power(3, 20)


def _zero_row(draw: Draw, row: np.ndarray) -> None:
    row[:] = 0


def _cell(*odd: float) -> Callable[[Draw, np.ndarray], None]:
    def change(draw: Draw, row: np.ndarray) -> None:
        if len(row):
            row[draw.count(0, len(row) - 1)] = draw.pick(odd)

    return change


def _scaled_columns(draw: Draw, n: int, p: int) -> np.ndarray:
    return draw.rng.standard_normal((n, p)) * 10.0 ** draw.rng.uniform(-12, 12, size=p)


def _scaled_rows(draw: Draw, n: int, p: int) -> np.ndarray:
    scales = 10.0 ** draw.rng.uniform(-12, 12, size=(n, 1))
    return draw.rng.standard_normal((n, p)) * scales


KINDS: dict[str, tuple[float, Callable[[Draw, int, int], np.ndarray]]] = {
    "normal": (10, _normal),
    "positive": (6, _positive),
    "constant": (2, _constant),
    "zeros": (1.5, _zeros),
    "constant columns": (1.5, _constant_columns),
    "duplicates": (2, _duplicates),
    "line": (1.5, _line),
    "small integers": (3, _small_integers),
    "mostly zero": (2, _mostly_zero),
    "one hot": (1.5, _one_hot),
    "huge row": (3, _with_row(_huge_row)),
    "zero row": (1.5, _with_row(_zero_row)),
    "scaled columns": (2, _scaled_columns),
    "scaled rows": (2, _scaled_rows),
    "one NaN": (1, _with_row(_cell(np.nan))),
    "one infinity": (1, _with_row(_cell(np.inf, -np.inf))),
    "largest": (0.5, _with_row(_cell(1.7e308, -1.7e308))),
    "subnormal": (0.5, _with_row(_cell(5e-324, 1e-310))),
}
