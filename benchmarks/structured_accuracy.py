"""Accuracy of dictionaries of series, graphs and strings that packages ship."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from .harness.skip import Skip, require
from .peers.spec import SEED, Benchmark, Case, Figures, Method, Target

WIDTHS = (0.1, 0.2, 0.5, 1.0, 2.0)  # multiples of Cuturi's σ
RIDGES = (0.001, 0.01, 0.03, 0.1, 0.3, 1.0)  # squared norms of an atom
FOLDS = 5  # in which settings are chosen
ROUNDS = 10  # splits of data without a test part
N_WAVES = 2000
SERIES = (
    *("GunPoint", "ItalyPowerDemand", "ArrowHead"),
    *("BasicMotions", "JapaneseVowels", "OSULeaf"),
)
# with 10 000 kernels, means of ten runs on the same parts (Dempster et al., 2020)
ROCKET = {
    **{"GunPoint": 1.0, "ItalyPowerDemand": 0.9696},
    **{"ArrowHead": 0.8143, "OSULeaf": 0.9409},
}
REGIONS = ("Africa", "America", "Asia", "Europe")

Split = tuple[np.ndarray, np.ndarray]  # numbers of training and of test samples
Grid = dict[str, list[Any]] | list[dict[str, list[Any]]]
Choice = tuple[float, np.ndarray, Any]  # cross-validated accuracy, matrix, model


@dataclass(frozen=True)
class Problem:
    """Samples, with kernel matrices and chosen settings, which methods share."""

    kind: str
    samples: list[Any]
    labels: np.ndarray
    splits: list[Split]
    name: str = ""
    matrices: dict[str, np.ndarray] = field(default_factory=dict)
    choices: dict[tuple[str, bytes], Choice] = field(default_factory=dict)

    def kernels(self) -> list[Any]:
        """The kernels among which each method chooses; no test sample is seen."""
        from kernlets import GAK, Gappy, Normalized, Spectrum, WeisfeilerLehman

        if self.kind == "graphs":
            return [Normalized(WeisfeilerLehman(rounds)) for rounds in range(1, 6)]
        if self.kind == "strings":
            several = *(Spectrum(k) for k in (1, 2, 3)), Gappy(2, 3), Gappy(3, 4)
            return [Normalized(kernel) for kernel in several]
        train = self.splits[0][0]
        sigma = GAK().bound([self.samples[i] for i in train]).sigma
        return [GAK(factor * sigma) for factor in WIDTHS]

    def matrix(self, kernel: Any) -> np.ndarray:  # (n, n), columns of training samples
        """κ of all samples with those that are trained on in some split."""
        if repr(kernel) not in self.matrices:
            used = np.unique(np.concatenate([train for train, _ in self.splits]))
            K = np.full((len(self.samples), len(self.samples)), np.nan)
            K[:, used] = kernel(self.samples, [self.samples[i] for i in used])
            self.matrices[repr(kernel)] = K
        return self.matrices[repr(kernel)]


class Tried(Method):
    """A way to classify; accuracies are means over the splits."""

    memory = False
    repeats = 1

    def __init__(self, problem: Problem) -> None:
        self.problem = problem

    def run(self) -> float:
        found = [self.accuracy(*split) for split in self.problem.splits]
        return float(np.mean(found))

    @abstractmethod
    def accuracy(self, train: np.ndarray, test: np.ndarray) -> float:
        """The share of test samples whose class is found."""

    def figures(self, result: float) -> Figures:
        return {"accuracy": result}


class Searched(Tried):
    """A classifier of precomputed kernels, its settings chosen on training samples."""

    @abstractmethod
    def classifier(self, y: np.ndarray) -> tuple[Any, Grid]:
        """An estimator of precomputed matrices, and the grid of its settings."""

    def accuracy(self, train: np.ndarray, test: np.ndarray) -> float:
        _, K, model = self.chosen(train)
        found = model.predict(K[np.ix_(test, train)])
        return float((found == self.problem.labels[test]).mean())

    def chosen(self, train: np.ndarray) -> Choice:
        """The best settings; 'kernlets, chosen' asks for them, too."""
        key = self.name, train.tobytes()
        if key not in self.problem.choices:
            self.problem.choices[key] = self._choose(train)
        return self.problem.choices[key]

    def _choose(self, train: np.ndarray) -> Choice:
        y, best = self.problem.labels[train], None
        for kernel in self.problem.kernels():
            K = self.problem.matrix(kernel)
            search = self._search(y).fit(K[np.ix_(train, train)], y)
            if best is None or search.best_score_ > best[0]:
                best = float(search.best_score_), K, search.best_estimator_
        assert best is not None  # there are kernels
        return best

    def _search(self, y: np.ndarray) -> Any:
        from sklearn.model_selection import GridSearchCV, StratifiedKFold

        folds = min(FOLDS, int(np.unique(y, return_counts=True)[1].min()))
        split = StratifiedKFold(folds, shuffle=True, random_state=SEED)
        return GridSearchCV(*self.classifier(y), cv=split)


class Dictionaries(Searched):
    name = "kernlets, kernel K-SVD"

    def classifier(self, y: np.ndarray) -> tuple[Any, Grid]:
        from kernlets import KernelKSVD, ResidualClassifier

        least = int(np.unique(y, return_counts=True)[1].min())
        atoms = max(2, least // 2)
        learner = KernelKSVD("precomputed", atoms, max_iter=5, random_state=SEED)
        grid = {"learner__n_nonzero_coefs": [1, min(3, atoms)]}
        return ResidualClassifier(learner), grid


class Samples(Searched):
    name = "kernlets, SRC"

    def classifier(self, y: np.ndarray) -> tuple[Any, Grid]:
        from kernlets import Lasso, SRCClassifier

        few = {"n_nonzero_coefs": [1, 3, 10]}
        short = {"coder": [Lasso(0.01), Lasso(0.001)]}
        return SRCClassifier("precomputed"), [few, short]


class Collaboration(Searched):
    name = "kernlets, SRC, ridge"

    def classifier(self, y: np.ndarray) -> tuple[Any, Grid]:
        from kernlets import Ridge, SRCClassifier

        grid = {"coder": [Ridge(alpha) for alpha in RIDGES]}
        return SRCClassifier("precomputed"), grid


class FisherAtoms(Searched):
    name = "kernlets, K-SAD, Fisher atoms"

    def classifier(self, y: np.ndarray) -> tuple[Any, Grid]:
        from kernlets import KSADClassifier

        how = {"landmarks": "uniform", "n_landmarks": 1.0, "random_state": SEED}
        grid = {"shrinkage": [0.01, 0.1, 1.0], "n_neighbors": [1, 3]}
        return KSADClassifier("precomputed", "fisher", **how), grid


class BestDictionary(Tried):
    """Ours: the one that did best on training samples."""

    name = "kernlets, chosen"

    def accuracy(self, train: np.ndarray, test: np.ndarray) -> float:
        kinds = (Collaboration, Samples, Dictionaries, FisherAtoms)
        ways = [kind(self.problem) for kind in kinds]
        expected = [way.chosen(train)[0] for way in ways]
        return ways[int(np.argmax(expected))].accuracy(train, test)


class SupportVectors(Searched):
    name = "SVC, same kernel"

    def classifier(self, y: np.ndarray) -> tuple[Any, Grid]:
        from sklearn.svm import SVC

        return SVC(kernel="precomputed"), {"C": [1, 10, 100, 1000]}


class Convolutions(Tried):
    """Random convolutional features and a ridge classifier, as ROCKET has it."""

    name = "ConvolutionMap, ridge"

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        if problem.kind != "series":
            raise Skip("features of series only")

    def figures(self, result: float) -> Figures:
        known = ROCKET.get(self.problem.name)
        found = super().figures(result)
        return found if known is None else {**found, "published": known}

    def accuracy(self, train: np.ndarray, test: np.ndarray) -> float:
        from sklearn.linear_model import RidgeClassifierCV
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        from kernlets.datasets import z_normalize
        from kernlets.maps import ConvolutionMap

        series, y = z_normalize(self.problem.samples), self.problem.labels
        features = ConvolutionMap(N_WAVES, random_state=SEED)
        ridge = RidgeClassifierCV(alphas=np.logspace(-3, 3, 10))
        model = make_pipeline(features, StandardScaler(), ridge)
        model.fit([series[i] for i in train], y[train])
        return float(model.score([series[i] for i in test], y[test]))


class Nearest(Tried):
    """The usual yardstick of series: no parameter."""

    name = "1-NN, DTW"

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        if problem.kind != "series":
            raise Skip("a distance of series only")

    def accuracy(self, train: np.ndarray, test: np.ndarray) -> float:
        from kernlets import DTW

        X = [self.problem.samples[i] for i in train]
        new = [self.problem.samples[i] for i in test]
        y = self.problem.labels
        nearest = DTW().bound(X)(new, X).argmax(axis=1)
        return float((y[train][nearest] == y[test]).mean())


class StructuredAccuracy(Benchmark):
    name = "structured-accuracy"
    title = "Dictionaries of series, graphs and strings"
    about = (
        "Series: the train and test parts of data sets that aeon ships, with global "
        "alignment kernels, 0.1 to 2 times as wide as Cuturi's rule says. MUTAG, which "
        "GraKeL ships: Weisfeiler-Lehman kernels of 1 to 5 rounds. Places: which of "
        "four continents the name of a place belongs to, from the list of time zones "
        "(tzdata); spectrum kernels of 1 to 3 characters and gappy kernels. These two "
        f"have no test part: means over {ROUNDS} folds. Kernel and one setting of each "
        "classifier are chosen by cross-validation on the training part; 'chosen' is "
        "the one of SRC with two kinds of codes, kernel K-SVD and K-SAD that did best "
        f"there. ConvolutionMap is {N_WAVES} random convolutions of standardised "
        "series, in the manner of ROCKET, whose published accuracy is beside. Kernel "
        "matrices and choices are made by the first method that needs them, so that "
        "seconds do not compare."
    )
    grid = tuple({"data": name} for name in (*SERIES, "MUTAG", "places"))
    quick_grid = ({"data": "synthetic"},)
    methods = (
        *(BestDictionary, Collaboration, Samples, Dictionaries, FisherAtoms),
        *(SupportVectors, Nearest, Convolutions),
    )
    repeats = 1

    def problem(self, case: Case) -> Problem:
        name = case["data"]
        if name in READERS:
            return READERS[name]()
        return _of_aeon(name)

    def targets(self, case: Case) -> list[Target]:
        if case["data"] == "synthetic":
            return []
        return [Target("accuracy: SVC, same kernel", ">=", 1)]


def _of_aeon(name: str) -> Problem:
    """The data set in its package, and nothing from elsewhere."""
    aeon = require("aeon.datasets", "pip install aeon")
    if not (Path(aeon.__file__).parent / "data" / name).is_dir():
        raise Skip(f"this version of aeon does not ship {name}")
    parts = [aeon.load_classification(name, split=part) for part in ("train", "test")]
    series = [np.asarray(x).T for X, _ in parts for x in X]
    labels = np.concatenate([y for _, y in parts])
    everyone, n = np.arange(len(labels)), len(parts[0][1])
    return Problem("series", series, labels, [(everyone[:n], everyone[n:])], name)


def _mutag() -> Problem:
    """Nitro compounds that are mutagenic or not: atoms and bonds."""
    folder = Path(require("grakel", "pip install grakel").__file__).parent
    files = folder / "tests" / "data" / "MUTAG"
    if not files.is_dir():
        raise Skip("this version of GraKeL does not ship MUTAG")

    def numbers(what: str) -> np.ndarray:
        return np.loadtxt(files / f"MUTAG_{what}.txt", delimiter=",", dtype=np.int64)

    bonds, atoms = numbers("A") - 1, numbers("node_labels")
    owner = numbers("graph_indicator") - 1
    graphs = []
    for i in range(owner.max() + 1):
        mine = np.flatnonzero(owner == i)
        adjacency = np.zeros((len(mine), len(mine)))
        ends = bonds[owner[bonds[:, 0]] == i] - mine[0]
        adjacency[ends[:, 0], ends[:, 1]] = 1
        graphs.append((adjacency, atoms[mine].tolist()))
    labels = numbers("graph_labels")
    return Problem("graphs", graphs, labels, _folds(labels))


def _places() -> Problem:
    from zoneinfo import available_timezones

    names = sorted(zone.split("/") for zone in available_timezones())
    known = [(parts[0], parts[-1]) for parts in names if parts[0] in REGIONS]
    labels = np.array([region for region, _ in known])
    places = [f"^{place.lower()}$" for _, place in known]
    return Problem("strings", places, labels, _folds(labels))


def _folds(labels: np.ndarray) -> list[Split]:
    from sklearn.model_selection import StratifiedKFold

    split = StratifiedKFold(ROUNDS, shuffle=True, random_state=SEED)
    return list(split.split(labels, labels))


def _synthetic() -> Problem:
    rng = np.random.default_rng(SEED)
    labels = np.arange(24) % 2
    lengths = 12 + np.arange(24) % 3
    pairs = zip(labels, lengths, strict=True)
    shapes = [np.sin(np.linspace(0, 5 + 4 * y, n))[:, None] for y, n in pairs]
    series = [x + 0.2 * rng.standard_normal(x.shape) for x in shapes]
    return Problem("series", series, labels, [(np.arange(16), np.arange(16, 24))])


READERS = {"MUTAG": _mutag, "places": _places, "synthetic": _synthetic}

BENCHMARK = StructuredAccuracy()
