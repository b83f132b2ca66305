"""K-SAD's tables and its figure of pre-images with their published numbers."""

from __future__ import annotations

from ..claims import lead
from ..points import Points
from ..published import number, numbers
from ..spec import EVERY, Axes, Claim, Decider, Derived, Exhibit, Metric
from .common import ACCURACY
from .ksad_studies import (
    ENERGY,
    FISHER,
    LINE_15,
    NEAREST,
    NORM,
    PLAIN,
    PLAIN_UNIFORM,
    PUBLISHED,
    RGBD,
    Digits,
    Faces,
    Preimages,
)
from .ksad_times import TIMES2, TIMES3
from .lkdl_supervised import KERNEL
from .lkdl_supervised import TABLE4 as LKDL_TABLE4

READING = (
    "β₁ = 0.1, β₂ = 0.01, 20 iterations, k-means landmarks, degree 8, unit-norm "
    "images, as far as the text goes; the mean training image is removed for ORL. "
    "Line 16 of Algorithm 1 gives k-NN the codes of test samples and Z. Read as "
    "printed, a sample gets the label of the nearest atom, and atoms have the classes "
    "of the samples that they start from ('6 per subject'); the energy of a code over "
    "the atoms of each class is another use of these labels. Read as a distance from "
    "training codes it is better on MNIST and worse on Yale B. The text prints no "
    "offset of the kernel of degree 8: on MNIST the kernel without one counts. On "
    "faces (xᵀy + 1)⁸ is used, since without the 1 the threshold is larger than most "
    "codes. All this was chosen by results on test images, so that no number of it can "
    "be better."
)
FACT = (
    "Nearest neighbours among training codes ZᵀΦ are nearest neighbours on Φ for any "
    "orthogonal Z: in that reading the dictionary does not decide, and ORL's "
    f"{number('ksad', 'table2', 'K-SAD', 'orl')} is that of 1-NN on centred pixels."
)
IGNORED = (
    "The constraint ‖Q‖₁ ≤ 1 of eq. (5) is left out: beside the penalty β₁‖Q‖₁ the "
    "updates of Algorithm 1 do not have it. L1_LS and FISTA solve the same problem, "
    "here with λ = 0.01: coordinate descent until it rests, and 100 steps of FISTA. "
    "Line 15 of Algorithm 1 has no threshold for test codes, and the printed S_b is a "
    "squared norm."
)
FISTA = "FISTA over all training images"
NAMES = {
    "K-SAD": (NEAREST, ENERGY, PUBLISHED),
    "OMP": ("OMP over all training images",),
    "l1": ("l1 over all training images",),
    "FISTA": (FISTA,),
    "SVM": ("SVM (Gaussian kernel)",),
}
COPIED = ", ".join(map(str, numbers("ksad", "table3-copied").values()))
NOTES = {
    NEAREST: "line 16 of Algorithm 1 as printed, (xᵀy + 1)⁸",
    ENERGY: "the same labels, (xᵀy + 1)⁸",
    PUBLISHED: "(xᵀy + 1)⁸, test codes with a threshold, S_b a trace",
    LINE_15: "test codes ZᵀΦ beside training codes with a threshold, as printed",
    NORM: "S_b the squared norm of the matrix, as printed",
    FISHER: "the paper's criterion tr(S_w⁻¹S_b) made to decide; degree 2, 4 or 8 "
    "(and 1 or 10 neighbours for digits) chosen on training images; not published",
}


def _lkdl_faces(points: Points, table4: Points) -> list[float]:
    """The mean of LKDL's two methods on Yale B, which the paper prints as one."""
    names = (f"LC-KSVD{variant}{KERNEL}" for variant in (1, 2))
    one, two = ((name, "yaleb") for name in names)
    return [(a + b) / 2 for a, b in table4.pairs(one, two)]


NEIGHBOURS = Decider(
    "Atoms with labels stand between nearest images, which light decides on Yale B, "
    "and methods that compare with the subspace of each subject. Beside training "
    "codes the dictionary does not decide (tests/classifiers/test_ksad.py). What "
    "separates the same images is the subspace of all of a subject's images, or the "
    "paper's own criterion where it does decide. Images are 48 × 42 pixels here.",
    tuple(
        (name, "yaleb")
        for name in (
            NEAREST,
            ENERGY,
            PUBLISHED,
            "1-NN on the images",
            "OMP over all training images",
            FISHER,
        )
    ),
)
RIVALS_RUN = Decider(
    "The paper does not say with which parameters it ran its rivals, or quotes them. "
    "Ours have the parameters of this page, which were not fitted to these numbers."
)
OFFSET = Decider(
    "With the kernel as printed the number is not met. With an offset of 1, which the "
    "paper does not print, training codes meet it, and labels of atoms do not:",
    tuple((name, None) for name in (PLAIN, PLAIN_UNIFORM, PUBLISHED, NEAREST, ENERGY)),
)
CHOSEN = "the reading was chosen by results on test images"


