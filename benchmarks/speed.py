"""``python -m benchmarks.speed``: seconds on this machine beside its matrix products.

The floor of a job is the time that its matrix products take alone, measured in the same
run; the rest is what the library adds. ``python -m benchmarks`` compares with other
libraries.
"""

from __future__ import annotations

import argparse
import json
import operator
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.pipeline import make_pipeline

from kernlets.classifiers import ResidualClassifier
from kernlets.coders import OMP, encode
from kernlets.config import options
from kernlets.datasets import DatasetNotFoundError, load, unit_norm
from kernlets.dictionaries import ExplicitDictionary
from kernlets.learners import KSVD, KernelKSVD
from kernlets.maps import NystroemMap
from kernlets.numerics.arrays import is_gpu, to_device, to_numpy

from .harness.html import write_file
from .harness.machine import machine, versions
from .harness.tables import Table
from .harness.timing import timed_median

OMP_SIZES = (
    (20_000, 256, 300, 5),
    (20_000, 256, 512, 10),
    (5_000, 504, 570, 30),
    (60_000, 784, 700, 11),
    (1_000_000, 256, 512, 10),
)
Products = list[tuple[int, int, int]]  # (rows, inner, columns) of each product


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    job: str
    size: str
    seconds: float
    floor: float
    accuracy: float | None = None

    @property
    def over_floor(self) -> float:
        """Seconds relative to those of the matrix products alone."""
        return self.seconds / self.floor


def run(device: str | None = None, quick: bool = False) -> Iterator[Row]:
    """Measure one job after another; yield each row as soon as it is known."""
    repeats = 3 if quick else 5
    with options(device=device):
        yield from _pursuits(quick, device, repeats)
        yield from _mnist(quick, repeats)


def as_json(rows: list[Row], **about: Any) -> dict[str, Any]:
    """Rows and what they were measured with, ready for `json.dumps`."""
    return {**about, "rows": [asdict(row) | {"ratio": row.over_floor} for row in rows]}


def _floor(products: Products, repeats: int) -> float:
    """Seconds of float32 matrix products of these sizes, on the device in use."""
    total = 0.0
    for (rows, inner, columns), count in _counted(products).items():
        left = to_device(np.ones((rows, inner), dtype=np.float32))
        right = to_device(np.ones((inner, columns), dtype=np.float32))
        product = partial(operator.matmul, left, right)
        total += count * timed_median(product, repeats)[1]
    return total


def _counted(products: Products) -> dict[tuple[int, int, int], int]:
    return {size: products.count(size) for size in products}


def _pursuits(quick: bool, device: str | None, repeats: int) -> Iterator[Row]:
    on_gpu = is_gpu(device)
    rng = np.random.default_rng(0)
    for n, p, m, q in OMP_SIZES:
        if n > 60_000 and not on_gpu:
            continue  # takes minutes on a CPU and shows nothing new
        n = n // 20 if quick else n
        atoms = unit_norm(rng.standard_normal((m, p), dtype=np.float32))
        dictionary = ExplicitDictionary(to_device(atoms))
        X = to_device(rng.standard_normal((n, p), dtype=np.float32))
        job = _encoding(dictionary, q, X)
        _, seconds = timed_median(job, repeats)
        size = f"n = {n}, p = {p}, atoms = {m}, non-zeros = {q}"
        yield Row("OMP", size, seconds, _floor([(n, p, m)], repeats))


def _encoding(dictionary: ExplicitDictionary, q: int, X: Any) -> Callable[[], Any]:
    return lambda: encode(dictionary, OMP(q), X)


