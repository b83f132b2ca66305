"""The page to draw on: digits, recognised in the browser, beside the other pages."""

from __future__ import annotations

from pathlib import Path

from sphinx.application import Sphinx

from demo.draw import write_digits_page


def write_page(app: Sphinx, error: Exception | None) -> None:
    if error is None and app.builder.format == "html":
        write_digits_page(Path(app.outdir) / "draw.html")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("build-finished", write_page)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
