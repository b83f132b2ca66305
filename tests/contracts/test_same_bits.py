"""Equal bits: what neither threads, nor memory, nor the container may change.

Held for every public estimator on any processor, since blocks of rows and tiles of
products have the same shapes whatever these are.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from joblib import Parallel, delayed
from scipy import sparse
from sklearn.base import BaseEstimator, clone, is_classifier
from threadpoolctl import threadpool_info

from kernlets import KSVD, OMP, PatchDictionaryMap, options, registry
from kernlets.numerics.threads import MIN_THREADED_ROWS, serial_blas

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

N = 2300  # rows: more than two blocks
SETTINGS = {
    "one thread": {"n_threads": 1},
    "two threads": {"n_threads": 2},
    "three threads": {"n_threads": 3},
    "little memory": {"memory": "80MB", "n_threads": 8},
}
QUICK = {"max_iter": 2, "random_state": 0, "n_components": 6, "n_landmarks": 50}
QUICK |= {"max_candidates": 2, "n_atoms_per_class": 6}
QUICK |= {"patches": PatchDictionaryMap(3, KSVD(6, coder=OMP(1), max_iter=1), grid=2)}
CHOOSES_BY_EIGENVALUES = ("ImageClassifier", "KernelRidgeClassifier")  # in n³ each


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(5)
    y = rng.integers(3, size=N)
    X = rng.standard_normal((3, 11))[y] + 0.7 * rng.standard_normal((N, 11))
    return X.astype(np.float32), y


def quick(Estimator: type) -> BaseEstimator:
    """With few iterations and atoms, where it has such parameters."""
    estimator = Estimator()
    params = estimator.get_params()
    return estimator.set_params(**{k: v for k, v in QUICK.items() if k in params})


def results(estimator: BaseEstimator, X, y) -> list[np.ndarray]:
    """All that a fit and new samples give."""
    fitted = clone(estimator).fit(X, y if is_classifier(estimator) else None)
    names = ("transform", "predict", "decision_function", "reconstruction_error")
    found = [getattr(fitted, name)(X) for name in names if hasattr(fitted, name)]
    found += [
        getattr(fitted, name)
        for name in ("components_", "coefs_")
        if hasattr(fitted, name)
    ]
    return [a.toarray() if sparse.issparse(a) else np.asarray(a) for a in found]


@pytest.mark.parametrize("Estimator", registry.estimators())
def test_threads_and_memory_change_nothing(Estimator, data):
    estimator = quick(Estimator)
    X, y = (part[: n_rows(Estimator)] for part in data)
    expected = None
    for name, setting in SETTINGS.items():
        if needs_matrix(Estimator) and "memory" in setting:
            continue  # defined by a matrix that must fit
        with options(**setting):
            found = results(estimator, X, y)
        expected = expected or found
        assert len(found) == len(expected) > 0
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_array_equal(a, b, err_msg=name)


def needs_matrix(Estimator: type) -> bool:
    """Methods that are defined by the kernel matrix of all samples."""
    names = ("KernelKSVD", "KernelMOD", "SRCClassifier")
    return Estimator.__name__ in (*names, *CHOOSES_BY_EIGENVALUES)


def n_rows(Estimator: type) -> int:
    if Estimator.__name__ in CHOOSES_BY_EIGENVALUES:
        return 250
    return MIN_THREADED_ROWS - 100 if needs_matrix(Estimator) else N


@pytest.mark.parametrize("Estimator", registry.estimators())
def test_a_memory_map_is_an_array(Estimator, data, tmp_path):
    X, y = data
    np.save(tmp_path / "X.npy", X)
    disk = np.load(tmp_path / "X.npy", mmap_mode="r")
    if needs_matrix(Estimator):
        n = min(600, n_rows(Estimator))
        X, y, disk = X[:n], y[:n], disk[:n]
    estimator = quick(Estimator)
    for a, b in zip(results(estimator, disk, y), results(estimator, X, y), strict=True):
        np.testing.assert_array_equal(a, b)


# BLAS threads and options, wherever the work is


def blas_threads() -> list[int]:
    libraries = [lib for lib in threadpool_info() if lib["user_api"] == "blas"]
    return [lib["num_threads"] for lib in libraries]


class Spy(KSVD):
    """Notes how many threads BLAS has while it computes, and the options there."""

    def _first_dictionary(self, *given):
        self.seen_ = blas_threads(), options.memory, options.n_threads
        return super()._first_dictionary(*given)


def fitted_spy(X):
    return Spy(4, 2, max_iter=1).fit(X).seen_


@pytest.mark.parametrize("n_threads", [1, 2])
def test_blas_has_one_thread_inside_any_thread(n_threads, data):
    X, before = data[0][:50], blas_threads()
    with options(n_threads=n_threads, memory=10**6):
        expected = [1] * len(before), 10**6, n_threads
        assert fitted_spy(X) == expected
        with ThreadPoolExecutor(2) as pool:
            assert list(pool.map(fitted_spy, [X, X, X])) == [expected] * 3
        assert (
            Parallel(2, backend="threading")(delayed(fitted_spy)(X) for _ in range(3))
            == [expected] * 3
        )
    assert blas_threads() == before


class Voter:
    """A mixin, whose methods are not those of the estimator itself."""

    def predict(self, X):
        return blas_threads()


class SpyWithVotes(Voter, KSVD):
    pass


def test_blas_has_one_thread_in_methods_of_mixins(data):
    before = blas_threads()
    assert SpyWithVotes().predict(data[0]) == [1] * len(before)
    assert blas_threads() == before


def test_the_last_thread_to_leave_restores_blas():
    before, entered, leave = blas_threads(), threading.Event(), threading.Event()

    def hold():
        with serial_blas:
            entered.set()
            leave.wait(10)

    with serial_blas:
        thread = threading.Thread(target=hold)
        thread.start()
        assert entered.wait(10)
    assert blas_threads() == [1] * len(before)
    leave.set()
    thread.join()
    assert blas_threads() == before


def test_a_thread_with_its_own_options_keeps_them():
    seen, inside, done = {}, threading.Event(), threading.Event()

    def other():
        with options(memory="7MB"):
            inside.set()
            done.wait(10)
            seen["other"] = options.memory

    with options(memory="5MB"):
        thread = threading.Thread(target=other)
        thread.start()
        assert inside.wait(10)
        assert options.memory == 5 * 10**6
        done.set()
        thread.join()
    assert seen == {"other": 7 * 10**6}
    assert options.memory not in (5 * 10**6, 7 * 10**6)


GRID_SEARCH = """
    from sklearn.datasets import load_iris
    from sklearn.model_selection import GridSearchCV
    from kernlets import KSVD, options

    class Reporting(KSVD):
        def score(self, X, y=None):
            return options.memory + options.n_threads

    learner = Reporting(4, 2, max_iter=1, random_state=0)
    grid = {"n_components": [4, 5]}
    search = GridSearchCV(learner, grid, cv=2, n_jobs=2, refit=False)
    for memory in (3 * 10**6, 4 * 10**6):  # the same processes, used again
        with options(memory=memory, n_threads=3):
            search.fit(load_iris().data)
        print(*(int(score) for score in search.cv_results_["mean_test_score"]))
"""


def test_options_reach_the_processes_of_a_grid_search():
    """In a program of its own, whose classes joblib can send to other processes."""
    command = [sys.executable, "-c", textwrap.dedent(GRID_SEARCH)]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.stdout.split() == ["3000003"] * 2 + ["4000003"] * 2, run.stderr


def test_a_file_does_not_change_options(data, tmp_path):
    """Only a process that was started by the sender takes its options over."""
    before = options.changes()
    with options(memory="3MB"):
        sent = pickle.dumps(KSVD(4, 2, max_iter=1).fit(data[0][:50]))
    loaded = pickle.loads(sent)
    assert options.memory != 3 * 10**6
    assert not [name for name in vars(loaded) if "sender" in name]
    assert options.changes() == before
