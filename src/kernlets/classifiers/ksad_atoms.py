"""K-SAD: orthonormal and Fisher atoms, codes over them, and neighbours among codes."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from ..base.constraints import AT_LEAST_1, NOT_NEGATIVE, POSITIVE, StrOptions
from ..base.estimator import NAMED
from ..base.names import build
from ..contracts import Array
from ..data.rows import load_values, map_rows, sum_rows
from ..io.checkpoint import Checkpoint, fitting
from ..learners.initial_atoms import nonzero_rows, start_atoms
from ..learners.loop import Alternation, Monitor, iterate
from ..numerics.arrays import (
    as_like,
    double,
    empty,
    index_like,
    inner,
    namespace,
    row_norms,
    smallest,
)
from ..numerics.scaling import peaks, power_of_two, unit_rows
from ..schema import check
from ..sklearn_base import BaseEstimator
from ..updates.orthogonal import nearest_orthonormal, procrustes
from .scatter import NormScatter, Scatter, Sums, fisher_directions, scatter_of_rows

BETWEEN = {"trace": Scatter, "norm": NormScatter}


class LearnedCodes(NamedTuple):
    """The atoms, the codes of the virtual samples, and the history of a fit."""

    atoms: Array  # (m, k)
    codes: Array  # (n, m) with which codes of new samples are compared
    rows: np.ndarray  # (n,) the sample of each of them
    history: dict[str, list[float]]
    centre: Array | None = None  # (k,) that is subtracted before coding


class OrthogonalAtoms(BaseEstimator):
    """Orthonormal atoms Z, learned with the codes Q as K-SAD publishes them.

    They minimise ‖Φ − QZ‖² + beta1 ‖Q‖₁ + beta2 G(Q), eq. (5), with G = tr S_w / S_b.

    Parameters
    ----------
    beta1, beta2 : float
        Weights of sparsity and of the Fisher ratio.
    max_iter : int
        Number of iterations.
    between : {"trace", "norm"}
        The scatter S_b of the class means: the trace of Σ_c K_c(μ_c − μ)(μ_c − μ)ᵀ, or
        the squared norm of that matrix, as the paper prints it.
    threshold_new : bool
        Whether codes of new samples are thresholded, as training codes are. With False
        they are ΦZᵀ, line 15 of the paper's Algorithm 1.
    compare : {"codes", "atoms", "energy"}
        What has labels, lines 16 to 18 of Algorithm 1: the training codes; or the atoms
        Z, as these lines print it, each with the class of the sample that it starts
        from. A new sample gets the label of the nearest atoms, or that of the class
        whose atoms have most of the energy of its code, ‖ZᶜΦ‖².

    Examples
    --------
    >>> from kernlets import KSADClassifier
    >>> from kernlets.classifiers import OrthogonalAtoms
    >>> model = KSADClassifier(dictionary=OrthogonalAtoms(beta1=0.2))
    >>> model = KSADClassifier(dictionary="orthogonal:beta1=0.2")  # the same
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "beta1": [NOT_NEGATIVE],
        "beta2": [NOT_NEGATIVE],
        "max_iter": [AT_LEAST_1],
        "between": [StrOptions(set(BETWEEN))],
        "threshold_new": ["boolean"],
        "compare": [StrOptions({"codes", "atoms", "energy"})],
    }

    def __init__(
        self,
        beta1: float = 0.1,
        beta2: float = 0.01,
        max_iter: int = 20,
        *,
        between: Literal["trace", "norm"] = "trace",
        threshold_new: bool = True,
        compare: Literal["codes", "atoms", "energy"] = "codes",
    ) -> None:
        self.beta1 = beta1
        self.beta2 = beta2
        self.max_iter = max_iter
        self.between = between
        self.threshold_new = threshold_new
        self.compare = compare

    def learn(
        self, F: Array, labels: np.ndarray, rng: np.random.Generator, classifier: Any
    ) -> LearnedCodes:
        """Compute codes and atoms in turn, lines 9 to 14 of Algorithm 1."""
        if self.compare == "codes":
            rows, first_atoms = np.arange(len(labels)), _first_atoms(F, rng)
        else:
            rows = _rows_of_all_classes(F, labels, rng)
            first_atoms = unit_rows(F[index_like(rows, F)])
        Z_0 = as_like(nearest_orthonormal(first_atoms), F)
        scatter_class = BETWEEN[self.between]
        alternation = CodesThenAtoms(
            F, labels, Z_0, self.beta1, self.beta2, scatter_class
        )
        checkpoint = Checkpoint.of(classifier, samples=F, labels=labels, start=Z_0)
        monitor = Monitor.of(classifier, self.max_iter, measure="objective")
        history, _ = iterate(alternation, monitor, checkpoint)
        alternation.code()
        codes = alternation.codes
        if self.compare != "codes":  # of the atoms themselves: ZZᵀ = I
            codes = as_like(np.eye(len(rows)), F)
        return LearnedCodes(alternation.atoms, codes, rows, history)

    def codes(self, F: Array, atoms: Array, centre: Array | None) -> Array:  # (n, m)
        """Compute codes of virtual samples of new rows."""
        corr = F @ atoms.T
        return soft_threshold(corr, self.beta1 / 2) if self.threshold_new else corr


