"""Exhibits redrawn: our curves, and the published points where they are known.

Needs Matplotlib, but for pictures, which are files already.
"""

from __future__ import annotations

from base64 import b64decode
from pathlib import Path
from typing import Any

from ...plotting import plot_accuracy
from .findings import Findings

SIZE, DPI = (7.2, 4.2), 90


def draw(found: Findings, folder: Path) -> list[Path]:
    """Write the pictures of an exhibit, none for a table or without runs."""
    name = found.exhibit.name.replace("/", "-")
    if not found.points or found.exhibit.axes.kind == "none":
        return []
    folder.mkdir(parents=True, exist_ok=True)
    if found.exhibit.axes.kind == "images":
        return _images(found, folder / name)
    path = folder / f"{name}.png"
    figure = _lines(found)
    # without the version of the library, the same numbers are the same file
    figure.savefig(path, dpi=DPI, metadata={"Software": None})
    return [path]


def _images(found: Findings, stem: Path) -> list[Path]:
    paths = []
    for series in found.points.series:
        ((_, x),) = [place for place in found.points if place[0] == series]
        path = stem.with_name(f"{stem.name}-{series}.png")
        path.write_bytes(b64decode(found.points.at(series, x)[0]))
        paths.append(path)
    return paths


def _lines(found: Findings) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(SIZE, layout="constrained")
    ax, axes = figure.subplots(), found.exhibit.axes
    curves, constant = split_curves(found)
    plot_accuracy(curves, ax, axes.x_label, found.exhibit.metric.label)
    colours = {
        name: line.get_color()
        for name, line in zip(curves, ax.lines, strict=True)
    }
    for index, (name, values) in enumerate(constant.items()):
        style = ("--", ":", "-.")[index % 3]
        level = sum(values) / len(values)
        ax.axhline(level, color=f"{0.15 + 0.15 * index}", ls=style, lw=1.2, label=name)
    _published(found, ax, colours)
    if axes.log_x:
        _plain_log(ax, sorted({x for curve in curves.values() for x in curve}))
    if axes.log_y:
        ax.set_yscale("log")
    ax.legend(frameon=False, fontsize=8, bbox_to_anchor=(1.0, 1.0), loc="upper left")
    return figure


def _plain_log(ax: Any, places: list[float]) -> None:
    """A logarithmic axis with a plain number at each place."""
    ax.set_xscale("log")
    ax.set_xticks(places, [f"{x:g}" for x in places])
    ax.minorticks_off()


def _published(found: Findings, ax: Any, colours: dict[str, Any]) -> None:
    """Hollow points of the colour of their curve, with one entry in the legend."""
    look = {"ls": "", "marker": "o", "ms": 9, "mfc": "none", "mew": 1.6}
    label: str | None = "published"
    for name, marks in published_points(found).items():
        colour = colours.get(name, "black")
        ax.plot(list(marks), list(marks.values()), color=colour, **look)
        if label:
            ax.plot([], [], color="black", label=label, **look)
            label = None


def split_curves(
    found: Findings,
) -> tuple[dict[str, dict[Any, tuple[float, ...]]], dict[str, tuple[float, ...]]]:
    """Curves with places, and those that are the same everywhere."""
    curves, constant = {}, {}
    for series in found.points.series:
        curve = {x: row.values for x, row in found.curve(series).items()}
        if list(curve) == [None]:
            constant[series] = curve[None]
        elif curve:
            curves[series] = curve
    return curves, constant


def published_points(found: Findings) -> dict[str, dict[Any, float]]:
    """Published numbers by curve and place, where both are drawn."""
    drawn: dict[str, dict[Any, float]] = {}
    for (series, x), value in found.exhibit.published.items():
        if x is not None and series in found.points.series:
            drawn.setdefault(series, {})[x] = value
    return drawn
