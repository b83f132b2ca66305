"""Describes the machine and the versions of a result, without host names."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from kernlets import __version__
from kernlets.config import options
from kernlets.numerics.arrays import is_gpu

CODE_VARIABLES = "OPENBLAS_CORETYPE", "NUMBA_CPU_NAME"  # code for another processor
PACKAGES = ("numpy", "scipy", "scikit-learn", "numba")


def machine(n_threads: int | None = None) -> dict[str, Any]:
    """System, processor, cores, memory, threads in use, and BLAS libraries."""
    return {
        "system": f"{platform.system()} on {platform.machine()}",
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory": _memory(),
        "threads": n_threads or options.n_threads,
        "blas": _blas(),
        "code_for": _code_for(),
    }


def versions(*more: str) -> dict[str, str]:
    """Versions of this library, Python, and packages as far as they are installed."""
    found = {"kernlets": __version__, "python": platform.python_version()}
    for name in (*PACKAGES, *more):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


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


def _blas() -> str:
    import numpy  # noqa: F401  its BLAS must be loaded to be seen
    from threadpoolctl import threadpool_info

    return "; ".join(
        f"{lib['internal_api']} {lib['version']} ({lib.get('architecture', '?')}), "
        f"{lib['num_threads']} threads"
        for lib in threadpool_info()
        if lib["user_api"] == "blas"
    )


def _code_for() -> str:
    """The processors whose code libraries were told to use, or an empty text."""
    told = ((name, os.environ.get(name)) for name in CODE_VARIABLES)
    return ", ".join(f"{name}={value}" for name, value in told if value)


def device_name(device: str | None) -> str:
    """The vendor's name of a device, "cpu" without one."""
    if not is_gpu(device):
        return device or "cpu"
    import torch

    return torch.cuda.get_device_name(device)
