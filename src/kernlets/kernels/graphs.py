"""Graphs with labelled nodes, from adjacency matrices, networkx or GraKeL."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from ..fields import Declared, Floats, Indices

LARGEST_LABEL = 2**53 - 1  # labels are stored as whole numbers that floats hold
FORMS = (
    "an adjacency matrix, (adjacency, labels), a networkx graph, or GraKeL's "
    "[edges, labels]"
)


@dataclass(frozen=True)
class Graph:
    """An undirected graph: a label for each node, and edges in both directions."""

    _declared: ClassVar[Declared] = {
        "labels": Indices("n", like="int64"),
        "edges": Indices("e>=0", 2, below="n", like="int64"),
        "lengths": Floats("e>=0", like="float64"),
    }

    labels: np.ndarray  # (n,) whole numbers
    edges: np.ndarray  # (e, 2) numbers of nodes, sorted; each edge twice
    lengths: np.ndarray  # (e,) of the edges

    def __len__(self) -> int:
        return len(self.labels)

    def adjacency(self) -> sparse.csr_array:  # (n, n)
        """The lengths of the edges as a matrix."""
        # older versions of SciPy find shortest paths with short indices only
        places = tuple(self.edges.astype(np.int32).T)
        return sparse.csr_array((self.lengths, places), shape=(len(self), len(self)))


def as_graph(sample: Any, i: int = 0) -> Graph:
    """A graph from one of the forms that users have; nodes without labels get 0."""
    if isinstance(sample, Graph):
        return sample
    if hasattr(sample, "get_edge_dictionary"):  # grakel.Graph
        edges, labels = sample.get_edge_dictionary(), sample.get_labels()
        return _from_parts(edges, labels, i)
    if hasattr(sample, "nodes") and hasattr(sample, "edges"):
        return _from_networkx(sample, i)
    if isinstance(sample, (list, tuple)) and _are_parts(sample):
        return _from_parts(sample[0], sample[1] if len(sample) > 1 else None, i)
    return _from_matrix(sample, None, i)


def _are_parts(sample: list[Any] | tuple[Any, ...]) -> bool:
    """Whether a sequence is (edges or adjacency, labels, ...), not rows of a matrix."""
    if not 1 <= len(sample) <= 3:
        return False
    head = sample[0]
    if isinstance(head, (Mapping, set, frozenset)):
        return True
    return getattr(head, "ndim", 0) == 2 or _are_rows(head)


def _are_rows(head: Any) -> bool:
    """Whether this is a list of lists, an adjacency matrix itself."""
    return isinstance(head, (list, tuple)) and all(
        isinstance(row, (list, tuple, np.ndarray)) for row in head
    )


def _from_networkx(graph: Any, i: int) -> Graph:
    """The attribute ``label`` of nodes, and ``weight`` of edges."""
    if graph.is_directed():
        raise ValueError(f"graph {i} is directed: pass graph.to_undirected()")
    data = dict(graph.nodes(data="label"))
    given = [label for label in data.values() if label is not None]
    if given and len(given) < len(data):
        raise ValueError(f"graph {i} has labels for some nodes only: label all or none")
    labels = data if given else None
    edges = {(a, b): 1.0 if w is None else w for a, b, w in graph.edges(data="weight")}
    return _from_pairs(edges, list(data), labels, i)


def _from_parts(edges: Any, labels: Any, i: int) -> Graph:
    """A matrix or edges, with labels by node: a dict, a sequence, or none."""
    if not isinstance(edges, (Mapping, set, frozenset)):
        return _from_matrix(edges, labels, i)
    pairs = _pairs(edges, i)
    nodes = sorted({*(n for pair in pairs for n in pair), *_named(labels)}, key=_order)
    return _from_pairs(pairs, nodes, labels, i)


def _pairs(edges: Any, i: int) -> dict[tuple[Any, Any], float]:
    """Edges by their ends, from GraKeL's dicts, or pairs."""
    try:
        if not isinstance(edges, Mapping):
            return {(a, b): 1.0 for a, b in edges}
        if all(isinstance(ends, Mapping) for ends in edges.values()):
            return {(a, b): w for a, ends in edges.items() for b, w in ends.items()}
        if all(isinstance(pair, tuple) for pair in edges):
            return {(a, b): w for (a, b), w in edges.items()}
        return {(a, b): 1.0 for a, ends in edges.items() for b in ends}
    except (TypeError, ValueError):
        problem = "has edges that are no pairs"
        raise ValueError(f"graph {i} {problem}: pass {FORMS}") from None


