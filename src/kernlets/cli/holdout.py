"""``--holdout``: rows of the training file that are kept to measure accuracy."""

from __future__ import annotations

from math import ceil
from typing import Any, NamedTuple

import numpy as np

from ..datasets import Table


class HoldoutSplit(NamedTuple):
    """Rows to fit, their numbers in the file, and rows to score."""

    fitted: Table
    numbers: np.ndarray
    held_out: Table


def split_rows(rows: Table, share: float, seed: int) -> HoldoutSplit:
    """Split rows into those to fit and those to score, by the shares of classes."""
    from sklearn.model_selection import train_test_split

    if rows.y is None or not isinstance(rows.X, np.ndarray):
        raise ValueError(
            "--holdout needs labelled rows that fit into memory: name the label column "
            "with --label, or give other rows with --test"
        )
    labels = np.asarray(rows.y)
    has_single_row = np.unique(labels, return_counts=True)[1].min() < 2
    n_classes, n_held_out = len(np.unique(labels)), ceil(share * len(labels))
    if not has_single_row and min(n_held_out, len(labels) - n_held_out) < n_classes:
        raise ValueError(
            f"--holdout {share:g} of {len(labels)} rows is {n_held_out}, but there are "
            f"{n_classes} classes to fit and to score: give more rows, or another share"
        )
    row_numbers = train_test_split(
        np.arange(len(labels)),
        test_size=share,
        random_state=seed,
        stratify=None if has_single_row else labels,
    )
    fit_numbers, score_numbers = map(np.sort, row_numbers)
    return HoldoutSplit(
        _take_rows(rows, fit_numbers),
        fit_numbers,
        _take_rows(rows, score_numbers),
    )


def _take_rows(rows: Table, row_numbers: np.ndarray) -> Table:
    files = None if rows.files is None else rows.files[row_numbers]
    return rows._replace(
        X=rows.X[row_numbers], y=np.asarray(rows.y)[row_numbers], files=files
    )


def best_pipeline(model: Any) -> Any:
    """Return the best pipeline of a search, or the model itself."""
    return getattr(model, "best_pipeline_", model)


def fitted_row_names(model: Any, names: np.ndarray | None) -> np.ndarray | None:
    """Return the names, or numbers in the file, of the rows that a model was fitted to.

    A search that has no time for all rows fits its best pipeline to some of them.
    """
    best_rows = getattr(model, "best_rows_", None)
    return (
        names if best_rows is None else best_rows if names is None else names[best_rows]
    )


def search_facts(model: Any) -> dict[str, str]:
    """Return what a search tried and chose as facts for the summary of a fit."""
    if not hasattr(model, "best_pipeline_"):
        return {}
    best = model.best_params_
    setting = ", ".join(f"{key} {value:g}" for key, value in best["setting"].items())
    bandwidth = "" if best["kernel"] == "linear" else f" x {best['width']:.3g}"
    descriptions = [
        best["family"],
        f"scale {best['scale']}",
        f"{best['kernel']}{bandwidth}",
    ]
    return {
        "candidates": f"{model.n_candidates_} tried",
        "chosen": ", ".join([*descriptions, setting] if setting else descriptions),
        "cross-validation": f"{model.best_score_:.4f}",
    }
