"""Reduced kernel dictionary learning: errors per iteration and seconds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from ....datasets import unit_norm
from ....kernels import RBF
from ....learners import KernelKSVD, ReducedKernelDL
from ...bench.timing import timed
from ...published import Published, number, numbers
from ..claims import Rule, below, ratio, together
from ..data import digit_images, loaded
from ..points import Points
from ..spec import (
    EVERY,
    Axes,
    Case,
    Claim,
    Decider,
    Derived,
    Exhibit,
    Metric,
    Sizes,
    Study,
    Values,
)
from .common import OTHER_MACHINE, SECONDS

DATA = {"digits": "Digits", "mnist": "MNIST", "cifar": "CIFAR-10"}
RATE = {"digits": 5e-4, "mnist": 5e-4, "cifar": 6e-4}
PUBLISHED = ("RKDL-D", "ORKDL-D", "MORKDL-D")
DENSE, SPARSE = ", dense codes", ", sparse codes"
METHODS = (
    "KDL",
    *(name + DENSE for name in PUBLISHED),
    *(name + SPARSE for name in PUBLISHED),
    "ours, k-means anchors, sparse codes",
    "ours, k-means anchors moved, sparse codes",
    "ours, random samples as anchors, sparse codes",
)


@lru_cache(maxsize=2)
def signals(data: str, rows: int | None) -> np.ndarray:  # (N, m), unit norm
    """500 MNIST images per class, digit 4 of MNIST, or CIFAR's airplanes."""
    smoke = {"smoke": rows is not None}
    if data == "cifar":
        return unit_norm(loaded("cifar10-airplane").X_train[:rows])
    images = digit_images("mnist", smoke)
    if data == "mnist":
        return unit_norm(images.X[images.y == 4][:rows])
    first = [np.flatnonzero(images.y == digit)[:500] for digit in range(10)]
    return unit_norm(images.X[np.concatenate(first)][:rows])


def model(method: str, data: str, seed: int, sizes: Sizes) -> Any:
    """A method with the paper's kernel and sizes."""
    kernel = RBF(gamma=0.1)  # exp(−d²/10)
    common = {"max_iter": sizes["iterations"], "random_state": seed}
    if method == "KDL":
        return KernelKSVD(kernel, 20, n_nonzero_coefs=4, **common)
    if method.startswith("ours"):
        anchors = "kmeans" if "k-means" in method else "samples"
        moved = "moved" in method
        return ReducedKernelDL(
            kernel,
            20,
            n_nonzero_coefs=4,
            anchors=anchors,
            n_anchors=50,
            optimize_anchors=moved,
            **common,
        )
    name, _, codes = method.partition(",")
    rate = {} if name == "RKDL-D" else {"rate": RATE[data]}
    build = getattr(ReducedKernelDL, name.lower().replace("-", "_"))
    return build(kernel, restrict=codes == " sparse codes", **rate, **common)


class Errors(Study):
    """Error per signal element after each iteration, and the seconds of the fit."""

    name = "rkdl.errors"
    grid: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "data": tuple(DATA),
        "method": METHODS,
    }
    sizes: ClassVar[Mapping[str, Sizes]] = {
        "smoke": {"rows": 150, "iterations": 2},
        "small": {"rows": None, "iterations": 10},
        "full": {"rows": None, "iterations": 10},
    }
    seeds: ClassVar[Mapping[str, int]] = {"smoke": 1, "small": 1, "full": 10}
    warm = True

    def measure(self, case: Case, seed: int, sizes: Sizes) -> Values:
        Y = signals(case["data"], sizes["rows"])
        learner = model(case["method"], case["data"], seed, sizes)
        fitted, seconds = timed(lambda: learner.fit(Y))
        squared = np.array(fitted.history_["objective"]) / Y.shape[1]
        errors = (1000 * np.sqrt(squared)).tolist()
        return {"errors": errors, "last": errors[-1], "fit": seconds}


