"""Store and look up names of training rows: a dataframe's index, or rows of a file."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..numerics.text import printable
from .pipelines import steps_of

ROW_NAMES = "row_names_"
"""Attribute of a fitted estimator with the names of its training rows, if any."""
LARGEST = 2**53  # larger whole numbers are stored as text


def note_row_names(estimator: Any, X: Any) -> None:
    """Store the index of a dataframe that an estimator was fitted to.

    An index 0, 1, 2, ... is not stored.
    """
    set_row_names(estimator, index_names(X))


def set_row_names(estimator: Any, names: np.ndarray | None) -> None:
    """Store names of training rows, or remove those of an earlier fit."""
    vars(estimator).pop(ROW_NAMES, None)
    if names is not None and not np.array_equal(names, np.arange(len(names))):
        setattr(estimator, ROW_NAMES, names)


def index_names(X: Any) -> np.ndarray | None:  # (n,)
    """Return the index of a pandas object as whole numbers or text; else None."""
    if type(X).__module__.partition(".")[0] != "pandas" or not hasattr(X, "iloc"):
        return None
    index = X.index
    names = np.asarray(index)
    if names.dtype.kind in "iu" and (np.abs(names) < LARGEST).all():
        return names.astype(np.int64)
    return np.array([printable(name) for name in index], dtype=object)


def row_names(model: Any) -> np.ndarray | None:  # (n,)
    """Return the names of a model's training rows, from the first step with names."""
    candidates = (getattr(step, ROW_NAMES, None) for step in steps_of(model))
    return next((names for names in candidates if names is not None), None)


def row_name(names: np.ndarray | None, row: int) -> Any:
    """Return the name of a training row, or None if it has none."""
    if names is None or row >= len(names):
        return None
    name = names[row]
    return int(name) if isinstance(name, np.integer) else name
