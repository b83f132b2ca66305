"""Rows on a cluster: the same results, nothing moved that need not, no worker missed.

Most tests use Dask's threads; those about the network start two worker processes.
"""

from __future__ import annotations

import importlib
import os
import signal
import threading
import time
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from benchmarks.traffic import traffic
from kernlets import (
    DTW,
    GAK,
    KSVD,
    MOD,
    RBF,
    Clipped,
    FourierMap,
    KernelKSVD,
    NystroemMap,
    OnlineDictionary,
    OrthogonalDictionary,
    Precomputed,
    ReducedKernelDL,
    ResidualClassifier,
    RLSDictionary,
    Spectrum,
    Stein,
    WeisfeilerLehman,
    options,
)
from kernlets.data.rows import (
    cache_rows,
    iter_blocks,
    map_rows,
    row_batches,
    sum_rows,
    take_rows,
)
from kernlets.landmarks import SAMPLERS, choose
from kernlets.landmarks.choose import BY_BLOCKS
from kernlets.maps import MAPS, ConvolutionMap, CountMap
from kernlets.numerics.arrays import is_dask
from tests.structures import samples as objects

dask = pytest.importorskip("dask", reason="Dask is not installed")
da = pytest.importorskip("dask.array", reason="Dask is not installed")
db = pytest.importorskip("dask.bag", reason="Dask is not installed")
dd = pytest.importorskip("dask.dataframe", reason="Dask is not installed")
distributed = pytest.importorskip("distributed", reason="distributed is not installed")
pandas = pytest.importorskip("pandas", reason="pandas is not installed")

N, P = 3000, 12


def samples(dtype=np.float64, n=N):
    rng = np.random.default_rng(5)
    atoms = rng.standard_normal((20, P))
    codes = np.where(rng.random((n, 20)) < 0.15, rng.standard_normal((n, 20)), 0)
    X = codes @ atoms + 0.1 * rng.standard_normal((n, P))
    X[[4, 1234]] = 0.0  # rows that are no atoms
    return X.astype(dtype)


@pytest.fixture(scope="module")
def X():
    return samples()


@pytest.fixture(scope="module")
def y(X):
    scores = X @ np.random.default_rng(3).standard_normal((P, 3))
    return np.array(["one", "two", "three"])[scores.argmax(1)]


@pytest.fixture(scope="module")
def cluster():
    """Two worker processes; the scheduler and the client are in this process."""
    keys = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with distributed.LocalCluster(**keys) as cluster:
        yield cluster


@pytest.fixture
def client(cluster):
    with distributed.Client(cluster) as client:
        yield client


def chunked(X, rows=700, columns=P):
    return da.from_array(X, chunks=(rows, columns))


def frame(X, npartitions=4):
    columns = [f"feature {i}" for i in range(X.shape[1])]
    return dd.from_pandas(pandas.DataFrame(X, columns=columns), npartitions=npartitions)


def pipeline(learner, landmarks="uniform"):
    features = NystroemMap(
        "rbf", landmarks, n_landmarks=60, n_components=20, random_state=0
    )
    return make_pipeline(features, clone(learner))


LEARNERS = {
    "MOD": MOD(25, 3, max_iter=4, random_state=0),
    "online": OnlineDictionary(
        25, 3, max_iter=1, schedule="batch_size=450", random_state=0
    ),
    "parallel K-SVD": KSVD(25, 3, update="ksvd-parallel", max_iter=4, random_state=0),
    "orthogonal": OrthogonalDictionary(12, 3, max_iter=4, random_state=0),
}


def assert_close(found, expected, tolerance=1e-5):
    assert found.shape == expected.shape and found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, atol=tolerance * np.abs(expected).max())


# The loops


def test_dask_is_known_by_name(X):
    assert is_dask(chunked(X)) and is_dask(frame(X))
    assert not is_dask(X) and not is_dask(pandas.DataFrame(X))


