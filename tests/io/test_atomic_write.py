"""Writing in one step: what is replaced, what errors say, what killed writers leave."""

from __future__ import annotations

import errno
import io
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from kernlets.io import atomic_write as atomic
from kernlets.io.atomic_write import atomic_write, remove_abandoned, remove_open_parts

posix = pytest.mark.skipif(os.name != "posix", reason="needs POSIX")


def write(path: Path, content: bytes = b"new") -> None:
    with atomic_write(path) as file:
        file.write(content)


@contextmanager
def small_files(n_bytes: int) -> Iterator[None]:
    """Let the system refuse longer files, as it does when a disk is full."""
    import resource

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


# ------------------------------------------------------------------ what is replaced


def test_a_file_and_the_target_of_a_link_are_replaced(tmp_path: Path) -> None:
    plain, link = tmp_path / "plain", tmp_path / "link"
    plain.write_bytes(b"old")
    link.symlink_to(plain)
    write(link)
    assert link.is_symlink() and plain.read_bytes() == b"new"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "plain"]


def test_a_folder_is_not_replaced(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError, match="is a folder"):
        write(tmp_path)


@posix
@pytest.mark.parametrize("kind", ["pipe", "socket", "link to a device"])
def test_what_is_not_a_regular_file_is_not_replaced(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "target"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        socket.socket(socket.AF_UNIX).bind(str(path))
    else:
        path.symlink_to("/dev/null")
    before = path.lstat()
    with pytest.raises(FileExistsError, match="regular file") as caught:
        write(path)
    assert caught.value.filename == str(path)
    after = path.lstat()
    assert (after.st_ino, after.st_mode) == (before.st_ino, before.st_mode)


def test_a_link_to_itself_is_named(tmp_path: Path) -> None:
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    with pytest.raises(OSError) as caught:
        write(loop)
    assert caught.value.errno == errno.ELOOP and caught.value.filename == str(loop)


def test_long_names_are_no_obstacle(tmp_path: Path) -> None:
    path = tmp_path / ("n" * 255)
    write(path)
    assert path.read_bytes() == b"new"


# ------------------------------------------------------------------- what errors say

BIG = np.arange(1.0, 50_001.0)
WRITERS: dict[str, Callable[[Any], Any]] = {
    "bytes": lambda file: file.write(BIG.tobytes()),
    "a few bytes at a time": lambda file: [file.write(b"12345678") for _ in BIG],
    "npy": lambda file: np.save(file, BIG),
    "npz": lambda file: np.savez(file, X=BIG),
    "text": lambda file: np.savetxt(file, BIG),
    "sparse": lambda file: sparse.save_npz(file, sparse.csr_array(BIG[None])),
}


@posix
@pytest.mark.parametrize("name", WRITERS)
def test_a_full_disk_names_the_target(tmp_path: Path, name: str) -> None:
    """Not the part, nor nothing at all as NumPy does."""
    path = tmp_path / "target"
    path.write_bytes(b"old")
    with small_files(10_000), pytest.raises(OSError) as caught:
        with atomic_write(path) as file:
            WRITERS[name](file)
    assert caught.value.errno == errno.EFBIG
    assert caught.value.filename == str(path)
    assert list(tmp_path.iterdir()) == [path]
    assert path.read_bytes() == b"old"


@pytest.mark.parametrize("name", WRITERS)
def test_whole_files_are_what_a_plain_file_would_be(tmp_path: Path, name: str) -> None:
    with atomic_write(tmp_path / "a") as file:
        WRITERS[name](file)
    plain = io.BytesIO()
    WRITERS[name](plain)
    ours, theirs = (tmp_path / "a").read_bytes(), plain.getvalue()
    assert len(ours) == len(theirs)
    if name not in ("npz", "sparse"):  # archives hold the time
        assert ours == theirs


@pytest.mark.parametrize("place", ["absent/target", "file/target"])
def test_a_place_that_cannot_be_written_is_named(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OSError) as caught:
        write(tmp_path / place)
    assert caught.value.filename == str(tmp_path / place)


def test_errors_of_the_block_are_left_as_they_are(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught, atomic_write(tmp_path / "a"):
        (tmp_path / "elsewhere").read_bytes()
    assert caught.value.filename == str(tmp_path / "elsewhere")
    assert list(tmp_path.iterdir()) == []


# ------------------------------------------------------------- parts of killed writers

WRITER = """
import sys, time
from kernlets.io.atomic_write import atomic_write
with atomic_write(sys.argv[1]) as file:
    file.write(b"half")
    file.flush()
    print("ready", flush=True)
    time.sleep(600)
"""


@contextmanager
def writer(path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process in the middle of writing a file."""
    command = [sys.executable, "-c", WRITER, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        try:
            yield process
        finally:
            process.kill()


@posix
def test_parts_of_the_dead_are_removed_and_those_of_the_living_kept(
    tmp_path: Path,
) -> None:
    path, other = tmp_path / "m.model", tmp_path / "m"
    with writer(path) as dead:
        dead.send_signal(signal.SIGKILL)
    left = set(tmp_path.iterdir())
    assert len(left) == 1
    with writer(other) as of_another, writer(path) as alive:
        # the second writer has removed what the first one left
        assert left.isdisjoint(tmp_path.iterdir())
        write(path)
        parts = [part.name for part in tmp_path.iterdir() if part != path]
        assert sorted(part.split("-")[1] for part in parts) == sorted(
            [str(alive.pid), str(of_another.pid)]
        )
    write(path)
    rest = [part for part in tmp_path.iterdir() if part != path]
    assert [part.name.startswith(".m.") for part in rest] == [True]  # of another file


def part_of(path: Path, host: str, pid: int, age: float) -> Path:
    part = path.with_name(f".{path.name}.{host}-{pid}-0123abcd.part")
    part.touch()
    os.utime(part, (time.time() - age,) * 2)
    return part


@posix
def test_which_parts_are_abandoned(tmp_path: Path) -> None:
    path, here = tmp_path / "a[1].csv", atomic._host()
    elsewhere, day = "00000000", atomic.DAY
    assert elsewhere != here
    kept = [
        part_of(path, here, os.getppid(), 9 * day),  # alive
        part_of(path, elsewhere, 7, 0.5 * day),  # cannot be asked
        part_of(tmp_path / "b.csv", here, os.getpid(), 0),
        tmp_path / ".a[1].csv.mine.part",
        tmp_path / ".a[1].csv.part",
        tmp_path / ".a[1].csv.0123abcd.part",  # without a host and a process
    ]
    part_of(path, here, os.getpid(), 0)  # a number that was used before
    part_of(path, here, 2**30, 0)  # no process has it
    part_of(path, elsewhere, 8, 2 * day)
    for part in kept[-3:]:
        part.touch()
        os.utime(part, (time.time() - 2 * day,) * 2)
    remove_abandoned(path)
    assert set(tmp_path.iterdir()) == set(kept)


def test_two_writers_in_one_process_leave_each_other_alone(tmp_path: Path) -> None:
    path = tmp_path / "a"
    with atomic_write(path) as first:
        first.write(b"first")
        write(path, b"second")
        assert path.read_bytes() == b"second"
    assert path.read_bytes() == b"first"


def test_open_parts_can_be_removed_at_once(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), atomic_write(tmp_path / "a") as file:
        file.write(b"half")
        assert len(list(tmp_path.iterdir())) == 1
        remove_open_parts()
        assert list(tmp_path.iterdir()) == []
