"""LKDL's figures and tables with their published numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..claims import Parts, Rule, below, lead, ratio, together, value
from ..points import Points
from ..published import as_place, number, numbers
from ..spec import BEST_RIVAL, Axes, Claim, Decider, Derived, Exhibit, Metric
from .common import ACCURACY, SECONDS
from .lkdl_maps import MORE_LANDMARKS, THREE, MnistMaps, UspsMaps
from .lkdl_stream import TABLE2
from .lkdl_studies import (
    AS_WRITTEN,
    FIVE,
    FROZEN,
    MISSING,
    NOISES,
    OWN_MEAN,
    REPLACED,
    TOLD,
    Corrupted,
    Growing,
    NystroemErrors,
    Shares,
)
from .lkdl_supervised import TABLE3, TABLE4

SMOOTHED = (
    "The authors' images are smoothed, which the text does not say. A Gaussian blur of "
    "0.75 pixel with zeros around the image was fitted to the published rank-c errors "
    "of Fig. 1a, which are not counted for that, and is used for all figures of USPS. "
    "Greys are from -1 (black) to 1, as in the original files."
)
LINEAR_SPARSITY = (
    "The text has 5 non-zeros for all methods; the authors' program has 3 for linear "
    "K-SVD. Both are shown, and those with 3 count."
)
BOTH_SPARSITIES = {"K-SVD": ("K-SVD", FIVE)}
AS_PROGRAMMED = "counted with 3 non-zeros, as in the authors' program"
USPS_PROTOCOL = (
    "7291 training and 2007 test images, own mean removed, unit norm; 300 atoms per "
    "class, 5 non-zeros, 5 iterations, (xᵀy)², k = 256"
)
MNIST_PROTOCOL = (
    "unit norm, 700 atoms per digit, 11 non-zeros, 2 iterations, 10 000 test images"
)


#: Readings of a published curve; the last is that of the authors' program.
SAMPLERS_READ = {
    "diagonal": ("diagonal", "diagonal" + REPLACED),
    "column-norm": ("column-norm", "column-norm" + REPLACED),
    "coreset": ("coreset", "coreset" + REPLACED, OWN_MEAN),
}


def _kmeans_ahead(points: Points) -> Parts:
    names = [name for name in points.series if name not in ("kmeans", "best rank c")]
    return together(
        *(
            below(("kmeans", x), *((name, x) for name in names))
            for x in points.places("kmeans")
        )
    )(points)


FIG1A = Exhibit(
    name="lkdl/fig1a",
    title="Error of Nyström's kernel matrix against the share of landmarks",
    study=NystroemErrors(),
    value="error",
    x="percent",
    metric=Metric("‖K − K̃‖ / ‖K‖", "lower", digits=4),
    protocol="2000 random training images of USPS, (xᵀy)², k = c",
    published=numbers("lkdl", "fig1a", SAMPLERS_READ),
    calibrated={"best rank c": "the blur was fitted to these errors"},
    repeats={
        name: "counted as the authors' program draws"
        for readings in SAMPLERS_READ.values()
        for name in readings[:-1]
    },
    deviations=(
        SMOOTHED,
        "k = c: the printed k = 256 contradicts the text (no further reduction).",
        "The authors' program draws diagonal, column-norm and coreset landmarks with "
        "replacement, which loses distinct landmarks, and its coreset measures the "
        "distance of an image from the mean of its own pixels, where the text has the "
        "mean of the images. On images of mean 0 and unit norm that, like diagonal, is "
        "uniform sampling with replacement. All readings are shown.",
    ),
    notes={
        "diagonal": "equals uniform sampling on unit-norm data",
        "diagonal" + REPLACED: "as in the authors' program",
        "column-norm" + REPLACED: "as in the authors' program",
        "coreset": "as the text reads",
        OWN_MEAN: "as in the authors' program: uniform with replacement",
    },
    axes=Axes(x_label="landmarks, % of the samples", log_y=True),
    claims=(
        Claim(
            "k-means landmarks have the smallest error of all samplers",
            _kmeans_ahead,
            at_least=0.0,
            digits=4,
        ),
        Claim(
            "k-means landmarks give 97 % of the kernel matrix with 10 % of the samples",
            value(("kmeans", 10)),
            at_most=0.03,
            digits=4,
        ),
    ),
)
GAP = 0.5  # points: the gap between linear and kernel methods that the paper speaks of


def _changes(points: Points) -> Parts:
    """How far the accuracy of each sampler moves from that with the fewest samples."""
    rules = []
    for name in Shares.samplers:
        first, *others = points.places(name)
        rules += [lead((name, x), (name, first)) for x in others]
    return together(*rules)(points)


FIG1B = Exhibit(
    name="lkdl/fig1b",
    title="Accuracy on USPS against the share of landmarks",
    study=Shares(),
    value="accuracy",
    x="percent",
    metric=ACCURACY,
    protocol=USPS_PROTOCOL,
    published=numbers("lkdl", "fig1b", BOTH_SPARSITIES | {"KKSVD": (FROZEN, "KKSVD")}),
    repeats={FIVE: AS_PROGRAMMED, "KKSVD": "counted as the authors' program updates"},
    runs=10,
    proposed=Shares.samplers,
    effect=GAP,
    deviations=(
        SMOOTHED,
        LINEAR_SPARSITY,
        "KKSVD of the authors' program fits all atoms exactly, to residuals frozen at "
        'the start of the pass (``update="ksvd-jacobi"``). That of the library uses '
        "each new atom at once, and is more accurate. Both are shown, and the former "
        "counts.",
        "Landmarks are drawn without replacement; the authors' program draws diagonal, "
        "column-norm and coreset ones with it (Fig. 1a shows both).",
    ),
    notes={
        "K-SVD": "3 non-zeros, as in the authors' program",
        "KKSVD": "the library's: each new atom is used at once",
        FROZEN: "as in the authors' program",
        "untrained atoms": "random samples as atoms: what training is worth",
        "LKDL, untrained atoms": "random samples as atoms, coreset, 20 %",
    },
    axes=Axes(x_label="landmarks, % of the samples"),
    claims=(
        Claim(
            "the share of landmarks does not matter: changes are smaller than the gap "
            "of 0.5 points",
            _changes,
            at_least=-GAP,
            at_most=GAP,
        ),
        Claim(
            "LKDL with 20 % of the samples is competitive with KKSVD: it loses less "
            "than the gap of 0.5 points",
            lead(("coreset", 20), ("KKSVD", None), (FROZEN, None)),
            at_least=-GAP,
        ),
        Claim(
            "there is a gap of 0.5 points between K-SVD and its kernel variants",
            together(
                lead(("coreset", 20), ("K-SVD", None)),
                lead((FROZEN, None), ("K-SVD", None)),
            ),
            at_least=GAP,
        ),
    ),
)

OTHER_UPDATE = Decider(
    "KKSVD is the library's here, which uses each new atom at once. That of the "
    "authors' program, with frozen residuals, is less accurate and meets its number "
    "where both were run:",
    (("KKSVD", None), (FROZEN, None)),
    "lkdl/fig1b",
)
NOISE_NOTE = {
    "untrained atoms": "random samples as atoms: what training is worth",
    "LKDL, untrained atoms": "random samples as atoms",
}


def _gains(levels: Sequence[float]) -> Rule:
    """How far LKDL is above K-SVD, of either sparsity, on damaged images."""
    hit = (as_place(str(level)) for level in levels if level > 0)
    return together(*(lead(("LKDL", x), ("K-SVD", x), (FIVE, x)) for x in hit))


FIG2A = Exhibit(
    name="lkdl/fig2a",
    title="Accuracy on noisy USPS images",
    study=Corrupted(),
    value="noise",
    metric=ACCURACY,
    protocol=USPS_PROTOCOL
    + "; coreset landmarks, c = 20 %; noise on the raw test images before mean removal",
    published=numbers("lkdl", "fig2a", BOTH_SPARSITIES),
    repeats={FIVE: AS_PROGRAMMED},
    deciders={"KKSVD": OTHER_UPDATE},
    runs=10,
    proposed=("LKDL",),
    deviations=(SMOOTHED, LINEAR_SPARSITY),
    notes=NOISE_NOTE,
    axes=Axes(x_label="standard deviation of the noise (black -1, white 1)"),
    claims=(
        Claim(
            "adding the kernel improves the robustness to noise, at every level",
            _gains(NOISES),
            at_least=0.0,
        ),
    ),
)

FIG2B = Exhibit(
    name="lkdl/fig2b",
    title="Accuracy on USPS images with missing pixels",
    study=Corrupted(),
    value="missing",
    metric=ACCURACY,
    protocol=USPS_PROTOCOL
    + "; coreset landmarks, c = 20 %; pixels of the test images set to grey level 0, "
    "the mean of black and white, before mean removal",
    published=numbers("lkdl", "fig2b", BOTH_SPARSITIES),
    repeats={FIVE: AS_PROGRAMMED},
    deciders={"KKSVD": OTHER_UPDATE},
    runs=10,
    proposed=("LKDL",),
    deviations=(
        SMOOTHED,
        LINEAR_SPARSITY,
        "Pixels are lost in smoothed images, and nothing is smoothed after it, as in "
        "the authors' program.",
    ),
    notes=NOISE_NOTE | {TOLD: "not in the paper: lost pixels are unknown (NaN)"},
    axes=Axes(x_label="missing pixels, %"),
    claims=(
        Claim(
            "adding the kernel improves the robustness to missing pixels, at every "
            "level",
            _gains(MISSING),
            at_least=0.0,
        ),
    ),
)

ALL = 60_000


def _ratio(points: Points) -> list[float]:
    """How many times longer exact kernel K-SVD takes than LKDL, seed by seed."""
    pairs = points.pairs(("KKSVD", ALL), ("LKDL", ALL))
    return [slow / fast for slow, fast in pairs]


TIMES = Metric("times", digits=1, timing=True)


def _speed_up(place: str) -> Derived:
    published = number("lkdl", place, "KKSVD / LKDL", ALL)
    return Derived(SPEED_UP, published, _ratio, TIMES)


PROGRAMS = Decider(
    "A ratio of seconds compares programs. The authors' kernel OMP forms AᵀKA once for "
    "all signals, as ours does; what costs N² operations for each signal is the error "
    "xᵀAᵀKAx, which it evaluates from left to right. The exact method here updates the "
    "products KA instead, so that up to 60 000 samples it learns in about the time of "
    "LKDL, and LKDL saves time only where new signals are coded. A pursuit that is "
    "programmed as the text's Table I reads, with K for each signal and step, would "
    "take much longer than the authors':",
    tuple((name, ALL) for name in ("K-SVD", "LKDL", "KKSVD", AS_WRITTEN)),
)


def _as_written(place: str, what: str) -> Claim:
    """The published speed-up against pursuits that keep nothing, alone."""
    times = number("lkdl", place, "KKSVD / LKDL", ALL)
    return Claim(
        f"LKDL {what} {times} times as fast as KKSVD with the pursuit of its Table I",
        ratio((AS_WRITTEN, ALL), ("LKDL", ALL)),
        at_least=times.value,
        digits=0,
        timing=True,
        repeats="not counted: neither the authors' program nor the best rival",
    )


def _total(row: str) -> str:
    """Published seconds at all samples."""
    return f"{number('lkdl', 'fig3-seconds', row, ALL).value:.0f}"


GROWING: dict[str, Any] = {
    "study": Growing(),
    "x": "samples",
    "protocol": f"{MNIST_PROTOCOL}; (xᵀy)², coreset, c = 9000, k = 784",
    "runs": 5,
}
SPEED_UP = "KKSVD / LKDL at 60 000"
TIMED: dict[str, Any] = {
    **GROWING,
    "metric": SECONDS,
    "proposed": (SPEED_UP,),
    "deciders": {SPEED_UP: PROGRAMS},
    "notes": {
        AS_WRITTEN: "extrapolated from 20 signals on one class, pursuits alone: K(X, X)"
        " is multiplied anew in each step, for each signal"
    },
}
FIG3A = Exhibit(
    name="lkdl/fig3a",
    title="Accuracy on MNIST against the number of training samples",
    value="accuracy",
    metric=ACCURACY,
    published=numbers("lkdl", "fig3a"),
    proposed=("LKDL",),
    deciders={"KKSVD": OTHER_UPDATE},
    deviations=(
        "c = 9000 for every number of samples, as in the authors' program; the text's "
        "15 % is that of 60 000.",
    ),
    axes=Axes(x_label="training samples"),
    **GROWING,
)
FIG3B = Exhibit(
    name="lkdl/fig3b",
    title="Training time on MNIST",
    value="training",
    derived=(_speed_up("fig3b"),),
    claims=(_as_written("fig3b", "trains"),),
    deviations=(
        "Seconds include the virtual samples; the authors' total of LKDL leaves out "
        f"{_total('virtual samples')} of them. With them the published totals at "
        f"60 000 samples, training and test, are {_total('K-SVD')} (K-SVD), "
        f"{_total('LKDL')} (LKDL) and {_total('KKSVD')} seconds (KKSVD).",
        BEST_RIVAL,
    ),
    axes=Axes(x_label="training samples", log_y=True),
    **TIMED,
)
FIG3C = Exhibit(
    name="lkdl/fig3c",
    title="Test time on MNIST, 10 000 images",
    value="test",
    derived=(_speed_up("fig3c"),),
    claims=(_as_written("fig3c", "tests"),),
    deviations=(BEST_RIVAL,),
    axes=Axes(x_label="training samples", log_y=True),
    **TIMED,
)

FASTFOOD_NOTE = {"Fastfood, signs": "signs as gains, our default; not in the paper"}


RANDOM = ("random Fourier", "Fastfood")


def _ahead(points: Points) -> Parts:
    """How far LKDL's features are above random ones at most as many as pixels are."""
    few = [x for x in points.places("LKDL") if x is not None and x <= 256]
    each = (lead(("LKDL", x), *((name, x) for name in RANDOM)) for x in few)
    return together(*each)(points)


