"""Samples of a kernel in one form: rows of numbers, or objects of one kind.

Objects are series, strings, graphs, matrices, bags of vectors, or anything that a
user's function takes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from ..contracts import Array
from ..data.check import (
    Containers,
    check_features,
    check_rows,
    is_table,
    takes_dask,
)
from ..data.rows import evenly_spaced_rows, on_dask
from ..data.samples import (
    as_bags,
    as_matrices,
    as_sample_list,
    as_series,
    as_strings,
    convert_samples,
    object_array,
)
from ..data.stream import is_blocks
from ..numerics.arrays import is_array, is_dask, to_device
from ..schema import Declared, Floats, Indices
from .base import Kernel
from .custom import not_square

LARGEST_LABEL = 2**53 - 1  # labels are integers that float64 represents exactly
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
        """Return the lengths of the edges as a matrix."""
        # older versions of SciPy find shortest paths with short indices only
        indices = tuple(self.edges.astype(np.int32).T)
        return sparse.csr_array((self.lengths, indices), shape=(len(self), len(self)))


def as_graph(sample: Any, i: int = 0) -> Graph:
    """Convert one of the forms in `FORMS` to a graph; nodes without labels get 0."""
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
    if isinstance(head, (list, tuple)):  # rows of an adjacency matrix
        return all(isinstance(row, (list, tuple, np.ndarray)) for row in head)
    is_edges = isinstance(head, (Mapping, set, frozenset))
    return is_edges or getattr(head, "ndim", 0) == 2


def _from_networkx(graph: Any, i: int) -> Graph:
    """Read the attribute ``label`` of nodes and ``weight`` of edges."""
    if graph.is_directed():
        raise ValueError(f"graph {i} is directed: pass graph.to_undirected()")
    data = dict(graph.nodes(data="label"))
    node_labels = [label for label in data.values() if label is not None]
    if node_labels and len(node_labels) < len(data):
        raise ValueError(f"graph {i} has labels for some nodes only: label all or none")
    labels = data if node_labels else None
    edges = {(a, b): 1.0 if w is None else w for a, b, w in graph.edges(data="weight")}
    return _from_pairs(edges, list(data), labels, i)


def _from_parts(edges: Any, labels: Any, i: int) -> Graph:
    """Build a graph from a matrix or edges; labels are a dict, a sequence or None."""
    if not isinstance(edges, (Mapping, set, frozenset)):
        return _from_matrix(edges, labels, i)
    pairs = _pairs(edges, i)
    labelled = labels if isinstance(labels, Mapping) else ()
    nodes = {*(node for pair in pairs for node in pair), *labelled}
    return _from_pairs(pairs, sorted(nodes, key=_order), labels, i)


def _pairs(edges: Any, i: int) -> dict[tuple[Any, Any], float]:
    """Convert GraKeL's dicts, or pairs of nodes, to a dict of pairs and lengths."""
    try:
        if not isinstance(edges, Mapping):
            return {(a, b): 1.0 for a, b in edges}
        if all(isinstance(ends, Mapping) for ends in edges.values()):
            return {(a, b): w for a, ends in edges.items() for b, w in ends.items()}
        if all(isinstance(pair, tuple) for pair in edges):
            return {(a, b): w for (a, b), w in edges.items()}
        return {(a, b): 1.0 for a, ends in edges.items() for b in ends}
    except (TypeError, ValueError):
        raise ValueError(
            f"graph {i} has edges that are no pairs: pass {FORMS}"
        ) from None


def _order(node: Any) -> tuple[str, Any]:
    """Return a sort key for nodes, also for nodes of several types."""
    if isinstance(node, Integral):
        return "", int(node)
    return type(node).__name__, node


def _from_pairs(
    pairs: dict[tuple[Any, Any], Any], nodes: list[Any], labels: Any, i: int
) -> Graph:
    number = {node: k for k, node in enumerate(nodes)}
    ends = np.array([(number[a], number[b]) for a, b in pairs], np.int64).reshape(-1, 2)
    lengths = np.array([float(w) for w in pairs.values()])
    if isinstance(labels, Mapping):
        unlabelled = [node for node in nodes if node not in labels]
        if unlabelled:
            raise ValueError(
                f"graph {i} has no label for node {unlabelled[0]!r}: label all or none"
            )
        labels = [labels[node] for node in nodes]
    return _build_graph(len(nodes), ends, lengths, labels, i)


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
    return _build_graph(n, ends[values != 0], values[values != 0], labels, i)


def _build_graph(
    n: int, ends: np.ndarray, lengths: np.ndarray, labels: Any, i: int
) -> Graph:
    """Build a graph that has each edge once in both directions, and no loops."""
    if n == 0:
        raise ValueError(f"graph {i} has no nodes: leave it out")
    if not np.isfinite(lengths).all() or (lengths <= 0).any():
        raise ValueError(
            f"graph {i} has edges whose length is not a positive number: pass an "
            "adjacency matrix of 0 and 1, or of positive lengths"
        )
    directed = np.concatenate([ends, ends[:, ::-1]])
    directed_lengths = np.concatenate([lengths, lengths])
    is_no_loop = directed[:, 0] != directed[:, 1]
    directed, directed_lengths = directed[is_no_loop], directed_lengths[is_no_loop]
    _, first = np.unique(directed[:, 0] * n + directed[:, 1], return_index=True)
    return Graph(
        _label_numbers(labels, n, i),
        directed[first].reshape(-1, 2),
        directed_lengths[first],
    )


