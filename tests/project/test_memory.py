"""The memory option is a promise: peaks of whole processes, for every estimator.

Rows are on disk, in a file several times larger than the option. What a fit or a
prediction takes beside its result may exceed the option by 25 % and 50 MB, the latter
for the model itself and for the memory that the system does not give back at once.

On a GPU, where torch's allocator counts every byte, by 10 %; there rows also come as
tensors, which are not counted.
"""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
import threading
import time
from functools import partial

import numpy as np
import pytest
from sklearn.base import is_classifier

from kernlets import (
    KSVD,
    MOD,
    KernelKSVD,
    KSADClassifier,
    LCKSVDClassifier,
    NystroemMap,
    ResidualClassifier,
    SRCClassifier,
    options,
    registry,
)
from kernlets.classifiers import residual
from kernlets.data import block_loop, limits
from kernlets.data.block_loop import BlockPlan
from kernlets.data.lazy_rows import LazyRows
from kernlets.numerics.arrays import GPUMemory

ROWS, WIDTH, MEMORY = 60_000, 400, 16  # 96 MB in float32; MB
LIMIT = 1.25 * MEMORY + 50
QUICK = {"max_iter": 1, "random_state": 0, "n_components": 6, "n_landmarks": 40}
QUICK |= {"max_candidates": 2, "n_atoms_per_class": 6}
WIDE = {"n_components": 150, "n_landmarks": 200}  # features and codes exceed MEMORY
GPU_ROWS, GPU_WIDTH, GPU_MEMORY = 5000, 10_000, 100  # 200 MB in float32; MB
WHOLE = {  # defined by all samples or codes at once
    "AutoDictionaryClassifier",
    "DKSVDClassifier",
    "DictionaryImputer",
    "ImageClassifier",
    "FDDLClassifier",
    "GrossErrorMask",
    "KSADClassifier",
    "KSVD",
    "KernelKSVD",
    "KernelMOD",
    "LCKSVDClassifier",
    "ReducedKernelDL",
    "ResidualClassifier",  # of KSVD
    "SRCClassifier",
}
PROGRAM = """
    import gc, json, sys, warnings
    import numpy as np
    from kernlets import KSVD, OMP, PatchDictionaryMap, options, registry
    from sklearn.base import is_classifier

    gc.freeze()  # objects of modules, which no collection needs to visit
    warnings.simplefilter("ignore")
    path, memory = sys.argv[1], int(sys.argv[2])
    quick, wide = json.loads(sys.argv[3]), json.loads(sys.argv[4])

    def status(name):  # MB
        with open("/proc/self/status") as lines:
            return next(int(l.split()[1]) for l in lines if l.startswith(name)) / 1e3

    def peak(job):
        gc.collect()
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")  # the peak starts anew
        before = status("VmRSS")
        try:
            with options(memory=memory * 10**6, n_threads=2):
                result = job()
        except (MemoryError, ValueError) as error:
            return str(error), None
        own = result.nbytes / 1e6 if isinstance(result, np.ndarray) else 0.0
        return status("VmHWM") - before - own, result

    learner = KSVD(6, coder=OMP(1), max_iter=1)
    of_images = {"patches": PatchDictionaryMap(3, learner, grid=2)}

    def made(Estimator, given=quick):
        params, given = Estimator().get_params(), given | of_images
        return Estimator(**{k: v for k, v in given.items() if k in params})

    X = np.load(path, mmap_mode="r")
    y = np.arange(len(X)) % 3
    few, some = np.array(X[:300]), X[:3000]
    for Estimator in registry.estimators():
        labels = y if is_classifier(Estimator()) else None
        small = made(Estimator, quick | wide)
        small.fit(few, None if labels is None else y[:300])
        names = ("transform", "predict", "decision_function")
        methods = [name for name in names if hasattr(small, name)]
        for warm in (few, some):  # compile before anything is measured
            for name in methods:
                peak(lambda: getattr(small, name)(warm))
        peak(lambda: made(Estimator).fit(some, None if labels is None else y[:3000]))
        found = {"fit": peak(lambda: made(Estimator).fit(X, labels))[0]}
        for name in methods:
            found[name] = peak(lambda: getattr(small, name)(X))[0]
        print(json.dumps([Estimator.__name__, found]), flush=True)
"""


@pytest.fixture(scope="module")
def peaks(tmp_path_factory):
    """Of each estimator and method: MB, or the message of a refusal."""
    path = tmp_path_factory.mktemp("memory") / "X.npy"
    rng = np.random.default_rng(0)
    X = np.lib.format.open_memmap(path, "w+", np.float32, (ROWS, WIDTH))
    atoms = rng.standard_normal((20, WIDTH), dtype=np.float32)
    for begin in range(0, ROWS, 10_000):
        X[begin : begin + 10_000] = rng.random((10_000, 20), np.float32) @ atoms
    X.flush()
    del X
    command = [sys.executable, "-c", textwrap.dedent(PROGRAM), path]
    command += [str(MEMORY), json.dumps(QUICK), json.dumps(WIDE)]
    run = subprocess.run(command, capture_output=True, text=True)
    path.unlink()
    assert run.returncode == 0, run.stderr
    return dict(json.loads(line) for line in run.stdout.splitlines())


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize("name", [cls.__name__ for cls in registry.estimators()])
def test_peaks_stay_within_the_option(name, peaks):
    found = peaks[name]
    if name in WHOLE:
        assert "memory option" in found.pop("fit")
    assert found and all(peak <= LIMIT for peak in found.values()), found


