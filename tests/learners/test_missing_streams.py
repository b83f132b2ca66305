"""Streams of rows with gaps: filled in over what was kept of the stream so far."""

from __future__ import annotations

import numpy as np
import pytest

from kernlets import (
    BudgetKernelDL,
    OnlineDictionary,
    ResidualClassifier,
    StreamOutlierDetector,
    load,
    save,
)

P, BLOCK = 12, 64


@pytest.fixture
def rng():
    return np.random.default_rng(8)


@pytest.fixture
def X(rng):
    """Two bunches of rows near planes of few dimensions."""
    planes = rng.standard_normal((2, 3, P)) + 1
    codes = rng.random((400, 3))
    return np.where(
        np.arange(400)[:, None] % 2, codes @ planes[0], codes @ planes[1]
    ) + 0.02 * rng.standard_normal((400, P))


def with_holes(rng, X, share=0.25):
    return np.where(rng.random(X.shape) < share, np.nan, X)


def naive_row(x, samples, n_neighbors=60, ridge=0.3):
    """The formulas of `kernlets.kernels.complete`, one row at a time."""
    mean, scale = samples.mean(axis=0), samples.std(axis=0)
    x, Z, o = (x - mean) / scale, (samples - mean) / scale, ~np.isnan(x)
    near = Z[np.argsort(((Z - x)[:, o] ** 2).sum(axis=1))[:n_neighbors]]
    centre = near.mean(axis=0)
    around, y = near - centre, x - centre

    def kappa(a, b):
        return a[o] @ b[o] / o.sum() + np.exp(-((a - b)[o] ** 2).sum() / (2 * o.sum()))

    K = np.array([[kappa(a, b) for a in around] for b in around])
    right = np.array([kappa(y, a) for a in around])
    level = ridge * K.diagonal().mean()
    code = np.linalg.solve(K + level * np.eye(len(K)), right)
    return np.where(o, x, centre + code @ around) * scale + mean


def learner(**keys):
    keys = {"budget": 80, "n_nonzero_coefs": 3, "random_state": 0, **keys}
    return BudgetKernelDL("poly:2", 20, **keys)


def test_a_stream_is_filled_in_over_the_anchors(rng, X):
    holed = with_holes(rng, X)
    found, expected = learner().partial_fit(X[:100]), learner().partial_fit(X[:100])
    for start in range(100, 400, BLOCK):
        block = holed[start : start + BLOCK]
        anchors = expected.anchors_.copy()
        expected.partial_fit(np.stack([naive_row(x, anchors) for x in block]))
        found.partial_fit(block)
    np.testing.assert_allclose(found.anchors_, expected.anchors_, rtol=1e-8)
    np.testing.assert_allclose(found.coefs_, expected.coefs_, rtol=1e-5, atol=1e-8)


def test_complete_rows_are_learned_as_they_are(rng, X):
    holed = with_holes(rng, X[:BLOCK])
    holed[::2] = X[:BLOCK:2]
    anchors = learner().partial_fit(holed).anchors_
    assert not np.isnan(anchors).any()
    np.testing.assert_array_equal(anchors[::2], X[:BLOCK:2])


def test_much_is_learned_from_gaps(rng, X):
    """The error of whole rows is nearer to that of a clean stream than with zeros."""
    holed = with_holes(rng, X)
    errors = []
    for rows in (X, holed, np.nan_to_num(holed)):
        stream = learner()
        for start in range(0, 400, 50):
            stream.partial_fit(rows[start : start + 50])
        errors.append(stream.reconstruction_error(X))
    clean, gaps, zeros = errors
    assert gaps < (clean + zeros) / 2


@pytest.mark.filterwarnings("ignore:X has 1 features that were never observed")
def test_a_feature_that_was_never_observed_plays_no_part(rng, X):
    holed = with_holes(rng, X)
    never = np.insert(holed, 5, np.nan, axis=1)
    found, expected = learner(), learner()
    for start in range(0, 400, 100):
        found.partial_fit(never[start : start + 100])
        expected.partial_fit(holed[start : start + 100])
    kept = np.delete(found.anchors_, 5, axis=1)
    assert not found.anchors_[:, 5].any()
    np.testing.assert_allclose(kept, expected.anchors_, rtol=1e-7)
    np.testing.assert_allclose(found.coefs_, expected.coefs_, rtol=1e-5, atol=1e-7)


