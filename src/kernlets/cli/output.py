"""Writes predictions and codes to files, each completely or not at all.

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
    """Labels of rows, with probabilities or scores if a model gives them.

    A table of them begins with the file of each row, or with its number.
    """

    labels: np.ndarray  # (n,)
    kind: str | None = None  # "proba", "score" or nothing
    numbers: np.ndarray | None = None  # (n, k)
    columns: tuple[str, ...] = ()  # (k,)
    reasons: np.ndarray | None = None  # (n,) text
    files: np.ndarray | None = None  # (n,) text

    @classmethod
    def concatenate(cls, batches: Iterable[Predictions]) -> Predictions:
        """Concatenate the predictions of several batches of rows."""
        batches = list(batches)
        labels = np.concatenate([batch.labels for batch in batches])
        first = batches[0]
        if first.numbers is None:
            return cls(labels)
        numbers = np.concatenate([batch.numbers for batch in batches])
        reasons = None
        if first.reasons is not None:
            reasons = np.concatenate([batch.reasons for batch in batches])
        return cls(labels, first.kind, numbers, first.columns, reasons)

    def rows(self) -> Iterator[list[str]]:
        """Yield a table of text: a header, then the cells of each row."""
        reason = [] if self.reasons is None else ["reason"]
        key = "row" if self.files is None else "file"
        yield [key, "label", *self.columns, *reason]
        row_names = range(len(self.labels)) if self.files is None else self.files
        for i, (row_name, label) in enumerate(zip(row_names, self.labels, strict=True)):
            reason_cells = [] if self.reasons is None else [str(self.reasons[i])]
            yield [str(row_name), str(label), *self._number_cells(i), *reason_cells]

    def _number_cells(self, row: int) -> list[str]:
        if self.numbers is None:
            return []
        number_format = _number_format(self.numbers.dtype)
        return [number_format % number for number in self.numbers[row]]


def print_predictions(predictions: Predictions) -> None:
    """Print one label on each line; if there are files or numbers, print a table."""
    if predictions.numbers is None and predictions.files is None:
        print("\n".join(map(str, predictions.labels)))
    else:
        print_table(predictions)


def print_table(predictions: Predictions) -> None:
    """Print a table in CSV with a header."""
    csv.writer(sys.stdout, lineterminator="\n").writerows(predictions.rows())


def write_predictions(path: Path, predictions: Predictions) -> None:
    """Write CSV with a header; or .npz with `y`, `proba` or `score`, `reason`, `files`.

    A .npy file gets one array: probabilities or scores if there are any, else labels.
    """
    labels = predictions.labels
    if labels.dtype == object:  # NumPy would pickle these
        labels = labels.astype(str)
    suffix, numbers = path.suffix.lower(), predictions.numbers
    if numbers is not None and predictions.kind == "score":
        numbers = numbers[:, 0]
    with atomic_write(path) as file:
        if suffix == ".csv":
            text = codecs.getwriter("utf-8")(file)
            csv.writer(text, lineterminator="\n").writerows(predictions.rows())
        elif suffix == ".npy":
            np.save(file, labels if numbers is None else numbers)
        else:
            arrays = {} if numbers is None else {str(predictions.kind): numbers}
            if predictions.reasons is not None:
                arrays["reason"] = predictions.reasons
            if predictions.files is not None:
                arrays["files"] = predictions.files.astype(str)
            np.savez(file, y=labels, **arrays)  # type: ignore[arg-type]


def _number_format(dtype: np.dtype) -> str:
    """Return a format with enough digits to read the same numbers back."""
    return f"%.{np.finfo(dtype).precision + 3}g"


def write_codes(path: Path, code_blocks: Iterable[sparse.csr_array]) -> None:
    """Write codes: sparse in SciPy's .npz, dense in .npy and .csv, block by block."""
    suffix = path.suffix.lower()
    with atomic_write(path) as file:
        if suffix == ".npz":
            sparse.save_npz(file, sparse.vstack(list(code_blocks), format="csr"))
        elif suffix == ".npy":
            write_rows(file, (block.toarray() for block in code_blocks))
        else:
            _write_text(file, code_blocks)


def print_codes(code_blocks: Iterable[sparse.csr_array]) -> None:
    """Print dense codes in CSV."""
    _write_text(sys.stdout, code_blocks)


def _write_text(file: Any, code_blocks: Iterable[sparse.csr_array]) -> None:
    for block in code_blocks:
        number_format = _number_format(block.dtype)
        np.savetxt(file, block.toarray(), fmt=number_format, delimiter=",")
