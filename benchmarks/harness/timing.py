"""Wall-clock seconds. No other module of benchmarks, papers or demo reads a clock.

It waits for work on a GPU, so that its seconds are counted, too.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median
from typing import TypeVar

from kernlets.config import options
from kernlets.numerics.arrays import is_gpu

Result = TypeVar("Result")


def timed(work: Callable[[], Result]) -> tuple[Result, float]:
    """What `work` returns, and its seconds."""
    synchronize()
    began = time.perf_counter()
    result = work()
    synchronize()
    return result, time.perf_counter() - began


def timed_median(work: Callable[[], Result], repeats: int) -> tuple[Result, float]:
    """The last result, and the median seconds after one run that is not counted.

    The first run compiles and warms up.
    """
    work()
    runs = [timed(work) for _ in range(repeats)]
    return runs[-1][0], median(seconds for _, seconds in runs)


class Stopwatch:
    """Seconds of the stages of one run, added up by name."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def __call__(self, stage: str, work: Callable[[], Result]) -> Result:
        """Do the work and add its seconds to those of the stage."""
        result, seconds = timed(work)
        self.seconds[stage] = self.seconds.get(stage, 0.0) + seconds
        return result


def synchronize() -> None:
    """Wait for the GPU named in the options, so that timings include its work."""
    if is_gpu(options.device):
        import torch

        torch.cuda.synchronize(options.device)
