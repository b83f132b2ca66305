"""The methods that the demonstration compares. A new method is one line in `METHODS`.

Each is a function of the seed and returns a scikit-learn classifier of raw images.
Sizes were chosen by `choice.py` on the training half alone.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer

from ...classifiers import ResidualClassifier
from ...datasets import remove_mean_and_normalize
from ...kernels import Polynomial
from ...learners import KSVD, KernelKSVD
from ...maps import NystroemMap
from ..untrained import KeepAtoms


def classifier(learner: BaseEstimator, *maps: BaseEstimator) -> Pipeline:
    """Mean removed, unit norm (LKDL, section V-A), maps, one dictionary per class."""
    prepare = FunctionTransformer(remove_mean_and_normalize)
    return make_pipeline(prepare, *maps, ResidualClassifier(learner))


def _untrained(seed: int) -> Pipeline:
    return classifier(
        KSVD(40, 2, max_iter=1, update=KeepAtoms(), random_state=seed)
    )


def _linear(n_atoms: int, n_nonzero: int, seed: int) -> Pipeline:
    return classifier(KSVD(n_atoms, n_nonzero, max_iter=5, random_state=seed))


def _lkdl(seed: int) -> Pipeline:
    features = NystroemMap(clone(KERNEL), "kmeans", n_landmarks=0.5, random_state=seed)
    return classifier(KSVD(40, 6, max_iter=5, random_state=seed), features)


def _exact(seed: int) -> Pipeline:
    """Atoms, non-zeros and kernel as in LKDL, with the whole kernel matrix."""
    learner = KernelKSVD(
        clone(KERNEL), 40, n_nonzero_coefs=6, max_iter=5, random_state=seed
    )
    return classifier(learner)


KERNEL = Polynomial(3)
UNTRAINED, LINEAR, ROBUST, LKDL, EXACT = (
    "untrained atoms",
    "K-SVD (linear)",
    "K-SVD (linear, q = 1)",
    "LKDL (Nyström + K-SVD)",
    "kernel K-SVD (exact)",
)

# Sizes chosen by accuracy on clean images; those of the third by mean accuracy over all
# corruptions: with one atom per image it gives up accuracy for robustness.
METHODS: dict[str, Callable[[int], Pipeline]] = {
    UNTRAINED: _untrained,
    LINEAR: partial(_linear, 20, 3),
    ROBUST: partial(_linear, 50, 1),
    LKDL: _lkdl,
    EXACT: _exact,
}
