"""Compares the labels of a file with the classes of a model."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ..backend.text import printable
from ..datasets.table_types import DataFileError

MAX_LABELS = 8  # labels in a message


def to_common_type(labels: Any, other_labels: Any) -> tuple[np.ndarray, np.ndarray]:
    """Convert two arrays of labels to one type: numbers if all text is numbers."""
    first, second = np.asarray(labels), np.asarray(other_labels)
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
    class_labels, row_labels = to_common_type(classes, labels)
    is_unknown = ~np.isin(row_labels, class_labels)
    names = np.asarray(labels)
    if is_unknown.all():
        raise DataFileError(
            name,
            f"has the labels {list_labels(names)}, of which the model knows none: it "
            f"knows {list_labels(classes)}. Name the right column with --label, or "
            "spell labels alike",
        )
    if is_unknown.any():
        warnings.warn(
            f"{name}: {np.count_nonzero(is_unknown)} of {len(names)} rows have labels "
            f"that the model does not know, {list_labels(names[is_unknown])}: they "
            "count as wrong",
            stacklevel=2,
        )


def list_labels(labels: Any) -> str:
    """List the first few distinct labels, and the number of the others."""
    distinct = np.unique(np.asarray(labels)).tolist()
    first_labels = ", ".join(printable(repr(label)) for label in distinct[:MAX_LABELS])
    n_more = len(distinct) - MAX_LABELS
    return first_labels + (f" and {n_more} more" if n_more > 0 else "")
