"""
What atoms in a feature space look like
=======================================

An atom of a kernel dictionary is a combination of φ(samples), not an image. Its
pre-image is the image whose φ comes nearest to it. Shown are the atoms of three
dictionaries: kernel K-SVD over all samples, K-SVD behind a Nyström map, and the
orthonormal atoms of K-SAD. The number under each picture is the distance of its φ from
the atom, in units of the atom's norm (√2 means that they have nothing in common).

K-SVD's atoms are nearly φ of digits. The orthonormal atoms of K-SAD cannot be: φ of any
two digits are anything but orthogonal here. Their pre-images are exaggerated digits,
what one has and the others lack, and stay farther away. Digits of 16x16 pixels are
used where the USPS data are at hand, else the 8x8 digits bundled with scikit-learn.
Run with ``python examples/atoms/plot_preimages.py``.
"""

import matplotlib.pyplot as plt
from sklearn.pipeline import make_pipeline

from kernlets import (
    KSVD,
    RBF,
    KernelDictionary,
    KernelKSVD,
    KSADClassifier,
    NystroemMap,
    datasets,
)

N_ATOMS = 16

try:
    digits = datasets.load("usps", white=1.0, download=False)
except datasets.DatasetNotFoundError:
    digits = datasets.load("digits")
X, y = digits.X_train[:1000], digits.y_train[:1000]
kernel = RBF(sigma=0.5 * X.shape[1] ** 0.5)  # half the length of an all-white row

# %%
# Three ways to atoms in one feature space. What is learned behind a map becomes a
# kernel dictionary over the landmarks; `KSADClassifier` offers this itself.

exact = KernelKSVD(kernel, N_ATOMS, n_nonzero_coefs=2, random_state=0).fit(X)
mapped = make_pipeline(
    NystroemMap(kernel, "kmeans", n_landmarks=300, random_state=0),
    KSVD(N_ATOMS, 2, random_state=0),
).fit(X)
ksad = KSADClassifier(kernel, "orthogonal:0.2", n_components=N_ATOMS, random_state=0)
ksad.fit(X, y)
dictionaries = {
    "kernel K-SVD": exact.dictionary_,
    "Nyström + K-SVD": KernelDictionary.behind(mapped[0], mapped[-1].dictionary_),
    "K-SAD": ksad.kernel_dictionary_,
}

# %%
# One row per dictionary, nearest pre-images first.

figure, axes = plt.subplots(3, N_ATOMS, figsize=(13, 3), layout="constrained")
for row, (name, dictionary) in zip(axes, dictionaries.items(), strict=True):
    found = dictionary.preimages()
    distance = found.distance / found.norm
    print(f"{name}: distances from {distance.min():.2f} to {distance.max():.2f}")
    for axis, place in zip(row, distance.argsort(), strict=True):
        image = found.points[place].reshape(digits.image_shape)
        axis.imshow(image, cmap="gray_r", vmin=0, vmax=1)
        axis.set(xticks=[], yticks=[], xlabel=f"{distance[place]:.2f}")
    row[0].set_ylabel(name, rotation=0, ha="right", va="center")
plt.show()

# %%
# **What one sees.** The first two rows are digits, and the small numbers say that the
# pictures may be trusted. In the last row most numbers are large: such an atom is no
# digit, and its picture tells little.
#
# **What to change.** ``n_nonzero_coefs``: with more of them atoms become parts of
# digits. ``sigma``: under a wide kernel all distances get smaller.
