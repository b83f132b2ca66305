"""Arrays of NumPy or torch: the dtype in which rows are computed, their device.

Generic code takes its functions from `namespace(X)` (the array API); this module has
the few that the standard lacks. `validation.py` decides which input is accepted.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import array_namespace as namespace
from scipy import sparse
from scipy.linalg import cho_factor, cho_solve
from sklearn.utils.validation import check_array

from ..config import options

Array = Any  # a NumPy array or a torch tensor; both go through the array API

FLOATS = (np.float64, np.float32)
SQUARES = 2**22  # entries that torch squares at once
COPIERS = 8  # threads that copy rows into page-locked memory
PIECE = 2**24  # bytes that are moved to a GPU at once
_loading_lock = threading.Lock()


def is_torch(X: Any) -> bool:
    """Whether X is a torch tensor; torch is not imported to find out."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(X, torch.Tensor)


def is_gpu(device: Any) -> bool:
    """Whether this is the name of a GPU."""
    return device is not None and str(device).startswith("cuda")


def is_dask(X: Any) -> bool:
    """Whether X is a Dask array, dataframe or series; Dask is not imported for it."""
    if not hasattr(X, "__dask_graph__"):
        return False
    return any(kind.__module__.startswith("dask") for kind in type(X).__mro__)


def is_array(X: Any) -> bool:
    """Whether X is a NumPy array or a torch tensor."""
    return isinstance(X, np.ndarray) or is_torch(X)


def to_numpy(X: Array) -> np.ndarray:
    """Return X in host memory as a NumPy array."""
    return X.detach().cpu().numpy() if is_torch(X) else np.asarray(X)


def as_like(values: Any, like: Array) -> Array:
    """Convert `values` to an array of the kind, dtype and device of `like`."""
    if is_torch(like):
        import torch

        values = _writeable(values)
        return torch.as_tensor(values, dtype=like.dtype, device=like.device)
    values = to_numpy(values) if is_torch(values) else values
    return np.asarray(values, dtype=like.dtype)


def _writeable(values: Any) -> Any:
    """Copy NumPy arrays that torch would not accept without a warning."""
    if not isinstance(values, np.ndarray):
        return values
    needs_copy = not values.flags.writeable or min(values.strides, default=0) < 0
    return values.copy() if needs_copy else values


def move_like(values: np.ndarray, like: Array) -> Array:
    """Move a NumPy array to where `like` is; it has its own dtype."""
    if is_torch(like):
        import torch

        native = values.astype(values.dtype.newbyteorder("="), copy=False)
        return torch.as_tensor(native, device=like.device)
    return values


def index_like(values: Any, like: Array) -> Array:
    """Return integer indices that can be used on `like`."""
    if is_torch(like):
        import torch

        return torch.as_tensor(values, dtype=torch.long, device=like.device)
    return np.asarray(values, dtype=np.intp)


def empty(shape: tuple[int, ...], like: Array) -> Array:
    """Return an uninitialised array of the kind, dtype and device of `like`."""
    return like.new_empty(shape) if is_torch(like) else np.empty(shape, like.dtype)


def zeros(shape: tuple[int, ...], like: Array) -> Array:
    """Return zeros of the kind, dtype and device of `like`."""
    return like.new_zeros(shape) if is_torch(like) else np.zeros(shape, like.dtype)


def broadcast(value: Array, shape: tuple[int, ...]) -> Array:
    """Return a read-only view of one number as an array of this shape."""
    return value.expand(shape) if is_torch(value) else np.broadcast_to(value, shape)


def holds_floats(X: Any) -> bool:
    """Whether X is an array of numbers, dense or CSR, that are computed as they are."""
    return is_torch(X) or getattr(X, "dtype", None) in FLOATS


def working_dtype(dtype: Any) -> np.dtype:
    """Return the type in which rows stored as `dtype` are computed.

    float32 stays, and half precision becomes float32; all other real numbers (float64
    and longer, integers, booleans) become float64, as in scikit-learn. The byte
    order is that of the machine. Anything but real numbers is refused.
    """
    dtype = np.dtype(dtype)
    if dtype.kind == "c":
        raise ValueError("Complex data not supported: pass real values")
    if dtype.kind not in "fiub":
        raise ValueError(
            f"X holds {dtype}, not real numbers: leave such columns out, or convert "
            "them"
        )
    is_short = dtype.kind == "f" and dtype.itemsize <= 4
    return np.dtype(np.float32 if is_short else np.float64)


