"""What a notebook shows of a fitted estimator, below scikit-learn's diagram.

Its sizes, its atoms (or anchors, or landmarks) as small pictures or lines, and its
history as a line. Everything is in the page itself, and in the colour of its text, so
that it suits light and dark pages.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from math import isqrt
from typing import Any

import numpy as np

from .arrays import numpy_dtype, to_numpy
from .png import data_address, tiles

SHOWN = 48  # pictures or lines of one dictionary
COLUMNS = 12
ROWS = 12  # classes
PIXELS = 40  # width of a picture
LINE = 76, 30  # width and height of a line
STYLE = "margin:.5em 0;font:13px system-ui,sans-serif;line-height:1.5"
STROKE = 'fill="none" stroke="currentColor" stroke-width="1.3" stroke-linejoin="round"'


def portrait(model: Any) -> str:
    """HTML of a fitted model; nothing if there is nothing to show."""
    parts = [_sizes(model), _pictures(model), _history(model)]
    shown = "".join(f"<div>{part}</div>" for part in parts if part)
    return f'<div class="kernlets-portrait" style="{STYLE}">{shown}</div>' * bool(shown)


def _learners(model: Any) -> list[Any]:
    """The model, or the learners of its classes."""
    return list(getattr(model, "learners_", [model]))


def _sizes(model: Any) -> str:
    learners = _learners(model)
    found = [getattr(each, "dictionary_", None) for each in learners]
    n_atoms = sum(each.n_atoms for each in found if each is not None)
    facts = {
        "classes": len(getattr(model, "classes_", ())),
        "atoms": n_atoms,
        "landmarks": getattr(model, "n_landmarks_", 0),
        "features": getattr(model, "n_features_in_", 0),
        "iterations": getattr(learners[0], "n_iter_", 0),
    }
    words = [f"<b>{value}</b> {name}" for name, value in facts.items() if value]
    coder = getattr(learners[0], "coder_", None)
    if coder is not None:
        words.append(f"codes by <code>{escape(repr(coder))}</code>")
    return " · ".join(words) if n_atoms or facts["landmarks"] else ""


def _pictures(model: Any) -> str:
    learners = _learners(model)
    name = _points(learners[0])[0]
    points = [_points(learner)[1] for learner in learners]
    if any(rows is None for rows in points):
        return ""
    of_classes = len(learners) > 1
    groups = [_some(rows, COLUMNS if of_classes else SHOWN) for rows in points[:ROWS]]
    n_columns = max(map(len, groups)) if of_classes else COLUMNS
    rows = np.concatenate([_padded(group, n_columns) for group in groups])
    side = image_side(rows)
    draw = _mosaic if side else _lines
    total, shown = sum(map(len, points)), sum(map(len, groups))
    words = f"{shown} of {total} {name}" if shown < total else f"{total} {name}"
    words += ", one row per class" if of_classes else ""
    caption = f'<br><span style="opacity:.7">{words}</span>'
    return draw(rows, n_columns, words, side) + caption


def _points(model: Any) -> tuple[str, Any]:
    """Rows in the space of the samples, and what they are; None if there are none."""
    dictionary = getattr(model, "dictionary_", None)
    candidates = {
        "atoms": getattr(dictionary, "atoms", None),
        "anchors": getattr(dictionary, "anchors", None),
        "landmarks": getattr(model, "landmarks_", None),
    }
    for name, rows in candidates.items():
        if getattr(rows, "ndim", 0) == 2 and numpy_dtype(rows).kind == "f":
            return name, rows
    return "", None


def _some(rows: Any, count: int) -> np.ndarray:
    return np.asarray(to_numpy(rows[:count]), dtype=float)


def _padded(rows: np.ndarray, n_columns: int) -> np.ndarray:
    """Rows of NaN after the last one, so that another class begins a line."""
    missing = -len(rows) % n_columns
    return np.pad(rows, ((0, missing), (0, 0)), constant_values=np.nan)


def image_side(rows: np.ndarray) -> int:  # (m, p)
    """The side of square pictures, or 0 if rows do not look like such.

    In a picture what lies below is about as similar as what lies beside; in a series
    of the same length it is a point much later.
    """
    known = rows[~np.isnan(rows).any(axis=1)]
    side = isqrt(rows.shape[1])
    if side < 4 or side * side != rows.shape[1]:
        return 0
    pictures = known.reshape(-1, side, side)
    beside = _likeness(pictures[:, :, :-1], pictures[:, :, 1:])
    below = _likeness(pictures[:, :-1], pictures[:, 1:])
    return side if below > 0.2 and below > 0.5 * beside else 0


def _likeness(one: np.ndarray, other: np.ndarray) -> float:
    """The cosine of the angle between two arrays."""
    lengths = np.sqrt(np.sum(one**2) * np.sum(other**2))
    return float(np.sum(one * other) / lengths) if lengths else 0.0


def _mosaic(rows: np.ndarray, n_columns: int, words: str, side: int) -> str:
    picture = tiles(rows, (side, side), n_columns)
    width = PIXELS * min(n_columns, len(rows))
    look = f"width:{width}px;max-width:100%;height:auto;image-rendering:pixelated"
    address = data_address(picture)
    return f'<img alt="{escape(words)}" src="{address}" style="{look}">'


def _lines(rows: np.ndarray, n_columns: int, words: str, side: int) -> str:
    """One small line for each row, on a grid, each in its own scale."""
    width, height = LINE
    n_columns = min(n_columns, 8)
    drawn = []
    for index, row in enumerate(rows[~np.isnan(rows).any(axis=1)]):
        line, column = divmod(index, n_columns)
        place = f"translate({column * width} {line * height})"
        line = _polyline(row, width - 8, height - 6)
        drawn.append(f'<g transform="{place}">{line}</g>')
    size = n_columns * width, -(-len(drawn) // n_columns) * height
    return _svg(size, words, "".join(drawn))


def _history(model: Any) -> str:
    """Objectives of the iterations, of each class if there are classes."""
    found = [getattr(each, "history_", {}) for each in _learners(model)]
    curves = [each["objective"] for each in found if len(each.get("objective", ())) > 1]
    if not curves:
        return ""
    size = 240, 44
    logs = [np.log(np.maximum(curve, np.finfo(float).tiny)) for curve in curves]
    ends = min(map(np.min, logs)), max(map(np.max, logs))
    drawn = "".join(_polyline(log, size[0] - 8, size[1] - 8, ends) for log in logs)
    first, last = np.mean([(curve[0], curve[-1]) for curve in curves], axis=0)
    words = f"objective {first:.3g} → {last:.3g} in {max(map(len, curves))} iterations"
    return f'{_svg(size, words, drawn)} <span style="opacity:.7">{words}</span>'


def _polyline(
    values: Any, width: int, height: int, ends: Sequence[float] | None = None
) -> str:
    low, high = (np.min(values), np.max(values)) if ends is None else ends
    x = np.linspace(4, 4 + width, len(values))
    y = 3 + height * (1 - (np.asarray(values) - low) / ((high - low) or 1.0))
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))
    return f'<polyline points="{points}" {STROKE}/>'


def _svg(size: tuple[int, int], words: str, drawn: str) -> str:
    width, height = size
    return (
        f'<svg role="img" aria-label="{escape(words)}" viewBox="0 0 {width} {height}" '
        f'style="width:{width}px;max-width:100%;height:auto;vertical-align:middle">'
        f"{drawn}</svg>"
    )
