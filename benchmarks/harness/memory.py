"""Resident memory of this process, and the peak that a piece of work adds to it.

`peak_memory` measures in a new interpreter, so that nothing that ran before counts.
Linux states both the present size and the peak since a given moment; other systems
state the peak of the whole process only, or nothing, and the answer is then None.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

Result = TypeVar("Result")

_CHILD = f"from {__name__} import _child; _child()"


def resident() -> int | None:
    """Bytes in memory now; None if the system does not report it."""
    return _status("VmRSS")


def peak() -> int | None:
    """Largest number of bytes since `forget_peak`, or since the process started."""
    found = _status("VmHWM")
    return _peak_of_other_systems() if found is None else found


def forget_peak() -> None:
    """Reset the peak to the present size, if the system allows it."""
    with suppress(OSError), open("/proc/self/clear_refs", "w") as file:
        file.write("5")


def watched(work: Callable[[], Result]) -> tuple[Result, int | None]:
    """What `work` returns, and the bytes that it adds to this process at its peak."""
    forget_peak()
    before = peak()
    result = work()
    after = peak()
    if before is None or after is None:
        return result, None
    return result, max(0, after - before)


def peak_memory(target: str, *arguments: Any) -> int | None:
    """Bytes that a piece of work adds at its peak, measured in a new interpreter.

    Parameters
    ----------
    target : str
        ``"package.module:function"``. The function gets `arguments`, prepares
        (imports, data, compiled loops) and returns the work as a function without
        arguments.
    *arguments
        Numbers and strings (they travel as JSON).

    Returns
    -------
    int or None
        None where the system does not state its peak.
    """
    return in_new_process(f"{__name__}:_peak_of", target, *arguments)


def in_new_process(target: str, *arguments: Any) -> Any:
    """What a function returns in a new interpreter; all values travel as JSON."""
    done = subprocess.run(
        [sys.executable, "-c", _CHILD, json.dumps([target, *arguments])],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise RuntimeError(f"{target} failed in its own process:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def _child() -> None:
    """The program of the new interpreter."""
    target, *arguments = json.loads(sys.argv[1])
    print(json.dumps(_function(target)(*arguments)))


def _peak_of(target: str, *arguments: Any) -> int | None:
    return watched(_function(target)(*arguments))[1]


def _function(target: str) -> Callable[..., Any]:
    module, _, name = target.partition(":")
    return getattr(importlib.import_module(module), name)


def _status(field: str) -> int | None:
    """A size from Linux's own account of the process, in bytes."""
    try:
        with open("/proc/self/status") as file:
            line = next(line for line in file if line.startswith(field))
    except (OSError, StopIteration):
        return None
    return 1024 * int(line.split()[1])


def _peak_of_other_systems() -> int | None:
    # not used on Linux, where a child's peak begins at the size of its parent
    try:
        import resource
    except ImportError:  # Windows
        return None
    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return size if sys.platform == "darwin" else 1024 * size
