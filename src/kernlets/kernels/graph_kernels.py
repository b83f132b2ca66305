"""Kernels of graphs: Weisfeiler-Lehman subtrees and shortest paths.

A graph is an adjacency matrix, (adjacency, labels), a networkx graph with the node
attribute ``label``, or GraKeL's [edges, labels]. Graphs without labels have one label
for all nodes. `CountMap` gives the features themselves as a sparse matrix.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csgraph

from ..base.constraints import AT_LEAST_0
from .counting import Counting, digest_numbers, digest_sequences
from .graphs import Graph as Graph

DIGITS = 9  # lengths of paths are compared after rounding to so many decimals
MAX_LABELS = 200_000  # largest number of labels of one graph in all rounds


class WeisfeilerLehman(Counting):
    """κ(G, H) = Σ over rounds of the labels of nodes that both graphs have.

    In each round a node gets a new label, which stands for its own and the sorted
    labels of its neighbours; all labels of all rounds are counted, the first ones
    included.

    Parameters
    ----------
    n_iter : int, default=5
        Number of rounds.

    Notes
    -----
    N. Shervashidze et al., Weisfeiler-Lehman graph kernels, JMLR 2011. Use
    ``Normalized(WeisfeilerLehman())`` for graphs of different sizes.

    Examples
    --------
    >>> import numpy as np
    >>> from kernlets import WeisfeilerLehman
    >>> path = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    >>> WeisfeilerLehman(1)([(path, "COC"), (path, "CCC")]).tolist()
    [[10.0, 6.0], [6.0, 14.0]]
    """

    takes: ClassVar[str] = "graphs"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {"n_iter": [AT_LEAST_0]}

    def __init__(self, n_iter: int = 5) -> None:
        self.n_iter = n_iter

    def parts(self, sample: Graph) -> tuple[np.ndarray, np.ndarray]:
        labels = digest_numbers(sample.labels)
        if int(self.n_iter) * len(labels) > MAX_LABELS:
            raise ValueError(
                f"WeisfeilerLehman: n_iter={self.n_iter} gives more than {MAX_LABELS} "
                f"labels to a graph of {len(labels)} nodes: lower n_iter; more rounds "
                "than nodes tell nothing new"
            )
        label_rounds = [labels]
        for _ in range(int(self.n_iter)):
            labels = _relabel(labels, sample.edges)
            label_rounds.append(labels)
        digests = np.concatenate(label_rounds)
        return digests, np.ones(len(digests))


def _relabel(labels: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Return a digest of each node's label and its neighbours' labels, in any order."""
    neighbor_sums = np.zeros(len(labels), dtype=np.uint64)
    np.add.at(
        neighbor_sums,
        edges[:, 0],
        digest_numbers(labels[edges[:, 1]] ^ np.uint64(0x5851F42D)),
    )
    degrees = np.bincount(edges[:, 0], minlength=len(labels)).astype(np.uint64)
    return digest_sequences([labels, degrees, neighbor_sums])


class ShortestPath(Counting):
    """κ(G, H) = number of pairs of shortest paths with equal ends and equal length.

    A path counts by the labels of its two ends and by its length: the number of edges,
    or the sum of their lengths.

    Parameters
    ----------
    with_labels : bool, default=True
        Whether the labels of the ends count.

    Notes
    -----
    K. Borgwardt and H.-P. Kriegel, Shortest-path kernels on graphs, ICDM 2005. Pairs of
    nodes are ordered, as in GraKeL; pairs without a path between them do not count.

    Examples
    --------
    >>> import numpy as np
    >>> from kernlets import ShortestPath
    >>> path = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    >>> ShortestPath()([(path, "COC"), (path, "CCC")]).tolist()
    [[12.0, 4.0], [4.0, 20.0]]
    """

    takes: ClassVar[str] = "graphs"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "with_labels": ["boolean"],
    }

    def __init__(self, with_labels: bool = True) -> None:
        self.with_labels = with_labels

    def parts(self, sample: Graph) -> tuple[np.ndarray, np.ndarray]:
        lengths = csgraph.shortest_path(sample.adjacency(), directed=False)
        first, last = np.nonzero(np.isfinite(lengths) & (lengths > 0))
        rounded = np.round(lengths[first, last], DIGITS).view(np.uint64)
        columns = [rounded]
        if self.with_labels:
            columns += [sample.labels[first], sample.labels[last]]
        digests = digest_sequences(columns)
        return digests, np.ones(len(digests))
