"""Peak memory of one method, in a fresh process so that nothing else is counted.

``python -m benchmarks.memory NAME CASE METHOD [--quick]`` prints it as JSON. The base
line is the process after a tiny warm-up: interpreter and libraries loaded, code
compiled, no data yet. Worker processes that a peer starts are not counted.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from benchmarks import load

from .spec import Benchmark, Method

MB = 1e6
_STATUS = Path("/proc/self/status")


def peak_of(
    benchmark: Benchmark, index: int, method: type[Method], quick: bool
) -> dict[str, float]:
    """``peak_mb`` above the base line, and ``data_mb``, the data's part of it."""
    if not _STATUS.exists():  # only Linux tells the peak since a given moment
        return {}
    place = str(benchmark.methods.index(method))
    command = [sys.executable, "-m", __name__, benchmark.name, str(index), place]
    answer = subprocess.run(
        command + ["--quick"] * quick,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    return json.loads(answer.stdout.splitlines()[-1])


def status_mb(field: str) -> float:
    """VmRSS (now) or VmHWM (peak).

    Not getrusage: its peak starts at the size of the process that started this one.
    """
    for line in _STATUS.read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024 / MB
    raise KeyError(field)


def process_peak() -> dict[str, float]:
    """``peak MB`` of the whole process since `forget_peak`, where it can be told."""
    return {"peak MB": status_mb("VmHWM")} if _STATUS.exists() else {}


def forget_peak() -> None:
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        pass  # forbidden in some containers; the peak then includes the preparation


def measure(
    benchmark: Benchmark, index: int, method: type[Method], quick: bool
) -> dict[str, float]:
    """Run the method once in this process, which must be a fresh one."""
    from .runner import warm_up

    warm_up(benchmark, method)
    base = status_mb("VmRSS")
    prepared = method(benchmark.problem(benchmark.cases(quick)[index]))
    data = status_mb("VmRSS")
    forget_peak()
    result = prepared.run()
    peak = status_mb("VmHWM")
    del result  # alive until the peak was read
    return {"peak_mb": round(peak - base, 1), "data_mb": round(data - base, 1)}


def main(arguments: list[str]) -> None:
    name, index, place = arguments[:3]
    benchmark = load(name)
    method = benchmark.methods[int(place)]
    print(json.dumps(measure(benchmark, int(index), method, "--quick" in arguments)))


if __name__ == "__main__":
    main(sys.argv[1:])
