"""Sets the number of threads of libraries before they are loaded.

Nothing is imported here that loads NumPy or reads the number of threads.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
)


def limit_threads(n_threads: int) -> None:
    """For this process and its children; call it before NumPy is imported."""
    os.environ.update(dict.fromkeys(VARIABLES, str(n_threads)))


@contextmanager
def threads_of_children(n_threads: int) -> Iterator[None]:
    """Processes that are started inside the block use this many threads."""
    before = {name: os.environ.get(name) for name in VARIABLES}
    limit_threads(n_threads)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
