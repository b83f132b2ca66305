"""Cases of the second kind: model files that were damaged or forged.

A forger makes other bytes from those of a sound file. Another one is a function more
in `FORGERS`, with what is to be expected of its files.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import kernlets
from kernlets.persistence import ModelFileError, info
from kernlets.registry import table

from .containers import as_array
from .draw import Draw
from .oracle import Wrong

KINDS = ("kernels", "maps", "pursuits", "learners", "classifiers")
CHECKSUM = re.compile(rb'"checksum":"([0-9a-f]{64})"')
Forger = Callable[[bytes, Draw], bytes]


def run(draw: Draw, note: Callable[[str], Any], folder: Path) -> None:
    """One file: refused in words, or a model that can be used."""
    kind = draw.pick(KINDS)
    name = draw.pick(sorted(table(kind)))
    forger = draw.pick(sorted(FORGERS))
    note(f"{kind}: {name}, {forger}")
    forge, is_sealed = FORGERS[forger]
    sound = sound_file(kind, name)
    data = forge(sound, draw)
    path = folder / "a.model"
    path.write_bytes(data)
    read = draw.pick([kernlets.load, info])
    try:
        model = read(path)
    except ModelFileError as error:
        _check_message(str(error), path)
        raise
    if data != sound and not is_sealed:
        raise Wrong("damage not noticed", f"persistence.{read.__name__}", forger)
    if read is kernlets.load:
        note("loaded")
        _use(model)


def _check_message(message: str, path: Path) -> None:
    """One printable line with the name of the file."""
    if not message.startswith(str(path)) or not message.isprintable():
        raise Wrong("message", "persistence.load", message)


def _use(model: Any) -> None:
    """Whatever was loaded may refuse rows, but in words."""
    for name in ("transform", "predict", "decision_function"):
        if hasattr(model, name):
            as_array(getattr(model, name)(_rows()))
    repr(model)


@cache
def sound_file(kind: str, name: str) -> bytes:
    """The file of a small fitted model."""
    import tempfile

    model = table(kind)[name]()
    if hasattr(model, "fit"):
        seeds = [key for key in model.get_params() if key.endswith("random_state")]
        model.set_params(**dict.fromkeys(seeds, 0))
        model.fit(_rows(), np.repeat(["cat", "dog"], 12))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.model"
        kernlets.save(model, path)
        return path.read_bytes()


def _rows() -> np.ndarray:
    return np.random.default_rng(0).random((24, 4))


# -------------------------------------------------------------------- forgers


def changed_bytes(data: bytes, draw: Draw) -> bytes:
    changed = bytearray(data)
    for _ in range(draw.pick([1, 1, 2, 8])):
        changed[draw.count(0, len(data) - 1)] ^= draw.count(1, 255)
    return bytes(changed)


def cut_short(data: bytes, draw: Draw) -> bytes:
    return data[: draw.count(0, len(data) - 1)]


def never_written(data: bytes, draw: Draw) -> bytes:
    """The end, or a page within, is zero."""
    place = draw.count(0, len(data) - 1)
    end = len(data) if draw.chance(0.5) else min(len(data), place + 4096)
    return data[:place] + bytes(end - place) + data[end:]


def lost_part(data: bytes, draw: Draw) -> bytes:
    place = draw.count(0, len(data) - 1)
    return data[:place] + data[place + draw.pick([1, 8, 100]) :]


def inserted_part(data: bytes, draw: Draw) -> bytes:
    place = draw.count(0, len(data))
    return data[:place] + draw.rng.bytes(draw.pick([1, 8, 100])) + data[place:]


def written_twice(data: bytes, draw: Draw) -> bytes:
    return data + data[: draw.count(1, len(data))]


def noise(data: bytes, draw: Draw) -> bytes:
    return draw.rng.bytes(draw.pick([0, 1, 7, 8, 9, 64, 1000]))


def sealed(data: bytes) -> bytes:
    """The same file with a checksum that is right, if it still has a place for one."""
    match = CHECKSUM.search(data)
    if match is None:
        return data
    begin, end = match.span(1)
    blank = data[:begin] + b"0" * 64 + data[end:]
    return blank[:begin] + hashlib.sha256(blank).hexdigest().encode() + blank[end:]


def other_numbers(data: bytes, draw: Draw) -> bytes:
    """Arrays full of other numbers, NaN and infinity among them, well sealed."""
    begin = 8 + int.from_bytes(data[:8], "little")
    if begin >= len(data):
        return sealed(data)
    changed = bytearray(data)
    size = 8 * draw.pick([1, 1, 4, 32])
    place = begin + 8 * draw.count(0, (len(data) - begin - 1) // 8)
    odd = [np.nan, np.inf, -np.inf, 0.0, 1e300, -1.0, 5e-324]
    filling = np.full(size // 8, draw.pick(odd)).tobytes()
    if draw.chance(0.3):
        filling = draw.rng.bytes(size)
    changed[place : place + size] = filling[: len(data) - place]
    return sealed(bytes(changed))


def other_header(data: bytes, draw: Draw) -> bytes:
    """A changed byte in the header, well sealed."""
    begin = min(len(data), 8 + int.from_bytes(data[:8], "little"))
    changed = bytearray(data)
    for _ in range(draw.pick([1, 1, 2])):
        place = draw.count(8, begin - 1)
        changed[place] = draw.pick(b'0123456789{}[]":,-.eE xtrufalsn')
    return sealed(bytes(changed))


#: name -> function, and whether it makes files with a checksum that is right
FORGERS: dict[str, tuple[Forger, bool]] = {
    "changed bytes": (changed_bytes, False),
    "cut short": (cut_short, False),
    "never written": (never_written, False),
    "lost part": (lost_part, False),
    "inserted part": (inserted_part, False),
    "written twice": (written_twice, False),
    "noise": (noise, False),
    "other numbers": (other_numbers, True),
    "other header": (other_header, True),
}
