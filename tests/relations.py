"""How results must change when the input changes, whatever the estimator is.

A relation is a function ``(model, data) -> None`` of an estimator that is not fitted
and of rows. It returns if the relation holds, raises `Broken` if it does not, and
`DoesNotApply`, with the reason, if it says nothing about this estimator. `RELATIONS`
lists them all; tests/contracts/test_metamorphic.py checks each with every registered
estimator, and fuzz/relations.py with random estimators and rows.

Three things are allowed. A fit may draw rows at random by their places: relations that
move rows give first atoms, landmarks and anchors explicitly, and apply only to fits
that do not depend on the seed then. Sums in another order are rounded otherwise: unless
a relation promises equal bits, results are compared to `ROUNDING`. And where
``data.allows_close_calls``, a result may differ in a row as much as it does when all
numbers move by their last bits, as at a tie between two atoms.
"""

from __future__ import annotations

import inspect
import pickle
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.utils import get_tags

import kernlets
from kernlets import OMP, KernelKSVD, KernelMOD, OrthogonalDictionary, Precomputed
from kernlets.coders import Lasso
from kernlets.dictionaries import ExplicitDictionary, KernelDictionary
from kernlets.kernels import resolve
from kernlets.learners import LEARNERS
from kernlets.maps import MAPS

ROUNDING = {4: 1e-2, 8: 1e-6}  # by bytes of a number; shares of the largest result
SMALLEST = 100  # so many last bits of 1 are no difference in close calls
NUDGES = 8  # how often numbers are moved by their last bits
SCORES = ("predict", "predict_proba", "decision_function", "residuals")
METHODS = (
    *SCORES,
    *["transform", "encode", "score_samples", "predict_confidence", "explain"],
    "reconstruction_error",
)
BUT_FEATURES = tuple(name for name in METHODS if name != "explain")
SEED = "random_state"
Answers = dict[str, np.ndarray]


class Broken(AssertionError):
    """A relation does not hold."""


class DoesNotApply(Exception):
    """A relation says nothing about an estimator; the message is the reason."""


@dataclass(frozen=True)
class Data:
    """Rows to fit to, other rows, and what a relation may draw from."""

    X: np.ndarray  # (n, p)
    y: np.ndarray  # (n,) numbers of the classes
    new: np.ndarray  # (k, p)
    seed: int = 0
    start: tuple[int, ...] = (0, 1, 2)  # rows of X that can be first atoms
    accuracy: float = 0.0  # of results, as a share of the largest
    allows_close_calls: bool = False

    @property
    def rng(self) -> np.random.Generator:
        """The same generator each time."""
        return np.random.default_rng([self.seed, 1])

    @property
    def first(self) -> np.ndarray:
        """The rows that can be first atoms and landmarks."""
        return self.X[list(self.start)]

    def nudged(self, number: int) -> Data:
        """The same with all numbers moved by about their last bits."""
        rng = np.random.default_rng([self.seed, 2, number])
        size = np.abs(self.X.astype(float)).max(axis=0, initial=0) * (number % 2)
        X, new = (_nudged(rows, size, rng) for rows in (self.X, self.new))
        return replace(self, X=X, new=new)


def _nudged(X: np.ndarray, size: Any, rng: np.random.Generator) -> np.ndarray:
    """Numbers moved by their last bits, or, zeros too, by those of the given size."""
    dtype = X.dtype if X.dtype.kind == "f" else np.dtype(float)
    change = 4 * np.finfo(dtype).eps * rng.standard_normal(X.shape)
    with np.errstate(all="ignore"):
        moved = X + change * np.maximum(np.abs(X.astype(float)), size)
    return (moved if (X < 0).any() else np.abs(moved)).astype(dtype)


# --------------------------------------------------------- fits and what they answer


def fitted(model: Any, data: Data, **given: Any) -> Any:
    """A fitted copy; labels go to classifiers only."""
    return clone(model).fit(data.X, *_labels(model, data), **given)


def _labels(model: Any, data: Data) -> tuple[np.ndarray, ...]:
    return (data.y,) if is_classifier(model) else ()


class Fit:
    """Answers of one fit to new rows, and of another if the rows of the fit move."""

    def __init__(self, model: Any, data: Data) -> None:
        self.model, self.data = model, data
        self.fitted = fitted(model, data)

    def __call__(self, data: Data, methods: tuple[str, ...] = METHODS) -> Answers:
        moved = data.X is not self.data.X
        ready = fitted(self.model, data) if moved else self.fitted
        return answers(ready, data.new, methods)


def answers(model: Any, X: Any, methods: tuple[str, ...] = METHODS) -> Answers:
    """All that a fitted model says of rows, by method: rows of numbers."""
    found = {name: _numbers(model, name, X) for name in methods if hasattr(model, name)}
    if {"score_samples", "decision_function"} <= found.keys():  # of one scale
        scores = found["score_samples"], found["decision_function"]
        found["score_samples"] = np.stack(scores, axis=1)
    return found


def _numbers(model: Any, name: str, X: Any) -> np.ndarray:
    if name == "reconstruction_error":
        return _errors(model, X)
    values = getattr(model, name)(X)
    if name == "explain":
        parts = ("contributions", "values", "expected", "nearest")
        rows = [np.concatenate([getattr(e, part) for part in parts]) for e in values]
        return np.array(rows)
    if name == "predict" and hasattr(model, "classes_"):
        return np.searchsorted(model.classes_, as_numpy(values))
    return as_numpy(values)


def _errors(model: Any, X: Any) -> np.ndarray:  # (n, 2)
    """Errors, and energies, which they are differences of and as exact as."""
    errors = as_numpy(model.reconstruction_error(X, per_sample=True))
    gram = as_numpy(model.dictionary_.gram())
    codes = as_numpy(model.transform(X)).astype(gram.dtype)
    explained = np.einsum("ij,jk,ik->i", codes, gram, codes)
    return np.stack([errors, errors + explained], axis=1)


def as_numpy(result: Any) -> np.ndarray:
    """What a method returned, as an array in memory."""
    if hasattr(result, "__dask_graph__"):
        result = result.compute()
    if hasattr(result, "n_atoms"):  # SparseCodes
        result = result.toarray()
    if sparse.issparse(result):
        return result.toarray()
    if hasattr(result, "detach"):
        return result.detach().cpu().numpy()
    if isinstance(result, (list, tuple, kernlets.Blocks, Iterator)):
        return np.concatenate([as_numpy(block) for block in result])
    return np.asarray(result)


