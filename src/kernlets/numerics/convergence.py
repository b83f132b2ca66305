"""Warn of iterations that end before they reach their tolerance.

A public call warns once of each kind of iteration, in the thread of its caller, for all
blocks of rows, classes and iterations of a fit.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from sklearn.exceptions import ConvergenceWarning

_messages: ContextVar[dict[str, None] | None] = ContextVar(
    "kernlets_unfinished", default=None
)


def warn_unfinished(message: str) -> None:
    """Warn that an iteration has not reached its tolerance; the message has a remedy.

    Inside `warn_once_at_end` the warning is issued at the end of the context.
    """
    messages = _messages.get()
    if messages is None:
        _warn(message)
    else:
        messages[message] = None  # a dict is ordered, and threads may share it


@contextmanager
def warn_once_at_end() -> Iterator[None]:
    """Warn once of each message at the end of the context, unless it raises."""
    if _messages.get() is not None:
        yield
        return
    messages: dict[str, None] = {}
    token = _messages.set(messages)
    try:
        yield
    finally:
        _messages.reset(token)
    for message in messages:
        _warn(message)


@contextmanager
def without_warnings() -> Iterator[None]:
    """Discard the messages of iterations whose results are estimates only."""
    token = _messages.set({})
    try:
        yield
    finally:
        _messages.reset(token)


def _warn(message: str) -> None:
    """Warn at the line that called the library, or scikit-learn around it."""
    frame, level = sys._getframe(1), 2
    while frame.f_back and _is_inside(frame.f_globals.get("__name__", "")):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, ConvergenceWarning, stacklevel=level)


def _is_inside(module: str) -> bool:
    return module.partition(".")[0] in ("kernlets", "sklearn", "contextlib")
