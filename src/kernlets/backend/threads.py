"""Threads over independent pieces of work, with BLAS kept to one thread inside.

All parallelism of the library on a CPU is here: pieces (row blocks, classes) run on
a few threads, and each piece is serial. That keeps results independent of the number
of threads, and avoids the busy waiting of a threaded BLAS between two products.
"""

from __future__ import annotations

import contextvars
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import lru_cache
from typing import Any, TypeVar

from ..config import options

Item = TypeVar("Item")
Result = TypeVar("Result")

_inside = threading.local()


class _SerialBlas:
    """Counts users, so that concurrent callers restore the BLAS setting only once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._limit: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if self._users == 0:
                self._limit = _blas_controller(os.getpid()).limit(limits=1)
            self._users += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0:
                self._limit.restore_original_limits()


serial_blas = _SerialBlas()
SMALL = 1500  # rows of a matrix to whose factorisation threads bring little


def serial_if_small(n: int) -> AbstractContextManager[Any]:
    """Serial BLAS for a factorisation of n rows, if n is small.

    Threads bring little to it, and on a busy machine cost many times the rest.
    """
    return serial_blas if n < SMALL else nullcontext()


@lru_cache(maxsize=1)
def _blas_controller(pid: int) -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


@lru_cache(maxsize=1)
def _pool(n_threads: int, pid: int) -> ThreadPoolExecutor:
    """One pool per process; `pid` makes a forked child build its own."""
    return ThreadPoolExecutor(n_threads, thread_name_prefix="kernlets")


def is_inside() -> bool:
    """Whether this is a thread of the pool, or one that such a thread waits for."""
    return getattr(_inside, "yes", False)


@contextmanager
def marked_inside(yes: bool = True) -> Iterator[None]:
    """Let `parallel` be serial in the block: a pool must not wait for itself."""
    before, _inside.yes = is_inside(), yes
    try:
        yield
    finally:
        _inside.yes = before


def parallel(f: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """[f(item) for item in items], on threads unless this already is one."""
    items = list(items)
    if len(items) < 2 or options.n_threads < 2 or is_inside():
        return [f(item) for item in items]
    context = contextvars.copy_context()

    def run(item: Item) -> Result:
        with marked_inside():
            return context.copy().run(f, item)

    with serial_blas:
        return list(_pool(options.n_threads, os.getpid()).map(run, items))
