"""Rows on disk up to ten million, and workers of a cluster: speed, peak memory.

The rows are written to a file in the temporary folder, once for all cases, and removed
when the process ends. What is counted as memory is the resident set of the process,
with the pages of the mapped file: the library gives them back as it goes.
"""

from __future__ import annotations

import atexit
import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from .harness.memory import watched
from .harness.skip import require
from .harness.timing import timed
from .peers.spec import SEED, Benchmark, Case, Figures, Method, Target
from .traffic import traffic

FEATURES = 100
BLOCK = 100_000  # rows that are made, or coded, at a time
BUDGET = "200MB"
LANDMARKS, COMPONENTS, ATOMS, NONZEROS = 500, 100, 200, 5
WORKER_LANDMARKS, N_CHUNKS = 2000, 64


@dataclass(frozen=True)
class Problem:
    case: Case
    path: Path | None

    def rows(self, n: int) -> np.ndarray:
        """The first n rows of the file, as a memory map."""
        return np.load(self.path, mmap_mode="r")[:n]


def blocks(n_rows: int) -> Iterator[np.ndarray]:
    """Sparse combinations of 300 atoms with noise, float32, from fixed seeds."""
    atoms = np.random.default_rng(SEED).standard_normal((300, FEATURES), dtype="f4")
    for number, first in enumerate(range(0, n_rows, BLOCK)):
        rng = np.random.default_rng([SEED, number])
        n = min(BLOCK, n_rows - first)
        chosen = atoms[rng.integers(300, size=(4, n))]
        weights = rng.standard_normal((4, n, 1), dtype="f4")
        noise = rng.standard_normal((n, FEATURES), dtype="f4")
        yield (weights * chosen).sum(0) + 0.3 * noise


def file_of(n_rows: int) -> Path:
    """The file with that many rows; it is made if it does not exist."""
    from kernlets.datasets import write_rows

    path = Path(tempfile.gettempdir()) / f"kernlets-scale-{n_rows}.npy"
    if not path.exists():
        atexit.register(_remove, path, os.getpid())
        write_rows(path, blocks(n_rows))
    return path


def _remove(path: Path, owner: int) -> None:
    if os.getpid() == owner:
        path.unlink(missing_ok=True)


def lkdl() -> Any:
    """A kernel dictionary of 200 atoms, in one pass over the rows."""
    from sklearn.pipeline import make_pipeline

    from kernlets import MOD, RBF, NystroemMap

    virtual = NystroemMap(
        RBF(15.0),
        "uniform",
        n_landmarks=LANDMARKS,
        n_components=COMPONENTS,
        random_state=SEED,
    )
    return make_pipeline(virtual, MOD(ATOMS, NONZEROS, max_iter=1, random_state=SEED))


def fit(problem: Problem) -> Callable[[int], None]:
    return lambda n: lkdl().fit(problem.rows(n))


def transform(problem: Problem) -> Callable[[int], None]:
    """Codes, block by block, each forgotten: 8 GB for ten million rows."""
    model = lkdl().fit(np.array(problem.rows(min(BLOCK, problem.case["rows"]))))

    def run(n: int) -> None:
        codes = model.transform(problem.rows(n))
        for first in range(0, n, BLOCK):
            assert np.isfinite(codes[first : first + BLOCK]).all()

    return run


JOBS = {"fit": fit, "transform": transform}


class Kernlets(Method):
    name = "kernlets"
    memory = False  # measured here, with the base line of a warm process

    def __init__(self, problem: Problem) -> None:
        self.case = problem.case
        self.work = None
        if self.case["job"] in JOBS:
            self.work = JOBS[self.case["job"]](problem)
            self.work(min(20_000, self.case["rows"]))  # compiled, threads started

    def run(self) -> Figures:
        if self.work is None:
            return workers(self.case["rows"])
        return steady(self.work, self.case["rows"])

    def figures(self, result: Figures) -> Figures:
        return result


