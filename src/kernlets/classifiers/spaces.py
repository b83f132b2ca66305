"""The spaces that a search considers: a scaling of the rows, and a kernel.

A `Space` is a plain value, so that a search can compare, sort and record it. The
width of its kernel, which depends on the data, is a multiple of the kernel's default.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.preprocessing import StandardScaler

from ..backend.scale import quiet
from ..core import Array, Kernel
from ..kernels import resolve
from ..maps import NystroemMap, UnitNorm

#: Scalings of rows: names and steps of a pipeline.
SCALES: dict[str, tuple[Callable[[], Any], ...]] = {
    "standard": (StandardScaler,),
    "unit": (UnitNorm,),
    "centred unit": (partial(StandardScaler, with_std=False), UnitNorm),
    "none": (),
}
WITHOUT_WIDTH = ("linear",)
POLYNOMIAL = "polynomial"
SAMPLE = 1000  # rows that the default width of a kernel is taken from
MIDDLE_WIDTH = 0.3  # where slow families begin ...
NARROW = 10.0  # ... times this against damage
STEP = 10**0.5  # from one width to the next


@dataclass(frozen=True, order=True)
class Space:
    """A scaling, a kernel with its width as a multiple of the default, a map's size."""

    scale: str
    kernel: str
    width: float = 1.0
    n_landmarks: int = 500

    @property
    def has_width(self) -> bool:
        return self.kernel not in WITHOUT_WIDTH

    def __str__(self) -> str:
        width = f" x {self.width:.3g}" if self.has_width else ""
        return f"{self.scale}, {self.kernel}{width}"


def first_spaces(short: bool, n_landmarks: int, robust: bool = False) -> list[Space]:
    """Where a search begins; the `short` list is for few rows.

    Against damage kernels are narrower: noise then moves all values of a kernel by the
    same factor, and no longer adds up over many atoms.
    """
    scales = ("standard", "unit") if short else tuple(SCALES)
    if robust:  # a feature of little variance, made as large as others, is noise only
        scales = tuple(sorted(scales, key=lambda scale: scale == "standard"))
    factor = NARROW if robust else 1.0
    widths = (MIDDLE_WIDTH,) if short else (0.1, MIDDLE_WIDTH, 1.0)
    found = []
    for scale in scales:
        found += [Space(scale, "rbf", factor * w, n_landmarks) for w in widths]
        found.append(Space(scale, "linear", 1.0, n_landmarks))
    return found


def near_spaces(space: Space, limit: int) -> list[Space]:
    """Other widths, other kernels, more landmarks up to a limit: one change each."""
    scale, kernel, width = space.scale, space.kernel, space.width
    count = space.n_landmarks
    found = []
    if space.has_width:
        found += [Space(scale, kernel, width * f, count) for f in (STEP, 1 / STEP)]
    if kernel == "rbf":
        found += [Space(scale, k, width, count) for k in ("laplacian", POLYNOMIAL)]
    if kernel == "linear":
        found += [Space(scale, POLYNOMIAL, 1.0, count)]
    if 2 * count <= limit:
        found += [Space(scale, kernel, width, 2 * count)]
    return found


def scalers(scale: str) -> list[Any]:
    """The steps of a scaling, not fitted."""
    return [make() for make in SCALES[scale]]


@dataclass(frozen=True)
class Rates:
    """The default width of each kernel on some rows, for each scaling."""

    samples: dict[str, Array]

    @classmethod
    def of(cls, X: np.ndarray) -> Rates:
        """The defaults from evenly spaced rows, the same in every search."""
        some = X[:: -(-len(X) // SAMPLE)]
        return cls({scale: scaled(scalers(scale), some) for scale in SCALES})

    def kernel(self, space: Space) -> Kernel:
        """The kernel of a space with its parameters set, the same for all classes."""
        rows = self.samples[space.scale]
        if not space.has_width:
            return resolve(space.kernel)
        name = "rbf" if space.kernel == POLYNOMIAL else space.kernel
        bound: Any = resolve(name).bound(rows)
        rate = bound.rate * space.width
        if space.kernel == POLYNOMIAL:
            return resolve(POLYNOMIAL, degree=2, coef0=1.0, scale=rate)
        return resolve(space.kernel, gamma=rate)


def scaled(steps: list[Any], X: Array) -> Array:
    """Rows after steps that are fitted to them, in place."""
    with quiet():  # a scaling that overflows gives rows that no candidate can take
        for step in steps:
            X = step.fit_transform(X)
    return X


def feature_map(kernel: Kernel, n_landmarks: int, n_rows: int, seed: int) -> Any:
    """The map of a space, with no more landmarks than rows."""
    count = min(n_landmarks, n_rows)
    return NystroemMap(kernel, "uniform", n_landmarks=count, random_state=seed)
