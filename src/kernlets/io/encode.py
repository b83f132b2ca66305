"""Turns values into trees of JSON values and named arrays; `decode.py` reads them.

None, bool, int, finite floats, text and lists are themselves in JSON. Any other value
is a JSON object with a tag, ``{"@": "csr", ...}``, and exactly the parts that the
table `decode.READERS` names.

A file holds no functions, opens no other files and starts no processes: a parameter
that would lead to that when the model is used is refused, on writing and on reading.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from math import isfinite
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.pipeline import FeatureUnion

from ..base.constraints import StrOptions, validate_parameter_constraints
from ..base.estimator import as_fitted
from ..numerics.arrays import is_torch, to_numpy
from ..registry import storable
from ..schema import LARGEST, attributes, check, is_record

Node = Any  # a JSON value
Parts = dict[str, Node]

MAX_UNUSED = 64  # characters by which a cell may be wider than its text
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
            self.text_bytes += cell_bytes(value.size, np.dtype(parts["dtype"]))
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
        return {
            "@": "array",
            "tensor": name,
            "turned": is_transposed,
            **array_facts(plain),
        }


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
        widest, name = widest_cell(cells), value.dtype.str
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


def array_facts(array: np.ndarray) -> Parts:
    """Return the facts about an array that are stored beside its content."""
    finite = array.dtype.kind != "f" or bool(np.isfinite(array).all())
    return {"dtype": array.dtype.name, "shape": [*array.shape], "finite": finite}


def cell_bytes(n: int, dtype: np.dtype) -> int:
    """Bytes that n cells take, as objects and in their type at the same time."""
    return n * (dtype.itemsize + np.dtype(object).itemsize)


def widest_cell(values: list[Any]) -> int:
    """Bytes that a cell may take: a small file must not become a huge array."""
    texts = [text for text in values if isinstance(text, str)]
    return 4 * max([MAX_UNUSED, *map(len, texts)])


#: Parameters of a session, not of a model: not stored, and None in every file.
SESSION_ONLY = ("callback", "memory")
MAX_JOBS = 256
#: Kinds of parameters that may be True or False; else loops would be compiled anew.
BOOLEAN = ("boolean", "verbose", "no_validation", bool, object)
#: Constraints of the class of scikit-learn that has none itself.
FEATURE_UNION = {
    "transformer_list": [list],
    "n_jobs": [Integral, None],
    "transformer_weights": [dict, None],
    "verbose": ["boolean"],
    "verbose_feature_names_out": ["boolean", StrOptions({"default"})],
}


def constraints_of(cls: type) -> dict[str, Any]:
    """Return the constraints of the parameters of a class, adapted to files.

    Functions are not among the allowed kinds, and an array-like is an array or a list.
    """
    if cls is FeatureUnion:
        return FEATURE_UNION
    adapted = {}
    for name, kinds in getattr(cls, "_parameter_constraints", {}).items():
        if not isinstance(kinds, str):  # "no_validation"
            arrays = [np.ndarray, list, tuple] if "array-like" in kinds else []
            excluded = (callable, Callable, "array-like")
            kinds = [kind for kind in kinds if kind not in excluded] + arrays
        adapted[name] = kinds
    return adapted


def check_parameters(cls: type, params: dict[str, Any]) -> None:
    """Refuse parameters that `fit` would refuse, or that could do harm later."""
    owner, constraints = cls.__name__, constraints_of(cls)
    for name in SESSION_ONLY:
        if params.get(name) is not None:
            raise ValueError(f"{owner}.{name} must be None in a file")
    validate_parameter_constraints(constraints, params, caller_name=owner)
    for name, value in params.items():
        kinds = constraints.get(name, ())
        is_boolean = isinstance(kinds, str) or any(kind in BOOLEAN for kind in kinds)
        if type(value) is bool and not is_boolean:
            raise ValueError(f"{owner}.{name} is {value}, it must not be a bool")
        if not _is_harmless(name, value):
            raise ValueError(f"{owner}.{name} is not what it must be in a file")


def _is_harmless(name: str, value: Any) -> bool:
    """Whether a parameter that meets its constraints is all that it must be."""
    if name in ("feature_range", "quantile_range"):
        return len(value) == 2 and all(isinstance(end, Real) for end in value)
    if name == "n_jobs":
        return value is None or abs(value) <= MAX_JOBS
    if name == "steps":  # transformers, then any estimator
        before_last, last = value[:-1], value[-1:]
        return (
            all(
                _is_step(step, "transform", "passthrough", None) for step in before_last
            )
            and last != []
            and _is_step(last[0], "get_params", "passthrough", None)
        )
    if name == "transformer_list":
        return all(_is_step(step, "transform", "passthrough", "drop") for step in value)
    if name == "transformer_weights":
        weights = {} if value is None else value
        return all(isinstance(w, (Real, type(None))) for w in weights.values())
    # whole numbers fit into the integers of loops
    return not isinstance(value, Integral) or abs(int(value)) <= LARGEST


def _is_step(step: Any, method: str, *placeholders: str | None) -> bool:
    """Whether a step has a printable name, and an estimator or a placeholder."""
    if type(step) is not tuple or len(step) != 2:
        return False
    name, estimator = step
    is_valid = (
        hasattr(estimator, method)
        if isinstance(estimator, BaseEstimator)
        else isinstance(estimator, (str, type(None))) and estimator in placeholders
    )
    return isinstance(name, str) and name.isprintable() and is_valid
