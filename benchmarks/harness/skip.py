"""The exception for runs that are impossible on this machine."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

from kernlets import datasets


class Skip(Exception):
    """A run that is impossible here; the message gives the reason."""


def require(module: str, remedy: str = "pip install 'kernlets[bench]'") -> ModuleType:
    """The module, or `Skip` where it is not installed."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise Skip(f"needs the module {module}: {remedy}") from error


def load_data(name: str, **options: Any) -> datasets.Dataset:
    """A data set from the data folder, or `Skip` where it is not there."""
    try:
        return datasets.load(name, download=False, **options)
    except datasets.DatasetNotFoundError as error:
        raise Skip(f"{name} is not in the folder named by KERNLETS_DATA") from error
