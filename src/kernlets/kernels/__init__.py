"""Kernels κ(x, y), given as a class (``RBF(sigma=2.0)``) or by name (``"rbf:2"``)."""

from .by_name import KERNELS, resolve
from .compose import Constant, Normalized, Product, Sum, as_kernel
from .corrected import Clipped, Shifted, Squared
from .dot import Cosine, Dot, Linear, Polynomial, Sigmoid
from .histogram import Chi2, Intersection
from .radial import RBF, Laplacian, Matern, Radial, RationalQuadratic
from .user_kernels import Callable, Precomputed

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
    "resolve",
]
