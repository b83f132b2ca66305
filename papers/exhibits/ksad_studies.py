"""Runs behind K-SAD's tables and its picture: faces, digits, pre-images."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from benchmarks.harness.timing import timed
from kernlets.base.notebook import png
from kernlets.classifiers import (
    FDDLClassifier,
    KSADClassifier,
    OrthogonalAtoms,
    ResidualClassifier,
    SRCClassifier,
)
from kernlets.coders import Lasso
from kernlets.datasets import unit_norm
from kernlets.learners import KSVD, KernelKSVD
from kernlets.maps import NystroemMap
from kernlets.numerics.arrays import to_numpy
from kernlets.plotting import mosaic

from ..data import Images, loaded, split_of, unit_digits
from ..spec import Case, Sizes, Study, Unavailable, Values
from ..written import Fista
from .common import Searched, percent_correct

ATOMS = {"orl": 240, "yaleb": 740, "mnist": 300}
TRAIN = {"orl": 6, "yaleb": 32}  # images per subject
PUBLISHED = "K-SAD, nearest training codes"
LINE_15, NORM = "K-SAD, test codes of line 15", "K-SAD, S_b as printed"
PRINTED: dict[str, dict[str, Any]] = {
    LINE_15: {"dictionary": OrthogonalAtoms(threshold_new=False)},
    NORM: {"dictionary": OrthogonalAtoms(between="norm")},
}
NEAREST = "K-SAD, nearest labelled atoms"
ENERGY = "K-SAD, energy of labelled atoms"
#: Labels of atoms, lines 15 to 18 of Algorithm 1: test codes have no threshold.
LABELLED: dict[str, dict[str, Any]] = {
    NEAREST: {"dictionary": OrthogonalAtoms(threshold_new=False, compare="atoms")},
    ENERGY: {"dictionary": OrthogonalAtoms(threshold_new=False, compare="energy")},
}
PLAIN = "K-SAD, nearest training codes, printed kernel"
PLAIN_UNIFORM = f"{PLAIN}, uniform landmarks"
#: The kernel of degree 8 as printed, without an offset.
PRINTED_KERNEL: dict[str, dict[str, Any]] = {
    PLAIN: {"kernel": "poly:8"},
    PLAIN_UNIFORM: {"kernel": "poly:8", "landmarks": "uniform"},
}
READINGS = (*LABELLED, *PRINTED_KERNEL)
FISHER = "K-SAD, Fisher atoms, kernel by cross-validation (ours)"
#: ORL without its mean image.
CENTRED = (PUBLISHED, *PRINTED, *LABELLED, "1-NN on the images")
Build = Callable[[str, int, Sizes], Any]


def faces(name: str, seed: int, sizes: Sizes, centred: bool) -> Images:
    """One split, unit norm, without the mean training image if `centred`."""
    split = split_of(name, TRAIN[name], seed, sizes)
    mean = split.X_train.mean(axis=0) if centred else 0.0
    X, X_test = unit_norm(split.X_train - mean), unit_norm(split.X_test - mean)
    return Images(X, split.y_train, X_test, split.y_test)


def published(data: str, seed: int, sizes: Sizes, **changes: Any) -> Any:
    atoms = sizes.get("atoms") or ATOMS[data]
    return KSADClassifier(n_components=atoms, random_state=seed, **changes)


def fisher(data: str, seed: int, sizes: Sizes) -> Any:
    """The paper's criterion decides: all faces as landmarks, 2000 digits."""
    digits = data == "mnist"
    model = KSADClassifier(
        dictionary="fisher",
        landmarks="uniform",
        n_landmarks=sizes.get("landmarks", 2000) if digits else 1.0,
        random_state=seed,
    )
    kernels = [f"poly:{degree},coef0=1" for degree in (2, 4, 8)]
    grid: dict[str, list[Any]]
    grid = {"kernel": kernels, "n_neighbors": [1, 10] if digits else [1]}
    return Searched(model, grid, seed, sizes.get("searched", 6000))


def neighbours(data: str, seed: int, sizes: Sizes) -> Any:
    return KNeighborsClassifier(1, algorithm="brute")


def _ksvd_sizes(data: str, sizes: Sizes) -> dict[str, Any]:
    """Nearly as many atoms as training images of a subject; LKDL's sizes on MNIST."""
    if data == "mnist":
        atoms = sizes.get("per_class", 700)
        return {"n_components": atoms, "n_nonzero_coefs": 11, "max_iter": 2}
    if data == "yaleb":
        return {"n_components": 30, "n_nonzero_coefs": 15}
    return {"n_components": 6, "n_nonzero_coefs": 5}


