"""The parts of a benchmark: a grid of cases, methods that solve them, targets.

`runner` measures, `tables` shows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

Case = Mapping[str, Any]  # one point of the parameter grid
Figures = dict[str, float]  # what a run yields beside its seconds

SEED = 0


def label(case: Case) -> str:
    """A case as text, for tables and messages."""
    return ", ".join(f"{name}={value}" for name, value in case.items())


class Method(ABC):
    """One way to solve a problem. The constructor prepares and is not timed."""

    name: ClassVar[str]
    repeats: ClassVar[int | None] = None
    """Fewer repeats than the benchmark asks for, for slow peers."""
    memory: ClassVar[bool] = True
    """Whether the peak memory of a fresh process is measured as well."""

    @abstractmethod
    def __init__(self, problem: Any) -> None:
        """Bring the problem into the method's own form; `Skip` if it cannot."""

    @abstractmethod
    def run(self) -> Any:
        """The timed part."""

    @abstractmethod
    def figures(self, result: Any) -> Figures:
        """Quality of what `run` returned, not timed."""

    @property
    def share(self) -> float:
        """Part of the samples that `run` works on; seconds are divided by it."""
        return 1.0


@dataclass(frozen=True)
class Target:
    """A bound on a measured figure: ``">="``, ``"<="``, or ``"≈"`` (|x − 1| ≤ bound).

    Figures are ``seconds``, the names given by `Method.figures`, and, over each peer,
    ``speed: PEER`` (how many times faster) and ``NAME: PEER`` (ours divided by its).
    """

    figure: str
    sense: Literal[">=", "<=", "≈"]
    bound: float

    def met(self, value: float) -> bool:
        if self.sense == ">=":
            return value >= self.bound
        if self.sense == "<=":
            return value <= self.bound
        return abs(value - 1) <= self.bound

    def __str__(self) -> str:
        if self.sense == "≈":
            return f"1 ± {self.bound:g}"
        return f"{self.sense} {self.bound:g}"


class Benchmark(ABC):
    """A family of problems, and the methods compared on it. The first one is ours."""

    name: ClassVar[str]
    title: ClassVar[str]
    about: ClassVar[str]
    """Data, settings and what is timed, in a few sentences for the reader."""
    grid: ClassVar[tuple[Case, ...]]
    quick_grid: ClassVar[tuple[Case, ...]]
    """Tiny cases; the first also warms up every method before anything is timed."""
    methods: ClassVar[tuple[type[Method], ...]]
    repeats: ClassVar[int] = 5

    @abstractmethod
    def problem(self, case: Case) -> Any:
        """Data of a case, from fixed seeds; `Skip` if they are not available."""

    def targets(self, case: Case) -> list[Target]:
        """The targets of this case."""
        return []

    @property
    def ours(self) -> type[Method]:
        return self.methods[0]

    @property
    def peers(self) -> tuple[type[Method], ...]:
        return self.methods[1:]

    def cases(self, quick: bool) -> tuple[Case, ...]:
        return self.quick_grid if quick else self.grid

    def warm_up(self, method: type[Method]) -> None:
        """Compile, load and start whatever the method needs, on a tiny problem."""
        method(self.problem(self.quick_grid[0])).run()
