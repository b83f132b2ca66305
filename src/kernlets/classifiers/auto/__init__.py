"""`AutoDictionaryClassifier`, and the search behind it."""

from .estimator import AutoDictionaryClassifier

__all__ = ["AutoDictionaryClassifier"]
