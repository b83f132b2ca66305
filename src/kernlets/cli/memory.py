"""Finds out before a fit whether its method can learn from rows that it cannot hold.

Learners refuse rows that do not fit into memory themselves, but behind a map only when
the map has been fitted.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..base.pipelines import last_step, steps_of
from ..classifiers import ResidualClassifier
from ..classifiers.base import CodingClassifier
from ..config import options
from ..data.lazy_rows import COPIES
from ..data.rows import count_rows, fits_in_memory
from ..data.stream import comes_in_blocks
from ..datasets import Table
from ..landmarks.choose import default_count
from ..learners import KSVD, BudgetKernelDL
from ..learners.linear_learner import LinearAtoms
from ..learners.schedule import resolve_schedule
from ..numerics.text import size_text
from .input_data import count_features

#: update of `KSVD` that needs all rows -> one that needs only sums over blocks
PARALLEL_UPDATES = {
    "ksvd": "ksvd-parallel",
    "ksvd:positive_atoms=True": "ksvd-parallel:positive_atoms=True",
}


def suit_memory(model: Any, rows: Table, method: str) -> dict[str, str]:
    """Let K-SVD learn from sums where rows do not fit into memory.

    Other methods are refused. The result is a fact for the summary if K-SVD was set.
    """
    learner = _learner(model)
    if not _needs_all_rows(learner, rows):
        return {}
    n_bytes = 0 if comes_in_blocks(rows.X) else _needed_bytes(model, rows)
    if fits_in_memory(rows.X, n_bytes):
        return {}
    update = None
    if type(learner) is KSVD and not resolve_schedule(learner.schedule).steady:
        update = PARALLEL_UPDATES.get(str(learner.update))
    if update is not None:
        learner.set_params(update=update)
        if isinstance(last_step(model), ResidualClassifier):
            last_step(model).set_params(learner=learner)
        return {"update": f"{update}, because rows do not fit into memory"}
    amount = f", up to {size_text(n_bytes)}" if n_bytes else ""
    raise ValueError(
        f"--method {method} needs all rows in memory{amount}, and they are too many "
        f"for the memory option of {size_text(options.memory)}, or on a cluster: "
        "raise --memory, leave --scheduler out, or use --method mod (with --map "
        "nystroem for a kernel), which reads rows in blocks"
    )


def _learner(model: Any) -> Any:
    """Return the learner at the end of a model, for each class or for all rows."""
    final_step = last_step(model)
    if isinstance(final_step, ResidualClassifier):
        return KSVD() if final_step.learner is None else final_step.learner
    return final_step


def _needs_all_rows(learner: Any, rows: Table) -> bool:
    """Whether a method cannot read these rows in blocks.

    Methods of other kinds refuse a memory map before they begin.
    """
    if isinstance(learner, LinearAtoms):
        return learner._containers == "memory"
    if comes_in_blocks(rows.X):
        return not isinstance(learner, BudgetKernelDL)
    return isinstance(learner, CodingClassifier)


def _needed_bytes(model: Any, rows: Table) -> int:
    """Return the bytes that are needed to learn from the largest class."""
    n_rows, n_largest = count_rows(rows.X) or 0, 0
    if rows.y is not None and isinstance(last_step(model), ResidualClassifier):
        n_largest = int(np.unique(np.asarray(rows.y), return_counts=True)[1].max())
    itemsize = min(8, max(4, getattr(rows.X, "dtype", np.dtype(float)).itemsize))
    columns = _max_features(model, n_rows, count_features(rows))
    return COPIES * (n_largest or n_rows) * columns * itemsize


def _max_features(model: Any, n_rows: int, n_columns: int) -> int:
    """Return the largest number of features that the learner may get."""
    for step in steps_of(model)[:-1]:
        params = step.get_params(deep=False)
        if "n_components" not in params:
            continue
        counts = [params["n_components"], params.get("n_landmarks")]
        exact = [n for n in counts if isinstance(n, int)]
        shares = [int(n * n_rows) for n in counts[1:] if isinstance(n, float)]
        n_columns = min([*exact, *(shares or [default_count(n_rows)])])
    return n_columns
