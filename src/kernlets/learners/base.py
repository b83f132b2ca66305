"""`DictionaryLearner` has what all learners share: codes, errors and defaults.

`linear_learner.py`, `kernel_ksvd.py` and `stream_learner.py` have the base classes
of learners that fit in the same way.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..base.constraints import AT_LEAST_1
from ..base.estimator import Estimator
from ..coders import BOTH, OMP, at_most_all, encode, resolve_coder
from ..coders.encoding import encode_block
from ..config import options
from ..contracts import Array, Dictionary, SparseCoder, SparseCodes
from ..data.check import check_block, check_rows
from ..data.rows import apply_to_rows, map_rows, sum_rows
from ..data.stream import (
    Blocks,
    apply_to_source,
    concatenate_blocks,
    is_one_array,
    no_blocks_error,
)
from ..kernels import kernel_or_class
from ..kernels.samples import takes_missing
from ..numerics.arrays import is_dask, to_numpy
from ..schema import Declared, History, Part, Size, Whole
from ..sklearn_base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from .schedule import Schedule, resolve_schedule

if TYPE_CHECKING:
    from typing_extensions import Self

N_NONZERO = 5  # default number of non-zeros per code
N_FIRST_ROWS = 2000  # first rows of a stream if the number of atoms is not given
ENCODE = (
    "encode returns codes in memory, but X is a Dask collection: use transform, which "
    "returns a Dask array"
)


class DictionaryLearner(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator, ABC
):
    """The base class of learners: `fit` sets a dictionary and a coder.

    A subclass defines `fit`. It must have the parameters named in
    `_parameter_constraints`.
    """

    _stores_row_names = False
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [AT_LEAST_1, None],
        "n_nonzero_coefs": [AT_LEAST_1, None],
        "coder": [str, SparseCoder, None],
        "max_iter": [AT_LEAST_1],
        "random_state": ["random_state", np.random.Generator],
        "schedule": [str, Schedule, None],
        "sparse_output": ["boolean"],
    }

    _declared: ClassVar[Declared] = {
        "n_features_in_": Size("p"),
        "dictionary_": Part(Dictionary, m="m", p="p"),
        "coder_": Part(SparseCoder),
        "history_": History(),
        "n_iter_": Whole(),
    }

    _acts_at_once = frozenset({"sparse_output"})
    n_components: Any
    init: Any
    n_nonzero_coefs: Any
    coder: Any
    max_iter: Any
    schedule: Any
    random_state: Any
    sparse_output: bool

    dictionary_: Any  # a `Dictionary`
    coder_: SparseCoder
    history_: dict[str, list[float]]
    n_iter_: int

    _follows: ClassVar[tuple[str, ...]] = ()
    """Parameters of a `Schedule` that this learner can follow, besides `WATCHED_BY`."""

    _learns_missing: ClassVar[bool] = False
    """Whether rows to learn from may have missing values (NaN)."""

    @property
    def _streams_missing(self) -> bool:
        """Whether rows of a stream may have missing values (NaN)."""
        return self._learns_missing

    def _validate_params(self) -> None:
        super()._validate_params()
        resolve_schedule(self.schedule).check(self, self._follows)

    @abstractmethod
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn `dictionary_` from the samples in X, and set `coder_`.

        A sample of weight w counts as w samples.
        """

    def _check_new_samples(self, X: Any) -> Array:
        """Check new samples and convert them to the type of the dictionary."""
        return check_rows(
            self,
            X,
            containers="dask",
            like=self._model_array,
            allow_nan=self._takes_missing,
        )

    @property
    def _takes_missing(self) -> bool:
        """Whether new rows may have missing values (NaN)."""
        return takes_missing(getattr(self, "kernel_", None))

    @property
    def _model_array(self) -> Array:
        """An array whose library, device and dtype new rows are converted to."""
        return self.dictionary_.weights

    def _new_rows(self, X: Any) -> Any:
        """Return the new samples, checked; blocks are checked as they are read."""
        return apply_to_source(self._check_new_samples, X)

    def _check_blocks(self, X: Iterable[Any]) -> tuple[Blocks, Array]:
        """Return blocks that are checked when read, and rows to draw the atoms from."""
        is_single_use, allow_nan = isinstance(X, Iterator), self._streams_missing
        if is_single_use and self.max_iter > 1:
            raise ValueError(
                "X is an iterator that can be read only once: pass a list of blocks, "
                "or kernlets.Blocks(function) with a function that returns one, or set "
                "max_iter=1"
            )
        first_blocks = _first_blocks(X, self._n_first_rows())
        first_block = check_rows(self, first_blocks[0], reset=True, allow_nan=allow_nan)
        like = first_block[:0]  # all blocks are converted to the type of the first
        other_blocks = (
            check_rows(self, block, like=like, allow_nan=allow_nan)
            for block in first_blocks[1:]
        )
        first_rows = concatenate_blocks([first_block, *other_blocks])
        if is_single_use and options.checkpoint is not None:
            raise ValueError(
                "X is an iterator that can be read only once, but a checkpoint reads "
                "the samples first: pass a list of blocks or kernlets.Blocks"
            )

        def checked_blocks() -> Iterator[Array]:
            for block in chain(first_blocks, X) if is_single_use else X:
                yield check_block(self, block, False, like, allow_nan)

        return Blocks(checked_blocks), first_rows

    def _n_first_rows(self) -> int:
        """Return how many rows of a stream to choose the first atoms from."""
        if self.n_components is None:
            return N_FIRST_ROWS if isinstance(self.init, str) else 1
        return 2 * int(self.n_components)  # some rows may be zero

    def _n_atoms(self, n_usable: int, n_features: int, n_least: int = 0) -> int:
        """Return `n_components` or its default: n_usable / 4, at least `n_least`."""
        if self.n_components is None:
            n_default = max(n_usable // 4, min(n_usable, n_least))
            return max(1, min(2 * n_features, n_default, 500))
        return int(self.n_components)

    def _coder(self, n_atoms: int, n_features: int) -> SparseCoder:
        if self.coder is not None:
            if self.n_nonzero_coefs is not None:
                raise ValueError(BOTH)
            return at_most_all(resolve_coder(self.coder), n_atoms)
        if self.n_nonzero_coefs is None:
            return OMP(min(N_NONZERO, max(1, n_features // 4), n_atoms))
        return at_most_all(OMP(self.n_nonzero_coefs), n_atoms)

    def _class_defaults(
        self, count: Callable[[], int], n_features: int, n_least: int, n_nonzero: int
    ) -> dict[str, int]:
        """Return parameters that a classifier sets if `n_components` is None.

        A classifier needs more atoms than other users do: the best atoms of a class of
        five samples are these five, not their mean. `count` returns the number of
        samples that can be atoms.
        """
        if self.n_components is not None or not hasattr(self.init, "__len__"):
            return {}
        params = {}
        if isinstance(self.init, str):
            n_atoms = params["n_components"] = self._n_atoms(
                count(), n_features, n_least
            )
        else:
            n_atoms = max(len(self.init), 1)
        if self.coder is None and self.n_nonzero_coefs is None:
            params["n_nonzero_coefs"] = min(n_nonzero, max(1, n_features // 4), n_atoms)
        return params

    def _n_starts(self) -> int:
        """Return the number of starts of a fit: one if `init` is an array."""
        is_drawn = isinstance(self.init, str)
        return int(resolve_schedule(self.schedule).n_init) if is_drawn else 1

    @property
    def _n_features_out(self) -> int:
        return self.dictionary_.n_atoms

    def encode(self, X: Any) -> SparseCodes:
        """Sparse codes of the rows of X, with their squared residuals."""
        check_is_fitted(self)
        if is_dask(X):
            raise TypeError(ENCODE)
        return encode(self.dictionary_, self.coder_, self._check_new_samples(X))

    def transform(self, X: Any) -> Any:
        """Codes of the rows of X: dense (n, m), or CSR with ``sparse_output``.

        The result is an iterable of codes for an iterable of blocks, a Dask array for a
        Dask array, and `LazyRows` for a memory map whose dense codes do not fit into
        the memory option.
        """
        check_is_fitted(self)
        if self.sparse_output and is_one_array(X):
            return self.encode(X).tocsr()
        fitted = self.dictionary_, self.coder_
        return codes_of_rows(*fitted, self._new_rows(X), self.sparse_output)

    def reconstruction_error(self, X: Any, per_sample: bool = False) -> Any:
        """Mean squared residual ‖x − Dγ‖² of the rows of X, or one per sample."""
        check_is_fitted(self)
        apply, compute = (
            (map_rows, _squared_residuals) if per_sample else (sum_rows, _error_sums)
        )
        errors = apply(
            partial(compute, self.dictionary_, self.coder_),
            self._new_rows(X),
            self.dictionary_.row_bytes,
            group_size=self.coder_.group_size,
        )
        if errors is None:
            raise no_blocks_error()
        return errors if per_sample else float(errors[0] / errors[1])

    def score(self, X: Any, y: Any = None) -> float:
        """The negative reconstruction error, so that grid search can rank learners."""
        return -self.reconstruction_error(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        kernel = kernel_or_class(getattr(self, "kernel", None))
        tags.input_tags.allow_nan = takes_missing(kernel)
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "dictionary_")


def _encode_block(
    dictionary: Dictionary, coder: SparseCoder, sparse_output: bool, X: Array
) -> Any:  # (n, m)
    codes = encode_block(dictionary, coder, X)
    return codes.tocsr() if sparse_output else codes.toarray()


def _squared_residuals(
    dictionary: Dictionary, coder: SparseCoder, X: Array
) -> Array:  # (n,)
    return encode_block(dictionary, coder, X).residual


def _error_sums(dictionary: Dictionary, coder: SparseCoder, X: Array) -> np.ndarray:
    """Return the sum of the squared residuals and their number."""
    residual = to_numpy(_squared_residuals(dictionary, coder, X))
    return np.array([residual.sum(dtype=np.float64), len(residual)])


def codes_of_rows(
    dictionary: Dictionary, coder: SparseCoder, X: Any, sparse_output: bool = False
) -> Any:  # (n, m)
    """Compute codes where the rows are; `LazyRows` if they do not fit into memory."""
    encode_block = partial(_encode_block, dictionary, coder, sparse_output)
    return map_rows(encode_block, X, 2 * dictionary.row_bytes, coder.group_size)


def map_codes(compute: Callable[..., Array], codes: Any, weights: Array) -> Any:
    """Compute f(weights, codes) for codes in memory, in blocks or on a cluster."""
    return apply_to_rows(
        partial(compute, weights), codes, row_bytes=16 * sum(weights.shape)
    )


def _first_blocks(blocks: Iterable[Array], n_rows: int) -> list[Array]:
    """Read blocks until they have at least `n_rows` rows or the stream ends."""
    first_blocks, n_read = [], 0
    for block in blocks:
        first_blocks.append(block)
        n_read += block.shape[0]
        if n_read >= n_rows:
            break
    if not first_blocks:
        raise no_blocks_error()
    return first_blocks
