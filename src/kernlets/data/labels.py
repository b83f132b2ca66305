"""Check labels: they have one axis of numbers or of text, and none is missing.

Labels in memory are checked all at once, those on a cluster chunk by chunk.
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Number
from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from ..numerics.arrays import is_torch, to_numpy

MISSING = ("NoneType", "NAType", "NaTType")  # types; the last two are from pandas


def label_values(y: Any) -> np.ndarray:  # (n,)
    """Return labels in one array, or raise an error that says what is wrong with them.

    A single column is accepted, with a warning as in scikit-learn.
    """
    y = to_numpy(y) if is_torch(y) else y
    if isinstance(y, (list, tuple)):
        # NumPy would turn numbers beside text into text
        _refuse_mixtures(np.asarray(y, dtype=object).ravel().tolist())
    labels = column_or_1d(y, warn=True)
    if labels.dtype == object:
        labels = _from_objects(labels)
    if _has_missing(labels):
        raise ValueError(
            "y contains NaN or infinity: remove those samples, or give them a label of "
            "their own"
        )
    return labels


def label_classes(label_arrays: Sequence[np.ndarray]) -> np.ndarray:
    """Return the sorted distinct labels in several results of `label_values`."""
    _refuse_mixtures([labels[0] for labels in label_arrays if len(labels)])
    return np.unique(np.concatenate(label_arrays))


def refuse_continuous(labels: np.ndarray) -> None:
    """Raise scikit-learn's error if a label is a number with a fraction."""
    if labels.dtype.kind == "f":
        labels = labels[labels % 1 != 0]
    if len(labels):
        check_classification_targets(labels[:1])


def _from_objects(labels: np.ndarray) -> np.ndarray:
    """Convert objects that are numbers to an array of numbers."""
    values = labels.tolist()
    _refuse_mixtures(values)
    return (
        np.asarray(values)
        if values and _kind_of_label(values[0]) == "numbers"
        else labels
    )


def _refuse_mixtures(values: list[Any]) -> None:
    examples = {
        _kind_of_label(value): value for value in {type(v): v for v in values}.values()
    }
    is_nan = len(examples) > 1 and any(v != v for v in values if isinstance(v, float))
    if "nothing" in examples or is_nan:
        raise ValueError(
            "y contains missing labels (None or NaN): remove those samples, or give "
            "them a label of their own"
        )
    if len(examples) > 1:
        kinds = " and ".join(f"{kind} ({examples[kind]!r})" for kind in examples)
        raise ValueError(
            f"y mixes {kinds}: give labels of one kind, for instance "
            "[str(label) for label in y]"
        )


def _kind_of_label(value: Any) -> str:
    if type(value).__name__ in MISSING:
        return "nothing"
    if isinstance(value, str):
        return "text"
    is_number = isinstance(value, (Number, np.bool_))
    return "numbers" if is_number else type(value).__name__


def _has_missing(labels: np.ndarray) -> bool:
    if labels.dtype.kind == "f":
        return not np.isfinite(labels).all()
    return labels.dtype.kind in "mM" and bool(np.isnat(labels).any())