def of_other_fit(model: Any, found: Answers) -> Answers:
    """Answers that do not depend on the signs of eigenvectors.

    Features of a map by eigenvectors are compared by their inner products.
    """
    last = model[-1] if hasattr(model, "steps") else model
    if type(last) in MAPS.values():
        F = found["transform"]
        return {**found, "transform": F @ F.T}
    return found


def parts(model: Any) -> list[Any]:
    """The estimator and all estimators, coders and kernels among its parameters."""
    inner = [v for v in model.get_params().values() if hasattr(v, "get_params")]
    return [model, *inner]


def _kernels(model: Any) -> list[Any]:
    names = [n for n in model.get_params() if n.split("__")[-1] == "kernel"]
    given = [model.get_params()[name] for name in names]
    return [resolve(kernel) for kernel in given if kernel is not None]


def _has(model: Any, classes: tuple[type, ...]) -> bool:
    return any(isinstance(part, classes) for part in parts(model))


# --------------------------------------------------------------------- comparisons


def compare(
    expected: Callable[[Data], Answers],
    found: Callable[[Data], Answers],
    data: Data,
    look_closer: Callable[[], Any] = lambda: None,
) -> None:
    """Both functions give the same of the same data, up to rounding.

    `look_closer` is called before a difference is reported; it raises `DoesNotApply` if
    the relation says nothing about the estimator after all.
    """
    wanted = expected(data)
    got = _not_refused(found, data)
    off = _differences(wanted, got, data.accuracy)
    for name, bad in off.items():
        if data.allows_close_calls:
            bad = _without_equal_choices(name, off, wanted)
            bad[bad <= SMALLEST * _precision(wanted, got)] = 0
            if _moves_as_far((expected, found), (wanted, got), name, bad, data):
                continue
        look_closer()
        rows = np.flatnonzero(bad)[:3]
        values = wanted[name][rows[:1]], got[name][rows[:1]]
        raise Broken(
            f"{name} differs in {np.count_nonzero(bad)} rows {rows}: "
            f"{_short(values[1])}, expected {_short(values[0])}"
        )


#: Discrete choices, and the objectives of which the best was chosen.
CHOSEN_BY = {
    "predict": ("residuals", "decision_function", "score_samples", "predict_proba"),
    "transform": ("reconstruction_error",),
    "encode": ("reconstruction_error",),
    "codes": ("errors",),
}


def _without_equal_choices(
    name: str, off: dict[str, np.ndarray], wanted: Answers
) -> np.ndarray:  # (n,)
    """How far rows are off, but for other choices with equal objectives."""
    objectives = [other for other in CHOSEN_BY.get(name, ()) if other in wanted]
    if not objectives:
        return off[name].copy()
    return np.where(off.get(objectives[0], 0) == 0, 0, off[name])


def _precision(*results: Answers) -> float:
    """The last bit of 1 in the narrowest type of the results."""
    values = [v for found in results for v in found.values()]
    return max(
        (np.finfo(v.dtype).eps for v in values if v.dtype.kind == "f"), default=0
    )


def _not_refused(found: Callable[[Data], Answers], data: Data) -> Answers:
    try:
        return found(data)
    except (ValueError, TypeError) as error:
        raise Broken(f"refused after the change: {error}") from error


def _differences(
    wanted: Answers, got: Answers, accuracy: float = 0.0
) -> dict[str, np.ndarray]:
    """By method, how far each row is off; only methods with rows that are."""
    if wanted.keys() != got.keys():
        raise Broken(f"methods {sorted(got)}, expected {sorted(wanted)}")
    off = {}
    for name, values in wanted.items():
        if values.shape != got[name].shape:
            raise Broken(f"{name} has shape {got[name].shape}, expected {values.shape}")
        distances = _row_distances(values, got[name])
        far = distances > _tolerance(values, got[name], accuracy)
        if far.any():
            off[name] = np.where(far, distances, 0)
    return off


def _row_distances(a: np.ndarray, b: np.ndarray) -> np.ndarray:  # (n,)
    with np.errstate(all="ignore"):
        gap = np.abs(a.astype(float) - b.astype(float))
    same = (a == b) | (np.isnan(a.astype(float)) & np.isnan(b.astype(float)))
    gap = np.nan_to_num(np.where(same, 0, gap), nan=np.inf)
    return gap.reshape(len(gap), -1).max(axis=1, initial=0)


def _tolerance(a: np.ndarray, b: np.ndarray, accuracy: float) -> float:
    sizes = [x.dtype.itemsize for x in (a, b) if x.dtype.kind == "f"]
    finite = np.abs(a[np.isfinite(a)].astype(float))
    share = max(ROUNDING[min(sizes, default=8)], accuracy)
    return share * float(finite.max(initial=0))


def _moves_as_far(
    functions: tuple[Callable[[Data], Answers], ...],
    results: tuple[Answers, ...],
    name: str,
    bad: np.ndarray,
    data: Data,
) -> bool:
    """Whether rows that are off move as far when numbers move by their last bits."""
    moves = np.zeros(len(bad))
    for number in range(NUDGES):
        if (bad <= 100 * moves).all():
            return True
        for function, before in zip(functions, results, strict=True):
            try:
                nearby = function(data.nudged(number))[name]
            except (ValueError, TypeError):
                return True  # a limit is so close
            if nearby.shape != before[name].shape:
                return True
            moves = np.maximum(moves, _row_distances(before[name], nearby))
    return bool((bad <= 100 * moves).all())


def _short(values: np.ndarray) -> str:
    return np.array2string(values.ravel()[:4], precision=8)


def compare_bits(found: Answers, expected: Answers, what: str) -> None:
    if found.keys() != expected.keys():
        raise Broken(f"{what} has {sorted(found)}, expected {sorted(expected)}")
    for name, values in expected.items():
        _check_bits(found[name], values, f"{name} {what}")


def _check_bits(found: Any, expected: Any, what: str) -> None:
    if isinstance(expected, np.ndarray):
        same = found.dtype == expected.dtype and found.shape == expected.shape
        same = same and found.tobytes() == expected.tobytes()
    else:
        same = type(found) is type(expected) and (
            found == expected or (found != found and expected != expected)
        )
    if not same:
        raise Broken(f"{what} has other bits: {found!r:.80}, expected {expected!r:.80}")


#: What may differ between equal models: a clock, and what is computed when needed.
PASSING = {"seconds", "_remembered_gram"}


def state(model: Any) -> dict[str, Any]:
    """All parameters and attributes of a model as arrays and plain values, by path."""
    leaves: dict[str, Any] = {}
    _collect(model, type(model).__name__, leaves, set())
    return leaves


