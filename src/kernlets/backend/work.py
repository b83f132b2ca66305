"""What holds while an estimator computes: threads, silence, and errors with advice."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from .convergence import warn_once_at_end
from .memory_limits import advise_when_full
from .scale import quiet
from .threads import serial_blas


@contextmanager
def at_work() -> Iterator[None]:
    """A block of code that computes, for an estimator or a task on a cluster.

    BLAS runs on one thread. NumPy does not warn of numbers that overflow on the way,
    since results are looked at. Iterations without convergence are told once.
    """
    with (
        warn_once_at_end(),
        serial_blas,
        quiet(),
        advise_when_full(),
        told_when_unsolvable(),
    ):
        yield


@contextmanager
def told_when_unsolvable() -> Iterator[None]:
    """A block of code in which a matrix that LAPACK gives up is an error with advice.

    It does so for numbers that are not finite, or near the ends of their range.
    """
    try:
        yield
    except (np.linalg.LinAlgError, RuntimeError) as error:  # NumPy's, torch's
        if "LinAlgError" not in type(error).__name__:
            raise
        raise ValueError(
            f"a matrix of these samples cannot be factored ({error}): scale the "
            "samples, e.g. with UnitNorm or StandardScaler, or pass float64"
        ) from error
