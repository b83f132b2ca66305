"""Numba twin of `masked_omp`: OMP of each row over its observed features."""

from __future__ import annotations

import numpy as np

from ..compiled import jit, part_jit
from .numba import is_in_support, largest_index
from .reference import FAINT, UNUSED

ROUNDING = 4 * float(np.finfo(np.float32).eps)  # relative error of a sum, per term


def masked_omp(atoms, X, observed, width, tol):
    """All samples take one atom per step; a matrix product gives all correlations.

    A step computes the Gram entries of the new atom with the support over the observed
    features, and extends the Cholesky factor of the sample by one row. The matrix
    product only chooses atoms. For float64 it uses residuals of unit norm in float32,
    and atoms that are equally good up to its rounding are compared again in float64.
    """
    n, dtype = len(X), X.dtype
    atoms = np.ascontiguousarray(atoms)
    o, residual = observed.astype(np.float32), X.copy()
    is_float64 = dtype != np.float32
    atoms32 = _as_float32(atoms) if is_float64 else atoms
    residual32 = np.empty(X.shape, np.float32) if is_float64 else residual
    scale = o @ (atoms32 * atoms32).T
    support = np.full((n, width), UNUSED, dtype=np.int32)
    values = np.zeros((n, width), dtype=dtype)
    factor, c = np.zeros((n, width, width), dtype), np.zeros((n, width), dtype)
    error, stop = np.empty(n, dtype), np.empty(n, dtype)
    is_live = np.ones(n, dtype=np.bool_)
    tol = dtype.type(tol)
    _begin(X, observed, scale, tol, error, stop, residual32, is_float64)
    for t in range(width):
        corr = np.matmul(residual32, atoms32.T)
        is_any_live = _step(
            atoms, X, o, scale, corr, corr.view(np.int32), t, residual, residual32,
            is_float64, support, values, factor, c, error, stop, is_live,
        )  # fmt: skip
        if not is_any_live:
            break
    _refuse(support, values, error)
    return support, values, error


def _as_float32(atoms):
    """Convert all atoms to float32 by one common scale, which changes no choice."""
    peak = float(np.abs(atoms).max(initial=0))
    return (atoms / (peak if 0 < peak < np.inf else 1.0)).astype(np.float32)


@jit
def _begin(X, observed, scale, tol, error, stop, residual32, is_float64):
    """Set energies and stopping levels; replace ‖d_o‖² in `scale` by 1/‖d_o‖."""
    (n, p), eps = X.shape, np.finfo(X.dtype).eps
    for i in range(n):
        energy, count = X[i, 0] * 0, 0
        for f in range(p):
            energy += X[i, f] * X[i, f]
            count += observed[i, f]
        error[i] = energy
        stop[i] = max(tol * count / p, 4 * eps * energy)
        if is_float64:
            _normalize_residual(X[i], energy, residual32[i])
        largest = scale[i, 0]
        for a in range(scale.shape[1]):
            largest = max(largest, scale[i, a])
        for a in range(scale.shape[1]):
            is_usable = scale[i, a] > FAINT * largest
            scale[i, a] = 1 / np.sqrt(scale[i, a]) if is_usable else 0


@part_jit
def _normalize_residual(residual, energy, residual32):
    """Write the residual with unit norm to `residual32`."""
    inverse = 1 / np.sqrt(energy) if energy > 0 else energy
    for f in range(len(residual)):
        residual32[f] = residual[f] * inverse


@jit
def _step(
    atoms, X, o, scale, corr, bits, t, residual, residual32,
    is_float64, support, values, factor, c, error, stop, is_live,
):  # fmt: skip
    """Add an atom to each live sample; return whether any was added."""
    p, is_any_live, eps = X.shape[1], False, np.finfo(X.dtype).eps
    magnitude = bits.dtype.type(np.iinfo(bits.dtype).max)  # all bits but the sign
    for i in range(len(X)):
        if not is_live[i]:
            continue
        is_live[i] = error[i] > stop[i] and error[i] < np.inf
        if not is_live[i]:
            continue
        for a in range(corr.shape[1]):
            corr[i, a] *= scale[i, a]
        for s in range(t):
            corr[i, support[i, s]] = 0
        k = largest_index(bits[i], magnitude)
        if is_float64:
            k = _confirm_largest(atoms, residual[i], o[i], corr[i], k)
        atom, L = atoms[k], factor[i]
        energy = _inner(atom, atom, o[i])
        c_t, nu2 = _inner(atom, X[i], o[i]), energy
        for s in range(t):
            value = _inner(atom, atoms[support[i, s]], o[i])
            for u in range(s):
                value -= L[t, u] * L[s, u]
            value /= L[s, s]
            L[t, s] = value
            nu2 -= value * value
            c_t -= value * c[i, s]
        is_dependent = nu2 <= np.sqrt(eps) * energy  # see `least_independent`
        if corr[i, k] == 0 or is_dependent or is_in_support(support[i], t, k):
            is_live[i] = False
            continue
        L[t, t] = np.sqrt(nu2)
        c[i, t], support[i, t] = c_t / L[t, t], k
        _solve(L, c[i], t + 1, values[i])
        for f in range(p):
            residual[i, f] = X[i, f]
        for s in range(t + 1):
            value, atom_s = values[i, s], atoms[support[i, s]]
            for f in range(p):
                residual[i, f] -= value * atom_s[f] * o[i, f]
        squares = error[i] * 0
        for f in range(p):
            squares += residual[i, f] * residual[i, f]
        error[i], is_any_live = squares, True
        if is_float64:
            _normalize_residual(residual[i], squares, residual32[i])
    return is_any_live


@part_jit
def _confirm_largest(atoms, residual, o, corr, k):
    """Choose the best of the atoms that equal atom k up to rounding in float32."""
    floor = abs(corr[k]) - ROUNDING * len(residual)
    largest, best_atom, n_close = residual[0] * 0 - 1, k, 0
    for a in range(len(corr)):
        n_close += abs(corr[a]) >= floor
    if n_close <= 1:
        return k
    for a in range(len(corr)):
        if abs(corr[a]) >= floor and corr[a] != 0:
            product = abs(_inner(atoms[a], residual, o))
            value = product / np.sqrt(_inner(atoms[a], atoms[a], o))
            if value > largest:
                largest, best_atom = value, a
    return best_atom


@jit
def _inner(a, b, o):
    total = a[0] * 0
    for f in range(len(a)):
        total += a[f] * b[f] * o[f]
    return total


@jit
def _solve(L, c, count, values):
    """Solve Lᵀγ = c."""
    for s in range(count - 1, -1, -1):
        value = c[s]
        for u in range(s + 1, count):
            value -= L[u, s] * values[u]
        values[s] = value / L[s, s]


@jit
def _refuse(support, values, error):
    """Set codes that are not finite to empty, with the residual NaN."""
    for i in range(len(error)):
        is_finite = error[i] < np.inf
        for s in range(values.shape[1]):
            is_finite = is_finite and abs(values[i, s]) < np.inf
        if not is_finite:
            support[i], values[i], error[i] = UNUSED, 0, np.nan
