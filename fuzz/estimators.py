"""Cases of the first kind: an estimator is fitted to rows and used on others."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone

import kernlets
from kernlets.base.pipelines import takes_missing
from kernlets.dictionaries import KernelDictionary
from kernlets.registry import table

from . import oracle
from .containers import ONCE, Held, as_array, draw_container
from .draw import Draw, text_of
from .labels import Labels, draw_labels
from .models import Model, draw_model
from .oracle import Wrong
from .values import Matrix, draw_matrix

Note = Callable[[str], Any]
METHODS = (
    *["transform", "predict", "predict_proba", "decision_function", "score_samples"],
    *["reconstruction_error", "score", "inverse_transform", "residuals"],
)
LAYOUTS = {  # in which products are summed in another order
    "sparse": sparse.csr_array,
    "Fortran order": np.asfortranarray,
    "pandas": np.asfortranarray,
    "Dask dataframe": np.asfortranarray,
}
SAME_FIT = ("array", "Fortran order", "strided", "read-only", "memory map", "torch")


@dataclass(frozen=True)
class Rows:
    """Rows of numbers and the container they are in."""

    matrix: Matrix
    held: Held

    @property
    def can_be_read_again(self) -> bool:
        return self.held.name not in ONCE

    @property
    def has_type(self) -> bool:
        """Whether the type of the numbers survives in the container."""
        return self.held.name not in ("lists", "tuples")

    def dense(self) -> np.ndarray:
        """The same numbers in the plainest array of the type that is computed in."""
        values = self.matrix.values
        if str(getattr(self.held.rows, "dtype", "")) == "torch.bfloat16":
            values = self.held.rows.float().numpy()  # rounded
        elif values.dtype.name == "float16" and self.has_type:
            values = values.astype(np.float32)
        keeps = values.dtype.name in ("float32", "float64") and self.has_type
        values = values.astype(values.dtype.newbyteorder("=") if keeps else np.float64)
        return np.ascontiguousarray(values)


def run(draw: Draw, note: Note, folder: Path) -> None:
    """One case; returns when all that was tried gave sound results."""
    case = Case(draw, note, folder)
    with case.options():
        case.fit()
        case.check_fitted()
        case.use()
        case.compare()


class Case:
    """One estimator and the rows it is fitted to."""

    def __init__(self, draw: Draw, note: Note, folder: Path) -> None:
        self.draw, self.note, self.folder = draw, note, folder
        matrix = draw_matrix(draw)
        self.model: Model = draw_model(draw, matrix)
        matrix = _suited(self.model, matrix, draw)
        self.rows = self._held(matrix)
        self.labels = self._labels(matrix)
        self.estimator = self.model.estimator
        note(f"model: {text_of(self.estimator, 400)}")
        note(f"rows: {matrix.text} in {self.rows.held.name}")
        note(f"labels: {self.labels.text}")

    def _held(self, matrix: Matrix) -> Rows:
        return Rows(matrix, draw_container(self.draw, matrix, self.folder))

    def _labels(self, matrix: Matrix) -> Labels:
        if not self.model.needs_labels and self.draw.chance(0.9):
            return Labels(None, "none", is_plain=True)
        return draw_labels(self.draw, matrix.n_rows)

    def options(self) -> AbstractContextManager[Any]:
        """Settings that must not change what comes out."""
        draw = self.draw
        changes: dict[str, Any] = {"n_threads": draw.pick([1, 1, 1, 2])}
        if draw.chance(0.25):
            changes["block_rows"] = draw.pick([1, 3, 8])
        if draw.chance(0.05):
            changes["loops"] = "reference"
        if draw.chance(0.05):
            changes["memory"] = draw.pick(["1KB", "100KB", "10MB"])
        self.is_ample = "memory" not in changes
        self.note(f"options: {changes}")
        return kernlets.options(**changes)

    # ------------------------------------------------------------------- fitting

    @property
    def is_ordinary(self) -> bool:
        """Whether there is no reason at all to refuse."""
        plain = self.rows.matrix.is_plain and self.labels.is_plain
        plain = plain and self.rows.held.is_dense and not self.model.is_odd
        return plain and self.is_ample

    def fit(self) -> None:
        streams = hasattr(self.estimator, "partial_fit") and self.draw.chance(0.25)
        self.note("partial_fit" if streams else "fit")
        try:
            (self._stream if streams else self._fit)(self.estimator)
        except oracle.DOCUMENTED as error:
            is_known = self._is_large_sketch(error)
            if self.is_ordinary and not is_known and oracle.judge(error) is None:
                place = f"{type(_final(self.estimator)).__name__}.fit"
                raise Wrong("ordinary rows refused", place, str(error)) from error
            raise
        may_not_look = "map" in self.model.role or self.model.role == "unit norm"
        if not may_not_look:
            self._check_validity(self.rows, "fit")

    def _is_large_sketch(self, error: Exception) -> bool:
        """Whether powers overflow on a sketch, which may square long rows."""
        steps = [step for _, step in getattr(self.estimator, "steps", [])]
        has_sketch = any(isinstance(one, kernlets.PolynomialSketchMap) for one in steps)
        return has_sketch and "overflow" in str(error)

    def _check_validity(self, rows: Rows, method: str) -> None:
        if not rows.matrix.is_valid and rows.held.name != "odd shape":
            call, text = self._call(method), rows.matrix.text
            unknown = "NaN" in text and "infinity" not in text and "complex" not in text
            if unknown and takes_missing(self.estimator):
                return
            raise Wrong("NaN, infinity or complex accepted", call, text)

    def _fit(self, estimator: Any) -> Any:
        return estimator.fit(self.rows.held.rows, *self._given_labels())

    def _stream(self, estimator: Any) -> Any:
        for _ in range(2 if self.rows.can_be_read_again else 1):
            estimator.partial_fit(self.rows.held.rows, *self._given_labels())
        return estimator

    def _given_labels(self) -> tuple[Any, ...]:
        y = self.labels.values
        return (y,) if y is not None or self.model.needs_labels else ()

    def _call(self, method: str) -> str:
        return f"{type(_final(self.estimator)).__name__}.{method}"

    # ------------------------------------------------------------ what was fitted

    def check_fitted(self) -> None:
        """Finite numbers everywhere, atoms of unit norm where that is promised."""
        oracle.check_numbers(self.estimator)
        final = _final(self.estimator)
        dictionary = getattr(final, "dictionary_", None)
        if dictionary is not None and hasattr(dictionary, "gram"):
            gram = as_array(dictionary.gram())
            oracle.check_finite(gram, self._call("dictionary_"))
            is_zero = not self.rows.matrix.values.any()
            scaled = final is not self.estimator  # no kernel matrix any more, if it was
            has_norms = _has_unit_atoms(final, scaled) and not is_zero
            rounding = 1e-3 + _rounding_of_norms(dictionary)
            if has_norms and not (np.abs(np.diag(gram) - 1) <= rounding).all():
                norms = np.sqrt(np.abs(np.diag(gram)))
                raise Wrong("norm of atoms", self._call("fit"), f"norms {norms[:8]}")
        for name, values in getattr(final, "history_", {}).items():
            call = self._call(f"history_[{name}]")
            oracle.check_finite(np.asarray(values, float), call)

    def use(self) -> None:
        """Some methods on the same or other rows, some of them twice."""
        found = [name for name in METHODS if hasattr(self.estimator, name)]
        for name in self.draw.some(found, 0.5):
            rows = self.rows if name == "score" else self._other_rows()
            if not rows.can_be_read_again and rows is self.rows:
                continue
            self.note(f"{name} of {rows.matrix.text} in {rows.held.name}")
            first = self.result(self.estimator, name, rows)
            self._check(first, name, rows)
            if rows is self.rows and self.draw.chance(0.25):
                self._repeat(name, first, rows)

    def _other_rows(self) -> Rows:
        """The rows of the fit, or others; now and then as many columns as it comes."""
        if self.draw.chance(0.6) and self.rows.can_be_read_again:
            return self.rows
        p = self.rows.matrix.values.shape[1]
        width = p if self.draw.chance(0.9) else None
        return self._held(draw_matrix(self.draw, width, tame=0.5))

    def result(self, estimator: Any, name: str, rows: Rows) -> np.ndarray:
        """What a method returns, in memory."""
        X = rows.held.rows
        if name == "inverse_transform":
            return as_array(estimator.inverse_transform(estimator.transform(X)))
        if name == "score":
            given = self._given_labels() if self.model.needs_labels else ()
            return np.asarray(estimator.score(X, *given))
        if name == "reconstruction_error":
            return as_array(estimator.reconstruction_error(X, per_sample=True))
        return as_array(getattr(estimator, name)(X))

    def _check(self, values: np.ndarray, name: str, rows: Rows) -> None:
        call, matrix = self._call(name), rows.matrix
        self._check_validity(rows, name)
        keeps_gaps = self.model.role == "unit norm" and not matrix.is_valid
        if name != "predict" and not keeps_gaps:
            oracle.check_finite(values, call)
        if name == "score" or rows.held.name == "odd shape":
            return
        p = self.rows.matrix.values.shape[1]
        if matrix.values.shape[1] != p and not self._takes_any_width(rows):
            raise Wrong("other width accepted", call, f"{p} and {matrix.text}")
        rest = () if values.ndim == 1 else (None,) * (values.ndim - 1)
        oracle.check_shape(values, (matrix.n_rows, *rest), call)
        if name == "predict" and hasattr(self.estimator, "classes_"):
            if not np.isin(values, self.estimator.classes_).all():
                raise Wrong("unknown label", call, f"{values[:5]}")
        elif name == "transform" and rows is self.rows and rows.held.is_dense:
            oracle.check_type(values, matrix.dtype, call)

    def _takes_any_width(self, rows: Rows) -> bool:
        return type(_final(self.estimator)).__name__ == "UnitNorm"

    # ------------------------------------------------- the same in another way

    def _repeat(self, name: str, first: np.ndarray, rows: Rows) -> None:
        """Fitted again, or saved and loaded: the same bits."""
        way = self.draw.pick(["again", "again", "saved", "pickled"])
        self.note(f"{way}: {name}")
        if way == "again":
            other = self._fit(clone(self.model.estimator)) if self._was_fit() else None
        elif way == "saved":
            path = self.folder / "again.model"
            kernlets.save(self.estimator, path)
            other = kernlets.load(path)
        else:
            other = pickle.loads(pickle.dumps(self.estimator))
        if way == "saved" and self.rows.held.name == "torch":
            return  # tensors are saved as NumPy arrays, which have other products
        if other is not None and name != "score":
            second = self.result(other, name, rows)
            oracle.check_equal(first, second, f"{self._call(name)}, {way}")

    def _was_fit(self) -> bool:
        streams = hasattr(self.estimator, "partial_fit")
        by_clock = getattr(_final(self.estimator), "seconds", None) is not None
        again = self.rows.can_be_read_again and not streams and not by_clock
        return again and not self.model.is_odd

    def compare(self) -> None:
        """The same numbers in a plain array give the same errors and labels."""
        usable = self.rows.can_be_read_again and self.rows.held.name != "odd shape"
        if not usable or not self.draw.chance(0.3):
            return
        is_learner = type(self.estimator) in table("learners").values()
        if is_learner and self.rows.held.name != "torch":
            self._compare_errors()
        has_objective = "objective" in getattr(self.estimator, "history_", {})
        # K-SAD's is a ratio of small differences: in float32 it is hardly known
        has_objective &= type(_final(self.estimator)).__name__ != "KSADClassifier"
        if self.rows.held.name in SAME_FIT and has_objective:
            self._compare_fit()

    def _compare_errors(self) -> None:
        """Errors are as exact as the energies they are differences of."""
        self.note("compare reconstruction errors with those of a plain array")
        dense = self.rows.dense()
        plain = Rows(self.rows.matrix, Held(dense, "array", None, True))
        found = self.result(self.estimator, "reconstruction_error", self.rows)
        expected = self.result(self.estimator, "reconstruction_error", plain)
        dictionary = self.estimator.dictionary_
        known = np.nan_to_num(dense, nan=0).astype(float)  # of the unknown: none
        energy = as_array(dictionary.energy(known)).max(initial=0)
        arrays = (found, expected, dense, as_array(dictionary.weights))
        types = {array.dtype.name for array in arrays}
        exactness = 1e-8 if types == {"float64"} else 1e-2
        if type(getattr(self.estimator, "kernel_", None)).__name__ == "Matern":
            exactness = max(exactness, 1e-5)  # a root of differences of squares
        atol = float(energy) * exactness + self._rounding(dense, expected)
        if (held := LAYOUTS.get(self.rows.held.name)) is not None:
            atol = max(atol, self._rounding(dense, found, held))
        call = f"{self._call('reconstruction_error')} in {self.rows.held.name}"
        oracle.check_close(found, expected, atol, call, "differs by container")

    def _rounding(
        self, dense: np.ndarray, errors: Any, held: Callable[..., Any] = np.asarray
    ) -> float:
        """How far errors move if rows move by their last bit, in the same container.

        Distances of far rows under a narrow kernel are made of rounding errors, which
        depend on the layout in memory.
        """
        if dense.dtype.kind != "f":
            dense = dense.astype(float)
        moved = np.nextafter(dense, np.inf)
        nearby = Rows(self.rows.matrix, Held(held(moved), "array", None, True))
        found = self.result(self.estimator, "reconstruction_error", nearby)
        return float(np.abs(np.asarray(found) - np.asarray(errors)).max(initial=0))

    def _compare_fit(self) -> None:
        """The first error of a fit; later ones may take another way at a tie."""
        matrix = self.rows.matrix
        if not matrix.text.startswith(("plain", "normal × 1,")) or not self._was_fit():
            return
        self.note("compare the fit with that of a plain array")
        found = self.estimator.history_["objective"][0]
        dense = self.rows.dense()
        expected = self._first_error(dense)
        call = f"{self._call('fit')} in {self.rows.held.name}"
        energy = np.square(dense, dtype=float).sum(1).mean()
        atol = 0.02 * float(expected) + 1e-6 * float(energy)
        if abs(found - expected) > atol:  # at a tie k-means ends elsewhere
            ends = [self._first_error(rows) for rows in _moved(dense)]
            expected = min(ends, key=lambda end: abs(end - found))
        oracle.check_close(found, expected, atol, call, "learns otherwise by container")

    def _first_error(self, dense: np.ndarray) -> float:
        other = clone(self.model.estimator).fit(dense, *self._given_labels())
        return float(other.history_["objective"][0])


def _moved(dense: np.ndarray) -> Iterator[np.ndarray]:
    """The same rows, moved by about their last bits in several ways."""
    rng = np.random.default_rng(0)
    dtype = dense.dtype if dense.dtype.kind == "f" else np.dtype(float)
    for _ in range(10):
        change = 1 + 4 * np.finfo(dtype).eps * rng.standard_normal(dense.shape)
        yield (dense * change).astype(dtype)


def _final(estimator: Any) -> Any:
    return estimator[-1] if hasattr(estimator, "steps") else estimator


def _has_unit_atoms(final: Any, scaled: bool) -> bool:
    """Learners promise it, but `BudgetKernelDL` with a lasso penalises its atoms."""
    kernel = getattr(final, "kernel_", None)
    if scaled and isinstance(kernel, kernlets.Precomputed):
        return False
    is_budget = type(final).__name__ == "BudgetKernelDL"
    is_learner = type(final) in table("learners").values()
    is_definite = getattr(kernel, "psd", True)
    has_norm = not (is_budget and final.n_nonzero_coefs is None)
    return is_learner and has_norm and is_definite


def _rounding_of_norms(dictionary: Any) -> np.ndarray | float:
    """Σ |coef| √κ(z, z) of an atom is far above its norm if large parts cancel."""
    if not isinstance(dictionary, KernelDictionary):
        return 0.0
    if isinstance(dictionary.kernel, kernlets.Precomputed):
        return 0.0  # anchors are numbers of samples, whose matrix is not here
    coefs = np.abs(as_array(dictionary.coefs))
    energies = as_array(dictionary.kernel.diag(dictionary.anchors))
    sizes = coefs @ np.sqrt(np.abs(energies))
    return 10 * np.finfo(coefs.dtype).eps * sizes**2


def _suited(model: Model, matrix: Matrix, draw: Draw) -> Matrix:
    """For a precomputed kernel, more often than not the square matrix it needs."""
    kernels = model.estimator.get_params().values()
    given = any(isinstance(kernel, kernlets.Precomputed) for kernel in kernels)
    if not given or not matrix.is_valid or draw.chance(0.3):
        return matrix
    X = matrix.values.astype(np.float64)
    with np.errstate(all="ignore"):
        gram = X @ X.T
    text = f"Gram matrix of {matrix.text}"
    return Matrix(gram, text, bool(np.isfinite(gram).all()), is_plain=False)
