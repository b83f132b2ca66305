"""Thousands of atoms on one GPU: ``python -m benchmarks.giants [--out FILE] [JOB …]``.

Jobs: `pursuit` codes 100 000 rows over up to 65 536 atoms and compares a sample of rows
with float64; `learn` runs iterations of K-SVD on a million rows; `positive` is
non-negative. Seconds are medians after a warm-up. Peaks are those of torch's allocator,
beside the data. Rows are sparse combinations of planted atoms with noise.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from kernlets import KSVD, OMP
from kernlets.dictionaries import ExplicitDictionary
from kernlets.hot.rows_omp import rows_omp
from kernlets.lab.bench.records import write_json
from kernlets.lab.bench.timing import timed, timed_median
from kernlets.pursuits import encode

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


def learn() -> Iterator[dict[str, Any]]:
    for n, p, m, q, seconds_wanted, peak_wanted in LEARNING:
        _, X = planted(n, p, m, q)
        settings = {"update": "ksvd-parallel", "random_state": 0}
        KSVD(m, q, max_iter=1, **settings).fit(X[: 4 * m])  # compiles
        times, histories = [], []
        for iterations in (1, 3):
            model = KSVD(m, q, max_iter=iterations, **settings)
            (_, peak), seconds = timed(partial(peak_of, partial(model.fit, X)))
            times.append(seconds)
            histories = list(map(float, model.history_["objective"]))
        row = {"job": "learn", "size": [n, p, m, q], "fit of one iteration": times[0]}
        row |= {"seconds per iteration": (times[1] - times[0]) / 2}
        row |= {"aim": seconds_wanted, "peak GiB": peak, "aim GiB": peak_wanted}
        yield row | {"objective": histories}


JOBS = {
    "pursuit": pursuit,
    "positive": partial(pursuit, positive=True),
    "learn": learn,
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
        except torch.cuda.OutOfMemoryError as error:
            rows.append({"job": name, "failed": str(error)})
            print(json.dumps(rows[-1]), flush=True)
        torch.cuda.empty_cache()
        if given.out:
            about = {"device": torch.cuda.get_device_name(), "torch": torch.__version__}
            write_json(given.out, about | {"rows": rows})


if __name__ == "__main__":
    main()
