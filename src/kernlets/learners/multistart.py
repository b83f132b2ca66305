"""`MultiStart` fits from several starts and drops the worse ones on the way."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np

from .loop import Alternation, CodeAndUpdate


class MultiStart(Alternation):
    """Runs fits from several starts; after each round the worse half is dropped.

    With n starts there are ⌈log₂ n⌉ + 1 rounds of equal length, and one fit runs in the
    last round. The work is about 2n/(log₂ n + 1) times that of one fit. Fits are
    compared by the objective of the last iteration, in which all have the same coder.
    """

    def __init__(self, fits: list[CodeAndUpdate], max_iter: int) -> None:
        self.fits, self.remaining = fits, list(range(len(fits)))
        self.round_length = -(-max_iter // (int(np.ceil(np.log2(len(fits)))) + 1))
        self.objectives = [np.inf] * len(fits)
        self.n_steps = 0

    @property
    def best(self) -> CodeAndUpdate:
        """The fit with the least error, the first one of equal fits."""
        return self.fits[min(self.remaining, key=self.objectives.__getitem__)]

    @property
    def dictionary(self) -> Any:
        return self.best.dictionary

    def current(self) -> Any:
        return self.best.current()

    def step(self, keep: Callable[[], None]) -> dict[str, float]:
        for index in self.remaining:
            self.objectives[index] = self.fits[index].step(keep)["objective"]
        self.n_steps += 1
        if self.n_steps % self.round_length == 0 and len(self.remaining) > 1:
            ranked = sorted(self.remaining, key=self.objectives.__getitem__)
            self.remaining = sorted(ranked[: -(-len(ranked) // 2)])
        return {"objective": min(self.objectives[index] for index in self.remaining)}

    def state(self) -> dict[str, Any]:
        fits = {str(index): self.fits[index].state() for index in self.remaining}
        objectives = {str(index): self.objectives[index] for index in self.remaining}
        return {"fits": fits, "objectives": objectives}

    def resume(self, state: dict[str, Any]) -> None:
        self.remaining = sorted(int(index) for index in state["fits"])
        if not self.remaining or self.remaining[-1] >= len(self.fits):
            raise ValueError("it has fits of other starts")
        for index in self.remaining:
            fit_state = {**state["fits"][str(index)], "history": state["history"]}
            self.fits[index].resume(fit_state)
            self.objectives[index] = float(state["objectives"][str(index)])
        self.n_steps = len(state["history"]["objective"])


def start_generators(rng: np.random.Generator, n: int) -> list[np.random.Generator]:
    """Return n generators; the first is `rng`, and its start does not depend on n."""
    seeds = deepcopy(rng).integers(2**63, size=n - 1).tolist()
    return [rng, *map(np.random.default_rng, seeds)]
