"""How much memory a call may take, where its rows are worked on: host or GPU."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..config import options
from .arrays import gpu_memory, is_gpu, is_torch

FREE_SHARE = 2  # without an option, a call takes this part of what is free on a GPU


class OverMemory(MemoryError):
    """More memory is needed than the options allow; what to do, here and in a shell.

    Its text gives the advice for Python, `in_shell` that for the command line.
    """

    def __init__(self, problem: str, advice: str, advice_in_shell: str) -> None:
        super().__init__(problem, advice, advice_in_shell)
        self.in_shell = f"{problem}: {advice_in_shell}"

    def __str__(self) -> str:
        return f"{self.args[0]}: {self.args[1]}"


def gpu_of(X: Any) -> Any:
    """The GPU on which blocks of X are worked on; None if it is the host."""
    if X is None or type(X) is np.ndarray:
        return None
    if isinstance(X, np.memmap):  # its blocks are moved one by one
        return options.device if is_gpu(options.device) else None
    rows = getattr(X, "empty_rows", X)  # of rows that are not made yet
    return rows.device if is_torch(rows) and rows.is_cuda else None


def memory_limit(X: Any) -> int:
    """Bytes that a call may take where X is: an option, or half of what is free."""
    gpu = gpu_of(X)
    return options.memory if gpu is None else gpu_memory_limit(gpu)


def gpu_memory_limit(gpu: Any) -> int:
    """Bytes that a call may take on this GPU."""
    if options.device_memory is not None:
        return options.device_memory
    return gpu_memory(gpu).free // FREE_SHARE


def gpu_total_memory(X: Any) -> int:
    """Bytes of the GPU on which blocks of X are worked on; 0 if it is the host."""
    gpu = gpu_of(X)
    return 0 if gpu is None else gpu_memory(gpu).total


@contextmanager
def advise_when_full() -> Iterator[None]:
    """A block of code in which memory that torch cannot get is an error with advice."""
    try:
        yield
    except RuntimeError as error:  # torch's error is one; torch may not be loaded
        if "can't allocate memory" in str(error):
            raise OverMemory(
                f"tensors do not fit into memory ({str(error).partition(': ')[2]})",
                "lower the number of atoms, landmarks or features, or pass a NumPy "
                "array or a memory map, whose rows are worked on in blocks",
                "lower --atoms or --n-landmarks, or leave --device out",
            ) from error
        if "out of memory" not in str(error):
            raise
        reason = str(error).partition(". ")[0]
        raise OverMemory(
            f"the GPU is full ({reason})",
            "free what else is on it, lower "
            "kernlets.options(device_memory=...), e.g. '4GB', pass rows as a memory "
            "map (numpy.load(path, mmap_mode='r')), or use float32 and fewer atoms or "
            "landmarks",
            "free what else is on it, lower --memory, e.g. to 4GB, --atoms or "
            "--n-landmarks, or leave --device out",
        ) from error
