"""Findings as plain text: a line for each run, a table for each exhibit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ..bench.tables import Table
from .findings import VERDICTS, Findings, Row, findings
from .records import Record
from .spec import Exhibit

HEADER = ("", "", "published", "ours", "±", "seeds", "difference", "verdict")


def line_of(record: Record) -> str:
    """One run: its name, and its seconds or why there is no result."""
    if record.skipped:
        return f"{record.cell.title}: left out, {record.skipped}"
    if record.error:
        return f"{record.cell.title}: FAILED, {record.error}"
    return f"{record.cell.title}: {record.seconds:.1f} s"


def tables(wanted: Iterable[Exhibit], records: list[Record], scale: str) -> str:
    """All exhibits, one after another."""
    found = (findings(exhibit, records, scale) for exhibit in wanted)
    return "\n\n".join(_section(each) for each in found)


def _section(found: Findings) -> str:
    exhibit = found.exhibit
    title = f"{exhibit.name}: {exhibit.title} ({exhibit.metric.label})"
    claims = [f"{held(claim.holds)}: {claim.text}" for claim in found.claims]
    reasons = [f"left out: {reason}" for reason in found.skipped]
    some = [row for row in found.rows if row.x in found.few_places]
    shown = found.compared or some
    table = Table(HEADER, [cells(row) for row in shown]).filled()
    lines = [table.text()] if table.rows else []
    return "\n".join([title, *lines, *claims, *reasons, verdict_of(found)])


def cells(row: Row) -> tuple[str, ...]:
    """The entries of a row, as text."""
    return (
        row.series,
        place(row.x),
        number(row, row.printed),
        number(row, row.mean),
        number(row, row.spread),
        str(len(row.values) or ""),
        signed(row),
        verdict_text(row),
    )


def verdict_text(row: Row) -> str:
    """The verdict with its reason, or that nothing was measured."""
    if not row.values:
        return "not measured"
    return f"{row.verdict}: {row.why}" if row.why and row.verdict else row.verdict


def matrix(found: Findings) -> Iterator[tuple[str, ...]]:
    """Everything that was measured: a header, then a line for each curve."""
    also, places = found.exhibit.also, found.few_places
    names = [place(x) or "any" for x in places]
    yield "ours", *([found.exhibit.metric.label] if places == [None] else names), *also
    for series in found.points.series:
        curve = found.curve(series)
        numbers = (spread(curve[x]) if x in curve else "" for x in places)
        yield series, *numbers, *(extra(found, series, key) for key in also)


def spread(row: Row) -> str:
    """Mean and standard deviation."""
    deviation = f" ± {number(row, row.spread)}" if row.spread is not None else ""
    return number(row, row.mean) + deviation


def extra(found: Findings, series: str, key: str) -> str:
    """Mean of a further value over all runs of a curve."""
    name = found.exhibit.series
    values = [
        record.values[key]
        for record in found.records
        if key in record.values and str(record.cell.case.get(name, name)) == series
    ]
    return f"{sum(values) / len(values):.3g}" if values else ""


def place(x: Any) -> str:
    return "" if x is None else f"{x:g}" if isinstance(x, float) else str(x)


def number(row: Row, value: float | None) -> str:
    return "" if value is None else row.metric.written(value)


def signed(row: Row) -> str:
    """The difference with its sign."""
    value = row.difference
    return "" if value is None else f"{value:+.{row.metric.digits}f}"


def held(holds: bool | None) -> str:
    return {True: "holds", False: "does not hold", None: "not measured"}[holds]


def verdict_of(found: Findings) -> str:
    """Counts of the verdicts on one line."""
    counts = found.verdicts
    parts = [f"{counts[name]} {name}" for name in VERDICTS if counts[name]]
    return ", ".join(parts) or "nothing to compare"