def _first_atoms(F: Array, rng: np.random.Generator) -> Array:  # (n, k) -> (k, k)
    """Return k samples, and random directions if fewer of them are not zero."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # random atoms fill the shortage
        sample_atoms = start_atoms("samples", F, F.shape[1], rng)
    random_atoms = rng.standard_normal((F.shape[1] - sample_atoms.shape[0], F.shape[1]))
    random_atoms = as_like(random_atoms, sample_atoms)
    return namespace(sample_atoms).concat([sample_atoms, random_atoms])


def _rows_of_all_classes(
    F: Array,  # (n, k)
    labels: np.ndarray,  # (n,)
    rng: np.random.Generator,
) -> np.ndarray:  # (k,)
    """Draw k samples that are not zero, equally many of each class if it has them."""
    rows, n_classes = rng.permutation(nonzero_rows(F)), int(labels.max()) + 1
    if not n_classes <= F.shape[1] <= len(rows):
        raise ValueError(
            f"atoms with labels start from samples: there must be at least {n_classes}"
            f", one for each class, and at most {len(rows)}, one for each sample that "
            f"is not zero, and virtual samples have {F.shape[1]} entries: change "
            "n_components"
        )
    rank = np.empty(len(rows), dtype=int)  # of a sample among those of its class
    for c in np.unique(labels[rows]):
        is_class = labels[rows] == c
        rank[is_class] = np.arange(is_class.sum())
    return rows[np.argsort(rank, kind="stable")[: F.shape[1]]]


@dataclass(frozen=True)
class KSADSums(Sums):
    """Sums over samples and their codes."""

    cross: Array  # (m, k) QᵀΦ, float64
    l1_norm: float  # ‖Q‖₁
    scatter: Scatter


class CodesThenAtoms(Alternation):
    """K-SAD Algorithm 1, stage 2: codes Q for the atoms Z, then Z for Q.

    Together they minimise ‖Φ − QZ‖² + beta1‖Q‖₁ + beta2 G(Q), eq. (5).
    """

    def __init__(
        self,
        F: Array,  # (n, k) Φ
        labels: np.ndarray,  # (n,)
        atoms: Array,  # (k, k) Z
        beta1: float,
        beta2: float,
        scatter_class: type[Scatter] = Scatter,
    ) -> None:
        self.F, self.labels, self.atoms = F, labels, atoms
        self.beta1, self.beta2, self.scatter_class = beta1, beta2, scatter_class
        self.n_classes = int(labels.max()) + 1
        self.codes = empty(F.shape, like=F)
        self.scatter: Scatter | None = None  # of the codes, before the first None
        self._energy = float(
            sum_rows(lambda rows: double(row_norms(rows)).sum(), F, 8 * F.shape[1])
        )

    def current(self) -> Array:
        return self.atoms

    def step(self, keep: Callable[[], None]) -> dict[str, float]:
        """Lines 10 to 12: Q = T(ΦZᵀ, G(Q)), then Z = UVᵀ for QᵀΦ = UΣVᵀ."""
        if self.scatter is None:  # G is a function of codes, which are there after this
            self.code()
        sums = self.code()
        self.atoms = procrustes(sums.cross, self.atoms)
        return {"objective": self.objective(sums)}

    def code(self) -> KSADSums:
        """Q ← T(ΦZᵀ − ½ beta2 ∇G(Q)), K-SAD Proposition 1, and the sums over Q."""
        slopes = None
        if self.scatter is not None and self.beta2 > 0:
            terms = self.scatter.slope()
            slopes = [as_like(term * (self.beta2 / 2), self.atoms) for term in terms]

        def code_block(row_numbers: Array) -> KSADSums:
            rows = slice(int(row_numbers[0]), int(row_numbers[-1]) + 1)
            F, labels = self.F[rows], self.labels[rows]
            corr = F @ self.atoms.T
            if slopes is not None:
                row_classes = index_like(labels, corr)
                corr -= self.codes[rows] * slopes[0][row_classes][:, None]
                corr += slopes[1][row_classes]
            codes = self.codes[rows] = soft_threshold(corr, self.beta1 / 2)
            return KSADSums(
                cross=double(codes.T @ F),
                l1_norm=float(double(namespace(codes).abs(codes).sum(1)).sum()),
                scatter=self.scatter_class.of(codes, labels, self.n_classes),
            )

        row_numbers = index_like(np.arange(self.F.shape[0]), self.F)
        row_bytes = 4 * self.F.shape[1] * self.F.dtype.itemsize
        sums: KSADSums = sum_rows(code_block, row_numbers, row_bytes)
        self.scatter = sums.scatter
        return sums

    def objective(self, sums: KSADSums) -> float:
        """‖Φ − QZ‖² + beta1‖Q‖₁ + beta2 G(Q) for orthonormal Z, K-SAD eq. (5)."""
        energy = float(sums.scatter.energies.sum())
        error = self._energy - 2 * inner(sums.cross, double(self.atoms)) + energy
        return error + self.beta1 * sums.l1_norm + self.beta2 * sums.scatter.ratio

    def state(self) -> dict[str, Any]:
        return {
            "atoms": self.atoms,
            "scatter": vars(self.scatter),
            "codes": self.codes,
        }

    def resume(self, state: dict[str, Any]) -> None:
        self.codes = fitting(state["codes"], self.codes)
        self.scatter = self.scatter_class(**state["scatter"])
        if check(self.scatter) != {"C": self.n_classes, "k": self.codes.shape[1]}:
            raise ValueError("it has sums over other classes")
        self.atoms = fitting(state["atoms"], self.atoms)


def soft_threshold(values: Array, threshold: float) -> Array:
    """Apply the soft threshold, the proximal map of threshold · ‖·‖₁."""
    xp = namespace(values)
    threshold = min(float(threshold), float(xp.finfo(values.dtype).max))
    return values - xp.clip(values, -threshold, threshold)


class FisherAtoms(BaseEstimator):
    """The atoms that maximise K-SAD's criterion tr(S_w⁻¹S_b) itself.

    There is one fewer than there are classes. Their codes are compared by angle.

    Parameters
    ----------
    shrinkage : float
        Share of the mean eigenvalue of S_w that is added to all.

    Examples
    --------
    >>> from kernlets import KSADClassifier
    >>> model = KSADClassifier("rbf", dictionary="fisher:0.03", n_neighbors=5)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {"shrinkage": [POSITIVE]}

    def __init__(self, shrinkage: float = 0.01) -> None:
        self.shrinkage = shrinkage

    def learn(
        self, F: Array, labels: np.ndarray, rng: np.random.Generator, classifier: Any
    ) -> LearnedCodes:
        """Compute the atoms that separate classes best, and the training codes."""
        start = time.perf_counter()
        scatter = scatter_of_rows(F, labels, int(labels.max()) + 1)
        # The mean of the class means does not depend on the sizes of the classes.
        centre = as_like(scatter.means.mean(0), F)
        atoms, criterion = fisher_directions(F, scatter, self.shrinkage)
        if not criterion > 0:
            raise ValueError(
                "the means of all classes agree in feature space, so that no atom "
                "tells them apart: check X for constant samples, or use "
                "dictionary='orthogonal'"
            )
        seconds = time.perf_counter() - start
        history = {"objective": [1 / criterion], "seconds": [seconds]}
        codes = load_values(codes_of_blocks(self, F, atoms, centre))
        return LearnedCodes(atoms, codes, np.arange(len(labels)), history, centre)

    def codes(self, F: Array, atoms: Array, centre: Array | None) -> Array:  # (n, m)
        """Compute directions of virtual samples as seen from the centre."""
        return _directions((F - centre) @ atoms.T)


