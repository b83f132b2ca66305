"""Decorators that compile loops with Numba and store the code for later processes.

The code is stored in Numba's cache, the first folder that can be written to of these:
that of the environment variable NUMBA_CACHE_DIR, ``__pycache__`` beside the loops, the
user's cache folder. Containers with a read-only file system and services without a home
have none, and a disk can be full. Then a process compiles the loops for itself, which
takes seconds and changes no result. It does so once, too, where a file of the cache is
damaged or was made from other sources, and replaces that file.
"""

from __future__ import annotations

import gc
import logging
import os
import warnings
from collections.abc import Callable
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit
from numba.core.caching import FunctionCache
from numba.core.compiler_lock import global_compiler_lock

from .import_lock import import_lock

REMEDY = "Set NUMBA_CACHE_DIR to a folder that you, and nobody else, can write to."


class _Cache(FunctionCache):
    """Numba's cache of one function; its failures cost time but raise no error."""

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        """The key of a compiled function: Numba's, and the sources of all loops.

        Functions and constants of other files become part of its code. Numba compares
        the function's own file only, and would run what was compiled before an upgrade.
        """
        return super()._index_key(sig, codegen), _sources_digest()

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            loaded = super().load_overload(sig, target_context)
        except Exception:  # a damaged or outdated pickle can raise anything
            self._replace_index()
            loaded = None
        if loaded is None:
            _log_compilation()
        return loaded

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except Exception as error:
            _warn(f"could not be stored in {self.cache_path} ({error!r})")

    def _replace_index(self) -> None:
        """Write an empty index, so that what is compiled now can be stored in it."""
        try:
            self.flush()
        except Exception as error:
            _warn(f"could not be loaded from {self.cache_path} ({error!r})")


@cache
def _log_compilation() -> None:
    """Say once in a process why its first call takes longer."""
    logging.getLogger("kernlets").info(
        "compiling loops, which takes seconds and happens once on this machine"
    )


@cache
def _sources_digest() -> str:
    files = sorted(Path(__file__).parent.rglob("*.py"))
    others = "torch", "triton"  # no compiled loop imports these
    sources = [file.read_bytes() for file in files if not file.name.startswith(others)]
    return sha256(b"".join(sources)).hexdigest()


def _jit(
    function: Callable[..., Any], fastmath: set[str], from_python: bool = True
) -> Callable[..., Any]:
    """A function that is compiled when it is first called, or loaded from the cache.

    What it calls becomes part of its code. Otherwise a process that compiles it would
    call one copy and a process that loads it from the cache another, and the two may
    round differently.
    """
    decorate = njit(  # type: ignore[call-overload]
        nogil=True,
        error_model="numpy",
        forceinline=True,
        fastmath=fastmath,
        no_cfunc_wrapper=True,  # calls from C are not needed
        no_cpython_wrapper=not from_python,
    )
    compiled: Any = decorate(function)
    try:
        compiled._cache = _Cache(function)  # as njit(cache=True) does with Numba's own
    except RuntimeError:  # there is no folder that Numba can write to
        _warn("cannot be stored: no folder for them can be written to")
    compiler = compiled._compiler
    compiler.compile = partial(_without_collections, compiler.compile)
    return compiled


def _without_collections(compile_: Callable[..., Any], *args: Any) -> Any:
    """Compile, and leave garbage until then: collecting it takes an eighth of the time.

    The compiler's lock is held, and a process is forked only without it, so that no
    child begins without collections.
    """
    if not gc.isenabled():
        return compile_(*args)
    gc.disable()
    try:
        return compile_(*args)
    finally:
        gc.enable()


def _warn(trouble: str) -> None:
    """Say once in a process that its loops take longer to start."""
    global _has_warned
    if not _has_warned:
        _has_warned = True
        warnings.warn(
            f"compiled loops {trouble}, so that every process compiles them again, "
            f"which takes seconds. {REMEDY}",
            stacklevel=2,
        )


_has_warned = False


# A process is forked when no thread compiles. Otherwise the child would have half of a
# compiler, and would wait forever for the thread that compiled. A thread that imports
# loops may go on to compile, so its lock is taken first.
def _acquire_locks() -> None:
    import_lock.acquire()
    global_compiler_lock.acquire()


def _release_locks() -> None:
    global_compiler_lock.release()
    import_lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_acquire_locks,
        after_in_parent=_release_locks,
        after_in_child=_release_locks,
    )

# What fastmath allows but for "no NaN" and "no infinity": loops meet both, and with
# those promises a comparison may come out either way and leave an index unset.
jit = partial(_jit, fastmath={"reassoc", "contract", "arcp", "nsz", "afn"})
# For functions that only compiled ones call: there is no way in from Python to compile.
part_jit = partial(jit, from_python=False)
# Without reordering: for sums whose rounding is the point, as in range reduction.
exact_jit = partial(_jit, fastmath={"contract"})


@part_jit
def largest_magnitude(x):
    """The largest |value|, which is NaN or infinite if one of the values is."""
    peak = x.dtype.type(0)
    for a in range(len(x)):
        if not abs(x[a]) <= peak:
            peak = abs(x[a])
            if not peak < np.inf:
                break
    return peak
