"""Declarations of fitted attributes: kinds of values, shapes, sizes that agree.

A class that a model file may hold declares its parts in `_declared`: an estimator
its fitted attributes, a record its fields::

    _declared = {
        "n_features_in_": Size("p"),
        "frequencies_": Floats("h", "p"),
        "phase_": Number(),
    }

Letters are sizes. A letter stands for the same size everywhere in one object, and
`Part` says which sizes an object shares with another one inside it. What kinds and
shapes cannot say stands in `_conditions`: a sentence, and a function that tells whether
it is true of an object. Both tables are inherited. An object has all that is declared,
or none of it before a fit, except what `_early` names. `check` refuses any other
object: compiled loops read and write without checking bounds, so that shapes and
indices from a file must be right before.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from itertools import pairwise
from numbers import Integral, Real
from operator import attrgetter
from typing import Any

import numpy as np
from scipy import sparse

LARGEST = 2**53  # largest whole number; beyond it floats and sums are inexact
#: "m" from 1 on, "m>=0", a number, ".name" for an attribute, or None for any size.
Dimension = str | int | None
Declared = dict[str, "Field"]
Conditions = dict[str, Callable[[Any], bool]]

PARAMS = "_params_of_fit"
"""The attribute in which an estimator keeps the parameters of its fit."""
CALLBACKS = "_skl_callbacks"
"""The attribute in which scikit-learn keeps callbacks, which are not stored."""


class Misfit(ValueError):
    """The error for a value that does not meet its declaration."""


class Sizes(dict[str, int]):
    """The sizes of one object by letter, and whether it is fitted."""

    def __init__(self, owner: Any, checked_sizes: dict[int, Sizes]) -> None:
        super().__init__()
        self.owner, self.checked_sizes, self.fitted = owner, checked_sizes, False

    def agree(self, dimension: Dimension, size: int) -> bool:
        """Return whether a dimension can have this size; if so, record it."""
        if isinstance(dimension, str) and not dimension.startswith("."):
            letter, _, least = dimension.partition(">=")
            return size >= int(least or 1) and self.setdefault(letter, size) == size
        return dimension is None or self.value(dimension) == size

    def value(self, dimension: str | int) -> int:
        """Return the size of a dimension."""
        if isinstance(dimension, int):
            return dimension
        if dimension.startswith("."):
            return attrgetter(dimension[1:])(self.owner)
        return self[dimension]

    def text(self, dimension: Dimension) -> str:
        """Describe a dimension for errors: its letter, and its size if recorded."""
        if isinstance(dimension, str) and not dimension.startswith("."):
            letter = dimension.partition(">=")[0]
            return f"{letter}={self[letter]}" if letter in self else dimension
        return "any" if dimension is None else str(self.value(dimension))


class Field(ABC):
    """One kind of values."""

    optional = False  # whether a fitted object may be without it
    checked_last = False  # because it needs sizes that other attributes have

    @abstractmethod
    def check(self, value: Any, sizes: Sizes) -> None:
        """Raise a `Misfit` unless the value is of this kind; record its sizes."""


def check(value: Any, checked_sizes: dict[int, Sizes] | None = None) -> Sizes:
    """Return the sizes of an object, or raise a `Misfit` if its declaration is not met.

    `checked_sizes` holds the sizes of objects that were checked before, by their ids,
    so that every object is checked once; they keep the objects alive.
    """
    checked_sizes = {} if checked_sizes is None else checked_sizes
    if id(value) in checked_sizes:
        return checked_sizes[id(value)]
    sizes = Sizes(value, checked_sizes)
    class_name, declared = type(value).__name__, declared_of(type(value))
    values = attributes(value)
    for name in values:
        if name not in declared:
            raise Misfit(f"{class_name} has no attribute {name!r}")
    required = {name for name, field in declared.items() if not field.optional}
    set_by_fit = required - {*getattr(value, "_early", ())}
    sizes.fitted = not required or bool(set_by_fit & values.keys())
    for name in sorted(required - values.keys()) if sizes.fitted else ():
        raise Misfit(f"{class_name} lacks {name!r}")
    present = [name for name in declared if name in values]
    for name in sorted(present, key=lambda name: declared[name].checked_last):
        try:
            declared[name].check(values[name], sizes)
        except Misfit as error:
            raise Misfit(f"{class_name}.{name} {error}") from None
    for rule, holds in _collect_from_bases(type(value), "_conditions").items():
        if sizes.fitted and not holds(value):
            raise Misfit(f"{class_name}: {rule}")
    checked_sizes[id(value)] = sizes
    return sizes


def attributes(value: Any) -> dict[str, Any]:
    """The parts of an object that its class has to declare."""
    if is_record(value):
        return {name: getattr(value, name) for name in record_fields(type(value))}
    undeclared = {*value.get_params(deep=False), CALLBACKS, PARAMS}
    undeclared |= getattr(value, "_recomputed", frozenset())
    return {name: v for name, v in vars(value).items() if name not in undeclared}


def is_record(value: Any) -> bool:
    """Whether an object, or a class, is a data class or a named tuple."""
    return is_dataclass(value) or hasattr(value, "_fields")


def record_fields(cls: Any) -> list[str]:
    """The names of the fields of a record."""
    return list(getattr(cls, "_fields", None) or [f.name for f in fields(cls)])


def declared_of(cls: type) -> Declared:
    """The declarations of a class and its base classes."""
    return _collect_from_bases(cls, "_declared")


def _collect_from_bases(cls: type, table: str) -> dict[str, Any]:
    entries: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        library, _, module = base.__module__.partition(".")
        if library == "sklearn":
            name = f"{module.partition('.')[0]}.{base.__name__}"
            declared, conditions = SKLEARN.get(name, ({}, {}))
            entries.update(declared if table == "_declared" else conditions)
        else:
            entries.update(vars(base).get(table, {}))
    return entries


# ------------------------------------------------------------------- single values


def type_text(value: Any) -> str:
    """Describe the type of a value in an error message."""
    if value is None:
        return "None"
    kind, dtype = f"a {type(value).__name__}", _dtype_of(value)
    return kind if dtype is None else f"{kind} of {dtype}"


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


@dataclass
class Number(Field):
    """A number from `least` on, finite unless stated otherwise."""

    least: float = -math.inf
    finite: bool = True

    def check(self, value: Any, sizes: Sizes) -> None:
        if not _is_number(value):
            raise Misfit(f"is {type_text(value)}, it must be a number")
        if value < self.least or (self.finite and not math.isfinite(value)):
            raise Misfit(f"is {value}, it must be finite and at least {self.least}")


@dataclass
class Whole(Field):
    """A whole number from `least` on."""

    least: int = 0

    def check(self, value: Any, sizes: Sizes) -> None:
        if not isinstance(value, Integral) or isinstance(value, bool):
            raise Misfit(f"is {type_text(value)}, it must be a whole number")
        if not self.least <= int(value) <= LARGEST:
            raise Misfit(f"is {value}, it must be from {self.least} to {LARGEST}")


@dataclass
class Size(Field):
    """A whole number that is a size of arrays."""

    dimension: Dimension

    def check(self, value: Any, sizes: Sizes) -> None:
        Whole(1).check(value, sizes)
        if not sizes.agree(self.dimension, int(value)):
            raise Misfit(f"is {value}, but there is {sizes.text(self.dimension)}")


class Text(Field):
    """Text without characters that control a terminal, or one of given words."""

    def __init__(self, *words: str) -> None:
        self.words = words

    def check(self, value: Any, sizes: Sizes) -> None:
        if not isinstance(value, str):
            raise Misfit(f"is {type_text(value)}, it must be text")
        if self.words and value not in self.words:
            raise Misfit(f"is {value!r}, it must be one of {', '.join(self.words)}")
        if not "".join(value.split()).isprintable():
            raise Misfit(f"is {value!r}, which has characters that cannot be shown")


class Flag(Field):
    """True or False."""

    def check(self, value: Any, sizes: Sizes) -> None:
        if not isinstance(value, (bool, np.bool_)):
            raise Misfit(f"is {type_text(value)}, it must be True or False")


class Nothing(Field):
    """None."""

    def check(self, value: Any, sizes: Sizes) -> None:
        if value is not None:
            raise Misfit(f"is {type_text(value)}, it must be None")


# -------------------------------------------------------------------------- arrays


def _dtype_of(array: Any) -> np.dtype | None:
    """The type of the entries of a NumPy array, a sparse matrix or a torch tensor."""
    name = str(getattr(array, "dtype", None)).removeprefix("torch.")
    try:
        return None if name == "None" else np.dtype(name)
    except TypeError:
        return None


class _Array(Field):
    """An array; a subclass says which entries it may have."""

    kinds: str  # letters of NumPy's kinds of types
    entries_text: str
    csr = False  # whether it may be sparse

    def __init__(self, *dimensions: Dimension) -> None:
        self.dimensions = dimensions

    def check(self, value: Any, sizes: Sizes) -> None:
        is_sparse = sparse.issparse(value)
        if is_sparse and not self.csr:
            raise Misfit("is a sparse matrix, it must be a dense array")
        is_array = isinstance(value, np.ndarray) or hasattr(value, "detach")
        dtype = _dtype_of(value) if is_array or is_sparse else None
        if dtype is None or dtype.kind not in self.kinds:
            problem = f"is {type_text(value)}, it must be an array of "
            raise Misfit(problem + self.entries_text)
        pairs = zip(self.dimensions, value.shape, strict=False)
        same_length = len(value.shape) == len(self.dimensions)
        if not (same_length and all(sizes.agree(*pair) for pair in pairs)):
            expected = ", ".join(map(sizes.text, self.dimensions))
            raise Misfit(f"has the shape {tuple(value.shape)}, it must be ({expected})")
        entries = value.data if is_sparse else value
        if not isinstance(entries, np.ndarray):
            entries = entries.detach().cpu().numpy()
        self._check_entries(entries, sizes)

    @abstractmethod
    def _check_entries(self, entries: np.ndarray, sizes: Sizes) -> None:
        """Raise a `Misfit` unless these entries may be there."""


class Floats(_Array):
    """An array of float32 or float64, finite unless stated otherwise.

    `like` is the type of numbers, or the name of an attribute that has it; with `csr`
    the array may be sparse.
    """

    kinds, entries_text = "f", "floating-point numbers"

    def __init__(
        self,
        *dimensions: Dimension,
        like: str | None = None,
        finite: bool = True,
        csr: bool = False,
    ) -> None:
        super().__init__(*dimensions)
        self.like, self.finite, self.csr = like, finite, csr

    def _check_entries(self, entries: np.ndarray, sizes: Sizes) -> None:
        expected = ["float32", "float64"]
        if self.like is not None:
            other = _dtype_of(getattr(sizes.owner, self.like, None))
            expected = [self.like if other is None else other.name]
        if entries.dtype.name not in expected:
            raise Misfit(f"has the type {entries.dtype}, not {' or '.join(expected)}")
        if self.finite and not np.isfinite(entries).all():
            raise Misfit("has entries that are not finite")


class Indices(_Array):
    """An array of whole numbers from `least` on, and `below` a size if one is given.

    Compiled loops exist for one type, `like`; others would be compiled for seconds.
    """

    kinds, entries_text = "i", "whole numbers"

    def __init__(
        self,
        *dimensions: Dimension,
        below: str | int = LARGEST,
        least: int = 0,
        like: str | None = None,
    ) -> None:
        super().__init__(*dimensions)
        self.below, self.least, self.like = below, least, like
        self.checked_last = isinstance(below, str)

    def _check_entries(self, entries: np.ndarray, sizes: Sizes) -> None:
        if self.like not in (None, entries.dtype.name):
            raise Misfit(f"has the type {entries.dtype}, not {self.like}")
        end = sizes.value(self.below)
        if entries.size and not self.least <= entries.min() <= entries.max() < end:
            raise Misfit(
                f"has numbers from {entries.min()} to {entries.max()}, they must be "
                f"from {self.least} to {end - 1}"
            )


class Digests(_Array):
    """An array of unsigned whole numbers of 64 bits that rise."""

    kinds, entries_text = "u", "digests"

    def _check_entries(self, entries: np.ndarray, sizes: Sizes) -> None:
        if entries.dtype != np.uint64 or (entries[1:] <= entries[:-1]).any():
            raise Misfit("has digests of another type, twice or out of order")


class Labels(_Array):
    """Distinct labels, all numbers or all text, in the order of `numpy.unique`.

    With `gaps`, a missing label (None or NaN) may follow them.
    """

    kinds, entries_text = "biufUO", "labels"

    def __init__(self, *dimensions: Dimension, gaps: bool = False) -> None:
        super().__init__(*dimensions)
        self.gaps = gaps

    def _check_entries(self, entries: np.ndarray, sizes: Sizes) -> None:
        labels = entries.tolist()
        if self.gaps:
            labels = [x for x in labels if x is not None and x == x]
        are_texts = all(isinstance(x, str) for x in labels)
        are_numbers = all(isinstance(x, Real) and x == x for x in labels)
        rise = (are_texts or are_numbers) and all(a < b for a, b in pairwise(labels))
        if not rise:
            raise Misfit("has labels of several kinds, twice or out of order")


class Names(_Array):
    """Text that may be shown as it is, such as the names of columns."""

    kinds, entries_text = "UO", "text"

    def _check_entries(self, entries: np.ndarray, sizes: Sizes) -> None:
        for name in entries.ravel():
            Text().check(name, sizes)


@dataclass
class Samples(Field):
    """Samples that are not rows: an array of text, of matrices of numbers or records.

    All are of one kind; matrices have as many columns each, and one type.
    """

    dimension: Dimension

    def check(self, value: Any, sizes: Sizes) -> None:
        if not isinstance(value, np.ndarray) or value.dtype != object:
            raise Misfit(f"is {type_text(value)}, it must be an array of samples")
        if value.ndim != 1 or not sizes.agree(self.dimension, len(value)):
            raise Misfit(f"has the shape {value.shape}, it must be a list of samples")
        first = value[0] if len(value) else None
        for sample in value:
            if isinstance(first, np.ndarray):
                kind, n_columns = first.dtype.name, first.shape[-1]
                Floats(None, n_columns, like=kind).check(sample, sizes)
            elif is_record(sample) and type(sample) is type(first):
                check(sample, sizes.checked_sizes)
            elif not (isinstance(sample, str) and isinstance(first, str)):
                raise Misfit("has samples of several kinds, or of none that is known")


# ---------------------------------------------------------- values of other values


class Part(Field):
    """Another object of given classes, fitted, with some sizes in common.

    A class may be given by its name, so that it need not be imported. In
    ``Part(KernelDictionary, m="m", p="p")`` letters of the other object are on the
    left, and letters of the object that holds it on the right.
    """

    def __init__(
        self, *classes: type | str, fitted: bool = True, **shared: Dimension
    ) -> None:
        self.classes, self.fitted, self.shared = classes, fitted, shared

    def check(self, value: Any, sizes: Sizes) -> None:
        if not any(
            type(value).__name__ == cls
            if isinstance(cls, str)
            else isinstance(value, cls)
            for cls in self.classes
        ):
            names = [getattr(cls, "__name__", cls) for cls in self.classes]
            problem = f"is {type_text(value)}, it must be of the class "
            raise Misfit(problem + " or ".join(map(str, names)))
        part_sizes = check(value, sizes.checked_sizes)
        if self.fitted and not part_sizes.fitted:
            raise Misfit("is not fitted")
        for letter, dimension in self.shared.items():
            if letter in part_sizes and not sizes.agree(dimension, part_sizes[letter]):
                there = sizes.text(dimension)
                raise Misfit(f"has {letter}={part_sizes[letter]}, but there is {there}")


class Many(Field):
    """A list of values of one kind."""

    def __init__(self, item: Field, count: Dimension) -> None:
        self.item, self.count, self.checked_last = item, count, item.checked_last

    def check(self, value: Any, sizes: Sizes) -> None:
        if not isinstance(value, (list, tuple)):
            raise Misfit(f"is {type_text(value)}, it must be a list")
        if not sizes.agree(self.count, len(value)):
            raise Misfit(f"has {len(value)} items, not {sizes.text(self.count)}")
        for index, item in enumerate(value):
            try:
                self.item.check(item, sizes)
            except Misfit as error:
                raise Misfit(f"at {index} {error}") from None


class Either(Field):
    """One of several kinds, the first that fits."""

    def __init__(self, *kinds: Field) -> None:
        self.kinds, self.checked_last = kinds, any(kind.checked_last for kind in kinds)

    def check(self, value: Any, sizes: Sizes) -> None:
        problems, initial_sizes = [], dict(sizes)
        for kind in self.kinds:
            try:
                return kind.check(value, sizes)
            except Misfit as error:
                problems.append(str(error))
                sizes.clear()
                sizes.update(initial_sizes)
        raise Misfit("; or it ".join(problems))


class Maybe(Either):
    """One of several kinds, or missing."""

    optional = True


@dataclass
class History(Field):
    """The history of a fit: lists, by name, with one number for each iteration."""

    measure: str = "objective"

    def check(self, value: Any, sizes: Sizes) -> None:
        if not isinstance(value, dict) or not {self.measure, "seconds"} <= value.keys():
            raise Misfit(f"must be a dict with {self.measure!r} and 'seconds'")
        for name, numbers in value.items():
            Text().check(name, sizes)
            if not isinstance(numbers, list) or not all(map(_is_number, numbers)):
                raise Misfit(f"has something else than a list of numbers as {name!r}")
        if not value[self.measure]:
            raise Misfit("has no iteration")


class Facts(Field):
    """Numbers, text and gaps by name, or such facts again under a name."""

    def check(self, value: Any, sizes: Sizes) -> None:
        if not isinstance(value, dict):
            raise Misfit(f"is {type_text(value)}, it must be a dict")
        for name, fact in value.items():
            Text().check(name, sizes)
            if isinstance(fact, dict):
                self.check(fact, sizes)
            elif not (fact is None or isinstance(fact, (bool, str, Real))):
                raise Misfit(f"has {type_text(fact)} as {name!r}")


class Output(Field):
    """The attribute that scikit-learn's `set_output` sets."""

    kinds = ("default", "pandas", "polars", None)

    def check(self, value: Any, sizes: Sizes) -> None:
        if not isinstance(value, dict) or list(value) != ["transform"]:
            raise Misfit("must be a dict with 'transform'")
        if value["transform"] not in self.kinds:
            raise Misfit(f"has {value['transform']!r}, not one of {self.kinds}")


