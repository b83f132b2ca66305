"""Dictionaries: what answers a pursuit's questions.

`ExplicitDictionary` has its atoms as rows of a matrix. `KernelDictionary` has them
as combinations of φ(anchors) in the feature space of a kernel.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from .backend.arrays import namespace, row_norms
from .core import Array, Dictionary, Kernel


@dataclass(frozen=True)
class ExplicitDictionary(Dictionary):
    """Atoms are the rows of a matrix: gram D Dᵀ, correlations X Dᵀ, energies ‖x‖²."""

    atoms: Array  # (m, p)

    @property
    def n_atoms(self) -> int:
        return self.atoms.shape[0]

    @property
    def weights(self) -> Array:  # (m, p)
        return self.atoms

    @property
    def row_bytes(self) -> int:
        return self.n_atoms * self.atoms.dtype.itemsize

    def gram(self) -> Array:
        return self.atoms @ self.atoms.T

    def correlate(self, X: Array) -> Array:
        return X @ self.atoms.T

    def energy(self, X: Array) -> Array:
        return row_norms(X)

    def coordinates(self, X: Array) -> Array:
        return X

    def metric(self) -> None:
        return None

    def with_weights(self, weights: Array) -> ExplicitDictionary:
        return replace(self, atoms=weights)


@dataclass(frozen=True)
class KernelDictionary(Dictionary):
    """Atom j is Σᵢ coefs[j, i] φ(anchorᵢ): gram A K(Z,Z) Aᵀ, correlations K(X,Z) Aᵀ."""

    kernel: Kernel
    anchors: Array  # (r, p)
    coefs: Array  # (m, r)

    @property
    def n_atoms(self) -> int:
        return self.coefs.shape[0]

    @property
    def weights(self) -> Array:  # (m, r)
        return self.coefs

    @property
    def row_bytes(self) -> int:
        return sum(self.coefs.shape) * self.coefs.dtype.itemsize

    def metric(self) -> Array:  # (r, r)
        return self.kernel(self.anchors)

    def gram(self) -> Array:
        return self.coefs @ self.metric() @ self.coefs.T

    def correlate(self, X: Array) -> Array:
        return self.kernel(X, self.anchors) @ self.coefs.T

    def energy(self, X: Array) -> Array:
        return self.kernel.diag(X)

    def coordinates(self, X: Array) -> Array:  # (n, r)
        """K(X,Z) K(Z,Z)⁺: the samples projected on the span of φ(anchors)."""
        xp = namespace(self.coefs)
        return self.kernel(X, self.anchors) @ xp.linalg.pinv(self.metric())

    def with_weights(self, weights: Array) -> KernelDictionary:
        return replace(self, coefs=weights)
