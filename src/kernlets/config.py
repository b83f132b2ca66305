"""Options of the library: memory, threads, loops, device, checkpoints.

`options` has the current settings as attributes, sets them for the rest of the process,
and changes them for the calls in a block::

    kernlets.options.set(memory="8GB")

    with kernlets.options(memory="2GB", n_threads=1):
        model.fit(X, y)

    with kernlets.options(checkpoint="run1"):  # repeat it to resume after a crash
        model.fit(X, y)

Names and values are checked where they are written. The options of a block hold for all
work started in it, wherever it runs. Threads without a block of their own use the one
that was opened last, and joblib processes (for instance those of
``GridSearchCV(n_jobs=2)``) receive the options with the estimator. Tasks on a Dask
cluster carry them, too.
"""

from __future__ import annotations

import math
import os
import re
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import ContextDecorator, contextmanager
from contextvars import ContextVar, Token
from copy import copy
from dataclasses import dataclass, fields, replace
from numbers import Integral
from pathlib import Path
from typing import Any, NoReturn

_SIZE = re.compile(r"\s*(\d+\.?\d*|\.\d+)\s*([KMGT]?)(i?)B?\s*", re.IGNORECASE)
LOOPS = ("auto", "numba", "reference")


def parse_bytes(size: Any, name: str = "memory") -> int:
    """Return the bytes of ``"2GB"``, ``"512 MiB"`` or a plain number."""
    advice = f"{name}={size!r} is not a size; write e.g. '2GB', '512MB' or 10**9 bytes"
    if isinstance(size, str):
        match = _SIZE.fullmatch(size)
        if match is None:
            raise ValueError(advice)
        number, unit, binary = match.groups()
        base = 1024 if binary else 1000
        size = float(number) * base ** " KMGT".index(unit.upper() or " ")
    if isinstance(size, bool) or not isinstance(size, (int, float, Integral)):
        raise TypeError(advice)
    if not 1 <= float(size) < 2**63:
        raise ValueError(advice)
    return int(size)


