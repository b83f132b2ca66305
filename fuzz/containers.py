"""The containers in which rows can come to an estimator, and back from one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

import kernlets

from .draw import Draw
from .values import Matrix

NARROW = ("float128", "object")  # not known to all array libraries


@dataclass(frozen=True)
class Held:
    """Rows in a container."""

    rows: Any
    name: str
    n_rows: int | None  # as far as this is known before reading
    is_dense: bool  # the usual array in memory, which nothing may refuse


def draw_container(draw: Draw, matrix: Matrix, folder: Path) -> Held:
    """Put the rows into some container."""
    name = draw.weighted({name: weight for name, (weight, _) in CONTAINERS.items()})
    if matrix.dtype.name in NARROW and name in NATIVE_ONLY:
        name = "array"
    rows = CONTAINERS[name][1](draw, matrix.values, folder)
    return Held(rows, name, matrix.n_rows, is_dense=name in DENSE)


def as_array(result: Any) -> np.ndarray:
    """What an estimator returned, in memory."""
    if hasattr(result, "__dask_graph__"):
        result = result.compute()
    if sparse.issparse(result):
        return result.toarray()
    if hasattr(result, "detach"):
        narrow = str(result.dtype) == "torch.bfloat16"  # which NumPy does not have
        return (result.float() if narrow else result).detach().cpu().numpy()
    if isinstance(result, (list, tuple, kernlets.Blocks, Iterator)):
        blocks = [as_array(block) for block in result]
        return np.concatenate(blocks) if blocks else np.zeros(0)
    return np.asarray(result)


# -------------------------------------------------------------- NumPy and lists


def _array(draw: Draw, X: np.ndarray, folder: Path) -> Any:
    return X


def _fortran(draw: Draw, X: np.ndarray, folder: Path) -> Any:
    return np.asfortranarray(X)


def _strided(draw: Draw, X: np.ndarray, folder: Path) -> Any:
    wide = np.zeros((2 * X.shape[0], 3 * X.shape[1]), X.dtype)
    wide[::2, ::3] = X
    return wide[::2, ::3]


def _backwards(draw: Draw, X: np.ndarray, folder: Path) -> Any:
    return X[::-1, ::-1].copy()[::-1, ::-1]


def _read_only(draw: Draw, X: np.ndarray, folder: Path) -> Any:
    X = X.copy()
    X.setflags(write=False)
    return X


def _unaligned(draw: Draw, X: np.ndarray, folder: Path) -> Any:
    if X.dtype == object:
        return X
    shifted = np.frombuffer(b"\0" + X.tobytes(), np.uint8)[1:]
    return shifted.view(X.dtype).reshape(X.shape)


def _masked(draw: Draw, X: np.ndarray, folder: Path) -> Any:
    return np.ma.masked_array(X, mask=False)


class Wrapped:
    """Something that is an array only when asked."""

    def __init__(self, values: np.ndarray) -> None:
        self._values = values

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self._values, dtype=dtype)


def _wrapped(draw: Draw, X: np.ndarray, folder: Path) -> Any:
    return Wrapped(X)


def _lists(draw: Draw, X: np.ndarray, folder: Path) -> Any:
    return X.tolist()


def _tuples(draw: Draw, X: np.ndarray, folder: Path) -> Any:
    return tuple(map(tuple, X.tolist()))


def _list_of_rows(draw: Draw, X: np.ndarray, folder: Path) -> Any:
    return list(X)


def _odd_shape(draw: Draw, X: np.ndarray, folder: Path) -> Any:
    odd = [X.ravel(), X[None], X[:, :1].ravel(), None, "rows", 3.0, {}, X[:0], [[]]]
    return draw.pick(odd)


# ------------------------------------------------------- tables, disk, in blocks


def _frame(draw: Draw, X: np.ndarray, folder: Path) -> Any:
    import pandas as pd

    frame = pd.DataFrame(X.astype(X.dtype.newbyteorder("=")))
    if draw.chance(0.6):
        frame.columns = [f"c{i}" for i in range(X.shape[1])]
    if draw.chance(0.2):
        frame.index = frame.index[::-1]
    if draw.chance(0.15) and X.dtype.kind in "fi":
        frame = frame.convert_dtypes()
    return frame


def _memmap(draw: Draw, X: np.ndarray, folder: Path) -> Any:
    if X.size == 0 or X.dtype == object:
        return X
    path = folder / f"rows{draw.count(0, 10**9)}.npy"
    np.save(path, np.asfortranarray(X) if draw.chance(0.2) else X)
    return np.load(path, mmap_mode=draw.pick(["r", "c"]))


def _cuts(draw: Draw, X: np.ndarray) -> list[np.ndarray]:
    """The rows in a few blocks, some of which may be empty."""
    places = sorted(draw.count(0, len(X)) for _ in range(draw.count(0, 3)))
    if draw.chance(0.8):
        places = sorted({place for place in places if 0 < place < len(X)})
    return np.split(X, places)


def _blocks(draw: Draw, X: np.ndarray, folder: Path) -> Any:
    parts = _cuts(draw, X)
    return kernlets.Blocks(lambda: iter(parts), len(X) if draw.chance(0.5) else None)


def _list_of_blocks(draw: Draw, X: np.ndarray, folder: Path) -> Any:
    return _cuts(draw, X)


def _iterator(draw: Draw, X: np.ndarray, folder: Path) -> Any:
    return iter(_cuts(draw, X))


def _dask_array(draw: Draw, X: np.ndarray, folder: Path) -> Any:
    import dask.array as da

    rows = max(1, draw.pick([3, 7, len(X)]))
    columns = X.shape[1] if draw.chance(0.8) else max(1, X.shape[1] // 2)
    return da.from_array(X, chunks=(rows, max(columns, 1)))


def _dask_frame(draw: Draw, X: np.ndarray, folder: Path) -> Any:
    import dask.dataframe as dd

    frame = _frame(draw, X, folder)
    return dd.from_pandas(frame, npartitions=draw.count(1, 3), sort=False)


# ------------------------------------------------------------ torch and sparse


def _torch(draw: Draw, X: np.ndarray, folder: Path) -> Any:
    import torch

    X = X.astype(X.dtype.newbyteorder("="))
    tensor = torch.tensor(X)
    if draw.chance(0.2):
        tensor = tensor.T.contiguous().T
    if draw.chance(0.1) and tensor.is_floating_point():
        tensor = tensor.bfloat16()
    return tensor


def _sparse(draw: Draw, X: np.ndarray, folder: Path) -> Any:
    kind = draw.pick(["csr_array", "csr_matrix", "csc_array", "coo_array"])
    X = X.astype(X.dtype.newbyteorder("="))
    return getattr(sparse, kind)(X.astype(np.float32) if X.dtype == "float16" else X)


CONTAINERS: dict[str, tuple[float, Callable[[Draw, np.ndarray, Path], Any]]] = {
    "array": (30, _array),
    "Fortran order": (4, _fortran),
    "strided": (3, _strided),
    "negative strides": (2, _backwards),
    "read-only": (3, _read_only),
    "unaligned": (1, _unaligned),
    "masked": (0.5, _masked),
    "has __array__": (1, _wrapped),
    "lists": (3, _lists),
    "tuples": (1, _tuples),
    "list of rows": (1, _list_of_rows),
    "odd shape": (1, _odd_shape),
    "pandas": (3, _frame),
    "memory map": (8, _memmap),
    "Blocks": (6, _blocks),
    "list of blocks": (2, _list_of_blocks),
    "iterator": (2, _iterator),
    "Dask array": (1.5, _dask_array),
    "Dask dataframe": (0.3, _dask_frame),
    "torch": (5, _torch),
    "sparse": (4, _sparse),
}
DENSE = ("array", "Fortran order", "strided", "negative strides", "read-only")
NATIVE_ONLY = ("torch", "sparse", "pandas", "Dask dataframe")
ONCE = ("iterator",)  # cannot be read again
