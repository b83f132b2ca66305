"""Numbers that a change of the code's shape must not move.

    python -m tests.pins write pins.npz      # before the change
    python -m tests.pins compare pins.npz    # after it; ends with 1 if a number moved

Every small model of `contracts/models.py` and every default of a registered
estimator is fitted to the same rows, in float64 and float32, complete and with missing
values, and every kernel and coder answers for them, on one thread. The first figure
of a line is the largest difference relative to the largest number. Processor times of
small fits and of predictions for one row are printed below; they are not compared.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier

from kernlets import KSVD, NystroemMap, options, registry

from . import structures
from .contracts import models

TOLERANCE = {np.dtype(np.float64): 1e-9, np.dtype(np.float32): 1e-4}
REPEATS = 5
ANSWERS = (
    "transform",
    "inverse_transform",
    "predict",
    "predict_proba",
    "decision_function",
    "score_samples",
)


def rows(dtype: type, missing: bool) -> np.ndarray:
    rng = np.random.default_rng(7)
    X = models.samples() + rng.normal(0, 0.5, (models.N, models.P))
    if missing:
        X[rng.random(X.shape) < 0.1] = np.nan
    return X.astype(dtype)


def estimators() -> Iterator[tuple[str, Any]]:
    yield from models.INSTANCES.items()
    for cls in registry.estimators():
        model = cls()
        if "random_state" in model.get_params():
            model.set_params(random_state=0)
        if "max_candidates" in model.get_params():
            model.set_params(max_candidates=3, seconds=None)
        yield f"default {cls.__name__}", model


def answers(model: Any, X: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """All that a fitted model says of rows, and the numbers that it learned."""
    for method in ANSWERS:
        if not hasattr(model, method):
            continue
        asked = model.transform(X) if method == "inverse_transform" else X
        yield method, plain(getattr(model, method)(asked))
    for name, value in sorted(vars(model).items()):
        if name.endswith("_") and isinstance(value, (float, np.ndarray)):
            yield name, plain(value)


def plain(value: Any) -> np.ndarray:
    array = value.toarray() if hasattr(value, "toarray") else models.in_memory(value)
    return array.astype(str) if array.dtype.kind == "O" else array


def attempt(job: Callable[[], Any]) -> Any:
    """The result, or the name of the error: refusals are pinned as well."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return job()
    except (ValueError, TypeError, MemoryError) as error:
        return type(error).__name__


def seconds(job: Callable[[], Any]) -> float:
    """The median of processor times, after a first call."""
    attempt(job)
    times = []
    for _ in range(REPEATS):
        begin = time.process_time()
        attempt(job)
        times.append(time.process_time() - begin)
    return float(np.median(times))


def pin_estimators(pins: dict[str, np.ndarray]) -> None:
    for dtype in (np.float64, np.float32):
        for missing in (False, True):
            X = rows(dtype, missing)
            for name, model in estimators():
                key = f"{name} | {np.dtype(dtype)}{' missing' * missing}"
                pin_estimator(pins, key, model, X)


def pin_estimator(
    pins: dict[str, np.ndarray], key: str, model: Any, X: np.ndarray
) -> None:
    y = models.labels() if is_classifier(model) else None
    fitted = attempt(lambda: clone(model).fit(X, y))
    if isinstance(fitted, str):
        pins[key] = np.array(fitted)
        return
    results = attempt(lambda: dict(answers(fitted, X)))
    if isinstance(results, str):
        results = {"answers": np.array(results)}
    pins |= {f"{key} | {name}": value for name, value in results.items()}
    if key.endswith("float64"):
        fit = seconds(lambda: clone(model).fit(X, y))
        one_row = seconds(lambda: models.answer(fitted, X[:1]))
        pins[f"{key} | seconds of fit"] = np.array(fit)
        pins[f"{key} | seconds of one row"] = np.array(one_row)


def pin_kernels(pins: dict[str, np.ndarray]) -> None:
    """The features of each kernel for each kind of samples that it takes."""
    kinds = {kind: structures.samples(kind, 8) for kind in structures.MAKERS}
    kinds["rows"] = np.abs(rows(np.float64, False)) / 16
    for name in registry.table("kernels"):
        for kind, samples in kinds.items():
            model = NystroemMap(name, "uniform", n_landmarks=6, random_state=0)
            features = attempt(lambda m=model, s=samples: plain(m.fit_transform(s)))
            pins[f"kernel {name} of {kind}"] = plain(features)


def pin_coders(pins: dict[str, np.ndarray]) -> None:
    for missing in (False, True):
        X = rows(np.float64, missing)
        for name in registry.table("coders"):
            model = KSVD(9, coder=name, max_iter=1, random_state=0)
            codes = attempt(lambda m=model, X=X: m.fit_transform(X))
            pins[f"coder {name}{' missing' * missing}"] = plain(codes)


def collect() -> dict[str, np.ndarray]:
    pins: dict[str, np.ndarray] = {}
    with options(n_threads=1):
        pin_estimators(pins)
        pin_kernels(pins)
        pin_coders(pins)
    return pins


def difference(a: np.ndarray, b: np.ndarray) -> float:
    """The largest difference relative to the largest number, or infinity."""
    if a.shape != b.shape or a.dtype.kind != b.dtype.kind:
        return np.inf
    if a.dtype.kind not in "fc":
        return 0.0 if np.array_equal(a, b) else np.inf
    if not np.array_equal(np.isnan(a), np.isnan(b)):
        return np.inf
    a, b = np.nan_to_num(a), np.nan_to_num(b)
    largest = np.abs(a).max(initial=0)
    if not largest:
        return np.inf if np.any(b) else 0.0
    return float(np.abs(a - b).max() / largest)


def compare(old: dict[str, np.ndarray], new: dict[str, np.ndarray]) -> bool:
    """Print what moved, and return whether nothing did."""
    same = True
    for key in sorted(set(old) | set(new)):
        if "seconds" in key:
            continue
        if key not in old or key not in new:
            print(f"{'only before' if key in old else 'only after':>12}  {key}")
            same = False
            continue
        moved = difference(old[key], new[key])
        if moved > TOLERANCE.get(old[key].dtype, 0):
            print(f"{moved:12.1e}  {key}")
            same = False
    for kind in ("seconds of fit", "seconds of one row"):
        keys = [k for k in old if k.endswith(kind) and k in new]
        ratios = sorted((float(new[k] / max(old[k], 1e-9)), k) for k in keys)
        if ratios:
            middle = ratios[len(ratios) // 2][0]
            print(f"{kind}: median ratio {middle:.2f}, largest {ratios[-1]}")
    return same


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("action", choices=["write", "compare"])
    parser.add_argument("file")
    given = parser.parse_args()
    pins = collect()
    if given.action == "write":
        np.savez_compressed(given.file, **pins)
        print(f"{len(pins)} numbers and arrays written to {given.file}")
        return 0
    with np.load(given.file) as old:
        return 0 if compare(dict(old), pins) else 1


if __name__ == "__main__":
    sys.exit(main())
