"""Former names of parameters and methods, which work for one more release and warn."""

from __future__ import annotations

import warnings
from typing import Any

UNSET = "deprecated"
"""Default of a parameter that goes by another name now, as scikit-learn marks it."""


def warn_renamed(old: str, new: str, stacklevel: int = 3) -> None:
    """Say that `old` will be removed, and what to write instead."""
    warnings.warn(
        f"{old} is deprecated and will be removed in version 0.3: use {new}",
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
