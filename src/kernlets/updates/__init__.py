"""Atom updates, which improve the dictionary while the codes are fixed."""

from .. import _classes_by_name
from ..base.estimator import NAMED
from ..base.names import build
from ..contracts import AtomUpdate
from .admission import (
    Admission,
    BabelMeasure,
    Coherence,
    FeatureDistance,
    LinearDependence,
    ReconstructionCost,
)
from .budget_rules import Budget, DecayingStep, RootStep, StochasticGradient
from .coordinate import CoordinateUpdate
from .descent import AnchorDescent
from .ksvd import KSVDUpdate
from .ksvd_jacobi import JacobiKSVDUpdate
from .ksvd_parallel import ParallelKSVDUpdate
from .mod import MODUpdate
from .orthogonal import OrthogonalUpdate
from .reduced import AnchoredUpdate

UPDATES = {
    "ksvd": KSVDUpdate,
    "ksvd-jacobi": JacobiKSVDUpdate,
    "ksvd-parallel": ParallelKSVDUpdate,
    "mod": MODUpdate,
    "coordinate": CoordinateUpdate,
    "orthogonal": OrthogonalUpdate,
    **_classes_by_name("updates"),
}

__all__ = [
    "UPDATES",
    "Admission",
    "AnchorDescent",
    "AnchoredUpdate",
    "BabelMeasure",
    "Budget",
    "Coherence",
    "CoordinateUpdate",
    "DecayingStep",
    "FeatureDistance",
    "JacobiKSVDUpdate",
    "KSVDUpdate",
    "LinearDependence",
    "MODUpdate",
    "OrthogonalUpdate",
    "ParallelKSVDUpdate",
    "ReconstructionCost",
    "RootStep",
    "StochasticGradient",
    "resolve_update",
]


def resolve_update(spec: str | AtomUpdate) -> AtomUpdate:
    """Return the update that `spec` describes: an update, or a name in `UPDATES`.

    A name may carry parameters, such as ``"ksvd:exact=True"``.
    """
    if not isinstance(spec, str):
        return spec
    return build("update", spec, UPDATES)


NAMED["update"] = resolve_update
