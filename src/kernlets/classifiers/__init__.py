"""Classifiers built on dictionaries."""

from .residual import ResidualClassifier
from .sparse_representation import SRCClassifier

CLASSIFIERS = {"residual": ResidualClassifier, "src": SRCClassifier}

__all__ = ["CLASSIFIERS", "ResidualClassifier", "SRCClassifier"]
