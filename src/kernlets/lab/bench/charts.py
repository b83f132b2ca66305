"""Charts as inline SVG that take their colours from the page, light or dark.

`line_chart` shows several curves with the spread over seeds, `bar_chart` a few bars.
Curves and their names carry the same number, so that a script may hide them.
Matplotlib pictures for notebooks and papers are in `kernlets.plotting`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10
from typing import Any

import numpy as np

from .html import Html, html, tag

Curve = Mapping[Any, Sequence[float] | np.ndarray]  # x -> y of each seed

WIDTH, HEIGHT = 520, 320
LEFT, RIGHT, TOP, BOTTOM = 58, 14, 12, 46
MARKERS = "circle", "square", "diamond", "triangle"


@dataclass(frozen=True)
class Scale:
    """From a value to a position in the picture."""

    low: float
    high: float
    start: float
    stop: float
    log: bool = False

    def __call__(self, value: float) -> float:
        low, high, value = (
            (log10(v) if self.log else v) for v in (self.low, self.high, value)
        )
        share = (value - low) / ((high - low) or 1.0)
        return round(self.start + share * (self.stop - self.start), 2)

    def ticks(self) -> list[float]:
        """Round numbers inside the range."""
        marks = (_log_marks if self.log else _marks)(self.low, self.high)
        room = 1e-9 * (self.high - self.low)
        return [m for m in marks if self.low - room <= m <= self.high + room]


def _marks(low: float, high: float) -> list[float]:
    rough = (high - low) / 5 or 1.0
    unit = 10.0 ** floor(log10(rough))
    step = next(unit * s for s in (1, 2, 2.5, 5, 10) if unit * s >= rough)
    return [round(i * step, 12) for i in range(ceil(low / step), ceil(high / step) + 1)]


def _log_marks(low: float, high: float) -> list[float]:
    decades = range(floor(log10(low)), ceil(log10(high)) + 1)
    steps = (1,) if log10(high / low) > 3 else (1, 2, 5)
    return [s * 10.0**d for d in decades for s in steps]


def line_chart(
    curves: Mapping[str, Curve],
    x_label: str,
    y_label: str,
    log: str = "",
    bound: tuple[str, Mapping[Any, float]] | None = None,
    written: Callable[[float], str] = "{:g}".format,
    marks: Mapping[str, Mapping[Any, float]] | None = None,
) -> Html:
    """Means as lines, one standard deviation as a band; `bound` is a dashed line.

    `log` names the logarithmic axes: "x", "y" or "xy". `marks` are hollow points of
    some curves, for numbers from elsewhere.
    """
    means = {name: _means(curve) for name, curve in curves.items()}
    marks = marks or {}
    others = [*marks.values(), *([bound[1]] if bound else [])]
    x_scale, y_scale = _scales([*means.values(), *others], log)
    places = sorted({x for curve in means.values() for x in curve})
    layers = [_axes(x_scale, y_scale, places, x_label, y_label, written)]
    for index, (name, curve) in enumerate(curves.items()):
        layers.append(_band(curve, x_scale, y_scale, index))
        layers.append(_line(name, means[name], x_scale, y_scale, index, written))
        found = marks.get(name, {}).items()
        layers.extend(_hollow(name, x, y, x_scale, y_scale, index) for x, y in found)
    if bound:
        points = _points(bound[1], x_scale, y_scale)
        layers.append(tag("polyline", points=points, class_="bound"))
    label = f"{y_label} against {x_label} for {', '.join(curves)}"
    chart = _svg(WIDTH, HEIGHT, label, *layers)
    return html(chart, _legend([*curves], bound[0] if bound else None))


def bar_chart(
    values: Sequence[float],
    names: Sequence[object],
    label: str,
    kinds: Mapping[int, str],
    width: int = 168,
    height: int = 64,
) -> Html:
    """One bar per name from zero; `kinds` gives single bars a CSS class."""
    top = max(values) or 1.0
    step = width / len(values)
    bars = []
    for i, (value, name) in enumerate(zip(values, names, strict=True)):
        size = round((height - 14) * value / top, 1)
        place = {"x": round(i * step + 1, 1), "y": round(height - 13 - size, 1)}
        box = {**place, "width": round(step - 2, 1), "height": size}
        bars.append(
            html(
                tag("rect", _title(f"{name}: {value:.3f}"), class_=kinds.get(i), **box),
                _text((i + 0.5) * step, height - 2, name, "tick middle"),
            )
        )
    return _svg(width, height, label, *bars, class_="bars")


def _svg(
    width: int, height: int, label: str, *parts: Html, class_: str = "chart"
) -> Html:
    box = f"0 0 {width} {height}"
    return tag("svg", *parts, viewBox=box, role="img", aria_label=label, class_=class_)


def _means(curve: Curve) -> dict[float, float]:
    return {x: float(np.mean(y)) for x, y in sorted(curve.items())}


def _scales(curves: Sequence[Mapping[Any, float]], log: str) -> tuple[Scale, Scale]:
    x = [value for curve in curves for value in curve]
    y = [value for curve in curves for value in curve.values()]
    margin = 0.0 if "y" in log else 0.04 * (max(y) - min(y))
    bottom = HEIGHT - BOTTOM
    return (
        Scale(min(x), max(x), LEFT + 8, WIDTH - RIGHT - 8, "x" in log),
        Scale(min(y) - margin, max(y) + margin, bottom, TOP, "y" in log),
    )


def _axes(
    x_scale: Scale,
    y_scale: Scale,
    places: Sequence[float],
    x_label: str,
    y_label: str,
    written: Callable[[float], str],
) -> Html:
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    parts = []
    for value in y_scale.ticks():
        y = y_scale(value)
        parts.append(tag("line", x1=LEFT, x2=right, y1=y, y2=y, class_="grid"))
        parts.append(_text(LEFT - 8, y + 4, written(value), "tick end"))
    for value in places if len(places) <= 8 else x_scale.ticks():
        parts.append(_text(x_scale(value), bottom + 18, f"{value:g}", "tick middle"))
    middle = (TOP + bottom) / 2
    parts.append(_text((LEFT + right) / 2, HEIGHT - 6, x_label, "label middle"))
    turn = f"rotate(-90 13 {middle})"
    parts.append(_text(13, middle, y_label, "label middle", transform=turn))
    return tag("g", *parts)


def _points(curve: Mapping[Any, float], x_scale: Scale, y_scale: Scale) -> str:
    return " ".join(f"{x_scale(x)},{y_scale(y)}" for x, y in curve.items())


def _line(
    name: str,
    curve: Mapping[Any, float],
    x_scale: Scale,
    y_scale: Scale,
    index: int,
    written: Callable[[float], str],
) -> Html:
    points = tag("polyline", points=_points(curve, x_scale, y_scale))
    marks = (
        _marker(index, x_scale(x), y_scale(y), f"{name}, {x:g}: {written(y)}")
        for x, y in curve.items()
    )
    return tag("g", points, *marks, class_=_style(index), data_series=index)


def _style(index: int) -> str:
    """Eight colours, then the same ones with dashed lines."""
    return f"series c{index % 8}" + (" dashed" if index >= 8 else "")


def _hollow(
    name: str, x: float, y: float, x_scale: Scale, y_scale: Scale, index: int
) -> Html:
    title = _title(f"{name}, {x:g}, published: {y:g}")
    circle = tag("circle", title, cx=x_scale(x), cy=y_scale(y), r=6)
    return tag("g", circle, class_=f"hollow c{index % 8}", data_series=index)


def _band(curve: Curve, x_scale: Scale, y_scale: Scale, index: int) -> Html:
    deviation = {x: float(np.std(y)) for x, y in curve.items()}
    if not any(deviation.values()):
        return Html()
    means = _means(curve).items()
    edges = [
        [(x, max(y + sign * deviation[x], y_scale.low)) for x, y in means]
        for sign in (1, -1)
    ]
    outline = (f"{x_scale(x)},{y_scale(y)}" for x, y in edges[0] + edges[1][::-1])
    look = {"class_": f"band c{index % 8}", "data_series": index}
    return tag("polygon", points=" ".join(outline), **look)


def _marker(index: int, x: float, y: float, title: str) -> Html:
    """Shapes differ, so that curves can be told apart without their colours."""
    name = MARKERS[index % len(MARKERS)]
    corners = {
        "square": "-3.5,-3.5 3.5,-3.5 3.5,3.5 -3.5,3.5",
        "diamond": "0,-5 5,0 0,5 -5,0",
        "triangle": "0,-4.5 4.5,3.5 -4.5,3.5",
    }
    if name == "circle":
        return tag("circle", _title(title), cx=x, cy=y, r=4)
    place = f"translate({x} {y})"
    return tag("polygon", _title(title), points=corners[name], transform=place)


def _legend(names: Sequence[str], bound: str | None) -> Html:
    items = [
        tag("li", _sample(i), name, data_series=i) for i, name in enumerate(names)
    ]
    if bound:
        line = tag("line", x1=1, x2=23, y1=7, y2=7, class_="bound")
        key = tag("svg", line, viewBox="0 0 24 14", aria_hidden="true")
        items.append(tag("li", key, bound))
    return tag("ul", *items, class_="legend")


def _sample(index: int) -> Html:
    line = tag("polyline", points="1,7 23,7")
    drawn = tag("g", line, _marker(index, 12, 7, ""), class_=_style(index))
    return tag("svg", drawn, viewBox="0 0 24 14", aria_hidden="true")


def _text(
    x: float, y: float, text: object, class_: str, transform: str | None = None
) -> Html:
    place = {"x": round(x, 1), "y": round(y, 1), "transform": transform}
    return tag("text", text, class_=class_, **place)


def _title(text: str) -> Html:
    return tag("title", text) if text else Html()
