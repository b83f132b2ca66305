"""Check the input of estimators once, and convert it to rows of numbers.

`check_rows` returns rows in their `working_dtype` (`arrays.py`), whatever the
container: rows on disk or on a cluster that are stored in another type become a source
that converts them when they are read.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Literal

import numpy as np
from scipy import sparse
from sklearn.utils import get_tags
from sklearn.utils.validation import validate_data

from ..config import options
from ..contracts import Array
from ..numerics.arrays import (
    FLOATS,
    as_float,
    as_like,
    is_dask,
    is_gpu,
    is_torch,
    load_solvers,
    numpy_dtype,
    stored_dtype,
    to_device,
    working_dtype,
)
from ..numerics.scaling import all_finite
from .block_loop import HostRows, MemmapWithMissing, empty_rows, refuse_infinite
from .columns import check_columns, columns_error
from .lazy_rows import LazyRows, check_memory, is_lazy, is_lazy_or_dask
from .limits import gpu_memory_limit, gpu_of
from .missing import masked_to_nan
from .rows import on_dask
from .stream import Blocks, is_blocks

GPU_ROWS_SHARE = 2  # a GPU gets all rows at once up to this part of its memory limit

Containers = Literal["memory", "array", "disk", "dask", "stream"]
"""What a caller of `check_rows` can work with, and all that is to its left.

