"""The block loop, threads and options."""

from __future__ import annotations

import gc
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import sparse
from threadpoolctl import threadpool_info

from kernlets import (
    KSVD,
    MOD,
    Blocks,
    DictionaryOutlierDetector,
    FDDLClassifier,
    KernelKSVD,
    KernelMOD,
    NystroemMap,
    ReducedKernelDL,
    ResidualClassifier,
    SRCClassifier,
    options,
)
from kernlets.config import available_cores, default_memory, parse_bytes
from kernlets.data.block_loop import BLOCK_ROWS, BlockPlan, block_slices
from kernlets.data.lazy_rows import LazyRows
from kernlets.data.rows import load_values, map_rows, sum_rows
from kernlets.numerics.products import cross, matmul, outer_products
from kernlets.numerics.threads import parallel, serial_blas


def blas_threads():
    libraries = [lib for lib in threadpool_info() if lib["user_api"] == "blas"]
    return [lib["num_threads"] for lib in libraries]


def test_slices_cover_the_rows_once():
    with options(block_rows=7):
        assert [list(range(20))[s] for s in block_slices(20, 8)] == [
            list(range(7)),
            list(range(7, 14)),
            list(range(14, 20)),
        ]


@pytest.mark.parametrize("memory", ["1KB", "1MB", "100MB", "1GB"])
@pytest.mark.parametrize("row_bytes", [1, 10_000, 10**6])
def test_blocks_obey_the_memory_option(memory, row_bytes):
    X = np.empty((3, 50))
    with options(memory=memory, n_threads=3):
        plan = BlockPlan.of(row_bytes, X)
        needed = plan.rows * plan.at_once * (row_bytes + 50 * 8)
        assert needed <= options.memory // 2 or (plan.rows, plan.at_once) == (1, 1)


def test_threads_give_way_to_memory_before_blocks_do():
    """Other block shapes round differently: they change last."""
    plans = []
    for memory in ("1GB", "15MB", "10MB", "4.5MB"):
        with options(memory=memory, n_threads=2):
            plans.append(BlockPlan.of(10_000))
    assert [plan.rows for plan in plans] == [BLOCK_ROWS] * 2 + [256, 128]
    assert [plan.at_once for plan in plans] == [2, 1, 1, 1]


def test_map_and_sum_rows(xp, rng):
    X = rng.standard_normal((50, 3))
    with options(block_rows=8, n_threads=3):
        doubled = map_rows(lambda block: 2 * block, xp.asarray(X), 24)
        total = sum_rows(lambda block: block.T @ block, xp.asarray(X), 24)
    np.testing.assert_allclose(xp.to_numpy(doubled), 2 * X)
    np.testing.assert_allclose(xp.to_numpy(total), X.T @ X)


def test_iterators_of_blocks_are_mapped_lazily(rng):
    X = rng.standard_normal((30, 3))
    blocks = (X[i : i + 10] for i in range(0, 30, 10))
    results = map_rows(lambda block: block + 1, blocks, 24)
    np.testing.assert_allclose(next(results), X[:10] + 1)
    np.testing.assert_allclose(np.concatenate(list(results)), X[10:] + 1)


def test_memory_map_is_checked_where_it_is_read(tmp_path, rng):
    X = rng.standard_normal((40, 4)).astype(np.float32)
    X[33, 1] = np.inf
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    with options(block_rows=10), pytest.raises(ValueError, match="rows 30 to 39"):
        map_rows(lambda block: block, mapped, 16)


def test_learning_from_a_memory_map_is_learning_from_the_array(tmp_path, rng):
    X = rng.standard_normal((200, 6))
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    with options(block_rows=37):
        found = MOD(8, 2, random_state=0, max_iter=3).fit(mapped).components_
    expected = MOD(8, 2, random_state=0, max_iter=3).fit(X).components_
    np.testing.assert_allclose(found, expected, atol=1e-10)


@pytest.mark.parametrize("learner", [MOD(8, 2), KSVD(8, 2, update="ksvd-parallel")])
def test_learning_from_blocks_is_learning_from_the_array(learner, rng):
    X = rng.standard_normal((200, 6))
    atoms = X[:8]
    learner = learner.set_params(init=atoms, random_state=0, max_iter=3)
    expected = learner.fit(X).components_
    reads = []

    def read():
        reads.append(1)
        return (X[i : i + 37] for i in range(0, 200, 37))

    found = learner.fit(Blocks(read)).components_
    np.testing.assert_allclose(found, expected, atol=1e-10)
    assert len(reads) == 4  # a look at the first block, then one pass an iteration
    codes = np.concatenate(list(learner.transform(read())))
    np.testing.assert_allclose(codes, learner.transform(X), atol=1e-10)


