"""Model files from strangers: what is forged is refused, or behaves like a model.

The forger (`tests/forger.py`) changes every field of every class; the files are tried
in another process (`tests/victim.py`), which may crash without taking the tests along.
A longer run: ``python tests/victim.py --seed 1 --seconds 600``.
"""

from __future__ import annotations

import json
import time
import traceback
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import victim
from examples import file_of, makers, model_of, samples
from forger import ESCAPE, Case, Draft, forged, forgeries, put_array
from kernlets import (
    KSVD,
    BudgetKernelDL,
    FDDLClassifier,
    KernelKSVD,
    KSADClassifier,
    OnlineDictionary,
    ReducedKernelDL,
    RLSDictionary,
    load,
    options,
    registry,
    save,
)
from kernlets.cli.app import app
from kernlets.io import (
    CheckpointError,
    ModelFileError,
    PersistenceError,
    info,
    load_state,
    save_state,
)
from kernlets.io.checkpoint import Checkpoint
from kernlets.io.encode import constraints_of
from kernlets.schema import attributes, declared_of, is_record, record_fields

SEED = 20250712


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.model"


# -------------------------------------------------------------------- all of it


def sampled(per_model: int) -> Iterator[Case]:
    """Some forgeries of each model."""
    rng = np.random.default_rng(SEED)
    for model in makers():
        labels = list(forgeries(model))
        for place in rng.choice(len(labels), per_model, replace=False):
            yield forged(model, labels[place])


def test_forged_files_are_refused_or_behave() -> None:
    report = victim.attack(sampled(8), seconds=1e9)
    assert report.failures == []
    tried = sum(report.outcomes.values())
    assert tried == 8 * len(makers())
    # the forger would be of no use if it made no files that load, or only such files
    assert report.outcomes["used"] > tried / 20
    assert report.outcomes["refused"] > tried / 2


def test_no_shape_in_a_stock_of_anchors_reaches_the_loops() -> None:
    """What `partial_fit` hands over to loops that do not look where arrays end."""
    models = ("kernlets.BudgetKernelDL", "error pruning", "merging", "float32")
    shapes = ("flat", "one row", "one column", "axis")
    cases = [
        forged(model, label)
        for model in models
        for label in forgeries(model)
        if label.startswith("stock_.") and any(shape in label for shape in shapes)
    ]
    # any number of anchors may be there to begin with; flat arrays were flat before
    free = ("stock_.start:", "stock_.idle: flat", "stock_.inverse: flat")
    cases = [case for case in cases if not case.label.startswith(free)]
    assert len(cases) > 84
    report = victim.attack(cases, seconds=1e9)
    assert report.failures == []
    assert report.outcomes == {"refused": len(cases)}


