"""Atom updates, which improve the dictionary while the codes are fixed."""

from .. import _added
from .anchored import AnchoredUpdate
from .anchors import AnchorDescent
from .budget_rules import (
    Admission,
    Coherence,
    DecayingStep,
    ReconstructionCost,
    RootStep,
    StochasticGradient,
)
from .ksvd import KSVDUpdate, ParallelKSVDUpdate
from .least_squares import CoordinateUpdate, MODUpdate
from .orthogonal import OrthogonalUpdate

UPDATES = {
    "ksvd": KSVDUpdate,
    "ksvd-parallel": ParallelKSVDUpdate,
    "mod": MODUpdate,
    "coordinate": CoordinateUpdate,
    "orthogonal": OrthogonalUpdate,
    **_added("updates"),
}

__all__ = [
    "UPDATES",
    "Admission",
    "AnchorDescent",
    "AnchoredUpdate",
    "Coherence",
    "CoordinateUpdate",
    "DecayingStep",
    "KSVDUpdate",
    "MODUpdate",
    "OrthogonalUpdate",
    "ParallelKSVDUpdate",
    "ReconstructionCost",
    "RootStep",
    "StochasticGradient",
]
