"""Kinds of values: arrays and single values."""

from __future__ import annotations

import math
from itertools import pairwise
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy import sparse

from .check import Dimension, Field, Misfit, Sizes

LARGEST = 2**53  # largest whole number; beyond it floats and sums are inexact


def dtype_of(array: Any) -> np.dtype | None:
    """The type of the entries of a NumPy array, a sparse matrix or a torch tensor."""
    name = str(getattr(array, "dtype", None)).removeprefix("torch.")
    try:
        return None if name == "None" else np.dtype(name)
    except TypeError:
        return None


def type_text(value: Any) -> str:
    """Describe the type of a value in an error message."""
    if value is None:
        return "None"
    kind = f"a {type(value).__name__}"
    dtype = dtype_of(value)
    return kind if dtype is None else f"{kind} of {dtype}"


class _Array(Field):
    """An array; a subclass says which entries it may have."""

    kinds: str  # letters of NumPy's kinds of types
    entries_text: str
    csr = False  # whether it may be sparse

    def __init__(self, *dimensions: Dimension) -> None:
        self.dimensions = dimensions

    def check(self, value: Any, sizes: Sizes) -> None:
        is_sparse = sparse.issparse(value)
        if is_sparse and not self.csr:
            raise Misfit("is a sparse matrix, it must be a dense array")
        is_array = isinstance(value, np.ndarray) or hasattr(value, "detach")
        dtype = dtype_of(value) if is_array or is_sparse else None
        if dtype is None or dtype.kind not in self.kinds:
            raise Misfit(
                f"is {type_text(value)}, it must be an array of {self.entries_text}"
            )
        self._check_shape(tuple(value.shape), sizes)
        self._check_entries(_to_numpy(value.data if is_sparse else value), sizes)

    def _check_shape(self, shape: tuple[int, ...], sizes: Sizes) -> None:
        pairs = zip(self.dimensions, shape, strict=False)
        same_length = len(shape) == len(self.dimensions)
        if not (same_length and all(sizes.agree(*pair) for pair in pairs)):
            expected = ", ".join(map(sizes.text, self.dimensions))
            raise Misfit(f"has the shape {shape}, it must be ({expected})")

    def _check_entries(self, entries: np.ndarray, sizes: Sizes) -> None:
        """Check the entries; the base class accepts all."""


def _to_numpy(array: Any) -> np.ndarray:
    return array if isinstance(array, np.ndarray) else array.detach().cpu().numpy()


class Floats(_Array):
    """An array of float32 or float64, finite unless stated otherwise.

    `like` is the type of numbers, or the name of an attribute that has it; with `csr`
    the array may be sparse.
    """

    kinds, entries_text = "f", "floating-point numbers"

    def __init__(
        self,
        *dimensions: Dimension,
        like: str | None = None,
        finite: bool = True,
        csr: bool = False,
    ) -> None:
        super().__init__(*dimensions)
        self.like, self.finite, self.csr = like, finite, csr

    def _check_entries(self, entries: np.ndarray, sizes: Sizes) -> None:
        expected = self._types(sizes.owner)
        if entries.dtype.name not in expected:
            raise Misfit(f"has the type {entries.dtype}, not {' or '.join(expected)}")
        if self.finite and not np.isfinite(entries).all():
            raise Misfit("has entries that are not finite")

    def _types(self, owner: Any) -> tuple[str, ...]:
        if self.like is None:
            return "float32", "float64"
        other = dtype_of(getattr(owner, self.like, None))
        return (self.like if other is None else other.name,)


class Indices(_Array):
    """An array of whole numbers from `least` on, and `below` a size if one is given.

    Compiled loops exist for one type, `like`; others would be compiled for seconds.
    """

    kinds, entries_text = "i", "whole numbers"

    def __init__(
        self,
        *dimensions: Dimension,
        below: Dimension = LARGEST,
        least: int = 0,
        like: str | None = None,
    ) -> None:
        super().__init__(*dimensions)
        self.below, self.least, self.like = below, least, like
        self.waits = isinstance(below, str)

    def _check_entries(self, entries: np.ndarray, sizes: Sizes) -> None:
        if self.like not in (None, entries.dtype.name):
            raise Misfit(f"has the type {entries.dtype}, not {self.like}")
        end = sizes.value(self.below)
        if entries.size and not self.least <= entries.min() <= entries.max() < end:
            raise Misfit(
                f"has numbers from {entries.min()} to {entries.max()}, they must be "
                f"from {self.least} to {end - 1}"
            )


