"""From options of the command line to an estimator that is not fitted yet."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from sklearn.base import is_classifier
from sklearn.pipeline import make_pipeline

from ..classifiers import ResidualClassifier
from ..kernels import resolve
from ..maps import UnitNorm
from ..registry import table
from .settings import apply_setting

#: Methods that are a map in front of a learner.
COMBINED = {"lkdl": ("nystroem", "ksvd")}
#: Parameters that this command line sets better than the classes' own defaults do.
PREFERRED = {"kernel": "poly:2", "landmarks": "coreset"}


@dataclass(frozen=True)
class Recipe:
    """What is to be fitted; None leaves a parameter at its default."""

    method: str = "lkdl"
    map: str | None = None
    kernel: str | None = None
    landmarks: str | None = None
    n_landmarks: float | None = None
    n_components: float | None = None
    atoms: int | None = None
    sparsity: int | None = None
    iterations: int | None = None
    normalize: bool = True
    seed: int = 0
    settings: tuple[str, ...] = ()

    def build(self, labelled: bool) -> Any:
        """Rows of unit norm, map, then learner or classifier; as far as asked for."""
        map_class, final_class = self._classes()
        steps: list[Any] = [UnitNorm()] if self.normalize else []
        if map_class is not None:
            steps.append(self._made(map_class, self._map_options()))
        final = self._final(final_class, has_map=map_class is not None)
        steps.append(self._suited(final, labelled))
        model = make_pipeline(*steps) if len(steps) > 1 else steps[0]
        for setting in self.settings:
            apply_setting(model, setting)
        return model

    def _classes(self) -> tuple[Any, Any]:
        """Class of the map, if any, and of the learner or classifier."""
        map_name, method = COMBINED.get(self.method.lower(), (None, self.method))
        map_name = self.map or map_name
        finals = {**table("learners"), **table("classifiers")}
        del finals["residual"]  # what labels make of any learner
        final = _lookup(finals, method, "--method", [*COMBINED, *finals])
        maps = table("maps")
        return map_name and _lookup(maps, map_name, "--map", maps), final

    def _map_options(self) -> dict[str, Any]:
        return {
            "kernel": self.kernel,
            "landmarks": self.landmarks,
            "n_landmarks": self.n_landmarks,
            "n_components": self.n_components,
        }

    def _final(self, cls: Any, has_map: bool) -> Any:
        given = {
            "n_components": self.atoms,
            "n_nonzero_coefs": self.sparsity,
            "max_iter": self.iterations,
        }
        if has_map:
            return self._made(cls, given)
        if self.n_components is not None:
            raise ValueError(_no_map("n_components", self.method))
        return self._made(cls, {**self._map_options(), **given})

    def _made(self, cls: Any, given: dict[str, Any]) -> Any:
        """An object of the class with the parameters that were given."""
        takes = inspect.signature(cls).parameters
        given = {name: value for name, value in given.items() if value is not None}
        for name in given:
            if name not in takes:
                raise ValueError(_no_map(name, self.method))
        params = {name: PREFERRED[name] for name in PREFERRED if name in takes} | given
        if "kernel" in params:
            params["kernel"] = resolve(params["kernel"])
        if "random_state" in takes:
            params["random_state"] = self.seed
        return cls(**params)

    def _suited(self, final: Any, labelled: bool) -> Any:
        """A learner as a classifier where there are labels."""
        if labelled:
            return final if is_classifier(final) else ResidualClassifier(final)
        if is_classifier(final):
            raise ValueError(
                f"--method {self.method} needs labels: name their column with --label"
            )
        return final


def _no_map(name: str, method: str) -> str:
    option = "--" + name.replace("_", "-")
    return (
        f"{option} means nothing to --method {method}: leave it out, or put a map in "
        "front with --map nystroem"
    )


def _lookup(
    entries: dict[str, Any], name: str, option: str, known: Iterable[str]
) -> Any:
    found = entries.get(name, entries.get(name.lower()))
    if found is not None:
        return found
    known = list(known)
    close = get_close_matches(name.lower(), known, n=1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    raise ValueError(f"{option} {name}: {hint}there are {', '.join(known)}")
