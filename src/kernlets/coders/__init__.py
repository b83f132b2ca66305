"""Pursuits, which turn inner products (Gram, correlations, energies) into codes."""

from numbers import Integral

from sklearn.base import clone

from .. import _classes_by_name
from ..base.constraints import clipped
from ..base.estimator import NAMED
from ..base.names import build
from ..contracts import SparseCoder
from .encoding import encode
from .lasso import Lasso
from .omp import OMP
from .ridge import Ridge
from .threshold import Threshold

CODERS = {
    "omp": OMP,
    "lasso": Lasso,
    "ridge": Ridge,
    "threshold": Threshold,
    **_classes_by_name("coders"),
}

#: The error message if both `n_nonzero_coefs` and `coder` are given.
BOTH = (
    "n_nonzero_coefs and coder are both given: set the sparsity in the coder, e.g. "
    "coder='omp:5', and leave n_nonzero_coefs out"
)

__all__ = [
    "CODERS",
    "OMP",
    "Lasso",
    "Ridge",
    "Threshold",
    "at_most_all",
    "encode",
    "resolve_coder",
]


def resolve_coder(spec: str | SparseCoder) -> SparseCoder:
    """Return the coder of a name such as ``"omp:5"``; return a coder unchanged."""
    return build("coder", spec, CODERS) if isinstance(spec, str) else spec


NAMED["coder"] = resolve_coder


def at_most_all(coder: SparseCoder, n_atoms: int) -> SparseCoder:
    """Return the coder with no more non-zeros than there are atoms."""
    width = getattr(coder, "n_nonzero_coefs", None)
    if not isinstance(width, Integral) or width <= n_atoms:
        return coder
    width = clipped("n_nonzero_coefs", int(width), n_atoms, "atoms")
    return clone(coder).set_params(n_nonzero_coefs=width)
