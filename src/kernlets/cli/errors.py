"""Errors and warnings of all commands on one line, in the words of the command line.

Exit codes: 0 for success, 1 for an error in data, model or parameters, 2 for a
command line that cannot be understood, 130 after Ctrl-C (see `kernlets.__main__`).
"""

from __future__ import annotations

import re
import warnings
from typing import Any

import typer
from typer.core import TyperGroup

from ..numerics.text import printable

INTERRUPTED = 130  # 128 + SIGINT, the convention of shells
#: Errors that a user can understand; others should be reported as bugs.
FORESEEN = (ValueError, TypeError, ImportError)


class Commands(TyperGroup):
    """A group of commands that never shows a traceback unless asked to."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Accept ``--debug`` anywhere, by moving it to the front."""
        return super().parse_args(ctx, sorted(args, key="--debug".__ne__))

    def invoke(self, ctx: Any) -> Any:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            # columns were matched by name where the file was read
            warnings.filterwarnings("ignore", "X (does not have|has).* feature names")
            try:
                return super().invoke(ctx)
            except KeyboardInterrupt:
                raise typer.Exit(INTERRUPTED) from None
            except Exception as error:
                if _is_interruption(error):
                    raise typer.Exit(INTERRUPTED) from None
                # usage errors, exits and closed pipes are typer's to handle
                is_exit = hasattr(error, "exit_code")
                is_of_typer = isinstance(error, (typer.Abort, BrokenPipeError))
                if ctx.params["debug"] or is_exit or is_of_typer:
                    raise
                typer.echo(f"error: {_explain(error)}", err=True)
                raise typer.Exit(1) from error


def _is_interruption(error: BaseException | None) -> bool:
    """Whether Ctrl-C caused an error, into which some libraries turn it."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return True
        error = error.__cause__ or error.__context__
    return False


def _explain(error: Exception) -> str:
    """Return the message of an error on one line."""
    if isinstance(error, OSError):
        reason = error.strerror or str(error)
        text = reason if error.filename is None else f"{error.filename}: {reason}"
    elif hasattr(error, "in_shell"):  # an `OverMemory` or `DataFileError`
        text = in_shell(error.in_shell)
    elif isinstance(error, MemoryError):
        text = f"not enough memory ({error}): use fewer samples, landmarks or atoms"
    elif isinstance(error, FORESEEN):
        text = in_shell(str(error))
    else:
        text = f"{type(error).__name__}: {error} (--debug shows where it comes from)"
    return printable(text)


def _show_warning(message: Any, *_: Any, **__: Any) -> None:
    typer.echo(f"warning: {printable(in_shell(str(message)))}", err=True)


OPTIONS = {
    "label": "--label",
    "device": "--device",
    "memory": "--memory",
    "n_threads": "--threads",
    "n_landmarks": "--n-landmarks",
    "landmarks": "--landmarks",
    "n_nonzero_coefs": "--sparsity",
    "max_iter": "--iterations",
    "random_state": "--seed",
}
"""Parameters that have an option of their own, whichever part of a model has them."""

ASSIGNMENT = re.compile(rf"(?<![\w(.])(?<!, )({'|'.join(OPTIONS)})=(?=\S)")
CONSTRAINT = re.compile(rf"^The '({'|'.join(OPTIONS)})' parameter of (\w+) must be")
PICTURES_NEEDED = "pass some rows, or begin the pipeline with UnitNorm"


def in_shell(text: str) -> str:
    """A message with options in place of parameters that are given outside of calls.

    >>> in_shell("label=9 is outside: use NystroemMap(kernel, n_landmarks=5)")
    '--label 9 is outside: use NystroemMap(kernel, n_landmarks=5)'
    """
    text = CONSTRAINT.sub(lambda m: f"{OPTIONS[m[1]]} ({m[1]} of {m[2]}) must be", text)
    text = ASSIGNMENT.sub(lambda match: f"{OPTIONS[match[1]]} ", text)
    return text.replace(PICTURES_NEEDED, "give some with --data, or fit --scale unit")