def _directions(rows: Array) -> Array:
    """Scale rows to unit norm, except zero rows and rows of a single entry."""
    if rows.shape[1] == 1:
        return rows
    xp, squares = namespace(rows), row_norms(rows)
    return rows / xp.sqrt(xp.where(squares > 0, squares, 1.0))[:, None]


ATOMS = {"orthogonal": OrthogonalAtoms, "fisher": FisherAtoms}


def resolve_atoms(spec: Any) -> OrthogonalAtoms | FisherAtoms:
    """Return the atoms that a name such as ``"fisher:0.1"`` describes, or `spec`."""
    atoms: Any = build("dictionary", spec, ATOMS) if isinstance(spec, str) else spec
    if not isinstance(atoms, (OrthogonalAtoms, FisherAtoms)):
        raise ValueError(
            f"dictionary={spec!r} names no atoms: pass one of {', '.join(ATOMS)}"
        )
    atoms._validate_params()
    return atoms


NAMED["dictionary"] = resolve_atoms


def codes_of_blocks(
    kind: OrthogonalAtoms | FisherAtoms,
    F: Any,  # (n, k)
    atoms: Array,  # (m, k)
    centre: Array | None,  # (k,)
) -> Any:  # (n, m)
    """Compute codes of virtual samples; of those on disk, when they are read."""
    row_bytes = 2 * sum(atoms.shape) * atoms.dtype.itemsize
    return map_rows(lambda block: kind.codes(block, atoms, centre), F, row_bytes)


