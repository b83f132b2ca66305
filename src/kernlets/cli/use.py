"""The work of commands that use a model: predict, explain, score, transform, export."""

from __future__ import annotations

import sys
import warnings
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import typer
from scipy import sparse
from sklearn.base import is_classifier, is_outlier_detector

from ..base.pipelines import before_last, last_step
from ..base.row_names import row_name, row_names
from ..classifiers import explain
from ..data.check import check_rows
from ..data.rows import apply_to_rows, count_rows, load_values, row_batches
from ..datasets import Table
from ..export import to_onnx
from ..io.data_file import DataFileError, list_texts
from ..numerics.arrays import to_numpy
from ..numerics.text import printable
from .input_data import Columns, Source, apply_by_batches, rows_progress
from .model_info import fitted_learners, load_model, show_facts, size_text
from .output_files import (
    STANDARD_OUTPUT,
    Predictions,
    check_output,
    check_space,
    check_table,
    print_predictions,
    print_table,
    write_codes,
    write_predictions,
    write_text,
)


def predict_rows(
    path: Path,
    source: Source,
    output: Path | None,
    proba: bool = False,
    force: bool = False,
    reasons: bool = False,
) -> None:
    """Write or print the labels of rows, and probabilities or scores."""
    if output not in (None, STANDARD_OUTPUT):
        check_table(output, (path, source.path), force)
    model = load_model(path)
    _check_options(path, model, proba, reasons)
    rows = source.read(Columns.of_model(model, path))
    predictions = replace(_predict(model, rows, proba, reasons), files=rows.files)
    if output is None:
        print_predictions(predictions)
    elif output == STANDARD_OUTPUT:
        print_table(predictions)
    else:
        write_predictions(output, predictions)


def explain_rows(path: Path, source: Source, n_rows: int) -> None:
    """Print why the first rows get their labels."""
    model = load_model(path)
    if not (is_classifier(model) or is_outlier_detector(model)):
        raise ValueError(
            f"{path}: was fitted without labels, and explains none: fit again with "
            "--label, or with --method outliers"
        )
    rows = source.read(Columns.of_model(model, path))
    all_rows = (row for batch in row_batches(rows.X, n_rows) for row in to_numpy(batch))
    first_rows = list(islice(all_rows, n_rows))
    texts = []
    with rows_progress("explaining", len(first_rows)) as bar:
        for number, row in enumerate(first_rows):
            name = number if rows.files is None else rows.files[number]
            is_detector = is_outlier_detector(model)
            why = (
                _explain_outliers(model, row[None])[0]
                if is_detector
                else explain(model, row)
            )
            texts.append(f"row {name}: {why}")
            bar.advance(1)
    typer.echo("\n".join(texts))  # standard output belongs to the bar until it ends


def _explain_outliers(model: Any, X: Any) -> list[Any]:
    """Return explanations of a detector with the names of training rows."""
    names = row_names(model)
    return [
        replace(reason, nearest_name=row_name(names, reason.nearest_row))
        for reason in last_step(model).explain(before_last(model, X))
    ]


def _check_options(path: Path, model: Any, proba: bool, reasons: bool) -> None:
    """Refuse a model that does not predict, or not what the options ask for."""
    name = type(last_step(model)).__name__
    if reasons and not is_outlier_detector(model):
        raise ValueError(
            f"{path}: --reasons is for outlier detectors, and this is {name}: use "
            "`kernlets explain`"
        )
    if proba and not hasattr(model, "predict_proba"):
        raise ValueError(f"{path}: {name} gives no probabilities: leave --proba out")
    if not (is_classifier(model) or is_outlier_detector(model)):
        raise ValueError(
            f"{path}: was fitted without labels and predicts none: use `kernlets "
            "transform`, or fit again with --label"
        )


def _predict(
    model: Any, rows: Table, proba: bool = False, reasons: bool = False
) -> Predictions:
    """Predict labels batch by batch, with probabilities, or scores of outliers.

    Labels of outliers are -1, of other rows 1, and scores are large for outliers. With
    `reasons`, texts say which features of a row stand out.
    """
    is_detector = is_outlier_detector(model)

    def predict_batch(X: Any) -> Predictions:
        labels = to_numpy(model.predict(X))
        if proba:
            classes = ("normal", "outlier") if is_detector else model.classes_
            columns = tuple(f"proba_{label}" for label in classes)
            probabilities = to_numpy(model.predict_proba(X))
            predictions = Predictions(labels, "proba", probabilities, columns)
        elif is_detector:
            scores = -to_numpy(model.score_samples(X))
            predictions = Predictions(labels, "score", scores[:, None], ("score",))
        else:
            predictions = Predictions(labels)
        if not reasons:
            return predictions
        texts = np.array([reason.brief() for reason in _explain_outliers(model, X)])
        return replace(predictions, reasons=texts)

    return Predictions.concatenate(apply_by_batches(predict_batch, rows, "predicting"))


def score_rows(path: Path, source: Source) -> None:
    """Score a model on rows, and print the score."""
    model = load_model(path)
    if not (is_outlier_detector(model) or hasattr(model, "score")):
        name = type(last_step(model)).__name__
        raise ValueError(f"{path}: {name} is not a learner or classifier to score")
    rows = source.read(Columns.of_model(model, path), labelled=is_classifier(model))
    if is_classifier(model):
        check_labels(source.name, rows.y, model.classes_)
    show_facts(score_facts(model, rows))


