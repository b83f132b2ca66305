"""Online kernel dictionary learning on a budget: USPS digits as a stream."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from sklearn.metrics import precision_score

from kernlets.classifiers import ResidualClassifier
from kernlets.learners import BudgetKernelDL
from kernlets.numerics.arrays import to_numpy
from kernlets.updates import Admission, Budget, Coherence, ReconstructionCost

from ..claims import Parts, highest_at, lead, rises
from ..data import Images, digit_images
from ..points import Missing, Points
from ..published import number, numbers
from ..spec import (
    EVERY,
    Axes,
    Case,
    Claim,
    Decider,
    Exhibit,
    Metric,
    Sizes,
    Study,
    Values,
)

KERNEL = "poly:4,coef0=1"
SIZES: Mapping[str, Sizes] = {
    "smoke": {"per_class": 30, "tests": 100, "passes": 2, "atoms": 5},
    "small": {"per_class": 250, "tests": 4649, "passes": 10, "atoms": 50},
    "full": {"per_class": 250, "tests": 4649, "passes": 200, "atoms": 50},
}


@lru_cache(maxsize=2)
def stream(seed: int, per_class: int, tests: int) -> Images:
    """Training images, the same number of each class, and test images.

    Both parts of the set are pooled and halved at random. Pixels in [-1, 1] are divided
    by 16, so that ‖x‖ is at most 1.
    """
    raw = digit_images("usps", {"smoke": per_class < 250})
    X = np.concatenate([raw.X, raw.X_test])
    X = (2 * X / X.max() - 1) / X.shape[1] ** 0.5
    y = np.concatenate([raw.y, raw.y_test])
    chosen, test = halves(y, seed, per_class)
    return Images(X[chosen], y[chosen], X[test[:tests]], y[test[:tests]])


def halves(y: np.ndarray, seed: int, per_class: int) -> tuple[np.ndarray, np.ndarray]:
    """Indices of some rows of each class in a random half, and the other half."""
    order = np.random.default_rng(seed).permutation(len(y))
    train, test = np.array_split(order, 2)
    chosen = [train[y[train] == label][:per_class] for label in np.unique(y)]
    return np.concatenate(chosen), test


class BudgetStudy(Study):
    """Macro precision of ten dictionaries that learn from passes over the images."""

    sizes = SIZES
    seeds: ClassVar[Mapping[str, int]] = {"smoke": 1, "small": 1, "full": 10}

    def cost(self, case: Case) -> float:
        return 20 + case.get("budget", 250) / 4

    def admission(self, case: Case) -> Admission:
        """Which samples may become anchors."""
        return Admission()

    def changes(self, case: Case) -> dict[str, Any]:
        """Further parameters of the learner."""
        return {}

    def measure(self, case: Case, seed: int, sizes: Sizes) -> Values:
        data = stream(seed, sizes["per_class"], sizes["tests"])
        learner = BudgetKernelDL(
            KERNEL,
            sizes["atoms"],
            max_iter=sizes["passes"],
            budget=Budget(
                case.get("budget", 250), self.admission(case), **self.changes(case)
            ),
            random_state=seed,
        )
        model = ResidualClassifier(learner).fit(data.X, data.y)
        found = to_numpy(model.predict(data.X_test))
        precision = precision_score(
            data.y_test, found, average="macro", zero_division=0
        )
        fitted = dict(enumerate(model.learners_))
        costs = [each.history_["cost"] for each in model.learners_]
        return {
            "precision": float(precision),
            "anchors": {str(c): len(each.anchors_) for c, each in fitted.items()},
            "cost": np.mean(costs, axis=0).tolist(),
        }


PRUNED, DRAWN = "pruning", "random set"
FEATURE = "feature space, least error (ours)"


class Budgets(BudgetStudy):
    """The effect of the budget when every sample is admitted."""

    name = "budget.sizes"
    grid: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "method": (PRUNED, DRAWN, FEATURE),
        "budget": (25, 50, 100, 150, 200, 250),
    }
    fewer: ClassVar[Any] = {"smoke": {"budget": (4, 8)}}

    def admission(self, case: Case) -> Admission:
        if case["method"] == DRAWN:  # the first ones, in random order, stay
            return Coherence(threshold=0.0, n_first=case["budget"])
        return Admission()

    def changes(self, case: Case) -> dict[str, Any]:
        feature = {"update": "feature", "pruning": "error"}
        return feature if case["method"] == FEATURE else {}


class Thresholds(BudgetStudy):
    """Samples that are coherent with an anchor are not admitted."""

    name = "budget.coherence"
    grid: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "method": ("coherence",),
        "threshold": (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
    }
    fewer: ClassVar[Any] = {"smoke": {"threshold": (0.5, 0.8)}}

    def cost(self, case: Case) -> float:
        return 40.0 if case["threshold"] < 0.7 else 90.0  # fewer anchors

    def admission(self, case: Case) -> Admission:
        return Coherence(case["threshold"])


HALF, PRINTED = "half the cost", "the cost as printed"
AGAIN = "half the cost, samples stored again"
IN_FEATURES = "half the cost, feature space"


class Costs(BudgetStudy):
    """Samples that are represented well are not admitted."""

    name = "budget.cost"
    grid: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "method": (HALF, PRINTED),
        "threshold": (0.0, 0.4, 0.8, 1.2, 1.6, 2.0, 3.0, 5.0),
    }
    fewer: ClassVar[Any] = {"smoke": {"threshold": (0.0, 1.2)}}

    def cases(self, scale: str) -> list[Case]:
        """Two more readings at the best of the published thresholds."""
        more = [{"method": name, "threshold": 1.2} for name in (AGAIN, IN_FEATURES)]
        return [*super().cases(scale), *more]

    def cost(self, case: Case) -> float:
        few = 3.0 if case["method"] == HALF else 5.0
        return 40.0 if case["threshold"] >= few else 90.0

    def admission(self, case: Case) -> Admission:
        method = case["method"]
        how = {"half": method != PRINTED, "repeats": method == AGAIN}
        return ReconstructionCost(case["threshold"], **how)

    def changes(self, case: Case) -> dict[str, Any]:
        return {"update": "feature"} if case["method"] == IN_FEATURES else {}


BOTH = "γ = 0.8"


class Evolution(BudgetStudy):
    """Coherence and budget together."""

    name = "budget.evolution"
    grid: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "method": (BOTH,),
        "budget": (100,),
    }

    def admission(self, case: Case) -> Admission:
        return Coherence(0.8)


PRECISION = Metric("macro precision", digits=4)
ANCHORS = Metric("anchors", better="", digits=0)
SCALE_FITTED = (
    "the scale of the pixels is not stated and was fitted to the numbers of anchors"
)
PROTOCOL = (
    "250 images of each digit streamed 200 times, 50 atoms, λ = 0.05, μ = 0.1, ρ = "
    "0.01/(1 + n/1000) up to n = 2000, parameter space; 4649 test images"
)
DEVIATIONS = (
    "κ = (xᵀy + 1)⁴ on pixels in [-1, 1] divided by 16: fitted to the published "
    "numbers of anchors, which are not counted for that; the text says 'fourth-order "
    "polynomial' and states no scale. The numbers of anchors change several times as "
    "fast as that scale.",
    "Samples that are not admitted still move the coefficients; Table I of the paper, "
    "read literally, would stop learning after the first pass.",
    "A step that would not lower the cost of its sample is shortened: without this "
    "guard the coefficients explode for large budgets.",
    "The first coefficients are 0.1 · normal; with normal ones the first anchors would "
    "never go.",
)
FIXED: dict[str, Any] = {"protocol": PROTOCOL}
PRUNED_50, DRAWN_50 = (number("budget", "fig1", row, 50) for row in (PRUNED, DRAWN))
EFFECT = PRUNED_50.value - DRAWN_50.value  # the smaller of two that the text points out


FIG1 = Exhibit(
    name="budget/fig1",
    title="Precision against the budget",
    study=Budgets(),
    value="precision",
    x="budget",
    metric=PRECISION,
    effect=EFFECT,
    published={k: v for k, v in numbers("budget", "fig1").items() if k[0] == PRUNED},
    proposed=(PRUNED,),
    repeats=dict.fromkeys((25, 50), "counted in budget/random-set"),
    deviations=(
        *DEVIATIONS,
        f"The value at 100 is read as '{number('budget', 'fig1', PRUNED, 100).note}'.",
    ),
    notes={FEATURE: "the anchor whose loss changes the atoms least goes"},
    axes=Axes(x_label="budget"),
    claims=(
        Claim(
            "precision grows with the budget, from each to the next",
            rises(PRUNED, Budgets.grid["budget"]),
            at_least=0.0,
            digits=4,
        ),
    ),
    **FIXED,
)


def _beats_random(budget: int) -> Claim:
    return Claim(
        f"pruning beats a random set with {budget} anchors",
        lead((PRUNED, budget), (DRAWN, budget)),
        at_least=0.0,
        digits=4,
    )


RANDOM_DRAWS = Decider(
    "A random set depends on the draw alone, and the paper shows one; ours is a mean "
    "over draws and over streams. Here samples that are not admitted still move the "
    "coefficients, in the random set as under pruning; in `python -m benchmarks "
    "budget` the row 'rejected skipped' shows how much is lost without. The paper's "
    "random set may have been trained in that way, which its text does not say.",
    ((DRAWN, 25), (DRAWN, 50), (PRUNED, 25), (PRUNED, 50)),
)
RANDOM = Exhibit(
    name="budget/random-set",
    title="Pruning beside anchors drawn at random",
    study=Budgets(),
    value="precision",
    x="budget",
    metric=PRECISION,
    effect=EFFECT,
    published={k: v for k, v in numbers("budget", "fig1").items() if k[1] != 100},
    proposed=(PRUNED,),
    deciders={DRAWN: RANDOM_DRAWS},
    deviations=DEVIATIONS,
    axes=Axes(kind="none"),
    claims=(
        _beats_random(25),
        _beats_random(50),
    ),
    **FIXED,
)
FIG2A = Exhibit(
    name="budget/fig2a",
    title="Precision against the coherence threshold γ",
    study=Thresholds(),
    value="precision",
    x="threshold",
    metric=PRECISION,
    effect=EFFECT,
    deviations=(*DEVIATIONS, "The published curve is not available as numbers."),
    axes=Axes(x_label="γ"),
    claims=(
        Claim("γ = 0.8 is best", highest_at("coherence", 0.8), at_least=0.0, digits=4),
        Claim(
            "precision improves as γ increases (from the least to 0.8)",
            lead(("coherence", 0.8), ("coherence", 0.3)),
            at_least=0.0,
            digits=4,
        ),
    ),
    **FIXED,
)
FIG2B = Exhibit(
    name="budget/fig2b",
    title="Anchors of each digit against the coherence threshold γ",
    study=Thresholds(),
    value="anchors",
    series="threshold",
    metric=ANCHORS,
    published=numbers("budget", "fig2b"),
    calibrated={EVERY: SCALE_FITTED},
    deviations=(*DEVIATIONS, "Other 250 images of each digit than the authors'."),
    axes=Axes(x_label="digit"),
    **FIXED,
)


def _cost_or_coherence(points: Points, coherence: Points) -> Parts:
    """The best of one criterion minus that of the other, on the same images."""
    pairs = points.pairs_with(coherence, (HALF, 1.2), ("coherence", 0.8))
    return {"ε = 1.2 − γ = 0.8": [a - b for a, b in pairs]}


AS_HALF = "counted with half the cost, which is nearer to the anchors"
FIG3A = Exhibit(
    name="budget/fig3a",
    title="Precision against the threshold ε on the reconstruction cost",
    study=Costs(),
    value="precision",
    x="threshold",
    metric=PRECISION,
    effect=EFFECT,
    published=numbers(
        "budget", "fig3a", {"reconstruction cost": (HALF, PRINTED, AGAIN, IN_FEATURES)}
    ),
    proposed=(HALF, PRINTED, AGAIN, IN_FEATURES),
    repeats=dict.fromkeys((PRINTED, AGAIN, IN_FEATURES), AS_HALF),
    notes={
        AGAIN: "Table I with (22) has no check for samples that are anchors already",
        IN_FEATURES: "eq. (15) instead of (19) and (20)",
    },
    deviations=(
        *DEVIATIONS,
        "The published numbers of anchors fit half of the cost in eq. (22): both "
        "readings are shown.",
    ),
    axes=Axes(x_label="ε"),
    claims=(
        Claim(
            "the best ε is not zero: ε = 1.2 is more precise (half the cost)",
            lead((HALF, 1.2), (HALF, 0.0)),
            at_least=0.0,
            digits=4,
        ),
        Claim(
            "ε = 1.2 is best (half the cost)",
            highest_at(HALF, 1.2),
            at_least=0.0,
            digits=4,
        ),
        Claim(
            "a larger ε lowers the precision (from 1.2 to the largest, half the cost)",
            lead((HALF, 1.2), (HALF, 5.0)),
            at_least=0.0,
            digits=4,
        ),
        Claim(
            "the cost is a slightly better criterion than coherence (ε = 1.2, γ = 0.8)",
            _cost_or_coherence,
            at_least=0.0,
            beside=FIG2A,
            digits=4,
        ),
    ),
    **FIXED,
)
FIG3B = Exhibit(
    name="budget/fig3b",
    title="Anchors of each digit against the threshold ε, half the cost",
    study=Costs(),
    value="anchors",
    series="threshold",
    where={"method": HALF},
    metric=ANCHORS,
    published=numbers("budget", "fig3b"),
    calibrated={EVERY: SCALE_FITTED},
    deviations=(*DEVIATIONS, "Other 250 images of each digit than the authors'."),
    axes=Axes(x_label="digit"),
    **FIXED,
)


def _last_passes(points: Points) -> Parts:
    """Cost of the last 20 passes over that of the 20 before, in percent, minus 100."""
    last, before = (_costs(points, *ends) for ends in ((-20, None), (-40, -20)))
    change = 100 * (last / before - 1)
    return {"last 20 passes over the 20 before, %": change.tolist()}


def _falls(points: Points) -> Parts:
    """How far the cost of the last 20 passes is below that of the first."""
    fall = _costs(points, 0, 1) - _costs(points, -20, None)
    return {"first pass − last 20": fall.tolist()}


def _costs(points: Points, start: int, stop: int | None) -> np.ndarray:
    """Mean over some passes, seed by seed."""
    passes = points.places(BOTH)[start:stop]
    if not passes:
        raise Missing("so many passes")
    return np.mean([list(points.at(BOTH, x).values()) for x in passes], axis=0)


FIG4 = Exhibit(
    name="budget/fig4",
    title="Cost in the course of learning, γ = 0.8, B = 100",
    study=Evolution(),
    value="cost",
    metric=Metric("½‖φ(x) − Dα‖² + λ‖α‖₁ + ½μ‖D‖²", "lower", digits=3),
    deviations=(
        *DEVIATIONS,
        "Means over a pass of 250 samples and over the digits; the published curve is "
        "of single samples, and not available as numbers.",
    ),
    axes=Axes(x_label="pass"),
    claims=(
        Claim("the cost falls", _falls, at_least=0.0, digits=3),
        Claim(
            "the cost converges (2 %, a bound of ours: the paper has none)",
            _last_passes,
            at_least=-2.0,
            at_most=2.0,
        ),
    ),
    **FIXED,
)

EXHIBITS = (FIG1, RANDOM, FIG2A, FIG2B, FIG3A, FIG3B, FIG4)
