"""The work of `kernlets fit`: check, read, fit, save, print the results."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import typer
from sklearn.base import is_classifier, is_outlier_detector

from ..backend.masks import has_missing
from ..backend.pipelines import last_step, steps_of, takes_gaps
from ..backend.row_names import set_row_names
from ..backend.rows import count_rows
from ..backend.text import size_text
from ..config import options
from ..datasets import Table
from ..datasets.header import is_number
from ..imputers import DictionaryImputer
from .apply import score_facts
from .build import Recipe
from .holdout import chosen, fitted_rows, search_facts, split_rows
from .input_rows import Columns, Source, connected, width
from .labels import check_labels
from .memory import suit_memory
from .model_parts import atoms_text, first_step, note_feature_names
from .progress import fit_watched
from .show import show_facts
from .standard_input import name_of
from .targets import check_checkpoints, check_model, save_or_rescue


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
    changes |= {"device": device, "checkpoint": checkpoint}
    given = {name: v for name, v in changes.items() if v is not None}
    with options(**given), connected(scheduler):
        yield


def check_resume(
    checkpoint: Path | None, resume: bool, files: Iterable[Path | None] = ()
) -> None:
    """Refuse to resume from nothing, and to mix with the checkpoints of another fit.

    The folder must not be one of the files that the command reads and writes.
    """
    if checkpoint is None:
        if resume:
            raise typer.BadParameter("needs --checkpoint DIR", param_hint="--resume")
    elif not resume and next(checkpoint.rglob("*.checkpoint"), None) is not None:
        raise ValueError(
            f"{checkpoint}: holds the checkpoints of a fit: add --resume to go on with "
            "it, or name another folder"
        )
    check_checkpoints(checkpoint, files)


def fit_model(
    recipe: Recipe,
    source: Source,
    path: Path,
    test: Path | None,
    quiet: bool,
    force: bool = False,
    holdout: float | None = None,
) -> None:
    """Fit, save and print the results. All input is read before the fit begins."""
    check_model(path, force)
    if test is not None and holdout is not None:
        raise ValueError("--test and --holdout are two ways to score: give one of them")
    train = source.read()
    recipe, scaling = recipe.scaled_for(train)
    model = recipe.build(train.y is not None, has_missing(train.X))
    changes = suit_memory(model, train, recipe.method)
    if is_classifier(model) and isinstance(train.y, np.ndarray):
        _check_classes(source.name, train.y)
    columns = _told_columns(source.name, train, takes_gaps(model))
    held_out, numbers = None, None
    if test is not None:
        labelled = is_classifier(model)
        held_out = source.beside(test).read(columns, labelled)
        if labelled:
            check_labels(name_of(test), held_out.y, train.y)
    if holdout is not None:
        train, numbers, held_out = split_rows(train, holdout, recipe.seed)
    began = time.perf_counter()
    fit_watched(model, train.X, train.y, count_rows(train.X), quiet)
    seconds = time.perf_counter() - began
    names = fitted_rows(model, numbers if train.files is None else train.files)
    found, model = search_facts(model), chosen(model)
    set_row_names(first_step(model), names)
    note_feature_names(model, columns.names)
    notes = {"data": Path(source.name).name, "rows": str(count_rows(train.X))}
    save_or_rescue(model, path, notes)  # before anything else can fail
    facts = {}
    if not quiet:
        facts = found | changes | _fit_facts(model, train, seconds, path, str(scaling))
    if held_out:
        scores = score_facts(model, held_out)
        facts |= scores
        others = "rows that were held out" if test is None else test.name
        save_or_rescue(model, path, notes | scores | {"measured on": others})
    show_facts(facts)


def _check_classes(name: str, labels: np.ndarray) -> None:
    """Refuse labels that are measurements, and say where no two rows share one."""
    classes = np.unique(labels)
    if len(classes) and all(is_number(str(label)) for label in classes):
        broken = [str(label) for label in classes if float(label) % 1 != 0]
        if broken:
            raise ValueError(
                f"{name}: labels such as {broken[0]} are measurements, not classes: "
                "name the column of classes with --label, or write classes as words"
            )
    if 1 < len(classes) == len(labels):
        warnings.warn(
            f"{name}: every row has a label of its own: name the column of classes "
            "with --label"
        )


def _told_columns(name: str, rows: Table, gaps: bool) -> Columns:
    """The columns of training rows, with a warning if their names cannot be used."""
    columns = Columns.of_rows(rows, gaps)
    if columns.names is None and rows.feature_names is not None:
        warnings.warn(
            f"{name}: some columns have the same name: the model will match columns by "
            "position"
        )
    return columns


def _fit_facts(
    model: Any, rows: Table, seconds: float, path: Path, scaling: str
) -> dict[str, str]:
    return {
        "rows": f"{count_rows(rows.X)} of {width(rows)} features",
        **_gap_facts(model, rows),
        "scaling": scaling,
        **_kind_facts(model, rows),
        "atoms": atoms_text(model),
        "training": f"{seconds:.2f} s",
        "model": f"{path} ({size_text(path.stat().st_size)})",
    }


def _gap_facts(model: Any, rows: Table) -> dict[str, str]:
    """How many cells were empty, and what was done about it."""
    if not has_missing(rows.X):
        return {}
    filled = isinstance(steps_of(model)[0], DictionaryImputer)
    how = "filled in over similar rows" if filled else "taken as unknown"
    return {"missing": f"{np.isnan(rows.X).mean():.1%} of the cells, {how}"}


def _kind_facts(model: Any, rows: Table) -> dict[str, str]:
    """Classes, or the outliers that were found."""
    if is_outlier_detector(model):
        return {"outliers": f"{np.count_nonzero(last_step(model).labels_)} of these"}
    unlabelled = "none: one dictionary for all rows (name labels with --label)"
    return {"classes": unlabelled if rows.y is None else str(len(model.classes_))}
