"""Threads over independent pieces of work, with BLAS kept to one thread inside.

All parallelism of the library on a CPU is here: pieces (row blocks, tiles of a product,
classes) run on a few threads, and each piece is serial. The pieces do not depend on the
number of threads, so the results do not either. This also avoids the busy waiting of a
threaded BLAS between two products. The one exception is `threads_if_large`.
"""

from __future__ import annotations

import contextvars
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from itertools import repeat
from typing import Any, Generic, TypeVar

from ..config import options
from .scaling import quiet

Item = TypeVar("Item")
Result = TypeVar("Result")

_inside = threading.local()
is_at_work: ContextVar[bool] = ContextVar("kernlets_at_work", default=False)
"""Whether `data.limits.at_work` has set up BLAS and NumPy for what runs here."""


class _ThreadUsers(threading.local):
    """The users of `serial_blas` in each thread."""

    count = 0


class _SerialBlas:
    """Counts users, so that concurrent callers restore the BLAS setting only once.

    The caller that restores it need not be the one that set it, nor in its thread. A
    process is forked between two changes; the child has the users of one thread only.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._users = 0
        self._former_counts: list[int] = []
        self._thread_users = _ThreadUsers()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(
                before=self._lock.acquire,
                after_in_parent=self._lock.release,
                after_in_child=self._forget_other_threads,
            )

    def __enter__(self) -> None:
        with self._lock:
            if self._users == 0:
                self._former_counts = _set_blas_threads(repeat(1))
            self._users += 1
            self._thread_users.count += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._users -= 1
            self._thread_users.count -= 1
            if self._users == 0:
                _set_blas_threads(self._former_counts)

    def _forget_other_threads(self) -> None:
        users, self._users = (
            self._users,
            max(0, self._thread_users.count),
        )
        try:
            if users and not self._users:
                _set_blas_threads(self._former_counts)
        finally:
            self._lock.release()

    def __reduce__(self) -> str:
        """Pickle by name: estimators from a notebook are sent with what they use."""
        return "serial_blas"


serial_blas = _SerialBlas()
MIN_THREADED_ROWS = 1500  # matrices with fewer rows are factored on one thread
SMALLEST_POOL = 3  # threads of the smallest pools


@contextmanager
def threads_if_large(n: int) -> Iterator[None]:
    """Let BLAS use `n_threads` threads to factor n rows, if n is large.

    A call of LAPACK cannot be cut into pieces. So from `MIN_THREADED_ROWS` rows on a
    result may depend on the number of threads, within rounding. Below it, threads save
    little time, and on a busy machine they cost much more.
    """
    with serial_blas:
        if n < MIN_THREADED_ROWS or is_inside():
            yield
            return
        former_counts = _set_blas_threads(repeat(options.n_threads))
        try:
            yield
        finally:
            _set_blas_threads(former_counts)


def _set_blas_threads(counts: Iterable[int]) -> list[int]:
    """Set the number of threads of each BLAS library; return the former numbers.

    threadpoolctl lets one thread at a time set them and silently ignores the others.
    Here the caller holds a lock, so it may take that control.
    """
    former_counts = []
    for library, count in zip(_blas_libraries(), counts, strict=False):
        former_counts.append(library.get_num_threads())
        if count == former_counts[-1]:
            continue
        release_control = getattr(library, "clear_controlling_thread", None)
        if release_control is not None:
            release_control(force=True)
        library.set_num_threads(count)
        if release_control is not None:
            release_control(force=True)
    return former_counts


def _blas_libraries() -> list[Any]:
    return _blas_controller(os.getpid()).lib_controllers


@lru_cache(maxsize=1)
def _blas_controller(pid: int) -> Any:
    import scipy.linalg  # noqa: F401 - brings a BLAS of its own
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


@lru_cache(maxsize=SMALLEST_POOL + 1)
def _pool(n_threads: int, pid: int) -> ThreadPoolExecutor:
    """Return the pool of a size; `pid` makes a forked child build its own."""
    name = "kernlets"
    return ThreadPoolExecutor(n_threads, name, initializer=_limit_this_thread)


def _limit_this_thread() -> None:
    """Set one BLAS thread for a thread of the pool, if BLAS counts for each thread."""
    for library in _blas_libraries():
        if getattr(library, "threading_layer", None) == "openmp":
            library.set_num_threads(1)


def is_inside() -> bool:
    """Whether this thread works on a piece, or for a waiting thread that does."""
    return getattr(_inside, "yes", False)


@contextmanager
def marked_inside(is_marked: bool = True) -> Iterator[None]:
    """Let `parallel` be serial in the block: a pool must not wait for itself."""
    was_inside, _inside.yes = is_inside(), is_marked
    try:
        yield
    finally:
        _inside.yes = was_inside


def parallel(
    f: Callable[[Item], Result], items: Iterable[Item], at_once: int | None = None
) -> list[Result]:
    """[f(item) for item in items], on threads unless this already is one.

    At most `at_once` items are worked on at the same time, where memory asks for it.
    """
    items = list(items)
    if len(items) < 2 and is_at_work.get():  # nothing to set or to share
        return [f(item) for item in items]
    n_threads = min(options.n_threads, at_once or options.n_threads)
    with serial_blas, quiet():
        if len(items) < 2 or n_threads < 2 or is_inside():
            return [f(item) for item in items]
        return _on_threads(f, items, n_threads)


def _on_threads(
    f: Callable[[Item], Result], items: list[Item], n_threads: int
) -> list[Result]:
    """Run the items on threads; the caller works, too, which saves waiting."""
    queue = _Queue(f, items)
    # a small pool for few threads: on a GPU every thread holds memory
    size = n_threads if n_threads <= SMALLEST_POOL else options.n_threads
    pool, n_helpers = _pool(size, os.getpid()), min(n_threads, len(items)) - 1
    helpers = [pool.submit(queue.work) for _ in range(n_helpers)]
    try:
        queue.work()
    finally:
        queue.close()
    for helper in helpers:
        if not helper.cancel():  # it has begun
            helper.result()
    return queue.results()


class _Queue(Generic[Item, Result]):
    """Items that several threads take in turn, in their order.

    After an error no thread takes an item. All items before it have been taken, so that
    the first error in the order of the items does not depend on the number of threads.
    """

    def __init__(self, f: Callable[[Item], Result], items: list[Item]) -> None:
        self._f = f
        self._context = contextvars.copy_context()
        self._lock = threading.Lock()
        self._waiting = list(enumerate(items))[::-1]
        self._results: dict[int, Result] = {}
        self._errors: dict[int, Exception] = {}

    def work(self) -> None:
        """Work on items until none is left."""
        with marked_inside(), quiet():  # NumPy 1 keeps this setting for each thread
            while (job := self._take()) is not None:
                position, item = job
                try:
                    run = self._context.copy().run
                    self._results[position] = run(self._f, item)
                except Exception as error:
                    self._errors[position] = error
                    self.close()

    def _take(self) -> tuple[int, Item] | None:
        with self._lock:
            return self._waiting.pop() if self._waiting else None

    def close(self) -> None:
        """Let no more items be taken."""
        with self._lock:
            self._waiting.clear()

    def results(self) -> list[Result]:
        """Return all results, or the first error."""
        if self._errors:
            raise self._errors[min(self._errors)]
        return [self._results[position] for position in range(len(self._results))]
