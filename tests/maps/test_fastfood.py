"""Fastfood: the product of matrices that it stands for, and its law for any size."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest
from scipy import stats
from scipy.linalg import hadamard

from kernlets import RBF, FastfoodMap, FourierMap, Matern, RationalQuadratic
from kernlets.metrics import kernel_error


def explicit_frequencies(fitted, p) -> np.ndarray:  # (⌈k/2⌉, p)
    """V by products of full matrices, cut to the features there are."""
    d = fitted.diagonals_.shape[2]
    H, blocks = hadamard(d).astype(float), []
    for block, diagonals in enumerate(fitted.diagonals_):
        V = H @ np.diag(diagonals[0])
        if fitted.orders_ is not None:
            V = np.eye(d)[fitted.orders_[block]] @ V
        for diagonal in diagonals[1:]:
            V = H @ np.diag(diagonal) @ V
        blocks.append(V)
    V = np.concatenate(blocks)[: len(fitted.lengths_)]
    return fitted.lengths_[:, None] * V[:, :p]


@pytest.mark.parametrize("gains", ["signs", "normal"])
@pytest.mark.parametrize("p", [1, 2, 3, 7, 8, 9, 70])
@pytest.mark.parametrize("k", [1, 2, 5, 16, 170])
def test_map_is_the_product_of_matrices(rng, p, k, gains):
    X = rng.standard_normal((4, p))
    fitted = FastfoodMap(RBF(sigma=1.3), k, gains=gains, random_state=1).fit(X)
    angles = X @ explicit_frequencies(fitted, p).T
    if k % 2:
        angles[:, -1] += fitted.phase_
    naive = np.hstack([np.cos(angles), np.sin(angles)])[:, :k]
    np.testing.assert_allclose(fitted.transform(X), sqrt(2 / k) * naive, atol=1e-12)


@pytest.mark.parametrize("p", [3, 8])
def test_each_frequency_is_normal_with_normal_gains(p):
    """Also where the rows are padded to a power of two."""
    omega = []
    for seed in range(500):
        fitted = FastfoodMap(RBF(sigma=0.5), 10, gains="normal", random_state=seed)
        fitted.fit(np.ones((1, p)))
        omega.append(explicit_frequencies(fitted, p)[seed % 5] * 0.5)
    assert stats.kstest(np.concatenate(omega), "norm").pvalue > 1e-3
    lengths = np.linalg.norm(omega, axis=1)
    assert stats.kstest(lengths, "chi", args=(p,)).pvalue > 1e-3
    covariance = np.cov(np.transpose(omega))
    np.testing.assert_allclose(covariance, np.eye(p), atol=5 * sqrt(2 / 500))


@pytest.mark.parametrize("p", [1, 64, 100])
def test_one_coordinate_of_all_frequencies_is_normal_with_signs(p):
    """Sums of signs have steps; mixed three times they are no longer to be seen."""
    fitted = FastfoodMap(RBF(sigma=0.5), 4000, random_state=0).fit(np.ones((1, p)))
    values = explicit_frequencies(fitted, p)[:, -1] * 0.5
    assert stats.kstest(values, "norm").pvalue > 1e-3


def test_lengths_are_those_of_gaussian_vectors_and_rows_orthogonal(rng):
    fitted = FastfoodMap(RBF(sigma=0.5), 512, random_state=0)
    V = explicit_frequencies(fitted.fit(np.ones((1, 256))), 256) * 0.5
    lengths = np.linalg.norm(V, axis=1)
    assert stats.kstest(lengths, "chi", args=(256,)).pvalue > 1e-3
    np.testing.assert_allclose(V @ V.T, np.diag(lengths**2), atol=1e-10)


@pytest.mark.parametrize(
    "kernel",
    [RBF(sigma=1.5), Matern(2.0, nu=1.5), RationalQuadratic(1.5, alpha=0.7)],
    ids=repr,
)
@pytest.mark.parametrize("p", [4, 5])
def test_products_are_unbiased_with_normal_gains(rng, kernel, p):
    X = rng.standard_normal((6, p))
    maps = (FastfoodMap(kernel, 16, gains="normal", random_state=s) for s in range(800))
    products = np.array([F @ F.T for F in (each.fit_transform(X) for each in maps)])
    spread = products.std(axis=0) / sqrt(len(products))
    gap = np.abs(products.mean(axis=0) - kernel(X, X))
    assert (gap <= 5 * spread + 1e-12).all()


@pytest.mark.parametrize("p", [1, 3, 64])
def test_bias_with_signs_is_small(rng, p):
    X = rng.standard_normal((6, p)) / sqrt(p)
    X[:, 0] = np.linspace(0, 30, 6)  # rows that are far apart on one axis
    F = FastfoodMap(RBF(sigma=1.0), 100_000, random_state=0).fit_transform(X)
    np.testing.assert_allclose(F @ F.T, RBF(sigma=1.0)(X, X), atol=0.015)


@pytest.mark.parametrize("p", [5, 20, 64, 100])
@pytest.mark.parametrize("k", [32, 512])
def test_error_is_at_most_that_of_fourier_features(rng, p, k):
    """Within 10 % is asked for; with all orthogonal rows in use it is well below."""
    X = rng.standard_normal((100, p)) / sqrt(p)
    errors = {}
    for kind in (FourierMap, FastfoodMap):
        maps = (kind(RBF(sigma=1.0), k, random_state=s).fit(X) for s in range(20))
        errors[kind] = np.mean([kernel_error(each, X).frobenius for each in maps])
    assert errors[FastfoodMap] < (1.1 if k == 32 else 0.9) * errors[FourierMap]


def test_error_halves_with_four_times_the_features(rng):
    X = rng.standard_normal((100, 6))
    errors = []
    for k in (64, 256, 1024):
        maps = (FastfoodMap(RBF(sigma=1.5), k, random_state=s) for s in range(20))
        found = [kernel_error(each.fit(X), X).frobenius for each in maps]
        errors.append(np.sqrt(np.mean(np.square(found))))
    np.testing.assert_allclose(np.array(errors[:-1]) / errors[1:], 2, rtol=0.15)


def test_even_features_have_length_one(rng):
    X = rng.standard_normal((20, 13)).astype(np.float32)
    F = FastfoodMap(RBF(sigma=0.2), 50, random_state=0).fit_transform(X)
    np.testing.assert_allclose((F**2).sum(1), 1, rtol=1e-5)


def test_kernels_that_are_not_radial_are_refused(rng):
    for kernel in ("laplacian", "poly:2"):
        with pytest.raises(ValueError, match="NystroemMap"):
            FastfoodMap(kernel).fit(rng.standard_normal((5, 3)))
