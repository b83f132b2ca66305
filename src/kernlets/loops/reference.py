"""Every hot operation in a few plain NumPy lines: the specification.

The fast twins in this folder have the same names, arguments and results. Contract
tests hold all of them to what is written here.

No operation fails or runs on for ever, whatever numbers it is given. Where these are
NaN, infinite, or so large that their squares are, the result is not finite either: NaN
is in the residual of a pursuit or in its codes, in the residuals or atoms of a sweep.
Callers check these.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import hadamard

UNUSED = -1
ALTERNATIONS = 10  # steps towards the best non-negative rank-one fit
NOISE = 100  # times the rounding of the samples: an atom of less energy is noise
# the same for sums of similar samples, times the root of their number: twice the
# largest rounding seen (2.4, sums of 500 float32 products with AVX-512)
ALIKE = 5


def stop_level(energy: float, tol: float, eps: float) -> float:
    """Squared residual at which a pursuit stops: `tol`, or rounding of the energy."""
    return max(tol, 4 * eps * energy)


def least_independent(eps: float) -> float:
    """The least ‖q‖²/‖d‖² of an atom d that a pursuit takes.

    Here q is the component of d that is orthogonal to the atoms of the support.

    Inner products are known to eps‖d‖², and so is ‖q‖². Coefficients grow like 1/‖q‖,
    and the squared residual that follows from them is wrong by eps‖d‖²/‖q‖² of the
    energy: by no more than √eps, which is 1.5e-8 in float64.
    """
    return eps**0.5


def power_of_two(size: float) -> float:
    """The largest power of two up to `size`, and 1 where there is none.

    A number to divide by that changes no digit.
    """
    return size / (2 * np.frexp(size)[0]) if 0 < size < np.inf else 1.0


def rescale(array: np.ndarray) -> np.ndarray:
    """The array divided by a power of two, so that its squares can be summed."""
    return array / array.dtype.type(power_of_two(np.abs(array).max(initial=0)))


@np.errstate(all="ignore")
def omp(
    gram: np.ndarray,  # (m, m) unit diagonal
    corr: np.ndarray,  # (n, m)
    energy: np.ndarray,  # (n,)
    width: int,
    tol: float,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Orthogonal matching pursuit, sample by sample, as in the textbook.

    Returns indices (n, width), values (n, width) and squared residuals (n,). A sample
    that cannot be coded in finite numbers has an empty code and the residual NaN.
    """
    n, eps = len(corr), np.finfo(corr.dtype).eps
    indices = np.full((n, width), UNUSED, dtype=np.int32)
    values = np.zeros((n, width), dtype=corr.dtype)
    residual = energy.copy()
    for i in range(n):
        support: list[int] = []
        coefs = values[i, :0]
        while len(support) < width and residual[i] > stop_level(energy[i], tol, eps):
            corr_residual = corr[i] - coefs @ gram[support]
            corr_residual[support] = 0
            k = int(np.argmax(np.abs(corr_residual)))  # a NaN is the largest of all
            if corr_residual[k] == 0 or _is_dependent(gram, support, k, eps):
                break
            support.append(k)
            coefs = _solve(gram[np.ix_(support, support)], corr[i, support])
            explained = coefs @ corr[i, support]
            residual[i] = (
                max(energy[i] - explained, 0) if np.isfinite(explained) else np.nan
            )
        if np.isfinite(residual[i]) and np.isfinite(coefs).all():
            indices[i, : len(support)] = support
            values[i, : len(support)] = coefs
        else:
            residual[i] = np.nan
    return indices, values, residual


