"""``kernlets bench`` on the terminal."""

from __future__ import annotations

import json
from pathlib import Path

from rich.console import Console
from rich.table import Table

from ..backend.atomic import atomic_write
from ..datasets.locations import DatasetNotFoundError
from ..lab.bench.machine import machine, versions
from ..lab.speed import Row, as_json, run


def show_bench(device: str | None, quick: bool, output: Path | None) -> None:
    """Run all jobs, print the table, and write JSON where asked."""
    console, rows = Console(), []
    with console.status("measuring"):
        try:
            for row in run(device, quick):
                rows.append(row)
                console.print(f"{row.job}, {row.size}: {row.seconds:.4g} s")
        except DatasetNotFoundError as error:
            console.print(f"left out, no data: {error}")
    console.print(_table(rows, device))
    if output is not None:
        about = {"device": device or "cpu", "quick": quick}
        about |= {"machine": machine(), "versions": versions()}
        with atomic_write(output) as file:
            file.write(json.dumps(as_json(rows, **about), indent=1).encode())


def _table(rows: list[Row], device: str | None) -> Table:
    table = Table(title=f"on {device or 'cpu'}; floor: the matrix products alone")
    for name in ("job", "size"):
        table.add_column(name)
    for name in ("seconds", "floor", "times floor", "accuracy"):
        table.add_column(name, justify="right")
    for row in rows:
        accuracy = "" if row.accuracy is None else f"{100 * row.accuracy:.2f} %"
        numbers = (row.seconds, row.floor, row.over_floor)
        table.add_row(row.job, row.size, *(f"{x:.4g}" for x in numbers), accuracy)
    return table
