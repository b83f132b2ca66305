"""How time grows: each size of the main methods doubled four times."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np

from .harness.timing import timed
from .peers.spec import SEED, Benchmark, Case, Figures, Method

DOUBLINGS = 4
TIMES = 3  # that each size is measured
HIDDEN = 40  # directions in which the samples of a class vary
Sizes = dict[str, int]
N, P, M, Q = "samples", "features", "atoms", "non-zeros"
LANDMARKS, CLASSES = "landmarks", "classes"


def samples(sizes: Sizes) -> np.ndarray:  # (n, p)
    """Combinations of a few directions with noise, of unit norm, float32."""
    rng = np.random.default_rng(SEED)
    n, p = sizes[N], sizes[P]
    directions = rng.standard_normal((HIDDEN, p), dtype=np.float32)
    X = rng.standard_normal((n, HIDDEN), dtype=np.float32) @ directions
    X += rng.standard_normal((n, p), dtype=np.float32)
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def omp(sizes: Sizes) -> Callable[[], Any]:
    from kernlets.coders import OMP, encode

    X = samples(sizes)
    atoms = np.random.default_rng(SEED + 1).standard_normal((sizes[M], sizes[P]))
    atoms = (atoms / np.linalg.norm(atoms, axis=1, keepdims=True)).astype(np.float32)
    return lambda: encode(atoms, OMP(sizes[Q]), X)


def ksvd(sizes: Sizes) -> Callable[[], Any]:
    from kernlets import KSVD

    X, learner = samples(sizes), KSVD(sizes[M], sizes[Q], max_iter=3, random_state=SEED)
    return lambda: learner.fit(X)


def kernel_ksvd(sizes: Sizes) -> Callable[[], Any]:
    from kernlets import KernelKSVD

    learner = KernelKSVD(
        "poly:2", sizes[M], n_nonzero_coefs=sizes[Q], max_iter=3, random_state=SEED
    )
    X = samples(sizes)
    return lambda: learner.fit(X)


def nystroem(sizes: Sizes) -> Callable[[], Any]:
    from kernlets import NystroemMap

    c = sizes[LANDMARKS]
    X = samples(sizes)
    features = NystroemMap("poly:2", n_landmarks=c, n_components=c, random_state=SEED)
    return lambda: features.fit_transform(X)


def lkdl(sizes: Sizes) -> Callable[[], Any]:
    """A map and a dictionary for each class; then labels of as many samples."""
    from sklearn.pipeline import make_pipeline

    from kernlets import KSVD, NystroemMap, ResidualClassifier

    X = samples(sizes)
    y = np.arange(len(X)) % sizes[CLASSES]
    model = make_pipeline(
        NystroemMap("poly:2", n_landmarks=sizes[LANDMARKS], random_state=SEED),
        ResidualClassifier(KSVD(sizes[M], sizes[Q], max_iter=3, random_state=SEED)),
    )
    return lambda: model.fit(X, y).predict(X)


JOBS: dict[str, Callable[[Sizes], Callable[[], Any]]] = {
    "OMP": omp,
    "K-SVD": ksvd,
    "exact kernel K-SVD": kernel_ksvd,
    "Nyström map": nystroem,
    "LKDL classifier": lkdl,
}
FIRST: dict[str, Sizes] = {  # sizes before they are doubled
    "OMP": {N: 40_000, P: 64, M: 128, Q: 4},
    "K-SVD": {N: 15_000, P: 64, M: 64, Q: 4},
    "exact kernel K-SVD": {N: 1000, P: 64, M: 50, Q: 4},
    "Nyström map": {N: 15_000, P: 64, LANDMARKS: 200},
    "LKDL classifier": {N: 5000, P: 64, LANDMARKS: 150, M: 40, Q: 3, CLASSES: 4},
}


class Kernlets(Method):
    name = "kernlets"
    memory = False

    def __init__(self, problem: Case) -> None:
        first = {name: problem[name] for name in FIRST[problem["method"]]}
        doubled, job = problem["doubled"], JOBS[problem["method"]]
        self.works = [
            job({**first, doubled: first[doubled] * 2**turn})
            for turn in range(DOUBLINGS + 1)
        ]

    def run(self) -> list[float]:
        """Return the seconds at each size: medians of turns over all sizes."""
        turns = [[timed(work)[1] for work in self.works] for _ in range(TIMES)]
        return [median(column) for column in zip(*turns, strict=True)]

    def figures(self, result: list[float]) -> Figures:
        exponent = np.polyfit(np.arange(len(result)), np.log2(result), 1)[0]
        return {
            "exponent": float(exponent),
            "of the last doubling": float(np.log2(result[-1] / result[-2])),
            **{f"× {2**turn}, s": seconds for turn, seconds in enumerate(result)},
        }


class Growth(Benchmark):
    name = "growth"
    title = "How time grows"
    about = (
        f"Each size is doubled {DOUBLINGS} times, the others stay as the case says. "
        f"The exponent is the slope of log seconds over log size, where 1 means that "
        "time doubles with the size. Seconds of each size are medians of "
        f"{TIMES} runs, in turns over the sizes. Samples are combinations of "
        f"{HIDDEN} directions with noise, of unit norm, float32; kernels are poly-2; "
        "K-SVD has 3 iterations. A Nyström map keeps all features and maps the samples "
        "that it is fitted to; the LKDL classifier also labels its training samples, "
        "whose labels mean nothing. Where a size has an exponent well below that of "
        "its operations, other parts of the work dominate at these sizes. Seconds "
        "of the case are those of all runs together."
    )
    grid = tuple(
        {"method": method, "doubled": size, **first}
        for method, first in FIRST.items()
        for size in first
    )
    quick_grid = tuple(
        {
            "method": method,
            "doubled": next(iter(first)),
            **{size: max(3, number // 50) for size, number in first.items()},
        }
        for method, first in FIRST.items()
    )
    methods = (Kernlets,)
    repeats = 1

    def problem(self, case: Case) -> Case:
        return case

    def warm_up(self, method: type[Method]) -> None:
        """Compile the loops of all methods."""
        if not self.is_warm:
            for case in self.quick_grid:
                method(case).run()
            self.is_warm = True

    is_warm = False


BENCHMARK = Growth()
