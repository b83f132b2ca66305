"""What a call may use: memory on the host or a GPU, and threads.

Errors of a library that runs out of memory, or cannot factor a matrix, get advice.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import numpy as np

from ..config import options
from ..numerics.arrays import gpu_memory, is_gpu, is_torch
from ..numerics.convergence import warn_once_at_end
from ..numerics.scaling import quiet
from ..numerics.threads import is_at_work, serial_blas

FREE_SHARE = 2  # without an option, a call may take 1/2 of a GPU's free memory


class OverMemory(MemoryError):
    """A call needs more memory than the options allow.

    The text has advice for Python, and `in_shell` has advice for the command line.
    """

    def __init__(self, problem: str, advice: str, advice_in_shell: str) -> None:
        super().__init__(problem, advice, advice_in_shell)
        self.in_shell = f"{problem}: {advice_in_shell}"

    def __str__(self) -> str:
        return f"{self.args[0]}: {self.args[1]}"


def gpu_of(X: Any) -> Any:
    """Return the GPU that processes blocks of X, or None for the host."""
    if X is None or type(X) is np.ndarray:
        return None
    if isinstance(X, np.memmap):  # its blocks are moved to the GPU one by one
        return options.device if is_gpu(options.device) else None
    rows = getattr(X, "empty_rows", X)  # `LazyRows` have no device of their own
    return rows.device if is_torch(rows) and rows.is_cuda else None


def memory_limit(X: Any) -> int:
    """Return the bytes that a call may take on the host or GPU that processes X."""
    gpu = gpu_of(X)
    return options.memory if gpu is None else gpu_memory_limit(gpu)


def gpu_memory_limit(gpu: Any) -> int:
    """Return the option for GPU memory; without it, half of what is free."""
    if options.device_memory is not None:
        return options.device_memory
    return gpu_memory(gpu).free // FREE_SHARE


@contextmanager
def at_work() -> Iterator[None]:
    """Set up a block of code that computes for an estimator, or on a cluster.

    BLAS runs on one thread. NumPy does not warn of overflow, since results are checked.
    One warning tells of all iterations without convergence. Inside such a block, also
    in the threads of the library, another one sets nothing again.
    """
    try:
        if is_at_work.get():
            yield
            return
        token = is_at_work.set(True)
        try:
            with warn_once_at_end(), serial_blas, quiet():
                yield
        finally:
            is_at_work.reset(token)
    except (np.linalg.LinAlgError, RuntimeError) as error:  # torch may be absent
        advised = _with_advice(error)
        if advised is None:
            raise
        raise advised from error


def work_context() -> AbstractContextManager[None]:
    """Return `at_work()`; inside such a block, a context that does nothing."""
    return nullcontext() if is_at_work.get() else at_work()


def _with_advice(error: Exception) -> Exception | None:
    """Return an error with advice for one of torch about memory, or of LAPACK.

    LAPACK fails at numbers that are not finite, or near the ends of their range.
    """
    if "LinAlgError" in type(error).__name__:
        return ValueError(
            f"a matrix of these samples cannot be factored ({error}): scale the "
            "samples, e.g. with UnitNorm or StandardScaler, or pass float64"
        )
    if "can't allocate memory" in str(error):
        return OverMemory(
            f"tensors do not fit into memory ({str(error).partition(': ')[2]})",
            "lower the number of atoms, landmarks or features, or pass a NumPy "
            "array or a memory map, whose rows are worked on in blocks",
            "lower --atoms or --n-landmarks, or leave --device out",
        )
    if "out of memory" not in str(error):
        return None
    reason = str(error).partition(". ")[0]
    return OverMemory(
        f"the GPU is full ({reason})",
        "free what else is on it, lower "
        "kernlets.options(device_memory=...), e.g. '4GB', pass rows as a memory "
        "map (numpy.load(path, mmap_mode='r')), or use float32 and fewer atoms or "
        "landmarks",
        "free what else is on it, lower --memory, e.g. to 4GB, --atoms or "
        "--n-landmarks, or leave --device out",
    )