def _collect(value: Any, path: str, leaves: dict[str, Any], above: set[int]) -> None:
    if id(value) in above:
        return
    above = above | {id(value)}
    if sparse.issparse(value) or hasattr(value, "detach"):
        leaves[path] = as_numpy(value)
    elif isinstance(value, np.ndarray) and value.dtype != object:
        leaves[path] = value
    elif isinstance(value, (np.random.Generator, np.random.RandomState)):
        leaves[path] = repr(_random_state(value))
    elif isinstance(value, dict):
        for key, item in value.items():
            if key not in PASSING:
                _collect(item, f"{path}[{key!r}]", leaves, above)
    elif isinstance(value, (list, tuple)) or isinstance(value, np.ndarray):
        leaves[path] = len(value)
        for i, item in enumerate(value):
            _collect(item, f"{path}[{i}]", leaves, above)
    elif isinstance(value, (str, bytes, int, float, bool, type(None), np.generic)):
        leaves[path] = value
    elif (hasattr(value, "__dict__") and not callable(value)) or _is_own(value):
        leaves[path] = type(value).__name__
        own = getattr(value, "__dict__", {})
        for name in sorted(own.keys() - PASSING):
            _collect(own[name], f"{path}.{name}", leaves, above)


def _is_own(value: Any) -> bool:
    return type(value).__module__.startswith("kernlets")


def _random_state(value: Any) -> Any:
    if isinstance(value, np.random.Generator):
        return value.bit_generator.state
    return value.get_state(legacy=False)


def compare_states(found: Any, expected: Any, what: str) -> None:
    """The same parameters and attributes, bit by bit."""
    got, wanted = state(found), state(expected)
    if got.keys() != wanted.keys():
        odd = sorted(got.keys() ^ wanted.keys())[:3]
        raise Broken(f"{what} has or lacks {odd}")
    for path, value in wanted.items():
        _check_bits(got[path], value, f"{path} {what}")


# ------------------------------------------- fits that do not depend on places of rows

BY_PLACES = {
    "AutoDictionaryClassifier": "folds are drawn by the places of rows",
    "DictionaryOutlierDetector": "rows are drawn by their places",
}


def with_start(model: Any, data: Data) -> Any:
    """A copy whose first atoms, landmarks and anchors are ``data.start``."""
    model, m = clone(model), len(data.start)
    for owner, prefix in _owners(model):
        own = owner.get_params(deep=False)
        changes: dict[str, Any] = {}
        if "landmarks" in own:
            changes = {"landmarks": data.first, "n_landmarks": None}
        if "anchors" in own:
            changes = {"anchors__start": data.first, "anchors__n_anchors": None}
        if "init" in own and "budget" not in own:
            if "kernel" not in own:
                changes |= {"init": data.first, "n_components": m}
            elif not prefix:  # row numbers, which a classifier counts within a class
                changes |= {"init": np.array(data.start), "n_components": m}
        model.set_params(**{prefix + name: value for name, value in changes.items()})
    return model


def _owners(model: Any) -> list[tuple[Any, str]]:
    """Estimators inside a model and the prefixes of their parameters."""
    deep = model.get_params()
    owners = [(v, f"{k}__") for k, v in deep.items() if hasattr(v, "get_params")]
    return [(model, ""), *owners]


def without_draws(model: Any, data: Data, n_seeds: int = 8) -> Any:
    """`with_start`, for estimators whose fit draws nothing then.

    A draw shows if some seeds give other results. Rare ones need many seeds.
    """
    for part in parts(model):
        if (name := type(part).__name__) in BY_PLACES:
            raise DoesNotApply(BY_PLACES[name])
        if hasattr(part, "partial_fit"):
            raise DoesNotApply("a stream depends on the order of its rows")
    model = with_start(model, data)
    seeds = _seeds(model)
    expected = None
    for seed in range(n_seeds) if seeds else ():
        seeded = model.set_params(**dict.fromkeys(seeds, seed))
        found = answers(fitted(seeded, data), data.new)
        expected = expected or found
        if _shapes(found) != _shapes(expected) or _differences(expected, found):
            raise DoesNotApply("rows are drawn by their places")
    return model


MANY_SEEDS = 200


def _many_seeds(model: Any, data: Data) -> Callable[[], Any]:
    """A closer look: whether a fit draws something that few seeds do not show."""
    return partial(without_draws, model, data, MANY_SEEDS)


def _shapes(found: Answers) -> dict[str, Any]:
    return {name: values.shape for name, values in found.items()}


def _seeds(model: Any) -> list[str]:
    return [name for name in model.get_params() if name.split("__")[-1] == SEED]


def _without_codes(model: Any) -> tuple[str, ...]:
    """Codes of a classifier may be over the rows of the fit."""
    return SCORES if is_classifier(model) else METHODS


# ------------------------------------------------------------------ rows and classes


def new_rows_permuted(model: Any, data: Data) -> None:
    """Answers to rows in another order are the same answers in that order."""
    fit, order = Fit(model, data), data.rng.permutation(len(data.new))
    compare(
        lambda d: _taken(fit(d), order),
        lambda d: answers(fit.fitted, d.new[order]),
        data,
    )


def _taken(found: Answers, rows: Any) -> Answers:
    return {name: values[rows] for name, values in found.items()}


def row_alone(model: Any, data: Data) -> None:
    """A row gets the same answer alone and among others, gaps or not."""
    fit = Fit(model, data)
    if takes_missing(model):
        data = replace(data, new=with_gaps(data))
    rows = range(min(5, len(data.new)))

    def alone(d: Data) -> Answers:
        each = [answers(fit.fitted, d.new[i : i + 1]) for i in rows]
        return {name: np.concatenate([e[name] for e in each]) for name in each[0]}

    compare(lambda d: _taken(fit(d), slice(len(rows))), alone, data)


def takes_missing(model: Any) -> bool:
    return get_tags(model).input_tags.allow_nan


def with_gaps(data: Data) -> np.ndarray:
    """`data.new` with gaps in every other row."""
    dtype = data.new.dtype if data.new.dtype.kind == "f" else float
    new = data.new.astype(dtype)
    gaps = data.rng.random(new.shape) < 0.3
    gaps[::2] = False
    new[gaps] = np.nan
    return new


def complete_rows_beside_gaps(model: Any, data: Data) -> None:
    """A row without NaN has the answer that it has if no other row has NaN."""
    if not takes_missing(model):
        raise DoesNotApply("it takes no NaN")
    fit, complete = Fit(model, data), slice(None, None, 2)

    def beside(d: Data) -> Answers:
        return _taken(answers(fit.fitted, with_gaps(d)), complete)

    compare(lambda d: _taken(fit(d), complete), beside, data)


