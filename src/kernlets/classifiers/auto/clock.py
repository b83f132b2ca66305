"""The time limit of a search."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from math import inf

current_time = time.perf_counter
MARGIN = 1.25  # safety factor on predicted seconds


@dataclass(frozen=True)
class Clock:
    """The time since the start and a budget of seconds; None is no limit."""

    seconds: float | None
    start_time: float = field(default_factory=lambda: current_time())

    @property
    def budget(self) -> float:
        return inf if self.seconds is None else float(self.seconds)

    @property
    def elapsed(self) -> float:
        return current_time() - self.start_time

    @property
    def seconds_left(self) -> float:
        return self.budget - self.elapsed

    def allows(self, seconds: float, share: float = 1.0) -> bool:
        """Whether so many more seconds fit into this share of the budget."""
        return self.elapsed + MARGIN * seconds <= share * self.budget
