"""The content of a file (`Table`), and the options of reading it (`Request`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np


class Table(NamedTuple):
    """Rows of a file, with labels, column names and image shape if it has them.

    Parameters
    ----------
    X : array (n, p)
        Floats, or a memory map in its stored type; from `open_rows` also blocks.
    y : array (n,) or None
        Labels, numbers or strings.
    feature_names : list of str, optional
        Column names.
    image_shape : tuple of int, optional
        Shape of an image.
    files : array (n,), optional
        Of a folder of images the file of each row, from the folder on.

    Examples
    --------
    >>> import numpy as np
    >>> from kernlets import datasets
    >>> datasets.Table(np.zeros((2, 3)), np.array(["no", "yes"])).class_names
    ['no', 'yes']
    """

    X: Any  # (n, p), float, or a memory map as stored; from `open_rows` also blocks
    y: np.ndarray | None  # (n,), numbers or strings
    feature_names: list[str] | None = None
    image_shape: tuple[int, ...] | None = None
    files: np.ndarray | None = None  # (n,) text

    @property
    def class_names(self) -> list[str] | None:
        """The distinct labels in sorted order, as text."""
        return None if self.y is None else [str(label) for label in np.unique(self.y)]


@dataclass(frozen=True)
class Request:
    """Options of `read_table`, handed to every reader."""

    label: str | int | bool | None = None
    key: str | None = None
    size: tuple[int, int] | None = None
    color: bool = False
    header: bool | None = None
    columns: tuple[str, ...] | None = None  # the features, in this order
    gaps: bool = False  # whether cells without a value are NaN, or an error
    keep: tuple[str, ...] | None = None  # features that look like numbers of rows


def text_array(text: list[str]) -> np.ndarray:
    """Make an array of objects of texts, so that a long one does not widen all."""
    texts = np.empty(len(text), dtype=object)
    texts[:] = text
    return texts
