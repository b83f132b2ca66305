"""``python -m papers``: the papers' experiments, beside the published numbers.

It runs experiments, prints their tables, and writes a report and pages beside the
results. Runs that the folder holds are not repeated. It needs neither a terminal
library nor a plotting library.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from .catalogue import PAPERS, chosen, exhibits
from .records import Record, Records
from .runner import Job, run
from .show import show
from .spec import SCALES
from .text import line_of, tables


def main(arguments: list[str] | None = None) -> int:
    """Run or show what was asked for; 1 if a run failed, 2 if nothing could be done."""
    parser = _parser()
    asked = parser.parse_args(arguments)
    try:
        if asked.report:
            _show(asked.out, asked.scale, asked.pages)
            return 0
        if asked.names:
            return _run(asked)
    except (ValueError, ImportError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    for paper, title in PAPERS.items():
        print(f"{paper}: {title}")
        for name, exhibit in exhibits().items():
            if exhibit.paper == paper:
                print(f"  {name:<20}{exhibit.title}")
    return 0


def _run(asked: argparse.Namespace) -> int:
    job = Job(
        asked.scale or "smoke",
        asked.seeds,
        asked.device,
        asked.jobs,
        asked.threads,
        asked.time_limit,
    )
    experiments = chosen(asked.names)
    failed: list[Record] = []

    def report(record: Record, count: int, total: int) -> None:
        print(f"{count}/{total} {line_of(record)}", flush=True)
        failed.extend([record] if record.error else [])

    run(experiments, job, asked.out, report)
    print(tables(experiments, Records(asked.out), job.scale))
    _show(asked.out, job.scale, asked.pages or asked.out / "pages")
    return 1 if failed else 0


def _show(folder: Path, scale: str | None, pages: Path | None) -> None:
    for path in show(folder, scale, pages):
        print(f"wrote {path}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m papers", description=__doc__)
    names = f"all, a paper ({', '.join(PAPERS)}) or one experiment; the list if absent"
    parser.add_argument("names", nargs="*", help=names)
    parser.add_argument(
        "--report", action="store_true", help="no runs: show those that --out holds"
    )
    scale = "smoke (seconds), small (minutes) or full (the paper's); default: smoke, "
    parser.add_argument(
        "--scale", choices=SCALES, help=f"{scale}with --report the largest there is"
    )
    parser.add_argument("--seeds", type=int, help="of each case; the paper's if absent")
    parser.add_argument("--device", help="torch device, e.g. cuda")
    parser.add_argument("--jobs", type=int, default=1, help="processes side by side")
    parser.add_argument("--threads", type=int, help="of each process")
    parser.add_argument(
        "--out", type=Path, default=Path("reproduction"), help="folder for the results"
    )
    parser.add_argument("--pages", type=Path, help="folder for Markdown pages")
    parser.add_argument(
        "--time-limit", type=float, help="seconds after which to stop; run it again"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
