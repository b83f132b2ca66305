"""A process that is forked while other threads are inside the library can use it.

The child has the thread that forked, and none that would unlock what others locked.
Each script forks in a process of its own. Its children have as long as they need on a
busy machine; one that still waits then is ended.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="elsewhere system libraries do not survive forks"
)
CHILDREN = """
import os, signal, threading, time, traceback, warnings
import numpy as np
import kernlets
from kernlets import Clipped, KSVD, Sigmoid
from threadpoolctl import threadpool_info, threadpool_limits

PATIENCE = 60  # seconds
warnings.simplefilter("ignore", DeprecationWarning)  # forks beside threads
X = np.random.default_rng(0).standard_normal((300, 20))
kernlets.options.set(n_threads=2)
threadpool_limits(2, user_api="blas")


def blas_threads():
    libraries = threadpool_info()
    return [one["num_threads"] for one in libraries if one["user_api"] == "blas"]


def fit():
    KSVD(10, n_nonzero_coefs=2, max_iter=2, random_state=0).fit(X)


def child_of(work):
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        work()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def wait_for(pid):
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            assert status == 0, "the child failed"
            return
        time.sleep(0.02)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    raise SystemExit("the child waits for a thread that it does not have")


# Fork while a thread is inside the library, where it calls what it was given.
def beside(thread, work):
    inside = threading.Event()

    def enter():
        if not inside.is_set():
            inside.set()
            time.sleep(1)

    runner = threading.Thread(target=thread, args=(enter,))
    runner.start()
    inside.wait()
    wait_for(child_of(work))
    runner.join()
"""


def run(script):
    done = subprocess.run(
        [sys.executable, "-c", CHILDREN + script], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_many_children_while_threads_fit():
    run("""
stop = threading.Event()

def compute():
    while not stop.is_set():
        fit()

fit()
threads = [threading.Thread(target=compute) for _ in range(3)]
for thread in threads:
    thread.start()
try:
    for _ in range(20):
        wait_for(child_of(fit))
finally:
    stop.set()
""")


def test_a_child_that_is_forked_while_blas_is_set():
    run("""
from kernlets.numerics import threads

fit()
before, set_threads = blas_threads(), threads._set_blas_threads

def slowly(enter):
    def set_slowly(counts):
        enter()
        return set_threads(counts)
    threads._set_blas_threads = set_slowly
    fit()
    threads._set_blas_threads = set_threads

def work():
    threads._set_blas_threads = set_threads
    fit()
    assert blas_threads() == before

beside(slowly, work)
assert blas_threads() == before
""")


def test_blas_of_a_child_is_set_back():
    """The thread that would have done so is in the parent."""
    run("""
from kernlets.numerics.threads import serial_blas

fit()
before = blas_threads()
assert set(before) == {2}

def use(enter):
    with serial_blas:
        enter()

def work():
    assert blas_threads() == before
    fit()
    assert blas_threads() == before

beside(use, work)
with serial_blas:  # the thread that forks is one of the users in the child, too
    def nested():
        assert set(blas_threads()) == {1}
        serial_blas.__exit__()
        assert blas_threads() == before
        fit()
    beside(use, nested)
    assert set(blas_threads()) == {1}
assert blas_threads() == before
""")


def test_a_child_that_is_forked_while_a_thread_compiles(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))  # so that it does
    run("""
from kernlets.loops.omp import numba  # noqa: F401
from numba.core import event

class Begin(event.Listener):
    def __init__(self, enter):
        self.enter = enter
    def on_start(self, _):
        self.enter()
    def on_end(self, _):
        pass

def compiling(enter):
    with event.install_listener("numba:compile", Begin(enter)):
        fit()

beside(compiling, fit)
""")


def test_a_child_that_is_forked_while_a_thread_imports_loops():
    run("""
import sys

class Finder:
    def __init__(self, enter):
        self.enter = enter
    def find_spec(self, name, *_):
        if name.endswith("updates.numba"):  # whose lock the thread has now
            self.enter()

def importing(enter):
    finder = Finder(enter)
    sys.meta_path.insert(0, finder)
    fit()
    sys.meta_path.remove(finder)

beside(importing, fit)
""")


def test_a_child_that_is_forked_while_a_kernel_is_corrected():
    run("""
def measure(X, Y):
    slowly()
    return np.tanh(X @ Y.T)

slowly = lambda: None
kernel = Clipped(kernlets.Callable(measure)).bound(X)

def correct(enter):
    global slowly
    slowly = enter
    kernel._factor()

def work():
    global slowly
    slowly = lambda: None
    assert kernel(X).shape == (300, 300)

beside(correct, work)
""")
