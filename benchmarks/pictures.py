"""Set12, the pictures on which denoisers are compared, and how near results are."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from .harness.skip import Skip
from .peers.spec import Figures

NAMES = (
    "cameraman house peppers starfish monarch airplane parrot "
    "lena barbara boat man couple"
).split()


@lru_cache(maxsize=1)
def set12() -> dict[str, np.ndarray]:
    """The pictures, 0 to 255; `Skip` if they are not there."""
    from kernlets.datasets.catalogue import find

    for path in find("set12.npz"):
        with np.load(path) as arrays:
            return {name: arrays[name].astype(np.float64) for name in NAMES}
    raise Skip("set12.npz is not in the folder named by KERNLETS_DATA")


def some_pictures(count: int, side: int | None = None) -> list[np.ndarray]:
    """The first pictures, or a part of each."""
    return [set12()[name][:side, :side] for name in NAMES[:count]]


def nearness(clean: list[np.ndarray], found: list[np.ndarray]) -> Figures:
    """Mean PSNR and SSIM, and the former as an error that can be divided.

    A quarter of a decibel is 1.029 times the error, one decibel 1.122 times.
    """
    from kernlets.images import psnr, ssim

    pairs = list(zip(clean, found, strict=True))
    mean = float(np.mean([psnr(a, b) for a, b in pairs]))
    likeness = float(np.mean([ssim(a, b) for a, b in pairs]))
    return {"psnr": mean, "ssim": likeness, "error": 255 * decibel(-mean)}


def decibel(number: float) -> float:
    """The ratio of two errors that differ by this many decibels."""
    return 10 ** (number / 20)
