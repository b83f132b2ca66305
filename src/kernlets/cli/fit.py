"""The work of `kernlets fit`: it checks, reads, splits, fits, saves and prints.

`split_rows` holds rows out for ``--holdout``.
"""

from __future__ import annotations

import re
import time
import warnings
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_outlier_detector
from sklearn.pipeline import Pipeline

from ..base.pipelines import last_step, steps_of, takes_missing
from ..base.row_names import set_row_names
from ..classifiers import AutoDictionaryClassifier
from ..data.block_loop import report_rows_to
from ..data.missing import has_missing
from ..data.rows import count_rows
from ..datasets import Table
from ..imputation import DictionaryImputer
from ..io.data_file import list_names, list_texts, short_text
from ..io.image_folder import size_in_pixels
from ..io.text_layout import is_number
from ..numerics.text import size_text
from .input_data import Columns, Source, count_features, name_of, rows_progress
from .memory import suit_memory
from .model_info import IMAGES, atoms_text, show_facts
from .output_files import check_model, save_or_rescue
from .recipe import IMAGE_METHOD, KERNELS, METHOD, Recipe
from .use import check_labels, score_facts


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
    is_default = recipe.method is None
    recipe, scaling = recipe.suited_to(train)
    model = recipe.build(train.y is not None, has_missing(train.X))
    changes = suit_memory(model, train, recipe.method or METHOD)
    if is_default and recipe.method == IMAGE_METHOD:
        changes["method"] = f"{IMAGE_METHOD} (images with labels; --method changes it)"
    if is_classifier(model) and isinstance(train.y, np.ndarray):
        _check_classes(source.name, train.y)
    columns = Columns.of_rows(source.name, train, takes_missing(model))
    held_out, numbers = None, None
    if test is not None:
        labelled = is_classifier(model)
        held_out = source.beside(test).read(columns, labelled)
        if labelled:
            check_labels(name_of(test), held_out.y, train.y)
    if holdout is not None:
        numbers, score_numbers = split_rows(train, holdout, recipe.seed)
        held_out = _take_rows(train, score_numbers)
        train = _take_rows(train, numbers)
    start = time.perf_counter()
    fit_with_progress(model, train.X, train.y, count_rows(train.X), quiet)
    seconds = time.perf_counter() - start
    row_names = numbers if train.files is None else train.files
    best_rows = getattr(model, "best_rows_", None)  # a search may have time for some
    if best_rows is not None:
        row_names = best_rows if row_names is None else row_names[best_rows]
    search = search_facts(model)
    model = getattr(model, "best_pipeline_", model)
    first_step = steps_of(model)[0]
    set_row_names(first_step, row_names)
    if columns.names is not None:  # where scikit-learn stores those of a dataframe
        first_step.feature_names_in_ = np.array([*columns.names], dtype=object)
    columns_used = column_facts(train, is_classifier(model))
    if train.image_shape is not None:
        columns_used[IMAGES] = f"{size_in_pixels(train.image_shape)} pixels"
    notes = {"data": Path(source.name).name, "rows": str(count_rows(train.X))}
    notes |= columns_used
    save_or_rescue(model, path, notes)  # before anything else can fail
    facts = {}
    if not quiet:
        facts = columns_used | search | changes
        facts |= _fit_facts(model, train, seconds, path, recipe, str(scaling))
    if held_out:
        scores = score_facts(model, held_out)
        facts |= scores
        measured_on = "rows that were held out" if test is None else test.name
        save_or_rescue(model, path, notes | scores | {"measured on": measured_on})
    show_facts(facts)


def _check_classes(name: str, labels: np.ndarray) -> None:
    """Refuse labels that are measurements; warn if no two rows have the same label."""
    classes = np.unique(labels)
    if len(classes) and all(is_number(str(label)) for label in classes):
        fractions = [str(label) for label in classes if float(label) % 1 != 0]
        if fractions:
            raise ValueError(
                f"{name}: labels such as {fractions[0]} are measurements, not classes: "
                "name the column of classes with --label, or write classes as words"
            )
    if 1 < len(classes) == len(labels):
        warnings.warn(
            f"{name}: every row has a label of its own: name the column of classes "
            "with --label"
        )


