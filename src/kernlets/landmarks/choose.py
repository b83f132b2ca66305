"""Chooses landmarks as the user specifies them: a sampler, indices or points.

`SAMPLERS` lists the samplers that have a name; add new ones there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from math import sqrt
from numbers import Integral
from typing import Any

import numpy as np

from ..base.constraints import clipped
from ..base.names import guess, partial_from_options
from ..contracts import Array
from ..data.block_loop import empty_rows, stacked_rows
from ..data.lazy_rows import is_lazy_or_dask
from ..data.limits import memory_limit
from ..data.rows import PROBE_ROWS, on_dask, row_batches, take_rows
from ..data.stream import is_blocks
from ..kernels import Kernel
from ..numerics.arrays import (
    as_float,
    check_points,
    index_like,
    is_dask,
    namespace,
    to_device,
    to_numpy,
)
from .rpcholesky import rpcholesky
from .samplers import column_norm, coreset, diagonal, kmeans, leverage, uniform

Sampler = Callable[[Kernel, Array, int, np.random.Generator], Array]

SAMPLERS: dict[str, Sampler] = {
    "uniform": uniform,
    "diagonal": diagonal,
    "column-norm": column_norm,
    "kmeans": kmeans,
    "coreset": coreset,
    "leverage": leverage,
    "rpcholesky": rpcholesky,
}
NEED_VECTORS = (kmeans, coreset)  # these do not work with a precomputed kernel
#: Samplers that need only a block of X in memory at a time.
BY_BLOCKS = (uniform, diagonal, column_norm, coreset, leverage, kmeans)


@dataclass(frozen=True)
class Landmarks:
    """Landmarks and their origin."""

    rows: Array  # (c, p) the samples
    points: Array  # the samples, as the second argument of the kernel
    indices: np.ndarray | None  # (c,) rows of X; None for points that are not samples
    probe: Array | None = None  # (≤ 2048, p) rows of a stream, for error estimates


def choose(
    landmarks: Any,
    kernel: Kernel,
    X: Any,
    n_landmarks: int | float | None,
    rng: np.random.Generator,
) -> Landmarks:
    """Choose landmarks as `landmarks` and `n_landmarks` say.

    Parameters
    ----------
    landmarks : str, callable, 1-D array of int or 2-D array
        Name of a sampler, also with its options (``"coreset:replace=True"``); a sampler
        ``(kernel, X, m, rng) -> indices or points``; indices of rows of X; or points.
    kernel : Kernel
    X : array, memory map, `LazyRows`, Dask array or iterable of blocks of rows
        Samplers in `BY_BLOCKS` draw the same landmarks from every container. An
        iterable is read once, and each block gives its share of the landmarks. With
        the other samplers, so does each chunk of a Dask array, and each piece of a
        memory map that is larger than a quarter of the memory budget.
    n_landmarks : int, float or None
        Count, fraction of the samples, or `default_count`.
    rng : Generator
    """
    if is_blocks(X):
        choice = _from_stream(landmarks, kernel, X, n_landmarks, rng)
    elif is_sampler(landmarks):
        m = count(n_landmarks, X.shape[0])
        choice = _from_sampler(find_sampler(landmarks), kernel, X, m, rng)
    else:
        choice = _user_landmarks(landmarks, kernel, X, n_landmarks)
    if choice.rows.shape[0] == 0:
        raise ValueError(
            f"landmarks={landmarks!r} found no sample to choose, because the kernel "
            "is zero on X: check X for zero rows"
        )
    return choice


def _from_sampler(
    sampler: Sampler, kernel: Kernel, X: Any, m: int, rng: np.random.Generator
) -> Landmarks:
    """Choose by a sampler, which may need rows on disk or in Dask to be in memory."""
    function: Any = getattr(sampler, "func", sampler)  # of a sampler with options
    if function in NEED_VECTORS and (X.ndim == 1 or kernel.by_index):
        owner = "samples of this kind are not"
        if X.ndim > 1:
            owner = "a precomputed kernel does not have"
        raise ValueError(
            f"landmarks={function.__name__!r} needs sample vectors, which {owner}: use "
            "'uniform', 'column-norm' or 'rpcholesky'"
        )
    takes_blocks = function in BY_BLOCKS
    if is_lazy_or_dask(X) and (kernel.by_index or not takes_blocks):
        if is_dask(X):
            _refuse_matrix(kernel)
            return _from_chunks(sampler, kernel, X, m, rng)
        n_bytes, memory = X.size * as_float(X[:1]).dtype.itemsize, memory_limit(X)
        if n_bytes > memory // 4:
            n_rows = max(1, memory * X.shape[0] // (8 * n_bytes))
            pieces = map(_load, row_batches(X, n_rows))
            return _from_stream(sampler, kernel, pieces, m, rng)
        X = _load(X)
    return _as_landmarks(kernel, X, sampler(kernel, X, m, rng))


def _load(X: Any) -> np.ndarray:
    """Read rows on disk into memory, as finite floating-point numbers."""
    return stacked_rows(as_float, X, row_bytes=8 * X.shape[1])


def _from_chunks(
    sampler: Sampler, kernel: Kernel, X: Any, m: int, rng: np.random.Generator
) -> Landmarks:
    """Let each chunk of a Dask array choose its share of landmarks on its worker."""
    sizes = np.array(X.chunks[0])
    ends = np.cumsum(sizes)
    shares = np.diff(np.round(ends * (m / ends[-1])).astype(int), prepend=0)
    seeds = rng.integers(2**62, size=len(sizes)).tolist()
    share_and_seed = [
        (share, seed) if share else None
        for share, seed in zip(shares.tolist(), seeds, strict=True)
    ]
    chunk_choices = on_dask().map_chunks(
        partial(_take_share, sampler, kernel), X, share_and_seed
    )
    begins = (ends - sizes)[shares > 0]
    rows = to_device(np.concatenate([rows for rows, _ in chunk_choices]))
    row_indices = None
    if all(indices is not None for _, indices in chunk_choices):
        pairs = zip(chunk_choices, begins, strict=True)
        row_indices = np.concatenate([indices + begin for (_, indices), begin in pairs])
    return Landmarks(rows, rows, row_indices)


def _take_share(
    sampler: Sampler, kernel: Kernel, chunk: np.ndarray, share: tuple[int, int]
) -> tuple[Array, np.ndarray | None]:
    m, seed = share
    rows = as_float(chunk) if chunk.ndim > 1 else chunk
    chosen = sampler(kernel, rows, m, np.random.default_rng(seed))
    choice = _as_landmarks(kernel, rows, chosen)
    return choice.rows, choice.indices


def find_sampler(landmarks: str | Sampler) -> Sampler:
    """Return the sampler of this name, with its options; or the function itself."""
    if isinstance(landmarks, Kernel):
        raise ValueError(
            f"landmarks={landmarks!r} is a kernel, not a sampler: pass it as kernel"
        )
    if callable(landmarks):
        return landmarks
    name, _, options = landmarks.partition(":")
    if name in SAMPLERS:
        return partial_from_options("sampler", SAMPLERS[name], options)
    hint = guess(name, SAMPLERS)
    raise ValueError(
        f"landmarks={landmarks!r} is not a sampler: {hint}there are "
        f"{', '.join(SAMPLERS)}; or pass indices of samples or an array of points"
    )


def default_count(n: int) -> int:
    """Return 10 √n, at least 500 and at most 2000, and never more than n.

    Using all of 500 samples costs little, and in sets of faces, with few samples per
    class, a class may depend on every sample.
    """
    return min(n, max(500, min(2000, round(10 * sqrt(n)))))


def count(n_landmarks: int | float | None, n: int) -> int:
    """Return the number of landmarks for n samples."""
    if isinstance(n_landmarks, Integral):
        return clipped("n_landmarks", int(n_landmarks), n, "samples")
    return _at_most(n_landmarks, n)


def is_sampler(landmarks: Any) -> bool:
    """Whether the user gave the name of a sampler, or a sampler."""
    return isinstance(landmarks, str) or callable(landmarks)


def _at_most(n_landmarks: int | float | None, n: int) -> int:
    if n_landmarks is None:
        return default_count(n)
    if isinstance(n_landmarks, Integral):
        return min(int(n_landmarks), n)
    return max(1, round(float(n_landmarks) * n))


def _as_landmarks(kernel: Kernel, X: Array, choice: Array) -> Landmarks:
    """Return landmarks from the indices or points that a sampler returned."""
    if not hasattr(choice, "ndim"):
        raise TypeError(
            f"the function given as landmarks returned a {type(choice).__name__}: it "
            "must return an array of indices of rows of X, or of points"
        )
    if choice.ndim == 1:
        return _from_indices(kernel, X, np.sort(to_numpy(choice)))
    if kernel.by_index:
        raise ValueError(
            "landmarks are points, but a precomputed kernel knows samples by their "
            "index only: give indices of rows of X"
        )
    # copied, because a sampler may return X itself, which the user may change
    points = namespace(choice).asarray(choice, copy=True)
    return Landmarks(points, points, None)


def _from_indices(kernel: Kernel, X: Array, indices: np.ndarray) -> Landmarks:
    rows = points = take_rows(X, indices)
    if kernel.by_index:
        points = kernel.take(X, index_like(indices, X))
    return Landmarks(rows, points, indices)


def _user_landmarks(
    landmarks: Any, kernel: Kernel, X: Array, n_landmarks: int | float | None
) -> Landmarks:
    """Read landmarks that the user gave: indices of rows of X, or points."""
    values = _checked_values(landmarks, n_landmarks)
    if values.ndim == 2:
        points = check_points(values, empty_rows(X), "landmarks")
        return _as_landmarks(kernel, X, points)
    if values.min() < 0 or values.max() >= X.shape[0]:
        raise ValueError(
            f"landmarks has indices from {values.min()} to {values.max()}, but X has "
            f"rows 0 to {X.shape[0] - 1}"
        )
    return _from_indices(kernel, X, values)


def _checked_values(landmarks: Any, n_landmarks: int | float | None) -> np.ndarray:
    try:
        values = to_numpy(landmarks)
    except ValueError as error:
        raise ValueError(
            "landmarks must be points of equal length, or whole numbers (indices of "
            f"rows of X): {error}"
        ) from error
    is_indices = values.ndim == 1 and np.issubdtype(values.dtype, np.integer)
    if not (is_indices or values.ndim == 2) or not len(values):
        raise ValueError(
            "landmarks must be a name, a function, whole numbers (indices of rows of "
            f"X) or points of shape (c, p); got {values.dtype} of shape {values.shape}"
        )
    if n_landmarks not in (None, len(values)):
        raise ValueError(
            f"n_landmarks={n_landmarks}, but {len(values)} landmarks are given: leave "
            "n_landmarks out"
        )
    return values


def _from_stream(
    landmarks: Any,
    kernel: Kernel,
    blocks: Iterable[Array],
    n_landmarks: int | float | None,
    rng: np.random.Generator,
) -> Landmarks:
    """Choose landmarks from blocks of rows that are read once."""
    _refuse_matrix(kernel)
    probe = BlockSample(uniform, kernel, lambda n: min(n, PROBE_ROWS), rng)
    pool = None
    if is_sampler(landmarks):
        size = partial(_at_most, n_landmarks)
        pool = BlockSample(find_sampler(landmarks), kernel, size, rng)
    elif (values := _checked_values(landmarks, n_landmarks)).ndim == 1:
        raise ValueError(
            "landmarks are indices of rows, but X is an iterable of blocks: pass the "
            "rows themselves as landmarks, or X as one array or memory map"
        )
    for block in blocks:
        if pool is not None:
            pool.add(block)
        probe.add(block)
    if pool is None:
        points = check_points(values, probe.rows, "landmarks")
        return Landmarks(points, points, None, probe.rows)
    count(n_landmarks, pool.n_seen)
    return Landmarks(pool.rows, pool.rows, pool.indices, probe.rows)


def _refuse_matrix(kernel: Kernel) -> None:
    if kernel.by_index:
        raise ValueError(
            "a precomputed kernel needs the whole matrix: pass X as one array or "
            "memory map, not as blocks or chunks"
        )


class BlockSample:
    """Landmarks from blocks: `size(n)` from the first n rows, a fair share of each.

    When a block of b rows brings the number of rows to n, about b/n of the landmarks
    come from this block, and they replace random other ones.
    """

    def __init__(
        self,
        sampler: Sampler,
        kernel: Kernel,
        size: Callable[[int], int],
        rng: np.random.Generator,
    ) -> None:
        self._sampler, self._kernel, self._size, self._rng = sampler, kernel, size, rng
        self.rows: Array | None = None  # (m, p)
        self.indices: np.ndarray | None = np.empty(0, dtype=np.intp)
        self.n_seen = 0

    def __len__(self) -> int:
        return 0 if self.rows is None else self.rows.shape[0]

    def add(self, block: Array) -> None:
        """Take landmarks from one more block."""
        n_block = block.shape[0]
        n = self.n_seen + n_block
        size = self._size(n)
        # random rounding, so that blocks of a single row get their share, too
        n_take = int(size * n_block / n + self._rng.random())
        n_keep = min(max(size - n_take, 0), len(self))
        n_take = min(size - n_keep, n_block)
        retained = np.sort(self._rng.choice(len(self), n_keep, replace=False))
        choice = Landmarks(block[:0], block[:0], np.empty(0, dtype=np.intp))
        if n_take:
            chosen = self._sampler(self._kernel, block, n_take, self._rng)
            choice = _as_landmarks(self._kernel, block, chosen)
        rows = choice.rows
        if self.rows is not None:
            old_rows = self.rows[index_like(retained, self.rows)]
            rows = namespace(rows).concat([old_rows, rows])
        if choice.indices is None or self.indices is None:
            self.indices = None  # points of a sampler such as k-means are no rows of X
        else:
            new_indices = choice.indices + self.n_seen
            self.indices = np.concatenate([self.indices[retained], new_indices])
        self.rows, self.n_seen = rows, n
