"""Outliers in a stream: the running threshold, changes that last, faults that end."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

from kernlets import (
    KSVD,
    BudgetKernelDL,
    FourierMap,
    OnlineDictionary,
    RLSDictionary,
    StreamOutlierDetector,
    load,
    save,
)
from kernlets.outliers.thresholds import far_out, running_threshold

LEARNERS = {
    "default": None,
    "budget": BudgetKernelDL("laplacian", 20, budget=60),
    "rls": RLSDictionary(schedule="forgetting=0.998"),
    "online": OnlineDictionary(schedule="forgetting=0.998"),
    "pipeline": make_pipeline(
        FourierMap("rbf", n_components=64, random_state=0),
        RLSDictionary(16, 2, schedule="forgetting=0.998"),
    ),
}
EACH = pytest.mark.parametrize("learner", LEARNERS.values(), ids=LEARNERS)
WINDOW = 400


def stream(rng, n, centre=0.0):
    """Three groups of rows, and one row in 250 far from all of them."""
    groups = np.array([[3.0, 0, 0, 0], [0, 3, 0, 0], [0, 0, 3, 3]])
    rows = groups[rng.integers(0, 3, n)] + 0.7 * rng.standard_normal((n, 4))
    odd = np.arange(125, n, 250)
    rows[odd] += 9 * rng.choice([-1, 1], (len(odd), 4))
    return rows + centre, odd


def detector(learner=None, **others):
    return StreamOutlierDetector(learner, window=WINDOW, random_state=0, **others)


# ------------------------------------------------------------------------- thresholds


def naive_threshold(scores, alpha):
    """The smallest of the scores that a fresh one exceeds with at most alpha."""
    above = (scores > scores[:, None]).sum(axis=1)
    rare = (1 + above) / (1 + len(scores)) <= alpha + 1e-9
    return scores[rare].min() if rare.any() else scores.max()


@pytest.mark.parametrize("alpha", [0.01, 0.1, 0.37])
def test_the_running_threshold_is_that_of_the_definition(alpha, rng):
    for n in (1, 2, 9, 10, 99, 100, 333):
        scores = rng.integers(0, 40, n) / 7
        assert running_threshold(scores, alpha) == naive_threshold(scores, alpha)


def test_the_threshold_follows_the_last_scores(rng):
    rows, _ = stream(rng, 700)
    found = detector(batch_size=1).fit(rows[:WINDOW])
    for row in rows[WINDOW:]:
        before = found.recent_scores_, found.recent_far_[-1], found.threshold_
        (score,) = found.partial_fit(row[None]).decision_scores_
        goes_on = before[1] and score > far_out(before[0], found.ceiling_)
        kept = before[0] if goes_on else np.append(before[0], score)[-WINDOW:]
        np.testing.assert_array_equal(found.recent_scores_, kept)
        assert found.threshold_ == naive_threshold(kept, 0.01)
        assert found.labels_[0] == (score > before[2])


def test_far_out_is_beyond_the_outer_fence():
    scores = np.arange(101) / 100
    assert far_out(scores) == pytest.approx(0.75 + 3 * 0.5)
    odds = far_out(scores / 2, ceiling=1.0)  # .125 and .375: odds of 1/7 and 3/5
    assert odds / (1 - odds) == pytest.approx(3 / 5 + 3 * (3 / 5 - 1 / 7))
    assert far_out(np.ones(9), ceiling=1.0) == 1.0


# ------------------------------------------------------------------------- the stream


@EACH
def test_alarms_keep_to_the_rate_and_rare_outliers_stay_flagged(learner, rng):
    rows, odd = stream(rng, 4000)
    found = detector(learner).fit(rows)
    assert found.n_restarts_ == 0
    late = odd[odd > WINDOW]
    assert found.labels_[late].mean() > 0.9
    normal = np.delete(found.labels_, odd)[WINDOW:]
    # the outliers use up .4 % of the 1 %; five binomial deviations
    assert normal.mean() < 0.01 + 5 * np.sqrt(0.01 / len(normal))


@EACH
def test_alarms_end_after_a_lasting_change(learner, rng):
    before, after = stream(rng, 1500)[0], stream(rng, 3000, centre=12.0)[0]
    found = detector(learner).fit(before)
    labels = found.partial_fit(after).labels_
    patience = WINDOW // 4
    assert labels[: patience // 2].mean() > 0.9  # it is an alarm at first
    assert found.n_restarts_ == 1
    later = labels[2 * patience :]
    assert later.mean() < 0.01 + 5 * np.sqrt(0.01 / len(later))
    odd = np.arange(625, 3000, 250)
    assert labels[odd].mean() > 0.9  # outliers of the new kind are found


def test_a_fault_that_ends_is_an_alarm_all_the_time_and_teaches_nothing(rng):
    rows, _ = stream(rng, 1600)
    fault = slice(1000, 1000 + WINDOW // 5)
    rows[fault] = 11 + 0.1 * rng.standard_normal((WINDOW // 5, 4))
    found = detector().fit(rows)
    assert found.labels_[fault].all()
    assert found.n_restarts_ == 0
    assert found.predict(rows[fault]).max() == -1  # and still is one afterwards
    assert found.labels_[fault.stop :].mean() < 0.05


def test_scores_that_cannot_be_exceeded_are_alarms(rng):
    rows, _ = stream(rng, 1000)
    rows[::20] = 60 * rng.standard_normal((50, 4))  # 5 % of which nothing is known
    found = detector(BudgetKernelDL("rbf")).fit(rows)
    assert found.ceiling_ == 1.0
    assert found.labels_[WINDOW::20].mean() > 0.9
    assert found.labels_[WINDOW:].mean() < 0.15


@pytest.mark.parametrize("learner", [LEARNERS["rls"], LEARNERS["online"]])
def test_slow_drift_is_learned_on_the_way(learner, rng):
    rows = stream(rng, 4000)[0] + np.linspace(0, 15, 4000)[:, None]
    found = detector(learner).fit(rows)
    assert found.n_restarts_ <= 1
    assert found.labels_[WINDOW:].mean() < 0.03


@pytest.mark.rounding
def test_a_stream_in_parts_is_the_stream(rng):
    rows, _ = stream(rng, 900)
    whole, parts, scores = detector().fit(rows), detector(), []
    for part in np.split(rows, [60, *range(100, 900, 32)]):  # 100 rows are gathered
        scores.append(parts.partial_fit(part).decision_scores_)
    assert whole.n_samples_seen_ == parts.n_samples_seen_ == 900
    found = np.concatenate(scores)[100:]
    np.testing.assert_array_equal(whole.decision_scores_[100:], found)
    assert whole.threshold_ == parts.threshold_


def test_single_rows_are_gathered_first(rng):
    rows, _ = stream(rng, 120)
    found = detector()
    for row in rows[:99]:
        found.partial_fit(row[None])
        assert found.labels_.tolist() == [0]
    with pytest.raises(NotFittedError):
        found.predict(rows)
    found.partial_fit(rows[99:100])
    assert found.predict(rows).shape == (120,)
    assert found.labels_.shape == (1,)


def test_scores_labels_and_odds_fit_together(xp, rng):
    rows, odd = stream(rng, 900)
    found = detector().fit(xp.asarray(rows))
    new = xp.asarray(rows[:200])
    scores = -xp.to_numpy(found.score_samples(new))
    assert found.offset_ == -found.threshold_
    is_outlier = scores > found.threshold_
    np.testing.assert_array_equal(xp.to_numpy(found.predict(new)) < 0, is_outlier)
    assert found.predict_proba(new)[odd[0], 1] > 0.5
    assert found.predict_confidence(new).shape == (200,)
    assert found.p_values(new)[odd[0]] <= 0.02


@EACH
def test_reasons_name_the_feature(learner, rng):
    rows, _ = stream(rng, 900)
    found = detector(learner).fit(rows)
    strange = np.array([[3.0, 0, 25, 0]])
    (reason,) = found.explain(strange)
    assert reason.is_outlier
    assert reason.order[0] == 2
    np.testing.assert_allclose(rows[reason.nearest_row], reason.nearest, atol=1e-9)


@EACH
def test_saved_streams_go_on(learner, rng, tmp_path):
    rows, _ = stream(rng, 900)
    for begun in (50, 600):  # while rows are gathered, and later
        found = detector(learner).partial_fit(rows[:begun])
        save(found, tmp_path / "m")
        again = load(tmp_path / "m").partial_fit(rows[begun:])
        scores = found.partial_fit(rows[begun:]).decision_scores_
        np.testing.assert_array_equal(again.decision_scores_, scores)


def test_float32_stays(rng):
    rows = stream(rng, 500)[0].astype(np.float32)
    found = detector().fit(rows)
    assert found.recent_rows_.dtype == found.score_samples(rows).dtype == np.float32


def test_what_cannot_follow_is_refused(rng):
    rows, _ = stream(rng, 200)
    with pytest.raises(ValueError, match="KSVD cannot learn from a stream"):
        detector(KSVD(4, 1)).fit(rows)
    with pytest.raises(ValueError, match="alpha"):
        detector(alpha=0).fit(rows)
    with pytest.raises(ValueError, match="window"):
        StreamOutlierDetector(window=3).fit(rows)
    with pytest.raises(ValueError, match="features"):
        detector().partial_fit(rows).partial_fit(rows[:, :2])
