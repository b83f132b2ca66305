"""Outlier and novelty detection by how well dictionaries represent a row.

`detector.py` has the estimator, `sampled.py` its default dictionaries, `thresholds.py`
turns scores into labels and odds, `reasons.py` into words.
"""

from .detector import DictionaryOutlierDetector
from .sampled import SampledDictionaries

__all__ = ["DictionaryOutlierDetector", "SampledDictionaries"]

#: Detectors by the names that the command line knows.
DETECTORS = {"outliers": DictionaryOutlierDetector}
