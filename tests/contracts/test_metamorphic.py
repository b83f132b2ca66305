"""Every relation of tests/relations.py, with every registered estimator."""

from __future__ import annotations

import numpy as np
import pytest

from kernlets import (
    KSVD,
    OMP,
    Anchors,
    BudgetKernelDL,
    KernelKSVD,
    KernelRidgeClassifier,
    NystroemMap,
    OnlineDictionary,
    ReducedKernelDL,
    ResidualClassifier,
    SRCClassifier,
)
from kernlets.coders import CODERS, Lasso, Threshold
from kernlets.kernels import KERNELS, Precomputed
from relations import RELATIONS, Data, DoesNotApply, check, kernel_relations

from .models import INSTANCES, KERNEL, SHORT

LONGER = {"n_components": 6, "max_iter": 3, "random_state": 0}
THRESHOLDS = {
    kind: Threshold(kind=kind, n_nonzero_coefs=2 if kind == "top-k" else None)
    for kind in ("soft", "hard", "top-k")
}
CODED = {
    **{name: coder() for name, coder in CODERS.items()},
    **THRESHOLDS,
    "positive OMP": OMP(2, positive=True),
    "OMP to a tolerance": OMP(tol=0.5),
    "positive lasso": Lasso(0.1, positive=True),
}
#: Options beside those of `INSTANCES`: every coder, open bandwidths, other updates.
MODELS = {
    **INSTANCES,
    **{f"KSVD {name}": KSVD(coder=coder, **LONGER) for name, coder in CODED.items()},
    "KernelKSVD top-k": KernelKSVD(KERNEL, coder=THRESHOLDS["top-k"], **LONGER),
    "KernelKSVD lasso": KernelKSVD(KERNEL, coder=Lasso(0.01), **LONGER),
    "KernelKSVD open": KernelKSVD("rbf", **SHORT),
    "Residual top-k": ResidualClassifier(KSVD(coder=THRESHOLDS["top-k"], **LONGER)),
    "Residual all rows": ResidualClassifier(KSVD(20, 2, max_iter=1, random_state=0)),
    "Residual open": ResidualClassifier(KernelKSVD("rbf", **SHORT)),
    "Residual rational quadratic": ResidualClassifier(
        KernelKSVD("rational_quadratic", **SHORT)
    ),
    "SRC open": SRCClassifier("rbf", 3),
    "Ridge of few": KernelRidgeClassifier(
        "poly:2,coef0=1", n_landmarks=30, random_state=0
    ),
    "Budget open": BudgetKernelDL("rbf", 6, max_iter=1, budget=9, random_state=0),
    "Reduced open": ReducedKernelDL("rbf", **SHORT, anchors=8),
    "Residual reduced": ResidualClassifier(
        ReducedKernelDL(KERNEL, 3, max_iter=1, anchors=4, random_state=0)
    ),
    "Residual budget": ResidualClassifier(
        BudgetKernelDL(KERNEL, 6, max_iter=1, budget=9, random_state=0)
    ),
    "Nystroem few": NystroemMap(
        "poly:2", n_landmarks=0.5, n_components=0.9, random_state=0
    ),
    "Nystroem samples few": NystroemMap(
        KERNEL, n_landmarks=12, n_components=5, truncation="samples", random_state=0
    ),
    "Nystroem open": NystroemMap("rbf", n_landmarks=12, random_state=0),
    "KSVD exact": KSVD(**SHORT, update="ksvd:exact=True"),
    "KSVD defaults": KSVD(random_state=0, max_iter=2),
    "KSVD svd": KSVD(**SHORT, init="svd"),
    "KSVD exchange": KSVD(**SHORT, schedule="exchange=1,warm_up=2,n_init=2"),
    "KernelKSVD exact": KernelKSVD(KERNEL, **SHORT, update="ksvd:exact=True"),
    "KernelKSVD parallel": KernelKSVD(KERNEL, **SHORT, update="ksvd-parallel"),
    "Reduced anchors": ReducedKernelDL(
        KERNEL, **SHORT, anchors=Anchors(8, descent=True, linear_weight=0.1)
    ),
    "Online forgetting": OnlineDictionary(
        **SHORT, schedule="batch_size=20,forgetting=0.99"
    ),
}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(5)
    y = rng.permutation(np.arange(54) % 3)
    centres = 6 * rng.random((3, 6)) + 6 * np.eye(3, 6)
    X = np.abs(centres[y] + 3 * rng.standard_normal((54, 6)))
    return Data(X[:45], y[:45], X[45:], start=(3, 8, 20, 31, 40))


@pytest.mark.rounding
@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("relation", RELATIONS)
def test_relations(relation, name, data):
    try:
        check(relation, MODELS[name], data)
    except DoesNotApply as reason:
        pytest.skip(str(reason))


ROW_KERNELS = {
    name: kernel
    for name, kernel in KERNELS.items()
    if kernel.takes == "rows" and kernel is not Precomputed
}


@pytest.mark.parametrize("name", ROW_KERNELS)
def test_kernels(name, data):
    kernel_relations(ROW_KERNELS[name](), data)
