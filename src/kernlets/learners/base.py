"""The base class of dictionary learners: fit, transform, errors and input checks."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from ..backend.arrays import as_like, is_dask, is_torch, to_numpy
from ..backend.estimator import Estimator
from ..backend.random import generator
from ..backend.rows import (
    Blocks,
    is_blocks,
    joined,
    kept,
    map_rows,
    no_blocks,
    over_blocks,
    over_rows,
    sum_rows,
)
from ..backend.validation import check_rows
from ..config import options
from ..core import Array, AtomUpdate, Dictionary, SparseCoder, SparseCodes
from ..fields import Declared, History, Part, Size, Whole
from ..pursuits import OMP, encode
from ..updates import KSVDUpdate, ParallelKSVDUpdate
from .checkpoint import Checkpoint
from .loop import Monitor, alternate
from .warm_up import PACE

KSVD_UPDATES = [StrOptions({"approximate", "exact", "parallel"}), AtomUpdate]
POSITIVE = Interval(Integral, 1, None, closed="left")
MANY_ROWS = 2000  # rows of a stream to start from; default: a quarter as many atoms


class DictionaryLearner(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator
):
    """Alternates between sparse codes and atoms; subclasses update the atoms.

    A subclass defines `_first_dictionary` and `_atom_update`. It must have the
    parameters named in `_parameter_constraints`.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [POSITIVE, None],
        "n_nonzero_coefs": [POSITIVE, None],
        "coder": [SparseCoder, None],
        "max_iter": [POSITIVE],
        "random_state": ["random_state", np.random.Generator],
        "verbose": ["verbose"],
        "callback": [Callable, None],
        "sparse_output": ["boolean"],
    }

    _declared: ClassVar[Declared] = {
        "n_features_in_": Size("p"),
        "dictionary_": Part(Dictionary, m="m", p="p"),
        "coder_": Part(SparseCoder),
        "history_": History(),
        "n_iter_": Whole(),
    }

    _width: int = 5
    """Default number of non-zeros; a classifier sets another for all its classes."""
    _few: int = 0
    """Default number of atoms of small sets of samples, and all of fewer samples.

    A classifier raises it: a class of five samples is told apart by these five, not by
    one mean. A dictionary on its own is there to be shorter than its samples.
    """

    @abstractmethod
    def _first_dictionary(self, X: Array, rng: np.random.Generator) -> Dictionary:
        """The dictionary before the first iteration."""

    @abstractmethod
    def _atom_update(self) -> AtomUpdate:
        """The rule that updates the atoms."""

    def fit(self, X: Any, y: Any = None) -> DictionaryLearner:
        """Learn a dictionary for the rows of X; y is ignored.

        If the update needs only sums over samples (`MOD`, ``update="parallel"``), X may
        be a Dask array or dataframe, a list of row blocks or `Blocks`. The first atoms
        then come from the first rows of the blocks.
        """
        self._validate_params()
        X, first = self._training_rows(X)
        rng = generator(self.random_state)
        with kept(X) as rows:
            start = self._first_dictionary(rows if first is X else first, rng)
            self.dictionary_ = self._learn(start, rows, first.shape[1], rng)
        return self

    def _training_rows(self, X: Any) -> tuple[Any, Array]:
        """Check X; returns it as array or blocks, and rows to draw first atoms from."""
        if not is_blocks(X):
            all_codes = self._needs_all_codes()
            lazy = self._works_from_sums() if is_dask(X) else not all_codes
            X = check_rows(self, X, reset=True, lazy=lazy, whole=all_codes)
            return X, X
        self._check_blocks(X)
        once = isinstance(X, Iterator)
        taken = _leading(X, self._n_first_rows())
        first = joined(self._checked_blocks(taken))
        if once and options.checkpoint is not None:
            raise ValueError(
                "X is an iterator that can be read only once, but a checkpoint reads "
                "the samples first: pass a list of blocks or kernlets.Blocks"
            )

        def checked() -> Iterator[Array]:
            source = chain(taken, X) if once else X
            like = first[:0]  # later blocks may come as another type
            return (check_rows(self, b, streamed=True, like=like) for b in source)

        return Blocks(checked), first

    def _checked_blocks(self, blocks: list[Any]) -> list[Array]:
        """Check the first blocks of a stream; convert all to the type of the first."""
        head = check_rows(self, blocks[0], reset=True)
        rest = (check_rows(self, block, like=head[:0]) for block in blocks[1:])
        return [head, *rest]

    def _n_first_rows(self) -> int:
        """Number of rows of a stream to choose the first atoms from."""
        if self.n_components is None:
            return MANY_ROWS if isinstance(self.init, str) else 1
        return 2 * int(self.n_components)  # some rows may be zero

    def _check_blocks(self, X: Any) -> None:
        """Refuse blocks of rows if this learner cannot learn from them."""
        if isinstance(X, Iterator) and self.max_iter > 1:
            raise ValueError(
                "X is an iterator that can be read only once: pass a list of blocks, "
                "or kernlets.Blocks(function) with a function that returns one, or set "
                "max_iter=1"
            )
        if self._needs_all_codes():
            raise ValueError(
                f"{type(self).__name__} with update={self.update!r} needs all codes at "
                "once and cannot learn from blocks: set update='parallel' or use MOD"
            )

    def _needs_all_codes(self) -> bool:
        return self._atom_update().needs == "codes"

    def _works_from_sums(self) -> bool:
        """Whether sums over samples suffice, so that these may be stored anywhere."""
        return not self._needs_all_codes()

    def _learn(
        self, start: Dictionary, X: Array, n_features: int, rng: np.random.Generator
    ) -> Any:
        """Run the alternation, keep its history, and return the last dictionary."""
        self.coder_ = self._coder(start.n_atoms, n_features)
        name = type(self).__name__
        pace = {key: getattr(self, key) for key in PACE if hasattr(self, key)}
        shown = bool(self.verbose), self.callback, name
        monitor = Monitor(self.max_iter, *shown, **pace)
        update = self._atom_update()
        checkpoint = Checkpoint.of(self, samples=X, start=start)
        learned = alternate(start, X, self.coder_, update, rng, monitor, checkpoint)
        self.history_ = monitor.history
        self.n_iter_ = monitor.n_iter
        return learned

    def _checked(self, X: Any) -> Array:
        """Check new samples and convert them as the dictionary needs them."""
        return check_rows(self, X, lazy=True, like=self._model_array)

    @property
    def _model_array(self) -> Array:
        """New rows are converted to the library, device and dtype of this array."""
        return self.dictionary_.weights

    def _new_rows(self, X: Any) -> Any:
        """Check new samples; blocks are checked as they are read."""
        return over_blocks(self._checked, X) if is_blocks(X) else self._checked(X)

    def _n_atoms(self, n_usable: int, n_features: int) -> int:
        """`n_components`, or its default for the given numbers."""
        if self.n_components is None:
            wanted = max(n_usable // 4, min(n_usable, self._few))
            return max(1, min(2 * n_features, wanted, 500))
        return int(self.n_components)

    def _coder(self, n_atoms: int, n_features: int) -> SparseCoder:
        if self.coder is not None:
            if self.n_nonzero_coefs is not None:
                raise ValueError(
                    "n_nonzero_coefs and coder are both given: set the sparsity in "
                    "the coder and leave n_nonzero_coefs out"
                )
            return self.coder
        width = self.n_nonzero_coefs
        if width is None:
            width = min(self._width, max(1, n_features // 4), n_atoms)
        elif width > n_atoms:
            raise ValueError(
                f"n_nonzero_coefs={width} is more than the {n_atoms} atoms: lower it "
                "or raise n_components"
            )
        return OMP(width)

    @property
    def _n_features_out(self) -> int:
        return self.dictionary_.n_atoms

    def encode(self, X: Any) -> SparseCodes:
        """Sparse codes of the rows of X, with their squared residuals."""
        check_is_fitted(self)
        if is_dask(X):
            raise TypeError(
                "encode returns codes in memory, but X is a Dask collection: use "
                "transform, which returns a Dask array"
            )
        return encode(self.dictionary_, self.coder_, self._checked(X))

    def transform(self, X: Any) -> Any:
        """Codes of the rows of X: dense (n, m), or CSR with ``sparse_output``.

        The result is an iterable of codes for an iterable of blocks, a Dask array for a
        Dask array, and `LazyRows` for a memory map whose dense codes do not fit into
        the memory option.
        """
        check_is_fitted(self)
        if self.sparse_output and not (is_blocks(X) or is_dask(X)):
            return self.encode(X).tocsr()
        coded = partial(_coded, self.dictionary_, self.coder_, self.sparse_output)
        row_bytes = 2 * self.dictionary_.row_bytes
        return map_rows(coded, self._new_rows(X), row_bytes)

    def reconstruction_error(self, X: Any, per_sample: bool = False) -> Any:
        """Mean squared residual ‖x − Dγ‖² of the rows of X, or one per sample."""
        check_is_fitted(self)
        loop, errors = (map_rows, _errors) if per_sample else (sum_rows, _error_sums)
        errors = partial(errors, self.dictionary_, self.coder_)
        found = loop(errors, self._new_rows(X), self.dictionary_.row_bytes)
        if found is None:
            raise no_blocks()
        return found if per_sample else float(found[0] / found[1])

    def score(self, X: Any, y: Any = None) -> float:
        """The negative reconstruction error, so that grid search can rank learners."""
        return -self.reconstruction_error(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "dictionary_")


def _coded(
    dictionary: Dictionary, coder: SparseCoder, sparse: bool, X: Array
) -> Any:
    codes = encode(dictionary, coder, X)
    return codes.tocsr() if sparse else codes.toarray()


def _errors(dictionary: Dictionary, coder: SparseCoder, X: Array) -> Array:  # (n,)
    return encode(dictionary, coder, X).residual


def _error_sums(dictionary: Dictionary, coder: SparseCoder, X: Array) -> np.ndarray:
    """Sum and count of the squared residuals."""
    residual = to_numpy(_errors(dictionary, coder, X))
    return np.array([residual.sum(dtype=np.float64), len(residual)])


def _leading(blocks: Iterable[Array], n_rows: int) -> list[Array]:
    """The first blocks, until they have at least `n_rows` rows or the stream ends."""
    taken, count = [], 0
    for block in blocks:
        taken.append(block)
        count += block.shape[0]
        if count >= n_rows:
            break
    if not taken:
        raise no_blocks()
    return taken


def ksvd_update(
    update: str | AtomUpdate,
    coder: SparseCoder | None = None,
    positive_atoms: bool = False,
) -> AtomUpdate:
    """The K-SVD update for a name in `KSVD_UPDATES`; an update stays as it is.

    If the coder finds non-negative codes, so do rank-one fits.
    """
    if isinstance(update, AtomUpdate):
        return update
    if update == "parallel":
        return ParallelKSVDUpdate(positive_atoms=positive_atoms)
    return KSVDUpdate(
        exact=update == "exact",
        positive=bool(getattr(coder, "positive", False)),
        positive_atoms=positive_atoms,
    )


def over_codes(f: Callable[..., Array], codes: Any, weights: Array) -> Any:
    """f(weights, codes) wherever the codes are: in memory, in blocks, on a cluster."""
    return over_rows(partial(f, weights), codes, row_bytes=16 * sum(weights.shape))


def dense_codes(codes: Any, like: Array) -> Array:
    """Turn a user's codes (dense, sparse or SparseCodes) into a matrix to multiply."""
    if is_torch(like) and (sparse.issparse(codes) or isinstance(codes, SparseCodes)):
        codes = codes.toarray()
    if isinstance(codes, SparseCodes):
        return codes.tocsr()
    return codes if sparse.issparse(codes) else as_like(codes, like)
