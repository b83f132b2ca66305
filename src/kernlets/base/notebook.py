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
BARS = 40  # of the histogram of scores
PIXELS = 40  # width of a picture
LINE = 76, 30  # width and height of a line
STYLE = "margin:.5em 0;font:13px system-ui,sans-serif;line-height:1.5"
STROKE = 'fill="none" stroke="currentColor" stroke-width="1.3" stroke-linejoin="round"'


def portrait(model: Any) -> str:
    """Return HTML of a fitted model; nothing if there is nothing to show."""
    steps = _fitted_steps(model)
    pictures = filter(None, map(_pictures, steps))
    sections = [
        _search(model),
        _scores(model),
        _sizes(steps[-1], model),
        next(pictures, ""),
        _history(steps[-1]),
    ]
    return _frame(sections)


def data_portrait(
    rows: np.ndarray, image_shape: tuple[int, ...] | None, text: str
) -> str:
    """Return HTML of a data set: a text, and its first images."""
    sections = [f"<code>{escape(text)}</code>"]
    if image_shape is not None:
        images = np.asarray(rows[: 2 * COLUMNS], dtype=float)
        grey = images.reshape(len(images), *image_shape[:2], -1).mean(axis=3)
        description = f"the first {len(images)} images"
        sections.append(_draw_mosaic(grey, COLUMNS, description))
    return _frame(sections)


def text_portrait(text: str, picture: np.ndarray | None = None) -> str:
    """Return HTML of a text of several lines, and a picture in front of it."""
    drawing = ""
    if picture is not None:
        css = "width:320px;max-width:100%;height:auto;image-rendering:pixelated"
        description = "the image, and beside it in red what speaks for its label"
        address = data_address(picture)
        drawing = f'<img alt="{description}" src="{address}" style="{css}">'
    return _frame([drawing, f'<pre style="margin:0">{escape(text)}</pre>'])


def _frame(sections: Sequence[str]) -> str:
    html = "".join(f"<div>{section}</div>" for section in sections if section)
    return f'<div class="kernlets-portrait" style="{STYLE}">{html}</div>' * bool(html)


def _fitted_steps(model: Any) -> list[Any]:
    """Return the steps of a fitted model that has atoms: the last one learned them."""
    for name in ("best_pipeline_", "detector_", "learner_", "patches_"):
        inner_model = getattr(model, name, None)
        if hasattr(inner_model, "fit"):
            return _fitted_steps(inner_model)
    *earlier, last = [step for _, step in getattr(model, "steps", [("", model)])]
    return [*earlier, *_fitted_steps(last)] if last is not model else [model]


def _learners(model: Any) -> list[Any]:
    """Return the model, or the learners of its classes."""
    return list(getattr(model, "learners_", [model]))


def _search(model: Any) -> str:
    """Say what a search chose, and draw its best score so far."""
    best = getattr(model, "best_params_", None)
    if best is None:
        return ""
    text = (
        f"<b>{model.n_candidates_}</b> candidates tried · chosen: "
        f"{escape(str(best['family']))}, scale {escape(str(best['scale']))}, "
        f"{escape(str(best['kernel']))} · cross-validation "
        f"<b>{model.best_score_:.4f}</b>"
    )
    curve = model.history_["score"]
    if len(curve) < 2:
        return text
    line = _svg(240, 44, "best score so far", _polyline(curve, 232, 36))
    return f"{line} {text}"


def _scores(model: Any) -> str:
    """Draw how many training rows have which outlier score, and the threshold."""
    model = getattr(model, "detector_", model)
    scores, threshold = (
        getattr(model, name, None) for name in ("decision_scores_", "threshold_")
    )
    if scores is None or threshold is None or len(scores) < 2:
        return ""
    scores = np.asarray(to_numpy(scores), dtype=float)
    low, high = float(scores.min()), max(float(scores.max()), float(threshold))
    counts, _ = np.histogram(scores, BARS, (low, high if high > low else low + 1))
    heights = 36 * np.sqrt(counts / counts.max())
    bars = "".join(
        f'<rect x="{4 + 6 * i}" y="{39 - h:.1f}" width="5" height="{h:.1f}" '
        'fill="currentColor"/>'
        for i, h in enumerate(heights)
    )
    x = 4 + 6 * BARS * (threshold - low) / ((high - low) or 1.0)
    line = f'<path d="M{x:.1f} 0V42" stroke-dasharray="3 2" {STROKE}/>'
    n_outliers = int(np.count_nonzero(scores > threshold))
    text = (
        f"{n_outliers} of {len(scores)} training rows score above the threshold "
        f"{threshold:.4g}"
    )
    chart = _svg(8 + 6 * BARS, 44, "scores of training rows", bars + line)
    return f'{chart} <span style="opacity:.7">{text}</span>'


