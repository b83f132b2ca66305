"""Labels of rows: ordinary classes, and what people pass instead."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .draw import Draw


@dataclass(frozen=True)
class Labels:
    """Labels, and whether there is any reason to refuse them."""

    values: Any
    text: str
    is_plain: bool


def draw_labels(draw: Draw, n: int, tame: float = 0.5) -> Labels:
    """Labels of n rows; with probability `tame` two or three classes, mixed."""
    if draw.chance(tame):
        return Labels(_classes(draw, n), "classes", is_plain=True)
    kind = draw.weighted({name: weight for name, (weight, _) in KINDS.items()})
    return Labels(KINDS[kind][1](draw, n), kind, is_plain=False)


def _numbers(draw: Draw, n: int, n_classes: int) -> np.ndarray:
    """Every class has members, as far as there are rows."""
    return draw.rng.permutation(np.arange(n) % max(n_classes, 1))


def _classes(draw: Draw, n: int) -> np.ndarray:
    numbers = _numbers(draw, n, draw.pick([2, 3]))
    names = [["a", "b", "c"], [0, 1, 2], [7, -1, 3], [True, False, True], [0.0, 1, 2]]
    return np.array(draw.pick(names))[numbers]


def _objects(*values: Any) -> Callable[[Draw, int], Any]:
    """Labels drawn from values of any types."""

    def make(draw: Draw, n: int) -> Any:
        labels = np.empty(n, dtype=object)
        labels[:] = [values[i] for i in _numbers(draw, n, len(values))]
        return labels

    return make


def _wrong_length(draw: Draw, n: int) -> Any:
    return _numbers(draw, draw.pick([0, 1, max(n - 1, 0), n + 1, 2 * n]), 2)


def _from_numbers(change: Callable[[np.ndarray], Any]) -> Callable[[Draw, int], Any]:
    return lambda draw, n: change(_numbers(draw, n, draw.pick([2, 3])))


def _series(numbers: np.ndarray) -> Any:
    import pandas as pd

    return pd.Series(numbers, index=np.arange(len(numbers))[::-1])


def _categories(numbers: np.ndarray) -> Any:
    import pandas as pd

    names = np.array(["a", "b", "c"])[numbers]
    return pd.Series(pd.Categorical(names, categories=["c", "b", "a", "never"]))


def _tensor(numbers: np.ndarray) -> Any:
    import torch

    return torch.tensor(numbers)


def _dask(numbers: np.ndarray) -> Any:
    import dask.array as da

    return da.from_array(numbers, chunks=max(1, len(numbers) // 2))


KINDS: dict[str, tuple[float, Callable[[Draw, int], Any]]] = {
    "none": (2, lambda draw, n: None),
    "one class": (3, lambda draw, n: np.zeros(n, int)),
    "each row a class": (2, lambda draw, n: np.arange(n)),
    "one row of a class": (2, lambda draw, n: (np.arange(n) == 0).astype(int)),
    "many classes": (2, lambda draw, n: _numbers(draw, n, max(2, n // 2))),
    "real numbers": (2, lambda draw, n: draw.rng.standard_normal(n)),
    "list": (2, _from_numbers(np.ndarray.tolist)),
    "strings in a list": (2, _from_numbers(lambda y: y.astype(str).tolist())),
    "mixed types": (2, _objects(1, "one")),
    "numbers and None": (2, _objects(1, None)),
    "strings and None": (1, _objects("a", "b", None)),
    "strings and NaN": (1, _objects("a", "b", float("nan"))),
    "NaN": (2, _from_numbers(lambda y: np.where(y == 0, np.nan, y))),
    "infinity": (1, _from_numbers(lambda y: np.where(y == 0, np.inf, y))),
    "tuples": (0.5, _objects((1, 2), (3,))),
    "wrong length": (3, _wrong_length),
    "column": (1, _from_numbers(lambda y: y[:, None])),
    "two columns": (1, _from_numbers(lambda y: np.stack([y, 1 - y], axis=1))),
    "scalar": (0.5, lambda draw, n: 1),
    "string": (0.5, lambda draw, n: "a" * n),
    "bytes": (1, _from_numbers(lambda y: y.astype("S3"))),
    "dates": (1, _from_numbers(lambda y: y.astype("datetime64[D]"))),
    "complex": (0.5, _from_numbers(lambda y: y + 1j)),
    "float32": (1, _from_numbers(lambda y: y.astype("float32"))),
    "uint8": (1, _from_numbers(lambda y: y.astype("uint8"))),
    "big-endian": (1, _from_numbers(lambda y: y.astype(">i4"))),
    "huge numbers": (1, _from_numbers(lambda y: y + 2**62)),
    "empty strings": (0.5, _objects("", " ", "\n")),
    "series": (2, _from_numbers(_series)),
    "categories": (1, _from_numbers(_categories)),
    "torch": (1, _from_numbers(_tensor)),
    "Dask": (0.5, _from_numbers(_dask)),
}
