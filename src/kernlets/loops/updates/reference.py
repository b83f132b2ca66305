"""Sweeps of K-SVD, and residuals of codes: the specification, and the twins for torch.

The functions go through the array API, so that the same text serves NumPy and torch.
Where numbers are not finite, or so large that their squares are not, the residuals or
atoms of a sweep are not finite either, and callers check these.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from array_api_compat import device

from ...contracts import UNUSED, Array
from ...numerics.arrays import double, eps, namespace, zeros

ALTERNATIONS = 10  # steps towards the best non-negative rank-one fit
NOISE = 100  # times the rounding of the samples: an atom of less energy is noise
# the same for sums of similar samples, times the root of their number: twice the
# largest rounding seen (2.4, sums of 500 float32 products with AVX-512)
ALIKE = 5
HOLD = 0.01  # weight of an entry's old value, as a share of ‖g‖²


@np.errstate(all="ignore")
def subtract_codes(
    X: Array,  # (n, p)
    indices: Array,  # (n, width)
    values: Array,  # (n, width)
    atoms: Array,  # (m, p)
) -> Array:  # (n, p)
    """The residuals X − Γ·atoms."""
    return X - densify(indices, values, atoms.shape[0]) @ atoms


def densify(indices: Array, values: Array, m: int) -> Array:  # (n, m)
    """Codes of fixed width as a dense array."""
    n, xp = indices.shape[0], namespace(indices)
    dense = zeros((n, m + 1), values)  # unused slots write to the last column
    rows = xp.arange(n, device=device(indices))[:, None]
    dense[rows, xp.where(indices >= 0, indices, m)] = values
    return dense[:, :m]


def code_slots(codes: Array) -> tuple[Array, Array]:  # (n, m) -> (n, width) twice
    """The atoms of dense codes, in the order of their numbers, and the coefficients."""
    xp = namespace(codes)
    is_nonzero = codes != 0
    counts = xp.sum(xp.astype(is_nonzero, xp.int64), axis=1)
    width = max(1, int(xp.max(counts))) if codes.shape[0] else 1
    # a stable sort on "is zero" moves the non-zeros to the front and keeps their order
    order = xp.argsort(xp.astype(~is_nonzero, xp.int8), axis=1, stable=True)[:, :width]
    values = xp.take_along_axis(codes, order, axis=1)
    return xp.where(values != 0, order, UNUSED), values


@np.errstate(all="ignore")
def code_gram(indices: Array, values: Array, m: int) -> Array:  # (m, m)
    """ΓᵀΓ of codes (n, width) over m atoms."""
    Gamma = densify(indices, values, m)
    return Gamma.T @ Gamma


@np.errstate(all="ignore")
def code_cross(
    indices: Array,  # (n, width)
    values: Array,  # (n, width)
    X: Array,  # (n, p)
    m: int,
) -> Array:  # (m, p)
    """ΓᵀX of codes over m atoms."""
    return densify(indices, values, m).T @ X


@np.errstate(all="ignore")
def ksvd_sweep(
    residual: Array,  # (n, p) changed in place
    atoms: Array,  # (m, p) changed in place
    indices: Array,  # (n, width)
    values: Array,  # (n, width) changed in place
    order: Array,  # (m,) the atoms in the order they are updated
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
    xp, is_signed = namespace(residual), not (positive or positive_atoms)
    steps = ALTERNATIONS if exact and not is_signed else 1
    for j, rows, slots in _rows_by_atom(indices, atoms.shape[0], order):
        coefs = values[rows, slots]
        error = residual[rows] + coefs[:, None] * atoms[j]
        for _ in range(steps):
            if exact and is_signed:
                atom = _leading_direction(error, atoms[j])
            else:
                atom = _rescale(coefs) @ error
            atom = _rescale(xp.clip(atom, min=0) if positive_atoms else atom)
            norm = xp.sqrt(atom @ atom)
            if norm == 0:
                break
            atoms[j] = atom / norm
            coefs = error @ atoms[j]
            coefs = xp.clip(coefs, min=0) if positive else coefs
            values[rows, slots] = coefs
            residual[rows] = error - coefs[:, None] * atoms[j]


def _rows_by_atom(
    indices: Array, m: int, order: Array
) -> Iterator[tuple[int, Array, Array]]:
    """Yield each used atom in order, with the rows and slots in which it is used."""
    width = indices.shape[1]
    slots, bounds = users_by_atom(indices, m)
    starts = bounds.tolist()
    for j in order.tolist():
        users = slots[starts[j] : starts[j + 1]]
        if len(users):
            yield j, users // width, users % width


def block_sweep(
    residuals: Array,  # (b, p)  ΓᵀX − ΓᵀΓ·atoms of these atoms, changed in place
    gram: Array,  # (b, b)  their part of ΓᵀΓ
    atoms: Array,  # (b, p), unit norm, changed in place
) -> Array:  # (b,)
    """One sweep of block coordinate descent over a few atoms, from sums over samples.

    Returns half of the decrease of the squared error by each atom. An atom whose sums
    are 0 stays.
    """
    xp = namespace(atoms)
    gains = []
    for i, residual in enumerate(residuals):
        old = xp.asarray(atoms[i], copy=True)
        target = residual + gram[i, i] * old
        norm = xp.sqrt(target @ target)
        new = xp.where(norm > 0, target / xp.where(norm > 0, norm, 1.0), old)
        gains.append(norm - target @ old)
        residuals[i + 1 :] -= gram[i + 1 :, i, None] * (new - old)
        atoms[i] = new
    return xp.stack(gains)


def users_by_atom(indices: Array, m: int) -> tuple[Array, Array]:
    """Slots ordered by their atoms, and the first slot of each atom, (m + 1,)."""
    xp = namespace(indices)
    flat = xp.reshape(indices, (-1,))
    slots = xp.argsort(flat, stable=True)
    atoms = xp.arange(m + 1, dtype=flat.dtype, device=device(flat))
    return slots, xp.searchsorted(flat[slots], atoms)


def _leading_direction(error: Array, old_atom: Array) -> Array:
    """A leading right singular vector of any length, on the side of `old_atom`."""
    error = _rescale(error)
    is_wide = error.shape[0] < error.shape[1]
    vector = _leading_vector(error @ error.T if is_wide else error.T @ error)
    vector = vector @ error if is_wide else vector
    return vector if vector @ old_atom >= 0 else -vector


def _leading_vector(matrix: Array) -> Array:  # (n, n) -> (n,)
    """The eigenvector of the largest eigenvalue, found in float64."""
    xp = namespace(matrix)
    if not xp.all(xp.isfinite(matrix)):  # LAPACK would not return
        return xp.full_like(matrix[0], xp.nan)
    return xp.astype(xp.linalg.eigh(double(matrix))[1][:, -1], matrix.dtype)


def _rescale(array: Array) -> Array:
    """The array divided by a power of two, so that its squares can be summed.

    The divisor is the largest power of two up to the largest magnitude, or 1 where
    there is none; it changes no digit.
    """
    xp = namespace(array)
    peak = xp.max(xp.abs(array))
    scale = peak / (2 * xp.frexp(peak)[0])
    return array / xp.where((peak > 0) & xp.isfinite(peak), scale, 1)


@np.errstate(all="ignore")
def gram_sweep(
    matrix: Array,  # (N, N) K(X, X)
    coefs: Array,  # (m, N) changed in place
    products: Array,  # (m, N) coefs · matrix, changed in place
    gram: Array,  # (m, m) of the atoms, changed in place
    indices: Array,  # (N, width)
    values: Array,  # (N, width) changed in place
    order: Array,  # (m,)
    exact: bool,
    positive: bool = False,
    weights: Array | None = None,  # (N,) how often each sample counts
) -> None:
    """`ksvd_sweep` in the feature space of a kernel, atoms written over the samples.

    The new atom is d = Σᵢ gᵢ eᵢ over its users, with gᵢ = wᵢ γᵢⱼ and
    eᵢ = φ(xᵢ) − Σ_{k≠j} γᵢₖ dₖ, or with the leading g if `exact`. Its products with
    all samples, ⟨d, φ(x)⟩ = Σᵢ gᵢ K(xᵢ, x) − Σₖ mixingⱼₖ ⟨dₖ, φ(x)⟩ with
    mixingⱼₖ = Σᵢ gᵢ γᵢₖ, combine rows of K and the products of the other atoms, so K is
    never multiplied by a vector. `positive` coefficients are cut off at zero, after
    one step of alternation.
    """
    xp, m = namespace(matrix), gram.shape[0]
    for j, rows, slots in _rows_by_atom(indices, m, order):
        other_codes = densify(indices[rows], values[rows], m)
        other_codes[:, j] = 0
        g = values[rows, slots]
        sample_weights = xp.ones_like(g) if weights is None else weights[rows]
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
        if not energy > eps(matrix) * _noise(g, matrix[rows, rows]):
            continue
        inverse_norm = 1 / xp.sqrt(energy)
        products[j], coefs[j] = inverse_norm * atom_products, inverse_norm * atom_coefs
        gram[j] = inverse_norm * inner
        gram[:, j] = gram[j]
        gram[j, j] = 1
        new_coefs = products[j, rows] - other_codes @ gram[j]
        values[rows, slots] = xp.clip(new_coefs, min=0) if positive else new_coefs


def _noise(g: Array, energies: Array) -> Array:
    """The squared norm, in units of the rounding, below which an atom is noise."""
    xp = namespace(g)
    length_sum = xp.abs(g) @ xp.sqrt(xp.clip(energies, min=0))
    return NOISE * (g**2 @ energies) + ALIKE * len(g) ** 0.5 * length_sum**2


def _leading_coefs(
    matrix: Array,
    products: Array,
    gram: Array,
    rows: Array,
    other_codes: Array,
    old_g: Array,
    weights: Array,
) -> Array:
    """√w times the leading eigenvector of √w ⟨eᵢ, eᵢ'⟩ √w', on the side of `old_g`."""
    xp, cross = namespace(matrix), other_codes @ products[:, rows]
    inner = matrix[rows[:, None], rows] - cross - cross.T
    inner = inner + other_codes @ gram @ other_codes.T
    root_weights = xp.sqrt(weights)
    inner = inner * (root_weights[:, None] * root_weights)
    vector = root_weights * _leading_vector(inner)
    return vector if _rescale(vector) @ _rescale(old_g) >= 0 else -vector


@np.errstate(all="ignore")
def masked_ksvd_sweep(
    residual: Array,  # (n, p) zero where X is missing, changed in place
    observed: Array,  # (n, p) booleans
    atoms: Array,  # (m, p) changed in place
    indices: Array,  # (n, width)
    values: Array,  # (n, width) changed in place
    order: Array,  # (m,)
) -> None:
    """One K-SVD pass over the observed entries: rank-one fits with weights 0 and 1.

    With E the error of the users without atom d, and g their coefficients, first each
    entry d_f = Σᵢ oᵢf gᵢ Eᵢf / Σᵢ oᵢf gᵢ², then gᵢ = Σ_f oᵢf Eᵢf d_f / Σ_f oᵢf d_f².
    Neither raises the error. The old value of an entry has a small weight, `HOLD`; the
    entry keeps it if it is missing in all users.
    """
    xp = namespace(residual)
    for j, rows, slots in _rows_by_atom(indices, atoms.shape[0], order):
        o, g = xp.astype(observed[rows], atoms.dtype), values[rows, slots]
        E = residual[rows] + g[:, None] * atoms[j] * o
        hold = HOLD * (g @ g)
        atom = (g @ E + hold * atoms[j]) / ((g * g) @ o + hold)
        norm = xp.sqrt(atom @ atom)
        if not norm > 0:
            continue
        atoms[j] = atom / norm
        norm2 = o @ (atoms[j] * atoms[j])
        new_g = E @ atoms[j] / xp.where(norm2 > 0, norm2, 1)
        new_g = xp.where(norm2 > 0, new_g, 0)
        values[rows, slots] = new_g
        residual[rows] = E - new_g[:, None] * atoms[j] * o