def test_a_crash_is_noticed(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process that tries files is replaced after one that it does not survive."""
    good = forged("kernlets.OMP", "params.tol: = 1")
    bad = Case("none", "nothing that can be read", b"", 6)
    monkeypatch.setattr(victim, "PATIENCE", 3.0)
    folder = victim.Victim(path.parent)
    try:
        assert folder.try_file(good.data, 6, 60.0)["outcome"] == "used"
        folder.process.kill()
        assert "ended with code -9" in folder.try_file(bad.data, 6, 60.0)["note"]
        assert folder.try_file(bad.data, 6, 60.0)["outcome"] == "refused"
    finally:
        folder.close()


# ------------------------------------------------------------------ declarations


def suggestion(value: Any) -> str:
    """How an attribute may be declared."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "if":
        kind = "Floats" if value.dtype.kind == "f" else "Indices"
        return f"{kind}({', '.join(f'<size {n}>' for n in value.shape)})"
    return f"<a kind of kernlets.schema for a {type(value).__name__}>"


def undeclared(model: Any) -> list[str]:
    """What is missing in the declaration of a class."""
    cls, declared = type(model), declared_of(type(model))
    return [
        f"add {name!r}: {suggestion(value)} to {cls.__name__}._declared"
        for name, value in attributes(model).items()
        if name not in declared
    ]


@pytest.mark.parametrize("name", makers())
def test_every_fitted_attribute_is_declared(name: str) -> None:
    model = model_of(name)
    assert undeclared(model) == []
    if not is_record(model):
        assert not declared_of(type(model)).keys() & model.get_params(deep=False).keys()


@pytest.mark.parametrize("name", registry.storable())
def test_every_parameter_and_every_field_is_declared(name: str) -> None:
    cls: Any = registry.storable()[name]
    if is_record(cls):
        missing = {*record_fields(cls)} - declared_of(cls).keys()
        assert missing == set(), f"add these to {cls.__name__}._declared"
    else:
        missing = {*cls._get_param_names()} - constraints_of(cls).keys()
        assert missing == set(), f"add these to {cls.__name__}._parameter_constraints"


def test_a_class_without_a_declaration_is_told_what_to_declare(path: Path) -> None:
    class Fresh(KSVD):
        def fit(self, X: Any, y: Any = None) -> Fresh:
            super().fit(X)
            self.means_ = X.mean(axis=0)
            return self

    model = Fresh(3, 2).fit(samples()[0])
    assert undeclared(model) == ["add 'means_': Floats(<size 6>) to Fresh._declared"]


def test_an_attribute_that_could_not_be_loaded_is_not_saved(path: Path) -> None:
    model = KSVD(3, 2).fit(samples()[0])
    model.note_ = "mine"
    with pytest.raises(PersistenceError, match="KSVD has no attribute 'note_'"):
        save(model, path)
    assert not path.exists()


# ----------------------------------------------------------------- what it may take


def _in_history(change: Callable[[Any], Any]) -> bytes:
    """A file of `KSVD` with something else in place of its seconds."""
    draft = Draft.of(file_of("kernlets.KSVD"))
    draft.tree["state"]["history_"]["values"][1] = change(draft)
    return draft.sealed()


def _with_classes(*cells: str, width: int) -> bytes:
    draft = Draft.of(file_of("sklearn.preprocessing.LabelEncoder"))
    draft.tree["state"]["classes_"] = {
        "@": "cells",
        "dtype": f"<U{width}",
        "shape": [len(cells)],
        "values": [*cells],
    }
    return draft.sealed()


def _again_and_again(draft: Draft) -> Any:
    node = draft.tree["state"]["dictionary_"]["fields"]["atoms"]
    return [node] * 2000


def _colliding(n: int) -> Any:
    """Different whole numbers with one hash."""
    keys = [i * (2**61 - 1) for i in range(1, n + 1)]
    return {"@": "dict", "keys": keys, "values": [0] * n}


AMPLIFIED: dict[str, Callable[[], bytes]] = {
    "wide cells": lambda: _with_classes(
        "b" * 30_000, *map(str, range(10_000, 30_000)), width=30_000
    ),
    "many medium cells": lambda: _in_history(
        lambda _: (
            [
                {
                    **{"@": "cells", "dtype": "<U1000", "shape": [1001]},
                    "values": ["a" * 1000, *[""] * 1000],
                }
            ]
            * 40
        )
    ),
    "one array in many places": lambda: _in_history(_again_and_again),
    "empty lists": lambda: _in_history(lambda _: [[]] * 200_000),
    "empty objects": lambda: _in_history(lambda _: [{}] * 200_000),
    "too many objects": lambda: _in_history(
        lambda _: [{"@": "tuple", "items": []}] * 300_000
    ),
    "short texts": lambda: _in_history(lambda _: ["ab"] * 200_000),
    "numbers": lambda: _in_history(lambda _: [7] * 200_000),
    "wide characters": lambda: _in_history(lambda _: "a" * 1_000_000 + "\U0001f600"),
    "colliding keys": lambda: _in_history(lambda _: _colliding(20_000)),
    "deep": lambda: _in_history(lambda _: json.loads("[" * 400 + "]" * 400)),
}


@pytest.mark.parametrize("name", AMPLIFIED)
def test_a_small_file_takes_little(name: str, path: Path) -> None:
    """Memory by a small multiple of the file, and time by seconds at most."""
    data = AMPLIFIED[name]()
    path.write_bytes(data)
    load_anything(path)  # what has to be imported or compiled
    began = time.process_time()
    load_anything(path)
    assert time.process_time() - began < 3.0
    tracemalloc.start()
    try:
        load_anything(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 24 * len(data) + 24 * 2**20


def load_anything(path: Path) -> str:
    try:
        return type(load(path)).__name__
    except ModelFileError as error:
        return f"ModelFileError {error}"


def test_keys_that_collide_are_refused_at_once(path: Path) -> None:
    """Also where any dict may stand."""
    save_state({"value": 1}, path)
    draft = Draft.of(path.read_bytes())
    for n, refused in ((50, False), (50_000, True)):
        draft.tree["values"] = [_colliding(n)]
        path.write_bytes(draft.sealed())
        began = time.process_time()
        if refused:
            with pytest.raises(CheckpointError, match="made to collide"):
                load_state(path)
        else:
            assert len(load_state(path)["value"]) == n
        assert time.process_time() - began < 3.0


# ------------------------------------------------------------------------ terminals


def _with_escapes() -> bytes:
    """A file of a classifier with escape sequences wherever there is text."""
    draft = Draft.of(file_of("half begun classes"))
    draft.metadata.update(library_version=ESCAPE, sklearn_version=ESCAPE)
    draft.tree["state"]["classes_"]["values"] = ["a", "b" + ESCAPE]
    draft.tree["state"]["classes_"]["dtype"] = "<U40"
    first = next(iter(draft.arrays))
    draft.arrays[first + ESCAPE] = draft.arrays.pop(first)
    text = json.dumps(draft.tree)
    name = f'"tensor": {json.dumps(first)}'
    return draft.sealed(text.replace(name, f'"tensor": {json.dumps(first + ESCAPE)}'))


def test_nothing_in_a_file_controls_the_terminal(path: Path, tmp_path: Path) -> None:
    path.write_bytes(_with_escapes())
    assert info(path)["classes"][1] == "b" + ESCAPE  # as data it is what it is
    rows, out = tmp_path / "rows.npy", tmp_path / "labels.csv"
    np.save(rows, samples()[0])
    predict = ["predict", str(path), str(rows), "-o", str(out)]  # names the class
    for command in (["info", str(path)], predict):
        shown = CliRunner().invoke(app, command)
        assert "\\x1b]0;owned\\x07" in shown.output, command
        assert all(line.isprintable() for line in shown.output.splitlines())


def test_a_refusal_can_be_shown(path: Path) -> None:
    draft = Draft.of(file_of("kernlets.OMP"))
    draft.tree["class"] = f"kernlets.{ESCAPE}"
    path.write_bytes(draft.sealed())
    with pytest.raises(ModelFileError) as caught:
        load(path)
    assert str(caught.value).isprintable()
    assert "\\x1b" in str(caught.value)
    shown = traceback.format_exception(caught.value)
    assert "\x1b" not in "".join(shown)


# ---------------------------------------------------------------------- checkpoints


class Stop(Exception):
    """Ends a fit after its first checkpoint."""


def interrupted(model: Any, folder: Path) -> Path:
    """The checkpoint of a fit that was stopped."""
    X, y = samples()
    keep = Checkpoint.keep

    def keep_and_stop(self: Checkpoint, done: bool = False, **state: Any) -> None:
        keep(self, done, **state)
        raise Stop

    with pytest.MonkeyPatch.context() as patch, options(checkpoint=folder):
        patch.setattr(Checkpoint, "keep", keep_and_stop)
        with pytest.raises(Stop):
            model.fit(X, y)
    (found,) = folder.rglob("*.checkpoint")
    return found


RESUMED: dict[str, Any] = {
    "K-SVD": KSVD(5, 2, random_state=0),
    "kernel K-SVD": KernelKSVD("rbf:1", 5, n_nonzero_coefs=2, random_state=0),
    "reduced": ReducedKernelDL(
        "rbf:1", 5, n_nonzero_coefs=2, anchors="samples", random_state=0
    ),
    "online": OnlineDictionary(5, 2, schedule="batch_size=16", random_state=0),
    "RLS": RLSDictionary(5, 2, schedule="batch_size=16", random_state=0),
    "budget": BudgetKernelDL("rbf:1", 5, budget=9, random_state=0),
    "K-SAD": KSADClassifier("poly:2", n_landmarks=9, random_state=0),
    "FDDL": FDDLClassifier(3, simplified=True, random_state=0),
}


@pytest.mark.parametrize("name", RESUMED)
def test_forged_checkpoints_are_refused(name: str, tmp_path: Path) -> None:
    """Arrays with a row too few or too many, one after the other."""
    model = RESUMED[name]
    file = interrupted(model, tmp_path)
    data, (X, y) = file.read_bytes(), samples()
    arrays = Draft.of(data).arrays
    assert len(arrays) > 0
    for array, more in ((a, n) for a, v in arrays.items() if v.size for n in (-1, 1)):
        draft = Draft.of(data)
        rows = np.arange(len(arrays[array]) + more) % len(arrays[array])
        put_array(draft, array, lambda values, rows=rows: values[rows])
        file.write_bytes(draft.sealed())
        with options(checkpoint=tmp_path), pytest.raises(CheckpointError):
            model.fit(X, y)


def test_a_checkpoint_sets_no_parameters(tmp_path: Path) -> None:
    model = RESUMED["RLS"]
    file = interrupted(model, tmp_path)
    state = load_state(file)
    state["learned"]["sparse_output"] = True
    save_state(state, file)
    with options(checkpoint=tmp_path), pytest.raises(CheckpointError, match="else"):
        model.fit(*samples())
    assert model.sparse_output is False
