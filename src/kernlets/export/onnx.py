"""`to_onnx`: a fitted model as a file that runs without Python."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from .. import __version__
from ..io.atomic_write import atomic_write
from ..numerics.arrays import is_array, to_numpy
from .graph import OperationGraph, Value
from .models import graph_of

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
    try:
        onnx: Any = import_module("onnx")
    except ImportError as error:
        raise ImportError("to_onnx needs onnx: pip install 'kernlets[onnx]'") from error
    check_is_fitted(model)
    proto = _model_proto(onnx, graph_of(model, precision(model, dtype)), model)
    onnx.checker.check_model(proto)
    if path is not None:
        with atomic_write(path) as file:
            file.write(proto.SerializeToString())
    return proto


def precision(model: Any, dtype: Any = None) -> np.dtype:
    """Return the requested type, or the widest type among the tables of a model."""
    if dtype is None:
        is_narrow = _number_types(model) == {"float32"}
        return np.dtype("float32" if is_narrow else "float64")
    if str(np.dtype(dtype)) not in TYPES:
        raise ValueError(f"dtype={dtype!r} must be one of {', '.join(TYPES)}")
    return np.dtype(dtype)


def _number_types(value: Any) -> set[str]:
    """Return the floating-point types of the atoms, landmarks and projections.

    Attributes of scikit-learn's classes are skipped: they are in float64 whatever the
    type of the rows is.
    """
    if isinstance(value, Pipeline):
        value = [step for _, step in value.steps]
    if isinstance(value, (list, tuple)):
        return set().union(*map(_number_types, value))
    if hasattr(value, "_model_array") or (is_array(value) and value.ndim == 2):
        array = getattr(value, "_model_array", value)
        name = "none" if array is None else to_numpy(array[:0]).dtype.name
        return {name} if name.startswith("float") else set()
    if type(value).__module__.startswith("kernlets."):
        return _number_types(list(vars(value).values()))
    return set()


def _model_proto(onnx: Any, graph: OperationGraph, model: Any) -> Any:
    """Convert a graph to a ModelProto of ONNX."""
    helper = onnx.helper
    nodes = []
    for node in graph.nodes:
        settings = dict(node.settings)
        if "to" in settings:
            settings["to"] = _element_type(onnx, np.dtype(settings["to"]))
        proto = helper.make_node(node.op, node.inputs, [node.output], **settings)
        nodes.append(proto)
    constants = []
    for name, array in graph.constants.items():  # ONNX takes strings of Python
        array = array.astype(object) if array.dtype.kind == "U" else array
        constants.append(onnx.numpy_helper.from_array(array, name))
    inputs = [_value_info(onnx, value) for value in graph.inputs.values()]
    outputs = [_value_info(onnx, value) for value in graph.outputs.values()]
    proto = helper.make_model(
        helper.make_graph(nodes, "kernlets", inputs, outputs, constants),
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="kernlets",
        producer_version=__version__,
    )
    properties = {"model": type(model).__name__}  # which programs can read
    feature_names = getattr(model, "feature_names_in_", None)
    if feature_names is not None:
        properties["feature_names"] = json.dumps([str(name) for name in feature_names])
    helper.set_model_props(proto, properties)
    return proto


def _value_info(onnx: Any, value: Value) -> Any:
    shape = ["rows" if size is None else size for size in value.shape]
    kind = _element_type(onnx, value.dtype)
    return onnx.helper.make_tensor_value_info(value.name, kind, shape)


def _element_type(onnx: Any, dtype: np.dtype) -> int:
    if dtype.kind == "U":
        return int(onnx.TensorProto.STRING)
    return int(onnx.helper.np_dtype_to_tensor_dtype(dtype))
