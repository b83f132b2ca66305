"""Feature maps, which give vectors whose inner products approximate a kernel."""

from .. import _classes_by_name
from .convolutions import ConvolutionMap
from .exact import AdditiveMap, CountMap
from .fourier import FastfoodMap, FourierMap
from .hybrid import HybridMap
from .ika import IKAMap
from .nystroem import NystroemMap
from .scaling import Standardize, UnitNorm
from .sketch import PolynomialSketchMap

MAPS = {
    "nystroem": NystroemMap,
    "ika": IKAMap,
    "fourier": FourierMap,
    "fastfood": FastfoodMap,
    "hybrid": HybridMap,
    "sketch": PolynomialSketchMap,
    **_classes_by_name("maps"),
}

__all__ = [
    "MAPS",
    "AdditiveMap",
    "ConvolutionMap",
    "CountMap",
    "FastfoodMap",
    "FourierMap",
    "HybridMap",
    "IKAMap",
    "NystroemMap",
    "PolynomialSketchMap",
    "Standardize",
    "UnitNorm",
]
