"""The data sets of the papers, from the folder that KERNLETS_DATA names.

`load` also gives those that the library offers: digits, usps, mnist.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kernlets import datasets
from kernlets.base.names import guess
from kernlets.datasets import Dataset
from kernlets.datasets.catalogue import CATALOGUE, Entry, load_entry

SETS: dict[str, Entry] = {
    "orl": Entry(
        "orl.npz", "ORL faces, 40 subjects x 10 images, 112x92 pixels", (112, 92)
    ),
    "yaleb": Entry(
        "yaleb_images.npz", "Extended Yale B, 2414 faces of 48x42 pixels", (48, 42)
    ),
    "yaleb-features": Entry(
        "yaleb_features.npz",
        "Extended Yale B, 504 random-face features (a substitute for LC-KSVD's file)",
    ),
    "ar": Entry(
        "ar_features.npz",
        "AR faces without occlusion, 300 eigenface features (a substitute)",
    ),
    "ar-540": Entry(
        "ar_randomfaces540.npz",
        "AR faces without occlusion, 540 random-face features (a substitute)",
    ),
    "cifar10-airplane": Entry(
        "cifar10_airplane.npz", "CIFAR-10 airplanes, 5000 grey of 32x32", (32, 32)
    ),
    "stl10": Entry(
        "stl10_sample.npz", "STL-10, a sample of 256 RGB images, 96x96", (96, 96, 3)
    ),
}
ADBENCH = "adbench/"


def load(name: str, *, dtype: Any = np.float32, **options: Any) -> Dataset:
    """Load a data set by name, without a download.

    ``adbench/<set>`` is a set of ADBench, in which label 1 is an anomaly. The options
    are those of `kernlets.datasets.load`.
    """
    if name in CATALOGUE:
        return datasets.load(name, download=False, dtype=dtype, **options)
    return load_entry(name, _entry(name), False, dtype, **options)


def _entry(name: str) -> Entry:
    if name in SETS:
        return SETS[name]
    if name.startswith(ADBENCH):
        # a file's name begins with a number: 45_wine.npz
        pattern = f"{ADBENCH}*_{name.removeprefix(ADBENCH)}.npz"
        return Entry(pattern, f"ADBench's {name.removeprefix(ADBENCH)}, 1 = anomaly")
    names = [*CATALOGUE, *SETS]
    raise ValueError(
        f"name={name!r} is not a known data set: {guess(name, names)}"
        f"choose from {', '.join(names)}, adbench/<set>"
    )
