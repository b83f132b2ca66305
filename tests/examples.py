"""One of everything that a model file may hold, fitted on a few samples.

Classes come from `kernlets.registry`, so that a new one is here without being named.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler

from kernlets import (
    DTW,
    GAK,
    KSVD,
    OMP,
    RBF,
    Anchors,
    Budget,
    BudgetKernelDL,
    Clipped,
    DictionaryOutlierDetector,
    FastfoodMap,
    FDDLClassifier,
    Forgetting,
    HybridMap,
    IKAMap,
    KernelKSVD,
    KernelMOD,
    KSADClassifier,
    Lasso,
    Linear,
    NystroemMap,
    OnlineDictionary,
    OrthogonalDictionary,
    Polynomial,
    PolynomialSketchMap,
    ReducedKernelDL,
    ResidualClassifier,
    RLSDictionary,
    Schedule,
    Shifted,
    Squared,
    SRCClassifier,
    StreamOutlierDetector,
    Threshold,
    registry,
    save,
)
from kernlets.dictionaries import ExplicitDictionary, GramDictionary, KernelDictionary
from kernlets.kernels.base import Normalized, Product, Sum
from kernlets.maps import ConvolutionMap, CountMap
from kernlets.outliers import PatchOutlierDetector
from kernlets.schema import is_record
from kernlets.updates import CoordinateUpdate, DecayingStep, StochasticGradient

N, WIDTH = 48, 6


def samples(dtype: str = "float64") -> tuple[np.ndarray, np.ndarray]:
    """Rows without negative numbers, and two classes."""
    X = np.random.default_rng(0).random((N, WIDTH))
    X[: N // 2, :2] += 0.7
    return X.astype(dtype), np.repeat(["cat", "dog"], N // 2)


def _three() -> np.ndarray:
    return np.array(["a", "b", "c"])[np.arange(N) % 3]


#: Classes of which there is no example without arguments.
NEEDY: dict[str, Callable[[], Any]] = {
    "Sum": lambda: Sum(RBF(2.0), Linear()),
    "Product": lambda: Product(RBF(2.0), Polynomial(2)),
    "Normalized": lambda: Normalized(Polynomial(2)),
    "Clipped": lambda: Clipped(DTW(0.5)),
    "Shifted": lambda: Shifted(DTW(0.5), 0.1),
    "Squared": lambda: Squared(DTW(0.5)),
    "FeatureUnion": lambda: FeatureUnion([("a", Normalizer()), ("b", KSVD(5, 2))]),
    # rows as the steps of a series
    "PatchOutlierDetector": lambda: PatchOutlierDetector(patch_size=(4,)),
    "Pipeline": lambda: Pipeline([("scale", Normalizer()), ("learn", KSVD(5, 2))]),
}
NEVER = ("Callable", "ConvolutionMap", "CountMap")  # a function; series; strings

#: More of some classes: parameters that change what is fitted.
VARIANTS: dict[str, Callable[[], Any]] = {
    "pipeline of maps": lambda: make_pipeline(
        Normalizer(),
        NystroemMap(RBF(2.0) * RBF(3.0), n_landmarks=12),
        ResidualClassifier(KSVD(4, 2)),
    ),
    "sketch with a constant": lambda: PolynomialSketchMap("poly:3,coef0=1", 20),
    "normal gains": lambda: FastfoodMap(n_components=31, gains="normal"),
    "units": lambda: IKAMap(basis="relu", n_landmarks=9),
    "odd hybrid": lambda: HybridMap(n_landmarks=9, n_components=4, n_random=7),
    "error pruning": lambda: BudgetKernelDL(
        "rbf:1",
        8,
        n_nonzero_coefs=2,
        budget=Budget(12, update="feature", pruning="error"),
    ),
    "merging": lambda: BudgetKernelDL(
        "laplacian",
        8,
        coder=Lasso(0.02),
        budget=Budget(
            12,
            update=StochasticGradient(step=DecayingStep(0.02), patience=5),
            pruning="merge",
        ),
        max_iter=2,
    ),
    "fisher": lambda: KSADClassifier("poly:2", dictionary="fisher", n_neighbors=3),
    "global scheme": lambda: FDDLClassifier(4, scheme="global", simplified=True),
    "online, objects": lambda: OnlineDictionary(
        7,
        coder=OMP(2),
        update=CoordinateUpdate(),
        schedule="forgetting=0.9,batch_size=8",
    ),
    "forgetting": lambda: RLSDictionary(
        7, 2, schedule=Schedule(forgetting=Forgetting(0.9, "linear", 99))
    ),
    "top-k": lambda: OrthogonalDictionary(
        5, coder=Threshold(kind="top-k", n_nonzero_coefs=2)
    ),
    "moving anchors": lambda: ReducedKernelDL(
        "rbf:1",
        6,
        n_nonzero_coefs=2,
        anchors=Anchors(9, KSVD(9, 2), descent=True),
    ),
    "lasso": lambda: KernelKSVD("chi2", 6, coder=Lasso(0.05)),
    "streams": lambda: ResidualClassifier(RLSDictionary(5, 2)),
    "scaled pipeline of outliers": lambda: DictionaryOutlierDetector(
        make_pipeline(StandardScaler(), KSVD(5, 2))
    ),
    "stream of outliers": lambda: StreamOutlierDetector(
        make_pipeline(StandardScaler(), RLSDictionary(5, 2)), window=20
    ),
    "named init": lambda: KSVD(init=samples()[0][:7].tolist()),
}


def _stream(model: Any, n: int) -> Any:
    X, y = samples()
    extra = (y[:n],) if hasattr(model, "predict") else ()
    return model.partial_fit(X[:n], *extra)


def _square() -> np.ndarray:
    X, _ = samples()
    return X @ X.T


#: Models that are not fitted on rows of numbers in the usual way.
SPECIAL: dict[str, Callable[[], Any]] = {
    "explicit dictionary": lambda: ExplicitDictionary(samples()[0][:5]),
    "kernel dictionary": lambda: KernelDictionary(
        RBF(1.0), samples()[0][:9], samples()[0][:4].repeat(2, axis=1)[:, :9]
    ),
    "gram dictionary": lambda: GramDictionary.of_samples(_square(), np.arange(5)),
    "float32": lambda: BudgetKernelDL("rbf:1", 6, budget=9).fit(samples("float32")[0]),
    "pending": lambda: _stream(OnlineDictionary(9), 5),
    "begun stream": lambda: _stream(OnlineDictionary(5, 2), 20),
    "begun outliers": lambda: StreamOutlierDetector().partial_fit(samples()[0]),
    "begun budget": lambda: _stream(BudgetKernelDL("rbf:1", 6), 20),
    "half begun classes": lambda: _stream(ResidualClassifier(RLSDictionary(5, 2)), 28),
    "precomputed": lambda: KernelKSVD("precomputed", 6, n_nonzero_coefs=2).fit(
        _square()
    ),
    "precomputed classes": lambda: ResidualClassifier(
        KernelKSVD("precomputed", 6, n_nonzero_coefs=2)
    ).fit(_square(), samples()[1]),
    "precomputed map": lambda: NystroemMap("precomputed", n_landmarks=9).fit(_square()),
    "precomputed src": lambda: SRCClassifier("precomputed").fit(
        _square(), samples()[1]
    ),
    "sparse landmarks": lambda: NystroemMap("rbf:1", n_landmarks=9).fit(
        sparse.csr_array(samples()[0])
    ),
    "three classes": lambda: LogisticRegression().fit(samples()[0], _three()),
    "three of ridge": lambda: RidgeClassifier().fit(samples()[0], _three()),
    "numbers as labels": lambda: ResidualClassifier(KSVD(4, 2)).fit(
        samples()[0], np.arange(N) % 3
    ),
}


def _series(n: int = 16) -> tuple[list[np.ndarray], np.ndarray]:
    """Series of unequal length with two channels, and two classes."""
    rng = np.random.default_rng(0)
    labels = np.arange(n) % 2
    series = [rng.normal(size=(4 + i % 5, 2)) + labels[i] for i in range(n)]
    return series, labels


def _words() -> list[str]:
    return [f"{a}{b}ab" for a in ("abba", "cab", "bac") for b in ("ca", "bb", "ac")]


def _rings() -> list[tuple[np.ndarray, list[str]]]:
    """Rings of several sizes, with labels."""
    sizes = (3, 4, 5, 6, 7, 8)
    wheels = [np.eye(n, k=1) + np.eye(n, k=1 - n) for n in sizes]
    labels = [["C", "N"][: 1 + n % 2] * n for n in sizes]
    pairs = zip(wheels, labels, sizes, strict=True)
    return [(ring + ring.T, names[:n]) for ring, names, n in pairs]


SPECIAL.update(
    {
        "map of series": lambda: NystroemMap(
            GAK(3.0), n_landmarks=6, random_state=0
        ).fit(_series()[0]),
        "atoms of series": lambda: KernelKSVD(
            Clipped(DTW()), 4, n_nonzero_coefs=2, random_state=0
        ).fit(_series()[0]),
        "classes of series": lambda: SRCClassifier(GAK(3.0), 3).fit(*_series()),
        "atoms of words": lambda: KernelMOD(
            "spectrum:2", 3, n_nonzero_coefs=2, random_state=0
        ).fit(_words()),
        "convolved series": lambda: ConvolutionMap(7, random_state=0).fit(_series()[0]),
        "counts of words": lambda: CountMap("spectrum:2").fit(_words()),
        "map of graphs": lambda: NystroemMap(
            "weisfeiler_lehman:2", n_landmarks=5, random_state=0
        ).fit(_rings()),
    }
)


def makers() -> dict[str, Callable[[], Any]]:
    """Names, and functions that make the models."""
    found = {
        name: lambda cls=cls: fitted(_new(cls))
        for name, cls in registry.storable().items()
        if not is_record(cls) and cls.__name__ not in NEVER
    }
    variants = {name: lambda m=make: fitted(m()) for name, make in VARIANTS.items()}
    return {**found, **variants, **SPECIAL}


def _new(cls: type) -> Any:
    try:
        return NEEDY[cls.__name__]() if cls.__name__ in NEEDY else cls()
    except TypeError as error:
        raise AssertionError(
            f"{cls.__name__}: give an example in NEEDY of tests/examples.py ({error})"
        ) from None


def fitted(model: Any) -> Any:
    """The model after a fit that is the same each time."""
    if not hasattr(model, "fit"):
        return model
    seeds = [name for name in model.get_params() if name.endswith("random_state")]
    model.set_params(**dict.fromkeys(seeds, 0))
    X, y = samples()
    labels = y if hasattr(model, "classes_") or not _is_regressor(model) else X[:, 0]
    return model.fit(*((labels,) if _takes_labels(model) else (X, labels)))


def _is_regressor(model: BaseEstimator) -> bool:
    return model.__sklearn_tags__().estimator_type == "regressor"


def _takes_labels(model: BaseEstimator) -> bool:
    tags = model.__sklearn_tags__().input_tags
    return not tags.two_d_array


@cache
def model_of(name: str) -> Any:
    """The model of a name; the same object each time, not to be changed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return makers()[name]()


@cache
def file_of(name: str) -> bytes:
    """The model file of a name."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "a.model"
        save(copy.deepcopy(model_of(name)), path)
        return path.read_bytes()
