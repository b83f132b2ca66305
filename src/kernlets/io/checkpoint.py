"""States of unfinished fits: with ``options(checkpoint=FOLDER)`` a fit can be resumed.

A fit makes its checkpoint with `Checkpoint.of` and passes it to `iterate`, which starts
from the `state` that it finds there and calls `keep` after each iteration. Without
the option `state` is None and `keep` does nothing. `models.py` writes the files.
"""

from __future__ import annotations

import hashlib
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from .. import __version__
from ..config import CheckpointFolder, options
from ..contracts import Array
from ..data.rows import sum_rows
from ..numerics.arrays import device_text, is_array, to_numpy
from ..schema import check
from .atomic_write import remove_abandoned
from .models import CheckpointError, load_state, save_state

WRITING_SHARE = 0.05  # share of the time that may be spent on writing
BLOCK_ROWS = 4096  # constant, so that digests do not depend on memory or threads
#: Parameters that do not change the result.
WITHOUT_EFFECT = ("callback", "memory", "sparse_output", "verbose")


class Checkpoint:
    """The state of one fit in a file, if the options name a folder for it."""

    def __init__(
        self,
        path: Path | None = None,
        fit_facts: Any = None,
        folder: CheckpointFolder | None = None,
    ) -> None:
        self._path, self._fit_facts, self._folder = path, fit_facts, folder
        self._due = 0.0
        self.state = None if path is None else _load_saved_state(path, fit_facts)

    @classmethod
    def of(cls, estimator: BaseEstimator, **data: Any) -> Checkpoint:
        """The checkpoint of the next fit of this class in the block of the options.

        `data` are the samples and other arrays, or dictionaries of arrays, on which the
        fit depends besides its parameters; those that are None are left out.
        """
        if options.checkpoint is None:
            return cls()
        name = type(estimator).__name__
        path = Path(f"{options.checkpoint.next_path(name)}.checkpoint")
        fit_facts = {"kernlets": __version__, **_describe_params(estimator)}
        digests = {k: digest(value) for k, value in data.items() if value is not None}
        return cls(path, {"parameters": fit_facts, "data": digests}, options.checkpoint)

    @property
    def has_file(self) -> bool:
        """Whether states are written at all."""
        return self._path is not None

    @property
    def done(self) -> bool:
        """Whether the fit was finished, so that its result is in the file."""
        return self.state is not None and self.state["done"]

    @contextmanager
    def resuming(self) -> Iterator[Any]:
        """Yield the state; any error that it causes becomes a `CheckpointError`."""
        try:
            yield self.state
        except Exception as error:  # a file made by hand can be wrong in any way
            raise _as_checkpoint_error(self._path, error) from error

    def keep(self, done: bool = False, **state: Any) -> None:
        """Write the state, unless writing would take more than its share of the time.

        A state that is `done` is always written. If writing fails there is one warning,
        and the fit continues.
        """
        start = time.perf_counter()
        if self._path is None or not (done or start >= self._due):
            return
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            facts = {"about": self._fit_facts, "done": done}
            save_state({**facts, **state}, self._path)
        except OSError as error:
            if self._folder is None or self._folder.first_failure():
                warnings.warn(
                    f"{self._path}: cannot be written ({error.strerror}): the fit "
                    "continues and tries again with its next state",
                    stacklevel=2,
                )
        end = time.perf_counter()
        self._due = end + (end - start) / WRITING_SHARE


def fitted_attributes(estimator: BaseEstimator) -> dict[str, Any]:
    """Attributes that a fit has set so far, for learners that keep state in them."""
    return {name: v for name, v in vars(estimator).items() if name.endswith("_")}


def branches(name: str, n: int) -> list[CheckpointFolder | None]:
    """Folders for n fits that run in parallel, each for its own block of options."""
    if options.checkpoint is None:
        return [None] * n
    folder = options.checkpoint.next_path(name)
    return [options.checkpoint.branch(folder / str(i)) for i in range(n)]


def learned_fields(dictionary: Any) -> dict[str, Any]:
    """Fields of a dictionary that learning may change, for `dataclasses.replace`."""
    names = {field.name for field in fields(dictionary)} - {*dictionary.constant_fields}
    return {name: getattr(dictionary, name) for name in sorted(names)}


