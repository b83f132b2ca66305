"""
A stream on a budget
====================

Samples arrive in blocks from a curve that turns slowly. A dictionary in the feature
space of an RBF kernel follows it with 40 anchors: each sample may become one, and the
anchor that is missed least has to go. Time per sample and memory stay what they are,
however long the stream. Run with ``python examples/large/plot_budget.py``.
"""

import time

import matplotlib.pyplot as plt
import numpy as np

from kernlets import Budget, BudgetKernelDL, StochasticGradient

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
# shorter, for streams that do not change. Even so, atoms whose samples do not come
# any more die out. With patience they start again after 200 samples.


def learner(patience: int | None) -> BudgetKernelDL:
    update = StochasticGradient("feature", step=0.2, penalty=0.01, patience=patience)
    budget = Budget(40, update=update, pruning="error")
    return BudgetKernelDL("rbf:0.4", 30, budget=budget, random_state=0)


patient, plain = learner(200), learner(None)
shown, errors, plain_errors, micro = {}, [], [], []
for number in range(N_BLOCKS):
    X = block(number)
    plain_errors += plain.partial_fit(X).history_["objective"]
    began = time.perf_counter()
    patient.partial_fit(X)
    micro.append((time.perf_counter() - began) / BLOCK * 1e6)
    errors += patient.history_["objective"]
    if number in (4, N_BLOCKS // 2, N_BLOCKS - 1):
        shown[number] = X, patient.anchors_.copy()

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
axes["d"].plot(seen[1:], plain_errors[1:], color="tab:gray", label="without patience")
axes["d"].plot(seen[1:], errors[1:], color="tab:blue", label="with patience")
axes["d"].set(ylabel="squared error", ylim=(0, None))
axes["d"].legend(fontsize=8)
axes["e"].plot(seen[1:], micro[1:], color="tab:blue")
axes["e"].set(ylabel="µs per sample", xlabel="samples", ylim=(0, None))
plt.show()

tenth = N_BLOCKS // 10
last, plain_last = np.mean(errors[-tenth:]), np.mean(plain_errors[-tenth:])
print(f"error of the last tenth: {last:.3f}, without patience {plain_last:.3f}")
print(f"microseconds per sample: {np.median(micro[1:]):.0f}")

# %%
# **What one sees.** The anchors turn with the curve. With patience the error stays low;
# without it, it grows, because atoms that no sample uses stay where the curve was. Time
# per sample does not grow.
#
# **What to change.** ``Budget(40, ...)``: more anchors, less error, more time.
# ``step``: larger steps follow a faster turn, and make more noise.
