"""scikit-learn's base classes, to which `sklearn_base.pyi` gives types.

scikit-learn has no types. A class that inherits from it directly is `Any` to a type
checker, which then accepts every attribute of every estimator.
"""

from sklearn.base import (
    BaseEstimator,
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


__all__ = [
    "BaseEstimator",
    "CallbackSupportMixin",
    "ClassNamePrefixFeaturesOutMixin",
    "ClassifierMixin",
    "OneToOneFeatureMixin",
    "OutlierMixin",
    "TransformerMixin",
]
