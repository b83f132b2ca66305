"""From a folder of results to what shows them: a report, pages and figures."""

from __future__ import annotations

from pathlib import Path

from .catalogue import exhibits
from .findings import Findings, findings, largest_scale
from .pages import write_pages
from .records import Records
from .report import FILE_NAME, write_report


def show(
    folder: Path, scale: str | None = None, pages: Path | None = None
) -> list[Path]:
    """Write report.html into a folder of results, and pages where asked.

    `scale` chooses among the runs, by default the largest there is.
    """
    records = Records(folder)
    found = all_findings(records, scale)
    sessions = records.sessions()
    written = [write_report(found, sessions, folder / FILE_NAME)]
    if pages is None:
        return written
    return [*written, write_pages(found, sessions, pages)]


def all_findings(records: Records, scale: str | None) -> list[Findings]:
    """Every exhibit that has runs at the scale."""
    known = records.read()
    scale = scale or largest_scale(known) or "full"
    sessions = records.sessions()
    judged = (
        findings(exhibit, known, scale, sessions) for exhibit in exhibits().values()
    )
    found = [each for each in judged if each.records]
    if not found:
        raise ValueError(
            f"{records.folder} holds no results of scale {scale}: make some with "
            "`python -m papers NAMES --out DIR`"
        )
    return found