def fitted_rows_permuted(model: Any, data: Data) -> None:
    """A fit that draws no rows does not depend on their order."""
    model, order = without_draws(model, data), data.rng.permutation(len(data.X))
    codes = getattr(fitted(model, data), "codes_", None)
    if data.allows_close_calls and codes is not None:
        if len(np.unique(codes, axis=0)) < len(codes):
            raise DoesNotApply("the first of equal neighbours decides")
    if data.allows_close_calls and _have_equal_images(model, data):
        raise DoesNotApply("the first of rows with equal images decides")
    methods, place = _without_codes(model), np.argsort(order)

    def permuted(d: Data) -> Answers:
        start = tuple(int(place[i]) for i in d.start)
        moved = replace(d, X=d.X[order], y=d.y[order], start=start)
        return _start_answers(model, moved, methods)

    expected = partial(_start_answers, model, methods=methods)
    compare(expected, permuted, data, _many_seeds(model, data))


def _fit_answers(model: Any, data: Data, methods: tuple[str, ...] = METHODS) -> Answers:
    """What a fit to the rows of `data` says of its new rows."""
    return of_other_fit(model, answers(fitted(model, data), data.new, methods))


def _signed_answers(model: Any, data: Data) -> Answers:
    """The same of rows in their order, which decides the signs of eigenvectors."""
    return answers(fitted(model, data), data.new)


def _start_answers(
    model: Any, data: Data, methods: tuple[str, ...] = METHODS
) -> Answers:
    """The same with the first atoms of `data`."""
    return _fit_answers(with_start(model, data), data, methods)


def _have_equal_images(model: Any, data: Data) -> bool:
    """Whether a kernel maps two rows to the same image, or its negative.

    A sigmoid kernel does where it is 1 or −1 to rounding.
    """
    X = data.X
    images = [np.abs(kernel.bound(X)(X, X)) for kernel in _kernels(model)]
    return any(len(np.unique(K, axis=0)) < len(X) for K in images)


def classes_renamed(model: Any, data: Data) -> None:
    """Other names in the same order change names in predictions, and no bit else."""
    _needs_labels(model)
    n = int(data.y.max()) + 1
    names = np.array([f"class {c:03d}" for c in range(n)])
    numbers = fitted(model, data)
    ready = fitted(model, replace(data, y=names[data.y]))
    compare_bits(
        answers(ready, data.new), answers(numbers, data.new), "of renamed classes"
    )
    if not np.isin(ready.predict(data.new), names).all():
        raise Broken("predict returns names that are not those of classes")


def _needs_labels(model: Any) -> None:
    if not is_classifier(model):
        raise DoesNotApply("it learns without labels")


def classes_permuted(model: Any, data: Data) -> None:
    """Names in another order permute scores and rename predictions."""
    _needs_labels(model)
    by_class = model.get_params().get("learner__random_state")
    if isinstance(by_class, int):  # the seed of each class: places do not count
        answer, look_closer = _fit_answers, (lambda: None)
    else:
        model, answer = without_draws(model, data), _start_answers
        look_closer = _many_seeds(model, data)
    order = data.rng.permutation(int(data.y.max()) + 1)  # class c becomes order[c]

    def permuted(d: Data) -> Answers:
        found = answer(model, replace(d, y=order[d.y]), SCORES)
        return {name: _back(name, values) for name, values in found.items()}

    def _back(name: str, values: np.ndarray) -> np.ndarray:
        if name == "predict":
            return np.argsort(order)[values]
        if values.ndim == 1:  # one score for two classes
            return values if order[0] == 0 else -values
        return values[:, order]

    compare(lambda d: answer(model, d, SCORES), permuted, data, look_closer)


def weights_repeat(model: Any, data: Data) -> None:
    """Weights 0, 1, 2 leave rows out, keep them, and repeat them."""
    _takes_weights(model)
    for part in parts(model):
        if isinstance(part, (KernelKSVD, KernelMOD)) and part.init == "normal":
            raise DoesNotApply("a coefficient is drawn for each row, repeated or not")
    model = _in_one_batch(model)
    often = data.rng.integers(0, 3, len(data.X))
    if len(np.unique(data.y[often > 0])) <= data.y.max():
        raise DoesNotApply("a class would lose all its rows")
    methods = _without_codes(model)

    def repeated(d: Data) -> Answers:
        rows = replace(d, X=np.repeat(d.X, often, axis=0), y=np.repeat(d.y, often))
        return _fit_answers(model, rows, methods)

    def weighted(d: Data) -> Answers:
        ready = fitted(model, d, sample_weight=often.astype(float))
        return answers(ready, d.new, methods)

    compare(repeated, weighted, data)


def _takes_weights(model: Any) -> None:
    if "sample_weight" not in inspect.signature(model.fit).parameters:
        raise DoesNotApply("it takes no weights")


def _in_one_batch(model: Any) -> Any:
    """Streams with batches that hold all rows, repeated or not."""
    parts, followed = {"": model, **model.get_params()}, ("batch_size",)
    names = [name for name in parts if name.split("__")[-1] == "batch_size"]
    owners = {name: name.rpartition("schedule__batch_size")[0] for name in names}
    sizes = [
        name
        for name, owner in owners.items()
        if "batch_size"
        in getattr(parts[owner.removesuffix("__")], "_follows", followed)
    ]
    return clone(model).set_params(**dict.fromkeys(sizes, 10_000))


def weights_of_one_and_zero(model: Any, data: Data) -> None:
    """Weights of one change no bit, and rows of weight zero might not be there."""
    _takes_weights(model)
    live = np.arange(len(data.X)) % 5 > 0
    if len(np.unique(data.y[live])) <= data.y.max():
        raise DoesNotApply("a class would lose all its rows")
    some = replace(data, X=data.X[live], y=data.y[live])
    model = _in_one_batch(model)
    expected = answers(fitted(model, some), data.new)
    ones = fitted(model, some, sample_weight=np.ones(len(some.X)))
    compare_bits(answers(ones, data.new), expected, "with weights of one")
    zeros = fitted(model, data, sample_weight=live.astype(float))
    compare_bits(answers(zeros, data.new), expected, "with weights of zero")


# ------------------------------------------------------------------------- features

PER_FEATURE = ("FourierMap", "FastfoodMap", "HybridMap", "PolynomialSketchMap")