def exact(data: str, seed: int, sizes: Sizes) -> Any:
    return ResidualClassifier(
        KernelKSVD("poly:2", **_ksvd_sizes(data, sizes), random_state=seed)
    )


def virtual(data: str, seed: int, sizes: Sizes) -> NystroemMap:
    """LKDL's map: all training images of faces as landmarks, a coreset of digits."""
    if data == "mnist":
        c, k = sizes.get("landmarks", 3000), sizes.get("features", 784)
        return NystroemMap(
            "poly:2", "coreset", n_landmarks=c, n_components=k, random_state=seed
        )
    return NystroemMap("poly:2", n_landmarks=1.0, random_state=seed)


def lkdl(data: str, seed: int, sizes: Sizes) -> Any:
    learner = KSVD(**_ksvd_sizes(data, sizes), random_state=seed)
    return make_pipeline(virtual(data, seed, sizes), ResidualClassifier(learner))


def approximated(data: str, seed: int, sizes: Sizes) -> Any:
    """K-SAD's own map, and kernel K-SVD on it, which is K-SVD of virtual samples."""
    kernel, count = "poly:8,coef0=1", sizes.get("atoms") or ATOMS[data]
    features = NystroemMap(
        kernel,
        "kmeans",
        n_landmarks=2 * count,
        n_components=count,
        random_state=seed,
    )
    learner = KSVD(**_ksvd_sizes(data, sizes), random_state=seed)
    return make_pipeline(features, ResidualClassifier(learner))


def fddl(data: str, seed: int, sizes: Sizes) -> Any:
    atoms = sizes.get("per_class", {"orl": 6, "yaleb": 20}[data])
    return FDDLClassifier(atoms, simplified=True, random_state=seed)


def mapped_fddl(data: str, seed: int, sizes: Sizes) -> Any:
    return make_pipeline(virtual(data, seed, sizes), fddl(data, seed, sizes))


def sparse_representation(data: str, seed: int, sizes: Sizes) -> Any:
    return SRCClassifier("linear", sizes.get("nonzeros", 50))


def l1_representation(data: str, seed: int, sizes: Sizes) -> Any:
    return SRCClassifier("linear", coder=Lasso(alpha=0.01))


def fista(data: str, seed: int, sizes: Sizes) -> Any:
    return SRCClassifier("linear", coder=Fista(alpha=0.01))


def svm(data: str, seed: int, sizes: Sizes) -> Any:
    return SVC(C=5.0, gamma=2.0, cache_size=1000)


AS_PRINTED: dict[str, Build] = {
    name: partial(published, **changes)
    for name, changes in {**PRINTED, **LABELLED}.items()
}
FACES: dict[str, Build] = {
    PUBLISHED: published,
    **AS_PRINTED,
    FISHER: fisher,
    "1-NN on the images": neighbours,
    "OMP over all training images": sparse_representation,
    "l1 over all training images": l1_representation,
    "FISTA over all training images": fista,
    "KK-SVD": exact,
    "FDDL": fddl,
    "LKA + FDDL": mapped_fddl,
    "LKDL": lkdl,
}
DIGITS: dict[str, Build] = {
    PUBLISHED: published,
    **AS_PRINTED,
    **{name: partial(published, **v) for name, v in PRINTED_KERNEL.items()},
    FISHER: fisher,
    "1-NN on the images": neighbours,
    "KK-SVD": exact,
    "LKA + KK-SVD": approximated,
    "LKDL": lkdl,
    "SVM (Gaussian kernel)": svm,
}


def _scored(method: str, model: Any, images: Images) -> Values:
    _, training = timed(lambda: model.fit(images.X, images.y))
    score, test = timed(lambda: percent_correct(model, images.X_test, images.y_test))
    if method in READINGS:  # the same steps as those of `PUBLISHED`
        return {"accuracy": score}
    return {"accuracy": score, "seconds": training + test}


