"""Atom updates: the dictionary after the codes are fixed."""

from .anchors import AnchorDescent, AnchoredUpdate
from .ksvd import KSVDUpdate, ParallelKSVDUpdate
from .least_squares import MODUpdate

UPDATES = {
    "ksvd": KSVDUpdate,
    "ksvd-parallel": ParallelKSVDUpdate,
    "mod": MODUpdate,
}

__all__ = [
    "UPDATES",
    "AnchorDescent",
    "AnchoredUpdate",
    "KSVDUpdate",
    "MODUpdate",
    "ParallelKSVDUpdate",
]
