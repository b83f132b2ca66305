"""torch twins of the hot operations, batched over samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from types import ModuleType

import torch
from torch import Tensor

from .reference import ALIKE, ALTERNATIONS, NOISE, UNUSED, least_independent

FEW_CODES = 10**6  # entries up to which the lasso of a GPU's rows runs on the host

def omp(
    gram: Tensor,  # (m, m)
    corr: Tensor,  # (n, m)
    energy: Tensor,  # (n,)
    width: int,
    tol: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """OMP of all samples in step, by partial Cholesky of the Gram matrix.

    See `kernlets.hot.numba_.omp` for the recursion. A sample that has stopped takes
    steps of length zero; a NaN among the correlations is the largest of all.
    """
    if corr.is_cuda and corr.dtype == torch.float32:
        fused = _fused()
        if fused is not None and fused.fits(corr.shape[1], width):
            return fused.omp(gram, corr, energy, width, tol)
    (n, m), eps = corr.shape, torch.finfo(corr.dtype).eps
    indices = torch.full((n, width), UNUSED, dtype=torch.int64, device=corr.device)
    rows = corr.new_zeros((n, width, m))
    parts, factor = corr.new_zeros((n, width)), corr.new_zeros((n, width, width))
    left, error = corr.clone(), energy.clone()
    stop = (4 * eps * energy).clamp(min=tol)
    live = torch.ones(n, dtype=torch.bool, device=corr.device)
    sample = torch.arange(n, device=corr.device)
    for t in range(width):
        k = left.abs().argmax(dim=1)
        seen = rows[sample, :t, k]  # (n, t)
        norm = gram[k, k] - (seen * seen).sum(1)
        value = left[sample, k]
        dependent = norm <= least_independent(eps) * gram[k, k]
        live &= (error > stop) & ~dependent & (value != 0)
        if not live.any():
            break
        inverse = torch.where(live, torch.where(live, norm, 1).rsqrt(), 0)
        new = gram[k] - torch.einsum("nt,ntm->nm", seen, rows[:, :t])
        rows[:, t] = new * inverse[:, None]
        parts[:, t] = value * inverse
        factor[:, t, :t], factor[:, t, t] = seen, torch.where(live, norm.sqrt(), 1)
        left -= parts[:, t, None] * rows[:, t]
        left.scatter_(1, k[:, None], 0)
        left.scatter_(1, indices[:, :t].clamp(min=0), 0)
        gain = parts[:, t] ** 2
        error = torch.where(gain < torch.inf, (error - gain).clamp(min=0), torch.nan)
        indices[:, t] = torch.where(live, k, UNUSED)
    return _finite(indices, _coefficients(factor, parts, indices), error)


def _finite(
    indices: Tensor, values: Tensor, error: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Empty codes and the residual NaN where numbers are not finite."""
    bad = ~(error.isfinite() & values.isfinite().all(dim=1))
    indices = indices.masked_fill(bad[:, None], UNUSED)
    values = values.masked_fill(bad[:, None], 0)
    return indices, values, error.masked_fill(bad, torch.nan)


@lru_cache(maxsize=1)
def _fused() -> ModuleType | None:
    """The Triton twins, where Triton is installed."""
    try:
        from . import triton_
    except ImportError:
        return None
    return triton_


def _coefficients(factor: Tensor, parts: Tensor, indices: Tensor) -> Tensor:
    """Solve Lᵀγ = parts, with the identity in the slots that are not used."""
    used = indices >= 0
    both = used[:, :, None] & used[:, None, :]
    identity = torch.eye(parts.shape[1], dtype=parts.dtype, device=parts.device)
    lower = torch.where(both, factor, identity)
    solved = torch.linalg.solve_triangular(lower.mT, parts[:, :, None], upper=True)
    return torch.where(used, solved[:, :, 0], 0)


def lasso(
    gram: Tensor,
    corr: Tensor,
    alpha: float,
    positive: bool,
    max_iter: int,
    tol: float,
) -> tuple[Tensor, Tensor]:
    """Coordinate descent: by the compiled loop in host memory, in step on a GPU.

    On a GPU each atom of a pass is a few calls, however many samples there are. Where
    these are not many, the loop on the host has long ended by then.
    """
    if not corr.is_cuda or corr.numel() < FEW_CODES:
        from .numba_ import lasso as compiled

        host = gram.detach().cpu().numpy(), corr.detach().cpu().numpy()
        codes, converged = compiled(*host, alpha, positive, max_iter, tol)
        results = torch.from_numpy(codes), torch.from_numpy(converged)
        return results[0].to(corr.device), results[1].to(corr.device)
    return _lasso_in_step(gram, corr, alpha, positive, max_iter, tol)


