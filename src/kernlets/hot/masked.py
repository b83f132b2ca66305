"""Operations on rows of which only a part was observed: the specification.

Their fast twins are in `numba_masked` and `torch_masked`.
"""

from __future__ import annotations

import numpy as np

from .reference import omp

FAINT = 0.01  # atoms with less of the largest observed energy of any would explode
HOLD = 0.01  # pull of an entry of an atom to where it was, as a share of its users


def inverse_norms(energy: np.ndarray) -> np.ndarray:  # (m,)
    """1/‖d_o‖, and 0 for atoms of which next to nothing was observed."""
    usable = energy > FAINT * energy.max(initial=0)
    return np.where(usable, 1 / np.sqrt(np.where(usable, energy, 1)), 0)


@np.errstate(all="ignore")
def masked_omp(
    atoms: np.ndarray,  # (m, p)
    X: np.ndarray,  # (n, p) zero where it is not known
    known: np.ndarray,  # (n, p) booleans
    width: int,
    tol: float,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """`omp` of each sample over what was observed of it.

    The atoms are cut to the observed features and scaled to unit norm, and coefficients
    scaled back. So the atom with the largest |⟨d_o, r_o⟩|/‖d_o‖ is chosen, and the
    coefficients are least squares over the observed entries. The tolerance is for all
    p features, and |o|/p of it for the |o| that were observed.
    """
    found: tuple[list[np.ndarray], ...] = [], [], []
    for x, seen in zip(X, known, strict=True):
        scale = inverse_norms((atoms[:, seen] ** 2).sum(axis=1))
        unit = atoms[:, seen] * scale[:, None]
        corr, energy = unit @ x[seen], x[seen] @ x[seen]
        level = tol * seen.mean()
        code = omp(unit @ unit.T, corr[None], np.array([energy]), width, level)
        code[1][...] *= scale[code[0]]  # 0 in slots that are not used
        for whole, part in zip(found, code, strict=True):
            whole.append(part)
    indices, values, residual = map(np.concatenate, found)
    return indices, values, residual


@np.errstate(all="ignore")
def masked_ksvd_sweep(
    residual: np.ndarray,  # (n, p) zero where it is not known, changed in place
    known: np.ndarray,  # (n, p) booleans
    atoms: np.ndarray,  # (m, p) changed in place
    indices: np.ndarray,  # (n, width)
    values: np.ndarray,  # (n, width) changed in place
    order: np.ndarray,  # (m,)
) -> None:
    """One K-SVD pass over what was observed: rank-one fits with weights 0 and 1.

    With E the error of the users without atom d, and g their coefficients, first each
    entry d_f = Σᵢ oᵢf gᵢ Eᵢf / Σᵢ oᵢf gᵢ², then gᵢ = Σ_f oᵢf Eᵢf d_f / Σ_f oᵢf d_f².
    Neither raises the error. An entry is held a little to where it was, and stays
    there if none of the users was observed in it.
    """
    for j in order:
        rows, slots = np.nonzero(indices == j)
        if len(rows) == 0:
            continue
        seen, coefs = known[rows], values[rows, slots]
        error = residual[rows] + np.outer(coefs, atoms[j]) * seen
        hold = HOLD * (coefs @ coefs)
        atom = (coefs @ error + hold * atoms[j]) / ((coefs * coefs) @ seen + hold)
        norm = np.sqrt(atom @ atom)
        if not norm > 0:
            continue
        atoms[j] = atom / norm
        share = seen @ (atoms[j] * atoms[j])
        values[rows, slots] = np.where(share > 0, error @ atoms[j] / share, 0)
        residual[rows] = error - np.outer(values[rows, slots], atoms[j]) * seen
