"""Data sets that benchmarks are run on."""

from __future__ import annotations

from typing import Any

from kernlets.datasets import Dataset, DatasetNotFoundError
from papers.datasets import load

from .harness.skip import Skip


def load_data(name: str, **options: Any) -> Dataset:
    """A data set from the data folder, or `Skip` where it is not there."""
    try:
        return load(name, **options)
    except DatasetNotFoundError as error:
        raise Skip(f"{name} is not in the folder named by KERNLETS_DATA") from error
