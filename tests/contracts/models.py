"""One small model of every kind and what it says of rows, for tests over all."""

from __future__ import annotations

from inspect import signature

import numpy as np
from sklearn.base import clone, is_classifier

from kernlets import (
    KSVD,
    MOD,
    RBF,
    Anchors,
    AutoDictionaryClassifier,
    BudgetKernelDL,
    DictionaryOutlierDetector,
    DKSVDClassifier,
    FastfoodMap,
    FDDLClassifier,
    FourierMap,
    HybridMap,
    IKAMap,
    KernelKSVD,
    KernelMOD,
    KSADClassifier,
    LCKSVDClassifier,
    NystroemMap,
    OnlineDictionary,
    OrthogonalDictionary,
    PolynomialSketchMap,
    ReducedKernelDL,
    ResidualClassifier,
    RLSDictionary,
    SRCClassifier,
    Standardize,
    UnitNorm,
    registry,
)
from kernlets.data.stream import is_blocks
from kernlets.landmarks import SAMPLERS
from kernlets.numerics.arrays import is_dask, is_torch

N, P = 48, 5
SHORT = {"n_components": 6, "n_nonzero_coefs": 2, "max_iter": 2, "random_state": 0}
FEW = {"random_state": 0, "n_landmarks": 12}
KERNEL = RBF(sigma=9.0)

#: every registered estimator, with the options that read rows in their own way
INSTANCES = {
    "KSVD": KSVD(**SHORT),
    "KSVD parallel": KSVD(**SHORT, update="ksvd-parallel", init="kmeans"),
    "MOD": MOD(**SHORT, init="svd"),
    "RLS": RLSDictionary(**SHORT, schedule="batch_size=20"),
    "Online": OnlineDictionary(**SHORT, schedule="batch_size=20"),
    "Orthogonal": OrthogonalDictionary(4, 2, max_iter=2, random_state=0),
    "KernelKSVD": KernelKSVD("poly:2", **SHORT),
    "KernelMOD": KernelMOD(KERNEL, **SHORT),
    "Reduced": ReducedKernelDL(KERNEL, **SHORT, anchors=8),
    "Reduced moving": ReducedKernelDL(
        KERNEL, **SHORT, anchors=Anchors(8, "kmeans", descent=True)
    ),
    "Budget": BudgetKernelDL(KERNEL, 6, max_iter=1, budget=9, random_state=0),
    **{f"Nystroem {name}": NystroemMap(KERNEL, name, **FEW) for name in SAMPLERS},
    "Nystroem samples": NystroemMap(KERNEL, truncation="samples", **FEW),
    "IKA": IKAMap(KERNEL, **FEW),
    "Fourier": FourierMap(n_components=8, random_state=0),
    "Fastfood": FastfoodMap(n_components=8, random_state=0),
    "Hybrid": HybridMap(KERNEL, n_random=6, **FEW),
    "Sketch": PolynomialSketchMap("poly:2", 8, random_state=0),
    "UnitNorm": UnitNorm(),
    "Standardize": Standardize(),
    "Residual": ResidualClassifier(KSVD(**SHORT)),
    "Residual MOD": ResidualClassifier(MOD(**SHORT)),
    "Residual kernel": ResidualClassifier(KernelKSVD(KERNEL, **SHORT)),
    "SRC": SRCClassifier(KERNEL, 3),
    "KSAD": KSADClassifier(KERNEL, "orthogonal:max_iter=2", **FEW),
    "KSAD Fisher": KSADClassifier(KERNEL, "fisher", **FEW),
    "LCKSVD": LCKSVDClassifier(4, 2, max_iter=2, random_state=0),
    "DKSVD": DKSVDClassifier(4, 2, max_iter=2, random_state=0),
    "FDDL": FDDLClassifier(2, simplified=True, max_iter=1, random_state=0),
    "Auto": AutoDictionaryClassifier(
        None, max_candidates=2, families=["samples"], random_state=0
    ),
    "Outliers": DictionaryOutlierDetector(random_state=0),
    "Novelties": DictionaryOutlierDetector(
        KSVD(**SHORT), novelty=True, alpha=0.3, random_state=0
    ),
}
NEED_MEMORY = {
    *("KSVD", "RLS", "KernelKSVD", "KernelMOD", "Reduced", "Reduced moving", "Budget"),
    *("Residual", "Residual kernel", "SRC", "KSAD", "KSAD Fisher"),
    *("LCKSVD", "DKSVD", "FDDL", "Auto", "Outliers", "Novelties"),
}
TAKE_BLOCKS = {
    *("KSVD parallel", "MOD", "RLS", "Online", "Orthogonal", "Budget", "Residual MOD"),
    *("IKA", "Fourier", "Fastfood", "Hybrid", "Sketch", "UnitNorm", "Nystroem samples"),
    "Standardize",
    *(f"Nystroem {name}" for name in SAMPLERS),
}


def _add_others() -> None:
    """A small instance of every registered estimator that has none above."""
    known = {type(model) for model in INSTANCES.values()}
    for cls in registry.estimators():
        if cls not in known:
            names = signature(cls).parameters
            model = cls(**{name: v for name, v in SHORT.items() if name in names})
            INSTANCES[cls.__name__] = model
            from_sums = getattr(model, "_containers", None) == "dask"
            (TAKE_BLOCKS if from_sums else NEED_MEMORY).add(cls.__name__)


_add_others()


def labels():
    return np.arange(N) % 3


def samples():
    """Whole numbers from 0 to 15, which all types hold, of three kinds of samples."""
    rng = np.random.default_rng(1)
    rows = rng.integers(0, 9, (N, P)) + 6 * np.eye(3, P, dtype=int)[labels()]
    return rows.clip(0, 15)


def fitted(name, X):
    model = clone(INSTANCES[name])
    return model.fit(X, labels() if is_classifier(model) else None)


def answer(model, new):
    """What a fitted model says of new rows: features, codes, scores."""
    for method in ("transform", "score_samples", "decision_function"):
        if hasattr(model, method):
            return getattr(model, method)(new)
    if hasattr(model, "encode"):
        return model.encode(new).toarray()
    raise AssertionError(f"{model!r} has nothing to say")


def outcome(name, X):
    """What a model fitted on X says of X, in memory."""
    return in_memory(answer(fitted(name, X), X))


def in_memory(result):
    if is_dask(result):
        return result.compute()
    if is_torch(result):
        return result.numpy(force=True)
    return np.concatenate(list(result)) if is_blocks(result) else np.asarray(result)