def fitting(value: Any, like: Any, free: str = "") -> Any:
    """Return a value from a checkpoint, or refuse it if it has other sizes than `like`.

    Arrays must have the shape and type of `like`. Objects must meet their declarations
    (see `schema`) and have the sizes of `like`, but for the letters in `free`.
    """
    if is_array(like):
        facts = like.shape, like.dtype
        fits = is_array(value) and (value.shape, value.dtype) == facts
    else:
        ours, theirs = check(like), check(value)
        shared = ours.keys() - {*free}
        fits = all(ours[letter] == theirs.get(letter) for letter in shared)
    if not fits:
        raise ValueError("it has arrays of other sizes or types")
    return value


def _as_checkpoint_error(path: Path | None, error: Exception) -> Exception:
    if isinstance(error, CheckpointError):
        return error
    problem = f"cannot be resumed ({error}): remove it to begin this fit again"
    return CheckpointError(path or "checkpoint", problem)


def _load_saved_state(path: Path, fit_facts: dict[str, Any]) -> dict[str, Any] | None:
    """Load the state in the file, if there is one; raise if it is of another fit."""
    remove_abandoned(path)
    if not path.exists():
        return None
    state = load_state(path)
    if state.get("about") == fit_facts and isinstance(state.get("done"), bool):
        return state
    try:
        old, new = state["about"]["parameters"], fit_facts["parameters"]
        changes = [
            f"{name} was {old.get(name)}, is {new.get(name)}"
            for name in {**old, **new}
            if old.get(name) != new.get(name)
        ]
        if not changes:
            old, new = state["about"]["data"], fit_facts["data"]
            name = next(name for name in new if old.get(name) != new[name])
            changes = [
                f"its {name} had other values, another type, or were on another device"
            ]
    except Exception as error:
        raise _as_checkpoint_error(path, error) from error
    raise CheckpointError(
        path,
        f"is of another fit: {', '.join(changes)}; use the same data and parameters to "
        "resume, or another checkpoint folder",
    )


def _describe_params(estimator: Any) -> dict[str, str]:
    params = estimator.get_params(deep=False)
    if "schedule" in params:  # None and a text stand for an object with a callback
        params["schedule"] = estimator._named_part("schedule", params["schedule"])
    return {
        name: describe_value(v)
        for name, v in params.items()
        if name not in WITHOUT_EFFECT
    }


def describe_value(value: Any) -> str:
    """Return a text that is the same for equal parameters in every process."""
    if isinstance(value, BaseEstimator):
        texts = (f"{k}={text}" for k, text in _describe_params(value).items())
        return f"{type(value).__name__}({', '.join(texts)})"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(describe_value, value))}]"
    if is_array(value):
        return f"array {tuple(value.shape)} {digest(value)[:16]}"
    if isinstance(value, np.random.Generator):
        return f"generator {value.bit_generator.state}"
    if isinstance(value, np.random.RandomState):
        state: Any = value.get_state(legacy=False)["state"]
        return f"random state {state['pos']} {digest(state['key'])[:16]}"
    is_plain = not callable(value) and type(value).__repr__ is not object.__repr__
    if is_plain:
        return repr(value)
    owner = value if hasattr(value, "__qualname__") else type(value)
    return f"{owner.__module__}.{owner.__qualname__}"


def digest(data: Any) -> str:
    """Compute the SHA-256 of rows, blocks of rows, or all arrays in a dictionary."""
    if is_dataclass(data):
        values = [getattr(data, field.name) for field in fields(data)]
        digests = [digest(value).encode() for value in values if is_array(value)]
    elif getattr(data, "ndim", 2):  # blocks have none
        with options(block_rows=BLOCK_ROWS):
            digests = sum_rows(_block_digests, data, row_bytes=0) or []
    else:
        digests = _block_digests(data)
    return hashlib.sha256(b"".join(digests)).hexdigest()


def _block_digests(block: Array) -> list[bytes]:
    """Return the digest in a list, since lists of several blocks can be added."""
    device = device_text(block)
    sha = hashlib.sha256(f"{device} {block.dtype} {tuple(block.shape)}".encode())
    sha.update(np.ascontiguousarray(to_numpy(block)).data)
    return [sha.digest()]