def stored_dtype(X: Any) -> np.dtype | None:
    """Return the type that holds all numbers of X, None if X holds anything else.

    X is an array, or a dataframe with columns of many types, nullable ones among them.
    """
    types = [getattr(X, "dtype", None)]
    if hasattr(X, "dtypes") and len(X.shape) == 2:
        # polars has types of its own, and no `iloc`
        types = X.dtypes if hasattr(X, "iloc") else [X[:0].to_numpy().dtype]
    types = [getattr(dtype, "numpy_dtype", dtype) for dtype in types]
    are_plain = all(
        isinstance(dtype, np.dtype) and dtype.kind in "fiub" for dtype in types
    )
    return np.result_type(*types) if types and are_plain else None


def as_float(X: Array) -> Array:
    """Convert X to its `working_dtype`; an array that has it is not copied."""
    if type(X) is np.ndarray and X.dtype in FLOATS:
        return X
    if is_torch(X):
        return _tensor_as_float(X)
    # objects may be numbers; NumPy raises an error if they are not
    dtype = np.dtype(np.float64) if X.dtype.kind == "O" else working_dtype(X.dtype)
    if sparse.issparse(X):
        return X.astype(dtype, copy=False)
    return np.asarray(X, dtype=dtype)


def _tensor_as_float(X: Any) -> Any:
    """Apply `working_dtype` to tensors, which have types that NumPy lacks."""
    if X.is_complex():
        raise ValueError("Complex data not supported: pass real values")
    if not X.is_floating_point():
        return X.double()
    return X if X.element_size() >= 4 else X.float()


def numpy_dtype(X: Array) -> np.dtype:
    """Return the dtype of X as NumPy calls it."""
    return np.dtype(str(X.dtype).removeprefix("torch.")) if is_torch(X) else X.dtype


def double(X: Array) -> Array:
    """Convert X to float64, for factorisations that need it."""
    if sparse.issparse(X):
        return X.astype(np.float64)
    return X.double() if is_torch(X) else np.asarray(X, dtype=np.float64)


def or_wider(dtype: Any, text: str = ", or pass float64") -> str:
    """Return the end of an advice, `text`, or nothing if numbers are in float64."""
    return "" if str(dtype).endswith("float64") else text


def scalers_for(dtype: Any) -> str:
    """Return the scalers that an advice names, and float64 for narrower numbers."""
    return f"UnitNorm or StandardScaler{or_wider(dtype)}"


def eps(X: Array) -> float:
    """Return the machine precision of the dtype of X."""
    return float(namespace(X).finfo(X.dtype).eps)


def inner(A: Array, B: Array) -> float:
    """Return Σ AᵢⱼBᵢⱼ, with the sum over rows in float64."""
    rows = (A * B).sum(1) if is_torch(A) else np.einsum("ij,ij->i", A, B)
    return float(double(rows).sum())


def diagonal(M: Array) -> Array:  # (n,)
    """Return the diagonal of a square matrix."""
    return M.diagonal() if is_torch(M) else np.diagonal(M)


def with_fixed_signs(vectors: Array) -> Array:  # (n, k)
    """Flip columns, whose signs are arbitrary, so that libraries and machines agree.

    The first entry that is at least 0.999 times the largest, in magnitude, becomes
    positive.
    """
    xp = namespace(vectors)
    magnitudes = xp.abs(vectors)
    is_large = magnitudes >= 0.999 * xp.max(magnitudes, axis=0)
    first_large = xp.argmax(xp.astype(is_large, xp.int8), axis=0)
    columns = index_like(np.arange(vectors.shape[1]), vectors)
    is_negative = vectors[first_large, columns] < 0
    return xp.where(is_negative, -vectors, vectors)