# ------------------------------------------------------- the classes of scikit-learn


def _n_functions(model: Any) -> int:
    """The number of linear functions."""
    return model.coef_.shape[0] if model.coef_.ndim == 2 else 1


_WIDTH: Declared = {"n_features_in_": Size("p")}
_ROW = Floats("p", finite=False)  # scalers of missing values have NaN
_ROW_OR_NONE = Either(Nothing(), _ROW)
_SCALER = {
    **_WIDTH,
    "n_samples_seen_": Either(Number(least=0), Indices("p"), Floats("p")),
}
_LINEAR: Declared = {
    **_WIDTH,
    "coef_": Either(Floats("t", "p", csr=True), Floats("p")),
    "intercept_": Either(Number(), Floats(None)),
    "n_iter_": Maybe(Nothing(), Whole(), Indices("i")),
    "solver_": Maybe(Text()),
}
_LINEAR_RULES: Conditions = {
    "intercept_ must go with coef_": lambda self: (
        np.size(self.intercept_) in (1, _n_functions(self))
    ),
}
_CLASSIFIER: Declared = {**_LINEAR, "classes_": Labels("C")}
_CLASSIFIER_RULES: Conditions = {
    **_LINEAR_RULES,
    "coef_ must go with classes_": lambda self: (
        _n_functions(self) == len(self.classes_)
        or (_n_functions(self) == 1 and len(self.classes_) <= 2)
    ),
}
#: `_declared` and `_conditions` of the classes of scikit-learn that a model file may
#: name, and of the base of all. Attributes that only some versions set may be missing.
SKLEARN: dict[str, tuple[Declared, Conditions]] = {
    "base.BaseEstimator": (
        {
            "feature_names_in_": Maybe(Names("p")),
            "row_names_": Maybe(Indices(None, least=-LARGEST), Names(None)),
            "_sklearn_output_config": Maybe(Output()),
        },
        {},
    ),
    "decomposition.PCA": (
        {
            **_WIDTH,
            "components_": Floats("k", "p"),
            "n_components_": Size("k"),
            "mean_": Floats("p"),
            "explained_variance_": Floats("k", finite=False),
            "explained_variance_ratio_": Floats("k", finite=False),
            "singular_values_": Floats("k", finite=False),
            "noise_variance_": Number(finite=False),
            "n_samples_": Whole(),
            "_fit_svd_solver": Text(),
        },
        {},
    ),
    "linear_model.LinearRegression": (
        {**_LINEAR, "rank_": Maybe(Whole()), "singular_": Maybe(Floats("s>=0"))},
        _LINEAR_RULES,
    ),
    "linear_model.LogisticRegression": (_CLASSIFIER, _CLASSIFIER_RULES),
    "linear_model.Ridge": (_LINEAR, _LINEAR_RULES),
    "linear_model.RidgeClassifier": (
        {
            **_CLASSIFIER,
            "classes_": Maybe(Labels("C")),  # of the binarizer, in older versions
            "_label_binarizer": Part("LabelBinarizer", C="C"),
        },
        _CLASSIFIER_RULES,
    ),
    "pipeline.FeatureUnion": ({}, {}),
    "pipeline.Pipeline": ({}, {}),
    "preprocessing.LabelBinarizer": (
        {"classes_": Labels("C"), "y_type_": Text(), "sparse_input_": Flag()},
        {},
    ),
    "preprocessing.LabelEncoder": ({"classes_": Labels("C>=0", gaps=True)}, {}),
    "preprocessing.MaxAbsScaler": ({**_SCALER, "max_abs_": _ROW, "scale_": _ROW}, {}),
    "preprocessing.MinMaxScaler": (
        {
            **_SCALER,
            **{name: _ROW for name in ("scale_", "min_")},
            **{f"data_{name}_": _ROW for name in ("min", "max", "range")},
        },
        {},
    ),
    "preprocessing.Normalizer": (_WIDTH, {}),
    "preprocessing.RobustScaler": (
        {**_WIDTH, "center_": _ROW_OR_NONE, "scale_": _ROW_OR_NONE},
        {
            "center_ and scale_ must be there if they are used": lambda self: (
                (self.center_ is not None or not self.with_centering)
                and (self.scale_ is not None or not self.with_scaling)
            ),
        },
    ),
    "preprocessing.StandardScaler": (
        {**_SCALER, **dict.fromkeys(("mean_", "var_", "scale_"), _ROW_OR_NONE)},
        {
            "n_samples_seen_ must be NumPy's": lambda self: hasattr(
                self.n_samples_seen_, "shape"
            ),  # which `partial_fit` asks for
            "mean_ and scale_ must be there if they are used": lambda self: (
                (self.mean_ is not None or not self.with_mean)
                and (self.scale_ is not None or not self.with_std)
            ),
        },
    ),
    "svm.LinearSVC": (_CLASSIFIER, _CLASSIFIER_RULES),
}