def _sizes(model: Any, whole_model: Any) -> str:
    """Say what a part of a model has learned, and how many classes the model has."""
    learners = _learners(getattr(model, "patch_learner_", model))
    dictionaries = [getattr(learner, "dictionary_", None) for learner in learners]
    n_atoms = sum(d.n_atoms for d in dictionaries if d is not None)
    counts = {
        "classes": len(getattr(whole_model, "classes_", ())),
        "atoms": n_atoms,
        "landmarks": getattr(model, "n_landmarks_", 0),
        "features": getattr(whole_model, "n_features_in_", 0),
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
    shape = getattr(learners[0], "_patch_shape", (side, side))
    total, n_shown = sum(map(len, points)), sum(map(len, groups))
    text = f"{n_shown} of {total} {name}" if n_shown < total else f"{total} {name}"
    text += ", one row per class" if has_classes else ""
    drawing = (
        _draw_mosaic(rows.reshape(-1, *shape), n_columns, text)
        if min(shape)
        else _draw_lines(rows, min(n_columns, 8), text)
    )
    return f'{drawing}<br><span style="opacity:.7">{text}</span>'


def _rows_to_draw(model: Any) -> tuple[str, Any]:
    """Return the rows to draw with their name; None if there are none."""
    dictionary = getattr(model, "dictionary_", None)
    candidates = {
        "atoms of patches": _grey_patches(model),
        "atoms": getattr(dictionary, "atoms", None),
        "anchors": getattr(dictionary, "anchors", None),
        "landmarks": getattr(model, "landmarks_", None),
    }
    for name, rows in candidates.items():
        if getattr(rows, "ndim", 0) == 2 and numpy_dtype(rows).kind == "f":
            return name, rows
    return "", None


def _grey_patches(model: Any) -> np.ndarray | None:
    """Return the atoms of a map of patches, without their colours."""
    if not hasattr(getattr(model, "patch_learner_", None), "dictionary_"):
        return None
    atoms = np.asarray(to_numpy(model.components_), dtype=float)
    return atoms.reshape(len(atoms), -1, model.image_shape_[2]).mean(axis=2)


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


def _draw_mosaic(images: np.ndarray, n_columns: int, description: str) -> str:
    n_images, *shape = images.shape
    address = data_address(tiles(images.reshape(n_images, -1), tuple(shape), n_columns))
    width = PIXELS * min(n_columns, n_images)
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


def beside_map(
    image: np.ndarray,  # (h, w) or (h, w, 3)
    weights: np.ndarray,  # (h, w)
) -> np.ndarray:  # (h, 2w + 1, 3)
    """Draw an image, and beside it where weights are positive, red, or negative, blue.

    Values are in [0, 1], and missing pixels are white.
    """
    pixels = np.asarray(image, dtype=float)
    low, high = np.nanmin(pixels), np.nanmax(pixels)
    pixels = np.nan_to_num((pixels - low) / ((high - low) or 1.0), nan=1.0)
    colors = np.broadcast_to(np.atleast_3d(pixels), (*pixels.shape[:2], 3))
    shares = (weights / (np.abs(weights).max() or 1.0))[..., None]
    red = np.concatenate([np.ones_like(shares), 1 - shares, 1 - shares], axis=2)
    blue = np.concatenate([1 + shares, 1 + shares, np.ones_like(shares)], axis=2)
    heat = np.where(shares > 0, red, blue)
    grey = colors.mean(axis=2, keepdims=True)
    panels = [colors, np.ones((len(pixels), 1, 3)), heat * (0.75 + 0.25 * grey)]
    return np.concatenate(panels, axis=1)


def data_address(picture: np.ndarray) -> str:
    """Return the picture as the address of an image in a page."""
    return "data:image/png;base64," + b64encode(png(picture)).decode("ascii")


def png(picture: np.ndarray) -> bytes:  # (h, w) or (h, w, 3), in [0, 1]
    """Return an 8-bit PNG file, in grey or in colours."""
    pixels = np.round(255 * np.clip(picture, 0, 1)).astype(np.uint8)
    height, width, *channels = pixels.shape
    rows = pixels.reshape(height, -1)
    lines = np.pad(rows, ((0, 0), (1, 0)))  # filter type 0 starts each line
    color = 2 if channels else 0
    header = struct.pack(">IIBBBBB", width, height, 8, color, 0, 0, 0)
    data = zlib.compress(lines.tobytes(), 9)
    chunks = _chunk(b"IHDR", header) + _chunk(b"IDAT", data) + _chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + chunks


def _chunk(kind: bytes, data: bytes) -> bytes:
    check = struct.pack(">I", zlib.crc32(kind + data))
    return struct.pack(">I", len(data)) + kind + data + check
