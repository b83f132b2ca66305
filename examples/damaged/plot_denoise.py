"""
Denoising by projection and pre-image
=====================================

A dictionary learned from clean digits represents a noisy digit by a few atoms, and the
noise, which looks like none of them, stays outside. A linear dictionary gives the
cleaned image at once. In the feature space of an RBF kernel the cleaned digit is an
element Σⱼ γⱼ dⱼ of that space, and `inverse_transform` finds the image that comes
nearest to it, its pre-image. Run with ``python examples/damaged/plot_denoise.py``.
"""

import matplotlib.pyplot as plt
import numpy as np

from kernlets import KSVD, RBF, KernelKSVD, datasets, preimage
from kernlets.datasets import add_noise

NOISE = 0.4  # of pixels between 0 and 1

digits = datasets.load("digits", dtype=float)
X, clean = digits.X_train, digits.X_test[:200]
noisy = add_noise(clean, NOISE, 0)

# %%
# Two dictionaries of the same size, each with the sparsity that suits it best.

learners = {
    "linear K-SVD": KSVD(100, 2, random_state=0),
    "kernel K-SVD": KernelKSVD(
        RBF(sigma=1.5), 100, n_nonzero_coefs=8, max_iter=5, random_state=0
    ),
}
images = {"clean": clean, f"noise {NOISE}": noisy}
for name, learner in learners.items():
    images[name] = learner.fit(X).inverse_transform(learner.transform(noisy))

# %%
# `preimages` says how near the pre-images come. All φ(x) have norm 1 here, while the
# cleaned elements are short, because under an RBF kernel noise makes nearly everything
# orthogonal. Only their direction decides which image is nearest.

kernel_learner = learners["kernel K-SVD"]
codes = kernel_learner.transform(noisy)
found = preimage.preimages(
    kernel_learner.kernel_, kernel_learner.anchors_, codes @ kernel_learner.coefs_
)
names, counts = np.unique(found.method, return_counts=True)
print("found by", dict(zip(names.tolist(), counts.tolist(), strict=True)))
print(f"mean distance {found.distance.mean():.2f}, mean norm {found.norm.mean():.2f}")

# %%
# Squared errors per pixel, and one digit of each kind.

shown = [int(np.flatnonzero(digits.y_test[:200] == c)[1]) for c in range(10)]
figure, axes = plt.subplots(len(images), 10, figsize=(8, 3), layout="constrained")
for line, (name, rows) in zip(axes, images.items(), strict=True):
    error = float(((rows - clean) ** 2).mean())
    print(f"{name}: mean squared error {error:.4f}")
    for axis, image in zip(line, rows[shown], strict=True):
        axis.imshow(image.reshape(8, 8), cmap="gray_r", vmin=0, vmax=1)
        axis.set(xticks=[], yticks=[])
    line[0].set_ylabel(f"{name}\n{error:.3f}", rotation=0, ha="right", va="center")
plt.show()

# %%
# **What one sees.** The linear dictionary removes most of the noise and leaves grey
# smears. The pre-images look like digits, and their error is smaller by a third.
#
# **What to change.** ``NOISE``, and then the numbers of non-zeros: they were chosen for
# this noise.
