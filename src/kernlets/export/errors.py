"""The error for what cannot be exported, which says what to do instead."""

from __future__ import annotations

from typing import Any


class ExportError(TypeError):
    """A part of a model has no form outside Python."""


def refusal(model_part: Any, advice: str) -> ExportError:
    """Return an error that names the part of the model and gives advice."""
    name = model_part if isinstance(model_part, str) else type(model_part).__name__
    return ExportError(f"{name} cannot be exported: {advice}")