def _named(labels: Any) -> list[Any]:
    return list(labels) if isinstance(labels, Mapping) else []


def _order(node: Any) -> tuple[str, Any]:
    """Nodes of several types can be sorted, too."""
    return (
        ("", int(node)) if isinstance(node, Integral) else (type(node).__name__, node)
    )


def _from_pairs(
    pairs: dict[tuple[Any, Any], Any], nodes: list[Any], labels: Any, i: int
) -> Graph:
    place = {node: k for k, node in enumerate(nodes)}
    ends = np.array([(place[a], place[b]) for a, b in pairs], np.int64).reshape(-1, 2)
    lengths = np.array([float(w) for w in pairs.values()])
    if isinstance(labels, Mapping):
        missing = [node for node in nodes if node not in labels]
        if missing:
            raise ValueError(
                f"graph {i} has no label for node {missing[0]!r}: label all or none"
            )
        labels = [labels[node] for node in nodes]
    return _built(len(nodes), ends, lengths, labels, i)


def _from_matrix(adjacency: Any, labels: Any, i: int) -> Graph:
    try:
        matrix = sparse.coo_array(adjacency)
        square = matrix.ndim == 2 and matrix.shape[0] == matrix.shape[1]
        square = square and not np.iscomplexobj(matrix.data)
        values = np.asarray(matrix.data.real, dtype=np.float64)
    except (TypeError, ValueError):
        square = False
    if not square:
        raise ValueError(
            f"graph {i} is a {type(adjacency).__name__} that cannot be read: pass "
            f"{FORMS}"
        )
    if matrix.nnz and abs(matrix - matrix.T).max() > 0:
        raise ValueError(
            f"graph {i} has an adjacency matrix that is not symmetric: pass "
            "np.maximum(A, A.T) if edges have no direction"
        )
    n = matrix.shape[0]
    if isinstance(labels, Mapping):
        labels = [labels.get(k, labels.get(str(k))) for k in range(n)]
    ends = np.stack([matrix.row, matrix.col], axis=1).astype(np.int64)
    return _built(n, ends[values != 0], values[values != 0], labels, i)


def _built(
    n: int, ends: np.ndarray, lengths: np.ndarray, labels: Any, i: int
) -> Graph:
    """The graph with each edge in both directions, once, and without loops."""
    if n == 0:
        raise ValueError(f"graph {i} has no nodes: leave it out")
    if not np.isfinite(lengths).all() or (lengths <= 0).any():
        raise ValueError(
            f"graph {i} has edges whose length is not a positive number: pass an "
            "adjacency matrix of 0 and 1, or of positive lengths"
        )
    both = np.concatenate([ends, ends[:, ::-1]])
    length = np.concatenate([lengths, lengths])
    apart = both[:, 0] != both[:, 1]
    both, length = both[apart], length[apart]
    _, first = np.unique(both[:, 0] * n + both[:, 1], return_index=True)
    return Graph(_labels(labels, n, i), both[first].reshape(-1, 2), length[first])


def _labels(labels: Any, n: int, i: int) -> np.ndarray:  # (n,)
    if labels is None:
        return np.zeros(n, dtype=np.int64)
    found = list(labels)
    if len(found) != n:
        raise ValueError(f"graph {i} has {n} nodes, but {len(found)} labels")
    return np.array([_number(label, i) for label in found], dtype=np.int64)


def _number(label: Any, i: int) -> int:
    """A whole number for a label: itself, or a digest, the same in every process."""
    if isinstance(label, Integral) and 0 <= int(label) <= LARGEST_LABEL:
        return int(label)
    if label is None or not isinstance(label, Hashable):
        raise ValueError(
            f"graph {i} has the label {label!r}: labels are numbers, text or tuples of "
            "these; put vectors into classes first"
        )
    text = repr(label.item() if isinstance(label, np.generic) else label)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=6).digest(), "big")
