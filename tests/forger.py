"""A forger of model files: every field of every class changed, the checksum right.

`forge_cases(seed)` gives forged files without end: each change of each place in the
file of each model of `examples.py`, in random order, one or two at a time. What becomes
of them is in `victim.py`.
"""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import count
from typing import Any

import numpy as np

from examples import file_of, makers, model_of
from kernlets import registry

Path = tuple[Any, ...]  # keys and indices from the root of a tree
Change = Callable[[Any], Any]  # what stands at a place -> what is put there

BLANK = "0" * 64
TYPES = {
    "F16": "float16",
    "F32": "float32",
    "F64": "float64",
    "I32": "int32",
    "I64": "int64",
    "U64": "uint64",
    "U8": "uint8",
    "BOOL": "bool",
}
ESCAPE = "\x1b]0;owned\x07\x1b[2J\u202e"


@dataclass(frozen=True)
class Case:
    """A forged file, and what was done to which model."""

    model: str
    label: str
    data: bytes
    width: int  # features of the rows that the model was fitted on


@dataclass
class Draft:
    """A file taken apart: the tree, and the arrays by name."""

    metadata: dict[str, str]
    tree: Any
    arrays: dict[str, np.ndarray]

    @classmethod
    def of(cls, data: bytes) -> Draft:
        end = 8 + int.from_bytes(data[:8], "little")
        header = json.loads(data[8:end])
        metadata = header.pop("__metadata__")
        tree = json.loads(metadata.pop("tree"))
        arrays = {name: _array(entry, data[end:]) for name, entry in header.items()}
        return cls(metadata, tree, arrays)

    def sealed(self, tree_text: str | None = None) -> bytes:
        """The file, with a checksum that is right."""
        text = json.dumps(self.tree) if tree_text is None else tree_text
        metadata = {**self.metadata, "checksum": BLANK, "tree": text}
        header: dict[str, Any] = {"__metadata__": metadata}
        blocks, begin = [], 0
        # safetensors wants arrays in this order
        for name in sorted(self.arrays, key=lambda n: (-self.arrays[n].itemsize, n)):
            array = self.arrays[name]
            kind = next(k for k, t in TYPES.items() if t == array.dtype.name)
            offsets = [begin, begin := begin + array.nbytes]
            entry = {"dtype": kind, "shape": [*array.shape], "data_offsets": offsets}
            header[name] = entry
            blocks.append(np.ascontiguousarray(array).tobytes())
        return sealed(header, b"".join(blocks))


def sealed(header: dict[str, Any], arrays: bytes) -> bytes:
    """A file with this header and a checksum that is right."""
    text = json.dumps(header, separators=(",", ":")).encode()
    return sealed_text(text + b" " * (-len(text) % 8), arrays)


def sealed_text(text: bytes, arrays: bytes) -> bytes:
    """The same with the text of a header, in which the checksum is blank."""
    blank = len(text).to_bytes(8, "little") + text + arrays
    digest = hashlib.sha256(blank).hexdigest()
    field = '"checksum":"{}"'.format
    return blank.replace(field(BLANK).encode(), field(digest).encode(), 1)


def _array(entry: dict[str, Any], data: bytes) -> np.ndarray:
    begin, end = entry["data_offsets"]
    flat = np.frombuffer(data[begin:end], TYPES[entry["dtype"]])
    return flat.reshape(entry["shape"])


# ------------------------------------------------------------------------- changes

NUMBERS = [
    *[None, True, -1, 0, 1, 2, 7, 2**31, 2**53 + 1, 10**18, -(10**18), 10**99],
    *[0.5, -0.5, 1e-308, 1e308, "x", "", [], [1], {}, [[]]],
]
TEXTS = [
    *[None, 3, "", "x", "__class__", "../../etc/passwd", "a" * 20_000],
    *[ESCAPE, "\ud800"],
]
VALUES: list[Any] = [
    {"@": "float", "value": "nan"},
    {"@": "float", "value": "-inf"},
    {"@": "tuple", "items": []},
    {"@": "tuple", "items": [1, 2]},
    {"@": "dtype", "name": "float64"},
    {"@": "dict", "keys": ["a", "a"], "values": [1, 2]},
    {"@": "dict", "keys": ["objective", "seconds"], "values": [[], []]},
    {"@": "scalar", "dtype": "float64", "value": 2.5},
    {"@": "scalar", "dtype": "int64", "value": -3},
    {"@": "cells", "dtype": "|O", "shape": [2], "values": ["a", None]},
    {"@": "cells", "dtype": "<U2", "shape": [2], "values": ["a", "b"]},
    {"@": "estimator", "class": "kernlets.OMP", "params": {}, "state": {}},
    {"@": "estimator", "class": "kernlets.RBF", "params": {}, "state": {}},
    {"@": "estimator", "class": "kernlets.KSVD", "params": {}, "state": {}},
    {"@": "record", "class": "kernlets.Forgetting", "fields": {}},
    {"@": "record", "class": "kernlets.OMP", "fields": {}},
    {"@": "record", "class": "sklearn.pipeline.Pipeline", "fields": {"steps": []}},
]
TAGS = ("array", "cells", "csr", "dict", "estimator", "float", "record", "scalar")
STATE = ["new_", "predict", "__class__", "__dict__", "_parameter_constraints", "a b"]


