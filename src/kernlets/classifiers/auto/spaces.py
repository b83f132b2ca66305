"""The spaces that a search considers: a scaling of the rows, and a kernel.

A `Space` is a plain value, so that a search can compare and record it. The width of its
kernel, which depends on the data, is a multiple of the kernel's default.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from ...kernels import Kernel, resolve
from ...maps import UnitNorm

#: Scalings of rows: names and steps of a pipeline.
SCALES: dict[str, tuple[Callable[[], Any], ...]] = {
    "standard": (StandardScaler,),
    "unit": (UnitNorm,),
    "centred unit": (partial(StandardScaler, with_std=False), UnitNorm),
    "none": (),
}
POLYNOMIAL = "polynomial"
SAMPLE_ROWS = 1000  # the default width of a kernel is computed from so many rows
MIDDLE_WIDTH = 0.3  # the first width of slow families
NARROW_FACTOR = 10.0  # a robust search multiplies the first widths by this
WIDTH_STEP = 10**0.5  # ratio of adjacent widths


@dataclass(frozen=True)
class Space:
    """A scaling, a kernel, its width relative to the default, and a map's landmarks."""

    scale: str
    kernel: str
    width: float = 1.0
    n_landmarks: int = 500


def first_spaces(is_short: bool, n_landmarks: int, robust: bool) -> list[Space]:
    """Return the spaces of the first stage; `is_short` is for few rows.

    A robust search uses narrower kernels: noise then multiplies all values of a kernel
    by about the same factor and does not add up over many atoms.
    """
    scales = ["standard", "unit"] if is_short else list(SCALES)
    if robust:  # standardising amplifies the noise of features of little variance
        scales.sort(key=lambda scale: scale == "standard")
    width_factor = NARROW_FACTOR if robust else 1.0
    widths = (MIDDLE_WIDTH,) if is_short else (0.1, MIDDLE_WIDTH, 1.0)
    kernels = [("rbf", width_factor * width) for width in widths] + [("linear", 1.0)]
    spaces = [
        Space(scale, *kernel, n_landmarks) for scale in scales for kernel in kernels
    ]
    if not robust:  # tables often have a few features of great worth
        laplacian = Space("standard", "laplacian", MIDDLE_WIDTH, n_landmarks)
        spaces.insert(len(kernels), laplacian)
    return spaces


def near_spaces(space: Space, max_landmarks: int) -> list[Space]:
    """Return spaces that differ in the width, the kernel or the number of landmarks."""
    spaces = []
    if space.kernel == "linear":
        spaces.append(replace(space, kernel=POLYNOMIAL, width=1.0))
    else:
        widths = space.width * WIDTH_STEP, space.width / WIDTH_STEP
        spaces += [replace(space, width=width) for width in widths]
    if space.kernel == "rbf":
        kernels = "laplacian", POLYNOMIAL
        spaces += [replace(space, kernel=kernel) for kernel in kernels]
    if 2 * space.n_landmarks <= max_landmarks:
        spaces.append(replace(space, n_landmarks=2 * space.n_landmarks))
    return spaces


def scalers(scale: str) -> list[Any]:
    """Return the unfitted steps of a scaling."""
    return [make() for make in SCALES[scale]]


def make_scaler(scale: str) -> Pipeline:
    """Return an unfitted pipeline of the steps of a scaling."""
    return make_pipeline(*scalers(scale), "passthrough")


class SpaceKernels:
    """Kernels of spaces, with default widths computed from rows of each scaling."""

    def __init__(self, X: np.ndarray) -> None:
        sample = X[:: -(-len(X) // SAMPLE_ROWS)]  # the same rows in every search
        self.scaled_rows = {
            name: make_scaler(name).fit_transform(sample) for name in SCALES
        }

    def kernel(self, space: Space) -> Kernel:
        """Return the kernel of a space with all parameters set."""
        if space.kernel == "linear":
            return resolve("linear")
        name = "rbf" if space.kernel == POLYNOMIAL else space.kernel
        bound_kernel: Any = resolve(name).bound(self.scaled_rows[space.scale])
        rate = bound_kernel.rate * space.width
        if space.kernel == POLYNOMIAL:
            return resolve(POLYNOMIAL, degree=2, coef0=1.0, scale=rate)
        return resolve(space.kernel, gamma=rate)
