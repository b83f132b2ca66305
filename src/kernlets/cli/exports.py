"""`kernlets export`: a model as a file that runs without Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from ..export import to_onnx
from .model_parts import load_model
from .show import show_facts, size_text
from .targets import check_inputs, check_place

ONNX = ".onnx"


def export_model(
    path: Path, output: Path, dtype: str | None = None, force: bool = False
) -> None:
    """Write a model for runtimes of ONNX, and show its input and outputs."""
    if output.suffix.lower() != ONNX:
        message = f"{output} must end in {ONNX}"
        raise typer.BadParameter(message, param_hint="--output")
    check_place(output)
    check_inputs(output, (path,), force)
    graph = to_onnx(load_model(path), output, dtype=dtype).graph
    show_facts(
        {
            "input": _tensor_text(graph.input[0]),
            "outputs": ", ".join(map(_tensor_text, graph.output)),
            "operations": str(len(graph.node)),
            "file": f"{output} ({size_text(output.stat().st_size)})",
        }
    )


def _tensor_text(tensor: Any) -> str:
    """A name with its sizes."""
    sizes = (str(d.dim_param or d.dim_value) for d in tensor.type.tensor_type.shape.dim)
    return f"{tensor.name} ({' x '.join(sizes)})"
