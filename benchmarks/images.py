"""Photographs with white Gaussian noise, denoised."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .harness.skip import Skip, require
from .peers.spec import SEED, Benchmark, Case, Figures, Method, Target
from .pictures import decibel, nearness, some_pictures

PATCH = 7  # of scikit-learn, as in its example
LEARNED = 20_000  # patches that scikit-learn learns from


@dataclass(frozen=True)
class Noisy:
    clean: list[np.ndarray]
    noisy: list[np.ndarray]
    sigma: float
    quality: str


class Denoiser(Method):
    memory = False
    repeats = 1
    slow = False
    """Left out of cases with our fast setting."""

    def __init__(self, problem: Noisy) -> None:
        self.problem = problem
        if self.slow and problem.quality == "fast":
            raise Skip("not compared with the fast setting")

    def run(self) -> list[np.ndarray]:
        return [self.denoised(y / 255) * 255 for y in self.problem.noisy]

    def denoised(self, noisy: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    @property
    def sigma(self) -> float:
        return self.problem.sigma / 255

    def figures(self, result: list[np.ndarray]) -> Figures:
        return nearness(self.problem.clean, result)


class Kernlets(Denoiser):
    name = "kernlets"

    def denoised(self, noisy: np.ndarray) -> np.ndarray:
        from kernlets.images import denoise

        return denoise(noisy, self.sigma, quality=self.problem.quality)


class BM3D(Denoiser):
    name = "bm3d"

    def denoised(self, noisy: np.ndarray) -> np.ndarray:
        return require("bm3d").bm3d(noisy, self.sigma)


class NonLocalMeans(Denoiser):
    """With the settings of scikit-image's example."""

    name = "scikit-image, non-local means"

    def denoised(self, noisy: np.ndarray) -> np.ndarray:
        return require("skimage.restoration").denoise_nl_means(
            noisy,
            patch_size=5,
            patch_distance=6,
            h=0.8 * self.sigma,
            sigma=self.sigma,
            fast_mode=True,
        )


class TotalVariation(Denoiser):
    """The weight that is best for most pictures, about the deviation of the noise."""

    name = "scikit-image, total variation"
    slow = True

    def denoised(self, noisy: np.ndarray) -> np.ndarray:
        tools = require("skimage.restoration")
        return tools.denoise_tv_chambolle(noisy, weight=self.sigma)


class Wavelets(Denoiser):
    name = "scikit-image, wavelets"
    slow = True

    def denoised(self, noisy: np.ndarray) -> np.ndarray:
        require("pywt")
        tools = require("skimage.restoration")
        return tools.cycle_spin(
            noisy,
            func=tools.denoise_wavelet,
            max_shifts=3,
            func_kw={"sigma": self.sigma, "rescale_sigma": True},
        )


class ScikitLearn(Denoiser):
    """As in its example, with OMP that stops at the noise."""

    name = "scikit-learn, dictionary learning"
    slow = True

    def __init__(self, problem: Noisy) -> None:
        super().__init__(problem)
        if len(problem.clean) > 1:
            raise Skip("takes minutes: see the case of one picture")

    def denoised(self, noisy: np.ndarray) -> np.ndarray:
        from sklearn.decomposition import MiniBatchDictionaryLearning
        from sklearn.feature_extraction.image import (
            extract_patches_2d,
            reconstruct_from_patches_2d,
        )

        rows = extract_patches_2d(noisy, (PATCH, PATCH)).reshape(-1, PATCH**2)
        means = rows.mean(axis=1, keepdims=True)
        some = np.random.default_rng(SEED).permutation(len(rows))[:LEARNED]
        learner = MiniBatchDictionaryLearning(
            100,
            alpha=1,
            batch_size=200,
            max_iter=10,
            transform_algorithm="omp",
            transform_alpha=PATCH**2 * (1.15 * self.sigma) ** 2,
            random_state=SEED,
        )
        learner.fit((rows - means)[some])
        found = learner.transform(rows - means) @ learner.components_ + means
        patches = found.reshape(-1, PATCH, PATCH)
        return reconstruct_from_patches_2d(patches, noisy.shape)


class Images(Benchmark):
    name = "images"
    title = "Photographs with noise"
    about = (
        "Set12, seven pictures of 256 x 256 and five of 512 x 512 pixels, with white "
        "Gaussian noise of the given deviation from fixed seeds, neither clipped nor "
        "rounded; the deviation is known to all methods. PSNR and SSIM are means over "
        "the pictures; the error is that of the mean PSNR, so that .25 dB are a factor "
        "of 1.029, and 1 dB of 0.891. Published means of BM3D: 32.37, 29.97, 26.72 dB; "
        "of WNNM: 32.70, 30.26, 27.05 dB. Settings of ours were chosen on other "
        "pictures. Timed: all pictures, one after another, ours with the learning of a "
        "dictionary for each."
    )
    methods = (Kernlets, BM3D, NonLocalMeans, TotalVariation, Wavelets, ScikitLearn)
    repeats = 1
    grid = (
        *(
            {"sigma": sigma, "quality": quality, "pictures": 12}
            for quality in ("best", "fast")
            for sigma in (15, 25, 50)
        ),
        {"sigma": 25, "quality": "best", "pictures": 1},
    )
    quick_grid = ({"sigma": 25, "quality": "best", "pictures": 1, "side": 48},)

    def problem(self, case: Case) -> Noisy:
        clean = some_pictures(case["pictures"], case.get("side"))
        draws = (np.random.default_rng(SEED + n) for n in range(len(clean)))
        noisy = [
            x + rng.normal(0, case["sigma"], x.shape)
            for x, rng in zip(clean, draws, strict=True)
        ]
        return Noisy(clean, noisy, case["sigma"], case["quality"])

    def targets(self, case: Case) -> list[Target]:
        if case["quality"] == "best":
            return [
                Target(f"error: {BM3D.name}", "<=", decibel(0.25)),
                Target(f"speed: {BM3D.name}", ">=", 0.5),
            ]
        return [
            Target(f"error: {NonLocalMeans.name}", "<=", decibel(-1)),
            Target(f"speed: {BM3D.name}", ">=", 4),
        ]


BENCHMARK = Images()
