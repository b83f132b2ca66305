"""What the studies of several papers share: scores and metrics."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....backend.arrays import to_numpy
from ..spec import Metric

OTHER_MACHINE = "seconds of another machine"


def percent_correct(model: Any, X: Any, y: np.ndarray) -> float:
    """Share of the labels that a fitted classifier finds, in percent."""
    return 100 * float(np.mean(to_numpy(model.predict(X)) == y))


def accuracy(tolerance: float) -> Metric:
    """Percent correct; `tolerance` points apart count as the same."""
    return Metric("accuracy, %", tolerance=tolerance)
