"""Operations on rows with missing values in plain NumPy: the specification.

Their fast twins are in `numba_masked` and `torch_masked`.
"""

from __future__ import annotations

import numpy as np

from .reference import omp

FAINT = 0.01  # atoms with less than this share of the largest ‖d_o‖² are not used
HOLD = 0.01  # weight of an entry's old value, as a share of ‖g‖²


def inverse_norms(energy: np.ndarray) -> np.ndarray:  # (m,)
    """1/‖d_o‖, and 0 for atoms that are nearly 0 in the observed features."""
    usable = energy > FAINT * energy.max(initial=0)
    return np.where(usable, 1 / np.sqrt(np.where(usable, energy, 1)), 0)


@np.errstate(all="ignore")
def masked_omp(
    atoms: np.ndarray,  # (m, p)
    X: np.ndarray,  # (n, p) zero where it is missing
    observed: np.ndarray,  # (n, p) booleans
    width: int,
    tol: float,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """`omp` of each sample over its observed features o.

    The atoms are cut to the observed features and scaled to unit norm, and coefficients
    scaled back. So the atom with the largest |⟨d_o, r_o⟩|/‖d_o‖ is chosen, and the
    coefficients are least squares over the observed entries. The tolerance is for all
    p features, and |o|/p of it for the |o| that were observed.
    """
    all_codes: tuple[list[np.ndarray], ...] = [], [], []
    for x, o in zip(X, observed, strict=True):
        inverse = inverse_norms((atoms[:, o] ** 2).sum(axis=1))
        D_o = atoms[:, o] * inverse[:, None]
        corr, energy = D_o @ x[o], x[o] @ x[o]
        level = tol * o.mean()
        code = omp(D_o @ D_o.T, corr[None], np.array([energy]), width, level)
        code[1][...] *= inverse[code[0]]  # values of unused slots are 0
        for blocks, block in zip(all_codes, code, strict=True):
            blocks.append(block)
    indices, values, residual = map(np.concatenate, all_codes)
    return indices, values, residual


@np.errstate(all="ignore")
def masked_ksvd_sweep(
    residual: np.ndarray,  # (n, p) zero where X is missing, changed in place
    observed: np.ndarray,  # (n, p) booleans
    atoms: np.ndarray,  # (m, p) changed in place
    indices: np.ndarray,  # (n, width)
    values: np.ndarray,  # (n, width) changed in place
    order: np.ndarray,  # (m,)
) -> None:
    """One K-SVD pass over the observed entries: rank-one fits with weights 0 and 1.

    With E the error of the users without atom d, and g their coefficients, first each
    entry d_f = Σᵢ oᵢf gᵢ Eᵢf / Σᵢ oᵢf gᵢ², then gᵢ = Σ_f oᵢf Eᵢf d_f / Σ_f oᵢf d_f².
    Neither raises the error. The old value of an entry has a small weight, `HOLD`; the
    entry keeps it if it is missing in all users.
    """
    for j in order:
        rows, slots = np.nonzero(indices == j)
        if len(rows) == 0:
            continue
        o, coefs = observed[rows], values[rows, slots]
        error = residual[rows] + np.outer(coefs, atoms[j]) * o
        hold = HOLD * (coefs @ coefs)
        atom = (coefs @ error + hold * atoms[j]) / ((coefs * coefs) @ o + hold)
        norm = np.sqrt(atom @ atom)
        if not norm > 0:
            continue
        atoms[j] = atom / norm
        norm2 = o @ (atoms[j] * atoms[j])
        values[rows, slots] = np.where(norm2 > 0, error @ atoms[j] / norm2, 0)
        residual[rows] = error - np.outer(values[rows, slots], atoms[j]) * o
