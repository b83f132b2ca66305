"""Makes text from untrusted files safe to print."""

from __future__ import annotations


def printable(text: object) -> str:
    r"""Text on one line without control characters.

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
