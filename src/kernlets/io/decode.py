"""Rebuilds values from trees of JSON values and named arrays, see `encode.py`.

Objects are of the closed list of classes (`registry.storable`). To read one, a listed
class is called with the stored parameters, these are checked, the fitted attributes
that the class declares are set, and `schema.check` checks the whole object: no file
can name another class, reach a function, or make an object that `fit` could not.

A few bytes of JSON can require a lot of memory: deep nesting, millions of empty lists,
wide cells of text. All of it is counted in a `MemoryBudget` before it is built.
"""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from ..base.estimator import Estimator, note_params
from ..config import options
from ..numerics.arrays import to_device
from ..registry import storable
from ..schema import check, is_record, record_fields
from .encode import (
    PLAIN,
    Node,
    Parts,
    array_facts,
    cell_bytes,
    check_parameters,
    widest_cell,
)

MAX_DEPTH = 256  # nested brackets
MAX_OBJECTS = 2**18  # JSON objects: values with a tag, estimators, records
MAX_DIGITS = 100  # of a whole number
#: A file of n bytes may take FACTOR * n + FLOOR bytes of memory.
FACTOR = 16
FLOOR = 2**24
#: Bytes of memory that the object behind a mark outside of text, or a quote, may take.
COSTS = {",": 32, "[": 64, "{": 256}
QUOTE_COST = 32


class MemoryBudget:
    """The memory that loading may take, counted before it is taken."""

    def __init__(self, file_bytes: int) -> None:
        self.left = FACTOR * file_bytes + FLOOR

    def take(self, n_bytes: int) -> None:
        """Count bytes that are about to be allocated; refuse if they are too many."""
        self.left -= n_bytes
        if self.left < 0:
            raise ValueError("it would take far more memory than the file has bytes")


def check_outline(text: bytes, budget: MemoryBudget) -> None:
    """Refuse JSON that is too deep or has too many parts, before it is read."""
    # without escaped characters, every quote begins or ends a text
    text = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    characters = np.frombuffer(text, np.uint8)
    # a character is inside of text after an odd number of quotes, even if sums overflow
    is_inside = np.cumsum(characters == ord('"'), dtype=np.uint8) % 2
    n_quotes = np.count_nonzero(characters == ord('"'))
    characters = characters[is_inside == 0]
    is_mark = {mark: characters == ord(mark) for mark in ",[]{}"}
    counts = {mark: int(is_mark[mark].sum()) for mark in COSTS}
    if counts["{"] > MAX_OBJECTS:
        raise ValueError(f"it has more than {MAX_OBJECTS} objects")
    steps = (is_mark["["] | is_mark["{"]).astype(np.int8)
    steps -= is_mark["]"] | is_mark["}"]
    if np.cumsum(steps, dtype=np.int32).max(initial=0) > MAX_DEPTH:
        raise ValueError(f"it is nested more than {MAX_DEPTH} deep")
    cost = sum(COSTS[mark] * count for mark, count in counts.items())
    budget.take(cost + QUOTE_COST * int(n_quotes))


def parse_json(text: str | bytes, budget: MemoryBudget) -> Any:
    """Parse JSON of moderate size; refuse what readers may interpret differently."""
    if isinstance(text, str):
        text = text.encode("utf-8", "surrogatepass")
    check_outline(text, budget)
    return json.loads(
        text,
        object_pairs_hook=_refuse_repeated_names,
        parse_constant=_refuse_constant,
        parse_int=_parse_whole_number,
    )


def _refuse_repeated_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        raise ValueError("a name stands twice")
    return mapping


def _refuse_constant(text: str) -> Any:
    raise ValueError(f"{text} is no JSON")


def _parse_whole_number(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise ValueError(f"it has a number with {len(digits)} digits")
    return int(digits)


MAX_COLLISIONS = 64  # keys of a dict that may share their hash with another one
MT_WORDS = 624  # length of the state of NumPy's Mersenne twister
MATRIX_BYTES = 256  # that an array takes besides its numbers


class Decoder:
    """Rebuilds values from a tree and the arrays beside it."""

    def __init__(
        self, tensors: dict[str, np.ndarray], budget: MemoryBudget, devices: bool
    ) -> None:
        self.tensors, self.budget, self.devices = tensors, budget, devices
        self.used_tensors: dict[str, np.ndarray] = {}
        self.checked_sizes: dict[int, Any] = {}

    def decode(self, node: Node) -> Any:
        """Return the value of a tree."""
        if isinstance(node, list):
            return [self.decode(item) for item in node]
        if not isinstance(node, dict):
            return node
        tag = node.get("@")
        if not (isinstance(tag, str) and tag in READERS):
            raise ValueError(f"it has a value of the unknown kind {tag!r}")
        read, *part_names = READERS[tag]
        if node.keys() != {"@", *part_names}:
            raise ValueError(f"it has a value ({tag}) with the parts {sorted(node)}")
        return read(self, *(node[name] for name in part_names))

    def children(self, nodes: Parts) -> dict[str, Any]:
        """Return the values of named parts."""
        return {name: self.decode(node) for name, node in nodes.items()}

    def items(self, node: Node) -> list[Any]:
        """Return the values of numbered parts."""
        if not isinstance(node, list):
            raise ValueError("a list is missing")
        return self.decode(node)

    def tensor(self, name: str) -> np.ndarray:
        """Return the array of a name, one object for all parts that refer to it."""
        if name not in self.used_tensors:
            array = self.tensors[name]
            self.budget.take(array.nbytes)
            self.used_tensors[name] = np.require(array, requirements=["A", "W"])
        return self.used_tensors[name]

    def check_all_used(self) -> None:
        """Refuse arrays that no part of the value refers to."""
        if len(self.used_tensors) < len(self.tensors):
            raise ValueError("it has arrays that belong to nothing")


def _class_named(name: Any) -> type:
    cls = storable().get(name) if isinstance(name, str) else None
    if cls is None:
        raise ValueError(
            f"it names the unknown class {name!r:.80}: upgrade kernlets if the file "
            "comes from a later version"
        )
    return cls


def _read_record(decoder: Decoder, class_name: Node, fields: Parts) -> Any:
    cls = _class_named(class_name)
    if not is_record(cls):
        raise ValueError(f"{cls.__name__} is no record")
    values = decoder.children(fields)
    if values.keys() != {*record_fields(cls)}:
        raise ValueError(f"{cls.__name__} has other fields than {sorted(values)}")
    record = cls(**values)
    check(record, decoder.checked_sizes)
    return record


def _read_estimator(
    decoder: Decoder, class_name: Node, param_nodes: Parts, state_nodes: Parts
) -> BaseEstimator:
    cls = _class_named(class_name)
    if not issubclass(cls, BaseEstimator):
        raise ValueError(f"{cls.__name__} is no estimator")
    params = decoder.children(param_nodes)
    estimator = cls(**params)
    check_parameters(cls, params)
    state = decoder.children(state_nodes)
    for name in state.keys() & estimator.get_params(deep=False):
        raise ValueError(f"{cls.__name__}.{name} is a parameter and cannot be fitted")
    vars(estimator).update(state)
    if state and isinstance(estimator, Estimator):
        note_params(estimator)
    check(estimator, decoder.checked_sizes)
    return estimator


def _read_float(decoder: Decoder, text: Node) -> float:
    if text not in ("nan", "inf", "-inf"):  # Python's notation of what JSON has not
        raise ValueError(f"{text!r} is no number, or one that JSON has")
    return float(text)


def _read_tuple(decoder: Decoder, nodes: Node) -> tuple[Any, ...]:
    return tuple(decoder.items(nodes))


def _read_dict(decoder: Decoder, key_nodes: Node, nodes: Node) -> dict[Any, Any]:
    keys, values = decoder.items(key_nodes), decoder.items(nodes)
    # dicts with many colliding keys are slow, and colliding numbers are easy to find
    if len(keys) - len({hash(key) for key in keys}) > MAX_COLLISIONS:
        raise ValueError("a dict has keys that are made to collide")
    mapping = dict(zip(keys, values, strict=True))
    if len(mapping) < len(keys):
        raise ValueError("a dict has a key that stands twice")
    return mapping


def _read_dtype(decoder: Decoder, name: Node) -> np.dtype:
    if name not in PLAIN:
        raise ValueError(f"{name!r} is no type that an array may have")
    return np.dtype(name)


def _read_scalar(decoder: Decoder, dtype: Node, node: Node) -> np.generic:
    value = decoder.decode(node)
    if type(value) not in (bool, int, float):
        raise ValueError(f"a {type(value).__name__} is no number")
    return _read_dtype(decoder, dtype).type(value)


def _read_generator(decoder: Decoder, state: Node) -> np.random.Generator:
    bits = np.random.PCG64()
    bits.state = decoder.decode(state)
    return np.random.Generator(bits)


def _read_random_state(decoder: Decoder, node: Node) -> np.random.RandomState:
    state = decoder.decode(node)
    # NumPy does not check these, and would read past the end of its own state
    if len(state[1]) != MT_WORDS or not 0 <= state[2] <= MT_WORDS:
        raise ValueError("a random state has numbers that are out of range")
    random = np.random.RandomState()
    random.set_state(state)
    return random


def _read_array(decoder: Decoder, name: Node, turned: Node, *stated: Node) -> Any:
    array = decoder.tensor(name)
    _read_dtype(decoder, array.dtype.name)
    for (fact, value), stated_value in zip(
        array_facts(array).items(), stated, strict=True
    ):
        if stated_value != value:
            raise ValueError(f"{fact} is {value}, not {stated_value}")
    if type(turned) is not bool:
        raise ValueError("turned must be true or false")
    return array.T if turned else array


def _read_tensor(decoder: Decoder, device: Node, array: Node) -> Any:
    if not decoder.devices:
        raise ValueError("a model has no tensors of torch")
    with options(device=device):
        return to_device(decoder.decode(array))


def _read_csr(decoder: Decoder, shape: Node, *nodes: Node) -> sparse.csr_array:
    arrays = tuple(map(decoder.decode, nodes))
    if not all(isinstance(array, np.ndarray) for array in arrays):
        raise ValueError("a sparse matrix must have a shape and three arrays")
    decoder.budget.take(sum(array.nbytes for array in arrays))  # SciPy may copy them
    matrix = sparse.csr_array(arrays, shape=_read_shape(shape))
    matrix.check_format(full_check=True)  # products would write where indices point
    if (np.diff(matrix.indptr) < 0).any():  # SciPy does not see that of empty ones
        raise ValueError("a sparse matrix has rows that end before they begin")
    return matrix


def _read_shape(node: Node) -> tuple[int, ...]:
    if not isinstance(node, list) or not all(type(n) is int and n >= 0 for n in node):
        raise ValueError(f"{node!r} is no shape")
    return tuple(node)


def _read_cells(decoder: Decoder, name: Node, shape: Node, nodes: Node) -> np.ndarray:
    values = decoder.items(nodes)
    if not all(map(_is_cell, values)):
        raise ValueError("cells have something else than text and numbers")
    match = re.fullmatch("[<>]U([0-9]{1,9})", name)
    if name != "|O" and not (match and all(isinstance(v, str) for v in values)):
        raise ValueError(f"{name!r} is no type that an array may have")
    if match and 4 * int(match[1]) > widest_cell(values):
        raise ValueError(f"dtype {name!r} is wider than its cells")
    decoder.budget.take(cell_bytes(len(values), np.dtype(name)))
    return _object_array(values).astype(name).reshape(_read_shape(shape))


def _is_cell(value: Any) -> bool:
    if type(value) is int:
        return value.bit_length() < 64
    return value is None or isinstance(value, (str, bool, float, np.generic))


def _object_array(values: list[Any]) -> np.ndarray:
    array = np.empty(len(values), dtype=object)
    for i, value in enumerate(values):
        array[i] = value
    return array


def _read_matrices(decoder: Decoder, *nodes: Node) -> np.ndarray:
    shapes, numbers = map(decoder.decode, nodes)
    are_arrays = isinstance(shapes, np.ndarray) and isinstance(numbers, np.ndarray)
    if not (are_arrays and shapes.shape[1:] == (2,) and numbers.ndim == 1):
        raise ValueError("matrices must have shapes and numbers")
    if shapes.dtype.kind != "i" or (shapes < 0).any() or (shapes > 2**31).any():
        raise ValueError("matrices have shapes that are none")
    decoder.budget.take(MATRIX_BYTES * len(shapes))
    ends = np.cumsum(shapes[:, 0] * shapes[:, 1])
    if (ends[-1] if len(ends) else 0) != len(numbers) or (ends < 0).any():
        raise ValueError("matrices have more or fewer numbers than their shapes")
    blocks = np.split(numbers, ends[:-1])
    matrices = [b.reshape(shape) for b, shape in zip(blocks, shapes, strict=True)]
    return _object_array(matrices)


def _read_records(decoder: Decoder, nodes: Node) -> np.ndarray:
    records = decoder.items(nodes)
    if not records or not all(map(is_record, records)):
        raise ValueError("records have something else among them")
    return _object_array(records)


#: tag -> the function that reads such values, and the names of their parts
READERS: dict[str, tuple[Any, ...]] = {
    "array": (_read_array, "tensor", "turned", "dtype", "shape", "finite"),
    "cells": (_read_cells, "dtype", "shape", "values"),
    "csr": (_read_csr, "shape", "data", "indices", "indptr"),
    "dict": (_read_dict, "keys", "values"),
    "dtype": (_read_dtype, "name"),
    "estimator": (_read_estimator, "class", "params", "state"),
    "float": (_read_float, "value"),
    "generator": (_read_generator, "state"),
    "matrices": (_read_matrices, "shapes", "numbers"),
    "random state": (_read_random_state, "state"),
    "record": (_read_record, "class", "fields"),
    "records": (_read_records, "items"),
    "scalar": (_read_scalar, "dtype", "value"),
    "torch": (_read_tensor, "device", "array"),
    "tuple": (_read_tuple, "items"),
}
