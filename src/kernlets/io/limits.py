"""Limits on the content of a file: number of parts, depth and memory.

A few bytes of JSON can require a lot of memory: deep nesting, millions of empty lists,
wide cells of text. All of it is counted before it is built.
"""

from __future__ import annotations

import numpy as np

MAX_DEPTH = 256  # nested brackets
MAX_OBJECTS = 2**18  # JSON objects: values with a tag, estimators, records
MAX_DIGITS = 100  # of a whole number
FACTOR = 16  # bytes in memory for a byte in the file,
FLOOR = 2**24  # and for a file of any size

#: What a mark outside of text may stand for in memory, in bytes.
COSTS = {b",": 32, b'"': 32, b"[": 64, b"{": 256}


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
    characters = np.frombuffer(_without_escapes(text), np.uint8)
    quotes = characters == ord('"')
    # sums that overflow keep whether they are odd: inside of text
    outside = np.cumsum(quotes, dtype=np.uint8) % 2 == 0
    is_mark = {mark: (characters == ord(mark)) & outside for mark in (b",", b"[", b"{")}
    counts = {mark: int(np.count_nonzero(mask)) for mark, mask in is_mark.items()}
    counts[b'"'] = int(np.count_nonzero(quotes))
    if counts[b"{"] > MAX_OBJECTS:
        raise ValueError(f"it has more than {MAX_OBJECTS} objects")
    opened = is_mark[b"["] | is_mark[b"{"]
    closed = ((characters == ord("]")) | (characters == ord("}"))) & outside
    if _depth(opened, closed) > MAX_DEPTH:
        raise ValueError(f"it is nested more than {MAX_DEPTH} deep")
    budget.take(sum(COSTS[mark] * count for mark, count in counts.items()))


def _without_escapes(text: bytes) -> bytes:
    """Remove escaped characters: the quotes that remain begin and end strings."""
    return text.replace(b"\\\\", b"").replace(b'\\"', b"")


def _depth(opened: np.ndarray, closed: np.ndarray) -> int:
    steps = opened.astype(np.int8) - closed.astype(np.int8)
    return int(np.cumsum(steps, dtype=np.int32).max(initial=0))
