"""Columns that are not numbers: text, dates and pandas' NA in tables of any kind."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import date, timedelta
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

SHOWN = 20  # columns that an error names
ENCODED = 3  # columns in the example of an error
DATE_KINDS = {"M": "dates", "m": "durations"}


class OddColumn(NamedTuple):
    """A column that is not all numbers."""

    name: str
    content: str  # "text", "dates" or "durations"
    first_text: Any = None  # the first value that is none, in a column with numbers


def check_columns(X: Any) -> Any:
    """Replace pandas' NA among objects by NaN; refuse dates and durations.

    NumPy would turn dates into counts of a unit that depends on how they are stored.
    """
    if any(_date_kind(dtype) for dtype in _types(X)) or _has_dates(X):
        raise columns_error(X) or TypeError("X holds dates, not real numbers")
    return _with_nan(X)


def columns_error(X: Any) -> ValueError | None:
    """Return an error that names columns of text and dates; None if there are none."""
    columns = [odd for name, values in _columns(X) if (odd := _odd(name, values))]
    if not columns:
        return None
    phrases, remedies = [], []
    for content in ("text", *DATE_KINDS.values()):
        alike = [column for column in columns if column.content == content]
        if alike:
            phrases.append(f"{content} in {_listed(alike)}")
            remedies.append(_remedy(content, alike))
    return ValueError(
        f"X must be numbers, but it has {', '.join(phrases)}. Drop such columns, or "
        + "; ".join(remedies)
    )


def _listed(columns: list[OddColumn]) -> str:
    phrases = [
        column.name
        if column.first_text is None
        else f"{column.name} (only in part, the first is {column.first_text!r})"
        for column in columns[:SHOWN]
    ]
    n_others = len(columns) - SHOWN
    others = f" and {n_others} more" if n_others > 0 else ""
    return f"column{'s' if len(columns) > 1 else ''} {', '.join(phrases)}{others}"


def _remedy(content: str, columns: list[OddColumn]) -> str:
    if content == "dates":
        return (
            "turn dates into numbers, e.g. (dates - dates.min()) / "
            "numpy.timedelta64(1, 'D')"
        )
    if content == "durations":
        return "turn durations into numbers, e.g. durations / numpy.timedelta64(1, 's')"
    names = ", ".join(column.name for column in columns[:ENCODED])
    names += ", ..." if len(columns) > ENCODED else ""
    in_part = any(column.first_text is not None for column in columns)
    return (
        "encode text, e.g. with ColumnTransformer([('text', "
        f"OneHotEncoder(sparse_output=False), [{names}])], remainder='passthrough') "
        "in front" + (", or replace single values by NaN" if in_part else "")
    )


def _types(X: Any) -> list[Any]:
    """Return the types of the columns, or that of an array."""
    types = getattr(X, "dtypes", None)
    if types is not None and np.ndim(types) == 1:
        return list(types)
    return [X.dtype] if hasattr(X, "dtype") else []


def _date_kind(dtype: Any) -> str | None:
    """Whether a type of NumPy, pandas, its categories or polars is one of dates."""
    if hasattr(dtype, "is_temporal") and dtype.is_temporal():  # polars
        return "durations" if str(dtype).startswith("Duration") else "dates"
    dtype = getattr(getattr(dtype, "categories", None), "dtype", dtype)
    return DATE_KINDS.get(getattr(dtype, "kind", "O"))


def _has_dates(X: Any) -> bool:
    """Whether objects are dates of NumPy, of which it makes numbers."""
    if isinstance(X, (list, tuple)):  # of lists the first row is enough
        X = _objects(X[:1])
    if not isinstance(X, np.ndarray) or X.dtype != object:
        return False
    kinds = set(map(type, X.ravel().tolist()))
    return any(issubclass(kind, (np.datetime64, np.timedelta64)) for kind in kinds)


def _objects(X: Any) -> np.ndarray:
    """Return rows in lists as an array of objects; none if their lengths differ."""
    try:
        return np.array(X, dtype=object)
    except ValueError:
        return np.empty(0, dtype=object)


def _with_nan(X: Any) -> Any:
    """Replace objects that are missing for pandas by NaN, in arrays and columns."""
    pandas = sys.modules.get("pandas")
    if pandas is None or not any(_may_be_na(dtype) for dtype in _types(X)):
        return X
    is_frame = isinstance(X, pandas.DataFrame)
    if not is_frame and not isinstance(X, np.ndarray):
        return X
    objects = X.to_numpy(dtype=object) if is_frame else X
    is_na = np.array([value is pandas.NA for value in objects.ravel().tolist()])
    if not is_na.any():
        return X
    objects = np.where(is_na.reshape(objects.shape), np.nan, objects)
    return pandas.DataFrame(objects, X.index, X.columns) if is_frame else objects


def _may_be_na(dtype: Any) -> bool:
    """Whether a type is one of objects, or of pandas' text."""
    is_object = getattr(dtype, "kind", "") == "O"
    return is_object or getattr(dtype, "name", "").startswith("str")


def _columns(X: Any) -> Iterator[tuple[str, Any]]:
    """Names, as one would write them, and values of columns that may be odd."""
    if hasattr(X, "columns") and hasattr(X, "dtypes"):
        for j, name in enumerate(X.columns):
            yield repr(name), X.iloc[:, j] if hasattr(X, "iloc") else X[name]
        return
    rows = _objects(X) if isinstance(X, (list, tuple)) else X
    if isinstance(rows, np.ndarray) and rows.ndim == 2 and rows.dtype.kind in "OSTUMm":
        for j in range(rows.shape[1]):
            yield str(j), rows[:, j]


def _odd(name: str, column: Any) -> OddColumn | None:
    """Say what is in a column, if it is not all numbers."""
    dtype = column.dtype
    if getattr(dtype, "kind", "O") in "fiubc":
        return None
    content = _date_kind(dtype)
    if content is not None:
        return OddColumn(name, content)
    texts, has_numbers = [], False
    for value in np.asarray(column, dtype=object).tolist():
        is_period = type(value).__name__ == "Period"  # pandas may not be installed
        if isinstance(value, (str, bytes)) and not _spells_number(value):
            texts.append(value)
        elif isinstance(value, (date, np.datetime64)) or is_period:
            return OddColumn(name, "dates")
        elif isinstance(value, (timedelta, np.timedelta64)):
            return OddColumn(name, "durations")
        elif isinstance(value, (str, bytes, Real)):
            has_numbers = has_numbers or value == value  # NaN is no number
    if not texts:
        return None
    return OddColumn(name, "text", texts[0] if has_numbers else None)


def _spells_number(text: str | bytes) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
