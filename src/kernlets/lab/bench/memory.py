"""How long and how much memory: wall-clock seconds, and the peak of a fresh process.

Peak memory is read in a new interpreter, so that nothing that ran before counts, as
the highest resident memory during the work minus the resident memory just before it.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any, TypeVar

Result = TypeVar("Result")

_CHILD = "from kernlets.lab.bench.memory import _child; _child()"


def timed(work: Callable[[], Result]) -> tuple[Result, float]:
    """What `work` returns, and its wall-clock seconds."""
    began = time.perf_counter()
    result = work()
    return result, time.perf_counter() - began


def peak_memory(target: str, *arguments: Any) -> int | None:
    """Bytes that a piece of work adds at its peak, measured in a new interpreter.

    Parameters
    ----------
    target : str
        ``"package.module:function"``. The function gets `arguments`, prepares
        (imports, data, compiled loops) and returns the work as a function of nothing.
    *arguments
        Numbers and strings (they travel as JSON).

    Returns
    -------
    int or None
        None where the system does not tell its peak (neither /proc nor getrusage).
    """
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
    target, *arguments = json.loads(sys.argv[1])
    module, _, name = target.partition(":")
    work = getattr(importlib.import_module(module), name)(*arguments)
    print(json.dumps(watched(work)[1]))


def watched(work: Callable[[], Result]) -> tuple[Result, int | None]:
    """What `work` returns, and the bytes that it adds to this process at its peak."""
    before = _restart_peak()
    result = work()
    after = _peak()
    if before is None or after is None:
        return result, None
    return result, max(0, after - before)


def _restart_peak() -> int | None:
    """Set the kernel's high-water mark to the present use, where that is possible."""
    try:
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
    except OSError:
        pass
    return _peak()


def _peak() -> int | None:
    """High-water mark of the resident memory of this process, in bytes."""
    try:
        with open("/proc/self/status") as file:
            line = next(line for line in file if line.startswith("VmHWM"))
        return 1024 * int(line.split()[1])
    except (OSError, StopIteration):
        return _peak_of_other_systems()


def _peak_of_other_systems() -> int | None:
    try:
        import resource
    except ImportError:  # Windows
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak
