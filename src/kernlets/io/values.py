"""Turns values into trees of JSON values and named arrays, and back.

None, bool, int, finite floats, text and lists are themselves in JSON. Any other value
is a JSON object with a tag, ``{"@": "csr", ...}``, and exactly the parts that the
table `READERS` names.

Objects are of the closed list of classes (`registry.storable`). To read one, a listed
class is called with the stored parameters, these are checked, the fitted attributes
that the class declares are set, and `schema.check` checks the whole object: no file
can name another class, reach a function, or make an object that `fit` could not.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable
from math import isfinite
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from ..base.estimator import Estimator, as_fitted, note_params
from ..config import options
from ..numerics.arrays import is_torch, to_device, to_numpy
from ..registry import storable
from ..schema import attributes, check, is_record, record_fields
from .limits import MemoryBudget
from .parameters import SESSION_ONLY, check_parameters

Node = Any  # a JSON value
Parts = dict[str, Node]

MAX_UNUSED = 64  # characters by which a cell may be wider than its text
MAX_COLLISIONS = 64  # keys of a dict that may share their hash with another one
MT_WORDS = 624  # length of the state of NumPy's Mersenne twister
MATRIX_BYTES = 256  # that an array takes besides its numbers
PLAIN = {"bool", "float16", "float32", "float64"} | {
    f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)
}
"""Types of numbers that safetensors can store."""


class PersistenceError(TypeError):
    """A value that a model file cannot hold."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(
            f"{path or 'model'}: {problem}; use joblib.dump for models with functions "
            "or classes of your own"
        )


class Encoder:
    """Writes values as trees, and stores their arrays under their paths."""

    def __init__(self, devices: bool) -> None:
        self.devices = devices  # whether to store the devices of torch tensors
        self.tensors: dict[str, np.ndarray] = {}
        self.names: dict[int, str] = {}  # of these arrays, by their ids
        self.text_bytes = 0  # memory of the arrays of text
        self.checked_sizes: dict[int, Any] = {}  # see `schema.check`

    def encode(self, value: Any, path: str = "") -> Node:
        """Return the tree of a value."""
        kind = type(value)
        if value is None or kind in (bool, int) or (kind is float and isfinite(value)):
            return value
        if isinstance(value, str):
            return str(value)
        if kind is list:
            return self.items(value, path)
        if kind is tuple:
            return {"@": "tuple", "items": self.items(value, path)}
        if kind is dict:
            nodes = [self.encode(v, _join(path, key)) for key, v in value.items()]
            return {"@": "dict", "keys": self.items(value, path), "values": nodes}
        if isinstance(value, BaseEstimator):
            return self._encode_estimator(value, path)
        if is_record(value) and not isinstance(value, type):
            return self._encode_record(value, path)
        if _are_samples(value, is_record):
            return {"@": "records", "items": self.items(value, path)}
        if is_torch(value):
            node = self.encode(to_numpy(value), path)
            device = {"@": "torch", "device": str(value.device), "array": node}
            return device if self.devices else node
        if _is_number_array(value):
            return self._encode_array(value, path)
        parts = _parts(value)
        if parts is None:
            name = f"{kind.__module__}.{kind.__qualname__}"
            raise PersistenceError(path, f"a {name} cannot be stored in a model file")
        if parts["@"] == "cells":
            self.text_bytes += _cell_bytes(value.size, np.dtype(parts["dtype"]))
        return self.children(parts, path)

    def children(self, values: dict[str, Any], path: str) -> Parts:
        """Return the trees of the named parts of a value."""
        return {name: self.encode(v, _join(path, name)) for name, v in values.items()}

    def items(self, values: Iterable[Any], path: str) -> list[Node]:
        """Return the trees of the numbered parts of a value."""
        return [self.encode(v, _join(path, i)) for i, v in enumerate(values)]

    def _encode_record(self, record: Any, path: str) -> Parts:
        name = _class_name(record, path)
        nodes = self.children(attributes(record), path)
        self._check(record, path)
        return {"@": "record", "class": name, "fields": nodes}

    def _encode_estimator(self, estimator: Any, path: str) -> Parts:
        name, estimator = _class_name(estimator, path), as_fitted(estimator)
        params = estimator.get_params(deep=False)
        for param in SESSION_ONLY:
            if params.get(param) is not None:
                warnings.warn(
                    f"{type(estimator).__name__}: {param} is not part of a model file, "
                    "set it again after loading",
                    stacklevel=2,
                )
                params[param] = None
        param_nodes = self.children(params, path)
        state_nodes = self.children(attributes(estimator), path)
        self._check(estimator, path, params)
        return {
            "@": "estimator",
            "class": name,
            "params": param_nodes,
            "state": state_nodes,
        }

    def _check(
        self, value: Any, path: str, params: dict[str, Any] | None = None
    ) -> None:
        """Refuse an object that does not meet its declaration and could not be read."""
        try:
            if params is not None:
                check_parameters(type(value), params)
            check(value, self.checked_sizes)
        except ValueError as error:
            raise PersistenceError(path, str(error)) from None

    def _encode_array(self, array: np.ndarray, path: str) -> Parts:
        """Store the memory order too: products round differently in the other one."""
        is_transposed = array.flags.f_contiguous and not array.flags.c_contiguous
        plain = np.asarray(array.T if is_transposed else array, order="C")
        if id(plain) not in self.names:  # stored once, even if it occurs repeatedly
            name = path or "value"
            while name in self.tensors:
                name += "'"
            self.names[id(plain)], self.tensors[name] = name, plain
        name = self.names[id(plain)]
        return {"@": "array", "tensor": name, "turned": is_transposed, **_facts(plain)}