def test_sums_maps_and_rows(X):
    A = chunked(X)
    np.testing.assert_allclose(sum_rows(lambda b: b.T @ b, A, 8), X.T @ X)
    doubled = map_rows(lambda b: 2 * b[:, :3], A, 8)
    assert doubled.shape == (N, 3) and doubled.chunks[0] == A.chunks[0]
    np.testing.assert_array_equal(doubled.compute(), 2 * X[:, :3])
    totals = map_rows(lambda b: b.sum(1), A, 8)
    np.testing.assert_array_equal(totals.compute(), X.sum(1))
    rows = np.array([2999, 0, 700, 699, 0])
    np.testing.assert_array_equal(take_rows(A, rows), X[rows])
    np.testing.assert_array_equal(take_rows(doubled, rows), 2 * X[rows, :3])


def test_blocks_know_the_numbers_of_their_rows(X):
    with options(block_rows=64):
        found = sum_rows(lambda b, first: [(first, len(b))], chunked(X), 8, True)
    ends = np.cumsum([n for _, n in found])
    assert [first for first, _ in found] == [0, *ends[:-1]] and ends[-1] == N


def test_batches_cut_across_chunks(X):
    A = map_rows(lambda b: b + 1, chunked(X, 700), 8)
    batches = list(row_batches(A, 450))
    assert [len(batch) for batch in batches] == [450] * 6 + [300]
    np.testing.assert_array_equal(
        np.concatenate([batch.compute() for batch in batches]), X + 1
    )
    inner = next(row_batches(batches[1], 400))
    np.testing.assert_array_equal(inner.compute(), X[450:850] + 1)


def test_a_map_is_what_it_was_when_it_was_asked_for(X):
    features = NystroemMap(RBF(2.0), X[:30]).fit(chunked(X))
    first = features.transform(chunked(X))
    expected = features.transform(X)
    features.set_params(landmarks=X[30:90]).fit(X)
    np.testing.assert_allclose(first.compute(), expected)


def test_arrays_that_were_assigned_to_are_not_mistaken(X):
    A = map_rows(lambda b: 2 * b, chunked(X), 8)
    A[A > 0] = 0
    total = sum_rows(lambda b: b.sum(), A, 8)
    assert total == pytest.approx(np.minimum(2 * X, 0).sum())


# Landmarks


@pytest.mark.parametrize("name", SAMPLERS)
def test_landmarks_across_partitions(name, X):
    kernel = RBF(2.0)
    found, expected = (
        choose(name, kernel, A, 40, np.random.default_rng(0)) for A in (chunked(X), X)
    )
    assert found.rows.shape == (40, P)
    if found.indices is not None:
        np.testing.assert_array_equal(found.rows, X[found.indices])
    if SAMPLERS[name] in BY_BLOCKS:
        assert_close(found.rows, expected.rows, 1e-10)
    else:  # each chunk gives its share
        share = np.histogram(found.indices, [0, 700, 1400, 2100, 2800, N])[0]
        np.testing.assert_allclose(share, 40 * np.array([7, 7, 7, 7, 2]) / 30, atol=1)


def test_landmarks_that_are_given(X):
    for given in ([5, 2500, 7], X[:4]):
        found, expected = (
            NystroemMap(RBF(2.0), given).fit(A).landmarks_ for A in (chunked(X), X)
        )
        np.testing.assert_array_equal(found, expected)


def test_a_matrix_is_refused():
    with pytest.raises(ValueError, match="precomputed"):
        NystroemMap(Precomputed()).fit(da.eye(20, chunks=5))


# The same results


