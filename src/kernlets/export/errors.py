"""What cannot be exported, and what to do instead."""

from __future__ import annotations

from typing import Any


class ExportError(TypeError):
    """A part of a model has no form outside Python."""


def refusal(part: Any, advice: str) -> ExportError:
    """An error that names the part."""
    name = part if isinstance(part, str) else type(part).__name__
    return ExportError(f"{name} cannot be exported: {advice}")
