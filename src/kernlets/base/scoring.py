"""Accuracy of predicted labels, in memory or on a cluster."""

from __future__ import annotations

from typing import Any

from sklearn.metrics import accuracy_score

from ..data.load_dask import dask_labels
from ..numerics.arrays import is_dask


def accuracy(predicted: Any, y: Any, sample_weight: Any = None) -> float:
    """Share of the labels y that were predicted, in memory or on a cluster."""
    if is_dask(predicted):
        return dask_labels().weighted_accuracy(predicted, y, sample_weight)
    return float(accuracy_score(y, predicted, sample_weight=sample_weight))
