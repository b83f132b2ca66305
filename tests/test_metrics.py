"""`kernel_error` against the whole matrices, and its standard errors."""

from __future__ import annotations

import numpy as np
import pytest

from kernlets import RBF, NystroemMap, Polynomial
from kernlets.metrics import kernel_error


@pytest.fixture
def X(rng):
    return rng.standard_normal((300, 5))


def direct(K, F):
    frobenius = np.linalg.norm(K - F @ F.T) / np.linalg.norm(K)
    return frobenius, 1 - (F**2).sum() / np.trace(K)


@pytest.mark.parametrize("kernel", [RBF(2.0), Polynomial(2)], ids=str)
def test_exact_on_few_rows(kernel, X, xp):
    virtual = NystroemMap(kernel, n_landmarks=12, random_state=0).fit(X)
    expected = direct(kernel(X), virtual.transform(X))
    A = xp.asarray(X)
    for error in (
        kernel_error(virtual.fit(A), A),
        kernel_error(virtual.transform(A), A, kernel),
    ):
        assert (error.frobenius, error.trace) == pytest.approx(expected)
        assert error.frobenius_std == error.trace_std == 0
        assert error.n_rows == 300


def test_precomputed(X):
    K = RBF(1.0)(X)
    virtual = NystroemMap("precomputed", np.arange(20)).fit(K)
    error = kernel_error(virtual, K)
    expected = direct(K, virtual.transform(K))
    assert (error.frobenius, error.trace) == pytest.approx(expected)
    assert kernel_error(virtual, K, n_max=50, random_state=0).n_rows == 50


def test_sampled_errors_are_unbiased_with_honest_standard_errors(X):
    virtual = NystroemMap(RBF(2.0), n_landmarks=12, random_state=0).fit(X)
    exact = kernel_error(virtual, X)
    sampled = [kernel_error(virtual, X, n_max=100, random_state=s) for s in range(60)]
    for name in ("frobenius", "trace"):
        values = np.array([getattr(error, name) for error in sampled])
        stated = np.mean([getattr(error, f"{name}_std") for error in sampled])
        assert abs(values.mean() - getattr(exact, name)) < 3 * values.std() / 60**0.5
        assert 0.6 < stated / values.std() < 1.6


def test_few_rows():
    X = np.array([[1.0, 0.0], [0.0, 2.0]])
    error = kernel_error(X[:, :1], X, "linear")
    assert error.frobenius == pytest.approx(np.sqrt(16 / 17))
    assert error.trace == pytest.approx(4 / 5)
    assert kernel_error(X[:1], X[:1], "linear").frobenius == 0


def test_needs_a_kernel(X):
    with pytest.raises(ValueError, match="kernel is zero"):
        kernel_error(np.zeros((3, 1)), np.zeros((3, 2)), "linear")
    with pytest.raises(ValueError, match="kernel=None"):
        kernel_error(X, X)
