"""Fits that are interrupted and go on: the same model, bit by bit, or a refusal."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from kernlets import (
    KSVD,
    MOD,
    Blocks,
    DictionaryOutlierDetector,
    FDDLClassifier,
    KernelKSVD,
    KSADClassifier,
    LCKSVDClassifier,
    NystroemMap,
    ReducedKernelDL,
    ResidualClassifier,
    Schedule,
    options,
    save,
)
from kernlets.io import CheckpointError, checkpoint
from kernlets.io import atomic_write as atomic
from kernlets.io.checkpoint import Checkpoint, describe_value, digest
from kernlets.io.models import MODEL, pack
from kernlets.learners import LEARNERS


class Killed(BaseException):
    """What no handler in the library catches."""


@pytest.fixture(autouse=True)
def every_state(monkeypatch: pytest.MonkeyPatch) -> None:
    """States are small here: all are written, however long it takes."""
    monkeypatch.setattr(checkpoint, "WRITING_SHARE", np.inf)


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the classes whose states were kept, in order."""
    names: list[str] = []
    keep = Checkpoint.keep

    def noted(self: Checkpoint, done: bool = False, **state: Any) -> None:
        keep(self, done, **state)
        names.append(self._path.name.partition("-")[0] if self._path else "")

    monkeypatch.setattr(Checkpoint, "keep", noted)
    return names


def samples(n: int = 90, p: int = 12, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((n, p)), np.arange(n) % 3
    return X + 2 * np.eye(3, p)[y], y


def content(model: Any) -> bytes:
    """The model file without the seconds, which no two runs share."""
    for part in _parts(model):
        if hasattr(part, "history_"):
            part.history_["seconds"] = []
    return pack(model, MODEL)


def _parts(model: Any) -> list[Any]:
    inner = [step for _, step in getattr(model, "steps", [])]
    inner += getattr(model, "learners_", [])
    inner += [model.learner_] if hasattr(model, "learner_") else []
    return [model, *(part for one in inner for part in _parts(one))]


def killed_after(count: int, kept: list[str], fit: Callable[[], Any]) -> None:
    """Run a fit that ends abruptly when so many states are written."""
    del kept[:]
    original = Checkpoint.keep

    def keep(self: Checkpoint, done: bool = False, **state: Any) -> None:
        original(self, done, **state)
        if len(kept) >= count:
            raise Killed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Checkpoint, "keep", keep)
        with pytest.raises(Killed):
            fit()
    del kept[:]


def _with_defaults(Learner: Any) -> Any:
    """A registered learner; those of streams get several batches for each pass."""
    learner = Learner(random_state=3, max_iter=6)
    is_stream = "batch_size" in learner._follows
    return learner.set_params(schedule="batch_size=16") if is_stream else learner


MODELS = {
    **{name: _with_defaults(Learner) for name, Learner in LEARNERS.items()},
    "exact update": KSVD(20, 2, max_iter=6, update="ksvd:exact=True", random_state=1),
    "parallel update": KSVD(20, 2, max_iter=6, update="ksvd-parallel", random_state=1),
    "kernel, parallel": KernelKSVD(
        "poly:2", 9, n_nonzero_coefs=2, update="ksvd-parallel", random_state=1
    ),
    "moving anchors": ReducedKernelDL.morkdl_d(
        "rbf:2", n_anchors=20, n_components=8, max_iter=4, random_state=0
    ),
    "K-SAD": KSADClassifier(
        "poly:2", "orthogonal:max_iter=6", n_landmarks=30, random_state=0
    ),
    "classifier": ResidualClassifier(KSVD(9, 2, max_iter=4), random_state=0),
    "pipeline": make_pipeline(
        NystroemMap("poly:2", n_landmarks=40, n_components=20, random_state=0),
        ResidualClassifier(KSVD(9, 2, max_iter=4, random_state=0)),
    ),
    "two learners": make_pipeline(
        KSVD(8, 3, random_state=0), KSVD(6, 2, random_state=1)
    ),
    "outliers": DictionaryOutlierDetector(KSVD(9, 2, max_iter=4), random_state=0),
    "LC-KSVD": LCKSVDClassifier(5, 2, max_iter=4, random_state=0),
    "FDDL": FDDLClassifier(5, max_iter=4, random_state=0),
    "FDDL, simplified": FDDLClassifier(5, max_iter=4, simplified=True, random_state=0),
}


