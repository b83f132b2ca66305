"""HTML of a fitted estimator for notebooks, below scikit-learn's diagram.

It shows sizes, the atoms (or anchors, or landmarks) as small pictures or lines, and the
history as a line. It needs no other files, and has the colour of the page's text, so
that it suits light and dark pages.
"""

from __future__ import annotations

import struct
import zlib
from base64 import b64encode
from collections.abc import Sequence
from html import escape
from math import ceil, isqrt
from typing import Any

import numpy as np

from ..numerics.arrays import numpy_dtype, to_numpy

MAX_ROWS = 48  # pictures or lines of one dictionary
COLUMNS = 12
ROWS = 12  # classes
PIXELS = 40  # width of a picture
LINE = 76, 30  # width and height of a line
STYLE = "margin:.5em 0;font:13px system-ui,sans-serif;line-height:1.5"
STROKE = 'fill="none" stroke="currentColor" stroke-width="1.3" stroke-linejoin="round"'


def portrait(model: Any) -> str:
    """Return HTML of a fitted model; nothing if there is nothing to show."""
    sections = [_sizes(model), _pictures(model), _history(model)]
    html = "".join(f"<div>{section}</div>" for section in sections if section)
    return f'<div class="kernlets-portrait" style="{STYLE}">{html}</div>' * bool(html)


def _learners(model: Any) -> list[Any]:
    """Return the model, or the learners of its classes."""
    return list(getattr(model, "learners_", [model]))


def _sizes(model: Any) -> str:
    learners = _learners(model)
    dictionaries = [getattr(learner, "dictionary_", None) for learner in learners]
    n_atoms = sum(d.n_atoms for d in dictionaries if d is not None)
    counts = {
        "classes": len(getattr(model, "classes_", ())),
        "atoms": n_atoms,
        "landmarks": getattr(model, "n_landmarks_", 0),
        "features": getattr(model, "n_features_in_", 0),
        "iterations": getattr(learners[0], "n_iter_", 0),
    }
    phrases = [f"<b>{value}</b> {name}" for name, value in counts.items() if value]
    coder = getattr(learners[0], "coder_", None)
    if coder is not None:
        phrases.append(f"codes by <code>{escape(repr(coder))}</code>")
    return " · ".join(phrases) if n_atoms or counts["landmarks"] else ""


def _pictures(model: Any) -> str:
    learners = _learners(model)
    name = _rows_to_draw(learners[0])[0]
    points = [_rows_to_draw(learner)[1] for learner in learners]
    if any(rows is None for rows in points):
        return ""
    has_classes = len(learners) > 1
    limit = COLUMNS if has_classes else MAX_ROWS
    groups = [np.asarray(to_numpy(p[:limit]), dtype=float) for p in points[:ROWS]]
    n_columns = max(map(len, groups)) if has_classes else COLUMNS
    rows = np.concatenate([_pad_rows(group, n_columns) for group in groups])
    side = image_side(rows)
    total, n_shown = sum(map(len, points)), sum(map(len, groups))
    text = f"{n_shown} of {total} {name}" if n_shown < total else f"{total} {name}"
    text += ", one row per class" if has_classes else ""
    drawing = (
        _draw_mosaic(rows, n_columns, text, side)
        if side
        else _draw_lines(rows, min(n_columns, 8), text)
    )
    return f'{drawing}<br><span style="opacity:.7">{text}</span>'


def _rows_to_draw(model: Any) -> tuple[str, Any]:
    """Return the rows to draw with their name; None if there are none."""
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


def _pad_rows(rows: np.ndarray, n_columns: int) -> np.ndarray:
    """Append rows of NaN, so that the next class begins a line."""
    n_missing = -len(rows) % n_columns
    return np.pad(rows, ((0, n_missing), (0, 0)), constant_values=np.nan)


def image_side(rows: np.ndarray) -> int:  # (m, p)
    """Return the side of square pictures, or 0 if rows do not look like pictures.

    In a picture the pixel below is about as similar as the pixel beside it; in a series
    of the same length it is a much later point.
    """
    complete_rows = rows[~np.isnan(rows).any(axis=1)]
    side = isqrt(rows.shape[1])
    if side < 4 or side * side != rows.shape[1]:
        return 0
    pictures = complete_rows.reshape(-1, side, side)
    beside = _cosine(pictures[:, :, :-1], pictures[:, :, 1:])
    below = _cosine(pictures[:, :-1], pictures[:, 1:])
    return side if below > 0.2 and below > 0.5 * beside else 0


def _cosine(a: np.ndarray, b: np.ndarray) -> float:
    """Return the cosine of the angle between two arrays."""
    lengths = np.sqrt(np.sum(a**2) * np.sum(b**2))
    return float(np.sum(a * b) / lengths) if lengths else 0.0


