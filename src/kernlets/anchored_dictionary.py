"""`AnchoredDictionary`: a kernel dictionary over few anchors during training.

`updates/anchored.py` updates it, and `learners/reduced.py` makes the first one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from .contracts import Array, Dictionary, Kernel, SparseCodes
from .data.block_loop import stacked_rows
from .loops import ops
from .numerics.arrays import as_like, double, eps, namespace, row_norms
from .schema import Declared, Floats, Many, Number, Part


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
        """Atoms Σᵢ coefs[j, i] φ(anchorᵢ), whatever their norms."""
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
    def n_atoms(self) -> int:
        return self.atoms.shape[0]

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
        """Energies of the projections on the span, which codes can explain."""
        return row_norms(self.features[X])

    def coordinates(self, X: Array) -> Array:  # (n, r)
        return self.features[X]

    def dual(self) -> Array:  # (m, r)
        return self.atoms

    def with_weights(self, weights: Array) -> AnchoredDictionary:
        return replace(self, atoms=weights)

    def with_unit_atoms(self) -> AnchoredDictionary:
        """Atoms of norm 1, aⱼᵀ K(D, D) aⱼ = 1."""
        xp = namespace(self.atoms)
        norms = xp.sqrt(row_norms(self.atoms))
        return self.with_weights(self.atoms / xp.where(norms > 0, norms, 1.0)[:, None])

    def with_anchors(self, anchors: Array) -> AnchoredDictionary:
        """The same coefficients over other anchors."""
        dictionary = self.over_anchors(
            self.kernel, self.samples, self.energies, anchors, self.coefs
        )
        return replace(dictionary, linear_errors=self.linear_errors)

    def errors_in_span(self, codes: SparseCodes) -> Array:  # (N,)
        """Squared errors within the span, ‖f − Γ·atoms‖²."""
        residual = ops.subtract_codes(
            self.features, codes.indices, codes.values, self.atoms
        )
        return row_norms(residual)


def inverse_root(metric: Array, precision: float) -> Array:  # (n, n) -> (n, r)
    """V Λ^(-1/2) of the eigenvalues above rounding; equal anchors count once.

    There are two rounding errors: that of `metric`, in float64, and the `precision` of
    the numbers that the result is multiplied by.
    """
    xp = namespace(metric)
    values, vectors = xp.linalg.eigh(metric)
    rounding = max(len(values) * eps(metric), 4 * precision)
    is_above_rounding = values > values[-1] * rounding
    return vectors[:, is_above_rounding] / xp.sqrt(values[is_above_rounding])
