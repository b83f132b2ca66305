"""``python -m kernlets.lab.papers``: run experiments with nothing but what they need.

The same runs as `kernlets reproduce`, without its progress bar, figures and pages,
which `kernlets report` makes of the folder afterwards, elsewhere if need be.
"""

from __future__ import annotations

import argparse
import sys

from .catalogue import PAPERS, chosen, exhibits
from .records import Record, Records
from .runner import Job, run
from .spec import SCALES
from .text import line_of, tables


def main(arguments: list[str] | None = None) -> int:
    """Run what was asked for; 1 if any run failed."""
    asked = vars(_parser().parse_args(arguments))
    names, out = asked.pop("names"), asked.pop("out")
    if not names:
        print("\n".join(f"{name:<20}{each.title}" for name, each in exhibits().items()))
        return 0
    try:
        wanted, job = chosen(names), Job(**asked)
    except (ValueError, ImportError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    failed: list[Record] = []

    def report(record: Record, count: int, total: int) -> None:
        print(f"{count}/{total} {line_of(record)}", flush=True)
        failed.extend([record] if record.error else [])

    run(wanted, job, out, report)
    print(tables(wanted, Records(out), job.scale))
    return 1 if failed else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m kernlets.lab.papers", description=__doc__
    )
    names = f"all, a paper ({', '.join(PAPERS)}) or one experiment; the list if absent"
    parser.add_argument("names", nargs="*", help=names)
    parser.add_argument("--scale", choices=SCALES, default="smoke")
    parser.add_argument("--seeds", type=int, help="of each case; the paper's if absent")
    parser.add_argument("--device", help="torch device, e.g. cuda")
    parser.add_argument("--jobs", type=int, default=1, help="processes side by side")
    parser.add_argument("--threads", type=int, help="of each process")
    parser.add_argument("--out", default="reproduction", help="folder for the results")
    parser.add_argument(
        "--time-limit", type=float, help="seconds after which to stop; run it again"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
