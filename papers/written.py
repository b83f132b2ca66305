"""Methods as their equations read, slow: what published speed-ups are measured against.

The library computes the same numbers with fewer products.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kernlets.classifiers.ksad_atoms import soft_threshold
from kernlets.contracts import SparseCoder, SparseCodes
from kernlets.loops.codes import pack


def exact_kernel_ksvd(
    K: np.ndarray,  # (N, N)
    n_components: int,
    coder: SparseCoder,
    max_iter: int,
    rng: np.random.Generator,
) -> list[float]:
    """Mean squared error after each iteration of kernel AK-SVD, RKDL section II.

    AᵀKA is computed anew in each iteration, and the residual R of the signals that use
    an atom and the product K·a anew for each atom: a = R z, z = Rᵀ K a. Atoms start at
    random and are never replaced.
    """
    A = rng.standard_normal((len(K), n_components)).astype(K.dtype)
    A /= np.sqrt((A * (K @ A)).sum(axis=0))
    energy, errors = np.diag(K), []
    for _ in range(max_iter):
        KA = K @ A
        Z = coder.solve(A.T @ KA, KA, energy).toarray().T  # (m, N)
        for atom in rng.permutation(n_components):
            _improve(K, A, Z, atom)
        KA = K @ A
        explained = 2 * KA.T - A.T @ KA @ Z
        errors.append(float((energy - (explained * Z).sum(axis=0)).mean()))
    return errors


def _improve(
    K: np.ndarray,  # (N, N)
    A: np.ndarray,  # (N, m)
    Z: np.ndarray,  # (m, N)
    atom: int,
) -> None:
    """Update an atom and its coefficients in place."""
    used = np.flatnonzero(Z[atom])
    if len(used) == 0:
        return
    others = Z[:, used]
    others[atom] = 0
    residual = -(A @ others)  # (N, used)
    residual[used, np.arange(len(used))] += 1
    a = residual @ Z[atom, used]
    Ka = K @ a
    norm = np.sqrt(a @ Ka)
    A[:, atom] = a / norm
    Z[atom, used] = residual.T @ (Ka / norm)


def kernel_omp(
    K: np.ndarray,  # (N, N)
    A: np.ndarray,  # (N, m)
    k_z: np.ndarray,  # (N,) kernel values of a signal and the training samples
    n_nonzero_coefs: int,
) -> np.ndarray:  # (m,)
    """The code of one signal, by the two stages of LKDL Table I in each step.

    Atom selection multiplies by K once, least squares by K for all atoms chosen so
    far: nothing is kept from step to step or from signal to signal.
    """
    support: list[int] = []
    gamma = np.zeros(0, K.dtype)
    for _ in range(n_nonzero_coefs):
        scores = np.abs((k_z - K @ (A[:, support] @ gamma)) @ A)
        scores[support] = -1
        support.append(int(scores.argmax()))
        chosen = A[:, support]
        gamma = np.linalg.solve(chosen.T @ (K @ chosen), k_z @ chosen)
    code = np.zeros(A.shape[1], K.dtype)
    code[support] = gamma
    return code


class Fista(SparseCoder):
    """The lasso by accelerated proximal gradient steps, a fixed number of them.

    Two points follow each other with the weights of Beck and Teboulle. `Lasso` has the
    same minimum, by coordinate descent.
    """

    def __init__(self, alpha: float = 0.1, max_iter: int = 100) -> None:
        self.alpha = alpha
        self.max_iter = max_iter

    def solve(self, gram: Any, corr: Any, energy: Any) -> SparseCodes:
        step = 1 / np.linalg.eigvalsh(gram)[-1]
        codes = ahead = np.zeros_like(corr)
        weight = 1.0
        for _ in range(self.max_iter):
            before, codes = (
                codes,
                soft_threshold(ahead - step * (ahead @ gram - corr), step * self.alpha),
            )
            last, weight = weight, (1 + (1 + 4 * weight**2) ** 0.5) / 2
            ahead = codes + (last - 1) / weight * (codes - before)
        return pack(codes, None)
