"""
Digits by their patches
=======================

Atoms of small patches, coded and pooled, tell digits apart better than pixels do, and
they still do so when half of the pixels are zero: the damage is found, made good, and
labelled by a read-out of its own.
Run with ``python examples/plot_patches.py``.
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
# The atoms, and what is made of a damaged digit before it is labelled.

fig, axes = plt.subplots(2, 5, figsize=(9, 4))
gs = axes[0, 0].get_gridspec()
for ax in axes[:, 0]:
    ax.remove()
plotting.show_atoms(model.patches_, ax=fig.add_subplot(gs[:, 0]), n_atoms=96)
for column, (name, rows) in zip(axes[:, 1:].T, damaged.items(), strict=True):
    restored = model.restorer_.transform(rows[3:4])
    for ax, image in zip(column, (rows[3], restored[0]), strict=True):
        ax.imshow(image.reshape(8, 8), cmap="gray_r", vmin=0, vmax=X.max())
        ax.set_axis_off()
    column[0].set_title(f"{name}: {model.predict(rows[3:4])[0]}")
fig.tight_layout()
plt.show()
