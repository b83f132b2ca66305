"""The kinds of classifiers that a search chooses from.

Each family says which settings it begins with, which are near to others, how many
validation rows it gets right, and which steps of a pipeline it stands for. Features of
a fold are made once for all of them (`Features`), and what is read out of one fit, such
as all numbers of neighbours, is scored together.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin

from ..backend.arrays import to_numpy
from ..backend.random import generator
from ..config import options
from ..core import Array, Kernel, SparseCodes
from ..learners import KSVD, KernelKSVD
from ..pursuits import OMP
from .ksad import KSADClassifier
from .labels import class_residuals
from .lc_ksvd import LCKSVDClassifier
from .neighbors import count_votes
from .residual import ResidualClassifier
from .spaces import Space, feature_map
from .sparse_representation import SRCClassifier

NEIGHBORS = (1, 3, 5, 9, 15)
WIDTHS = (1, 2, 3, 5, 8, 12, 20, 30, 50, 80)  # non-zeros that one pursuit is read at
MOST_ATOMS = 300  # of each class
SMALL = 1500  # rows up to which exact kernel K-SVD is tried
Setting = tuple[float, ...]  # the parameters that a family has, in its own order
Hits = dict[int, float]  # what is read out -> validation rows that are right


@dataclass
class Features:
    """Scaled rows of one fold in one space, and their virtual samples."""

    kernel: Kernel
    space: Space
    X: Array  # (n, p) scaled
    y: np.ndarray  # (n,) places of the classes
    held_out: list[Array]  # scaled, one array for each way to spoil them
    truth: np.ndarray
    seed: int

    @cached_property
    def map(self) -> Any:
        count = self.space.n_landmarks
        return feature_map(self.kernel, count, len(self.X), self.seed).fit(self.X)

    @cached_property
    def F(self) -> Array:  # (n, k)
        return self.map.transform(self.X)

    @cached_property
    def mapped(self) -> list[Array]:
        return [self.map.transform(rows) for rows in self.held_out]

    def hits(self, predicted: list[np.ndarray]) -> float:
        """Rows that are right, on average over the ways to spoil them."""
        return float(np.mean([np.sum(labels == self.truth) for labels in predicted]))


@dataclass(frozen=True)
class Design:
    """What a pipeline is made for: a kernel in a space, so many rows, a seed."""

    kernel: Kernel
    space: Space
    class_counts: np.ndarray
    seed: int

    def atoms(self, share: float) -> int:
        """Atoms of each class, as a share of the rows of the largest."""
        return int(np.clip(round(share * self.class_counts.max()), 1, MOST_ATOMS))

    def map(self) -> Any:
        n_rows = int(self.class_counts.sum())
        return feature_map(self.kernel, self.space.n_landmarks, n_rows, self.seed)


class Family(ABC):
    """A kind of classifiers."""

    name: ClassVar[str]
    growth: ClassVar[float]
    """Seconds of a fit grow with this power of the number of rows, at most."""
    names: ClassVar[tuple[str, ...]] = ()
    """What the numbers of a setting are."""
    read_name: ClassVar[str | None] = None
    """What is read out of one fit at several values."""
    late: ClassVar[bool] = False
    """Too slow to be tried in every space: only in those that others do well in."""

    def first(self) -> list[Setting]:
        """Settings to begin with."""
        return [()]

    def near(self, setting: Setting) -> list[Setting]:
        """Settings that differ in one parameter by one step."""
        return []

    def suits(self, space: Space, n_rows: int) -> bool:
        """Whether it makes sense there, and fits in memory."""
        return True

    @abstractmethod
    def score(self, features: Features, setting: Setting) -> Hits:
        """Fit once, and count what is right for everything that can be read out."""

    @abstractmethod
    def steps(self, design: Design, setting: Setting, read: int) -> list[Any]:
        """The steps behind the scaling, not fitted."""


class Fisher(Family):
    """Atoms that tell classes apart, `KSADClassifier`; all numbers of neighbours."""

    name = "fisher"
    growth = 2.0
    names = ("shrinkage",)
    read_name = "n_neighbors"

    def first(self) -> list[Setting]:
        return [(0.03,), (0.3,)]

    def near(self, setting: Setting) -> list[Setting]:
        return [(factor * setting[0],) for factor in (0.3, 3.0)]

    def suits(self, space: Space, n_rows: int) -> bool:
        return 8 * n_rows * min(n_rows, space.n_landmarks) < options.memory / 8

    def score(self, features: Features, setting: Setting) -> Hits:
        model = self._classifier(features.kernel, setting)
        model._learn(features.F, features.y, generator(features.seed))
        codes = [model._codes(rows) for rows in features.mapped]
        return {k: self._hits(features, model, codes, k) for k in _up_to(features)}

    @staticmethod
    def _hits(features: Features, model: Any, codes: list[Array], k: int) -> float:
        votes = [count_votes(q, model.codes_, features.y, k) for q in codes]
        return features.hits([to_numpy(each).argmax(axis=1) for each in votes])

    def _classifier(self, kernel: Kernel, setting: Setting, **given: Any) -> Any:
        return KSADClassifier(
            kernel, "fisher", landmarks="uniform", shrinkage=setting[0], **given
        )

    def steps(self, design: Design, setting: Setting, read: int) -> list[Any]:
        count = min(design.space.n_landmarks, int(design.class_counts.sum()))
        given = {"n_landmarks": count, "random_state": design.seed}
        return [self._classifier(design.kernel, setting, n_neighbors=read, **given)]


class Orthogonal(Fisher):
    """Orthonormal atoms for all classes: the nearest samples in feature space.

    In every space of one scaling neighbours are nearly the same: tried in one.
    """

    name = "orthogonal"
    names = ()

    def first(self) -> list[Setting]:
        return [()]

    def near(self, setting: Setting) -> list[Setting]:
        return []

    def suits(self, space: Space, n_rows: int) -> bool:
        return space.kernel == "linear" and super().suits(space, n_rows)

    def _classifier(self, kernel: Kernel, setting: Setting, **given: Any) -> Any:
        return KSADClassifier(
            kernel, landmarks="uniform", beta1=0.0, beta2=0.0, max_iter=1, **given
        )


def _up_to(features: Features) -> list[int]:
    return [k for k in NEIGHBORS if k == 1 or k <= len(features.y) // 4]


class Samples(Family):
    """All training samples as atoms, `SRCClassifier`; all numbers of non-zeros."""

    name = "samples"
    growth = 2.0
    read_name = "n_nonzero_coefs"

    def suits(self, space: Space, n_rows: int) -> bool:
        return 3 * 8 * n_rows**2 < options.memory / 4

    def score(self, features: Features, setting: Setting) -> Hits:
        model = SRCClassifier(features.kernel).fit(features.X, features.y)
        limit = max(1, model.dictionary_.n_atoms // 2)
        widths = [w for w in WIDTHS if w <= limit]
        by_width = [labels_by_width(model, X, widths) for X in features.held_out]
        return {w: features.hits([labels[w] for labels in by_width]) for w in widths}

    def steps(self, design: Design, setting: Setting, read: int) -> list[Any]:
        return [SRCClassifier(design.kernel, read)]


def labels_by_width(
    model: SRCClassifier, X: Array, widths: list[int]
) -> dict[int, np.ndarray]:
    """Places of the classes that win with so many non-zeros, all from one pursuit.

    A pursuit with w non-zeros is the beginning of a longer one: the same atoms, whose
    coefficients are those of least squares.
    """
    dictionary = model.dictionary_
    gram, corr = dictionary.gram(), dictionary.correlate(X)
    energy = dictionary.energy(X)
    chosen = OMP(max(widths)).solve(gram, corr, energy).indices
    seen = gram, corr, energy, model.atom_classes_, len(model.classes_)
    found = {}
    for width in widths:
        codes = least_squares_codes(gram, corr, chosen[:, :width])
        found[width] = class_residuals(codes, *seen).argmin(axis=1)
    return found


def least_squares_codes(
    gram: np.ndarray,  # (m, m)
    corr: np.ndarray,  # (n, m)
    chosen: np.ndarray,  # (n, w), negative where there is none
) -> SparseCodes:
    """Coefficients of the chosen atoms that represent each sample best."""
    live = chosen >= 0
    both = live[:, :, None] & live[:, None, :]
    places = np.where(live, chosen, 0)
    systems = np.where(both, gram[places[:, :, None], places[:, None, :]], 0.0)
    # empty places become the equation γ = 0; a little on the diagonal keeps the rest
    # solvable where rounding has let in nearly the same atom twice
    diagonal = np.arange(chosen.shape[1])
    tiny = 10 * np.finfo(gram.dtype).eps
    systems[:, diagonal, diagonal] += np.where(live, tiny, 1.0)
    right = np.where(live, np.take_along_axis(corr, places, axis=1), 0.0)
    values = np.linalg.solve(systems, right[:, :, None])[:, :, 0].astype(corr.dtype)
    return SparseCodes(chosen, values, gram.shape[0])


class _Learned(Family):
    """Dictionaries that are learned: a share of the rows as atoms, and non-zeros."""

    growth = 1.5
    names = ("atoms_per_row", "n_nonzero_coefs")

    def first(self) -> list[Setting]:
        return [(0.5, 3)]

    def near(self, setting: Setting) -> list[Setting]:
        share, width = setting[:2]
        shares = [s for s in (0.25, 0.5, 1.0) if s != share]
        wider = [max(1, round(width * factor)) for factor in (0.6, 1.7)]
        return [(s, width) for s in shares] + [(share, w) for w in wider if w != width]

    def score(self, features: Features, setting: Setting) -> Hits:
        counts = np.bincount(features.y)
        design = Design(features.kernel, features.space, counts, features.seed)
        model = self._classifier(design, setting)
        rows, held_out = self._rows(features)
        model.fit(rows, features.y)
        return {0: features.hits([model.predict(each) for each in held_out])}

    def _rows(self, features: Features) -> tuple[Array, list[Array]]:
        return features.F, features.mapped

    @abstractmethod
    def _classifier(self, design: Design, setting: Setting) -> ClassifierMixin:
        """The last step."""

    def steps(self, design: Design, setting: Setting, read: int) -> list[Any]:
        return [design.map(), self._classifier(design, setting)]


class Classes(_Learned):
    """A dictionary for each class on virtual samples, LKDL."""

    name = "classes"

    def suits(self, space: Space, n_rows: int) -> bool:
        return space.kernel != "linear"

    def _classifier(self, design: Design, setting: Setting) -> ClassifierMixin:
        atoms = design.atoms(setting[0])
        width = min(int(setting[1]), atoms)
        return ResidualClassifier(KSVD(atoms, width, random_state=design.seed))


class Exact(_Learned):
    """A dictionary for each class by exact kernel K-SVD."""

    name = "exact"
    growth = 2.5
    late = True

    def suits(self, space: Space, n_rows: int) -> bool:
        return n_rows <= SMALL and space.kernel != "linear"

    def _rows(self, features: Features) -> tuple[Array, list[Array]]:
        return features.X, features.held_out

    def _classifier(self, design: Design, setting: Setting) -> ClassifierMixin:
        atoms = design.atoms(setting[0])
        width = min(int(setting[1]), atoms)
        learner = KernelKSVD(design.kernel, atoms, width, random_state=design.seed)
        return ResidualClassifier(learner)

    def steps(self, design: Design, setting: Setting, read: int) -> list[Any]:
        return [self._classifier(design, setting)]


class LabelConsistent(_Learned):
    """One dictionary and a linear classifier on its codes, `LCKSVDClassifier`."""

    name = "label consistent"
    late = True

    def first(self) -> list[Setting]:
        return [(0.25, 10)]

    def _classifier(self, design: Design, setting: Setting) -> ClassifierMixin:
        atoms = min(design.atoms(setting[0]), int(design.class_counts.min()))
        width = min(int(setting[1]), atoms * len(design.class_counts))
        given = {"tau": 0.1, "random_state": design.seed}
        return LCKSVDClassifier(atoms, width, **given)


FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (
        Fisher(),
        Samples(),
        Classes(),
        Orthogonal(),
        Exact(),
        LabelConsistent(),
    )
}
