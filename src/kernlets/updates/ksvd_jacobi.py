"""The K-SVD update of LKDL's authors: exact fits of all atoms to the same residuals."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..coders.encoding import worst_rows
from ..contracts import Array, AtomUpdate, Coded, Dictionary, Step
from ..data.missing import has_missing
from ..dictionaries import GramDictionary
from ..loops.codes import weighted_uses
from ..numerics.arrays import (
    as_like,
    double,
    eps,
    index_like,
    namespace,
    to_numpy,
)
from .ksvd import weighted_sum
from .mod import normalize
from .replace import LIMITS, rounding_errors

ROUNDING = 10  # times the rounding of the energies: less is no residual

COMPLETE_ROWS = (
    "update='ksvd-jacobi' needs rows without missing values: use update='ksvd', or "
    "fill them in first, e.g. with kernlets.DictionaryImputer"
)


class JacobiKSVDUpdate(AtomUpdate):
    """Fits all atoms to the same residuals, those of the codes before the update.

    With E the residual, without atom d, of the samples that use d, the new atom is the
    leading right singular vector of E, as in ``KSVDUpdate(exact=True)``. Here E has the
    other atoms and codes as they were at the start of the pass (Jacobi), and not as
    the pass has left them (Gauss-Seidel). That is how the program of LKDL's authors
    does kernel K-SVD; it is less accurate than `KSVDUpdate`, and the error may rise.
    The error of a step is that of its codes before the atoms move.

    Parameters
    ----------
    min_uses : int
        Atoms that are used less often are replaced by the worst represented samples,
        each of them once.
    max_coherence : float
        So are atoms that are more coherent with an atom updated before them.
    """

    needs = "codes"
    may_raise_error = True

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = LIMITS

    def __init__(self, min_uses: int = 1, max_coherence: float = 0.98) -> None:
        self.min_uses = min_uses
        self.max_coherence = max_coherence

    def step(
        self, dictionary: Dictionary, coded: Coded, rng: np.random.Generator
    ) -> Step:
        if has_missing(coded.X):
            raise ValueError(COMPLETE_ROWS)
        errors = to_numpy(double(coded.codes.residual))
        worst_samples = _worst_samples(dictionary, coded, errors)
        uses = weighted_uses(coded.codes, coded.weights)
        fit = _RankOneFit(dictionary, coded)
        updated: list[_Atom] = []
        for j in range(dictionary.n_atoms):
            atom = fit.atom(j)
            if uses[j] < self.min_uses or self._is_known(atom, updated):
                atom = next(worst_samples, atom)
            updated.append(atom)
        weights = namespace(coded.codes.values).stack([a.weights for a in updated])
        moved = normalize(dictionary.with_weights(weights), dictionary)
        return Step(moved, weighted_sum(errors, coded.weights))

    def _is_known(self, atom: _Atom, updated: list[_Atom]) -> bool:
        """Whether an atom is nearly one of those that were updated before it."""
        return any(
            abs(float(other.dual @ atom.weights)) > self.max_coherence
            for other in updated
        )


class _Atom(NamedTuple):
    """An atom of unit norm, as the coordinates w and as the dual b with ⟨d, x⟩ = b·x.

    The two are equal for an explicit dictionary; for a kernel dictionary over the
    samples they are coefficients a and products K a.
    """

    weights: Array
    dual: Array


class _RankOneFit:
    """The leading singular vector of the frozen residuals of each atom's users."""

    def __init__(self, dictionary: Dictionary, coded: Coded) -> None:
        self.dictionary, self.X, self.sample_weights = (
            dictionary,
            coded.X,
            coded.weights,
        )
        self.codes, self.gram = coded.codes.toarray(), dictionary.gram()
        self.dual = dictionary.dual()

    def atom(self, j: int) -> _Atom:
        """Return d = Σᵢ vᵢ eᵢ / √λ with the leading eigenpair of ⟨eᵢ, eᵢ'⟩ over users.

        eᵢ = φ(xᵢ) − Σ_{k≠j} γᵢₖ dₖ. Without users, or if all eᵢ are 0, it is the atom
        before the pass.
        """
        xp = namespace(self.codes)
        old_atom = _Atom(self.dictionary.weights[j], self.dual[j])
        users = np.flatnonzero(to_numpy(self.codes[:, j] != 0))
        if len(users) == 0:
            return old_atom
        samples = self.X[index_like(users, self.X)]
        others = xp.asarray(self.codes[index_like(users, self.codes)], copy=True)
        old_values = xp.asarray(others[:, j], copy=True)
        others[:, j] = 0
        coordinates = self.dictionary.coordinates(samples)
        duals = _duals(self.dictionary, samples)
        cross = others @ self.dictionary.correlate(samples).T
        inner = coordinates @ duals.T - cross - cross.T + others @ self.gram @ others.T
        root_weights = xp.ones_like(old_values)
        if self.sample_weights is not None:
            root_weights = as_like(np.sqrt(self.sample_weights[users]), old_values)
        weighted = double(inner * (root_weights[:, None] * root_weights))
        eigenvalues, eigenvectors = xp.linalg.eigh(weighted)
        largest = float(eigenvalues[-1])
        energies = self.dictionary.energy(samples) * root_weights**2
        if not largest > max(ROUNDING * eps(inner) * float(energies.sum()), 0.0):
            return old_atom
        v = root_weights * as_like(eigenvectors[:, -1], old_values)
        v = v * (-1.0 if float(v @ old_values) < 0 else 1.0) / largest**0.5
        mixing = v @ others
        return _Atom(
            v @ coordinates - mixing @ self.dictionary.weights,
            v @ duals - mixing @ self.dual,
        )


def _duals(dictionary: Dictionary, X: Array) -> Array:  # (n, r)
    """Return b for each sample, with ⟨x, x'⟩ = b·coordinates(x')."""
    if isinstance(dictionary, GramDictionary):
        return dictionary.matrix[X]
    return dictionary.coordinates(X)


def _worst_samples(
    dictionary: Dictionary, coded: Coded, errors: np.ndarray
) -> Iterator[_Atom]:
    """Yield samples as atoms, the worst represented first, each of them once."""
    energies = to_numpy(double(dictionary.energy(coded.X)))
    is_usable = errors > rounding_errors(energies, dictionary.weights)
    if coded.weights is not None:
        is_usable &= coded.weights > 0
    for row in worst_rows(errors, len(errors)):
        if is_usable[row]:
            sample, norm = coded.X[row : row + 1], float(energies[row]) ** 0.5
            yield _Atom(
                dictionary.coordinates(sample)[0] / norm,
                _duals(dictionary, sample)[0] / norm,
            )
