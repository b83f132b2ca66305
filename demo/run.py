"""`python -m demo`: dictionaries and other classifiers on damaged digits.

Runs the trials with progress bars, prints one table and writes one HTML page. What is
computed is in `trial.py` and `methods.py`, what is shown in `terminal.py` and
`page.py`.
"""

from __future__ import annotations

import os
import re
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.harness.html import write_page
from benchmarks.harness.timing import timed
from kernlets.numerics.threads import serial_blas

from . import trial
from .methods import METHODS
from .novelties import find_novelties
from .page import demo_page
from .photograph import restore_photograph
from .terminal import NOTE, progress, summary, title, verdict
from .trial import FULL, QUICK, DemoResult, Plan

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

FILE_NAME = "kernlets-demo.html"


def run_demo(
    out: Path | str = ".",
    quick: bool = False,
    open_browser: bool = False,
    console: Console | None = None,
) -> DemoResult:
    """Compare the methods on digits, print a table, write a self-contained page.

    Parameters
    ----------
    out : path
        Folder for ``kernlets-demo.html``, or the name of an .html file.
    quick : bool
        One seed and fewer corruptions, for a look and for tests.
    open_browser : bool
        Show the page when it is written.
    console : rich Console, optional
        Where progress and table go. Default: standard output.
    """
    from rich.console import Console

    console = console or Console()
    plan = QUICK if quick else FULL
    path = _page_path(Path(out))
    # Matrices are small: a threaded BLAS gains nothing here, and its busy waiting
    # slows down everything on a machine that has other work.
    with serial_blas, progress(console) as bar:
        parts, seconds = timed(lambda: _compute(plan, bar))
    result = DemoResult(plan=plan, path=path, seconds=seconds, **parts)
    write_page(path, demo_page(result))
    console.print(f"\n{title(result)}", style="bold", highlight=False)
    console.print(summary(result))
    console.print(verdict(result), highlight=False)
    console.print(NOTE, style="dim", highlight=False)
    console.print(f"{seconds:.0f} s. Report with pictures: [bold]{_shown(path)}[/bold]")
    if open_browser:
        import webbrowser

        webbrowser.open(path.as_uri())
    return result


def _page_path(out: Path) -> Path:
    path = out if out.suffix.lower() in (".html", ".htm") else out / FILE_NAME
    return path.expanduser().resolve()


def _shown(path: Path) -> Path:
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def _compute(plan: Plan, bar: Progress) -> dict[str, Any]:
    data = trial.digits()
    for method in bar.track(METHODS, description="compiling, warming up"):
        trial.warm_up(method)
    pairs = list(product(METHODS, plan.seeds))
    trials = [
        trial.run_trial(method, seed, data, plan.corruptions())
        for method, seed in bar.track(pairs, description="training and testing")
    ]
    steps = {
        "outliers": lambda: find_novelties(data),
        "photograph": restore_photograph,
    }
    tracked = bar.track(steps.items(), description="outliers, a photograph")
    return {"data": data, "trials": trials} | {name: make() for name, make in tracked}


def record_terminal(path: Path | str, quick: bool = False, width: int = 80) -> Path:
    """Run the demonstration and keep what the terminal shows as an SVG picture.

    The picture in docs/start.md is ``record_terminal("docs/images/demo.svg")``.
    """
    import io
    import tempfile

    from rich.console import Console

    path, here = Path(path).resolve(), Path.cwd()
    console = Console(record=True, width=width, file=io.StringIO())
    console.print("[green]$[/green] make demo")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # so that the picture shows a name and no folder
        try:
            run_demo(quick=quick, console=console)
        finally:
            os.chdir(here)
    return write_page(path, _without_fonts(console.export_svg(title="kernlets")))


def _without_fonts(svg: str) -> str:
    """The reader's own monospace font instead of fonts fetched from elsewhere."""
    return re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL).replace(
        "Fira Code", "ui-monospace, Menlo, Consolas"
    )
