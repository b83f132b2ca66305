"""Models in files, and the states of unfinished fits.

Both are written in one step and checked before use; see `container.py`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sklearn.base import BaseEstimator

from ..contracts import Dictionary
from .atomic_write import atomic_write
from .codec import PersistenceError
from .container import (
    FileError,
    Kind,
    has_format,
    notes_in,
    pack,
    split_header,
    unpack,
    verify,
)

FORMAT_VERSION = 1
FOREIGN_SUFFIXES = frozenset(
    ".mat .npy .npz .csv .tsv .txt .pkl .pickle .joblib .skops .h5 .hdf5 .parquet "
    ".feather .arrow .json .yaml .yml .xml .onnx .pt .pth .html .md .zip "
    ".gz .tar .png .jpg .jpeg .tif .tiff .pdf .py .xlsx".split()
)
"""Ends of names that promise a file of another kind."""
ELSEWHERE = {".onnx": ", or make it one with `kernlets export` or to_onnx"}


class ModelFileError(FileError):
    """A model file that cannot be loaded."""


class CheckpointError(FileError):
    """A checkpoint that cannot be resumed from."""


MODEL = Kind(
    "kernlets-model",
    FORMAT_VERSION,
    (BaseEstimator, Dictionary),
    devices=False,
    error=ModelFileError,
    foreign="is not a model file: write one with kernlets.save",
    damaged="is damaged or cut short: copy or save it again",
)
CHECKPOINT = Kind(
    "kernlets-checkpoint",
    1,
    (dict,),
    devices=True,
    error=CheckpointError,
    foreign="is not a checkpoint: name a folder of their own for checkpoints",
    damaged="is damaged or cut short: remove it to begin this fit again",
)


def save(model: Any, path: str | Path, *, notes: dict[str, str] | None = None) -> None:
    """Save a model, fitted or not, in one file.

    Parameters
    ----------
    model : estimator or dictionary
        Made of classes of this library and the few of scikit-learn named in
        `kernlets.registry.SKLEARN`, pipelines included. Functions (a `Callable`
        kernel) cannot be saved; a ``callback`` is left out with a warning. Torch
        tensors are saved as NumPy arrays.
    path : path
        Replaced in one step when all is written, so that no half-written file is
        ever seen. A name that ends like a file of another kind, such as ".npz" or
        ".pkl", is refused.
    notes : dict of str, optional
        Facts to keep in the file beside the model, such as its accuracy, for
        ``kernlets info``; `load` leaves them out.

    Raises
    ------
    PersistenceError
        Naming the part that cannot be saved.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from kernlets import RBF, NystroemMap, load, save
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(NystroemMap(RBF(sigma=2.0)), Path(folder) / "map.klm")
    ...     load(Path(folder) / "map.klm")
    NystroemMap(kernel=RBF(sigma=2.0))
    """
    if not isinstance(model, MODEL.holds):
        raise PersistenceError("", f"a {type(model).__name__} is no estimator")
    _check_notes(notes or {})
    refuse_foreign_name(path)
    _write(pack(model, MODEL, notes), path)


def refuse_foreign_name(path: str | Path) -> None:
    """Raise for a name that promises a file of another kind."""
    suffix = Path(path).suffix.lower()
    if suffix in FOREIGN_SUFFIXES:
        raise ValueError(
            f"{path}: a model file is no {suffix} file, and other programs could not "
            f"read it: name it {Path(path).stem}.kernlets{ELSEWHERE.get(suffix, '')}"
        )


def _check_notes(notes: dict[str, str]) -> None:
    for name, text in notes.items():
        if not (isinstance(name, str) and isinstance(text, str)):
            raise PersistenceError("", f"notes are text, but {name!r} is {text!r}")


def load(path: str | Path) -> Any:
    """Load a model that `save` wrote.

    No code from the file is run, memory is bounded by a small multiple of its size, and
    the model is one that `fit` could have made; docs/model-format.md has the details.

    Parameters
    ----------
    path : path
        A file that `save` wrote.

    Returns
    -------
    estimator or dictionary
        The model, equal to the one that was saved.

    Raises
    ------
    ModelFileError
        If the file is no model, cut short, changed in any byte, of a later format, or
        made by hand in a way that no model is.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from kernlets import OMP, load, save
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(OMP(3), Path(folder) / "coder.klm")
    ...     load(Path(folder) / "coder.klm")
    OMP(n_nonzero_coefs=3)
    """
    return _read(path, MODEL)


def save_state(state: dict[str, Any], path: str | Path) -> None:
    """Write a checkpoint: named values of the types a model file can hold."""
    _write(pack(state, CHECKPOINT), path)


def load_state(path: str | Path) -> dict[str, Any]:
    """Read what `save_state` wrote, or raise a `CheckpointError`."""
    return _read(path, CHECKPOINT)


def is_model(path: str | Path) -> bool:
    """Whether the beginning of a file says that it is a model."""
    with Path(path).open("rb") as file:
        return has_format(file.read(100), MODEL)


def info(path: str | Path) -> dict[str, Any]:
    """Return the content of a model file: versions, notes, model, classes, arrays."""
    data = Path(path).read_bytes()
    metadata = verify(path, data, MODEL)
    model = unpack(path, data, metadata, MODEL)
    return {
        **{key: value for key, value in metadata.items() if key != "tree"},
        "notes": notes_in(path, metadata, MODEL),
        "bytes": len(data),
        **_describe_model(path, model),
        "arrays": _shapes(data),
    }


def _describe_model(path: str | Path, model: Any) -> dict[str, Any]:
    classes = getattr(model, "classes_", None)
    names = getattr(model, "feature_names_in_", None)
    try:
        return {
            "model": " ".join(repr(model).split()),
            "n_features": getattr(model, "n_features_in_", None),
            "feature_names": None if names is None else names.tolist(),
            "classes": None if classes is None else classes.tolist(),
        }
    except Exception as error:  # attributes may be anything in a file made by hand
        raise ModelFileError(path, f"holds no valid model ({error})") from error


def _write(data: bytes, path: str | Path) -> None:
    with atomic_write(path) as file:
        file.write(data)


def _read(path: str | Path, kind: Kind) -> Any:
    data = Path(path).read_bytes()
    return unpack(path, data, verify(path, data, kind), kind)


def _shapes(data: bytes) -> dict[str, str]:
    """Return type and shape of every array by its path in the model."""
    header = json.loads(split_header(data)[0][8:])
    return {
        name: f"{array['dtype']} {tuple(array['shape'])}"
        for name, array in header.items()
        if name != "__metadata__"
    }
