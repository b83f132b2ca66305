"""Atoms that are not trained: the baseline that shows what training is worth."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernlets.contracts import AtomUpdate, Coded, Dictionary, Step


class KeepAtoms(AtomUpdate):
    """No update: the first atoms, random training samples, stay."""

    def step(
        self, dictionary: Dictionary, coded: Coded, rng: np.random.Generator
    ) -> Step:
        residual: Any = coded.codes.residual
        return Step(dictionary, float(residual.sum()))
