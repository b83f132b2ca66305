"""The parts of a model that commands ask for."""

from __future__ import annotations

from typing import Any

from sklearn.pipeline import Pipeline


def last_step(model: Any) -> Any:
    """The learner or classifier at the end of a pipeline, or the model itself."""
    return model[-1] if isinstance(model, Pipeline) else model


def fitted_learners(model: Any) -> list[Any]:
    """The fitted learners of a model: one, or one for each class."""
    last = last_step(model)
    return getattr(last, "learners_", [last])
