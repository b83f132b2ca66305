"""Load the modules that import Dask when they are first used.

Dask takes long to import, and need not be installed. All other modules reach it by the
functions of this one.
"""

from __future__ import annotations

import importlib
from typing import Any


def dask_rows() -> Any:
    """Return the module with loops over the rows of a Dask array."""
    return _load("dask_rows")


def dask_objects() -> Any:
    """Return the module for samples on a cluster that are not rows of numbers."""
    return _load("dask_objects")


def dask_labels() -> Any:
    """Return the module for labels of the rows of a Dask array."""
    return _load("dask_labels")


def dask_files() -> Any:
    """Return the module that opens files as Dask arrays and connects to a cluster."""
    return _load("dask_files")


def _load(name: str) -> Any:
    return importlib.import_module(f".{name}", __package__)
