"""Cases of the second kind: model files that were damaged or forged.

Damage is what happens by accident, and the checksum tells. Forged files have a checksum
that is right: some are made here by changing bytes, the others by the forger of the
tests, which changes every field of every class. Another way to make files is a function
more in `FORGERS`.
"""

from __future__ import annotations

import hashlib
import re
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import kernlets
from kernlets.io import ModelFileError, info

from .draw import Draw
from .oracle import Wrong

sys.path.append(str(Path(__file__).parents[1] / "tests"))  # modules of no package

import forger
import victim
from examples import file_of, makers, model_of

CHECKSUM = re.compile(rb'"checksum":"([0-9a-f]{64})"')
Forger = Callable[[bytes, Draw], bytes]


def run(draw: Draw, note: Callable[[str], Any], folder: Path) -> None:
    """One file: refused in words, or a model that can be used."""
    name = draw.pick(sorted(makers()))
    way = draw.pick(["fields", *sorted(FORGERS)])
    note(f"{name}, {way}")
    data, is_sealed = _forged(name, way, draw, note)
    path = folder / "a.model"
    path.write_bytes(data)
    read = draw.pick([kernlets.load, info])
    try:
        model = read(path)
    except ModelFileError as error:
        _check_message(str(error), path)
        raise
    if data != file_of(name) and not is_sealed:
        raise Wrong("damage not noticed", f"io.{read.__name__}", way)
    if read is kernlets.load:
        note("loaded")
        _use(model, getattr(model_of(name), "n_features_in_", 6))


def _forged(
    name: str, way: str, draw: Draw, note: Callable[[str], Any]
) -> tuple[bytes, bool]:
    """Other bytes, and whether their checksum is right."""
    if way in FORGERS:
        forge, is_sealed = FORGERS[way]
        return forge(file_of(name), draw), is_sealed
    labels = list(forger.forgeries(name))
    chosen = [draw.pick(labels) for _ in range(draw.pick([1, 1, 1, 2]))]
    note(" and ".join(chosen))
    return forger.forged(name, *chosen).data, True


def _check_message(message: str, path: Path) -> None:
    """One printable line with the name of the file."""
    if not message.startswith(str(path)) or not message.isprintable():
        raise Wrong("message", "io.load", message)


def _use(model: Any, width: int) -> None:
    """Whatever was loaded may refuse rows, but gives no other error."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)  # forged numbers are nonsense
        with kernlets.options(n_threads=1, memory="200MB"):
            victim.use(model, width)


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
