"""Estimators with random parameters, from the tables in which they are registered.

A parameter is drawn by its name where that is known here, else from the constraints
that its class declares, so that a new estimator is attacked as soon as it has a name.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.utils._param_validation import Interval, StrOptions

from kernlets import (
    OMP,
    DictionaryOutlierDetector,
    Forgetting,
    Lasso,
    OnlineDictionary,
    Ridge,
    RLSDictionary,
    Schedule,
    StreamOutlierDetector,
    Threshold,
    UnitNorm,
)
from kernlets.classifiers import (
    FisherAtoms,
    GlobalScheme,
    LocalScheme,
    OrthogonalAtoms,
)
from kernlets.registry import table

from .draw import Draw
from .values import Matrix

ROLES = {
    "learner": 10,
    "map": 5,
    "classifier": 10,
    "map and learner": 3,
    "map and classifier": 3,
    "detector": 2,
    "unit norm": 0.3,
}
SAFE = ("n_components", "max_iter", "coder", "landmarks", "batch_size", "budget")
GIVEN = ("random_state", "verbose", "callback", "learner")  # set elsewhere or never
SLOW = {"auto": 0.05}  # estimators that fit many others, with their share
MANY = 10**12
ODD: list[Any] = [
    *[0, -1, 1, MANY, None, True, 0.5, 2.5, -0.0, 1e-300, 1e300],
    *[float("nan"), float("inf"), "x", "", b"x", [], {}, (1, 2)],
    *[np.int64(2), np.float32(0.5), np.array(3), np.zeros((2, 2)), object()],
]


@dataclass(frozen=True)
class Model:
    """An estimator that is not fitted, and what is to be expected of it."""

    estimator: Any
    role: str
    is_odd: bool  # a parameter was replaced by something strange

    @property
    def needs_labels(self) -> bool:
        return "classifier" in self.role


def draw_model(draw: Draw, matrix: Matrix) -> Model:
    """Any estimator; its parameters fit the number of rows more often than not."""
    role = draw.weighted(ROLES)
    maker = Maker(draw, matrix)
    estimator = maker.build(role)
    is_odd = draw.chance(0.05) and _spoil(draw, estimator)
    return Model(estimator, role, is_odd)


def _spoil(draw: Draw, estimator: Any) -> bool:
    """Give some parameter a value that it was not made for."""
    own = [step for _, step in getattr(estimator, "steps", [("", estimator)])]
    part = draw.pick(own)
    names = sorted(set(part.get_params(deep=False)) - {"learner"})
    if not names:
        return False
    name, value = draw.pick(names), draw.pick(ODD)
    if "iter" in name and value is MANY:
        return False  # what is asked for takes for ever
    part.set_params(**{name: value})
    return True


class Maker:
    """Draws estimators for rows like these."""

    def __init__(self, draw: Draw, matrix: Matrix) -> None:
        self.draw, self.matrix = draw, matrix
        self.n, self.p = matrix.values.shape
        self.is_tame = matrix.is_plain

    def build(self, role: str) -> Any:
        if role == "unit norm":
            return UnitNorm()
        if role == "detector":
            if self.draw.chance(0.3):
                return self._following()
            learner = self.draw.maybe(self.made("learners"), 0.7)
            share = 0.1 if self.is_tame else self.draw.power(-3, -0.3)
            return self._seeded(DictionaryOutlierDetector(learner, share))
        parts = [part for part in ("map", "learner", "classifier") if part in role]
        steps = [self.made(f"{part}s") for part in parts]
        if self.draw.chance(0.1):
            steps = [UnitNorm(), *steps]
        return steps[0] if len(steps) == 1 else make_pipeline(*steps)

    def _following(self) -> Any:
        """A detector of outliers in a stream."""
        learner = self.draw.pick([None, RLSDictionary(), OnlineDictionary()])
        window, batch_size = self.draw.pick([8, 20, 100]), self.draw.pick([1, 7, 32])
        alpha = 0.1 if self.is_tame else self.draw.power(-3, -0.3)
        sizes = {"window": window, "batch_size": batch_size}
        return self._seeded(StreamOutlierDetector(learner, alpha, **sizes))

    def made(self, kind: str) -> Any:
        """One of the registered classes of a kind, with some parameters drawn."""
        classes = table(kind)
        cls = classes[self.draw.weighted({n: SLOW.get(n, 1) for n in sorted(classes)})]
        known = inspect.signature(cls).parameters
        wanted = [name for name in known if name not in GIVEN]
        if self.is_tame:
            wanted = [name for name in wanted if name in SAFE]
        taken = self.draw.some(wanted, 0.4)
        given = {name: self._parameter(cls, name) for name in taken}
        given |= self._small(wanted, given)
        if "coder" in given and given["coder"] is not None:
            given.pop("n_nonzero_coefs", None)
        if "learner" in known:
            given["learner"] = self.made("learners")
        return self._seeded(cls(**{k: v for k, v in given.items() if v is not SKIP}))

    def _small(self, wanted: list[str], given: dict[str, Any]) -> dict[str, Any]:
        """What would take long at its default."""
        small = {"max_iter": self._max_iter, "n_random": lambda: self.draw.count(1, 9)}
        if self.draw.chance(0.8):
            small["n_components"] = self._atoms
        missing = [name for name in small if name in wanted and name not in given]
        return {name: small[name]() for name in missing}

    def _seeded(self, estimator: Any) -> Any:
        if "random_state" in estimator.get_params(deep=False):
            estimator.set_params(random_state=self.draw.count(0, 99))
        return estimator

    def _parameter(self, cls: type, name: str) -> Any:
        by_name: dict[str, Callable[[], Any]] = {
            "n_components": self._atoms,
            "n_nonzero_coefs": lambda: self.draw.pick([1, 1, 2]),
            "max_iter": self._max_iter,
            "coder": self._coder,
            "kernel": self._kernel,
            "dictionary": lambda: self._value_object([OrthogonalAtoms, FisherAtoms]),
            "scheme": lambda: self._value_object([LocalScheme, GlobalScheme]),
            "landmarks": lambda: self.draw.pick(sorted(table("landmarks"))),
            "n_landmarks": self._landmarks,
            "anchors": lambda: self.draw.count(1, max(2, self.n)),
            "budget": lambda: self.draw.count(1, 12),
            "batch_size": lambda: self.draw.pick([1, 4, 16, 256]),
            "n_samples": lambda: self.draw.count(5, 60),
            "refine_filters": lambda: self.draw.pick([0, 0, 1]),
        }
        if name == "schedule":
            return self._schedule(cls)
        if name in by_name:
            return by_name[name]()
        return self._by_constraint(cls, name)

    def _value_object(self, classes: list[type]) -> Any:
        """An object of one of these classes, with some parameters drawn."""
        cls = self.draw.pick(classes)
        names = self.draw.some(list(inspect.signature(cls).parameters), 0.5)
        return cls(**{name: self._parameter(cls, name) for name in names})

    def _by_constraint(self, cls: type, name: str) -> Any:
        """A value that the class itself declares to be right."""
        rules = getattr(cls, "_parameter_constraints", {}).get(name, [])
        for rule in rules:
            if isinstance(rule, StrOptions):
                return self.draw.pick(sorted(rule.options))
            if rule == "boolean":
                return self.draw.chance(0.5)
            if isinstance(rule, Interval):
                return self._between(rule)
        return SKIP

    def _between(self, rule: Interval) -> Any:
        low = 0.0 if rule.left is None else float(rule.left)
        high = low + self.draw.power(-3, 1) if rule.right is None else float(rule.right)
        value = low + (high - low) * self.draw.rng.uniform(0.01, 0.99)
        return max(1, round(value)) if rule.type.__name__ == "Integral" else value

    # ------------------------------------------------------ parameters by name

    def _atoms(self) -> int:
        return 2 if self.is_tame else self.draw.count(1, max(3, min(self.n, 8)))

    def _max_iter(self) -> int:
        return self.draw.pick([1, 2, 3])

    def _landmarks(self) -> Any:
        if self.draw.chance(0.2):
            return float(self.draw.rng.uniform(0.05, 1))
        return self.draw.count(1, max(2, self.n))

    def _coder(self) -> Any:
        """A pursuit; the last two are not for every learner."""
        draw = self.draw
        coders = [
            None,
            OMP(1 if self.is_tame else draw.pick([1, 2])),
            OMP(tol=draw.power(-12, 1)),
            Lasso(draw.power(-4, 1), positive=draw.chance(0.3), max_iter=50),
            Ridge(draw.power(-12, 3)),
            Threshold(draw.power(-3, 1), kind=draw.pick(["soft", "hard"])),
        ]
        return draw.pick(coders[:-2] if self.is_tame else coders)

    def _kernel(self) -> Any:
        found = table("kernels").items()
        classes = {name: cls for name, cls in found if cls.takes == "rows"}
        cls = classes[self.draw.pick(sorted(classes))]
        names = self.draw.some(list(inspect.signature(cls).parameters), 0.5)
        kernel = cls(**{name: self._kernel_parameter(name) for name in names})
        if self.draw.chance(0.1) and cls.__name__ != "Precomputed":
            other = table("kernels")[self.draw.pick(["linear", "rbf", "cosine"])]()
            kernel = kernel * other if self.draw.chance(0.5) else kernel + other
        return kernel

    def _kernel_parameter(self, name: str) -> Any:
        if name == "degree":
            return self.draw.pick([1, 2, 3, 6, 9])
        if name == "nu":
            return self.draw.pick([0.5, 1.5, 2.5])
        return self.draw.power(-3, 3)

    def _schedule(self, cls: type) -> Schedule:
        """A schedule that a learner of this class can follow."""
        by_name: dict[str, Callable[[], Any]] = {
            "warm_up": lambda: self.draw.pick([0, 1, 2]),
            "exchange": lambda: self.draw.pick([0, 1]),
            "tol": lambda: self.draw.pick([0.0, 1e-3]),
            "n_init": lambda: self.draw.pick([1, 2, 3]),
            "steady": lambda: self.draw.chance(0.3),
            "batch_size": lambda: self.draw.pick([1, 4, 16, 256]),
            "forgetting": self._forgetting,
        }
        followed = [name for name in cls._follows if name in by_name]
        return Schedule(**{name: by_name[name]() for name in followed})

    def _forgetting(self) -> Any:
        factor = self.draw.pick([1.0, 0.99, 0.9, 0.5, 0.1])
        return factor if self.draw.chance(0.6) else Forgetting(factor)


SKIP = object()  # leave a parameter at its default
