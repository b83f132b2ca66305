"""Messages of the library in the words of the command line."""

from __future__ import annotations

import re

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
