"""Numbers that are more than there is: a smaller one and a warning, not a failure.

A search asks every fold and every class for the same numbers, and a candidate should
not be lost because one fold is smaller.
"""

from __future__ import annotations

import warnings

SAMPLES = "non-zero samples (in feature space)"


def clipped(name: str, wanted: int, most: int, of_what: str) -> int:
    """`wanted`, or `most` with a warning; an exception if there is nothing at all."""
    if most < 1:
        raise ValueError(f"there are no {of_what}: {name} needs at least one")
    if wanted > most:
        warnings.warn(
            f"{name}={wanted} is more than the {most} {of_what}, and {most} is used "
            "instead",
            stacklevel=3,
        )
    return min(int(wanted), most)