def _number_changes(value: Any) -> dict[str, Change]:
    near = {"one more": lambda v: v + 1, "one less": lambda v: v - 1}
    return {**near, **_constants(NUMBERS), **_constants(VALUES)}


def _constants(values: list[Any]) -> dict[str, Change]:
    return {f"= {v!r:.30}": lambda _, v=v: copy.deepcopy(v) for v in values}


def _list_changes(value: list[Any]) -> dict[str, Change]:
    changes: dict[str, Change] = {
        "reversed": lambda v: v[::-1],
        "doubled": lambda v: v + v,
        "without the last": lambda v: v[:-1],
        "many": lambda v: v * 200,
        "wrapped": lambda v: [v],
    }
    return {**changes, **_constants([None, [], "x", 3, {}])}


def _text_changes(path: Path) -> dict[str, Change]:
    if path[-1] == "class":
        names = [*registry.storable(), "os.system", "builtins.eval"]
        return {f"class {n}": lambda _, n=n: n for n in names}
    if path[-1] == "dtype":
        types = ["float32", "int64", "object", "<U1", "<U30000", "|O", "V8", "M8[s]"]
        return {f"dtype {t}": lambda _, t=t: t for t in types}
    return {**_constants(TEXTS), **_constants(VALUES)}


def _node_changes(node: dict[str, Any]) -> dict[str, Change]:
    """Of a value with a tag, or of named parts."""
    changes: dict[str, Change] = {
        f"without {key}": lambda v, key=key: {k: w for k, w in v.items() if k != key}
        for key in node
    }
    changes["with more"] = lambda v: {**v, "more": 1}
    for tag in TAGS if "@" in node else ():
        changes[f"tag {tag}"] = lambda v, tag=tag: {**v, "@": tag}
    return {**changes, **_constants([None, 3, "x", [], {}]), **_constants(VALUES)}


def _state_changes(node: dict[str, Any]) -> dict[str, Change]:
    """Attributes of an estimator: unknown ones, and those that are parameters."""
    names = [*STATE, *node["params"]]

    def with_attribute(node: dict[str, Any], name: str) -> dict[str, Any]:
        return {**node, "state": {**node["state"], name: "/tmp/elsewhere"}}

    return {f"state.{n}": lambda v, n=n: with_attribute(v, n) for n in names}


def tree_changes(path: Path, value: Any) -> dict[str, Change]:
    """All that is done to one place of a tree, by name."""
    if isinstance(value, dict):
        more = _state_changes(value) if value.get("@") == "estimator" else {}
        return {**_node_changes(value), **more}
    if isinstance(value, list):
        return _list_changes(value)
    if isinstance(value, str):
        return _text_changes(path)
    if isinstance(value, (bool, type(None))):
        return {**_constants(NUMBERS), **_constants(VALUES)}
    return _number_changes(value)


def _resized(array: np.ndarray, axis: int, size: int) -> np.ndarray:
    """More or fewer entries along one axis; the first ones are repeated."""
    places = np.arange(size) % max(array.shape[axis], 1)
    full = array if array.shape[axis] else np.zeros([max(n, 1) for n in array.shape])
    return np.take(full, places, axis=axis).astype(array.dtype)


def array_changes(array: np.ndarray) -> dict[str, Change]:
    """All that is done to an array, by name."""
    changes: dict[str, Change] = {
        "flat": lambda a: a.reshape(-1),
        "one row": lambda a: a.reshape(1, -1),
        "one column": lambda a: a.reshape(-1, 1),
        "one more axis": lambda a: a[None],
        "one number": lambda a: a.reshape(-1)[0] if a.size else a,
        "transposed": lambda a: a.T,
        "zeros": np.zeros_like,
        "negative": lambda a: (-a.astype("f8")).astype(a.dtype),
        "huge": lambda a: np.full_like(a, _largest(a.dtype)),
        "not a number": lambda a: np.full_like(a, np.nan) if a.dtype.kind == "f" else a,
        "one infinity": lambda a: _with_last(a, np.inf),
        "last one far away": lambda a: _with_last(a, 10**6),
        "last one negative": lambda a: _with_last(a, -5),
    }
    for axis, size in enumerate(array.shape):
        for new in {0, 1, size - 1, size + 1, 40 * size} - {size, -1}:
            name = f"{new} along axis {axis}"
            changes[name] = lambda a, axis=axis, new=new: _resized(a, axis, new)
    for name in set(TYPES.values()) - {array.dtype.name}:
        changes[f"as {name}"] = lambda a, name=name: a.astype(name)
    return changes


