"""
Photographs: without noise, and without holes
=============================================

A colour photograph gets noise, and then loses four of five pixels, or those under some
writing. `ImageDenoiser` learns a dictionary on the noisy picture itself, and `inpaint`
fills holes from similar parts of the picture. Differences to the original are drawn
four times as strong. Run with ``python examples/damaged/plot_photographs.py``.
"""

import matplotlib.pyplot as plt
import numpy as np
from PIL import Image, ImageDraw
from sklearn.datasets import load_sample_image

from kernlets.images import ImageDenoiser, estimate_noise, inpaint, psnr, ssim

rng = np.random.default_rng(0)
clean = load_sample_image("china.jpg")[110:302, 140:332].astype(float)

# %%
# Noise: its deviation is estimated, then a dictionary is learned. The estimate is too
# high here, because the tiles of the roof are as fine as the noise.

noisy = clean + rng.normal(0, 25, clean.shape)
model = ImageDenoiser(random_state=0)
denoised = model.fit_transform(noisy)
print(f"noise of deviation 25, estimated {estimate_noise(noisy):.1f}")

# %%
# Holes: at random, and under writing.

lost = rng.random(clean.shape[:2]) < 0.8
page = Image.new("L", clean.shape[1::-1])
for row in range(0, clean.shape[0], 16):
    ImageDraw.Draw(page).text((0, row), "kernlets fills in what is lost " * 2, fill=255)
written = np.asarray(page) > 90
rows = {
    "noise": (noisy, denoised),
    "80 % lost": (np.where(lost[..., None], 255, clean), inpaint(clean, lost)),
    "writing": (np.where(written[..., None], 255, clean), inpaint(clean, written)),
}

# %%
# Original, damaged, restored, and four times the difference.

figure, axes = plt.subplots(len(rows), 4, figsize=(11, 8.5), layout="constrained")
for line, (name, (damaged, restored)) in zip(axes, rows.items(), strict=True):
    quality = f"{psnr(clean, restored):.1f} dB, SSIM {ssim(clean, restored):.3f}"
    print(f"{name}: {psnr(clean, damaged):.1f} dB, restored {quality}")
    pictures = (clean, damaged, restored, 128 + 4 * (restored - clean))
    titles = ("original", name, f"restored: {quality}", "4 x difference")
    for axis, picture, title in zip(line, pictures, titles, strict=True):
        axis.imshow(np.clip(picture, 0, 255).astype(np.uint8))
        axis.set_title(title, fontsize=8)
        axis.axis("off")

# %%
# The atoms: patches of 8 x 8 pixels that the noisy picture is made of.

atoms = model.components_.reshape(-1, 8, 8)
figure, axes = plt.subplots(8, 16, figsize=(8, 4.2), layout="constrained")
for axis, atom in zip(axes.flat, atoms, strict=False):
    axis.imshow(atom, cmap="gray")
    axis.axis("off")
figure.suptitle(f"128 of {len(atoms)} atoms")

plt.show()

# %%
# **What one sees.** The noise is gone, and so is the finest texture of the roof, as the
# difference shows. From a fifth of the pixels the large forms come back. Below writing
# nearly everything does, because holes are narrower than a patch.
#
# **What to change.** ``ImageDenoiser(25)`` if you know the noise: the result is sharper
# than with the estimate. ``quality="fast"`` for large pictures.
