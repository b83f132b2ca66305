"""What the studies of several papers share: scores and metrics."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....backend.arrays import to_numpy
from ..spec import Metric

OTHER_MACHINE = "seconds of another machine"
ACCURACY = Metric("accuracy, %")
SECONDS = Metric("seconds", "lower", timing=True)


def percent_correct(model: Any, X: Any, y: np.ndarray) -> float:
    """Share of the labels that a fitted classifier finds, in percent."""
    return 100 * float(np.mean(to_numpy(model.predict(X)) == y))
