"""Atom updates: the dictionary after the codes are fixed."""

from .anchored import AnchoredUpdate
from .anchors import AnchorDescent
from .ksvd import KSVDUpdate, ParallelKSVDUpdate
from .least_squares import CoordinateUpdate, MODUpdate
from .orthogonal import OrthogonalUpdate

UPDATES = {
    "ksvd": KSVDUpdate,
    "ksvd-parallel": ParallelKSVDUpdate,
    "mod": MODUpdate,
    "coordinate": CoordinateUpdate,
    "orthogonal": OrthogonalUpdate,
}

__all__ = [
    "UPDATES",
    "AnchorDescent",
    "AnchoredUpdate",
    "CoordinateUpdate",
    "KSVDUpdate",
    "MODUpdate",
    "OrthogonalUpdate",
    "ParallelKSVDUpdate",
]