@pytest.mark.rounding
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("rows", [700, 130])
@pytest.mark.parametrize("name", LEARNERS)
def test_lkdl_in_memory_on_disk_and_on_a_cluster(name, rows, dtype, tmp_path):
    """The same objective by every road, and in float64 the same atoms and codes.

    In float32 two correlations may be a rounding error apart, so that a sample chooses
    another atom when its chunk has another shape: then atoms are not promised, and
    objectives to the share of a few samples.
    """
    close = 1e-5 if dtype == np.float64 else 5 / N
    X = samples(dtype)
    expected = pipeline(LEARNERS[name]).fit(X)
    np.save(tmp_path / "X.npy", X)
    disk = np.load(tmp_path / "X.npy", mmap_mode="r")
    with options(memory=400_000):  # virtual samples do not fit
        found = {"disk": pipeline(LEARNERS[name]).fit(disk)}
    found["dask"] = pipeline(LEARNERS[name]).fit(chunked(X, rows, 7))
    for model in found.values():
        np.testing.assert_array_equal(
            model[0].landmark_indices_, expected[0].landmark_indices_
        )
        estimate = model[0].kernel_error_  # from 2048 rows
        assert estimate == pytest.approx(expected[0].kernel_error_, rel=0.1)
        np.testing.assert_allclose(
            model[-1].history_["objective"],
            expected[-1].history_["objective"],
            rtol=close,
        )
        assert model.score(X) == pytest.approx(expected.score(X), rel=close)
        if dtype == np.float64:
            assert_close(model[-1].components_, expected[-1].components_)
            assert_close(model.transform(X[:50]), expected.transform(X[:50]))


@pytest.mark.parametrize("name", MAPS)
def test_every_map(name, X):
    features = MAPS[name](random_state=0)
    if name == "sketch":
        features.set_params(kernel="poly:2")
    expected = clone(features).fit(X).transform(X)
    found = features.fit(chunked(X)).transform(chunked(X, 500))
    assert is_dask(found) and found.chunks[0] == (500,) * 6
    assert_close(found.compute() @ found[:9].compute().T, expected @ expected[:9].T)


def test_truncation_by_samples(X):
    features = NystroemMap(
        "rbf",
        "uniform",
        n_landmarks=60,
        n_components=10,
        truncation="samples",
        random_state=0,
    )
    expected = clone(features).fit(X).transform(X)
    found = features.fit_transform(chunked(X))
    assert_close(found.compute() @ found[:9].compute().T, expected @ expected[:9].T)


@pytest.mark.parametrize("init", ["samples", "kmeans", "svd", "normal"])
def test_first_atoms(init, X):
    learner = MOD(10, 2, max_iter=1, init=init, random_state=0)
    expected = clone(learner).fit(X).components_
    assert_close(learner.fit(chunked(X)).components_, expected, 1e-8)


def test_dataframes(X, y):
    model = ResidualClassifier(MOD(10, 2, max_iter=3), random_state=0)
    expected = clone(model).fit(X, y)
    labels = dd.from_pandas(pandas.Series(y), npartitions=3)
    model.fit(frame(X), labels)
    assert list(model.feature_names_in_[:2]) == ["feature 0", "feature 1"]
    named = pandas.DataFrame(X[:99], columns=model.feature_names_in_)
    np.testing.assert_array_equal(model.predict(named), expected.predict(X[:99]))
    found = model.predict(frame(X)).compute()
    np.testing.assert_array_equal(found, expected.predict(X))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame(X).rename(columns={"feature 0": "other"}))


# Classifiers


@pytest.mark.rounding
@pytest.mark.parametrize("kind", ["array", "NumPy labels", "unknown lengths"])
def test_classifier(kind, X, y):
    model = make_pipeline(
        NystroemMap("rbf", "uniform", n_landmarks=60, n_components=20, random_state=0),
        ResidualClassifier(MOD(10, 3, max_iter=3), random_state=0),
    )
    expected = clone(model).fit(X, y)
    A, b = chunked(X), da.from_array(y, chunks=450)
    if kind == "NumPy labels":
        b = y
    elif kind == "unknown lengths":
        A, b = A[da.from_array(np.ones(N, bool), chunks=700)], b[b != "nothing"]
    model.fit(A, b)
    for own, other in zip(model[-1].learners_, expected[-1].learners_, strict=True):
        assert_close(own.components_, other.components_)
    np.testing.assert_array_equal(model[-1].class_count_, expected[-1].class_count_)
    found = model.predict(chunked(X))
    assert is_dask(found) and found.dtype == y.dtype
    np.testing.assert_array_equal(found.compute(), expected.predict(X))
    for name in ("predict_proba", "decision_function"):
        values = getattr(model, name)(chunked(X)).compute()
        assert_close(values, getattr(expected, name)(X))
    assert model.score(chunked(X), b) == pytest.approx(expected.score(X, y))
    assert model.score(X, y) == expected.score(X, y)  # an ordinary model now


