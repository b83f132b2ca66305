"""Sets of digits, readers for the user's own files, and image corruption.

`load(name)` returns a :class:`Dataset`. `read_table(path)` reads a user's file, and
`open_rows(path)` opens one that is larger than memory. `preprocess` and `corrupt`
prepare rows as in the papers' protocols.
"""

from __future__ import annotations

from . import corrupt, preprocess
from .base import Dataset
from .catalogue import load
from .errors import DataFileError
from .locations import DatasetNotFoundError
from .patches import distance_percentile, whitened_patches
from .preprocess import remove_mean_and_normalize, unit_norm
from .read_files import read_table
from .rows_on_disk import open_rows, write_rows
from .series import covariances, region_covariances, z_normalize
from .shifts import shifted, shifted_batches
from .table import Table

__all__ = [
    "DataFileError",
    "Dataset",
    "DatasetNotFoundError",
    "Table",
    "corrupt",
    "covariances",
    "distance_percentile",
    "load",
    "open_rows",
    "preprocess",
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
