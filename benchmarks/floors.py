"""The time of the main methods over that of what they cannot do without."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple
from unittest import mock

import numpy as np

from .data import load_data
from .digits import load_digits
from .harness.timing import Stopwatch
from .peers.spec import SEED, Benchmark, Case, Figures, Method, Target

BLOCK_ROWS = 2000  # rows of a matrix product that are computed at once
BLOCK = 512  # rows that a pursuit works on while they are in a cache
THREADS = 2
WORST = 2.0  # times the floor, above which a method needs a reason
WORST_LKDL = 1.15
LKDL, EXACT, NYSTROEM = "LKDL", "exact kernel K-SVD", "Nyström, RPCholesky"
IKA, FDDL, PREIMAGES = "IKA", "FDDL", "pre-images"
PARAMETER, FEATURE = "budget, parameter space", "budget, feature space"


class Call(NamedTuple):
    """A bare call of NumPy, as often as `times` says.

    - product: (n, k) times (k, m)
    - eigenpairs: all of a symmetric matrix (n, n)
    - singular vectors: of a matrix (n, k)
    - exponentials: of n · m numbers, by two threads
    - read: that many bytes, as a product of a vector with itself
    """

    kind: str
    shape: tuple[int, ...]
    dtype: type = np.float32
    times: int = 1
    n_threads: int = THREADS  # one where a call waits for the result of the last

    @property
    def operations(self) -> float:
        """Floating-point operations of products; other calls count as none."""
        return 2.0 * self.times * float(np.prod(self.shape)) * (self.kind == "product")

    @property
    def bytes_read(self) -> float:
        return float(self.times * self.shape[0]) * (self.kind == "read")

    def prepared(self) -> Callable[[], None]:
        """Return the call with its arrays, which are not timed."""
        from threadpoolctl import threadpool_limits

        once = getattr(self, "_" + self.kind.replace(" ", "_"))()

        def repeated() -> None:
            with threadpool_limits(self.n_threads, "blas"):
                for _ in range(self.times):
                    once()

        return repeated

    def _product(self) -> Callable[[], None]:
        n, k, m = self.shape
        left = np.ones((min(n, BLOCK_ROWS), k), self.dtype)
        right = np.ones((k, m), self.dtype)
        out = np.empty((len(left), m), self.dtype)
        rest = n % len(left)

        def once() -> None:
            for _ in range(n // len(left)):
                np.matmul(left, right, out=out)
            if rest:
                np.matmul(left[:rest], right, out=out[:rest])

        return once

    def _eigenpairs(self) -> Callable[[], Any]:
        rows = np.random.default_rng(SEED).random((self.shape[0],) * 2)
        return partial(np.linalg.eigh, (rows + rows.T).astype(self.dtype))

    def _singular_vectors(self) -> Callable[[], Any]:
        rows = np.random.default_rng(SEED).random(self.shape).astype(self.dtype)
        return partial(np.linalg.svd, rows, full_matrices=False)

    def _exponentials(self) -> Callable[[], Any]:
        n, m = self.shape
        halves = [np.zeros((min(n, BLOCK_ROWS) // 2, m), self.dtype) for _ in "12"]

        def once() -> None:
            with ThreadPoolExecutor(THREADS) as pool:
                for _ in range(max(1, n // BLOCK_ROWS)):
                    list(pool.map(lambda half: np.exp(half, out=half), halves))

        return once

    def _read(self) -> Callable[[], Any]:
        size = max(1, self.shape[0] // np.dtype(self.dtype).itemsize)
        numbers = np.ones(size, self.dtype)
        return partial(np.dot, numbers, numbers)


@dataclass(frozen=True)
class Job:
    """What is timed, and the calls that it cannot do without."""

    run: Callable[[], Any]
    calls: list[Call]


def lkdl(case: Case) -> Job:
    """Landmarks, virtual samples, dictionaries of ten classes, and the test images."""
    from sklearn.pipeline import make_pipeline

    from kernlets import KSVD, NystroemMap, ResidualClassifier
    from kernlets.maps.spectral import DEPTH, block_size, is_krylov_small

    data = load_digits(case["data"], case["n"])
    (n, p), n_new = data.X_train.shape, len(data.X_test)
    c, k, m, q = (case[name] for name in ("c", "k", "m", "q"))
    n_classes, iterations = len(np.unique(data.y_train)), case["iterations"]
    learner = KSVD(m, n_nonzero_coefs=q, max_iter=iterations, random_state=SEED)
    features = NystroemMap(
        "poly:2", "coreset", n_landmarks=c, n_components=k, random_state=SEED
    )
    model = make_pipeline(features, ResidualClassifier(learner))
    if is_krylov_small(c, k):
        b, d = block_size(k), DEPTH * block_size(k)
        pairs = [
            Call("product", (c, c, b), times=DEPTH),  # W times the latest block
            Call("product", (c, 2 * b, b), times=DEPTH),  # its part in the space
            Call("product", (2 * b, c, b), times=DEPTH),
            Call("eigenpairs", (d,), np.float64),
            Call("product", (c, d, k)),
        ]
    else:
        pairs = [Call("eigenpairs", (c,), np.float64)]
    pursuits = iterations * n + n_classes * n_new
    calls = [
        Call("product", (c, p, c // 2)),  # W, of which one half determines the other
        *pairs,
        Call("product", (n + n_new, p, c)),
        Call("product", (n + n_new, c, k)),
        Call("product", (iterations * n, k, m)),
        Call("product", (n_classes * n_new, k, m)),
        Call("read", (4 * BLOCK * m,), times=q * pursuits // BLOCK),
        Call("read", (4 * k * BLOCK,), times=q * iterations * n // BLOCK),
    ]
    return Job(
        lambda: model.fit(data.X_train, data.y_train).predict(data.X_test), calls
    )


def exact_kernel(case: Case) -> Job:
    from kernlets import KernelKSVD

    X = load_digits(case["data"], case["n"]).X_train
    (n, p), m, q, iterations = X.shape, case["m"], case["q"], case["iterations"]
    learner = KernelKSVD(
        "poly:2", m, n_nonzero_coefs=q, max_iter=iterations, random_state=SEED
    )
    calls = [
        Call("product", (n, p, n // 2)),
        Call("read", (4 * n * n,), times=iterations),
        Call("product", (m, m, n), times=iterations),
        Call("read", (4 * BLOCK * m,), times=q * iterations * n // BLOCK),
    ]
    return Job(lambda: learner.fit(X), calls)


def nystroem(case: Case) -> Job:
    from kernlets import NystroemMap

    X = load_digits(case["data"], case["n"]).X_train
    (n, p), c = X.shape, case["c"]
    features = NystroemMap("poly:2", "rpcholesky", n_landmarks=c, random_state=SEED)
    calls = [
        Call("product", (n, p, c)),
        Call("product", (n, c, c // 2)),  # what earlier pivots explain
        Call("eigenpairs", (c,), np.float64),
        Call("product", (n, c, c)),
    ]
    return Job(lambda: features.fit_transform(X), calls)


def ika(case: Case) -> Job:
    from kernlets import IKAMap

    X = load_digits(case["data"], case["n"]).X_train
    (S, p), m = X.shape, case["c"]
    features = IKAMap("rbf", n_landmarks=m, n_samples=S, random_state=SEED)
    calls = [
        Call("product", (S, p, m)),
        Call("product", (S, p, S // 2)),
        Call("exponentials", (S, m + S // 2)),
        Call("singular vectors", (S, m), np.float64),
        Call("product", (S, S, m)),
        Call("eigenpairs", (m,), np.float64),
    ]
    return Job(lambda: features.fit(X), calls)


def fddl(case: Case) -> Job:
    """As many steps over the codes as the method takes, counted in a run of its own."""
    from kernlets import FDDLClassifier
    from kernlets.classifiers.fddl_codes import CodeDescent

    data = load_digits(case["data"], case["n"])
    X, y, m = data.X_train, data.y_train, case["m"]
    (n, p), n_classes = X.shape, len(np.unique(y))
    model = FDDLClassifier(m // n_classes, max_iter=2, random_state=SEED)
    with arguments_of(CodeDescent, "_block_step") as steps:
        model.fit(X, y)
    rows: dict[int, int] = {}  # atoms of a problem -> rows of all its steps
    for descent, _, block, *_ in steps:
        n_atoms = descent.codes.shape[1]
        rows[n_atoms] = rows.get(n_atoms, 0) + block.stop - block.start
    calls = [
        Call("product", (m, n, p), times=model.max_iter),
        Call("product", (n, p, m), times=model.max_iter + 1),
    ]
    for n_atoms, count in rows.items():
        calls.append(Call("product", (count, n_atoms, n_atoms)))
        # codes, products and target of both the last steps, read; two are written
        calls.append(Call("read", (4 * BLOCK * n_atoms,), times=7 * count // BLOCK))
    return Job(lambda: model.fit(X, y), calls)


def budget(case: Case) -> Job:
    from kernlets import BudgetKernelDL
    from kernlets.updates import Budget

    rng = np.random.default_rng(SEED)
    n, p, B, m = (case[name] for name in ("n", "p", "B", "m"))
    X = rng.standard_normal((n, p)) + rng.standard_normal(p)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    is_feature = case["method"] == FEATURE
    rules = {"update": "feature", "pruning": "error"} if is_feature else {}
    learner = BudgetKernelDL(
        "poly:4,coef0=1", m, budget=Budget(B, **rules), max_iter=1, random_state=SEED
    )
    calls = [Call("product", (n, p, B), np.float64)]
    one_by_one = partial(Call, dtype=np.float64, n_threads=1)
    # Ω is read for the code, and Ω and KΩ are read and written by the step
    calls.append(one_by_one("read", (8 * B * m,), times=5 * n))
    if is_feature:
        calls += [
            one_by_one("read", (8 * m * m,), times=2 * n),  # DᵀD
            one_by_one("read", (8 * B * B,), times=2 * n),  # K⁻¹, for the pruning
        ]
    else:
        calls += [
            one_by_one("product", (B, B, m), times=n),  # K times the gradient
            one_by_one("product", (m, B, m), times=n),  # DᵀD
        ]
    return Job(lambda: learner.fit(X), calls)


def preimages(case: Case) -> Job:
    """As many moves of the points as the method makes, counted in a run of its own."""
    from kernlets import preimage
    from kernlets.preimage import Targets

    X = load_digits(case["data"], case["n"]).X_train
    rng, (r, p), m = np.random.default_rng(SEED), X.shape, case["m"]
    weights = rng.random((m, r)) ** 20  # few anchors matter to each target
    weights = (weights / weights.sum(1, keepdims=True)).astype(np.float32)
    run = partial(
        preimage.preimages, "rbf:0.7", X, weights, method="fixed-point", max_iter=500
    )
    with arguments_of(Targets, "squared_distance") as moves:
        run()
    count = sum(len(points) for _, points in moves)
    calls = [
        Call("product", (r, p, r // 2)),
        Call("product", (r, r, m)),  # ⟨t, φ(anchor)⟩
        Call("product", (count, p, r)),
        Call("exponentials", (count + r // 2, r)),
        Call("product", (count, r, p)),
    ]
    return Job(run, calls)


@contextmanager
def arguments_of(owner: type, name: str) -> Iterator[list[tuple[Any, ...]]]:
    """Collect the arguments of all calls of a method inside the block."""
    collected: list[tuple[Any, ...]] = []
    method = getattr(owner, name)

    def noting(*arguments: Any) -> Any:
        collected.append(arguments)
        return method(*arguments)

    with mock.patch.object(owner, name, noting):
        yield collected


JOBS = {
    LKDL: lkdl,
    EXACT: exact_kernel,
    NYSTROEM: nystroem,
    IKA: ika,
    FDDL: fddl,
    PARAMETER: budget,
    FEATURE: budget,
    PREIMAGES: preimages,
}


class Kernlets(Method):
    name = "kernlets"
    memory = False

    def __init__(self, problem: Job) -> None:
        self.job = problem

    def run(self) -> Any:
        return self.job.run()

    def figures(self, result: Any) -> Figures:
        return {}


class BareCalls(Method):
    name = "bare calls"
    memory = False

    def __init__(self, problem: Job) -> None:
        self.calls = problem.calls
        self.prepared = [call.prepared() for call in problem.calls]

    def run(self) -> dict[str, float]:
        """Return the seconds of each kind of call."""
        clock = Stopwatch()
        for call, prepared in zip(self.calls, self.prepared, strict=True):
            clock(f"{call.kind}, s", prepared)
        return clock.seconds

    def figures(self, result: dict[str, float]) -> Figures:
        return {
            "GFLOP": sum(call.operations for call in self.calls) / 1e9,
            "GB read": sum(call.bytes_read for call in self.calls) / 1e9,
            **result,
        }


class Floors(Benchmark):
    name = "floors"
    title = "Time over floor"
    about = (
        "What a method cannot do without, timed as bare calls of NumPy with the same "
        f"shapes, beside the method, in turns, both with {THREADS} threads (samples "
        "on a budget come one after the other, with one): matrix products (one half "
        "of symmetric ones), eigenpairs, singular vectors, exponentials, and bytes "
        "that are read, from a cache or not, as products of vectors of that length "
        "with themselves. Operations are those of the products.\n\n"
        "* LKDL: c²p (W), n·p·c·2 and n·c·k·2 (virtual samples, also of the test "
        "images), n·k·m·2 for each pursuit of all samples (one an iteration, and one "
        "a class for test images); 9 products c²b·2 and 72 c·b² for the eigenpairs "
        "of W, with b = k/4 + 8, eigenpairs of 9b, c·9b·k·2; q reads of m "
        "correlations a pursuit, q of k numbers a sample in a sweep.\n"
        "* Exact kernel K-SVD: n²p (K); an iteration reads K once, m²n·2 mixes "
        "atoms, and a pursuit reads m correlations q times.\n"
        "* Nyström with landmarks by RPCholesky: n·p·c·2 (C, which is W, too), n·c² "
        "(what earlier pivots explain), eigenpairs of c, n·c²·2 (C times the "
        "projection).\n"
        "* IKA: n·p·c·2 + n²p and as many exponentials (B, G), singular vectors of B, "
        "n²c·2 (G times them), eigenpairs of c.\n"
        "* FDDL: rows·m²·2 for all steps that it takes and seven arrays of codes, "
        "read; n·m·p·2 twice an iteration. Steps are counted.\n"
        "* Budget, per sample: p·B·2 (kernel); in parameter space B²m·2 (K times "
        "the gradient) and m²B·2 (Gram matrix), five reads of B·m numbers; in "
        "feature space no product, but reads of m² and B² numbers twice.\n"
        "* Pre-images (fixed point): r²p + r²m·2 for the targets; each point that "
        "is tried costs r·p·4 and r exponentials. Points are counted."
    )
    grid = (
        {
            "method": LKDL,
            "data": "mnist",
            "n": 60_000,
            "c": 9000,
            "k": 784,
            "m": 700,
            "q": 11,
            "iterations": 2,
        },
        {
            "method": EXACT,
            "data": "mnist",
            "n": 8000,
            "m": 100,
            "q": 5,
            "iterations": 5,
        },
        {"method": NYSTROEM, "data": "mnist", "n": 20_000, "c": 1000},
        {"method": IKA, "data": "mnist", "n": 10_000, "c": 256},
        {"method": FDDL, "data": "mnist", "n": 5000, "m": 270},
        {"method": PARAMETER, "n": 5000, "p": 64, "B": 250, "m": 50},
        {"method": FEATURE, "n": 20_000, "p": 64, "B": 250, "m": 50},
        {"method": PREIMAGES, "data": "mnist", "n": 2000, "m": 500},
    )
    quick_grid = (
        {
            "method": LKDL,
            "data": "digits",
            "n": 1000,
            "c": 60,
            "k": 30,
            "m": 30,
            "q": 4,
            "iterations": 2,
        },
        {
            "method": EXACT,
            "data": "digits",
            "n": 300,
            "m": 20,
            "q": 3,
            "iterations": 2,
        },
        {"method": NYSTROEM, "data": "digits", "n": 300, "c": 40},
        {"method": IKA, "data": "digits", "n": 300, "c": 20},
        {"method": FDDL, "data": "digits", "n": 200, "m": 40},
        {"method": PARAMETER, "n": 200, "p": 8, "B": 20, "m": 10},
        {"method": FEATURE, "n": 200, "p": 8, "B": 20, "m": 10},
        {"method": PREIMAGES, "data": "digits", "n": 100, "m": 10},
    )
    methods = (Kernlets, BareCalls)
    repeats = 3

    def problem(self, case: Case) -> Job:
        if "data" in case:
            load_data(case["data"])  # or the case is skipped
        return JOBS[case["method"]](case)

    def warm_up(self, method: type[Method]) -> None:
        """Compile the loops of all methods."""
        if method is Kernlets and not self.is_warm:
            for case in self.quick_grid:
                method(self.problem(case)).run()
            self.is_warm = True

    is_warm = False

    def targets(self, case: Case) -> list[Target]:
        most = WORST_LKDL if case["method"] == LKDL else WORST
        return [Target(f"speed: {BareCalls.name}", ">=", round(1 / most, 3))]


BENCHMARK = Floors()
