"""Kernel dictionary learning at scale, in the style of scikit-learn.

Names are loaded when they are first used, so that ``import kernlets`` is quick and
loads no heavy library. `__init__.pyi` tells type checkers what they are.
"""

from __future__ import annotations

import importlib
import re
from typing import Any

__version__ = "0.1.0"

# Public names by the package or module that holds them. A class in a file of its own
# needs one line here, e.g. ``"kernels.cauchy": "Cauchy"``, and one in `__init__.pyi`;
# see docs/extend.md.
_HOMES = {
    "kernels": (
        "Linear Polynomial RBF Laplacian Matern RationalQuadratic Sigmoid Cosine "
        "Chi2 Intersection Callable Precomputed Normalized Clipped Shifted Squared"
    ),
    "kernels.histogram": "AdditiveChi2",
    "kernels.series": "GAK DTW SoftDTW CrossCorrelation",
    "kernels.spd": "LogEuclidean Stein AffineInvariant Bures",
    "kernels.strings": "Spectrum Mismatch Gappy LocalAlignment",
    "kernels.graphs": "WeisfeilerLehman ShortestPath RandomWalk",
    "kernels.bags": "MeanEmbedding PyramidMatch",
    "maps": (
        "NystroemMap IKAMap FourierMap FastfoodMap HybridMap PolynomialSketchMap "
        "UnitNorm Standardize"
    ),
    "coders": "OMP Lasso Ridge Threshold",
    "dictionaries": "ExplicitDictionary KernelDictionary",
    "updates": (
        "AnchorDescent BabelMeasure Budget Coherence FeatureDistance LinearDependence "
        "ReconstructionCost StochasticGradient"
    ),
    "coders.group": "GroupOMP SimultaneousOMP",
    "learners": (
        "KSVD MOD RLSDictionary OnlineDictionary Forgetting OrthogonalDictionary "
        "KernelKSVD KernelMOD ReducedKernelDL BudgetKernelDL "
        "Schedule Anchors"
    ),
    "classifiers": (
        "ResidualClassifier SRCClassifier KSADClassifier LCKSVDClassifier "
        "DKSVDClassifier FDDLClassifier AutoDictionaryClassifier explain"
    ),
    "classifiers.image": "ImageClassifier",
    "classifiers.kernel_ridge": "KernelRidgeClassifier",
    "outliers": "DictionaryOutlierDetector StreamOutlierDetector",
    "imputation": "DictionaryImputer GrossErrorMask",
    "images.patch_map": "PatchDictionaryMap",
    "io": "save load",
    "export": "to_onnx",
    "config": "options",
    "data.stream": "Blocks",
    "data.missing": "mark_missing",
}
_MODULES = ("datasets", "images", "metrics", "plotting", "preimage")
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}

__all__ = ["__version__", *_HOME_OF, *_MODULES]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f".{name}", __name__)
    if name not in _HOME_OF:
        raise AttributeError(f"module 'kernlets' has no attribute {name!r}")
    value = getattr(importlib.import_module(f".{_HOME_OF[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


def _classes_by_name(kind: str) -> dict[str, Any]:
    """Classes of one package with a line of their own in `_HOMES`, by short name.

    The short name of ``KernelKSVD`` is ``kernel-ksvd``.
    """
    homes = [home for home in _HOMES if home.startswith(f"{kind}.")]
    names = [name for home in homes for name in _HOMES[home].split()]
    words = r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])"
    return {re.sub(words, "-", name).lower(): __getattr__(name) for name in names}