def steady(work: Callable[[int], None], n_rows: int) -> Figures:
    """Rows per second for a hundredth, a tenth and all rows; the peak of all three."""
    from kernlets import options

    def measure() -> dict[int, float]:
        return {
            n: n / median(seconds(work, n) for _ in range(times))
            for n, times in ((n_rows // 100, 9), (n_rows // 10, 3), (n_rows, 1))
        }

    with options(memory=BUDGET):
        speeds, added = watched(measure)
    return {
        **{f"rows/s, {n:.0e}".replace("+0", ""): speed for n, speed in speeds.items()},
        "slowest/fastest": min(speeds.values()) / max(speeds.values()),
        **({} if added is None else {"peak MB": added / 1e6}),
    }


def seconds(work: Callable[..., Any], *args: Any) -> float:
    return timed(lambda: work(*args))[1]


def workers(n_rows: int) -> Figures:
    """Seconds of LKDL's transform on one and on two workers, in turns."""
    distributed = require("distributed", "pip install 'kernlets[dask]'")
    keys = {"threads_per_worker": 1, "dashboard_address": ":0"}
    with (
        distributed.Client(n_workers=1, **keys) as alone,
        distributed.Client(n_workers=2, **keys) as both,
    ):
        clients = {1: alone, 2: both}
        for client in clients.values():
            virtual_samples(client, N_CHUNKS * 64)  # libraries loaded
        sent = {
            "MB sent, fit": traffic(both, lambda: lkdl().fit(made(n_rows))) / 1e6,
            "transform": traffic(both, lambda: virtual_samples(both, n_rows)) / 1e6,
        }
        turns = [
            {n: seconds(virtual_samples, c, n_rows) for n, c in clients.items()}
            for _ in range(3)
        ]
    best = {n: min(turn[n] for turn in turns) for n in clients}
    return {
        "s, 1 worker": best[1],
        "s, 2 workers": best[2],
        "rows/s, 2 workers": n_rows / best[2],
        "speed-up": best[1] / best[2],
        "MB of rows": 4 * FEATURES * n_rows / 1e6,
        **sent,
    }


def virtual_samples(client: Any, n_rows: int) -> None:
    """Virtual samples of rows that are made on the workers; their sum comes back."""
    from kernlets import RBF, NystroemMap

    points = normals(lengths=(WORKER_LANDMARKS,))
    virtual = NystroemMap(RBF(15.0), points, n_components=COMPONENTS).fit(points)
    with client.as_current():
        client.compute(virtual.transform(made(n_rows)).sum()).result()


def made(n_rows: int) -> Any:
    """Rows in chunks that the workers make."""
    import dask.array as da

    lengths = (n_rows // N_CHUNKS,) * N_CHUNKS
    return da.map_blocks(normals, chunks=(lengths, (FEATURES,)), dtype=np.float32)


def normals(block_info: Any = None, lengths: tuple[int, ...] = ()) -> np.ndarray:
    n = lengths[0] if lengths else block_info[None]["chunk-shape"][0]
    return np.random.default_rng(SEED).standard_normal((n, FEATURES), dtype="f4")


class Scale(Benchmark):
    name = "scale"
    title = "LKDL on rows that do not fit into memory"
    about = (
        f"10 million rows of {FEATURES} features in a file of 4 GB (float32), read "
        f"through a memory map with options(memory={BUDGET!r}). Fit: {LANDMARKS} "
        f"uniform landmarks, {COMPONENTS} virtual features, MOD with {ATOMS} atoms and "
        f"{NONZEROS} non-zeros, one pass. Transform: dense codes, block by block, each "
        "forgotten. Peak MB is that of the resident set above the warm process, with "
        f"mapped pages. Workers: virtual features over {WORKER_LANDMARKS} landmarks on "
        "two local Dask clusters, one thread per worker; the best of three runs in "
        "turns. MB sent is all that client, scheduler and workers send to each other "
        "for fit (as above) and transform. Rows per second: medians of nine, three and "
        "one run."
    )
    grid = (
        {"job": "fit", "rows": 10_000_000},
        {"job": "transform", "rows": 10_000_000},
        {"job": "workers", "rows": 400_000},
    )
    quick_grid = (
        {"job": "fit", "rows": 100_000},
        {"job": "transform", "rows": 100_000},
        {"job": "workers", "rows": 16_000},
    )
    methods = (Kernlets,)
    repeats = 1

    def problem(self, case: Case) -> Problem:
        if case["job"] not in JOBS:
            return Problem(case, None)
        return Problem(case, file_of(case["rows"]))

    def targets(self, case: Case) -> list[Target]:
        if case["job"] not in JOBS:
            return [Target("speed-up", ">=", 1.6)]
        return [Target("slowest/fastest", ">=", 0.8), Target("peak MB", "<=", 2000)]


BENCHMARK = Scale()
