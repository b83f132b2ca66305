"""The interface of a family of candidates, and the families that learn no atoms.

Each family defines its first settings, settings similar to a given one, the number of
validation rows that it classifies correctly, and the steps of its pipeline. The
features of a fold are computed once for all families (`Features`). One fit gives the
scores for all values of a parameter, such as the number of neighbours.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import Any, ClassVar

import numpy as np

from ...coders import OMP
from ...config import options
from ...contracts import Array, SparseCodes
from ...kernels import Kernel
from ...numerics.arrays import to_numpy
from ...numerics.random import generator
from ..ksad import KSADClassifier
from ..labels import class_residuals
from ..neighbors import count_votes
from ..src import SRCClassifier
from .spaces import Space, feature_map

NEIGHBORS = (1, 3, 5, 9, 15)
NONZEROS = (1, 2, 3, 5, 8, 12, 20, 30, 50, 80)  # numbers of non-zeros
MOST_ATOMS = 300  # of each class
Setting = tuple[float, ...]  # values of the parameters in `Family.setting_names`
Hits = dict[int, np.ndarray]  # parameter value -> correct predictions per corruption


@dataclass
class Features:
    """Scaled rows of one fold in one space, and their virtual samples."""

    kernel: Kernel
    space: Space
    X: Array  # (n, p) scaled
    y: np.ndarray  # (n,) class indices
    held_out: list[Array]  # scaled validation rows, one array for each corruption
    truth: np.ndarray
    seed: int

    @cached_property
    def map(self) -> Any:
        n_landmarks = self.space.n_landmarks
        return feature_map(self.kernel, n_landmarks, len(self.X), self.seed).fit(self.X)

    @cached_property
    def F(self) -> Array:  # (n, k)
        return self.map.transform(self.X)

    @cached_property
    def mapped_rows(self) -> list[Array]:
        return [self.map.transform(rows) for rows in self.held_out]

    def hits(self, predicted: list[np.ndarray]) -> np.ndarray:
        """Count the correct predictions for each corruption; clean rows come first."""
        return np.array([np.sum(labels == self.truth) for labels in predicted], float)


@dataclass(frozen=True)
class Design:
    """What the steps of a pipeline depend on besides the setting of its family."""

    kernel: Kernel
    space: Space
    class_counts: np.ndarray
    seed: int

    def atoms(self, share: float) -> int:
        """Return the atoms of each class, as a share of the rows of the largest."""
        return int(np.clip(round(share * self.class_counts.max()), 1, MOST_ATOMS))

    def map(self) -> Any:
        n_rows = int(self.class_counts.sum())
        return feature_map(self.kernel, self.space.n_landmarks, n_rows, self.seed)


class Family(ABC):
    """A kind of classifiers that a search can try."""

    name: ClassVar[str]
    setting_names: ClassVar[tuple[str, ...]] = ()
    """The names of the parameters in a setting."""
    value_name: ClassVar[str | None] = None
    """The name of the parameter that one fit is evaluated at several values of."""
    is_postponed: ClassVar[bool] = False
    """Whether it is tried only in spaces where other families did well."""
    most_rows: ClassVar[float] = inf
    """Beyond this number of rows, only a robust search tries the family."""
    is_for_corruption: ClassVar[bool] = False
    """Whether only a robust search tries it, unless the user names the family."""

    def first_settings(self) -> list[Setting]:
        """The first settings."""
        return [()]

    def near_settings(self, setting: Setting) -> list[Setting]:
        """Settings that differ in one parameter by one step."""
        return []

    def is_suitable(self, space: Space, n_rows: int) -> bool:
        """Whether the family suits this space and fits into memory."""
        return True

    def cost(self, space: Space, n_rows: int) -> float:
        """Operations of a fit to `n_rows` rows behind a map, up to a factor."""
        n_landmarks = min(space.n_landmarks, n_rows)
        return n_rows * n_landmarks**2 + 10 * n_landmarks**3

    @abstractmethod
    def score(self, features: Features, setting: Setting) -> Hits:
        """Fit once and count correct predictions for each value of `value_name`."""

    @abstractmethod
    def steps(self, design: Design, setting: Setting, value: int) -> list[Any]:
        """Return the unfitted pipeline steps after the scaling."""


class Fisher(Family):
    """Atoms that separate the classes, `KSADClassifier` with dictionary="fisher"."""

    name = "fisher"
    setting_names: ClassVar[tuple[str, ...]] = ("shrinkage",)
    value_name = "n_neighbors"

    def first_settings(self) -> list[Setting]:
        return [(0.03,), (0.3,)]

    def near_settings(self, setting: Setting) -> list[Setting]:
        return [(factor * setting[0],) for factor in (0.3, 3.0)]

    def is_suitable(self, space: Space, n_rows: int) -> bool:
        return 8 * n_rows * min(n_rows, space.n_landmarks) < options.memory / 8

    def score(self, features: Features, setting: Setting) -> Hits:
        model = self._classifier(features.kernel, setting)
        model._learn(features.F, features.y, generator(features.seed))
        codes = [model._codes(rows) for rows in features.mapped_rows]
        return {
            k: self._hits(features, model, codes, k) for k in _neighbor_counts(features)
        }

    @staticmethod
    def _hits(features: Features, model: Any, codes: list[Array], k: int) -> np.ndarray:
        votes = [count_votes(Q, model.codes_, features.y, k) for Q in codes]
        return features.hits(
            [to_numpy(row_votes).argmax(axis=1) for row_votes in votes]
        )

    def _classifier(self, kernel: Kernel, setting: Setting, **parameters: Any) -> Any:
        return KSADClassifier(
            kernel, "fisher", landmarks="uniform", shrinkage=setting[0], **parameters
        )

    def steps(self, design: Design, setting: Setting, value: int) -> list[Any]:
        n_landmarks = min(design.space.n_landmarks, int(design.class_counts.sum()))
        parameters = {"n_landmarks": n_landmarks, "random_state": design.seed}
        return [
            self._classifier(design.kernel, setting, n_neighbors=value, **parameters)
        ]


class Orthogonal(Fisher):
    """Orthonormal atoms, which amount to nearest neighbours in feature space.

    Neighbours are nearly the same in all spaces of one scaling, so that only the
    linear kernel is tried.
    """

    name = "orthogonal"
    setting_names = ()

    def first_settings(self) -> list[Setting]:
        return [()]

    def near_settings(self, setting: Setting) -> list[Setting]:
        return []

    def is_suitable(self, space: Space, n_rows: int) -> bool:
        return space.kernel == "linear" and super().is_suitable(space, n_rows)

    def _classifier(self, kernel: Kernel, setting: Setting, **parameters: Any) -> Any:
        return KSADClassifier(
            kernel, landmarks="uniform", beta1=0.0, beta2=0.0, max_iter=1, **parameters
        )


def _neighbor_counts(features: Features) -> list[int]:
    return [k for k in NEIGHBORS if k == 1 or k <= len(features.y) // 4]


class AllSamples(Family):
    """All training samples as atoms, `SRCClassifier`."""

    name = "samples"
    value_name = "n_nonzero_coefs"

    def is_suitable(self, space: Space, n_rows: int) -> bool:
        return 3 * 8 * n_rows**2 < options.memory / 4

    def cost(self, space: Space, n_rows: int) -> float:
        return float(n_rows) ** 2

    def score(self, features: Features, setting: Setting) -> Hits:
        model = SRCClassifier(features.kernel).fit(features.X, features.y)
        max_nonzeros = max(1, model.dictionary_.n_atoms // 2)
        counts = [w for w in NONZEROS if w <= max_nonzeros]
        predictions = [labels_by_nonzeros(model, X, counts) for X in features.held_out]
        return {w: features.hits([labels[w] for labels in predictions]) for w in counts}

    def steps(self, design: Design, setting: Setting, value: int) -> list[Any]:
        return [SRCClassifier(design.kernel, value)]


def labels_by_nonzeros(
    model: SRCClassifier, X: Array, counts: list[int]
) -> dict[int, np.ndarray]:
    """Predict class indices for each number of non-zeros from one pursuit.

    A pursuit with w non-zeros chooses the first w atoms of a longer one, and its
    coefficients solve a least squares problem.
    """
    dictionary = model.dictionary_
    gram, corr = dictionary.gram(), dictionary.correlate(X)
    energy = dictionary.energy(X)
    atom_indices = OMP(max(counts)).solve(gram, corr, energy).indices
    problem = gram, corr, energy, model.atom_classes_, len(model.classes_)
    labels = {}
    for n_nonzeros in counts:
        codes = least_squares_codes(gram, corr, atom_indices[:, :n_nonzeros])
        labels[n_nonzeros] = class_residuals(codes, *problem).argmin(axis=1)
    return labels


def least_squares_codes(
    gram: np.ndarray,  # (m, m)
    corr: np.ndarray,  # (n, m)
    atom_indices: np.ndarray,  # (n, w), negative where there is none
) -> SparseCodes:
    """Compute the least squares coefficients of the chosen atoms of each sample."""
    systems, right_sides = normal_equations(gram, corr, atom_indices)
    values = np.linalg.solve(systems, right_sides[:, :, None])[:, :, 0].astype(
        corr.dtype
    )
    return SparseCodes(atom_indices, values, gram.shape[0])


def normal_equations(
    gram: np.ndarray,  # (m, m)
    corr: np.ndarray,  # (n, m)
    atom_indices: np.ndarray,  # (n, w), negative where there is none
) -> tuple[np.ndarray, np.ndarray]:  # (n, w, w), (n, w)
    """Return the Gram matrix and correlations of the chosen atoms of each sample."""
    is_chosen = atom_indices >= 0
    is_pair_chosen = is_chosen[:, :, None] & is_chosen[:, None, :]
    safe_indices = np.where(is_chosen, atom_indices, 0)
    systems = np.where(
        is_pair_chosen, gram[safe_indices[:, :, None], safe_indices[:, None, :]], 0.0
    )
    # Empty slots become the equation γ = 0. A small diagonal keeps the other equations
    # solvable where a pursuit has chosen two nearly equal atoms.
    diagonal = np.arange(atom_indices.shape[1])
    tiny = 10 * np.finfo(gram.dtype).eps
    systems[:, diagonal, diagonal] += np.where(is_chosen, tiny, 1.0)
    return systems, np.where(
        is_chosen, np.take_along_axis(corr, safe_indices, axis=1), 0.0
    )
