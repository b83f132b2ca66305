"""Samples that are not rows: series, bags, matrices, strings, graphs; also odd ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from .draw import Draw
from .values import ENOUGH, ROWS

ALPHABETS = ("ab", "acgt", "abcdefghij ", "äß€\0")


@dataclass(frozen=True)
class Objects:
    """Some samples, and what is to be expected of them."""

    samples: Any
    text: str
    is_plain: bool  # as ordinary as such samples can be: must not be refused
    n: int


def draw_objects(draw: Draw, kind: str, tame: float = 0.4) -> Objects:
    """Samples of a kind in some container; with probability `tame` plain ones."""
    is_plain = draw.chance(tame)
    n = max(draw.weighted(ROWS), ENOUGH if is_plain else 0)
    n = min(n, 20)
    width, scale = draw.count(1, 3), 1.0 if is_plain else _scale(draw)
    found = [MAKERS[kind](draw, width, scale) for _ in range(n)]
    text = f"{n} {kind} of width {width} × {scale:.3g}"
    if not is_plain and n and draw.chance(0.5):
        name = draw.pick(list(ODD[kind]))
        place = draw.count(0, n - 1)
        found[place] = ODD[kind][name](found[place])
        text += f", one {name}"
    container = "list" if is_plain else draw.weighted(CONTAINERS)
    return Objects(_held(container, found), f"{text} in {container}", is_plain, n)


def _scale(draw: Draw) -> float:
    return draw.power(*draw.pick([(0, 0), (0, 0), (-3, 3), (-170, 170)]))


# ------------------------------------------------------------------ one sample


def _points(draw: Draw, width: int, scale: float) -> np.ndarray:
    shape = draw.weighted({1: 1, 2: 1, 7: 6, 30: 1}), width
    values = draw.rng.standard_normal(shape) * scale
    return values.round() if draw.chance(0.1) else values


def _matrix(draw: Draw, width: int, scale: float) -> np.ndarray:
    factor = draw.rng.standard_normal((width + 3, width + 1))
    return factor.T @ factor * scale


def _string(draw: Draw, width: int, scale: float) -> Any:
    letters = list(ALPHABETS[width % len(ALPHABETS)])
    return "".join(draw.rng.choice(letters, size=draw.count(4, 20)))


def _graph(draw: Draw, width: int, scale: float) -> Any:
    n = draw.count(1, 8)
    upper = np.triu(draw.rng.random((n, n)) < 0.4, 1)
    edges = (upper | upper.T).astype(float)
    return edges, draw.rng.integers(0, width + 1, n).tolist()


MAKERS: dict[str, Callable[[Draw, int, float], Any]] = {
    "series": _points,
    "bags": _points,
    "matrices": _matrix,
    "strings": _string,
    "graphs": _graph,
}


# ------------------------------------------------------------------ odd samples


def _with(x: np.ndarray, value: float) -> np.ndarray:
    x = x.copy()
    x.ravel()[0] = value
    return x


def _narrow(x: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        return x.astype(np.float32)


ANYTHING: dict[str, Callable[[Any], Any]] = {
    "None": lambda x: None,
    "number": lambda x: 3.5,
    "text": lambda x: "text",
    "empty list": lambda x: [],
    "dictionary": lambda x: {"a": 1},
    "object": lambda x: object(),
}
NUMBERS: dict[str, Callable[[Any], Any]] = {
    **ANYTHING,
    "NaN inside": lambda x: _with(x, np.nan),
    "infinity": lambda x: _with(x, np.inf),
    "largest": lambda x: _with(x, 1.7e308),
    "all NaN": lambda x: x * np.nan,
    "zeros": lambda x: x * 0,
    "other width": lambda x: np.ones((x.shape[0], 5)),
    "three axes": lambda x: x[None],
    "float32": lambda x: _narrow(x),
    "integers": lambda x: np.ones(x.shape, int),
    "complex": lambda x: x + 1j,
    "lists": lambda x: x.tolist(),
    "ragged": lambda x: [[1.0], [1.0, 2.0]],
}
ODD: dict[str, dict[str, Callable[[Any], Any]]] = {
    "series": {**NUMBERS, "padded": lambda x: np.vstack([x, x[:1] * np.nan])},
    "bags": NUMBERS,
    "matrices": {
        **NUMBERS,
        "not symmetric": lambda x: x + np.triu(np.ones(x.shape), 1) * abs(x).max(),
        "negative": lambda x: -x,
        "singular": lambda x: np.outer(x[0], x[0] / np.abs(x[0]).max()),
    },
    "strings": {
        **ANYTHING,
        "empty string": lambda x: "",
        "bytes": lambda x: x.encode("latin-1", "replace"),
        "characters": list,
        "whole numbers": lambda x: [1, 2, 3, 2],
        "negative numbers": lambda x: [-1, 2],
        "half a character": lambda x: "\ud800",
        "words": lambda x: ["ab", "cd"],
    },
    "graphs": {
        **ANYTHING,
        "adjacency": lambda x: x[0],
        "sparse": lambda x: (sparse.csr_array(x[0]), x[1]),
        "no nodes": lambda x: np.zeros((0, 0)),
        "not square": lambda x: np.ones((2, 3)),
        "too few labels": lambda x: (x[0], x[1][:-1]),
        "labels of text": lambda x: (x[0], [str(label) for label in x[1]]),
        "NaN": lambda x: (x[0] * np.nan, x[1]),
        "negative weights": lambda x: (-x[0], x[1]),
        "one way": lambda x: (np.triu(x[0]), x[1]),
        "edges": lambda x: [[(0, 1), (1, 0)], {0: "a", 1: "b"}],
    },
}


# ------------------------------------------------------------------- containers

CONTAINERS = {"list": 8, "tuple": 1, "array of objects": 3, "Dask bag": 1, "stacked": 1}


def _held(container: str, found: list[Any]) -> Any:
    if container == "array of objects":
        array = np.empty(len(found), dtype=object)
        for i, sample in enumerate(found):
            array[i] = sample
        return array
    if container == "Dask bag" and found:
        import dask.bag as db

        return db.from_sequence(found, npartitions=min(3, len(found)))
    arrays = all(isinstance(sample, np.ndarray) for sample in found)
    if container == "stacked" and arrays and len({x.shape for x in found}) == 1:
        return np.stack(found)
    return tuple(found) if container == "tuple" else found
