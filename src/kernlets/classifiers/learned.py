"""The kinds of classifiers whose atoms are learned, and the table of all kinds."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from ..config import options
from ..core import Array
from ..learners import KSVD, KernelKSVD
from .families import (
    MOST_ATOMS,
    Design,
    Family,
    Features,
    Fisher,
    Hits,
    Orthogonal,
    Samples,
    Setting,
)
from .kept import ClassSamples
from .lc_ksvd import LCKSVDClassifier
from .residual import ResidualClassifier
from .spaces import Space

SMALL = 1500  # rows up to which exact kernel K-SVD is better than with a map


class _Learned(Family):
    """Dictionaries that are learned: a share of the rows as atoms, and non-zeros."""

    names = ("atoms_per_row", "n_nonzero_coefs")

    def first(self) -> list[Setting]:
        return [(0.5, 3)]

    def near(self, setting: Setting) -> list[Setting]:
        share, width = setting[:2]
        shares = [s for s in (0.25, 0.5, 1.0) if s != share]
        wider = [max(1, round(width * factor)) for factor in (0.6, 1.7)]
        settings: list[Setting] = [(s, width) for s in shares]
        return settings + [(share, w) for w in wider if w != width]

    def score(self, features: Features, setting: Setting) -> Hits:
        counts = np.bincount(features.y)
        design = Design(features.kernel, features.space, counts, features.seed)
        model = self._classifier(design, setting)
        rows, held_out = self._rows(features)
        model.fit(rows, features.y)
        return {0: features.hits([model.predict(each) for each in held_out])}

    def _rows(self, features: Features) -> tuple[Array, list[Array]]:
        return features.F, features.mapped

    def work(self, space: Space, n_rows: int) -> float:
        """The cost of a fit; atoms grow with the rows up to a limit."""
        count, atoms = min(space.n_landmarks, n_rows), min(n_rows, 10 * MOST_ATOMS)
        return super().work(space, n_rows) / 10 + n_rows * atoms * count

    @abstractmethod
    def _classifier(self, design: Design, setting: Setting) -> Any:
        """The last step."""

    def steps(self, design: Design, setting: Setting, read: int) -> list[Any]:
        return [design.map(), self._classifier(design, setting)]


class Classes(_Learned):
    """A dictionary for each class on virtual samples, LKDL."""

    name = "classes"

    def suits(self, space: Space, n_rows: int) -> bool:
        return space.kernel != "linear"

    def _classifier(self, design: Design, setting: Setting) -> Any:
        atoms = design.atoms(setting[0])
        width = min(int(setting[1]), atoms)
        return ResidualClassifier(KSVD(atoms, width, random_state=design.seed))


class Exact(_Learned):
    """A dictionary for each class by exact kernel K-SVD."""

    name = "exact"
    late = True
    most_rows = SMALL

    def suits(self, space: Space, n_rows: int) -> bool:
        enough = 3 * 8 * n_rows**2 < options.memory / 4
        return enough and space.kernel != "linear"

    def work(self, space: Space, n_rows: int) -> float:
        """Atoms grow with the rows, up to a limit that 10 classes reach here."""
        return float(n_rows) ** 2 * min(n_rows, 10 * MOST_ATOMS) ** 0.5

    def _rows(self, features: Features) -> tuple[Array, list[Array]]:
        return features.X, features.held_out

    def _classifier(self, design: Design, setting: Setting) -> Any:
        atoms = design.atoms(setting[0])
        width = min(int(setting[1]), atoms)
        learner = KernelKSVD(
            design.kernel, atoms, n_nonzero_coefs=width, random_state=design.seed
        )
        return ResidualClassifier(learner)

    def steps(self, design: Design, setting: Setting, read: int) -> list[Any]:
        return [self._classifier(design, setting)]


class LabelConsistent(_Learned):
    """One dictionary and a linear classifier on its codes, `LCKSVDClassifier`."""

    name = "label consistent"
    late = True

    def first(self) -> list[Setting]:
        return [(0.25, 10)]

    def _classifier(self, design: Design, setting: Setting) -> Any:
        atoms = min(design.atoms(setting[0]), int(design.class_counts.min()))
        width = min(int(setting[1]), atoms * len(design.class_counts))
        return LCKSVDClassifier(atoms, width, tau=0.1, random_state=design.seed)


_FAMILIES: tuple[Family, ...] = (
    Fisher(),
    Samples(),
    Classes(),
    Orthogonal(),
    Exact(),
    LabelConsistent(),
    ClassSamples(),
)
FAMILIES = {family.name: family for family in _FAMILIES}
