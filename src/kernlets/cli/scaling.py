"""How `kernlets fit` scales rows, and the kernel that suits each scaling.

Which kernel goes with which scaling is measured: docs/accuracy.md, "Defaults".
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..backend.arrays import to_numpy
from ..backend.rows import evenly_spaced_rows, first_block, take_rows
from ..backend.validation import check_rows
from ..datasets import Table
from ..datasets.row_ids import are_positions
from ..maps import Standardize, UnitNorm
from .options import Scale

FEWEST = 50  # rows with fewer columns belong to a table
LIKE = 0.1  # of the largest number: what half of the columns reach if they are alike
EDGE = 0.1  # of the range: how near to its ends a column that has all of it comes


STEPS: dict[Scale, Any] = {Scale.standard: Standardize, Scale.unit: UnitNorm}
KERNELS = {
    Scale.unit: "poly:2,coef0=1",
    Scale.standard: "laplacian",
    Scale.none: "laplacian",  # its width follows the data, whatever their scale
}
TEXTS = {
    Scale.standard: "each column to mean 0 and variance 1",
    Scale.unit: "each row to unit norm",
    Scale.none: "none",
    Scale.auto: "chosen by the search",
}


class Choice(NamedTuple):
    """A scaling, and the reason for it; none if the user chose it."""

    scale: Scale
    reason: str = ""

    def __str__(self) -> str:
        because = f" ({self.reason}; --scale changes it)" if self.reason else ""
        return TEXTS[self.scale] + because


def choose_scale(rows: Table) -> Choice:
    """Columns of tables are standardised, rows of images and the like get unit norm."""
    if rows.image_shape is not None:
        return Choice(Scale.unit, "images")
    low, high = _bounds(rows.X)
    if len(low) < FEWEST:
        return Choice(Scale.standard, "a table")
    if _share_one_range(low, high):
        return Choice(Scale.unit, "most columns have the same range, as in images")
    if rows.feature_names is not None and not are_positions(rows.feature_names):
        return Choice(Scale.standard, "columns with names")
    if _are_alike(low, high):
        return Choice(Scale.unit, "columns of like scale")
    return Choice(Scale.standard, "columns that differ in scale")


def _bounds(X: Any) -> tuple[np.ndarray, np.ndarray]:  # (p,), (p,)
    """Smallest and largest entry of each column, in some of the rows."""
    first, _ = first_block(X)
    X = check_rows(UnitNorm(), first, reset=True, lazy=True, allow_nan=True)
    some = to_numpy(take_rows(X, evenly_spaced_rows(X.shape[0])))
    known = ~np.isnan(some)
    some = some[:, known.any(axis=0)]
    return np.nanmin(some, axis=0), np.nanmax(some, axis=0)


def _share_one_range(low: np.ndarray, high: np.ndarray) -> bool:
    """Whether half of the columns span the range of all."""
    edge = EDGE * (high.max() - low.min())
    whole = (low <= low.min() + edge) & (high >= high.max() - edge)
    return bool(whole.mean() >= 0.5)


def _are_alike(low: np.ndarray, high: np.ndarray) -> bool:
    """Whether half of the varying columns have numbers of about the largest size."""
    largest = np.maximum(np.abs(low), np.abs(high))[high > low]
    return len(largest) == 0 or bool(np.median(largest) >= LIKE * largest.max())