def _join(path: str, name: object) -> str:
    return f"{path}.{name}" if path else f"{name}"


def _class_name(value: Any, path: str) -> str:
    for name, cls in storable().items():
        if cls is type(value):
            return name
    problem = f"{type(value).__qualname__} is not a class that model files may name"
    raise PersistenceError(path, problem)


def _parts(value: Any) -> dict[str, Any] | None:
    """Return the tag and the parts of a value that consists of simpler ones."""
    if type(value) is float:  # one that JSON has not
        return {"@": "float", "value": repr(value)}
    if isinstance(value, np.dtype) and value.name in PLAIN:
        return {"@": "dtype", "name": value.name}
    if isinstance(value, np.generic) and value.dtype.name in PLAIN:
        return {"@": "scalar", "dtype": value.dtype.name, "value": value.item()}
    if type(value) is np.random.RandomState:
        return {"@": "random state", "state": value.get_state()}
    if isinstance(value, np.random.Generator):
        state = value.bit_generator.state  # of PCG64, every state is valid
        is_default = type(value.bit_generator) is np.random.PCG64
        return {"@": "generator", "state": state} if is_default else None
    if sparse.issparse(value):
        csr = value.tocsr()
        arrays = {"data": csr.data, "indices": csr.indices, "indptr": csr.indptr}
        return {"@": "csr", "shape": list(csr.shape), **arrays}
    if _are_samples(value, lambda x: _is_number_array(x) and x.ndim == 2):
        if len({matrix.dtype for matrix in value}) == 1:
            # all numbers in one array: a model may hold thousands of series
            shapes = np.array([matrix.shape for matrix in value], dtype=np.int64)
            numbers = np.concatenate([matrix.ravel() for matrix in value])
            return {"@": "matrices", "shapes": shapes, "numbers": numbers}
    if isinstance(value, np.ndarray) and value.dtype.kind in "UO":
        cells = value.ravel().tolist()
        widest, name = _widest_cell(cells), value.dtype.str
        if value.dtype.itemsize > widest:
            name = f"<U{widest // 4}"
        return {"@": "cells", "dtype": name, "shape": [*value.shape], "values": cells}
    return None


