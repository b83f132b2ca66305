"""The automatic classifier: its choice, its budget, its table, its parts."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline, make_pipeline

import kernlets
from kernlets import (
    OMP,
    RBF,
    AutoDictionaryClassifier,
    SRCClassifier,
    datasets,
    explain,
)
from kernlets.classifiers.auto import trials
from kernlets.classifiers.auto.candidates import (
    FAMILIES,
    Design,
    Features,
    labels_by_nonzeros,
    residuals_by_nonzeros,
)
from kernlets.classifiers.auto.search import Search
from kernlets.classifiers.auto.spaces import Space, SpaceKernels
from kernlets.classifiers.auto.trials import (
    Clock,
    Outcome,
    Stage,
    Trial,
    plan_stages,
    sampling_order,
    stratified_folds,
    validation_rows,
)


@pytest.fixture(scope="module")
def wine():
    return train_test_split(
        *load_wine(return_X_y=True), test_size=0.5, stratify=None, random_state=3
    )


@pytest.fixture(scope="module")
def fitted(wine):
    X, _, y, _ = wine
    return AutoDictionaryClassifier(None, random_state=0).fit(X, y)


def test_a_table_that_needs_scaling_gets_it(fitted, wine):
    _, X_test, _, y_test = wine
    assert fitted.best_params_["scale"] == "standard"
    assert fitted.score(X_test, y_test) > 0.95


def test_the_best_pipeline_is_an_ordinary_one_fitted_to_all_rows(fitted, wine):
    X, X_test, y, _ = wine
    assert isinstance(fitted.best_pipeline_, Pipeline)
    again = clone(fitted.best_pipeline_).fit(X, y)
    expected = fitted.best_pipeline_.predict(X_test)
    np.testing.assert_array_equal(again.predict(X_test), expected)


def test_the_mean_probability_decides(fitted, wine):
    X_test = wine[1]
    assert 1 < len(fitted.pipelines_) <= 8
    assert fitted.pipelines_[0] is fitted.best_pipeline_
    chances = [model.predict_proba(X_test) for model in fitted.pipelines_]
    expected = np.mean(chances, axis=0)
    np.testing.assert_allclose(fitted.predict_proba(X_test), expected)
    np.testing.assert_array_equal(fitted.predict(X_test), expected.argmax(axis=1))
    scores = fitted.decision_function(X_test)
    np.testing.assert_array_equal(scores.argmax(axis=1), expected.argmax(axis=1))
    used = explain(fitted, X_test[0])
    assert used.label == fitted.predict(X_test[:1])[0]


def test_the_best_alone_can_decide(wine):
    X, X_test, y, _ = wine
    model = AutoDictionaryClassifier(
        None, max_candidates=6, n_averaged=1, random_state=0
    ).fit(X, y)
    assert model.pipelines_ == [model.best_pipeline_]
    expected = model.best_pipeline_.predict(X_test)
    np.testing.assert_array_equal(model.predict(X_test), expected)


def test_the_table_says_what_was_tried(fitted):
    names = {row["family"] for row in fitted.table_}
    assert {"fisher", "samples", "classes", "orthogonal"} <= names
    last = max(row["stage"] for row in fitted.table_)
    finals = [row for row in fitted.table_ if row["stage"] == last]
    assert fitted.best_score_ == max(row["score"] for row in finals)
    assert len(fitted.history_["score"]) == len(fitted.table_)
    assert fitted.history_["seconds"] == sorted(fitted.history_["seconds"])


def test_same_seed_same_search(fitted, wine):
    X, _, y, _ = wine
    again = AutoDictionaryClassifier(None, random_state=0).fit(X, y)
    strip = [{**row, "seconds": 0} for row in again.table_]
    assert strip == [{**row, "seconds": 0} for row in fitted.table_]
    assert again.best_params_["setting"] == fitted.best_params_["setting"]


def test_saved_and_pickled(fitted, wine, tmp_path):
    X_test = wine[1]
    kernlets.save(fitted, tmp_path / "m.kernlets")
    loaded = kernlets.load(tmp_path / "m.kernlets")
    assert loaded.table_ == fitted.table_
    for other in (loaded, pickle.loads(pickle.dumps(fitted))):
        np.testing.assert_array_equal(other.predict(X_test), fitted.predict(X_test))


def test_few_candidates(wine):
    X, _, y, _ = wine
    model = AutoDictionaryClassifier(None, max_candidates=5, random_state=0).fit(X, y)
    assert model.n_candidates_ == 5


def test_only_the_families_asked_for(wine):
    X, _, y, _ = wine
    for families in (["samples"], ["label consistent"]):
        model = AutoDictionaryClassifier(
            None, max_candidates=3, families=families, random_state=0
        )
        assert {row["family"] for row in model.fit(X, y).table_} == set(families)
    with pytest.raises(ValueError, match="families has 'forest': choose from 'fisher'"):
        AutoDictionaryClassifier(families=["forest"]).fit(X, y)


def test_a_callback_ends_the_search(wine):
    X, _, y, _ = wine
    seen = []
    stop_at_third = lambda row: seen.append(row) or len(seen) >= 3  # noqa: E731
    AutoDictionaryClassifier(None, random_state=0, callback=stop_at_third).fit(X, y)
    groups = {(row["scale"], row["kernel"], row["width"]) for row in seen}
    assert len(seen) < 10 and len(groups) == 1


def test_progress_is_printed_for_each_stage(wine, capsys):
    X, _, y, _ = wine
    AutoDictionaryClassifier(None, max_candidates=3, random_state=0, verbose=True).fit(
        X, y
    )
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("stage 1 of 2: 89 rows, best so far 0.")


class Machine:
    """A clock that goes on with the work of families only."""

    def __init__(self, monkeypatch, speed):
        self.now, self.speed = 0.0, speed
        monkeypatch.setattr(trials, "current_time", lambda: self.now)
        for family in FAMILIES.values():
            monkeypatch.setattr(family, "score", self.slow(family))

    def slow(self, family):
        score = type(family).score.__get__(family)

        def slowly(features, setting):
            self.now += self.seconds(family, features.design.space, len(features.y))
            return score(features, setting)

        return slowly

    def seconds(self, family, space, n_rows):
        return family.cost(space, n_rows) / self.speed


def test_a_slow_machine_gets_less_far_and_keeps_the_budget(monkeypatch):
    data = datasets.load("digits")
    X, y = data.X_train[:150], data.y_train[:150]
    quick = ["fisher", "samples"]
    counts = []
    for speed in (1e12, 5e7):
        with monkeypatch.context() as patch:
            machine = Machine(patch, speed)
            model = AutoDictionaryClassifier(60.0, families=quick, random_state=0)
            model.fit(X, y)
        best = model.best_params_
        space = Space(*(best[n] for n in ("scale", "kernel", "width", "n_landmarks")))
        family = FAMILIES[best["family"]]
        assert machine.now + machine.seconds(family, space, len(y)) < 1.2 * 60
        counts.append(len(model.table_))
    assert counts[1] < counts[0]
    assert machine.now > 0.5 * 60  # what is given is used


def test_robust_choice_scores_spoiled_rows():
    X = np.arange(1.0, 2001).reshape(100, 20)
    clean, noisy, holes = validation_rows(X, 3.0, True, 0)
    assert clean is X and validation_rows(X, 3.0, False, 0)[0] is X
    assert np.std(noisy - X) == pytest.approx(3.0, rel=0.1)
    assert np.all((holes == 0).sum(axis=1) == 10)


def test_robust_choice_is_better_under_noise():
    data = datasets.load("digits", dtype=np.float64)
    X, y = data.X_train[:200], data.y_train[:200]
    noisy = datasets.add_noise(data.X_test, float(X.std()), 1)
    given = {"seconds": None, "families": ["fisher"], "random_state": 0}
    plain = AutoDictionaryClassifier(max_candidates=16, **given).fit(X, y)
    robust = AutoDictionaryClassifier(max_candidates=16, robust=True, **given).fit(X, y)
    assert robust.best_score_ < plain.best_score_
    assert robust.score(noisy, data.y_test) > plain.score(noisy, data.y_test) + 0.03


def test_samples_of_each_class_are_for_damage_or_where_asked_for(wine):
    X, _, y, _ = wine
    for robust in (False, True):
        model = AutoDictionaryClassifier(None, robust=robust, max_candidates=6)
        families = model.fit(X, y)._candidate_families()
        assert (FAMILIES["class samples"] in families) == robust


def test_one_pursuit_per_class_gives_what_the_pipeline_gives():
    data = datasets.load("digits", dtype=np.float64)
    X, y = data.X_train[:150], data.y_train[:150]
    new, truth = data.X_test[:60], data.y_test[:60]
    kernel, space = RBF(gamma=0.5), Space("none", "rbf")
    family = FAMILIES["class samples"]
    design = Design(kernel, space, np.bincount(y), 0)
    weights = np.linspace(0.5, 2, 10)  # of classes
    hits = family.score(Features(design, X, y, [new], truth, np.ones(10)), ())
    weighted_hits = family.score(Features(design, X, y, [new], truth, weights), ())
    for width in (1, 5, 30):
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # to keep all samples is no accident
            pipeline = make_pipeline(*family.steps(design, (), width)).fit(X, y)
        is_right = pipeline.predict(new) == truth
        np.testing.assert_array_equal(hits[width], [is_right.sum()])
        weighted = weights[truth[is_right]].sum()
        np.testing.assert_allclose(weighted_hits[width], [weighted])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_samples_that_are_nearly_equal_can_all_be_chosen(dtype):
    rng = np.random.default_rng(0)
    atoms = (rng.normal(size=(1, 6)) + 1e-3 * rng.normal(size=(40, 6))).astype(dtype)
    X = rng.normal(size=(20, 6)).astype(dtype)
    found = residuals_by_nonzeros(RBF(gamma=0.01), atoms, X)
    residuals = np.stack(list(found.values()), axis=1)
    assert np.isfinite(residuals).all() and residuals.min() > -1e-4
    assert np.all(np.diff(residuals, axis=1) <= 0)


def search_that_knows(robust, *known):
    """A search whose outcomes are given: rows, and right ones by kind of damage."""
    X, y = np.random.default_rng(0).normal(size=(200, 3)), np.arange(200) % 2
    search = Search(X, y, [FAMILIES["samples"]], Clock(None), robust=robust)
    for number, (n_rows, hits) in enumerate(known):
        trial = Trial(Space("none", "rbf", float(number)), FAMILIES["samples"], ())
        stage = Stage(n_rows, 3)
        found = {1: np.array(hits, float)}
        search.outcomes[trial] = Outcome(trial, stage, found, 100, n_fits=3)
    return search


def test_the_winner_has_seen_the_most_rows_though_not_in_the_last_stage():
    search = search_that_knows(False, (60, [99]), (200, [90]), (200, [95]))
    assert search._best_outcome().trial.space.width == 2


def test_of_candidates_that_differ_by_chance_the_best_on_clean_rows_wins():
    known = (200, [90, 71, 72]), (200, [93, 70, 69]), (200, [99, 50, 50])
    assert search_that_knows(True, *known)._best_outcome().trial.space.width == 1
    assert search_that_knows(False, *known)._best_outcome().trial.space.width == 0


def test_one_pursuit_gives_all_smaller_ones():
    data = datasets.load("digits", dtype=np.float64)
    X, y, new = data.X_train[:120], data.y_train[:120], data.X_test[:40]
    kernel = RBF(gamma=1e-3)
    widths = [1, 2, 5, 12]
    model = SRCClassifier(kernel).fit(X, y)
    found = labels_by_nonzeros(model, new, widths)
    for width in widths:
        alone = SRCClassifier(kernel, coder=OMP(width)).fit(X, y)
        assert np.mean(model.classes_[found[width]] == alone.predict(new)) == 1


def test_a_rare_class_counts_as_much_as_a_large_one():
    """Labels of noise: most are right where the large class always is the answer."""
    X, y = np.random.default_rng(0).normal(size=(200, 4)), np.arange(200) % 20 == 0
    scores = {
        scoring: AutoDictionaryClassifier(
            None, 2, scoring=scoring, families=["samples"], random_state=0
        )
        .fit(X, y)
        .best_score_
        for scoring in ("accuracy", "balanced_accuracy")
    }
    assert scores["accuracy"] > 0.85
    assert scores["balanced_accuracy"] < 0.7


def test_parts_of_the_rows_hold_all_classes_and_grow():
    rng = np.random.default_rng(0)
    labels = rng.permutation(np.repeat([0, 1, 2], [500, 80, 3]))
    order = sampling_order(labels, rng)
    assert sorted(order) == list(range(583))
    small, large = order[:60], order[:300]
    assert set(labels[small]) == {0, 1, 2}
    assert np.mean(labels[large] == 0) == pytest.approx(500 / 583, abs=0.02)


@pytest.mark.parametrize("n_folds", [1, 3])
def test_folds_train_on_every_class_and_hold_out_each_row_once(n_folds):
    labels = np.repeat([0, 1, 2], [20, 2, 1])
    rows = np.arange(23)
    found = list(stratified_folds(rows, labels, n_folds, np.random.default_rng(0)))
    for split in found:
        assert set(labels[split.train]) == {0, 1, 2}
        assert sorted([*split.train, *split.valid]) == list(rows)
    if n_folds > 1:
        held_out = np.concatenate([split.valid for split in found])
        assert sorted(held_out) == list(range(22))


def test_stages_grow_to_all_rows():
    assert [stage.n_rows for stage in plan_stages(7000, 10)] == [300, 900, 2700, 7000]
    assert [stage.n_rows for stage in plan_stages(200, 40)] == [200, 200, 200]
    assert plan_stages(100_000, 10)[-1].n_folds == 1


def test_one_width_for_all_rows_and_classes():
    X = np.random.default_rng(0).normal(0, 3, (400, 5))
    kernel = SpaceKernels(X).kernel(Space("none", "rbf", 0.5))
    assert kernel.gamma == pytest.approx(0.5 / (5 * X.var()))


def test_every_family_says_what_its_settings_are():
    for family in FAMILIES.values():
        for setting in family.first_settings:
            assert len(setting) == len(family.setting_names)
            for near in family.near_settings(setting):
                assert len(near) == len(setting) and near != setting


def test_small_fits_do_not_make_large_ones_seem_impossible():
    """A third of a second for 200 rows is overhead, not a 1300th of 7000 rows."""
    trial = Trial(Space("unit", "rbf"), FAMILIES["samples"], ())
    told = {"n_fits": 3, "seconds": 0.9}
    by_rows = Outcome(trial, Stage(300, 3), **told)
    with_overhead = Outcome(trial, Stage(300, 3), **told, overhead_rows=1000)
    assert by_rows.fit_seconds(200) == with_overhead.fit_seconds(200) == 0.3
    assert by_rows.fit_seconds(7000) == pytest.approx(0.3 * 35**2)
    assert with_overhead.fit_seconds(7000) == pytest.approx(0.3 * 50 / 1.04)


def test_families_that_are_no_list():
    model = AutoDictionaryClassifier(families=np.array(3))
    with pytest.raises(ValueError, match="families has 3"):
        model.fit(np.eye(6), np.arange(6) % 2)
