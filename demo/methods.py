"""The methods that the demonstration compares: dictionaries, and what others would use.

Each is a function of the seed and returns a scikit-learn pipeline for raw images. A new
one is a line in `METHODS`. Sizes were chosen by `choice.py` on the training half alone.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from sklearn.base import BaseEstimator, clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import KNNImputer
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import SVC

from kernlets.classifiers import ResidualClassifier
from kernlets.datasets import remove_mean_and_normalize
from kernlets.kernels import RBF, Polynomial
from kernlets.learners import KSVD, KernelKSVD
from kernlets.maps import NystroemMap, UnitNorm


def prepared(*steps: BaseEstimator) -> Pipeline:
    """Behind images without their mean and of unit norm (LKDL, section V-A)."""
    return make_pipeline(FunctionTransformer(remove_mean_and_normalize), *steps)


def classifier(learner: BaseEstimator, *maps: BaseEstimator) -> Pipeline:
    """Maps, then one dictionary per class."""
    return prepared(*maps, ResidualClassifier(learner))


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


def _told_kernel(seed: int) -> Pipeline:
    """Methods with NaN take grey levels as they are, where all of them but the linear
    dictionary are better."""
    learner = KernelKSVD("rbf", 58, n_nonzero_coefs=8, random_state=seed)
    return make_pipeline(ResidualClassifier(learner))


def _told_linear(seed: int) -> Pipeline:
    learner = KSVD(20, 3, max_iter=5, random_state=seed)
    return make_pipeline(UnitNorm(), ResidualClassifier(learner))


def _told_neighbors(seed: int) -> Pipeline:
    return make_pipeline(KNeighborsClassifier(5, metric="nan_euclidean"))


def _told_machine(seed: int) -> Pipeline:
    return make_pipeline(KNNImputer(keep_empty_features=True), SVC(C=10.0, gamma=0.1))


def _machine(seed: int) -> Pipeline:
    return prepared(SVC(C=10.0, gamma=1.0))


def _forest(seed: int) -> Pipeline:
    """On grey levels as they are, where it is better."""
    return make_pipeline(RandomForestClassifier(200, random_state=seed))


KERNEL, NARROW = Polynomial(3), RBF(gamma=4.0)
TOLD = TOLD_KERNEL, TOLD_LINEAR, TOLD_NEIGHBORS, TOLD_MACHINE = (
    "kernel K-SVD, NaN",
    "linear K-SVD, NaN",
    "5-NN, NaN",
    "imputer, SVM, NaN",
)
"""Lost pixels are NaN to them, which means unknown; to all others they are black."""
SAMPLES, EXACT, LKDL, LINEAR = (
    "samples, narrow kernel",
    "kernel K-SVD",
    "LKDL (Nyström + K-SVD)",
    "linear K-SVD",
)
NEIGHBORS, MACHINE, FOREST = "5 nearest neighbours", "SVM (RBF)", "random forest"
PEERS = TOLD_NEIGHBORS, TOLD_MACHINE, NEIGHBORS, MACHINE, FOREST

# Sizes chosen by accuracy on clean images; those of `TOLD` by mean accuracy on clean
# images and those with lost pixels; those of `SAMPLES` and the number of neighbours by
# mean accuracy over all corruptions. The settings of the support vector machine
# without NaN are those with the widest kernel among its best on clean images: narrower
# ones lose much more under corruption.
METHODS: dict[str, Callable[[int], Pipeline]] = {
    TOLD_KERNEL: _told_kernel,
    TOLD_LINEAR: _told_linear,
    TOLD_NEIGHBORS: _told_neighbors,
    TOLD_MACHINE: _told_machine,
    SAMPLES: _samples,
    EXACT: _exact,
    LKDL: _lkdl,
    LINEAR: partial(_linear, 20, 3),
    NEIGHBORS: _neighbors,
    MACHINE: _machine,
    FOREST: _forest,
}


def dictionaries() -> list[str]:
    """The methods that are no peers."""
    return [name for name in METHODS if name not in PEERS]