def _is_number_array(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.name in PLAIN


def _are_samples(value: Any, is_sample: Callable[[Any], bool]) -> bool:
    """Whether this is an array of objects, and there is one, all of them samples."""
    is_list = isinstance(value, np.ndarray) and value.dtype == object
    return is_list and value.ndim == 1 and len(value) > 0 and all(map(is_sample, value))


def _facts(array: np.ndarray) -> Parts:
    """Return the facts about an array that are stored beside its content."""
    finite = array.dtype.kind != "f" or bool(np.isfinite(array).all())
    return {"dtype": array.dtype.name, "shape": [*array.shape], "finite": finite}


def _cell_bytes(n: int, dtype: np.dtype) -> int:
    """Bytes that n cells take, as objects and in their type at the same time."""
    return n * (dtype.itemsize + np.dtype(object).itemsize)


def _widest_cell(values: list[Any]) -> int:
    """Bytes that a cell may take: a small file must not become a huge array."""
    texts = [text for text in values if isinstance(text, str)]
    return 4 * max([MAX_UNUSED, *map(len, texts)])


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
            raise ValueError(f"a value of the unknown kind {tag!r}")
        read, *part_names = READERS[tag]
        if node.keys() != {"@", *part_names}:
            raise ValueError(f"the parts of a value ({tag}) are {sorted(node)}")
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
        raise ValueError(f"{text!r} is a number that JSON has, or none")
    return float(text)


def _read_tuple(decoder: Decoder, nodes: Node) -> tuple[Any, ...]:
    return tuple(decoder.items(nodes))


def _read_dict(decoder: Decoder, key_nodes: Node, nodes: Node) -> dict[Any, Any]:
    keys, values = decoder.items(key_nodes), decoder.items(nodes)
    # dicts with many colliding keys are slow, and colliding numbers are easy to find
    if len(keys) - len({hash(key) for key in keys}) > MAX_COLLISIONS:
        raise ValueError("a dict with keys that are made to collide")
    mapping = dict(zip(keys, values, strict=True))
    if len(mapping) < len(keys):
        raise ValueError("a dict with a key that stands twice")
    return mapping


def _read_dtype(decoder: Decoder, name: Node) -> np.dtype:
    if name not in PLAIN:
        raise ValueError(f"dtype {name!r}")
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
        raise ValueError("random state out of range")
    random = np.random.RandomState()
    random.set_state(state)
    return random


def _read_array(decoder: Decoder, name: Node, turned: Node, *stated: Node) -> Any:
    array = decoder.tensor(name)
    _read_dtype(decoder, array.dtype.name)
    for (fact, value), stated_value in zip(_facts(array).items(), stated, strict=True):
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
        raise ValueError("a sparse matrix with rows that end before they begin")
    return matrix


def _read_shape(node: Node) -> tuple[int, ...]:
    if not isinstance(node, list) or not all(type(n) is int and n >= 0 for n in node):
        raise ValueError(f"{node!r} is no shape")
    return tuple(node)


def _read_cells(decoder: Decoder, name: Node, shape: Node, nodes: Node) -> np.ndarray:
    values = decoder.items(nodes)
    if not all(map(_is_cell, values)):
        raise ValueError("cells with something else than text and numbers")
    match = re.fullmatch("[<>]U([0-9]{1,9})", name)
    if name != "|O" and not (match and all(isinstance(v, str) for v in values)):
        raise ValueError(f"dtype {name!r}")
    if match and 4 * int(match[1]) > _widest_cell(values):
        raise ValueError(f"dtype {name!r} is wider than its cells")
    decoder.budget.take(_cell_bytes(len(values), np.dtype(name)))
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
        raise ValueError("matrices with shapes that are none")
    decoder.budget.take(MATRIX_BYTES * len(shapes))
    ends = np.cumsum(shapes[:, 0] * shapes[:, 1])
    if (ends[-1] if len(ends) else 0) != len(numbers) or (ends < 0).any():
        raise ValueError("matrices with more or fewer numbers than their shapes have")
    blocks = np.split(numbers, ends[:-1])
    matrices = [b.reshape(shape) for b, shape in zip(blocks, shapes, strict=True)]
    return _object_array(matrices)


def _read_records(decoder: Decoder, nodes: Node) -> np.ndarray:
    records = decoder.items(nodes)
    if not records or not all(map(is_record, records)):
        raise ValueError("records with something else among them")
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
