"""Samplers that choose the landmarks of a Nyström map.

A sampler is a function ``(kernel, X, m, rng, **options) -> indices or points``;
`SAMPLERS` lists those with a name. A name may carry options, as in
``landmarks="coreset:replace=True"``; `functools.partial` sets those of a function.
"""

from .choose import SAMPLERS, choose
from .rpcholesky import rpcholesky
from .samplers import (
    column_norm,
    coreset,
    diagonal,
    kmeans,
    leverage,
    leverage_scores,
    uniform,
)

__all__ = [
    "SAMPLERS",
    "choose",
    "column_norm",
    "coreset",
    "diagonal",
    "kmeans",
    "leverage",
    "leverage_scores",
    "rpcholesky",
    "uniform",
]