def available_cores(root: Path = Path("/")) -> int:
    """Count the cores that this process may use, at most OMP_NUM_THREADS."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
    cores = cores or os.cpu_count() or 1
    limit = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    limits = [int(limit)] if limit.isdecimal() and int(limit) else []
    for folder in _control_groups("cpu", root):
        quota = _words(folder / "cpu.max")  # microseconds, and those of a period
        quota = quota or [
            *_words(folder / "cpu.cfs_quota_us"),
            *_words(folder / "cpu.cfs_period_us"),
        ]
        if len(quota) == 2 and quota[0].isdecimal():
            limits.append(max(1, math.ceil(int(quota[0]) / int(quota[1]))))
    return min([cores, *limits])


def default_memory(root: Path = Path("/")) -> int:
    """Return half of the memory of the machine, or of the container."""
    try:
        sizes = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    except (AttributeError, ValueError, OSError):
        sizes = [4 * 10**9]
    for folder in _control_groups("memory", root):
        for name in ("memory.max", "memory.limit_in_bytes"):
            sizes += [int(word) for word in _words(folder / name) if word.isdecimal()]
    return min(sizes) // 2


def _control_groups(controller: str, root: Path) -> Iterator[Path]:
    """Yield the folders with the limits of the container, the innermost first."""
    for line in _words(root / "proc/self/cgroup"):
        _, controllers, group_path = (line + "::").split(":")[:3]
        if controllers and controller not in controllers.split(","):
            continue
        outermost = root / "sys/fs/cgroup" / (controller if controllers else "")
        folder = outermost / group_path.lstrip("/")
        yield folder
        while folder != outermost and folder != folder.parent:
            folder = folder.parent
            yield folder


def _words(path: Path) -> list[str]:
    try:
        return path.read_text().split()
    except (OSError, ValueError):
        return []


class CheckpointFolder:
    """The folder in which the fits of one block keep their states, one file each.

    The n-th fit of a class uses the n-th file of that name, so that a block that is run
    again finds its files. Fits that run in parallel need a folder each.
    """

    def __init__(self, path: str | Path, trunk: CheckpointFolder | None = None) -> None:
        self.path = Path(path)
        self._counts: Counter[str] = Counter()
        self._trunk = trunk or self
        self._has_failed = False

    def next_path(self, name: str) -> Path:
        """Return the path for the next fit of a class with this name."""
        self._counts[name] += 1
        return self.path / f"{name}-{self._counts[name]}"

    def branch(self, path: Path) -> CheckpointFolder:
        """Return the folder of one of several fits that run in parallel."""
        return CheckpointFolder(path, self._trunk)

    def first_failure(self) -> bool:
        """Whether this is the first failed write, here or in another branch."""
        had_failed, self._trunk._has_failed = self._trunk._has_failed, True
        return not had_failed

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


_defaults = Settings(memory=default_memory(), n_threads=available_cores())
_base = _defaults
_in_block: ContextVar[Settings | None] = ContextVar("kernlets_options", default=None)
# Blocks that are open in any thread by their ids, the latest last. There is no lock: a
# process that is forked while another thread holds one would wait for it forever.
_open_blocks: dict[int, Settings] = {}


def current_settings() -> Settings:
    """Return settings of the enclosing block, or of the latest one in any thread."""
    settings = _in_block.get()
    if settings is not None:
        return settings
    blocks = list(_open_blocks.values())  # one call, which no other thread interrupts
    return blocks[-1] if blocks else _base


def _check_changes(changes: dict[str, Any]) -> dict[str, Any]:
    """Return the changes with values of the right types, or raise with the remedy."""
    names = [field.name for field in fields(Settings)]
    for name in changes:
        if name not in names:
            raise TypeError(f"unknown option {name!r}; choose from {sorted(names)}")
    values = {name: _check_value(name, value) for name, value in changes.items()}
    if "memory" in values:  # it holds on a GPU as well
        values.setdefault("device_memory", values["memory"])
    return values


def _check_value(name: str, value: Any) -> Any:
    if value is None and getattr(_defaults, name) is None:
        return None
    if name in ("memory", "device_memory"):
        return parse_bytes(value, name)
    if name in ("n_threads", "block_rows"):
        if isinstance(value, bool) or not isinstance(value, Integral):
            raise TypeError(f"{name}={value!r} must be a whole number, at least 1")
        if value < 1:
            raise ValueError(f"{name}={value!r} must be at least 1")
        return int(value)
    if name == "device":
        return check_device(str(value))
    if name == "loops" and value not in LOOPS:
        raise ValueError(f"loops={value!r} must be one of {LOOPS}")
    if name == "checkpoint" and not isinstance(value, (str, Path, CheckpointFolder)):
        raise TypeError(f"checkpoint={value!r} must be the path of a folder")
    return value


def check_device(device: str | None) -> str | None:
    """Return the name of a torch device, or raise if it cannot be used here."""
    if device is None:
        return None
    try:
        import torch

        torch.ones(1, device=device).item()
    except ImportError:
        raise ImportError(
            f"device={device!r} needs torch: pip install 'kernlets[torch]'"
        ) from None
    except (RuntimeError, AssertionError) as error:  # torch raises both
        reason = str(error).partition("\n")[0].partition(". ")[0]
        if "device string" in reason:  # the message lists all names of devices
            reason = "torch has no device of this name"
        raise ValueError(
            f"device={device!r} cannot be used: {reason}. Write 'cuda' ('cuda:1' is a "
            "second GPU) where there is a GPU and a torch with CUDA, or leave it out "
            "to compute on the CPU"
        ) from error
    return device


def _apply(settings: Settings, changes: dict[str, Any]) -> Settings:
    """Return the settings after checked changes; a path becomes a folder of its own."""
    if isinstance(changes.get("checkpoint"), (str, Path)):
        changes = {**changes, "checkpoint": CheckpointFolder(changes["checkpoint"])}
    return replace(settings, **changes)


class Block(ContextDecorator):
    """Options for a `with` block, or for the calls of a function that it decorates."""

    _is_used = True  # until the changes are checked

    def __init__(self, changes: dict[str, Any]) -> None:
        self._changes = _check_changes(changes)
        self._opened: tuple[Token[Settings | None], Settings] | None = None
        self._is_used = False

    def __enter__(self) -> Options:
        self._is_used = True
        if self._opened is not None:
            raise RuntimeError("these options are in use: write options(...) again")
        block = _apply(current_settings(), self._changes)
        self._opened = _in_block.set(block), block
        _open_blocks[id(block)] = block
        return options

    def __exit__(self, *_: object) -> None:
        assert self._opened is not None
        (token, block), self._opened = self._opened, None
        del _open_blocks[id(block)]
        _in_block.reset(token)

    def _recreate_cm(self) -> Block:
        """Make a block of its own for each call of a decorated function."""
        self._is_used = True
        block = copy(self)
        block._opened = None
        return block

    def __del__(self) -> None:
        if not self._is_used:
            warnings.warn(repr(self), stacklevel=2)

    def __repr__(self) -> str:
        changes = ", ".join(f"{name}={v!r}" for name, v in self._changes.items())
        return f"options({changes}) alone changes nothing: {_USAGE}"


_USAGE = "write options.set(...), or with options(...): around the calls that it is for"


class Options:
    """The current settings; read them as attributes, change them in a `with` block.

    `options.set` changes them for the rest of the process. Names and values are checked
    at the call.

    Parameters
    ----------
    memory : int or str
        Bytes that a single call may allocate for its own use, e.g. ``"2GB"``, in host
        memory and on a GPU. Default: half of the memory of the machine, or container.
    n_threads : int
        Number of threads. Default: the cores that the process may use.
    device_memory : int or str, optional
        The same as `memory`, but on a GPU only. Default: half of what is free there.
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
        return getattr(current_settings(), name)

    def __repr__(self) -> str:
        return f"options({current_settings()})"

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"options.{name} cannot be assigned: {_USAGE}")

    def __call__(self, **changes: Any) -> Block:
        return Block(changes)

    @contextmanager
    def here(self, **changes: Any) -> Iterator[Options]:
        """Open a block for this thread and the library's own; others do not see it."""
        token = _in_block.set(_apply(current_settings(), _check_changes(changes)))
        try:
            yield self
        finally:
            _in_block.reset(token)

    def set(self, **changes: Any) -> None:
        """Change the settings of the whole process, except in blocks that are open."""
        global _base
        changes = _check_changes(changes)
        _base = _apply(_base, changes)

    def changes(self) -> dict[str, Any]:
        """Return settings other than this machine's defaults, for other processes.

        Checkpoints are left out, because fits that run in parallel need a folder each.
        """
        current = current_settings()
        names = (f.name for f in fields(Settings) if f.name != "checkpoint")
        return {
            name: getattr(current, name)
            for name in names
            if getattr(current, name) != getattr(_defaults, name)
        }

    def adopt(self, changes: dict[str, Any]) -> None:
        """Adopt the settings that another process sent (`changes` of its options)."""
        global _base
        _base = replace(_defaults, **changes)


options = Options()
