"""Recursive least squares: atoms that follow a stream, sample by sample or by blocks.

The update carries a state from block to block (the matrix C below), so it is not an
`AtomUpdate`; `learners/rls.py` keeps the state.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..backend import ops
from ..backend.arrays import cholesky_or_none, diagonal, double, move_like, namespace
from ..backend.codes import codes_times
from ..backend.scale import lengths
from ..core import Array, SparseCodes
from .forgetting import total_weights

ROWS = 256  # samples per block; the result is the same as sample by sample
STEEP = 1e8  # above this γCγᵀ, digits of the identity added to it are lost


class Recursion(NamedTuple):
    """Atoms D and C = (Σ wᵢ γᵢγᵢᵀ + prior)⁻¹ over the codes so far, RLS-DLA's state."""

    atoms: Array  # (m, p)
    covariance: Array  # (m, m), float64
    prior: float = 1.0  # variance of an atom about which nothing is known

    @classmethod
    def start(cls, atoms: Array, prior: float = 1.0) -> Recursion:
        """C = prior · I; prior is 1 over the energy of a typical sample."""
        eye = move_like(prior * np.eye(atoms.shape[0]), atoms)
        return cls(atoms, eye, prior)

    def after(
        self,
        X: Array,  # (n, p)
        codes: SparseCodes,
        factors: np.ndarray,  # (n,) forgetting factor of each sample
        weights: np.ndarray | None = None,  # (n,) how often each sample counts
    ) -> Recursion:
        """The state after n samples with any given codes.

        From the start, for all λ = 1, the atoms become (I + ΓᵀΓ)⁻¹(D₀ + ΓᵀX), with I
        divided by the prior: the least-squares fit, with the first atoms as a prior.
        """
        state = self
        often = np.ones(len(codes))
        if weights is not None:
            often = total_weights(factors, weights)
        for begin in range(0, len(codes), ROWS):
            rows = slice(begin, begin + ROWS)
            part = SparseCodes(codes.indices[rows], codes.values[rows], codes.n_atoms)
            state = state._after_block(X[rows], part, factors[rows], often[rows])
        return state

    def _after_block(
        self, X: Array, codes: SparseCodes, factors: np.ndarray, often: np.ndarray
    ) -> Recursion:
        """Woodbury's identity for the rank of a block.

        With C' = C/Πλ, samples weighted by w = the λ of those after them, rows of
        Γ̃ and R̃ multiplied by √w, R = X − ΓD, and LLᵀ = I + Γ̃C'Γ̃ᵀ: D grows by
        C'Γ̃ᵀ(LLᵀ)⁻¹R̃, and C is C' − VᵀV with V = L⁻¹Γ̃C'.
        """
        xp = namespace(self.covariance)
        later = np.cumprod(factors[::-1])[::-1]  # λᵢ and all after it
        root = move_like(np.sqrt(often * np.append(later[1:], 1.0)), X)
        forgotten = _forget(self.covariance, float(later[0]), self.prior)
        seen = root[:, None] * codes_times(codes, forgotten)  # (n, m)  Γ̃C'
        spread = root[:, None] * codes_times(codes, seen.T)  # (n, n)  Γ̃C'Γ̃ᵀ
        lower = None
        if float(xp.max(xp.abs(diagonal(spread)))) < STEEP:
            lower = cholesky_or_none(move_like(np.eye(len(codes)), X) + spread)
        if lower is None:  # or differences of large numbers have left C' not positive
            gain, covariance = _by_roots(forgotten, double(codes.toarray()), root)
        else:
            inverse = xp.linalg.inv(lower)
            V = inverse @ seen
            gain, covariance = V.T @ (inverse * root), forgotten - V.T @ V
        residual = ops.subtract_codes(X, codes.indices, codes.values, self.atoms)
        atoms = self.atoms + xp.astype(gain, X.dtype) @ residual
        # forgetting would amplify an asymmetry due to rounding
        return Recursion(atoms, (covariance + covariance.T) / 2, self.prior)

    def normalized(self, former: Array) -> Recursion:
        """The state with atoms of unit norm and C for codes scaled to match.

        An atom that the samples cancel out becomes what it was before.
        """
        xp = namespace(self.atoms)
        norms = lengths(self.atoms)[:, None]
        atoms = xp.where(norms > 0, self.atoms, former)
        norms = xp.where(norms > 0, norms, xp.ones_like(norms))
        scale = 1 / double(norms)
        covariance = self.covariance * (scale * scale.T)
        return Recursion(atoms / norms, covariance, self.prior)

    def replaced(self, places: Array, atoms: Array) -> Recursion:
        """The state with new atoms at some places, about which nothing is known yet."""
        xp = namespace(atoms)
        weights = xp.asarray(self.atoms, copy=True)
        covariance = xp.asarray(self.covariance, copy=True)
        weights[places] = atoms
        covariance[places, :] = 0.0
        covariance[:, places] = 0.0
        covariance[places, places] = self.prior
        return Recursion(weights, covariance, self.prior)


def _by_roots(
    covariance: Array,  # (m, m)  C'
    codes: Array,  # (n, m)  Γ
    root: Array,  # (n,)  √w
) -> tuple[Array, Array]:  # (m, n), (m, m)
    """C'Γ̃ᵀ(I + Γ̃C'Γ̃ᵀ)⁻¹√w and the next C, for codes of any size.

    With C' = SSᵀ and Γ̃S = UΣVᵀ they are SV Σ(I + Σ²)⁻¹Uᵀ and SV(I + Σ²)⁻¹VᵀSᵀ, where
    nothing is subtracted. This is slower, but C stays positive.
    """
    xp = namespace(covariance)
    values, vectors = xp.linalg.eigh(covariance)
    S = vectors * xp.sqrt(xp.clip(values, 0.0, None))
    U, s, Vh = xp.linalg.svd(root[:, None] * (codes @ S), full_matrices=True)
    turned, rank = S @ Vh.T, len(s)
    gain = (turned[:, :rank] * (s / (1 + s * s))) @ U[:, :rank].T
    left = xp.concat([1 / (1 + s * s), xp.ones_like(values[rank:])])
    return gain * root, (turned * left) @ turned.T


def _forget(covariance: Array, factor: float, prior: float) -> Array:
    """C/factor, but no variance is raised above that of the start.

    Without the bound the variance of an atom that is not used would grow like
    factor⁻ᵗ (wind-up), and the next sample to use the atom would move it arbitrarily.
    """
    if factor == 1.0:
        return covariance
    xp = namespace(covariance)
    known = diagonal(covariance)
    room = prior**0.5 / xp.sqrt(xp.where(known > 0, known, prior))
    scale = xp.clip(room, 1.0, factor**-0.5 if factor > 0 else np.inf)
    return covariance * (scale[:, None] * scale)