def _best(data: str, title: str, *rivals: str) -> Claim:
    return Claim(
        f"K-SAD is the best of the table on {title}",
        lead((NEAREST, data), *((name, data) for name in rivals)),
        at_least=0.0,
        decider=NEIGHBOURS if data == "yaleb" else RIVALS_RUN,
    )


LKDL_MEAN = "LKDL: mean of its Table IV"
RIVALS = ("OMP over all training images", "l1 over all training images", "KK-SVD")

TABLE1 = Exhibit(
    name="ksad/table1",
    title="Washington RGB-D objects",
    study=RGBD(),
    value="accuracy",
    metric=ACCURACY,
    protocol="10 predefined splits, 51 atoms",
    published=numbers("ksad", "table1", {"K-SAD": (NEAREST,)}),
    runs=10,
    axes=Axes(kind="none"),
)
TABLE2 = Exhibit(
    name="ksad/table2",
    title="Accuracy on faces: ORL (AT&T) and Extended Yale B",
    study=Faces(),
    value="accuracy",
    x="data",
    metric=ACCURACY,
    protocol="ORL: 6 of 10 images per subject for training, 240 atoms; Extended Yale "
    "B: 32 images per subject, 740 atoms",
    published={
        key: each
        for key, each in numbers("ksad", "table2", NAMES).items()
        if key[0] != "LKDL"
    },
    proposed=(NEAREST, ENERGY, PUBLISHED),
    deciders={(NEAREST, "yaleb"): NEIGHBOURS, EVERY: RIVALS_RUN},
    calibrated=dict.fromkeys((NEAREST, ENERGY, PUBLISHED), CHOSEN),
    repeats={
        **dict.fromkeys((ENERGY, PUBLISHED), "counted as line 16 is printed"),
        LKDL_MEAN: "the mean of two numbers that are counted in lkdl/table4",
    },
    derived=(
        Derived(
            LKDL_MEAN,
            number("ksad", "table2", "LKDL", "yaleb"),
            _lkdl_faces,
            ACCURACY,
            beside=LKDL_TABLE4,
        ),
    ),
    runs=10,
    deviations=(
        READING,
        FACT,
        IGNORED,
        "Yale B is available in 48 × 42 pixels, not 192 × 168.",
        "FDDL is the simplified one (codes of a class use its own atoms only); of the "
        "published rows, K-SAD's are the paper's, all others its rivals'.",
    ),
    notes=NOTES,
    seconds=("seconds",),
    claims=(
        _best("orl", "ORL", *RIVALS, "FDDL", "LKA + FDDL"),
        _best("yaleb", "Yale B", *RIVALS, FISTA, "LKA + FDDL", "LKDL"),
    ),
    axes=Axes(kind="none"),
)
TABLE3 = Exhibit(
    name="ksad/table3",
    title="Accuracy on MNIST",
    study=Digits(),
    value="accuracy",
    metric=ACCURACY,
    protocol="60 000 and 10 000 images, 300 atoms",
    published=numbers(
        "ksad",
        "table3",
        {**NAMES, "K-SAD": (PLAIN, PLAIN_UNIFORM, PUBLISHED, NEAREST, ENERGY)},
    ),
    proposed=(PLAIN, PLAIN_UNIFORM, PUBLISHED, NEAREST, ENERGY),
    repeats=dict.fromkeys(
        (PLAIN_UNIFORM, PUBLISHED, NEAREST, ENERGY), "counted with the printed kernel"
    ),
    calibrated=dict.fromkeys((PUBLISHED, NEAREST, ENERGY), CHOSEN),
    deciders={PLAIN: OFFSET, EVERY: RIVALS_RUN},
    deviations=(
        READING,
        FACT,
        IGNORED,
        "LKA + KK-SVD is K-SVD of K-SAD's virtual samples, which kernel K-SVD with the "
        "approximated kernel equals, with the sizes of LKDL on MNIST.",
        f"The paper's FDDL rows ({COPIED}) are LKDL's on USPS, not MNIST.",
    ),
    notes=NOTES,
    seconds=("seconds",),
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

EXHIBITS = (TABLE1, TABLE2, TIMES2, TABLE3, TIMES3, FIG2)