def _no_draws_per_feature(model: Any) -> None:
    for part in parts(model):
        own = part.get_params(deep=False)
        by_name = type(part).__name__ in PER_FEATURE
        by_name |= (
            type(part).__name__ == "DictionaryOutlierDetector" and not part.learner
        )
        if by_name or (own.get("init") == "normal" and "kernel" not in own):
            raise DoesNotApply("it draws random numbers for each feature")


OF_IMAGES = ("ImageClassifier", "PatchDictionaryMap")


def features_permuted(model: Any, data: Data) -> None:
    """The order of features changes nothing but the order in results like rows."""
    if {type(part).__name__ for part in parts(model)} & {*OF_IMAGES}:
        raise DoesNotApply("its features are the pixels of an image")
    _no_draws_per_feature(model)
    order = data.rng.permutation(data.X.shape[1])

    def permuted(d: Data) -> Answers:
        moved = replace(d, X=d.X[:, order], new=d.new[:, order])
        found = _fit_answers(model, moved, BUT_FEATURES)
        if _answers_rows(model):
            found["transform"] = found["transform"][:, np.argsort(order)]
        return found

    compare(lambda d: _fit_answers(model, d, BUT_FEATURES), permuted, data)


def _answers_rows(model: Any) -> bool:
    """Whether `transform` returns rows like those it was given."""
    last = model[-1] if hasattr(model, "steps") else model
    return type(last).__name__ in (
        *["UnitNorm", "Standardize", "DictionaryImputer", "GrossErrorMask"],
    )


def zero_feature_added(model: Any, data: Data) -> None:
    """A feature that is zero in all rows changes nothing."""
    _no_draws_per_feature(model)
    _does_not_follow_width(model, data)

    def wider(d: Data) -> Answers:
        X, new = (
            np.c_[rows, np.zeros((len(rows), 1), rows.dtype)] for rows in (d.X, d.new)
        )
        found = _fit_answers(model, replace(d, X=X, new=new), BUT_FEATURES)
        if _answers_rows(model):
            found["transform"] = found["transform"][:, :-1]
        return found

    compare(lambda d: _fit_answers(model, d, BUT_FEATURES), wider, data)


WIDTH_DECIDES = {
    "GrossErrorMask": "its quantile is over features",
    "DictionaryImputer": "its defaults follow the number of features",
    "DictionaryOutlierDetector": "its defaults follow the number of features",
    "StreamOutlierDetector": "its defaults follow the number of features",
    "AutoDictionaryClassifier": "its candidates follow the number of features",
    "PatchDictionaryMap": "its features are the pixels of an image",
    "ImageClassifier": "its features are the pixels of an image",
}


def _does_not_follow_width(model: Any, data: Data) -> None:
    for part in parts(model):
        if (name := type(part).__name__) in WIDTH_DECIDES:
            raise DoesNotApply(WIDTH_DECIDES[name])
        own = part.get_params(deep=False)
        sizes = ("n_components", "n_nonzero_coefs", "n_atoms_per_class", "learner")
        is_learner = type(part) in LEARNERS.values() or is_classifier(part)
        if is_learner and any(own.get(size, 1) is None for size in sizes):
            raise DoesNotApply("a default follows the number of features")
        if isinstance(part, OrthogonalDictionary) and _is_full(part, data):
            raise DoesNotApply("it has no more atoms than features")
        start = part.get_params().get("anchors__start")
        if isinstance(start, str) and start == "dictionary":
            raise DoesNotApply(
                "the dictionary of anchors follows the number of features"
            )
    for kernel in _kernels(model):
        if getattr(kernel, "unset", False) or isinstance(kernel, Precomputed):
            raise DoesNotApply("an open bandwidth follows the number of features")


def _is_full(learner: Any, data: Data) -> bool:
    return (learner.n_components or 0) > data.X.shape[1]


ISOMETRIC = (
    "RBF",
    "Matern",
    "RationalQuadratic",
    "Linear",
    "Polynomial",
    "Sigmoid",
    "Cosine",
)


def features_halved(model: Any, data: Data) -> None:
    """Every feature twice, each over √2, leaves inner products and distances alone."""
    _no_draws_per_feature(model)
    _does_not_follow_width(model, data)
    for part in parts(model):
        if _answers_rows(part) or getattr(part, "standardize", False):
            raise DoesNotApply("it looks at features one by one")
    for kernel in _kernels(model):
        if type(kernel).__name__ not in ISOMETRIC:
            raise DoesNotApply("the kernel is none of inner products or distances")

    def doubled(d: Data) -> Answers:
        X, new = (
            np.c_[rows, rows] * rows.dtype.type(0.5**0.5) for rows in (d.X, d.new)
        )
        return _fit_answers(model, replace(d, X=X, new=new))

    compare(lambda d: _fit_answers(model, d), doubled, _of_floats(data))


def _of_floats(data: Data) -> Data:
    dtype = data.X.dtype if data.X.dtype.kind == "f" else float
    return replace(data, X=data.X.astype(dtype), new=data.new.astype(dtype))


def rows_in_another_unit(model: Any, data: Data) -> None:
    """Rows in another unit, a power of two, have the same atoms, bit by bit."""
    if type(model) not in LEARNERS.values() or not _is_without_unit(model):
        raise DoesNotApply("a parameter has the unit of the rows")
    data = _of_floats(data)
    exponent = int(data.rng.integers(-30, 31))
    unit = data.X.dtype.type(2.0) ** exponent
    plain = fitted(model, data)
    scaled = fitted(model, replace(data, X=data.X * unit))
    _check_bits(scaled.components_, plain.components_, f"components_ of rows × {unit}")
    codes = scaled.transform(data.new * unit) / unit
    _check_bits(
        as_numpy(codes), as_numpy(plain.transform(data.new)), f"codes of rows × {unit}"
    )


def _is_without_unit(model: Any) -> bool:
    own = model.get_params(deep=False)
    coder = OMP(1) if own.get("coder") is None else own["coder"]
    is_omp = isinstance(coder, OMP) and coder.tol is None
    return is_omp and "kernel" not in own and "alpha" not in own


# ---------------------------------------------------------------------------- atoms


def atoms_permuted(model: Any, data: Data) -> None:
    """Atoms of a dictionary in another order permute the codes."""
    for owner in _with_dictionaries(fitted(model, data)):
        order = data.rng.permutation(owner.dictionary_.n_atoms)
        other = _with_weights(owner, owner.dictionary_.weights[order])
        compare(
            partial(_codes, owner),
            lambda d, other=other, order=order: {
                **_codes(other, d),
                "codes": _codes(other, d)["codes"][:, np.argsort(order)],
            },
            data,
        )


