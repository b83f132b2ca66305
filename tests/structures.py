"""Small samples of every kind that is not rows of numbers, in two classes."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernlets import datasets


def samples(kind: str, n: int, seed: int = 0) -> list[Any]:
    """n samples of a kind; those with odd numbers differ from the others."""
    rng = np.random.default_rng(seed)
    return [MAKERS[kind](rng, i % 2) for i in range(n)]


def _series(rng: np.random.Generator, odd: int) -> np.ndarray:
    steps = int(rng.integers(3, 14))
    shape = np.sin(np.linspace(0, 4 + 4 * odd, steps))
    return np.stack([shape, odd * shape], axis=1) + 0.3 * rng.normal(size=(steps, 2))


def _bag(rng: np.random.Generator, odd: int) -> np.ndarray:
    return rng.normal(size=(int(rng.integers(1, 9)), 3)) + 2 * odd


def _matrix(rng: np.random.Generator, odd: int) -> np.ndarray:
    signal = rng.normal(size=(20, 4)) * (1 + np.array([2 * odd, 0, 0, odd]))
    return datasets.covariances([signal])[0]


def _string(rng: np.random.Generator, odd: int) -> str:
    return "".join(rng.choice(list("acgt"[odd:]), size=int(rng.integers(4, 20))))


def _graph(rng: np.random.Generator, odd: int) -> tuple[np.ndarray, list[int]]:
    n = int(rng.integers(3, 9))
    upper = np.triu(rng.random((n, n)) < 0.3 + 0.4 * odd, 1)
    return (upper | upper.T).astype(float), rng.integers(0, 2, n).tolist()


MAKERS = {
    "series": _series,
    "bags": _bag,
    "matrices": _matrix,
    "strings": _string,
    "graphs": _graph,
}
