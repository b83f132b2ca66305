"""
Digits by their patches
=======================

Atoms of small patches, coded and pooled, tell digits apart better than pixels do, and
they still do so when half of the pixels are zero. The classifier finds damaged images
by itself, restores them, and labels them by a second read-out.
Run with ``python examples/damaged/plot_patches.py``.
"""

import matplotlib.pyplot as plt
import numpy as np

from kernlets import ImageClassifier, datasets, plotting
from kernlets.datasets import add_noise, drop_pixels

digits = datasets.load("digits")
X, y = digits.X_train, digits.y_train
model = ImageClassifier(random_state=0).fit(X, y)

# %%
# Accuracy on whole and on damaged digits.

damaged = {
    "whole": digits.X_test,
    "noise": add_noise(digits.X_test, float(X.std()), 0),
    "half zero": drop_pixels(digits.X_test, 0.5, 0),
    "half missing": drop_pixels(digits.X_test, 0.5, 0, np.nan),
}
for name, rows in damaged.items():
    print(f"{name}: {model.score(rows, digits.y_test):.1%}")

# %%
# The atoms, and a damaged digit before and after it is restored.

fig, axes = plt.subplots(2, 5, figsize=(9, 4))
gs = axes[0, 0].get_gridspec()
for ax in axes[:, 0]:
    ax.remove()
axis = fig.add_subplot(gs[:, 0])
plotting.show_atoms(model.patches_, (3, 3), axis, n_atoms=96)
for column, (name, rows) in zip(axes[:, 1:].T, damaged.items(), strict=True):
    restored = model.restorer_.transform(rows[3:4])
    for ax, image in zip(column, (rows[3], restored[0]), strict=True):
        ax.imshow(image.reshape(8, 8), cmap="gray_r", vmin=0, vmax=X.max())
        ax.set_axis_off()
    column[0].set_title(f"{name}: {model.predict(rows[3:4])[0]}")
fig.tight_layout()
plt.show()

# %%
# **What one sees.** Left: atoms of 3 x 3 pixels. Right: one digit, whole and damaged in
# three ways, with the predicted label above; below, as it is restored before it is
# labelled. Zeros are harder than missing pixels, because nothing tells which of them
# are damage: this digit is read wrongly then.
#
# **What to change.** ``PatchDictionaryMap`` has the size of patches, the number of
# atoms and the grid of regions; ``robust=False`` leaves the second read-out out and
# halves the time of the fit.
