"""Dictionary learners, linear and in the feature space of a kernel."""

from .. import _classes_by_name
from .anchor_stock import AnchorStock
from .batch import KSVD, MOD
from .budget_learner import BudgetKernelDL
from .exact import KernelKSVD, KernelMOD
from .forgetting import Forgetting
from .online import OnlineDictionary
from .orthogonal import OrthogonalDictionary
from .reduced import ReducedKernelDL
from .rls import RLSDictionary

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
    "BudgetKernelDL",
    "Forgetting",
    "KernelKSVD",
    "KernelMOD",
    "OnlineDictionary",
    "OrthogonalDictionary",
    "RLSDictionary",
    "ReducedKernelDL",
]
