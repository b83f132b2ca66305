"""The logo: atoms learned from patches of a photograph, and the name.

``python -m demo.logo`` writes ``docs/images/logo.svg``, with rectangles for pixels and
outlines for letters, so that it needs no font.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from kernlets import KSVD

LOGO = Path(__file__).parents[1] / "docs" / "images" / "logo.svg"
SIDE, ACROSS, GAP, PIXEL = 8, 3, 1, 4
TEAL, ORANGE = (17, 138, 128), (240, 140, 60)  # both can be read on white and on black


def learned_atoms() -> np.ndarray:  # (9, 64)
    """Atoms of unlike patches of scikit-learn's photograph of a temple."""
    from sklearn.datasets import load_sample_image
    from sklearn.feature_extraction.image import extract_patches_2d

    grey = load_sample_image("china.jpg").mean(axis=2) / 255
    patches = extract_patches_2d(grey, (SIDE, SIDE), max_patches=4000, random_state=0)
    X = patches.reshape(len(patches), -1)
    X = X - X.mean(axis=1, keepdims=True)
    rows = X[X.std(axis=1) > 0.05]
    learner = KSVD(32, n_nonzero_coefs=3, random_state=0).fit(rows)
    uses = np.abs(learner.transform(rows)).sum(axis=0)
    return learner.components_[np.argsort(-uses)[: ACROSS**2]]


def squares(atoms: np.ndarray) -> Iterator[str]:
    """A square for each pixel: teal if positive, orange if negative, pale if small."""
    for k, atom in enumerate(atoms):
        top, left = (SIDE + GAP) * (k // ACROSS), (SIDE + GAP) * (k % ACROSS)
        for i, value in enumerate(atom / np.abs(atom).max()):
            color = TEAL if value > 0 else ORANGE
            x, y = PIXEL * (left + i % SIDE), PIXEL * (top + i // SIDE)
            opacity = 0.08 + 0.92 * abs(value)
            yield (
                f'<rect x="{x}" y="{y}" width="{PIXEL}" height="{PIXEL}" '
                f'fill="rgb{color}" fill-opacity="{opacity:.2f}"/>'
            )


def letters(left: float, middle: float, size: float) -> tuple[str, float]:
    """The outline of the name, and where it ends."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.path import Path as Outline
    from matplotlib.textpath import TextPath

    font = FontProperties(family="DejaVu Sans", weight="bold")
    outline = TextPath((0, 0), "kernlets", size=size, prop=font)
    names = {Outline.MOVETO: "M", Outline.LINETO: "L", Outline.CURVE3: "Q"}
    names |= {Outline.CURVE4: "C", Outline.CLOSEPOLY: "Z"}
    words = []
    for points, code in outline.iter_segments():
        pairs = points[:0] if code == Outline.CLOSEPOLY else points
        place = (f"{left + x:.1f} {middle - y:.1f}" for x, y in pairs.reshape(-1, 2))
        words.append(f"{names[code]}{' '.join(place)}")
    path = f'<path shape-rendering="auto" fill="rgb{TEAL}" d="{"".join(words)}"/>'
    return path, left + outline.get_extents().x1


def logo() -> str:
    """The whole picture as SVG."""
    height = PIXEL * (ACROSS * (SIDE + GAP) - GAP)
    name, width = letters(height + 22, 0.68 * height, 0.72 * height)
    size = f'width="{width + 4:.0f}" height="{height}"'
    box = f'viewBox="0 0 {width + 4:.0f} {height}"'
    drawn = "\n".join([*squares(learned_atoms()), name])
    head = f'xmlns="http://www.w3.org/2000/svg" {size} {box} role="img"'
    title = "<title>kernlets</title>"
    return f'<svg {head} shape-rendering="crispEdges">\n{title}\n{drawn}\n</svg>\n'


if __name__ == "__main__":
    LOGO.write_text(logo(), "utf-8")
