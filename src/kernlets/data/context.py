"""Settings while an estimator computes: threads, no warnings, errors with advice."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from ..numerics.convergence import warn_once_at_end
from ..numerics.scaling import quiet
from ..numerics.threads import serial_blas
from .memory_limits import advise_when_full


@contextmanager
def at_work() -> Iterator[None]:
    """A block of code that computes, for an estimator or a task on a cluster.

    BLAS runs on one thread. NumPy does not warn of overflow, since results are checked.
    One warning tells of all iterations without convergence.
    """
    with (
        warn_once_at_end(),
        serial_blas,
        quiet(),
        advise_when_full(),
        advise_when_unsolvable(),
    ):
        yield


@contextmanager
def advise_when_unsolvable() -> Iterator[None]:
    """A block of code in which an error of LAPACK becomes a ValueError with advice.

    LAPACK fails at numbers that are not finite, or near the ends of their range.
    """
    try:
        yield
    except (np.linalg.LinAlgError, RuntimeError) as error:  # of NumPy or of torch
        if "LinAlgError" not in type(error).__name__:
            raise
        raise ValueError(
            f"a matrix of these samples cannot be factored ({error}): scale the "
            "samples, e.g. with UnitNorm or StandardScaler, or pass float64"
        ) from error
