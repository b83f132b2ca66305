"""Building blocks of a self-contained HTML page: no request, no dependency.

Pages work without a script; `interactive` adds the one in `page.js`, which lets the
reader sort and filter tables and hide curves.

Blocks take text or blocks and return `Html`; text is escaped, `Html` is not. Charts
are in `charts.py`, pictures in `pictures.py`, styles in `style.css` and `chart.css`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path

from kernlets.io.atomic_write import atomic_write

Part = object  # Html, or anything that is shown as text


class Html(str):
    """Markup that is ready; every other string is text."""


def html(*parts: Part) -> Html:
    """The parts one after the other, text escaped."""
    return Html("".join(p if isinstance(p, Html) else escape(str(p)) for p in parts))


def tag(name: str, *parts: Part, **attributes: object) -> Html:
    """An element; ``class_`` and ``aria_label`` stand for class and aria-label."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Html(f"<{name}{written}>{html(*parts)}</{name}>")


def section(heading: str, *parts: Part) -> Html:
    """A headed part of the page."""
    return tag("section", tag("h2", heading), *parts)


def paragraph(*parts: Part) -> Html:
    return tag("p", *parts)


def figure(content: Part, *caption: Part, class_: str | None = None) -> Html:
    """A picture or chart with its caption."""
    return tag("figure", content, tag("figcaption", *caption), class_=class_)


def row(*parts: Part, class_: str = "row") -> Html:
    """Parts side by side (``row``, ``row small``, ``cards``), wrapped if need be."""
    return tag("div", *parts, class_=class_)


def table(
    header: Sequence[Part],
    rows: Iterable[Sequence[Part]],
    note: Part = "",
    strong: Iterable[tuple[int, int]] = (),
    class_: str | None = None,
) -> Html:
    """A table whose first column names the rows; `strong` cells stand out."""
    marked = set(strong)
    head = tag("tr", *(tag("th", cell, scope="col") for cell in header))
    body = (
        tag("tr", *_cells(cells, {j for i, j in marked if i == index}))
        for index, cells in enumerate(rows)
    )
    written = tag("table", tag("thead", head), tag("tbody", *body), class_=class_)
    return html(tag("div", written, class_="scroll"), tag("p", note, class_="note"))


def _cells(cells: Sequence[Part], strong: set[int]) -> Iterable[Html]:
    yield tag("th", cells[0], scope="row")
    for column, cell in enumerate(cells[1:], start=1):
        yield tag("td", cell, class_="best" if column in strong else None)


def facts(items: Mapping[str, Part]) -> Html:
    """Names and values, as a description list."""
    pairs = (html(tag("dt", name), tag("dd", value)) for name, value in items.items())
    return tag("dl", *pairs)


def numbers(items: Mapping[str, Part]) -> Html:
    """A few large numbers, each with what it is."""
    tiles = (
        tag("li", tag("strong", value), tag("span", name))
        for name, value in items.items()
    )
    return tag("ul", *tiles, class_="numbers")


def page(title: str, lead: Part, *parts: Part, interactive: bool = False) -> Html:
    """The whole document."""
    style = html(own_file("chart.css"), own_file("style.css"))
    head = html(
        Html('<meta charset="utf-8">'),
        Html('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        tag("title", title),
        tag("style", style),
    )
    header = tag("header", tag("h1", title), tag("p", lead))
    script = tag("script", own_file("page.js")) if interactive else ""
    shown = "interactive" if interactive else None
    body = tag("body", header, tag("main", *parts), script, class_=shown)
    return Html(f"<!doctype html>\n{tag('html', tag('head', head), body, lang='en')}\n")


def own_file(name: str) -> Html:
    """The text of a file beside this one: styles, or the script."""
    return Html(files(__package__).joinpath(name).read_text("utf-8"))


def write_page(path: Path, content: str) -> Path:
    """Write a page, whole or not at all."""
    return write_file(path, content.encode())


def write_file(path: Path, content: bytes) -> Path:
    """Write a file and the folder it is in, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as file:
        file.write(content)
    return path