def _alike(points: Points) -> Parts:
    """How far apart the maps are with the most features."""
    last = points.places("LKDL")[-1]
    return lead(("LKDL", last), *((name, last) for name in RANDOM))(points)


MAP_CLAIMS = (
    Claim(
        "LKDL's features are more accurate than random ones while they are few (at "
        "most 256)",
        _ahead,
        at_least=0.0,
    ),
    Claim(
        "with the most features all maps are similar: apart by less than the gap of "
        "0.5 points",
        _alike,
        at_least=-GAP,
        at_most=GAP,
    ),
)
FIG4A = Exhibit(
    name="lkdl/fig4a",
    title="Accuracy on USPS against the number of features, three maps",
    study=UspsMaps(),
    value="accuracy",
    x="features",
    metric=ACCURACY,
    protocol=USPS_PROTOCOL.replace("(xᵀy)², k = 256", "RBF σ = 1")
    + "; k-means landmarks, c = 20 %",
    published=numbers("lkdl", "fig4a"),
    runs=20,
    proposed=("LKDL",),
    deviations=(SMOOTHED, LINEAR_SPARSITY),
    notes=FASTFOOD_NOTE,
    axes=Axes(x_label="features", log_x=True),
    claims=MAP_CLAIMS,
)
FIG4B_PUBLISHED = numbers("lkdl", "fig4b", {"K-SVD": (THREE, "K-SVD")})
FIG4B_PUBLISHED[MORE_LANDMARKS, 2048] = FIG4B_PUBLISHED["LKDL", 2048]
FIG4B = Exhibit(
    name="lkdl/fig4b",
    title="Accuracy on MNIST against the number of features, three maps",
    study=MnistMaps(),
    value="accuracy",
    x="features",
    metric=ACCURACY,
    protocol=f"{MNIST_PROTOCOL}; RBF σ = 1; k-means landmarks, c = 3 %",
    published=FIG4B_PUBLISHED,
    runs=20,
    proposed=("LKDL", MORE_LANDMARKS),
    repeats={
        "K-SVD": AS_PROGRAMMED,
        ("LKDL", 2048): "counted with 2048 landmarks, as in the authors' program",
    },
    deviations=(
        "3 % of 60 000, as the text has it, are 1800 landmarks, so that LKDL has 1800 "
        "features at 2048. The authors' program has 2048 landmarks; both are shown.",
        "The text has 11 non-zeros for all methods; the authors' program has 3 for "
        "linear K-SVD. Both are shown, and those with 3 count.",
    ),
    notes=FASTFOOD_NOTE
    | {"K-SVD": "11 non-zeros, as printed", MORE_LANDMARKS: "as in their program"},
    axes=Axes(x_label="features", log_x=True),
    claims=MAP_CLAIMS,
)

EXHIBITS = (
    FIG1A,
    FIG1B,
    FIG2A,
    FIG2B,
    FIG3A,
    FIG3B,
    FIG3C,
    FIG4A,
    FIG4B,
    TABLE2,
    TABLE3,
    TABLE4,
)
