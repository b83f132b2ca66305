"""The methods that the demonstration compares: dictionaries, and what others would use.

Each is a function of the seed and returns a scikit-learn pipeline for raw images. A new
one is a line in `METHODS`. Sizes were chosen by `choice.py` on the training half alone.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from sklearn.base import BaseEstimator, clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import SVC

from kernlets.classifiers import ResidualClassifier
from kernlets.datasets import remove_mean_and_normalize
from kernlets.kernels import RBF, Polynomial
from kernlets.learners import KSVD, KernelKSVD
from kernlets.maps import NystroemMap, UnitNorm
from papers.untrained import KeepAtoms


def prepared(*steps: BaseEstimator) -> Pipeline:
    """Behind images without their mean and of unit norm (LKDL, section V-A)."""
    return make_pipeline(FunctionTransformer(remove_mean_and_normalize), *steps)


def classifier(learner: BaseEstimator, *maps: BaseEstimator) -> Pipeline:
    """Maps, then one dictionary per class."""
    return prepared(*maps, ResidualClassifier(learner))


def _untrained(seed: int) -> Pipeline:
    return classifier(KSVD(40, 2, max_iter=1, update=KeepAtoms(), random_state=seed))


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


def _samples(seed: int) -> Pipeline:
    """All samples of a digit as its atoms: nothing is learned."""
    learner = KernelKSVD(
        clone(NARROW), 92, n_nonzero_coefs=30, max_iter=1, random_state=seed
    )
    return classifier(learner)


def _neighbors(seed: int) -> Pipeline:
    return prepared(KNeighborsClassifier(5))


def _told(seed: int) -> Pipeline:
    """The mean of an image with holes is unknown, and stays in it."""
    learner = KSVD(20, 3, max_iter=5, random_state=seed)
    return make_pipeline(UnitNorm(), ResidualClassifier(learner))


def _told_neighbors(seed: int) -> Pipeline:
    return make_pipeline(UnitNorm(), KNeighborsClassifier(5, metric="nan_euclidean"))


def _machine(seed: int) -> Pipeline:
    return prepared(SVC(C=10.0, gamma=1.0))


def _forest(seed: int) -> Pipeline:
    """On grey levels as they are, where it is better."""
    return make_pipeline(RandomForestClassifier(200, random_state=seed))


KERNEL, NARROW = Polynomial(3), RBF(gamma=4.0)
UNTRAINED, LINEAR, ROBUST, LKDL, EXACT, SAMPLES, TOLD_LINEAR = (
    "untrained atoms",
    "K-SVD (linear)",
    "K-SVD (linear, q = 1)",
    "LKDL (Nyström + K-SVD)",
    "kernel K-SVD (exact)",
    "samples, narrow kernel",
    "K-SVD, holes known",
)
PEERS = TOLD_NEIGHBORS, NEIGHBORS, MACHINE, FOREST = (
    "5-NN, holes known",
    "5 nearest neighbours",
    "SVM (RBF)",
    "random forest",
)

TOLD = TOLD_LINEAR, TOLD_NEIGHBORS
"""Lost pixels are NaN to them, which means unknown; to all others they are black."""

# Sizes chosen by accuracy on clean images; those of `ROBUST`, `SAMPLES` and the number
# of neighbours by mean accuracy over all corruptions. The settings of the support
# vector machine are those with the widest kernel among its best on clean images:
# narrower ones lose much more under corruption. Methods that know the
# holes have the sizes of those that do not.
METHODS: dict[str, Callable[[int], Pipeline]] = {
    UNTRAINED: _untrained,
    LINEAR: partial(_linear, 20, 3),
    ROBUST: partial(_linear, 50, 1),
    LKDL: _lkdl,
    EXACT: _exact,
    SAMPLES: _samples,
    TOLD_LINEAR: _told,
    TOLD_NEIGHBORS: _told_neighbors,
    NEIGHBORS: _neighbors,
    MACHINE: _machine,
    FOREST: _forest,
}


def dictionaries() -> list[str]:
    """The methods that are no peers."""
    return [name for name in METHODS if name not in PEERS]