def cholesky_or_none(M: Array) -> Array | None:  # (n, n)
    """Return the Cholesky factor, or None for a matrix that is not definite."""
    try:
        return namespace(M).linalg.cholesky(M)
    except (np.linalg.LinAlgError, RuntimeError):  # of NumPy or of torch
        return None


def solve_symmetric(M: Array, B: Array) -> Array:  # (n, n), (n, k) -> (n, k)
    """Return M⁻¹B; a definite M takes half of the time."""
    if not is_torch(M):
        try:
            factor = cho_factor(M.T, lower=True, check_finite=False)
        except np.linalg.LinAlgError:
            return np.linalg.solve(M, B)
        return cho_solve(factor, B, check_finite=False)
    return namespace(M).linalg.solve(M, B)


def inverse_triangle(M: Array) -> Array:  # (n, n)
    """Return the inverse of the lower triangle."""
    xp = namespace(M)
    if not is_torch(M):
        return xp.linalg.inv(xp.tril(M))
    identity = xp.eye(len(M), dtype=M.dtype, device=M.device)
    return xp.linalg.solve_triangular(M, identity, upper=False)


def row_norms(X: Array) -> Array:  # (n,)
    """Return squared Euclidean norms of the rows, dense or CSR."""
    if isinstance(X, np.ndarray):
        return np.einsum("ij,ij->i", X, X)
    if sparse.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1)).ravel()
    blocks = X.split(max(1, SQUARES // max(1, X.shape[1])))
    norms = [(block * block).sum(1) for block in blocks]
    return norms[0] if len(norms) == 1 else namespace(X).concat(norms)


def load_solvers(X: Array) -> None:
    """Make torch load the solvers of a GPU now: several threads at once would fail."""
    if is_torch(X) and X.is_cuda:
        with _loading_lock:
            _load_solvers(X.device)


@lru_cache
def _load_solvers(device: Any) -> None:
    import torch

    torch.linalg.cholesky(torch.eye(1, device=device))


def to_device(X: Array, streamed: bool = False) -> Array:
    """Move X to the device named in the options, if one is named.

    Memory maps stay on disk; their blocks are moved one by one. A streamed block is
    moved through page-locked memory on a separate stream, while others are processed; a
    large array in memory is moved piece by piece.
    """
    stays_here = options.device is None or not isinstance(X, np.ndarray)
    if stays_here or isinstance(X, np.memmap) or X.dtype == object:
        return X
    import torch

    if not is_gpu(options.device):
        return torch.as_tensor(_writeable(X), device=options.device)
    if not streamed:
        return _copy_in_pieces(X)
    stream = torch.cuda.Stream(options.device)
    with torch.cuda.stream(stream):
        tensor = _page_locked_copy(X).to(options.device, non_blocking=True)
    stream.synchronize()
    return tensor


def _copy_in_pieces(X: np.ndarray) -> Any:
    """Move X to the GPU: one piece is being moved while the next is copied."""
    import torch

    if X.nbytes <= PIECE or not X.flags.c_contiguous:
        return torch.as_tensor(_writeable(X), device=options.device)
    n_rows = max(1, PIECE // X[:1].nbytes)
    tensor = torch.empty(X.shape, dtype=_tensor_dtype(X), device=options.device)
    for begin in range(0, len(X), n_rows):
        piece = slice(begin, begin + n_rows)
        tensor[piece].copy_(_page_locked_copy(X[piece]), non_blocking=True)
    return tensor


def _page_locked_copy(X: np.ndarray) -> Any:
    """Make a copy from which a GPU reads at full speed.

    Several threads copy, because pages of a file come one by one.
    """
    import torch

    copy = torch.empty(X.shape, dtype=_tensor_dtype(X), pin_memory=True)
    n_threads = min(options.n_threads, COPIERS)
    bounds = np.linspace(0, len(X), n_threads + 1).astype(int).tolist()
    row_slices = [slice(*cut) for cut in pairwise(bounds)]
    results = _copiers(os.getpid()).map(
        lambda rows: np.copyto(copy.numpy()[rows], X[rows]), row_slices
    )
    list(results)
    return copy


@lru_cache(maxsize=1)
def _copiers(pid: int) -> ThreadPoolExecutor:
    """Return threads that copy; `pid` makes a forked child build its own."""
    return ThreadPoolExecutor(COPIERS, "kernlets-copy")


def _tensor_dtype(X: np.ndarray) -> Any:
    import torch

    return torch.as_tensor(np.empty(0, X.dtype)).dtype


def device_text(X: Array) -> str:
    """Return the name of the device of X, "host" for NumPy arrays."""
    return str(X.device) if is_torch(X) else "host"


class GPUMemory(NamedTuple):
    """Bytes of a GPU: those that this process can still take, and all."""

    free: int
    total: int


def gpu_memory(gpu: Any) -> GPUMemory:
    """Return the memory of a GPU; the slow query runs at most once a second."""
    return _gpu_memory(str(gpu), int(time.monotonic()))


@lru_cache(maxsize=16)
def _gpu_memory(gpu: str, second: int) -> GPUMemory:
    """Ask torch; memory that it reserves but does not use counts as free."""
    import torch

    free, total = torch.cuda.mem_get_info(gpu)
    reserved = torch.cuda.memory_reserved(gpu) - torch.cuda.memory_allocated(gpu)
    return GPUMemory(free + reserved, total)


def check_points(points: Any, like: Array, name: str) -> Array:  # (m, p)
    """User-given rows (landmarks, atoms) that must fit the samples `like`."""
    if is_torch(points):
        points = to_numpy(as_float(points))
    try:
        points = check_array(points, dtype=FLOATS, input_name=name)
    except TypeError as error:
        raise TypeError(
            f"{name} must hold rows of numbers, not {type(points).__name__}: pass an "
            "array of shape (n_rows, n_features)"
        ) from error
    if points.shape[1] != like.shape[1]:
        raise ValueError(
            f"{name} has {points.shape[1]} columns but X has {like.shape[1]} features"
        )
    return as_like(points, like)


def group_sums(
    rows: Array,  # (n, p)
    groups: Array,  # (n,) whole numbers from 0
    n_groups: int,
) -> Array:  # (n_groups, p)
    """Sum the rows of each group, always in the same order.

    In float64 on NumPy, so that the result does not depend on blocks of rows.
    """
    if is_torch(rows):
        group_numbers = namespace(rows).arange(n_groups, device=rows.device)
        is_member = index_like(groups, rows)[None, :] == group_numbers[:, None]
        return is_member.to(rows.dtype) @ rows
    n = len(rows)
    is_member = sparse.csr_array((np.ones(n), groups, np.arange(n + 1)), (n, n_groups))
    return is_member.T @ rows


def bincount(numbers: Array, n: int) -> np.ndarray:  # (n,)
    """Count how often each of the whole numbers below n occurs."""
    if is_torch(numbers):
        return to_numpy(numbers.bincount(minlength=n))
    return np.bincount(numbers, minlength=n)


def smallest(values: Array, count: int) -> Array:  # (n, count)
    """Indices of the `count` smallest values of each row, in no particular order."""
    if count == 1:
        return values.argmin(axis=1)[:, None]
    if not isinstance(values, np.ndarray):
        return values.topk(count, dim=1, largest=False, sorted=False).indices
    n, n_values = values.shape
    n_groups = int((n_values * count) ** 0.5)
    depth = n_values // n_groups
    if depth < 8:
        return np.argpartition(values, count - 1, axis=1)[:, :count]
    # The smallest are in the groups (columns j, j + n_groups, ...) with the smallest
    # minima, or in the last columns outside all groups. This takes a tenth of the time.
    groups = values[:, : depth * n_groups].reshape(n, depth, n_groups)
    best_groups = np.argpartition(groups.min(axis=1), count - 1, axis=1)[:, :count]
    group_columns = best_groups[:, :, None] + n_groups * np.arange(depth)
    last_columns = np.arange(depth * n_groups, n_values)
    columns = np.hstack([group_columns.reshape(n, -1), np.tile(last_columns, (n, 1))])
    order = smallest(np.take_along_axis(values, columns, axis=1), count)
    return np.take_along_axis(columns, order, axis=1)