* "memory": all rows at once, with space to work; larger rows on disk are refused;
* "array": an array, or a memory map of floating-point numbers; `LazyRows` are read;
* "disk": rows on disk or not yet computed, which are read block by block;
* "dask": Dask arrays and dataframes, whose chunks are read by workers;
* "stream": iterables of blocks of rows.
"""


def check_rows(
    estimator: Any,
    X: Any,
    *,
    reset: bool = False,
    containers: Containers = "array",
    like: Array | None = None,
    allow_nan: bool = False,
    ensure_min_samples: int = 1,
) -> Any:
    """Convert X to finite floating-point rows in two dimensions, or raise with advice.

    With `reset` the estimator gets the number and the names of the features, otherwise
    they are compared with those of its fit. Sparse rows are refused unless the
    estimator's tags say that it takes them.

    With `allow_nan` an entry of dense rows may be NaN, which means missing, and masked
    entries of `numpy.ma` arrays become NaN. Infinities are always refused. Rows on
    disk, in a Dask collection or in a stream are checked when they are read.

    The rows are converted to the library, device and dtype of `like`, an array of the
    fitted model. Without it they go to the device in the options, if there is one, and
    the blocks of a stream get the type of the first. A checked stream can be read
    repeatedly if X can.
    """
    if _needs_no_change(X, like, ensure_min_samples):
        if reset:
            vars(estimator).pop("feature_names_in_", None)
            estimator.n_features_in_ = X.shape[1]
            return X
        n_features = getattr(estimator, "n_features_in_", None)
        if n_features == X.shape[1] and not hasattr(estimator, "feature_names_in_"):
            return X
    if containers != "stream" or not is_blocks(X):
        return _check_array(
            estimator, X, reset, containers, like, allow_nan, ensure_min_samples
        )
    if isinstance(X, Iterator):
        return _check_blocks(estimator, X, reset, like, allow_nan)
    read_again = partial(_check_blocks, estimator, X, reset, like, allow_nan)
    return Blocks(read_again, getattr(X, "n_rows", None))


def _needs_no_change(X: Any, like: Array | None, ensure_min_samples: int) -> bool:
    """Whether X is finite, and an array of NumPy that is computed as it is.

    Most rows are, and then scikit-learn's check takes as long as the prediction of a
    row. It reads all others, and writes the errors.
    """
    if type(X) is not np.ndarray or X.ndim != 2 or 0 in X.shape:
        return False
    if like is None:
        has_right_type = X.dtype in FLOATS and options.device is None
    else:
        has_right_type = type(like) is np.ndarray and X.dtype == like.dtype
    return has_right_type and len(X) >= ensure_min_samples and all_finite(X)


def _check_blocks(
    estimator: Any, blocks: Any, reset: bool, like: Array | None, allow_nan: bool
) -> Iterator[Array]:
    for block in blocks:
        rows = check_block(estimator, block, reset, like, allow_nan)
        if reset:
            like, reset = rows[:0], False
        yield rows


def check_block(
    estimator: Any, block: Any, reset: bool, like: Array | None, allow_nan: bool
) -> Array:
    """Check one block of a stream; a GPU gets it while others are processed."""
    return _check_array(
        estimator, block, reset, "array", like, allow_nan, streamed=True
    )


def _check_array(
    estimator: Any,
    X: Any,
    reset: bool,
    containers: Containers,
    like: Array | None,
    allow_nan: bool,
    ensure_min_samples: int = 1,
    streamed: bool = False,
) -> Any:
    X = masked_to_nan(X)
    if is_dask(X):
        if not takes_dask(containers):
            raise TypeError(
                f"{type(estimator).__name__} needs all rows or codes at once and takes "
                "no Dask collection: pass X.compute(), or use MOD, "
                "KSVD(update='ksvd-parallel') or OnlineDictionary"
            )
        return _check_dask(estimator, X, reset, like, allow_nan, ensure_min_samples)
    if is_blocks(X):
        raise TypeError(
            f"X is a {type(X).__name__}, but {type(estimator).__name__} needs all rows "
            "in one array here: pass np.concatenate(list(X)), or learn from blocks "
            "with MOD, KSVD(update='ksvd-parallel') or OnlineDictionary"
        )
    X = _keep_large_on_host(X, like)
    is_list_of_sparse = isinstance(X, (list, tuple)) and any(map(sparse.issparse, X))
    is_refused = is_sparse(X) and (streamed or not _takes_sparse(estimator))
    if is_list_of_sparse or is_refused:
        raise TypeError(_sparse_advice(estimator))
    if is_torch(X) and str(X.layout) != "torch.strided":
        raise TypeError("X is a sparse tensor: pass X.to_dense()")
    is_tensor, for_gpu = is_torch(X), _gpu_for(X, like) is not None
    if is_tensor or is_lazy(X):
        check_features(estimator, _check_shape(X, ensure_min_samples), reset)
        X = as_float(X) if is_tensor else _convert_when_read(X, like, allow_nan)
    else:
        _refuse_no_columns(X)
        X = check_columns(X)
        # numbers that overflow here are refused as infinite
        finite = "allow-nan" if allow_nan else True
        with np.errstate(over="ignore", invalid="ignore"), advise_on_nan(estimator, X):
            X = validate_data(
                estimator,
                X,
                reset=reset,
                dtype=_accepted_types(X) if like is None else numpy_dtype(like),
                accept_sparse="csr",  # if they are not taken, they were refused above
                ensure_min_samples=ensure_min_samples,
                ensure_all_finite=False if for_gpu else finite,
            )
    if allow_nan and sparse.issparse(X):
        refuse_infinite(X)  # sparse rows may have no missing entries
    is_read_here = containers in ("memory", "array") and isinstance(X, LazyRows)
    if is_read_here or containers == "memory":
        check_memory(X, type(estimator).__name__)
    X = _move_like_model(X[:] if is_read_here else X, like, streamed, allow_nan)
    if is_tensor or for_gpu:
        refuse_infinite(X, allow_nan=allow_nan)
    load_solvers(X)
    return X


def takes_dask(containers: Containers) -> bool:
    """Whether a caller can work with Dask collections."""
    return containers in ("dask", "stream")


def _takes_sparse(estimator: Any) -> bool:
    return bool(get_tags(estimator).input_tags.sparse)


def is_sparse(X: Any) -> bool:
    """Whether scikit-learn reads X as a sparse matrix, as it does with some frames."""
    if sparse.issparse(X):
        return True
    # pandas has the accessor `sparse` where all columns of a frame are sparse
    return hasattr(X, "iloc") and X.ndim == 2 and X.size > 0 and hasattr(X, "sparse")


def _sparse_advice(estimator: Any) -> str:
    """Say what to do with sparse rows where dense ones are needed."""
    name = type(estimator).__name__
    if _takes_sparse(estimator):
        return (
            f"X has sparse blocks, but {name} takes sparse rows as one matrix only: "
            "pass scipy.sparse.vstack(blocks), or block.toarray() for each block"
        )
    kernel = getattr(estimator, "kernel", None)
    if isinstance(kernel, str):
        kernel = estimator._named_part("kernel", kernel)
    if kernel is not None and not getattr(kernel, "accept_sparse", False):
        return (  # a map would give rows with other kernel values
            f"X is sparse, but {name} with kernel={estimator.kernel!r} needs dense "
            "rows: pass X.toarray()"
        )
    return (
        f"X is sparse, but {name} needs dense rows: put NystroemMap in front, e.g. "
        f"make_pipeline(NystroemMap('linear'), {name}(...)), or pass X.toarray(). "
        "ColumnTransformer(..., sparse_threshold=0) and "
        "OneHotEncoder(sparse_output=False) make dense rows"
    )


def _refuse_no_columns(X: Any) -> None:
    """Raise scikit-learn's error, which scikit-learn itself raises only for arrays."""
    shape: tuple[int, ...] = getattr(X, "shape", ())
    if len(shape) == 2 and shape[1] == 0:
        raise ValueError(
            f"Found array with 0 feature(s) (shape={tuple(shape)}) while a minimum of "
            "1 is required: X has no columns"
        )


def is_table(X: Any) -> bool:
    """Whether X can be read as rows of numbers."""
    if is_torch(X) or is_lazy_or_dask(X):
        return X.ndim == 2
    try:
        X = np.asarray(X)
    except ValueError:  # the samples have unequal lengths
        return False
    return X.dtype.kind in "fiub" and X.ndim == 2


