"""
Two layers of IKA
=================

Eigenfunctions of a kernel between small patches make a layer: at each place of an image
the features of the patch around it. Averaged over neighbours they are an image again,
with more channels, on which a second layer works; that is a convolutional kernel
network without training by labels. A linear classifier reads the last layer.

The comparison: one IKA map of the whole image, one layer, two layers, all with the same
classifier, on 3000 images of USPS. Without the USPS data the 8 x 8 digits of
scikit-learn are used, which leave no room for two layers.

Run with ``python examples/maps/plot_ika_stacked.py``.
"""

import matplotlib.pyplot as plt
import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from sklearn.linear_model import RidgeClassifierCV

from kernlets import RBF, IKAMap, datasets


def patches(images, size):  # (n, h, w, c) -> (n, h', w', size * size * c)
    windows = sliding_window_view(images, (size, size), axis=(1, 2))
    return windows.reshape(*windows.shape[:3], -1)


class Layer:
    """ψ(x/|x|) · |x| of each patch x, averaged over squares of `pool` places."""

    def __init__(self, size, n_components, pool, sigma):
        self.size, self.pool = size, pool
        self.map = IKAMap(
            RBF(sigma=sigma),
            landmarks="kmeans",
            n_landmarks=2 * n_components,
            n_components=n_components,
            n_samples=3000,
            random_state=0,
        )

    def fit(self, images):
        rows = patches(images, self.size)
        rows = rows.reshape(-1, rows.shape[-1])
        rows = rows[np.linalg.norm(rows, axis=1) > 0]
        chosen = np.random.default_rng(0).permutation(len(rows))[:20_000]
        self.map.fit(datasets.unit_norm(rows[chosen]))
        return self

    def transform(self, images):
        rows = patches(images, self.size)
        flat = rows.reshape(-1, rows.shape[-1])
        lengths = np.linalg.norm(flat, axis=1, keepdims=True)
        features = self.map.transform(datasets.unit_norm(flat)) * lengths
        return pooled(features.reshape(*rows.shape[:3], -1), self.pool)


def pooled(images, pool):  # (n, h, w, c) -> (n, h / pool, w / pool, c)
    n, h, w, c = images.shape
    h, w = h // pool, w // pool
    squares = images[:, : h * pool, : w * pool].reshape(n, h, pool, w, pool, c)
    return squares.mean(axis=(2, 4))


def score(train, test):
    """Accuracy of ridge regression on features of unit length."""
    train, test = (datasets.unit_norm(F.reshape(len(F), -1)) for F in (train, test))
    model = RidgeClassifierCV(np.logspace(-5, 1, 7)).fit(train, y)
    return train.shape[1], model.score(test, truth)


try:
    data = datasets.load("usps", download=False)
    X, new, y, truth = data.X_train, data.X_test, data.y_train, data.y_test
except datasets.DatasetNotFoundError:
    data = datasets.load("digits")
    X, new, y, truth = data.split(0.7, random_state=0)
X, y = X[:3000], y[:3000]
images, new_images = (
    datasets.remove_mean_and_normalize(A).reshape(-1, *data.image_shape, 1)
    for A in (X, new)
)

# %%
# Each result: number of features, accuracy on new images.

results = {}
flat = images.reshape(len(images), -1)
new_flat = new_images.reshape(len(new_images), -1)
results["pixels"] = score(flat, new_flat)
for n in (250, 1000):
    whole = IKAMap(RBF(sigma=1.0), landmarks="kmeans", n_landmarks=n, random_state=0)
    F = whole.fit_transform(flat), whole.transform(new_flat)
    results[f"IKA of the image, n = {n}"] = score(*F)
first = Layer(3, 16, 2, sigma=0.7).fit(images)
one, new_one = first.transform(images), first.transform(new_images)
results["one layer"] = score(one, new_one)
second = Layer(2, 48, 2, sigma=0.7).fit(one)
results["two layers"] = score(second.transform(one), second.transform(new_one))
for name, (n_features, accuracy) in results.items():
    print(f"{name:26s} {n_features:5d} features   accuracy {accuracy:.4f}")

# %%
# The same as bars.

figure, ax = plt.subplots(figsize=(5, 2.5), layout="constrained")
ax.barh(list(results)[::-1], [100 * r[1] for r in results.values()][::-1], color="0.6")
ax.set(xlabel="accuracy (%)", xlim=(80, 100))
plt.show()

# %%
# **What one sees.** On USPS each step is better than the one before, and two layers
# need half as many features as one.
#
# **What to change.** The width ``sigma`` of a layer, and the number of its components.
