from typing import Any

from . import datasets as datasets
from . import images as images
from . import metrics as metrics
from . import plotting as plotting
from . import preimage as preimage
from .data.missing import mark_missing as mark_missing
from .data.stream import Blocks as Blocks
from .classifiers import AutoDictionaryClassifier as AutoDictionaryClassifier
from .classifiers import DKSVDClassifier as DKSVDClassifier
from .classifiers import FDDLClassifier as FDDLClassifier
from .classifiers import KSADClassifier as KSADClassifier
from .classifiers import LCKSVDClassifier as LCKSVDClassifier
from .classifiers import ResidualClassifier as ResidualClassifier
from .classifiers import SRCClassifier as SRCClassifier
from .classifiers.explain import explain as explain
from .classifiers.image import ImageClassifier as ImageClassifier
from .classifiers.kernel_ridge import (
    KernelRidgeClassifier as KernelRidgeClassifier,
)
from .config import options as options
from .dictionaries import ExplicitDictionary as ExplicitDictionary
from .dictionaries import KernelDictionary as KernelDictionary
from .export import to_onnx as to_onnx
from .images.patch_map import PatchDictionaryMap as PatchDictionaryMap
from .imputation import DictionaryImputer as DictionaryImputer
from .imputation import GrossErrorMask as GrossErrorMask
from .kernels import Callable as Callable
from .kernels import Chi2 as Chi2
from .kernels import Clipped as Clipped
from .kernels import Cosine as Cosine
from .kernels import Intersection as Intersection
from .kernels import Laplacian as Laplacian
from .kernels import Linear as Linear
from .kernels import Matern as Matern
from .kernels import Normalized as Normalized
from .kernels import Polynomial as Polynomial
from .kernels import Precomputed as Precomputed
from .kernels import RBF as RBF
from .kernels import RationalQuadratic as RationalQuadratic
from .kernels import Shifted as Shifted
from .kernels import Sigmoid as Sigmoid
from .kernels import Squared as Squared
from .kernels.histogram import AdditiveChi2 as AdditiveChi2
from .kernels.bags import MeanEmbedding as MeanEmbedding
from .kernels.graphs import ShortestPath as ShortestPath
from .kernels.graphs import WeisfeilerLehman as WeisfeilerLehman
from .kernels.strings import LocalAlignment as LocalAlignment
from .kernels.bags import PyramidMatch as PyramidMatch
from .kernels.series import CrossCorrelation as CrossCorrelation
from .kernels.series import DTW as DTW
from .kernels.series import GAK as GAK
from .kernels.series import SoftDTW as SoftDTW
from .kernels.spd import AffineInvariant as AffineInvariant
from .kernels.spd import Bures as Bures
from .kernels.spd import LogEuclidean as LogEuclidean
from .kernels.spd import Stein as Stein
from .kernels.strings import Gappy as Gappy
from .kernels.strings import Mismatch as Mismatch
from .kernels.strings import Spectrum as Spectrum
from .kernels.graphs import RandomWalk as RandomWalk
from .learners import Anchors as Anchors
from .learners import BudgetKernelDL as BudgetKernelDL
from .learners import Forgetting as Forgetting
from .learners import KSVD as KSVD
from .learners import KernelKSVD as KernelKSVD
from .learners import KernelMOD as KernelMOD
from .learners import MOD as MOD
from .learners import OnlineDictionary as OnlineDictionary
from .learners import OrthogonalDictionary as OrthogonalDictionary
from .learners import RLSDictionary as RLSDictionary
from .learners import ReducedKernelDL as ReducedKernelDL
from .learners import Schedule as Schedule
from .maps import FastfoodMap as FastfoodMap
from .maps import FourierMap as FourierMap
from .maps import HybridMap as HybridMap
from .maps import IKAMap as IKAMap
from .maps import NystroemMap as NystroemMap
from .maps import PolynomialSketchMap as PolynomialSketchMap
from .maps import Standardize as Standardize
from .maps import UnitNorm as UnitNorm
from .outliers import DictionaryOutlierDetector as DictionaryOutlierDetector
from .outliers import StreamOutlierDetector as StreamOutlierDetector
from .io import load as load
from .io import save as save
from .coders import Lasso as Lasso
from .coders import OMP as OMP
from .coders import Ridge as Ridge
from .coders import Threshold as Threshold
from .coders.group import GroupOMP as GroupOMP
from .coders.group import SimultaneousOMP as SimultaneousOMP
from .updates import AnchorDescent as AnchorDescent
from .updates import BabelMeasure as BabelMeasure
from .updates import Budget as Budget
from .updates import Coherence as Coherence
from .updates import FeatureDistance as FeatureDistance
from .updates import LinearDependence as LinearDependence
from .updates import ReconstructionCost as ReconstructionCost
from .updates import StochasticGradient as StochasticGradient

__version__: str
__all__: list[str]
_HOMES: dict[str, str]
_HOME_OF: dict[str, str]

def _classes_by_name(kind: str) -> dict[str, Any]: ...
