"""What the commands do: read, fit, predict, score, transform, write."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import typer
from scipy import sparse
from sklearn.base import is_classifier
from sklearn.pipeline import Pipeline

from ..backend.arrays import check_device, is_dask, is_torch, to_numpy
from ..backend.rows import count_rows, map_rows
from ..backend.validation import check_rows
from ..config import options
from ..datasets import Table
from ..persistence import load, save
from .build import Recipe
from .output import check_folder, check_table, write_codes, write_labels
from .parts import fitted_learners
from .progress import fit_watched
from .show import show_facts, size_text
from .sources import Source, by_batches, connected, width


@contextmanager
def session(
    memory: str | None,
    threads: int | None,
    device: str | None = None,
    checkpoint: Path | None = None,
    scheduler: str | None = None,
) -> Iterator[None]:
    """The library's options, and a cluster, for the time of one command."""
    changes: dict[str, Any] = {"memory": memory, "n_threads": threads}
    changes |= {"device": check_device(device), "checkpoint": checkpoint}
    given = {name: v for name, v in changes.items() if v is not None}
    with options(**given), connected(scheduler):
        yield


def check_resume(checkpoint: Path | None, resume: bool) -> None:
    """Refuse to resume from nothing, and to mix with the checkpoints of another fit."""
    if checkpoint is None:
        if resume:
            raise typer.BadParameter("needs --checkpoint DIR", param_hint="--resume")
    elif not resume and next(checkpoint.rglob("*.checkpoint"), None) is not None:
        raise ValueError(
            f"{checkpoint}: holds the checkpoints of a fit: add --resume to go on with "
            "it, or name another folder"
        )


def fit_model(
    recipe: Recipe, source: Source, path: Path, test: Path | None, quiet: bool
) -> None:
    """Fit, save, and say what came out. All input is read before the fit begins."""
    check_folder(path)
    train = source.read()
    labelled = train.y is not None
    held_out = None
    if test is not None:
        held_out = replace(source, path=test).read(width(train), labelled)
    model = recipe.build(labelled)
    began = time.perf_counter()
    fit_watched(model, train.X, train.y, count_rows(train.X), quiet)
    seconds = time.perf_counter() - began
    save(model, path)
    facts = {} if quiet else _fit_facts(model, train, seconds, path)
    show_facts(facts | (_score_facts(model, held_out) if held_out else {}))


def _fit_facts(model: Any, rows: Table, seconds: float, path: Path) -> dict[str, str]:
    counts = [part.dictionary_.n_atoms for part in fitted_learners(model)]
    atoms = "-".join(map(str, sorted({min(counts), max(counts)})))
    unlabelled = "none: one dictionary for all rows (name labels with --label)"
    classes = unlabelled if rows.y is None else str(len(model.classes_))
    return {
        "rows": f"{count_rows(rows.X)} of {width(rows)} features",
        "classes": classes,
        "atoms": f"{atoms} for each class" if len(counts) > 1 else atoms,
        "training": f"{seconds:.2f} s",
        "model": f"{path} ({size_text(path.stat().st_size)})",
    }


def predict_rows(path: Path, source: Source, output: Path | None) -> None:
    """Labels of rows, to a file or to standard output."""
    if output is not None:
        check_table(output)
    model = _load(path)
    if not is_classifier(model):
        raise ValueError(
            f"{path}: was fitted without labels and predicts none: use `kernlets "
            "transform`, or fit again with --label"
        )
    labels = _predicted(model, source.read(model.n_features_in_))
    if output is None:
        print("\n".join(map(str, labels)))
    else:
        write_labels(output, labels)


def score_rows(path: Path, source: Source) -> None:
    """How well a model does on rows."""
    model = _load(path)
    rows = source.read(model.n_features_in_, labelled=is_classifier(model))
    show_facts(_score_facts(model, rows))


def _score_facts(model: Any, rows: Table) -> dict[str, str]:
    """Accuracy of a classifier, mean squared error of a dictionary."""
    if not is_classifier(model):
        return {"mean squared error": f"{-model.score(rows.X):.6g}"}
    labels, predicted = np.asarray(rows.y), _predicted(model, rows)
    if (labels.dtype.kind in "UO") != (predicted.dtype.kind in "UO"):
        labels, predicted = labels.astype(str), predicted.astype(str)
    hits = int(np.count_nonzero(labels == predicted))
    return {"accuracy": f"{hits / len(labels):.4f} ({hits} of {len(labels)})"}


def transform_rows(path: Path, source: Source, output: Path) -> None:
    """Sparse codes of rows, to a file."""
    check_table(output)
    model = _load(path)
    rows = source.read(model.n_features_in_)
    write_codes(output, by_batches(partial(_codes, model), rows, "coding"))


def _codes(model: Any, X: Any) -> sparse.csr_array:
    """Codes of a few rows, or of all on a cluster, over all dictionaries."""
    features = model[:-1].transform(X) if isinstance(model, Pipeline) else X
    learners = fitted_learners(model)

    def encode(block: Any) -> sparse.csr_array:
        parts = [learner.encode(block).tocsr() for learner in learners]
        return sparse.hstack(parts, format="csr")

    if not is_dask(features):
        return encode(features)
    rows = check_rows(learners[0], features, lazy=True)
    row_bytes = sum(2 * learner.dictionary_.row_bytes for learner in learners)
    return map_rows(encode, rows, row_bytes).compute()


def _load(path: Path) -> Any:
    model = load(path)
    if not hasattr(model, "n_features_in_"):
        raise ValueError(f"{path}: holds {type(model).__name__}, not a fitted model")
    return model


def _predicted(model: Any, rows: Table) -> np.ndarray:
    def labels(X: Any) -> np.ndarray:
        found = model.predict(X)
        return to_numpy(found) if is_torch(found) else np.asarray(found)

    return np.concatenate(list(by_batches(labels, rows, "predicting")))
