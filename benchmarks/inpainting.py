"""Photographs with lost pixels, filled in."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .harness.skip import require
from .peers.spec import SEED, Benchmark, Case, Figures, Method, Target
from .pictures import decibel, nearness, some_pictures

TEXT = "sparse atoms of a picture, found again in its other parts 0123456789"
LINE = 20  # pixels from one line of text to the next


@dataclass(frozen=True)
class Holed:
    clean: list[np.ndarray]
    lost: list[np.ndarray]


def written(shape: tuple[int, ...]) -> np.ndarray:
    """True where text is written over a picture, a fifth of it."""
    require("PIL", "pip install 'kernlets[images]'")
    from PIL import Image, ImageDraw

    page = Image.new("L", shape[::-1])
    pen = ImageDraw.Draw(page)
    for row in range(0, shape[0], LINE):
        pen.text((2 - row % (2 * LINE), row), TEXT, fill=255, font_size=16)
    return np.asarray(page) > 100


class Inpainter(Method):
    memory = False
    repeats = 1

    def __init__(self, problem: Holed) -> None:
        self.problem = problem

    def run(self) -> list[np.ndarray]:
        pairs = zip(self.problem.clean, self.problem.lost, strict=True)
        return [
            self.filled(np.where(lost, 0, x) / 255, lost) * 255 for x, lost in pairs
        ]

    def filled(self, image: np.ndarray, lost: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def figures(self, result: list[np.ndarray]) -> Figures:
        return nearness(self.problem.clean, result)


class Kernlets(Inpainter):
    name = "kernlets"

    def filled(self, image: np.ndarray, lost: np.ndarray) -> np.ndarray:
        from kernlets.images import inpaint

        return inpaint(image, lost)


class Biharmonic(Inpainter):
    name = "scikit-image, biharmonic"

    def filled(self, image: np.ndarray, lost: np.ndarray) -> np.ndarray:
        return require("skimage.restoration").inpaint_biharmonic(image, lost)


class Interpolated(Inpainter):
    """Linear interpolation between known pixels."""

    name = "SciPy, griddata"

    def filled(self, image: np.ndarray, lost: np.ndarray) -> np.ndarray:
        from scipy.interpolate import griddata

        found, at = image.copy(), (np.argwhere(~lost), np.argwhere(lost))
        linear = griddata(at[0], image[~lost], at[1])
        nearest = griddata(at[0], image[~lost], at[1], method="nearest")
        found[lost] = np.where(np.isnan(linear), nearest, linear)
        return found


class Inpainting(Benchmark):
    name = "inpainting"
    title = "Photographs with lost pixels"
    about = (
        "Set12, of which a share of the pixels is lost at random, or those that a text "
        "covers, about a fifth. PSNR and SSIM are means over the pictures, with known "
        "pixels; the error is that of the mean PSNR, so that 1 dB is a factor of "
        "0.891. Settings of ours were chosen on other pictures. Timed: all pictures, "
        "one after another."
    )
    methods = (Kernlets, Biharmonic, Interpolated)
    repeats = 1
    grid = tuple({"lost": lost, "pictures": 12} for lost in (50, 80, "text"))
    quick_grid = ({"lost": 50, "pictures": 1, "side": 48},)

    def problem(self, case: Case) -> Holed:
        clean = some_pictures(case["pictures"], case.get("side"))
        if case["lost"] == "text":
            return Holed(clean, [written(x.shape) for x in clean])
        draws = (np.random.default_rng(SEED + n) for n in range(len(clean)))
        share = case["lost"] / 100
        pairs = zip(clean, draws, strict=True)
        return Holed(clean, [rng.random(x.shape) < share for x, rng in pairs])

    def targets(self, case: Case) -> list[Target]:
        ahead = -1.0 if case["lost"] == 80 else 0.0
        return [Target(f"error: {Biharmonic.name}", "<=", decibel(ahead))]


BENCHMARK = Inpainting()
