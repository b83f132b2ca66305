"""Digits with pixels lost at random, known to be lost: unknown, not zero."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, ClassVar

import numpy as np

from kernlets.lab.bench.skip import load_data
from kernlets.lab.peers.spec import Benchmark, Case, Figures, Method, Target

WIDTH = 0.75  # of the blur of USPS, as in LKDL's images
HELD_OUT = 0.2  # of the training images, to choose settings on
SIZES = {"digits": (1497, 300), "usps": (1500, 500)}  # training and test images
GOALS = {30: 98.0, 50: 96.0, 70: 85.0}  # of digits, in per cent


@dataclass(frozen=True)
class Images:
    X_train: np.ndarray  # (n, p)
    y_train: np.ndarray
    X_test: np.ndarray  # (n', p) with NaN
    y_test: np.ndarray
    lost: float


@lru_cache(maxsize=4)
def _all_images(name: str) -> tuple[np.ndarray, np.ndarray]:
    if name == "digits":
        from sklearn.datasets import load_digits

        X, y = load_digits(return_X_y=True)
        return X / 16, y
    from scipy.ndimage import gaussian_filter

    data = load_data(name)
    X = np.concatenate([data.X_train, data.X_test]).astype(np.float64)
    side = int(X.shape[1] ** 0.5)
    X = X.reshape(-1, side, side) - X.min()
    blurred = gaussian_filter(X, (0, WIDTH, WIDTH)).reshape(len(X), -1)
    return blurred / blurred.max(), np.concatenate([data.y_train, data.y_test])


def images(case: Case, seed: int) -> Images:
    """A random split; pixels of the test images are lost, and of the others if said."""
    X, y = _all_images(case["data"])
    n_train, n_test = case.get("sizes") or SIZES[case["data"]]
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(X))
    train, test = order[:n_train], order[n_train : n_train + n_test]
    lost = case["lost"] / 100
    X_train = holed(X[train], lost, rng) if case["trained on"] == "lost" else X[train]
    return Images(X_train, y[train], holed(X[test], lost, rng), y[test], lost)


def holed(X: np.ndarray, lost: float, rng: np.random.Generator) -> np.ndarray:
    return np.where(rng.random(X.shape) < lost, np.nan, X)


class Classifier(Method):
    """Trained on some images, asked for the labels of images with holes."""

    memory = False
    seeds: ClassVar[int] = 5

    def __init__(self, problem: Case) -> None:
        self.sets = [images(problem, s) for s in range(problem.get("seeds", 5))]

    def models(self, lost: float) -> list[Any]:
        """Candidates; the best on images held out from the training wins."""
        raise NotImplementedError

    def fitted(self, model: Any, X: np.ndarray, y: np.ndarray) -> Any:
        return model.fit(X, y)

    def run(self) -> list[float]:
        return [self.score(part) for part in self.sets]

    def score(self, part: Images) -> float:
        models = self.models(part.lost)
        best = models[0] if len(models) == 1 else self.chosen(models, part)
        model = self.fitted(best(), part.X_train, part.y_train)
        return model.score(part.X_test, part.y_test)

    def chosen(self, models: list[Any], part: Images) -> Any:
        """The candidate with the most hits among training images with such holes."""
        rng = np.random.default_rng(0)
        held = rng.random(len(part.X_train)) < HELD_OUT
        X, y = part.X_train, part.y_train
        new = holed(X[held], part.lost, rng) if not np.isnan(X).any() else X[held]

        def hits(model: Any) -> float:
            return self.fitted(model(), X[~held], y[~held]).score(new, y[held])

        return max(models, key=hits)

    def figures(self, result: list[float]) -> Figures:
        found = 100 * np.array(result)
        spread = float(found.std(ddof=1)) if len(found) > 1 else 0.0
        return {"accuracy": float(found.mean()), "deviation": spread}


def _per_class(learner: Any, *args: Any, **keys: Any) -> Any:
    from kernlets import ResidualClassifier

    return ResidualClassifier(learner(*args, random_state=0, **keys))


class KernelAtoms(Classifier):
    name = "kernlets, kernel atoms"

    def models(self, lost: float) -> list[Any]:
        from kernlets import KernelKSVD

        kernels = [("poly:2", None), ("poly:2", 100), ("poly:3", 100), ("rbf", 100)]
        return [
            partial(_per_class, KernelKSVD, kernel, m, n_nonzero_coefs=5)
            for kernel, m in kernels
        ]

    def fitted(self, model: Any, X: np.ndarray, y: np.ndarray) -> Any:
        from kernlets import DictionaryImputer

        complete = X if not np.isnan(X).any() else DictionaryImputer().fit_transform(X)
        return model.fit(complete, y)


class VirtualSamples(KernelAtoms):
    name = "kernlets, LKDL"

    def models(self, lost: float) -> list[Any]:
        from sklearn.pipeline import make_pipeline

        from kernlets import KSVD, NystroemMap

        def pipeline(kernel: str) -> Any:
            front = NystroemMap(kernel, n_landmarks=0.2, random_state=0)
            return make_pipeline(front, _per_class(KSVD, n_nonzero_coefs=5))

        return [partial(pipeline, kernel) for kernel in ("poly:2", "rbf")]


class LinearAtoms(Classifier):
    name = "kernlets, linear atoms"

    def models(self, lost: float) -> list[Any]:
        from kernlets import KSVD

        return [partial(_per_class, KSVD, n_nonzero_coefs=q) for q in (2, 3, 5)]


class ZeroFilled(LinearAtoms):
    name = "kernlets, linear atoms, zero-filled"

    def score(self, part: Images) -> float:
        X = np.nan_to_num(part.X_train)
        model = self.models(part.lost)[-1]().fit(X, part.y_train)
        return model.score(np.nan_to_num(part.X_test), part.y_test)


class Neighbor(Classifier):
    name = "1-NN, nan_euclidean"

    def models(self, lost: float) -> list[Any]:
        from sklearn.neighbors import KNeighborsClassifier

        return [partial(KNeighborsClassifier, 1, metric="nan_euclidean")]


class ImputedSVM(Classifier):
    name = "KNNImputer, SVM"

    def models(self, lost: float) -> list[Any]:
        from sklearn.impute import KNNImputer
        from sklearn.pipeline import make_pipeline
        from sklearn.svm import SVC

        def pipeline(C: float) -> Any:
            return make_pipeline(KNNImputer(keep_empty_features=True), SVC(C=C))

        return [partial(pipeline, C) for C in (1.0, 10.0)]


class Missing(Benchmark):
    name = "missing"
    title = "Images with missing pixels, accuracy in %"
    about = (
        "Digits of scikit-learn (1497 training, 300 test images) and smoothed USPS "
        "(1500, 500), drawn five times; pixels of the test images are lost at random "
        "and known to be lost. Settings of each method are chosen on a fifth of the "
        "training images with such holes. Timed: choice, training and prediction of "
        "all five draws."
    )
    methods = (
        KernelAtoms,
        VirtualSamples,
        LinearAtoms,
        ZeroFilled,
        Neighbor,
        ImputedSVM,
    )
    repeats = 1
    grid = (
        *(
            {"data": name, "lost": lost, "trained on": "clean"}
            for name in ("digits", "usps")
            for lost in (30, 50, 70)
        ),
        *({"data": "digits", "lost": n, "trained on": "lost"} for n in (30, 50, 70)),
    )
    quick_grid = (
        {
            "data": "digits",
            "lost": 50,
            "trained on": "clean",
            "sizes": (200, 40),
            "seeds": 1,
        },
    )

    def problem(self, case: Case) -> Case:
        _all_images(case["data"])  # `Skip` if there are none
        return case

    def targets(self, case: Case) -> list[Target]:
        found = []
        if case["data"] == "digits" and case["trained on"] == "clean":
            found.append(Target("accuracy", ">=", GOALS[case["lost"]]))
        if case["lost"] >= 50:
            rivals = (LinearAtoms, Neighbor, ImputedSVM)
            found += [Target(f"accuracy: {m.name}", ">=", 1.0) for m in rivals]
        return found


BENCHMARK = Missing()
