"""What every classifier promises, for everything registered."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError

from kernlets.classifiers import CLASSIFIERS

from .models import INSTANCES, N, labels, samples

NAMES = [name for name, model in INSTANCES.items() if is_classifier(model)]


def test_every_classifier_is_tested():
    assert {type(INSTANCES[name]) for name in NAMES} == set(CLASSIFIERS.values())


@pytest.fixture(params=NAMES)
def model(request):
    return clone(INSTANCES[request.param])


@pytest.fixture
def X():
    return samples().astype(float)


def test_predictions_are_labels(model, X):
    model.fit(X, labels())
    np.testing.assert_array_equal(model.classes_, [0, 1, 2])
    predicted = model.predict(X[:7])
    assert predicted.shape == (7,) and np.isin(predicted, model.classes_).all()


def test_it_learns_the_training_samples(model, X):
    """Guessing would give a third."""
    assert model.fit(X, labels()).score(X, labels()) > 0.5


def test_score_is_the_share_of_right_predictions(model, X):
    model.fit(X, labels())
    share = (model.predict(X) == labels()).mean()
    np.testing.assert_allclose(model.score(X, labels()), share)


def test_probabilities(model, X):
    model.fit(X, labels())
    if not hasattr(model, "predict_proba"):
        pytest.skip("it has no probabilities")
    shares = model.predict_proba(X)
    assert shares.shape == (N, 3) and (shares >= 0).all()
    np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-12)
    largest = shares.max(axis=1)
    chosen = shares[np.arange(N), model.predict(X)]
    np.testing.assert_array_equal(chosen, largest)


def test_scores_and_residuals_agree_with_predictions(model, X):
    model.fit(X, labels())
    if hasattr(model, "decision_function"):
        best = model.decision_function(X).argmax(axis=1)
        np.testing.assert_array_equal(best, model.predict(X))
    if hasattr(model, "residuals"):
        residuals = model.residuals(X)
        assert residuals.shape == (N, 3) and (residuals > -1e-9).all()
        np.testing.assert_array_equal(residuals.argmin(axis=1), model.predict(X))


def test_two_classes_have_one_score(model, X):
    two = labels() < 2
    model.fit(X[two], labels()[two])
    if not hasattr(model, "decision_function"):
        pytest.skip("it has no scores")
    scores = model.decision_function(X[two])
    assert scores.shape == (two.sum(),)
    np.testing.assert_array_equal(scores > 0, model.predict(X[two]) == 1)


def test_float32_is_kept(model, X):
    model.fit(X.astype(np.float32), labels())
    for method in ("predict_proba", "decision_function", "residuals"):
        if hasattr(model, method):
            found = getattr(model, method)(X.astype(np.float32))
            assert found.dtype == np.float32, method


def test_it_must_be_fitted_first(model, X):
    with pytest.raises(NotFittedError):
        model.predict(X)
