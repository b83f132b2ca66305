"""`to_onnx`: a fitted model as a file that runs without Python."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from .. import __version__
from ..io.atomic_write import atomic_write
from ..numerics.arrays import is_array, to_numpy
from .graph import Node, OperationGraph, Value
from .outputs import graph_of

OPSET = 17  # operators of 2022, which runtimes of that year know
IR_VERSION = 8
TYPES = ("float32", "float64")


def to_onnx(model: Any, path: str | Path | None = None, *, dtype: Any = None) -> Any:
    """A fitted model in the format ONNX, which other languages and devices run.

    Maps give ``features``; dictionary learners ``codes`` and ``error``; classifiers
    ``label`` and ``scores``, a column for each class, of which the largest wins, and
    `ResidualClassifier` also ``probabilities``; detectors ``label`` (1 or -1) and
    ``score``, higher for less normal rows. The input is ``X``, any number of rows.
    Rows must be complete and finite: nothing is checked or filled in.

    Parameters
    ----------
    model : estimator
        A fitted map, dictionary learner, classifier or outlier detector, or a
        scikit-learn Pipeline of these with scalers, `PCA` and linear classifiers.
    path : path, optional
        A file to write, which takes its place only when it is complete.
    dtype : {"float32", "float64"}, optional
        The type of all numbers. Default: that of the model.

    Returns
    -------
    onnx.ModelProto
        The model.

    Raises
    ------
    ExportError
        If a part has no such form; it names the part and what to use instead.

    Examples
    --------
    >>> from kernlets import KSVD, ResidualClassifier, datasets, to_onnx
    >>> digits = datasets.load("digits")
    >>> model = ResidualClassifier(KSVD(30, n_nonzero_coefs=4, random_state=0))
    >>> exported = to_onnx(model.fit(digits.X_train, digits.y_train), dtype="float32")
    >>> [output.name for output in exported.graph.output]
    ['label', 'scores', 'probabilities']
    """
    onnx = _onnx()
    check_is_fitted(model)
    proto = _model_proto(onnx, graph_of(model, precision(model, dtype)), model)
    onnx.checker.check_model(proto)
    if path is not None:
        with atomic_write(path) as file:
            file.write(proto.SerializeToString())
    return proto


def _onnx() -> Any:
    try:
        return import_module("onnx")
    except ImportError as error:
        raise ImportError("to_onnx needs onnx: pip install 'kernlets[onnx]'") from error


def precision(model: Any, dtype: Any = None) -> np.dtype:
    """Return the requested type, or the widest type among the tables of a model."""
    if dtype is None:
        kinds = {str(array.dtype) for array in _number_tables(model)}
        return np.dtype("float32" if kinds == {"float32"} else "float64")
    if str(np.dtype(dtype)) not in TYPES:
        raise ValueError(f"dtype={dtype!r} must be one of {', '.join(TYPES)}")
    return np.dtype(dtype)


def _number_tables(value: Any) -> Iterator[np.ndarray]:
    """Yield empty arrays with the types of the atoms, landmarks and projections.

    Attributes of scikit-learn's classes are skipped: they are in float64 whatever the
    type of the rows is.
    """
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from _number_tables(item)
    elif isinstance(value, Pipeline):
        yield from _number_tables([step for _, step in value.steps])
    elif is_array(value) and value.ndim == 2:
        yield from _empty_float_tables(value)
    elif hasattr(value, "_model_array"):
        yield from _empty_float_tables(value._model_array)
    elif type(value).__module__.startswith("kernlets."):
        yield from _number_tables(list(vars(value).values()))


def _empty_float_tables(array: Any) -> list[np.ndarray]:
    """Return an empty array of the same type if it is a floating-point type."""
    tables = [] if array is None else [to_numpy(array[:0])]
    return [table for table in tables if table.dtype.kind == "f"]


def _model_proto(onnx: Any, graph: OperationGraph, model: Any) -> Any:
    """Convert a graph to a ModelProto of ONNX."""
    helper, from_array = onnx.helper, onnx.numpy_helper.from_array
    body = helper.make_graph(
        [_node_proto(onnx, node) for node in graph.nodes],
        "kernlets",
        [_value_info(onnx, value) for value in graph.inputs.values()],
        [_value_info(onnx, value) for value in graph.outputs.values()],
        [
            from_array(_with_python_strings(a), name)
            for name, a in graph.constants.items()
        ],
    )
    producer = {"producer_name": "kernlets", "producer_version": __version__}
    opset = [helper.make_opsetid("", OPSET)]
    proto = helper.make_model(
        body, opset_imports=opset, ir_version=IR_VERSION, **producer
    )
    helper.set_model_props(proto, _properties(model))
    return proto


def _properties(model: Any) -> dict[str, str]:
    """Return properties that programs can read: the class and the feature names."""
    properties = {"model": type(model).__name__}
    names = getattr(model, "feature_names_in_", None)
    if names is not None:
        properties["feature_names"] = json.dumps([str(name) for name in names])
    return properties


def _node_proto(onnx: Any, node: Node) -> Any:
    settings = dict(node.settings)
    if "to" in settings:
        settings["to"] = _element_type(onnx, np.dtype(settings["to"]))
    return onnx.helper.make_node(node.op, node.inputs, [node.output], **settings)


def _value_info(onnx: Any, value: Value) -> Any:
    shape = ["rows" if size is None else size for size in value.shape]
    kind = _element_type(onnx, value.dtype)
    return onnx.helper.make_tensor_value_info(value.name, kind, shape)


def _element_type(onnx: Any, dtype: np.dtype) -> int:
    if dtype.kind == "U":
        return int(onnx.TensorProto.STRING)
    return int(onnx.helper.np_dtype_to_tensor_dtype(dtype))


def _with_python_strings(array: np.ndarray) -> np.ndarray:
    """Convert arrays of text to Python strings, which ONNX takes."""
    return array.astype(object) if array.dtype.kind == "U" else array
