"""Dictionary learners."""

from .batch import KSVD, MOD
from .exact import KernelKSVD, KernelMOD
from .orthogonal import OrthogonalDictionary
from .reduced import ReducedKernelDL

LEARNERS = {
    "ksvd": KSVD,
    "mod": MOD,
    "orthogonal": OrthogonalDictionary,
    "kernel-ksvd": KernelKSVD,
    "kernel-mod": KernelMOD,
    "reduced": ReducedKernelDL,
}

__all__ = [
    "KSVD",
    "LEARNERS",
    "MOD",
    "KernelKSVD",
    "KernelMOD",
    "OrthogonalDictionary",
    "ReducedKernelDL",
]
