"""Sets of digits, readers for the user's own files, and preparation of rows.

`load(name)` returns a :class:`Dataset`. `read_table(path)` reads a user's file, and
`open_rows(path)` opens one that is larger than memory.
"""

from __future__ import annotations

from ..io.data_file import DataFileError, Table
from ..io.tables import open_rows, read_table, write_rows
from .catalogue import Dataset, DatasetNotFoundError, load
from .preparation import (
    add_noise,
    covariances,
    distance_percentile,
    drop_pixels,
    region_covariances,
    remove_mean_and_normalize,
    shifted,
    shifted_batches,
    unit_norm,
    whitened_patches,
    z_normalize,
)

__all__ = [
    "DataFileError",
    "Dataset",
    "DatasetNotFoundError",
    "Table",
    "add_noise",
    "covariances",
    "distance_percentile",
    "drop_pixels",
    "load",
    "open_rows",
    "read_table",
    "region_covariances",
    "remove_mean_and_normalize",
    "shifted",
    "shifted_batches",
    "unit_norm",
    "whitened_patches",
    "write_rows",
    "z_normalize",
]
