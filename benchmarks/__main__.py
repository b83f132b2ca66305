"""Command line: ``python -m benchmarks [names...] [--quick] [--out DIR]``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from . import NAMES, load
from .harness.threads import limit_threads

RESULTS = Path(__file__).parent / "results"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="name", help=f"all of: {', '.join(NAMES)}"
    )
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to try it")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for results")
    parser.add_argument("--threads", type=int, default=2, help="for all methods")
    parser.add_argument(
        "--resume", action="store_true", help="only cases that the last run lacks"
    )
    parser.add_argument(
        "--part", type=_part, default=(1, 1), metavar="I/N", help="every N-th case"
    )
    parser.add_argument("--page", type=Path, help="page whose tables to replace")
    arguments = parser.parse_args()
    unknown = sorted(set(arguments.names) - set(NAMES))
    if unknown:
        parser.error(f"no benchmark {unknown[0]!r}: choose from {', '.join(NAMES)}")
    return arguments


def _part(text: str) -> tuple[int, int]:
    """``2/3`` is the second of three parts."""
    number, _, count = text.partition("/")
    if not (number.isdigit() and count.isdigit() and 1 <= int(number) <= int(count)):
        raise argparse.ArgumentTypeError(f"{text!r} is no part: write e.g. 1/2")
    return int(number), int(count)


def _log(message: str) -> None:
    print(f"  {message}", file=sys.stderr, flush=True)


def _run(name: str, arguments: argparse.Namespace) -> None:
    """Run one benchmark, show its tables, and write them where asked."""
    from .harness.html import write_page
    from .harness.marks import filled
    from .harness.records import JsonLines
    from .peers.records import last_results
    from .peers.runner import run
    from .peers.tables import markdown, skipped, tables

    store = JsonLines(arguments.out)
    which = {"resume": arguments.resume, "part": arguments.part}
    run(load(name), arguments.quick, arguments.threads, store, _log, **which)
    results = last_results(store, name)
    for table in tables(results):
        table.print()
    for line in skipped(results):
        print(f"not run: {line}")
    text = markdown(results)
    write_page(arguments.out / f"{name}.md", f"{text}\n")
    if arguments.page:
        page = arguments.page.read_text("utf-8")
        write_page(arguments.page, filled(page, name, text))


def main() -> None:
    arguments = _arguments()
    limit_threads(arguments.threads)
    for name in arguments.names or NAMES:
        _run(name, arguments)


if __name__ == "__main__":
    main()
