"""``kernlets reproduce`` and ``kernlets report`` on the terminal."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Table

from ..lab.papers.catalogue import PAPERS, chosen, exhibits
from ..lab.papers.records import Record, Records
from ..lab.papers.runner import Job, run
from ..lab.papers.show import show
from ..lab.papers.text import line_of, tables


def list_experiments() -> None:
    """Every experiment with what it shows, paper by paper."""
    table = Table(box=None, pad_edge=False)
    table.add_column("experiment", no_wrap=True)
    table.add_column("shows")
    for paper, title in PAPERS.items():
        table.add_row(f"[bold]{paper}[/bold]", f"[bold]{escape(title)}[/bold]")
        for name, exhibit in exhibits().items():
            if exhibit.paper == paper:
                table.add_row(f"  {name}", escape(exhibit.title))
    Console().print(table)


def reproduce(names: list[str], job: Job, out: Path) -> None:
    """Run, show tables, and write report, pages and figures beside the results."""
    wanted = chosen(names)
    failed = _run(names, job, out)
    console = Console(soft_wrap=True, highlight=False, markup=False)
    console.print(tables(wanted, Records(out), job.scale))
    for path in show(out, job.scale, out / "pages"):
        console.print(f"wrote {path}")
    if failed:
        raise ValueError(f"{len(failed)} runs failed, first {line_of(failed[0])}")


def _run(names: list[str], job: Job, out: Path) -> list[Record]:
    """The runs with a progress bar; those that failed."""
    failed: list[Record] = []
    with _progress() as bar:
        task = bar.add_task("runs", total=None)

        def report(record: Record, count: int, total: int) -> None:
            bar.update(task, completed=count, total=total, description=_short(record))
            failed.extend([record] if record.error else [])

        run(chosen(names), job, out, report)
    return failed


def _progress() -> Progress:
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    console = Console(stderr=True)
    text = TextColumn("{task.description:<44}")
    return Progress(text, *columns, console=console, transient=True)


def _short(record: Record) -> str:
    return escape(record.cell.title[:44])


def report(folder: Path, scale: str | None, pages: Path | None) -> None:
    """Write the report of a folder of results."""
    for path in show(folder, scale, pages):
        print(f"wrote {path}")
