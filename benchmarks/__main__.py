"""Command line: ``python -m benchmarks [names...] [--quick] [--out DIR]``."""

from __future__ import annotations

import argparse
import json
import sys
from datetime import date
from pathlib import Path
from typing import Any

from kernlets.lab.peers.machine import description, limit_threads

from . import NAMES, load

RESULTS = Path(__file__).parent / "results"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="name", help=f"all of: {', '.join(NAMES)}"
    )
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to try it")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for results")
    parser.add_argument("--threads", type=int, default=2, help="for all methods")
    parser.add_argument("--page", type=Path, help="page whose tables to replace")
    arguments = parser.parse_args()
    unknown = sorted(set(arguments.names) - set(NAMES))
    if unknown:
        parser.error(f"no benchmark {unknown[0]!r}: choose from {', '.join(NAMES)}")
    return arguments


def _log(message: str) -> None:
    print(f"  {message}", file=sys.stderr, flush=True)


def _run(name: str, quick: bool, threads: int, out: Path) -> dict[str, Any]:
    """Run one benchmark; the file is written after each case, so none is lost."""
    from kernlets.lab.peers.runner import run_case
    from kernlets.lab.peers.tables import label, markdown

    benchmark = load(name)
    results: dict[str, Any] = {
        "name": name,
        "title": benchmark.title,
        "about": benchmark.about,
        "ours": benchmark.ours.name,
        "date": date.today().isoformat(),
        "quick": quick,
        "machine": description(threads),
        "cases": [],
    }
    for index, case in enumerate(benchmark.cases(quick)):
        _log(f"{name}: {label(dict(case))}")
        results["cases"].append(run_case(benchmark, index, quick, _log))
        text = json.dumps(results, indent=1)
        (out / f"{name}.json").write_text(text + "\n", encoding="utf-8")
        (out / f"{name}.md").write_text(markdown(results), encoding="utf-8")
    return results


def _show(results: dict[str, Any]) -> None:
    from kernlets.lab.peers.tables import skipped, tables

    for table in tables(results):
        table.print()
    for line in skipped(results):
        print(f"not run: {line}")


def main() -> None:
    arguments = _arguments()
    limit_threads(arguments.threads)
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name in arguments.names or NAMES:
        results = _run(name, arguments.quick, arguments.threads, arguments.out)
        _show(results)
        if arguments.page:
            from kernlets.lab.marks import update

            update(arguments.page, results)


if __name__ == "__main__":
    main()
