"""Charts as SVG, inside a page or as a file, light or dark as the reader prefers.

`LineChart` shows several curves with the spread over seeds, `bar_chart` a few bars.
A curve and its name carry the same number, so that a script can hide both. The
reports and pages draw with nothing else; pictures for notebooks and papers are in
`kernlets.plotting`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from math import ceil, floor, log10
from statistics import fmean, pstdev
from typing import Any

from .html import Html, html, own_file, tag

Curve = Mapping[Any, Collection[float]]  # x -> y of each seed

WIDTH, HEIGHT = 520, 320
LEFT, RIGHT, TOP, BOTTOM = 58, 14, 12, 46
ROW = 18  # of the legend in a file
APART = 15  # names beside the ends of lines
COINCIDE = 3.0  # at most so far apart, two points are one to the eye
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

    def inside(self, value: float) -> float:
        """The value, or the end of the range that is nearest to it."""
        return min(max(value, self.low), self.high)

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


@dataclass(frozen=True)
class LineChart:
    """Means as lines, one standard deviation over seeds as a band.

    `log` names the logarithmic axes: "x", "y" or "xy". `bound` is a dashed line with a
    name, `marks` are hollow points of some curves: numbers from elsewhere. A line that
    lies on an earlier one for the most part is dashed, so that both colours are seen.
    """

    curves: Mapping[str, Curve]
    x_label: str
    y_label: str
    log: str = ""
    bound: tuple[str, Mapping[Any, float]] | None = None
    written: Callable[[float], str] = "{:g}".format
    marks: Mapping[str, Mapping[Any, float]] = field(default_factory=dict)

    def block(self) -> Html:
        """The drawing and its legend, for a page that has the styles."""
        chart = _svg(WIDTH, HEIGHT, self._label(), *self._layers())
        items = (
            tag("li", _key(sample), name, data_series=index)
            for name, sample, index in self._legend()
        )
        return html(chart, tag("ul", *items, class_="legend"))

    def named_block(self) -> Html:
        """The drawing with names beside the ends of its lines.

        A narrow page has no room there, and shows the legend instead, from the highest
        line to the lowest.
        """
        names = sorted(self._ends(), key=lambda entry: entry[1])
        x = WIDTH - RIGHT - 8
        places = _spread([y for _, y, _ in names], APART)
        beside = (
            _name(name, x, y, place, index)
            for (name, y, index), place in zip(names, places, strict=True)
        )
        drawn = tag("g", *beside, class_="names")
        chart = _svg(WIDTH, HEIGHT, self._label(), *self._layers(), drawn)
        samples = {name: sample for name, sample, _ in self._legend()}
        items = (tag("li", _key(samples[name]), name) for name, _, _ in names)
        listed = tag("ul", *items, class_="legend")
        return tag("div", chart, listed, class_="named")

    def _ends(self) -> Iterator[tuple[str, float, int | None]]:
        """Name, height of the last point and number of each line."""
        _, y_scale = self._scales()
        for index, (name, curve) in enumerate(self.curves.items()):
            yield name, y_scale(list(_means(curve).values())[-1]), index
        if self.bound:
            yield self.bound[0], y_scale(self.bound[1][max(self.bound[1])]), None

    def file(self) -> str:
        """An SVG file of its own, with its styles and the legend at the right."""
        entries = list(self._legend())
        width = WIDTH + 44 + 7 * max(len(name) for name, *_ in entries)
        height = max(HEIGHT, TOP + ROW * len(entries))
        lines = (
            tag("g", sample, _text(32, 11, name, "tick"), transform=_at(WIDTH + 6, y))
            for y, (name, sample, _) in zip(count(TOP, ROW), entries, strict=False)
        )
        return tag(
            "svg",
            tag("style", own_file("chart.css")),
            tag("rect", width=width, height=height, class_="paper"),
            *self._layers(),
            *lines,
            xmlns="http://www.w3.org/2000/svg",
            viewBox=f"0 0 {width} {height}",
            width=width,
            height=height,
            font_family="system-ui, sans-serif",
            role="img",
            aria_label=self._label(),
        )

    def _label(self) -> str:
        return f"{self.y_label} against {self.x_label} for {', '.join(self.curves)}"

    def _scales(self) -> tuple[Scale, Scale]:
        means = [_means(curve) for curve in self.curves.values()]
        others = [*self.marks.values(), *([self.bound[1]] if self.bound else [])]
        return _scales([*means, *others], self.log)

    def _layers(self) -> Iterator[Html]:
        means = {name: _means(curve) for name, curve in self.curves.items()}
        x_scale, y_scale = self._scales()
        heights = [
            {x: y_scale(y) for x, y in curve.items()} for curve in means.values()
        ]
        places = sorted({x for curve in means.values() for x in curve})
        labels = self.x_label, self.y_label
        yield _axes(x_scale, y_scale, places, *labels, self.written)
        for index, (name, curve) in enumerate(self.curves.items()):
            yield _band(curve, x_scale, y_scale, index)
            hidden = any(_coincide(heights[index], each) for each in heights[:index])
            style = _style(index) + (" over" if hidden else "")
            scales = x_scale, y_scale
            yield _line(name, means[name], *scales, index, self.written, style)
            for x, y in self.marks.get(name, {}).items():
                yield _hollow(name, x, y, x_scale, y_scale, index)
        if self.bound:
            points = _points(self.bound[1], x_scale, y_scale)
            yield tag("polyline", points=points, class_="bound")

    def _legend(self) -> Iterator[tuple[str, Html, int | None]]:
        """Name, sample and number of each entry; only curves have a number."""
        for index, name in enumerate(self.curves):
            line = tag("polyline", points="1,7 23,7")
            parts = line, _marker(index, 12, 7, "")
            yield name, tag("g", *parts, class_=_style(index)), index
        if self.bound:
            line = tag("line", x1=1, x2=23, y1=7, y2=7, class_="bound")
            yield self.bound[0], line, None
        if self.marks:
            circle = tag("circle", cx=12, cy=7, r=5)
            yield "published", tag("g", circle, class_="hollow c0"), None


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
    return {x: fmean(y) for x, y in sorted(curve.items())}


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
    style: str,
) -> Html:
    points = tag("polyline", points=_points(curve, x_scale, y_scale))
    marks = (
        _marker(index, x_scale(x), y_scale(y), f"{name}, {x:g}: {written(y)}")
        for x, y in curve.items()
    )
    return tag("g", points, *marks, class_=style, data_series=index)


def _coincide(one: Mapping[Any, float], other: Mapping[Any, float]) -> bool:
    """Whether two lines, given by their heights, mostly lie on each other."""
    near = [abs(one[x] - other[x]) <= COINCIDE for x in one if x in other]
    return 2 * sum(near) > len(one)


def _spread(heights: Sequence[float], apart: float) -> list[float]:
    """Places near increasing heights, at least so far apart, above the bottom."""
    places: list[float] = []
    for height in heights:
        places.append(max(height, places[-1] + apart) if places else height)
    limit = HEIGHT - BOTTOM + apart
    for i in reversed(range(len(places))):
        places[i] = min(places[i], limit)
        limit = places[i] - apart
    return places


def _name(name: str, x: float, y: float, place: float, index: int | None) -> Html:
    """The name of a line, and a thin line that leads to it."""
    colour = "" if index is None else f" c{index % 8}"
    lead = tag("polyline", points=f"{x + 5},{y} {x + 16},{place} {x + 20},{place}")
    text = _text(x + 24, place + 4, name, "name")
    return tag("g", lead, text, class_=f"lead{colour}", data_series=index)


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
    deviation = {x: pstdev(map(float, y)) for x, y in curve.items()}
    if not any(deviation.values()):
        return Html()
    means = _means(curve).items()
    edges = [
        [(x, y_scale.inside(y + sign * deviation[x])) for x, y in means]
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
    return tag("polygon", _title(title), points=corners[name], transform=_at(x, y))


def _key(sample: Html) -> Html:
    return tag("svg", sample, viewBox="0 0 24 14", aria_hidden="true")


def _at(x: float, y: float) -> str:
    return f"translate({x} {y})"


def _text(
    x: float, y: float, text: object, class_: str, transform: str | None = None
) -> Html:
    place = {"x": round(x, 1), "y": round(y, 1), "transform": transform}
    return tag("text", text, class_=class_, **place)


def _title(text: str) -> Html:
    return tag("title", text) if text else Html()
