"""
Other functions than kernels
============================

IKA writes the eigenfunctions of a kernel in any basis. The paper used kernel functions
at filters and left ReLU and sigmoid units to be studied. Here they approximate the
Gaussian kernel on whitened image patches, with equal numbers of functions.

Kernel functions remain the best up to 128 of them. Sigmoid units are about as good as
Nyström and need one matrix product and no distances; ReLU units need about twice as
many, cosines with the kernel's own random frequencies many more. IKA improves any set
of functions that it is given: random Fourier features lose a quarter of their error and
more when their weights are fitted to the data.

Run with ``python examples/maps/plot_ika_bases.py``.
"""

from math import sqrt

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_sample_images

from kernlets import RBF, FourierMap, IKAMap, NystroemMap, datasets

photographs = np.stack(load_sample_images().images).mean(axis=-1)  # grey
X = datasets.whitened_patches(photographs, 30_000, size=5, random_state=0)
train, test = X[:24_000], X[24_000:26_000]
kernel = RBF(sigma=sqrt(datasets.distance_percentile(train, 10, random_state=0)))
K = kernel(test, test)


def fourier(n):
    return FourierMap(kernel, n, random_state=0).fit(train)


def ika(n, basis):
    return IKAMap(kernel, basis, n_landmarks=n, n_samples=4000, random_state=0)


METHODS = {
    "Nyström": lambda n: NystroemMap(kernel, n_landmarks=n, random_state=0),
    "IKA, kernel functions": lambda n: ika(n, "kernel"),
    "IKA, cosines": lambda n: ika(n, "cosine"),
    "IKA, sigmoid units": lambda n: ika(n, "sigmoid"),
    "IKA, ReLU units": lambda n: ika(n, "relu"),
    "Fourier features": fourier,
    "IKA, Fourier features": lambda n: ika(None, fourier(n).transform),
}
SIZES = (16, 32, 64, 128, 256)

# %%
# Mean absolute error of the kernel over pairs of new patches.

figure, ax = plt.subplots(layout="constrained")
for name, make in METHODS.items():
    errors = []
    for n in SIZES:
        F = make(n).fit(train).transform(test)
        errors.append(np.abs(K - F @ F.T).mean())
    print(f"{name:24s}" + " ".join(f"{error:.4f}" for error in errors))
    ax.loglog(SIZES, errors, marker="o", label=name)
ax.set(xlabel="number of functions", ylabel="mean absolute error")
ax.legend(frameon=False)
plt.show()

# %%
# **What one sees.** The lines of kernel functions, sigmoid and ReLU units lie together,
# and far below cosines. With 256 functions Nyström's is as good as IKA.
#
# **What to change.** ``n_samples``: IKA fits its weights to so many patches, and gets
# better with more of them.