@pytest.mark.parametrize("name", MODELS)
def test_resumed_fits_give_the_same_bits(
    name: str, tmp_path: Path, kept: list[str]
) -> None:
    X, y = samples()
    expected = content(clone(MODELS[name]).fit(X, y))
    folder = tmp_path / "states"

    def fit() -> Any:
        with options(checkpoint=folder, n_threads=1):
            return clone(MODELS[name]).fit(X, y)

    del kept[:]
    with options(checkpoint=tmp_path / "whole", n_threads=1):
        assert content(clone(MODELS[name]).fit(X, y)) == expected
    total = len(kept)
    assert total >= 4
    for _ in range(2):  # each time a third of the way from where it was
        killed_after(total // 3, kept, fit)
    assert content(fit()) == expected
    assert len(kept) == total - 2 * (total // 3)  # nothing was done twice
    del kept[:]
    assert content(fit()) == expected
    assert kept == []


@pytest.mark.parametrize("name", ["mod", "kernel-ksvd", "moving anchors", "K-SAD"])
def test_any_array_library(name: str, xp: Any, tmp_path: Path, kept: list[str]) -> None:
    X, y = samples()
    X = xp.asarray(X.astype(np.float32))
    expected = clone(MODELS[name]).fit(X, y)

    def fit() -> Any:
        with options(checkpoint=tmp_path):
            return clone(MODELS[name]).fit(X, y)

    killed_after(2, kept, fit)
    resumed = fit()
    assert type(resumed.dictionary_.weights) is type(X)
    assert resumed.dictionary_.weights.dtype == X.dtype
    assert content(resumed) == content(expected)


@pytest.mark.rounding
@pytest.mark.parametrize("name", ["pipeline", "LC-KSVD"])
def test_threads_and_memory_may_change(
    name: str, tmp_path: Path, kept: list[str]
) -> None:
    X, y = samples(600)
    model = MODELS[name]
    expected = content(clone(model).fit(X, y))

    def fit(**changes: Any) -> Any:
        with options(checkpoint=tmp_path, **changes):
            return clone(model).fit(X, y)

    killed_after(6, kept, lambda: fit(n_threads=1))
    killed_after(3, kept, lambda: fit(n_threads=3))
    assert content(fit(n_threads=2, memory="1GB")) == expected


def test_finished_classes_are_not_repeated(tmp_path: Path, kept: list[str]) -> None:
    X, y = samples()
    model = ResidualClassifier(KSVD(8, 2, max_iter=5, random_state=0))

    def fit() -> Any:
        with options(checkpoint=tmp_path, n_threads=1):
            return clone(model).fit(X, y)

    killed_after(7, kept, fit)  # two iterations into the second class
    fit()
    assert len(kept) == 3 + 5
    states = tmp_path.glob("ResidualClassifier-1/*/KSVD-1.checkpoint")
    assert sorted(path.parent.name for path in states) == ["0", "1", "2"]


def test_a_grid_search_goes_on(tmp_path: Path, kept: list[str]) -> None:
    X, _ = samples()
    grid = {"n_components": [5, 8], "n_nonzero_coefs": [1, 2]}
    search = GridSearchCV(KSVD(max_iter=4, random_state=0), grid, cv=2)

    def fit() -> Any:
        with options(checkpoint=tmp_path):
            return clone(search).fit(X)

    killed_after(14, kept, fit)
    found = fit()
    assert len(kept) == 4 * (4 * 2 + 1) - 14
    expected = clone(search).fit(X)
    scores = "mean_test_score"
    assert found.cv_results_[scores].tolist() == expected.cv_results_[scores].tolist()


def test_a_fit_that_was_stopped_stays_so(tmp_path: Path, kept: list[str]) -> None:
    X, _ = samples()

    def fit() -> Any:
        schedule = Schedule(callback=lambda s: s["iteration"] == 3)
        model = KSVD(8, 2, schedule=schedule, random_state=0)
        with options(checkpoint=tmp_path):
            return model.fit(X)

    assert fit().n_iter_ == 4
    assert fit().n_iter_ == 4
    assert len(kept) == 4


def test_seconds_go_on(tmp_path: Path, kept: list[str], capsys: Any) -> None:
    X, _ = samples()

    def fit() -> Any:
        with options(checkpoint=tmp_path):
            learner = KSVD(8, 2, max_iter=6, random_state=0, schedule="verbose=True")
            return learner.fit(X)

    killed_after(3, kept, fit)
    seconds = fit().history_["seconds"]
    assert len(seconds) == 6
    assert seconds == sorted(seconds)
    assert "KSVD: resumed after iteration 3" in capsys.readouterr().out


# -------------------------------------------------------------------- refusals


def refused(folder: Path, model: Any, X: Any) -> str:
    with options(checkpoint=folder), pytest.raises(CheckpointError) as caught:
        model.fit(X)
    text = str(caught.value)
    assert text.startswith(f"{folder / type(model).__name__}-1.checkpoint: ")
    assert "another checkpoint folder" in text
    return text


CHANGED = {
    "max_iter": (9, "max_iter was 4, is 9"),
    "n_components": (7, "n_components was 8, is 7"),
    "random_state": (1, "random_state was 0, is 1"),
    "update": ("mod", "update was 'ksvd', is 'mod'"),
}


@pytest.mark.parametrize("name", CHANGED)
def test_other_parameters_are_refused(name: str, tmp_path: Path) -> None:
    X, _ = samples()
    model = KSVD(8, 2, max_iter=4, random_state=0)
    with options(checkpoint=tmp_path):
        model.fit(X)
    before = (tmp_path / "KSVD-1.checkpoint").read_bytes()
    value, message = CHANGED[name]
    changed = clone(model).set_params(**{name: value})
    assert message in refused(tmp_path, changed, X)
    assert (tmp_path / "KSVD-1.checkpoint").read_bytes() == before


def test_parameters_that_do_not_matter_may_change(tmp_path: Path) -> None:
    X, _ = samples()
    callback, sparse = {"schedule__callback": print}, {"sparse_output": True}
    for change in ({}, {"schedule__verbose": True}, callback, sparse):
        with options(checkpoint=tmp_path):
            KSVD(8, 2, max_iter=1, random_state=0).set_params(**change).fit(X)


OTHER_SAMPLES: dict[str, Callable[[np.ndarray], Any]] = {
    "one value": lambda X: X + 1e-12 * (np.arange(X.size).reshape(X.shape) == 77),
    "order": lambda X: X[::-1],
    "fewer": lambda X: X[:-1],
    "dtype": lambda X: X.astype(np.float32),
}


@pytest.mark.parametrize("name", OTHER_SAMPLES)
def test_other_samples_are_refused(name: str, tmp_path: Path) -> None:
    X, _ = samples()
    model = MOD(8, 2, max_iter=2, init=X[:8], random_state=0)
    with options(checkpoint=tmp_path):
        model.fit(X)
    assert "its samples had other values" in refused(
        tmp_path, clone(model), OTHER_SAMPLES[name](X)
    )


def test_another_first_dictionary_is_refused(tmp_path: Path) -> None:
    """The kernel matrix and drawn atoms are data, too."""
    X, _ = samples()
    kernel = KernelKSVD(
        lambda A, B: A @ B.T, 8, n_nonzero_coefs=2, max_iter=2, random_state=0
    )
    with options(checkpoint=tmp_path):
        kernel.fit(X)
    other = clone(kernel).set_params(kernel=lambda A, B: 2 * (A @ B.T))
    assert "its start had other values" in refused(tmp_path, other, X)


@pytest.mark.parametrize(
    "model",
    [
        KSVD(8),
        ResidualClassifier(KSVD(8)),
        KSADClassifier(),
        make_pipeline(NystroemMap(n_landmarks=9), MOD(8, random_state=0)),
    ],
    ids=["learner", "classifier", "K-SAD", "map in front"],
)
def test_unseeded_parts_are_refused_before_any_work(model: Any, tmp_path: Path) -> None:
    X, y = samples()
    with options(checkpoint=tmp_path), pytest.raises(ValueError, match="random_state"):
        model.fit(X, y)
    assert list(tmp_path.rglob("*.checkpoint")) == []


def test_iterators_that_can_be_read_once_are_refused(tmp_path: Path) -> None:
    X, _ = samples()
    model = MOD(8, 2, max_iter=1, random_state=0)
    with options(checkpoint=tmp_path), pytest.raises(ValueError, match="only once"):
        model.fit(iter([X[:50], X[50:]]))


@pytest.mark.parametrize("damage", [lambda b: b[:-9], lambda b: b[:200], lambda b: b""])
def test_a_damaged_checkpoint_is_refused(damage: Any, tmp_path: Path) -> None:
    X, _ = samples()
    model = KSVD(8, 2, max_iter=2, random_state=0)
    with options(checkpoint=tmp_path):
        model.fit(X)
    path = tmp_path / "KSVD-1.checkpoint"
    path.write_bytes(damage(path.read_bytes()))
    with options(checkpoint=tmp_path), pytest.raises(CheckpointError) as caught:
        clone(model).fit(X)
    assert str(caught.value).startswith(f"{path}: is ")


def test_a_model_is_no_checkpoint(tmp_path: Path) -> None:
    X, _ = samples()
    model = KSVD(8, 2, max_iter=2, random_state=0).fit(X)
    save(model, tmp_path / "KSVD-1.checkpoint")
    with options(checkpoint=tmp_path), pytest.raises(CheckpointError, match="is not a"):
        model.fit(X)


# ------------------------------------------------------------------- mechanism


def test_no_option_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(checkpoint, "digest", None)  # would fail if it were called
    KSVD(8, 2, max_iter=2, random_state=0).fit(samples()[0])
    assert list(tmp_path.iterdir()) == []


def test_writing_takes_a_small_part_of_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first state, the last one, and what is due between them."""
    monkeypatch.setattr(checkpoint, "WRITING_SHARE", 1e-9)
    state = Checkpoint(tmp_path / "a.checkpoint", "about")
    for i in range(5):
        state.keep(i=i)
    assert Checkpoint(tmp_path / "a.checkpoint", "about").state["i"] == 0
    state.keep(done=True, i=9)
    again = Checkpoint(tmp_path / "a.checkpoint", "about")
    assert (again.state["i"], again.done) == (9, True)


def test_rests_of_a_killed_process_are_removed(tmp_path: Path) -> None:
    no_process = 2**30
    rest = f".a.checkpoint.{atomic._host()}-{no_process}-0123abcd.part"
    (tmp_path / rest).touch()
    (tmp_path / "other.part").touch()
    Checkpoint(tmp_path / "a.checkpoint", "about")
    assert [path.name for path in tmp_path.iterdir()] == ["other.part"]


def test_states_that_cannot_be_written_are_worth_one_warning(tmp_path: Path) -> None:
    """The model is as if there were no checkpoints, and they begin when they can."""
    X, y = samples()
    model = ResidualClassifier(KSVD(8, 2, max_iter=4, random_state=0))
    whole = clone(model).fit(X, y)
    obstacle = tmp_path / "states"
    obstacle.touch()  # a folder cannot be made here
    with options(checkpoint=obstacle), pytest.warns(UserWarning) as caught:
        fitted = clone(model).fit(X, y)
    assert content(fitted) == content(whole)
    told = [str(warning.message) for warning in caught]
    assert len(told) == 1
    assert str(obstacle) in told[0] and "cannot be written" in told[0]
    obstacle.unlink()
    with options(checkpoint=obstacle):
        clone(model).fit(X, y)
    assert len(list(obstacle.rglob("*.checkpoint"))) == 3


def test_digests_depend_on_the_rows_alone(tmp_path: Path) -> None:
    X, _ = samples(9000, 5)
    expected = digest(X)
    np.save(tmp_path / "X.npy", X)
    stored = np.load(tmp_path / "X.npy", mmap_mode="r")
    with options(n_threads=3, memory="10MB"):
        assert digest(stored) == digest(np.asfortranarray(X)) == expected
    halves = [X[:8192], X[8192:]]
    assert digest(halves) == digest(Blocks(lambda: iter(halves))) == expected
    assert digest(X[:, :4]) != expected != digest(X[:-1])


def test_descriptions_tell_values_apart() -> None:
    values = [
        None,
        3,
        3.5,
        "3",
        [1, 2],
        [2, 1],
        np.arange(3),
        np.arange(3.0),
        np.float64(3),
        KSVD(3),
        KSVD(4),
        np.random.default_rng(0),
        np.random.default_rng(1),
        np.random.RandomState(0),
        np.random.RandomState(1),
        samples,
        content,
    ]
    texts = [describe_value(value) for value in values]
    assert len(set(texts)) == len(values)
    assert texts == [describe_value(value) for value in values]
    printing = KSVD(3, schedule=Schedule(callback=print))
    verbose = KSVD(3, schedule=Schedule(verbose=True))
    assert describe_value(printing) == describe_value(verbose)
    assert " at 0x" not in describe_value([object(), samples, lambda: 3])
