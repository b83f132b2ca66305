"""Pre-images: points whose φ is near a given element of the feature space."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from kernlets import (
    RBF,
    Chi2,
    IKAMap,
    KernelKSVD,
    Laplacian,
    Linear,
    Matern,
    NystroemMap,
    OrthogonalDictionary,
    Polynomial,
    RationalQuadratic,
    datasets,
    options,
)
from kernlets.dictionaries import KernelDictionary
from kernlets.preimage import METHODS, preimages

KERNELS = [
    RBF(sigma=1.5),
    RationalQuadratic(1.2, 0.7),
    Matern(2.0, 2.5),
    Polynomial(2, coef0=1.0),
    Polynomial(3, coef0=0.5, scale=0.7),
    Polynomial(8, coef0=1.0, scale=0.2),
    Linear(),
]
ITERATIVE = ("fixed-point", "gradient")


def applying(method):
    return [kernel for kernel in KERNELS if METHODS[method][0](kernel)]


def cloud(rng, r=60, p=5):
    return np.abs(rng.standard_normal((r, p)))


def true_distance(kernel, anchors, coef, x):
    """‖φ(x) − Σ aᵢφ(zᵢ)‖ with loops over all pairs."""

    def k(a, b):
        return float(kernel(a[None], b[None])[0, 0])

    total = k(x, x) - 2 * sum(a * k(x, z) for a, z in zip(coef, anchors, strict=True))
    total += sum(
        a * b * k(y, z)
        for a, y in zip(coef, anchors, strict=True)
        for b, z in zip(coef, anchors, strict=True)
    )
    return max(total, 0.0) ** 0.5


@pytest.mark.parametrize("kernel", applying("distance"), ids=repr)
def test_distance_recovers_a_point_from_its_own_image(kernel, rng):
    anchors = cloud(rng)
    found = preimages(kernel, anchors, np.eye(60), "distance", n_neighbors=12)
    np.testing.assert_allclose(found.points, anchors, atol=1e-3)
    assert np.abs(found.distance).max() < 1e-3


@pytest.mark.parametrize("kernel", applying("distance"), ids=repr)
def test_distance_finds_new_points(kernel, rng):
    """φ(x) of points that are no anchors, through their projection on the span."""
    anchors, new = cloud(rng, 200, 3), cloud(rng, 10, 3)
    coefs = np.linalg.lstsq(kernel(anchors), kernel(anchors, new), rcond=1e-10)[0].T
    found = preimages(kernel, anchors, coefs, "distance")
    np.testing.assert_allclose(found.points, new, atol=0.02)


@pytest.mark.parametrize(
    ("method", "kernel"),
    [(method, kernel) for method in ITERATIVE for kernel in applying(method)],
    ids=str,
)
def test_iterations_from_a_near_start(method, kernel, rng):
    anchors = cloud(rng)
    start = anchors + 0.05 * rng.standard_normal(anchors.shape)
    found = preimages(kernel, anchors, np.eye(60), method, start=start, max_iter=1000)
    np.testing.assert_allclose(found.points, anchors, atol=1e-3)


def test_even_degree_needs_a_non_negative_base(rng):
    """x and −x have one image under (xᵀy)²: the sign is lost, and said to be."""
    anchors = cloud(rng)
    kernel = Polynomial(2)
    turned = np.concatenate([anchors[:30], -anchors[30:]])
    coefs = np.eye(60)
    straight = preimages(kernel, anchors, coefs, "distance", n_neighbors=12).points
    np.testing.assert_allclose(straight, anchors, atol=1e-3)
    mixed = preimages(kernel, turned, coefs, "distance", n_neighbors=12)
    assert np.abs(mixed.points - turned).max() > 0.1
    # any of the signs is as good in feature space, and gradient gets there
    found = preimages(kernel, turned, coefs, "gradient", start=turned + 0.01)
    assert found.distance.max() < 1e-3


def some_flee(kernel):
    """With slow tails and mixed signs some distances fall all the way to infinity."""
    if isinstance(kernel, RationalQuadratic):
        return pytest.warns(ConvergenceWarning, match="gradient' still moved")
    return nullcontext()


@pytest.mark.parametrize("kernel", [*KERNELS, Laplacian(0.3), Chi2()], ids=repr)
@pytest.mark.parametrize("method", ["auto", *METHODS])
def test_reported_distance_is_the_true_one(kernel, method, rng):
    if method != "auto" and not METHODS[method][0](kernel):
        with pytest.raises(ValueError, match=f"method='{method}' is not defined"):
            preimages(kernel, cloud(rng), np.eye(60), method)
        return
    anchors, coefs = cloud(rng, 12, 3), rng.standard_normal((4, 12))
    with some_flee(kernel) if method in ("auto", "gradient") else nullcontext():
        found = preimages(kernel, anchors, coefs, method)
    expected = [
        true_distance(kernel, anchors, a, x)
        for a, x in zip(coefs, found.points, strict=True)
    ]
    np.testing.assert_allclose(found.distance, expected, rtol=1e-6, atol=1e-6)
    norms = [(a @ kernel(anchors) @ a) ** 0.5 for a in coefs]
    np.testing.assert_allclose(found.norm, norms)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_auto_is_never_worse_than_any_method(kernel, rng):
    anchors, coefs = cloud(rng), rng.standard_normal((20, 60)) / 8
    with some_flee(kernel):
        auto = preimages(kernel, anchors, coefs)
    for name, (applies, _) in METHODS.items():
        if applies(kernel) and name not in ITERATIVE:
            alone = preimages(kernel, anchors, coefs, name)
            assert (auto.distance <= alone.distance + 1e-6).all(), name
    assert set(auto.method) <= set(METHODS)


@pytest.mark.parametrize("method", ITERATIVE)
def test_iterations_never_move_away(method, rng):
    kernel, anchors, start = RBF(sigma=0.7), cloud(rng), cloud(rng, 30)
    coefs = rng.standard_normal((30, 60)) + 0.5
    how = kernel, anchors, coefs, method
    with pytest.warns(ConvergenceWarning, match="still moved after max_iter"):
        distances = [
            preimages(*how, start=start, max_iter=n).distance for n in range(1, 8)
        ]
    assert (np.diff(distances, axis=0) <= 1e-12).all()
    assert (distances[-1] < distances[0] - 1e-6).mean() > 0.8


@pytest.mark.parametrize("kernel", [KERNELS[0], KERNELS[4], Chi2()], ids=repr)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_libraries_agree_and_keep_the_dtype(kernel, dtype, xp, rng):
    anchors = cloud(rng).astype(dtype)
    coefs = np.abs(rng.standard_normal((9, 60))).astype(dtype) / 60
    here = preimages(kernel, anchors, coefs)
    there = preimages(kernel, xp.asarray(anchors), xp.asarray(coefs))
    points = xp.to_numpy(there.points)
    assert points.dtype == here.points.dtype == dtype
    assert xp.to_numpy(there.distance).dtype == dtype
    scale = float(here.norm.max())
    tolerance = 1e-6 if dtype == np.float64 else 2e-3
    np.testing.assert_allclose(
        xp.to_numpy(there.distance), here.distance, atol=tolerance * scale
    )


def test_blocks_of_targets_change_nothing(rng):
    anchors, coefs = cloud(rng), rng.standard_normal((30, 60))
    whole = preimages("rbf", anchors, coefs)
    with options(block_rows=7):
        parts = preimages("rbf", anchors, coefs)
    # iterations end when all points of a block rest, so that some go on a little
    np.testing.assert_allclose(parts.points, whole.points, atol=1e-4)
    np.testing.assert_allclose(parts.distance, whole.distance, rtol=1e-8)


def test_kernels_that_take_no_negative_entries(rng):
    found = preimages(Chi2(), cloud(rng), rng.standard_normal((9, 60)))
    assert (found.points >= 0).all()


def test_bad_input(rng):
    anchors = cloud(rng)
    with pytest.raises(ValueError, match="coefs has shape"):
        preimages("rbf", anchors, np.eye(59))
    with pytest.raises(ValueError, match=r"method='best' is unknown.*auto, nearest"):
        preimages("rbf", anchors, np.eye(60), "best")
    with pytest.raises(TypeError, match="precomputed"):
        preimages("precomputed", np.arange(60), np.eye(60))
    with pytest.raises(TypeError, match="rows of numbers"):
        preimages(lambda a, b: np.ones((len(a), len(b))), ["ab", "c"], np.eye(2))


# what has pre-images: kernel dictionaries, kernel learners, maps


def test_atoms_that_are_samples_look_like_them(xp, rng):
    anchors = xp.asarray(cloud(rng))
    coefs = -3 * np.eye(60)  # neither sign nor length of an atom means anything
    dictionary = KernelDictionary(RBF(sigma=1.0), anchors, xp.asarray(coefs))
    found = dictionary.preimages()
    np.testing.assert_allclose(
        xp.to_numpy(found.points), xp.to_numpy(anchors), atol=1e-3
    )


def test_inverse_transform_of_a_kernel_learner(rng):
    X = datasets.load("digits").X_train[:150].astype(float)
    learner = KernelKSVD(
        RBF(sigma=2.0), 150, n_nonzero_coefs=1, init=np.arange(150), max_iter=1
    )
    learner.fit(X)
    back = learner.inverse_transform(learner.transform(X))
    np.testing.assert_allclose(back, X, atol=1e-2)
    again = learner.inverse_transform(learner.encode(X))
    np.testing.assert_allclose(again, back)


@pytest.mark.parametrize("Map", [NystroemMap, IKAMap])
def test_atoms_behind_a_map(Map, rng):
    X = datasets.load("digits").X_train[:300].astype(float)
    features = Map("rbf:2", n_landmarks=100, random_state=0).fit(X)
    learner = OrthogonalDictionary(20, alpha=0.01, random_state=0)
    learner.fit(features.transform(X))
    kernel_form = KernelDictionary.behind(features, learner.dictionary_)
    # both forms answer a pursuit alike
    np.testing.assert_allclose(
        kernel_form.correlate(X),
        learner.dictionary_.correlate(features.transform(X)),
        atol=1e-8,
    )
    if Map is NystroemMap:
        np.testing.assert_allclose(kernel_form.gram(), np.eye(20), atol=1e-6)
    assert kernel_form.preimages().points.shape == (20, 64)


@pytest.mark.parametrize("Map", [NystroemMap, IKAMap])
def test_inverse_transform_of_a_map(Map, xp, rng):
    X = xp.asarray(cloud(rng, 200, 3))
    features = Map("rbf:1.5", n_landmarks=150, random_state=0).fit(X)
    back = features.inverse_transform(features.transform(X))
    np.testing.assert_allclose(xp.to_numpy(back), xp.to_numpy(X), atol=0.05)
    with pytest.raises(ValueError, match="not from this map"):
        features.inverse_transform(X)


def test_only_maps_made_of_kernel_functions(rng):
    X = cloud(rng)
    learner = OrthogonalDictionary(3).fit(X)
    units = IKAMap("rbf", basis="relu", n_landmarks=20).fit(X)
    for other in (units, learner):
        with pytest.raises(TypeError, match="NystroemMap"):
            KernelDictionary.behind(other, learner.dictionary_)


def test_denoised_digits_are_closer_to_the_clean_ones(rng):
    data = datasets.load("digits")
    clean = data.X_train[:500].astype(float)
    test = data.X_train[500:550].astype(float)
    noisy = test + 0.3 * rng.standard_normal(test.shape)
    learner = KernelKSVD(
        RBF(sigma=2.0), 80, n_nonzero_coefs=4, max_iter=5, random_state=0
    ).fit(clean)
    denoised = learner.inverse_transform(learner.transform(noisy))
    before = ((noisy - test) ** 2).sum(1)
    after = ((denoised - test) ** 2).sum(1)
    assert after.mean() < 0.6 * before.mean()
    assert (after < before).mean() > 0.9