@contextmanager
def advise_on_nan(estimator: Any, X: Any) -> Iterator[None]:
    """Explain errors about text, and about NaN where new rows may have NaN."""
    try:
        yield
    except (TypeError, ValueError) as error:
        refusal = columns_error(X)
        if refusal is not None:
            raise refusal from None
        input_tags = "contains NaN" in str(error) and get_tags(estimator).input_tags
        if not input_tags or not input_tags.allow_nan:
            raise
        raise ValueError(
            f"X contains NaN: {type(estimator).__name__} takes rows with missing "
            "values, but not here. Learn from complete rows, or fill in what is "
            "missing, e.g. with kernlets.DictionaryImputer in front"
        ) from None


def _accepted_types(X: Any) -> Any:
    """Return the types that scikit-learn does not convert; the first is its target."""
    stored = stored_dtype(X)
    return FLOATS if stored is None else working_dtype(stored)


def _convert_when_read(X: Any, like: Array | None, allow_nan: bool) -> Any:
    """Return rows on disk unchanged, or as `LazyRows` that convert them when read."""
    if allow_nan and isinstance(X, np.memmap):
        X = X.view(MemmapWithMissing)
    block = empty_rows(X)  # raises if X has no numbers
    model_rows = block if like is None else like[:0]
    # blocks may have another library or byte order than the memory map itself
    is_exact = isinstance(X, LazyRows) or _is_alike(block, X[:0])
    if is_exact and _is_alike(block, model_rows):
        return X
    row_bytes = X.shape[1] * (X.dtype.itemsize + model_rows.dtype.itemsize)
    return LazyRows(X, partial(_convert_block, model_rows, allow_nan), row_bytes)


def _keep_large_on_host(X: Any, like: Array | None) -> Any:
    """Return a large array as `HostRows`, whose blocks move to a GPU one by one."""
    device = _gpu_for(X, like)
    if device is None:
        return X
    is_large = X.nbytes > gpu_memory_limit(device) // GPU_ROWS_SHARE
    return X.view(HostRows) if X.ndim == 2 and is_large else X


def _gpu_for(X: Any, like: Array | None) -> Any:
    """Return the GPU to which a NumPy array will be moved, or None.

    The GPU then checks it for NaN and infinity, many times faster than the host.
    """
    device = options.device if like is None else gpu_of(like)
    is_plain = isinstance(X, np.ndarray) and X.dtype in FLOATS and not is_lazy(X)
    return device if is_plain and is_gpu(device) else None


def _is_alike(X: Array, like: Array) -> bool:
    """Whether X has the library, dtype and device of `like`."""
    if is_torch(X) != is_torch(like) or X.dtype != like.dtype:
        return False
    return not is_torch(X) or X.device == like.device


def _convert_block(like: Array, allow_nan: bool, block: Array) -> Array:
    if _is_alike(block, like):
        return block
    with np.errstate(over="ignore"):  # infinity is refused below, with advice
        block = as_like(block, like)
    refuse_infinite(block, allow_nan=allow_nan)
    return block


def _move_like_model(
    X: Any, like: Array | None, streamed: bool, allow_nan: bool
) -> Any:
    """Move rows in memory to the device of the model, or of the options."""
    if like is None:
        return to_device(X, streamed)
    if is_lazy(X):
        return X  # blocks are converted when they are read
    if is_torch(like):
        if sparse.issparse(X):
            raise TypeError(
                "X is sparse, but the model was fitted on dense torch tensors: pass "
                "X.toarray()"
            )
        X = to_device(X, streamed)
    return X if sparse.issparse(X) else _convert_block(like, allow_nan, X)


def _check_dask(
    estimator: Any,
    X: Any,
    reset: bool,
    like: Array | None,
    allow_nan: bool,
    ensure_min_samples: int,
) -> Any:
    """Convert X to a Dask array with known lengths; chunks are checked when read."""
    if is_torch(like) and options.device is None:
        raise TypeError(
            f"X is a Dask collection, but this {type(estimator).__name__} was fitted "
            "on torch tensors: name their device for the workers, e.g. "
            "kernlets.options(device='cuda'), or save and load it, which gives NumPy "
            "arrays"
        )
    dtype = None if like is None else numpy_dtype(like)
    rows = _check_shape(on_dask().as_rows(X, dtype, allow_nan), ensure_min_samples)
    check_features(estimator, X, reset)
    return rows


def _check_shape(X: Any, ensure_min_samples: int) -> Any:
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
    return X


def check_features(estimator: Any, X: Any, reset: bool) -> None:
    """Store or compare the number of features, and their names if there are any."""
    # a Dask dataframe has names of columns, an array only their number
    features = X._meta if hasattr(X, "columns") else np.empty((1, *X.shape[1:]))
    validate_data(estimator, features, reset=reset, skip_check_array=True)
