"""What a run has found, in groups of one cause each."""

from __future__ import annotations

import sys
import textwrap
from collections import defaultdict

from .oracle import Finding
from .pool import Tally

SHOWN = 5  # numbers of cases per group


def groups(findings: list[tuple[int, Finding]]) -> dict[tuple[str, str], list[int]]:
    """Numbers of cases by exception and place, the most frequent first."""
    found: dict[tuple[str, str], list[int]] = defaultdict(list)
    for number, finding in sorted(findings, key=lambda item: item[0]):
        found[finding.group].append(number)
    return dict(sorted(found.items(), key=lambda item: -len(item[1])))


def text(tally: Tally) -> str:
    """The summary and one paragraph per group."""
    messages = {f.group: f.message for _, f in reversed(tally.findings)}
    speed = tally.cases / max(tally.seconds, 1e-9)
    lines = [
        f"{tally.cases} cases in {tally.seconds:.0f} s ({speed:.0f} per second): "
        f"{tally.results} results, {tally.refusals} refusals, "
        f"{len(tally.findings)} findings"
    ]
    for (what, place), numbers in groups(tally.findings).items():
        lines.append(f"\n{len(numbers)} × {what} at {place}")
        lines.append(textwrap.shorten(messages[what, place], 300) or "(no message)")
        cases = " ".join(map(str, numbers[:SHOWN]))
        lines.append(f"  python -m fuzz --case {cases}")
    return "\n".join(lines)


def show_progress(tally: Tally, cases: int) -> None:
    """One line that is written over, on a terminal only."""
    if sys.stderr.isatty():
        line = f"{cases} cases, {len(tally.findings)} findings"
        print(f"\r{line}", end="", file=sys.stderr, flush=True)
