"""Command line: ``python -m fuzz [--seed N] [--minutes M]`` or ``--case NUMBER``."""

from __future__ import annotations

import argparse
import sys

from .case import SHARES, kind_of, run_case
from .pool import Plan, run
from .report import show_progress, text

APART = 10**9  # numbers between the first cases of two seeds


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="where numbers begin")
    parser.add_argument("--minutes", type=float, default=20, help="how long to go on")
    parser.add_argument("--cases", type=int, help="how many numbers to try at most")
    parser.add_argument("--only", choices=list(SHARES), help="one kind of cases")
    parser.add_argument("--jobs", type=int, default=1, help="processes side by side")
    parser.add_argument("--limit", type=float, default=30, help="seconds for a case")
    parser.add_argument("--case", type=int, nargs="+", help="show these cases again")
    return parser.parse_args()


def _show(number: int) -> bool:
    """Tell the story of one case, in this process; whether all was well."""

    def note(line: str) -> None:
        print(f"  {line}", file=sys.stderr, flush=True)

    note(f"case {number}, {kind_of(number)}")
    has_result, finding = run_case(number, note)
    if finding is None:
        note("a result" if has_result else "a refusal that was meant")
        return True
    note(f"{finding.what} at {finding.place}: {finding.message}")
    print(finding.trace, file=sys.stderr)
    return False


def main() -> int:
    given = _arguments()
    if given.case:
        return 0 if all([_show(number) for number in given.case]) else 1
    first = given.seed * APART
    limits = (given.minutes, given.cases, given.only, given.jobs, given.limit)
    tally = run(Plan(first, *limits), show_progress)
    print(text(tally))
    return 1 if tally.findings else 0


if __name__ == "__main__":
    sys.exit(main())
