"""The exception for runs that are impossible on this machine."""

from __future__ import annotations

import importlib
from types import ModuleType


class Skip(Exception):
    """A run that is impossible here; the message gives the reason."""


def require(module: str, remedy: str = "pip install 'kernlets[bench]'") -> ModuleType:
    """The module, or `Skip` where it is not installed."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise Skip(f"needs the module {module}: {remedy}") from error
