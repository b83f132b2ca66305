"""Small grey pictures inside the page."""

from __future__ import annotations

import numpy as np

from kernlets.base.notebook import data_address

from .html import Html, tag


def picture(grey: np.ndarray, alt: str, width: int) -> Html:
    """An image element, enlarged to `width` pixels without smoothing."""
    height = round(width * grey.shape[0] / grey.shape[1])
    image = tag("img", src=data_address(grey), alt=alt, width=width, height=height)
    return Html(image.removesuffix("</img>"))
