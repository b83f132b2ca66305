"""Findings as plain text: a line for each run, a table for each exhibit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from benchmarks.harness.tables import Table

from .findings import Findings, findings
from .judge import UNDECIDED, Interval
from .records import Record, Records
from .settings import Setting
from .spec import Exhibit
from .verdicts import VERDICTS, Judged, Row, bounds

HEADER = (
    "",
    "",
    "published",
    "ours",
    "±",
    "seeds",
    "difference",
    "95 % interval",
    "rule",
    "verdict",
)
PAGE_HEADER = (
    "",
    "published",
    "ours (seeds)",
    "difference (95 % interval)",
    "verdict",
    "rule",
    "note",
)


def line_of(record: Record) -> str:
    """One run: its name, and its seconds or why there is no result."""
    if record.skipped:
        return f"{record.cell.title}: left out, {record.skipped}"
    if record.error:
        return f"{record.cell.title}: FAILED, {record.error}"
    return f"{record.cell.title}: {record.seconds:.1f} s"


def tables(wanted: Iterable[Exhibit], records: Records, scale: str) -> str:
    """All exhibits, one after another."""
    known, sessions = records.read(), records.sessions()
    found = (findings(exhibit, known, scale, sessions) for exhibit in wanted)
    return "\n\n".join(_section(each) for each in found)


def _section(found: Findings) -> str:
    exhibit = found.exhibit
    title = f"{exhibit.name}: {exhibit.title} ({exhibit.metric.label})"
    some = [row for row in found.rows if row.x in found.few_places]
    numbers = Table(HEADER, [cells(row) for row in found.compared or some]).filled()
    claims = Table(HEADER, [claim_cells(claim) for claim in found.claims]).filled()
    shown = [table.text() for table in (numbers, claims) if table.rows]
    reasons = [f"left out: {reason}" for reason in found.skipped]
    return "\n".join([title, *shown, *reasons, verdict_of(found)])


def cells(row: Row) -> tuple[str, ...]:
    """The entries of a number's line, as text."""
    return (
        row.series,
        place(row.x),
        number(row, row.printed),
        number(row, row.mean),
        number(row, row.spread),
        str(len(row.values) or ""),
        signed(row.difference, row.metric.digits),
        between(row.interval, row.metric.digits),
        row.rule,
        verdict_text(row.verdict, row.why, len(row.values)),
    )


def claim_cells(judged: Judged) -> tuple[str, ...]:
    """The entries of a claim's line: the part that decides, and the bound on it."""
    claim, found = judged.claim, judged.found
    seeds = 0 if found is None else found.seeds
    why = "; ".join(filter(None, (judged.why, claim.repeats)))
    verdict = verdict_text(judged.verdict, why, seeds)
    if found is None:
        return claim.text, "", bounds(claim), *[""] * 6, verdict
    bound = min((claim.at_least, claim.at_most), key=lambda at: abs(at - found.mean))
    return (
        claim.text,
        found.part,
        bounds(claim),
        f"{found.mean:.{claim.digits}f}",
        "",
        str(found.seeds),
        signed(found.mean - bound, claim.digits),
        between(found.interval, claim.digits),
        judged.rule,
        verdict,
    )


def page_table(lines: Sequence[tuple[str, ...]], first: str = "") -> str:
    """Lines of `cells` or `claim_cells`, and a note, in columns that fit on a page.

    The most frequent rule stands below the table.
    """
    rules = Counter(line[8] for line in lines if line[8])
    usual = rules.most_common(1)[0][0] if rules else ""
    table = Table((first, *PAGE_HEADER), [_page_line(line, usual) for line in lines])
    text = table.filled().markdown()
    return f"{text}\n\nRule, unless a line names another: {usual}." if usual else text


def _page_line(line: tuple[str, ...], usual: str) -> tuple[str, ...]:
    name, where, published, ours, deviation, seeds, difference, interval = line[:8]
    rule, verdict, *note = line[8:]
    return (
        name,
        where,
        published,
        f"{ours}{f' ± {deviation}' * bool(deviation)}{f' ({seeds})' * bool(seeds)}",
        f"{difference} ({interval})" if interval else difference,
        verdict,
        "" if rule == usual else rule,
        *(note or [""]),
    )


def verdict_text(verdict: str, why: str, seeds: int) -> str:
    """The verdict with the number of seeds if they are too few, and the reason."""
    said = verdict
    if verdict == UNDECIDED:
        said += f" at {seeds} {'seed' if seeds == 1 else 'seeds'}"
    return f"{said}: {why}" if why else said


def matrix(found: Findings) -> Iterator[tuple[str, ...]]:
    """Everything that was measured: a header, then a line for each curve."""
    also, places, timed = found.exhibit.also, found.few_places, _timed(found)
    names = [place(x) or "any" for x in places]
    heads = [f"{key}, s ({setting})" for key, setting in timed]
    first = [found.exhibit.metric.label] if places == [None] else names
    yield "ours", *first, *also, *heads
    for series in found.points.series:
        curve = found.curve(series)
        numbers = (spread(curve[x]) if x in curve else "" for x in places)
        more = (extra(found, series, key) for key in also)
        seconds = (extra(found, series, *each) for each in timed)
        yield series, *numbers, *more, *seconds


def _timed(found: Findings) -> list[tuple[str, Setting]]:
    """Columns of seconds: what, and in which setting."""
    return [(key, each) for key in found.exhibit.seconds for each in found.settings]


def spread(row: Row) -> str:
    """Mean and standard deviation."""
    deviation = f" ± {number(row, row.spread)}" if row.spread is not None else ""
    return number(row, row.mean) + deviation


def extra(
    found: Findings, series: str, key: str, setting: Setting | None = None
) -> str:
    """Mean of a further value over all runs of a curve, or of those in a setting."""
    name = found.exhibit.series
    values = [
        record.values[key]
        for record in found.records
        if key in record.values and str(record.cell.case.get(name, name)) == series
        if setting is None or found.made.get(record.session) == setting
    ]
    return f"{sum(values) / len(values):.3g}" if values else ""


def place(x: Any) -> str:
    return "" if x is None else f"{x:g}" if isinstance(x, float) else str(x)


def number(row: Row, value: float | None) -> str:
    return "" if value is None else row.metric.written(value)


def signed(value: float | None, digits: int) -> str:
    """A difference with its sign."""
    return "" if value is None else f"{value:+.{digits}f}"


def between(interval: Interval | None, digits: int) -> str:
    """Both ends of an interval, with their signs."""
    if interval is None:
        return ""
    low, high = (signed(end, digits) for end in interval)
    return f"{low} to {high}"


def verdict_of(found: Findings) -> str:
    """Counts of the verdicts on one line."""
    counts = found.verdicts
    parts = [f"{counts[name]} {name}" for name in VERDICTS if counts[name]]
    return ", ".join(parts) or "nothing to compare"


def anchor(found: Findings) -> str:
    """Where the heading of an exhibit is on its page."""
    return found.exhibit.name.replace("/", "-").replace(".", "-")
