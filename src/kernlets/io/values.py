"""Codecs of plain values: numbers, text, containers, arrays, random generators."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from ..config import options
from ..numerics.arrays import is_torch, to_device, to_numpy
from ..schema import is_record
from .codec import Codec, Decoder, Node, TreePosition

Parts = dict[str, Node]
ARRAY_PARTS = ("tensor", "turned", "dtype", "shape", "finite")
CSR_PARTS = ("data", "indices", "indptr")
NOT_IN_JSON = ("nan", "inf", "-inf")  # Python's notation of these numbers
MAX_UNUSED = 64  # characters of a cell of text that need not be used
MAX_COLLISIONS = 64  # keys of a dict that may share their hash with another one
MT_WORDS = 624  # length of the state of NumPy's Mersenne twister


def _exactly(*types: type) -> Callable[[Any], bool]:
    return lambda value: type(value) in types


def _instance(*types: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, types)


def _is_finite_float(value: Any) -> bool:
    return type(value) is float and math.isfinite(value)


def _read_float(node: Parts, decoder: Decoder) -> float:
    if node["value"] not in NOT_IN_JSON:
        raise ValueError(f"{node['value']!r} is a number that JSON has, or none")
    return float(node["value"])


def _write_dict(value: dict[Any, Any], position: TreePosition) -> Parts:
    key_nodes = position.items(value)
    value_nodes = [position.child(str(key), item) for key, item in value.items()]
    return {"keys": key_nodes, "values": value_nodes}


def _read_dict(node: Parts, decoder: Decoder) -> dict[Any, Any]:
    keys, values = decoder.items(node["keys"]), decoder.items(node["values"])
    # dicts with many colliding keys are slow, and colliding numbers are easy to find
    if len(keys) - len({hash(key) for key in keys}) > MAX_COLLISIONS:
        raise ValueError("a dict with keys that are made to collide")
    mapping = dict(zip(keys, values, strict=True))
    if len(mapping) < len(keys):
        raise ValueError("a dict with a key that stands twice")
    return mapping


def _is_plain(dtype: np.dtype) -> bool:
    """Whether safetensors can store numbers of this type."""
    return dtype.kind in "biuf" and dtype.itemsize <= 8


PLAIN = {"bool", "float16", "float32", "float64"} | {
    f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)
}


def _plain_dtype(name: str) -> np.dtype:
    if name not in PLAIN:
        raise ValueError(f"dtype {name!r}")
    return np.dtype(name)


def _write_scalar(value: np.generic, position: TreePosition) -> Parts:
    return {"dtype": value.dtype.name, "value": position.child("value", value.item())}


def _read_scalar(node: Parts, decoder: Decoder) -> np.generic:
    value = decoder.decode(node["value"])
    if type(value) not in (bool, int, float):
        raise ValueError(f"a {type(value).__name__} is no number")
    return _plain_dtype(node["dtype"]).type(value)


def _write_array(array: np.ndarray, position: TreePosition) -> Parts:
    """Store the memory order too: products round differently in the other one."""
    is_transposed = array.flags.f_contiguous and not array.flags.c_contiguous
    plain = np.asarray(array.T if is_transposed else array, order="C")
    return {"tensor": position.tensor(plain), "turned": is_transposed, **_facts(plain)}


def _write_tensor(value: Any, position: TreePosition) -> Parts:
    """Write a torch tensor as an array, which a model is loaded with."""
    device_node = {"device": str(value.device)} if position.encoder.devices else {}
    return {**_write_array(to_numpy(value), position), **device_node}


def _facts(array: np.ndarray) -> Parts:
    """Return the facts about an array that are stored beside its content."""
    finite = array.dtype.kind != "f" or bool(np.isfinite(array).all())
    return {"dtype": array.dtype.name, "shape": [*array.shape], "finite": finite}


def _read_array(node: Parts, decoder: Decoder) -> np.ndarray:
    array = decoder.tensor(node["tensor"])
    _plain_dtype(array.dtype.name)
    for name, fact in _facts(array).items():
        if node[name] != fact:
            raise ValueError(f"{name} is {fact}, not {node[name]}")
    if type(node["turned"]) is not bool:
        raise ValueError("turned must be true or false")
    array = array.T if node["turned"] else array
    if not (decoder.devices and "device" in node):
        return array
    with options(device=node["device"]):
        return to_device(array)


def _write_cells(array: np.ndarray, position: TreePosition) -> Parts:
    values = array.ravel().tolist()
    widest = _largest_cell_bytes(values)
    name = array.dtype.str if array.dtype.itemsize <= widest else f"<U{widest // 4}"
    position.encoder.text_bytes.append(_total_cell_bytes(len(values), np.dtype(name)))
    return {"dtype": name, "shape": list(array.shape), "values": position.items(values)}


def _read_cells(node: Parts, decoder: Decoder) -> np.ndarray:
    values, shape = decoder.items(node["values"]), _shape(node["shape"])
    if not all(map(_is_cell, values)):
        raise ValueError("cells with something else than text and numbers")
    dtype = _cell_dtype(node["dtype"], values)
    decoder.budget.take(_total_cell_bytes(len(values), dtype))
    cells = np.empty(len(values), dtype=object)
    cells[:] = values
    return cells.astype(dtype).reshape(shape)


def _cell_dtype(name: Any, values: list[Any]) -> np.dtype:
    """Return the type of cells: text that is no wider than needed, or objects."""
    if name == "|O":
        return np.dtype(object)
    digits = name[2:] if isinstance(name, str) and name[:2] in ("<U", ">U") else ""
    is_text = all(isinstance(value, str) for value in values)
    if not (digits.isascii() and digits.isdecimal() and len(digits) < 10 and is_text):
        raise ValueError(f"dtype {name!r}")
    if 4 * int(digits) > _largest_cell_bytes(values):
        raise ValueError(f"dtype {name!r} is wider than its cells")
    return np.dtype(name)


def _is_cell(value: Any) -> bool:
    if type(value) is int:
        return value.bit_length() < 64
    return value is None or isinstance(value, (str, bool, float, np.generic))


def _shape(node: Node) -> tuple[int, ...]:
    if not isinstance(node, list) or not all(type(n) is int and n >= 0 for n in node):
        raise ValueError(f"{node!r} is no shape")
    return tuple(node)


def _total_cell_bytes(n: int, dtype: np.dtype) -> int:
    """Bytes that n cells take, as objects and in their type at the same time."""
    return n * (dtype.itemsize + np.dtype(object).itemsize)


def _largest_cell_bytes(values: list[Any]) -> int:
    """Bytes that a cell may take: a small file must not become a huge array."""
    texts = [text for text in values if isinstance(text, str)]
    return 4 * max([MAX_UNUSED, *map(len, texts)])


def _are_matrices(value: Any) -> bool:
    """Whether this is an array of matrices of numbers, all of one type."""
    if not isinstance(value, np.ndarray) or value.dtype != object or value.ndim != 1:
        return False
    cells = value.tolist()
    are_number_arrays = all(_is_number_array(cell) and cell.ndim == 2 for cell in cells)
    return are_number_arrays and len({cell.dtype for cell in cells}) == 1


def _write_matrices(array: np.ndarray, position: TreePosition) -> Parts:
    """Write all numbers as one tensor: a model may hold thousands of series."""
    shapes = np.array([cell.shape for cell in array], dtype=np.int64)
    numbers = np.concatenate([cell.ravel() for cell in array])
    return position.children({"shapes": shapes, "numbers": numbers})


def _read_matrices(node: Parts, decoder: Decoder) -> np.ndarray:
    shapes, numbers = (decoder.decode(node[name]) for name in ("shapes", "numbers"))
    are_arrays = isinstance(shapes, np.ndarray) and isinstance(numbers, np.ndarray)
    if not (
        are_arrays and shapes.ndim == 2 and shapes.shape[1] == 2 and numbers.ndim == 1
    ):
        raise ValueError("matrices must have shapes and numbers")
    if shapes.dtype.kind != "i" or (shapes < 0).any() or (shapes > 2**31).any():
        raise ValueError("matrices with shapes that are none")
    decoder.budget.take(256 * len(shapes))
    ends = np.cumsum(shapes[:, 0] * shapes[:, 1])
    if (ends[-1] if len(ends) else 0) != len(numbers) or (ends < 0).any():
        raise ValueError("matrices with more or fewer numbers than their shapes have")
    matrices = np.empty(len(shapes), dtype=object)
    blocks = np.split(numbers, ends[:-1])
    for i, (block, shape) in enumerate(zip(blocks, shapes, strict=True)):
        matrices[i] = block.reshape(shape)
    return matrices


def _are_records(value: Any) -> bool:
    """Whether this is an array of records, such as graphs."""
    if not isinstance(value, np.ndarray) or value.dtype != object or value.ndim != 1:
        return False
    return len(value) > 0 and all(map(is_record, value))


def _read_records(node: Parts, decoder: Decoder) -> np.ndarray:
    records = decoder.items(node["items"])
    if not records or not all(map(is_record, records)):
        raise ValueError("records with something else among them")
    array = np.empty(len(records), dtype=object)
    for i, record in enumerate(records):
        array[i] = record
    return array


def _write_csr(matrix: Any, position: TreePosition) -> Parts:
    csr = matrix.tocsr()
    nodes = position.children({name: getattr(csr, name) for name in CSR_PARTS})
    return {"shape": list(csr.shape), **nodes}


def _read_csr(node: Parts, decoder: Decoder) -> sparse.csr_array:
    arrays = tuple(decoder.decode(node[name]) for name in CSR_PARTS)
    shape = _shape(node["shape"])
    _check_csr(shape, *arrays)
    return sparse.csr_array(arrays, shape=shape)


def _check_csr(shape: tuple[int, ...], data: Any, indices: Any, starts: Any) -> None:
    """Check all indices, which SciPy does not: its products would write there."""
    are_arrays = isinstance(data, np.ndarray) and data.ndim == 1 and len(shape) == 2
    if not (are_arrays and _are_indices(indices) and _are_indices(starts)):
        raise ValueError("a sparse matrix must have a shape and three arrays")
    ends = np.append(starts, len(indices))
    is_sorted = (
        len(starts) == shape[0] + 1 and ends[0] == 0 and (np.diff(ends) >= 0).all()
    )
    is_inside = (indices >= 0).all() and (indices < shape[1]).all()
    if not (is_sorted and is_inside and starts[-1] == len(indices) == len(data)):
        raise ValueError("a sparse matrix with entries outside of it")


def _are_indices(array: Any) -> bool:
    return isinstance(array, np.ndarray) and array.ndim == 1 and array.dtype.kind == "i"


def _is_default_generator(value: Any) -> bool:
    """Accept PCG64 only, of which every state is valid."""
    is_generator = isinstance(value, np.random.Generator)
    return is_generator and type(value.bit_generator) is np.random.PCG64


def _write_generator(value: np.random.Generator, position: TreePosition) -> Parts:
    return {"state": position.child("state", value.bit_generator.state)}


def _read_generator(node: Parts, decoder: Decoder) -> np.random.Generator:
    bits = np.random.PCG64()
    bits.state = decoder.decode(node["state"])
    return np.random.Generator(bits)


def _write_random_state(value: np.random.RandomState, position: TreePosition) -> Parts:
    return {"state": position.child("state", value.get_state())}


def _read_random_state(node: Parts, decoder: Decoder) -> np.random.RandomState:
    state = decoder.decode(node["state"])
    # NumPy does not check these, and would read past the end of its own state
    if len(state[1]) != MT_WORDS or not 0 <= state[2] <= MT_WORDS:
        raise ValueError("random state out of range")
    random = np.random.RandomState()
    random.set_state(state)
    return random


def _is_number_array(value: Any) -> bool:
    return isinstance(value, np.ndarray) and _is_plain(value.dtype)


def _is_cell_array(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind in "UO"


VALUES = (
    Codec(None, _exactly(type(None), bool, int), lambda value, _: value),
    Codec(None, _instance(str), lambda value, _: str(value)),
    Codec(None, _is_finite_float, lambda value, _: value),
    Codec(
        "float",
        _exactly(float),
        lambda value, _: {"value": repr(value)},
        _read_float,
        ("value",),
    ),
    Codec(None, _exactly(list), lambda value, position: position.items(value)),
    Codec(
        "tuple",
        _exactly(tuple),
        lambda value, position: {"items": position.items(value)},
        lambda node, decoder: tuple(decoder.items(node["items"])),
        ("items",),
    ),
    Codec("dict", _exactly(dict), _write_dict, _read_dict, ("keys", "values")),
    Codec(
        "scalar",
        lambda value: isinstance(value, np.generic) and _is_plain(value.dtype),
        _write_scalar,
        _read_scalar,
        ("dtype", "value"),
    ),
    Codec("array", _is_number_array, _write_array, _read_array, ARRAY_PARTS),
    Codec("array", is_torch, _write_tensor),
    Codec(
        "matrices",
        _are_matrices,
        _write_matrices,
        _read_matrices,
        ("shapes", "numbers"),
    ),
    Codec(
        "records",
        _are_records,
        lambda value, position: {"items": position.items(value)},
        _read_records,
        ("items",),
    ),
    Codec(
        "cells", _is_cell_array, _write_cells, _read_cells, ("dtype", "shape", "values")
    ),
    Codec("csr", sparse.issparse, _write_csr, _read_csr, ("shape", *CSR_PARTS)),
    Codec(
        "dtype",
        lambda value: isinstance(value, np.dtype) and _is_plain(value),
        lambda value, _: {"name": value.name},
        lambda node, _: _plain_dtype(node["name"]),
        ("name",),
    ),
    Codec(
        "generator",
        _is_default_generator,
        _write_generator,
        _read_generator,
        ("state",),
    ),
    Codec(
        "random state",
        _exactly(np.random.RandomState),
        _write_random_state,
        _read_random_state,
        ("state",),
    ),
)
