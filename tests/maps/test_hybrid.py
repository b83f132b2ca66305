"""Hybrid map: unbiased like random features, as good as Nyström where that is good."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest

import kernlets
from kernlets import RBF, FourierMap, HybridMap, Laplacian, NystroemMap
from kernlets.metrics import kernel_error

KERNEL = RBF(sigma=2.0)


@pytest.fixture
def X(rng) -> np.ndarray:
    return rng.standard_normal((200, 4))


def residual(X, Z, k=None):
    """κ(x, y) − k(x) W_k⁺ k(y), from the definition."""
    values, vectors = np.linalg.eigh(KERNEL(Z, Z))
    lead = slice(0 if k is None else len(Z) - k, None)
    inverse = vectors[:, lead] / values[lead] @ vectors[:, lead].T
    C = KERNEL(X, Z)
    return KERNEL(X, X) - C @ inverse @ C.T


@pytest.mark.parametrize("k", [None, 3])
def test_second_part_has_the_residual_kernel_as_its_mean(rng, k):
    X, Z = rng.standard_normal((10, 4)), rng.standard_normal((6, 4))
    products = []
    for seed in range(600):
        fitted = HybridMap(
            KERNEL, Z, n_landmarks=None, n_components=k, n_random=4, random_state=seed
        ).fit(X)
        tail = fitted.transform(X)[:, k or 6 :]
        products.append(tail @ tail.T)
    spread = np.std(products, axis=0) / sqrt(len(products))
    gap = np.abs(np.mean(products, axis=0) - residual(X, Z, k))
    assert (gap <= 5 * spread + 1e-12).all()


def test_first_part_is_nystroem(X):
    fitted = HybridMap(KERNEL, n_landmarks=20, n_random=30, random_state=0).fit(X)
    nystroem = NystroemMap(KERNEL, fitted.landmark_indices_).fit(X)
    F = fitted.transform(X)
    k = len(fitted.eigenvalues_)
    assert F.shape == (200, k + 30)
    np.testing.assert_allclose(
        F[:, :k] @ F[:, :k].T, nystroem.transform(X) @ nystroem.transform(X).T
    )
    np.testing.assert_array_equal(fitted.landmarks_, X[fitted.landmark_indices_])


def test_landmarks_have_no_random_part(X):
    fitted = HybridMap(KERNEL, X[:15], n_random=30, random_state=0).fit(X)
    F = fitted.transform(X[:15])
    np.testing.assert_allclose(F[:, -30:], 0, atol=1e-6)
    np.testing.assert_allclose(F @ F.T, KERNEL(X[:15], X[:15]), atol=1e-10)


@pytest.mark.parametrize("kernel", [KERNEL, Laplacian(gamma=0.1)], ids=repr)
def test_better_than_fourier_features_of_equal_number(rng, kernel):
    X, new = rng.standard_normal((2, 300, 4))
    hybrid, fourier = [], []
    for seed in range(5):
        half = HybridMap(kernel, n_landmarks=50, n_random=50, random_state=seed)
        full = FourierMap(kernel, 100, random_state=seed)
        hybrid.append(kernel_error(half.fit(X), new).frobenius)
        fourier.append(kernel_error(full.fit(X), new).frobenius)
    assert np.mean(hybrid) < 0.7 * np.mean(fourier)


def test_better_than_both_where_landmarks_are_few(rng):
    X, new = rng.standard_normal((2, 300, 3))
    new += 3.0  # at the rim of the landmarks
    errors = {}
    for name, make in {
        "hybrid": lambda s: HybridMap(
            KERNEL, n_landmarks=100, n_random=100, random_state=s
        ),
        "nystroem": lambda s: NystroemMap(KERNEL, n_landmarks=200, random_state=s),
        "fourier": lambda s: FourierMap(KERNEL, 200, random_state=s),
    }.items():
        found = [kernel_error(make(s).fit(X), new) for s in range(6)]
        errors[name] = np.mean([e.frobenius for e in found])
    assert errors["hybrid"] < 0.5 * errors["nystroem"]
    assert errors["hybrid"] < errors["fourier"]


def test_saved_and_loaded(X, tmp_path):
    fitted = HybridMap(KERNEL, n_landmarks=9, n_random=5, random_state=0).fit(X)
    kernlets.save(fitted, tmp_path / "map")
    again = kernlets.load(tmp_path / "map")
    np.testing.assert_array_equal(again.transform(X), fitted.transform(X))


def test_kernels_without_frequencies_are_refused(X):
    with pytest.raises(ValueError, match="NystroemMap"):
        HybridMap("poly:2").fit(X)
