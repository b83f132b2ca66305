"""Findings as Markdown: an index of all experiments, and one page per paper."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from ..bench.html import write_file
from ..bench.tables import Table
from .catalogue import PAPERS
from .figures import draw
from .findings import VERDICTS, Findings, Row
from .text import HEADER, cells, held, matrix, verdict_of

RULE = (
    "A number is *reproduced* if our mean is within the tolerance stated with the "
    "experiment, or within two standard errors of the difference between the two "
    "means: 2·s·√(1/n + 1/r), s the standard deviation over our n seeds, r the runs "
    "the paper averages. Otherwise it is *better* or *worse*. It is *not comparable* "
    "where the paper's data, machine or text do not allow a comparison; each such row "
    "says why. Claims of the papers count as reproduced if they hold and as worse if "
    "they do not."
)
INDEX, FIGURES = "README.md", "figures"
Sessions = dict[str, dict[str, Any]]


def write_pages(found: Sequence[Findings], sessions: Sessions, folder: Path) -> Path:
    """Write the index, a page per paper and the figures; the path of the index."""
    shutil.rmtree(folder / FIGURES, ignore_errors=True)
    for name, content in pages(found, sessions).items():
        write_file(folder / name, content)
    return folder / INDEX


def pages(found: Sequence[Findings], sessions: Sessions) -> dict[str, bytes]:
    """All files by name: the index, a page per paper, and the figures."""
    files = {INDEX: index_page(found).encode()}
    for each in found:
        files |= {f"{FIGURES}/{name}": data for name, data in draw(each).items()}
    for paper in PAPERS:
        own = [each for each in found if each.exhibit.paper == paper]
        if own:
            files[f"{paper}.md"] = paper_page(paper, own, sessions).encode()
    return files


def index_page(found: Sequence[Findings]) -> str:
    """All experiments with their verdicts."""
    header = ("experiment", "what", *VERDICTS)
    body = [_index_row(each) for each in found]
    sums = [sum(each.verdicts[name] for each in found) for name in VERDICTS]
    total = ("**all**", "", *(f"**{count}**" for count in sums))
    return "\n".join(
        [
            "# The papers' experiments",
            "",
            "Every table and figure of the five papers, run again by "
            "`kernlets reproduce all --scale full` and compared. "
            "`kernlets reproduce` lists the experiments, `--scale smoke` tries them in "
            "two minutes. These pages are written from the results by `kernlets "
            "report`, those in the repository by `make pages`.",
            "",
            Table(header, [*body, total]).filled().markdown(),
            "",
            RULE,
            "",
        ]
    )


def _index_row(found: Findings) -> tuple[str, ...]:
    name, paper = found.exhibit.name, found.exhibit.paper
    counts = (str(found.verdicts[verdict] or "") for verdict in VERDICTS)
    title = found.exhibit.title
    if not found.points:
        title += f" ({'; '.join(found.skipped) or 'not run'})"
    return f"[{name}]({paper}.md#{anchor(found)})", title, *counts


def anchor(found: Findings) -> str:
    """Where the heading of an exhibit is on its page."""
    return found.exhibit.name.replace("/", "-").replace(".", "-")


def paper_page(paper: str, found: Sequence[Findings], sessions: Sessions) -> str:
    """The page of one paper."""
    parts = [f"# {PAPERS[paper]}", "", f"`kernlets reproduce {paper} --scale full`", ""]
    for each in found:
        parts += _section(each)
    return "\n".join([*parts, *_made_with(found, sessions)])


def _section(found: Findings) -> Iterator[str]:
    exhibit = found.exhibit
    yield f'<a id="{anchor(found)}"></a>'
    yield f"## {exhibit.name}: {exhibit.title}"
    yield ""
    yield f"**{verdict_of(found)}.** {exhibit.protocol}. {measure(found)}"
    yield ""
    for reason in found.skipped:
        yield f"Left out: {reason}."
        yield ""
    for name in draw(found):
        yield f"![{exhibit.title}]({FIGURES}/{name})"
        yield ""
    if found.compared:
        rows = [_compared(found, row) for row in found.compared]
        yield Table((*HEADER, "note"), rows).filled().markdown()
        yield ""
    yield from _claims(found)
    yield from _all_numbers(found)
    yield from (f"* {text}" for text in exhibit.deviations)
    yield ""
    yield _effort(found)
    yield ""


def measure(found: Findings) -> str:
    """What the numbers are, and how far apart two of them may be to count as equal."""
    metric = found.exhibit.metric
    way = f"Shown: {metric.label}, {metric.better} is better"
    if not metric.tolerance:
        return f"{way}."
    share = f"{100 * metric.tolerance:g} %"
    same = share if metric.relative else f"{metric.tolerance:g}"
    return f"{way}; the same up to {same}."


def _compared(found: Findings, row: Row) -> tuple[str, ...]:
    return *cells(row), found.exhibit.notes.get(row.series, "")


def _claims(found: Findings) -> Iterator[str]:
    if found.claims:
        rows = [(claim.text, held(claim.holds)) for claim in found.claims]
        yield Table(("claim of the paper", "here"), rows).markdown()
        yield ""


def _all_numbers(found: Findings) -> Iterator[str]:
    header, *body = matrix(found)
    if body:
        yield Table(header, body).filled().markdown()
        yield ""


def _effort(found: Findings) -> str:
    made = sum(record.done for record in found.records)
    return (
        f"{made} of {found.planned} runs, {found.seconds:.0f} s in all, at most "
        f"{found.peak_bytes / 1e6:.0f} MB on top of data and libraries."
    )


def _made_with(found: Iterable[Findings], sessions: Sessions) -> Iterator[str]:
    """The machines and versions behind the runs, without repetition."""
    yield "## Made with"
    yield ""
    names = dict.fromkeys(r.session for each in found for r in each.records if r.done)
    described = (_described(sessions[name]) for name in names if name in sessions)
    yield from (f"* {text}" for text in dict.fromkeys(described))
    yield ""


def _described(session: dict[str, Any]) -> str:
    machine = session["machine"]
    versions = ", ".join(f"{name} {v}" for name, v in session["versions"].items())
    return (
        f"{machine['system']}, {machine['processor']}, {machine['memory']}, "
        f"{machine['processes']} processes of {machine['threads']} threads, device "
        f"{session['device']}; {versions}; {session['date']}"
    )
