"""Recursive least squares: atoms that follow a stream, sample by sample or by blocks.

The update carries a state from block to block (the matrix C below) and so is no
`AtomUpdate`; `learners/rls.py` keeps the state.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..backend import ops
from ..backend.arrays import diagonal, double, is_torch, move_like, namespace, row_norms
from ..core import Array, SparseCodes

ROWS = 256  # samples per block: the same result as one by one, by matrix products


class Recursion(NamedTuple):
    """Atoms D and C = (Σ wᵢ γᵢγᵢᵀ + prior)⁻¹ over the codes so far, RLS-DLA's state."""

    atoms: Array  # (m, p)
    covariance: Array  # (m, m), float64

    @classmethod
    def start(cls, atoms: Array) -> Recursion:
        """C = I: the first atoms weigh as much as one sample for each of them."""
        eye = move_like(np.eye(atoms.shape[0]), atoms)
        return cls(atoms, eye)

    def after(
        self,
        X: Array,  # (n, p)
        codes: SparseCodes,
        factors: np.ndarray,  # (n,) forgetting factor of each sample
    ) -> Recursion:
        """The state after n samples with given codes, whatever their codes are.

        For all λ = 1 the atoms become (I + ΓᵀΓ)⁻¹(D₀ + ΓᵀX): the least-squares fit,
        with the first atoms as a prior.
        """
        state = self
        for begin in range(0, len(codes), ROWS):
            rows = slice(begin, begin + ROWS)
            part = SparseCodes(codes.indices[rows], codes.values[rows], codes.n_atoms)
            state = state._after_block(X[rows], part, factors[rows])
        return state

    def _after_block(
        self, X: Array, codes: SparseCodes, factors: np.ndarray
    ) -> Recursion:
        """Woodbury's identity for the rank of a block.

        With C' = C/Πλ, samples weighted by w = the λ of those after them, rows of
        Γ̃ and R̃ multiplied by √w, R = X − ΓD, and LLᵀ = I + Γ̃C'Γ̃ᵀ: D grows by
        C'Γ̃ᵀ(LLᵀ)⁻¹R̃, and C is C' − VᵀV with V = L⁻¹Γ̃C'.
        """
        xp = namespace(self.covariance)
        later = np.cumprod(factors[::-1])[::-1]  # λᵢ and all after it
        root = move_like(np.sqrt(np.append(later[1:], 1.0)), X)
        forgotten = _forget(self.covariance, float(later[0]))
        seen = root[:, None] * _times(codes, forgotten)  # (n, m)  Γ̃C'
        spread = root[:, None] * _times(codes, seen.T)  # (n, n)  Γ̃C'Γ̃ᵀ
        eye = move_like(np.eye(len(codes)), X)
        inverse = xp.linalg.inv(xp.linalg.cholesky(eye + spread))
        V = inverse @ seen
        residual = ops.subtract_codes(X, codes.indices, codes.values, self.atoms)
        gain = V.T @ (inverse * root)  # (m, n)
        atoms = self.atoms + xp.astype(gain, X.dtype) @ residual
        covariance = forgotten - V.T @ V
        # an asymmetry of rounding would grow with everything that is forgotten
        return Recursion(atoms, (covariance + covariance.T) / 2)

    def normalized(self) -> Recursion:
        """Atoms of unit norm, C for codes that are scaled to match."""
        xp = namespace(self.atoms)
        norms = xp.sqrt(row_norms(self.atoms))
        norms = xp.where(norms > 0, norms, xp.ones_like(norms))
        scale = 1 / double(norms)
        covariance = self.covariance * (scale[:, None] * scale)
        return Recursion(self.atoms / norms[:, None], covariance)

    def replaced(self, places: Array, atoms: Array) -> Recursion:
        """New atoms in some places, of which nothing is known yet."""
        xp = namespace(atoms)
        weights = xp.asarray(self.atoms, copy=True)
        covariance = xp.asarray(self.covariance, copy=True)
        weights[places] = atoms
        covariance[places, :] = 0.0
        covariance[:, places] = 0.0
        covariance[places, places] = 1.0
        return Recursion(weights, covariance)


def _times(codes: SparseCodes, matrix: Array) -> Array:  # (n, ·)
    """Γ · matrix in float64, with Γ kept sparse on NumPy."""
    if is_torch(matrix):
        return double(codes.toarray()) @ matrix
    return codes.tocsr().astype(np.float64) @ matrix


def _forget(covariance: Array, factor: float) -> Array:
    """C/factor, but no variance is raised above 1, that of the start.

    Without the bound an atom that is out of use for long would grow like factor⁻ᵗ
    (wind-up), and the first sample to use it again would throw it anywhere.
    """
    if factor == 1.0:
        return covariance
    xp = namespace(covariance)
    room = 1 / xp.sqrt(diagonal(covariance))
    scale = xp.clip(room, 1.0, factor**-0.5 if factor > 0 else np.inf)
    return covariance * (scale[:, None] * scale)
