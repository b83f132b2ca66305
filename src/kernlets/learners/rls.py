"""`RLSDictionary` learns atoms from a stream by recursive least squares."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import numpy as np

from ..coders import encode
from ..coders.encoding import CodeSummary, fill_by_codes, summarize_codes
from ..contracts import Array, SparseCodes
from ..data.block_loop import apply_rows
from ..data.check import Containers
from ..data.missing import has_missing, split_mask
from ..data.weights import Weights
from ..loops.codes import codes_times
from ..loops.table import subtract_codes
from ..numerics.arrays import cholesky_or_none, diagonal, double, move_like, namespace
from ..numerics.scaling import lengths, power_of_two, typical_length
from ..schema import Declared, Floats, Number
from .schedule import total_weights
from .stream_learner import StreamLearner

ROWS = 256  # samples per block; the result is the same as sample by sample
MAX_PRODUCT = 1e8  # of γCγᵀ: above it I + Γ̃C'Γ̃ᵀ loses digits of I


class RLSDictionary(StreamLearner):
    """RLS-DLA: every sample updates all atoms by recursive least squares.

    Skretting and Engan (2010): with the code γ of a sample x, C = (Σ λ… γγᵀ)⁻¹ and the
    residual r = x − Dᵀγ, the atoms change by Cγrᵀ/(λ + γᵀCγ), and C by a rank-one
    update. All samples of a mini-batch are coded with the same atoms; their updates,
    which follow one another, are computed by matrix products (as in LKDL, section
    IV-E). With ``schedule="batch_size=1"`` this is the published algorithm.

    With λ = 1 and given codes the atoms are the least-squares solution over all samples
    seen, with the first atoms as a prior that weighs as much as one sample (of the
    first mini-batch, to a factor of two).

    Parameters
    ----------
    n_components : int, optional
        Number of atoms. Default: as in `KSVD`.
    n_nonzero_coefs, coder
        As in `KSVD`.
    max_iter : int
        Number of passes over X.
    init : {"samples", "kmeans", "svd", "normal"} or array of shape (m, p)
        The first atoms.
    schedule : str or Schedule, optional
        The size of mini-batches and the forgetting factor λ; e.g.
        ``Schedule(batch_size=100, forgetting=Forgetting(0.99, "linear", 50_000))`` for
        λ from 0.99 up to 1. Each atom should be used many times within 1 / (1 − λ)
        samples. An atom that is not used does not change. See `Schedule`.
    random_state, sparse_output
        As in `KSVD`; an iteration is a pass over X.

    Attributes
    ----------
    components_ : array (m, p)
        The atoms, one per row, with unit norm.
    dictionary_ : ExplicitDictionary
        The atoms as a dictionary.
    coder_ : SparseCoder
        The pursuit in use.
    covariance_ : array (m, m), float64
        The matrix C.
    prior_ : float
        The diagonal entry of C for an atom that no sample has used yet.
    n_samples_seen_ : int
        Number of samples learned from, in all calls.
    uses_ : array (m,)
        Number of recent samples that use each atom, to find unused atoms.
    history_, n_iter_
        As in `OnlineDictionary`.

    Examples
    --------
    >>> from kernlets import NystroemMap, RLSDictionary, datasets
    >>> X = datasets.load("digits").X_train
    >>> virtual = NystroemMap("poly:2", n_landmarks=100, random_state=0).fit(X)
    >>> learner = RLSDictionary(50, 4, random_state=0)
    >>> for start in range(0, 800, 200):
    ...     learner = learner.partial_fit(virtual.transform(X[start : start + 200]))
    >>> learner.n_samples_seen_
    800
    """

    _declared: ClassVar[Declared] = {
        "covariance_": Floats("m", "m", like="float64"),
        "prior_": Number(least=np.finfo(float).tiny),
    }
    prior_: float

    @property
    def _containers(self) -> Containers:
        return "disk"  # rows must be read in their order

    def _begin(self) -> None:
        self._set_state(Recursion.start(self.dictionary_.atoms))

    def _learn_batch(
        self, batch: Array, factors: np.ndarray, weights: Weights = None
    ) -> CodeSummary:
        def learn(X: Array) -> CodeSummary:
            if self.n_samples_seen_ == 0:
                observed = split_mask(X).rows if has_missing(X) else X
                prior = _prior(observed, weights)
                self._set_state(Recursion.start(self.dictionary_.atoms, prior))
            codes = encode(self.dictionary_, self.coder_, X)
            X = fill_by_codes(self.dictionary_, codes, X)
            state = self._state().update(X, codes, factors, weights)
            self._set_state(state.with_unit_atoms(self.dictionary_.atoms))
            summary = summarize_codes(X, codes, weights)
            return summary._replace(uses=np.floor(summary.uses).astype(np.int64))

        return apply_rows(learn, batch, slice(0, batch.shape[0]))

    def _replace_atoms(self, indices: Array, atoms: Array) -> None:
        self._set_state(self._state().with_new_atoms(indices, atoms))

    def _state(self) -> Recursion:
        return Recursion(self.dictionary_.atoms, self.covariance_, self.prior_)

    def _set_state(self, state: Recursion) -> None:
        self.dictionary_ = self.dictionary_.with_weights(state.atoms)
        self.covariance_ = state.covariance
        self.prior_ = state.prior


def _prior(X: Array, weights: Weights) -> float:
    """Return 1 over the energy of a typical sample, up to a factor below 2.

    It is a power of two, so that atoms learned from 2X are the same, bit by bit.
    """
    typical_norm = typical_length(X, weights)
    return float(power_of_two(np.float64(typical_norm) * 2**0.5)) ** -2


class Recursion(NamedTuple):
    """The atoms D and C = (Σ wᵢ γᵢγᵢᵀ + I / prior)⁻¹, the state of RLS-DLA."""

    atoms: Array  # (m, p)
    covariance: Array  # (m, m), float64
    prior: float = 1.0  # variance of an atom before any sample uses it

    @classmethod
    def start(cls, atoms: Array, prior: float = 1.0) -> Recursion:
        """Begin with C = prior · I; prior is 1 over the energy of a typical sample."""
        eye = move_like(prior * np.eye(atoms.shape[0]), atoms)
        return cls(atoms, eye, prior)

    def update(
        self,
        X: Array,  # (n, p)
        codes: SparseCodes,
        factors: np.ndarray,  # (n,) forgetting factor of each sample
        weights: np.ndarray | None = None,  # (n,) how often each sample counts
    ) -> Recursion:
        """Return the state after n samples with these codes.

        From the start, for all λ = 1, the atoms become (I + ΓᵀΓ)⁻¹(D₀ + ΓᵀX), with I
        divided by the prior: the least-squares fit, with the first atoms as a prior.
        """
        state = self
        sample_weights = np.ones(len(codes))
        if weights is not None:
            sample_weights = total_weights(factors, weights)
        for begin in range(0, len(codes), ROWS):
            rows = slice(begin, begin + ROWS)
            block_codes = SparseCodes(
                codes.indices[rows], codes.values[rows], codes.n_atoms
            )
            state = state._update_by_block(
                X[rows], block_codes, factors[rows], sample_weights[rows]
            )
        return state

    def _update_by_block(
        self,
        X: Array,
        codes: SparseCodes,
        factors: np.ndarray,
        sample_weights: np.ndarray,
    ) -> Recursion:
        """Update by Woodbury's identity, whose rank is the number of samples.

        C' is C/Πλ. The weight w of a sample is its own times the λ of all samples after
        it; rows of Γ̃ and R̃ are those of Γ and R = X − ΓD, multiplied by √w. With
        M = Γ̃C'Γ̃ᵀ, LLᵀ = I + M and V = L⁻¹Γ̃C', the change of D is C'Γ̃ᵀ(LLᵀ)⁻¹R̃,
        and the next C is C' − VᵀV.
        """
        xp = namespace(self.covariance)
        lambda_products = np.cumprod(factors[::-1])[::-1]  # Πⱼ λⱼ, j ≥ i
        sqrt_w = move_like(
            np.sqrt(sample_weights * np.append(lambda_products[1:], 1.0)), X
        )
        C = _forget(self.covariance, float(lambda_products[0]), self.prior)  # C'
        codes_C = sqrt_w[:, None] * codes_times(codes, C)  # (n, m)  Γ̃C'
        M = sqrt_w[:, None] * codes_times(codes, codes_C.T)  # (n, n)  Γ̃C'Γ̃ᵀ
        L = None
        if float(xp.max(xp.abs(diagonal(M)))) < MAX_PRODUCT:
            L = cholesky_or_none(move_like(np.eye(len(codes)), X) + M)
        if L is None:  # M is too large, or rounding has left C' not positive
            gain, covariance = _gain_by_roots(C, double(codes.toarray()), sqrt_w)
        else:
            inverse_L = xp.linalg.inv(L)
            V = inverse_L @ codes_C
            gain, covariance = V.T @ (inverse_L * sqrt_w), C - V.T @ V
        residual = subtract_codes(X, codes.indices, codes.values, self.atoms)
        atoms = self.atoms + xp.astype(gain, X.dtype) @ residual
        # forgetting would amplify an asymmetry due to rounding
        return Recursion(atoms, (covariance + covariance.T) / 2, self.prior)

    def with_unit_atoms(self, former: Array) -> Recursion:
        """Scale the atoms to unit norm, and C to the codes for these atoms.

        An atom that has become zero is replaced by that in `former`.
        """
        xp = namespace(self.atoms)
        norms = lengths(self.atoms)[:, None]
        atoms = xp.where(norms > 0, self.atoms, former)
        norms = xp.where(norms > 0, norms, xp.ones_like(norms))
        scale = 1 / double(norms)
        covariance = self.covariance * (scale * scale.T)
        return Recursion(atoms / norms, covariance, self.prior)

    def with_new_atoms(self, indices: Array, atoms: Array) -> Recursion:
        """Replace the atoms at these indices; the new ones have the first variance."""
        xp = namespace(atoms)
        all_atoms = xp.asarray(self.atoms, copy=True)
        covariance = xp.asarray(self.covariance, copy=True)
        all_atoms[indices] = atoms
        covariance[indices, :] = 0.0
        covariance[:, indices] = 0.0
        covariance[indices, indices] = self.prior
        return Recursion(all_atoms, covariance, self.prior)


def _gain_by_roots(
    C: Array,  # (m, m)  C'
    codes: Array,  # (n, m)  Γ
    sqrt_w: Array,  # (n,)  √w
) -> tuple[Array, Array]:  # (m, n), (m, m)
    """Compute C'Γ̃ᵀ(I + Γ̃C'Γ̃ᵀ)⁻¹√w and the next C, for codes of any size.

    With C' = SSᵀ and Γ̃S = UΣVᵀ they are SV Σ(I + Σ²)⁻¹Uᵀ√w and SV(I + Σ²)⁻¹VᵀSᵀ.
    This is slower than Woodbury's identity, but without differences C stays positive.
    """
    xp = namespace(C)
    eigenvalues, eigenvectors = xp.linalg.eigh(C)
    S = eigenvectors * xp.sqrt(xp.clip(eigenvalues, 0.0, None))
    U, s, Vh = xp.linalg.svd(sqrt_w[:, None] * (codes @ S), full_matrices=True)
    SV, rank = S @ Vh.T, len(s)
    gain = (SV[:, :rank] * (s / (1 + s * s))) @ U[:, :rank].T
    shrinkage = xp.concat([1 / (1 + s * s), xp.ones_like(eigenvalues[rank:])])
    return gain * sqrt_w, (SV * shrinkage) @ SV.T


def _forget(covariance: Array, factor: float, prior: float) -> Array:
    """Compute C/factor, but raise no variance above the first one, `prior`.

    Without the bound the variance of an atom that is not used would grow like
    factor⁻ᵗ (wind-up), and the next sample to use the atom would move it arbitrarily.
    """
    if factor == 1.0:
        return covariance
    xp = namespace(covariance)
    variances = diagonal(covariance)
    largest_scale = prior**0.5 / xp.sqrt(xp.where(variances > 0, variances, prior))
    scale = xp.clip(largest_scale, 1.0, factor**-0.5 if factor > 0 else np.inf)
    return covariance * (scale[:, None] * scale)