def _lasso_in_step(
    gram: Tensor,
    corr: Tensor,
    alpha: float,
    positive: bool,
    max_iter: int,
    tol: float,
) -> tuple[Tensor, Tensor]:
    """Coordinate descent, one atom at a time for all samples at once.

    A few samples may need a thousand passes, and a pass is a dozen calls for each
    atom. So samples that rest leave, and between full passes only atoms in use are
    visited. Each sample takes the steps that it would take alone.
    """
    shrink = _one_sided if positive else torch.nn.functional.softshrink
    everything = (gram.diagonal() > 0).nonzero()[:, 0].tolist()  # no atom that is 0
    codes, rows = torch.zeros_like(corr), torch.arange(len(corr), device=corr.device)
    converged = torch.zeros_like(rows, dtype=torch.bool)
    state = corr.clone(), codes.clone(), tol * corr.abs().amax(dim=1), rows * 0
    while len(rows) and max_iter > 0:
        left, code, stop, done = state
        visit = torch.ones_like(code)
        moved = _lasso_pass(gram, left, code, everything, visit, alpha, shrink)
        done += 1
        moving, visit = moved > stop, (code != 0).to(code.dtype)
        resting = ~moving
        active = visit[moving].any(dim=0).nonzero()[:, 0].tolist()
        moving = moving & (done < max_iter)
        while bool(moving.any()):
            visit = visit * moving[:, None]
            moved = _lasso_pass(gram, left, code, active, visit, alpha, shrink)
            done += moving
            moving = moving & (moved > stop) & (done < max_iter)
        codes[rows], converged[rows] = code, resting
        going = (~resting & (done < max_iter)).nonzero()[:, 0]
        rows, state = rows[going], [part[going] for part in (left, code, stop, done)]
    known = codes.isfinite().all(dim=1) & corr.isfinite().all(dim=1)
    return codes.masked_fill(~known[:, None], torch.nan), converged


def _lasso_pass(
    gram: Tensor,
    left: Tensor,  # (n, m) changed in place
    code: Tensor,  # (n, m) changed in place
    atoms: list[int],
    visit: Tensor,  # (n, m) 1 where a sample visits an atom, else 0
    alpha: float,
    shrink: Callable[[Tensor, float], Tensor],
) -> Tensor:  # (n,)
    """One pass over some atoms, for all samples at once; the largest moves."""
    moved = torch.zeros_like(left[:, 0])
    for j in atoms:
        row, old = gram[j], code[:, j]
        delta = shrink(left[:, j] + row[j] * old, alpha) / row[j] - old
        delta = delta * visit[:, j]
        code[:, j] += delta
        left.addr_(delta, row, alpha=-1)
        moved = torch.maximum(moved, delta.abs())
    return moved


def _one_sided(value: Tensor, alpha: float) -> Tensor:
    return (value - alpha).clamp(min=0)


def l1_distances(X: Tensor, Y: Tensor) -> Tensor:
    """Σ |xᵢ − yⱼ|."""
    return torch.cdist(X, Y, p=1.0)