def test_weighted_score(X, y):
    model = ResidualClassifier(MOD(10, 2, max_iter=1), random_state=0).fit(X, y)
    weights = np.arange(N) % 3
    assert model.score(chunked(X), y, weights) == pytest.approx(
        model.score(X, y, weights)
    )


def test_labels_that_do_not_fit(X, y):
    model = ResidualClassifier(MOD(10))
    with pytest.raises(ValueError, match="one label for each row"):
        model.fit(chunked(X), y[:-1])
    with pytest.raises(ValueError, match="one class only"):
        model.fit(chunked(X), np.zeros(N))
    with pytest.raises(ValueError, match="y"):
        model.fit(chunked(X), None)


# What is refused, and how


@pytest.mark.parametrize(
    "estimator",
    [KSVD(5), KernelKSVD("rbf", 5), ReducedKernelDL(), RLSDictionary(5)],
    ids=lambda e: type(e).__name__,
)
def test_learners_that_need_all_rows_say_so(estimator, X):
    with pytest.raises(TypeError, match=r"all rows or codes.*update='ksvd-parallel'"):
        estimator.fit(chunked(X))
    with pytest.raises(TypeError, match="transform"):
        MOD(5, random_state=0).fit(X).encode(chunked(X))


def test_bad_rows(X):
    bad = X.copy()
    bad[2000, 3] = np.inf
    for A in (chunked(bad), frame(bad)):
        with pytest.raises(ValueError, match="infinity"):
            MOD(5, random_state=0).fit(A)
    with pytest.raises(ValueError, match="NaN"):
        FourierMap(n_components=8).fit(X).transform(chunked(bad * np.nan)).compute()
    learner = MOD(5, random_state=0, max_iter=1).fit(X)
    with pytest.raises(ValueError, match="infinity"):
        learner.transform(chunked(bad)).compute()
    with pytest.raises(ValueError, match="5 features"):
        learner.transform(chunked(X)[:, :5])
    with pytest.raises(ValueError, match="2D"):
        learner.transform(chunked(X)[:, 0])
    words = frame(X).assign(word="a")
    with pytest.raises(ValueError, match="not real numbers"):
        MOD(5).fit(words)
    torch = pytest.importorskip("torch", reason="torch is not installed")
    with pytest.raises(TypeError, match=r"options\(device"):
        MOD(5, random_state=0).fit(torch.asarray(X)).transform(chunked(X))


def test_sparse_codes_and_errors(X):
    learner = MOD(10, 2, max_iter=2, random_state=0, sparse_output=True).fit(X)
    codes = learner.transform(chunked(X)).compute()
    assert codes.format == "csr" and (codes != learner.transform(X)).nnz == 0
    mean = learner.reconstruction_error(chunked(X))
    assert mean == pytest.approx(learner.reconstruction_error(X))
    each = learner.reconstruction_error(chunked(X), per_sample=True)
    assert_close(each.compute(), learner.reconstruction_error(X, per_sample=True), 1e-9)


# Two worker processes, also with a device each: two of them may share a GPU


def on_devices():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    return ["cpu", *["cuda"] * torch.cuda.is_available()]


MODELS_ON_DEVICES = {
    "MOD": MOD(15, 3, max_iter=3, random_state=0),
    "K-SVD": KSVD(15, 3, update="ksvd-parallel", max_iter=3, random_state=0),
    "online": OnlineDictionary(15, 3, max_iter=2, random_state=0),
    "orthogonal": OrthogonalDictionary(3, max_iter=3, random_state=0),
    "map": FourierMap(n_components=20, random_state=0),
}


