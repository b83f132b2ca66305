"""`save` and `load`: models in files, and the states of unfinished fits.

A file is in the format safetensors: a length, a JSON header and the bytes of the
arrays. The header's ``__metadata__`` holds, as text,

* ``format``: the name of the `Kind`, and ``format_version``
* ``library_version``, ``sklearn_version``: what wrote the file
* ``checksum``: SHA-256 of the whole file with these 64 digits set to zero
* ``tree``: the value as JSON, see `encode.py`
* ``notes``: facts beside the value, names and text as JSON, if there are any

The same value gives the same bytes. They are written in one step, and checked before
anything is built from them.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sklearn
from safetensors import numpy as safetensors
from sklearn.base import BaseEstimator

from .. import __version__
from ..contracts import Dictionary
from ..numerics.text import printable
from .atomic_write import atomic_write
from .decode import Decoder, MemoryBudget, check_outline, parse_json
from .encode import Encoder, PersistenceError

FORMAT_VERSION = 1
BLANK = "0" * 64
MAX_HEADER = 100_000_000  # safetensors does not read longer ones
MAX_MESSAGE = 400  # characters; a file must not fill the screen
FOREIGN_SUFFIXES = frozenset(
    ".mat .npy .npz .csv .tsv .txt .pkl .pickle .joblib .skops .h5 .hdf5 .parquet "
    ".feather .arrow .json .yaml .yml .xml .onnx .pt .pth .html .md .zip "
    ".gz .tar .png .jpg .jpeg .tif .tiff .pdf .py .xlsx".split()
)
"""Ends of names that promise a file of another kind."""


class FileError(ValueError):
    """A file that cannot be read: one short line with the file and the remedy."""

    def __init__(self, path: str | Path, problem: object) -> None:
        text = printable(problem)
        if len(text) > MAX_MESSAGE:
            text = f"{text[:MAX_MESSAGE]} ..."
        super().__init__(f"{path}: {text}")


class ModelFileError(FileError):
    """A model file that cannot be loaded."""


class CheckpointError(FileError):
    """A checkpoint that cannot be resumed from."""


@dataclass(frozen=True)
class Kind:
    """A kind of files: its name and version in the header, and what errors say."""

    format: str
    version: int
    holds: tuple[type, ...]  # what the value may be
    devices: bool  # whether torch tensors are restored on their devices
    error: type[FileError]
    foreign: str  # the error for a file of another kind
    damaged: str


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
    for name, text in (notes or {}).items():
        if not (isinstance(name, str) and isinstance(text, str)):
            raise PersistenceError("", f"notes are text, but {name!r} is {text!r}")
    refuse_foreign_name(path)
    data = pack(model, MODEL, notes)
    with atomic_write(path) as file:
        file.write(data)


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
    return unpack(path, Path(path).read_bytes(), MODEL)[0]


def save_state(state: dict[str, Any], path: str | Path) -> None:
    """Write a checkpoint: named values of the types a model file can hold."""
    data = pack(state, CHECKPOINT)
    with atomic_write(path) as file:
        file.write(data)


def load_state(path: str | Path) -> dict[str, Any]:
    """Read what `save_state` wrote, or raise a `CheckpointError`."""
    return unpack(path, Path(path).read_bytes(), CHECKPOINT)[0]


def refuse_foreign_name(path: str | Path) -> None:
    """Raise for a name that promises a file of another kind."""
    suffix = Path(path).suffix.lower()
    if suffix in FOREIGN_SUFFIXES:
        export = ", or make it one with `kernlets export` or to_onnx"
        raise ValueError(
            f"{path}: a model file is no {suffix} file, and other programs could not "
            f"read it: name it {Path(path).stem}.kernlets"
            f"{export if suffix == '.onnx' else ''}"
        )


def is_model(path: str | Path) -> bool:
    """Whether the beginning of a file says that it is a model."""
    with Path(path).open("rb") as file:
        return _has_format(file.read(100), MODEL)


def info(path: str | Path) -> dict[str, Any]:
    """Return the content of a model file: versions, notes, model, classes, arrays."""
    data = Path(path).read_bytes()
    model, metadata = unpack(path, data, MODEL)
    notes_text = metadata.get("notes", "{}")
    try:
        notes = parse_json(notes_text, MemoryBudget(len(notes_text)))
        if not all(isinstance(text, str) for text in notes.values()):
            raise ValueError("notes are text")
    except (ValueError, AttributeError, RecursionError):
        raise ModelFileError(path, MODEL.damaged) from None
    classes = getattr(model, "classes_", None)
    names = getattr(model, "feature_names_in_", None)
    header = json.loads(_split(data)[0][8:])
    try:
        return {
            **{key: value for key, value in metadata.items() if key != "tree"},
            "notes": notes,
            "bytes": len(data),
            "model": " ".join(repr(model).split()),
            "n_features": getattr(model, "n_features_in_", None),
            "feature_names": None if names is None else names.tolist(),
            "classes": None if classes is None else classes.tolist(),
            "arrays": {
                name: f"{array['dtype']} {tuple(array['shape'])}"
                for name, array in header.items()
                if name != "__metadata__"
            },
        }
    except Exception as error:  # attributes may be anything in a file made by hand
        raise ModelFileError(path, f"holds no valid model ({error})") from error


# ---------------------------------------------------------------- values and bytes


def pack(value: Any, kind: Kind, notes: dict[str, str] | None = None) -> bytes:
    """Return the content of a file with this value."""
    encoder = Encoder(kind.devices)
    try:
        tree = json.dumps(encoder.encode(value), allow_nan=False)
    except RecursionError:
        raise PersistenceError("", "it contains itself") from None
    metadata = {
        "format": kind.format,
        "format_version": str(kind.version),
        "library_version": __version__,
        "sklearn_version": sklearn.__version__,
        "checksum": BLANK,
        "tree": tree,
        **({"notes": json.dumps(notes)} if notes else {}),
    }
    plain_head, arrays = _split(safetensors.save(encoder.tensors))
    # safetensors would shuffle the metadata, so that files of equal values would differ
    header = {"__metadata__": metadata, **json.loads(plain_head[8:])}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # arrays stay aligned
    try:  # refuse to write a file that could not be read
        if len(text) > MAX_HEADER:
            raise ValueError("the header would be too long")
        check_outline(text, MemoryBudget(len(text)))
        budget = MemoryBudget(len(text) + arrays.nbytes)
        check_outline(tree.encode(), budget)
        budget.take(encoder.text_bytes + arrays.nbytes)
    except ValueError as error:
        problem = f"it has too many parts that are no arrays ({error})"
        raise PersistenceError("", problem) from None
    head = len(text).to_bytes(8, "little") + text
    digest = _checksum_field(_sha256(head, arrays))
    return b"".join([head.replace(_checksum_field(BLANK), digest, 1), arrays])


def unpack(path: str | Path, data: bytes, kind: Kind) -> tuple[Any, dict[str, str]]:
    """Verify the content of a file; return the value and the metadata."""
    metadata = _verified_metadata(path, data, kind)
    try:
        budget = MemoryBudget(len(data))
        tree = parse_json(metadata["tree"], budget)
        decoder = Decoder(safetensors.load(data), budget, kind.devices)
        value = decoder.decode(tree)
        decoder.check_all_used()
        if not isinstance(value, kind.holds):
            raise TypeError(f"it holds a {type(value).__name__}")
        return value, metadata
    except Exception as error:  # a file made by hand can be wrong in any way
        is_plain = isinstance(error, ValueError)
        reason = f"{error}" if is_plain else f"{type(error).__name__}: {error}"
        raise kind.error(
            path,
            f"cannot be rebuilt ({reason}): it was written by kernlets "
            f"{metadata.get('library_version')} and scikit-learn "
            f"{metadata.get('sklearn_version')}, load it with these or fit the model "
            "again",
        ) from None  # the error may contain text from the file


def _verified_metadata(path: str | Path, data: bytes, kind: Kind) -> dict[str, str]:
    """Return the metadata; raise if the file is damaged or of a later version."""
    head, arrays = _split(data)
    if not _has_format(head, kind):
        raise kind.error(path, kind.foreign)
    try:
        metadata = parse_json(head[8:], MemoryBudget(len(head)))["__metadata__"]
        are_texts = all(isinstance(text, str) for text in metadata.values())
        if not (are_texts and re.fullmatch("[0-9]{1,9}", metadata["format_version"])):
            raise ValueError("no metadata")
    except Exception:  # a damaged header can be wrong in any way
        raise kind.error(path, kind.damaged) from None
    version, checksum = metadata["format_version"], metadata.get("checksum", "")
    if int(version) > kind.version:
        raise kind.error(
            path,
            f"file version {version}, this library reads up to {kind.version}: "
            "upgrade kernlets",
        )
    is_intact = re.fullmatch("[0-9a-f]{64}", checksum) and checksum == _sha256(
        head.replace(_checksum_field(checksum), _checksum_field(BLANK), 1), arrays
    )
    if not is_intact:
        raise kind.error(path, kind.damaged)
    return metadata


def _split(data: bytes) -> tuple[bytes, memoryview]:
    """Split a file into length and header, and the bytes of the arrays."""
    end = 8 + int.from_bytes(data[:8], "little")
    return data[:end], memoryview(data)[end:]


def _has_format(head: bytes, kind: Kind) -> bool:
    """Whether the beginning of a file names this kind."""
    start = f'{{"__metadata__":{{"format":"{kind.format}",'.encode()
    return head[8:].startswith(start)


def _checksum_field(digest: str) -> bytes:
    """Return the checksum as it stands in the header."""
    return f'"checksum":"{digest}"'.encode()


def _sha256(head: bytes, arrays: memoryview) -> str:
    sha = hashlib.sha256(head)
    sha.update(arrays)
    return sha.hexdigest()
