"""Random generators from scikit-learn's `random_state`."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state


def generator(random_state: Any) -> np.random.Generator:
    """A generator for None, a seed, a `RandomState` or a `Generator`."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31, size=4))
    if random_state is not None:
        check_random_state(random_state)  # scikit-learn's own message
    return np.random.default_rng(random_state)