def _draw_mosaic(rows: np.ndarray, n_columns: int, description: str, side: int) -> str:
    address = data_address(tiles(rows, (side, side), n_columns))
    width = PIXELS * min(n_columns, len(rows))
    css = f"width:{width}px;max-width:100%;height:auto;image-rendering:pixelated"
    return f'<img alt="{escape(description)}" src="{address}" style="{css}">'


def _draw_lines(rows: np.ndarray, n_columns: int, description: str) -> str:
    """Draw one small line for each row, on a grid, each in its own scale."""
    width, height = LINE
    groups = []
    for index, row in enumerate(rows[~np.isnan(rows).any(axis=1)]):
        line, column = divmod(index, n_columns)
        transform = f"translate({column * width} {line * height})"
        polyline = _polyline(row, width - 8, height - 6)
        groups.append(f'<g transform="{transform}">{polyline}</g>')
    n_lines = -(-len(groups) // n_columns)
    return _svg(n_columns * width, n_lines * height, description, "".join(groups))


def _history(model: Any) -> str:
    """Draw the objectives of the iterations, of each class if there are classes."""
    histories = [getattr(learner, "history_", {}) for learner in _learners(model)]
    curves = [history.get("objective", ()) for history in histories]
    curves = [curve for curve in curves if len(curve) > 1]
    if not curves:
        return ""
    logs = [np.log(np.maximum(curve, np.finfo(float).tiny)) for curve in curves]
    value_range = min(map(np.min, logs)), max(map(np.max, logs))
    polylines = "".join(_polyline(log, 232, 36, value_range) for log in logs)
    first, last = np.mean([(curve[0], curve[-1]) for curve in curves], axis=0)
    text = f"objective {first:.3g} → {last:.3g} in {max(map(len, curves))} iterations"
    return f'{_svg(240, 44, text, polylines)} <span style="opacity:.7">{text}</span>'


def _polyline(
    values: Any, width: int, height: int, value_range: Sequence[float] | None = None
) -> str:
    low, high = (np.min(values), np.max(values)) if value_range is None else value_range
    x = np.linspace(4, 4 + width, len(values))
    y = 3 + height * (1 - (np.asarray(values) - low) / ((high - low) or 1.0))
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))
    return f'<polyline points="{points}" {STROKE}/>'


def _svg(width: int, height: int, description: str, content: str) -> str:
    return (
        f'<svg role="img" aria-label="{escape(description)}" '
        f'viewBox="0 0 {width} {height}" style="width:{width}px;'
        f'max-width:100%;height:auto;vertical-align:middle">'
        f"{content}</svg>"
    )


def tiles(
    atoms: np.ndarray,  # (m, p)
    image_shape: tuple[int, ...],
    n_columns: int | None = None,
) -> np.ndarray:
    """Draw atoms in one image with values in [0, 1].

    0.5 is zero; margins and NaN are white.
    """
    atoms = np.asarray(atoms, dtype=float)
    n_columns = n_columns or ceil(len(atoms) ** 0.5)
    n_rows = ceil(len(atoms) / n_columns)
    largest = np.nanmax(np.abs(atoms), axis=1, keepdims=True, initial=0.0)
    scaled = 0.5 + 0.5 * atoms / np.where(largest == 0, 1.0, largest)
    scaled = np.nan_to_num(scaled, nan=1.0).reshape(-1, *image_shape)
    height, width, *channels = image_shape
    shape = n_rows * (height + 1) - 1, n_columns * (width + 1) - 1
    picture = np.ones((*shape, *channels))
    for index, tile in enumerate(scaled):
        top, left = np.multiply(divmod(index, n_columns), (height + 1, width + 1))
        picture[top : top + height, left : left + width] = tile
    return picture


def data_address(grey: np.ndarray) -> str:
    """Return the picture as the address of an image in a page."""
    return "data:image/png;base64," + b64encode(png(grey)).decode("ascii")


def png(grey: np.ndarray) -> bytes:  # (height, width) in [0, 1]
    """Return an 8-bit grey PNG file."""
    pixels = np.round(255 * np.clip(grey, 0, 1)).astype(np.uint8)
    height, width = pixels.shape
    lines = np.pad(pixels, ((0, 0), (1, 0)))  # filter type 0 starts each line
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    data = zlib.compress(lines.tobytes(), 9)
    chunks = _chunk(b"IHDR", header) + _chunk(b"IDAT", data) + _chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + chunks


def _chunk(kind: bytes, data: bytes) -> bytes:
    check = struct.pack(">I", zlib.crc32(kind + data))
    return struct.pack(">I", len(data)) + kind + data + check