@pytest.mark.rounding
def test_codes_of_classifiers_that_do_not_fit_are_made_when_read(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((20_000, 6)), np.arange(20_000) % 4
    np.save(tmp_path / "X.npy", X)
    model = LCKSVDClassifier(10, max_iter=1, random_state=0).fit(X[:400], y[:400])
    with options(memory="4MB"):  # and 6.4 MB of codes; blocks of 512 rows fit
        codes = model.transform(np.load(tmp_path / "X.npy", mmap_mode="r"))
    assert isinstance(codes, LazyRows) and codes.shape == (20_000, 40)
    np.testing.assert_array_equal(codes[:], model.transform(X))


def test_an_option_for_the_host_and_one_for_gpus():
    with options(memory="3GB"):
        assert (options.memory, options.device_memory) == (3 * 10**9, 3 * 10**9)
        with options(device_memory="1 GB"):
            assert (options.memory, options.device_memory) == (3 * 10**9, 10**9)
        with options(memory="2GB", device_memory=None):
            assert options.device_memory is None
    assert options.device_memory is None


def test_classes_on_disk_share_the_memory(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    np.save(tmp_path / "X.npy", rng.standard_normal((400, 30)))  # 96 kB
    X, y = np.load(tmp_path / "X.npy", mmap_mode="r"), np.arange(400) % 4
    model = ResidualClassifier(KSVD(3, 2, max_iter=1, random_state=0))
    at_work, most, expected, changed = 0, 0, 0, threading.Condition()

    def fitted(learner, rows, c, classifier):
        X = rows.of_class(c)
        nonlocal at_work, most
        with changed:
            at_work += 1
            most = max(most, at_work)
            changed.notify_all()
            changed.wait_for(lambda: most >= expected, timeout=60)
        time.sleep(0.05)  # one more would come now
        with changed:
            at_work -= 1
        return learner.fit(X)

    monkeypatch.setattr(residual, "fit_to_class", fitted)
    # fits to a sample in memory
    monkeypatch.setattr(residual, "temperature_of_parts", lambda *parts: None)
    for memory, expected in (("1MB", 4), ("150KB", 2), ("100KB", 1)):
        most = 0
        with options(memory=memory, n_threads=4):
            model.fit(X, y)
        assert most == expected
    with options(memory="70KB"), pytest.raises(MemoryError, match="space to work in"):
        model.fit(X, y)


def test_a_model_of_tensors_reads_rows_on_disk_in_blocks(tmp_path):
    pytest.importorskip("torch", reason="torch is not installed")
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 30)).astype(np.float32)  # 240 kB
    np.save(tmp_path / "X.npy", X)
    stored, y = np.load(tmp_path / "X.npy", mmap_mode="r"), np.arange(100) % 4
    for model in (KSADClassifier(n_components=8), SRCClassifier("rbf", 3)):
        with options(device="cpu"):
            expected = model.fit(X[:100], y).predict(X)
        with options(device="cpu", memory="200KB"):
            np.testing.assert_array_equal(model.predict(stored), expected)


