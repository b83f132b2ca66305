"""Findings as one HTML file; its tables sort and filter, its curves can be hidden."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.harness.html import (
    Html,
    facts,
    figure,
    numbers,
    page,
    paragraph,
    section,
    table,
    tag,
    write_page,
)

from .catalogue import PAPERS
from .figures import chart, image
from .findings import Findings
from .pages import RULE, Sessions, measure
from .text import HEADER, anchor, cells, claim_cells, extra, matrix, verdict_of
from .verdicts import VERDICTS

FILE_NAME = "report.html"
COLUMNS = (
    ("experiment", None),
    ("curve or claim", "text"),
    ("place or part", None),
    *((name, None) for name in HEADER[2:-2]),
    *((name, "text") for name in HEADER[-2:]),
)


def write_report(found: Sequence[Findings], sessions: Sessions, path: Path) -> Path:
    """Write the report as one self-contained file."""
    return write_page(path, report_page(found, sessions))


def report_page(found: Sequence[Findings], sessions: Sessions) -> Html:
    """The whole document."""
    sections = (_section(each) for each in found)
    return page(
        "The papers' experiments",
        "Every table and figure of five papers on kernel dictionary learning, run "
        "again with kernlets and compared with the published numbers.",
        _headline(found),
        section("Experiments", _index(found), *_rules()),
        section("All compared numbers", *_all_rows(found)),
        *sections,
        _made_with(sessions),
        interactive=True,
    )


def _rules() -> Iterator[Html]:
    yield from map(paragraph, RULE.replace("*", "").split("\n\n"))


def _headline(found: Sequence[Findings]) -> Html:
    sums = {name: sum(each.verdicts[name] for each in found) for name in VERDICTS}
    return numbers({f"numbers and claims: {name}": n for name, n in sums.items()})


def _index(found: Sequence[Findings]) -> Html:
    rows = [
        (
            tag("a", each.exhibit.name, href=f"#{anchor(each)}"),
            each.exhibit.title,
            *(each.verdicts[name] or "" for name in VERDICTS),
            f"{each.seconds:.0f}",
        )
        for each in found
    ]
    header = ("experiment", "what", *VERDICTS, "seconds")
    return table(header, rows, class_="sortable index")


def _all_rows(found: Sequence[Findings]) -> Iterator[Html]:
    yield _filters("numbers", found)
    head = tag("tr", *(tag("th", name, scope="col", class_=c) for name, c in COLUMNS))
    body = [row for each in found for row in (*_compared(each), *_claimed(each))]
    parts = tag("thead", head), tag("tbody", *body)
    yield tag(
        "div", tag("table", *parts, class_="sortable", id="numbers"), class_="tall"
    )


def _filters(name: str, found: Sequence[Findings]) -> Html:
    papers = [paper for paper in PAPERS if any(f.exhibit.paper == paper for f in found)]
    search = "words, e.g. lkdl fig2 KKSVD"
    return tag(
        "div",
        Html(f'<input type="search" placeholder="{search}" aria-label="search">'),
        _select("paper", papers),
        _select("verdict", VERDICTS),
        tag("output"),
        class_="filters",
        data_table=name,
    )


def _select(name: str, values: Sequence[str]) -> Html:
    every = tag("option", f"every {name}", value="")
    choices = (tag("option", value, value=value) for value in values)
    return tag("select", every, *choices, name_=name, aria_label=name)


def _compared(found: Findings) -> Iterator[Html]:
    for row in found.compared:
        yield _line(found, cells(row), row.verdict)


def _claimed(found: Findings) -> Iterator[Html]:
    for claim in found.claims:
        yield _line(found, claim_cells(claim), claim.verdict)


def _line(found: Findings, line: Sequence[str], verdict: str) -> Html:
    what, *plain, rule, said = line
    link = tag("a", found.exhibit.name, href=f"#{anchor(found)}")
    badge = tag("span", verdict, class_=f"verdict {verdict}")
    return tag(
        "tr",
        tag("th", link, scope="row"),
        tag("td", what, class_="text"),
        *(tag("td", text) for text in plain),
        tag("td", rule, class_="text"),
        tag("td", badge, said.removeprefix(verdict), class_="text"),
        data_paper=found.exhibit.paper,
        data_verdict=verdict,
    )


def _section(found: Findings) -> Html:
    exhibit = found.exhibit
    return tag(
        "section",
        tag("h2", f"{exhibit.name}: {exhibit.title}"),
        paragraph(tag("strong", f"{verdict_of(found)}. "), f"{exhibit.protocol}. "),
        paragraph(measure(found)),
        *(paragraph(f"Left out: {reason}") for reason in found.skipped),
        *_drawn(found),
        _table(found),
        _claims(found),
        _deviations(found),
        id=anchor(found),
    )


def _drawn(found: Findings) -> Iterator[Html]:
    if found.exhibit.axes.kind == "images":
        for series in found.points.series:
            yield _image(found, series)
    elif found.exhibit.axes.kind == "lines" and found.points:
        caption = "Mean and one standard deviation; hollow circles are published."
        drawn = chart(found).block()
        yield figure(drawn, caption, " Click a name to hide it.", class_="narrow")


def _image(found: Findings, series: str) -> Html:
    source = f"data:image/png;base64,{image(found, series)}"
    picture = Html(f'<img src="{source}" alt="atoms of {series}">')
    extras = ", ".join(f"{k} {extra(found, series, k)}" for k in found.exhibit.also)
    return figure(picture, tag("strong", series), f" {extras}", class_="narrow")


def _table(found: Findings) -> Html:
    """Our numbers: a row per curve, a column per place."""
    header, *body = matrix(found)
    if not body or found.exhibit.axes.kind == "images":
        return Html()
    notes = found.exhibit.notes
    rows = [(*row, notes.get(row[0], "")) for row in body]
    return table((*header, "note"), rows, class_="sortable noted")


def _claims(found: Findings) -> Html:
    if not found.claims:
        return Html()
    rows = [claim_cells(claim) for claim in found.claims]
    return table(("claim of the paper", *HEADER[1:]), rows)


def _deviations(found: Findings) -> Html:
    items = (tag("li", text) for text in found.exhibit.deviations)
    return tag("ul", *items, class_="note")


def _made_with(sessions: Sessions) -> Html:
    parts = []
    for session in sessions.values():
        about = {**session["machine"], "device": session["device"]}
        parts.append(facts({"date": session["date"], **about, **session["versions"]}))
    return section("Made with", *dict.fromkeys(parts))
