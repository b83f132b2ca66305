"""Open files as Dask collections and connect to a cluster, for the command line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np

CHUNK_BYTES = 64 * 2**20
CONNECT_TIMEOUT = 10.0  # seconds to wait for a scheduler


def open_npy(path: Path) -> da.Array:  # (n, p)
    """Open a `.npy` file, which all workers see under this path, in chunks of rows."""
    X = np.lib.format.open_memmap(path, mode="r")
    n, p = X.shape
    step = max(1, CHUNK_BYTES // (X.dtype.itemsize * p))
    lengths = tuple(min(step, n - begin) for begin in range(0, n, step))
    name = str(path.resolve())
    return da.map_blocks(_read_npy, name, chunks=(lengths, (p,)), dtype=X.dtype)


def _read_npy(path: str, block_info: Any = None) -> np.ndarray:
    first, last = block_info[None]["array-location"][0]
    return np.array(np.lib.format.open_memmap(path, mode="r")[first:last])


def open_parquet(files: list[Path], columns: list[str]) -> Any:
    """Open columns of Parquet files, which all workers see under these paths."""
    import dask.dataframe as dd

    return dd.read_parquet([str(file.resolve()) for file in files], columns=columns)


@contextmanager
def connect(scheduler: str) -> Iterator[Any]:
    """Connect to the scheduler at this address; "local" starts workers here."""
    from distributed import Client

    if scheduler == "local":
        with Client(dashboard_address=":0") as client:
            yield client
        return
    try:
        client = Client(scheduler, timeout=CONNECT_TIMEOUT)
    except (OSError, ValueError) as error:
        reason = str(error) or f"no answer within {CONNECT_TIMEOUT:g} s"
        raise ValueError(
            f"--scheduler {scheduler}: {reason}; give an address such as "
            "tcp://host:8786, or local"
        ) from error
    with client:
        yield client
