"""Thousands of atoms on one GPU: ``python -m benchmarks.giants [--out FILE] [JOB …]``.

Jobs: `pursuit` codes 100 000 rows over up to 65 536 atoms and compares a sample of rows
with float64; `positive` is the same with non-negative codes; `learn` runs iterations of
K-SVD on a million rows; `disk` on ten million rows of a temporary file (31 GB) beside
the same in the GPU's memory; `batches` learns from mini-batches of rows; `landmarks`
maps a million rows over 65 536 landmarks. Seconds are medians after a warm-up. Peaks
are those of torch's allocator, beside the data. Rows are sparse combinations of planted
atoms with noise.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from kernlets import KSVD, OMP, NystroemMap, OnlineDictionary, Schedule, options
from kernlets.coders import encode
from kernlets.dictionaries import ExplicitDictionary
from kernlets.loops.omp.reference import rows_omp

from .harness.records import write_json
from .harness.timing import timed, timed_median

GIB = 2**30
#: rows, features, atoms, non-zeros, and the seconds and GiB that are aimed at
PURSUITS = [
    (100_000, 768, 3072, 10, 0.04, 8),
    (100_000, 768, 4096, 32, 0.15, 8),
    (100_000, 768, 16_384, 10, None, 8),
    (100_000, 768, 16_384, 32, 0.5, 8),
    (20_000, 576, 65_536, 32, 0.5, 8),
]
LEARNING = [
    (100_000, 768, 3072, 10, None, 20),
    (1_000_000, 768, 3072, 10, 1.0, 20),
    (1_000_000, 768, 16_384, 32, 8.0, None),
]
ON_DISK = (10_000_000, 768, 3072, 10)
STREAMED = 0.8  # of the rate in memory
BATCHES = (1_000_000, 768, 3072, 10)
PASSES = 3
WITHIN = 1.02  # of the error of the full update after as many passes
LANDMARKS = (1_000_000, 768, 65_536, 512)  # rows, features, landmarks, components
LEARNED = {"update": "ksvd-parallel", "random_state": 0}
CHECKED = 64  # rows that are compared with float64


def planted(n: int, p: int, m: int, q: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Atoms (m, p) of unit norm, and rows (n, p) of q of them with noise."""
    rng = torch.Generator(device="cuda").manual_seed(0)
    draw = partial(torch.randn, device="cuda", generator=rng)
    atoms = draw(m, p)
    atoms /= atoms.norm(dim=1, keepdim=True)
    X = 0.02 * draw(n, p)
    for rows in torch.arange(n, device="cuda").split(65_536):
        for _ in range(q):
            chosen = torch.randint(m, (len(rows),), device="cuda", generator=rng)
            X[rows] += draw(len(rows), 1) * atoms[chosen]
    return atoms, X


def peak_of(run: Any) -> tuple[Any, float]:
    """The result, and GiB beyond what was allocated before."""
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    result = run()
    torch.cuda.synchronize()
    return result, (torch.cuda.max_memory_allocated() - before) / GIB


def compared(atoms: torch.Tensor, X: torch.Tensor, codes: Any) -> dict[str, Any]:
    """Supports and errors of some rows beside those of float64 on the host."""
    rows = np.linspace(0, len(X) - 1, CHECKED).astype(int)
    D, some = atoms.cpu().double().numpy(), X[rows].cpu().double().numpy()
    energy = (some**2).sum(axis=1)
    indices, _, error = rows_omp(D, some, energy, codes.width, 0.0)
    found = np.sort(codes.indices[rows].cpu().numpy(), axis=1)
    same = (found == np.sort(indices, axis=1)).all(axis=1)
    difference = np.abs(codes.residual[rows].cpu().numpy() - error) / energy
    return {"same support": same.mean(), "error differs by": difference.max()}


def pursuit(positive: bool = False) -> Iterator[dict[str, Any]]:
    for n, p, m, q, seconds_wanted, peak_wanted in PURSUITS:
        atoms, X = planted(n, p, m, q)
        run = partial(encode, ExplicitDictionary(atoms), OMP(q, positive=positive), X)
        codes, seconds = timed_median(run, 3)
        codes, peak = peak_of(run)
        _, product = timed_median(lambda X=X, atoms=atoms: _product(X, atoms), 3)
        row = {"job": "positive" if positive else "pursuit", "size": [n, p, m, q]}
        row |= {"seconds": seconds, "aim": seconds_wanted, "product": product}
        row |= {"peak GiB": peak, "aim GiB": peak_wanted}
        row["mean residual"] = float(codes.residual.mean())
        yield row if positive else row | compared(atoms, X, codes)


