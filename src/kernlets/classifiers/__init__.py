"""Classifiers built on dictionaries."""

from .ksad import KSADClassifier
from .residual import ResidualClassifier
from .sparse_representation import SRCClassifier

CLASSIFIERS = {
    "residual": ResidualClassifier,
    "src": SRCClassifier,
    "ksad": KSADClassifier,
}

__all__ = ["CLASSIFIERS", "KSADClassifier", "ResidualClassifier", "SRCClassifier"]
