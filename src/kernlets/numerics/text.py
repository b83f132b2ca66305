"""Makes text from untrusted files safe to show, and writes sizes."""

from __future__ import annotations

import re
from dataclasses import fields
from html import escape
from typing import Any


def printable(text: object) -> str:
    r"""Return text on one line without control characters.

    Line breaks become spaces; other characters that cannot be seen, such as those that
    begin escape sequences or turn the direction of writing, are spelled out.

    >>> printable("red \x1b[31m alert\n")
    'red \\x1b[31m alert'
    """
    line = " ".join(str(text).split())
    return line if line.isprintable() else "".join(map(_visible, line))


def _visible(character: str) -> str:
    if character.isprintable():
        return character
    return character.encode("unicode_escape", "surrogatepass").decode()


MARKS = re.compile(r"([\\`*~|#\[\]]|(?<!\w)_|_(?!\w)|(?<=\w)://|(?<=www)\.)", re.I)


def markdown_text(text: object) -> str:
    r"""Return text on one line that Markdown shows as it is, without links or HTML.

    >>> markdown_text("![x](http://a.b) <b> n_components")
    '!\\[x\\](http\\://a.b) &lt;b&gt; n_components'
    """
    return MARKS.sub(r"\\\1", escape(printable(text), quote=False))


def field_text(record: Any) -> str:
    """Return the fields of a data class or named tuple, of arrays type and shape only.

    It serves as ``__repr__``. Fields that are None or empty tuples are left out.
    """
    names = getattr(record, "_fields", None) or [f.name for f in fields(record)]
    texts = []
    for name in names:
        value = getattr(record, name)
        if hasattr(value, "shape") and hasattr(value, "dtype"):
            is_text = getattr(value.dtype, "kind", "") in ("U", "O")
            kind = "text" if is_text else value.dtype
            texts.append(f"{name}=<{kind} {tuple(value.shape)}>")
        elif value is not None and value != ():
            texts.append(f"{name}={value!r}")
    return f"{type(record).__name__}({', '.join(texts)})"


def size_text(n_bytes: float) -> str:
    """Return a size in the unit that fits it.

    >>> size_text(999), size_text(10_000), size_text(1.5e12)
    ('999 B', '10 kB', '1.5 TB')
    """
    size, unit = float(n_bytes), "B"
    for larger_unit in ("kB", "MB", "GB", "TB"):
        if size < 999.5:
            break
        size, unit = size / 1000, larger_unit
    return f"{size:.3g} {unit}"
