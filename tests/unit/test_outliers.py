"""The outlier detector: scores, thresholds, and which learners serve."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline

import kernlets
from kernlets import (
    KSVD,
    DictionaryOutlierDetector,
    KernelKSVD,
    NystroemMap,
    ReducedKernelDL,
)


@pytest.fixture
def rings(rng):
    """Inliers on a circle, outliers inside it: no linear method sees them."""
    angle = rng.uniform(0, 2 * np.pi, 300)
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    inside = 0.15 * rng.standard_normal((20, 2))
    X = np.concatenate([circle + 0.05 * rng.standard_normal((300, 2)), inside])
    return X, np.repeat([0, 1], [300, 20])


def ring_learner():
    return ReducedKernelDL(
        "rbf:0.5", 10, n_nonzero_coefs=2, anchors="kmeans", n_anchors=30
    )


def test_a_kernel_sees_what_a_line_does_not(rings, xp):
    X, y = rings
    normal = X[y == 0]
    found = DictionaryOutlierDetector(ring_learner(), random_state=0)
    scores = found.fit(xp.asarray(normal)).score_samples(xp.asarray(X))
    linear = DictionaryOutlierDetector(KSVD(2, 1), random_state=0).fit(normal)
    assert roc_auc_score(y, -xp.to_numpy(scores)) > 0.95
    assert roc_auc_score(y, -linear.score_samples(X)) < 0.6


def test_trimming_keeps_outliers_from_becoming_atoms(rings):
    """Not always, where they are as close together as here: a matter of the mean."""
    X, y = rings
    plain, trimmed = (
        np.mean([ring_auc(X, y, trim, seed) for seed in range(12)])
        for trim in (False, True)
    )
    assert trimmed > plain + 0.05


def ring_auc(X, y, trim, seed):
    found = DictionaryOutlierDetector(ring_learner(), trim=trim, random_state=seed)
    return roc_auc_score(y, found.fit(X).decision_scores_)


def test_default_finds_what_lies_far_away(rng):
    X = rng.standard_normal((300, 5)) * [1, 10, 100, 1000, 1e4]
    X[:10] *= 8 / np.linalg.norm(X[:10] / X.std(axis=0), axis=1, keepdims=True)
    found = DictionaryOutlierDetector(contamination=10 / 300, random_state=0).fit(X)
    assert set(np.flatnonzero(found.labels_)) == set(range(10))


def test_scores_and_labels_fit_together(rng):
    X = rng.standard_normal((200, 4))
    found = DictionaryOutlierDetector(contamination=0.05, random_state=0).fit(X)
    errors = found.decision_scores_
    np.testing.assert_allclose(found.score_samples(X), -errors)
    np.testing.assert_allclose(found.decision_function(X), found.threshold_ - errors)
    assert found.offset_ == -found.threshold_
    assert found.labels_.sum() == (errors > found.threshold_).sum() == 10
    predicted = found.predict(X)
    np.testing.assert_array_equal(predicted == -1, found.labels_ == 1)
    assert set(predicted) == {-1, 1}


@pytest.mark.parametrize(
    "learner",
    [
        KSVD(6, 2),
        KernelKSVD("rbf", 6, n_nonzero_coefs=2),
        make_pipeline(NystroemMap("rbf", n_landmarks=40, random_state=0), KSVD(6, 2)),
    ],
    ids=lambda learner: type(learner).__name__,
)
def test_errors_are_those_of_the_learner(learner, rng):
    X, new = rng.standard_normal((150, 4)), rng.standard_normal((20, 4))
    found = DictionaryOutlierDetector(
        learner, standardize=False, trim=False, random_state=3
    ).fit(X)
    fitted = found.learner_
    if not isinstance(learner, (KSVD, KernelKSVD)):
        new_features, fitted = fitted[:-1].transform(new), fitted[-1]
    else:
        new_features = new
    expected = fitted.reconstruction_error(new_features, per_sample=True)
    np.testing.assert_allclose(found.score_samples(new), -expected)
    assert not hasattr(learner, "dictionary_")  # the argument stays as it was


def test_units_of_the_features_do_not_matter(rng):
    X = rng.standard_normal((150, 4))
    scaled = X * [1, 1e3, 1e-3, 7] + [0, 5, 1, -2]
    one, other = (
        DictionaryOutlierDetector(random_state=0).fit(data).decision_scores_
        for data in (X, scaled)
    )
    np.testing.assert_allclose(one, other, atol=1e-6)


def test_float32_torch_and_seeds(xp, rng):
    X = xp.asarray(rng.standard_normal((120, 4)).astype(np.float32))
    one, same, other = (
        xp.to_numpy(DictionaryOutlierDetector(random_state=s).fit(X).decision_scores_)
        for s in (1, 1, 2)
    )
    assert one.dtype == np.float32
    np.testing.assert_array_equal(one, same)
    assert np.abs(one - other).max() > 1e-4


def test_saved_and_loaded(tmp_path, rng):
    X = rng.standard_normal((100, 3))
    found = DictionaryOutlierDetector(random_state=0).fit(X)
    kernlets.save(found, tmp_path / "model")
    again = kernlets.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(X), found.predict(X))


def test_bad_parameters_are_named(rng):
    X = rng.standard_normal((30, 3))
    with pytest.raises(ValueError, match="contamination"):
        DictionaryOutlierDetector(contamination=0.6).fit(X)
    with pytest.raises(ValueError, match="learner"):
        DictionaryOutlierDetector(learner="ksvd").fit(X)
