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
from .anchored import AnchoredUpdate
from .anchors import AnchorDescent
from .budget_rules import Budget, DecayingStep, RootStep, StochasticGradient
from .ksvd import KSVDUpdate, ParallelKSVDUpdate
from .least_squares import CoordinateUpdate, MODUpdate
from .orthogonal import OrthogonalUpdate

UPDATES = {
    "ksvd": KSVDUpdate,
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
    """The update that `spec` describes: an update, or a name in `UPDATES`.

    A name may carry parameters, such as ``"ksvd:exact=True"``.
    """
    if not isinstance(spec, str):
        return spec
    return build("update", spec, UPDATES)


NAMED["update"] = resolve_update
