"""`kernlets export`: a model as a file that runs without Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from ..export import to_onnx
from .model_parts import load_model
from .show import show_facts, size_text
from .targets import check_inputs, check_place


def export_model(
    path: Path, output: Path, dtype: str | None = None, force: bool = False
) -> None:
    """Write a model for other programs, and say what it takes and gives."""
    if output.suffix.lower() != ".onnx":
        raise typer.BadParameter(f"{output} must end in .onnx", param_hint="--output")
    check_place(output)
    check_inputs(output, (path,), force)
    made = to_onnx(load_model(path), output, dtype=dtype).graph
    facts = {
        "input": _tensor_text(made.input[0]),
        "outputs": ", ".join(_tensor_text(each) for each in made.output),
        "operations": str(len(made.node)),
        "file": f"{output} ({size_text(output.stat().st_size)})",
    }
    show_facts(facts)


def _tensor_text(tensor: Any) -> str:
    """A name with its sizes."""
    sizes = (str(d.dim_param or d.dim_value) for d in tensor.type.tensor_type.shape.dim)
    return f"{tensor.name} ({' x '.join(sizes)})"
