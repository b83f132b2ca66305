"""Constraints on the parameters of estimators, which `_validate_params` checks.

This is the only module that imports scikit-learn's private `_param_validation`. The
constants are the constraints that many estimators share.
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

from sklearn.utils import _param_validation
from sklearn.utils._param_validation import (
    Options,
    StrOptions,
    validate_parameter_constraints,
)


class Interval(_param_validation.Interval):
    """scikit-learn's interval of numbers, without True and False."""

    def is_satisfied_by(self, val: Any) -> bool:
        is_flag = isinstance(val, bool) or type(val).__name__ == "bool"  # NumPy's too
        return not is_flag and super().is_satisfied_by(val)


AT_LEAST_1 = Interval(Integral, 1, None, closed="left")
AT_LEAST_0 = Interval(Integral, 0, None, closed="left")
POSITIVE = Interval(Real, 0, None, closed="neither")
NOT_NEGATIVE = Interval(Real, 0, None, closed="left")
SHARE = Interval(Real, 0, 1, closed="right")
"""Above 0, at most 1."""

__all__ = [
    "AT_LEAST_0",
    "AT_LEAST_1",
    "NOT_NEGATIVE",
    "POSITIVE",
    "SHARE",
    "Interval",
    "Options",
    "StrOptions",
    "validate_parameter_constraints",
]
