"""Atom updates: the dictionary after the codes are fixed."""

from .anchored import AnchoredUpdate
from .anchors import AnchorDescent
from .ksvd import KSVDUpdate, ParallelKSVDUpdate
from .least_squares import MODUpdate
from .orthogonal import OrthogonalUpdate

UPDATES = {
    "ksvd": KSVDUpdate,
    "ksvd-parallel": ParallelKSVDUpdate,
    "mod": MODUpdate,
    "orthogonal": OrthogonalUpdate,
}

__all__ = [
    "UPDATES",
    "AnchorDescent",
    "AnchoredUpdate",
    "KSVDUpdate",
    "MODUpdate",
    "OrthogonalUpdate",
    "ParallelKSVDUpdate",
]