def score_facts(model: Any, rows: Table) -> dict[str, str]:
    """Return accuracy, scores of a detector, or the reconstruction error as facts."""
    if is_outlier_detector(model):
        predictions = _predict(model, rows)
        n_outliers = np.count_nonzero(predictions.labels < 0)
        return {
            "outliers": f"{n_outliers} of {len(predictions.labels)}",
            "mean score": f"{np.mean(to_numpy(predictions.numbers)):.6g}",
        }
    if not is_classifier(model):
        return {"mean squared error": f"{-model.score(rows.X):.6g}"}
    labels, predicted = to_common_type(rows.y, _predict(model, rows).labels)
    hits = int(np.count_nonzero(labels == predicted))
    return {"accuracy": f"{hits / len(labels):.4f} ({hits} of {len(labels)})"}


def transform_rows(
    path: Path, source: Source, output: Path, force: bool = False
) -> None:
    """Write the sparse codes of rows to a file or to standard output."""
    if output != STANDARD_OUTPUT:
        check_table(output, (path, source.path), force)
    model = load_model(path)
    learners, final_step = fitted_learners(model), last_step(model)
    is_coded = all(hasattr(learner, "encode") for learner in learners)
    if is_outlier_detector(final_step) or not is_coded:
        name = type(final_step).__name__
        raise ValueError(
            f"{path}: {name} gives no sparse codes: transform with a learner or a "
            "classifier that learns dictionaries"
        )
    rows = source.read(Columns.of_model(model, path))
    codes = apply_by_batches(partial(_sparse_codes, model), rows, "coding")
    if output == STANDARD_OUTPUT:
        return write_text(sys.stdout, codes)
    n_codes = sum(learner.dictionary_.n_atoms for learner in learners)
    bytes_per_code = {".npy": 4, ".csv": 2}.get(output.suffix.lower(), 0)  # at least
    check_space(output, (count_rows(rows.X) or 0) * n_codes * bytes_per_code)
    write_codes(output, codes)


def _sparse_codes(model: Any, X: Any) -> sparse.csr_array:
    """Code a few rows, or all rows on a cluster, over all dictionaries."""
    final_step = last_step(model)
    rows = check_rows(final_step, before_last(model, X), containers="dask")
    learners = fitted_learners(model)
    row_bytes = sum(2 * learner.dictionary_.row_bytes for learner in learners)
    codes = apply_to_rows(
        lambda block: final_step.encode(block).tocsr(), rows, row_bytes
    )
    return load_values(codes)


MAX_LABELS = 8  # labels in a message


def to_common_type(labels: Any, other_labels: Any) -> tuple[np.ndarray, np.ndarray]:
    """Convert two arrays of labels to one type: numbers if all text is numbers."""
    first, second = np.asarray(labels), np.asarray(other_labels)
    if (first.dtype.kind in "UO") == (second.dtype.kind in "UO"):
        return first, second
    try:
        return first.astype(float), second.astype(float)
    except (TypeError, ValueError):
        return first.astype(str), second.astype(str)


def check_labels(name: str, labels: Any, classes: Any) -> None:
    """Refuse labels of which a model knows none, and warn of those it does not know."""
    class_labels, row_labels = to_common_type(classes, labels)
    is_unknown = ~np.isin(row_labels, class_labels)
    names = np.asarray(labels)
    if is_unknown.all():
        raise DataFileError(
            name,
            f"has the labels {_list_labels(names)}, of which the model knows none: it "
            f"knows {_list_labels(classes)}. Name the right column with --label, or "
            "spell labels alike",
        )
    if is_unknown.any():
        warnings.warn(
            f"{name}: {np.count_nonzero(is_unknown)} of {len(names)} rows have labels "
            f"that the model does not know, {_list_labels(names[is_unknown])}: they "
            "count as wrong",
            stacklevel=2,
        )


def _list_labels(labels: Any) -> str:
    """List the first few distinct labels, and the number of the others."""
    distinct = np.unique(np.asarray(labels)).tolist()
    return list_texts([printable(repr(label)) for label in distinct], MAX_LABELS)


ONNX = ".onnx"


def export_model(
    path: Path, output: Path, dtype: str | None = None, force: bool = False
) -> None:
    """Write a model for runtimes of ONNX, and show its input and outputs."""
    if output.suffix.lower() != ONNX:
        raise typer.BadParameter(f"{output} must end in {ONNX}", param_hint="--output")
    check_output(output, (path,), force)
    graph = to_onnx(load_model(path), output, dtype=dtype).graph
    show_facts(
        {
            "input": _tensor_text(graph.input[0]),
            "outputs": ", ".join(map(_tensor_text, graph.output)),
            "operations": str(len(graph.node)),
            "file": f"{output} ({size_text(output.stat().st_size)})",
        }
    )


def _tensor_text(tensor: Any) -> str:
    """A name with its sizes."""
    sizes = (str(d.dim_param or d.dim_value) for d in tensor.type.tensor_type.shape.dim)
    return f"{tensor.name} ({' x '.join(sizes)})"
