"""
Dictionaries of graphs
======================

Graphs that grew in three ways: rings with a few shortcuts, trees, and random graphs.
All have about as many nodes, with labels that say nothing. The Weisfeiler-Lehman kernel
counts the neighbourhoods that two graphs share; one dictionary is learned for each kind
of graph, and new graphs go to the dictionary that represents them best. The graphs that
none represents well are unusual.
Run with ``python examples/structured/plot_graphs.py``.
"""

import matplotlib.pyplot as plt
import numpy as np

from kernlets import (
    DictionaryOutlierDetector,
    KernelKSVD,
    Normalized,
    ResidualClassifier,
    ShortestPath,
    WeisfeilerLehman,
)

N_GRAPHS = 120
KINDS = ("ring", "tree", "random")
rng = np.random.default_rng(0)


def grown(kind: str) -> tuple[np.ndarray, list[str]]:
    """The adjacency matrix and the labels of one graph."""
    n = int(rng.integers(12, 20))
    A = np.zeros((n, n))
    if kind == "ring":
        A[np.arange(n), np.roll(np.arange(n), 1)] = 1
        A[tuple(rng.integers(0, n, (2, 2)))] = 1
    elif kind == "tree":
        A[np.arange(1, n), [rng.integers(i) for i in range(1, n)]] = 1
    else:
        A = np.triu(rng.random((n, n)) < 2.2 / n, 1).astype(float)
    np.fill_diagonal(A, 0)
    return np.maximum(A, A.T), rng.choice(["C", "N"], n).tolist()


kinds = np.array(KINDS)[np.arange(N_GRAPHS) % 3]
graphs = [grown(kind) for kind in kinds]

# %%
# Neighbourhoods and shortest paths; labels are left out, since they say nothing.

half = N_GRAPHS // 2
plain = [adjacency for adjacency, _ in graphs]
kernels = {
    "Weisfeiler-Lehman": Normalized(WeisfeilerLehman(3)),
    "shortest paths": Normalized(ShortestPath()),
}
for name, kernel in kernels.items():
    learner = KernelKSVD(kernel, 8, n_nonzero_coefs=3, random_state=0)
    model = ResidualClassifier(learner).fit(plain[:half], kinds[:half])
    score = model.score(plain[half:], kinds[half:])
    print(f"{name}: {100 * score:.1f} % of {N_GRAPHS - half} new graphs")

# %%
# The most usual graphs of each kind and the most unusual one, by the eigenvectors
# of their Laplacian; graphs in several pieces are drawn on a circle.


def draw(axis: plt.Axes, adjacency: np.ndarray, title: str) -> None:
    laplacian = np.diag(adjacency.sum(axis=1)) - adjacency
    values, vectors = np.linalg.eigh(laplacian)
    places = vectors[:, 1:3]
    if values[1] < 1e-9:  # not connected
        angles = np.linspace(0, 2 * np.pi, len(adjacency), endpoint=False)
        places = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    for a, b in np.argwhere(np.triu(adjacency)):
        axis.plot(*places[[a, b]].T, "-", color="tab:gray", linewidth=1)
    axis.plot(*places.T, "o", color="tab:blue", markersize=4)
    axis.set_title(title)
    axis.set_axis_off()


figure, axes = plt.subplots(3, 4, figsize=(10, 7), layout="constrained")
for row, kind in zip(axes, KINDS, strict=True):
    own = [adjacency for adjacency, k in zip(plain, kinds, strict=True) if k == kind]
    learner = KernelKSVD(Normalized(WeisfeilerLehman(3)), 8, n_nonzero_coefs=3)
    detector = DictionaryOutlierDetector(learner, random_state=0).fit(own)
    order = np.argsort(detector.decision_scores_)
    for axis, place in zip(row[:3], order, strict=False):
        draw(axis, own[place], kind)
    draw(row[3], own[order[-1]], f"unusual {kind}")
plt.show()

# %%
# **What one sees.** Neighbourhoods tell the three kinds apart. Lengths of shortest
# paths are a poor clue here, little better than guessing one of three. The unusual
# random graph has many more edges than the usual ones; unusual rings and trees differ
# less.
#
# **What to change.** ``WeisfeilerLehman(3)``: with 1 the kernel counts degrees only.
# Labels that mean something: pass ``(adjacency, labels)``.
