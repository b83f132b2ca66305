"""What becomes of a forged model file: it is loaded and used in another process.

A file is refused with a `ModelFileError`, or gives an object that can be used: methods
return, or raise one of `FORESEEN`. Everything else is a failure: another error, a
crash, a file that takes too long or too much memory.

    python tests/victim.py --seed 1 --seconds 60
"""

from __future__ import annotations

import argparse
import json
import select
import subprocess
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

FORESEEN = (ValueError, MemoryError)  # what the documentation says methods may raise
PATIENCE = 20.0  # seconds for one file
MEMORY = 6 * 2**30  # bytes of address space of the process
METHODS = (
    *("transform", "predict", "decision_function", "predict_proba", "score_samples"),
    *("reconstruction_error", "diag", "__call__"),
)


# ------------------------------------------------------------- in the other process


def rows(width: Any) -> np.ndarray:
    """A few samples of the given width."""
    known = isinstance(width, (int, np.integer)) and 0 < width < 200
    return np.random.default_rng(5).random((5, int(width) if known else 6))


def use(model: Any, width: int) -> list[str]:
    """Call what can be called; what was raised of the foreseen errors."""
    raised = []
    for method, args in _calls(model, width):
        try:
            found = getattr(model, method)(*args)
            if method == "transform" and hasattr(model, "inverse_transform"):
                _turn_back(model, found)
        except FORESEEN as error:
            raised.append(f"{method}: {error}")
        except AttributeError as error:
            if not _is_bare(model):
                raise
            raised.append(f"{method}: {error}")
    return raised


def _is_bare(model: Any) -> bool:
    """Of scikit-learn and not fitted, which its older versions do not say."""
    is_foreign = type(model).__module__.startswith("sklearn.")
    return is_foreign and vars(model).keys() == model.get_params(deep=False).keys()


def _turn_back(model: Any, codes: Any) -> None:
    try:
        model.inverse_transform(codes)
    except TypeError as error:  # of maps from which there is no way back
        if not any(words in str(error) for words in ("not made of", "pre-images")):
            raise


def _calls(model: Any, width: int) -> Iterator[tuple[str, tuple[Any, ...]]]:
    from kernlets.contracts import Dictionary, SparseCoder
    from kernlets.kernels import Kernel

    if isinstance(model, SparseCoder):
        yield "solve", (np.eye(4), rows(4), np.full(5, 2.0))
        return
    if isinstance(model, Dictionary):
        by_number = type(model).__name__ == "GramDictionary"
        yield from (("gram", ()), ("dual", ()))
        yield "correlate", (np.arange(3) if by_number else rows(width),)
        return
    X, labels = rows(width), getattr(model, "classes_", None)
    if not isinstance(model, Kernel) and callable(model):
        X = np.arange(1, 6)  # numbers of samples, for step sizes
    for name in _methods(model):
        yield name, (_inputs(model, X, labels) if name == "transform" else X,)
    if hasattr(model, "partial_fit"):
        several = labels is not None and len(labels) > 1
        y = (np.resize(labels, 5),) if several else ()
        yield "partial_fit", (X, *y)
        yield from ((name, (X,)) for name in _methods(model))
    yield "get_params", ()
    yield "__repr__", ()


def _inputs(model: Any, X: np.ndarray, labels: Any) -> Any:
    return labels if type(model).__name__.startswith("Label") else X


def _methods(model: Any) -> list[str]:
    return [name for name in METHODS if hasattr(model, name)]


def tried(path: str, width: int) -> dict[str, str]:
    """What happened to one file: it was refused, used, or some method said no."""
    from kernlets import load, options
    from kernlets.io import ModelFileError, info

    try:
        model = load(path)
    except ModelFileError as error:
        assert str(error).isprintable(), "a message that cannot be shown"
        return {"outcome": "refused", "note": str(error)}
    info(path)
    with options(n_threads=1, memory="200MB"):
        raised = use(model, width)
    return {"outcome": "said no" if raised else "used", "note": "".join(raised[:1])}


def serve() -> None:
    """Try one file after the other, as the other side names them."""
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    out, sys.stdout = sys.stdout, sys.stderr  # models may print
    for line in sys.stdin:
        path, width = json.loads(line)
        try:
            answer = tried(path, width)
        except BaseException as error:
            where = traceback.format_exc(limit=-4)
            answer = {"outcome": "failed", "note": f"{error!r:.300}\n{where}"}
        print(json.dumps(answer), file=out, flush=True)


# ------------------------------------------------------------------ in this process


@dataclass
class Report:
    """How many files had which outcome, and the failures among them."""

    outcomes: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    slowest: tuple[float, str] = (0.0, "")

    def __str__(self) -> str:
        counts = ", ".join(f"{n} {name}" for name, n in self.outcomes.most_common())
        return f"{counts}; the slowest took {self.slowest[0]:.1f} s: {self.slowest[1]}"


class Victim:
    """A process that tries files, and is replaced when it dies."""

    def __init__(self, folder: Path) -> None:
        self.path, self.process = folder / "forged.model", None

    def _started(self) -> subprocess.Popen[str]:
        if self.process is None:
            self.process = subprocess.Popen(
                [sys.executable, __file__, "--serve"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
        return self.process

    def close(self) -> None:
        """End the process."""
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
            self.process = None

    def try_file(self, data: bytes, width: int, patience: float) -> dict[str, str]:
        """What happens to a file with this content."""
        self.path.write_bytes(data)
        process = self._started()
        process.stdin.write(json.dumps([str(self.path), width]) + "\n")
        process.stdin.flush()
        ready, _, _ = select.select([process.stdout], [], [], patience)
        line = process.stdout.readline() if ready else ""
        if line:
            return json.loads(line)
        self.close()
        problem = f"ended with code {process.returncode}" if ready else "took too long"
        return {"outcome": "failed", "note": f"the process {problem}"}


def attack(cases: Iterable[Any], seconds: float, n_cases: int | None = None) -> Report:
    """Try forged files until the time is over, or so many of them."""
    report, began = Report(), time.monotonic()
    with TemporaryDirectory() as folder:
        victim, patience = Victim(Path(folder)), 10 * PATIENCE  # it has to start first
        try:
            for number, case in enumerate(cases):
                if time.monotonic() - began > seconds or number == n_cases:
                    break
                start = time.monotonic()
                answer = victim.try_file(case.data, case.width, patience)
                _note(report, case, answer, time.monotonic() - start if number else 0)
                patience = PATIENCE if victim.process else 10 * PATIENCE
        finally:
            victim.close()
    return report


def _note(report: Report, case: Any, answer: dict[str, str], seconds: float) -> None:
    report.outcomes[answer["outcome"]] += 1
    name = f"{case.model}: {case.label}"
    report.slowest = max(report.slowest, (seconds, name))
    if answer["outcome"] == "failed":
        report.failures.append(f"{name}\n{answer['note']}")


def main() -> None:
    """Attack, and show what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--serve", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--models", nargs="*")
    given = parser.parse_args()
    if given.serve:
        serve()
        return
    from forger import forge_cases

    report = attack(forge_cases(given.seed, given.models), given.seconds)
    for failure in report.failures:
        print(failure, "\n")
    print(report)
    sys.exit(bool(report.failures))


if __name__ == "__main__":
    main()
