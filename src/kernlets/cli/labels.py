"""Compares the labels of a file with those that a model knows."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ..backend.text import printable
from ..datasets.table_types import DataFileError

SHOWN = 8  # labels in a message


def alike(labels: Any, others: Any) -> tuple[np.ndarray, np.ndarray]:
    """Two arrays of labels in one type: numbers where text can be read as numbers."""
    first, second = np.asarray(labels), np.asarray(others)
    if _is_text(first) == _is_text(second):
        return first, second
    try:
        return first.astype(float), second.astype(float)
    except (TypeError, ValueError):
        return first.astype(str), second.astype(str)


def _is_text(labels: np.ndarray) -> bool:
    return labels.dtype.kind in "UO"


def check_labels(name: str, labels: Any, classes: Any) -> None:
    """Refuse labels of which a model knows none, and warn of those it does not know."""
    known, found = alike(classes, labels)
    is_unknown = ~np.isin(found, known)
    names = np.asarray(labels)
    if is_unknown.all():
        raise DataFileError(
            name,
            f"has the labels {listed(names)}, of which the model knows none: it knows "
            f"{listed(classes)}. Name the right column with --label, or spell labels "
            "alike",
        )
    if is_unknown.any():
        warnings.warn(
            f"{name}: {np.count_nonzero(is_unknown)} of {len(names)} rows have labels "
            f"that the model does not know, {listed(names[is_unknown])}: they count as "
            "wrong",
            stacklevel=2,
        )


def listed(labels: Any) -> str:
    """The first few different labels, text in quotes, and the number of the others."""
    distinct = np.unique(np.asarray(labels)).tolist()
    shown = ", ".join(printable(repr(label)) for label in distinct[:SHOWN])
    left = len(distinct) - SHOWN
    return shown + (f" and {left} more" if left > 0 else "")
