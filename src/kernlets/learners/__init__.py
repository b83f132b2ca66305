"""Dictionary learners."""

from .batch import KSVD, MOD
from .exact import KernelKSVD, KernelMOD

LEARNERS = {
    "ksvd": KSVD,
    "mod": MOD,
    "kernel-ksvd": KernelKSVD,
    "kernel-mod": KernelMOD,
}

__all__ = ["KSVD", "LEARNERS", "MOD", "KernelKSVD", "KernelMOD"]
