"""Tables for terminals and Markdown, from the same rows of text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

Side = Literal["left", "right"]
WIDE = 200  # width of an output that is not a terminal


@dataclass(frozen=True)
class Table:
    """A header and rows of text; the first column names the rows."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    title: str = ""

    def filled(self) -> Table:
        """Without the columns that are empty throughout; the first one stays."""
        keep = [j == 0 or any(r[j] for r in self.rows) for j in range(len(self.header))]

        def kept(line: Sequence[str]) -> list[str]:
            return [cell for cell, kept in zip(line, keep, strict=True) if kept]

        return Table(kept(self.header), [kept(row) for row in self.rows], self.title)

    def markdown(self) -> str:
        lines = (self.header, ["---"] * len(self.header), *self.rows)
        return "\n".join(f"| {' | '.join(map(_escaped, line))} |" for line in lines)

    def text(self) -> str:
        """Columns as wide as their longest entry; first and last are flush left."""
        columns = list(zip(self.header, *self.rows, strict=True))
        padded = []
        for index, column in enumerate(columns):
            width = max(map(len, column))
            left = index in (0, len(columns) - 1)
            padded.append([c.ljust(width) if left else c.rjust(width) for c in column])
        lines = zip(*padded, strict=True)
        return "\n".join("  " + "  ".join(line).rstrip() for line in lines)

    def rich(self, left: int | None = None, no_wrap: bool = False, **look: Any) -> Any:
        """The table of the library rich; columns after the first `left` flush right."""
        from rich.table import Table as RichTable

        table = RichTable(title=self.title or None, title_justify="left", **look)
        for index, name in enumerate(self.header):
            side: Side = "left" if left is None or index < left else "right"
            table.add_column(name, justify=side, no_wrap=no_wrap)
        for row in self.rows:
            table.add_row(*row)
        return table

    def print(self) -> None:
        """Print the table, in full width if there is no terminal."""
        from rich.console import Console

        console = Console()
        if not console.is_terminal:
            console.width = WIDE
        console.print(self.rich())


def _escaped(cell: str) -> str:
    return cell.replace("|", "∣")