@pytest.mark.parametrize("device", on_devices())
@pytest.mark.parametrize("name", MODELS_ON_DEVICES)
def test_workers_compute_on_the_device_of_the_options(name, device, X, client):
    model = MODELS_ON_DEVICES[name]
    codes = clone(model).fit(X).transform(X)
    with options(device=device):
        fitted = clone(model).fit(chunked(X))
        found = fitted.transform(chunked(X)).compute()
    assert isinstance(found, np.ndarray)
    assert_close(found, codes, 1e-8)
    if name != "map":
        assert fitted.components_.device.type == device


@pytest.mark.parametrize("device", on_devices())
@pytest.mark.parametrize("landmarks", ["coreset", "kmeans"])
def test_pipeline_whose_workers_have_devices(landmarks, device, X, y, client):
    features = NystroemMap("poly:2", landmarks, n_landmarks=40, random_state=0)
    learner = MOD(15, 3, max_iter=3, random_state=0)
    model = make_pipeline(features, ResidualClassifier(learner))
    labels = clone(model).fit(chunked(X), da.from_array(y, chunks=700)).predict(X)
    with options(device=device):
        fitted = clone(model).fit(chunked(X), da.from_array(y, chunks=700))
        found = fitted.predict(chunked(X)).compute()
    assert fitted[0].landmarks_.device.type == device
    assert (found == labels).mean() > 0.99


def chunk_of_normals(block_info=None):
    """Rows made on the worker, always the same ones."""
    first, last = block_info[None]["array-location"][0]
    rng = np.random.default_rng(first)
    return rng.standard_normal((last - first, 50), dtype=np.float32)


def normals(rows, n_chunks):
    return da.map_blocks(
        chunk_of_normals, chunks=((rows,) * n_chunks, (50,)), dtype=np.float32
    )


@pytest.mark.parametrize("kind", ["MOD", "online", "k-means"])
def test_samples_stay_where_they_are(kind, client):
    """The bytes on the wire: chosen rows, sums, models, whatever the rows' number."""
    c, k, m, n_chunks, passes = 40, 20, 15, 8, 3
    learner = MOD(m, 2, max_iter=passes, random_state=0)
    rounds, sums = 4 + passes, 8 * (m * m + m * k + 2 * m) + 4 * m * k
    if kind == "online":
        learner = OnlineDictionary(
            m, 2, max_iter=passes, schedule="batch_size=40_000", random_state=0
        )
        rounds = 4 + passes * 4
    landmarks = "kmeans" if kind == "k-means" else "uniform"
    if kind == "k-means":
        rounds, sums = rounds + 10, max(sums, 8 * c * 50)
    features = NystroemMap(
        RBF(8.0), landmarks, n_landmarks=c, n_components=k, random_state=0
    )
    model = make_pipeline(features, learner)
    counts = {}
    for rows in (5_000, 20_000):
        X = normals(rows, n_chunks)
        counts[rows] = traffic(client, lambda X=X: model.fit(X))
    chosen = 4 * (c + m + 2048) * 50  # landmarks, first atoms, rows for the error
    models = 4 * (c * 50 + c * k + m * k)
    task = 6_000  # what Dask itself says about one
    # twice: results come by way of the scheduler
    allowed = 2 * chosen + rounds * (n_chunks * (2 * sums + task) + 6 * models)
    assert counts[20_000] < allowed < X.nbytes / 4
    assert counts[20_000] < 1.3 * counts[5_000]  # four times the rows, the same bytes


def test_transform_sends_the_model_only(client):
    X = normals(20_000, 8)
    features = NystroemMap(
        RBF(8.0), "uniform", n_landmarks=40, n_components=20, random_state=0
    ).fit(X)
    total = features.transform(X).sum()
    assert traffic(client, total.compute) < X.nbytes / 50


def test_chunks_are_made_once_for_all_passes(client, tmp_path):
    def count(block):
        (tmp_path / f"{time.time_ns()}-{os.getpid()}").touch()
        return block

    X = normals(500, 6).map_blocks(count, dtype=np.float32, meta=np.empty((0, 0)))
    MOD(5, 2, max_iter=5, random_state=0).fit(X)
    made = len(list(tmp_path.iterdir()))
    assert 6 <= made <= 12  # a worker that takes over from a busy one makes its own

    def held():
        from kernlets.data import dask_worker

        return len(dask_worker._CACHE._chunks_by_key)

    assert set(client.run(held).values()) == {0}


