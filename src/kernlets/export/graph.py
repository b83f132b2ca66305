"""A model as a list of operations on whole arrays, which other programs can run.

Operations are those of ONNX. This module knows neither models nor the library onnx:
`parts.py` and its neighbours write a graph down, `files.py` and `page.py` hand it on.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..core import Array

Shape = tuple[int | None, ...]  # None is the number of rows, which is not known
Operand = Any  # a Value, or a number or NumPy array that becomes a constant


@dataclass(frozen=True)
class Node:
    """One operation."""

    op: str
    inputs: tuple[str, ...]
    output: str
    settings: dict[str, Any]


@dataclass
class Graph:
    """Nodes in the order in which they are computed, and constants by name."""

    dtype: np.dtype  # of all floating-point numbers
    nodes: list[Node] = field(default_factory=list)
    constants: dict[str, np.ndarray] = field(default_factory=dict)
    inputs: dict[str, Value] = field(default_factory=dict)
    outputs: dict[str, Value] = field(default_factory=dict)
    _known: dict[Any, str] = field(default_factory=dict)

    def input(self, name: str, width: int) -> Value:
        """Rows of `width` numbers."""
        self.inputs[name] = Value(self, name, (None, width), self.dtype)
        return self.inputs[name]

    def output(self, name: str, value: Value) -> None:
        self.outputs[name] = self.node("Identity", value, shape=value.shape, name=name)

    def constant(self, value: Any) -> Value:
        """A number or array; equal ones are kept once."""
        array = np.asarray(value)
        kinds: dict[str, Any] = {"f": self.dtype, "i": np.int64, "u": np.int64}
        array = array.astype(kinds.get(array.dtype.kind, array.dtype))
        key = array.shape, array.dtype.str, array.tobytes()
        name = self._known.setdefault(key, f"constant{len(self._known)}")
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
        """The result of one operation; its type is that of the first input if None."""
        values = [self.value(each) for each in inputs]
        names = tuple(value.name for value in values)
        output = f"{op.lower()}{len(self.nodes)}" if name is None else name
        self.nodes.append(Node(op, names, output, settings))
        dtype = values[0].dtype if dtype is None else np.dtype(dtype)
        return Value(self, output, shape, dtype)

    def prune(self) -> None:
        """Drop what no output needs."""
        needed, kept = set(self.outputs), []
        for node in reversed(self.nodes):
            if node.output in needed:
                kept.append(node)
                needed.update(node.inputs)
        self.nodes = kept[::-1]
        self.constants = {n: a for n, a in self.constants.items() if n in needed}

    def value(self, operand: Operand) -> Value:
        return operand if isinstance(operand, Value) else self.constant(operand)


@dataclass(frozen=True, eq=False)
class Value:
    """A result in a graph, with the operators of an array."""

    graph: Graph
    name: str
    shape: Shape
    dtype: np.dtype

    __array_ufunc__ = None  # an array at the left leaves operators to this class

    def _with(self, op: str, *others: Operand, dtype: Any = None) -> Value:
        values = [self.graph.value(each) for each in (self, *others)]
        shape = _broadcast(*(value.shape for value in values))
        return self.graph.node(op, *values, shape=shape, dtype=dtype)

    def __add__(self, other: Operand) -> Value:
        return self._with("Add", other)

    def __sub__(self, other: Operand) -> Value:
        return self._with("Sub", other)

    def __mul__(self, other: Operand) -> Value:
        return self._with("Mul", other)

    def __truediv__(self, other: Operand) -> Value:
        return self._with("Div", other)

    def __rsub__(self, other: Operand) -> Value:
        return self.graph.value(other) - self

    def __rtruediv__(self, other: Operand) -> Value:
        return self.graph.value(other) / self

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self) -> Value:
        return self._with("Neg")

    def __gt__(self, other: Operand) -> Value:
        return self._with("Greater", other, dtype=bool)

    def __and__(self, other: Operand) -> Value:
        return self._with("And", other)

    def equals(self, other: Operand) -> Value:
        return self._with("Equal", other, dtype=bool)

    def __matmul__(self, other: Operand) -> Value:
        right = self.graph.value(other)
        stack = _broadcast(self.shape[:-2], right.shape[:-2])
        shape = (*stack, self.shape[-2], right.shape[-1])
        return self.graph.node("MatMul", self, right, shape=shape)

    def abs(self) -> Value:
        return self._with("Abs")

    def sqrt(self) -> Value:
        return self._with("Sqrt")

    def exp(self) -> Value:
        return self._with("Exp")

    def tanh(self) -> Value:
        return self._with("Tanh")

    def sin(self) -> Value:
        return self._with("Sin")

    def power(self, exponent: float) -> Value:
        return self._with("Pow", np.float64(exponent))

    def at_least(self, least: float) -> Value:
        return self._with("Max", np.float64(least))

    def at_most(self, most: float) -> Value:
        return self._with("Min", np.float64(most))

    def where(self, then: Operand, otherwise: Operand) -> Value:
        """`then` where this is true."""
        then = self.graph.value(then)
        return self._with("Where", then, otherwise, dtype=then.dtype)

    def floats(self) -> Value:
        """True as 1.0, false as 0.0."""
        kind = self.graph.dtype
        return self.graph.node("Cast", self, shape=self.shape, dtype=kind, to=str(kind))

    def sum(self, axis: int) -> Value:
        """The sum along an axis, which keeps length 1."""
        shape = _reduced(self.shape, axis)
        return self.graph.node("ReduceSum", self, np.array([axis]), shape=shape)

    def max(self, axis: int) -> Value:
        """The largest entry along an axis, which keeps length 1."""
        shape = _reduced(self.shape, axis)
        return self.graph.node("ReduceMax", self, shape=shape, axes=[axis])

    def min(self, axis: int) -> Value:
        """The smallest entry along an axis, which keeps length 1."""
        shape = _reduced(self.shape, axis)
        return self.graph.node("ReduceMin", self, shape=shape, axes=[axis])

    def argmax(self) -> Value:  # (n, m) -> (n, 1)
        """The place of the largest entry of each row, the first of equal ones."""
        shape = _reduced(self.shape, 1)
        kind = np.int64
        return self.graph.node("ArgMax", self, shape=shape, dtype=kind, axis=1)

    def columns(self, places: Array) -> Value:  # (n, m) -> (n, k)
        """Some of the columns, in this order."""
        places = self.graph.value(np.asarray(places, dtype=np.int64))
        shape = (*self.shape[:-1], *places.shape)
        return self.graph.node("Gather", self, places, shape=shape, axis=1)

    def expand(self, axis: int) -> Value:
        """One more axis of length 1."""
        shape = (*self.shape[:axis], 1, *self.shape[axis:])
        return self.graph.node("Unsqueeze", self, np.array([axis]), shape=shape)

    def squeeze(self, axis: int) -> Value:
        """Without an axis of length 1."""
        shape = self.shape[:axis] + self.shape[axis + 1 :]
        return self.graph.node("Squeeze", self, np.array([axis]), shape=shape)


def joined(values: list[Value], axis: int) -> Value:
    """Values side by side along an axis."""
    if len(values) == 1:
        return values[0]
    shape = list(values[0].shape)
    shape[axis] = sum(value.shape[axis] for value in values)  # type: ignore[misc]
    return values[0].graph.node("Concat", *values, shape=tuple(shape), axis=axis)


def rows_of(table: Array, places: Value) -> Value:  # (m, ...), (n, 1) -> (n, ...)
    """A row of a constant table for each sample."""
    graph = places.graph
    known = graph.value(table)
    shape = (None, *known.shape[1:])
    return graph.node("Gather", known, places.squeeze(1), shape=shape, axis=0)


def _broadcast(*shapes: Shape) -> Shape:
    """The shape that arrays of these shapes have together, by NumPy's rules."""
    width = max(map(len, shapes))
    padded = [(1,) * (width - len(shape)) + shape for shape in shapes]
    return tuple(_common(sizes) for sizes in zip(*padded, strict=True))


def _common(sizes: Shape) -> int | None:
    wide = {size for size in sizes if size != 1}
    if len(wide) > 1:
        raise ValueError(f"arrays of lengths {sizes} along one axis do not fit")
    return wide.pop() if wide else 1


def _reduced(shape: Shape, axis: int) -> Shape:
    return tuple(1 if i == axis else size for i, size in enumerate(shape))
