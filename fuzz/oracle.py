"""Which outcomes are right: a sound result, or a refusal that was meant.

A refusal is an exception of a documented kind that the library (or scikit-learn's
input checks) raises on purpose, with a sentence. Whatever else comes out is a finding:
errors from inside NumPy or Numba, warnings about numbers, results that are not finite.
"""

from __future__ import annotations

import ast
import traceback
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

import numpy as np
import sklearn

import kernlets
from kernlets import schema as fields
from kernlets.base.pipelines import steps_of

LIBRARY = Path(kernlets.__file__).parent
CHECKS = [Path(sklearn.__file__).parent / part for part in ("utils", "metrics")]
DOCUMENTED = (ValueError, TypeError, MemoryError, ImportError)
FEWEST_WORDS = 4  # of a message that helps
#: What NumPy says of cells that are no numbers; scikit-learn lets it through.
CONVERSIONS = (
    *["could not convert string", "inhomogeneous shape", "array element with"],
    "not 'complex'",
)


@dataclass(frozen=True)
class Finding:
    """Something that must not happen."""

    what: str  # exception or violated expectation
    place: str  # where it comes from, or which call
    message: str
    trace: str = ""

    @property
    def group(self) -> tuple[str, str]:
        return self.what, self.place


class Wrong(Exception):
    """A result that is not what was promised; the first argument says which way."""


class Refusal(Exception):
    """A refusal that was found to be right."""


def judge(error: BaseException) -> Finding | None:
    """None for a refusal that was meant, else what is wrong with this exception."""
    what, message = type(error).__name__, " ".join(str(error).split())
    trace = "".join(traceback.format_exception(error))
    if isinstance(error, Wrong):
        return Finding(f"wrong: {error.args[0]}", error.args[1], error.args[2])
    if isinstance(error, (Refusal, MemoryError)):
        return None
    place = place_of(error)
    if _is_foreign_linalg(error) or not isinstance(error, DOCUMENTED):
        return Finding(what, place, message, trace)
    if not _is_meant(error):
        return Finding(f"{what} by accident", place, message, trace)
    if len(message.split()) < FEWEST_WORDS:
        return Finding(f"{what} without a sentence", place, message, trace)
    return None


def _is_foreign_linalg(error: BaseException) -> bool:
    """LinAlgError is a ValueError, but says nothing to a user."""
    return isinstance(error, np.linalg.LinAlgError)


def place_of(error: BaseException) -> str:
    """Innermost function of the library, and where it went from there."""
    frames = list(_frames(error.__traceback__))
    codes = [frame.f_code for frame, _ in frames]
    names = [_name(code.co_filename, code.co_name) for code in codes]
    ours = [i for i, name in enumerate(names) if name.startswith("kernlets/")]
    if not ours:
        return names[-1] if names else "?"
    inner = "" if ours[-1] == len(names) - 1 else f" → {names[-1]}"
    return names[ours[-1]] + inner


def _frames(tb: TracebackType | None) -> Iterable[tuple[FrameType, int]]:
    while tb is not None:
        yield tb.tb_frame, tb.tb_lineno
        tb = tb.tb_next


def _name(filename: str, function: str) -> str:
    """A short name of a function in a file."""
    path = Path(filename)
    parts = path.parts
    for root in ("site-packages", "src"):
        if root in parts:
            parts = parts[len(parts) - parts[::-1].index(root) :]
    return f"{'/'.join(parts[-4:])}:{function}"


def _is_meant(error: BaseException) -> bool:
    """Whether a raise statement of the library, or an input check, is the source."""
    frames = list(_frames(error.__traceback__))
    if not frames:
        return False
    frame, line = frames[-1]
    path = Path(frame.f_code.co_filename)
    is_check = any(checks in path.parents for checks in CHECKS)
    if is_check and any(text in str(error) for text in CONVERSIONS):
        return True
    return (is_check or LIBRARY in path.parents) and line in _raising_lines(path)


@cache
def _raising_lines(path: Path) -> frozenset[int]:
    """Lines of a file that belong to raise statements."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    raising = (node for node in ast.walk(tree) if isinstance(node, ast.Raise))
    return frozenset(
        line
        for node in raising
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    )


@contextmanager
def watched_warnings() -> Iterator[list[Finding]]:
    """Warnings about numbers that went wrong, with the function of the library."""
    found: list[Finding] = []

    def note(message: Any, category: type[Warning], *_: Any, **__: Any) -> None:
        if issubclass(category, RuntimeWarning):
            stack = traceback.extract_stack()
            ours = [each for each in stack if LIBRARY in Path(each.filename).parents]
            inner = (ours or stack)[-1]
            place = f"{_name(inner.filename, inner.name)} line {inner.lineno}"
            found.append(Finding(category.__name__, place, str(message)))

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = note
        yield found


# ------------------------------------------------------------------- of results


def check_finite(values: np.ndarray, call: str) -> None:
    if values.dtype.kind in "fc" and not np.isfinite(values).all():
        raise Wrong("not finite", call, f"{call} is not finite: {values.ravel()[:6]}")


def check_numbers(model: Any) -> None:
    """Finite numbers in all that a fitted model keeps; some of it may not fit a file.

    Estimators compute in silence, so that an overflow is heard of only here.
    """
    for step in steps_of(model):
        try:
            fields.check(step)
        except fields.Misfit as error:
            if "not finite" in str(error):
                call = f"{type(step).__name__}.fit"
                raise Wrong("attributes", call, str(error)) from error


def check_shape(values: np.ndarray, shape: tuple[int | None, ...], call: str) -> None:
    """None stands for any length."""
    same_rank = len(shape) == values.ndim
    pairs = zip(shape, values.shape, strict=same_rank)
    if not same_rank or any(wanted not in (None, found) for wanted, found in pairs):
        raise Wrong("shape", call, f"{call} has shape {values.shape}, expected {shape}")


def check_type(values: np.ndarray, given: np.dtype, call: str) -> None:
    """float32 in, float32 out, half precision likewise; float64 for all else."""
    wanted = "float32" if given.kind == "f" and given.itemsize <= 4 else "float64"
    if values.dtype.name != wanted:
        raise Wrong("dtype", call, f"{call} is {values.dtype} for rows of {given}")


def check_equal(first: np.ndarray, second: np.ndarray, call: str) -> None:
    """Bit by bit."""
    if not np.array_equal(first, second, equal_nan=first.dtype.kind == "f"):
        raise Wrong("not repeatable", call, f"{call} differs between two equal runs")


def check_close(found: Any, expected: Any, atol: float, call: str, way: str) -> None:
    found, expected = np.asarray(found, float), np.asarray(expected, float)
    same = found.shape == expected.shape
    if not same or not np.allclose(found, expected, rtol=0, atol=atol):
        raise Wrong(
            way, call, f"{call}: {found.ravel()[:3]}, expected {expected.ravel()[:3]}"
        )
