"""Read and check samples that are not rows of numbers: series, bags, matrices, strings.

Such samples are stored in a one-dimensional array of objects, one entry for each
sample, which can be cut into blocks and indexed like rows. `kernels.samples` reads
graphs. See docs/structured.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ..contracts import Array
from ..numerics.arrays import is_array, is_dask, is_torch, to_numpy, working_dtype

LARGEST = 1e100  # matrices may have entries up to this number
ASYMMETRY = 1e-6  # largest relative difference of a matrix from its transpose


def is_objects(X: Any) -> bool:
    """Whether X is an array of samples that are not rows of numbers."""
    return isinstance(X, np.ndarray) and X.ndim == 1 and X.dtype == object


def float_like(X: Array) -> Array:
    """Return an array with the dtype in which samples of any kind are computed."""
    if not is_objects(X):
        return X
    first = X[0] if len(X) else None
    dtype = first.dtype if isinstance(first, np.ndarray) else np.dtype(np.float64)
    return np.empty(0, dtype=dtype)


def as_sample_list(kind: str, X: Any) -> Any:
    """Return X if it has one entry per sample, else raise; tensors go to the host."""
    if is_dask(X):
        raise TypeError(
            f"X is a Dask collection, but a kernel of {kind} takes samples in memory: "
            "pass X.compute(), or transform its parts with a fitted NystroemMap"
        )
    if isinstance(X, (str, bytes, dict)) or not isinstance(X, Iterable):
        raise TypeError(
            f"X is a {type(X).__name__}, but a kernel of {kind} takes a list or an "
            "array with one entry for each sample"
        )
    return to_numpy(X) if is_torch(X) else X


def object_array(samples: list[Any]) -> np.ndarray:  # (n,)
    """Put samples in a one-dimensional array; NumPy would stack equal shapes."""
    array = np.empty(len(samples), dtype=object)
    for i, sample in enumerate(samples):
        array[i] = sample
    return array


def convert_samples(samples: list[np.ndarray], dtype: np.dtype) -> list[np.ndarray]:
    """Convert arrays of numbers to another type, or raise if they overflow in it."""
    with np.errstate(over="ignore"):
        converted = [sample.astype(dtype, copy=False) for sample in samples]
    for i, sample in enumerate(converted):
        if not np.isfinite(sample).all():
            raise ValueError(
                f"sample {i} is too large for {dtype}, the type of the model: scale it "
                "as the samples of the fit, or fit with float64"
            )
    return converted


def as_series(X: Any) -> list[np.ndarray]:  # of (T, c)
    """Read time series, each (steps, channels) of finite numbers.

    X is a list of arrays (T,) or (T, c), or an array (n, T) or (n, T, c); NaN at the
    end of a series is padding and is cut off.
    """
    return _read_point_sets(X, "series", "steps", "channels")


def as_bags(X: Any) -> list[np.ndarray]:  # of (k, p)
    """Read bags of vectors, each (vectors, features) of finite numbers."""
    return _read_point_sets(X, "bag", "vectors", "features")


def _read_point_sets(
    X: Any, sample_name: str, row_name: str, column_name: str
) -> list[np.ndarray]:
    arrays = [_as_points(sample, f"{sample_name} {i}") for i, sample in enumerate(X)]
    arrays = [_drop_padding(points) for points in arrays]
    for i, points in enumerate(arrays):
        if not points.size:
            raise ValueError(
                f"{sample_name} {i} is empty: leave it out, it has no {row_name} to "
                "compare"
            )
        if not np.isfinite(points).all():
            raise ValueError(
                f"{sample_name} {i} has NaN or infinity inside: fill it in, e.g. by "
                "interpolation; only NaN at the end are read as padding"
            )
        if points.shape[1] != arrays[0].shape[1]:
            raise ValueError(
                f"{sample_name} {i} has {points.shape[1]} {column_name}, but "
                f"{sample_name} 0 has "
                f"{arrays[0].shape[1]}: samples are arrays ({row_name}, {column_name})"
            )
    return _to_common_dtype(arrays)


def _as_points(sample: Any, name: str) -> np.ndarray:  # (T, c)
    array = _as_numbers(sample, name)
    if array.ndim not in (1, 2):
        raise ValueError(
            f"{name} has shape {array.shape}: it must have one axis, or two for "
            "several numbers at a time"
        )
    return array[:, None] if array.ndim == 1 else array


def _as_numbers(sample: Any, name: str) -> np.ndarray:
    """Convert a sample to an array of real numbers."""
    try:
        array = to_numpy(sample) if is_array(sample) else np.asarray(sample)
        return np.ascontiguousarray(array, dtype=working_dtype(array.dtype))
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{name} is a {type(sample).__name__}, not an array of real numbers: "
            f"{error}"
        ) from None


def _drop_padding(points: np.ndarray) -> np.ndarray:  # (T, c)
    """Drop the steps at the end that are NaN in all channels."""
    if not len(points) or not np.isnan(points[-1]).all():
        return points
    observed_steps = np.flatnonzero(~np.isnan(points).all(axis=1))
    return points[: observed_steps[-1] + 1 if len(observed_steps) else 0]


def _to_common_dtype(arrays: list[np.ndarray]) -> list[np.ndarray]:
    """Convert arrays of different types to float64."""
    if len({array.dtype for array in arrays}) < 2:
        return arrays
    return [array.astype(np.float64, copy=False) for array in arrays]


def as_matrices(X: Any) -> list[np.ndarray]:  # of (d, d)
    """Read symmetric matrices of one size."""
    matrices = [_as_numbers(sample, f"matrix {i}") for i, sample in enumerate(X)]
    for i, matrix in enumerate(matrices):
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size:
            raise ValueError(
                f"matrix {i} has shape {matrix.shape}, it must be square: pass an "
                "array (n, d, d), e.g. from kernlets.datasets.covariances"
            )
        if matrix.shape != matrices[0].shape:
            raise ValueError(
                f"matrix {i} has shape {matrix.shape}, but matrix 0 has "
                f"{matrices[0].shape}: all must have one size"
            )
        if not np.isfinite(matrix).all():
            raise ValueError(f"matrix {i} has NaN or infinity: leave it out")
        largest = float(np.abs(matrix).max())
        if largest > LARGEST:
            raise ValueError(
                f"matrix {i} has entries up to {largest:.2g}, whose products overflow: "
                "scale all matrices down"
            )
        asymmetry = np.abs(matrix - matrix.T).max()
        if asymmetry > ASYMMETRY * largest:
            raise ValueError(
                f"matrix {i} is not symmetric, entries differ by up to "
                f"{asymmetry:.2g}: "
                "use (A + A.T) / 2 if that is meant"
            )
    return _to_common_dtype(matrices)


def as_strings(X: Any) -> list[str]:
    """Read strings, or sequences of symbols, which are joined to strings.

    Symbols that are whole numbers from 0 on stand for the characters of these numbers.
    """
    return [_as_string(sample, i) for i, sample in enumerate(X)]


def _as_string(sample: Any, i: int) -> str:
    if isinstance(sample, str):
        return str(sample)
    if isinstance(sample, bytes):
        return sample.decode("latin-1")
    if isinstance(sample, (list, tuple, np.ndarray)):
        symbols = list(sample)
        if all(isinstance(s, str) and len(s) == 1 for s in symbols):
            return "".join(symbols)
        if all(isinstance(s, (int, np.integer)) and 0 <= s < 0xD800 for s in symbols):
            return "".join(map(chr, symbols))
    raise ValueError(
        f"string {i} is a {type(sample).__name__}: pass text, or a sequence of single "
        "characters or of whole numbers from 0 to 55295"
    )
