"""Fitted models outside Python: ONNX, and a page to draw on."""

from __future__ import annotations

from .errors import ExportError
from .files import to_onnx
from .page import to_page

__all__ = ["ExportError", "to_onnx", "to_page"]
