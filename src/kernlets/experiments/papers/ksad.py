"""K-SAD's tables on faces and digits, and its picture of pre-images."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from ...backend.arrays import to_numpy
from ...classifiers import (
    FDDLClassifier,
    KSADClassifier,
    ResidualClassifier,
    SRCClassifier,
)
from ...datasets import unit_norm
from ...learners import KSVD, KernelKSVD
from ...maps import NystroemMap
from ...plotting import mosaic
from ...pursuits import Lasso
from ...report.pictures import png
from ..data import Images, loaded, split_of, unit_digits
from ..spec import Axes, Case, Claim, Exhibit, Metric, Sizes, Study, Unavailable, Values
from .common import accuracy, percent_correct, timed

ATOMS = {"orl": 240, "yaleb": 740, "mnist": 300}
TRAIN = {"orl": 6, "yaleb": 32}  # images per subject
PUBLISHED, FISHER = "K-SAD as published", "K-SAD, Fisher atoms (ours)"
Build = Callable[[str, int, Sizes], Any]


def faces(name: str, seed: int, sizes: Sizes, centred: bool) -> Images:
    """One split, unit norm, without the mean training image if `centred`."""
    split = split_of(name, TRAIN[name], seed, sizes)
    mean = split.X_train.mean(axis=0) if centred else 0.0
    X, X_test = unit_norm(split.X_train - mean), unit_norm(split.X_test - mean)
    return Images(X, split.y_train, X_test, split.y_test)


def published(data: str, seed: int, sizes: Sizes) -> Any:
    atoms = sizes.get("atoms", ATOMS[data])
    return KSADClassifier(n_components=atoms, random_state=seed)


def fisher(data: str, seed: int, sizes: Sizes) -> Any:
    """The paper's criterion decides: all faces as landmarks, 2000 digits."""
    digits = data == "mnist"
    return KSADClassifier(
        "poly:8,coef0=1" if digits else "poly:2,coef0=1",
        dictionary="fisher",
        landmarks="uniform",
        n_landmarks=sizes.get("landmarks", 2000) if digits else 1.0,
        n_neighbors=10 if digits else 1,
        random_state=seed,
    )


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


def lkdl(data: str, seed: int, sizes: Sizes) -> Any:
    if data == "mnist":
        c, k = sizes.get("landmarks", 3000), sizes.get("features", 784)
        feature_map = NystroemMap("poly:2", "coreset", c, k, random_state=seed)
    else:
        feature_map = NystroemMap("poly:2", n_landmarks=1.0, random_state=seed)
    learner = KSVD(**_ksvd_sizes(data, sizes), random_state=seed)
    return make_pipeline(feature_map, ResidualClassifier(learner))


def fddl(data: str, seed: int, sizes: Sizes) -> Any:
    atoms = sizes.get("per_class", {"orl": 6, "yaleb": 20}[data])
    return FDDLClassifier(atoms, simplified=True, random_state=seed)


def mapped_fddl(data: str, seed: int, sizes: Sizes) -> Any:
    feature_map = NystroemMap("poly:2", n_landmarks=1.0, random_state=seed)
    return make_pipeline(feature_map, fddl(data, seed, sizes))


def sparse_representation(data: str, seed: int, sizes: Sizes) -> Any:
    return SRCClassifier("linear", sizes.get("nonzeros", 50))


def l1_representation(data: str, seed: int, sizes: Sizes) -> Any:
    return SRCClassifier("linear", coder=Lasso(alpha=0.01))


def svm(data: str, seed: int, sizes: Sizes) -> Any:
    return SVC(C=5.0, gamma=2.0, cache_size=1000)


FACES: dict[str, Build] = {
    PUBLISHED: published,
    FISHER: fisher,
    "1-NN on the images": neighbours,
    "OMP over all training images": sparse_representation,
    "l1 over all training images": l1_representation,
    "KK-SVD": exact,
    "FDDL": fddl,
    "LKA + FDDL": mapped_fddl,
    "LKDL": lkdl,
}
DIGITS: dict[str, Build] = {
    PUBLISHED: published,
    FISHER: fisher,
    "1-NN on the images": neighbours,
    "KK-SVD": exact,
    "LKDL": lkdl,
    "SVM (Gaussian kernel)": svm,
}


def _scored(model: Any, images: Images) -> Values:
    _, training = timed(lambda: model.fit(images.X, images.y))
    score, test = timed(lambda: percent_correct(model, images.X_test, images.y_test))
    return {"accuracy": score, "seconds": training + test}


class Faces(Study):
    """Accuracy on random splits of ORL and Extended Yale B."""

    name = "ksad.faces"
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

    def cost(self, case: Case) -> float:
        return 5.0 if case["data"] == "orl" else 15.0

    def measure(self, case: Case, seed: int, sizes: Sizes) -> Values:
        data, method = case["data"], case["method"]
        centred = data == "orl" and method in (PUBLISHED, "1-NN on the images")
        images = faces(data, seed, sizes, centred)
        return _scored(FACES[method](data, seed, sizes), images)


