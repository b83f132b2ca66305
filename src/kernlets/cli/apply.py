"""Commands that use a saved model: predict, score, transform."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import typer
from scipy import sparse
from sklearn.base import is_classifier, is_outlier_detector

from ..backend.arrays import to_numpy
from ..backend.pipelines import before_last, last_step
from ..backend.row_names import row_name, row_names
from ..backend.rows import apply_to_rows, count_rows, load_values
from ..backend.validation import check_rows
from ..classifiers import explain
from ..datasets import Table
from .input_rows import Columns, Source, by_batches
from .labels import alike, check_labels
from .model_parts import fitted_learners, has_codes, load_model
from .output import (
    STANDARD_OUTPUT,
    Predictions,
    print_codes,
    print_predictions,
    print_table,
    write_codes,
    write_predictions,
)
from .show import show_facts
from .targets import check_space, check_table


def predict_rows(
    path: Path,
    source: Source,
    output: Path | None,
    proba: bool = False,
    force: bool = False,
    reasons: bool = False,
) -> None:
    """Labels of rows, and probabilities or scores, to a file or standard output."""
    if output not in (None, STANDARD_OUTPUT):
        check_table(output, (path, source.path), force)
    model = load_model(path)
    predict = _predictor(path, model, proba, reasons)
    rows = source.read(Columns.of_model(model))
    found = Predictions.joined(by_batches(predict, rows, "predicting"))
    found = replace(found, files=rows.files)
    if output is None:
        print_predictions(found)
    elif output == STANDARD_OUTPUT:
        print_table(found)
    else:
        write_predictions(output, found)


def explain_rows(path: Path, source: Source, n_rows: int) -> None:
    """Why the first rows get their labels, to standard output."""
    model = load_model(path)
    if not (is_classifier(model) or is_outlier_detector(model)):
        raise ValueError(
            f"{path}: was fitted without labels, and explains none: fit again with "
            "--label, or with --method outliers"
        )
    rows = source.read(Columns.of_model(model))
    blocks = by_batches(np.asarray, rows, "reading")
    first_rows = islice((row for block in blocks for row in block), n_rows)
    for number, row in enumerate(first_rows):
        name = number if rows.files is None else rows.files[number]
        typer.echo(f"row {name}: {_explained(model, row)}")


def _explained(model: Any, row: np.ndarray) -> Any:
    """Why a row is an outlier or not, or why it gets its label."""
    if is_outlier_detector(model):
        return _reasons(model, row[None])[0]
    return explain(model, row)


def _reasons(model: Any, X: Any) -> list[Any]:
    """Explanations of a detector, with the names of rows that a first step has."""
    names = row_names(model)
    return [
        replace(reason, nearest_name=row_name(names, reason.nearest_row))
        for reason in last_step(model).explain(before_last(model, X))
    ]


def _predictor(
    path: Path, model: Any, proba: bool, reasons: bool
) -> Callable[[Any], Predictions]:
    """Predictions for a few rows: labels, with probabilities, scores or reasons."""
    if reasons and not is_outlier_detector(model):
        name = type(last_step(model)).__name__
        raise ValueError(
            f"{path}: --reasons is for outlier detectors, and this is {name}: use "
            "`kernlets explain`"
        )
    if proba and not hasattr(model, "predict_proba"):
        raise ValueError(
            f"{path}: {type(last_step(model)).__name__} gives no probabilities: leave "
            "--proba out"
        )
    if is_outlier_detector(model):
        found = _with_odds if proba else _with_scores
        return (
            partial(_with_reasons, found, model) if reasons else partial(found, model)
        )
    if not is_classifier(model):
        raise ValueError(
            f"{path}: was fitted without labels and predicts none: use `kernlets "
            "transform`, or fit again with --label"
        )
    return partial(_with_proba if proba else _labels_only, model)


def _labels_only(model: Any, X: Any) -> Predictions:
    return Predictions(to_numpy(model.predict(X)))


def _with_proba(model: Any, X: Any) -> Predictions:
    columns = tuple(f"proba_{label}" for label in model.classes_)
    shares = to_numpy(model.predict_proba(X))
    return Predictions(to_numpy(model.predict(X)), "proba", shares, columns)


def _with_odds(model: Any, X: Any) -> Predictions:
    """1 for inliers and -1 for outliers, with the probability of both."""
    columns = ("proba_normal", "proba_outlier")
    shares = model.predict_proba(X)
    return Predictions(to_numpy(model.predict(X)), "proba", shares, columns)


def _with_reasons(
    found: Callable[[Any, Any], Predictions], model: Any, X: Any
) -> Predictions:
    """Predictions, and in words which features of a row stand out."""
    words = np.array([reason.brief() for reason in _reasons(model, X)])
    return replace(found(model, X), reasons=words)


def _with_scores(model: Any, X: Any) -> Predictions:
    """1 for inliers and -1 for outliers, with the scores: large ones are abnormal."""
    errors = -to_numpy(model.score_samples(X))
    columns = ("score",)
    return Predictions(to_numpy(model.predict(X)), "score", errors[:, None], columns)


def score_rows(path: Path, source: Source) -> None:
    """Score a model on rows."""
    model = load_model(path)
    can_score = is_outlier_detector(model) or hasattr(model, "score")
    if not can_score:
        name = type(last_step(model)).__name__
        raise ValueError(f"{path}: {name} is not a learner or classifier to score")
    rows = source.read(Columns.of_model(model), labelled=is_classifier(model))
    if is_classifier(model):
        check_labels(source.name, rows.y, model.classes_)
    show_facts(score_facts(model, rows))


def score_facts(model: Any, rows: Table) -> dict[str, str]:
    """Accuracy of a classifier, score of a detector, or the reconstruction error."""
    if is_outlier_detector(model):
        return _outlier_facts(model, rows)
    if not is_classifier(model):
        return {"mean squared error": f"{-model.score(rows.X):.6g}"}
    labels, predicted = alike(rows.y, _predicted(model, rows).labels)
    hits = int(np.count_nonzero(labels == predicted))
    return {"accuracy": f"{hits / len(labels):.4f} ({hits} of {len(labels)})"}


def _outlier_facts(model: Any, rows: Table) -> dict[str, str]:
    batches = by_batches(partial(_with_scores, model), rows, "predicting")
    found = Predictions.joined(batches)
    count, mean = np.count_nonzero(found.labels < 0), np.mean(to_numpy(found.numbers))
    return {
        "outliers": f"{count} of {len(found.labels)}",
        "mean score": f"{mean:.6g}",
    }


def _predicted(model: Any, rows: Table) -> Predictions:
    batches = by_batches(partial(_labels_only, model), rows, "predicting")
    return Predictions.joined(batches)


def transform_rows(
    path: Path, source: Source, output: Path, force: bool = False
) -> None:
    """Sparse codes of rows, to a file."""
    if output != STANDARD_OUTPUT:
        check_table(output, (path, source.path), force)
    model = load_model(path)
    if not has_codes(model):
        name = type(last_step(model)).__name__
        raise ValueError(
            f"{path}: {name} gives no sparse codes: transform with a learner or a "
            "classifier of kernlets"
        )
    rows = source.read(Columns.of_model(model))
    codes = by_batches(partial(_codes, model), rows, "coding")
    if output == STANDARD_OUTPUT:
        print_codes(codes)
        return
    check_space(output, _least_bytes(model, count_rows(rows.X), output))
    write_codes(output, codes)


def _least_bytes(model: Any, n_rows: int | None, output: Path) -> int:
    """The size of a dense file; 0 for a sparse one, whose size is unknown."""
    n_codes = sum(part.dictionary_.n_atoms for part in fitted_learners(model))
    each = {".npy": 4, ".csv": 2}.get(output.suffix.lower(), 0)
    return (n_rows or 0) * n_codes * each


def _codes(model: Any, X: Any) -> sparse.csr_array:
    """Codes of a few rows, or of all on a cluster, over all dictionaries."""
    last = last_step(model)
    rows = check_rows(last, before_last(model, X), lazy=True)
    learners = fitted_learners(model)
    row_bytes = sum(2 * learner.dictionary_.row_bytes for learner in learners)
    codes = apply_to_rows(lambda block: last.encode(block).tocsr(), rows, row_bytes)
    return load_values(codes)
