"""Digits: MNIST from the data folder, or the small set bundled with scikit-learn."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .data import load_data
from .peers.spec import SEED


@dataclass(frozen=True)
class Digits:
    X_train: np.ndarray  # (n, p), float32, unit l2 norm
    y_train: np.ndarray  # (n,)
    X_test: np.ndarray
    y_test: np.ndarray


def load_digits(name: str, n_train: int) -> Digits:
    """`n_train` training rows, drawn with a fixed seed where there are more."""
    from kernlets import datasets

    data = load_data(name)
    if data.X_test is None:
        X_train, X_test, y_train, y_test = data.split(0.7, random_state=SEED)
    else:
        X_train, X_test, y_train, y_test = (
            data.X_train,
            data.X_test,
            data.y_train,
            data.y_test,
        )
    rows = np.sort(np.random.default_rng(SEED).permutation(len(X_train))[:n_train])
    X_train, X_test = datasets.unit_norm(X_train[rows]), datasets.unit_norm(X_test)
    return Digits(X_train, y_train[rows], X_test, y_test)
