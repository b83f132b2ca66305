"""Kernels κ(x, y), given as a class (``RBF(sigma=2.0)``) or by name (``"rbf:2"``).

`KERNELS` lists the kernels that have a name. A kernel in a file of its own gets there
through its line in `kernlets/__init__.py`.
"""

from __future__ import annotations

from typing import Any

from .. import _classes_by_name
from ..base.estimator import NAMED
from ..base.names import make, parse
from .base import Constant, Kernel, Normalized, Product, Sum, as_kernel, reset
from .custom import Callable, Precomputed
from .distance import RBF, Laplacian, Matern, Radial, RationalQuadratic
from .dot import Cosine, Dot, Linear, Polynomial, Sigmoid
from .histogram import Chi2, Intersection
from .indefinite import Clipped, Shifted, Squared

__all__ = [
    "KERNELS",
    "RBF",
    "Callable",
    "Chi2",
    "Clipped",
    "Constant",
    "Cosine",
    "Dot",
    "Intersection",
    "Kernel",
    "Laplacian",
    "Linear",
    "Matern",
    "Normalized",
    "Polynomial",
    "Precomputed",
    "Product",
    "Radial",
    "RationalQuadratic",
    "Shifted",
    "Sigmoid",
    "Squared",
    "Sum",
    "as_kernel",
    "kernel_or_class",
    "resolve",
]

KERNELS: dict[str, type[Kernel]] = {
    "linear": Linear,
    "polynomial": Polynomial,
    "rbf": RBF,
    "laplacian": Laplacian,
    "matern": Matern,
    "rational_quadratic": RationalQuadratic,
    "sigmoid": Sigmoid,
    "cosine": Cosine,
    "chi2": Chi2,
    "intersection": Intersection,
    "precomputed": Precomputed,
    **{
        name.replace("-", "_"): cls for name, cls in _classes_by_name("kernels").items()
    },
}

SHORT = {"poly": "polynomial"}
SCIKIT_LEARN = {(Polynomial, "gamma"): "scale", (Sigmoid, "gamma"): "scale"}


def resolve(spec: Any, **params: Any) -> Kernel:
    """Return the kernel that `spec` describes.

    Parameters
    ----------
    spec : Kernel, str or callable
        A kernel; a name with parameters in the order of the constructor or by name
        (``"rbf"``, ``"poly:2"``, ``"rbf:0.5"``, ``"matern:nu=2.5"``,
        ``"poly:3,coef0=1"``); or a function of two blocks (see `Callable`).
    **params
        Further parameters; scikit-learn's names for them are accepted.
    """
    if isinstance(spec, Kernel):
        return reset(spec, **params) if params else spec
    if isinstance(spec, str):
        name, colon, arguments = spec.partition(":")
        spec = name.replace("-", "_") + colon + arguments
        kind, parsed_params = parse("kernel", spec, KERNELS, SHORT)
        return make(kind, _library_names(kind, {**parsed_params, **params}))
    if isinstance(spec, type) and issubclass(spec, Kernel):
        return make(spec, _library_names(spec, params))
    if callable(spec):
        return Callable(spec, **params)
    raise TypeError(
        f"kernel={spec!r} must be a kernel such as RBF(sigma=1.0), a name such as "
        "'rbf' or 'poly:2', or a function of two blocks of samples"
    )


def kernel_or_class(spec: Any) -> Any:
    """Return the kernel, or the class of a named one, which tells what it takes.

    It is None for None, the kernel of linear atoms.
    """
    if not isinstance(spec, str):
        return None if spec is None else resolve(spec)
    name = spec.partition(":")[0].strip().lower().replace("-", "_")
    return KERNELS.get(SHORT.get(name, name)) or resolve(spec)


def _library_names(kind: type[Kernel], params: dict[str, Any]) -> dict[str, Any]:
    """Return parameters by the names of this library, not scikit-learn's."""
    return {SCIKIT_LEARN.get((kind, name), name): v for name, v in params.items()}


NAMED["kernel"] = resolve
