"""Exhibits redrawn: our curves, and the published points where they are known."""

from __future__ import annotations

from base64 import b64decode
from statistics import fmean
from typing import Any

from benchmarks.harness.charts import LineChart

from .findings import Findings

Values = tuple[float, ...]  # one per seed


def chart(found: Findings) -> LineChart:
    """All curves of an exhibit; one that has no places is drawn from end to end."""
    curves, constant = _split_curves(found)
    ends = [x for curve in curves.values() for x in curve]
    for name, values in constant.items():
        curves[name] = dict.fromkeys((min(ends), max(ends)), (fmean(values),))
    axes = found.exhibit.axes
    return LineChart(
        curves,
        axes.x_label,
        found.exhibit.metric.label,
        log="x" * axes.log_x + "y" * axes.log_y,
        written="{:.4g}".format,
        marks=_published_points(found),
    )


def draw(found: Findings) -> dict[str, bytes]:
    """Files with the pictures of an exhibit, none for a table or without runs."""
    name = found.exhibit.name.replace("/", "-")
    if not found.points or found.exhibit.axes.kind == "none":
        return {}
    if found.exhibit.axes.kind == "images":
        return {
            f"{name}-{series}.png": b64decode(image(found, series))
            for series in found.points.series
        }
    return {f"{name}.svg": chart(found).file().encode()}


def image(found: Findings, series: str) -> str:
    """The picture of one series, a PNG file in base64."""
    ((_, x),) = [place for place in found.points if place[0] == series]
    return found.points.at(series, x)[0]


def _split_curves(
    found: Findings,
) -> tuple[dict[str, dict[Any, Values]], dict[str, Values]]:
    """Curves with places, and those that are the same everywhere."""
    curves, constant = {}, {}
    for series in found.points.series:
        curve = {x: row.values for x, row in found.curve(series).items()}
        if list(curve) == [None]:
            constant[series] = curve[None]
        elif curve:
            curves[series] = curve
    return curves, constant


def _published_points(found: Findings) -> dict[str, dict[Any, float]]:
    """Published numbers by curve and place, where both are drawn."""
    drawn: dict[str, dict[Any, float]] = {}
    for (series, x), published in found.exhibit.published.items():
        if x is not None and series in found.points.series:
            drawn.setdefault(series, {})[x] = published.value
    return drawn
