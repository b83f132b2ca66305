"""Counts larger than possible become smaller with a warning, not an error.

A search asks every fold and every class for the same numbers, and a candidate should
not be lost because one fold is smaller.
"""

from __future__ import annotations

import warnings

SAMPLES = "non-zero samples (in feature space)"


def clipped(name: str, requested: int, available: int, of_what: str) -> int:
    """`requested`, or `available` with a warning; ValueError if none is available."""
    if available < 1:
        raise ValueError(f"there are no {of_what}: {name} needs at least one")
    if requested > available:
        warnings.warn(
            f"{name}={requested} is more than the {available} {of_what}, and "
            f"{available} is used instead",
            stacklevel=3,
        )
    return min(int(requested), available)
