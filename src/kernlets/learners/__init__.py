"""Dictionary learners, linear and in the feature space of a kernel."""

from .. import _classes_by_name
from .anchors import Anchors
from .budget import BudgetKernelDL
from .budget_anchors import AnchorStock
from .kernel_ksvd import KernelKSVD, KernelMOD
from .ksvd import KSVD, MOD
from .online import OnlineDictionary
from .orthogonal import OrthogonalDictionary
from .reduced import ReducedKernelDL
from .rls import RLSDictionary
from .schedule import Forgetting, Schedule

LEARNERS = {
    "ksvd": KSVD,
    "mod": MOD,
    "rls": RLSDictionary,
    "online": OnlineDictionary,
    "orthogonal": OrthogonalDictionary,
    "kernel-ksvd": KernelKSVD,
    "kernel-mod": KernelMOD,
    "reduced": ReducedKernelDL,
    "budget": BudgetKernelDL,
    **_classes_by_name("learners"),
}

__all__ = [
    "KSVD",
    "LEARNERS",
    "MOD",
    "AnchorStock",
    "Anchors",
    "BudgetKernelDL",
    "Forgetting",
    "KernelKSVD",
    "KernelMOD",
    "OnlineDictionary",
    "OrthogonalDictionary",
    "RLSDictionary",
    "ReducedKernelDL",
    "Schedule",
]
