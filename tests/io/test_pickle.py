"""Estimators survive pickle, joblib and skops: the same answers, bit by bit."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from kernlets import (
    KSVD,
    RBF,
    DictionaryOutlierDetector,
    KernelKSVD,
    NystroemMap,
    Polynomial,
    ResidualClassifier,
    registry,
)

KINDS = ("maps", "learners", "classifiers")
METHODS = ("transform", "predict", "predict_proba", "decision_function")


def _pickled(protocol: int) -> Callable[[Any], Any]:
    return lambda model: pickle.loads(pickle.dumps(model, protocol=protocol))


def _through_joblib(model: Any) -> Any:
    file = io.BytesIO()
    joblib.dump(model, file)
    file.seek(0)
    return joblib.load(file)


def _through_skops(model: Any) -> Any:
    skops = pytest.importorskip("skops.io")
    data = skops.dumps(model)
    foreign = skops.get_untrusted_types(data=data)
    assert all(name.startswith("kernlets.") for name in foreign)
    return skops.loads(data, trusted=foreign)


ROUTES: dict[str, Callable[[Any], Any]] = {
    "pickle 2": _pickled(2),
    "pickle": _pickled(pickle.HIGHEST_PROTOCOL),
    "deepcopy": copy.deepcopy,
    "joblib": _through_joblib,
    "skops": _through_skops,
}


def _models() -> dict[str, BaseEstimator]:
    """Every registered estimator with its defaults, and some combined ones."""
    found = {name: Class() for kind in KINDS for name, Class in _table(kind)}
    composite = Polynomial(2) + 0.5 * RBF(2.0)
    found |= {
        "outliers": DictionaryOutlierDetector(),
        "composite kernel": KernelKSVD(composite * RBF(3.0), 6, n_nonzero_coefs=2),
        "precomputed": KernelKSVD("precomputed", 6, n_nonzero_coefs=2),
        "pipeline": make_pipeline(
            Normalizer(),
            NystroemMap(composite, n_landmarks=30, random_state=0),
            ResidualClassifier(KSVD(8, 2, update="ksvd-parallel")),
        ),
    }
    return found


def _table(kind: str) -> list[tuple[str, Any]]:
    return list(registry.table(kind).items())


MODELS = _models()


@pytest.fixture(scope="module")
def rows() -> tuple[np.ndarray, np.ndarray]:
    """Two classes of 60 samples, labels as text."""
    rng = np.random.default_rng(0)
    X = rng.random((120, 12))
    X[:60, :4] += 0.7
    return X, np.repeat(["cat", "dog"], 60)


@pytest.fixture(scope="module", params=MODELS)
def fitted(request: Any, rows: tuple[np.ndarray, np.ndarray]) -> tuple[Any, Any]:
    """A fitted model and the samples it knows."""
    X, y = rows
    model = clone(MODELS[request.param])
    for name in model.get_params():
        if name == "random_state" or name.endswith("__random_state"):
            model.set_params(**{name: 0})
    X = X @ X.T if request.param == "precomputed" else X
    return model.fit(X, y), X


def same_answers(first: Any, second: Any, X: Any) -> None:
    methods = [method for method in METHODS if hasattr(first, method)]
    assert len(methods) > 0
    for method in methods:
        assert_array_equal(getattr(second, method)(X), getattr(first, method)(X))


@pytest.mark.parametrize("route", ROUTES)
def test_the_same_answers_afterwards(fitted: tuple[Any, Any], route: str) -> None:
    model, X = fitted
    again = ROUTES[route](model)
    assert type(again) is type(model)
    assert repr(again) == repr(model)
    assert vars(again).keys() == vars(model).keys()
    same_answers(model, again, X)


def test_they_can_be_fitted_again(
    fitted: tuple[Any, Any], rows: tuple[np.ndarray, np.ndarray]
) -> None:
    model, X = fitted
    again = _pickled(pickle.HIGHEST_PROTOCOL)(model)
    same_answers(model, again.fit(X, rows[1]), X)


def test_arrays_may_stay_on_disk(fitted: tuple[Any, Any], tmp_path: Path) -> None:
    """joblib's memory maps are read-only."""
    model, X = fitted
    joblib.dump(model, tmp_path / "model.joblib")
    same_answers(model, joblib.load(tmp_path / "model.joblib", mmap_mode="r"), X)


@pytest.mark.parametrize("route", [route for route in ROUTES if route != "skops"])
def test_tensors_stay_tensors(rows: tuple[np.ndarray, np.ndarray], route: str) -> None:
    torch = pytest.importorskip("torch")
    X = torch.as_tensor(rows[0])
    model = KernelKSVD("poly:2", 6, n_nonzero_coefs=2, random_state=0).fit(X)
    again = ROUTES[route](model)
    assert isinstance(again.coefs_, torch.Tensor)
    same_answers(model, again, X)
