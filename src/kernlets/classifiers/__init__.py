"""Classifiers that use dictionaries."""

from .. import _classes_by_name
from .auto import AutoDictionaryClassifier
from .explain import explain
from .fddl import FDDLClassifier, GlobalScheme, LocalScheme
from .ksad import KSADClassifier
from .ksad_atoms import FisherAtoms, OrthogonalAtoms
from .lc_ksvd import DKSVDClassifier, LCKSVDClassifier
from .residual import ResidualClassifier
from .src import SRCClassifier

CLASSIFIERS = {
    "residual": ResidualClassifier,
    "src": SRCClassifier,
    "ksad": KSADClassifier,
    "lc-ksvd": LCKSVDClassifier,
    "d-ksvd": DKSVDClassifier,
    "fddl": FDDLClassifier,
    "auto": AutoDictionaryClassifier,
    **_classes_by_name("classifiers"),
}

__all__ = [
    "CLASSIFIERS",
    "AutoDictionaryClassifier",
    "DKSVDClassifier",
    "FDDLClassifier",
    "FisherAtoms",
    "GlobalScheme",
    "KSADClassifier",
    "LCKSVDClassifier",
    "LocalScheme",
    "OrthogonalAtoms",
    "ResidualClassifier",
    "SRCClassifier",
    "explain",
]
