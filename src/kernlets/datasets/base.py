"""`Dataset`: rows, labels and their description, and a split per class.

`locations.py` finds the arrays, and `catalogue.py` lists the data sets.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np


class Split(NamedTuple):
    """Training and test rows, in the order of scikit-learn's `train_test_split`."""

    X_train: np.ndarray
    X_test: np.ndarray
    y_train: np.ndarray
    y_test: np.ndarray


@dataclass(frozen=True, eq=False)
class Dataset:
    """A data set: rows are samples, and images are flattened to rows.

    Parameters
    ----------
    name : str
        Name in the catalogue.
    X_train, y_train : arrays (n, p) and (n,)
        Training rows and labels; all rows if there is no published split. `y_train` is
        None if there are no labels.
    X_test, y_test : arrays, optional
        Test rows and labels of the published split.
    image_shape : tuple of int, optional
        Shape of an image; None if features are not pixels.
    description : str
        One line about the set.

    Examples
    --------
    >>> from kernlets import datasets
    >>> digits = datasets.load("digits")
    >>> digits.X_train.shape, digits.image_shape
    ((898, 64), (8, 8))
    >>> parts = digits.split(n_train_per_class=20, random_state=0)
    >>> parts.X_train.shape
    (200, 64)
    """

    name: str
    X_train: np.ndarray  # (n, p)
    y_train: np.ndarray | None  # (n,)
    X_test: np.ndarray | None = None
    y_test: np.ndarray | None = None
    image_shape: tuple[int, ...] | None = None
    description: str = ""

    def split(
        self,
        n_train_per_class: int | float,
        random_state: int | np.random.Generator | None = None,
    ) -> Split:
        """Draw the same number (int) or share (float) of each class for training.

        All other rows form the test part. A published split is pooled first. Both
        parts keep the order of the rows.
        """
        X, y = self._pool_split()
        rng = np.random.default_rng(random_state)
        train = np.zeros(len(y), dtype=bool)
        for label in np.unique(y):
            members = np.flatnonzero(y == label)
            count = self._train_count(n_train_per_class, len(members), label)
            train[rng.permutation(members)[:count]] = True
        return Split(X[train], X[~train], y[train], y[~train])

    def _pool_split(self) -> tuple[np.ndarray, np.ndarray]:
        if self.y_train is None:
            raise ValueError(
                f"data set {self.name!r} has no labels to split by: "
                "use sklearn.model_selection.train_test_split on X_train"
            )
        if self.X_test is None or self.y_test is None:
            return self.X_train, self.y_train
        return (
            np.concatenate([self.X_train, self.X_test]),
            np.concatenate([self.y_train, self.y_test]),
        )

    def _train_count(
        self, n_train_per_class: int | float, size: int, label: object
    ) -> int:
        count = (
            round(n_train_per_class * size)
            if isinstance(n_train_per_class, float)
            else int(n_train_per_class)
        )
        if not 0 < count < size:
            raise ValueError(
                f"n_train_per_class={n_train_per_class} leaves no training or no test "
                f"row of class {label} of {self.name!r}, which has {size} rows: pass a "
                f"count from 1 to {size - 1} or a share between 0.0 and 1.0"
            )
        return count
