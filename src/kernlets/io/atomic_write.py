"""Writes files completely or not at all; removes part files of killed writers."""

from __future__ import annotations

import errno
import hashlib
import os
import platform
import re
import secrets
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, cast

# host, process, random number
PART = re.compile(r"\.([0-9a-f]{8})-(\d+)-[0-9a-f]{8}\.part")
LONG_NAME = 200  # bytes; file systems allow 255, and names of part files are longer
DAY = 86400  # age in seconds at which a part file of an unknown process is removed

_open_parts: set[Path] = set()  # of this process


@contextmanager
def atomic_write(path: str | Path) -> Iterator[BinaryIO]:
    """A file that takes the place of `path` when the block ends without an error.

    It is written beside its destination, flushed to the disk, and renamed, which the
    file system does in one step: after a crash there is the old file or the new one.
    Errors name `path`. Only regular files are replaced, and part files that killed
    processes left beside `path` are removed.
    """
    refuse_special(path)
    target = Path(path).resolve()  # a link stays a link
    remove_abandoned(target)
    writer = f"{_host()}-{os.getpid()}-{secrets.token_hex(4)}"
    part_file = target.with_name(f"{_part_stem(target)}.{writer}.part")
    _open_parts.add(part_file)
    try:
        with _errors_name_file(path):
            file = part_file.open("xb")
        try:
            yield cast(BinaryIO, _PartFile(file, path))
            with _errors_name_file(path):
                file.flush()
                os.fsync(file.fileno())
        finally:
            with _errors_name_file(path):
                file.close()  # closing may flush and fail
        with _errors_name_file(path):
            os.replace(part_file, target)
    except BaseException:
        _remove_file(part_file)
        raise
    finally:
        _open_parts.discard(part_file)
    if os.name == "posix":  # make the renaming itself durable
        with suppress(OSError):  # the file is complete even if this is not possible
            folder = os.open(target.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)


def refuse_special(path: str | Path) -> None:
    """Raise if `path` is a folder, device, pipe or socket, or cannot be inspected."""
    target = Path(path)
    with suppress(FileNotFoundError):
        target.stat()
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, "is a folder, not a file", str(path))
    if target.exists() and not target.is_file():
        problem = "is a device, a pipe or a socket: name a regular file"
        raise FileExistsError(errno.EEXIST, problem, str(path))


def remove_abandoned(path: str | Path) -> None:
    """Delete the part files of `path` whose writers are no longer alive."""
    target = Path(path).resolve()
    with suppress(OSError):  # writing will raise an error that names the problem
        for part_file in target.parent.iterdir():
            if _is_abandoned(part_file, _part_stem(target)):
                _remove_file(part_file)


def remove_open_parts() -> None:
    """Delete the files that this process is writing, before it ends abruptly."""
    for part_file in list(_open_parts):
        _remove_file(part_file)


def _remove_file(part_file: Path) -> None:
    with suppress(OSError):  # it may not exist yet
        part_file.unlink()


class _PartFile:
    """The open part file. Its errors name the destination, which the user knows.

    It is not a Python file object, because NumPy bypasses the `write` of those and
    then does not report why writing failed.
    """

    def __init__(self, file: BinaryIO, path: str | Path) -> None:
        self._file, self._path = file, path

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def write(self, data: Any) -> int:
        with _errors_name_file(self._path):
            return self._file.write(data)

    def writelines(self, lines: Iterable[Any]) -> None:
        for line in lines:
            self.write(line)


@contextmanager
def _errors_name_file(path: str | Path) -> Iterator[None]:
    """Let errors of the system name this file instead of its part file."""
    try:
        yield
    except OSError as error:
        if error.errno is None:  # not an error of the system
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error


def _part_stem(target: Path) -> str:
    """The beginning of the names of all part files of a file."""
    name = target.name
    is_long = len(os.fsencode(name)) > LONG_NAME
    return f".{_short_hash(name)}" if is_long else f".{name}"


def _host() -> str:
    return _short_hash(platform.node())


def _short_hash(text: str) -> str:
    return hashlib.blake2s(os.fsencode(text), digest_size=4).hexdigest()


def _is_abandoned(part_file: Path, stem: str) -> bool:
    is_part = part_file.name.startswith(f"{stem}.")
    match = PART.fullmatch(part_file.name.removeprefix(stem)) if is_part else None
    if match is None:
        return False
    if match[1] != _host():  # a process whose state is unknown
        return time.time() - part_file.stat().st_mtime > DAY
    pid = int(match[2])
    # a new process may have the id of the killed one
    return part_file not in _open_parts if pid == os.getpid() else not _is_alive(pid)


def _is_alive(pid: int) -> bool:
    if os.name != "posix":
        return False  # some systems do not delete an open file
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        pass
    return True
