"""Which arrays: NumPy or torch, their dtype and device, and what input is accepted.

Generic code takes its functions from `namespace(X)` (the array API) and comes back
here for the few things that standard leaves out.
"""

from __future__ import annotations

import sys
from functools import lru_cache
from typing import Any

import numpy as np
from array_api_compat import array_namespace as namespace
from scipy import sparse
from sklearn.utils.validation import check_array, validate_data

from ..config import options
from ..core import Array

FLOATS = (np.float64, np.float32)


def is_torch(X: Any) -> bool:
    """Whether X is a torch tensor; torch is not imported to find out."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(X, torch.Tensor)


def is_dask(X: Any) -> bool:
    """Whether X is a Dask array, dataframe or series; Dask is not imported for it."""
    kinds = (kind.__module__.partition(".")[0] for kind in type(X).__mro__)
    return "dask" in kinds and hasattr(X, "__dask_graph__")


def is_array(X: Any) -> bool:
    """Whether X is a NumPy array or a torch tensor."""
    return isinstance(X, np.ndarray) or is_torch(X)


def to_numpy(X: Array) -> np.ndarray:
    """X in host memory as a NumPy array."""
    return X.detach().cpu().numpy() if is_torch(X) else np.asarray(X)


def as_like(values: Any, like: Array) -> Array:
    """`values` as an array of the kind, dtype and device of `like`."""
    if is_torch(like):
        import torch

        return torch.as_tensor(values, dtype=like.dtype, device=like.device)
    return np.asarray(values, dtype=like.dtype)


def move_like(values: np.ndarray, like: Array) -> Array:
    """A NumPy array with its own dtype, moved to where `like` is."""
    if is_torch(like):
        import torch

        return torch.as_tensor(values, device=like.device)
    return values


def index_like(values: Any, like: Array) -> Array:
    """Integer indices that can be used on `like`."""
    if is_torch(like):
        import torch

        return torch.as_tensor(values, dtype=torch.long, device=like.device)
    return np.asarray(values, dtype=np.intp)


def empty(shape: tuple[int, ...], like: Array) -> Array:
    """An uninitialised array of the kind, dtype and device of `like`."""
    return like.new_empty(shape) if is_torch(like) else np.empty(shape, like.dtype)


def as_float(X: Array) -> Array:
    """X in float32 or float64; everything that is neither becomes float64."""
    if is_torch(X):
        return X if X.is_floating_point() else X.double()
    if sparse.issparse(X):
        return X if X.dtype in FLOATS else X.astype(np.float64)
    return np.asarray(X, dtype=X.dtype if X.dtype in FLOATS else np.float64)


def double(X: Array) -> Array:
    """X in float64, for factorisations that need it."""
    return X.double() if is_torch(X) else np.asarray(X, dtype=np.float64)


def eps(X: Array) -> float:
    """Machine precision of the dtype of X."""
    return float(namespace(X).finfo(X.dtype).eps)


def inner(A: Array, B: Array) -> float:
    """Σ AᵢⱼBᵢⱼ, with the sum over rows in float64."""
    rows = (A * B).sum(1) if is_torch(A) else np.einsum("ij,ij->i", A, B)
    return float(double(rows).sum())


def diagonal(M: Array) -> Array:  # (n,)
    """The diagonal of a square matrix."""
    return M.diagonal() if is_torch(M) else np.diagonal(M)


def row_norms(X: Array) -> Array:  # (n,)
    """Squared Euclidean norms of the rows."""
    if is_torch(X):
        return (X * X).sum(1)
    return np.einsum("ij,ij->i", X, X)


def check_rows(
    estimator: Any,
    X: Any,
    *,
    reset: bool = False,
    accept_sparse: bool = False,
    ensure_min_samples: int = 1,
    streamed: bool = False,
    lazy: bool = False,
    whole: bool = False,
) -> Array:
    """X as a finite two-dimensional floating-point array, or an error with advice.

    Memory maps are not read here: their blocks are converted as they are used. With
    `lazy` the same holds for `LazyRows` and Dask arrays; without it these are read.
    With `whole` rows on disk that are more than the memory option are refused.
    """
    from .stored import LazyRows, check_memory

    if is_dask(X):
        return _check_dask(estimator, X, reset, ensure_min_samples, lazy)
    unread = isinstance(X, LazyRows) and not lazy
    if unread or whole:
        check_memory(X, type(estimator).__name__)
    if unread:
        X = np.asarray(X)
    if is_torch(X) or isinstance(X, (np.memmap, LazyRows)):
        X = _check_plain(X, ensure_min_samples)
        _check_features(estimator, X, reset)
    else:
        X = validate_data(
            estimator,
            X,
            reset=reset,
            dtype=FLOATS,
            accept_sparse="csr" if accept_sparse else False,
            ensure_min_samples=ensure_min_samples,
        )
    X = to_device(X, streamed)
    if device_memory(X):
        _load_solvers(X.device)
    return X


@lru_cache
def _load_solvers(device: Any) -> None:
    """Make torch load its solvers: at first use in several threads at once it fails."""
    import torch

    torch.linalg.cholesky(torch.eye(1, device=device))


def to_device(X: Array, streamed: bool = False) -> Array:
    """X on the device named in the options, if one is named.

    Memory maps stay on disk; their blocks are moved one by one. A streamed block goes
    through page-locked memory on a stream of its own, beside the work on others.
    """
    skip = options.device is None or not isinstance(X, np.ndarray)
    if skip or isinstance(X, np.memmap):
        return X
    import torch

    if not X.flags.writeable or min(X.strides, default=0) < 0:
        X = X.copy()  # torch would warn or refuse
    if not (streamed and options.device.startswith("cuda")):
        return torch.as_tensor(X, device=options.device)
    stream = torch.cuda.Stream(options.device)
    with torch.cuda.stream(stream):
        pinned = torch.as_tensor(X).pin_memory()
        moved = pinned.to(options.device, non_blocking=True)
    stream.synchronize()
    return moved


def check_device(device: str | None) -> str | None:
    """The name of a torch device that can be used, or an error that says why not."""
    if device is None:
        return None
    try:
        import torch

        torch.empty(0, device=device)
    except ImportError:
        raise ImportError(
            f"device={device!r} needs: pip install 'kernlets[torch]'"
        ) from None
    except (RuntimeError, AssertionError) as error:  # torch raises both
        reason = str(error).partition("\n")[0]
        raise ValueError(f"device={device!r} cannot be used: {reason}") from error
    return device


def device_name(device: str | None) -> str:
    """What a device is called by its maker, "cpu" without one."""
    if device is None or not device.startswith("cuda"):
        return device or "cpu"
    import torch

    return torch.cuda.get_device_name(device)


def synchronize() -> None:
    """Wait for the GPU named in the options, so that seconds are those of the work."""
    if options.device is not None and options.device.startswith("cuda"):
        import torch

        torch.cuda.synchronize(options.device)


def device_memory(X: Any) -> int:
    """Bytes of the GPU that X is on; 0 for all that is in host memory or on disk."""
    if not is_torch(X) or not X.is_cuda:
        return 0
    import torch

    return torch.cuda.get_device_properties(X.device).total_memory


def check_points(points: Any, like: Array, name: str) -> Array:  # (m, p)
    """User-given rows (landmarks, atoms) that must fit the samples `like`."""
    if is_torch(points):
        points = to_numpy(points)
    points = check_array(points, dtype=FLOATS, input_name=name)
    if points.shape[1] != like.shape[1]:
        raise ValueError(
            f"{name} has {points.shape[1]} columns but X has {like.shape[1]} features"
        )
    return as_like(points, like)


def _check_dask(
    estimator: Any, X: Any, reset: bool, ensure_min_samples: int, lazy: bool
) -> Any:
    """A Dask array of rows with known lengths; its blocks are checked as they are."""
    from . import dask_rows

    name = type(estimator).__name__
    if not lazy:
        raise TypeError(
            f"{name} needs all rows or codes at once and takes no Dask collection: "
            "pass X.compute(), or use MOD, KSVD(update='parallel') or OnlineDictionary"
        )
    if options.device is not None:
        raise ValueError(
            f"device={options.device!r} and a Dask collection do not go together: "
            "leave the option device out"
        )
    rows = _check_plain(dask_rows.as_rows(X), ensure_min_samples)
    dask_rows.check_features(estimator, X, reset)
    return rows


def _check_plain(X: Array, ensure_min_samples: int) -> Array:
    if X.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got X of shape {tuple(X.shape)}. Reshape your data "
            "with X.reshape(n_samples, n_features)"
        )
    if X.shape[0] < ensure_min_samples or X.shape[1] < 1:
        raise ValueError(
            f"X has {X.shape[0]} sample(s) and {X.shape[1]} feature(s); a minimum of "
            f"{ensure_min_samples} sample(s) and 1 feature is required"
        )
    if not is_torch(X):
        return X
    if X.is_complex():
        raise ValueError("Complex data not supported: pass real values")
    X = as_float(X)
    if not bool(X.isfinite().all()):
        raise ValueError("X contains NaN or infinity: remove or impute such values")
    return X


def _check_features(estimator: Any, X: Array, reset: bool) -> None:
    if reset:
        estimator.n_features_in_ = X.shape[1]
    elif X.shape[1] != estimator.n_features_in_:
        raise ValueError(
            f"X has {X.shape[1]} features, but {type(estimator).__name__} is "
            f"expecting {estimator.n_features_in_} features as input"
        )


def group_sums(
    rows: Array,  # (n, p)
    groups: Array,  # (n,) whole numbers from 0
    n_groups: int,
) -> Array:  # (n_groups, p)
    """Sums over the rows of each group: products, added in the same order each time.

    In float64 on NumPy, so that blocks of rows do not show in the result.
    """
    if is_torch(rows):
        places = namespace(rows).arange(n_groups, device=rows.device)
        members = index_like(groups, rows)[None, :] == places[:, None]
        return members.to(rows.dtype) @ rows
    n = len(rows)
    members = sparse.csr_array((np.ones(n), groups, np.arange(n + 1)), (n, n_groups))
    return members.T @ rows
