"""A model as a list of operations on whole arrays, which other programs can run.

Operations are those of ONNX. This module does not know what a model computes: `onnx.py`
and `codes.py` build its graph, which `to_proto` converts to ONNX.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .. import __version__
from ..contracts import Array

Shape = tuple[int | None, ...]  # None is the number of rows, which is not known
Operand = Any  # a Value, or a number or NumPy array that becomes a constant
OPSET = 17  # operators of 2022, which runtimes of that year know
IR_VERSION = 8


class ExportError(TypeError):
    """A part of a model has no form outside Python."""


def refusal(model_part: Any, advice: str) -> ExportError:
    """Return an error that names the part of the model and gives advice."""
    name = model_part if isinstance(model_part, str) else type(model_part).__name__
    return ExportError(f"{name} cannot be exported: {advice}")


@dataclass(frozen=True)
class Node:
    """One operation."""

    op: str
    inputs: tuple[str, ...]
    output: str
    settings: dict[str, Any]


@dataclass
class OperationGraph:
    """The nodes in the order in which they are computed, and constants by name."""

    dtype: np.dtype  # of all floating-point numbers
    nodes: list[Node] = field(default_factory=list)
    constants: dict[str, np.ndarray] = field(default_factory=dict)
    inputs: dict[str, Value] = field(default_factory=dict)
    outputs: dict[str, Value] = field(default_factory=dict)
    _constant_names: dict[Any, str] = field(default_factory=dict)

    def input(self, name: str, n_features: int) -> Value:
        """Add an input of rows with this number of features."""
        self.inputs[name] = Value(self, name, (None, n_features), self.dtype)
        return self.inputs[name]

    def output(self, name: str, value: Value) -> None:
        self.outputs[name] = self.node("Identity", value, shape=value.shape, name=name)

    def constant(self, value: Any) -> Value:
        """Add a number or an array; equal constants are stored once."""
        array = np.asarray(value)
        kinds: dict[str, Any] = {"f": self.dtype, "i": np.int64, "u": np.int64}
        array = array.astype(kinds.get(array.dtype.kind, array.dtype))
        key = array.shape, array.dtype.str, array.tobytes()
        name = self._constant_names.setdefault(
            key, f"constant{len(self._constant_names)}"
        )
        self.constants[name] = array
        return Value(self, name, array.shape, array.dtype)

    def node(
        self,
        op: str,
        *inputs: Operand,
        shape: Shape,
        dtype: Any = None,
        name: str | None = None,
        **settings: Any,
    ) -> Value:
        """Add an operation; without dtype, its result has that of the first input."""
        values = [self.value(operand) for operand in inputs]
        names = tuple(value.name for value in values)
        output = f"{op.lower()}{len(self.nodes)}" if name is None else name
        self.nodes.append(Node(op, names, output, settings))
        dtype = values[0].dtype if dtype is None else np.dtype(dtype)
        return Value(self, output, shape, dtype)

    def value(self, operand: Operand) -> Value:
        return operand if isinstance(operand, Value) else self.constant(operand)

    def prune(self) -> None:
        """Remove the nodes and constants that no output needs."""
        used_names, used_nodes = set(self.outputs), []
        for node in reversed(self.nodes):
            if node.output in used_names:
                used_nodes.append(node)
                used_names.update(node.inputs)
        self.nodes = used_nodes[::-1]
        self.constants = {n: a for n, a in self.constants.items() if n in used_names}

    def to_proto(self, onnx: Any, model: Any) -> Any:
        """Convert the graph of a model to a ModelProto; `onnx` is the library."""
        helper = onnx.helper
        nodes = []
        for node in self.nodes:
            settings = dict(node.settings)
            if "to" in settings:
                settings["to"] = _element_type(onnx, np.dtype(settings["to"]))
            proto = helper.make_node(node.op, node.inputs, [node.output], **settings)
            nodes.append(proto)
        constants = []
        for name, array in self.constants.items():  # ONNX takes strings of Python
            array = array.astype(object) if array.dtype.kind == "U" else array
            constants.append(onnx.numpy_helper.from_array(array, name))
        inputs = [_value_info(onnx, value) for value in self.inputs.values()]
        outputs = [_value_info(onnx, value) for value in self.outputs.values()]
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
            properties["feature_names"] = json.dumps(
                [str(name) for name in feature_names]
            )
        helper.set_model_props(proto, properties)
        return proto


@dataclass(frozen=True, eq=False)
class Value:
    """A result in a graph, with the operators of an array."""

    graph: OperationGraph
    name: str
    shape: Shape
    dtype: np.dtype

    __array_ufunc__ = None  # an array at the left leaves operators to this class

    def _apply(self, op: str, *operands: Operand, dtype: Any = None) -> Value:
        values = [self.graph.value(operand) for operand in (self, *operands)]
        shape = _broadcast_shape(*(value.shape for value in values))
        return self.graph.node(op, *values, shape=shape, dtype=dtype)

    def __add__(self, other: Operand) -> Value:
        return self._apply("Add", other)

    def __sub__(self, other: Operand) -> Value:
        return self._apply("Sub", other)

    def __mul__(self, other: Operand) -> Value:
        return self._apply("Mul", other)

    def __truediv__(self, other: Operand) -> Value:
        return self._apply("Div", other)

    def __rsub__(self, other: Operand) -> Value:
        return self.graph.value(other) - self

    def __rtruediv__(self, other: Operand) -> Value:
        return self.graph.value(other) / self

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self) -> Value:
        return self._apply("Neg")

    def __gt__(self, other: Operand) -> Value:
        return self._apply("Greater", other, dtype=bool)

    def __and__(self, other: Operand) -> Value:
        return self._apply("And", other)

    def equals(self, other: Operand) -> Value:
        return self._apply("Equal", other, dtype=bool)

    def __matmul__(self, other: Operand) -> Value:
        right = self.graph.value(other)
        stack = _broadcast_shape(self.shape[:-2], right.shape[:-2])
        shape = (*stack, self.shape[-2], right.shape[-1])
        return self.graph.node("MatMul", self, right, shape=shape)

    def abs(self) -> Value:
        return self._apply("Abs")

    def sqrt(self) -> Value:
        return self._apply("Sqrt")

    def exp(self) -> Value:
        return self._apply("Exp")

    def tanh(self) -> Value:
        return self._apply("Tanh")

    def sin(self) -> Value:
        return self._apply("Sin")

    def power(self, exponent: float) -> Value:
        return self._apply("Pow", np.float64(exponent))

    def at_least(self, least: float) -> Value:
        return self._apply("Max", np.float64(least))

    def at_most(self, most: float) -> Value:
        return self._apply("Min", np.float64(most))

    def where(self, then: Operand, otherwise: Operand) -> Value:
        """`then` where this is true."""
        then = self.graph.value(then)
        return self._apply("Where", then, otherwise, dtype=then.dtype)

    def floats(self) -> Value:
        """True as 1.0, false as 0.0."""
        kind = self.graph.dtype
        return self.graph.node("Cast", self, shape=self.shape, dtype=kind, to=str(kind))

    def _reduce(self, op: str, along: int, *inputs: Operand, **settings: Any) -> Value:
        shape = tuple(1 if i == along else size for i, size in enumerate(self.shape))
        return self.graph.node(op, self, *inputs, shape=shape, **settings)

    def sum(self, axis: int) -> Value:
        """The sum along an axis, which keeps length 1."""
        return self._reduce("ReduceSum", axis, np.array([axis]))

    def max(self, axis: int) -> Value:
        """The largest entry along an axis, which keeps length 1."""
        return self._reduce("ReduceMax", axis, axes=[axis])

    def min(self, axis: int) -> Value:
        """The smallest entry along an axis, which keeps length 1."""
        return self._reduce("ReduceMin", axis, axes=[axis])

    def argmax(self) -> Value:  # (n, m) -> (n, 1)
        """The index of the largest entry of each row, the first of equal ones."""
        return self._reduce("ArgMax", 1, dtype=np.int64, axis=1)

    def columns(self, indices: Array) -> Value:  # (n, m) -> (n, k)
        """Select columns by their indices, in this order."""
        indices = self.graph.value(np.asarray(indices, dtype=np.int64))
        shape = (*self.shape[:-1], *indices.shape)
        return self.graph.node("Gather", self, indices, shape=shape, axis=1)

    def expand(self, axis: int) -> Value:
        """One more axis of length 1."""
        shape = (*self.shape[:axis], 1, *self.shape[axis:])
        return self.graph.node("Unsqueeze", self, np.array([axis]), shape=shape)

    def squeeze(self, axis: int) -> Value:
        """Without an axis of length 1."""
        shape = self.shape[:axis] + self.shape[axis + 1 :]
        return self.graph.node("Squeeze", self, np.array([axis]), shape=shape)


def concatenate(values: list[Value], axis: int) -> Value:
    """Concatenate values along an axis."""
    if len(values) == 1:
        return values[0]
    shape = list(values[0].shape)
    shape[axis] = sum(value.shape[axis] for value in values)  # type: ignore[misc]
    return values[0].graph.node("Concat", *values, shape=tuple(shape), axis=axis)


def take_rows(
    table: Array, row_numbers: Value
) -> Value:  # (m, ...), (n, 1) -> (n, ...)
    """Take a row of a constant table for each sample."""
    graph = row_numbers.graph
    constant = graph.value(table)
    shape = (None, *constant.shape[1:])
    return graph.node("Gather", constant, row_numbers.squeeze(1), shape=shape, axis=0)


def _broadcast_shape(*shapes: Shape) -> Shape:
    """Return the common shape of arrays of these shapes by NumPy's rules."""
    n_axes = max(map(len, shapes))
    padded = [(1,) * (n_axes - len(shape)) + shape for shape in shapes]
    common: list[int | None] = []
    for sizes in zip(*padded, strict=True):
        long_sizes = {size for size in sizes if size != 1}
        if len(long_sizes) > 1:
            raise ValueError(f"arrays of lengths {sizes} along one axis do not fit")
        common.append(long_sizes.pop() if long_sizes else 1)
    return tuple(common)


def _value_info(onnx: Any, value: Value) -> Any:
    shape = ["rows" if size is None else size for size in value.shape]
    kind = _element_type(onnx, value.dtype)
    return onnx.helper.make_tensor_value_info(value.name, kind, shape)


def _element_type(onnx: Any, dtype: np.dtype) -> int:
    if dtype.kind == "U":
        return int(onnx.TensorProto.STRING)
    return int(onnx.helper.np_dtype_to_tensor_dtype(dtype))
