"""Values in safetensors files, with everything except arrays in the metadata.

A safetensors file is a length, a JSON header and the bytes of the arrays. The header's
``__metadata__`` holds, as text,

* ``format``: the name of the `Kind`, and ``format_version``
* ``library_version``, ``sklearn_version``: what wrote the file
* ``checksum``: SHA-256 of the whole file with these 64 digits set to zero
* ``tree``: the value as JSON, see `codec.py`
* ``notes``: facts beside the value, names and text as JSON, if there are any

The same value gives the same bytes. What models and checkpoints are is in `file.py`.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sklearn
from safetensors import numpy as safetensors

from .. import __version__
from ..numerics.text import printable
from .codec import Decoder, Encoder, PersistenceError
from .limits import MAX_DIGITS, MemoryBudget, check_outline
from .objects import OBJECTS, UnknownClassError
from .values import VALUES

CODECS = (*OBJECTS, *VALUES)  # objects first: a named tuple is a tuple, too
BLANK = "0" * 64
MAX_HEADER = 100_000_000  # safetensors does not read longer ones
MAX_MESSAGE = 400  # characters; a file must not fill the screen


class FileError(ValueError):
    """A file that cannot be read: one short line with the file and the remedy."""

    def __init__(self, path: str | Path, problem: object) -> None:
        text = printable(problem)
        if len(text) > MAX_MESSAGE:
            text = f"{text[:MAX_MESSAGE]} ..."
        super().__init__(f"{path}: {text}")


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


def pack(value: Any, kind: Kind, notes: dict[str, str] | None = None) -> bytes:
    """Return the content of a file with this value."""
    encoder = Encoder(CODECS, kind.devices)
    try:
        tree = encoder.encode(value)
    except RecursionError:
        raise PersistenceError("", "it contains itself") from None
    metadata = {
        "format": kind.format,
        "format_version": str(kind.version),
        "library_version": __version__,
        "sklearn_version": sklearn.__version__,
        "checksum": BLANK,
        "tree": json.dumps(tree, allow_nan=False),
        **({"notes": json.dumps(notes)} if notes else {}),
    }
    head, arrays = _with_metadata(safetensors.save(encoder.tensors), metadata)
    try:
        _check_size(head, metadata["tree"], sum(encoder.text_bytes), arrays.nbytes)
    except ValueError as error:
        problem = f"it has too many parts that are no arrays ({error})"
        raise PersistenceError("", problem) from None
    digest = _checksum_field(_sha256(head, arrays))
    return b"".join([head.replace(_checksum_field(BLANK), digest, 1), arrays])


def _check_size(head: bytes, tree: str, n_wide: int, n_arrays: int) -> None:
    """Refuse to write a file that could not be read."""
    if len(head) > MAX_HEADER:
        raise ValueError("the header would be too long")
    check_outline(head[8:], MemoryBudget(len(head)))
    budget = MemoryBudget(len(head) + n_arrays)
    check_outline(tree.encode(), budget)
    budget.take(n_wide + n_arrays)


def _with_metadata(plain: bytes, metadata: dict[str, str]) -> tuple[bytes, memoryview]:
    """Header and arrays, with the metadata first and in order.

    safetensors would shuffle them, so that files of equal values would differ.
    """
    head, arrays = split_header(plain)
    header = {"__metadata__": metadata, **json.loads(head[8:])}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # arrays stay aligned
    return len(text).to_bytes(8, "little") + text, arrays


def split_header(data: bytes) -> tuple[bytes, memoryview]:
    """Split a file into length and header, and the bytes of the arrays."""
    end = 8 + int.from_bytes(data[:8], "little")
    return data[:end], memoryview(data)[end:]


def _checksum_field(digest: str) -> bytes:
    """Return the checksum as it stands in the header."""
    return f'"checksum":"{digest}"'.encode()


def _sha256(head: bytes, arrays: memoryview) -> str:
    sha = hashlib.sha256(head)
    sha.update(arrays)
    return sha.hexdigest()


def verify(path: str | Path, data: bytes, kind: Kind) -> dict[str, str]:
    """Return the metadata of a file; raise if it is damaged or of a later version."""
    head, arrays = split_header(data)
    metadata = _metadata(path, head, kind)
    version = metadata.get("format_version", "")
    if not (version.isascii() and version.isdecimal() and len(version) < 10):
        raise kind.error(path, kind.damaged)
    if int(version) > kind.version:
        raise kind.error(
            path,
            f"file version {version}, this library reads up to {kind.version}: "
            "upgrade kernlets",
        )
    checksum = metadata.get("checksum", "")
    if not (checksum.isascii() and len(checksum) == len(BLANK)):
        raise kind.error(path, kind.damaged)
    blank = head.replace(_checksum_field(checksum), _checksum_field(BLANK), 1)
    if _sha256(blank, arrays) != checksum:
        raise kind.error(path, kind.damaged)
    return metadata


def notes_in(path: str | Path, metadata: dict[str, str], kind: Kind) -> dict[str, str]:
    """Return the notes in the metadata of a verified file."""
    text = metadata.get("notes", "{}").encode("utf-8", "surrogatepass")
    try:
        notes = _parse_json(text, MemoryBudget(len(text)))
        if isinstance(notes, dict) and all(isinstance(v, str) for v in notes.values()):
            return notes
    except (ValueError, RecursionError):
        pass
    raise kind.error(path, kind.damaged)


def has_format(head: bytes, kind: Kind) -> bool:
    """Whether the beginning of a file names this kind."""
    start = f'{{"__metadata__":{{"format":"{kind.format}",'.encode()
    return head[8:].startswith(start)


def _metadata(path: str | Path, head: bytes, kind: Kind) -> dict[str, str]:
    if not has_format(head, kind):
        raise kind.error(path, kind.foreign)
    try:
        metadata = _parse_json(head[8:], MemoryBudget(len(head)))["__metadata__"]
        if all(isinstance(text, str) for text in metadata.values()):
            return metadata
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        pass
    raise kind.error(path, kind.damaged)


def _parse_json(text: bytes, budget: MemoryBudget) -> Any:
    """Parse JSON of moderate size; refuse what readers may interpret differently."""
    check_outline(text, budget)
    return json.loads(
        text,
        object_pairs_hook=_refuse_repeated_names,
        parse_constant=_refuse_constant,
        parse_int=_parse_whole_number,
    )


def _refuse_repeated_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        raise ValueError("a name stands twice")
    return mapping


def _parse_whole_number(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise ValueError(f"a number with {len(digits)} digits")
    return int(digits)


def _refuse_constant(text: str) -> Any:
    raise ValueError(f"{text} is no JSON")


def unpack(path: str | Path, data: bytes, metadata: dict[str, str], kind: Kind) -> Any:
    """Rebuild the value in a verified file."""
    try:
        budget = MemoryBudget(len(data))
        tree = _parse_json(metadata["tree"].encode("utf-8", "surrogatepass"), budget)
        decoder = Decoder(CODECS, safetensors.load(data), budget, kind.devices)
        value = decoder.decode(tree)
        decoder.check_all_used()
        if not isinstance(value, kind.holds):
            raise TypeError(f"it holds a {type(value).__name__}")
        return value
    except UnknownClassError as error:
        raise kind.error(path, error) from None
    except Exception as error:  # a file made by hand can be wrong in any way
        versions = (
            f"kernlets {metadata.get('library_version')} and scikit-learn "
            f"{metadata.get('sklearn_version')}"
        )
        is_plain = isinstance(error, ValueError)
        reason = f"{error}" if is_plain else f"{type(error).__name__}: {error}"
        raise kind.error(
            path,
            f"cannot be rebuilt ({reason}): it was written by {versions}, load it with "
            "these or fit the model again",
        ) from None  # the error may contain text from the file