READINGS = {name: (name + DENSE, name + SPARSE) for name in PUBLISHED}
SHOWN = ("KDL", *(name + codes for name in PUBLISHED for codes in (DENSE, SPARSE)))
ERROR = Metric("1000 ‖φ(Y) − φ(D)AZ‖ / √(mN)", "lower", digits=3)
BASE = "KDL"  # the exact method that the paper compares with
PROTOCOL = (
    "unit-norm signals, kernel exp(−d²/10), 20 atoms, 4 non-zeros, 10 iterations; 50 "
    "kernel vectors from AK-SVD with 5 non-zeros; 3 gradient steps per iteration, λ = 1"
)
FITTED = "the width of the kernel was fitted to these errors"
AS_SHARE = "counted as its share of KDL's"
AS_DENSE = "counted with dense codes"
SUBSTITUTE = "other data: the paper's Digits set is not public"
DEVIATIONS = (
    "Dense codes: the authors' program updates an atom with all signals, so that codes "
    "lose their sparsity, and Table I is the error of such codes. Sparse codes: the "
    "constraint of eq. (3) is kept; both are shown.",
    "σ = 10 is read as exp(−d²/10) on unit-norm signals, because that meets Table I. "
    "So its errors confirm nothing and are not counted; their ratios to KDL's are.",
    "MNIST 'label 5' is digit 4 (labels counted from 1), CIFAR label 1 the airplanes "
    "in grey; Digits is replaced by 500 MNIST images per class.",
    "The linear term of MORKDL-D is descended; the authors' program has another sign.",
)
NOTES = {
    **{name + DENSE: "as in the authors' program" for name in PUBLISHED},
    **{name + SPARSE: "as the paper's eq. (3) says" for name in PUBLISHED},
    "ours, k-means anchors moved, sparse codes": "3 line-searched steps; not published",
    "ours, k-means anchors, sparse codes": "not published",
    "ours, random samples as anchors, sparse codes": "not published",
}


OURS_MOVED = "ours, k-means anchors moved, sparse codes"
BASELINE = (
    "The baseline decides: KDL here starts at samples and replaces atoms that no "
    "signal uses, and ends below the published KDL on MNIST and CIFAR-10, where the "
    "reduced methods end within a few percent of the published ones. With anchors from "
    "k-means that are moved by the gradient, and sparse codes, a reduced dictionary "
    "does end below this better KDL."
)


def _baseline(*places: Any) -> Decider:
    """The errors at some places: the baseline's, the paper's methods' and ours."""
    names = (BASE, *(name + DENSE for name in PUBLISHED), OURS_MOVED)
    return Decider(BASELINE, tuple((name, x) for x in places for name in names))


def _end_below(suffix: str, text: str, elsewhere: str = "") -> Claim:
    """Whether all reduced methods have the smaller error after ten iterations."""
    rules = (below((name + suffix, 10), (BASE, 10)) for name in PUBLISHED)
    return Claim(
        f"the reduced methods end below KDL ({text})",
        together(*rules),
        at_least=0.0,
        digits=3,
        repeats=elsewhere,
        decider=_baseline(10),
    )


def _figure(number: int, data: str) -> Exhibit:
    dense = {name: (name + DENSE,) for name in PUBLISHED}
    last = numbers("rkdl", "table1", dense).items()
    return Exhibit(
        name=f"rkdl/fig{number}",
        title=f"{DATA[data]}: error per iteration",
        study=Errors(),
        value="errors",
        where={"data": data},
        metric=ERROR,
        protocol=PROTOCOL,
        published={(method, 10): each for (method, at), each in last if at == data},
        runs=10,
        incomparable={EVERY: SUBSTITUTE} if data == "digits" else {},
        calibrated={EVERY: FITTED},
        repeats={EVERY: "counted in rkdl/table1"},
        deviations=(
            *DEVIATIONS,
            "Of the published curves only the last points are known, from Table I.",
        ),
        notes=NOTES,
        claims=(
            _end_below(DENSE, "dense codes"),
            _end_below(SPARSE, "sparse codes, eq. (3) kept", AS_DENSE),
        ),
        axes=Axes(x_label="iteration"),
    )


