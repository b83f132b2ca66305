"""The way to Dask: the modules that import it are loaded when they are first used.

Dask takes long to import, and need not be installed. This is the only module that
names those that need it.
"""

from __future__ import annotations

import importlib
from typing import Any


def dask_rows() -> Any:
    """Loops over the rows of a Dask array."""
    return _load("dask_rows")


def dask_objects() -> Any:
    """Samples of a Dask collection that are not rows of numbers."""
    return _load("dask_objects")


def dask_labels() -> Any:
    """Rows of a Dask array by their labels."""
    return _load("dask_labels")


def dask_files() -> Any:
    """Files as Dask arrays, and the connection to a cluster."""
    return _load("dask_files")


def _load(name: str) -> Any:
    return importlib.import_module(f".{name}", __package__)