class Faces(Study):
    """Accuracy on random splits of ORL and Extended Yale B."""

    name = "ksad.faces"
    warm = True
    grid: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "data": ("orl", "yaleb"),
        "method": tuple(FACES),
    }
    sizes: ClassVar[Mapping[str, Sizes]] = {
        "smoke": {"classes": 4, "atoms": 12, "nonzeros": 10, "per_class": 4},
        "small": {},
        "full": {},
    }
    seeds: ClassVar[Mapping[str, int]] = {"smoke": 1, "small": 1, "full": 10}

    def repeats(self, case: Case, scale: str) -> int:
        """Four times as many splits of ORL, whose test part is small."""
        found = super().repeats(case, scale)
        if case["method"] in READINGS:
            return min(found, 10 if case["data"] == "orl" else 5)
        return 4 * found if scale == "full" and case["data"] == "orl" else found

    def cost(self, case: Case) -> float:
        return 5.0 if case["data"] == "orl" else 15.0

    def measure(self, case: Case, seed: int, sizes: Sizes) -> Values:
        data, method = case["data"], case["method"]
        images = faces(data, seed, sizes, data == "orl" and method in CENTRED)
        return _scored(method, FACES[method](data, seed, sizes), images)


class Digits(Study):
    """Accuracy on MNIST."""

    name = "ksad.digits"
    warm = True
    grid: ClassVar[Mapping[str, tuple[Any, ...]]] = {"method": tuple(DIGITS)}
    sizes: ClassVar[Mapping[str, Sizes]] = {
        "smoke": {
            "smoke": True,
            "rows": 500,
            "tests": 200,
            "atoms": 40,
            "landmarks": 200,
            "features": 60,
            "per_class": 15,
            "searched": 300,
        },
        "small": {"rows": 10_000},
        "full": {},
    }
    seeds: ClassVar[Mapping[str, int]] = {"smoke": 1, "small": 1, "full": 10}

    def repeats(self, case: Case, scale: str) -> int:
        seedless = ("1-NN on the images", "SVM (Gaussian kernel)")
        if case["method"] in READINGS:
            return min(3, super().repeats(case, scale))
        return 1 if case["method"] in seedless else super().repeats(case, scale)

    def cost(self, case: Case) -> float:
        slow = {FISHER: 100.0, "KK-SVD": 70.0, "SVM (Gaussian kernel)": 400.0}
        return slow.get(case["method"], 40.0)

    def measure(self, case: Case, seed: int, sizes: Sizes) -> Values:
        images = unit_digits("mnist", sizes)
        method = case["method"]
        return _scored(method, DIGITS[method]("mnist", seed, sizes), images)


class Preimages(Study):
    """Atoms of K-SAD shown as the images whose φ is nearest to them."""

    name = "ksad.preimages"
    grid: ClassVar[Mapping[str, tuple[Any, ...]]] = {"data": ("orl", "yaleb", "mnist")}
    sizes: ClassVar[Mapping[str, Sizes]] = {
        "smoke": {"smoke": True, "classes": 4, "rows": 300, "atoms": 12, "shown": 4},
        "small": {"shown": 16},
        "full": {"shown": 16},
    }
    seeds: ClassVar[Mapping[str, int]] = {"smoke": 1, "small": 1, "full": 1}

    def cost(self, case: Case) -> float:
        return 30.0

    def measure(self, case: Case, seed: int, sizes: Sizes) -> Values:
        data = case["data"]
        if data == "mnist":
            images = unit_digits("mnist", sizes)
        else:
            images = faces(data, seed, sizes, centred=False)
        model = published(data, seed, sizes).fit(images.X, images.y)
        dictionary = model.kernel_dictionary_
        some = dictionary.with_weights(dictionary.coefs[: sizes["shown"]])
        found = some.preimages()
        distance = to_numpy(found.distance / found.norm)
        order = distance.argsort()
        return {
            "picture": _picture(to_numpy(found.points)[order], data),
            "distance": float(distance.mean()),
        }


def _picture(points: np.ndarray, data: str) -> str:
    """Images side by side as a PNG file in base64; large faces at half the size."""
    shape = loaded(data).image_shape if data != "mnist" else _square(points)
    assert shape is not None
    images = points.reshape(-1, *shape)
    if data == "orl":
        images = images[:, ::2, ::2]
    tiles = mosaic(images.reshape(len(images), -1), images.shape[1:], 8)
    return b64encode(png(tiles)).decode("ascii")


def _square(points: np.ndarray) -> tuple[int, int]:
    side = round(points.shape[1] ** 0.5)
    return side, side


class RGBD(Unavailable):
    name = "ksad.rgbd"
    reason = "the Washington RGB-D objects are not in the data folder"
