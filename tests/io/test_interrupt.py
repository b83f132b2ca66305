"""Ctrl-C ends every run with code 130: real processes, stopped at several points."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernlets import KSVD, save
from kernlets import __main__ as entry
from kernlets.__main__ import INTERRUPTED

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals")
PATIENCE = 60  # seconds on a machine that is busy with other things


def start(*words: Any, **more: Any) -> subprocess.Popen[str]:
    """A process that has not been told to ignore Ctrl-C by whoever runs the tests."""
    return subprocess.Popen(
        [sys.executable, *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        **more,
    )


def wait_until(reached: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    end = time.monotonic() + PATIENCE
    while not reached():
        assert process.poll() is None, f"it ended too soon: {process.communicate()}"
        assert time.monotonic() < end
        time.sleep(0.005)


def stop(process: subprocess.Popen[str]) -> tuple[str, float]:
    """Interrupt a process: what it said on standard error, and how long it took."""
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    try:
        _, said = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
    assert process.returncode == INTERRUPTED == 130, said
    assert "Traceback" not in said
    return said, time.monotonic() - began


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    """Rows to fit to, and in `rows.npy` so many that nothing is done at once."""
    X = np.random.default_rng(0).standard_normal((20_000, 40))
    np.savez(tmp_path / "rows.npz", X=X[:1000], y=np.arange(1000) % 4)
    np.save(tmp_path / "rows.npy", X)
    return tmp_path / "rows.npz"


def opens(process: subprocess.Popen[str], path: Path) -> bool:
    folder = Path(f"/proc/{process.pid}/fd")
    try:
        return any(os.readlink(fd) == str(path) for fd in folder.iterdir())
    except OSError:  # a file that was just closed
        return False


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc")
def test_while_reading(tmp_path: Path) -> None:
    data = tmp_path / "d.csv"
    line = ",".join(["0.123456789"] * 100)
    data.write_text("\n".join([line] * 100_000))
    process = start("-m", "kernlets", "fit", data, "-m", tmp_path / "m")
    wait_until(lambda: opens(process, data), process)
    time.sleep(0.2)  # the first lines are looked at, then all are parsed
    assert stop(process)[0] == "interrupted\n"
    assert list(tmp_path.iterdir()) == [data]


@pytest.mark.parametrize("threads", [1, 2])
def test_while_fitting(rows: Path, tmp_path: Path, threads: int) -> None:
    states = tmp_path / "states"
    words = ["fit", rows, "-m", tmp_path / "m", "--method", "ksvd", "--atoms", 200]
    more = ["--iterations", 10_000, "--threads", threads, "--checkpoint", states]
    process = start("-m", "kernlets", *words, *more)
    wait_until(lambda: any(states.rglob("*.checkpoint")), process)
    assert stop(process)[0] == "interrupted\n"
    assert not (tmp_path / "m").exists()
    assert not list(tmp_path.rglob("*.part"))


def test_while_writing(rows: Path, tmp_path: Path) -> None:
    model, out = tmp_path / "m", tmp_path / "codes.csv"
    X = np.load(rows)["X"]
    save(KSVD(400, max_iter=1, random_state=0).fit(X), model)
    data = tmp_path / "rows.npy"
    process = start("-m", "kernlets", "transform", model, data, "-o", out)

    def has_begun() -> bool:
        parts = [path.stat().st_size for path in tmp_path.glob(".codes.csv.*.part")]
        return any(parts)

    wait_until(has_begun, process)
    assert stop(process)[0] == "interrupted\n"
    assert not out.exists() and not list(tmp_path.glob(".*.part"))


HANGING = """
import sys, threading, time
import numpy as np
from pathlib import Path
import kernlets.cli
from kernlets import __main__ as entry
from kernlets.io.atomic_write import atomic_write


def say_ready():
    print("ready", flush=True)


def swallow():
    while True:
        try:
            say_ready()
            time.sleep(600)
        except KeyboardInterrupt:
            pass


def compute():
    matrix = np.random.default_rng(0).random((4000, 4000))
    say_ready()
    np.linalg.eigvals(matrix)


def wait_for_a_thread():
    threading.Thread(target=time.sleep, args=(600,)).start()
    say_ready()
    time.sleep(600)


def wait_at_the_end():
    say_ready()
    threading.Thread(target=time.sleep, args=(600,)).start()


def in_a_file():
    with atomic_write(sys.argv[2]) as file:
        file.write(b"half")
        swallow()


def run(prog_name):
    globals()[sys.argv[1]]()


sys.modules["kernlets.cli.app"].app = run
entry.GRACE = float(sys.argv[3])
entry.main()
"""


HANGS = ["swallow", "wait_for_a_thread", "in_a_file", "compute"]


def test_processes_that_do_not_listen(tmp_path: Path) -> None:
    """Neither compiled code, nor threads, nor a careless library keep them alive."""
    graces = {"wait_at_the_end": 10 * PATIENCE, **dict.fromkeys(HANGS, 0.5)}
    processes = {}
    for what, grace in graces.items():
        processes[what] = start("-c", HANGING, what, tmp_path / what, grace)
    for process in processes.values():
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    time.sleep(1)  # until all are where they hang
    for what, process in reversed(processes.items()):  # the one that computes first
        said, seconds = stop(process)
        assert said == "interrupted\n", what
        assert what not in HANGS or seconds > 0.4, what
    assert list(tmp_path.iterdir()) == []


def test_a_second_interrupt_ends_it_at_once(tmp_path: Path) -> None:
    process = start("-c", HANGING, "swallow", tmp_path / "target", 10 * PATIENCE)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    # the first one was swallowed: signals that wait together would be one
    assert process.stdout.readline() == "ready\n"
    assert stop(process)[0] == "interrupted\n"


def test_two_interrupts_that_are_read_at_once_are_two(monkeypatch) -> None:
    ended = threading.Event()
    monkeypatch.setattr(entry, "_end_now", ended.set)
    monkeypatch.setattr(entry, "GRACE", 10 * PATIENCE)
    receiver, sender = socket.socketpair()
    with receiver, sender:
        sender.send(bytes([signal.SIGINT, signal.SIGINT]))
        watcher = threading.Thread(
            target=entry._watch, args=(receiver, sender), daemon=True
        )
        watcher.start()
        assert ended.wait(PATIENCE)


def test_a_process_that_is_to_ignore_it_does(tmp_path: Path) -> None:
    """As under nohup, or in the background of a script."""
    np.savez(tmp_path / "d.npz", X=np.random.default_rng(0).random((60, 5)))
    ignore = "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
    ignore += "print('ready', flush=True); os.execv(sys.executable, sys.argv[1:])"
    words = [sys.executable, "-m", "kernlets", "fit", tmp_path / "d.npz", "-q"]
    process = start("-c", ignore, *words, "-m", tmp_path / "m")
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    while process.poll() is None:
        process.send_signal(signal.SIGINT)
        time.sleep(0.05)
    assert process.returncode == 0
    assert (tmp_path / "m").exists()