def test_rows_on_the_workers_are_used_there(client):
    X = normals(20_000, 8).persist()
    distributed.wait(X)
    with cache_rows(X) as rows:
        found = sum_rows(lambda b: b.sum(0, dtype=np.float64), rows, 400)
    np.testing.assert_allclose(found, X.sum(0, dtype=np.float64).compute())


def slowly(block):
    time.sleep(0.05)
    return block


@pytest.mark.parametrize("when", ["between passes", "within a pass"])
def test_a_killed_worker_changes_nothing(when, client):
    X = normals(2_000, 16)
    if when == "within a pass":
        X = X.map_blocks(slowly, dtype=np.float32, meta=np.empty((0, 0)))
    features = NystroemMap(
        RBF(8.0), "uniform", n_landmarks=40, n_components=20, random_state=0
    ).fit(X)
    virtual = features.transform(X)
    learner = MOD(15, 2, max_iter=3, random_state=0)
    expected = clone(learner).fit(virtual).components_
    killed = []

    def kill():
        pids = client.run(os.getpid)
        killed.append(sorted(pids.values())[0])
        os.kill(killed[0], signal.SIGKILL)

    def disturb(state):
        if state["iteration"] == 0 and not killed:
            kill()

    if when == "between passes":
        learner.set_params(schedule__callback=disturb)
        found = learner.fit(virtual)
    else:
        timer = threading.Timer(0.3, kill)
        timer.start()
        found = learner.fit(virtual)
        timer.join()
    assert killed and killed[0] not in client.run(os.getpid).values()
    np.testing.assert_array_equal(found.components_, expected)


# Clusters without workers


@pytest.fixture
def small_cluster():
    """One worker of its own, which a test may take away."""
    keys = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": ":0"}
    with distributed.LocalCluster(**keys) as cluster:
        with distributed.Client(cluster) as client:
            yield cluster, client


def without_workers(cluster, client):
    cluster.scale(0)
    while client.nthreads():
        time.sleep(0.05)


def short_patience(wait):
    return dask.config.set({"kernlets.no-workers-timeout": wait})


@pytest.mark.filterwarnings("ignore:the Dask cluster:UserWarning")
def test_a_cluster_that_loses_all_workers(small_cluster, X):
    """In the middle of a fit, at its start, and in what comes after."""
    cluster, client = small_cluster
    rows = chunked(X)

    def leave(state):
        without_workers(cluster, client)

    learner = MOD(15, 2, max_iter=3, random_state=0)
    fitted = clone(learner).fit(rows)
    with short_patience("1s"):
        with pytest.raises(RuntimeError, match="no workers for 1 s: start some"):
            clone(learner).set_params(schedule__callback=leave).fit(rows)
        assert not client.nthreads()
        for work in (
            lambda: clone(learner).fit(rows),
            lambda: clone(learner).fit(frame(X)),
            lambda: NystroemMap(RBF(2.0), n_landmarks=9).fit(rows),
            lambda: fitted.reconstruction_error(rows),
            lambda: next(iter_blocks(fitted.transform(rows), 8)),
        ):
            with pytest.raises(RuntimeError, match="no workers"):
                work()


def test_the_only_worker_is_killed_and_another_one_comes(small_cluster, X):
    """Within a pass: Dask has put the tasks aside, for a worker that is no more."""
    _, client = small_cluster
    rows = chunked(X).map_blocks(slowly, dtype=np.float64, meta=np.empty((0, 0)))
    learner = MOD(15, 2, max_iter=2, random_state=0)
    expected = clone(learner).fit(chunked(X)).components_
    (pid,) = client.run(os.getpid).values()
    timer = threading.Timer(0.5, os.kill, [pid, signal.SIGKILL])
    timer.start()
    found = learner.fit(rows)
    timer.join()
    assert pid not in client.run(os.getpid).values()
    np.testing.assert_array_equal(found.components_, expected)


