"""scikit-learn's base classes, to which `sklearn_base.pyi` gives types.

scikit-learn has no types. A class that inherits from it directly is `Any` to a type
checker, which then accepts every attribute of every estimator.
"""

from functools import cache
from typing import Any

import sklearn.base
from sklearn.base import (
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    OneToOneFeatureMixin,
    OutlierMixin,
    TransformerMixin,
)

try:
    from sklearn.callback import CallbackSupportMixin
except ImportError:  # scikit-learn before 1.9

    class CallbackSupportMixin:
        """Supports nothing."""


class BaseEstimator(sklearn.base.BaseEstimator):
    """scikit-learn's base class, which reads a constructor's signature only once."""

    @classmethod
    def _get_param_names(cls) -> list[str]:
        return list(_param_names(cls))


@cache
def _param_names(cls: Any) -> tuple[str, ...]:
    read_names = sklearn.base.BaseEstimator._get_param_names.__func__
    return tuple(read_names(cls))


__all__ = [
    "BaseEstimator",
    "CallbackSupportMixin",
    "ClassNamePrefixFeaturesOutMixin",
    "ClassifierMixin",
    "OneToOneFeatureMixin",
    "OutlierMixin",
    "TransformerMixin",
]
