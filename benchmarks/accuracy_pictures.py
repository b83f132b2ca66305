"""Pictures of accuracy: a dot for each method, from the records of the benchmarks.

``python -m benchmarks.pages`` writes them into ``docs/images``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .harness.html import Html, tag
from .harness.records import JsonLines
from .harness.tables import Table
from .peers.records import last_results
from .peers.summary import SUMMARIES, Methods
from .speed_picture import GREY, OURS, THEIRS

FOLDER = Path("docs") / "images"
WIDTH, NAMES, RIGHT, LINE, TOP = 680, 290, 600, 24, 44


@dataclass(frozen=True)
class Comparison:
    """One row of a benchmark's short table, or one column of a table of methods."""

    file: str
    benchmark: str
    title: str
    place: str = "mean of"  # how the row begins, or the name of the column
    view: int = 0  # which of the short tables
    lower_is_better: bool = False


COMPARISONS = (
    Comparison("automatic", "automatic", "Accuracy on 18 data sets, mean, in percent"),
    Comparison(
        "noise", "robust", "Noise: accuracy on 4 sets of images, mean, in percent"
    ),
    Comparison(
        "lost",
        "robust",
        "Half of the pixels zero: accuracy on 4 sets of images, mean, in percent",
        view=1,
    ),
    Comparison(
        "missing", "missing", "Missing pixels: accuracy, mean of 12 cases, in percent"
    ),
    Comparison(
        "imputation",
        "imputation",
        "Filled cells: root mean square error, mean of 15 cases",
        lower_is_better=True,
    ),
    Comparison(
        "images",
        "images",
        "Noise of deviation 25: mean PSNR of 12 photographs, in dB",
        place="25, best, 12",
    ),
    Comparison("inpainting", "inpainting", "Lost pixels: mean PSNR of 3 cases, in dB"),
    Comparison(
        "outliers",
        "outliers",
        "Outliers among the rows: ROC-AUC, mean of 18 sets",
        place="ROC-AUC",
    ),
    Comparison(
        "novelties",
        "outliers",
        "Normal rows only to learn from: ROC-AUC, mean of 18 sets",
        place="ROC-AUC",
        view=1,
    ),
)


def accuracy_pictures(store: JsonLines) -> dict[Path, bytes]:
    """Every comparison whose benchmark has a record, by its file."""
    return {
        FOLDER / f"accuracy-{shown.file}.svg": _picture(shown, store)
        for shown in COMPARISONS
        if store.sessions(shown.benchmark)
    }


def _picture(shown: Comparison, store: JsonLines) -> bytes:
    """A line with a dot for each method, the best one first, as SVG."""
    values = sorted(
        _values(shown, store).items(),
        key=lambda item: item[1],
        reverse=not shown.lower_is_better,
    )
    height = TOP + LINE * len(values)
    better = "lower" if shown.lower_is_better else "higher"
    svg = tag(
        "svg",
        tag("text", shown.title, x="0", y="16", font_weight="bold"),
        tag("text", f"{better} is better", x=str(WIDTH), y="34", text_anchor="end"),
        *_dots(values),
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {WIDTH} {height}",
        width=str(WIDTH),
        height=str(height),
        style=f"font-family:system-ui,sans-serif;font-size:14px;fill:{GREY}",
    )
    return f"{svg}\n".encode()


def _values(shown: Comparison, store: JsonLines) -> dict[str, float]:
    results = last_results(store, shown.benchmark)
    view = SUMMARIES[shown.benchmark][shown.view]
    table = view.table(results)
    if isinstance(view, Methods):
        column = table.header.index(shown.place)
        return {row[0]: float(row[column]) for row in table.rows}
    return _values_of_row(table, shown.place)


def _values_of_row(table: Table, beginning: str) -> dict[str, float]:
    (row,) = (row for row in table.rows if row[0].startswith(beginning))
    cells = zip(table.header[1:], row[1:], strict=True)
    return {name: float(cell) for name, cell in cells if cell}


def _dots(values: list[tuple[str, float]]) -> Iterator[Html]:
    numbers = [value for _, value in values]
    low, high = min(numbers), max(numbers)
    for k, (name, value) in enumerate(values, 1):
        y = TOP + LINE * k - 10
        x = NAMES + 20 + (RIGHT - NAMES - 20) * (value - low) / (high - low or 1.0)
        colour = OURS if name.startswith("kernlets") else THEIRS
        yield tag("text", name, x="0", y=str(y + 5))
        yield tag(
            "line",
            x1=str(NAMES),
            x2=f"{x:.1f}",
            y1=str(y),
            y2=str(y),
            stroke=colour,
            stroke_opacity="0.4",
        )
        yield tag("circle", cx=f"{x:.1f}", cy=str(y), r="6", fill=colour)
        yield tag("text", f"{value:.4g}", x=f"{x + 12:.1f}", y=str(y + 5))