def count_votes(
    Q: Any,  # (n, k)
    points: Array,  # (N, k)
    labels: np.ndarray,  # (N,) integers from 0
    n_neighbors: int,
) -> Array:  # (n, C)
    """Count the labels among the nearest points of each row of Q, by brute force.

    scikit-learn's neighbours need host memory, but codes may be on a GPU.
    """
    xp, point_labels = namespace(points), index_like(labels, points)
    classes = range(int(labels.max()) + 1)
    factors = xp.concat([points * -2, row_norms(points)[:, None]], axis=1).T

    def votes_of_block(rows: Array) -> Array:
        # One product gives (‖z‖² − 2qᵀz) / scale. ‖q‖² is omitted because it is equal
        # for all points. The scale avoids overflow and does not change the order.
        scale = power_of_two(xp.clip(peaks(rows, axis=1), 1.0, None))
        distances = xp.concat([rows / scale, 1 / scale], axis=1) @ factors
        neighbors = point_labels[smallest(distances, n_neighbors)]
        is_class = [xp.astype(neighbors == c, rows.dtype) for c in classes]
        return xp.stack([xp.sum(votes, axis=1) for votes in is_class], axis=1)

    return map_rows(votes_of_block, Q, 2 * points.shape[0] * Q.dtype.itemsize)


def count_energies(
    Q: Any,  # (n, m)
    points: Array,  # (m, m) codes of the atoms
    labels: np.ndarray,  # (m,) integers from 0
    n_neighbors: int,
) -> Array:  # (n, C)
    """Compute the share of the energy of each row of Q in the atoms of each class.

    It has the arguments of `count_votes`, of which the number of neighbours is not
    used.
    """
    xp = namespace(points)
    is_member = as_like(labels[:, None] == np.arange(int(labels.max()) + 1), points)

    def shares_of_block(rows: Array) -> Array:
        unit_codes = unit_rows(rows @ points.T)
        return xp.square(unit_codes) @ is_member

    return map_rows(shares_of_block, Q, 2 * points.shape[0] * Q.dtype.itemsize)


def distances_from_energies(
    Q: Any, points: Array, labels: np.ndarray, n_neighbors: int
) -> Array:  # (n, C)
    """Compute 1 less the share of the energy in the atoms of each class."""

    def distances_of_block(rows: Array) -> Array:
        return 1 - count_energies(rows, points, labels, n_neighbors)

    return map_rows(distances_of_block, Q, 2 * points.shape[0] * Q.dtype.itemsize)


def class_distances(
    Q: Any,  # (n, k)
    points: Array,  # (N, k)
    labels: np.ndarray,  # (N,) integers from 0
    n_neighbors: int,
) -> Array:  # (n, C)
    """Compute squared distances from classes, the smallest of the one with most votes.

    The distance from a class is that from its j-th nearest point, j = ⌈n_neighbors/2⌉,
    or from its last. Of two classes the one with most of the nearest points is then
    nearer. Of several another one may have most votes, which exchanges its distance
    with the nearest.
    """
    xp, classes = namespace(points), range(int(labels.max()) + 1)
    class_points = [
        points[index_like(np.flatnonzero(labels == c), points)] for c in classes
    ]
    rank = (n_neighbors + 1) // 2

    def distances_of_block(rows: Array) -> Array:
        scale = power_of_two(xp.clip(peaks(rows, axis=1), 1.0, None))
        unit_rows = rows / scale  # so that squares cannot overflow

        def distance(members: Array) -> Array:  # / scale, which changes no ratio
            products = row_norms(members) / scale - 2 * unit_rows @ members.T
            nearest = xp.sort(products, axis=1)[:, min(rank, len(members)) - 1]
            return nearest + row_norms(unit_rows) * scale[:, 0]

        distances = xp.stack([distance(members) for members in class_points], axis=1)
        votes = count_votes(rows, points, labels, n_neighbors)
        return _nearest_first(xp.clip(distances, 0.0, None), xp.argmax(votes, axis=1))

    return map_rows(distances_of_block, Q, 4 * points.shape[0] * Q.dtype.itemsize)


def _nearest_first(distances: Array, winners: Array) -> Array:  # (n, C), (n,)
    """Exchange the distance from the winner of each row with the smallest."""
    xp = namespace(distances)
    class_indices = index_like(np.arange(distances.shape[1]), distances)
    is_winner = winners[:, None] == class_indices
    is_nearest = xp.argmin(distances, axis=1)[:, None] == class_indices
    of_winner = xp.sum(xp.where(is_winner, distances, xp.zeros_like(distances)), axis=1)
    exchanged = xp.where(is_nearest, of_winner[:, None], distances)
    return xp.where(is_winner, xp.min(distances, axis=1)[:, None], exchanged)
