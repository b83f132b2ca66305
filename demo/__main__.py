"""``python -m demo``: linear and kernel dictionaries compared on handwritten digits."""

from __future__ import annotations

import argparse
from pathlib import Path

from .run import run_demo


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m demo", description=__doc__)
    parser.add_argument(
        "--out", type=Path, default=Path("."), help="folder or .html file of the report"
    )
    parser.add_argument(
        "--quick", action="store_true", help="fewer samples and settings"
    )
    parser.add_argument(
        "--open", action="store_true", help="show the report in a browser"
    )
    asked = parser.parse_args(arguments)
    run_demo(asked.out, asked.quick, asked.open)


if __name__ == "__main__":
    main()
