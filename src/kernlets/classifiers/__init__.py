"""Classifiers built on dictionaries."""

from .residual import ResidualClassifier

CLASSIFIERS = {"residual": ResidualClassifier}

__all__ = ["CLASSIFIERS", "ResidualClassifier"]
