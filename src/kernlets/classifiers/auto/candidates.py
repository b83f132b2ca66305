"""The families of candidates that a search can try.

Each family defines its first settings, settings similar to a given one, the number of
validation rows that it classifies correctly, and the steps of its pipeline. The
features of a fold are computed once for all families (`Features`). One fit gives the
scores for all values of a parameter, such as the number of neighbours.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from ...coders import OMP
from ...config import options
from ...contracts import Array, SparseCodes
from ...kernels import Kernel
from ...learners import KSVD, KernelKSVD
from ...maps import NystroemMap
from ...numerics.arrays import to_numpy
from ...numerics.random import generator
from ..base import class_residuals
from ..ksad import KSADClassifier
from ..ksad_atoms import FisherAtoms, OrthogonalAtoms, count_votes
from ..lc_ksvd import LCKSVDClassifier
from ..residual import ResidualClassifier
from ..src import SRCClassifier
from .spaces import Space

NEIGHBORS = (1, 3, 5, 9, 15)
NONZEROS = (1, 2, 3, 5, 8, 12, 20, 30, 50, 80)  # of codes over all samples
CLASS_NONZEROS = NONZEROS[:8]  # of codes over the samples of one class
MOST_ATOMS = 300  # of each class
MOST_EXACT_ROWS = 1500  # with more rows a map is as good as exact kernel K-SVD
Setting = tuple[float, ...]  # values of the parameters in `Family.setting_names`
# parameter value -> weight of the correct predictions for each corruption
Hits = dict[int, np.ndarray]


@dataclass(frozen=True)
class Design:
    """What a pipeline depends on besides the setting of its family."""

    kernel: Kernel
    space: Space
    class_counts: np.ndarray  # (n_classes,) training rows
    seed: int

    @property
    def n_landmarks(self) -> int:
        return min(self.space.n_landmarks, int(self.class_counts.sum()))

    def atoms(self, share: float) -> int:
        """Return the atoms of each class, as a share of the rows of the largest."""
        return int(np.clip(round(share * self.class_counts.max()), 1, MOST_ATOMS))

    def map(self) -> NystroemMap:
        """Return the unfitted map of the space."""
        return NystroemMap(
            self.kernel,
            "uniform",
            n_landmarks=self.n_landmarks,
            random_state=self.seed,
        )


@dataclass
class Features:
    """Scaled rows of one fold in one space, and their virtual samples."""

    design: Design
    X: Array  # (n, p) scaled
    y: np.ndarray  # (n,) class indices
    held_out: list[Array]  # scaled validation rows, one array for each corruption
    truth: np.ndarray
    class_weights: np.ndarray  # (n_classes,)

    @cached_property
    def map(self) -> NystroemMap:
        return self.design.map().fit(self.X)

    @cached_property
    def F(self) -> Array:  # (n, k)
        return self.map.transform(self.X)

    @cached_property
    def mapped_rows(self) -> list[Array]:
        return [self.map.transform(rows) for rows in self.held_out]

    def hits(self, predicted: list[np.ndarray]) -> np.ndarray:
        """Add the weights of correct predictions per corruption; clean rows first."""
        weights = self.class_weights[self.truth]
        return np.array([np.sum(weights[labels == self.truth]) for labels in predicted])

    @property
    def total(self) -> float:
        """The weight of all validation rows."""
        return float(self.class_weights[self.truth].sum())


class Family(ABC):
    """A kind of classifiers that a search can try."""

    name: ClassVar[str]
    setting_names: ClassVar[tuple[str, ...]] = ()
    """The names of the parameters in a setting."""
    first_settings: ClassVar[tuple[Setting, ...]] = ((),)
    """The settings that are tried first."""
    value_name: ClassVar[str | None] = None
    """The name of the parameter that one fit is evaluated at several values of."""
    is_slow: ClassVar[bool] = False
    """Whether the first stage tries it last."""
    is_postponed: ClassVar[bool] = False
    """Whether it is tried only in spaces where other families did well."""
    has_probabilities: ClassVar[bool] = True
    """Whether its classifiers have `predict_proba`."""
    is_for_corruption: ClassVar[bool] = False
    """Whether only a robust search tries it, unless the user names the family."""

    def near_settings(self, setting: Setting) -> list[Setting]:
        """Settings that differ in one parameter by one step."""
        return []

    def is_suitable(self, space: Space, n_rows: int, robust: bool) -> bool:
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
    first_settings: ClassVar[tuple[Setting, ...]] = ((0.03,), (0.3,))
    value_name = "n_neighbors"

    def near_settings(self, setting: Setting) -> list[Setting]:
        return [(factor * setting[0],) for factor in (0.3, 3.0)]

    def is_suitable(self, space: Space, n_rows: int, robust: bool) -> bool:
        return 8 * n_rows * min(n_rows, space.n_landmarks) < options.memory / 8

    def score(self, features: Features, setting: Setting) -> Hits:
        model = self._classifier(features.design, setting)
        model._learn(features.F, features.y, generator(features.design.seed))
        codes = [model._codes(rows) for rows in features.mapped_rows]
        hits = {}
        for k in NEIGHBORS:
            if k == 1 or k <= len(features.y) // 4:
                votes = [count_votes(Q, model.codes_, features.y, k) for Q in codes]
                hits[k] = features.hits([to_numpy(v).argmax(axis=1) for v in votes])
        return hits

    def steps(self, design: Design, setting: Setting, value: int) -> list[Any]:
        return [self._classifier(design, setting, n_neighbors=value)]

    def _classifier(
        self, design: Design, setting: Setting, n_neighbors: int = 1
    ) -> KSADClassifier:
        return KSADClassifier(
            design.kernel,
            self._atoms(setting),
            landmarks="uniform",
            n_landmarks=design.n_landmarks,
            n_neighbors=n_neighbors,
            random_state=design.seed,
        )

    def _atoms(self, setting: Setting) -> FisherAtoms | OrthogonalAtoms:
        return FisherAtoms(shrinkage=setting[0])


class Orthogonal(Fisher):
    """Orthonormal atoms, which amount to nearest neighbours in feature space.

    Neighbours are nearly the same in all spaces of one scaling, so that only the
    linear kernel is tried.
    """

    name = "orthogonal"
    setting_names = ()
    first_settings = ((),)

    def near_settings(self, setting: Setting) -> list[Setting]:
        return []

    def is_suitable(self, space: Space, n_rows: int, robust: bool) -> bool:
        return space.kernel == "linear" and super().is_suitable(space, n_rows, robust)

    def _atoms(self, setting: Setting) -> FisherAtoms | OrthogonalAtoms:
        return OrthogonalAtoms(beta1=0.0, beta2=0.0, max_iter=1)


def fits_into_memory(n_rows: int) -> bool:
    """Whether a few kernel matrices of so many rows fit into memory."""
    return 3 * 8 * n_rows**2 < options.memory / 4


class AllSamples(Family):
    """All training samples as atoms, `SRCClassifier`."""

    name = "samples"
    value_name = "n_nonzero_coefs"

    def is_suitable(self, space: Space, n_rows: int, robust: bool) -> bool:
        return fits_into_memory(n_rows)

    def cost(self, space: Space, n_rows: int) -> float:
        return float(n_rows) ** 2

    def score(self, features: Features, setting: Setting) -> Hits:
        model = SRCClassifier(features.design.kernel).fit(features.X, features.y)
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
        indices = atom_indices[:, :n_nonzeros]
        systems, right_sides = normal_equations(gram, corr, indices)
        values = np.linalg.solve(systems, right_sides[:, :, None])[:, :, 0]
        codes = SparseCodes(indices, values.astype(corr.dtype), gram.shape[0])
        labels[n_nonzeros] = class_residuals(codes, *problem).argmin(axis=1)
    return labels


def normal_equations(
    gram: np.ndarray,  # (m, m)
    corr: np.ndarray,  # (n, m)
    atom_indices: np.ndarray,  # (n, w), negative where there is none
) -> tuple[np.ndarray, np.ndarray]:  # (n, w, w), (n, w)
    """Return the Gram matrix and correlations of the chosen atoms of each sample."""
    is_chosen = atom_indices >= 0
    both_chosen = is_chosen[:, :, None] & is_chosen[:, None, :]
    indices = np.where(is_chosen, atom_indices, 0)
    systems = gram[indices[:, :, None], indices[:, None, :]]
    systems = np.where(both_chosen, systems, 0.0)
    # Empty slots become the equation γ = 0. A small diagonal keeps the other equations
    # solvable where a pursuit has chosen two nearly equal atoms.
    diagonal = np.arange(atom_indices.shape[1])
    tiny = 10 * np.finfo(gram.dtype).eps
    systems[:, diagonal, diagonal] += np.where(is_chosen, tiny, 1.0)
    right_sides = np.take_along_axis(corr, indices, axis=1)
    return systems, np.where(is_chosen, right_sides, 0.0)


class ClassSamples(AllSamples):
    """The samples of each class are its dictionary.

    It is robust to noise: in a narrow kernel the code of a sample spreads over many
    atoms of its class, so that noise averages out, as it does not over few learned
    atoms.
    """

    name = "class samples"
    is_for_corruption = True

    def is_suitable(self, space: Space, n_rows: int, robust: bool) -> bool:
        return space.kernel != "linear" and super().is_suitable(space, n_rows, robust)

    def score(self, features: Features, setting: Setting) -> Hits:
        classes = range(int(features.y.max()) + 1)
        rows_by_class = [features.X[features.y == c] for c in classes]
        predictions: dict[int, list[np.ndarray]] = {w: [] for w in CLASS_NONZEROS}
        for X in features.held_out:
            residuals = [
                residuals_by_nonzeros(features.design.kernel, X_c, X)
                for X_c in rows_by_class
            ]
            for w, labels in predictions.items():
                of_classes = np.stack([r[w] for r in residuals], axis=1)
                labels.append(of_classes.argmin(axis=1))
        return {w: features.hits(labels) for w, labels in predictions.items()}

    def steps(self, design: Design, setting: Setting, value: int) -> list[Any]:
        learner = KernelKSVD(
            design.kernel,
            n_components=int(design.class_counts.max()),
            n_nonzero_coefs=value,
            max_iter=1,  # every sample is an atom, so there is nothing to learn
            random_state=design.seed,
        )
        return [ResidualClassifier(learner)]


def residuals_by_nonzeros(
    kernel: Kernel,
    atoms: Array,  # (m, p) not of unit norm
    X: Array,  # (n, p)
) -> dict[int, np.ndarray]:  # (n,) each
    """Compute squared residuals over samples as atoms for all numbers of non-zeros.

    With G_w = L Lᵀ for the first w atoms that a pursuit chooses and L z = their
    correlations, the residual is κ(x, x) − ‖z‖². A larger w appends entries to z.
    """
    tiny = np.finfo(np.float32).tiny
    scale = 1 / np.sqrt(np.maximum(to_numpy(kernel.diag(atoms)), tiny))
    gram = to_numpy(kernel(atoms, atoms)) * scale * scale[:, None]
    corr = np.ascontiguousarray(to_numpy(kernel(X, atoms)) * scale)
    energy = to_numpy(kernel.diag(X))
    max_nonzeros = min(max(CLASS_NONZEROS), len(gram))
    atom_indices = to_numpy(OMP(max_nonzeros).solve(gram, corr, energy).indices)
    systems, right_sides = normal_equations(gram, corr, atom_indices)
    # The rounding error of Gram matrices of nearly equal samples grows with their size.
    ridge = 10 * max_nonzeros * np.finfo(gram.dtype).eps * np.eye(max_nonzeros)
    L = np.linalg.cholesky(systems.astype(np.float64) + ridge)
    z = np.linalg.solve(L, right_sides[:, :, None])[:, :, 0]
    squared_norms = np.cumsum(z**2, axis=1)
    return {
        w: energy - squared_norms[:, min(w, max_nonzeros) - 1] for w in CLASS_NONZEROS
    }


class LearnedAtoms(Family):
    """A family that learns atoms; it sets their share of the rows and the non-zeros."""

    setting_names = ("atoms_per_row", "n_nonzero_coefs")
    first_settings: ClassVar[tuple[Setting, ...]] = ((0.5, 3),)
    is_behind_map: ClassVar[bool] = True
    """Whether it learns from virtual samples, not from scaled rows."""

    def near_settings(self, setting: Setting) -> list[Setting]:
        share, width = setting
        shares = [other for other in (0.25, 0.5, 1.0) if other != share]
        widths = [max(1, round(width * factor)) for factor in (0.6, 1.7)]
        settings: list[Setting] = [(other, width) for other in shares]
        return settings + [(share, other) for other in widths if other != width]

    def score(self, features: Features, setting: Setting) -> Hits:
        model = self._classifier(features.design, setting)
        model.fit(features.F if self.is_behind_map else features.X, features.y)
        held_out = features.mapped_rows if self.is_behind_map else features.held_out
        return {0: features.hits([model.predict(X_valid) for X_valid in held_out])}

    def cost(self, space: Space, n_rows: int) -> float:
        """Return the cost of a fit, whose atoms grow with the rows up to a limit."""
        n_landmarks = min(space.n_landmarks, n_rows)
        n_atoms = min(n_rows, 10 * MOST_ATOMS)
        return super().cost(space, n_rows) / 10 + n_rows * n_atoms * n_landmarks

    @abstractmethod
    def _classifier(self, design: Design, setting: Setting) -> Any:
        """Return the last pipeline step."""

    def steps(self, design: Design, setting: Setting, value: int) -> list[Any]:
        map_steps = [design.map()] if self.is_behind_map else []
        return [*map_steps, self._classifier(design, setting)]


class Classes(LearnedAtoms):
    """A dictionary for each class on virtual samples, LKDL."""

    name = "classes"
    is_slow = True

    def is_suitable(self, space: Space, n_rows: int, robust: bool) -> bool:
        return space.kernel != "linear"

    def _classifier(self, design: Design, setting: Setting) -> Any:
        n_atoms = design.atoms(setting[0])
        n_nonzeros = min(int(setting[1]), n_atoms)
        return ResidualClassifier(KSVD(n_atoms, n_nonzeros, random_state=design.seed))


class Exact(LearnedAtoms):
    """A dictionary for each class by exact kernel K-SVD."""

    name = "exact"
    is_slow = True
    is_postponed = True
    is_behind_map = False

    def is_suitable(self, space: Space, n_rows: int, robust: bool) -> bool:
        is_quick_enough = robust or n_rows <= MOST_EXACT_ROWS
        return is_quick_enough and fits_into_memory(n_rows) and space.kernel != "linear"

    def cost(self, space: Space, n_rows: int) -> float:
        """Return the cost of a fit, with a limit on the atoms as for 10 classes."""
        return float(n_rows) ** 2 * min(n_rows, 10 * MOST_ATOMS) ** 0.5

    def _classifier(self, design: Design, setting: Setting) -> Any:
        n_atoms = design.atoms(setting[0])
        width = min(int(setting[1]), n_atoms)
        learner = KernelKSVD(
            design.kernel, n_atoms, n_nonzero_coefs=width, random_state=design.seed
        )
        return ResidualClassifier(learner)


class LabelConsistent(LearnedAtoms):
    """One dictionary and a linear classifier on its codes, `LCKSVDClassifier`."""

    name = "label consistent"
    first_settings = ((0.25, 10),)
    is_postponed = True
    has_probabilities = False

    def _classifier(self, design: Design, setting: Setting) -> Any:
        n_atoms = min(design.atoms(setting[0]), int(design.class_counts.min()))
        width = min(int(setting[1]), n_atoms * len(design.class_counts))
        return LCKSVDClassifier(n_atoms, width, tau=0.1, random_state=design.seed)


FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (
        Fisher(),
        AllSamples(),
        Classes(),
        Orthogonal(),
        Exact(),
        LabelConsistent(),
        ClassSamples(),
    )
}