def test_a_cluster_whose_workers_come_back(small_cluster, X):
    cluster, client = small_cluster
    timers = []

    def leave_for_a_while(state):
        if not timers:
            without_workers(cluster, client)
            timers.append(threading.Timer(1.5, cluster.scale, [1]))
            timers[0].start()

    learner = MOD(15, 2, max_iter=3, random_state=0)
    expected = clone(learner).fit(chunked(X)).components_
    with short_patience("60s"), pytest.warns(UserWarning, match="has no workers"):
        found = learner.set_params(schedule__callback=leave_for_a_while).fit(chunked(X))
    timers[0].join()
    np.testing.assert_array_equal(found.components_, expected)


@pytest.mark.parametrize("what", ["cluster", "client"])
def test_a_cluster_that_is_closed_during_a_fit(what, small_cluster, X):
    rows = chunked(X).map_blocks(slowly, dtype=np.float64, meta=np.empty((0, 0)))
    ends = {"cluster": small_cluster[0].close, "client": small_cluster[1].close}
    timer = threading.Timer(0.5, ends[what])
    timer.start()
    with pytest.raises(RuntimeError, match="was closed while it was in use: connect"):
        MOD(15, 2, max_iter=200, random_state=0).fit(rows)
    timer.join()


def test_rows_that_a_closed_cluster_had(X, client):
    keys = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": ":0"}
    with (
        distributed.LocalCluster(**keys) as other,
        distributed.Client(other, set_as_default=False) as theirs,
    ):
        rows = theirs.persist(chunked(X))
    learner = MOD(15, 2, max_iter=2, random_state=0)
    for scheduler in ("dask.distributed", "threads"):
        with dask.config.set(scheduler=scheduler):
            with pytest.raises(RuntimeError, match="Dask cluster, which is closed"):
                learner.fit(rows)


# Samples that are not rows

STRUCTURED = {
    "series": GAK(),
    "strings": Spectrum(2),
    "graphs": WeisfeilerLehman(2),
    "matrices": Stein(0.5),
}
LABELS = np.array(["even", "odd"])[np.arange(24) % 2]


def of_objects(kernel, landmarks="uniform"):
    features = NystroemMap(kernel, landmarks, n_landmarks=8, random_state=0)
    learner = MOD(3, 2, max_iter=2, random_state=0)
    return make_pipeline(features, ResidualClassifier(learner))


def object_rows(found):
    """The same samples as a Dask array of objects, in chunks of unknown length."""
    parts = [dask.delayed(array_of)(found[:9]), dask.delayed(array_of)(found[9:])]
    chunks = [da.from_delayed(part, (np.nan,), dtype=object) for part in parts]
    return da.concatenate(chunks, allow_unknown_chunksizes=True)


def array_of(found):
    array = np.empty(len(found), dtype=object)
    array[:] = found
    return array


def test_bags_of_objects_on_a_cluster(client):
    check_objects("series")


@pytest.mark.parametrize("kind", STRUCTURED)
def test_bags_of_objects(kind):
    check_objects(kind)


def check_objects(kind):
    """Learned and predicted from bags and chunks of objects, as in memory."""
    X, new = objects(kind, 24), objects(kind, 13, seed=5)
    model = of_objects(STRUCTURED[kind]).fit(X, LABELS)
    for bag in (db.from_sequence(new, npartitions=3), object_rows(new)):
        assert_close(model[0].transform(bag).compute(), model[0].transform(new), 1e-12)
        found = model.predict(bag)
        assert is_dask(found) and found.shape == (13,)
        np.testing.assert_array_equal(found.compute(), model.predict(new))
    bag = db.from_sequence(X, npartitions=5)
    again = clone(model).fit(bag, LABELS)
    assert_close(again[0].projection_, model[0].projection_, 1e-12)
    np.testing.assert_array_equal(again.predict(new), model.predict(new))
    assert again.score(bag, LABELS) == model.score(X, LABELS)


