"""Former names of parameters and methods: they warn for two minor releases, then go."""

from __future__ import annotations

import warnings
from typing import Any

UNSET = "deprecated"
"""Default of a parameter that goes by another name now, as scikit-learn marks it."""


def removed_in(since: str) -> str:
    """The release without a name that warns `since` a release: two minor ones later."""
    major, minor = since.split(".")
    return f"{major}.{int(minor) + 2}"


def warn_renamed(old: str, new: str, stacklevel: int = 3, since: str = "0.1") -> None:
    """Say that `old` will be removed, when, and what to write instead."""
    warnings.warn(
        f"{old} is deprecated since version {since} and will be removed in version "
        f"{removed_in(since)}: use {new}",
        FutureWarning,
        stacklevel=stacklevel + 1,
    )


def renamed_parameter(estimator: Any, new: str, old: str) -> Any:
    """The value of parameter `new`; that of `old` if the user has set it.

    Both are parameters of the constructor, so that `set_params`, `clone` and grid
    searches take either name. Setting both is an error.
    """
    value, former = getattr(estimator, new), getattr(estimator, old, UNSET)
    if isinstance(former, str) and former == UNSET:
        return value
    if value is not None:
        raise ValueError(
            f"{new} and its former name {old} are both given: leave {old} out"
        )
    warn_renamed(old, new, stacklevel=4)
    return former
