"""Findings in short: an exhibit as one table, all papers as another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from benchmarks.harness.tables import Table

from .catalogue import PAPERS
from .findings import Findings
from .judge import BETTER, FAILS, HOLDS, MISMATCH, REPRODUCED, UNDECIDED, WORSE
from .text import number, place, spread, verdict_of
from .verdicts import CALIBRATED, NOT_COMPARABLE, NOT_MEASURED, Row

#: Verdicts in short: the heading of a column, and what is counted in it.
IN_SHORT = {
    "confirmed": (REPRODUCED, HOLDS),
    "better": (BETTER,),
    "worse or fails": (WORSE, FAILS),
    "does not match": (MISMATCH,),
    "undecided": (UNDECIDED,),
    "not judged": (CALIBRATED, NOT_COMPARABLE, NOT_MEASURED),
}


def exhibit_table(found: Findings) -> str:
    """A row per curve: published and ours at each place where a number is published.

    Where none is, ours at some places. Numbers that are computed from the curves
    follow in a table of their own, then the counts of the verdicts.
    """
    tables = [_curves(found).filled(), _derived(found)]
    shown = [table.markdown() for table in tables if table.rows]
    return "\n\n".join([*shown, f"Verdicts: {verdict_of(found)}."])


def _curves(found: Findings) -> Table:
    places = _published_places(found)
    notes = found.exhibit.notes
    header = ["", *_header(found, places), "note"]
    rows = []
    for series in found.points.series:
        cells = list(_cells(found, series, places))
        if any(cells):
            rows.append([series, *cells, notes.get(series, "")])
    return Table(header, rows)


def _published_places(found: Findings) -> list[Any]:
    known = {row.x for row in found.rows if row.published is not None}
    return [x for x in found.places if x in known]


def _header(found: Findings, places: Sequence[Any]) -> Iterator[str]:
    if not places:
        yield from (place(x) or found.exhibit.metric.label for x in found.few_places)
    for x in places:
        where = "" if x is None else f", {place(x)}"
        yield from (f"published{where}", f"ours{where}")


def _cells(found: Findings, series: str, places: Sequence[Any]) -> Iterator[str]:
    curve = found.curve(series)
    if not places:
        yield from (spread(curve[x]) if x in curve else "" for x in found.few_places)
    for x in places:
        yield from _pair(curve[x]) if x in curve else ("", "")


def _derived(found: Findings) -> Table:
    rows = [[row.series, *_pair(row)] for row in found.derived if row.values]
    return Table(["", "published", "ours"], rows)


def _pair(row: Row) -> tuple[str, str]:
    return number(row, row.printed), spread(row)


def papers_table(found: Sequence[Findings], folder: str) -> str:
    """How the numbers and claims came out, paper by paper, and in all."""
    counts = {paper: _counts(found, paper) for paper in PAPERS}
    rows = [
        [f"[{title.partition(' (')[0]}]({folder}/{paper}.md)", *_shown(counts[paper])]
        for paper, title in PAPERS.items()
    ]
    table = Table(["paper", *IN_SHORT], rows)
    return f"{_in_words(sum(counts.values(), Counter()))}\n\n{table.markdown()}"


def _in_words(total: Counter[str]) -> str:
    kept, lost = total[REPRODUCED] + total[HOLDS], total[WORSE] + total[FAILS]
    judged = kept + lost + total[BETTER] + total[MISMATCH] + total[UNDECIDED]
    return (
        f"Of {judged} numbers and claims that can be judged, each counted once, {kept} "
        f"are reproduced or hold, {total[BETTER]} came out better, {lost} worse or "
        f"fail, {total[MISMATCH]} (of rivals, or without a good side) do not match, "
        f"and {total[UNDECIDED]} are undecided with the seeds that were run. Apart "
        f"from these, {total[CALIBRATED]} numbers were used to settle what the papers "
        f"leave open, and {total[NOT_COMPARABLE]} cannot be compared; each line says "
        f"why.{_unmeasured(total[NOT_MEASURED])}"
    )


def _unmeasured(count: int) -> str:
    return f" For {count} there are no runs in the records yet." if count else ""


def _counts(found: Sequence[Findings], paper: str) -> Counter[str]:
    own = (each.verdicts for each in found if each.exhibit.paper == paper)
    return sum(own, Counter())


def _shown(counts: Counter[str]) -> list[str]:
    sums = (sum(counts[name] for name in names) for names in IN_SHORT.values())
    return [str(number or "") for number in sums]
