"""LKDL's figures and tables with their published numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..claims import Parts, Rule, below, lead, ratio, together, value
from ..points import Points
from ..published import as_place, number, numbers
from ..spec import EVERY, Axes, Claim, Decider, Derived, Exhibit, Metric
from .common import ACCURACY, SECONDS
from .lkdl_maps import MnistMaps, UspsMaps
from .lkdl_stream import TABLE2
from .lkdl_studies import (
    AS_WRITTEN,
    FIVE,
    MISSING,
    NOISES,
    REPLACED,
    TOLD,
    Corrupted,
    Growing,
    NystroemErrors,
    Shares,
)
from .lkdl_supervised import TABLE3, TABLE4

SMOOTHED = (
    "The authors' images are smoothed, which the text does not say: a Gaussian blur of "
    "0.75 pixel with zeros around the image, grey range [0, 2], was fitted to the "
    "published rank-c errors of Fig. 1a, whose numbers are not counted for that, and "
    "is used for all figures of USPS."
)
LINEAR_SPARSITY = (
    "The text has 5 non-zeros for all methods; linear K-SVD is served better by 3. "
    "Both are shown, and the printed 5 count in all figures."
)
BOTH_SPARSITIES = {"K-SVD": (FIVE, "K-SVD")}
AS_PRINTED = "counted with 5 non-zeros, as printed"
USPS_PROTOCOL = (
    "7291 training and 2007 test images, own mean removed, unit norm; 300 atoms per "
    "class, 5 non-zeros, 5 iterations, (xᵀy)², k = 256"
)
MNIST_PROTOCOL = (
    "unit norm, 700 atoms per digit, 11 non-zeros, 2 iterations, 10 000 test images"
)


DRAWN_BOTH_WAYS = {name: (name, name + REPLACED) for name in ("column-norm", "coreset")}


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
    published=numbers("lkdl", "fig1a", DRAWN_BOTH_WAYS),
    calibrated={EVERY: "the blur was fitted to the errors of this kernel matrix"},
    repeats=dict.fromkeys(DRAWN_BOTH_WAYS, "counted with replacement"),
    deviations=(
        SMOOTHED,
        "k = c: the printed k = 256 contradicts the text (no further reduction).",
        "The authors draw column-norm and coreset landmarks with replacement, which "
        "loses distinct landmarks. Both ways are shown.",
    ),
    notes={
        "diagonal": "equals uniform sampling on unit-norm data",
        "column-norm": "drawn without replacement, unlike the authors'",
        "coreset": "drawn without replacement, unlike the authors'",
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
    published=numbers("lkdl", "fig1b", BOTH_SPARSITIES),
    repeats={"K-SVD": AS_PRINTED},
    runs=10,
    proposed=("kmeans", "coreset"),
    deciders={
        "KKSVD": Decider(
            "Where all samples are landmarks LKDL *is* kernel K-SVD: tests/learners/"
            "test_kernel_ksvd.py checks this for the whole path of the errors, with "
            "the same start. So the exact method here is the same algorithm as LKDL's "
            "rows, "
            "which are reproduced, without their approximation. Its number depends on "
            "what becomes of atoms that no sample uses; here they are replaced, and "
            "the paper does not say.",
            (("coreset", 20), ("coreset", 50), ("KKSVD", None)),
        )
    },
    deviations=(SMOOTHED, LINEAR_SPARSITY),
    notes={
        FIVE: f"published as {number('lkdl', 'fig1b', 'K-SVD').note}",
        "KKSVD": f"published as {number('lkdl', 'fig1b', 'KKSVD').note}",
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
            lead(("coreset", 20), ("KKSVD", None)),
            at_least=-GAP,
        ),
        Claim(
            "there is a gap of 0.5 points between K-SVD and its kernel variants",
            together(
                lead(("coreset", 20), (FIVE, None)),
                lead(("KKSVD", None), (FIVE, None)),
            ),
            at_least=GAP,
        ),
    ),
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
    deciders={
        FIVE: Decider(
            "With 3 non-zeros linear K-SVD meets all of these numbers, with the 5 that "
            "the text has for all methods none: the published curve is that of 3, "
            "against which the gain of the kernel is smaller than against 5.",
            tuple(("K-SVD", x) for x in (0.4, 0.6, 1, 2)),
        )
    },
    repeats={"K-SVD": AS_PRINTED},
    runs=10,
    proposed=("LKDL",),
    deviations=(SMOOTHED, LINEAR_SPARSITY),
    notes=NOISE_NOTE,
    axes=Axes(x_label="standard deviation of the noise (black 0, white 2)"),
    claims=(
        Claim(
            "adding the kernel improves the robustness to noise, at every level",
            _gains(NOISES),
            at_least=0.0,
        ),
    ),
)

UNKNOWN_NOTE = {TOLD: "not in the paper: lost pixels are unknown (NaN)"}


HOLES_FIRST = Decider(
    "The paper does not say whether pixels go missing before the images are smoothed "
    "or after. Losing them before (the other order, same models and seeds) meets the "
    "numbers of the kernel methods:",
    tuple((name, x) for name in ("LKDL", "KKSVD") for x in (30, 50, 80)),
    "lkdl/fig2b-before",
)
LINEAR_HOLES = Decider(
    "Neither the printed 5 non-zeros nor 3, which meet the published curve under noise "
    "(Fig. 2a), meet it here; atoms that were not trained at all do as well as those "
    "with 3, so that it is not the training that differs. No reading of the text that "
    "was run gives the published numbers.",
    tuple(
        (name, x) for name in (FIVE, "K-SVD", "untrained atoms") for x in (30, 50, 80)
    ),
)


def _missing(name: str, value: str, when: str, elsewhere: str = "") -> Exhibit:
    return Exhibit(
        name=f"lkdl/{name}",
        title=f"Accuracy on USPS images with pixels missing {when} smoothing",
        study=Corrupted(),
        value=value,
        metric=ACCURACY,
        protocol=USPS_PROTOCOL
        + "; coreset landmarks, c = 20 %; pixels of the test images set to zero before "
        "mean removal",
        published=numbers("lkdl", "fig2b", BOTH_SPARSITIES),
        runs=10,
        proposed=("LKDL",),
        repeats={EVERY: elsewhere} if elsewhere else {"K-SVD": AS_PRINTED},
        deciders={FIVE: LINEAR_HOLES, "LKDL": HOLES_FIRST, "KKSVD": HOLES_FIRST},
        deviations=(
            SMOOTHED,
            LINEAR_SPARSITY,
            "Whether pixels go missing before or after smoothing is not stated. Both "
            "are shown: before it fits the kernel methods, after it the linear one.",
        ),
        notes=NOISE_NOTE | (UNKNOWN_NOTE if value == "missing" else {}),
        axes=Axes(x_label="missing pixels, %"),
        claims=(
            Claim(
                "adding the kernel improves the robustness to missing pixels, at every "
                "level",
                _gains(MISSING),
                at_least=0.0,
                repeats=elsewhere,
            ),
        ),
    )


FIG2B = _missing("fig2b", "missing", "after")
FIG2B_BEFORE = _missing(
    "fig2b-before", "missing before", "before", "counted in lkdl/fig2b"
)

ALL = 60_000
SLOW_RIVAL = "published against a kernel OMP that recomputes AᵀKA for every sample"


def _ratio(points: Points) -> list[float]:
    """How many times longer exact kernel K-SVD takes than LKDL, seed by seed."""
    pairs = points.pairs(("KKSVD", ALL), ("LKDL", ALL))
    return [slow / fast for slow, fast in pairs]


TIMES = Metric("times", digits=1, timing=True)


def _speed_up(place: str) -> Derived:
    published = number("lkdl", place, "KKSVD / LKDL", ALL)
    return Derived(SPEED_UP, published, _ratio, TIMES)


def _as_written(place: str, what: str) -> Claim:
    """The published speed-up against pursuits that keep nothing, alone."""
    times = number("lkdl", place, "KKSVD / LKDL", ALL)
    return Claim(
        f"LKDL {what} {times} times as fast as KKSVD with the pursuit of its Table I",
        ratio((AS_WRITTEN, ALL), ("LKDL", ALL)),
        at_least=times.value,
        digits=0,
        timing=True,
    )


def _total(row: str) -> str:
    """Published seconds at all samples."""
    return str(number("lkdl", "fig3-seconds", row, ALL))


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
    "incomparable": {SPEED_UP: SLOW_RIVAL},
    "repeats": {SPEED_UP: "counted as a claim, against the pursuit it is about"},
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
        "The exact method here computes AᵀKA once per dictionary.",
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
    deviations=("The exact method here computes AᵀKA once per dictionary.",),
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
FIG4B = Exhibit(
    name="lkdl/fig4b",
    title="Accuracy on MNIST against the number of features, three maps",
    study=MnistMaps(),
    value="accuracy",
    x="features",
    metric=ACCURACY,
    protocol=f"{MNIST_PROTOCOL}; RBF σ = 1; k-means landmarks, c = 3 %",
    published=numbers("lkdl", "fig4b"),
    runs=20,
    proposed=("LKDL",),
    deviations=(
        "3 % of 60 000 are 1800 landmarks, so that LKDL has 1800 features at 2048.",
    ),
    notes=FASTFOOD_NOTE,
    axes=Axes(x_label="features", log_x=True),
    claims=MAP_CLAIMS,
)

EXHIBITS = (
    FIG1A,
    FIG1B,
    FIG2A,
    FIG2B,
    FIG2B_BEFORE,
    FIG3A,
    FIG3B,
    FIG3C,
    FIG4A,
    FIG4B,
    TABLE2,
    TABLE3,
    TABLE4,
)
