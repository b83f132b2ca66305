"""Several starts of one fit, of which the better ones go on."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np

from .iterate import Alternation, CodeAndUpdate


class Race(Alternation):
    """Fits from several starts in step; from time to time the worse half leaves.

    With n starts there are ⌈log₂ n⌉ + 1 parts of equal length, so that the last fit
    has the last part for itself. The work is about 2n/(log₂ n + 1) times that of one
    fit. What counts is the objective of the last iteration, which all fits have reached
    with the same coder.
    """

    def __init__(self, fits: list[CodeAndUpdate], max_iter: int) -> None:
        self.fits, self.alive = fits, list(range(len(fits)))
        self.part = -(-max_iter // (int(np.ceil(np.log2(len(fits)))) + 1))
        self.objectives = [np.inf] * len(fits)
        self.n_steps = 0

    @property
    def best(self) -> CodeAndUpdate:
        """The fit with the least error, the first one of several."""
        return self.fits[min(self.alive, key=self.objectives.__getitem__)]

    @property
    def dictionary(self) -> Any:
        return self.best.dictionary

    def current(self) -> Any:
        return self.best.current()

    def step(self, keep: Callable[[], None]) -> dict[str, float]:
        for place in self.alive:
            self.objectives[place] = self.fits[place].step(keep)["objective"]
        self.n_steps += 1
        if self.n_steps % self.part == 0 and len(self.alive) > 1:
            ranked = sorted(self.alive, key=self.objectives.__getitem__)
            self.alive = sorted(ranked[: -(-len(ranked) // 2)])
        return {"objective": min(self.objectives[place] for place in self.alive)}

    def state(self) -> dict[str, Any]:
        fits = {str(place): self.fits[place].state() for place in self.alive}
        known = {str(place): self.objectives[place] for place in self.alive}
        return {"fits": fits, "objectives": known}

    def resume(self, state: dict[str, Any]) -> None:
        self.alive = sorted(int(place) for place in state["fits"])
        if not self.alive or self.alive[-1] >= len(self.fits):
            raise ValueError("it has fits of other starts")
        for place in self.alive:
            one = {**state["fits"][str(place)], "history": state["history"]}
            self.fits[place].resume(one)
            self.objectives[place] = float(state["objectives"][str(place)])
        self.n_steps = len(state["history"]["objective"])


def starting_points(rng: np.random.Generator, n: int) -> list[np.random.Generator]:
    """n generators, the first of them `rng` as it is: one start is always the same."""
    seeds = deepcopy(rng).integers(2**63, size=n - 1).tolist()
    return [rng, *map(np.random.default_rng, seeds)]
