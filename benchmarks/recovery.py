"""Whether the true atoms are found: planted dictionaries, without and with noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .peers.spec import Benchmark, Case, Figures, Method, Target

FOUND = 0.99  # cosine from which an atom counts as found, as in the paper of K-SVD
N_TEST = 1000
HIDDEN = {100: 0.965, 500: 0.985, 1000: 0.475}  # correlations asked for, 5000 samples
MANY = 0.95  # with 50 000 samples
CLASSICAL = {10: 46, 20: 48, 30: 49}  # atoms of 50, by decibels


@dataclass(frozen=True)
class Trial:
    """Samples of one hidden dictionary."""

    seed: int
    atoms: np.ndarray  # (m, p)
    X: np.ndarray  # (n, p)
    test: np.ndarray  # (t, p)
    test_codes: np.ndarray  # (t, m)


@dataclass(frozen=True)
class Problem:
    trials: list[Trial]
    case: Case


def unit_rows(rng: np.random.Generator, m: int, p: int) -> np.ndarray:
    atoms = rng.standard_normal((m, p))
    return atoms / np.linalg.norm(atoms, axis=1, keepdims=True)


def combinations(
    rng: np.random.Generator, n: int, width: int, latents: np.ndarray
) -> np.ndarray:  # (n, width)
    """Different ones of these latents for each sample."""
    ranks = rng.random((n, len(latents))).argpartition(width, axis=1)[:, :width]
    return latents[ranks]


def codes_on(rng: np.random.Generator, supports: np.ndarray, m: int) -> np.ndarray:
    codes = np.zeros((len(supports), m))
    np.put_along_axis(codes, supports, rng.random(supports.shape), axis=1)
    return codes


def unseen_combinations(seed: int, m: int, n: int, k: int) -> Trial:
    """Latent 0 meets only the first half in training, and only the second in the test.

    Half of the training samples are latent 0 with k − 1 of the first half, the others
    k of all the latents but it. Codes are uniform in (0, 1).
    """
    rng = np.random.default_rng(seed)
    atoms = unit_rows(rng, m, int(np.ceil(2 * k * np.log(m / k))))

    def with_first(size: int, latents: np.ndarray) -> np.ndarray:
        others = combinations(rng, size, k - 1, latents)
        return np.concatenate([np.zeros((size, 1), int), others], axis=1)

    with_it = with_first(n // 2, np.arange(1, m // 2))
    without = combinations(rng, n - n // 2, k, np.arange(1, m))
    codes = codes_on(rng, np.concatenate([with_it, without]), m)
    test = codes_on(rng, with_first(N_TEST, np.arange(m // 2, m)), m)
    return Trial(seed, atoms, codes @ atoms, test @ atoms, test)


def classical(seed: int, m: int, n: int, k: int, decibels: float) -> Trial:
    """The test of the K-SVD paper: Gaussian codes at random places, and noise."""
    rng = np.random.default_rng(seed)
    atoms = unit_rows(rng, m, 20)
    codes = np.zeros((n + N_TEST, m))
    supports = combinations(rng, len(codes), k, np.arange(m))
    np.put_along_axis(codes, supports, rng.standard_normal(supports.shape), axis=1)
    clean = codes @ atoms
    noise = rng.standard_normal(clean.shape)
    noise *= np.linalg.norm(clean) / np.linalg.norm(noise) * 10 ** (-decibels / 20)
    X = clean + noise
    return Trial(seed, atoms, X[:n], X[n:], codes[n:])


class Learned(Method):
    """A learner on every trial, and how much of the hidden dictionaries it found."""

    memory = False

    def __init__(self, problem: Problem) -> None:
        self.problem, self.case = problem, problem.case

    def coder(self) -> Any:
        from kernlets import OMP

        return OMP(self.case["non-zeros"], positive=self.case["noise"] == "none")

    def learner(self, seed: int) -> Any:
        raise NotImplementedError

    def run(self) -> list[Any]:
        return [self.fitted(trial) for trial in self.problem.trials]

    def fitted(self, trial: Trial) -> Any:
        return self.learner(trial.seed).fit(trial.X)

    def figures(self, result: list[Any]) -> Figures:
        from kernlets import metrics

        found = []
        for trial, learner in zip(self.problem.trials, result, strict=True):
            codes = trial.test_codes, learner.transform(trial.test)
            scores = metrics.recovery(trial.atoms, learner, FOUND, codes)
            error = learner.reconstruction_error(trial.X)
            found.append((scores.correlation, scores.share, error))
        correlation, share, error = np.mean(found, axis=0)
        n_found = share * len(self.problem.trials[0].atoms)
        return {"correlation": correlation, "atoms found": n_found, "error": error}


class Kernlets(Learned):
    """Non-negative codes, no two atoms alike, a warm-up or exchanges."""

    name = "kernlets"

    def learner(self, seed: int) -> Any:
        from kernlets import KSVD, Schedule
        from kernlets.updates import ParallelKSVDUpdate

        return KSVD(
            self.case["atoms"],
            coder=self.coder(),
            max_iter=self.case["iterations"],
            schedule=Schedule(self.case["warm-up"], self.case["exchange"]),
            update=ParallelKSVDUpdate(
                min_uses=self.case["least uses"], max_coherence=0.9
            ),
            random_state=seed,
        )

    def fitted(self, trial: Trial) -> Any:
        if not self.case["penalty"]:
            return super().fitted(trial)
        return self._penalised_first(trial)

    def _penalised_first(self, trial: Trial) -> Any:
        """The warm-up with a penalty that falls, the other iterations with OMP."""
        from kernlets import Lasso

        warm_up, learner = self.case["warm-up"], self.learner(trial.seed)
        coder = Lasso(self.case["penalty"], positive=True)
        learner.set_params(coder=coder, max_iter=warm_up).fit(trial.X)
        n_rest = self.case["iterations"] - warm_up
        rest = {"max_iter": n_rest, "schedule__warm_up": 0}
        atoms = learner.components_
        return learner.set_params(coder=self.coder(), init=atoms, **rest).fit(trial.X)


class Sweep(Learned):
    name = "KSVD, same coder"
    update = "ksvd"

    def learner(self, seed: int) -> Any:
        from kernlets import KSVD

        size = self.case["atoms"], self.case["iterations"]
        return KSVD(
            size[0],
            coder=self.coder(),
            max_iter=size[1],
            update=self.update,
            random_state=seed,
        )


class Parallel(Sweep):
    name = "KSVD, update='ksvd-parallel', same coder"
    update = "ksvd-parallel"


class Signed(Sweep):
    name = "KSVD, signed codes"

    def coder(self) -> Any:
        from kernlets import OMP

        return OMP(self.case["non-zeros"])


class TrueAtoms(Sweep):
    """The hidden dictionary itself: what coding alone reaches."""

    name = "the true atoms"

    def run(self) -> list[Any]:
        return [self._told(trial) for trial in self.problem.trials]

    def _told(self, trial: Trial) -> Any:
        from kernlets.dictionaries import ExplicitDictionary

        rows = trial.X[: len(trial.atoms)]
        learner = self.learner(trial.seed).set_params(max_iter=1, init=trial.atoms)
        learner.fit(rows)
        learner.dictionary_ = ExplicitDictionary(trial.atoms)
        return learner


def planted(
    m: int,
    n: int,
    iterations: int,
    warm_up: int,
    trials: int = 3,
    penalty: float = 0.0,
) -> Case:
    """Latents are of unequal frequency: the rarest must not be exchanged."""
    sizes = {"atoms": m, "samples": n, "non-zeros": 10, "noise": "none"}
    pace = {"iterations": iterations, "warm-up": warm_up, "penalty": penalty}
    return {**sizes, **pace, "exchange": 0, "least uses": 4, "trials": trials}


def noisy(decibels: int) -> Case:
    sizes = {"atoms": 50, "samples": 1500, "non-zeros": 3, "noise": f"{decibels} dB"}
    pace = {"iterations": 80, "warm-up": 0, "penalty": 0.0, "exchange": 1}
    return {**sizes, **pace, "least uses": 18, "trials": 50}


class Recovery(Benchmark):
    name = "recovery"
    title = "Recovery of a hidden dictionary"
    about = (
        "Without noise: y = A z, A of m unit-norm Gaussian atoms in ⌈2k ln(m/k)⌉ "
        "dimensions, z with k = 10 non-zeros uniform in (0, 1). Half of the n training "
        "samples contain latent 0 with nine latents of the first half, the others ten "
        "of all but it; test samples are latent 0 with nine of the second half, which "
        "no training sample is. With noise: the test of the K-SVD paper, 50 atoms in "
        "20 dimensions, 1500 samples of 3 Gaussian codes, signed coder. The "
        "correlation is that of true and found codes of test samples, the mean of its "
        "size over the latents that occur there, after the best one-to-one matching; "
        f"atoms found have a cosine of at least {FOUND} with their partner. Figures "
        "are means over the trials. The "
        "first method is `KSVD` with `OMP(positive=True)` (where there is no noise), "
        "`ParallelKSVDUpdate(max_coherence=0.9)`, and warm-up, exchange and least "
        "number of uses as named in the case; the others take as many iterations. With "
        "a penalty the warm-up is that of `Lasso(penalty, positive=True)`, from ten "
        "times the penalty down to it, and OMP goes on from these atoms."
    )
    grid = (
        planted(100, 5000, 100, 60),
        planted(500, 5000, 300, 180),
        *(noisy(decibels) for decibels in CLASSICAL),
        planted(1000, 50_000, 50, 30),
        planted(1000, 5000, 140, 100, penalty=0.05),
    )
    quick_grid = (
        planted(30, 400, 4, 2, trials=1),
        planted(30, 400, 4, 2, trials=1, penalty=0.1),
        {**noisy(20), "trials": 1},
    )
    methods = (Kernlets, Sweep, Parallel, Signed, TrueAtoms)
    repeats = 1

    def problem(self, case: Case) -> Problem:
        sizes = case["atoms"], case["samples"], case["non-zeros"]
        seeds = range(case["trials"])
        if case["noise"] == "none":
            trials = [unseen_combinations(seed, *sizes) for seed in seeds]
        else:
            decibels = float(case["noise"].removesuffix(" dB"))
            trials = [classical(seed, *sizes, decibels) for seed in seeds]
        return Problem(trials, case)

    def targets(self, case: Case) -> list[Target]:
        if case["noise"] != "none":
            decibels = int(case["noise"].removesuffix(" dB"))
            return [Target("atoms found", ">=", CLASSICAL[decibels])]
        many = case["samples"] == 50_000
        return [Target("correlation", ">=", MANY if many else HIDDEN[case["atoms"]])]


BENCHMARK = Recovery()
