"""Builds the estimator that the options of the command line describe."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from sklearn.base import is_classifier, is_outlier_detector
from sklearn.pipeline import make_pipeline

from ..backend.names import guess
from ..backend.pipelines import steps_of, takes_gaps
from ..classifiers import AutoDictionaryClassifier, ResidualClassifier
from ..datasets import Table
from ..imputers import DictionaryImputer
from ..kernels import resolve
from ..registry import table
from .scaling import KERNELS, STEPS, Choice, Scale, choose_scale
from .settings import apply_setting

#: Methods that are a map in front of a learner.
COMBINED = {"lkdl": ("nystroem", "ksvd")}
#: Defaults of the command line that differ from those of the classes.
PREFERRED = {"landmarks": "coreset"}
#: Maps for certain kernels only, which have one of them by default.
OF_SOME_KERNELS = ("fourier", "fastfood", "hybrid", "sketch")
SEARCH = "auto"  # the method of --search ...
OF_SEARCH = {"method", "seed", "settings", "search"}  # ... and what it uses
#: Options and the parameters that they set, of maps and of methods after them.
OF_MAPS = {
    "--kernel": "kernel",
    "--landmarks": "landmarks",
    "--n-landmarks": "n_landmarks",
    "--n-components": "n_components",
}
OF_METHODS = {
    "--atoms": "n_components",  # or PER_CLASS
    "--sparsity": "n_nonzero_coefs",
    "--iterations": "max_iter",
}
PER_CLASS = "n_atoms_per_class"  # what classifiers with one dictionary call it


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
    scale: Scale = Scale.auto
    seed: int = 0
    settings: tuple[str, ...] = ()
    search: float | None = None  # seconds

    def scaled_for(self, rows: Table) -> tuple[Recipe, Choice]:
        """This recipe with a scaling for such rows, and the reason for it."""
        if self._searches:
            return self, Choice(Scale.auto)
        choice = self._scaling(rows)
        return replace(self, scale=choice.scale), choice

    def _scaling(self, rows: Table) -> Choice:
        if self.scale is not Scale.auto:
            return Choice(self.scale)
        if self._classes()[1] in table("outliers").values():
            return Choice(Scale.none, "the detector has its own")
        kernel = None if self.kernel is None else resolve(self.kernel)
        if getattr(kernel, "non_negative", False):
            return Choice(Scale.unit, "a kernel of histograms")
        return choose_scale(rows)

    def build(self, labelled: bool, gaps: bool = False) -> Any:
        """A pipeline of scaling, map, and learner or classifier, as requested.

        Where rows have gaps that it does not take, they are filled in first.
        """
        model = self._searching(labelled) if self._searches else self._chosen(labelled)
        if not gaps or takes_gaps(model):
            return model
        return make_pipeline(DictionaryImputer(), *steps_of(model))

    def _chosen(self, labelled: bool) -> Any:
        map_class, final_class = self._classes()
        steps: list[Any] = [STEPS[self.scale]()] if self.scale in STEPS else []
        if map_class is not None:
            steps.append(self._made(map_class, OF_MAPS, f"--map {self._map_name()}"))
        final = self._final(final_class, has_map=map_class is not None)
        steps.append(self._suited(final, labelled))
        model = make_pipeline(*steps) if len(steps) > 1 else steps[0]
        for setting in self.settings:
            apply_setting(model, setting)
        return model

    @property
    def _searches(self) -> bool:
        return self.search is not None or self.method.lower() == SEARCH

    def _searching(self, labelled: bool) -> Any:
        """The classifier that chooses everything itself."""
        if not labelled:
            raise ValueError("--search needs labels: name their column with --label")
        if self.method.lower() not in (SEARCH, Recipe.method):
            raise ValueError(f"--method {self.method}: leave it out, or --search")
        default = Recipe()
        for name in vars(self).keys() - OF_SEARCH:
            if getattr(self, name) != getattr(default, name):
                option = f"--{name.replace('_', '-')}"
                raise ValueError(f"{option}: a search chooses that: leave it out")
        model = AutoDictionaryClassifier(random_state=self.seed)
        if self.search is not None:
            model.set_params(seconds=self.search)
        for setting in self.settings:
            apply_setting(model, setting)
        return model

    def _map_name(self) -> str | None:
        return self.map or COMBINED.get(self.method.lower(), (None,))[0]

    def _classes(self) -> tuple[Any, Any]:
        """Class of the map, if any, and of the learner, classifier or detector."""
        _, method = COMBINED.get(self.method.lower(), (None, self.method))
        finals, maps, map_name = methods(), table("maps"), self._map_name()
        final = _lookup(finals, method, "--method", [*COMBINED, *finals])
        return map_name and _lookup(maps, map_name, "--map", maps), final

    def _final(self, cls: Any, has_map: bool) -> Any:
        who = f"--method {self.method}"
        if has_map:
            return self._made(cls, OF_METHODS, who)
        if self.n_components is not None:  # the same parameter as --atoms
            raise ValueError(_refusal("--n-components", who))
        return self._made(cls, {**OF_MAPS, **OF_METHODS}, who)

    def _made(self, cls: Any, options: dict[str, str], who: str) -> Any:
        """An object of the class with the parameters that options were given for."""
        takes = inspect.signature(cls).parameters
        wanted = self._preferred(cls).items()
        params: dict[str, Any] = {name: v for name, v in wanted if name in takes}
        for option, name in options.items():
            if option == "--atoms" and PER_CLASS in takes:
                name = PER_CLASS
            value = getattr(self, option.strip("-").replace("-", "_"))
            if value is not None and name not in takes:
                raise ValueError(_refusal(option, who))
            if value is not None:
                params[name] = value
        if "kernel" in params:
            params["kernel"] = resolve(params["kernel"])
        if "random_state" in takes:
            params["random_state"] = self.seed
        return cls(**params)

    def _preferred(self, cls: Any) -> dict[str, Any]:
        """Defaults of this command line; a class may not have all of them."""
        special = [table("maps")[name] for name in OF_SOME_KERNELS]
        if cls in special or self.scale not in KERNELS:
            return PREFERRED
        return {**PREFERRED, "kernel": KERNELS[self.scale]}

    def _suited(self, final: Any, labelled: bool) -> Any:
        """A learner as a classifier where there are labels, which detectors ignore."""
        if is_outlier_detector(final):
            return final
        if labelled:
            return final if is_classifier(final) else ResidualClassifier(final)
        if is_classifier(final):
            raise ValueError(
                f"--method {self.method} needs labels: name their column with --label"
            )
        return final


def methods() -> dict[str, Any]:
    """What ``--method`` may name, besides what is `COMBINED`."""
    found = {**table("learners"), **table("classifiers"), **table("outliers")}
    del found["residual"]  # labels turn any learner into this
    return found


def _refusal(option: str, who: str) -> str:
    needs_map = option in OF_MAPS and who.startswith("--method")
    advice = ", or put a map in front with --map nystroem" if needs_map else ""
    return f"{option} means nothing to {who}: leave it out{advice}"


def _lookup(
    entries: dict[str, Any], name: str, option: str, known: Iterable[str]
) -> Any:
    found = entries.get(name, entries.get(name.lower()))
    if found is not None:
        return found
    known = list(known)
    hint = guess(name.lower(), known)
    raise ValueError(f"{option} {name}: {hint}there are {', '.join(known)}")