def _product(X: torch.Tensor, atoms: torch.Tensor) -> None:
    for rows in X.split(16_384):
        _ = rows @ atoms.T
    torch.cuda.synchronize()


def learned(m: int, q: int, iterations: int, X: Any) -> KSVD:
    return KSVD(m, q, max_iter=iterations, **LEARNED).fit(X)


def per_iteration(m: int, q: int, X: Any) -> tuple[KSVD, float, float]:
    """A fit of K-SVD, seconds of one of its iterations, and the peak in GiB."""
    learned(m, q, 1, X[: 4 * m])  # compiles
    times = []
    for iterations in (1, 3):
        fit = partial(learned, m, q, iterations, X)
        (model, peak), seconds = timed(partial(peak_of, fit))
        times.append(seconds)
    return model, (times[1] - times[0]) / 2, peak


def learn() -> Iterator[dict[str, Any]]:
    for n, p, m, q, seconds_wanted, peak_wanted in LEARNING:
        _, X = planted(n, p, m, q)
        model, seconds, peak = per_iteration(m, q, X)
        row = {"job": "learn", "size": [n, p, m, q], "seconds per iteration": seconds}
        row |= {"aim": seconds_wanted, "peak GiB": peak, "aim GiB": peak_wanted}
        yield row | {"objective": list(map(float, model.history_["objective"]))}


def disk() -> Iterator[dict[str, Any]]:
    n, p, m, q = ON_DISK
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.npy"
        _, X = planted(n, p, m, q)
        file = np.lib.format.open_memmap(path, "w+", np.float32, (n, p))
        for rows in torch.arange(n).split(250_000):
            file[rows[0] : rows[-1] + 1] = X[rows[0] : rows[-1] + 1].cpu().numpy()
        _, held, _ = per_iteration(m, q, X)
        del X, file
        torch.cuda.empty_cache()
        with options(device="cuda"):
            stored = np.load(path, mmap_mode="r")
            _, streamed, peak = per_iteration(m, q, stored)
    row = {"job": "disk", "size": list(ON_DISK), "seconds per iteration": streamed}
    row |= {"in memory": held, "rate": held / streamed, "aim": STREAMED}
    yield row | {"peak GiB": peak, "GB per second": 4e-9 * n * p / streamed}


def batches() -> Iterator[dict[str, Any]]:
    n, p, m, q = BATCHES
    _, X = planted(n, p, m, q)
    schedule = Schedule(batch_size=n // 20, forgetting=1 - 4 / n)
    whole = KSVD(m, q, max_iter=PASSES, **LEARNED)
    parts = OnlineDictionary(m, q, max_iter=PASSES, schedule=schedule, **LEARNED)
    whole.fit(X[: 4 * m])  # compiles
    errors, row = [], {"job": "batches", "size": list(BATCHES), "passes": PASSES}
    for name, model in {"full update": whole, "mini-batches": parts}.items():
        (_, peak), seconds = timed(partial(peak_of, partial(model.fit, X)))
        errors.append(float(model.reconstruction_error(X)))
        row |= {f"{name}, seconds": seconds, f"{name}, peak GiB": peak}
        row[f"{name}, error"] = errors[-1]
    yield row | {"errors": errors[1] / errors[0], "aim": WITHIN}


def landmarks() -> Iterator[dict[str, Any]]:
    n, p, c, k = LANDMARKS
    _, X = planted(n, p, 1024, 10)
    how = {"n_components": k, "random_state": 0}
    features = NystroemMap("rbf", "uniform", n_landmarks=c, **how)
    NystroemMap("rbf", "uniform", n_landmarks=2048, **how).fit(X[:4096])
    (_, peak), fit = timed(partial(peak_of, partial(features.fit, X)))
    (_, more), transform = timed(partial(peak_of, partial(features.transform, X)))
    row = {"job": "landmarks", "size": list(LANDMARKS), "fit seconds": fit}
    yield row | {"transform seconds": transform, "peak GiB": max(peak, more)}


JOBS = {
    "pursuit": pursuit,
    "positive": partial(pursuit, positive=True),
    "learn": learn,
    "disk": disk,
    "batches": batches,
    "landmarks": landmarks,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("jobs", nargs="*", default=list(JOBS))
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    rows = []
    for name in given.jobs:
        try:
            for row in JOBS[name]():
                print(json.dumps(row), flush=True)
                rows.append(row)
        except (MemoryError, torch.cuda.OutOfMemoryError) as error:
            rows.append({"job": name, "failed": str(error)})
            print(json.dumps(rows[-1]), flush=True)
        torch.cuda.empty_cache()
        if given.out:
            about = {"device": torch.cuda.get_device_name(), "torch": torch.__version__}
            write_json(given.out, about | {"rows": rows})


if __name__ == "__main__":
    main()
