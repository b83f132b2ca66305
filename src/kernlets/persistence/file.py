"""The model file: safetensors, with everything that is no array in its metadata.

A safetensors file is a length, a JSON header and the bytes of the arrays. The header's
``__metadata__`` holds, as text,

* ``format``: "kernlets-model", and ``format_version``
* ``library_version``, ``sklearn_version``: what wrote the file
* ``checksum``: SHA-256 of the whole file with these 64 digits set to zero
* ``tree``: parameters, attributes and class names as JSON, see `codec.py`

The same model gives the same bytes.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import sklearn
from safetensors import numpy as safetensors

from .. import __version__
from .atomic import atomic_write
from .codec import Decoder, Encoder, PersistenceError
from .objects import OBJECTS, UnknownClassError
from .values import VALUES

FORMAT = "kernlets-model"
FORMAT_VERSION = 1
CODECS = (*OBJECTS, *VALUES)  # objects first: a named tuple is a tuple, too
BLANK = "0" * 64
DAMAGED = "is damaged or cut short: copy or save it again"


class ModelFileError(ValueError):
    """A file that cannot be loaded: one line with the file and the remedy."""

    def __init__(self, path: str | Path, problem: object) -> None:
        super().__init__(" ".join(f"{path}: {problem}".split()))


def save(model: Any, path: str | Path) -> None:
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
        ever seen.

    Raises
    ------
    PersistenceError
        Naming the part that cannot be saved.
    """
    data = to_bytes(model)
    with atomic_write(path) as file:
        file.write(data)


def load(path: str | Path) -> Any:
    """Load a model that `save` wrote. No code from the file is run.

    Raises
    ------
    ModelFileError
        If the file is no model, cut short, changed in any byte, or of a later format.
    """
    data = Path(path).read_bytes()
    return _model(path, data, _verified(path, data))


def info(path: str | Path) -> dict[str, Any]:
    """What is in a model file: versions, checksum, model, classes, arrays."""
    data = Path(path).read_bytes()
    metadata = _verified(path, data)
    model = _model(path, data, metadata)
    classes = getattr(model, "classes_", None)
    return {
        **{key: value for key, value in metadata.items() if key != "tree"},
        "bytes": len(data),
        "model": " ".join(repr(model).split()),
        "n_features": getattr(model, "n_features_in_", None),
        "classes": None if classes is None else classes.tolist(),
        "arrays": _shapes(data),
    }


def to_bytes(model: Any) -> bytes:
    """The content of a model file."""
    encoder = Encoder(CODECS)
    try:
        tree = encoder.encode(model)
    except RecursionError:
        raise PersistenceError("", "it contains itself") from None
    if not isinstance(tree, dict) or "class" not in tree:
        raise PersistenceError("", f"a {type(model).__name__} is no estimator")
    metadata = {
        "format": FORMAT,
        "format_version": str(FORMAT_VERSION),
        "library_version": __version__,
        "sklearn_version": sklearn.__version__,
        "checksum": BLANK,
        "tree": json.dumps(tree, allow_nan=False),
    }
    head, arrays = _with_metadata(safetensors.save(encoder.tensors), metadata)
    digest = _field(_digest(head, arrays))
    return b"".join([head.replace(_field(BLANK), digest, 1), arrays])


def _with_metadata(plain: bytes, metadata: dict[str, str]) -> tuple[bytes, memoryview]:
    """Header and arrays, with the metadata first and in order.

    safetensors would shuffle them, and each file of one model would differ.
    """
    head, arrays = _split(plain)
    header = {"__metadata__": metadata, **json.loads(head[8:])}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # arrays stay aligned
    return len(text).to_bytes(8, "little") + text, arrays


def _split(data: bytes) -> tuple[bytes, memoryview]:
    """Length and header, and the bytes of the arrays."""
    end = 8 + int.from_bytes(data[:8], "little")
    return data[:end], memoryview(data)[end:]


def _field(digest: str) -> bytes:
    """The checksum as it stands in the header."""
    return f'"checksum":"{digest}"'.encode()


def _digest(head: bytes, arrays: memoryview) -> str:
    sha = hashlib.sha256(head)
    sha.update(arrays)
    return sha.hexdigest()


def _verified(path: str | Path, data: bytes) -> dict[str, str]:
    """The metadata of an intact model file of a version that can be read."""
    head, arrays = _split(data)
    metadata = _metadata(path, head)
    version = str(metadata.get("format_version"))
    if not (version.isascii() and version.isdecimal()):
        raise ModelFileError(path, DAMAGED)
    if int(version) > FORMAT_VERSION:
        raise ModelFileError(
            path,
            f"file version {version}, this library reads up to {FORMAT_VERSION}: "
            "upgrade kernlets",
        )
    checksum = str(metadata.get("checksum"))
    blank = head.replace(_field(checksum), _field(BLANK), 1)
    if _digest(blank, arrays) != checksum:
        raise ModelFileError(path, DAMAGED)
    return metadata


def _metadata(path: str | Path, head: bytes) -> dict[str, Any]:
    start = f'{{"__metadata__":{{"format":"{FORMAT}",'.encode()
    if not head[8:].startswith(start):
        raise ModelFileError(path, "is not a model file: write one with kernlets.save")
    try:
        return dict(json.loads(head[8:])["__metadata__"])
    except (ValueError, TypeError, LookupError, RecursionError) as error:
        raise ModelFileError(path, DAMAGED) from error


def _model(path: str | Path, data: bytes, metadata: dict[str, str]) -> Any:
    try:
        decoder = Decoder(CODECS, safetensors.load(data))
        return decoder.decode(json.loads(metadata["tree"]))
    except UnknownClassError as error:
        raise ModelFileError(path, error) from error
    except Exception as error:  # a file made by hand can be wrong in any way
        written = (
            f"kernlets {metadata.get('library_version')} and scikit-learn "
            f"{metadata.get('sklearn_version')}"
        )
        raise ModelFileError(
            path,
            f"cannot be rebuilt ({type(error).__name__}: {error}): it was written by "
            f"{written}, load it with these or fit the model again",
        ) from error


def _shapes(data: bytes) -> dict[str, str]:
    """Type and shape of each array by its place in the model."""
    header = json.loads(_split(data)[0][8:])
    return {
        name: f"{array['dtype']} {tuple(array['shape'])}"
        for name, array in header.items()
        if name != "__metadata__"
    }