def test_blocks_on_a_gpu_take_a_sixth_of_the_option_at_most(monkeypatch):
    gpu_memory = GPUMemory(free=64 * 10**9, total=64 * 10**9)
    monkeypatch.setattr(block_loop, "gpu_of", lambda source: "cuda")
    monkeypatch.setattr(block_loop, "gpu_memory", lambda gpu: gpu_memory)
    monkeypatch.setattr(block_loop, "gpu_memory_limit", lambda gpu: 6 * 10**8)
    rows = np.empty((10**6, 100), np.float32)
    with options(n_threads=4):
        plan = BlockPlan.of(9200, rows)  # and 800 bytes for a row itself
    assert (plan.rows, plan.at_once) == (10**8 // 10**4, 3)
    monkeypatch.setattr(block_loop, "gpu_memory_limit", lambda gpu: 4 * 10**10)
    assert BlockPlan.of(9200, rows).rows == 10**9 // 10**4  # caches suffice


def test_full_memory_is_an_error_with_advice():
    advice = r"options\(device_memory"
    with pytest.raises(MemoryError, match=advice), limits.at_work():
        raise RuntimeError("CUDA out of memory. Tried to allocate 70.00 GiB. GPU 0 …")
    with (
        pytest.raises(MemoryError, match="in blocks"),
        limits.at_work(),
    ):
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried …")
    with pytest.raises(RuntimeError, match="another"), limits.at_work():
        raise RuntimeError("another error")


@pytest.fixture
def gpu():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    if not torch.cuda.is_available():
        pytest.skip("no GPU")
    return torch.cuda


@pytest.fixture(scope="module")
def wide_rows(tmp_path_factory):
    path = tmp_path_factory.mktemp("gpu") / "X.npy"
    rng = np.random.default_rng(0)
    atoms = rng.standard_normal((20, GPU_WIDTH), dtype=np.float32)
    X = rng.random((GPU_ROWS, 20), np.float32) @ atoms
    np.save(path, X / np.linalg.norm(X, axis=1, keepdims=True))
    return np.load(path, mmap_mode="r")


def quickly(Estimator):
    params = Estimator().get_params()
    return Estimator(**{name: QUICK[name] for name in QUICK if name in params})


def gpu_peak(gpu, job):
    """MB beside the result."""
    gpu.synchronize()
    gpu.empty_cache()
    before = gpu.memory_allocated()
    gpu.reset_peak_memory_stats()
    result = job()
    gpu.synchronize()
    own = result.nbytes if hasattr(result, "is_cuda") and result.is_cuda else 0
    return (gpu.max_memory_allocated() - before - own) / 1e6


@pytest.mark.parametrize("place", ["disk", "tensor"])
@pytest.mark.parametrize("name", [cls.__name__ for cls in registry.estimators()])
@pytest.mark.filterwarnings("ignore")
def test_peaks_on_a_gpu(name, place, wide_rows, gpu):
    Estimator = {cls.__name__: cls for cls in registry.estimators()}[name]
    y = np.arange(GPU_ROWS) % 3 if is_classifier(Estimator()) else None
    few = np.array(wide_rows[:300])
    with options(device="cuda", memory=GPU_MEMORY * 10**6):
        small = quickly(Estimator).fit(few, None if y is None else y[:300])
        X = wide_rows if place == "disk" else torch_rows(wide_rows)
        for method in ("transform", "predict", "decision_function"):
            if hasattr(small, method):
                getattr(small, method)(few)
                getattr(small, method)(wide_rows[:1500])  # handles of the threads
                check_gpu_peak(gpu, partial(getattr(small, method), X), place)
        if name in WHOLE and place == "tensor":
            return  # copies of all rows are needed, and were asked for
        check_gpu_peak(gpu, lambda: quickly(Estimator).fit(X, y), place)


def check_gpu_peak(gpu, job, place):
    """Within the option; rows on disk that are needed all at once may be refused.

    The first product of a thread takes a workspace of cuBLAS, which the thread keeps:
    threads that have had none so far would be counted, so a second run decides.
    """
    try:
        peak = gpu_peak(gpu, job)
        if peak > 1.1 * GPU_MEMORY:
            peak = gpu_peak(gpu, job)
    except MemoryError as refusal:
        assert "memory option" in str(refusal) and place == "disk"
    else:
        assert peak <= 1.1 * GPU_MEMORY


def torch_rows(X):
    import torch

    return torch.as_tensor(np.array(X), device="cuda")


def test_large_arrays_are_moved_to_a_gpu_block_by_block(wide_rows, gpu):
    X = np.array(wide_rows)
    with options(device="cuda", memory=GPU_MEMORY * 10**6):
        peak = gpu_peak(gpu, lambda: MOD(6, 2, max_iter=1, random_state=0).fit(X))
        streamed = MOD(6, 2, max_iter=3, random_state=0).fit(X)
        codes = streamed.transform(X[:500])
    assert peak <= 1.1 * GPU_MEMORY
    with options(device="cuda"):
        moved = MOD(6, 2, max_iter=3, random_state=0).fit(X)
    error = moved.reconstruction_error(X)
    assert streamed.reconstruction_error(X) == pytest.approx(error, rel=1e-4)
    assert codes.shape == (500, 6)


def test_what_is_too_large_for_a_gpu_is_our_error(gpu):
    rng = np.random.default_rng(0)
    X = rng.random((300_000, 4), np.float32)
    with options(device="cuda", device_memory="900GB"):
        with pytest.raises(MemoryError, match="GPU is full"):
            NystroemMap("rbf", "uniform", n_landmarks=300_000).fit(X)
    assert KSVD(8, 2, max_iter=1, random_state=0).fit(X[:100]).components_.shape


def fit_all_rows_on_disk(X, path):
    np.save(path, X)
    KSVD(4, random_state=0).fit(np.load(path, mmap_mode="r"))


TOO_LARGE = {
    "rows": fit_all_rows_on_disk,
    "kernel matrix": lambda X, path: KernelKSVD("rbf", 4).fit(X),
    "landmarks": lambda X, path: NystroemMap(
        "rbf", n_landmarks=900, landmarks="rpcholesky"
    ).fit(X),
}


@pytest.mark.parametrize("name", TOO_LARGE)
def test_sizes_that_do_not_fit_have_fitting_units(name, tmp_path, rng):
    X = rng.standard_normal((1000, 60))
    with (
        options(memory="200kB"),
        pytest.raises(MemoryError, match=r"[1-9][\d.]* [kM]B.* of 200 kB"),
    ):
        TOO_LARGE[name](X, tmp_path / "X.npy")
