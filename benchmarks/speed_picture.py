"""The README's picture of speed: seconds beside other libraries, from the records.

``python -m benchmarks.pages`` writes it into ``docs/images/speed.svg``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from .harness.html import Html, tag
from .harness.records import JsonLines
from .peers.records import last_results

PICTURE = Path("docs") / "images" / "speed.svg"
WIDTH, NAMES, BAR, LINE, MARGIN = 680, 130, 430, 26, 16
GREY, OURS, THEIRS = "#777777", "rgb(17,138,128)", "#9a9a9a"
# Benchmark, its case, what the reader sees, and methods under other names.
SHOWN = (
    (
        "omp",
        {"n": 20000, "p": 256, "m": 512, "q": 10},
        "Sparse codes by OMP: {n} signals, {m} atoms, {q} non-zeros, float32",
        {"scikit-learn, 2 jobs": "scikit-learn"},
        ("kernlets", "SPAMS", "scikit-learn, 2 jobs"),
    ),
    (
        "ksvd",
        {"n": 20000, "p": 256, "m": 300, "q": 5, "iterations": 5},
        "Atoms by K-SVD: {n} signals, {m} atoms, {iterations} iterations, float64",
        {"kernlets, float64": "kernlets"},
        ("kernlets, float64", "dictlearn"),
    ),
)


def speed_picture(store: JsonLines) -> bytes:
    """Two groups of bars, as SVG that can be read on white and on black."""
    lines: list[Html] = []
    top = MARGIN
    for name, case, title, names, methods in SHOWN:
        results = last_results(store, name)
        (measured,) = (x["methods"] for x in results["cases"] if x["case"] == case)
        seconds = {names.get(m, m): measured[m]["seconds"] for m in methods}
        lines += _group(title.format(**case), seconds, top)
        top += LINE * (len(methods) + 1) + MARGIN
    style = f"font-family:system-ui,sans-serif;font-size:14px;fill:{GREY}"
    svg = tag(
        "svg",
        *lines,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {WIDTH} {top}",
        width=str(WIDTH),
        height=str(top),
        style=style,
    )
    return f"{svg}\n".encode()


def _group(title: str, seconds: dict[str, float], top: float) -> Iterator[Html]:
    yield tag("text", title, x="0", y=str(top), font_weight="bold")
    longest = max(seconds.values())
    for k, (name, value) in enumerate(seconds.items(), 1):
        middle = top + LINE * k
        width = max(2.0, BAR * value / longest)
        yield tag("text", name, x="0", y=str(middle))
        yield tag(
            "rect",
            x=str(NAMES),
            y=str(middle - 13),
            width=f"{width:.1f}",
            height="17",
            rx="2",
            fill=OURS if name == "kernlets" else THEIRS,
        )
        yield tag("text", f"{value:.2g} s", x=f"{NAMES + width + 8:.1f}", y=str(middle))
