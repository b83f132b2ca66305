"""The steps of pipelines: the last one, and the rows that it gets."""

from __future__ import annotations

from typing import Any

from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags


def last_step(model: Any) -> Any:
    """Return the learner or classifier at the end of a pipeline, or the model."""
    return model[-1] if isinstance(model, Pipeline) else model


def steps_of(model: Any) -> list[Any]:
    """Return the steps of a pipeline in order, or the model itself."""
    return list(model.named_steps.values()) if isinstance(model, Pipeline) else [model]


def before_last(model: Any, X: Any) -> Any:
    """Return the rows that the last step of a fitted pipeline gets.

    scikit-learn slices a pipeline of one step to an empty one, which cannot transform.
    """
    if not isinstance(model, Pipeline) or len(model) == 1:
        return X
    return model[:-1].transform(X)


def takes_missing(model: Any) -> bool:
    """Whether a model takes missing values; in a pipeline each step that gets them."""
    for step in steps_of(model):
        if not get_tags(step).input_tags.allow_nan:
            return False
        if fills_missing(step):
            return True
    return True


def fills_missing(step: Any) -> bool:
    """Whether a step fills in missing values, as feature maps and imputers do."""
    is_imputer = type(step).__module__.startswith("sklearn.impute")
    return is_imputer or getattr(step, "_fills_missing", False)
