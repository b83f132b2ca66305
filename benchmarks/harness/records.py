"""Records of runs: files of JSON lines in a folder. Nothing else writes records.

A line is appended in a single write, so that several processes may share a folder and
a run that is stopped loses at most the line it was writing. A *session* is a line that
says what the lines that name it were made with: date, machine, versions.
"""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from kernlets.io.atomic_write import atomic_write

from .machine import machine, versions

Line = dict[str, Any]


class JsonLines:
    """The ``.jsonl`` files of a folder."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def append(self, name: str, line: Line) -> None:
        """Add one line to the file of this name."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{name}.jsonl"
        text = json.dumps(line, separators=(",", ":")).encode()
        handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        try:
            # a line break comes first, because the last line may be incomplete
            os.write(handle, b"\n" + text + b"\n")
        finally:
            os.close(handle)

    def lines(self, name: str = "*") -> Iterator[Line]:
        """The lines of one file, or of all; incomplete ones are ignored."""
        for path in sorted(self.folder.glob(f"{name}.jsonl")):
            yield from _parsed(path.read_text("utf-8").splitlines())

    def sessions(self, name: str = "*") -> dict[str, Line]:
        """The sessions by name, in the order in which they were opened."""
        opened = (each for each in self.lines(name) if each.get("kind") == "session")
        return {line["name"]: line for line in opened}


def session(n_threads: int | None = None, *packages: str, **about: Any) -> Line:
    """A new session, for `JsonLines.append`."""
    return {
        "kind": "session",
        "name": secrets.token_hex(4),
        "date": time.strftime("%Y-%m-%d"),
        "machine": machine(n_threads),
        "versions": versions(*packages),
        **about,
    }


def write_json(path: str | Path, document: Any) -> None:
    """Write one JSON document, whole or not at all."""
    with atomic_write(path) as file:
        file.write((json.dumps(document, indent=1) + "\n").encode())


def _parsed(lines: Iterable[str]) -> Iterator[Line]:
    for line in lines:
        try:
            parsed = json.loads(line) if line else None
        except json.JSONDecodeError:
            continue  # a run that was stopped while it wrote
        if isinstance(parsed, dict):
            yield parsed
