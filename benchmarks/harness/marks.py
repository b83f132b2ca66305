"""Generated parts of pages, each between ``<!-- NAME -->`` and ``<!-- end -->``."""

from __future__ import annotations

import re
from collections.abc import Iterator

_PART = re.compile(r"<!-- (?P<name>[^\n]+?) -->\n.*?<!-- end -->", re.DOTALL)


def names(text: str) -> Iterator[str]:
    """The names of the parts of a page, in order."""
    yield from (found["name"] for found in _PART.finditer(text))


def filled(text: str, name: str, content: str) -> str:
    """The page with new content in the part of this name, which must be there."""
    if name not in names(text):
        raise ValueError(
            f"the page has no part {name!r}: add the lines '<!-- {name} -->' and "
            "'<!-- end -->'"
        )

    def new(found: re.Match[str]) -> str:
        same = found["name"] == name
        return f"<!-- {name} -->\n\n{content}\n\n<!-- end -->" if same else found[0]

    return _PART.sub(new, text)


def without_parts(text: str) -> str:
    """The page without its generated parts."""
    return _PART.sub("", text)
