"""Dictionaries, which provide the inner products that pursuits need.

The atoms of `ExplicitDictionary` are rows of a matrix. Those of `KernelDictionary` are
combinations of φ(anchors) in the feature space of a kernel. During training
`GramDictionary` is the same with the kernel matrix in memory, and `AnchoredDictionary`
the same over few anchors.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from .contracts import Array, Dictionary, SparseCodes
from .data.block_loop import stacked_rows
from .data.limits import memory_limit
from .kernels import Kernel
from .loops.codes import codes_cross
from .loops.table import subtract_codes
from .numerics.arrays import (
    as_like,
    diagonal,
    double,
    empty,
    eps,
    index_like,
    namespace,
    row_norms,
    to_numpy,
    zeros,
)
from .numerics.products import matmul, outer_products
from .numerics.text import field_text
from .preimage import Preimages, over_landmarks, preimages
from .schema import (
    Declared,
    Either,
    Floats,
    Indices,
    Many,
    Nothing,
    Number,
    Part,
    Samples,
)

GRAM_SHARE = 8  # a Gram matrix of up to 1/8 of the memory option is kept


def _check_shape(name: str, array: Array, shape: tuple[int | None, ...]) -> None:
    """Refuse shapes that would make pursuits read out of bounds; None is any size."""
    sizes = tuple(array.shape)
    matches = [n in (None, size) for size, n in zip(sizes, shape, strict=False)]
    if len(sizes) != len(shape) or not all(matches):
        expected = ", ".join("any" if n is None else str(n) for n in shape)
        raise ValueError(f"{name} has the shape {sizes}, but it must be ({expected})")


class RemembersGram(Dictionary):
    """A dictionary that computes its Gram matrix once, for all blocks of samples.

    Its atoms must never change in place. The stored Gram matrix is neither compared
    nor pickled.
    """

    _memo = "_remembered_gram"

    def gram(self) -> Array:
        gram = self.__dict__.get(self._memo)
        if gram is None:
            gram = self._compute_gram()
            if gram.nbytes <= memory_limit(gram) // GRAM_SHARE:
                self.__dict__[self._memo] = gram  # past the guard of a frozen class
        return gram

    @abstractmethod
    def _compute_gram(self) -> Array:  # (m, m)
        """Return inner products of the atoms."""

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k != self._memo}


@dataclass(frozen=True)
class ExplicitDictionary(RemembersGram):
    """Atoms are the rows of a matrix: gram D Dᵀ, correlations X Dᵀ, energies ‖x‖².

    Parameters
    ----------
    atoms : array (m, p)
        The matrix D, one atom per row.

    Examples
    --------
    >>> import numpy as np
    >>> from kernlets import ExplicitDictionary
    >>> dictionary = ExplicitDictionary(np.eye(2, 3))
    >>> dictionary.correlate(np.array([[5.0, 6.0, 7.0]])).tolist()
    [[5.0, 6.0]]
    """

    _declared: ClassVar[Declared] = {"atoms": Floats("m", "p")}

    atoms: Array  # (m, p)

    __repr__ = field_text

    def __post_init__(self) -> None:
        _check_shape("atoms", self.atoms, (None, None))

    @property
    def weights(self) -> Array:  # (m, p)
        return self.atoms

    @property
    def row_bytes(self) -> int:
        return self.atoms.shape[0] * self.atoms.dtype.itemsize

    def _compute_gram(self) -> Array:
        return outer_products(self.atoms)

    def correlate(self, X: Array) -> Array:
        return X @ self.atoms.T

    def energy(self, X: Array) -> Array:
        return row_norms(X)

    def coordinates(self, X: Array) -> Array:
        return X

    def cross(self, codes: SparseCodes, X: Array) -> Array:  # (m, p)
        return codes_cross(codes, X)

    def dual(self) -> Array:
        return self.atoms

    def with_weights(self, weights: Array) -> ExplicitDictionary:
        return replace(self, atoms=weights)

    @property
    def linear_atoms(self) -> Array:  # (m, p)
        return self.atoms

    def restricted(self, features: Array) -> ExplicitDictionary:
        """Return the atoms of D over the observed features: some of its columns."""
        return ExplicitDictionary(self.atoms[:, features])


@dataclass(frozen=True)
class KernelDictionary(RemembersGram):
    """Atom j is Σᵢ coefs[j, i] φ(anchorᵢ): gram A K(Z,Z) Aᵀ, correlations K(X,Z) Aᵀ.

    Parameters
    ----------
    kernel : Kernel
        The kernel, with all parameters set.
    anchors : array (r, p)
        The anchors Z; row numbers if the kernel is precomputed.
    coefs : array (m, r)
        The coefficients A of the atoms over the anchors.
    known_gram : array (m, m), optional
        The Gram matrix of the atoms, if training has computed it.
    typical_energy : float, optional
        The κ(x, x) assumed for new samples of a precomputed kernel.

    Examples
    --------
    >>> import numpy as np
    >>> from kernlets import KernelDictionary, Polynomial
    >>> anchors, coefs = np.eye(2), np.array([[1.0, 1.0]])
    >>> KernelDictionary(Polynomial(2), anchors, coefs).gram().tolist()
    [[2.0]]
    """

    _declared: ClassVar[Declared] = {
        "kernel": Part(Kernel),
        "anchors": Either(Floats("r", "p", csr=True), Indices("r"), Samples("r")),
        "coefs": Floats("m", "r"),
        "known_gram": Either(Nothing(), Floats("m", "m")),
        "typical_energy": Either(Nothing(), Number(least=0)),
    }

    kernel: Kernel
    anchors: Array  # (r, p)
    coefs: Array  # (m, r)
    known_gram: Array | None = None  # (m, m)
    typical_energy: float | None = None

    __repr__ = field_text

    def __post_init__(self) -> None:
        _check_shape("coefs", self.coefs, (None, self.anchors.shape[0]))
        if self.known_gram is not None:
            _check_shape("known_gram", self.known_gram, (self.n_atoms, self.n_atoms))

    @property
    def weights(self) -> Array:  # (m, r)
        return self.coefs

    @property
    def row_bytes(self) -> int:
        return sum(self.coefs.shape) * self.coefs.dtype.itemsize

    def metric(self) -> Array:  # (r, r)
        """Return K(Z, Z)."""
        return self.kernel(self.anchors)

    def dual(self) -> Array:  # (m, r)
        return self.coefs @ self.metric()

    def _compute_gram(self) -> Array:
        if self.known_gram is not None:
            return self.known_gram
        return self.dual() @ self.coefs.T

    def correlate(self, X: Array) -> Array:
        return self.kernel(X, self.anchors) @ self.coefs.T

    def energy(self, X: Array) -> Array:
        """Return κ(x, x), or a typical value for rows of a precomputed K(X_new, X)."""
        if self.kernel.by_index and self.typical_energy is not None:
            energy = empty((X.shape[0],), like=self.coefs)
            energy[...] = self.typical_energy
            return energy
        return self.kernel.diag(X)

    def coordinates(self, X: Array) -> Array:  # (n, r)
        """Return K(X,Z) K(Z,Z)⁺: the samples projected on the span of φ(anchors)."""
        xp = namespace(self.coefs)
        return self.kernel(X, self.anchors) @ xp.linalg.pinv(self.metric())

    def with_weights(self, weights: Array) -> KernelDictionary:
        return replace(self, coefs=weights, known_gram=None)

    def restricted(self, features: Array) -> KernelDictionary:
        """Return the same combinations of φ of the observed parts: A K(Z_o,Z_o) Aᵀ.

        See `kernels.base.ElementwiseKernel.restricted` for the kernel.
        """
        anchors = self.anchors
        anchors = anchors.toarray() if sparse.issparse(anchors) else anchors
        kernel = self.kernel.restricted(features.shape[0] / anchors.shape[1])
        return KernelDictionary(kernel, anchors[:, features], self.coefs)

    def restricted_share(self, share: float) -> float:
        return self.kernel.restricted_share(share)

    @classmethod
    def behind(
        cls, feature_map: Any, dictionary: ExplicitDictionary
    ) -> KernelDictionary:
        """Return atoms learned on features of a Nyström or IKA map, in feature space.

        See `kernlets.preimage.over_landmarks`.
        """
        coefs = over_landmarks(feature_map, dictionary.atoms)
        return cls(feature_map.kernel_, feature_map.landmarks_, coefs)

    def preimages(self, method: str = "auto", **options: Any) -> Preimages:
        """Return points that look like the atoms; see `kernlets.preimage`.

        Sign and length of an atom are arbitrary, so it is first flipped towards the
        anchors and scaled to their typical norm in feature space.
        """
        xp = namespace(self.coefs)
        dual, energy = self.dual(), self.kernel.diag(self.anchors)
        factors = xp.sqrt(xp.mean(energy) / xp.sum(dual * self.coefs, axis=1))
        signed_factors = xp.where(xp.sum(dual, axis=1) < 0, -factors, factors)
        coefs = self.coefs * signed_factors[:, None]
        return preimages(self.kernel, self.anchors, coefs, method, **options)


@dataclass(frozen=True)
class GramDictionary(Dictionary):
    """A kernel dictionary during training, with the training samples as anchors.

    Samples are given by their row numbers, coordinates are unit vectors, and the
    kernel matrix is never multiplied again: `products` follow the atoms. The K-SVD
    update that it is passed to owns it, and overwrites `coefs` and `products`: take a
    `snapshot` to keep them.
    """

    _declared: ClassVar[Declared] = {
        "matrix": Floats("N", "N"),
        "coefs": Floats("m", "N"),
        "products": Floats("m", "N"),
    }

    constant_fields = ("matrix",)

    matrix: Array  # (N, N) K(X, X)
    coefs: Array  # (m, N)
    products: Array  # (m, N) coefs · K: correlations of all atoms with all samples

    @classmethod
    def of_samples(cls, matrix: Array, rows: Array) -> GramDictionary:
        """Return atoms φ(x)/‖φ(x)‖ of some rows, whose products are rows of K."""
        kernel_rows = matrix[rows]
        norms = namespace(matrix).sqrt(diagonal(matrix)[rows])[:, None]
        coefs = zeros((len(rows), matrix.shape[0]), like=matrix)
        coefs[np.arange(len(rows)), rows] = 1
        return cls(matrix, coefs / norms, kernel_rows / norms)

    @classmethod
    def of_coefs(cls, matrix: Array, coefs: Array) -> GramDictionary:  # (N, N), (m, N)
        """Return atoms Σᵢ coefs[j, i] φ(xᵢ), divided by their norms."""
        products = matmul(coefs, matrix)
        energies = (coefs * products).sum(axis=1)
        if not bool((energies > 0).all()):
            raise ValueError(
                "init='normal' mixes all samples, and a mixture has no positive "
                "squared norm: the kernel is not positive semi-definite, or too large; "
                "use init='samples' or another kernel"
            )
        norms = namespace(matrix).sqrt(energies)[:, None]
        return cls(matrix, coefs / norms, products / norms)

    @property
    def weights(self) -> Array:  # (m, N)
        return self.coefs

    @property
    def row_bytes(self) -> int:
        return 2 * self.n_atoms * self.coefs.dtype.itemsize

    def dual(self) -> Array:  # (m, N)
        return self.products

    def gram(self) -> Array:
        return matmul(self.products, self.coefs.T)

    def correlate(self, X: Array) -> Array:
        xp = namespace(self.products)
        return xp.asarray(self.products[:, X].T, copy=True)

    def energy(self, X: Array) -> Array:
        return diagonal(self.matrix)[X]

    def coordinates(self, X: Array) -> Array:  # (n, N)
        unit_vectors = zeros((len(X), self.matrix.shape[0]), like=self.matrix)
        unit_vectors[np.arange(len(X)), X] = 1
        return unit_vectors

    def cross(self, codes: SparseCodes, X: Array) -> Array:  # (m, N)
        """Γᵀ, written to the columns of the rows without forming unit vectors."""
        cross = zeros(self.coefs.shape, like=self.coefs)
        cross[:, X] = codes.toarray().T
        return cross

    def with_weights(self, weights: Array) -> GramDictionary:
        """Return new atoms; only rows that changed are multiplied by K."""
        xp = namespace(weights)
        changed_atoms = to_numpy(xp.any(weights != self.coefs, axis=1)).nonzero()[0]
        indices = index_like(changed_atoms, weights)
        products = xp.asarray(self.products, copy=True)
        if len(changed_atoms):
            products[indices] = matmul(weights[indices], self.matrix)
        return replace(self, coefs=weights, products=products)

    def snapshot(self) -> GramDictionary:
        copy = partial(namespace(self.coefs).asarray, copy=True)
        return replace(self, coefs=copy(self.coefs), products=copy(self.products))

    def rescaled(self, factors: Array) -> GramDictionary:
        coefs, products = (a * factors[:, None] for a in (self.coefs, self.products))
        return replace(self, coefs=coefs, products=products)


@dataclass(frozen=True)
class AnchoredDictionary(Dictionary):
    """Atoms in the span of φ(anchors) during training; samples are row numbers.

    With K(D, D) = V Λ Vᵀ the rows of Λ^(-1/2) Vᵀ φ(D) are orthonormal. In that basis a
    sample is K(y, D) V Λ^(-1/2), and `outside` is its squared distance to the span.
    """

    _declared: ClassVar[Declared] = {
        "kernel": Part(Kernel),
        "samples": Floats("N", "p"),
        "energies": Floats("N"),
        "anchors": Floats("n", "p"),
        "basis": Floats("n", "r"),
        "features": Floats("N", "r"),
        "outside": Floats("N"),
        "atoms": Floats("m", "r"),
        "linear_errors": Many(Number(), None),
    }

    constant_fields = ("kernel", "samples", "energies")

    kernel: Kernel
    samples: Array  # (N, p)
    energies: Array  # (N,) κ(y, y)
    anchors: Array  # (n, p)
    basis: Array  # (n, r) V Λ^(-1/2)
    features: Array  # (N, r)
    outside: Array  # (N,) squared distances to the span
    atoms: Array  # (m, r)
    linear_errors: tuple[float, ...] = ()  # ‖Y − XD‖² of the updates up to now

    @classmethod
    def over_anchors(
        cls,
        kernel: Kernel,
        samples: Array,  # (N, p)
        energies: Array,  # (N,)
        anchors: Array,  # (n, p)
        coefs: Array,  # (m, n)
    ) -> AnchoredDictionary:
        """Return atoms Σᵢ coefs[j, i] φ(anchorᵢ), whatever their norms."""
        metric = kernel(double(anchors))
        double_basis = inverse_root(metric, eps(anchors))
        basis = as_like(double_basis, anchors)
        row_bytes = (samples.shape[1] + 2 * len(anchors)) * anchors.dtype.itemsize
        features = stacked_rows(
            lambda block: kernel(block, anchors) @ basis, samples, row_bytes
        )
        outside = namespace(features).clip(energies - row_norms(features), 0, None)
        atoms = as_like(double(coefs) @ metric @ double_basis, anchors)
        return cls(kernel, samples, energies, anchors, basis, features, outside, atoms)

    @property
    def coefs(self) -> Array:  # (m, n)
        """The atoms over φ(anchors)."""
        return self.atoms @ self.basis.T

    @property
    def weights(self) -> Array:  # (m, r)
        return self.atoms

    @property
    def row_bytes(self) -> int:
        return sum(self.atoms.shape) * self.atoms.dtype.itemsize

    def gram(self) -> Array:
        return self.atoms @ self.atoms.T

    def correlate(self, X: Array) -> Array:
        return self.features[X] @ self.atoms.T

    def energy(self, X: Array) -> Array:
        """Return energies of the projections on the span, which codes can explain."""
        return row_norms(self.features[X])

    def coordinates(self, X: Array) -> Array:  # (n, r)
        return self.features[X]

    def dual(self) -> Array:  # (m, r)
        return self.atoms

    def with_weights(self, weights: Array) -> AnchoredDictionary:
        return replace(self, atoms=weights)

    def with_unit_atoms(self) -> AnchoredDictionary:
        """Return atoms of norm 1, aⱼᵀ K(D, D) aⱼ = 1."""
        xp = namespace(self.atoms)
        norms = xp.sqrt(row_norms(self.atoms))
        return self.with_weights(self.atoms / xp.where(norms > 0, norms, 1.0)[:, None])

    def with_anchors(self, anchors: Array) -> AnchoredDictionary:
        """Return the same coefficients over other anchors."""
        dictionary = self.over_anchors(
            self.kernel, self.samples, self.energies, anchors, self.coefs
        )
        return replace(dictionary, linear_errors=self.linear_errors)

    def errors_in_span(self, codes: SparseCodes) -> Array:  # (N,)
        """Return squared errors within the span, ‖f − Γ·atoms‖²."""
        residual = subtract_codes(
            self.features, codes.indices, codes.values, self.atoms
        )
        return row_norms(residual)


def inverse_root(metric: Array, precision: float) -> Array:  # (n, n) -> (n, r)
    """Return V Λ^(-1/2) of the eigenvalues above rounding; equal anchors count once.

    There are two rounding errors: that of `metric`, in float64, and the `precision` of
    the numbers that the result is multiplied by.
    """
    xp = namespace(metric)
    values, vectors = xp.linalg.eigh(metric)
    rounding = max(len(values) * eps(metric), 4 * precision)
    is_above_rounding = values > values[-1] * rounding
    return vectors[:, is_above_rounding] / xp.sqrt(values[is_above_rounding])
