"""The parts of an experiment: studies that run, exhibits that compare with a paper.

The experiments themselves are in `exhibits/`, the published numbers in
`papers.published`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import inf
from typing import Any, ClassVar, NamedTuple, TypeVar

from benchmarks.harness.skip import Skip

from .published import Published

SCALES = ("smoke", "small", "full")
EVERY = "every number"
LONG = ((60, 5), (300, 3))  # runs of more seconds than these get fewer seeds
BEST_RIVAL = (
    "A published speed-up is judged against the fastest form of the rival that the "
    "library has. Rivals programmed as their equations read are shown beside it, and "
    "not counted."
)
Reasons = Mapping[Any, str]  # by curve and place, by either, or of `EVERY` number
Case = dict[str, Any]  # one point of a grid, JSON values only
Sizes = Mapping[str, Any]  # how large the problem is at one scale
Values = dict[str, Any]  # what a run measured: numbers, lists and mappings of numbers


class Study(ABC):
    """Runs that belong together: a grid of cases, each repeated with several seeds.

    Exhibits that show different sides of the same runs share one study.
    """

    name: ClassVar[str]  # "paper.study"
    grid: ClassVar[Mapping[str, tuple[Any, ...]]]
    fewer: ClassVar[Mapping[str, Mapping[str, tuple[Any, ...]]]] = {}
    """Shorter axes of the grid at a scale: {"smoke": {"percent": (20,)}}."""
    sizes: ClassVar[Mapping[str, Sizes]]
    """Sizes of the problem at each scale; "full" is the paper's."""
    seeds: ClassVar[Mapping[str, int]] = {"smoke": 1, "small": 2, "full": 10}
    """In full as many as the paper or ten, if more; fewer where runs take long."""
    warm: ClassVar[bool] = False
    """Whether seconds are a result: each process then makes a first run to warm up."""

    @property
    def paper(self) -> str:
        return self.name.partition(".")[0]

    def cases(self, scale: str) -> list[Case]:
        """The points of the grid, in its order."""
        axes = {**self.grid, **self.fewer.get(scale, {})}
        points = product(*axes.values())
        return [dict(zip(axes, values, strict=True)) for values in points]

    def repeats(self, case: Case, scale: str) -> int:
        """Number of seeds of a case; methods without random numbers need only one."""
        fewer = [few for limit, few in LONG if self.cost(case) > limit]
        return min([self.seeds[scale], *fewer])

    def cost(self, case: Case) -> float:
        """Rough number of seconds that a run takes on one core at full scale."""
        return 5.0

    def comparable(self, scale: str) -> bool:
        """Whether problems of a scale are as large as the paper's."""
        return self.sizes[scale] == self.sizes["full"]

    @abstractmethod
    def measure(self, case: Case, seed: int, sizes: Sizes) -> Values:
        """Make one run. Raises `Skip` where it cannot be made."""


class Unavailable(Study):
    """A study whose data are not available."""

    grid: ClassVar[Mapping[str, tuple[Any, ...]]] = {}
    sizes: ClassVar[Mapping[str, Sizes]] = {scale: {} for scale in SCALES}
    seeds: ClassVar[Mapping[str, int]] = dict.fromkeys(SCALES, 1)
    reason: ClassVar[str]

    def cost(self, case: Case) -> float:
        return 0.0

    def measure(self, case: Case, seed: int, sizes: Sizes) -> Values:
        raise Skip(self.reason)


@dataclass(frozen=True)
class Metric:
    """A kind of numbers: its name, and which side is a success, if any is.

    `timing` says that they depend on the machine: they are judged only if they were
    taken with one process on one kind of device.
    """

    label: str
    better: str = "higher"  # or "lower", or "": a number without a good side
    digits: int = 2
    timing: bool = False

    def written(self, value: float) -> str:
        return f"{value:.{self.digits}f}"


class Decider(NamedTuple):
    """Why we believe our numbers where they differ: the experiment that decides.

    The text has no measured numbers; those of `shown`, curves and places of the same
    exhibit or of the one named `beside`, are written under it from the records.
    """

    text: str
    shown: tuple[tuple[str, Any], ...] = ()
    beside: str = ""