def atoms_negated(model: Any, data: Data) -> None:
    """Atoms with the opposite sign have codes with the opposite sign."""
    for owner in _with_dictionaries(fitted(model, data)):
        coder = owner.coder_
        if getattr(coder, "positive", False):
            raise DoesNotApply("codes are not negative")
        sign = data.rng.choice([-1, 1], owner.dictionary_.n_atoms)
        weights = owner.dictionary_.weights
        other = _with_weights(owner, weights * sign[:, None].astype(weights.dtype))
        compare(
            partial(_codes, owner),
            lambda d, other=other, sign=sign: {
                **_codes(other, d),
                "codes": _codes(other, d)["codes"] * sign,
            },
            data,
        )


def _with_dictionaries(ready: Any) -> list[Any]:
    """Fitted learners: the model itself, or those inside it."""
    owners = [ready, getattr(ready, "learner_", None), *getattr(ready, "learners_", [])]
    kinds = (ExplicitDictionary, KernelDictionary)
    owners = [
        owner
        for owner in owners
        if type(owner) in LEARNERS.values()
        and isinstance(owner.dictionary_, kinds)
        and isinstance(owner.dictionary_.weights, np.ndarray)
    ]
    if not owners:
        raise DoesNotApply("it has no dictionary of atoms")
    return owners


def _with_weights(owner: Any, weights: np.ndarray) -> Any:
    other, dictionary = deepcopy(owner), owner.dictionary_
    if isinstance(dictionary, ExplicitDictionary):
        other.dictionary_ = ExplicitDictionary(weights)
    else:
        energy = dictionary.typical_energy
        other.dictionary_ = KernelDictionary(
            dictionary.kernel, dictionary.anchors, weights, typical_energy=energy
        )
    return other


def _codes(owner: Any, data: Data) -> Answers:
    return {
        "codes": as_numpy(owner.transform(data.new)),
        "errors": _errors(owner, data.new),
    }


ALL_AT_ONCE = ("MOD", "KernelMOD")


def first_atoms_permuted(model: Any, data: Data) -> None:
    """Updates of all atoms at once keep the order of the first atoms."""
    if type(model).__name__ not in ALL_AT_ONCE:
        raise DoesNotApply("atoms are updated one after another")
    model = without_draws(model, data)
    order = data.rng.permutation(len(data.start))

    def permuted(d: Data) -> Answers:
        start = tuple(d.start[i] for i in order)
        ready = fitted(with_start(model, replace(d, start=start)), d)
        return {
            **_codes(ready, d),
            "codes": _codes(ready, d)["codes"][:, np.argsort(order)],
        }

    def expected(d: Data) -> Answers:
        return _codes(fitted(with_start(model, d), d), d)

    compare(expected, permuted, data, _many_seeds(model, data))


# ------------------------------------------------------------- again, saved, in pieces


def fitted_again(model: Any, data: Data) -> None:
    """What was fitted before, and parameters set in between, leave no trace."""
    expected = fitted(model, data)
    used = clone(model)
    other = _other_rows(data)
    used.fit(other.X, *_labels(model, other))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a seed that is none of the model's own
        used.set_params(**dict.fromkeys(_seeds(used), 7))
    used.fit(data.X[::-1], *(y[::-1] for y in _labels(model, data)))
    if hasattr(used, "partial_fit"):
        used.partial_fit(data.X, *_labels(model, data))
    deep = model.get_params()
    used.set_params(**{name: deep[name] for name in _seeds(model)})
    twin = clone(used).fit(data.X, *_labels(model, data))
    used.fit(data.X, *_labels(model, data))
    compare_states(used, expected, "after a refit")
    compare_states(twin, expected, "after a clone")
    compare_bits(answers(used, data.new), answers(expected, data.new), "after a refit")


def _other_rows(data: Data) -> Data:
    """Other rows: in number, width, type and labels."""
    n, p = data.X.shape
    X = np.abs(data.rng.standard_normal((n + 7, p + 1))).astype(np.float32)
    return replace(data, X=X, y=np.array(["u", "v"])[np.arange(n + 7) % 2])


def saved_and_loaded(model: Any, data: Data) -> None:
    """Files and pickles keep every bit."""
    ready = fitted(model, data)
    with TemporaryDirectory(prefix="kernlets-") as folder:
        kernlets.save(ready, Path(folder) / "a.model")
        loaded = kernlets.load(Path(folder) / "a.model")
    expected = answers(ready, data.new)
    for what, twin in {
        "after loading": loaded,
        "after a pickle": pickle.loads(pickle.dumps(ready)),
        "after a copy": deepcopy(ready),
    }.items():
        compare_bits(answers(twin, data.new), expected, what)
        if repr(twin) != repr(ready):
            raise Broken(f"{what} it is {twin!r}")
    compare_states(pickle.loads(pickle.dumps(ready)), ready, "after a pickle")


def stream_saved_midway(model: Any, data: Data) -> None:
    """A stream that was saved in the middle goes on as if it had not been."""
    if not hasattr(model, "partial_fit"):
        raise DoesNotApply("it does not learn from a stream")
    half = len(data.X) // 2
    rest = (data.X[half:], *(y[half:] for y in _labels(model, data)))
    begun = clone(model)
    classes = {"classes": np.unique(data.y)} if is_classifier(model) else {}
    begun.partial_fit(
        data.X[:half], *(y[:half] for y in _labels(model, data)), **classes
    )
    twin = pickle.loads(pickle.dumps(begun))
    with TemporaryDirectory(prefix="kernlets-") as folder:
        kernlets.save(begun, Path(folder) / "a.model")
        loaded = kernlets.load(Path(folder) / "a.model")
    begun.partial_fit(*rest)
    twin.partial_fit(*rest)
    loaded.partial_fit(*rest)
    compare_states(twin, begun, "after a pickle")
    try:
        expected = answers(begun, data.new)
    except NotFittedError:
        raise DoesNotApply("so few rows are only gathered") from None
    compare_bits(answers(loaded, data.new), expected, "after loading")


def fit_transform_in_one(model: Any, data: Data) -> None:
    """`fit_transform` is `fit`, then `transform`, unless the class says otherwise."""
    if not hasattr(model, "fit_transform"):
        raise DoesNotApply("it has no fit_transform")
    last = model[-1] if hasattr(model, "steps") else model
    if type(last).__name__ == "DictionaryImputer":
        raise DoesNotApply("each row of the fit is filled in by the others")

    def in_one(d: Data) -> Answers:
        found = clone(model).fit_transform(d.X, *_labels(model, d))
        return {"transform": as_numpy(found)}

    def one_by_one(d: Data) -> Answers:
        return {"transform": as_numpy(fitted(model, d).transform(d.X))}

    compare(one_by_one, in_one, data)


