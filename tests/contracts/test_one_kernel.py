"""Residuals of several classes are compared in one feature space."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from sklearn.base import clone

from kernlets import (
    RBF,
    Blocks,
    BudgetKernelDL,
    Callable,
    KernelKSVD,
    Laplacian,
    ResidualClassifier,
    SRCClassifier,
)
from kernlets.kernels import KERNELS, Normalized
from kernlets.learners import LEARNERS

KERNEL_LEARNERS = {
    name: Class
    for name, Class in LEARNERS.items()
    if "kernel" in inspect.signature(Class).parameters
}
OF_ROWS = {name: K for name, K in KERNELS.items() if K.takes == "rows"}
OPEN = {name: K() for name, K in OF_ROWS.items() if getattr(K(), "unset", False)}
COMPOSED = {"sum": RBF() + 0.5 * Laplacian(), "normalized": Normalized(RBF())}


def two_scales(rng, n=24, p=5):
    """Rows without negative entries, those of the second class ten times as large."""
    X = rng.random((2 * n, p)) * np.repeat([1.0, 10.0], n)[:, None]
    order = rng.permutation(2 * n)
    return X[order], np.repeat(["small", "large"], n)[order]


def kernels_of(model):
    return [one.kernel_.get_params() for one in model.learners_]


def test_something_is_open():
    assert {"rbf", "laplacian", "matern", "rational_quadratic"} <= OPEN.keys()
    assert len(KERNEL_LEARNERS) >= 4


@pytest.mark.parametrize("kernel", {**OPEN, **COMPOSED}.values(), ids=str)
@pytest.mark.parametrize("name", KERNEL_LEARNERS)
def test_all_classes_have_the_kernel_of_all_rows(name, kernel, rng):
    X, y = two_scales(rng)
    learner = KERNEL_LEARNERS[name](clone(kernel), 4, max_iter=1, random_state=0)
    model = ResidualClassifier(learner).fit(X, y)
    first, second = map(repr, kernels_of(model))
    assert first == second == repr(kernel.bound(X).get_params())
    assert repr(learner.kernel) == repr(kernel)  # an argument is never written to


@pytest.mark.parametrize("name", KERNEL_LEARNERS)
def test_so_do_kernels_by_name(name, rng):
    X, y = two_scales(rng)
    model = ResidualClassifier(KERNEL_LEARNERS[name]("rbf", 4, max_iter=1)).fit(X, y)
    gamma = 1 / (X.shape[1] * X.var())
    for one in model.learners_:
        assert one.kernel_.gamma == pytest.approx(gamma)


def test_and_streams(rng):
    X, y = two_scales(rng)
    learner = BudgetKernelDL("rbf", 4, max_iter=1, random_state=0)
    model = ResidualClassifier(learner)
    for rows in (slice(0, 20), slice(20, None)):
        model.partial_fit(X[rows], y[rows], classes=["large", "small"])
    gamma = 1 / (X.shape[1] * X[:20].var())
    assert [one.kernel_.gamma for one in model.learners_] == pytest.approx([gamma] * 2)
    blocks = ResidualClassifier(learner).fit(Blocks(lambda: iter([X[:30], X[30:]])), y)
    gamma = 1 / (X.shape[1] * X[:30].var())
    assert [one.kernel_.gamma for one in blocks.learners_] == pytest.approx([gamma] * 2)


def far_apart(A, B):
    """Minus the distance: large on the diagonal, but of no feature space."""
    return 3.0 - np.abs(A[:, None] - B[None]).max(axis=2)


@pytest.mark.parametrize("name", KERNEL_LEARNERS)
def test_all_kernel_learners_refuse_an_indefinite_kernel(name, rng):
    X = rng.standard_normal((40, 3))
    with pytest.raises(ValueError, match="not positive semi-definite") as info:
        KERNEL_LEARNERS[name](Callable(far_apart), 4, random_state=0).fit(X)
    lowest = np.linalg.eigvalsh(far_apart(X, X))[0]
    assert f"from {lowest:.3g} to" in str(info.value)  # 40 rows are all looked at
    assert "use a kernel such as RBF" in str(info.value)


def test_classifiers_and_precomputed_matrices_refuse_it_too(rng):
    X, y = rng.standard_normal((600, 3)), np.arange(600) % 200
    # the matrix of the three samples of a class may well be definite
    for model in (ResidualClassifier(KernelKSVD(far_apart)), SRCClassifier(far_apart)):
        with pytest.raises(ValueError, match=r"semi-definite: .* 200 samples"):
            model.fit(X, y)
    with pytest.raises(ValueError, match="not positive semi-definite"):
        KernelKSVD("precomputed").fit(far_apart(X, X))
    with pytest.raises(ValueError, match="not symmetric"):
        KernelKSVD(lambda A, B: 2.0 + np.tanh(A[:, :1] - 2 * B[:, 0])).fit(X[:50])


@pytest.mark.parametrize("name", KERNEL_LEARNERS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_no_shipped_kernel_is_refused(name, dtype, rng):
    X = (rng.random((300, 6)) * 3).astype(dtype)
    X[10:40] = X[0]  # singular, but not indefinite
    for kernel in OF_ROWS:
        if kernel != "precomputed":
            learner = KERNEL_LEARNERS[name](kernel, 4, max_iter=1, random_state=0)
            assert np.isfinite(learner.fit(X).history_["objective"][-1])
