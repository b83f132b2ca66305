"""
A stream on a budget
====================

Samples arrive in blocks from a curve that turns slowly. A dictionary in the feature
space of an RBF kernel follows it with 40 anchors: each sample may become one, and the
anchor that is missed least has to go. Time per sample and memory stay what they are,
however long the stream. Run with ``python examples/plot_budget.py``.
"""

import time

import matplotlib.pyplot as plt
import numpy as np

from kernlets import BudgetKernelDL
from kernlets.updates import StochasticGradient

BLOCK, N_BLOCKS = 200, 120
rng = np.random.default_rng(0)


def block(number: int) -> np.ndarray:  # (BLOCK, 2)
    """Points along half of a flat ellipse, turned by up to a quarter."""
    t, turn = rng.uniform(0, np.pi, BLOCK), np.pi / 2 * number / N_BLOCKS
    points = np.column_stack([2 * np.cos(t), 1.5 * np.sin(t)])
    cos, sin = np.cos(turn), np.sin(turn)
    rotated = points @ np.array([[cos, sin], [-sin, cos]])
    return rotated + 0.05 * rng.standard_normal((BLOCK, 2))


# %%
# Steps of constant length keep up with the curve; the paper's default ones become
# shorter, for streams that do not change.

learner = BudgetKernelDL(
    "rbf:0.4",
    n_components=30,
    budget=40,
    update=StochasticGradient("feature", step=0.2, penalty=0.01),
    pruning="error",
    random_state=0,
)
shown, errors, micro = {}, [], []
for number in range(N_BLOCKS):
    X = block(number)
    began = time.perf_counter()
    learner.partial_fit(X)
    micro.append((time.perf_counter() - began) / BLOCK * 1e6)
    errors += learner.history_["objective"]
    if number in (4, N_BLOCKS // 2, N_BLOCKS - 1):
        shown[number] = X, learner.anchors_.copy()

# %%
# Above: samples of a block, and the anchors at that time. Below: the error of samples
# when they came, before anything was learned from them, and microseconds per sample.

figure, axes = plt.subplot_mosaic(
    "abc;ddd;eee", figsize=(9, 7), layout="constrained", height_ratios=[2, 1, 1]
)
for axis, (number, (X, anchors)) in zip("abc", shown.items(), strict=True):
    axes[axis].plot(*X.T, ".", color="tab:gray", markersize=3, label="samples")
    axes[axis].plot(*anchors.T, "o", color="tab:red", markersize=4, label="anchors")
    axes[axis].set_title(f"after {(number + 1) * BLOCK} samples")
    axes[axis].set(aspect="equal", xlim=(-2.3, 2.3), ylim=(-2.3, 2.3))
axes["a"].legend(loc="lower left", fontsize=8)
seen = BLOCK * np.arange(1, N_BLOCKS + 1)
axes["d"].semilogy(seen, errors)
axes["d"].set_ylabel("squared error")
axes["e"].plot(seen[1:], micro[1:])  # the first block compiles
axes["e"].set(ylabel="µs per sample", xlabel="samples", ylim=(0, None))
plt.show()

print(f"error of the last tenth of the stream: {np.mean(errors[-12:]):.4f}")
print(f"microseconds per sample: {np.median(micro[-60:]):.0f}")
