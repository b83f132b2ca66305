"""Random generators from scikit-learn's `random_state`."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from ..config import options


def generator(random_state: Any) -> np.random.Generator:
    """Return a generator for None, a seed, a `RandomState` or a `Generator`."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31, size=4))
    if random_state is not None:
        check_random_state(random_state)  # scikit-learn's own message
    elif options.checkpoint is not None:
        raise ValueError(
            "random_state=None cannot be resumed from a checkpoint, where every random "
            "choice must come out again: set random_state in all parts of the model"
        )
    return np.random.default_rng(random_state)


def row_uniforms(seed: int, first: int, n: int) -> np.ndarray:  # (n,) in [0, 1)
    """Return random numbers of the rows first, first + 1, ..., the same in every call.

    A counter-based generator jumps to the first row, so that the numbers of a row do
    not depend on the blocks or machines that hold the rows.
    """
    words = 4  # numbers of one step of the counter
    bits = np.random.Philox(key=seed).advance(first // words)
    return np.random.Generator(bits).random(first % words + n)[first % words :]
