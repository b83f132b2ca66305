"""Numba twins of `masked`; see there for what is computed."""

from __future__ import annotations

import numpy as np

from .masked import FAINT, HOLD
from .numba_ import _chosen, _jit, _largest
from .reference import UNUSED

ROUNDING = 4 * float(np.finfo(np.float32).eps)  # of a sum, for each of its terms

def masked_omp(
    atoms: np.ndarray, X: np.ndarray, known: np.ndarray, width: int, tol: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """All samples in step: a matrix product for the correlations, then supports only.

    A step computes the Gram entries of the new atom with those chosen before, over
    what was observed, and extends the Cholesky factor of the sample by one row. The
    products only choose atoms. In float64 they are those of residuals of unit norm in
    float32, and atoms that are as good up to its rounding are compared again.
    """
    n, kind = len(X), X.dtype
    atoms = np.ascontiguousarray(atoms)
    seen, left = known.astype(np.float32), X.copy()
    coarse = kind != np.float32
    small = _single(atoms) if coarse else atoms
    shown = np.empty(X.shape, np.float32) if coarse else left
    scale = seen @ (small * small).T
    support = np.full((n, width), UNUSED, dtype=np.int32)
    values = np.zeros((n, width), dtype=kind)
    factor, parts = np.zeros((n, width, width), kind), np.zeros((n, width), kind)
    error, stop = np.empty(n, kind), np.empty(n, kind)
    live = np.ones(n, dtype=np.bool_)
    eps = kind.type(np.finfo(kind).eps)
    _begin(X, known, scale, kind.type(tol), eps, error, stop, shown, coarse)
    mask = np.int32(np.iinfo(np.int32).max)
    for t in range(width):
        corr = np.matmul(shown, small.T)
        going = _step(
            atoms, X, seen, scale, corr, corr.view(np.int32), mask, eps, t, left,
            shown, coarse, support, values, factor, parts, error, stop, live,
        )  # fmt: skip
        if not going:
            break
    _refuse(support, values, error)
    return support, values, error


def _single(atoms: np.ndarray) -> np.ndarray:  # (m, p)
    """All atoms in float32, by one scale, which changes no choice."""
    top = float(np.abs(atoms).max(initial=0))
    return (atoms / (top if 0 < top < np.inf else 1.0)).astype(np.float32)


@_jit
def _begin(X, known, scale, tol, eps, error, stop, shown, coarse):
    """Energies, levels to stop at, and 1/‖d_o‖ in place of ‖d_o‖²."""
    n, p = X.shape
    for i in range(n):
        energy, count = X[i, 0] * 0, 0
        for f in range(p):
            energy += X[i, f] * X[i, f]
            count += known[i, f]
        error[i] = energy
        stop[i] = max(tol * count / p, 4 * eps * energy)
        if coarse:
            _show(X[i], energy, shown[i])
        top = scale[i, 0]
        for a in range(scale.shape[1]):
            top = max(top, scale[i, a])
        for a in range(scale.shape[1]):
            usable = scale[i, a] > FAINT * top
            scale[i, a] = 1 / np.sqrt(scale[i, a]) if usable else 0


@_jit
def _show(left, energy, shown):
    """The residual with unit norm, in the type of `shown`."""
    scale = 1 / np.sqrt(energy) if energy > 0 else energy
    for f in range(len(left)):
        shown[f] = left[f] * scale


@_jit
def _step(
    atoms, X, seen, scale, corr, bits, mask, eps, t, left,
    shown, coarse, support, values, factor, parts, error, stop, live,
):  # fmt: skip
    """One more atom for each sample that goes on; whether there is one."""
    p, going = X.shape[1], False
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
        if coarse:
            k = _confirmed(atoms, left[i], seen[i], corr[i], k)
        atom, row = atoms[k], factor[i]
        own = _inner(atom, atom, seen[i])
        part, norm = _inner(atom, X[i], seen[i]), own
        for s in range(t):
            value = _inner(atom, atoms[support[i, s]], seen[i])
            for u in range(s):
                value -= row[t, u] * row[s, u]
            value /= row[s, s]
            row[t, s] = value
            norm -= value * value
            part -= value * parts[i, s]
        dependent = norm <= np.sqrt(eps) * own  # see `reference.least_independent`
        if corr[i, k] == 0 or dependent or _chosen(support[i], t, k):
            live[i] = False
            continue
        row[t, t] = np.sqrt(norm)
        parts[i, t], support[i, t] = part / row[t, t], k
        _solve(row, parts[i], t + 1, values[i])
        for f in range(p):
            left[i, f] = X[i, f]
        for s in range(t + 1):
            value, chosen = values[i, s], atoms[support[i, s]]
            for f in range(p):
                left[i, f] -= value * chosen[f] * seen[i, f]
        total = error[i] * 0
        for f in range(p):
            total += left[i, f] * left[i, f]
        error[i], going = total, True
        if coarse:
            _show(left[i], total, shown[i])
    return going


@_jit
def _confirmed(atoms, left, seen, corr, k):
    """The best of the atoms that are as good as atom k up to rounding in float32."""
    floor = abs(corr[k]) - ROUNDING * len(left)
    best, found, rivals = left[0] * 0 - 1, k, 0
    for a in range(len(corr)):
        rivals += abs(corr[a]) >= floor
    if rivals <= 1:
        return k
    for a in range(len(corr)):
        if abs(corr[a]) >= floor and corr[a] != 0:
            along = abs(_inner(atoms[a], left, seen))
            value = along / np.sqrt(_inner(atoms[a], atoms[a], seen))
            if value > best:
                best, found = value, a
    return found


@_jit
def _inner(a, b, seen):
    total = a[0] * 0
    for f in range(len(a)):
        total += a[f] * b[f] * seen[f]
    return total


@_jit
def _solve(factor, parts, count, values):
    """Lᵀγ = parts."""
    for s in range(count - 1, -1, -1):
        value = parts[s]
        for u in range(s + 1, count):
            value -= factor[u, s] * values[u]
        values[s] = value / factor[s, s]


@_jit
def _refuse(support, values, error):
    """Empty codes and the residual NaN where numbers are not finite."""
    for i in range(len(error)):
        finite = error[i] < np.inf
        for s in range(values.shape[1]):
            finite = finite and abs(values[i, s]) < np.inf
        if not finite:
            support[i], values[i], error[i] = UNUSED, 0, np.nan


def masked_ksvd_sweep(
    residual: np.ndarray,
    known: np.ndarray,
    atoms: np.ndarray,
    indices: np.ndarray,
    values: np.ndarray,
    order: np.ndarray,
) -> None:
    """One K-SVD pass over what was observed, atom by atom."""
    users = np.argsort(indices, axis=None, kind="stable")
    starts = np.searchsorted(indices.ravel()[users], np.arange(len(atoms) + 1))
    _sweep(residual, known, atoms, values, order, users, starts, indices.shape[1])


@_jit
def _sweep(residual, known, atoms, values, order, users, starts, width):
    p = atoms.shape[1]
    atom, power = np.empty(p, atoms.dtype), np.empty(p, atoms.dtype)
    zero = np.zeros(1, atoms.dtype)[0]  # what is not set yet may be NaN, as is NaN · 0
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
                if known[i, f]:
                    residual[i, f] += g * atoms[j, f]
                    atom[f] += g * residual[i, f]
                    power[f] += g * g
        for f in range(p):
            atom[f] /= power[f]
        norm = zero
        for f in range(p):  # apart: a sum beside a write rounds by the addresses
            norm += atom[f] * atom[f]
        moves = norm > 0
        for f in range(p):
            if moves:
                atoms[j, f] = atom[f] / np.sqrt(norm)
        for u in range(starts[j], starts[j + 1]):
            i, w = users[u] // width, users[u] % width
            if moves:
                values[i, w] = _coefficient(residual[i], atoms[j], known[i])
            g = values[i, w]
            for f in range(p):
                if known[i, f]:
                    residual[i, f] -= g * atoms[j, f]


@_jit
def _coefficient(error, atom, known):
    """Σ E d / Σ d² over what was observed, 0 where that is nothing of the atom."""
    along, share = atom[0] * 0, atom[0] * 0
    for f in range(len(atom)):
        if known[f]:
            along += error[f] * atom[f]
            share += atom[f] * atom[f]
    return along / share if share > 0 else share
