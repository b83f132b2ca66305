"""What every feature map promises, on every array library and source of rows."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from kernlets import RBF, NystroemMap, Polynomial, options
from kernlets.landmarks import SAMPLERS
from kernlets.maps import MAPS
from kernlets.metrics import kernel_error

KERNEL = RBF(sigma=2.0)
INSTANCES = [
    *(NystroemMap(KERNEL, name, n_landmarks=40, random_state=0) for name in SAMPLERS),
    NystroemMap(KERNEL, "uniform", n_landmarks=0.5, n_components=10, random_state=0),
    NystroemMap(
        Polynomial(2), "uniform", n_landmarks=40, n_components=0.9, random_state=0
    ),
    NystroemMap(
        KERNEL,
        "uniform",
        n_landmarks=40,
        n_components=10,
        truncation="samples",
        random_state=0,
    ),
    *(
        kind(random_state=0)
        for name, kind in MAPS.items()
        if name not in ("nystroem", "sketch")
    ),
    MAPS["sketch"](Polynomial(2), random_state=0),
]


@pytest.fixture(params=INSTANCES, ids=lambda m: repr(m).replace("\n", ""))
def feature_map(request):
    return clone(request.param)


@pytest.fixture
def X(rng):
    return rng.standard_normal((100, 5))


def products(F):
    return F @ F.T


def test_every_map_is_tested():
    assert {type(instance) for instance in INSTANCES} == set(MAPS.values())


@parametrize_with_checks(
    [
        *(NystroemMap(landmarks=name, n_landmarks=0.5) for name in SAMPLERS),
        NystroemMap(truncation="samples"),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_inner_products_approximate_the_kernel(feature_map, X):
    feature_map.fit(X)
    error = kernel_error(feature_map, X)
    nothing = kernel_error(np.zeros((len(X), 1)), X, feature_map.kernel_)
    assert nothing.frobenius == pytest.approx(1)
    assert error.frobenius < 0.5


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_arrays_of_every_library(feature_map, xp, X, dtype):
    X = X.astype(dtype)
    expected = feature_map.fit(X).transform(X)
    A = xp.asarray(X)
    found = feature_map.fit(A).transform(A)
    assert type(found) is type(A)
    found = xp.to_numpy(found)
    assert found.dtype == dtype == expected.dtype
    tolerance = 1e-8 if dtype == np.float64 else 2e-4
    scale = np.abs(products(expected)).max()
    np.testing.assert_allclose(
        products(found), products(expected), atol=tolerance * scale
    )


def test_float32_is_close_to_float64(feature_map, X):
    wide = feature_map.fit(X).transform(X)
    narrow = feature_map.fit(X.astype(np.float32)).transform(X.astype(np.float32))
    scale = np.abs(products(wide)).max()
    np.testing.assert_allclose(products(narrow), products(wide), atol=1e-3 * scale)


def test_memory_map(feature_map, X, tmp_path):
    X.tofile(tmp_path / "X")
    disk = np.memmap(tmp_path / "X", X.dtype, "r", shape=X.shape)
    expected = feature_map.fit(X).transform(X)
    np.testing.assert_allclose(
        feature_map.fit(disk).transform(disk), expected, atol=1e-12
    )


def test_blocks(feature_map, X):
    feature_map.fit(X)
    parts = list(feature_map.transform(iter([X[:30], X[30:31], X[31:]])))
    assert [len(part) for part in parts] == [30, 1, 69]
    np.testing.assert_allclose(np.vstack(parts), feature_map.transform(X), atol=1e-12)


@pytest.mark.parametrize("once", [iter, list])
def test_fit_on_blocks(feature_map, X, once):
    if getattr(feature_map, "truncation", None) == "samples" and once is iter:
        pytest.skip("reads its samples twice, which an iterator does not allow")
    feature_map.fit(once([X[:30], X[30:31], X[31:]]))
    assert feature_map.n_features_in_ == 5
    assert kernel_error(feature_map, X).frobenius < 0.5


@pytest.mark.rounding
def test_result_does_not_depend_on_threads_or_blocks(feature_map, X):
    results = []
    for settings in ({"n_threads": 1}, {"n_threads": 3}, {"block_rows": 7}):
        with options(**settings):
            results.append(feature_map.fit(X).transform(X))
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_allclose(
        products(results[0]), products(results[2]), atol=1e-7 * np.abs(results[0]).max()
    )