def fit_predict_in_one(model: Any, data: Data) -> None:
    """`fit_predict` is `fit`, then the labels of the same rows."""
    if not hasattr(model, "fit_predict"):
        raise DoesNotApply("it has no fit_predict")
    expected = as_numpy(fitted(model, data).predict(data.X))
    _check_bits(as_numpy(clone(model).fit_predict(data.X)), expected, "fit_predict")


# ------------------------------------------------------------- inputs and random states


def inputs_left_alone(model: Any, data: Data) -> None:
    """No array that is given is changed."""
    given = replace(data, X=data.X.copy(), y=data.y.copy(), new=data.new.copy())
    ready = fitted(model, given)
    answers(ready, given.new)
    if hasattr(model, "partial_fit"):
        clone(model).partial_fit(given.X, *_labels(model, given))
    if hasattr(model, "fit_transform"):
        clone(model).fit_transform(given.X, *_labels(model, given))
    for name in ("X", "y", "new"):
        _check_bits(getattr(given, name), getattr(data, name), f"the given {name}")


def results_left_alone(model: Any, data: Data) -> None:
    """Changing the rows that were given, or results, does not change the model."""
    given = replace(data, X=data.X.copy())
    ready = fitted(model, given)
    expected = answers(ready, data.new)
    given.X[...] = 1
    for values in answers(ready, data.new).values():
        if values.flags.writeable:
            values[...] = 1
    compare_bits(answers(ready, data.new), expected, "after its rows were changed")


def seeds_decide(model: Any, data: Data) -> None:
    """Equal seeds in every form give equal bits; NumPy's own generator is not used."""
    seeds = _seeds(model)
    before = np.random.get_state(legacy=False)
    try:
        for make in (lambda: 5, lambda: np.random.RandomState(5)):
            found = []
            for everywhere in (1, 2):
                np.random.seed(everywhere)
                state = repr(np.random.get_state(legacy=False))
                seeded = clone(model).set_params(**{name: make() for name in seeds})
                ready = seeded.fit(data.X, *_labels(model, data))
                found.append(answers(ready, data.new))
                if repr(np.random.get_state(legacy=False)) != state:
                    raise Broken("NumPy's own generator was used")
            compare_bits(found[0], found[1], "with the same seed")
    finally:
        np.random.set_state(before)


# ------------------------------------------------------------------------ containers


def _views(X: np.ndarray) -> dict[str, Any]:
    wide = np.zeros((2 * X.shape[0], 3 * X.shape[1]), X.dtype)
    wide[::2, ::3] = X
    locked = X.copy()
    locked.setflags(write=False)
    return {
        "Fortran order": np.asfortranarray(X),
        "negative strides": X[::-1, ::-1].copy()[::-1, ::-1],
        "every third column": wide[::2, ::3],
        "read-only": locked,
    }


def layouts(model: Any, data: Data) -> None:
    """How rows lie in memory changes rounding only, and read-only ones are taken."""
    fit = Fit(model, data)
    for name in _views(data.X):

        def fitted_to_view(d: Data, name: str = name) -> Answers:
            return _signed_answers(model, replace(d, X=_views(d.X)[name]))

        def view_answered(d: Data, name: str = name) -> Answers:
            return answers(fit.fitted, _views(d.new)[name])

        compare(partial(_signed_answers, model), fitted_to_view, data)
        compare(fit, view_answered, data)


def sparse_rows(model: Any, data: Data) -> None:
    """Rows as a sparse matrix are the same rows."""
    if not get_tags(model).input_tags.sparse:
        raise DoesNotApply("it takes no sparse rows")
    dtype = "f4" if data.X.dtype == np.float32 else "f8"  # which SciPy has
    data = replace(data, X=data.X.astype(dtype), new=data.new.astype(dtype))
    fit = Fit(model, data)
    for make in (sparse.csr_array, sparse.csc_matrix):

        def fitted_to_sparse(d: Data, make: Any = make) -> Answers:
            return _signed_answers(model, replace(d, X=make(d.X), new=make(d.new)))

        def sparse_answered(d: Data, make: Any = make) -> Answers:
            return answers(fit.fitted, make(d.new))

        compare(partial(_signed_answers, model), fitted_to_sparse, data)
        compare(fit, sparse_answered, data)