class Derived(NamedTuple):
    """A number that the paper states about its curves, and how ours is computed.

    `compute` gets the points of the exhibit, and those of `beside`, another exhibit,
    where there is one. A `label` may be a key of the exhibit's `incomparable`,
    `calibrated`, `repeats`, `proposed` and `deciders`, as a curve may.
    """

    label: str
    published: Published | None
    compute: Callable[..., list[float]]  # one value per seed
    metric: Metric
    span: float | None = None  # how large the effect is that the paper sees in it
    beside: Exhibit | None = None


@dataclass(frozen=True)
class Claim:
    """A statement of the paper as a mean that is at least or at most a bound.

    `parts` gives, from the points of the exhibit (and those of `beside`, another
    exhibit, where there is one), the numbers that the statement is about: for each
    part of it a name and one number *per seed*, as a rule the paired difference or
    ratio of two curves with the same seed; `claims` has the common ones::

        Claim(
            "LKDL improves FDDL",
            lead(("FDDL + LKDL", None), ("FDDL", None)),
            at_least=0.0,
        )

    The bounds are the paper's own; "improves" is ``at_least=0.0``. The claim holds if
    the interval of every part is between the bounds, fails if that of one is outside,
    and is undecided otherwise, as it is with one seed.
    """

    text: str
    parts: Callable[..., Mapping[str, Sequence[float]]]
    at_least: float = -inf
    at_most: float = inf
    beside: Exhibit | None = None
    timing: bool = False
    digits: int = 2
    repeats: str = ""  # where it is counted, if elsewhere, or why it is not at all
    decider: Decider | None = None

    def __post_init__(self) -> None:
        if self.at_least == -inf and self.at_most == inf:
            raise ValueError(f"claim {self.text!r} has no bound: set at_least, at_most")


@dataclass(frozen=True)
class Axes:
    """How an exhibit is drawn: "lines", "images" or, for a table, "none"."""

    kind: str = "lines"
    x_label: str = ""
    log_x: bool = False
    log_y: bool = False


@dataclass(frozen=True)
class Exhibit:
    """One table or figure of a paper: a view of a study beside the published numbers.

    `value` names the entry of the study's values that is shown. `series` and `x` name
    the entries of a case that tell curves and places on them apart; without `x` the
    value itself is a mapping from places to numbers, or a list (places 1, 2, ...), or
    one number.
    """

    name: str  # "paper/exhibit", as in `python -m papers lkdl/fig1a`
    title: str
    study: Study
    value: str
    metric: Metric
    protocol: str
    series: str = "method"
    x: str | None = None
    where: Mapping[str, Any] = field(default_factory=dict)  # only these cases
    published: Mapping[tuple[str, Any], Published] = field(default_factory=dict)
    runs: int = 1  # that the paper averages over
    proposed: tuple[str, ...] = ()
    """The paper's own methods: only there may a number be better, not a mismatch."""
    deviations: tuple[str, ...] = ()
    notes: Mapping[str, str] = field(default_factory=dict)  # of a series, beside it
    incomparable: Reasons = field(default_factory=dict)
    """Numbers that no run of ours can be compared with, and why."""
    calibrated: Reasons = field(default_factory=dict)
    """Numbers that a parameter was fitted to, which cannot confirm it, and which."""
    repeats: Reasons = field(default_factory=dict)
    """Numbers that are counted elsewhere, and where."""
    deciders: Mapping[Any, Decider] = field(default_factory=dict)
    derived: tuple[Derived, ...] = ()
    claims: tuple[Claim, ...] = ()
    also: tuple[str, ...] = ()  # further values of the study, shown without verdict
    seconds: tuple[str, ...] = ()  # the same for times, a column for each device
    effect: float | None = None
    """How far apart the paper's own numbers are that it draws a conclusion from; where
    it is not given, those at the same place. A wider interval decides nothing."""
    axes: Axes = Axes()

    @property
    def paper(self) -> str:
        return self.name.partition("/")[0]


Found = TypeVar("Found")


def entry(table: Mapping[Any, Found], series: str, x: Any) -> Found | None:
    """What a table says of a number: by curve and place, by either, or of all."""
    keys = ((series, x), series, x, EVERY)
    return next((table[key] for key in keys if key in table), None)
