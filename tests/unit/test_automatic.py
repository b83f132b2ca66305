"""The automatic classifier: its choice, its budget, its table, its parts."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline

import kernlets
from kernlets import OMP, RBF, AutoDictionaryClassifier, SRCClassifier, datasets
from kernlets.classifiers import clock
from kernlets.classifiers.families import labels_by_width
from kernlets.classifiers.folds import sampling_order, splits, validation_rows
from kernlets.classifiers.learned import FAMILIES
from kernlets.classifiers.spaces import Rates, Space
from kernlets.classifiers.trials import plan


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
    np.testing.assert_array_equal(again.predict(X_test), fitted.predict(X_test))


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
    AutoDictionaryClassifier(random_state=0, callback=stop_at_third).fit(X, y)
    groups = {(row["scale"], row["kernel"], row["width"]) for row in seen}
    assert len(seen) < 10 and len(groups) == 1


def test_progress_is_printed_for_each_stage(wine, capsys):
    X, _, y, _ = wine
    AutoDictionaryClassifier(
        None, max_candidates=3, random_state=0, verbose=True
    ).fit(X, y)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("stage 1 of 2: 89 rows, best so far 0.")


class Machine:
    """A clock that goes on with the work of families only."""

    def __init__(self, monkeypatch, speed):
        self.now, self.speed = 0.0, speed
        monkeypatch.setattr(clock, "now", lambda: self.now)
        for family in FAMILIES.values():
            monkeypatch.setattr(family, "score", self.slow(family))

    def slow(self, family):
        score = type(family).score.__get__(family)

        def slowly(features, setting):
            self.now += self.seconds(family, features.space, len(features.y))
            return score(features, setting)

        return slowly

    def seconds(self, family, space, n_rows):
        return family.work(space, n_rows) / self.speed


def test_a_slow_machine_gets_less_far_and_keeps_the_budget(monkeypatch):
    data = datasets.load("digits")
    X, y = data.X_train[:450], data.y_train[:450]
    quick = ["fisher", "samples"]
    counts = []
    for speed in (1e9, 1e8):
        with monkeypatch.context() as patch:
            machine = Machine(patch, speed)
            model = AutoDictionaryClassifier(60.0, families=quick, random_state=0)
            model.fit(X, y)
        best = model.best_params_
        space = Space(*(best[n] for n in ("scale", "kernel", "width", "n_landmarks")))
        family = FAMILIES[best["family"]]
        assert machine.now + machine.seconds(family, space, len(y)) < 1.2 * 60
        assert machine.now > 0.5 * 60  # what is given is used
        counts.append(len(model.table_))
    assert counts[1] < counts[0]


def test_robust_choice_scores_spoiled_rows():
    X = np.arange(1.0, 2001).reshape(100, 20)
    clean, noisy, holes = validation_rows(X, 3.0, True, 0)
    assert clean is X and validation_rows(X, 3.0, False, 0)[0] is X
    assert np.std(noisy - X) == pytest.approx(3.0, rel=0.1)
    assert np.all((holes == 0).sum(axis=1) == 10)


def test_robust_choice_is_better_under_noise():
    data = datasets.load("digits", dtype=np.float64)
    X, y = data.X_train[:200], data.y_train[:200]
    noisy = datasets.corrupt.add_noise(data.X_test, float(X.std()), 1)
    quick = ["fisher", "samples"]
    given = {"seconds": None, "max_candidates": 6, "random_state": 0}
    given |= {"families": quick}
    plain = AutoDictionaryClassifier(**given).fit(X, y)
    robust = AutoDictionaryClassifier(robust=True, **given).fit(X, y)
    assert robust.best_score_ < plain.best_score_
    assert robust.score(noisy, data.y_test) >= plain.score(noisy, data.y_test)


def test_one_pursuit_gives_all_smaller_ones():
    data = datasets.load("digits", dtype=np.float64)
    X, y, new = data.X_train[:120], data.y_train[:120], data.X_test[:40]
    kernel = RBF(gamma=1e-3)
    widths = [1, 2, 5, 12]
    model = SRCClassifier(kernel).fit(X, y)
    found = labels_by_width(model, new, widths)
    for width in widths:
        alone = SRCClassifier(kernel, coder=OMP(width)).fit(X, y)
        assert np.mean(model.classes_[found[width]] == alone.predict(new)) == 1


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
    found = list(splits(rows, labels, n_folds, np.random.default_rng(0)))
    for split in found:
        assert set(labels[split.train]) == {0, 1, 2}
        assert sorted([*split.train, *split.valid]) == list(rows)
    if n_folds > 1:
        held_out = np.concatenate([split.valid for split in found])
        assert sorted(held_out) == list(range(22))


def test_stages_grow_to_all_rows():
    assert [stage.n_rows for stage in plan(7000, 10)] == [300, 900, 2700, 7000]
    assert [stage.n_rows for stage in plan(200, 40)] == [200, 200, 200]
    assert plan(100_000, 10)[-1].n_folds == 1


def test_one_width_for_all_rows_and_classes():
    X = np.random.default_rng(0).normal(0, 3, (400, 5))
    kernel = Rates.of(X).kernel(Space("none", "rbf", 0.5))
    assert kernel.gamma == pytest.approx(0.5 / (5 * X.var()))


def test_every_family_says_what_its_settings_are():
    for family in FAMILIES.values():
        for setting in family.first():
            assert len(setting) == len(family.names)
            for near in family.near(setting):
                assert len(near) == len(setting) and near != setting
