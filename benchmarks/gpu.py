"""MNIST and its extensions on one GPU: ``python -m benchmarks.gpu [--out FILE]``.

Jobs: OMP beside the package orthogonal-matching-pursuit-gpu (where it is installed);
LKDL on MNIST at c = 3000 and 9000; on MNIST with its eight one-pixel shifts (540 000
rows in host memory); on 8.1 million deformed images made on the fly and streamed; exact
kernel K-SVD with two iterations and with one, the fastest of 24 settings that reached
98.3 % on 10 000 of the training images, learned from the others; K-SAD. Seconds are
medians after one warm-up, from NumPy arrays to labels.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.pipeline import make_pipeline

from kernlets import (
    KSVD,
    OMP,
    Blocks,
    KernelKSVD,
    NystroemMap,
    ResidualClassifier,
    datasets,
    options,
)
from kernlets.coders import encode
from kernlets.datasets import shifted, unit_norm
from kernlets.datasets.preparation import SHIFTS
from kernlets.dictionaries import ExplicitDictionary
from kernlets.numerics.arrays import to_numpy

from .harness.records import write_json
from .harness.timing import Stopwatch, timed_median

LEARNING = {"max_iter": 2, "update": "ksvd-parallel", "random_state": 0}


def lkdl(c: int, seed: int = 0) -> Any:
    features = NystroemMap(
        "poly:2", "coreset", n_landmarks=c, n_components=784, random_state=seed
    )
    learner = KSVD(700, 11, **LEARNING | {"random_state": seed})
    return make_pipeline(features, ResidualClassifier(learner))


def exact(iterations: int, seed: int = 0) -> Any:
    how = LEARNING | {"max_iter": iterations, "random_state": seed}
    return ResidualClassifier(KernelKSVD("poly:2", 700, n_nonzero_coefs=11, **how))


def accuracy(labels: Any, truth: np.ndarray) -> float:
    return float(np.mean(to_numpy(labels) == truth))


def omp_beside_the_peer() -> Iterator[dict[str, Any]]:
    for n, p, m, q in ((60_000, 784, 700, 11), (1_000_000, 256, 512, 10)):
        rng = torch.Generator(device="cuda").manual_seed(0)
        atoms = torch.randn(m, p, device="cuda", generator=rng)
        atoms /= atoms.norm(dim=1, keepdim=True)
        X = torch.randn(n, p, device="cuda", generator=rng)
        dictionary = ExplicitDictionary(atoms)
        codes, seconds = timed_median(partial(encode, dictionary, OMP(q), X), 5)
        row = {"job": "OMP", "size": [n, p, m, q], "seconds": seconds}
        row["mean residual"] = float(codes.residual.mean())
        yield row | peer_omp(atoms, X, q)


def peer_omp(atoms: torch.Tensor, X: torch.Tensor, q: int) -> dict[str, Any]:
    """The peer in batches that fit: it holds several arrays of all samples × atoms."""
    try:
        from orthogonal_matching_pursuit_gpu import run_omp
    except ImportError as error:
        return {"peer": f"left out: {error}"}

    def batch(part: torch.Tensor) -> torch.Tensor:
        return run_omp(atoms.T, part, q, normalize=False, fit_intercept=False, alg="v0")

    def run() -> float:
        errors = 0.0
        for start in range(0, len(X), 50_000):
            part = X[start : start + 50_000]
            errors += float(((part - batch(part) @ atoms) ** 2).sum())
        return errors / len(X)

    try:
        residual, seconds = timed_median(run, 2)
    except Exception as error:
        return {"peer": f"failed: {error!r}"[:300]}
    return {"peer seconds": seconds, "peer mean residual": residual}


def deformations(n_affine: int = 15) -> list[torch.Tensor]:
    """Affine maps (2, 3): small rotations, scalings and shears, times nine shifts."""
    rng = np.random.default_rng(0)
    found = []
    for _ in range(n_affine):
        turn = rng.uniform(-0.2, 0.2)
        scale, shear = rng.uniform(0.9, 1.1, 2), rng.uniform(-0.15, 0.15)
        cos, sin = np.cos(turn), np.sin(turn)
        rotation = np.array([[cos, -sin], [sin, cos]])
        linear = rotation @ np.array([[scale[0], shear], [0, scale[1]]])
        for dy, dx in SHIFTS:
            offset = np.array([[dx / 14], [dy / 14]])
            affine = np.concatenate([linear, offset], axis=1)
            found.append(torch.as_tensor(affine, dtype=torch.float32, device="cuda"))
    return found


def deformed(images: torch.Tensor, affine: torch.Tensor) -> torch.Tensor:  # (n, 784)
    size = (len(images), 1, 28, 28)
    grid = torch.nn.functional.affine_grid(
        affine.expand(len(images), 2, 3), size, align_corners=False
    )
    moved = torch.nn.functional.grid_sample(
        images[:, None], grid, align_corners=False, padding_mode="zeros"
    ).reshape(len(images), 784)
    return moved / moved.norm(dim=1, keepdim=True).clamp(min=1e-12)


def streamed_mnist(data: datasets.Dataset) -> dict[str, Any]:
    """One dictionary per digit from 135 deformations of each image, one at a time."""
    images = torch.as_tensor(data.X_train, device="cuda").reshape(-1, 28, 28)
    affines = deformations()
    clock = Stopwatch()

    def fit() -> tuple[NystroemMap, list[KSVD]]:
        features = NystroemMap(
            "poly:2", "coreset", n_landmarks=3000, n_components=784, random_state=0
        )
        features.fit(unit_norm(data.X_train))
        rows = (np.flatnonzero(data.y_train == digit) for digit in range(10))
        own = (images[torch.as_tensor(each)] for each in rows)
        return features, [learned(features, each, affines) for each in own]

    def predict(features: NystroemMap, learners: list[KSVD]) -> torch.Tensor:
        new = features.transform(unit_norm(data.X_test))
        errors = [one.reconstruction_error(new, per_sample=True) for one in learners]
        return torch.stack(errors, dim=1).argmin(dim=1)

    fitted = clock("fit", fit)
    labels = clock("predict", lambda: predict(*fitted))
    return {
        "job": "LKDL streamed, deformed MNIST",
        "rows": len(images) * len(affines),
        "fit seconds": clock.seconds["fit"],
        "seconds": sum(clock.seconds.values()),
        "accuracy": accuracy(labels, data.y_test),
    }


def learned(
    features: NystroemMap, images: torch.Tensor, affines: list[torch.Tensor]
) -> KSVD:
    """The dictionary of one digit; each pass deforms and maps the images again."""

    def blocks() -> Iterator[torch.Tensor]:
        return (features.transform(deformed(images, affine)) for affine in affines)

    return KSVD(700, 11, **LEARNING).fit(Blocks(blocks))


def classify(name: str, model: Any, X: Any, y: Any, data: Any, repeats: int) -> Any:
    new = unit_norm(data.X_test)
    labels, seconds = timed_median(
        lambda: to_numpy(model.fit(X, y).predict(new)), repeats
    )
    found = {"job": name, "rows": len(X), "seconds": seconds}
    return found | {"accuracy": accuracy(labels, data.y_test)}


def over_seeds(
    name: str, make: Callable[[int], Any], X: Any, y: Any, data: Any
) -> dict[str, Any]:
    """How far the seed moves the accuracy."""
    name = f"{name}, five seeds"
    each = [classify(name, make(seed), X, y, data, 3) for seed in range(5)]
    found = [row["accuracy"] for row in each]
    row = {"job": name, "rows": len(X), "accuracy": float(np.mean(found))}
    row |= {"seconds": float(np.mean([row["seconds"] for row in each]))}
    return row | {"least": min(found), "most": max(found)}


def mnist_jobs() -> Iterator[Callable[[], dict[str, Any]]]:
    data = datasets.load("mnist")
    X, y = unit_norm(data.X_train), data.y_train
    once = "exact kernel K-SVD, one iteration, MNIST"
    yield lambda: classify("LKDL c = 3000, MNIST", lkdl(3000), X, y, data, 7)
    yield lambda: over_seeds("LKDL c = 3000, MNIST", partial(lkdl, 3000), X, y, data)
    yield lambda: classify("LKDL c = 9000, MNIST", lkdl(9000), X, y, data, 3)
    yield lambda: classify("exact kernel K-SVD, MNIST", exact(2), X, y, data, 3)
    yield lambda: classify(once, exact(1), X, y, data, 7)
    yield lambda: over_seeds(once, partial(exact, 1), X, y, data)
    yield lambda: classify("K-SAD, MNIST", ksad(), X, y, data, 3)
    yield lambda: streamed_mnist(data)
    many = unit_norm(shifted(data.X_train, (28, 28)))
    labels = np.tile(y, len(SHIFTS))
    yield lambda: classify("LKDL, MNIST shifted", lkdl(3000), many, labels, data, 3)


def ksad() -> Any:
    from kernlets import KSADClassifier, Polynomial

    return KSADClassifier(
        Polynomial(8, coef0=1.0),
        n_components=300,
        landmarks="uniform",
        n_landmarks=1500,
        random_state=0,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    rows = []

    def note(row: dict[str, Any]) -> None:
        rows.append(row)
        print(json.dumps(row), flush=True)
        if arguments.out is not None:
            about = {"device": torch.cuda.get_device_name(), "torch": torch.__version__}
            write_json(arguments.out, about | {"rows": rows})

    with options(device="cuda"):
        for row in omp_beside_the_peer():
            note(row)
        for job in mnist_jobs():
            try:
                note(job())
            except Exception as error:  # one job that fails must not lose the others
                note({"failed": repr(error)[:500]})


if __name__ == "__main__":
    main()
