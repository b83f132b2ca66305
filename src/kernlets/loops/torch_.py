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

    See `kernlets.loops.numba_.omp` for the recursion. A sample that has stopped takes
    steps of length zero; a NaN among the correlations is the largest of all.
    """
    if corr.is_cuda and corr.dtype == torch.float32:
        triton_ops = _triton_module()
        if triton_ops is not None and triton_ops.fits(corr.shape[1], width):
            return triton_ops.omp(gram, corr, energy, width, tol)
    (n, m), eps = corr.shape, torch.finfo(corr.dtype).eps
    indices = torch.full((n, width), UNUSED, dtype=torch.int64, device=corr.device)
    V = corr.new_zeros((n, width, m))
    c, L = corr.new_zeros((n, width)), corr.new_zeros((n, width, width))
    corr_residual, error = corr.clone(), energy.clone()
    stop = (4 * eps * energy).clamp(min=tol)
    is_live = torch.ones(n, dtype=torch.bool, device=corr.device)
    sample = torch.arange(n, device=corr.device)
    for t in range(width):
        k = corr_residual.abs().argmax(dim=1)
        V_k = V[sample, :t, k]  # (n, t)
        nu2 = gram[k, k] - (V_k * V_k).sum(1)
        alpha_k = corr_residual[sample, k]
        is_dependent = nu2 <= least_independent(eps) * gram[k, k]
        is_live &= (error > stop) & ~is_dependent & (alpha_k != 0)
        if not is_live.any():
            break
        inverse_nu = torch.where(is_live, torch.where(is_live, nu2, 1).rsqrt(), 0)
        v = gram[k] - torch.einsum("nt,ntm->nm", V_k, V[:, :t])
        V[:, t] = v * inverse_nu[:, None]
        c[:, t] = alpha_k * inverse_nu
        L[:, t, :t], L[:, t, t] = V_k, torch.where(is_live, nu2.sqrt(), 1)
        corr_residual -= c[:, t, None] * V[:, t]
        corr_residual.scatter_(1, k[:, None], 0)
        corr_residual.scatter_(1, indices[:, :t].clamp(min=0), 0)
        energy_drop = c[:, t] ** 2
        error = torch.where(
            energy_drop < torch.inf, (error - energy_drop).clamp(min=0), torch.nan
        )
        indices[:, t] = torch.where(is_live, k, UNUSED)
    return _clear_unbounded(indices, _coefficients(L, c, indices), error)


def _clear_unbounded(
    indices: Tensor, values: Tensor, error: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Replace what is not finite by empty codes with the residual NaN."""
    is_bad = ~(error.isfinite() & values.isfinite().all(dim=1))
    indices = indices.masked_fill(is_bad[:, None], UNUSED)
    values = values.masked_fill(is_bad[:, None], 0)
    return indices, values, error.masked_fill(is_bad, torch.nan)


@lru_cache(maxsize=1)
def _triton_module() -> ModuleType | None:
    """The Triton twins, where Triton is installed."""
    try:
        from . import triton_
    except ImportError:
        return None
    return triton_


def _coefficients(L: Tensor, c: Tensor, indices: Tensor) -> Tensor:
    """Solve Lᵀγ = c, with the identity in the slots that are not used."""
    is_used = indices >= 0
    are_used = is_used[:, :, None] & is_used[:, None, :]
    identity = torch.eye(c.shape[1], dtype=c.dtype, device=c.device)
    factors = torch.where(are_used, L, identity)
    solution = torch.linalg.solve_triangular(factors.mT, c[:, :, None], upper=True)
    return torch.where(is_used, solution[:, :, 0], 0)


