"""Builds the estimator that the options of the command line describe.

A `Recipe` holds the options. `choose_scale` chooses how rows are scaled, and
`apply_setting` sets any parameter for ``--set NAME=VALUE``. Which kernel goes with
which scaling is measured: docs/accuracy.md, "Defaults".
"""

from __future__ import annotations

import inspect
from ast import literal_eval
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import is_classifier, is_outlier_detector
from sklearn.pipeline import Pipeline, make_pipeline

from ..base.names import guess, similar
from ..base.pipelines import steps_of, takes_missing
from ..classifiers import AutoDictionaryClassifier, ResidualClassifier
from ..classifiers.image import ImageClassifier
from ..coders import resolve_coder
from ..data.check import check_rows
from ..data.rows import evenly_spaced_rows, take_rows
from ..data.stream import first_block
from ..datasets import Table
from ..imputation import DictionaryImputer
from ..io.row_numbers import are_positions
from ..kernels import resolve
from ..maps import Standardize, UnitNorm
from ..numerics.arrays import to_numpy
from ..registry import table
from .options import Scale

#: Methods that are a map in front of a learner.
COMBINED = {"lkdl": ("nystroem", "ksvd")}
LANDMARKS = "coreset"  # the default here, which differs from that of the classes
#: Maps for certain kernels only, which have one of them by default.
MAPS_OF_SOME_KERNELS = ("fourier", "fastfood", "hybrid", "sketch")
METHOD = "lkdl"  # the default of tables, and of rows without labels
IMAGE_METHOD = "image-classifier"  # the default of images with labels
SEARCH = "auto"  # the method of --search
#: Options that have an effect on a search, and on the default method of images.
SEARCH_OPTIONS = {"method", "seed", "settings", "search", "image_shape"}
#: Options and the parameters that they set, of maps and of methods after them.
MAP_OPTIONS = {
    "--kernel": "kernel",
    "--landmarks": "landmarks",
    "--n-landmarks": "n_landmarks",
    "--n-components": "n_components",
}
METHOD_OPTIONS = {
    "--atoms": "n_components",  # or ATOMS_PER_CLASS
    "--sparsity": "n_nonzero_coefs",
    "--iterations": "max_iter",
}
ATOMS_PER_CLASS = "n_atoms_per_class"  # of classifiers with one dictionary


