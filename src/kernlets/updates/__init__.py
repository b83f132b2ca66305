"""Atom updates: the dictionary after the codes are fixed."""

from .ksvd import KSVDUpdate
from .least_squares import MODUpdate

UPDATES = {"ksvd": KSVDUpdate, "mod": MODUpdate}

__all__ = ["UPDATES", "KSVDUpdate", "MODUpdate"]
