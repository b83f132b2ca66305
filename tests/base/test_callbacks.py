"""scikit-learn's callbacks: progress bars, monitors and early stops."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from kernlets import (
    KSVD,
    MOD,
    BudgetKernelDL,
    FDDLClassifier,
    KernelKSVD,
    KSADClassifier,
    LCKSVDClassifier,
    NystroemMap,
    OnlineDictionary,
    OrthogonalDictionary,
    ReducedKernelDL,
    ResidualClassifier,
    RLSDictionary,
    SRCClassifier,
    load,
    save,
)
from kernlets.base import progress

WITHOUT = """
import sys
import numpy as np
import sklearn.pipeline
known = sys.modules.pop("sklearn.callback", None)
sys.modules["sklearn.callback"] = None  # as before version 1.9
from kernlets import KSVD, ResidualClassifier
sys.modules["sklearn.callback"] = known
X = np.random.default_rng(0).standard_normal((30, 4))
KSVD(5, 2, max_iter=2, random_state=0).fit(X)
ResidualClassifier(KSVD(5, 2, max_iter=2)).fit(X, np.arange(30) % 2)
assert not hasattr(KSVD(), "set_callbacks")
"""


def test_scikit_learn_without_callbacks():
    done = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True)
    assert done.returncode == 0, done.stderr.decode()


sklearn_callback = pytest.importorskip("sklearn.callback")


class Diary:
    """Notes what it is told, and may want to stop after a task."""

    def __init__(self, stop_after=None):
        self.stop_after, self.told, self.models = stop_after, [], []

    def setup(self, estimator, context):
        self.told.append(("setup", context.task_name))

    def teardown(self, estimator, context):
        self.told.append(("teardown", context.task_name))

    def on_fit_task_begin(self, estimator, context, *, X=None):
        self.told.append(("begin", context.task_name))
        self.n_rows = None if X is None else len(X)

    def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
        self.told.append(("end", context.task_name))
        self.models.append(fitted_estimator)
        self.history = getattr(estimator, "history_", None)
        return context.task_name == self.stop_after

    def iterations(self):
        return [name for kind, name in self.told if kind == "end" and name != "fit"]


class Everywhere(Diary):
    """A diary that meta-estimators hand on to their parts."""

    max_propagation_depth = None


@pytest.fixture
def data(rng):
    X = rng.standard_normal((60, 6)) + np.arange(60)[:, None] % 3
    return X, np.arange(60) % 3


ITERATIVE = [
    KSVD(8, 2, max_iter=3, random_state=0),
    KSVD(8, 2, max_iter=3, schedule="n_init=2", random_state=0),
    KSVD(8, 2, max_iter=3, schedule="steady=True", random_state=0),
    MOD(8, 2, max_iter=3, random_state=0),
    OnlineDictionary(8, max_iter=3, random_state=0),
    RLSDictionary(8, 2, max_iter=3, random_state=0),
    OrthogonalDictionary(4, max_iter=3, random_state=0),
    KernelKSVD("rbf", 8, max_iter=3, random_state=0),
    ReducedKernelDL("rbf", 8, anchors="samples", max_iter=3, random_state=0),
    BudgetKernelDL("rbf", 8, max_iter=3, random_state=0),
    LCKSVDClassifier(4, 2, max_iter=3, random_state=0),
    FDDLClassifier(4, max_iter=3, random_state=0),
    KSADClassifier("rbf", "orthogonal:max_iter=3", random_state=0),
]
EACH = ["iteration 1", "iteration 2", "iteration 3"]


@pytest.mark.parametrize("model", ITERATIVE, ids=lambda each: type(each).__name__)
def test_a_callback_is_told_of_each_iteration(model, data):
    diary = Diary()
    model = clone(model).set_callbacks(diary).fit(*data)
    steps = [(kind, name) for name in EACH for kind in ("begin", "end")]
    assert diary.told == [
        ("setup", "fit"),
        ("begin", "fit"),
        *steps,
        ("end", "fit"),
        ("teardown", "fit"),
    ]
    assert diary.n_rows == 60 and len(diary.history["objective"]) == 3
    assert model.history_ is diary.history
    assert {name for name in vars(model) if "callbacks" in name} == {"_skl_callbacks"}
    assert not any(name.endswith("_ctx") for name in vars(model))


@pytest.mark.parametrize("model", ITERATIVE, ids=lambda each: type(each).__name__)
def test_a_callback_may_stop_a_fit(model, data):
    stopped = clone(model).set_callbacks(Diary("iteration 2")).fit(*data)
    assert stopped.n_iter_ == 2 and len(stopped.history_["objective"]) == 2
    is_race = getattr(model, "schedule", None) == "n_init=2"
    if not is_race:  # a race ends with the last iteration
        name = "max_iter" if hasattr(model, "max_iter") else "dictionary__max_iter"
        short = clone(model).set_params(**{name: 2}).fit(*data)
        own, other = (each.dictionary_.weights for each in (stopped, short))
        np.testing.assert_array_equal(own, other)


def test_results_do_not_depend_on_callbacks(data):
    model = KSVD(8, 2, max_iter=3, random_state=0)
    told = clone(model).set_callbacks(Diary()).fit(data[0])
    np.testing.assert_array_equal(told.components_, model.fit(data[0]).components_)


@pytest.mark.parametrize("Learner", [KSVD, OnlineDictionary])
def test_models_of_iterations_are_ready_and_stay_as_they_are(Learner, data):
    X, diary = data[0], Diary()
    Learner(8, 2, max_iter=3, random_state=0).set_callbacks(diary).fit(X)
    for n, model in enumerate(diary.models[:3], start=1):
        short = Learner(8, 2, max_iter=n, random_state=0).fit(X)
        np.testing.assert_array_equal(model.components_, short.components_)
        np.testing.assert_array_equal(model.transform(X), short.transform(X))
        assert model.n_iter_ == len(model.history_["objective"]) == n


def test_a_partial_fit_is_a_fit_of_one_pass(data):
    diary = Diary()
    stream = OnlineDictionary(8, random_state=0).set_callbacks(diary)
    for block in np.split(data[0], 3):
        stream.partial_fit(block)
    assert diary.iterations() == ["iteration 1"] * 3


def test_an_estimator_without_iterations_is_one_task(data):
    for model in (NystroemMap("rbf"), SRCClassifier("rbf")):
        diary = Diary()
        model.set_callbacks(diary).fit(*data)
        assert [kind for kind, _ in diary.told] == ["setup", "begin", "end", "teardown"]


def test_callbacks_end_when_a_fit_fails(data):
    diary = Diary()
    with pytest.raises(ValueError, match="infinity"):
        MOD(8, 2).set_callbacks(diary).fit(np.full((20, 3), np.inf))
    assert diary.told[-1] == ("teardown", "fit")
    assert not progress._RUNNING
    with pytest.raises(ValueError, match="max_iter"):
        MOD(8, 2, max_iter=0).set_callbacks(diary).fit(data[0])


def test_refits_and_clones_tell_the_same_callbacks(data):
    diary = Diary()
    model = KSVD(8, 2, max_iter=3, random_state=0).set_callbacks(diary)
    for each in (model, model, clone(model), copy.deepcopy(model)):
        each.fit(data[0])
    assert diary.iterations() == EACH * 3  # that of a deep copy is another
    model.set_callbacks().fit(data[0])
    assert diary.iterations() == EACH * 3


def test_classes_are_parts(data):
    diary = Everywhere()
    learner = KSVD(4, 2, max_iter=3, random_state=0)
    model = ResidualClassifier(learner).set_callbacks(diary).fit(*data)
    assert sorted(diary.iterations()) == sorted(EACH * 3)
    assert diary.told.count(("setup", "fit")) == 1
    plain = ResidualClassifier(learner).fit(*data)
    assert not any(hasattr(each, "_skl_callbacks") for each in model.learners_)
    np.testing.assert_array_equal(model.predict(data[0]), plain.predict(data[0]))
    only = Diary()
    ResidualClassifier(learner).set_callbacks(only).fit(*data)
    assert "iteration 1" not in only.iterations()


def test_progress_bars_of_pipelines_and_searches(data, capsys):
    model = make_pipeline(NystroemMap("rbf"), KSVD(4, 2, max_iter=3, random_state=0))
    model.set_callbacks(sklearn_callback.ProgressBar(max_propagation_depth=None))
    model.fit(data[0])
    shown = capsys.readouterr().out
    assert "KSVD - fit" in shown and "100%" in shown
    diary = Everywhere()
    search = GridSearchCV(KSVD(max_iter=3, random_state=0), {"n_components": [3, 4]})
    search.set_callbacks(diary).fit(data[0])
    n_fits = 2 * 5 + 1
    assert diary.iterations().count("iteration 3") == n_fits


def test_a_scoring_monitor_sees_each_iteration(data):
    monitor = sklearn_callback.ScoringMonitor(
        scoring=lambda model, X, y: {"error": model.reconstruction_error(X)}
    )
    learner = KSVD(8, 2, max_iter=3, random_state=0).set_callbacks(monitor).fit(*data)
    errors = {row["task_name"]: row["error"] for row in monitor.get_logs().data}
    assert sorted(errors) == ["fit", *EACH]
    assert errors["iteration 1"] > errors["iteration 3"] == errors["fit"]
    assert errors["fit"] == learner.reconstruction_error(data[0])


def test_callbacks_are_no_part_of_model_files(data, tmp_path):
    model = KSVD(8, 2, max_iter=3, random_state=0).set_callbacks(Diary()).fit(data[0])
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    assert not hasattr(again, "_skl_callbacks")
    np.testing.assert_array_equal(again.components_, model.components_)
    assert pickle.loads(pickle.dumps(model)).n_iter_ == 3
