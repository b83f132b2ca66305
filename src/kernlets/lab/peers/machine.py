"""What the measurements were made on: processor, memory, libraries, threads.

Nothing that names the machine itself, its owner or its folders.
"""

from __future__ import annotations

import os
import platform
from importlib import metadata
from pathlib import Path
from typing import Any

PACKAGES = (
    "kernlets",
    "numpy",
    "scipy",
    "scikit-learn",
    "numba",
    "spams-bin",
    "dictlearn",
)
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
)


def limit_threads(n_threads: int) -> None:
    """For this process and its children; call it before NumPy is imported."""
    os.environ.update({name: str(n_threads) for name in THREAD_VARIABLES})


def description(n_threads: int) -> dict[str, Any]:
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gb": _memory_gb(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "threads": n_threads,
        "blas": _blas(),
        "versions": {name: _version(name) for name in PACKAGES},
    }


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def _memory_gb() -> float | None:
    try:
        size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None
    return round(size / 1e9, 1)


def _blas() -> list[str]:
    import numpy  # noqa: F401  its BLAS must be loaded to be seen
    from threadpoolctl import threadpool_info

    return [
        f"{lib['internal_api']} {lib['version']} ({lib.get('architecture', '?')}), "
        f"{lib['num_threads']} threads"
        for lib in threadpool_info()
        if lib["user_api"] == "blas"
    ]


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        if name != "kernlets":
            return None
        import kernlets  # run from a checkout that is not installed

        return kernlets.__version__
