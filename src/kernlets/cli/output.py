"""Files that commands write: what they hold. Each appears complete or not at all.

Whether a file may be written at all is in `targets.py`.
"""

from __future__ import annotations

import codecs
import csv
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from ..backend.atomic import atomic_write
from ..datasets import write_rows

STANDARD_OUTPUT = Path("-")


@dataclass(frozen=True)
class Predictions:
    """Labels of rows, and what a model says besides: probabilities or scores.

    A table of them begins with the file of each row, or with its number.
    """

    labels: np.ndarray  # (n,)
    kind: str | None = None  # "proba", "score" or nothing
    numbers: np.ndarray | None = None  # (n, k)
    columns: tuple[str, ...] = ()  # (k,)
    reasons: np.ndarray | None = None  # (n,) text
    files: np.ndarray | None = None  # (n,) text

    @classmethod
    def joined(cls, parts: Iterable[Predictions]) -> Predictions:
        """Those of several batches of rows."""
        parts = list(parts)
        labels = np.concatenate([part.labels for part in parts])
        first = parts[0]
        if first.numbers is None:
            return cls(labels)
        numbers = np.concatenate([part.numbers for part in parts])
        words = None
        if first.reasons is not None:
            words = np.concatenate([part.reasons for part in parts])
        return cls(labels, first.kind, numbers, first.columns, words)

    def rows(self) -> Iterator[list[str]]:
        """A table as text: a header, then a row for each row."""
        reason = [] if self.reasons is None else ["reason"]
        key = "row" if self.files is None else "file"
        yield [key, "label", *self.columns, *reason]
        keys = range(len(self.labels)) if self.files is None else self.files
        for i, (name, label) in enumerate(zip(keys, self.labels, strict=True)):
            words = [] if self.reasons is None else [str(self.reasons[i])]
            yield [str(name), str(label), *self._numbers(i), *words]

    def _numbers(self, row: int) -> list[str]:
        if self.numbers is None:
            return []
        form = _number_format(self.numbers.dtype)
        return [form % number for number in self.numbers[row]]


def print_predictions(found: Predictions) -> None:
    """Labels alone, one on a line; with files or numbers besides, as a table."""
    if found.numbers is None and found.files is None:
        print("\n".join(map(str, found.labels)))
    else:
        print_table(found)


def print_table(found: Predictions) -> None:
    """Text with a header."""
    csv.writer(sys.stdout, lineterminator="\n").writerows(found.rows())


def write_predictions(path: Path, found: Predictions) -> None:
    """Text with a header; in .npz arrays `y`, `proba` or `score`, `reason`, `files`.

    In .npy there is one array: the labels, unless there are numbers besides.
    """
    labels = found.labels
    if labels.dtype == object:  # NumPy would pickle these
        labels = labels.astype(str)
    suffix, numbers = path.suffix.lower(), found.numbers
    if numbers is not None and found.kind == "score":
        numbers = numbers[:, 0]
    with atomic_write(path) as file:
        if suffix == ".csv":
            text = codecs.getwriter("utf-8")(file)
            csv.writer(text, lineterminator="\n").writerows(found.rows())
        elif suffix == ".npy":
            np.save(file, labels if numbers is None else numbers)
        else:
            more = {} if numbers is None else {str(found.kind): numbers}
            if found.reasons is not None:
                more["reason"] = found.reasons
            if found.files is not None:
                more["files"] = found.files.astype(str)
            np.savez(file, y=labels, **more)  # type: ignore[arg-type]


def _number_format(dtype: np.dtype) -> str:
    """Digits enough to read the same numbers back."""
    return f"%.{np.finfo(dtype).precision + 3}g"


def write_codes(path: Path, parts: Iterable[sparse.csr_array]) -> None:
    """Sparse in .npz as SciPy stores it; dense in .npy and .csv, part by part."""
    suffix = path.suffix.lower()
    with atomic_write(path) as file:
        if suffix == ".npz":
            sparse.save_npz(file, sparse.vstack(list(parts), format="csr"))
        elif suffix == ".npy":
            write_rows(file, (part.toarray() for part in parts))
        else:
            _write_text(file, parts)


def print_codes(parts: Iterable[sparse.csr_array]) -> None:
    """Dense text on standard output."""
    _write_text(sys.stdout, parts)


def _write_text(file: Any, parts: Iterable[sparse.csr_array]) -> None:
    for part in parts:
        form = _number_format(part.dtype)
        np.savetxt(file, part.toarray(), fmt=form, delimiter=",")
