"""Tables of what was measured on a GPU, from records in ``docs/benchmarks``.

``python -m benchmarks.gpu`` and ``python -m benchmarks.giants`` write them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .tables import Table

Row = dict[str, Any]

PARTS = {"gpu": "gpu.json", "giants": "giants-gpu.json"}
SECONDS = ("seconds", "seconds per iteration", "mini-batches, seconds", "fit seconds")


def gpu_part(name: str, folder: Path) -> str:
    """The table of this name, with the machine it was measured on."""
    path = folder / PARTS[name]
    if not path.exists():
        command = f"python -m benchmarks.{name} --out {path.name}"
        return f"There is no record yet: `{command}`."
    record = json.loads(path.read_text("utf-8"))
    head, line = _COLUMNS[name]
    table = Table(head, [line(row) for row in record["rows"] if "failed" not in row])
    machine = f"One {record['device']}, torch {record['torch']}."
    return f"{machine}\n\n{table.markdown()}"


def _gpu_line(row: Row) -> list[str]:
    name, size = row["job"], row.get("size")
    if size:
        name = f"{name}, {size[1]} features, {size[2]} atoms, {size[3]} non-zeros"
    share = f"{100 * row['accuracy']:.2f} %" if "accuracy" in row else ""
    if "least" in row:
        share += f" ({100 * row['least']:.2f} to {100 * row['most']:.2f})"
    rows = size[0] if size else row["rows"]
    return [name, f"{rows:,}".replace(",", " "), f"{row['seconds']:.3g}", share]


def _giants_line(row: Row) -> list[str]:
    seconds = next(row[name] for name in SECONDS if name in row)
    numbers = [f"{number:,}".replace(",", " ") for number in row["size"]]
    if row["job"] == "landmarks":
        numbers[2:] = ["", ""]
    peak = row.get("peak GiB", row.get("mini-batches, peak GiB"))
    return [row["job"], *numbers, f"{seconds:.3g}", f"{peak:.1f}", _note(row)]


def _note(row: Row) -> str:
    if row["job"] == "disk":
        rate, flow = row["rate"], row["GB per second"]
        return f"{rate:.2f} of the rate in memory; {flow:.1f} GB/s"
    if row["job"] == "batches":
        full = row["full update, seconds"]
        return (
            f"{row['passes']} passes; error {row['errors']:.2f} times that of the full "
            f"update, which takes {full:.2g} s"
        )
    if row["job"] == "landmarks":
        of = f"{row['size'][2]} landmarks, {row['size'][3]} components"
        return f"{of}; fit; transform of all rows {row['transform seconds']:.2g} s"
    if "same support" in row:
        return f"product alone {row['product']:.3f} s"
    return ""


_COLUMNS: dict[str, tuple[list[str], Callable[[Row], list[str]]]] = {
    "gpu": (["job", "rows", "seconds", "accuracy"], _gpu_line),
    "giants": (
        [
            "job",
            "rows",
            "features",
            "atoms",
            "non-zeros",
            "seconds",
            "peak beside the data, GiB",
            "",
        ],
        _giants_line,
    ),
}
