"""Damaged and hostile model files: always a `ModelFileError`, never anything else.

Damage is what happens by accident (changed bytes, lost parts); the checksum tells. A
hostile file has a checksum that is right, so that what it holds has to be judged.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from examples import file_of, makers
from forger import Draft, forge_cases, sealed, sealed_text
from kernlets import OMP, RBF, KernelKSVD, Lasso, load, options, save
from kernlets.dictionaries import KernelDictionary
from kernlets.io import (
    CheckpointError,
    ModelFileError,
    info,
    load_state,
    save_state,
)
from kernlets.io.models import MAX_MESSAGE
from kernlets.loops import table

SEED = 20250711
MODELS = [name for name in makers() if not name.startswith("sklearn.")]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.model"


def refused(path: Path, data: bytes) -> str:
    """The message with which a file is refused: one line, short, with the file."""
    path.write_bytes(data)
    with pytest.raises(ModelFileError) as caught:
        load(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert len(message) < len(str(path)) + MAX_MESSAGE + 10
    assert message.isprintable()
    return message


# ---------------------------------------------------------------------- damage


def regions(data: bytes) -> dict[str, range]:
    """Where what is in a file: every byte belongs to one region."""
    tree, end = data.index(b'"tree":'), 8 + int.from_bytes(data[:8], "little")
    arrays = data.index(b"}", data.rindex(b'"}', tree, end))  # metadata end here
    parts = {
        "length": range(8),
        "metadata": range(8, tree),
        "tree": range(tree, arrays),
        "array names": range(arrays, end),
        "arrays": range(end, len(data)),
    }
    assert sum(map(len, parts.values())) == len(data)
    return {name: part for name, part in parts.items() if len(part)}


@pytest.mark.parametrize("name", MODELS)
def test_a_changed_byte_anywhere_is_noticed(name: str, path: Path) -> None:
    data, rng = file_of(name), np.random.default_rng(SEED)
    for part in regions(data).values():
        for place in rng.choice(part, min(8, len(part)), replace=False):
            changed = bytearray(data)
            changed[place] ^= int(rng.integers(1, 256))
            refused(path, bytes(changed))
            changed[place] = data[place] ^ (1 << int(rng.integers(8)))
            refused(path, bytes(changed))


@pytest.mark.parametrize("name", MODELS)
def test_lost_and_moved_parts_are_noticed(name: str, path: Path) -> None:
    data, rng = file_of(name), np.random.default_rng(SEED + 1)
    ends = [part[-1] for part in regions(data).values()]
    for cut in [*ends, *rng.integers(len(data), size=8)]:
        refused(path, data[:cut])  # cut short
        if any(data[cut:]):
            refused(path, data[:cut] + bytes(len(data) - cut))  # or never written
    for place in rng.integers(len(data), size=4):
        refused(path, data[:place] + data[place + 1 :])
        refused(path, data[:place] + b"0" + data[place:])
    half = len(data) // 2
    for other in (data[half:] + data[:half], data + b" ", data + data, data[::-1]):
        refused(path, other)


def test_every_byte_of_the_beginning_counts(path: Path) -> None:
    """All of length and metadata: versions and checksum are read before the rest."""
    data, rng = file_of("kernlets.KSVD"), np.random.default_rng(SEED + 2)
    for place in range(data.index(b'"tree"')):
        changed = bytearray(data)
        changed[place] ^= int(rng.integers(1, 256))
        refused(path, bytes(changed))
        refused(path, data[:place])


@pytest.mark.parametrize("data", [b"", b"{}", b"\x80\x04K*.", b"\xff" * 100, b"PK\3\4"])
def test_other_files_are_no_models(data: bytes, path: Path) -> None:
    assert "is not a model file" in refused(path, data)


def test_safetensors_of_others_are_no_models(path: Path) -> None:
    from safetensors.numpy import save_file

    save_file({"a": np.ones(3)}, path)
    assert "is not a model file" in refused(path, path.read_bytes())


# ------------------------------------------------------------------- forgeries


def taken_apart(data: bytes) -> tuple[dict[str, Any], bytes]:
    end = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:end])
    header["__metadata__"]["checksum"] = "0" * 64
    return header, data[end:]


def forged(data: bytes, change: Callable[[dict[str, Any]], Any]) -> bytes:
    """A file whose header was changed."""
    header, arrays = taken_apart(data)
    change(header)
    return sealed(header, arrays)


def forged_tree(data: bytes, change: Callable[[dict[str, Any]], Any]) -> bytes:
    draft = Draft.of(data)
    change(draft.tree)
    return draft.sealed()


@pytest.fixture
def small() -> bytes:
    return file_of("pipeline of maps")


def test_forging_works(small: bytes, path: Path) -> None:
    """The tests below would mean nothing if every forged file were refused."""
    path.write_bytes(forged(small, lambda header: None))
    assert len(load(path)[-1].learners_) == 2
    data = forged_tree(small, lambda tree: tree["params"].update(verbose=True))
    path.write_bytes(data)
    assert load(path).verbose is True


def _first_array(header: dict[str, Any]) -> dict[str, Any]:
    """A matrix of floating-point numbers."""
    return next(e for e in header.values() if len(e.get("shape", [])) == 2)


def _renamed(header: dict[str, Any], name: str) -> None:
    header[name] = header.pop(next(key for key in header if key != "__metadata__"))


HEADERS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "huge shape": lambda h: _first_array(h).update(shape=[2**40, 2**40]),
    "shape over 64 bits": lambda h: _first_array(h).update(shape=[2**70]),
    "negative shape": lambda h: _first_array(h).update(shape=[-1, -6]),
    "other shape": lambda h: _first_array(h)["shape"].reverse(),
    "flat": lambda h: _first_array(h).update(shape=[np.prod(_first_array(h)["shape"])]),
    "no shape": lambda h: _first_array(h).pop("shape"),
    "text shape": lambda h: _first_array(h).update(shape="6"),
    "nested shape": lambda h: _first_array(h).update(shape=[[[6]]]),
    "huge offsets": lambda h: _first_array(h).update(data_offsets=[2**62, 2**63]),
    "offsets turned": lambda h: _first_array(h)["data_offsets"].reverse(),
    "offsets beyond": lambda h: _first_array(h).update(data_offsets=[0, 10**9]),
    "negative offsets": lambda h: _first_array(h).update(data_offsets=[-8, 0]),
    "integers": lambda h: _first_array(h).update(dtype="I64"),
    "half numbers": lambda h: _first_array(h).update(dtype="BF16"),
    "unknown dtype": lambda h: _first_array(h).update(dtype="object"),
    "path as dtype": lambda h: _first_array(h).update(dtype="../../etc/passwd"),
    "array by another name": lambda h: _renamed(h, "../../etc/passwd"),
    "array without a name": lambda h: _renamed(h, ""),
    "array that is no entry": lambda h: h.update(extra=[1, 2]),
    "metadata is a list": lambda h: h.update(__metadata__=[["checksum", "0" * 64]]),
    "number in metadata": lambda h: h["__metadata__"].update(size=3),
    "version with many digits": lambda h: h["__metadata__"].update(
        format_version="9" * 5000
    ),
    "version below zero": lambda h: h["__metadata__"].update(format_version="-1"),
    "no version": lambda h: h["__metadata__"].pop("format_version"),
    "other format": lambda h: h["__metadata__"].update(format="kernlets-checkpoint"),
    "no tree": lambda h: h["__metadata__"].pop("tree"),
    "tree is no JSON": lambda h: h["__metadata__"].update(tree="__import__('os')"),
    "tree is a number": lambda h: h["__metadata__"].update(tree="3"),
    "tree is a list": lambda h: h["__metadata__"].update(tree="[1, 2]"),
    "tree too deep": lambda h: h["__metadata__"].update(tree="[" * 99999 + "]" * 99999),
    "deep objects": lambda h: h["__metadata__"].update(tree='{"@":' * 99999),
    "number too long": lambda h: h["__metadata__"].update(tree="9" * 5000),
    "surrogates": lambda h: h["__metadata__"].update(tree='"\\ud800"'),
}


@pytest.mark.parametrize("name", HEADERS)
def test_hostile_headers_are_refused(name: str, small: bytes, path: Path) -> None:
    header, arrays = taken_apart(small)
    HEADERS[name](header)
    text = json.dumps(header, separators=(",", ":"), default=int).encode()
    text = text.replace(b'["checksum","', b'["checksum":"')  # where it is a list
    refused(path, sealed_text(text, arrays))


def test_names_that_stand_twice_are_refused(small: bytes, path: Path) -> None:
    """Two readers would see two models: the first or the last."""
    header, arrays = taken_apart(small)
    name = next(key for key in header if key != "__metadata__")
    text = json.dumps(header, separators=(",", ":")).encode()
    entry = f',"{name}":{json.dumps(header[name])}}}'.encode()
    assert "damaged" in refused(path, sealed_text(text[:-1] + entry, arrays))
    tree = header["__metadata__"]["tree"]
    header["__metadata__"]["tree"] = tree[:-1] + ', "class": "kernlets.KSVD"}'
    text = json.dumps(header, separators=(",", ":")).encode()
    assert "stands twice" in refused(path, sealed_text(text, arrays))


@pytest.mark.parametrize("literal", ["NaN", "Infinity", "-Infinity"])
def test_numbers_that_json_has_not_are_refused(
    literal: str, small: bytes, path: Path
) -> None:
    header, arrays = taken_apart(small)
    meta = header["__metadata__"]
    meta["tree"] = meta["tree"].replace('"n_nonzero_coefs": 2', f'"tol": {literal}')
    assert f"{literal} is no JSON" in refused(path, sealed(header, arrays))


@pytest.mark.parametrize("checksum", ["", "0" * 63, "\ud800" * 64, "é" * 64, "\x1b[2J"])
def test_other_checksums_are_refused(checksum: str, small: bytes, path: Path) -> None:
    header, arrays = taken_apart(small)
    header["__metadata__"]["checksum"] = checksum
    assert "damaged" in refused(path, sealed(header, arrays))


def test_huge_headers_are_refused_at_once(small: bytes, path: Path) -> None:
    for size in (len(small), 2**31, 2**63 - 1, 2**64 - 1):
        refused(path, size.to_bytes(8, "little") + small[8:])


def test_a_later_version_asks_for_an_upgrade(small: bytes, path: Path) -> None:
    data = forged(small, lambda h: h["__metadata__"].update(format_version="3"))
    message = refused(path, data)
    assert "file version 3, this library reads up to 1: upgrade kernlets" in message


@pytest.mark.parametrize(
    "name",
    [
        "subprocess.Popen",
        "builtins.eval",
        "kernlets.save",
        "kernlets.../../evil",
        "/etc/passwd",
        "sklearn.svm.SVC",
        "x" * 100_000,
        "\x1b[2J\x07",
    ],
    ids=lambda name: name[:20],
)
def test_only_listed_classes_are_built(name: str, small: bytes, path: Path) -> None:
    data = forged_tree(small, lambda tree: tree.update({"class": name}))
    assert "unknown class" in refused(path, data)


def _estimator(name: str, **params: Any) -> dict[str, Any]:
    cls = f"kernlets.{name}"
    return {"@": "estimator", "class": cls, "params": params, "state": {}}


def _cells(dtype: str, shape: list[int], *values: Any) -> dict[str, Any]:
    return {"@": "cells", "dtype": dtype, "shape": shape, "values": [*values]}


#: Values that no file may have, wherever values may stand.
HOSTILE: dict[str, Any] = {
    "unknown tag": {"@": "code", "text": "exit()"},
    "no tag": {"text": "exit()"},
    "path as tag": {"@": "../../evil"},
    "list as tag": {"@": ["array"]},
    "missing array": {
        **{"@": "array", "tensor": "nowhere", "turned": False},
        **{"dtype": "float64", "shape": [1], "finite": True},
    },
    "part too many": {"@": "tuple", "items": [], "more": 1},
    "part too few": {"@": "array", "tensor": "nowhere", "turned": False},
    "object dtype": {"@": "scalar", "dtype": "object", "value": 1},
    "array as a number": {"@": "scalar", "dtype": "float64", "value": [1, 2]},
    "records as dtype": {"@": "dtype", "name": "f8,f8"},
    "number as text": {"@": "float", "value": "12"},
    "huge shape": _cells("|O", [2**60], "a"),
    "open shape": _cells("|O", [-1], "a"),
    "huge cells": _cells("<U500000000", [1], "a"),
    "times as cells": _cells("M8[s]", [1], "1999"),
    "number as a cell of text": _cells("<U4", [1], 1999),
    "objects in cells": _cells("|O", [1], _estimator("OMP")),
    "unhashable key": {"@": "dict", "keys": [[1]], "values": [1]},
    "keys without values": {"@": "dict", "keys": [1, 2], "values": [1]},
    "key that stands twice": {"@": "dict", "keys": ["a", "a"], "values": [1, 2]},
    "random state": {
        "@": "random state",
        "state": {"@": "tuple", "items": ["MT19937", [0] * 624, 10**6, 0, 0.0]},
    },
    "generator": {"@": "generator", "state": {"@": "tuple", "items": []}},
    "record of an estimator": {"@": "record", "class": "kernlets.OMP", "fields": {}},
    "pipeline as a record": {
        **{"@": "record", "class": "sklearn.pipeline.Pipeline"},
        "fields": {"steps": [], "memory": "/tmp/elsewhere"},
    },
    "estimator of a record": _estimator("Forgetting"),
    "number with many digits": 10**200,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_values_are_refused(name: str, path: Path) -> None:
    """Also where a file may have any value: in a checkpoint."""
    save_state({"value": 1}, path)
    draft = Draft.of(path.read_bytes())
    assert draft.tree["values"] == [1]
    draft.tree["values"] = [HOSTILE[name]]
    path.write_bytes(draft.sealed())
    with pytest.raises(CheckpointError, match="cannot be rebuilt"):
        load_state(path)


def _last_step(tree: dict[str, Any]) -> dict[str, Any]:
    return tree["params"]["steps"][-1]["items"][1]


TREES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "a method": lambda t: t["state"].update(predict=3),
    "not a name": lambda t: t["state"].update({"a b": 3}),
    "an unknown attribute": lambda t: t["state"].update(new_=1),
    "the class itself": lambda t: t["state"].update(__class__="x"),
    "unknown parameter": lambda t: t["params"].update(shell=True),
    "wrong parameter": lambda t: t["params"].update(steps=3),
    "step that is no pair": lambda t: t["params"]["steps"].append("x"),
    "step that is no estimator": lambda t: t["params"]["steps"][0].update(
        items=["a", {"@": "dtype", "name": "float64"}]
    ),
    "step with a terrible name": lambda t: t["params"]["steps"][0]["items"].__setitem__(
        0, "\x1b[2J"
    ),
    "no parts": lambda t: t.clear(),
    "unused arrays": lambda t: t["params"].update(steps=t["params"]["steps"][-1:]),
    # what leads to files, processes and functions when the model is used
    "cache folder": lambda t: t["params"].update(memory="/tmp/elsewhere"),
    "cache folder as state": lambda t: t["state"].update(memory="/tmp/elsewhere"),
    "schedule": lambda t: _last_step(t)["params"]["learner"]["params"].update(
        schedule=_estimator("RBF")
    ),
    "callback": lambda t: _last_step(t)["params"]["learner"]["params"].update(
        schedule=_estimator("Schedule", callback=_estimator("RBF"))
    ),
}


@pytest.mark.parametrize("name", TREES)
def test_hostile_trees_are_refused(name: str, small: bytes, path: Path) -> None:
    assert "cannot be rebuilt" in refused(path, forged_tree(small, TREES[name]))


def with_parameter(model: str, name: str, value: Any) -> bytes:
    change = {name: value}
    return forged_tree(file_of(model), lambda tree: tree["params"].update(change))


def test_processes_are_not_started_by_thousands(path: Path) -> None:
    path.write_bytes(with_parameter("sklearn.pipeline.FeatureUnion", "n_jobs", 2))
    assert load(path).n_jobs == 2
    for n_jobs in (10_000, -10_000):
        refused(path, with_parameter("sklearn.pipeline.FeatureUnion", "n_jobs", n_jobs))


@pytest.mark.parametrize(
    ("model", "parameter"), [("units", "basis"), ("kernlets.NystroemMap", "landmarks")]
)
def test_a_kernel_in_place_of_a_function_is_refused(
    model: str, parameter: str, path: Path
) -> None:
    """Kernels can be called, but a file has no functions."""
    refused(path, with_parameter(model, parameter, _estimator("RBF")))


# ------------------------------------------------------- arrays that do not fit


def array_nodes(tree: Any, end: str) -> Iterator[dict[str, Any]]:
    """The nodes of arrays whose names end so."""
    if isinstance(tree, dict):
        if tree.get("@") == "array" and tree["tensor"].endswith(end):
            yield tree
        tree = list(tree.values())
    for part in tree if isinstance(tree, list) else ():
        yield from array_nodes(part, end)


MISFITS = [
    ("kernlets.KernelKSVD", "known_gram", lambda m, n: [m * n, 1]),
    ("kernlets.KernelKSVD", "known_gram", lambda m, n: [1, m * n]),
    ("kernlets.KernelKSVD", "coefs", lambda m, n: [n, m]),
    ("kernlets.SRCClassifier", "known_gram", lambda m, n: [2, m * n // 2]),
    ("kernlets.KSVD", "atoms", lambda m, n: [m * n]),
    ("kernlets.KSVD", "atoms", lambda m, n: [1, m, n]),
]


@pytest.mark.parametrize("case", range(len(MISFITS)))
def test_arrays_that_do_not_fit_together_are_refused(case: int, path: Path) -> None:
    """Fast loops would read beyond the end of these."""
    name, end, shape = MISFITS[case]

    def change(header: dict[str, Any]) -> None:
        tree = json.loads(header["__metadata__"]["tree"])
        (node,) = array_nodes(tree, end)
        node["shape"] = header[node["tensor"]]["shape"] = shape(*node["shape"])
        header["__metadata__"]["tree"] = json.dumps(tree)

    message = refused(path, forged(file_of(name), change))
    assert f"{end} has the shape" in message


def test_loops_are_not_given_arrays_that_disagree() -> None:
    gram, corr = np.eye(3), np.ones((5, 4))
    with pytest.raises(ValueError, match="correlations with 4 atoms"):
        table.omp(gram, corr, np.ones(5), 2, 0.0)
    with pytest.raises(ValueError, match="correlations with 4 atoms"):
        table.lasso(gram, corr, 0.1, False, 9, 1e-6)
    with pytest.raises(ValueError, match="X has 4 features, but Y has 3"):
        table.l1_distances(corr, gram)
    with pytest.raises(ValueError, match="known_gram has the shape"):
        KernelDictionary(RBF(1.0), gram, gram, known_gram=np.ones((1, 9)))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_planted_values_are_refused(value: float, path: Path) -> None:
    header, arrays = taken_apart(file_of("kernlets.KSVD"))
    planted = np.frombuffer(arrays).copy()
    planted[7] = value
    assert "finite is False" in refused(path, sealed(header, planted.tobytes()))


# ------------------------------------------------------------ nothing but reading

HARMLESS = ("object.__getattr__", "object.__setattr__", "builtins.id", "sys._getframe")


class Watch:
    """Notes what Python does behind the scenes; its hook cannot be removed again."""

    def __init__(self) -> None:
        self.events: list[str] | None = None
        sys.addaudithook(self)

    def __call__(self, event: str, args: tuple[Any, ...]) -> None:
        if self.events is not None and not event.startswith(HARMLESS):
            self.events.append(f"{event} {args[:1]}" if event == "open" else event)

    @contextmanager
    def watching(self) -> Iterator[list[str]]:
        self.events = events = []
        try:
            yield events
        finally:
            self.events = None


@pytest.fixture(scope="module")
def watch() -> Watch:
    return Watch()


def test_loading_does_nothing_but_read_the_file(path: Path, watch: Watch) -> None:
    """No other error than ours, and no event but the opening of the file."""
    path.write_bytes(file_of("kernlets.KSVD"))
    info(path)  # whatever has to be imported
    for case in islice(forge_cases(SEED), 600):
        path.write_bytes(case.data)
        for read in (load, info):
            with watch.watching() as events:
                try:
                    read(path)
                except ModelFileError:
                    pass
            assert len(events) > 0  # the file was opened
            # to show a class, scikit-learn parses the signature of its constructor
            known = ("compile",) if read is info else ()
            others = [e for e in events if str(path) not in e and e not in known]
            assert others == [], case.label


@pytest.mark.parametrize("coder", [OMP(2), Lasso(0.1)], ids=["omp", "lasso"])
@pytest.mark.parametrize("kernel", ["laplacian", "chi2"])
def test_models_that_load_do_not_crash(kernel: str, coder: Any, path: Path) -> None:
    """Shapes forged in header and tree alike: an error at the latest when used."""
    rng = np.random.default_rng(SEED + 4)
    X = rng.random((30, 6))
    save(KernelKSVD(kernel, 5, coder=coder, random_state=0).fit(X), path)
    data, (header, _) = path.read_bytes(), taken_apart(path.read_bytes())
    for name in [name for name in header if name != "__metadata__"]:
        rows, columns = header[name]["shape"]
        for shape in ([rows * columns, 1], [1, rows * columns], [1, rows, columns]):

            def change(header: dict[str, Any], name=name, shape=shape) -> None:
                tree = json.loads(header["__metadata__"]["tree"])
                for node in array_nodes(tree, name):
                    node["shape"] = header[name]["shape"] = shape
                header["__metadata__"]["tree"] = json.dumps(tree)

            path.write_bytes(forged(data, change))
            with options(n_threads=1), pytest.raises(ValueError):
                load(path).transform(X)
