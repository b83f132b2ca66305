"""Whether a method can learn from rows that do not fit into memory, before it begins.

Learners say so themselves, but behind a map only when the map has been fitted.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..backend.lazy_rows import COPIES
from ..backend.pipelines import last_step, steps_of
from ..backend.rows import comes_in_blocks, count_rows, fits_in_memory
from ..backend.text import size_text
from ..classifiers import ResidualClassifier
from ..classifiers.coding import CodingClassifier
from ..config import options
from ..datasets import Table
from ..landmarks.select import default_count
from ..learners import KSVD, BudgetKernelDL
from ..learners.linear_atoms import LinearAtoms
from .input_rows import width

PARALLEL = "ksvd-parallel"


def suit_memory(model: Any, rows: Table, method: str) -> dict[str, str]:
    """Let K-SVD learn from sums where rows do not fit into memory.

    Other methods are refused. The result is a fact for the summary if K-SVD was set.
    """
    learner = _learner(model)
    if not _needs_all_rows(learner, rows):
        return {}
    n_bytes = 0 if comes_in_blocks(rows.X) else _bytes(model, rows)
    if fits_in_memory(rows.X, n_bytes):
        return {}
    if type(learner) is KSVD and learner.update == "ksvd" and not learner.steady:
        _set_learner(model, KSVD(**{**learner.get_params(), "update": PARALLEL}))
        return {"update": f"{PARALLEL}, because rows do not fit into memory"}
    needed = f", up to {size_text(n_bytes)}" if n_bytes else ""
    raise ValueError(
        f"--method {method} needs all rows in memory{needed}, and they are too many "
        f"for the memory option of {size_text(options.memory)}, or on a cluster: "
        "raise --memory, leave --scheduler out, or use --method mod (with --map "
        "nystroem for a kernel), which reads rows in blocks"
    )


def _learner(model: Any) -> Any:
    """What learns at the end of a model, for each class or for all rows."""
    last = last_step(model)
    if isinstance(last, ResidualClassifier):
        return KSVD() if last.learner is None else last.learner
    return last


def _set_learner(model: Any, learner: KSVD) -> None:
    last = last_step(model)
    if isinstance(last, ResidualClassifier):
        last.set_params(learner=learner)
    else:
        last.set_params(update=learner.update)


def _needs_all_rows(learner: Any, rows: Table) -> bool:
    """Whether a method cannot read these rows in blocks.

    Methods of other kinds refuse a memory map before they begin.
    """
    if isinstance(learner, LinearAtoms):
        return learner._needs_all_codes()
    if comes_in_blocks(rows.X):
        return not isinstance(learner, BudgetKernelDL)
    return isinstance(learner, CodingClassifier)


def _bytes(model: Any, rows: Table) -> int:
    """The memory that is needed to learn from the largest class."""
    n_rows, n_largest = count_rows(rows.X) or 0, 0
    if rows.y is not None and isinstance(last_step(model), ResidualClassifier):
        n_largest = int(np.unique(np.asarray(rows.y), return_counts=True)[1].max())
    itemsize = min(8, max(4, getattr(rows.X, "dtype", np.dtype(float)).itemsize))
    columns = _n_features(model, n_rows, width(rows))
    return COPIES * (n_largest or n_rows) * columns * itemsize


def _n_features(model: Any, n_rows: int, n_columns: int) -> int:
    """How many features the learner gets at most."""
    for step in steps_of(model)[:-1]:
        known = step.get_params(deep=False)
        if "n_components" not in known:
            continue
        counts = [known["n_components"], known.get("n_landmarks")]
        exact = [n for n in counts if isinstance(n, int)]
        shares = [int(n * n_rows) for n in counts[1:] if isinstance(n, float)]
        n_columns = min([*exact, *(shares or [default_count(n_rows)])])
    return n_columns

