"""How the sizes in `methods.py` were chosen: on the training half of the digits only.

``python -m demo.choice`` trains on two thirds of the training half and
tests on the rest, six times, for every method and every setting of its grid. It prints
the best settings by three criteria: accuracy on clean images, which is what one would
use without knowing what will corrupt the images later, mean accuracy over clean images
and those with lost pixels, and mean accuracy over clean and all corrupted images.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

import numpy as np
from sklearn.model_selection import ParameterGrid, RepeatedStratifiedKFold

from kernlets.datasets.catalogue import Split
from kernlets.numerics.threads import parallel

from .methods import METHODS, SAMPLES, TOLD, TOLD_KERNEL, TOLD_MACHINE
from .trial import FULL, Corruption, accuracies, digits

LEARNER, KERNEL = "residualclassifier__learner__", "nystroemmap__kernel__"
GRID: dict[str, Sequence[float]] = {
    LEARNER + "n_components": (20, 30, 40, 50),
    LEARNER + "n_nonzero_coefs": (1, 2, 3, 4, 6),
    KERNEL + "degree": (2, 3),
    "kneighborsclassifier__n_neighbors": (1, 3, 5, 9),
    "svc__C": (1.0, 10.0),
    "svc__gamma": (0.5, 1.0, 2.0, 4.0),
}
KEPT: dict[str, Sequence[float]] = {
    LEARNER + "n_nonzero_coefs": (5, 12, 30),
    LEARNER + "kernel__gamma": (2.0, 4.0, 8.0),
}

KNOWN: dict[str, Sequence[float]] = {
    LEARNER + "n_components": (20, 30, 40, 58),
    LEARNER + "n_nonzero_coefs": (3, 5, 8),
}
IMPUTED: dict[str, Sequence[float]] = {
    "svc__C": (1.0, 10.0),
    "svc__gamma": (0.02, 0.05, 0.1, 0.2),
}
OWN_GRIDS = {SAMPLES: KEPT, TOLD_KERNEL: KNOWN, TOLD_MACHINE: IMPUTED}

Setting = dict[str, float]


def folds(data: Split, n_repeats: int = 2) -> Iterator[Split]:
    """Training and validation parts of the training half."""
    X, y = data.X_train, data.y_train
    cut = RepeatedStratifiedKFold(n_splits=3, n_repeats=n_repeats, random_state=0)
    for train, test in cut.split(X, y):
        yield Split(X[train], X[test], y[train], y[test])


def grid(method: str) -> list[Setting]:
    """The method's own grid, or the part of `GRID` that it has parameters for."""
    known = METHODS[method](0).get_params()
    values = OWN_GRIDS.get(method, GRID)
    return list(ParameterGrid({k: v for k, v in values.items() if k in known}))


def score(
    method: str,
    setting: Setting,
    parts: Sequence[Split],
    corruptions: Sequence[Corruption],
) -> np.ndarray:  # (n_corruptions,)
    """Accuracy at each corruption, mean over the parts."""

    def one(seed: int, part: Split) -> list[float]:
        model = METHODS[method](seed).set_params(**setting)
        model.fit(part.X_train, part.y_train)
        told = method in TOLD
        return [*accuracies(model, part, corruptions, seed, told).values()]

    return np.mean([one(seed, part) for seed, part in enumerate(parts)], axis=0)


def show_best(method: str, parts: Sequence[Split], count: int = 5) -> None:
    """Print the best settings of a method by each criterion."""
    corruptions = FULL.corruptions()
    settings = grid(method)
    found = parallel(lambda s: score(method, s, parts, corruptions), settings)
    scores = list(zip(found, settings, strict=True))
    lost = [i for i, each in enumerate(corruptions) if each.kind != "noise"]
    criteria = {
        "clean": lambda pair: pair[0][-1],
        "clean and lost": lambda pair: pair[0][lost].mean(),
        "mean": lambda pair: pair[0].mean(),
    }
    for name, criterion in criteria.items():
        print(f"{method}, best by {name}")
        for accuracy, setting in sorted(scores, key=criterion, reverse=True)[:count]:
            values = ", ".join(f"{k.split('__')[-1]}={v}" for k, v in setting.items())
            clean, mean = 100 * accuracy[-1], 100 * accuracy.mean()
            print(f"  clean {clean:.2f} %, mean {mean:.2f} %: {values}", flush=True)


def main() -> None:
    """The methods named in the command, or all of them."""
    parts = list(folds(digits()))
    for method in sys.argv[1:] or METHODS:
        show_best(method, parts)


if __name__ == "__main__":
    main()