def _containers(X: np.ndarray, folder: Path) -> dict[str, Any]:
    """The same rows elsewhere; libraries that are not installed are left out."""
    if X.dtype == object:
        raise DoesNotApply("objects are not rows in every container")
    np.save(folder / "rows.npy", X)
    some = max(1, len(X) // 2)
    found = {
        "lists": X.tolist(),
        "memory map": np.load(folder / "rows.npy", mmap_mode="r"),
        "list of blocks": [X[:some], X[some:]] if len(X) > 1 else [X],
        "Blocks": kernlets.Blocks(lambda: iter([X[:some], X[some:]])),
    }
    if X.dtype.isnative and X.dtype.name in ("float64", "float32", "int64", "uint8"):
        makers = {"pandas": _frame, "torch": _tensor, "Dask": _dask}
        for name, make in makers.items():
            with suppress(ImportError):
                found[name] = make(X)
    return found


def _frame(X: np.ndarray) -> Any:
    import pandas

    return pandas.DataFrame(X)


def _tensor(X: np.ndarray) -> Any:
    import torch

    return torch.tensor(X)


def _dask(X: np.ndarray) -> Any:
    import dask.array

    return dask.array.from_array(X, chunks=(max(1, len(X) // 2), X.shape[1]))


IN_PARTS = ("list of blocks", "Blocks", "Dask")  # which not every method takes


def containers_of_new_rows(model: Any, data: Data) -> None:
    """Answers do not depend on the container of new rows."""
    fit = Fit(model, data)
    with TemporaryDirectory(prefix="kernlets-") as folder:
        for name, rows in _containers(data.new, Path(folder)).items():
            methods = tuple(fit(data))
            if name in IN_PARTS:
                methods = tuple(m for m in methods if _is_taken(fit.fitted, m, rows))
            compare(
                partial(fit, methods=methods),
                lambda d, rows=rows, methods=methods: answers(
                    fit.fitted, rows, methods
                ),
                data,
            )


def _is_taken(ready: Any, method: str, rows: Any) -> bool:
    try:
        answers(ready, rows, (method,))
    except (ValueError, TypeError):
        return False
    return True


#: What a fit draws from blocks and chunks in another way than from an array.
DRAWN_IN_PARTS = {
    "BudgetKernelDL": "rows of blocks are taken in their order",
    **dict.fromkeys(
        ("NystroemMap", "IKAMap", "HybridMap"), "each block gives a share of landmarks"
    ),
    **dict.fromkeys(
        ("FourierMap", "FastfoodMap"), "an open bandwidth is that of sampled rows"
    ),
}


def containers_of_fitted_rows(model: Any, data: Data) -> None:
    """What is learned does not depend on the container of the rows of a fit."""
    draws = any(type(part).__name__ in DRAWN_IN_PARTS for part in parts(model))
    with TemporaryDirectory(prefix="kernlets-") as folder:
        for name in _containers(data.X, Path(folder)):

            def fitted_to(d: Data, name: str = name) -> Answers:
                rows = _containers(d.X, Path(folder))[name]
                return _signed_answers(model, replace(d, X=rows))

            if name not in IN_PARTS or (not draws and _is_answered(fitted_to, data)):
                compare(partial(_signed_answers, model), fitted_to, data)


def _is_answered(fitted_to: Callable[[Data], Answers], data: Data) -> bool:
    try:
        fitted_to(data)
    except (ValueError, TypeError):
        return False
    return True


def whole_numbers(model: Any, data: Data) -> None:
    """Integers are the floating-point numbers that they stand for, bit by bit."""
    with np.errstate(all="ignore"):
        X, new = (np.abs(np.rint(rows.astype(float))) for rows in (data.X, data.new))
    if max(X.max(initial=0), new.max(initial=0)) > 100:
        raise DoesNotApply("the numbers are too large for all types")
    expected = answers(fitted(model, replace(data, X=X)), new)
    for dtype in (np.int8, np.uint16, np.int64):
        rows = replace(data, X=X.astype(dtype), new=new.astype(dtype))
        found = answers(fitted(model, rows), rows.new)
        compare_bits(found, expected, f"of {np.dtype(dtype)}")


def single_precision(model: Any, data: Data) -> None:
    """Rows of float32 have the answers of the same rows in float64, to rounding.

    A fit to float32 is compared only without close calls: with few rows all errors are
    rounding errors, and which row is represented worst depends on the precision.
    """
    with np.errstate(over="ignore"):
        X, new = (rows.astype("f4").astype(float) for rows in (data.X, data.new))
    if not (np.isfinite(X).all() and np.isfinite(new).all()):
        raise DoesNotApply("float32 does not hold such numbers")
    wide = replace(data, X=X, new=new)
    fit = Fit(model, wide)
    compare(fit, lambda d: answers(fit.fitted, d.new.astype("f4")), wide)
    if not data.allows_close_calls:
        narrow = replace(wide, X=X.astype("f4"), new=new.astype("f4"))
        compare(
            lambda d: _fit_answers(model, wide), partial(_fit_answers, model), narrow
        )


RELATIONS: dict[str, Callable[[Any, Data], None]] = {
    relation.__name__.replace("_", " "): relation
    for relation in (
        *(new_rows_permuted, row_alone, complete_rows_beside_gaps),
        *(fitted_rows_permuted, classes_renamed, classes_permuted),
        *(weights_repeat, weights_of_one_and_zero),
        *(features_permuted, zero_feature_added, features_halved),
        *(rows_in_another_unit, atoms_permuted, atoms_negated, first_atoms_permuted),
        *(fitted_again, saved_and_loaded, stream_saved_midway),
        *(fit_transform_in_one, fit_predict_in_one),
        *(inputs_left_alone, results_left_alone, seeds_decide, layouts, sparse_rows),
        *(containers_of_new_rows, containers_of_fitted_rows),
        *(whole_numbers, single_precision),
    )
}


def check(relation: str, model: Any, data: Data) -> None:
    """Check one of `RELATIONS`, to the accuracy that the model states."""
    if _has(model, (Lasso,)):
        accuracy = max(p.tol for p in parts(model) if isinstance(p, Lasso))
        data = replace(data, accuracy=max(100 * accuracy, data.accuracy))
    RELATIONS[relation](model, data)


# -------------------------------------------------------------------------- kernels

#: By kernel: what a parameter is multiplied by if all features come twice.
WHEN_DOUBLED = {
    "RBF": {"sigma": 2**0.5, "gamma": 0.5},  # of which one is set
    "Laplacian": {"gamma": 0.5},
    "Matern": {"length_scale": 2**0.5},
    "RationalQuadratic": {"length_scale": 2**0.5},
    "Polynomial": {"scale": 0.5},
    "Sigmoid": {"scale": 0.5},
    "Chi2": {"gamma": 0.5},
    "Linear": {},
    "Cosine": {},
    "Intersection": {},
    "AdditiveChi2": {},
}
SUMS_OF_FEATURES = ("Linear", "Intersection", "AdditiveChi2")


def kernel_relations(kernel: Any, data: Data) -> None:
    """Rows and features in another order, features of zeros, and features twice."""
    kernel = kernel.bound(data.X)
    X, Y = data.X, data.new
    K, diagonal = kernel(X, Y), kernel.diag(X)
    rows, columns = data.rng.permutation(len(X)), data.rng.permutation(X.shape[1])
    _close(kernel(X[rows], Y), K[rows], "rows permuted")
    _close(kernel(X[:, columns], Y[:, columns]), K, "features permuted")
    _close(kernel.diag(X[:, columns]), diagonal, "diagonal of permuted features")
    if type(kernel).__name__ not in WHEN_DOUBLED:
        return
    zeros = (np.c_[A, np.zeros(len(A))] for A in (X, Y))
    _close(kernel(*zeros), K, "a feature of zeros")
    factors = WHEN_DOUBLED[type(kernel).__name__]
    own = kernel.get_params()
    own = {name: own[name] * by for name, by in factors.items() if own[name]}
    other = clone(kernel).set_params(**own)
    times = 2 if type(kernel).__name__ in SUMS_OF_FEATURES else 1
    _close(other(np.c_[X, X], np.c_[Y, Y]), times * K, "features twice")
    _close(other.diag(np.c_[X, X]), times * diagonal, "diagonal of features twice")


def _close(found: np.ndarray, expected: np.ndarray, what: str) -> None:
    gap = np.abs(found - expected).max(initial=0)
    if not gap <= 1e-10 * np.abs(expected).max(initial=0):
        raise Broken(f"{what}: {_short(found)}, expected {_short(expected)}")