def _shares(place: str, metric: Metric, sets: Sequence[str]) -> Iterator[Derived]:
    """Numbers of a table as shares of the exact method's, both readings."""
    for data in sets:
        base = number("rkdl", place, BASE, data)
        for name in PUBLISHED:
            printed = number("rkdl", place, name, data).over(base)
            for codes in (DENSE, SPARSE):
                yield _share(name + codes, data, printed, metric)


def _share(method: str, data: str, printed: Published, metric: Metric) -> Derived:
    def compute(points: Points) -> list[float]:
        return [a / b for a, b in points.pairs((method, data), (BASE, data))]

    label = f"{method}, {DATA[data]}: share of KDL's"
    return Derived(label, printed, compute, metric, abs(1 - printed.value))


ERROR_SHARES = tuple(
    _shares("table1", Metric("error / KDL's", "lower", digits=4), ("mnist", "cifar"))
)
TIME_SHARES = tuple(
    _shares(
        "table2", Metric("seconds / KDL's", "lower", digits=3, timing=True), tuple(DATA)
    )
)


def _counted_once(shares: Sequence[Derived]) -> dict[Any, str]:
    """Shares of the second reading repeat those of the first."""
    return {each.label: AS_DENSE for each in shares if SPARSE in each.label}


def _labels(shares: Sequence[Derived]) -> tuple[str, ...]:
    return tuple(each.label for each in shares)


TABLE1 = Exhibit(
    name="rkdl/table1",
    title="Error after the last iteration",
    study=Errors(),
    value="last",
    x="data",
    metric=ERROR,
    protocol=PROTOCOL,
    published=numbers("rkdl", "table1", READINGS),
    runs=10,
    proposed=_labels(ERROR_SHARES),
    deciders={EVERY: _baseline("mnist", "cifar")},
    deviations=DEVIATIONS,
    notes=NOTES,
    incomparable={"digits": SUBSTITUTE},
    calibrated=dict.fromkeys(SHOWN, FITTED),
    repeats={
        **{
            (name + DENSE, data): AS_SHARE
            for name in PUBLISHED
            for data in ("mnist", "cifar")
        },
        **{name + SPARSE: AS_DENSE for name in PUBLISHED},
        **_counted_once(ERROR_SHARES),
    },
    derived=ERROR_SHARES,
    axes=Axes(kind="none"),
)


def _times_faster(name: str) -> Rule:
    rules = (ratio((BASE, data), (name + DENSE, data)) for data in DATA)
    return together(*rules)


def _shorter(name: str) -> Claim:
    return Claim(
        f"{name} takes less time than KDL on every set",
        _times_faster(name),
        at_least=1.0,
        timing=True,
    )


TABLE2 = Exhibit(
    name="rkdl/table2",
    title="Seconds of the fit",
    study=Errors(),
    value="fit",
    x="data",
    metric=SECONDS,
    protocol=PROTOCOL,
    published=numbers("rkdl", "table2", READINGS),
    runs=10,
    proposed=_labels(TIME_SHARES),
    incomparable=dict.fromkeys(SHOWN, OTHER_MACHINE),
    repeats={
        **{name + DENSE: AS_SHARE for name in PUBLISHED},
        **{name + SPARSE: AS_DENSE for name in PUBLISHED},
        **_counted_once(TIME_SHARES),
    },
    deviations=DEVIATIONS,
    notes=NOTES,
    derived=TIME_SHARES,
    axes=Axes(kind="none"),
    claims=(
        Claim(
            "RKDL-D takes at least six times less time than KDL on every set",
            _times_faster("RKDL-D"),
            at_least=6.0,
            timing=True,
        ),
        _shorter("ORKDL-D"),
        _shorter("MORKDL-D"),
    ),
)

EXHIBITS = (
    _figure(1, "digits"),
    _figure(2, "mnist"),
    _figure(3, "cifar"),
    TABLE1,
    TABLE2,
)
