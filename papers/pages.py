"""Findings as Markdown: an index of all experiments, and one page per paper."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness.html import write_file
from benchmarks.harness.tables import Table

from .catalogue import PAPERS
from .figures import draw
from .findings import Findings
from .spec import BEST_RIVAL
from .summary import papers_table
from .text import anchor, cells, claim_cells, matrix, page_table, verdict_of
from .unreproduced import UNREPRODUCED, unreproduced_page
from .verdicts import Row

RULE = (
    "**How numbers are judged.** Our mean over n seeds is compared with the published "
    "one by the 95 % interval of their difference (Student's t, standard error "
    "s·√(1/n + 1/r), s the standard deviation over our seeds, r the runs that the "
    "paper averages, one where it does not say), widened by the rounding of a printed "
    "number or by what can be read from a figure; both are stated in the line. A "
    "number is *reproduced* if that interval includes zero. It is *undecided* if the "
    "interval is wider than the effect that the paper reports, or if there are fewer "
    "than three seeds. Otherwise a number of the paper's own method is *better* or "
    "*worse*; one of a rival, or without a good side, is a *mismatch*. A number is "
    "*calibrated*, and confirms nothing, if a parameter or a reading that the paper "
    "leaves open was fitted to it, or chosen by results on test data; where it misses "
    "all the same it is a miss. It is *not comparable* if its data, machine or text do "
    "not allow a comparison, for the reason given. Of 95 % intervals one in twenty "
    "misses by chance.\n\n"
    "**How claims are judged.** A claim is a mean over seeds, as a rule of a "
    "difference or ratio of two methods with the same seed, that the paper puts above "
    "or below a bound. It *holds* if the interval of every part is on that side, "
    "*fails* if that of one is on the other (corrected for their number), and is "
    "*undecided* otherwise. The line shows the least favourable part, its mean and the "
    "interval of this mean.\n\n"
    "**What is counted.** Each published number and each claim once, however many "
    "readings and figures show it. Of two readings of a text the one counts that the "
    "authors' program has, or that numbers which are set aside as calibrated show, or "
    "else the printed one; the other lines say where their number is counted. "
    f"{BEST_RIVAL} Seconds "
    "are judged only if they were taken by one process alone: runs that were made side "
    "by side count for accuracy, not for seconds, and those of different devices are "
    "never in one column. Numbers of rivals are judged as those of a paper's own "
    "methods, also where the paper does not say how it ran them.\n\n"
    "**How many seeds.** As many as the paper averages, and at least ten; five where a "
    "run takes more than a minute of one core, three where it takes more than five, "
    "and one for methods without random numbers."
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
    files = {
        INDEX: index_page(found).encode(),
        UNREPRODUCED: unreproduced_page(found).encode(),
    }
    for each in found:
        files |= {f"{FIGURES}/{name}": data for name, data in draw(each).items()}
    for paper in PAPERS:
        own = [each for each in found if each.exhibit.paper == paper]
        if own:
            files[f"{paper}.md"] = paper_page(paper, own, sessions).encode()
    return files


def index_page(found: Sequence[Findings]) -> str:
    """The papers in short, their claims, all experiments, and how they are judged."""
    claims = [row for each in found for row in _claims_in_short(each)]
    return "\n".join(
        [
            "# The papers' experiments",
            "",
            "Every table and figure of the five papers, run again by "
            "`python -m papers all --scale full` and compared with what was published. "
            "This page says how that came out. The page of each paper has the curves, "
            "every number with its interval, and what was done differently.",
            "",
            papers_table(found, "."),
            "",
            "*Confirmed* means reproduced, or a claim that holds; *does not match* is "
            "said of rivals; [below](#how-it-is-judged) are the rules. "
            f"[What we could not reproduce, and why we believe ours]({UNREPRODUCED}) "
            "has every miss, with the experiment that decides it.",
            "",
            "## What the papers claim",
            "",
            Table(("claim", "in our runs", "experiment"), claims).markdown(),
            "",
            "## Every experiment",
            "",
            "`python -m papers` lists them, `--scale smoke` tries them in two minutes.",
            "",
            Table(
                ("experiment", "what", "verdicts"), list(map(_index_row, found))
            ).markdown(),
            "",
            "## How it is judged",
            "",
            RULE,
            "",
        ]
    )


def _index_row(found: Findings) -> tuple[str, ...]:
    title = found.exhibit.title
    if not found.points:
        title += f" ({'; '.join(found.skipped) or 'not run'})"
    return _link(found), title, verdict_of(found)


def _claims_in_short(found: Findings) -> Iterator[tuple[str, ...]]:
    for judged in found.claims:
        if judged.counted:
            yield judged.claim.text, judged.verdict, _link(found)


def _link(found: Findings) -> str:
    return f"[{found.exhibit.name}]({found.exhibit.paper}.md#{anchor(found)})"


def paper_page(paper: str, found: Sequence[Findings], sessions: Sessions) -> str:
    """The page of one paper."""
    parts = [f"# {PAPERS[paper]}", "", f"`python -m papers {paper} --scale full`", ""]
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
        yield page_table(rows)
        yield ""
    yield from _claims(found)
    yield from _all_numbers(found)
    yield from (f"* {text}" for text in exhibit.deviations)
    yield ""
    yield _effort(found)
    yield ""


def measure(found: Findings) -> str:
    """What the numbers are, which side is better, and what seconds were taken with."""
    metric = found.exhibit.metric
    way = f", {metric.better} is better" if metric.better else ""
    made = "; ".join(map(str, found.settings)) if metric.timing else ""
    return f"Shown: {metric.label}{f' ({made})' if made else ''}{way}."


def _compared(found: Findings, row: Row) -> tuple[str, ...]:
    return *cells(row), found.exhibit.notes.get(row.series, "")


def _claims(found: Findings) -> Iterator[str]:
    if found.claims:
        rows = [claim_cells(claim) for claim in found.claims]
        yield page_table(rows, "claim of the paper")
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
