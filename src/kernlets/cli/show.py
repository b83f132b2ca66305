"""Prints facts, tables of registered classes, and the content of model files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.table import Table

from ..backend.names import guess
from ..backend.text import printable, size_text
from ..datasets.table_types import list_names
from ..persistence import info
from ..registry import TABLES, summary, table
from .model_parts import reading_model

MAX_CLASSES = 10  # classes named by `info` before it only counts
OTHER_NAMES = {"samplers": "landmarks", "coders": "pursuits"}


def show_facts(facts: dict[str, str]) -> None:
    """Print names and values, one pair on each line."""
    printable_facts = {printable(name): value for name, value in facts.items()}
    width = max(map(len, printable_facts), default=0)
    for name, value in printable_facts.items():
        typer.echo(f"{name:<{width}}  {printable(value)}")


def file_facts(path: Path) -> dict[str, Any]:
    """Return the content of a model file in words, with its `arrays` and `notes`."""
    with reading_model(path):
        content = info(path)
    return {
        "model": content["model"],
        "features": _features_text(content["n_features"], content["feature_names"]),
        "classes": _classes_text(content["classes"]),
        "written by": f"kernlets {content['library_version']}, "
        f"scikit-learn {content['sklearn_version']}",
        "format": f"{content['format']}, version {content['format_version']}",
        "size": size_text(content["bytes"]),
        "sha256": content["checksum"],
        "arrays": content["arrays"],
        "notes": content["notes"],
    }


def show_info(path: Path) -> None:
    """Print the content of a model file."""
    facts = file_facts(path)
    arrays, notes = facts.pop("arrays"), facts.pop("notes")
    show_facts(facts | notes | {"arrays": str(len(arrays))})
    for name, shape in arrays.items():
        typer.echo(f"  {shape:<20}  {printable(name)}")


def _features_text(count: int | None, names: list[str] | None) -> str:
    if names is None:
        return f"{count}, by position"
    return f"{count}, by name: {list_names(names)}"


def _classes_text(classes: list[Any] | None) -> str:
    if classes is None:
        return "none"
    names = ", ".join(map(str, classes[:MAX_CLASSES]))
    return f"{len(classes)}: {names}{', ...' if len(classes) > MAX_CLASSES else ''}"


def show_tables(kind: str | None) -> None:
    """Print all registered classes, or those of one kind."""
    kinds = list(TABLES) if kind is None else [OTHER_NAMES.get(kind, kind)]
    if kinds[0] not in TABLES:
        hint = guess(kinds[0], TABLES)
        raise typer.BadParameter(
            f"{hint}choose from {', '.join(TABLES)}", param_hint="KIND"
        )
    console = Console(highlight=False)
    for table_name in kinds:
        grid = Table.grid(padding=(0, 2))
        for name, entry in table(table_name).items():
            grid.add_row(f"  {name}", summary(entry))
        console.print(f"[bold]{table_name}[/bold]")
        console.print(grid)
