"""Output of commands on standard output: facts, line by line, and tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.table import Table

from ..backend.names import guess
from ..backend.text import printable, size_text
from ..datasets.table_types import listed
from ..persistence import info
from ..registry import TABLES, summary, table
from .model_parts import reading_model

SHOWN = 10  # classes named by `info` before it only counts
OTHER_NAMES = {"samplers": "landmarks", "coders": "pursuits"}


def show_facts(facts: dict[str, str]) -> None:
    """Names and values, one pair per line."""
    shown = {printable(name): value for name, value in facts.items()}
    width = max(map(len, shown), default=0)
    for name, value in shown.items():
        typer.echo(f"{name:<{width}}  {printable(value)}")


def file_facts(path: Path) -> dict[str, Any]:
    """What a model file holds, in words; besides, its `arrays` and `notes`."""
    with reading_model(path):
        found = info(path)
    return {
        "model": found["model"],
        "features": _features_text(found["n_features"], found["feature_names"]),
        "classes": _classes_text(found["classes"]),
        "written by": f"kernlets {found['library_version']}, "
        f"scikit-learn {found['sklearn_version']}",
        "format": f"{found['format']}, version {found['format_version']}",
        "size": size_text(found["bytes"]),
        "sha256": found["checksum"],
        "arrays": found["arrays"],
        "notes": found["notes"],
    }


def show_info(path: Path) -> None:
    """What a model file holds."""
    facts = file_facts(path)
    arrays, notes = facts.pop("arrays"), facts.pop("notes")
    show_facts(facts | notes | {"arrays": str(len(arrays))})
    for name, shape in arrays.items():
        typer.echo(f"  {shape:<20}  {printable(name)}")


def _features_text(count: int | None, names: list[str] | None) -> str:
    if names is None:
        return f"{count}, by position"
    return f"{count}, by name: {listed(names)}"


def _classes_text(classes: list[Any] | None) -> str:
    if classes is None:
        return "none"
    names = ", ".join(map(str, classes[:SHOWN]))
    return f"{len(classes)}: {names}{', ...' if len(classes) > SHOWN else ''}"


def show_tables(kind: str | None) -> None:
    """Everything registered, or everything of one kind."""
    kinds = list(TABLES) if kind is None else [OTHER_NAMES.get(kind, kind)]
    if kinds[0] not in TABLES:
        hint = guess(kinds[0], TABLES)
        raise typer.BadParameter(
            f"{hint}choose from {', '.join(TABLES)}", param_hint="KIND"
        )
    console = Console(highlight=False)
    for shown in kinds:
        grid = Table.grid(padding=(0, 2))
        for name, entry in table(shown).items():
            grid.add_row(f"  {name}", summary(entry))
        console.print(f"[bold]{shown}[/bold]")
        console.print(grid)
