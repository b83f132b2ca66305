"""One case from its number: which kind it is, and what came out."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import tempfile
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from .draw import Draw
from .oracle import Finding, judge, watched_warnings

#: Of sixteen numbers in a row, how many are cases of each kind.
SHARES = {
    "estimators": 10,
    "relations": 2,
    "structures": 1,
    "files": 2,
    "commands": 1,
}
KINDS = [kind for kind, share in SHARES.items() for _ in range(share)]


def kind_of(number: int) -> str:
    """Which kind of case a number stands for."""
    return KINDS[number % len(KINDS)]


def run_case(
    number: int, note: Callable[[str], Any] = lambda text: None
) -> tuple[bool, Finding | None]:
    """Whether there was a result, not a refusal; and what was wrong, if anything."""
    run = import_module(f".{kind_of(number)}", __package__).run
    np.random.seed(number % 2**32)
    folder = Path(tempfile.mkdtemp(prefix="kernlets-fuzz-", dir=_scratch()))
    printed = io.StringIO()
    try:
        with watched_warnings() as warned, contextlib.redirect_stdout(printed):
            run(Draw(number), note, folder)
        return True, next(iter(warned), None)
    except Exception as error:
        return False, judge(error) or next(iter(warned), None)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _scratch() -> str | None:
    """A folder in memory where there is one: cases write many small files."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