def _mnist(quick: bool, repeats: int) -> Iterator[Row]:
    """LKDL and exact kernel K-SVD on MNIST, labels out for NumPy arrays in."""
    data: Any = load("mnist")
    keep = slice(None, None, 30 if quick else None)
    X, y = unit_norm(data.X_train)[keep], data.y_train[keep]
    new, truth = unit_norm(data.X_test), data.y_test
    atoms, c, k = (50, 300, 100) if quick else (700, 3000, 784)
    on_gpu = is_gpu(options.device)
    learning: dict[str, Any] = {"max_iter": 2, "random_state": 0}
    learning["update"] = "ksvd-parallel" if on_gpu else "ksvd"
    models = {
        "LKDL, MNIST": make_pipeline(
            NystroemMap(
                "poly:2", "coreset", n_landmarks=c, n_components=k, random_state=0
            ),
            ResidualClassifier(KSVD(atoms, 11, **learning)),
        ),
        "exact kernel K-SVD, MNIST": ResidualClassifier(
            KernelKSVD("poly:2", atoms, n_nonzero_coefs=11, **learning)
        ),
    }
    n, sizes = len(X), np.bincount(y).tolist()
    floors = {
        "LKDL, MNIST": _lkdl_products(n, len(new), X.shape[1], c, k, atoms, sizes),
        "exact kernel K-SVD, MNIST": _exact_products(
            len(new), X.shape[1], atoms, sizes
        ),
    }
    for name, model in models.items():
        job = _labelling(model, X, y, new)
        labels, seconds = timed_median(job, repeats if on_gpu else 1)
        accuracy = float(np.mean(to_numpy(labels) == truth))
        size = f"{n} + {len(new)} rows, {atoms} atoms per class, fit and predict"
        yield Row(name, size, seconds, _floor(floors[name], repeats), accuracy)


def _labelling(model: Any, X: Any, y: Any, new: Any) -> Callable[[], Any]:
    return lambda: model.fit(X, y).predict(new)


def _lkdl_products(
    n: int, n_new: int, p: int, c: int, k: int, atoms: int, sizes: list[int]
) -> Products:
    """W, C and C·V for both sets, then correlations: twice to learn, once to test."""
    maps = [(c, p, c), (n, p, c), (n, c, k), (n_new, p, c), (n_new, c, k)]
    learn = [(size, k, atoms) for size in sizes for _ in range(2)]
    return maps + learn + [(n_new, k, atoms)] * len(sizes)


def _exact_products(n_new: int, p: int, atoms: int, sizes: list[int]) -> Products:
    """K of each class; for new samples K and its product with the coefficients."""
    train = [(size, p, size) for size in sizes]
    test = [(n_new, p, size) for size in sizes]
    return train + test + [(n_new, size, atoms) for size in sizes]


def table_of(rows: Sequence[Row], device: str | None) -> Table:
    """The jobs with their seconds, and those of their matrix products."""
    lines = []
    for row in rows:
        accuracy = "" if row.accuracy is None else f"{100 * row.accuracy:.2f} %"
        numbers = (row.seconds, row.floor, row.over_floor)
        lines.append([row.job, row.size, *(f"{x:.4g}" for x in numbers), accuracy])
    header = ["job", "size", "seconds", "floor", "times floor", "accuracy"]
    return Table(header, lines)


def main(arguments: list[str] | None = None) -> int:
    """Measure all jobs, print the table, and write JSON where asked."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.speed", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--device", help="torch device, e.g. cuda")
    parser.add_argument("--quick", action="store_true", help="small sizes, to try it")
    parser.add_argument("--threads", type=int, help="of the library")
    parser.add_argument("--out", type=Path, help="also write a JSON file")
    asked = parser.parse_args(arguments)
    device = asked.device or "cpu"
    rows: list[Row] = []
    threads = {} if asked.threads is None else {"n_threads": asked.threads}
    try:
        with options(**threads):
            for row in run(asked.device, asked.quick):
                rows.append(row)
                print(f"{row.job}, {row.size}: {row.seconds:.4g} s", flush=True)
    except DatasetNotFoundError as error:
        print(f"left out, no data: {error}")
    except (ValueError, ImportError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    table_of(rows, device).print()
    if asked.out is not None:
        about = {"device": device, "quick": asked.quick}
        about |= {"machine": machine(), "versions": versions()}
        text = json.dumps(as_json(rows, **about), indent=1)
        write_file(asked.out, text.encode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
