"""Options of the library: memory, threads, loops, device, checkpoints.

`options` is both the current setting and a context manager::

    with kernlets.options(memory="2GB", n_threads=1):
        model.fit(X, y)

    kernlets.options.set(memory="8GB")  # for the rest of the process

    with kernlets.options(checkpoint="run1"):  # repeat it to resume after a crash
        model.fit(X, y)

The options of a block hold for all work started in it, wherever it runs. Threads
without a block of their own use the one that was opened last, and joblib processes (for
instance those of ``GridSearchCV(n_jobs=2)``) receive the options with the estimator.
Tasks on a Dask cluster carry them, too.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_SIZE = re.compile(r"\s*([\d.]+)\s*([KMGT]?)(i?)B?\s*", re.IGNORECASE)
LOOPS = ("auto", "numba", "reference")


def parse_bytes(size: int | str) -> int:
    """Bytes of ``"2GB"``, ``"512 MiB"`` or a plain number."""
    if isinstance(size, (int, float)):
        return int(size)
    match = _SIZE.fullmatch(size)
    if match is None:
        raise ValueError(f"memory={size!r} is not a size; write e.g. '2GB' or '512MB'")
    number, unit, binary = match.groups()
    factor = _UNITS[unit.upper()]
    if binary:
        factor = 1024 ** ("KMGT".index(unit.upper()) + 1)
    return int(float(number) * factor)


def _available_cores() -> int:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
    cores = cores or os.cpu_count() or 1
    limit = os.environ.get("OMP_NUM_THREADS", "")
    return min(cores, int(limit)) if limit.isdigit() and int(limit) else cores


def _default_memory() -> int:
    """Half of the machine's memory."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (AttributeError, ValueError, OSError):
        return 2 * 10**9


class CheckpointFolder:
    """The folder in which the fits of one block keep their states, one file each.

    The n-th fit of a class uses the n-th file of that name, so that a block that is run
    again finds its files. Fits that run in parallel need a folder each.
    """

    def __init__(
        self, path: str | Path, trunk: CheckpointFolder | None = None
    ) -> None:
        self.path = Path(path)
        self._counts: Counter[str] = Counter()
        self._trunk = trunk or self
        self._has_failed = False

    def numbered(self, name: str) -> Path:
        """Path for the next fit of a class with this name."""
        self._counts[name] += 1
        return self.path / f"{name}-{self._counts[name]}"

    def branch(self, path: Path) -> CheckpointFolder:
        """The folder of one of several fits that run in parallel."""
        return CheckpointFolder(path, self._trunk)

    def first_failure(self) -> bool:
        """Whether this is the first failed write, here or in another branch."""
        before, self._trunk._has_failed = self._trunk._has_failed, True
        return not before

    def __repr__(self) -> str:
        return repr(str(self.path))


@dataclass(frozen=True)
class Settings:
    """The values behind `options`."""

    memory: int  # bytes that a single call may allocate for its own use
    n_threads: int
    device_memory: int | None = None  # the same on a GPU; None: half of what is free
    block_rows: int | None = None  # rows per block; None: derived from `memory`
    device: str | None = None  # move NumPy input to this torch device
    loops: str = "auto"  # implementation of the hot loops on NumPy arrays
    checkpoint: CheckpointFolder | None = None  # folder for the states of fits


_defaults = Settings(memory=_default_memory(), n_threads=_available_cores())
_base = _defaults
_own: ContextVar[Settings | None] = ContextVar("kernlets_options", default=None)
# Blocks that are open in any thread by their ids, the latest last. There is no lock: a
# process that is forked while another thread holds one would wait for it forever.
_open: dict[int, Settings] = {}


def _current() -> Settings:
    """Settings of the enclosing block, or of the latest open one in any thread."""
    own = _own.get()
    if own is not None:
        return own
    blocks = list(_open.values())  # at once, so that no other thread comes between
    return blocks[-1] if blocks else _base


def _checked(changes: dict[str, Any]) -> dict[str, Any]:
    known = {field.name for field in fields(Settings)}
    for name, value in changes.items():
        if name not in known:
            raise TypeError(f"unknown option {name!r}; choose from {sorted(known)}")
        if name in ("n_threads", "block_rows") and value is not None and value < 1:
            raise ValueError(f"{name}={value!r} must be at least 1")
        if name == "loops" and value not in LOOPS:
            raise ValueError(f"loops={value!r} must be one of {LOOPS}")
    if "memory" in changes:  # on a GPU as well, unless that is said apart
        changes = {"device_memory": changes["memory"], **changes}
    for name in ("memory", "device_memory"):
        if changes.get(name) is not None:
            changes = {**changes, name: parse_bytes(changes[name])}
    if isinstance(changes.get("checkpoint"), (str, Path)):
        changes = {**changes, "checkpoint": CheckpointFolder(changes["checkpoint"])}
    return changes


class Options:
    """The current settings; read them as attributes, change them in a `with` block.

    `options.set` changes them for the rest of the process.

    Parameters
    ----------
    memory : int or str
        Bytes that a single call may allocate for its own use, e.g. ``"2GB"``, in host
        memory and on a GPU. Default: half of the machine's memory.
    n_threads : int
        Number of threads. Default: the available cores.
    device_memory : int or str, optional
        What `memory` is, but on a GPU only. Default: half of what is free there.
    block_rows : int, optional
        Rows per block. Default: derived from `memory`.
    device : str, optional
        Torch device to which NumPy input is moved, e.g. ``"cuda"``.
    loops : {"auto", "numba", "reference"}
        Implementation of the hot loops on NumPy arrays.
    checkpoint : path, optional
        Folder in which fits keep their states, so that they can be resumed.

    Examples
    --------
    >>> from kernlets import options
    >>> with options(memory="2GB", n_threads=1):
    ...     options.memory, options.n_threads
    (2000000000, 1)
    """

    def __getattr__(self, name: str) -> Any:
        return getattr(_current(), name)

    def __repr__(self) -> str:
        return f"options({_current()})"

    @contextmanager
    def __call__(self, **changes: Any) -> Iterator[Options]:
        with self.here(**changes):
            block = _current()
            _open[id(block)] = block
            try:
                yield self
            finally:
                del _open[id(block)]

    @contextmanager
    def here(self, **changes: Any) -> Iterator[Options]:
        """A block for this thread and the library's own; others do not see it."""
        token = _own.set(replace(_current(), **_checked(changes)))
        try:
            yield self
        finally:
            _own.reset(token)

    def set(self, **changes: Any) -> None:
        """Change the settings of the whole process."""
        global _base
        _base = replace(_base, **_checked(changes))

    def changed(self) -> dict[str, Any]:
        """Settings that differ from this machine's defaults, for other processes.

        Checkpoints are left out, because fits that run in parallel need a folder each.
        """
        now = _current()
        names = (f.name for f in fields(Settings) if f.name != "checkpoint")
        return {
            name: getattr(now, name)
            for name in names
            if getattr(now, name) != getattr(_defaults, name)
        }

    def adopt(self, changes: dict[str, Any]) -> None:
        """Adopt the settings that another process sent (`changed` of its options)."""
        global _base
        _base = replace(_defaults, **_checked(changes))


options = Options()
