"""What a result was computed with: versions and machine, without names of hosts."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version

from ... import __version__
from ...config import options

_PACKAGES = "numpy", "scipy", "scikit-learn", "numba"


def versions() -> dict[str, str]:
    """Versions of Python, of this library and of what it computes with."""
    found = {"kernlets": __version__, "python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


def machine() -> dict[str, str]:
    """System, processor, threads in use and memory."""
    return {
        "system": f"{platform.system()} on {platform.machine()}",
        "processor": _processor(),
        "threads": str(options.n_threads),
        "memory": _memory(),
    }


def _processor() -> str:
    try:
        with open("/proc/cpuinfo") as file:
            names = (line for line in file if line.startswith("model name"))
            return next(names).split(":", 1)[1].strip()
    except (OSError, StopIteration):
        return platform.processor() or "unknown"


def _memory() -> str:
    try:
        size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return "unknown"
    return f"{size / 2**30:.0f} GiB"
