"""Dictionary learners."""

from .batch import KSVD, MOD

LEARNERS = {"ksvd": KSVD, "mod": MOD}

__all__ = ["KSVD", "LEARNERS", "MOD"]
