"""Outlier and novelty detection by how well dictionaries represent a row.

`detector.py` has the estimator for a fixed set of rows, with `sampled.py` for its
default dictionaries, `stream.py` the one for streams of rows, and `patches.py` the one
for images and series. `thresholds.py` turns scores into labels and odds, `explain.py`
into words.
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