def lasso(
    gram: Tensor,
    corr: Tensor,
    alpha: float,
    positive: bool,
    max_iter: int,
    tol: float,
) -> tuple[Tensor, Tensor]:
    """Coordinate descent: by the compiled loop in host memory, in step on a GPU.

    On a GPU each atom of a pass is a few calls, however many samples there are. The
    loop on the host is faster where there are few samples.
    """
    if not corr.is_cuda or corr.numel() < FEW_CODES:
        from .numba_ import lasso as numba_lasso

        host_arrays = gram.detach().cpu().numpy(), corr.detach().cpu().numpy()
        codes, converged = numba_lasso(*host_arrays, alpha, positive, max_iter, tol)
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
    atom. So samples that have converged leave the loop, and only atoms in use are
    visited between full passes. Each sample takes the steps that it would take alone.
    """
    shrink = _one_sided if positive else torch.nn.functional.softshrink
    all_atoms = (gram.diagonal() > 0).nonzero()[:, 0].tolist()  # no atom that is 0
    codes, rows = torch.zeros_like(corr), torch.arange(len(corr), device=corr.device)
    converged = torch.zeros_like(rows, dtype=torch.bool)
    state = corr.clone(), codes.clone(), tol * corr.abs().amax(dim=1), rows * 0
    while len(rows) and max_iter > 0:
        corr_residual, code, tolerance, n_passes = state
        visits = torch.ones_like(code)
        moves = _lasso_pass(gram, corr_residual, code, all_atoms, visits, alpha, shrink)
        n_passes += 1
        is_moving, visits = moves > tolerance, (code != 0).to(code.dtype)
        has_converged = ~is_moving
        active_atoms = visits[is_moving].any(dim=0).nonzero()[:, 0].tolist()
        is_moving = is_moving & (n_passes < max_iter)
        while bool(is_moving.any()):
            visits = visits * is_moving[:, None]
            moves = _lasso_pass(
                gram, corr_residual, code, active_atoms, visits, alpha, shrink
            )
            n_passes += is_moving
            is_moving = is_moving & (moves > tolerance) & (n_passes < max_iter)
        codes[rows], converged[rows] = code, has_converged
        continuing = (~has_converged & (n_passes < max_iter)).nonzero()[:, 0]
        rows, state = (
            rows[continuing],
            [
                values[continuing]
                for values in (corr_residual, code, tolerance, n_passes)
            ],
        )
    is_finite = codes.isfinite().all(dim=1) & corr.isfinite().all(dim=1)
    return codes.masked_fill(~is_finite[:, None], torch.nan), converged


def _lasso_pass(
    gram: Tensor,
    corr_residual: Tensor,  # (n, m) changed in place
    code: Tensor,  # (n, m) changed in place
    atoms: list[int],
    visits: Tensor,  # (n, m) 1 where a sample visits an atom, else 0
    alpha: float,
    shrink: Callable[[Tensor, float], Tensor],
) -> Tensor:  # (n,)
    """One pass over some atoms, for all samples at once; the largest moves."""
    largest_moves = torch.zeros_like(corr_residual[:, 0])
    for j in atoms:
        gram_j, old_coefs = gram[j], code[:, j]
        delta = (
            shrink(corr_residual[:, j] + gram_j[j] * old_coefs, alpha) / gram_j[j]
            - old_coefs
        )
        delta = delta * visits[:, j]
        code[:, j] += delta
        corr_residual.addr_(delta, gram_j, alpha=-1)
        largest_moves = torch.maximum(largest_moves, delta.abs())
    return largest_moves


def _one_sided(value: Tensor, alpha: float) -> Tensor:
    return (value - alpha).clamp(min=0)


def l1_distances(X: Tensor, Y: Tensor) -> Tensor:
    """Σ |xᵢ − yⱼ|."""
    return torch.cdist(X, Y, p=1.0)


def fwht(X: Tensor) -> None:
    """X ← X H as two small matrix products, for H = H_a ⊗ H_b with ab = d."""
    n, d = X.shape
    bits = d.bit_length() - 1
    H_a, H_b = _hadamard(bits // 2, X), _hadamard(bits - bits // 2, X)
    X.copy_((H_a @ (X.reshape(n, len(H_a), len(H_b)) @ H_b)).reshape(n, d))


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
    """K-SVD sweep, atom by atom; it changes residual, atoms and values in place."""
    is_signed = not (positive or positive_atoms)
    steps = ALTERNATIONS if exact and not is_signed else 1
    for j, rows, slots in _rows_by_atom(indices, atoms.shape[0], order):
        coefs = values[rows, slots]
        error = residual[rows] + torch.outer(coefs, atoms[j])
        for _ in range(steps):
            if exact and is_signed:
                atom = _leading_direction(error, atoms[j])
            else:
                atom = _rescale(coefs) @ error
            atom = _rescale(atom.clamp(min=0) if positive_atoms else atom)
            norm = atom.norm()
            if norm == 0:
                break
            atoms[j] = atom / norm
            coefs = error @ atoms[j]
            coefs = coefs.clamp(min=0) if positive else coefs
            values[rows, slots] = coefs
            residual[rows] = error - torch.outer(coefs, atoms[j])


def _rows_by_atom(
    indices: Tensor, m: int, order: Tensor
) -> Iterator[tuple[int, Tensor, Tensor]]:
    """Yield each used atom in order, with the rows and slots in which it is used."""
    width = indices.shape[1]
    slots, bounds = users_by_atom(indices, m)
    starts = bounds.tolist()
    for j in order.tolist():
        users = slots[starts[j] : starts[j + 1]]
        if len(users):
            yield j, users // width, users % width


def users_by_atom(indices: Tensor, m: int) -> tuple[Tensor, Tensor]:
    """Slots ordered by their atoms, and the first slot of each atom, (m + 1,)."""
    flat = indices.reshape(-1)
    atoms = torch.arange(m + 1, device=flat.device)
    ordered, slots = torch.sort(flat, stable=True)
    return slots, torch.searchsorted(ordered, atoms)


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
    for j, rows, slots in _rows_by_atom(indices, gram.shape[0], order):
        other_codes = values.new_zeros((len(rows), gram.shape[0]))
        other_codes.scatter_add_(1, indices[rows].clamp(min=0), values[rows])
        other_codes[:, j] = 0
        g = values[rows, slots]
        sample_weights = torch.ones_like(g) if weights is None else weights[rows]
        if exact and not positive:
            g = _leading_coefs(
                matrix, products, gram, rows, other_codes, g, sample_weights
            )
        else:
            g = sample_weights * g
        g = _rescale(g)
        mixing_j = g @ other_codes
        atom_products = g @ matrix[rows] - mixing_j @ products
        atom_coefs = -mixing_j @ coefs
        atom_coefs[rows] += g
        inner = products[:, rows] @ g - gram @ mixing_j
        energy = g @ atom_products[rows] - mixing_j @ inner
        energies = matrix[rows, rows]
        length_sum = g.abs() @ energies.clamp(min=0).sqrt()
        noise = ALIKE * len(g) ** 0.5 * length_sum**2 + NOISE * (g**2 @ energies)
        if not energy > eps * noise:
            continue
        inverse_norm = energy.rsqrt()
        products[j], coefs[j] = inverse_norm * atom_products, inverse_norm * atom_coefs
        gram[j], gram[:, j] = inverse_norm * inner, inverse_norm * inner
        gram[j, j] = 1
        new_coefs = products[j, rows] - other_codes @ gram[j]
        values[rows, slots] = new_coefs.clamp(min=0) if positive else new_coefs


def _leading_coefs(
    matrix: Tensor,
    products: Tensor,
    gram: Tensor,
    rows: Tensor,
    other_codes: Tensor,
    old_g: Tensor,
    weights: Tensor,
) -> Tensor:
    """√w times the leading eigenvector of √w ⟨eᵢ, eᵢ'⟩ √w', on the side of `old_g`."""
    cross, root_weights = other_codes @ products[:, rows], weights.sqrt()
    inner = matrix[rows][:, rows] - cross - cross.T + other_codes @ gram @ other_codes.T
    vector = root_weights * _leading_vector(
        inner * torch.outer(root_weights, root_weights)
    )
    return vector if _rescale(vector) @ _rescale(old_g) >= 0 else -vector


def _leading_direction(error: Tensor, old_atom: Tensor) -> Tensor:
    """A leading right singular vector of any length, on the side of `old_atom`."""
    error = _rescale(error)
    products = error @ error.T if error.shape[0] < error.shape[1] else error.T @ error
    vector = _leading_vector(products)
    if error.shape[0] < error.shape[1]:
        vector = vector @ error
    return vector if vector @ old_atom >= 0 else -vector


def _leading_vector(matrix: Tensor) -> Tensor:  # (n, n) -> (n,)
    """The eigenvector of the largest eigenvalue, found in float64."""
    if not matrix.isfinite().all():  # solvers would not return
        return matrix.new_full((len(matrix),), torch.nan)
    return torch.linalg.eigh(matrix.double())[1][:, -1].to(matrix.dtype)


def _rescale(array: Tensor) -> Tensor:
    """The array divided by a power of two, see `reference.rescale`."""
    peak = array.abs().amax()
    scale = peak / (2 * peak.frexp().mantissa)
    return array / torch.where((peak > 0) & peak.isfinite(), scale, 1)
