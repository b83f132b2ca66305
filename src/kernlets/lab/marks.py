"""Puts measured tables into a page, between ``<!-- NAME -->`` and ``<!-- end -->``."""

from __future__ import annotations

import re
from pathlib import Path

from .peers.runner import Record
from .peers.tables import markdown


def update(page: Path, results: Record) -> None:
    """Replace the section of one benchmark; a page without its mark is refused."""
    text = page.read_text(encoding="utf-8")
    begin, end = f"<!-- {results['name']} -->", "<!-- end -->"
    section = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    if section.search(text) is None:
        raise SystemExit(f"{page} has no section between {begin} and {end}: add one")
    filled = f"{begin}\n\n{markdown(results)}\n{end}"
    page.write_text(section.sub(lambda _: filled, text), encoding="utf-8")
