"""Constraints on the parameters of estimators, which `_validate_params` checks.

This is the only module that imports scikit-learn's private `_param_validation`. The
constants are the constraints that many estimators share.
"""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import Any

from sklearn.utils import _param_validation
from sklearn.utils._param_validation import (
    HasMethods,
    Options,
    StrOptions,
    validate_parameter_constraints,
)

from .pipelines import last_step

MAX_COUNT = 2**40  # counts above are refused: arrays of that length do not exist


class Interval(_param_validation.Interval):
    """scikit-learn's interval of numbers, without booleans and without huge counts."""

    def is_satisfied_by(self, val: Any) -> bool:
        is_flag = isinstance(val, bool) or type(val).__name__ == "bool"  # also of NumPy
        is_endless = isinstance(val, Integral) and int(val) > MAX_COUNT
        is_endless = is_endless and self.type is Integral
        return not (is_flag or is_endless) and super().is_satisfied_by(val)

    def __str__(self) -> str:
        limit = ", up to 2^40" if self.type is Integral and self.right is None else ""
        return super().__str__() + limit


class Final(HasMethods):
    """An estimator with these methods, or a pipeline whose last step has them."""

    def is_satisfied_by(self, val: Any) -> bool:
        final = last_step(val)
        return not isinstance(final, type) and super().is_satisfied_by(final)


class Single(HasMethods):
    """An estimator with these methods, not a pipeline."""

    def is_satisfied_by(self, val: Any) -> bool:
        return not isinstance(val, type) and super().is_satisfied_by(val)

    def __str__(self) -> str:
        return f"{super().__str__()} (put other steps of a pipeline in front)"


AT_LEAST_1 = Interval(Integral, 1, None, closed="left")
AT_LEAST_0 = Interval(Integral, 0, None, closed="left")
POSITIVE = Interval(Real, 0, None, closed="neither")
NOT_NEGATIVE = Interval(Real, 0, None, closed="left")
SHARE = Interval(Real, 0, 1, closed="right")
"""Above 0, at most 1."""
LEARNER = Final(["fit", "reconstruction_error"])
"""A dictionary learner, or a pipeline that ends in one."""
SINGLE_LEARNER = Single(["fit", "reconstruction_error"])
"""A dictionary learner itself."""
TRANSFORMER = Final(["fit", "transform"])
"""An estimator that needs no labels, not a kernel or a coder."""

SAMPLES = "non-zero samples (in feature space)"
"""What the counts of atoms and landmarks are limited by, for `clipped`."""

__all__ = [
    "AT_LEAST_0",
    "AT_LEAST_1",
    "LEARNER",
    "NOT_NEGATIVE",
    "POSITIVE",
    "SAMPLES",
    "SHARE",
    "SINGLE_LEARNER",
    "TRANSFORMER",
    "HasMethods",
    "Interval",
    "Options",
    "StrOptions",
    "clipped",
    "validate_parameter_constraints",
]


def clipped(name: str, requested: int, available: int, of_what: str) -> int:
    """Return `requested`, or `available` with a warning; refuse to choose from none."""
    if available < 1:
        raise ValueError(f"there are no {of_what}: {name} needs at least one")
    if requested > available:
        warnings.warn(
            f"{name}={requested} is more than the {available} {of_what}, and "
            f"{available} is used instead",
            stacklevel=3,
        )
    return min(int(requested), available)