def _label_numbers(labels: Any, n: int, i: int) -> np.ndarray:  # (n,)
    if labels is None:
        return np.zeros(n, dtype=np.int64)
    node_labels = list(labels)
    if len(node_labels) != n:
        raise ValueError(f"graph {i} has {n} nodes, but {len(node_labels)} labels")
    return np.array([_number(label, i) for label in node_labels], dtype=np.int64)


def _number(label: Any, i: int) -> int:
    """Return a whole number for a label: itself, or a digest of it."""
    if isinstance(label, Integral) and 0 <= int(label) <= LARGEST_LABEL:
        return int(label)
    if label is None or not isinstance(label, Hashable):
        raise ValueError(
            f"graph {i} has the label {label!r}: labels are numbers, text or tuples of "
            "these; put vectors into classes first"
        )
    text = repr(label.item() if isinstance(label, np.generic) else label)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=6).digest(), "big")


PARSERS: dict[str, Callable[[Any], list[Any]]] = {
    "series": as_series,
    "bags": as_bags,
    "matrices": as_matrices,
    "strings": as_strings,
    "graphs": lambda X: [as_graph(sample, i) for i, sample in enumerate(X)],
}


def as_samples(kind: str, X: Any, like: Array | None = None) -> np.ndarray:  # (n,)
    """Convert X to an array of samples of one kind; raise if a sample is not valid.

    Numbers get the type of `like`, an array of a fitted model, or stay float32 if all
    of them are.
    """
    parsed = PARSERS[kind](as_sample_list(kind, X))
    if like is not None and parsed and isinstance(parsed[0], np.ndarray):
        parsed = convert_samples(parsed, like.dtype)
    return object_array(parsed)


def spread_parts(samples: np.ndarray, m: int) -> np.ndarray:  # (at most m, p)
    """Take at most m vectors or steps, evenly from all bags or series, as float64."""
    ends = np.cumsum([len(sample) for sample in samples])
    positions = evenly_spaced_rows(int(ends[-1]), m)
    sample_numbers = np.searchsorted(ends, positions, side="right")
    offsets = positions - ends[sample_numbers]  # counted from the end of the sample
    pairs = zip(sample_numbers, offsets, strict=True)
    return np.stack([samples[i][j] for i, j in pairs]).astype(np.float64)


def check_samples(
    estimator: Any,
    X: Any,
    kernel: Kernel | None,
    *,
    reset: bool = False,
    containers: Containers = "array",
    like: Array | None = None,
    allow_nan: bool = False,
    ensure_min_samples: int = 1,
) -> Any:
    """Check X for an estimator that uses `kernel`; options as in `check_rows`.

    A kernel given as a function takes samples of any kind (strings, graphs, matrices).
    They become an array along their first axis and are otherwise unchanged. Kernels of
    series, strings, graphs and matrices get an array of such samples, checked.
    """
    if kernel is not None and are_objects(X, kernel):
        if kernel.takes == "any":
            return to_device(X) if is_array(X) else object_array(list(X))
        parse = partial(as_samples, kernel.takes, like=like)
        on_cluster = is_dask(X) and takes_dask(containers)
        samples = on_dask().as_objects(X, parse) if on_cluster else parse(X)
        if samples.shape[0] < ensure_min_samples:
            raise ValueError(
                f"X has {samples.shape[0]} sample(s), a minimum of "
                f"{ensure_min_samples} is required by {type(estimator).__name__}"
            )
        # scikit-learn sees a column of objects
        check_features(estimator, np.empty((1, 1)), reset)
        return samples
    X = check_rows(
        estimator,
        X,
        reset=reset,
        containers=containers,
        like=like,
        allow_nan=allow_nan and takes_missing(kernel),
        ensure_min_samples=ensure_min_samples,
    )
    must_be_square = reset and getattr(kernel, "by_index", False) and not is_blocks(X)
    if must_be_square and X.shape[0] != X.shape[1]:
        raise ValueError(not_square(X))
    return X


def takes_rows(kernel: Kernel | None) -> bool:
    """Whether a kernel, or none for linear atoms, takes rows of numbers only."""
    return kernel is None or kernel.takes == "rows"


def are_objects(X: Any, kernel: Kernel) -> bool:
    """Whether X holds samples that are not rows of numbers, for this kernel."""
    return not takes_rows(kernel) and (kernel.takes != "any" or not is_table(X))


def takes_missing(kernel: Kernel | None) -> bool:
    """Whether a kernel, or none for linear atoms, is defined on rows with NaN."""
    return kernel is None or kernel.restrictable


def describe_input(tags: Any, kernel: Kernel | None, allow_nan: bool = False) -> Any:
    """Add to an estimator's scikit-learn tags which samples its kernel takes.

    With `allow_nan` samples may have NaN if the kernel is defined on them.
    """
    tags.input_tags.pairwise = getattr(kernel, "by_index", False)
    tags.input_tags.two_d_array = kernel is None or kernel.takes in ("rows", "any")
    tags.input_tags.sparse = getattr(kernel, "accept_sparse", False)
    tags.input_tags.allow_nan = allow_nan and (kernel is None or kernel.restrictable)
    return tags