class Digits(Study):
    """Accuracy on MNIST."""

    name = "ksad.digits"
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
        },
        "small": {"rows": 10_000},
        "full": {},
    }
    seeds: ClassVar[Mapping[str, int]] = {"smoke": 1, "small": 1, "full": 5}

    def repeats(self, case: Case, scale: str) -> int:
        seedless = ("1-NN on the images", "SVM (Gaussian kernel)")
        return 1 if case["method"] in seedless else self.seeds[scale]

    def cost(self, case: Case) -> float:
        return 400.0 if case["method"].startswith("SVM") else 40.0

    def measure(self, case: Case, seed: int, sizes: Sizes) -> Values:
        images = unit_digits("mnist", sizes)
        return _scored(DIGITS[case["method"]]("mnist", seed, sizes), images)


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


RIVAL = "the paper does not state the rival's parameters"
READING = (
    "κ = (xᵀy + 1)⁸ on unit-norm images, mean training image removed for ORL, k-means "
    "landmarks, threshold β₁/2, β₁ = 0.1, β₂ = 0.01, 20 iterations, nearest training "
    "code: the best-working of the readings that the text allows."
)
FACT = (
    "Nearest neighbours on codes ZᵀΦ are nearest neighbours on Φ for any orthogonal Z: "
    "in the published classifier the dictionary does not decide, and ORL's 96.58 is "
    "that of 1-NN on centred pixels."
)
NOTES = {FISHER: "the paper's criterion tr(S_w⁻¹S_b) made to decide; not published"}

TABLE1 = Exhibit(
    name="ksad/table1",
    title="Washington RGB-D objects",
    study=RGBD(),
    value="accuracy",
    metric=accuracy(1.0),
    protocol="10 predefined splits, 51 atoms",
    published={(PUBLISHED, None): 97.572},
    runs=10,
    axes=Axes(kind="none"),
)
TABLE2 = Exhibit(
    name="ksad/table2",
    title="Accuracy on faces: ORL (AT&T) and Extended Yale B",
    study=Faces(),
    value="accuracy",
    x="data",
    metric=accuracy(0.5),
    protocol="ORL: 6 of 10 images per subject for training, 240 atoms; Extended Yale "
    "B: 32 images per subject, 740 atoms",
    published={
        (PUBLISHED, "orl"): 96.58,
        (PUBLISHED, "yaleb"): 98.26,
        ("OMP over all training images", "orl"): 93.75,
        ("OMP over all training images", "yaleb"): 91.97,
        ("l1 over all training images", "orl"): 95.90,
        ("l1 over all training images", "yaleb"): 94.22,
        ("KK-SVD", "orl"): 93.75,
        ("KK-SVD", "yaleb"): 91.53,
        ("FDDL", "orl"): 94.25,
        ("LKA + FDDL", "orl"): 92.75,
        ("LKA + FDDL", "yaleb"): 87.2,
        ("LKDL", "yaleb"): 96.33,
    },
    runs=10,
    deviations=(
        READING,
        FACT,
        "Yale B is at hand in 48 × 42 pixels, not 192 × 168; nearest neighbours cannot "
        "reach the published number there. Sparse representation over all training "
        "images can come close.",
        "FDDL is the simplified one (codes of a class use its own atoms only); of the "
        "published rows, K-SAD's are the paper's, all others its rivals'.",
    ),
    notes=NOTES,
    incomparable={
        "OMP over all training images": RIVAL,
        "l1 over all training images": RIVAL,
        "KK-SVD": RIVAL,
        "FDDL": RIVAL,
        "LKA + FDDL": RIVAL,
        "LKDL": RIVAL,
    },
    also=("seconds",),
    claims=(
        Claim(
            "K-SAD as published is the best of the table on ORL",
            lambda p: p.mean(PUBLISHED, "orl")
            >= max(p.mean(name, "orl") for name in p.series if name != FISHER),
        ),
        Claim(
            "K-SAD as published is the best of the table on Yale B",
            lambda p: p.mean(PUBLISHED, "yaleb")
            >= max(p.mean(name, "yaleb") for name in p.series if name != FISHER),
        ),
    ),
    axes=Axes(kind="none"),
)
TABLE3 = Exhibit(
    name="ksad/table3",
    title="Accuracy on MNIST",
    study=Digits(),
    value="accuracy",
    metric=accuracy(0.3),
    protocol="60 000 and 10 000 images, 300 atoms",
    published={
        (PUBLISHED, None): 96.42,
        ("KK-SVD", None): 74.62,
        ("SVM (Gaussian kernel)", None): 98.6,
    },
    deviations=(
        READING,
        FACT,
        "The paper's FDDL rows (95.79, 96.03) are LKDL's on USPS, not MNIST.",
    ),
    notes=NOTES,
    incomparable={
        "KK-SVD": "published with approximated kernels; " + RIVAL,
        "SVM (Gaussian kernel)": RIVAL,
    },
    also=("seconds",),
    axes=Axes(kind="none"),
)
FIG2 = Exhibit(
    name="ksad/fig2",
    title="Pre-images of atoms",
    study=Preimages(),
    value="picture",
    series="data",
    metric=Metric("distance in feature space / norm of the atom", "lower"),
    protocol="the first atoms, nearest pre-image first; grey is zero",
    deviations=("The paper shows pictures only, and not of which atoms.",),
    also=("distance",),
    axes=Axes(kind="images"),
)

EXHIBITS = (TABLE1, TABLE2, TABLE3, FIG2)
