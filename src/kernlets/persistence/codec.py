"""The machinery that turns values into trees of JSON values beside named arrays.

A `Codec` knows one type of values. `Encoder` and `Decoder` walk over a value or a tree
and hand each part to its codec. Which codecs there are is in `values.py` and
`objects.py`; there are no files here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

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

    The parts that `write` gives become a node marked with the tag. Without a tag
    `write` gives a value that JSON has itself.
    """

    tag: str | None
    takes: Callable[[Any], bool]
    write: Callable[[Any, Place], Node]
    read: Callable[[dict[str, Node], Decoder], Any] | None = None


@dataclass(frozen=True)
class Encoder:
    """Writes values, and keeps their arrays under the path where they stand."""

    codecs: tuple[Codec, ...]
    devices: bool = False  # whether to note where torch tensors are
    tensors: dict[str, np.ndarray] = field(default_factory=dict)

    def encode(self, value: Any, path: str = "") -> Node:
        """The tree of a value."""
        for codec in self.codecs:
            if codec.takes(value):
                node = codec.write(value, Place(self, path))
                return node if codec.tag is None else {"@": codec.tag, **node}
        kind = type(value)
        name = f"{kind.__module__}.{kind.__qualname__}"
        raise PersistenceError(path, f"a {name} cannot be stored in a model file")


@dataclass(frozen=True)
class Place:
    """Where in the tree a value is being written."""

    encoder: Encoder
    path: str

    def child(self, name: str, value: Any) -> Node:
        """The tree of one part."""
        return self.encoder.encode(value, f"{self.path}.{name}" if self.path else name)

    def children(self, values: dict[str, Any]) -> dict[str, Node]:
        """The trees of named parts."""
        return {name: self.child(name, value) for name, value in values.items()}

    def items(self, values: Iterable[Any]) -> list[Node]:
        """The trees of numbered parts."""
        return [self.child(str(i), value) for i, value in enumerate(values)]

    def tensor(self, array: np.ndarray) -> str:
        """Keep an array, once however often it stands in the model; its name."""
        for name, kept in self.encoder.tensors.items():
            if kept is array:
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
        devices: bool = False,
    ) -> None:
        self.devices = devices
        self._readers = {codec.tag: codec.read for codec in codecs if codec.read}
        self._tensors = tensors
        self._used: set[str] = set()

    def decode(self, node: Node) -> Any:
        """The value of a tree."""
        if isinstance(node, list):
            return [self.decode(item) for item in node]
        if isinstance(node, dict):
            return self._readers[node["@"]](node, self)
        return node

    def children(self, nodes: dict[str, Node]) -> dict[str, Any]:
        """The values of named parts."""
        return {name: self.decode(node) for name, node in nodes.items()}

    def tensor(self, name: str) -> np.ndarray:
        """The array of a name."""
        self._used.add(name)
        return self._tensors[name]

    def check_all_used(self) -> None:
        """Refuse arrays that no part of the value refers to."""
        if len(self._used) < len(self._tensors):
            raise ValueError("it has arrays that belong to nothing")
