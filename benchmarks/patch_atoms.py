"""Atoms for any photograph: ``python -m benchmarks.patch_atoms`` learns them again.

They come from pictures of scikit-image that are in the public domain or CC0.
"""

from __future__ import annotations

import numpy as np

from kernlets.images import ImageDenoiser
from kernlets.images.denoising import ATOMS

PICTURES = (
    "astronaut",
    "brick",
    "camera",
    "chelsea",
    "coffee",
    "grass",
    "gravel",
    "rocket",
)
SIGMA = 10.0  # of pixels from 0 to 255: what is fainter is left to the noise
N_PATCHES, MAX_ITER, SEED = 80_000, 30, 0


def learned_atoms() -> np.ndarray:  # (256, 64) float16
    """Atoms of 8 x 8 pixels for the brightness of the pictures."""
    from skimage import data

    pictures = [np.asarray(getattr(data, name)(), dtype=float) for name in PICTURES]
    model = ImageDenoiser(
        SIGMA, n_patches=N_PATCHES, max_iter=MAX_ITER, random_state=SEED
    )
    return model.fit(pictures).components_.astype(np.float16)


if __name__ == "__main__":
    np.save(ATOMS, learned_atoms())
    print(f"{ATOMS.name}: {ATOMS.stat().st_size} bytes")
