"""Kernels of graphs: Weisfeiler-Lehman subtrees, shortest paths and random walks.

A graph is an adjacency matrix, (adjacency, labels), a networkx graph with the node
attribute ``label``, or GraKeL's [edges, labels]. Graphs without labels have one label
for all nodes. `CountMap` gives the features themselves as a sparse matrix.
"""

from __future__ import annotations

from math import log10
from typing import ClassVar

import numpy as np
from scipy.sparse import csgraph

from ..base.constraints import AT_LEAST_0, POSITIVE
from .base import positive
from .samples import Graph
from .structured import Counting, digest_numbers, digest_sequences

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
    _parameter_constraints = {"n_iter": [AT_LEAST_0]}

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
    _parameter_constraints = {"with_labels": ["boolean"]}

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


LARGEST_POWER = 100  # largest power of ten that a weight of walks may have
MAX_WALKS = 2_000_000  # largest number of different walks of one graph
MAX_STEPS = 1000  # largest number of steps of a walk that may return


class RandomWalk(Counting):
    """κ(G, H) = Σ over k of λᵏ times the pairs of walks of k steps with equal labels.

    Walks may return to a node. κ is Σ λᵏ 1ᵀAₓᵏ1 with the adjacency matrix Aₓ of the
    direct product of G and H, in which pairs of nodes have equal labels; the sum ends
    after `n_steps` steps, so that it is finite for every λ.

    Parameters
    ----------
    n_steps : int, default=4
        The most steps of a walk.
    decay : float, default=0.1
        Factor λ for each step.

    Notes
    -----
    T. Gärtner et al., On graph kernels, COLT 2003. Graphs without labels have one label
    for all nodes. Use ``Normalized(RandomWalk())`` for graphs of different sizes.

    Examples
    --------
    >>> import numpy as np
    >>> from kernlets import RandomWalk
    >>> path = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    >>> RandomWalk(1, decay=1.0)([(path, "COC"), (path, "CCC")]).tolist()
    [[13.0, 6.0], [6.0, 25.0]]
    """

    takes: ClassVar[str] = "graphs"
    _parameter_constraints = {"n_steps": [AT_LEAST_0], "decay": [POSITIVE]}

    def __init__(self, n_steps: int = 4, decay: float = 0.1) -> None:
        self.n_steps = n_steps
        self.decay = decay

    def parts(self, sample: Graph) -> tuple[np.ndarray, np.ndarray]:
        decay = positive(self, "decay")
        if int(self.n_steps) * log10(decay) > LARGEST_POWER:
            raise ValueError(
                f"RandomWalk: decay^n_steps overflows: lower decay={decay:g} (it is "
                f"usually below 1) or n_steps={self.n_steps!r}"
            )
        labels = digest_numbers(sample.labels)
        edges = sample.edges[np.argsort(sample.edges[:, 0], kind="stable")]
        ends, walks, counts = np.arange(len(labels)), labels, np.ones(len(labels))
        digest_blocks, weight_blocks, n_walks = [walks], [counts], len(walks)
        for step in range(1, int(self.n_steps) + 1):
            ends, walks, counts = _extend_walks(ends, walks, counts, labels, edges)
            n_walks += len(walks)
            if not len(walks):
                break  # no walk has so many steps
            if n_walks > MAX_WALKS or step > MAX_STEPS:
                raise _too_many_walks()
            digest_blocks.append(walks)
            weight_blocks.append(decay ** (step / 2) * counts)
        return np.concatenate(digest_blocks), np.concatenate(weight_blocks)


def _too_many_walks() -> ValueError:
    return ValueError(
        f"RandomWalk: a graph has more than {MAX_WALKS} walks with different labels, "
        f"or walks of more than {MAX_STEPS} steps: lower n_steps, or give fewer "
        "different labels"
    )


def _extend_walks(
    ends: np.ndarray,  # (w,) the last node of each walk
    walks: np.ndarray,  # (w,) digests of the labels along each walk
    counts: np.ndarray,  # (w,) number of walks with this end and digest
    labels: np.ndarray,  # (n,)
    edges: np.ndarray,  # (m, 2)
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Extend walks by one step, and count those with equal ends and labels."""
    first_edges = np.searchsorted(edges[:, 0], ends, "left")
    n_ways = np.searchsorted(edges[:, 0], ends, "right") - first_edges
    if n_ways.sum() > MAX_WALKS:
        raise _too_many_walks()
    offsets = np.repeat(first_edges - np.cumsum(n_ways) + n_ways, n_ways)
    heads = edges[offsets + np.arange(len(offsets)), 1]
    extended = digest_numbers(np.repeat(walks, n_ways) ^ digest_numbers(labels[heads]))
    pairs = np.stack([heads.astype(np.uint64), extended], axis=1)
    distinct, inverse = np.unique(pairs, axis=0, return_inverse=True)
    sums = np.bincount(
        inverse.ravel(), np.repeat(counts, n_ways), minlength=len(distinct)
    )
    return distinct[:, 0].astype(np.int64), distinct[:, 1], sums
