"""Peak memory of one method, in a new process so that nothing else is counted.

The base line is the process after a tiny warm-up: interpreter and libraries loaded,
code compiled, no data yet. Worker processes that a peer starts are not counted.
"""

from __future__ import annotations

import importlib

from ..harness.memory import forget_peak, in_new_process, peak, resident
from .spec import Benchmark, Method

MB = 1e6


def peak_of(
    benchmark: Benchmark, index: int, method: type[Method], quick: bool
) -> dict[str, float]:
    """``peak_mb`` above the base line, and ``data_mb``, the part that the data take."""
    if resident() is None:  # only Linux states the peak since a given moment
        return {}
    place = benchmark.methods.index(method)
    module = type(benchmark).__module__
    return in_new_process(f"{__name__}:measure", module, index, place, quick)


def measure(module: str, index: int, place: int, quick: bool) -> dict[str, float]:
    """Run one method of the module's benchmark once; the process must be a new one."""
    benchmark: Benchmark = importlib.import_module(module).BENCHMARK
    method = benchmark.methods[place]
    benchmark.warm_up(method)
    base = resident() or 0
    prepared = method(benchmark.problem(benchmark.cases(quick)[index]))
    data = resident() or 0
    forget_peak()
    result = prepared.run()
    most = peak() or 0
    del result  # alive until the peak was read
    return {
        "peak_mb": round((most - base) / MB, 1),
        "data_mb": round((data - base) / MB, 1),
    }
