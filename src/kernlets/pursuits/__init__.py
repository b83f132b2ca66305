"""Pursuits, which turn inner products (Gram, correlations, energies) into codes."""

from .. import _added
from .encode import encode
from .lasso import Lasso
from .omp import OMP
from .threshold import Threshold

CODERS = {
    "omp": OMP,
    "lasso": Lasso,
    "threshold": Threshold,
    **_added("pursuits"),
}

__all__ = ["CODERS", "OMP", "Lasso", "Threshold", "encode"]