class Digests(_Array):
    """An array of unsigned whole numbers of 64 bits that rise."""

    kinds, entries_text = "u", "digests"

    def _check_entries(self, entries: np.ndarray, sizes: Sizes) -> None:
        if entries.dtype != np.uint64 or (entries[1:] <= entries[:-1]).any():
            raise Misfit("has digests of another type, twice or out of order")


class Labels(_Array):
    """Distinct labels, all numbers or all text, in the order of `numpy.unique`.

    With `gaps`, a missing label (None or NaN) may follow them.
    """

    kinds, entries_text = "biufUO", "labels"

    def __init__(self, *dimensions: Dimension, gaps: bool = False) -> None:
        super().__init__(*dimensions)
        self.gaps = gaps

    def _check_entries(self, entries: np.ndarray, sizes: Sizes) -> None:
        labels = [x for x in entries.tolist() if not (self.gaps and _is_missing(x))]
        are_alike = all(isinstance(x, str) for x in labels) or all(
            map(_is_real, labels)
        )
        is_sorted = are_alike and all(
            label < next_label for label, next_label in pairwise(labels)
        )
        if not is_sorted:
            raise Misfit("has labels of several kinds, twice or out of order")


def _is_missing(label: Any) -> bool:
    return label is None or label != label


def _is_real(label: Any) -> bool:
    return isinstance(label, Real) and label == label


class Names(_Array):
    """Text that may be shown as it is, such as the names of columns."""

    kinds, entries_text = "UO", "text"

    def _check_entries(self, entries: np.ndarray, sizes: Sizes) -> None:
        for name in entries.ravel():
            Text().check(name, sizes)


class Number(Field):
    """A number from `least` on, finite unless stated otherwise."""

    def __init__(self, least: float = -math.inf, finite: bool = True) -> None:
        self.least, self.finite = least, finite

    def check(self, value: Any, sizes: Sizes) -> None:
        if not isinstance(value, Real) or isinstance(value, bool):
            raise Misfit(f"is {type_text(value)}, it must be a number")
        if value < self.least or (self.finite and not math.isfinite(value)):
            raise Misfit(f"is {value}, it must be finite and at least {self.least}")


class Whole(Field):
    """A whole number from `least` on."""

    def __init__(self, least: int = 0) -> None:
        self.least = least

    def check(self, value: Any, sizes: Sizes) -> None:
        if not isinstance(value, Integral) or isinstance(value, bool):
            raise Misfit(f"is {type_text(value)}, it must be a whole number")
        if not self.least <= int(value) <= LARGEST:
            raise Misfit(f"is {value}, it must be from {self.least} to {LARGEST}")


class Text(Field):
    """Text without characters that control a terminal, or one of given words."""

    def __init__(self, *words: str) -> None:
        self.words = words

    def check(self, value: Any, sizes: Sizes) -> None:
        if not isinstance(value, str):
            raise Misfit(f"is {type_text(value)}, it must be text")
        if self.words and value not in self.words:
            raise Misfit(f"is {value!r}, it must be one of {', '.join(self.words)}")
        if not "".join(value.split()).isprintable():
            raise Misfit(f"is {value!r}, which has characters that cannot be shown")


class Flag(Field):
    """True or False."""

    def check(self, value: Any, sizes: Sizes) -> None:
        if not isinstance(value, (bool, np.bool_)):
            raise Misfit(f"is {type_text(value)}, it must be True or False")


class Nothing(Field):
    """None."""

    def check(self, value: Any, sizes: Sizes) -> None:
        if value is not None:
            raise Misfit(f"is {type_text(value)}, it must be None")
