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
from .scaling import KERNELS, STEPS, Scale, ScalingChoice, choose_scale
from .settings import apply_setting

#: Methods that are a map in front of a learner.
COMBINED = {"lkdl": ("nystroem", "ksvd")}
#: Defaults of the command line that differ from those of the classes.
DEFAULTS = {"landmarks": "coreset"}
#: Maps for certain kernels only, which have one of them by default.
MAPS_OF_SOME_KERNELS = ("fourier", "fastfood", "hybrid", "sketch")
SEARCH = "auto"  # the method of --search ...
SEARCH_OPTIONS = {"method", "seed", "settings", "search"}  # ... and what it uses
#: Options and the parameters that they set, of maps and of methods after them.
MAP_OPTIONS = {
    "--kernel": "kernel",
    "--landmarks": "landmarks",
    "--n-landmarks": "n_landmarks",
    "--n-components": "n_components",
}
METHOD_OPTIONS = {
    "--atoms": "n_components",  # or PER_CLASS
    "--sparsity": "n_nonzero_coefs",
    "--iterations": "max_iter",
}
PER_CLASS = "n_atoms_per_class"  # what classifiers with one dictionary call it


@dataclass(frozen=True)
class Recipe:
    """The options that describe a model; None leaves a parameter at its default."""

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

    def scaled_for(self, rows: Table) -> tuple[Recipe, ScalingChoice]:
        """Return this recipe with a scaling for such rows, and the reason for it."""
        if self._is_search:
            return self, ScalingChoice(Scale.auto)
        choice = self._choose_scaling(rows)
        return replace(self, scale=choice.scale), choice

    def _choose_scaling(self, rows: Table) -> ScalingChoice:
        if self.scale is not Scale.auto:
            return ScalingChoice(self.scale)
        if self._map_and_final_class()[1] in table("outliers").values():
            return ScalingChoice(Scale.none, "the detector has its own")
        kernel = None if self.kernel is None else resolve(self.kernel)
        if getattr(kernel, "non_negative", False):
            return ScalingChoice(Scale.unit, "a kernel of histograms")
        return choose_scale(rows)

    def build(self, labelled: bool, has_missing: bool = False) -> Any:
        """Build a pipeline of scaling, map, and learner or classifier.

        If rows have missing values that the pipeline does not accept, an imputer is its
        first step.
        """
        model = (
            self._build_search(labelled)
            if self._is_search
            else self._build_pipeline(labelled)
        )
        if not has_missing or takes_gaps(model):
            return model
        return make_pipeline(DictionaryImputer(), *steps_of(model))

    def _build_pipeline(self, labelled: bool) -> Any:
        map_class, final_class = self._map_and_final_class()
        steps: list[Any] = [STEPS[self.scale]()] if self.scale in STEPS else []
        if map_class is not None:
            steps.append(
                self._construct(map_class, MAP_OPTIONS, f"--map {self._map_name()}")
            )
        final = self._build_final(final_class, has_map=map_class is not None)
        steps.append(self._fit_for_labels(final, labelled))
        model = make_pipeline(*steps) if len(steps) > 1 else steps[0]
        for setting in self.settings:
            apply_setting(model, setting)
        return model

    @property
    def _is_search(self) -> bool:
        return self.search is not None or self.method.lower() == SEARCH

    def _build_search(self, labelled: bool) -> Any:
        """Build the classifier that chooses all parameters itself."""
        if not labelled:
            raise ValueError("--search needs labels: name their column with --label")
        if self.method.lower() not in (SEARCH, Recipe.method):
            raise ValueError(f"--method {self.method}: leave it out, or --search")
        default = Recipe()
        for name in vars(self).keys() - SEARCH_OPTIONS:
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

    def _map_and_final_class(self) -> tuple[Any, Any]:
        """Return the class of the map, if any, and of the last step."""
        _, method = COMBINED.get(self.method.lower(), (None, self.method))
        finals, maps, map_name = methods(), table("maps"), self._map_name()
        final = _lookup(finals, method, "--method", [*COMBINED, *finals])
        return map_name and _lookup(maps, map_name, "--map", maps), final

    def _build_final(self, cls: Any, has_map: bool) -> Any:
        owner = f"--method {self.method}"
        if has_map:
            return self._construct(cls, METHOD_OPTIONS, owner)
        if self.n_components is not None:  # the same parameter as --atoms
            raise ValueError(_refusal_text("--n-components", owner))
        return self._construct(cls, {**MAP_OPTIONS, **METHOD_OPTIONS}, owner)

    def _construct(self, cls: Any, options: dict[str, str], owner: str) -> Any:
        """Construct an object of a class with the parameters that options set."""
        parameters = inspect.signature(cls).parameters
        defaults = self._default_params(cls).items()
        params: dict[str, Any] = {name: v for name, v in defaults if name in parameters}
        for option, name in options.items():
            if option == "--atoms" and PER_CLASS in parameters:
                name = PER_CLASS
            value = getattr(self, option.strip("-").replace("-", "_"))
            if value is not None and name not in parameters:
                raise ValueError(_refusal_text(option, owner))
            if value is not None:
                params[name] = value
        if "kernel" in params:
            params["kernel"] = resolve(params["kernel"])
        if "random_state" in parameters:
            params["random_state"] = self.seed
        return cls(**params)

    def _default_params(self, cls: Any) -> dict[str, Any]:
        """Return the defaults of this command line, of which a class may lack some."""
        limited_maps = [table("maps")[name] for name in MAPS_OF_SOME_KERNELS]
        if cls in limited_maps or self.scale not in KERNELS:
            return DEFAULTS
        return {**DEFAULTS, "kernel": KERNELS[self.scale]}

    def _fit_for_labels(self, final: Any, labelled: bool) -> Any:
        """Make a learner a classifier if rows have labels, unless it is a detector."""
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
    """Return the classes that ``--method`` may name, besides `COMBINED`."""
    classes = {**table("learners"), **table("classifiers"), **table("outliers")}
    del classes["residual"]  # labels turn any learner into this
    return classes


def _refusal_text(option: str, owner: str) -> str:
    needs_map = option in MAP_OPTIONS and owner.startswith("--method")
    advice = ", or put a map in front with --map nystroem" if needs_map else ""
    return f"{option} means nothing to {owner}: leave it out{advice}"


def _lookup(
    entries: dict[str, Any], name: str, option: str, names: Iterable[str]
) -> Any:
    entry = entries.get(name, entries.get(name.lower()))
    if entry is not None:
        return entry
    names = list(names)
    hint = guess(name.lower(), names)
    raise ValueError(f"{option} {name}: {hint}there are {', '.join(names)}")
