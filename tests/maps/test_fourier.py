"""Random Fourier features: spectral measures, ways to draw, how the error falls."""

from __future__ import annotations

from math import cos, pi, sin, sqrt

import numpy as np
import pytest
from scipy import sparse, stats

from kernlets import RBF, FourierMap, Laplacian, Matern, Polynomial, RationalQuadratic
from kernlets.metrics import kernel_error

KERNELS = [
    RBF(sigma=1.7),
    RBF(gamma=0.3),
    Laplacian(gamma=0.2),
    Matern(length_scale=2.0, nu=0.5),
    Matern(length_scale=2.0, nu=1.5),
    Matern(length_scale=2.0, nu=2.5),
    RationalQuadratic(length_scale=1.5, alpha=0.7),
]
SAMPLINGS = ["plain", "orthogonal", "quasi"]


@pytest.fixture
def X(rng) -> np.ndarray:
    return rng.standard_normal((60, 5))


def mean_error(X, n_seeds=10, kernel=None, **params) -> float:
    """Root mean square of the Frobenius error over seeds."""
    kernel = kernel or RBF(sigma=1.5)
    maps = (FourierMap(kernel, random_state=s, **params) for s in range(n_seeds))
    errors = [kernel_error(each.fit(X), X).frobenius for each in maps]
    return float(np.sqrt(np.mean(np.square(errors))))


@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_inner_products_tend_to_the_kernel(X, kernel, sampling):
    if sampling == "orthogonal" and isinstance(kernel, Laplacian):
        pytest.skip("refused, see below")
    F = FourierMap(kernel, 20_000, sampling=sampling, random_state=0).fit_transform(X)
    # each product is a mean of 10 000 cosines, of standard deviation at most 0.71
    np.testing.assert_allclose(F @ F.T, kernel(X, X), atol=5 * 0.71 / sqrt(10_000))


def test_features_are_those_of_algorithm_2(X):
    fitted = FourierMap(RBF(sigma=1.5), 6, random_state=0).fit(X)
    omega = fitted.frequencies_
    assert omega.shape == (3, 5)
    for x, features in zip(X, fitted.transform(X), strict=True):
        angles = [sum(w[j] * x[j] for j in range(5)) for w in omega]
        naive = [cos(a) for a in angles] + [sin(a) for a in angles]
        np.testing.assert_allclose(features, sqrt(2 / 6) * np.array(naive))


@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_even_features_have_length_one(X, sampling):
    F = FourierMap(RBF(sigma=0.1), 34, sampling=sampling, random_state=0).fit_transform(
        X
    )
    np.testing.assert_allclose((F**2).sum(1), 1)


@pytest.mark.parametrize("k", [1, 3])
def test_odd_numbers_of_features_are_unbiased(X, k):
    kernel, X = RBF(sigma=1.5), X[:8]
    maps = (FourierMap(kernel, k, random_state=seed) for seed in range(1000))
    products = np.array([F @ F.T for F in (each.fit_transform(X) for each in maps)])
    spread = products.std(axis=0) / sqrt(len(products))
    assert (np.abs(products.mean(axis=0) - kernel(X, X)) < 5 * spread).all()


@pytest.mark.parametrize("kernel", [RBF(sigma=1.5), Laplacian(gamma=0.2)], ids=repr)
def test_error_halves_with_four_times_the_features(X, kernel):
    errors = [mean_error(X, 20, kernel, n_components=k) for k in (64, 256, 1024)]
    ratios = np.array(errors[:-1]) / errors[1:]
    np.testing.assert_allclose(ratios, 2, rtol=0.15)


@pytest.mark.parametrize(("k", "factor"), [(16, 1.0), (32, 0.95), (64, 0.8)])
def test_orthogonal_is_below_plain(rng, k, factor):
    """The more so the more of the 32 directions are used."""
    X = rng.standard_normal((100, 32)) / sqrt(32)
    plain, orthogonal = (
        mean_error(X, 40, kernel=RBF(sigma=1.0), n_components=k, sampling=s)
        for s in ("plain", "orthogonal")
    )
    assert orthogonal < factor * plain


def test_quasi_is_below_plain_in_few_dimensions(X):
    plain, quasi = (
        mean_error(X[:, :3], n_components=256, sampling=s) for s in ("plain", "quasi")
    )
    assert quasi < 0.6 * plain


def test_orthogonal_frequencies(X):
    fitted = FourierMap(RBF(sigma=1.5), 26, sampling="orthogonal", random_state=0).fit(
        X
    )
    omega = fitted.frequencies_  # 13 = 5 + 5 + 3
    for group in (omega[:5], omega[5:10], omega[10:]):
        products = group @ group.T
        np.testing.assert_allclose(products, np.diag(np.diag(products)), atol=1e-12)


@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_each_frequency_of_rbf_is_normal(sampling):
    X = np.zeros((1, 4))
    omega = [
        FourierMap(RBF(sigma=0.5), 8, sampling=sampling, random_state=s)
        .fit(X)
        .frequencies_[-1]
        for s in range(800)
    ]
    values = np.concatenate(omega) * 0.5
    assert stats.kstest(values, "norm").pvalue > 1e-3
    lengths = np.linalg.norm(omega, axis=1) * 0.5
    assert stats.kstest(lengths, "chi", args=(4,)).pvalue > 1e-3


def test_bandwidth_left_open_is_set_from_the_data(X):
    fitted = FourierMap("rbf", random_state=0).fit(7 * X)
    assert fitted.kernel_.gamma == pytest.approx(1 / (5 * (7 * X).var()))


def test_sparse_rows(X):
    fitted = FourierMap("rbf", 10, random_state=0).fit(X)
    found = fitted.transform(sparse.csr_array(X))
    np.testing.assert_allclose(found, fitted.transform(X))


def test_float32_and_float64_have_the_same_frequencies(X):
    both = [FourierMap("rbf:1", 10, random_state=0).fit(A) for A in (X, np.float32(X))]
    np.testing.assert_allclose(both[0].frequencies_, both[1].frequencies_, rtol=1e-6)


def test_phase_is_on_the_circle(X):
    phases = [FourierMap(random_state=s).fit(X).phase_ for s in range(50)]
    assert 0 <= min(phases) < 1 and 5 < max(phases) < 2 * pi


def test_kernels_without_a_spectral_measure_are_refused(X):
    with pytest.raises(ValueError, match=r"Polynomial.*NystroemMap"):
        FourierMap(Polynomial(2)).fit(X)
    with pytest.raises(ValueError, match=r"orthogonal.*Laplacian"):
        FourierMap("laplacian", sampling="orthogonal").fit(X)


def test_bad_parameters_are_refused(X):
    with pytest.raises(ValueError, match="length_scale"):
        FourierMap(Matern(length_scale=-1.0)).fit(X)
    with pytest.raises(ValueError, match="sampling"):
        FourierMap(sampling="halton").fit(X)
    with pytest.raises(ValueError, match="at most"):
        FourierMap(sampling="quasi", n_components=2).fit(np.ones((2, 30_000)))


def test_numbers_of_frequencies_may_be_those_of_numpy(rng):
    X = rng.standard_normal((20, 3))
    how = {"kernel": "laplacian:1", "sampling": "quasi", "random_state": 0}
    found = FourierMap(**how, n_components=np.int64(10)).fit_transform(X)
    np.testing.assert_array_equal(
        found, FourierMap(**how, n_components=10).fit_transform(X)
    )
