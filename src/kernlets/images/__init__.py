"""Photographs and other pictures: remove noise, fill in lost pixels, compare.

Nothing here is a file format: read and write pictures with Pillow or scikit-image, or
use ``kernlets denoise`` and ``kernlets inpaint``.
"""

from .denoising import ImageDenoiser, denoise
from .inpainting import ImageInpainter, inpaint
from .quality import estimate_noise, psnr, ssim
from .restoring import ImageRestorer
from .whitening import PatchWhitening

__all__ = [
    "ImageDenoiser",
    "ImageInpainter",
    "ImageRestorer",
    "PatchWhitening",
    "denoise",
    "estimate_noise",
    "inpaint",
    "psnr",
    "ssim",
]