def _largest(dtype: np.dtype) -> Any:
    return {"f": 1e30, "i": 2**31 - 1, "u": 255, "b": True}[dtype.kind]


def _with_last(array: np.ndarray, value: Any) -> np.ndarray:
    changed = array.copy()
    if array.size and (array.dtype.kind == "f" or np.isfinite(value)):
        changed.reshape(-1)[-1] = np.asarray(value).astype(array.dtype)
    return changed


# ---------------------------------------------------------------------- forged files


def places(tree: Any, above: Path = ()) -> Iterator[tuple[Path, Any]]:
    """All parts of a tree with the way to them."""
    yield above, tree
    if isinstance(tree, (dict, list)):
        parts = tree.items() if isinstance(tree, dict) else enumerate(tree)
        for key, part in parts:
            yield from places(part, (*above, key))


def _put(draft: Draft, path: Path, change: Change) -> None:
    if not path:
        draft.tree = change(draft.tree)
        return
    part = draft.tree
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = change(part[path[-1]])


def put_array(draft: Draft, name: str, change: Change) -> None:
    """Change an array and all that the tree says of it."""
    with np.errstate(all="ignore"):
        array = np.asarray(change(draft.arrays[name]))
    finite = array.dtype.kind != "f" or bool(np.isfinite(array).all())
    facts = {"dtype": array.dtype.name, "shape": [*array.shape], "finite": finite}
    draft.arrays[name] = array
    for _, node in places(draft.tree):
        if isinstance(node, dict) and node.get("tensor") == name:
            node.update(facts)


def _swap(draft: Draft, first: str, second: str) -> None:
    """Put one array in the place of another, and the other way round."""
    facts = {}
    for _, node in places(draft.tree):
        if isinstance(node, dict) and node.get("tensor") in (first, second):
            facts[node["tensor"]] = dict(node)
    if len(facts) == 2:
        for _, node in places(draft.tree):
            if isinstance(node, dict) and node.get("tensor") in facts:
                node.update(facts[second if node["tensor"] == first else first])


Forge = Callable[[Draft], None]


@cache
def forgeries(model: str) -> dict[str, Forge]:
    """All single changes of the file of a model, by what they are."""
    draft = Draft.of(file_of(model))
    found: dict[str, Forge] = {}
    for path, value in places(draft.tree):
        where = ".".join(map(str, path)) or "root"
        for name, change in tree_changes(path, value).items():
            found[f"{where}: {name}"] = lambda d, p=path, c=change: _put(d, p, c)
    for array in draft.arrays:
        for name, change in array_changes(draft.arrays[array]).items():
            found[f"{array}: {name}"] = lambda d, a=array, c=change: put_array(d, a, c)
        for other in (name for name in draft.arrays if name > array):
            found[f"{array} <-> {other}"] = lambda d, a=array, b=other: _swap(d, a, b)
    return found


def forged(model: str, *labels: str) -> Case:
    """The file of a model with these changes, one after the other."""
    draft = Draft.of(file_of(model))
    for label in labels:
        try:
            forgeries(model)[label](draft)
        except (LookupError, TypeError, ValueError, AttributeError, OverflowError):
            pass  # the first change has taken away what the second one is about
    width = getattr(model_of(model), "n_features_in_", 6)
    return Case(model, " and ".join(labels), draft.sealed(), width)


def forge_cases(seed: int, models: list[str] | None = None) -> Iterator[Case]:
    """Forged files without end: each single change once, in random order, and pairs.

    Of four files one has two changes; when there are no more single ones, all have.
    """
    rng = np.random.default_rng(seed)
    models = list(makers()) if models is None else models
    singles = [(model, label) for model in models for label in forgeries(model)]
    order = iter(rng.permutation(len(singles)))
    for number in count():
        place = next(order, None) if number % 4 else None
        if place is not None:
            yield forged(*singles[place])
            continue
        model, label = singles[rng.integers(len(singles))]
        others = list(forgeries(model))
        yield forged(model, label, others[rng.integers(len(others))])
