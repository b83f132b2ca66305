"""A large hidden dictionary on one GPU: ``python -m benchmarks.gpu_recovery``.

10 000 latents in 139 dimensions, a million samples of the generator of
``python -m benchmarks recovery`` (noiseless, ten non-negative codes each, combinations
in the test that training never has), learned by ``KSVD(update="ksvd-parallel")`` with
``OMP(10, positive=True)`` in float32. Samples are made on the host from the seed, so
they are the same for every device.

A line of JSON follows each iteration, and one with the result comes last; ``--out``
writes all of them to a file, again after each iteration. With ``--checkpoint FOLDER`` a
run that was stopped goes on where it was when the same command is given again.
``--device cpu --latents 200 --samples 5000`` tries it without a GPU.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy import sparse

from kernlets import KSVD, OMP, Schedule, metrics, options
from kernlets.coders import encode
from kernlets.dictionaries import ExplicitDictionary
from kernlets.updates import ParallelKSVDUpdate

from .harness.records import write_json
from .harness.timing import Stopwatch
from .recovery import FOUND, N_TEST, unit_rows

WARM_UP = 0.6  # of all iterations
BLOCK = 100_000  # samples that are made at once


@dataclass(frozen=True)
class Hidden:
    """A dictionary, samples of it to learn from, and others to judge by."""

    atoms: np.ndarray  # (m, p) float32
    X: np.ndarray  # (n, p) float32
    test: np.ndarray  # (t, p) float32
    test_codes: np.ndarray  # (t, m)


def distinct(
    rng: np.random.Generator, n: int, width: int, latents: range
) -> np.ndarray:  # (n, width)
    """Different latents for each sample, all combinations equally likely.

    Rows with a latent twice are drawn again. Unlike `recovery.combinations` this takes
    no memory for the latents that a sample does not have.
    """
    drawn = rng.integers(latents.start, latents.stop, (n, width))
    again = np.arange(n)
    while len(again):
        ordered = np.sort(drawn[again], axis=1)
        again = again[(ordered[:, 1:] == ordered[:, :-1]).any(axis=1)]
        drawn[again] = rng.integers(latents.start, latents.stop, (len(again), width))
    return drawn


def with_first(
    rng: np.random.Generator, n: int, width: int, latents: range
) -> np.ndarray:  # (n, width)
    """Supports of latent 0 and others of these latents."""
    others = distinct(rng, n, width - 1, latents)
    return np.concatenate([np.zeros((n, 1), int), others], axis=1)


def codes_on(
    rng: np.random.Generator, supports: np.ndarray, m: int
) -> sparse.csr_array:
    """Codes uniform in (0, 1) on these supports."""
    starts = np.arange(0, supports.size + 1, supports.shape[1])
    parts = rng.random(supports.size, dtype=np.float32), supports.ravel(), starts
    return sparse.csr_array(parts, shape=(len(supports), m))


def hidden(m: int, n: int, k: int, seed: int) -> Hidden:
    """The case of `recovery.unseen_combinations`, in blocks and in float32."""
    rng = np.random.default_rng(seed)
    p = int(np.ceil(2 * k * np.log(m / k)))
    atoms = unit_rows(rng, m, p).astype(np.float32)
    with_it = with_first(rng, n // 2, k, range(1, m // 2))
    without = distinct(rng, n - n // 2, k, range(1, m))
    supports, X = np.concatenate([with_it, without]), np.empty((n, p), np.float32)
    for begin in range(0, n, BLOCK):
        rows = slice(begin, begin + BLOCK)
        X[rows] = codes_on(rng, supports[rows], m) @ atoms
    test = codes_on(rng, with_first(rng, N_TEST, k, range(m // 2, m)), m)
    return Hidden(atoms, X, test @ atoms, test.toarray())


def learner(arguments: argparse.Namespace, callback: Callable[..., None]) -> KSVD:
    return KSVD(
        arguments.latents,
        coder=OMP(arguments.non_zeros, positive=True),
        max_iter=arguments.iterations,
        schedule=Schedule(arguments.warm_up, callback=callback),
        update=ParallelKSVDUpdate(max_coherence=0.9),
        random_state=arguments.seed,
    )


def nearest(true: torch.Tensor, found: torch.Tensor) -> torch.Tensor:  # (m,)
    """For each true atom, the cosine of the nearest one found."""
    parts = (part @ found.T for part in true.split(1024))
    return torch.cat([part.abs().amax(dim=1) for part in parts])


class Notes:
    """The lines of a run: printed as they come, and kept in a file."""

    def __init__(self, about: dict[str, Any], out: Path | None) -> None:
        self.about, self.out, self.rows = about, out, []  # type: ignore[var-annotated]

    def __call__(self, row: dict[str, Any]) -> None:
        self.rows.append(row)
        print(json.dumps(row), flush=True)
        if self.out is not None:
            write_json(self.out, self.about | {"rows": self.rows})


def about(arguments: argparse.Namespace) -> dict[str, Any]:
    names = ("latents", "samples", "non_zeros", "iterations", "warm_up", "seed")
    case = {name: getattr(arguments, name) for name in names}
    on_gpu = arguments.device.startswith("cuda")
    device = torch.cuda.get_device_name() if on_gpu else "CPU"
    return case | {"device": device, "torch": torch.__version__}


def watcher(true: np.ndarray, notes: Notes, device: str) -> Callable[..., None]:
    """A callback that notes how many true atoms have one near them by now."""
    own = torch.as_tensor(true, device=device)

    def note(state: dict[str, Any]) -> None:
        cosines = nearest(own, state["dictionary"].atoms)
        row = {"iteration": state["iteration"] + 1, "objective": state["objective"]}
        row |= {"mean nearest cosine": float(cosines.mean())}
        notes(row | {"share near": float((cosines >= FOUND).double().mean())})

    return note


def judged(data: Hidden, found: KSVD, clock: Stopwatch) -> dict[str, Any]:
    """How much was found, beside what the true atoms themselves reach."""
    test = torch.as_tensor(data.test, device=found.components_.device)
    told = ExplicitDictionary(torch.as_tensor(data.atoms, device=test.device))
    codes = found.transform(test).numpy(force=True)
    best = encode(told, found.coder_, test).toarray().numpy(force=True)
    truth = data.test_codes
    scores = clock("match", lambda: metrics.recovery(data.atoms, found, FOUND))
    return {
        "correlation": clock("match", lambda: metrics.code_correlation(truth, codes)),
        "correlation, true atoms": metrics.code_correlation(truth, best),
        "share found": scores.share,
        "mean cosine": scores.cosine,
    }


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """Make the samples, learn, judge; returns the last line."""
    clock, notes = Stopwatch(), Notes(about(arguments), arguments.out)
    sizes = arguments.latents, arguments.samples, arguments.non_zeros
    data = clock("samples", lambda: hidden(*sizes, arguments.seed))
    X = torch.as_tensor(data.X, device=arguments.device)
    model = learner(arguments, watcher(data.atoms, notes, arguments.device))
    with _kept(arguments.checkpoint):
        clock("fit", lambda: model.fit(X))
    row = judged(data, model, clock) | {
        "objective": model.history_["objective"][-1],
        # of all parts of a run that was stopped and resumed
        "fit minutes": model.history_["seconds"][-1] / 60,
        "seconds": clock.seconds,
    }
    if X.is_cuda:
        row["GPU gigabytes"] = torch.cuda.max_memory_allocated() / 1e9
    notes(row)
    return row


def _kept(folder: Path | None) -> AbstractContextManager[Any]:
    """One block at a time: a GPU gains nothing by several, and they take its memory.

    Non-negative OMP takes `non_zeros` times the memory of a block's correlations.
    """
    return options(n_threads=1, checkpoint=None if folder is None else str(folder))


def main(words: list[str] | None = None) -> dict[str, Any]:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--latents", type=int, default=10_000)
    parser.add_argument("--samples", type=int, default=1_000_000)
    parser.add_argument("--non-zeros", type=int, default=10)
    parser.add_argument("--iterations", type=int, default=60)
    parser.add_argument("--warm-up", type=int, help="iterations; default: 60 %% of all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--checkpoint", type=Path, help="folder; resumes what is there")
    arguments = parser.parse_args(words)
    if arguments.warm_up is None:
        arguments.warm_up = int(WARM_UP * arguments.iterations)
    return run(arguments)


if __name__ == "__main__":
    main()
