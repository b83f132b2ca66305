"""The parts of an experiment: studies that run, exhibits that compare with a paper.

The experiments themselves are in `exhibits/`, the published numbers in
`kernlets.lab.published`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any, ClassVar, NamedTuple

from ..bench.skip import Skip
from ..published import Published
from .points import Points

SCALES = ("smoke", "small", "full")
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
    seeds: ClassVar[Mapping[str, int]] = {"smoke": 1, "small": 2, "full": 5}
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
        return self.seeds[scale]

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
    """A kind of numbers: its name, which direction is better, and when two are equal.

    Two numbers count as the same up to `tolerance`, an absolute difference or
    (``relative``) a share of the published one. It covers what the paper leaves open;
    the verdict adds the spread over seeds.
    """

    label: str
    better: str = "higher"  # or "lower"
    tolerance: float = 0.0
    relative: bool = False
    digits: int = 2

    def allowed(self, published: float) -> float:
        return self.tolerance * abs(published) if self.relative else self.tolerance

    def written(self, value: float) -> str:
        return f"{value:.{self.digits}f}"


class Derived(NamedTuple):
    """A number that the paper states about its curves, and how ours is computed."""

    label: str
    published: Published | None
    compute: Callable[[Points], list[float]]  # one value per seed, or one
    metric: Metric
    not_comparable: str = ""


class Claim(NamedTuple):
    """A statement of the paper without a number, and whether it holds in our runs."""

    text: str
    holds: Callable[[Points], bool]


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

    name: str  # "paper/exhibit", as in `kernlets reproduce lkdl/fig1a`
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
    deviations: tuple[str, ...] = ()
    notes: Mapping[str, str] = field(default_factory=dict)  # of a series, beside it
    not_comparable: str = ""
    incomparable: Mapping[Any, str] = field(default_factory=dict)  # series or x: why
    derived: tuple[Derived, ...] = ()
    claims: tuple[Claim, ...] = ()
    also: tuple[str, ...] = ()  # further values of the study, shown without verdict
    axes: Axes = Axes()

    @property
    def paper(self) -> str:
        return self.name.partition("/")[0]
