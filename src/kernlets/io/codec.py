"""Turns values into trees of JSON values and named arrays, and back.

A `Codec` knows one type of values. `Encoder` and `Decoder` walk over a value or a tree
and hand each part to its codec. The codecs are in `values.py` and
`objects.py`; this module handles no files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..schema import Misfit, check
from .limits import MemoryBudget

Node = Any  # a JSON value


class PersistenceError(TypeError):
    """A value that a model file cannot hold."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(
            f"{path or 'model'}: {problem}; use joblib.dump for models with functions "
            "or classes of your own"
        )


@dataclass(frozen=True)
class Codec:
    """How one type of values is written and read.

    `write` returns a dict with the keys `part_names`, which becomes a node marked with
    the tag. A codec without a tag writes values that JSON has itself.
    """

    tag: str | None
    takes: Callable[[Any], bool]
    write: Callable[[Any, TreePosition], Node]
    read: Callable[[dict[str, Node], Decoder], Any] | None = None
    part_names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Encoder:
    """Writes values, and stores their arrays under their paths."""

    codecs: tuple[Codec, ...]
    devices: bool = False  # whether to store the devices of torch tensors
    tensors: dict[str, np.ndarray] = field(default_factory=dict)
    checked_sizes: dict[int, Any] = field(
        default_factory=dict
    )  # sizes of checked objects by their ids
    text_bytes: list[int] = field(default_factory=list)  # of arrays of text, in memory

    def encode(self, value: Any, path: str = "") -> Node:
        """Return the tree of a value."""
        for codec in self.codecs:
            if codec.takes(value):
                node = codec.write(value, TreePosition(self, path))
                return node if codec.tag is None else {"@": codec.tag, **node}
        kind = type(value)
        name = f"{kind.__module__}.{kind.__qualname__}"
        raise PersistenceError(path, f"a {name} cannot be stored in a model file")


@dataclass(frozen=True)
class TreePosition:
    """The position in the tree at which a value is being written."""

    encoder: Encoder
    path: str

    def child(self, name: str, value: Any) -> Node:
        """Return the tree of a part of the value."""
        return self.encoder.encode(value, f"{self.path}.{name}" if self.path else name)

    def children(self, values: dict[str, Any]) -> dict[str, Node]:
        """The trees of named parts."""
        return {name: self.child(name, value) for name, value in values.items()}

    def items(self, values: Iterable[Any]) -> list[Node]:
        """The trees of numbered parts."""
        return [self.child(str(i), value) for i, value in enumerate(values)]

    def check(self, value: Any) -> None:
        """Refuse an object that does not meet its declaration and could not be read."""
        try:
            check(value, self.encoder.checked_sizes)
        except Misfit as error:
            raise PersistenceError(self.path, str(error)) from None

    def tensor(self, array: np.ndarray) -> str:
        """Store an array once, even if it occurs repeatedly; return its name."""
        for name, stored in self.encoder.tensors.items():
            if stored is array:
                return name
        name = self.path or "value"
        while name in self.encoder.tensors:
            name += "'"
        self.encoder.tensors[name] = array
        return name


class Decoder:
    """Rebuilds values from a tree and the arrays beside it."""

    def __init__(
        self,
        codecs: tuple[Codec, ...],
        tensors: dict[str, np.ndarray],
        budget: MemoryBudget,
        devices: bool = False,
    ) -> None:
        self.budget, self.devices = budget, devices
        self._codecs = {codec.tag: codec for codec in codecs if codec.read}
        self._tensors = tensors
        self._used_tensors: dict[str, np.ndarray] = {}
        self._checked_sizes: dict[int, Any] = {}

    def decode(self, node: Node) -> Any:
        """The value of a tree."""
        if isinstance(node, list):
            return [self.decode(item) for item in node]
        return self._decode_tagged(node) if isinstance(node, dict) else node

    def _decode_tagged(self, node: dict[str, Node]) -> Any:
        tag = node.get("@")
        codec = self._codecs.get(tag) if isinstance(tag, str) else None
        if codec is None:
            raise ValueError(f"a value of the unknown kind {tag!r}")
        optional = {"device"} if self.devices and codec.tag == "array" else set()
        if node.keys() - optional != {"@", *codec.part_names}:
            raise ValueError(f"the parts of a value ({codec.tag}) are {sorted(node)}")
        return codec.read(node, self)  # type: ignore[misc]

    def children(self, nodes: dict[str, Node]) -> dict[str, Any]:
        """The values of named parts."""
        if not isinstance(nodes, dict):
            raise ValueError("named parts are missing")
        return {name: self.decode(node) for name, node in nodes.items()}

    def items(self, node: Node) -> list[Any]:
        """The values of numbered parts."""
        if not isinstance(node, list):
            raise ValueError("a list is missing")
        return self.decode(node)

    def tensor(self, name: str) -> np.ndarray:
        """The array of a name, the same object for all parts that refer to it."""
        if name not in self._used_tensors:
            array = self._tensors[name]
            self.budget.take(array.nbytes)
            self._used_tensors[name] = np.require(array, requirements=["A", "W"])
        return self._used_tensors[name]

    def check(self, value: Any) -> Any:
        """Return the object if it meets its declaration."""
        check(value, self._checked_sizes)
        return value

    def check_all_used(self) -> None:
        """Refuse arrays that no part of the value refers to."""
        if len(self._used_tensors) < len(self._tensors):
            raise ValueError("it has arrays that belong to nothing")
