"""Outlier and novelty detection by how well dictionaries represent a row.

`detector.py` has the estimator for rows that are all known, with `sampled.py` for its
default dictionaries, `stream.py` the one for rows as they come, and `patches.py` the
one for images and series. `thresholds.py` turns scores into labels and odds,
`reasons.py` into words.
"""

from .detector import DictionaryOutlierDetector
from .patches import PatchOutlierDetector
from .sampled import SampledDictionaries
from .stream import StreamOutlierDetector

__all__ = [
    "DictionaryOutlierDetector",
    "PatchOutlierDetector",
    "SampledDictionaries",
    "StreamOutlierDetector",
]

#: Detectors by the names that the command line knows.
DETECTORS = {
    "outliers": DictionaryOutlierDetector,
    "stream-outliers": StreamOutlierDetector,
}