def fit_with_progress(
    model: Any, X: Any, y: Any, n_rows: int | None, quiet: bool
) -> None:
    """Fit a model, and count the rows that loops process meanwhile.

    The number of passes of a map is unknown; a learner makes one pass per iteration, so
    the remaining time is known.
    """
    learner = getattr(last_step(model), "learner", None) or last_step(model)
    n_iter = getattr(learner, "max_iter", 1)
    if not isinstance(n_iter, int):
        n_iter = 1  # fit will refuse it
    total, title = n_rows and n_rows * n_iter, "learning"
    if isinstance(last_step(model), AutoDictionaryClassifier):
        total, title = None, "searching"
    with rows_progress("fitting", total, quiet) as bar, report_rows_to(bar.advance):
        for name, step in model.steps[:-1] if isinstance(model, Pipeline) else ():
            bar.begin(name)
            X = step.fit_transform(X, y)
        bar.begin(title, total)
        last_step(model).fit(X, y)


def column_facts(rows: Table, uses_labels: bool) -> dict[str, str]:
    """Return the columns that are labels, text and left out as facts."""
    facts = {}
    if rows.label_name is not None:
        unused = " (left out; --keep makes it a feature)"
        facts["label"] = f"{rows.label_name!r}{'' if uses_labels else unused}"
    if rows.text_columns:
        counts = [
            f"{short_text(name)!r} ({len(values)} values)"
            for name, values in rows.text_columns.items()
        ]
        facts["text"] = f"{list_texts(counts)}, a column of 0 and 1 for each value"
    if rows.left_out:
        facts["left out"] = list_names([*rows.left_out])
    return facts


def kernel_text(model: Any, recipe: Recipe) -> str | None:
    """Return the kernel of a model, and whether it goes with the scaling; or None."""
    for part in [*steps_of(model), getattr(last_step(model), "learner", None)]:
        kernel = getattr(part, "kernel_", getattr(part, "kernel", None))
        if kernel is not None:
            is_default = recipe.kernel is None and recipe.scale in KERNELS
            advice = " (goes with the scaling; --kernel changes it)"
            text = re.sub(
                r"\d+\.\d+", lambda match: f"{float(match[0]):.4g}", f"{kernel}"
            )
            return text + (advice if is_default else "")
    return None


def _fit_facts(
    model: Any,
    rows: Table,
    seconds: float,
    path: Path,
    recipe: Recipe,
    scaling: str,
) -> dict[str, str]:
    facts = {"rows": f"{count_rows(rows.X)} of {count_features(rows)} features"}
    if has_missing(rows.X):
        is_imputed = isinstance(steps_of(model)[0], DictionaryImputer)
        treatment = "filled in over similar rows" if is_imputed else "taken as unknown"
        facts["missing"] = f"{np.isnan(rows.X).mean():.1%} of the cells, {treatment}"
    facts["scaling"] = scaling
    kernel = kernel_text(model, recipe)
    if kernel is not None:
        facts["kernel"] = kernel
    if is_outlier_detector(model):
        facts["outliers"] = f"{np.count_nonzero(last_step(model).labels_)} of these"
    elif rows.y is None:
        facts["classes"] = (
            "none: one dictionary for all rows (name labels with --label)"
        )
    else:
        facts["classes"] = str(len(model.classes_))
    return {
        **facts,
        "atoms": atoms_text(model),
        "training": f"{seconds:.2f} s",
        "model": f"{path} ({size_text(path.stat().st_size)})",
    }


def split_rows(rows: Table, share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of rows to fit and to score, by the shares of classes."""
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
    return fit_numbers, score_numbers


def _take_rows(rows: Table, row_numbers: np.ndarray) -> Table:
    files = None if rows.files is None else rows.files[row_numbers]
    return rows._replace(
        X=rows.X[row_numbers], y=np.asarray(rows.y)[row_numbers], files=files
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
