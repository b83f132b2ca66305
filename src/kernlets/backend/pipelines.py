"""Pipelines taken apart: the step that decides, and what it is given."""

from __future__ import annotations

from typing import Any

from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags


def last_step(model: Any) -> Any:
    """The learner or classifier at the end of a pipeline, or the model itself."""
    return model[-1] if isinstance(model, Pipeline) else model


def steps_of(model: Any) -> list[Any]:
    """The steps of a pipeline in order, or the model itself."""
    return list(model.named_steps.values()) if isinstance(model, Pipeline) else [model]


def before_last(model: Any, X: Any) -> Any:
    """Rows as the last step of a fitted pipeline gets them.

    Of a pipeline of one step scikit-learn makes an empty one, which cannot transform.
    """
    if not isinstance(model, Pipeline) or len(model) == 1:
        return X
    return model[:-1].transform(X)


def takes_gaps(model: Any) -> bool:
    """Whether a model takes missing values: of a pipeline, all steps that see them."""
    for step in steps_of(model):
        if not get_tags(step).input_tags.allow_nan:
            return False
        if fills_gaps(step):
            return True
    return True


def fills_gaps(step: Any) -> bool:
    """Whether nothing is missing behind a step: a feature map or an imputer."""
    is_imputer = type(step).__module__.startswith("sklearn.impute")
    return is_imputer or getattr(step, "_fills_gaps", False)
