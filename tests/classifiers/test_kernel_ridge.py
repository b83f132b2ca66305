"""Kernel ridge regression of class indicators, beside solving it row by row."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.kernel_ridge import KernelRidge

from kernlets import RBF, KernelRidgeClassifier, Sigmoid, datasets, load, options, save
from kernlets.classifiers import kernel_ridge
from kernlets.classifiers.kernel_ridge import leave_one_out


@pytest.fixture(scope="module")
def digits():
    return datasets.load("digits")


@pytest.fixture
def rows(rng):
    y = np.arange(60) % 3
    return rng.standard_normal((60, 4)) + 1.5 * np.eye(3, 4)[y], y


def test_scores_are_those_of_ridge_regression(rows):
    X, y = rows
    model = KernelRidgeClassifier(RBF(gamma=0.3), alpha=0.5).fit(X, y)
    Y = np.eye(3)[y]
    ridge = KernelRidge(kernel="rbf", gamma=0.3, alpha=0.5).fit(X, Y - Y.mean(axis=0))
    new = X[:7] + 0.1
    expected = ridge.predict(new) + Y.mean(axis=0)
    np.testing.assert_allclose(model.decision_function(new), expected)
    np.testing.assert_allclose(model.prior_, Y.mean(axis=0))


@pytest.mark.parametrize("alpha", [0.01, 1.0])
def test_leave_one_out_scores_are_those_of_models_without_the_row(rows, alpha):
    X, y = rows
    Y = np.eye(3)[y] - 1 / 3
    result = leave_one_out(RBF(gamma=0.3), X, np.arange(60), Y, alpha)
    for row in (0, 17, 59):
        others = np.arange(60) != row
        ridge = KernelRidge(kernel="rbf", gamma=0.3, alpha=alpha)
        expected = ridge.fit(X[others], Y[others]).predict(X[[row]])
        np.testing.assert_allclose(result.scores[[row]], expected, atol=1e-10)
    assert result.error == pytest.approx(np.mean((Y - result.scores) ** 2))


def test_the_penalty_has_the_least_leave_one_out_error(rows):
    X, y = rows
    model = KernelRidgeClassifier(RBF(gamma=0.3)).fit(X, y)
    for factor in (10**-0.5, 10**0.5):
        other = KernelRidgeClassifier(RBF(gamma=0.3), alpha=model.alpha_ * factor)
        assert other.fit(X, y).loo_error_ >= model.loo_error_
    wide = KernelRidgeClassifier().fit(X, y)
    assert wide.loo_error_ <= KernelRidgeClassifier(RBF(gamma=1e3)).fit(X, y).loo_error_


def test_landmarks_that_are_all_rows_give_the_exact_scores(rows, monkeypatch):
    X, y = rows
    exact = KernelRidgeClassifier("rbf:1", alpha=0.1).fit(X, y)
    C, Y = RBF(sigma=1.0)(X, X), np.eye(3)[y] - 1 / 3
    CtC, CtY = kernel_ridge._normal_equations(RBF(sigma=1.0), X, X, Y)
    coefs = np.linalg.solve(CtC + 0.1 * C, CtY)
    np.testing.assert_allclose(coefs, exact.coefs_, atol=1e-8)


def test_landmarks_are_nearly_as_good(digits):
    X, y, X_test, y_test = (
        digits.X_train,
        digits.y_train,
        digits.X_test,
        digits.y_test,
    )
    exact = KernelRidgeClassifier().fit(X, y)
    few = KernelRidgeClassifier(n_landmarks=300, random_state=0).fit(X, y)
    assert few.anchors_.shape == (300, 64)
    assert few.score(X_test, y_test) > exact.score(X_test, y_test) - 0.02


def test_little_memory_means_fewer_anchors(digits):
    with options(memory="1MB"):
        model = KernelRidgeClassifier(random_state=0).fit(
            digits.X_train, digits.y_train
        )
    assert len(model.anchors_) < 210
    assert model.score(digits.X_test, digits.y_test) > 0.9


def test_penalty_and_width_are_chosen_on_a_sample(digits, monkeypatch):
    monkeypatch.setattr(kernel_ridge, "SEARCHED", 200)
    model = KernelRidgeClassifier(random_state=0).fit(digits.X_train, digits.y_train)
    assert len(model.anchors_) == len(digits.X_train)
    assert model.score(digits.X_test, digits.y_test) > 0.97


def test_probabilities_say_how_often_the_label_is_right(digits):
    model = KernelRidgeClassifier().fit(digits.X_train, digits.y_train)
    confidence = model.predict_proba(digits.X_test).max(axis=1).mean()
    assert abs(confidence - model.score(digits.X_test, digits.y_test)) < 0.03


def test_files(digits, tmp_path):
    model = KernelRidgeClassifier().fit(digits.X_train[:99], digits.y_train[:99])
    save(model, tmp_path / "ridge.kernlets")
    loaded = load(tmp_path / "ridge.kernlets")
    expected = model.predict_proba(digits.X_test)
    np.testing.assert_array_equal(loaded.predict_proba(digits.X_test), expected)


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly:2,coef0=1", "sigmoid"])
@pytest.mark.parametrize("n_landmarks", [None, 66])
def test_float32_has_the_scores_of_float64(kernel, n_landmarks, rng):
    """Rounding errors make the smallest eigenvalues of K negative."""
    X = np.round(rng.standard_normal((200, 3)), 2)[rng.integers(0, 120, 200)]
    y = (X[:, 0] + X[:, 1] ** 2 + rng.standard_normal(200) > 1).astype(int)
    double = KernelRidgeClassifier(kernel, n_landmarks=n_landmarks, random_state=0)
    single = clone(double).fit(X.astype(np.float32), y)
    found = single.decision_function(X.astype(np.float32))
    expected = double.fit(X, y).decision_function(X)
    np.testing.assert_allclose(found, expected, atol=0.01 * np.abs(expected).max())


def test_kernels_that_are_not_definite(rng):
    X, y = rng.standard_normal((60, 3)), np.arange(60) % 2
    distances = np.linalg.norm(X[:, None] - X, axis=2)
    with pytest.raises(ValueError, match="not positive semi-definite"):
        KernelRidgeClassifier("precomputed").fit(-distances, y)
    with pytest.raises(ValueError, match="not symmetric"):
        KernelRidgeClassifier("precomputed").fit(np.abs(X @ rng.random((3, 60))), y)
    indefinite = Sigmoid(scale=5.0, coef0=-3.0)
    model = KernelRidgeClassifier(indefinite).fit(X, y)
    lowest = float(np.linalg.eigvalsh(model.kernel_(X))[0])
    assert lowest < -0.1 and model.alpha_ > -lowest
    with pytest.raises(ValueError, match=r"alpha=0\.001 is too small.*Set alpha to"):
        KernelRidgeClassifier(indefinite, alpha=0.001).fit(X, y)
