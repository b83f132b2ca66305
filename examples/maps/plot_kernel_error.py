"""
Which map, which landmarks: error against the number of features
================================================================

Every feature map stands for a kernel matrix, up to an error that falls as features are
added. Maps that look at the data (Nyström, IKA) fall much faster than random features
when the spectrum of the kernel matrix decays, as it does for images; random features
fall like one over the square root of their number, whatever the data.

Run with ``python examples/maps/plot_kernel_error.py``.
"""

from functools import partial

import matplotlib.pyplot as plt
import numpy as np

from kernlets import (
    RBF,
    FastfoodMap,
    FourierMap,
    HybridMap,
    IKAMap,
    NystroemMap,
    datasets,
)
from kernlets.landmarks import SAMPLERS
from kernlets.metrics import kernel_error
from kernlets.plotting import plot_kernel_error

digits = datasets.load("digits").split(0.75, random_state=0)
X, new = (datasets.remove_mean_and_normalize(rows) for rows in digits[:2])
KERNEL = RBF(sigma=0.7)
SIZES = (16, 64, 256)
SEEDS = range(2)


def curve(make):
    """Number of features -> errors on new rows, one per seed."""
    return {
        k: [kernel_error(make(k, seed).fit(X), new).frobenius for seed in SEEDS]
        for k in SIZES
    }


def hybrid(k, seed):
    return HybridMap(KERNEL, n_landmarks=k // 2, n_random=k // 2, random_state=seed)


def fourier(k, seed, sampling):
    return FourierMap(KERNEL, k, sampling=sampling, random_state=seed)


def fastfood(k, seed, gains):
    return FastfoodMap(KERNEL, k, gains=gains, random_state=seed)


def at_landmarks(k, seed, kind, landmarks):
    return kind(KERNEL, landmarks=landmarks, n_landmarks=k, random_state=seed)


MAPS = {
    "Nyström": partial(at_landmarks, kind=NystroemMap, landmarks="uniform"),
    "IKA": partial(at_landmarks, kind=IKAMap, landmarks="uniform"),
    "hybrid": hybrid,
    "Fourier": partial(fourier, sampling="plain"),
    "Fourier, orthogonal": partial(fourier, sampling="orthogonal"),
    "Fourier, quasi": partial(fourier, sampling="quasi"),
    "Fastfood": partial(fastfood, gains="signs"),
    "Fastfood as published": partial(fastfood, gains="normal"),
}
LANDMARKS = {
    name: partial(at_landmarks, kind=NystroemMap, landmarks=name) for name in SAMPLERS
}

# %%
# The maps with uniform landmarks on the left, Nyström with each way to choose
# landmarks on the right. Errors are those of the kernel matrix of new rows.

figure, axes = plt.subplots(1, 2, figsize=(11, 4.5), sharey=True, layout="constrained")
for ax, group in zip(axes, (MAPS, LANDMARKS), strict=True):
    errors = {name: curve(make) for name, make in group.items()}
    plot_kernel_error(errors, ax).set(xlabel="number of features", xscale="log")
    for name, found in errors.items():
        means = " ".join(f"{np.mean(found[k]):.4f}" for k in SIZES)
        print(f"{name:22s} {means}")
plt.show()

# %%
# **What one sees.** On the left two groups: maps that look at the data, far below, and
# those that do not. On the right k-means landmarks are best, the more so the fewer
# there are; all other ways to choose are about as good as drawing at random.
#
# **What to change.** ``KERNEL``: the wider it is, the faster the left group falls.