@pytest.mark.parametrize("landmarks", ["diagonal", "column-norm", "leverage"])
def test_landmarks_of_objects_do_not_depend_on_where_they_are(landmarks):
    X = objects("series", 24)
    here = of_objects(GAK(), landmarks).fit(X, LABELS)[0]
    there = of_objects(GAK(), landmarks).fit(db.from_sequence(X, npartitions=5), LABELS)
    np.testing.assert_array_equal(there[0].landmark_indices_, here.landmark_indices_)
    assert there[0].kernel_.sigma == here.kernel_.sigma


def test_other_models_and_forms_of_objects():
    X, new = objects("series", 24), objects("series", 13, seed=5)
    bag = db.from_sequence([x.astype(np.float32) for x in new], npartitions=3)
    few = {"n_nonzero_coefs": 2, "max_iter": 2, "random_state": 0}
    exact = ResidualClassifier(KernelKSVD(GAK(2.0), 3, **few)).fit(X, LABELS)
    np.testing.assert_array_equal(exact.predict(bag).compute(), exact.predict(new))
    waves = ConvolutionMap(20, random_state=0).fit(X)
    assert_close(waves.transform(bag).compute(), np.float32(waves.transform(new)))
    words = objects("strings", 13)
    counts = CountMap("spectrum:2").fit(words)
    found = counts.transform(db.from_sequence(words, npartitions=3)).blocks[1].compute()
    expected = counts.transform(words[5:10]).toarray()
    np.testing.assert_array_equal(found.toarray(), expected)
    clipped = NystroemMap(Clipped(DTW()), n_landmarks=8, random_state=0)
    X = np.random.default_rng(0).standard_normal((30, 12))  # each row is a series
    expected, rows = clone(clipped).fit(X).transform(X), chunked(X, 7, 5)
    assert_close(clipped.fit(rows).transform(rows).compute(), expected)


def test_float32_objects_give_float32_features():
    X = [x.astype(np.float32) for x in objects("series", 24)]
    bag = db.from_sequence(X, npartitions=5).filter(lambda x: len(x) > 6)
    found = NystroemMap(GAK(2.0), n_landmarks=4).fit(bag).transform(bag)
    assert found.dtype == np.float32 and found.compute().dtype == np.float32


def test_bad_bags_are_refused():
    X = objects("series", 24)
    bag = db.from_sequence(X, npartitions=5)
    for model in (NystroemMap("rbf"), MOD(3)):
        with pytest.raises(TypeError, match="a Dask Bag is neither rows"):
            model.fit(bag)
    with pytest.raises(TypeError, match="a Dask Bag is neither rows"):
        of_objects(GAK()).fit(bag, db.from_sequence(LABELS, npartitions=5))
    with pytest.raises(TypeError, match="takes samples in memory"):
        KernelKSVD(GAK(), 3).fit(bag)
    X[14] = X[14] * np.nan
    with pytest.raises(ValueError, match=r"series 4 is empty.*of a partition"):
        NystroemMap(GAK()).fit(db.from_sequence(X, npartitions=5))
    with pytest.raises(ValueError, match="X has 0 sample"):
        NystroemMap(GAK()).fit(bag.filter(lambda _: False))


def test_no_dask_input_no_dask_import():
    script = (
        "import sys, numpy as np\n"
        "from kernlets import MOD, NystroemMap\n"
        "X = np.random.default_rng(0).standard_normal((50, 4))\n"
        "MOD(5).fit(NystroemMap(n_landmarks=10).fit_transform(X))\n"
        "print('dask' in sys.modules, 'distributed' in sys.modules)\n"
    )
    subprocess = importlib.import_module("subprocess")
    sys = importlib.import_module("sys")
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["False", "False"]


def on_a_cluster(codes):
    da = pytest.importorskip("dask.array", reason="Dask is not installed")
    return da.from_array(codes, chunks=(10, -1))


def test_numbers_on_a_cluster_that_are_too_large_for_the_model(rng):
    fitted = KSVD(3).fit(rng.standard_normal((30, 4)).astype(np.float32))
    rows = on_a_cluster(np.full((20, 4), np.finfo(float).max))
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        with pytest.raises(ValueError, match="too large for float32"):
            fitted.transform(rows).compute()
