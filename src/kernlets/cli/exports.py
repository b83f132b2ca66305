"""`kernlets export`: a model as a file that runs without Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from ..export import to_onnx, to_page
from .input_rows import Columns, Source
from .model_parts import load_model
from .show import show_facts, size_text
from .targets import check_inputs, check_place

ONNX, PAGE = ".onnx", ".html"


def export_model(
    path: Path,
    output: Path,
    examples: Source | None = None,
    dtype: str | None = None,
    force: bool = False,
) -> None:
    """Write a model for other programs, or as a page to draw on."""
    kind = output.suffix.lower()
    _check_request(kind, output, examples, dtype)
    check_place(output)
    inputs = (path,) if examples is None else (path, examples.path)
    check_inputs(output, inputs, force)
    model = load_model(path)
    facts = {}
    if kind == PAGE:
        rows = None if examples is None else examples.read(Columns.of_model(model))
        given = (None, None) if rows is None else (rows.X, rows.y)
        to_page(model, output, *given)
    else:
        facts = _facts(to_onnx(model, output, dtype=dtype).graph)
    show_facts(facts | {"file": f"{output} ({size_text(output.stat().st_size)})"})


def _check_request(
    kind: str, output: Path, examples: Source | None, dtype: str | None
) -> None:
    """Refuse a name of unknown format, and options of the other one."""
    if kind not in (ONNX, PAGE):
        message = f"{output} must end in {ONNX} or {PAGE}"
        raise typer.BadParameter(message, param_hint="--output")
    if kind == ONNX and examples is not None:
        raise typer.BadParameter(f"is for {PAGE} only", param_hint="--data")
    if kind == PAGE and dtype is not None:
        raise typer.BadParameter(f"is for {ONNX} only", param_hint="--dtype")


def _facts(made: Any) -> dict[str, str]:
    return {
        "input": _tensor_text(made.input[0]),
        "outputs": ", ".join(_tensor_text(each) for each in made.output),
        "operations": str(len(made.node)),
    }


def _tensor_text(tensor: Any) -> str:
    """A name with its sizes."""
    sizes = (str(d.dim_param or d.dim_value) for d in tensor.type.tensor_type.shape.dim)
    return f"{tensor.name} ({' x '.join(sizes)})"
