"""``--holdout``: rows of the training file that are kept to measure accuracy."""

from __future__ import annotations

from math import ceil
from typing import Any, NamedTuple

import numpy as np

from ..datasets import Table


class Split(NamedTuple):
    """Rows to fit, their numbers in the file, and rows to score."""

    fitted: Table
    numbers: np.ndarray
    held_out: Table


def split_rows(rows: Table, share: float, seed: int) -> Split:
    """Rows to fit and rows to score, with the same shares of each class."""
    from sklearn.model_selection import train_test_split

    if rows.y is None or not isinstance(rows.X, np.ndarray):
        raise ValueError(
            "--holdout needs labelled rows that fit into memory: name the label column "
            "with --label, or give other rows with --test"
        )
    labels = np.asarray(rows.y)
    alone = np.unique(labels, return_counts=True)[1].min() < 2
    n_classes, n_held_out = len(np.unique(labels)), ceil(share * len(labels))
    if not alone and min(n_held_out, len(labels) - n_held_out) < n_classes:
        raise ValueError(
            f"--holdout {share:g} of {len(labels)} rows is {n_held_out}, but there are "
            f"{n_classes} classes to fit and to score: give more rows, or another share"
        )
    places = train_test_split(
        np.arange(len(labels)),
        test_size=share,
        random_state=seed,
        stratify=None if alone else labels,
    )
    fitted, held_out = map(np.sort, places)
    return Split(_some(rows, fitted), fitted, _some(rows, held_out))


def _some(rows: Table, places: np.ndarray) -> Table:
    files = None if rows.files is None else rows.files[places]
    return rows._replace(X=rows.X[places], y=np.asarray(rows.y)[places], files=files)


def chosen(model: Any) -> Any:
    """The pipeline that a search ended with, else the model itself."""
    return getattr(model, "best_pipeline_", model)


def fitted_rows(model: Any, names: np.ndarray | None) -> np.ndarray | None:
    """Names, or numbers in the file, of the rows that a model was fitted to.

    A search without time for all rows fits its choice to some of those that it got.
    """
    some = getattr(model, "best_rows_", None)
    return names if some is None else some if names is None else names[some]


def search_facts(model: Any) -> dict[str, str]:
    """What a search tried and chose, for the summary of a fit."""
    if not hasattr(model, "best_pipeline_"):
        return {}
    best = model.best_params_
    setting = ", ".join(f"{key} {value:g}" for key, value in best["setting"].items())
    width = "" if best["kernel"] == "linear" else f" x {best['width']:.3g}"
    parts = [best["family"], f"scale {best['scale']}", f"{best['kernel']}{width}"]
    return {
        "candidates": f"{model.n_candidates_} tried",
        "chosen": ", ".join([*parts, setting] if setting else parts),
        "cross-validation": f"{model.best_score_:.4f}",
    }
