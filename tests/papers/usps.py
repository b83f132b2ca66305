"""The USPS protocol of LKDL, shared by the tests of published numbers."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from sklearn.pipeline import make_pipeline

from kernlets import KSVD, KernelKSVD, NystroemMap, ResidualClassifier, datasets
from kernlets.datasets import add_noise, remove_mean_and_normalize

ATOMS, ITERATIONS = 300, 5


@lru_cache(maxsize=1)
def smoothed_usps():
    return datasets.load("usps", smooth=0.75)


def ksvd(seed: int):
    """Linear K-SVD with three non-zeros, which is better for it than five."""
    return ResidualClassifier(KSVD(ATOMS, 3, max_iter=ITERATIONS, random_state=seed))


def lkdl(seed: int, landmarks: str):
    """LKDL: poly-2, a fifth of the samples as landmarks, 256 virtual features."""
    learner = KSVD(ATOMS, 5, max_iter=ITERATIONS, random_state=seed)
    feature_map = NystroemMap(
        "poly:2", landmarks, n_landmarks=0.2, n_components=256, random_state=seed
    )
    return make_pipeline(feature_map, ResidualClassifier(learner))


def kernel_ksvd(seed: int):
    """Exact kernel K-SVD."""
    learner = KernelKSVD(
        "poly:2", ATOMS, n_nonzero_coefs=5, max_iter=ITERATIONS, random_state=seed
    )
    return ResidualClassifier(learner)


def accuracies(model, noises=(0.0,), seed=0):
    """Percent correct at each noise level, added to the raw test images."""
    data = smoothed_usps()
    X = remove_mean_and_normalize(data.X_train)
    model.fit(X, data.y_train)
    scores = []
    for noise in noises:
        raw = data.X_test if noise == 0 else add_noise(data.X_test, noise, seed)
        scores.append(100 * model.score(remove_mean_and_normalize(raw), data.y_test))
    return np.array(scores)