def test_blocks_that_cannot_serve_are_refused(rng):
    X = rng.standard_normal((50, 6))
    with pytest.raises(ValueError, match="update='ksvd-parallel'"):
        KSVD(8, 2).fit([X, X])
    with pytest.raises(ValueError, match="only once"):
        MOD(8, 2).fit(iter([X, X]))
    with pytest.raises(ValueError, match="features"):
        MOD(8, 2).fit([X, X[:, :5]])


def test_an_error_in_a_block_comes_through(rng):
    def read():
        yield rng.standard_normal((50, 6))
        raise OSError("disk gone")

    with pytest.raises(OSError, match="disk gone"):
        MOD(8, 2, random_state=0).fit(Blocks(read))


@pytest.mark.parametrize("kind", ["array", "memmap", "blocks"])
def test_rows_of_the_host_work_on_a_device(kind, tmp_path, rng):
    """torch's "cpu" stands for a GPU here: NumPy goes in, blocks move, torch is out."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    X = rng.standard_normal((200, 6))
    np.save(tmp_path / "X.npy", X)
    source = {
        "array": X,
        "memmap": np.load(tmp_path / "X.npy", mmap_mode="r"),
        "blocks": [X[:90], X[90:]],
    }[kind]
    features = NystroemMap("poly:2", X[:20], random_state=0)
    learner = MOD(init=X[:8], n_nonzero_coefs=2, max_iter=3, random_state=0)
    expected = learner.fit(X).components_, features.fit(X).transform(X)
    with options(device="cpu", block_rows=50):
        atoms, virtual = learner.fit(source).components_, features.fit(source)
        virtual = virtual.transform(source)
        virtual = torch.cat(list(virtual)) if kind == "blocks" else virtual
    assert isinstance(atoms, torch.Tensor) and isinstance(virtual, torch.Tensor)
    np.testing.assert_allclose(atoms, expected[0], atol=1e-9)
    np.testing.assert_allclose(virtual @ virtual.T, expected[1] @ expected[1].T)


def test_parallel_keeps_order_and_limits_blas():
    before = blas_threads()
    with options(n_threads=3):
        results = parallel(lambda i: (i, blas_threads()), range(9))
    assert results == [(i, [1] * len(before)) for i in range(9)]
    assert blas_threads() == before


def test_nested_parallel_is_serial_and_options_travel():
    def outer(_):
        inner = parallel(lambda i: threading.get_ident(), range(3))
        return options.block_rows, set(inner) == {threading.get_ident()}

    with options(n_threads=2, block_rows=5):
        assert parallel(outer, range(4)) == [(5, True)] * 4


def test_errors_come_through_and_blas_is_restored():
    before = blas_threads()

    def fail(i):
        raise KeyError(i)

    with options(n_threads=2), pytest.raises(KeyError):
        parallel(fail, range(4))
    assert blas_threads() == before


@pytest.mark.parametrize("n_threads", [1, 2, 3])
def test_the_first_error_is_that_of_the_first_item(n_threads):
    late = threading.Event()

    def fail(i):
        if i == 2:  # fails after a later item where there are threads
            late.wait(0.2)
        if i >= 2:
            late.set()
            raise KeyError(i)

    with options(n_threads=n_threads), pytest.raises(KeyError, match="2"):
        parallel(fail, range(50))


def test_the_caller_works_while_others_keep_the_pool_busy():
    begun, done = threading.Barrier(4), threading.Event()

    def hold(_):
        begun.wait(10)
        return done.wait(10)

    def rival():
        with options(n_threads=3):
            parallel(hold, range(3))

    thread = threading.Thread(target=rival)
    thread.start()
    begun.wait(10)  # two of three threads of the pool, and the rival itself
    try:
        with options(n_threads=3):
            assert parallel(lambda i: i * i, range(5)) == [0, 1, 4, 9, 16]
    finally:
        done.set()
        thread.join()


def test_an_interrupted_caller_lets_no_more_items_be_taken():
    main, taken = threading.get_ident(), []

    def work(i):
        taken.append(i)
        if threading.get_ident() == main:
            raise KeyboardInterrupt
        threading.Event().wait(0.05)

    with options(n_threads=2), pytest.raises(KeyboardInterrupt):
        parallel(work, range(100))
    assert len(taken) < 50


def test_serial_blas_counts_its_users():
    before = blas_threads()
    with serial_blas:
        with serial_blas:
            pass
        assert blas_threads() == [1] * len(before)
    assert blas_threads() == before


def test_sizes():
    assert parse_bytes("2GB") == 2 * 10**9
    assert parse_bytes("512 MiB") == 512 * 2**20
    assert parse_bytes(7) == 7
    with pytest.raises(ValueError, match="2GB"):
        parse_bytes("lots")


@pytest.mark.parametrize("change", [options, options.set])
@pytest.mark.parametrize(
    ("name", "value", "error", "message"),
    [
        ("memry", "2GB", TypeError, "unknown option 'memry'.*'memory'"),
        ("memory", "lots", ValueError, "^memory='lots' is not a size.*2GB"),
        ("memory", "1.2.3GB", ValueError, "is not a size"),
        ("memory", 0, ValueError, "is not a size"),
        ("memory", None, TypeError, "is not a size"),
        ("device_memory", float("nan"), ValueError, "^device_memory=nan"),
        ("n_threads", 0, ValueError, "at least 1"),
        ("n_threads", 2.5, TypeError, "whole number"),
        ("n_threads", None, TypeError, "whole number"),
        ("block_rows", -1, ValueError, "at least 1"),
        ("loops", "cython", ValueError, "one of"),
        ("checkpoint", 3, TypeError, "path of a folder"),
    ],
)
def test_options_are_checked_where_they_are_written(
    change, name, value, error, message
):
    before = options.changes()
    with pytest.raises(error, match=message):
        change(**{name: value})
    assert options.changes() == before


@pytest.mark.parametrize("device", ["gpu", "meta", "cuda:999"])
def test_a_device_that_cannot_be_used_is_refused_at_once(device):
    pytest.importorskip("torch")
    with pytest.raises(ValueError, match=f"device='{device}' cannot.*Write 'cuda'"):
        options(device=device)


def test_a_device_needs_torch(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)  # as if it were not installed
    with pytest.raises(ImportError, match=r"pip install 'kernlets\[torch\]'"):
        options(device="cuda")


@pytest.mark.parametrize("version", [1, 2])
def test_defaults_keep_to_the_limits_of_containers(version, tmp_path, monkeypatch):
    """Also to those of an outer group, where the inner one has none."""
    monkeypatch.setattr("os.sched_getaffinity", lambda _: range(64), raising=False)
    monkeypatch.setattr("os.cpu_count", lambda: 64)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    files = {
        1: {
            "proc/self/cgroup": "4:memory:/a\n3:cpu,cpuacct:/a/b\n",
            "sys/fs/cgroup/cpu/a/b/cpu.cfs_quota_us": "-1",
            "sys/fs/cgroup/cpu/a/b/cpu.cfs_period_us": "100000",
            "sys/fs/cgroup/cpu/a/cpu.cfs_quota_us": "150000",
            "sys/fs/cgroup/cpu/a/cpu.cfs_period_us": "100000",
            "sys/fs/cgroup/memory/a/memory.limit_in_bytes": "64000000",
        },
        2: {
            "proc/self/cgroup": "0::/a/b\n",
            "sys/fs/cgroup/a/b/cpu.max": "max 100000",
            "sys/fs/cgroup/a/cpu.max": "150000 100000",
            "sys/fs/cgroup/a/b/memory.max": "64000000",
            "sys/fs/cgroup/a/memory.max": "max",
        },
    }[version]
    assert available_cores(tmp_path) == 64
    assert default_memory(tmp_path) > 32 * 10**6
    for name, content in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    assert available_cores(tmp_path) == 2
    assert default_memory(tmp_path) == 32 * 10**6


@pytest.mark.parametrize(
    ("value", "expected"),
    [("3", 3), ("3,2", 3), ("0", 64), ("", 64), ("many", 64), ("-1", 64), ("²", 64)],
)
def test_the_environment_limits_threads(value, expected, tmp_path, monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda _: range(64), raising=False)
    monkeypatch.setattr("os.cpu_count", lambda: 64)
    monkeypatch.setenv("OMP_NUM_THREADS", value)
    assert available_cores(tmp_path) == expected


def test_options_hold_in_their_block():
    before = options.n_threads
    block = options(n_threads=9)
    assert options.n_threads == before
    for _ in range(2):
        with block, options(memory="3MB"):
            assert (options.n_threads, options.memory) == (9, 3 * 10**6)
            with pytest.raises(RuntimeError, match="in use"):
                block.__enter__()
        assert options.n_threads == before


def test_options_decorate_functions():
    """Each call has a block of its own, also where threads call at the same time."""
    both = threading.Barrier(2)

    @options(n_threads=9)
    def call(again=True):
        both.wait(60)
        return options.n_threads, call(False)[0] if again else None

    with ThreadPoolExecutor(2) as pool:
        assert [*pool.map(lambda _: call(), range(2))] == [(9, 9), (9, 9)]
    assert options.n_threads != 9


def test_options_that_are_written_for_nothing_say_so():
    before = options.changes()
    with pytest.warns(UserWarning, match=r"nothing: write options\.set") as said:
        options(memory="100MB")
        gc.collect()
    assert said[0].filename == __file__
    with pytest.raises(AttributeError, match=r"options\.set"):
        options.memory = "100MB"
    assert options.changes() == before


# ------------------------------------------------------------- blocks where none fit


@pytest.mark.parametrize(
    "model",
    [
        KernelKSVD(n_components=3),
        ReducedKernelDL(n_components=3),
        DictionaryOutlierDetector(),
        SRCClassifier(),
        FDDLClassifier(n_atoms_per_class=2),
    ],
    ids=lambda model: type(model).__name__,
)
def test_blocks_are_refused_in_words(model, rng):
    X = rng.random((20, 4))
    for blocks in (Blocks(lambda: iter([X])), iter([X]), [X, X]):
        with pytest.raises(TypeError, match=r"in one array here: pass np\.concatenate"):
            model.fit(blocks, np.arange(20) % 2)


def test_iterables_without_blocks_are_refused(rng):
    X = rng.random((20, 4))
    fitted = MOD(3, random_state=0).fit(X)
    for call in (
        fitted.score,
        fitted.reconstruction_error,
        MOD(3).fit,
        lambda blocks: ResidualClassifier(MOD(3)).fit(blocks, []),
    ):
        with pytest.raises(ValueError, match="without blocks"):
            call(Blocks(lambda: iter([])))


@pytest.mark.parametrize(
    "model",
    [
        MOD(6, 2, max_iter=2, random_state=0),
        MOD(6, 2, max_iter=2, random_state=0, sparse_output=True),
        KernelMOD("rbf", 6, n_nonzero_coefs=2, max_iter=2, random_state=0),
        NystroemMap("rbf", n_landmarks=8, random_state=0),
    ],
    ids=["dense", "sparse", "kernel", "map"],
)
@pytest.mark.parametrize("kind", ["Blocks", "iterator", "Dask"])
def test_the_way_back_from_blocks(kind, model, rng):
    """Whatever `transform` returns, `inverse_transform` takes."""
    X = rng.random((60, 5))
    model = model.fit(X)
    expected = model.inverse_transform(model.transform(X))
    if kind == "Dask":
        chunked = pytest.importorskip("dask.array").from_array(X, chunks=(25, 5))
        found = model.inverse_transform(model.transform(chunked)).compute()
    else:
        blocks = [X[:20], X[20:]]
        source = iter(blocks) if kind == "iterator" else Blocks(lambda: iter(blocks))
        found = np.concatenate(list(model.inverse_transform(model.transform(source))))
    np.testing.assert_allclose(found, expected, atol=1e-7)


@pytest.mark.rounding
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", [300, 1300])  # one tile, several
def test_tiled_products_do_not_depend_on_threads(n, dtype, rng):
    A, B = (rng.standard_normal((n, k)).astype(dtype) for k in (40, 30))
    M = rng.standard_normal((40, 30)).astype(dtype)

    def products(n_threads):
        with options(n_threads=n_threads), serial_blas:
            return matmul(A, M), matmul(M.T, A.T), cross(A, B), outer_products(A)

    tolerance = 100 * np.finfo(dtype).eps
    plain = A @ M, (A @ M).T, A.T @ B, A @ A.T
    for found, expected in zip(products(1), plain, strict=True):
        np.testing.assert_allclose(found, expected, atol=tolerance * np.sqrt(n))
    for found, expected in zip(products(3), products(1), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_lazy_rows_are_collected(rng, tmp_path):
    np.save(tmp_path / "rows.npy", rng.standard_normal((50, 4)))
    rows = LazyRows(np.load(tmp_path / "rows.npy", mmap_mode="r"), sparse.csr_array)
    assert load_values(rows).toarray().shape == (50, 4)


@pytest.mark.parametrize("blocks", [[np.ones((3, 2))], iter([np.ones((3, 2))])])
def test_blocks_that_are_no_function_are_refused(blocks):
    with pytest.raises(TypeError, match="a list of blocks needs no Blocks"):
        Blocks(blocks)