def test_rows_with_nothing_observed_are_not_learned_from(rng, X):
    empty = np.full((3, P), np.nan)
    with pytest.raises(ValueError, match="at least one entry that is not NaN"):
        learner().partial_fit(empty)
    found = learner().partial_fit(np.concatenate([empty, X[:100]]))
    expected = learner().partial_fit(X[:100])
    assert found.n_samples_seen_ == 100
    before = found.coefs_.copy()
    found.partial_fit(empty)
    np.testing.assert_array_equal(found.coefs_, before)
    np.testing.assert_allclose(found.anchors_.sum(), expected.anchors_.sum())


def test_blocks_with_gaps(rng, X):
    holed = with_holes(rng, X)
    found = learner(max_iter=3).fit([holed[:150], holed[150:]])
    clean = learner(max_iter=3).fit([X[:150], X[150:]])
    zeros = learner(max_iter=3).fit([np.nan_to_num(b) for b in (holed[:150], holed)])
    errors = [model.reconstruction_error(X) for model in (clean, found, zeros)]
    assert errors[1] < (errors[0] + errors[2]) / 2


def test_kernels_without_features_refuse(rng, X):
    stream = BudgetKernelDL(lambda a, b: a @ b.T, 5, random_state=0)
    with pytest.raises(ValueError, match="NaN"):
        stream.partial_fit(with_holes(rng, X))


def test_torch_agrees(rng, X):
    torch = pytest.importorskip("torch")
    holed = with_holes(rng, X)
    found, expected = learner(), learner()
    for start in range(0, 200, 100):
        found.partial_fit(torch.as_tensor(holed[start : start + 100]))
        expected.partial_fit(holed[start : start + 100])
    there = found.dictionary_.anchors
    assert isinstance(there, torch.Tensor)
    np.testing.assert_allclose(there.numpy(), expected.anchors_, rtol=1e-6)


def test_a_classifier_of_streams(rng, X):
    y = np.arange(len(X)) % 2
    holed = with_holes(rng, X)
    model = ResidualClassifier(learner(budget=40))
    for start in range(0, 300, 100):
        rows = slice(start, start + 100)
        model.partial_fit(holed[rows], y[rows], classes=[0, 1])
    assert model.score(holed[300:], y[300:]) > 0.95


def test_gaps_neither_raise_nor_hide_an_alarm(rng, X):
    holed = with_holes(rng, X, 0.1)
    holed[350, :6], holed[350, 6:] = np.nan, 9.0
    detector, alarms = StreamOutlierDetector(window=200, random_state=0), []
    for start in range(0, 400, 50):
        detector.partial_fit(holed[start : start + 50])
        alarms += (start + np.flatnonzero(detector.labels_)).tolist()
    assert 350 in alarms and len(alarms) < 30
    assert not np.isnan(detector.recent_rows_).any()
    assert detector.explain(holed[350:351])[0].score > detector.threshold_


def test_a_detector_scores_the_filled_in_row(rng, X):
    detector = StreamOutlierDetector(window=200, random_state=0).fit(X)
    holed = with_holes(rng, X[:5])
    filled = np.stack([naive_row(x, detector.recent_rows_) for x in holed])
    found, expected = detector.score_samples(holed), detector.score_samples(filled)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)


def test_rows_that_wait_may_have_gaps(rng, X, tmp_path):
    """Before there are enough rows for a start, they are kept, and can be stored."""
    holed = with_holes(rng, X)
    for model in (
        StreamOutlierDetector(window=200, random_state=0),
        OnlineDictionary(30, 3, init="samples", random_state=0),
    ):
        save(model.partial_fit(holed[:20]), tmp_path / "model")
        again = load(tmp_path / "model")
        np.testing.assert_array_equal(again.pending_, holed[:20])
