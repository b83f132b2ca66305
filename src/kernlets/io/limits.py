"""JSON from files, with limits on its depth, its parts and the memory it takes.

A few bytes of JSON can require a lot of memory: deep nesting, millions of empty lists,
wide cells of text. All of it is counted before it is built.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

MAX_DEPTH = 256  # nested brackets
MAX_OBJECTS = 2**18  # JSON objects: values with a tag, estimators, records
MAX_DIGITS = 100  # of a whole number
#: A file of n bytes may take FACTOR * n + FLOOR bytes of memory.
FACTOR = 16
FLOOR = 2**24
#: Bytes of memory that the object behind a mark outside of text, or a quote, may take.
COSTS = {",": 32, "[": 64, "{": 256}
QUOTE_COST = 32


class MemoryBudget:
    """The memory that loading may take, counted before it is taken."""

    def __init__(self, file_bytes: int) -> None:
        self.left = FACTOR * file_bytes + FLOOR

    def take(self, n_bytes: int) -> None:
        """Count bytes that are about to be allocated; refuse if they are too many."""
        self.left -= n_bytes
        if self.left < 0:
            raise ValueError("it would take far more memory than the file has bytes")


def check_outline(text: bytes, budget: MemoryBudget) -> None:
    """Refuse JSON that is too deep or has too many parts, before it is read."""
    # without escaped characters, every quote begins or ends a text
    text = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    characters = np.frombuffer(text, np.uint8)
    # a character is inside of text after an odd number of quotes, even if sums overflow
    is_inside = np.cumsum(characters == ord('"'), dtype=np.uint8) % 2
    n_quotes = np.count_nonzero(characters == ord('"'))
    characters = characters[is_inside == 0]
    is_mark = {mark: characters == ord(mark) for mark in ",[]{}"}
    counts = {mark: int(is_mark[mark].sum()) for mark in COSTS}
    if counts["{"] > MAX_OBJECTS:
        raise ValueError(f"it has more than {MAX_OBJECTS} objects")
    steps = (is_mark["["] | is_mark["{"]).astype(np.int8)
    steps -= is_mark["]"] | is_mark["}"]
    if np.cumsum(steps, dtype=np.int32).max(initial=0) > MAX_DEPTH:
        raise ValueError(f"it is nested more than {MAX_DEPTH} deep")
    cost = sum(COSTS[mark] * count for mark, count in counts.items())
    budget.take(cost + QUOTE_COST * int(n_quotes))


def parse_json(text: str | bytes, budget: MemoryBudget) -> Any:
    """Parse JSON of moderate size; refuse what readers may interpret differently."""
    if isinstance(text, str):
        text = text.encode("utf-8", "surrogatepass")
    check_outline(text, budget)
    return json.loads(
        text,
        object_pairs_hook=_refuse_repeated_names,
        parse_constant=_refuse_constant,
        parse_int=_parse_whole_number,
    )


def _refuse_repeated_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        raise ValueError("a name stands twice")
    return mapping


def _refuse_constant(text: str) -> Any:
    raise ValueError(f"{text} is no JSON")


def _parse_whole_number(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise ValueError(f"it has a number with {len(digits)} digits")
    return int(digits)
