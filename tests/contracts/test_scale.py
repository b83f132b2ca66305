"""Learning from c·X is learning from X: the unit of the data changes no atom.

Bit by bit where c is a power of two, since nothing then rounds differently unless a
square overflows or vanishes somewhere. Methods with a weight beside the squared error
(lasso, soft thresholds, labels) depend on the unit by definition and are not here.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.pipeline import Pipeline, make_pipeline

from kernlets import (
    KSVD,
    MOD,
    Anchors,
    DictionaryOutlierDetector,
    KernelKSVD,
    KernelMOD,
    KSADClassifier,
    NystroemMap,
    OnlineDictionary,
    OrthogonalDictionary,
    ReducedKernelDL,
    ResidualClassifier,
    RLSDictionary,
    SRCClassifier,
    Threshold,
    UnitNorm,
    registry,
)
from kernlets.learners.initial_atoms import STARTS

# exponents of c: 1e-12 to 1e12 in float32, whose squares reach from 1e-19 to 1e19
EXPONENTS = {np.float32: (-40, -3, 5, 40), np.float64: (-200, 5, 200)}
DTYPES = pytest.mark.parametrize("dtype", [np.float32, np.float64])

LINEAR = {
    **{f"ksvd {init}": KSVD(10, 3, init=init) for init in STARTS},
    **{
        f"ksvd {u}": KSVD(10, 3, update=u) for u in ("ksvd:exact=True", "ksvd-parallel")
    },
    "ksvd top-k": KSVD(10, coder=Threshold(kind="top-k", n_nonzero_coefs=3)),
    "mod": MOD(10, 3),
    "orthogonal": OrthogonalDictionary(10, 3),
    **{
        f"{name} {factor}": Class(10, 3, schedule=f"batch_size=32,forgetting={factor}")
        for name, Class in {"rls": RLSDictionary, "online": OnlineDictionary}.items()
        for factor in (1.0, 0.99, 0.9)
    },
    "online mod": OnlineDictionary(10, 3, schedule="batch_size=32", update="mod"),
}

# κ(cx, cy) = c^(2 degree) κ(x, y); widths that are left open follow the data
DEGREES = {
    "linear": 1.0,
    "poly:2": 2.0,
    "poly:3": 3.0,
    "intersection": 0.5,
    "cosine": 0.0,
    "rbf": 0.0,
    "laplacian": 0.0,
    "matern": 0.0,
    "rational_quadratic": 0.0,
}

KERNEL_LEARNERS = {
    "ksvd": lambda kernel: KernelKSVD(kernel, 10, n_nonzero_coefs=3),
    "ksvd exact": lambda kernel: KernelKSVD(
        kernel, 10, n_nonzero_coefs=3, update="ksvd:exact=True"
    ),
    "ksvd parallel": lambda kernel: KernelKSVD(
        kernel, 10, n_nonzero_coefs=3, update="ksvd-parallel"
    ),
    "mod": lambda kernel: KernelMOD(kernel, 10, n_nonzero_coefs=3),
    "reduced": lambda kernel: ReducedKernelDL(
        kernel, 10, n_nonzero_coefs=3, anchors=Anchors(20, "samples")
    ),
    "reduced moved": lambda kernel: ReducedKernelDL(
        kernel,
        8,
        n_nonzero_coefs=3,
        anchors=Anchors(12, "samples", descent=True),
        max_iter=2,
    ),
}


def samples(rng: np.random.Generator, dtype: Any, n: int = 150) -> np.ndarray:
    """Non-negative samples of some structure, so that every kernel takes them."""
    codes = rng.random((n, 20)) * (rng.random((n, 20)) < 0.2)
    return (codes @ rng.random((20, 12)) + 0.1 * rng.random((n, 12))).astype(dtype)


def fitted(model: Any, X: np.ndarray, y: np.ndarray | None = None) -> Any:
    names = [name for name in model.get_params() if name.endswith("random_state")]
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        return model.set_params(**dict.fromkeys(names, 0)).fit(X, y)


def exponents(dtype: Any, degree: float) -> list[int]:
    """Those for which κ stays as far from the ends of the range as samples may."""
    return [round(e / max(1.0, degree)) for e in EXPONENTS[dtype]]


def test_the_registry_has_no_learner_that_is_forgotten_here():
    linear = {type(model) for model in LINEAR.values()}
    kernel = {type(make("rbf")) for make in KERNEL_LEARNERS.values()}
    budget = {registry.table("learners")["budget"]}  # has steps, which have a length
    assert linear | kernel | budget == set(registry.table("learners").values())


@DTYPES
@pytest.mark.parametrize("name", LINEAR)
def test_linear_learners(name, dtype, rng):
    X, new = samples(rng, dtype), samples(rng, dtype, 20)
    plain = fitted(LINEAR[name], X)
    atoms, codes = plain.components_, plain.transform(new)
    error = np.array(plain.history_["objective"])
    for exponent in EXPONENTS[dtype]:
        unit = dtype(2.0) ** exponent
        scaled = fitted(LINEAR[name], unit * X)
        np.testing.assert_array_equal(scaled.components_, atoms)
        np.testing.assert_array_equal(scaled.transform(unit * new) / unit, codes)
        found = np.array(scaled.history_["objective"]) / 4.0**exponent
        np.testing.assert_array_equal(found, error)


@DTYPES
@pytest.mark.parametrize("kernel", DEGREES)
@pytest.mark.parametrize("name", KERNEL_LEARNERS)
def test_kernel_learners(name, kernel, dtype, rng):
    X, new = samples(rng, dtype, 80), samples(rng, dtype, 20)
    make, degree = KERNEL_LEARNERS[name], DEGREES[kernel]
    codes = fitted(make(kernel), X).transform(new)
    for exponent in exponents(dtype, degree):
        unit = dtype(2.0) ** exponent
        found = fitted(make(kernel), unit * X).transform(unit * new)
        found = found / dtype(2.0 ** (degree * exponent))
        if degree * exponent == round(degree * exponent):
            np.testing.assert_array_equal(found, codes)
        else:  # √2 has digits of its own
            np.testing.assert_allclose(found, codes, rtol=1e-3, atol=1e-3)


CLASSIFIERS = {
    "residual": (ResidualClassifier(KSVD(8, 2)), 1.0),
    "residual kernel": (
        ResidualClassifier(KernelKSVD("poly:2", 8, n_nonzero_coefs=2)),
        2.0,
    ),
    "src": (SRCClassifier(n_nonzero_coefs=5), 1.0),
    "src kernel": (SRCClassifier("poly:2", n_nonzero_coefs=5), 2.0),
    "lkdl": (
        make_pipeline(
            NystroemMap("poly:2", n_landmarks=40), ResidualClassifier(KSVD(8, 2))
        ),
        2.0,
    ),
    "lkdl rbf": (
        make_pipeline(
            NystroemMap("rbf", n_landmarks=40), ResidualClassifier(KSVD(8, 2))
        ),
        0.0,
    ),
}


def residuals(model: Any, X: np.ndarray) -> np.ndarray:
    if isinstance(model, Pipeline):
        return model[-1].residuals(model[:-1].transform(X))
    return model.residuals(X)


@DTYPES
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifiers(name, dtype, rng):
    """Residuals have the unit of the energy; scores are logarithms of their ratios."""
    X, y, new = samples(rng, dtype), rng.integers(3, size=150), samples(rng, dtype, 20)
    model, degree = CLASSIFIERS[name]
    fitted(model, X, y)
    scores, energies = model.decision_function(new), residuals(model, new)
    for exponent in exponents(dtype, degree):
        unit = dtype(2.0) ** exponent
        fitted(model, unit * X, y)
        np.testing.assert_array_equal(model.decision_function(unit * new), scores)
        found = residuals(model, unit * new) / 4.0 ** (degree * exponent)
        np.testing.assert_array_equal(found, energies)


@DTYPES
@pytest.mark.parametrize("dictionary", ["orthogonal", "fisher"])
def test_ksad_behind_unit_norm(dictionary, dtype, rng):
    """Rows of unit norm are the same in every unit, so all that follows is."""
    X, y = samples(rng, dtype), np.arange(150) % 2
    model = make_pipeline(UnitNorm(), KSADClassifier(dictionary=dictionary))
    plain = fitted(model, X, y).predict(X)
    for exponent in (-100, 100):  # UnitNorm divides by the largest entry first
        unit = dtype(2.0) ** exponent
        found = fitted(model, unit * X, y).predict(unit * X)
        np.testing.assert_array_equal(found, plain)


@DTYPES
def test_outlier_detector(dtype, rng):
    """Features are standardised, so that even the ends of the range will do."""
    X = samples(rng, dtype)
    X[:, 3] = 7  # constant: only shifted
    scores = fitted(DictionaryOutlierDetector(), X).decision_scores_
    for exponent in (-100, 100):
        unit = dtype(2.0) ** exponent
        found = fitted(DictionaryOutlierDetector(), unit * X).decision_scores_
        np.testing.assert_array_equal(found, scores)
