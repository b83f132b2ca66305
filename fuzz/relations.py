"""Cases of relations: how a result must change when the input changes.

A random estimator, random rows and labels, and one of the relations of the tests. A
relation that is broken is a finding, unless results move as far when all numbers move
by their last bits.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from kernlets import Lasso

from .draw import Draw, text_of
from .models import Model, draw_model
from .oracle import Refusal, Wrong
from .values import Matrix, draw_matrix

sys.path.append(str(Path(__file__).parents[1] / "tests"))  # modules of no package

from relations import RELATIONS, Broken, Data, DoesNotApply, check, fitted

FEWEST = 6  # rows of a fit of which there is something to say
NEW = 5


def run(draw: Draw, note: Callable[[str], Any], folder: Path) -> None:
    """One relation of one estimator."""
    matrix = draw_matrix(draw, tame=0.5)
    model = draw_model(draw, matrix)
    relation = draw.pick(sorted(RELATIONS))
    note(f"relation: {relation}")
    note(f"model: {text_of(model.estimator, 400)}")
    note(f"rows: {matrix.text}")
    data = _data(draw, matrix, model)
    note(f"labels: {data.y.tolist()}; the last {NEW} rows are new")
    _converge(model.estimator)
    fitted(model.estimator, data)  # a refusal here is a matter of other cases
    final = (
        model.estimator[-1] if hasattr(model.estimator, "steps") else model.estimator
    )
    try:
        check(relation, model.estimator, data)
    except DoesNotApply as reason:
        raise Refusal(str(reason)) from reason
    except Broken as broken:
        place = type(final).__name__
        raise Wrong(relation, place, str(broken)) from broken


def _data(draw: Draw, matrix: Matrix, model: Model) -> Data:
    """Rows with two or three classes; the last ones are new."""
    rows = matrix.values
    if model.is_odd or not matrix.is_valid or len(rows) < FEWEST + NEW:
        raise Refusal("such rows and parameters are for other cases")
    n = len(rows) - NEW
    y = draw.rng.permutation(np.arange(n) % draw.pick([2, 3]))
    start = draw.rng.permutation(n)[: draw.count(2, 5)]
    return Data(
        rows[:n],
        y,
        rows[n:],
        seed=draw.count(0, 999),
        start=tuple(map(int, start)),
        allows_close_calls=True,
    )


def _converge(estimator: Any) -> None:
    """Let iterations of coders go on to the accuracy that they state."""
    for name, value in estimator.get_params().items():
        if isinstance(value, Lasso):
            estimator.set_params(**{f"{name}__max_iter": 100_000})
