"""Families of candidates that learn atoms, and the table of all families."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from ...config import options
from ...contracts import Array
from ...learners import KSVD, KernelKSVD
from ..lc_ksvd import LCKSVDClassifier
from ..residual import ResidualClassifier
from .candidates import (
    MOST_ATOMS,
    AllSamples,
    Design,
    Family,
    Features,
    Fisher,
    Hits,
    Orthogonal,
    Setting,
)
from .class_samples import ClassSamples
from .spaces import Space

MOST_EXACT_ROWS = 1500  # with more rows a map is as good as exact kernel K-SVD


class _Learned(Family):
    """A family that learns atoms; it sets their share of the rows and the non-zeros."""

    setting_names = ("atoms_per_row", "n_nonzero_coefs")

    def first_settings(self) -> list[Setting]:
        return [(0.5, 3)]

    def near_settings(self, setting: Setting) -> list[Setting]:
        share, n_nonzero_coefs = setting[:2]
        other_shares = [
            other_share for other_share in (0.25, 0.5, 1.0) if other_share != share
        ]
        other_widths = [
            max(1, round(n_nonzero_coefs * factor)) for factor in (0.6, 1.7)
        ]
        settings: list[Setting] = [
            (other_share, n_nonzero_coefs) for other_share in other_shares
        ]
        return settings + [
            (share, other_width)
            for other_width in other_widths
            if other_width != n_nonzero_coefs
        ]

    def score(self, features: Features, setting: Setting) -> Hits:
        counts = np.bincount(features.y)
        design = Design(features.kernel, features.space, counts, features.seed)
        model = self._classifier(design, setting)
        X_train, held_out = self._rows(features)
        model.fit(X_train, features.y)
        return {0: features.hits([model.predict(X_valid) for X_valid in held_out])}

    def _rows(self, features: Features) -> tuple[Array, list[Array]]:
        return features.F, features.mapped_rows

    def cost(self, space: Space, n_rows: int) -> float:
        """Return the cost of a fit, whose atoms grow with the rows up to a limit."""
        n_landmarks, n_atoms = (
            min(space.n_landmarks, n_rows),
            min(n_rows, 10 * MOST_ATOMS),
        )
        return super().cost(space, n_rows) / 10 + n_rows * n_atoms * n_landmarks

    @abstractmethod
    def _classifier(self, design: Design, setting: Setting) -> Any:
        """Return the last pipeline step."""

    def steps(self, design: Design, setting: Setting, value: int) -> list[Any]:
        return [design.map(), self._classifier(design, setting)]


class Classes(_Learned):
    """A dictionary for each class on virtual samples, LKDL."""

    name = "classes"

    def is_suitable(self, space: Space, n_rows: int) -> bool:
        return space.kernel != "linear"

    def _classifier(self, design: Design, setting: Setting) -> Any:
        n_atoms = design.atoms(setting[0])
        n_nonzero_coefs = min(int(setting[1]), n_atoms)
        return ResidualClassifier(
            KSVD(n_atoms, n_nonzero_coefs, random_state=design.seed)
        )


class Exact(_Learned):
    """A dictionary for each class by exact kernel K-SVD."""

    name = "exact"
    is_postponed = True
    most_rows = MOST_EXACT_ROWS

    def is_suitable(self, space: Space, n_rows: int) -> bool:
        fits_into_memory = 3 * 8 * n_rows**2 < options.memory / 4
        return fits_into_memory and space.kernel != "linear"

    def cost(self, space: Space, n_rows: int) -> float:
        """Return the cost of a fit, with a limit on the atoms as for 10 classes."""
        return float(n_rows) ** 2 * min(n_rows, 10 * MOST_ATOMS) ** 0.5

    def _rows(self, features: Features) -> tuple[Array, list[Array]]:
        return features.X, features.held_out

    def _classifier(self, design: Design, setting: Setting) -> Any:
        n_atoms = design.atoms(setting[0])
        n_nonzero_coefs = min(int(setting[1]), n_atoms)
        learner = KernelKSVD(
            design.kernel,
            n_atoms,
            n_nonzero_coefs=n_nonzero_coefs,
            random_state=design.seed,
        )
        return ResidualClassifier(learner)

    def steps(self, design: Design, setting: Setting, value: int) -> list[Any]:
        return [self._classifier(design, setting)]


class LabelConsistent(_Learned):
    """One dictionary and a linear classifier on its codes, `LCKSVDClassifier`."""

    name = "label consistent"
    is_postponed = True

    def first_settings(self) -> list[Setting]:
        return [(0.25, 10)]

    def _classifier(self, design: Design, setting: Setting) -> Any:
        n_atoms = min(design.atoms(setting[0]), int(design.class_counts.min()))
        n_nonzero_coefs = min(int(setting[1]), n_atoms * len(design.class_counts))
        return LCKSVDClassifier(
            n_atoms, n_nonzero_coefs, tau=0.1, random_state=design.seed
        )


_FAMILIES: tuple[Family, ...] = (
    Fisher(),
    AllSamples(),
    Classes(),
    Orthogonal(),
    Exact(),
    LabelConsistent(),
    ClassSamples(),
)
FAMILIES = {family.name: family for family in _FAMILIES}
