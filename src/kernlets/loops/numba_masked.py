"""Numba twins of `masked`, which has the formulas."""

from __future__ import annotations

import numpy as np

from .compiled import jit
from .masked import FAINT, HOLD
from .numba_ import _is_in_support, _largest
from .reference import UNUSED

ROUNDING = 4 * float(np.finfo(np.float32).eps)  # relative error of a sum, per term


def masked_omp(
    atoms: np.ndarray, X: np.ndarray, observed: np.ndarray, width: int, tol: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """All samples take one atom per step; a matrix product gives all correlations.

    A step computes the Gram entries of the new atom with the support over the observed
    features, and extends the Cholesky factor of the sample by one row. The matrix
    product only chooses atoms. For float64 it uses residuals of unit norm in float32,
    and atoms that are equally good up to its rounding are compared again in float64.
    """
    n, kind = len(X), X.dtype
    atoms = np.ascontiguousarray(atoms)
    o, residual = observed.astype(np.float32), X.copy()
    is_float64 = kind != np.float32
    atoms32 = _as_float32(atoms) if is_float64 else atoms
    residual32 = np.empty(X.shape, np.float32) if is_float64 else residual
    scale = o @ (atoms32 * atoms32).T
    support = np.full((n, width), UNUSED, dtype=np.int32)
    values = np.zeros((n, width), dtype=kind)
    factor, c = np.zeros((n, width, width), kind), np.zeros((n, width), kind)
    error, stop = np.empty(n, kind), np.empty(n, kind)
    live = np.ones(n, dtype=np.bool_)
    eps = kind.type(np.finfo(kind).eps)
    _begin(X, observed, scale, kind.type(tol), eps, error, stop, residual32, is_float64)
    mask = np.int32(np.iinfo(np.int32).max)
    for t in range(width):
        corr = np.matmul(residual32, atoms32.T)
        any_live = _step(
            atoms, X, o, scale, corr, corr.view(np.int32), mask, eps, t, residual,
            residual32, is_float64, support, values, factor, c, error, stop, live,
        )  # fmt: skip
        if not any_live:
            break
    _refuse(support, values, error)
    return support, values, error


def _as_float32(atoms: np.ndarray) -> np.ndarray:  # (m, p)
    """Convert all atoms to float32 by one common scale, which changes no choice."""
    peak = float(np.abs(atoms).max(initial=0))
    return (atoms / (peak if 0 < peak < np.inf else 1.0)).astype(np.float32)


@jit
def _begin(X, observed, scale, tol, eps, error, stop, residual32, is_float64):
    """Set energies and stopping levels; replace ‖d_o‖² in `scale` by 1/‖d_o‖."""
    n, p = X.shape
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
            usable = scale[i, a] > FAINT * largest
            scale[i, a] = 1 / np.sqrt(scale[i, a]) if usable else 0


@jit
def _normalize_residual(residual, energy, residual32):
    """Write the residual with unit norm to `residual32`."""
    inverse = 1 / np.sqrt(energy) if energy > 0 else energy
    for f in range(len(residual)):
        residual32[f] = residual[f] * inverse


@jit
def _step(
    atoms, X, o, scale, corr, bits, mask, eps, t, residual,
    residual32, is_float64, support, values, factor, c, error, stop, live,
):  # fmt: skip
    """Add an atom to each live sample; return whether any was added."""
    p, any_live = X.shape[1], False
    for i in range(len(X)):
        if not live[i]:
            continue
        live[i] = error[i] > stop[i] and error[i] < np.inf
        if not live[i]:
            continue
        for a in range(corr.shape[1]):
            corr[i, a] *= scale[i, a]
        for s in range(t):
            corr[i, support[i, s]] = 0
        k = _largest(bits[i], mask)
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
        is_dependent = nu2 <= np.sqrt(eps) * energy  # see `reference.least_independent`
        if corr[i, k] == 0 or is_dependent or _is_in_support(support[i], t, k):
            live[i] = False
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
        error[i], any_live = squares, True
        if is_float64:
            _normalize_residual(residual[i], squares, residual32[i])
    return any_live


@jit
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
        finite = error[i] < np.inf
        for s in range(values.shape[1]):
            finite = finite and abs(values[i, s]) < np.inf
        if not finite:
            support[i], values[i], error[i] = UNUSED, 0, np.nan


def masked_ksvd_sweep(
    residual: np.ndarray,
    observed: np.ndarray,
    atoms: np.ndarray,
    indices: np.ndarray,
    values: np.ndarray,
    order: np.ndarray,
) -> None:
    """One K-SVD pass over the observed entries, atom by atom."""
    users = np.argsort(indices, axis=None, kind="stable")
    starts = np.searchsorted(indices.ravel()[users], np.arange(len(atoms) + 1))
    _sweep(residual, observed, atoms, values, order, users, starts, indices.shape[1])


@jit
def _sweep(residual, observed, atoms, values, order, users, starts, width):
    p = atoms.shape[1]
    atom, power = np.empty(p, atoms.dtype), np.empty(p, atoms.dtype)
    # a number of an unset array may be NaN, and NaN · 0 too
    zero = np.zeros(1, atoms.dtype)[0]
    for j in order:
        if starts[j] == starts[j + 1]:
            continue
        hold = zero
        for u in range(starts[j], starts[j + 1]):
            i, w = users[u] // width, users[u] % width
            hold += values[i, w] * values[i, w]
        hold *= HOLD
        for f in range(p):
            atom[f], power[f] = hold * atoms[j, f], hold
        for u in range(starts[j], starts[j + 1]):
            i, w = users[u] // width, users[u] % width
            g = values[i, w]
            for f in range(p):
                if observed[i, f]:
                    residual[i, f] += g * atoms[j, f]
                    atom[f] += g * residual[i, f]
                    power[f] += g * g
        for f in range(p):
            atom[f] /= power[f]
        norm2 = zero
        for f in range(p):  # a separate loop: a sum beside a write rounds by addresses
            norm2 += atom[f] * atom[f]
        is_nonzero = norm2 > 0
        for f in range(p):
            if is_nonzero:
                atoms[j, f] = atom[f] / np.sqrt(norm2)
        for u in range(starts[j], starts[j + 1]):
            i, w = users[u] // width, users[u] % width
            if is_nonzero:
                values[i, w] = _coefficient(residual[i], atoms[j], observed[i])
            g = values[i, w]
            for f in range(p):
                if observed[i, f]:
                    residual[i, f] -= g * atoms[j, f]


@jit
def _coefficient(error, atom, observed):
    """Σ E d / Σ d² over the observed entries, 0 if d is 0 there."""
    product, norm2 = atom[0] * 0, atom[0] * 0
    for f in range(len(atom)):
        if observed[f]:
            product += error[f] * atom[f]
            norm2 += atom[f] * atom[f]
    return product / norm2 if norm2 > 0 else norm2
