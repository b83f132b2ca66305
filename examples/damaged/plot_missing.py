"""
Holes in pictures: unknown, not zero
====================================

Digits and a photograph with holes. Missing pixels are NaN, each picture is coded over
the pixels that are left, and ``inverse_transform(transform(X))`` fills the holes. The
same dictionaries also restore the same pictures with zeros in the holes, which
means that the pixels are black.
Run with ``python examples/damaged/plot_missing.py``.
"""

import matplotlib.pyplot as plt
import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from sklearn.datasets import load_sample_image
from sklearn.feature_extraction.image import reconstruct_from_patches_2d as from_patches

from kernlets import KSVD, DictionaryImputer, datasets

rng = np.random.default_rng(0)


def restored(learner: KSVD, X: np.ndarray) -> np.ndarray:
    """X, with gaps filled by the code of what is left."""
    return np.where(np.isnan(X), learner.inverse_transform(learner.transform(X)), X)


# %%
# Digits: half of the pixels are lost at random, or a band of rows.

digits = datasets.load("digits", dtype=float)
learner = KSVD(100, n_nonzero_coefs=5, random_state=0).fit(digits.X_train)
clean = digits.X_test[:40]
holed = clean.copy()
holed[:20][rng.random((20, 64)) < 0.5] = np.nan
holed[20:].reshape(20, 8, 8)[:, 3:5] = np.nan
black = learner.inverse_transform(learner.transform(np.nan_to_num(holed)))
pictures = {"digit": [clean[21], holed[21], black[21], restored(learner, holed)[21]]}
gaps = np.isnan(holed)
for name, found in (("zero-filled", black), ("masked", restored(learner, holed))):
    print(f"digits, {name}: error {np.square(found - clean)[gaps].mean():.4f}")

# %%
# Another digit: a rectangle is covered, and `DictionaryImputer` codes what is left over
# the digits nearest to it.

X = digits.X_train[:300]
covered = X[3].copy().reshape(8, 8)
covered[2:4, 2:-2] = np.nan
others = np.delete(X, 3, axis=0)
found = DictionaryImputer().fit(others).transform(covered.reshape(1, -1))[0]
black = KSVD(60, n_nonzero_coefs=10, max_iter=5, random_state=0).fit(others)
dark = black.transform(np.nan_to_num(covered).reshape(1, -1))
dark = black.inverse_transform(dark)[0]
pictures["covered digit"] = [X[3], covered.ravel(), dark, found]

# %%
# A photograph: three of five pixels are lost, and nothing else is known. The
# dictionary learns from the patches of this very picture, holes and all.

photo = load_sample_image("china.jpg")[100:228:2, 300:428:2].mean(axis=2) / 255
lost = np.where(rng.random(photo.shape) < 0.6, np.nan, photo)
patches = sliding_window_view(lost, (8, 8)).reshape(-1, 64)
level = np.nanmean(patches, axis=1, keepdims=True)
learner = KSVD(64, n_nonzero_coefs=3, max_iter=8, random_state=0)
learner.fit((patches - level)[::2])
filled = restored(learner, patches - level) + level
whole = from_patches(filled.reshape(-1, 8, 8), photo.shape)
flat = np.nan_to_num(patches)
flat = learner.inverse_transform(learner.transform(flat))
flat = from_patches(flat.reshape(-1, 8, 8), photo.shape)
pictures["photograph"] = [photo, lost, flat, np.where(np.isnan(lost), whole, lost)]
for name, image in (("zero-filled", flat), ("masked", pictures["photograph"][3])):
    psnr = -10 * np.log10(np.square(image - photo).mean())
    print(f"photograph, {name}: {psnr:.1f} dB")

# %%
# From left to right: the picture, what was given, holes as zeros, holes as unknown.

shapes = {"digit": (8, 8), "covered digit": (8, 8), "photograph": photo.shape}
titles = ("picture", "with holes", "zero-filled", "restored")
figure, axes = plt.subplots(3, 4, figsize=(7, 5.5), layout="constrained")
for line, (name, images) in zip(axes, pictures.items(), strict=True):
    for axis, image, title in zip(line, images, titles, strict=True):
        axis.imshow(image.reshape(shapes[name]), cmap="gray", vmin=0, vmax=1)
        axis.set(xticks=[], yticks=[], title=title if name == "digit" else "")
plt.show()

# %%
# **What one sees.** With zeros the dictionary explains the black holes, too: the error
# of the digits is nearly three times as large, and the photograph is lost. Marked as
# unknown, the holes take no part.
#
# **What to change.** The share of lost pixels, and ``n_nonzero_coefs``. At 70 % kernel
# atoms are ahead of linear ones, as the table in :doc:`missing values
# </missing-values>` shows.
