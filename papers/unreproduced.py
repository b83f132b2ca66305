"""The page of all misses: what did not come out as published, and what decides it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from benchmarks.harness.tables import Table

from .catalogue import PAPERS
from .findings import Findings
from .judge import UNDECIDED
from .spec import Decider, entry
from .text import anchor, cells, claim_cells, page_table, place, spread
from .verdicts import MISSES

UNREPRODUCED = "unreproduced.md"
TITLE = "What we could not reproduce, and why we believe ours"
INTRO = (
    "Every number and claim of the papers that is worse, does not match or fails in "
    "our runs, written from the same records as the other pages, and the experiment "
    "that decides between the paper and us. Where there is none, the line says so. "
    "Then what our seeds leave undecided."
)
OPEN = "No experiment here decides between the paper and us."


class Entry(NamedTuple):
    """A line of a verdict, and what decides it."""

    line: tuple[str, ...]
    decider: Decider | None


def unreproduced_page(found: Sequence[Findings]) -> str:
    """All misses and what is undecided, paper by paper."""
    parts = [f"# {TITLE}", "", INTRO, ""]
    for paper, title in PAPERS.items():
        own = [each for each in found if each.exhibit.paper == paper]
        misses = [line for each in own for line in _misses(each, found)]
        if misses:
            parts += [f"## {title}", "", *misses]
    return "\n".join([*parts, *_undecided(found)])


def _misses(found: Findings, every: Sequence[Findings]) -> Iterator[str]:
    """Misses of an exhibit, those with the same explanation in one table."""
    entries = _entries(found, MISSES)
    if not entries:
        return
    exhibit = found.exhibit
    link = f"[{exhibit.name}]({exhibit.paper}.md#{anchor(found)})"
    yield f"### {exhibit.name}: {exhibit.title}"
    yield ""
    for decider in dict.fromkeys(each.decider for each in entries):
        lines = [each.line for each in entries if each.decider == decider]
        yield page_table(lines)
        yield ""
        yield f"{OPEN if decider is None else decider.text} ({link})"
        yield ""
        if decider is not None:
            name = decider.beside or exhibit.name
            yield from _shown(decider, (f for f in every if f.exhibit.name == name))


def _entries(found: Findings, verdicts: Sequence[str]) -> list[Entry]:
    """The lines of counted numbers and claims with some verdicts."""
    table = found.exhibit.deciders
    numbers = [
        Entry(cells(row), entry(table, row.series, row.x))
        for row in found.compared
        if row.counted and row.verdict in verdicts
    ]
    claims = [
        Entry(claim_cells(each), each.claim.decider)
        for each in found.claims
        if each.counted and each.verdict in verdicts
    ]
    return numbers + claims


def _shown(decider: Decider, where: Iterable[Findings]) -> Iterator[str]:
    """The measured numbers that the explanation rests on."""
    rows = [
        (series, place(x), spread(found.curve(series)[x]))
        for found in where
        for series, x in decider.shown
        if x in found.curve(series)
    ]
    if rows:
        yield Table(("what decides", "", "ours"), rows).filled().markdown()
        yield ""


def _undecided(found: Sequence[Findings]) -> Iterator[str]:
    lines = [
        (f"{each.exhibit.name}: {line.line[0]}", *line.line[1:])
        for each in found
        for line in _entries(each, (UNDECIDED,))
    ]
    if lines:
        yield "## Undecided"
        yield ""
        yield page_table(lines)
        yield ""