@dataclass(frozen=True)
class Recipe:
    """The options that describe a model; None leaves a parameter at its default."""

    method: str | None = None
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
    image_shape: tuple[int, ...] | None = None  # of rows that are images

    def suited_to(self, rows: Table) -> tuple[Recipe, ScalingChoice]:
        """Return this recipe with method and scaling for such rows, and a reason."""
        if self._is_search:
            return self, ScalingChoice(Scale.auto)
        method = self.method or self._default_method(rows)
        recipe = replace(self, method=method, image_shape=rows.image_shape)
        choice = recipe._choose_scaling(rows)
        return replace(recipe, scale=choice.scale), choice

    def _default_method(self, rows: Table) -> str:
        """Return the method of images with labels, unless options are for another."""
        has_images = rows.image_shape is not None and isinstance(rows.X, np.ndarray)
        has_labels = rows.y is not None
        is_plain = not self._changed_options(SEARCH_OPTIONS)
        return IMAGE_METHOD if has_images and has_labels and is_plain else METHOD

    def _changed_options(self, others: set[str]) -> list[str]:
        """Return the names of options that are not at their default, but for some."""
        default = Recipe()
        return [
            name
            for name in vars(self)
            if name not in others and getattr(self, name) != getattr(default, name)
        ]

    def _choose_scaling(self, rows: Table) -> ScalingChoice:
        if self.scale is not Scale.auto:
            return ScalingChoice(self.scale)
        if self._final_class() in table("outliers").values():
            return ScalingChoice(Scale.none, "the detector has its own")
        if self._final_class() is ImageClassifier:
            return ScalingChoice(Scale.none, "each patch has its own")
        kernel = None if self.kernel is None else resolve(self.kernel)
        if getattr(kernel, "non_negative", False):
            return ScalingChoice(Scale.unit, "a kernel of histograms")
        return choose_scale(rows)

    def build(self, labelled: bool, has_missing: bool = False) -> Any:
        """Build a pipeline of scaling, map, and learner or classifier.

        If rows have missing values that the pipeline does not accept, an imputer is its
        first step.
        """
        build = self._build_search if self._is_search else self._build_pipeline
        model = build(labelled)
        for setting in self.settings:
            apply_setting(model, setting)
        if not has_missing or takes_missing(model):
            return model
        return make_pipeline(DictionaryImputer(), *steps_of(model))

    def _build_pipeline(self, labelled: bool) -> Any:
        final_class, owner = self._final_class(), f"--method {self._method}"
        combined_map, _ = COMBINED.get(self._method.lower(), (None, None))
        map_name, maps = self.map or combined_map, table("maps")
        steps: list[Any] = [STEPS[self.scale]()] if self.scale in STEPS else []
        final_options = METHOD_OPTIONS
        if map_name:
            map_class = _lookup(maps, map_name, "--map", maps)
            steps.append(self._construct(map_class, MAP_OPTIONS, f"--map {map_name}"))
        elif self.n_components is not None:  # the same parameter as --atoms
            raise ValueError(_refusal_text("--n-components", owner))
        else:
            final_options = {**MAP_OPTIONS, **METHOD_OPTIONS}
        final = self._construct(final_class, final_options, owner)
        steps.append(self._for_labels(final, labelled))
        return make_pipeline(*steps) if len(steps) > 1 else steps[0]

    @property
    def _method(self) -> str:
        return self.method or METHOD

    @property
    def _is_search(self) -> bool:
        return self.search is not None or self._method.lower() == SEARCH

    def _build_search(self, labelled: bool) -> Any:
        """Build the classifier that chooses all parameters itself."""
        if not labelled:
            raise ValueError("--search needs labels: name their column with --label")
        if self._method.lower() not in (SEARCH, METHOD):
            raise ValueError(f"--method {self.method}: leave it out, or --search")
        for name in self._changed_options(SEARCH_OPTIONS):
            option = f"--{name.replace('_', '-')}"
            raise ValueError(f"{option}: a search chooses that: leave it out")
        model = AutoDictionaryClassifier(random_state=self.seed)
        if self.search is not None:
            model.set_params(seconds=self.search)
        return model

    def _final_class(self) -> Any:
        """Return the class of the last step."""
        _, method = COMBINED.get(self._method.lower(), (None, self._method))
        finals = methods()
        return _lookup(finals, method, "--method", [*COMBINED, *finals])

    def _construct(self, cls: Any, options: dict[str, str], owner: str) -> Any:
        """Construct an object of a class with the parameters that options set."""
        parameters = inspect.signature(cls).parameters
        params: dict[str, Any] = {}
        if "landmarks" in parameters:
            params["landmarks"] = LANDMARKS
        limited_maps = [table("maps")[name] for name in MAPS_OF_SOME_KERNELS]
        if "kernel" in parameters and cls not in limited_maps and self.scale in KERNELS:
            params["kernel"] = KERNELS[self.scale]
        for option, name in options.items():
            if option == "--atoms" and ATOMS_PER_CLASS in parameters:
                name = ATOMS_PER_CLASS
            value = getattr(self, option.strip("-").replace("-", "_"))
            if value is not None and name not in parameters:
                raise ValueError(_refusal_text(option, owner))
            if value is not None:
                params[name] = value
        if "kernel" in params:
            params["kernel"] = resolve(params["kernel"])
        if "random_state" in parameters:
            params["random_state"] = self.seed
        if "image_shape" in parameters and self.image_shape is not None:
            params["image_shape"] = self.image_shape
        return cls(**params)

    def _for_labels(self, final: Any, labelled: bool) -> Any:
        """Make a learner a classifier if rows have labels, unless it is a detector."""
        if is_outlier_detector(final):
            return final
        if labelled:
            return final if is_classifier(final) else ResidualClassifier(final)
        if is_classifier(final):
            raise ValueError(
                f"--method {self._method} needs labels: name their column with --label"
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


MIN_COLUMNS = 50  # rows with fewer columns belong to a table
#: Columns are of like scale if half of them reach this share of the largest number.
MIN_RATIO = 0.1
#: A column spans the range of all if it comes as near as this share to both ends.
RANGE_MARGIN = 0.1

STEPS: dict[Scale, Any] = {Scale.standard: Standardize, Scale.unit: UnitNorm}
KERNELS = {
    Scale.unit: "poly:2,coef0=1",
    Scale.standard: "laplacian",
    Scale.none: "laplacian",  # its width follows the data, whatever their scale
}
TEXTS = {
    Scale.standard: "each column to mean 0 and variance 1",
    Scale.unit: "each row to unit norm",
    Scale.none: "none",
    Scale.auto: "chosen by the search",
}


class ScalingChoice(NamedTuple):
    """A scaling, and the reason for it; none if the user chose it."""

    scale: Scale
    reason: str = ""

    def __str__(self) -> str:
        because = f" ({self.reason}; --scale changes it)" if self.reason else ""
        return TEXTS[self.scale] + because


def choose_scale(rows: Table) -> ScalingChoice:
    """Standardise columns of tables; scale rows of images and the like to unit norm."""
    if rows.image_shape is not None:
        return ScalingChoice(Scale.unit, "images")
    low, high = _bounds(rows.X)
    if len(low) < MIN_COLUMNS:
        return ScalingChoice(Scale.standard, "a table")
    edge = RANGE_MARGIN * (high.max() - low.min())
    spans_all = (low <= low.min() + edge) & (high >= high.max() - edge)
    if spans_all.mean() >= 0.5:
        return ScalingChoice(
            Scale.unit, "most columns have the same range, as in images"
        )
    if rows.feature_names is not None and not are_positions(rows.feature_names):
        return ScalingChoice(Scale.standard, "columns with names")
    largest = np.maximum(np.abs(low), np.abs(high))[high > low]
    if len(largest) == 0 or np.median(largest) >= MIN_RATIO * largest.max():
        return ScalingChoice(Scale.unit, "columns of like scale")
    return ScalingChoice(Scale.standard, "columns that differ in scale")


def _bounds(X: Any) -> tuple[np.ndarray, np.ndarray]:  # (p,), (p,)
    """Return the smallest and largest entry of each column in a sample of rows."""
    first_rows, _ = first_block(X)
    X = check_rows(
        UnitNorm(), first_rows, reset=True, containers="dask", allow_nan=True
    )
    sample = to_numpy(take_rows(X, evenly_spaced_rows(X.shape[0])))
    is_observed = ~np.isnan(sample)
    sample = sample[:, is_observed.any(axis=0)]
    return np.nanmin(sample, axis=0), np.nanmax(sample, axis=0)


def apply_setting(model: Any, setting: str) -> None:
    """Set one parameter of the model.

    NAME is a name that `set_params` knows, or an end of one that no other parameter
    shares: ``max_iter`` for ``residualclassifier__learner__max_iter``. VALUE is a
    Python literal; anything else is text.
    """
    name, equals, text = setting.partition("=")
    if not equals or not name:
        raise ValueError(f"--set {setting}: write it as NAME=VALUE")
    full = _full_name(model, name.strip())
    model.set_params(**{full: _value(full.rpartition("__")[2], text.strip())})


def _full_name(model: Any, name: str) -> str:
    names = _parameters(model)
    if name in names:
        return name
    ends = [full_name for full_name in names if full_name.endswith(f"__{name}")]
    if len(ends) == 1:
        return ends[0]
    if ends:
        raise ValueError(f"--set {name} is not unique: choose from {', '.join(ends)}")
    raise ValueError(f"--set {name}: no such parameter: {_hint(name, names)}")


def _parameters(model: Any) -> list[str]:
    """Return the names of the parameters of all steps, without those of the pipeline.

    Other options choose its steps, and its ``verbose`` belongs to no step.
    """
    names = list(model.get_params(deep=True))
    return [n for n in names if "__" in n] if isinstance(model, Pipeline) else names


def _hint(name: str, names: list[str]) -> str:
    """Name the parameters whose last component is similar, or all last components."""
    last_components = sorted({full_name.rpartition("__")[2] for full_name in names})
    similar_components = similar(name.rpartition("__")[2], last_components, n=3)
    candidates = [
        full_name
        for full_name in names
        if full_name.rpartition("__")[2] in similar_components
    ]
    if candidates:
        return f"did you mean {' or '.join(candidates)}?"
    return f"there are {', '.join(last_components)}"


def _value(parameter: str, text: str) -> Any:
    """Return the value of a text; names of kernels and coders become objects."""
    if parameter == "kernel":
        return resolve(text)
    if parameter == "coder":
        return resolve_coder(text)
    try:
        return literal_eval(text)
    except (ValueError, SyntaxError):
        return text
