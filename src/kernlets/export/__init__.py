"""Fitted models outside Python, in the format ONNX."""

from __future__ import annotations

from .graph import ExportError
from .onnx import to_onnx

__all__ = ["ExportError", "to_onnx"]