def _solve(matrix: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    """The solution of a linear system, NaN where there is none."""
    try:
        return np.linalg.solve(matrix, rhs)
    except np.linalg.LinAlgError:
        return np.full_like(rhs, np.nan)


def _is_dependent(gram: np.ndarray, support: list[int], k: int, eps: float) -> bool:
    """Whether the new atom lies in the span of the support, or next to it."""
    gram_k = gram[support, k]
    explained = gram_k @ _solve(gram[np.ix_(support, support)], gram_k)
    return bool(gram[k, k] - explained <= least_independent(eps) * gram[k, k])


@np.errstate(all="ignore")
def lasso(
    gram: np.ndarray,  # (m, m)
    corr: np.ndarray,  # (n, m)
    alpha: float,
    positive: bool,
    max_iter: int,
    tol: float,
) -> tuple[np.ndarray, np.ndarray]:  # (n, m), (n,)
    """argmin over γ of ½ γᵀGγ − γᵀc + alpha‖γ‖₁ by cyclic coordinate descent.

    Stops when no coefficient of a sample moved by more than tol · max|c|. The codes of
    a sample are NaN where they grow without bound, as they may if G is indefinite.
    Returns the codes, and whether the search for each of them stopped so.
    """
    codes, converged = np.zeros_like(corr), np.zeros(len(corr), dtype=bool)
    for i, corr_residual in enumerate(corr.copy()):  # c − Gγ
        largest_corr, largest_move = np.abs(corr_residual).max(initial=0), 0.0
        for _ in range(max_iter):
            largest_move = _lasso_pass(gram, corr_residual, codes[i], alpha, positive)
            if not tol * largest_corr < largest_move < np.inf:
                converged[i] = True
                break
        if not (np.isfinite(largest_corr) and np.isfinite(largest_move)):
            codes[i] = np.nan
    return codes, converged


def _lasso_pass(
    gram: np.ndarray,
    corr_residual: np.ndarray,
    code: np.ndarray,
    alpha: float,
    positive: bool,
) -> float:
    """One pass over the atoms; the largest move, infinite if it is not a number."""
    largest_move = 0.0
    for j in np.flatnonzero(np.diagonal(gram) > 0):  # no atom that is 0
        delta = shrink(corr_residual[j] + gram[j, j] * code[j], alpha, positive)
        delta = delta / gram[j, j] - code[j]
        if delta != 0:
            code[j] += delta
            corr_residual -= delta * gram[j]
            largest_move = (
                max(largest_move, abs(delta)) if np.isfinite(delta) else np.inf
            )
    return largest_move


def shrink(value: float, alpha: float, positive: bool) -> float:
    """Soft threshold: the proximal map of alpha|·|, one-sided if positive."""
    if positive:
        return max(value - alpha, 0)
    return np.sign(value) * max(abs(value) - alpha, 0)


@np.errstate(all="ignore")
def l1_distances(X: np.ndarray, Y: np.ndarray) -> np.ndarray:  # (n, m)
    """Σ |xᵢ − yⱼ| over the features."""
    return np.stack([np.abs(x - Y).sum(axis=1) for x in X])


@np.errstate(all="ignore")
def fwht(X: np.ndarray) -> None:  # (n, d) changed in place
    """X ← X H with the Hadamard matrix H of order d, a power of two, entries ±1."""
    X[:] = X @ hadamard(X.shape[1], dtype=X.dtype)


@np.errstate(all="ignore")
def subtract_codes(
    X: np.ndarray,  # (n, p)
    indices: np.ndarray,  # (n, width)
    values: np.ndarray,  # (n, width)
    atoms: np.ndarray,  # (m, p)
) -> np.ndarray:  # (n, p)
    """The residuals X − Γ·atoms."""
    atom_numbers = np.where(indices >= 0, indices, 0)
    return X - np.einsum("nw,nwp->np", values, atoms[atom_numbers])


@np.errstate(all="ignore")
def ksvd_sweep(
    residual: np.ndarray,  # (n, p) changed in place
    atoms: np.ndarray,  # (m, p) changed in place
    indices: np.ndarray,  # (n, width)
    values: np.ndarray,  # (n, width) changed in place
    order: np.ndarray,  # (m,) the atoms in the order they are updated
    exact: bool,
    positive: bool = False,
    positive_atoms: bool = False,
) -> None:
    """One K-SVD pass: each atom with its coefficients is the best rank-one fit.

    `exact` takes the leading singular pair of the samples' error without the atom,
    otherwise one step of alternation towards it (approximate K-SVD). With `positive`
    coefficients or atoms each half of a step is cut off at zero, which is the best
    non-negative answer to the other half; `exact` then takes `ALTERNATIONS` steps.
    """
    is_signed = not (positive or positive_atoms)
    steps = ALTERNATIONS if exact and not is_signed else 1
    for j in order:
        rows, slots = np.nonzero(indices == j)
        if len(rows) == 0:
            continue
        coefs = values[rows, slots]
        error = residual[rows] + np.outer(coefs, atoms[j])
        for _ in range(steps):
            if exact and is_signed:
                atom = _leading_direction(error, atoms[j])
            else:
                atom = rescale(coefs) @ error
            atom = rescale(np.maximum(atom, 0) if positive_atoms else atom)
            norm = np.sqrt(atom @ atom)
            if norm == 0:
                break
            atoms[j] = atom / norm
            coefs = np.maximum(error @ atoms[j], 0) if positive else error @ atoms[j]
            values[rows, slots] = coefs
            residual[rows] = error - np.outer(coefs, atoms[j])


@np.errstate(all="ignore")
def gram_sweep(
    matrix: np.ndarray,  # (N, N) K(X, X)
    coefs: np.ndarray,  # (m, N) changed in place
    products: np.ndarray,  # (m, N) coefs · matrix, changed in place
    gram: np.ndarray,  # (m, m) of the atoms, changed in place
    indices: np.ndarray,  # (N, width)
    values: np.ndarray,  # (N, width) changed in place
    order: np.ndarray,  # (m,)
    exact: bool,
    positive: bool = False,
    weights: np.ndarray | None = None,  # (N,) how often each sample counts
) -> None:
    """`ksvd_sweep` in the feature space of a kernel, atoms written over the samples.

    The new atom is d = Σᵢ gᵢ eᵢ over its users, with gᵢ = wᵢ γᵢⱼ and
    eᵢ = φ(xᵢ) − Σ_{k≠j} γᵢₖ dₖ, or with the leading g if `exact`. Its products with
    all samples, ⟨d, φ(x)⟩ = Σᵢ gᵢ K(xᵢ, x) − Σₖ mixingⱼₖ ⟨dₖ, φ(x)⟩ with
    mixingⱼₖ = Σᵢ gᵢ γᵢₖ, combine rows of K and the products of the other atoms, so K is
    never multiplied by a vector. `positive` coefficients are cut off at zero, after
    one step of alternation.
    """
    eps = np.finfo(matrix.dtype).eps
    for j in order:
        rows, slots = np.nonzero(indices == j)
        if len(rows) == 0:
            continue
        other_codes = densify(indices[rows], values[rows], len(gram))
        other_codes[:, j] = 0
        g = values[rows, slots]
        sample_weights = np.ones_like(g) if weights is None else weights[rows]
        if exact and not positive:
            g = _leading_coefs(
                matrix, products, gram, rows, other_codes, g, sample_weights
            )
        else:
            g = sample_weights * g
        g = rescale(g)
        mixing_j = g @ other_codes
        atom_products = g @ matrix[rows] - mixing_j @ products
        atom_coefs = -mixing_j @ coefs
        atom_coefs[rows] += g
        inner = products[:, rows] @ g - gram @ mixing_j
        energy = g @ atom_products[rows] - mixing_j @ inner
        if not energy > eps * _noise(g, matrix[rows, rows]):
            continue
        inverse_norm = 1 / np.sqrt(energy)
        products[j], coefs[j] = inverse_norm * atom_products, inverse_norm * atom_coefs
        gram[j] = gram[:, j] = inverse_norm * inner
        gram[j, j] = 1
        new_coefs = products[j, rows] - other_codes @ gram[j]
        values[rows, slots] = np.maximum(new_coefs, 0) if positive else new_coefs


def _noise(g: np.ndarray, energies: np.ndarray) -> float:
    """The squared norm, in units of the rounding, below which an atom is noise."""
    length_sum = np.abs(g) @ np.sqrt(np.maximum(energies, 0))
    return NOISE * (g**2 @ energies) + ALIKE * len(g) ** 0.5 * length_sum**2


def densify(indices: np.ndarray, values: np.ndarray, m: int) -> np.ndarray:  # (n, m)
    """Codes of fixed width as a dense array."""
    dense = np.zeros((len(indices), m + 1), dtype=values.dtype)
    np.put_along_axis(dense, np.where(indices >= 0, indices, m), values, axis=1)
    return dense[:, :m]


def _leading_coefs(
    matrix: np.ndarray,
    products: np.ndarray,
    gram: np.ndarray,
    rows: np.ndarray,
    other_codes: np.ndarray,
    old_g: np.ndarray,
    weights: np.ndarray,
) -> np.ndarray:
    """√w times the leading eigenvector of √w ⟨eᵢ, eᵢ'⟩ √w', on the side of `old_g`."""
    cross, root_weights = other_codes @ products[:, rows], np.sqrt(weights)
    inner = (
        matrix[np.ix_(rows, rows)]
        - cross
        - cross.T
        + other_codes @ gram @ other_codes.T
    )
    vector = root_weights * _leading_vector(
        inner * np.outer(root_weights, root_weights)
    )
    return vector if rescale(vector) @ rescale(old_g) >= 0 else -vector


def _leading_direction(error: np.ndarray, old_atom: np.ndarray) -> np.ndarray:
    """A leading right singular vector of any length, on the side of `old_atom`."""
    error = rescale(error)
    products = error @ error.T if error.shape[0] < error.shape[1] else error.T @ error
    vector = _leading_vector(products)
    if error.shape[0] < error.shape[1]:
        vector = vector @ error
    return vector if vector @ old_atom >= 0 else -vector


def _leading_vector(matrix: np.ndarray) -> np.ndarray:  # (n, n) -> (n,)
    """The eigenvector of the largest eigenvalue, found in float64."""
    if not np.isfinite(matrix).all():  # LAPACK would not return
        return np.full(len(matrix), np.nan, matrix.dtype)
    return np.linalg.eigh(matrix.astype(np.float64))[1][:, -1].astype(matrix.dtype)
