"""K-SAD beside its rivals on faces and digits, all on the same splits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from papers.exhibits import ksad_studies as paper
from papers.published import number

from .data import load_data
from .peers.spec import Benchmark, Case, Figures, Target
from .splits import OnSplits, Problem

PLACES = {"orl": ("table2", "orl"), "yaleb": ("table2", "yaleb"), "mnist": ("table3",)}
REMEASURED = {"orl": 96.2, "mnist": 96.6}  # lower ends of independent references
PER_CLASS = {"orl": 6, "yaleb": 20, "mnist": 30, "digits": 6}
TRAIN = {**paper.TRAIN, "digits": 60}  # images per class for training
SIZES = {"digits": {"atoms": 60}}
SPLITS = {"orl": 10, "yaleb": 5, "mnist": 1, "digits": 1}
FACES = ("orl", "yaleb")

Images = tuple[np.ndarray, np.ndarray]  # training, test


def centred(X: np.ndarray, X_test: np.ndarray) -> Images:
    """Without the mean of the training images."""
    return X - X.mean(axis=0), X_test - X.mean(axis=0)


IMAGES: dict[str, Callable[[np.ndarray, np.ndarray], Images]] = {
    "plain": lambda X, X_test: (X, X_test),
    "centred": centred,
    "log": lambda X, X_test: (np.log1p(255 * X), np.log1p(255 * X_test)),
}


def load_splits(case: Case) -> Iterator[tuple[np.ndarray, ...]]:
    """Rows of unit norm, float32; the published split of MNIST, else by seed."""
    from kernlets import datasets

    name = case["data"]
    data = load_data(name)
    for seed in range(SPLITS[name]):
        parts = (data.X_train, data.X_test, data.y_train, data.y_test)
        if name in TRAIN:
            parts = data.split(TRAIN[name], random_state=seed)
        rows = IMAGES[case["images"]](*parts[:2])
        yield (*map(datasets.unit_norm, rows), *parts[2:])


def as_in_the_paper(build: paper.Build) -> Callable[[str, int], Any]:
    """A method of the paper's experiments at full size, small on the quick set."""
    return lambda data, seed: build(data, seed, SIZES.get(data, {}))


def fisher(kernel: str, n_landmarks: int = 2000) -> Callable[[str, int], Any]:
    """Fisher atoms over all training images of faces, else over some landmarks."""

    def build(data: str, seed: int) -> Any:
        from kernlets import KSADClassifier

        faces = data in FACES
        return KSADClassifier(
            kernel,
            dictionary="fisher",
            n_landmarks=1.0 if data != "mnist" else n_landmarks,
            landmarks="uniform",
            n_neighbors=1 if faces else 10,
            random_state=seed,
        )

    return build


def residuals(data: str, seed: int) -> Any:
    from sklearn.pipeline import make_pipeline

    from kernlets import OrthogonalDictionary, ResidualClassifier

    learner = OrthogonalDictionary(PER_CLASS[data], alpha=0.0, random_state=seed)
    return make_pipeline(paper.virtual(data, seed, {}), ResidualClassifier(learner))


def sparse_representation(
    kernel: str, n_nonzero_coefs: int
) -> Callable[[str, int], Any]:
    def build(data: str, seed: int) -> Any:
        from kernlets import SRCClassifier

        return SRCClassifier(kernel, n_nonzero_coefs)

    return build


def svm(data: str, seed: int) -> Any:
    from sklearn.svm import SVC

    if data == "mnist":
        return SVC(C=5.0, gamma=2.0, cache_size=1000)
    return SVC(C=100.0, gamma=0.5)


METHODS: dict[str, Callable[[str, int], Any]] = {
    "K-SAD, nearest training codes": as_in_the_paper(paper.published),
    "1-NN on the images": as_in_the_paper(paper.neighbours),
    "K-SAD, Fisher atoms, poly-8": fisher("poly:8,coef0=1"),
    "K-SAD, Fisher atoms, poly-2": fisher("poly:2,coef0=1"),
    "K-SAD, Fisher atoms, poly-8, 4000 landmarks": fisher("poly:8,coef0=1", 4000),
    "orthogonal dictionary per class": residuals,
    "SRC, linear, 100 non-zeros": sparse_representation("linear", 100),
    "SRC, RBF, 50 non-zeros": sparse_representation("rbf:0.7", 50),
    "LKDL + K-SVD per class": as_in_the_paper(paper.lkdl),
    "exact kernel K-SVD per class": as_in_the_paper(paper.exact),
    "RBF-SVM": svm,
}
OF_FACES = [name for name in METHODS if "4000" not in name]
# of SRC the training images are the dictionary, and 60 000 are too many for that
OF_DIGITS = [name for name in METHODS if not name.startswith("SRC")]


class Kernlets(OnSplits):
    def model(self, seed: int) -> Any:
        return METHODS[self.case["method"]](self.problem.data, seed)

    def published(self) -> Figures:
        known = PLACES.get(self.problem.data)
        if known is None or self.case["method"] != "K-SAD, nearest training codes":
            return {}
        table, *column = known
        accuracy = number("ksad", table, "K-SAD", *column)
        seconds = number("ksad", f"{table}-seconds", "K-SAD", *column)
        return {"published": accuracy.value, "published s": seconds.value}


class KSAD(Benchmark):
    name = "ksad"
    title = "K-SAD on faces and digits"
    about = (
        "ORL: 6 of 10 images per subject for training, 10 splits; Extended Yale B of "
        "48x42 pixels: 32 per subject, 5 splits; MNIST: 60 000 and 10 000 images. Rows "
        "of unit norm, float32; 'centred' without the mean training image, 'log' with "
        "log(1 + grey level). Accuracy in percent, mean and standard deviation over "
        "splits; fit and prediction of a split in seconds. K-SAD, nearest training "
        "codes: poly-8, 240, 740 and 300 atoms, k-means landmarks, 20 iterations, "
        "nearest code. Fisher atoms: all training images of faces as landmarks and 1 "
        "neighbour, 2000 landmarks and 10 neighbours on MNIST. The rivals: poly-2; 6, "
        "20 and 30 orthogonal atoms per class; 6, 30 and 700 atoms of K-SVD with 5, 15 "
        "and 11 non-zeros; SVM with C = 100, gamma = 0.5 (MNIST: 5 and 2)."
    )
    grid = tuple(
        {"data": data, "images": images, "method": method}
        for data, kinds, methods in (
            ("orl", ("centred", "plain"), OF_FACES),
            ("yaleb", ("plain", "log"), OF_FACES),
            ("mnist", ("plain",), OF_DIGITS),
        )
        for images in kinds
        for method in methods
    )
    quick_grid = (
        {
            "data": "digits",
            "images": "plain",
            "method": "K-SAD, nearest training codes",
        },
    )
    methods = (Kernlets,)
    repeats = 1

    def problem(self, case: Case) -> Problem:
        return Problem(list(load_splits(case)), case)

    def targets(self, case: Case) -> list[Target]:
        data, method = case["data"], case["method"]
        if method == "K-SAD, nearest training codes" and data in REMEASURED:
            if (data, case["images"]) == ("orl", "plain"):
                return []  # the paper's number goes with the mean image removed
            quick = [Target("seconds", "<=", 30)] if data == "mnist" else []
            return [Target("accuracy", ">=", REMEASURED[data]), *quick]
        if method.startswith("K-SAD, Fisher"):
            return [Target("accuracy", ">=", {"yaleb": 97.5, **REMEASURED}[data])]
        return []


BENCHMARK = KSAD()
