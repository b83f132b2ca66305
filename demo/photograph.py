"""A photograph with noise, and without."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.ndimage import gaussian_filter

from benchmarks.harness.html import Html, figure, paragraph, row, section, tag
from benchmarks.harness.pictures import picture
from kernlets.images import denoise, psnr

SIGMA = 25  # standard deviation of the noise; white is 255
TOP, LEFT, HEIGHT, WIDTH = 60, 160, 192, 256
BLURS = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


class Photograph(NamedTuple):
    """A detail of scikit-learn's photograph of a temple, damaged and restored."""

    clean: np.ndarray  # (height, width), white is 255
    noisy: np.ndarray
    blurred: np.ndarray
    restored: np.ndarray

    def quality(self, name: str) -> float:
        """Peak signal-to-noise ratio of one of the pictures, in decibels."""
        return float(psnr(self.clean, getattr(self, name)))


def restore_photograph() -> Photograph:
    """Add noise to the photograph and remove it: by atoms, and by the best blur."""
    from sklearn.datasets import load_sample_image

    grey = load_sample_image("china.jpg").mean(axis=2)
    clean = grey[TOP : TOP + HEIGHT, LEFT : LEFT + WIDTH]
    noisy = clean + np.random.default_rng(0).normal(0, SIGMA, clean.shape)
    blurs = [gaussian_filter(noisy, width) for width in BLURS]
    blurred = max(blurs, key=lambda blur: psnr(clean, blur))
    return Photograph(clean, noisy, blurred, denoise(noisy, quality="fast"))


def photograph_section(found: Photograph) -> Html:
    shown = {
        "noisy": "with noise",
        "blurred": "blurred, by the width that is best for this picture",
        "restored": "restored by kernlets",
    }
    figures = (
        figure(
            picture(getattr(found, name) / 255, words, WIDTH),
            tag("strong", f"{found.quality(name):.1f} dB"),
            f" {words}",
        )
        for name, words in shown.items()
    )
    return section(
        "A photograph",
        paragraph(
            "Atoms of 8 × 8 pixels are learned from the noisy picture itself. Every "
            "part of the picture is a sum of few atoms, and noise is not. Decibels "
            "compare with the picture before noise was added; more is better."
        ),
        row(*figures, class_="even photo"),
    )