def fwht(X: Tensor) -> None:
    """X ← X H as two small matrix products, for H = H_a ⊗ H_b with ab = d."""
    n, d = X.shape
    bits = d.bit_length() - 1
    left, right = _hadamard(bits // 2, X), _hadamard(bits - bits // 2, X)
    X.copy_((left @ (X.reshape(n, len(left), len(right)) @ right)).reshape(n, d))


def _hadamard(bits: int, like: Tensor) -> Tensor:
    matrix = like.new_ones((1, 1))
    step = like.new_tensor([[1, 1], [1, -1]])
    for _ in range(bits):
        matrix = torch.kron(matrix, step)
    return matrix


def subtract_codes(X: Tensor, indices: Tensor, values: Tensor, atoms: Tensor) -> Tensor:
    """The residuals X − Γ·atoms."""
    dense = X.new_zeros((X.shape[0], atoms.shape[0]))
    dense.scatter_add_(1, indices.clamp(min=0), values)
    return X - dense @ atoms


def ksvd_sweep(
    residual: Tensor,
    atoms: Tensor,
    indices: Tensor,
    values: Tensor,
    order: Tensor,
    exact: bool,
    positive: bool = False,
    positive_atoms: bool = False,
) -> None:
    """K-SVD sweep, atom by atom; in place in residual, atoms and values."""
    signed = not (positive or positive_atoms)
    steps = ALTERNATIONS if exact and not signed else 1
    for j, rows, slots in _users(indices, atoms.shape[0], order):
        coefs = values[rows, slots]
        error = residual[rows] + torch.outer(coefs, atoms[j])
        for _ in range(steps):
            if exact and signed:
                atom = _leading_direction(error, atoms[j])
            else:
                atom = _scaled(coefs) @ error
            atom = _scaled(atom.clamp(min=0) if positive_atoms else atom)
            norm = atom.norm()
            if norm == 0:
                break
            atoms[j] = atom / norm
            coefs = error @ atoms[j]
            coefs = coefs.clamp(min=0) if positive else coefs
            values[rows, slots] = coefs
            residual[rows] = error - torch.outer(coefs, atoms[j])


def _users(
    indices: Tensor, m: int, order: Tensor
) -> Iterator[tuple[int, Tensor, Tensor]]:
    """Each used atom in order, with the rows and slots where it is used."""
    width = indices.shape[1]
    places, where = users_by_atom(indices, m)
    starts = where.tolist()
    for j in order.tolist():
        users = places[starts[j] : starts[j + 1]]
        if len(users):
            yield j, users // width, users % width


def users_by_atom(indices: Tensor, m: int) -> tuple[Tensor, Tensor]:
    """Slots ordered by their atoms, and where each atom's begin, (m + 1,)."""
    flat = indices.reshape(-1)
    atoms = torch.arange(m + 1, device=flat.device)
    ordered, places = torch.sort(flat, stable=True)
    return places, torch.searchsorted(ordered, atoms)


def gram_sweep(
    matrix: Tensor,
    coefs: Tensor,
    products: Tensor,
    gram: Tensor,
    indices: Tensor,
    values: Tensor,
    order: Tensor,
    exact: bool,
    positive: bool = False,
    weights: Tensor | None = None,
) -> None:
    """K-SVD sweep in feature space; see the reference."""
    eps = torch.finfo(matrix.dtype).eps
    for j, rows, slots in _users(indices, gram.shape[0], order):
        others = values.new_zeros((len(rows), gram.shape[0]))
        others.scatter_add_(1, indices[rows].clamp(min=0), values[rows])
        others[:, j] = 0
        use = values[rows, slots]
        own = torch.ones_like(use) if weights is None else weights[rows]
        if exact and not positive:
            use = _leading_use(matrix, products, gram, rows, others, use, own)
        else:
            use = own * use
        use = _scaled(use)
        mixed = use @ others
        atom_products = use @ matrix[rows] - mixed @ products
        atom_coefs = -mixed @ coefs
        atom_coefs[rows] += use
        inner = products[:, rows] @ use - gram @ mixed
        energy = use @ atom_products[rows] - mixed @ inner
        energies = matrix[rows, rows]
        together = use.abs() @ energies.clamp(min=0).sqrt()
        noise = ALIKE * len(use) ** 0.5 * together**2 + NOISE * (use**2 @ energies)
        if not energy > eps * noise:
            continue
        scale = energy.rsqrt()
        products[j], coefs[j] = scale * atom_products, scale * atom_coefs
        gram[j], gram[:, j] = scale * inner, scale * inner
        gram[j, j] = 1
        fresh = products[j, rows] - others @ gram[j]
        values[rows, slots] = fresh.clamp(min=0) if positive else fresh


def _leading_use(
    matrix: Tensor,
    products: Tensor,
    gram: Tensor,
    rows: Tensor,
    others: Tensor,
    like: Tensor,
    weights: Tensor,
) -> Tensor:
    """Leading eigenvector of the users' inner products, on the side of `like`."""
    shared, root = others @ products[:, rows], weights.sqrt()
    inner = matrix[rows][:, rows] - shared - shared.T + others @ gram @ others.T
    vector = root * _leading_vector(inner * torch.outer(root, root))
    return vector if _scaled(vector) @ _scaled(like) >= 0 else -vector


def _leading_direction(error: Tensor, like: Tensor) -> Tensor:
    """Leading right singular vector, on the side of `like`, whatever its length."""
    error = _scaled(error)
    small = error @ error.T if error.shape[0] < error.shape[1] else error.T @ error
    vector = _leading_vector(small)
    if error.shape[0] < error.shape[1]:
        vector = vector @ error
    return vector if vector @ like >= 0 else -vector


def _leading_vector(matrix: Tensor) -> Tensor:  # (n, n) -> (n,)
    """The eigenvector of the largest eigenvalue, found in float64."""
    if not matrix.isfinite().all():  # solvers would not return
        return matrix.new_full((len(matrix),), torch.nan)
    return torch.linalg.eigh(matrix.double())[1][:, -1].to(matrix.dtype)


def _scaled(array: Tensor) -> Tensor:
    """The array divided by a power of two, see `reference.scaled`."""
    peak = array.abs().amax()
    unit = peak / (2 * peak.frexp().mantissa)
    return array / torch.where((peak > 0) & peak.isfinite(), unit, 1)
