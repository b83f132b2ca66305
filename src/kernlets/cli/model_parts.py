"""Loads models, and finds their steps, learners and names of features."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import is_outlier_detector
from sklearn.pipeline import Pipeline

from ..backend.pipelines import last_step
from ..outliers import SampledDictionaries
from ..persistence import ModelFileError, is_model, load


@contextmanager
def reading_model(path: Path) -> Iterator[None]:
    """Explain errors of reading a model: a missing file, or one that is no model."""
    if not path.exists():
        raise ValueError(
            f"{path}: there is no such model: check the path, or write one with "
            f"`kernlets fit DATA -m {path}`"
        )
    if path.is_dir():
        raise ValueError(f"{path}: is a folder: give MODEL, a file, before DATA")
    try:
        yield
    except ModelFileError as error:
        if is_model(path):  # a damaged one says so itself
            raise
        raise ValueError(
            f"{path}: is not a model file: give MODEL before DATA, or write one with "
            "`kernlets fit`"
        ) from error


def load_model(path: Path) -> Any:
    """Load a fitted model from a file."""
    with reading_model(path):
        model = load(path)
    if not hasattr(model, "n_features_in_"):
        raise ValueError(f"{path}: holds {type(model).__name__}, not a fitted model")
    return model


def first_step(model: Any) -> Any:
    """Return the first step of a pipeline, or the model itself."""
    return model[0] if isinstance(model, Pipeline) else model


def fitted_learners(model: Any) -> list[Any]:
    """Return the fitted learners of a model: one, or one for each class."""
    last = last_step(model)
    if is_outlier_detector(last):
        last = last_step(last.learner_)
    return getattr(last, "learners_", [last])


def atoms_text(model: Any) -> str:
    """Say how many atoms the dictionaries of a model have."""
    learners = fitted_learners(model)
    if isinstance(learners[0], SampledDictionaries):
        return "{1} in each of {0} dictionaries".format(*learners[0].atoms_.shape)
    counts = [learner.dictionary_.n_atoms for learner in learners]
    atoms = "-".join(map(str, sorted({min(counts), max(counts)})))
    return f"{atoms} for each class" if len(counts) > 1 else atoms


def feature_names(model: Any) -> tuple[str, ...] | None:
    """Return the names of the columns that a model was fitted to, if they had any."""
    names = getattr(model, "feature_names_in_", None)
    return None if names is None else tuple(map(str, names))


def note_feature_names(model: Any, names: Sequence[str] | None) -> None:
    """Store names of columns where scikit-learn stores those of a dataframe."""
    if names is not None:
        first_step(model).feature_names_in_ = np.array([*names], dtype=object)


def has_codes(model: Any) -> bool:
    """Whether the model represents rows by sparse codes that can be written."""
    last = last_step(model)
    if is_outlier_detector(last):
        return False
    return all(hasattr(learner, "encode") for learner in fitted_learners(model))
