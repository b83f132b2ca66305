"""Filters moved by gradient so that their kernel functions capture more of a kernel.

With U an orthonormal basis of range(B), B = K(sample, filters), the squared Frobenius
error of IKA on the sample is ‖G‖² − ‖UᵀGU‖². This goes beyond the paper, which asks for
"an algorithm that produces a good set of filters".
"""

from __future__ import annotations

import numpy as np

from ..contracts import Array, Kernel
from ..data.rows import map_rows, sum_rows
from ..numerics.arrays import as_like, double, inner, to_numpy
from ..numerics.scaling import quiet
from .ika_eigenfunctions import orthonormal


def refined_filters(
    kernel: Kernel,
    sample: Array,  # (S, p)
    filters: Array,  # (n, p)
    max_iter: int,
) -> Array:  # (n, p)
    """The filters after at most `max_iter` steps of L-BFGS on the sample error.

    It always computes in float64, because the error is a small difference of large
    numbers.
    """
    from scipy.optimize import minimize

    sample64, filters64 = double(sample), double(filters)
    gram_norm2 = _squared_norm(kernel, sample64)
    scale = gram_norm2 - captured_norm2(kernel, sample64, filters64)[0] or 1.0

    def error(flat: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = captured_norm2(
            kernel, sample64, as_like(flat.reshape(shape), filters64)
        )
        return (gram_norm2 - value) / scale, -to_numpy(gradient).ravel() / scale

    shape = tuple(filters64.shape)
    options = {"maxiter": max_iter, "ftol": 0.0, "gtol": 0.0}
    flat_filters = to_numpy(filters64).ravel()
    result = minimize(error, flat_filters, jac=True, method="L-BFGS-B", options=options)
    return as_like(result.x.reshape(shape), filters)


def captured_norm2(
    kernel: Kernel,
    sample: Array,  # (S, p)
    filters: Array,  # (n, p)
) -> tuple[float, Array]:
    """‖UᵀGU‖²_F and its gradient in the filters.

    The gradient in B is 4 (I − UUᵀ) G U (UᵀGU) Rᵀ with U = B R; the kernel's own
    gradient takes it to the filters.
    """
    U, R = orthonormal(kernel(sample, filters))
    row_bytes = 2 * sample.shape[0] * sample.dtype.itemsize
    GU = map_rows(lambda rows: kernel(rows, sample) @ U, sample, row_bytes)
    with quiet():  # the kernel refuses a slope that is not finite
        UtGU = U.T @ GU
        GU_UtGU = GU @ UtGU
        gradient_in_B = 4.0 * (GU_UtGU - U @ (U.T @ GU_UtGU)) @ R.T  # (S, n)
    return inner(UtGU, UtGU), kernel.pull(filters, sample, gradient_in_B.T)


def _squared_norm(kernel: Kernel, sample: Array) -> float:
    """‖G‖²_F, a block of rows at a time."""

    def squares(rows: Array) -> float:
        K = kernel(rows, sample)
        return inner(K, K)

    return sum_rows(squares, sample, 2 * sample.shape[0] * sample.dtype.itemsize)
