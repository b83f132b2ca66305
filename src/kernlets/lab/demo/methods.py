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

from ...classifiers import ResidualClassifier
from ...datasets import remove_mean_and_normalize
from ...kernels import RBF, Polynomial
from ...learners import KSVD, KernelKSVD
from ...maps import NystroemMap
from ..untrained import KeepAtoms


def prepared(*steps: BaseEstimator) -> Pipeline:
    """Behind images without their mean and of unit norm (LKDL, section V-A)."""
    return make_pipeline(FunctionTransformer(remove_mean_and_normalize), *steps)


def classifier(learner: BaseEstimator, *maps: BaseEstimator) -> Pipeline:
    """Maps, then one dictionary per class."""
    return prepared(*maps, ResidualClassifier(learner))


def _untrained(seed: int) -> Pipeline:
    return classifier(
        KSVD(40, 2, max_iter=1, update=KeepAtoms(), random_state=seed)
    )


def _linear(n_atoms: int, n_nonzero: int, seed: int) -> Pipeline:
    return classifier(KSVD(n_atoms, n_nonzero, max_iter=5, random_state=seed))


def _lkdl(seed: int) -> Pipeline:
    features = NystroemMap(clone(KERNEL), "kmeans", 0.5, random_state=seed)
    return classifier(KSVD(40, 6, max_iter=5, random_state=seed), features)


def _exact(seed: int) -> Pipeline:
    """Atoms, non-zeros and kernel as in LKDL, with the whole kernel matrix."""
    learner = KernelKSVD(clone(KERNEL), 40, 6, max_iter=5, random_state=seed)
    return classifier(learner)


def _samples(seed: int) -> Pipeline:
    """All samples of a digit as its atoms: nothing is learned."""
    learner = KernelKSVD(clone(NARROW), n_components=92, max_iter=1, random_state=seed)
    return classifier(learner.set_params(n_nonzero_coefs=30))


def _neighbors(seed: int) -> Pipeline:
    return prepared(KNeighborsClassifier(5))


def _machine(seed: int) -> Pipeline:
    return prepared(SVC(C=10.0, gamma=1.0))


def _forest(seed: int) -> Pipeline:
    """On grey levels as they are, where it is better."""
    return make_pipeline(RandomForestClassifier(200, random_state=seed))


KERNEL, NARROW = Polynomial(3), RBF(gamma=4.0)
UNTRAINED, LINEAR, ROBUST, LKDL, EXACT, SAMPLES = (
    "untrained atoms",
    "K-SVD (linear)",
    "K-SVD (linear, q = 1)",
    "LKDL (Nyström + K-SVD)",
    "kernel K-SVD (exact)",
    "samples, narrow kernel",
)
PEERS = NEIGHBORS, MACHINE, FOREST = (
    "5 nearest neighbours",
    "SVM (RBF)",
    "random forest",
)

# Sizes chosen by accuracy on clean images; those of `ROBUST`, `SAMPLES` and the number
# of neighbours by mean accuracy over all corruptions. The settings of the support
# vector machine are those with the widest kernel among its best on clean images:
# narrower ones lose much more under corruption.
METHODS: dict[str, Callable[[int], Pipeline]] = {
    UNTRAINED: _untrained,
    LINEAR: partial(_linear, 20, 3),
    ROBUST: partial(_linear, 50, 1),
    LKDL: _lkdl,
    EXACT: _exact,
    SAMPLES: _samples,
    NEIGHBORS: _neighbors,
    MACHINE: _machine,
    FOREST: _forest,
}


def dictionaries() -> list[str]:
    """The methods that are no peers."""
    return [name for name in METHODS if name not in PEERS]
