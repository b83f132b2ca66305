"""Kernel dictionaries over few anchors during training, and their update.

All vectors are in the span of φ(anchors). In an orthonormal basis of it samples and
atoms are short rows of numbers, so the K-SVD sweep of explicit dictionaries can be
used unchanged. `anchors.py` moves the anchors, and `learners/reduced.py` chooses the
first ones.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from ..backend import ops
from ..backend.arrays import (
    as_like,
    double,
    eps,
    index_like,
    namespace,
    row_norms,
    to_numpy,
)
from ..backend.constraints import NOT_NEGATIVE
from ..backend.rows import map_rows
from ..core import Array, Coded, Dictionary, Kernel, SparseCoder, SparseCodes, Step
from ..fields import Declared, Floats, Many, Number, Part
from ..pursuits import OMP
from .anchors import AnchorDescent, KernelTerm, LinearTerm, Mixed
from .ksvd import KSVDUpdate


@dataclass(frozen=True)
class AnchoredDictionary(Dictionary):
    """Atoms in the span of φ(anchors) during training; samples are row numbers.

    With K(D, D) = V Λ Vᵀ the rows of Λ^(-1/2) Vᵀ φ(D) are orthonormal. In that basis a
    sample is K(y, D) V Λ^(-1/2), and `outside` is what lies beyond the span.
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

    given = ("kernel", "samples", "energies")

    kernel: Kernel
    samples: Array  # (N, p)
    energies: Array  # (N,) κ(y, y)
    anchors: Array  # (n, p)
    basis: Array  # (n, r) V Λ^(-1/2)
    features: Array  # (N, r)
    outside: Array  # (N,) squared distances to the span
    atoms: Array  # (m, r)
    linear_errors: tuple[float, ...] = ()  # ‖Y − XD‖² after each iteration so far

    @classmethod
    def spanned(
        cls,
        kernel: Kernel,
        samples: Array,  # (N, p)
        energies: Array,  # (N,)
        anchors: Array,  # (n, p)
        coefs: Array,  # (m, n)
    ) -> AnchoredDictionary:
        """Atoms Σᵢ coefs[j, i] φ(anchorᵢ), whatever their norms."""
        metric = kernel(double(anchors))
        inverse = inverse_root(metric, eps(anchors))
        basis = as_like(inverse, anchors)
        row_bytes = (samples.shape[1] + 2 * len(anchors)) * anchors.dtype.itemsize
        features = map_rows(
            lambda block: kernel(block, anchors) @ basis, samples, row_bytes
        )
        outside = namespace(features).clip(energies - row_norms(features), 0, None)
        atoms = as_like(double(coefs) @ metric @ inverse, anchors)
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
        """Energy of the part within the span, the only part that codes can explain."""
        return row_norms(self.features[X])

    def coordinates(self, X: Array) -> Array:  # (n, r)
        return self.features[X]

    def dual(self) -> Array:  # (m, r)
        return self.atoms

    def with_weights(self, weights: Array) -> AnchoredDictionary:
        return replace(self, atoms=weights)

    def unit(self) -> AnchoredDictionary:
        """Atoms of norm 1, aⱼᵀ K(D, D) aⱼ = 1."""
        xp = namespace(self.atoms)
        norms = xp.sqrt(row_norms(self.atoms))
        return self.with_weights(self.atoms / xp.where(norms > 0, norms, 1.0)[:, None])

    def with_anchors(self, anchors: Array) -> AnchoredDictionary:
        """The same coefficients over other anchors."""
        moved = self.spanned(
            self.kernel, self.samples, self.energies, anchors, self.coefs
        )
        return replace(moved, linear_errors=self.linear_errors)

    def inside(self, codes: SparseCodes) -> Array:  # (N,)
        """Squared errors within the span, ‖f − Γ·atoms‖²."""
        residual = ops.subtract_codes(
            self.features, codes.indices, codes.values, self.atoms
        )
        return row_norms(residual)


def inverse_root(metric: Array, precision: float) -> Array:  # (n, n) -> (n, r)
    """V Λ^(-1/2) of the eigenpairs above rounding: anchors that collide drop out.

    Two roundings count: that of `metric` itself, in float64, and the `precision` of the
    numbers that are going to be multiplied by the result.
    """
    xp = namespace(metric)
    values, vectors = xp.linalg.eigh(metric)
    cut = max(len(values) * eps(metric), 4 * precision)
    kept = values > values[-1] * cut
    return vectors[:, kept] / xp.sqrt(values[kept])


class AnchoredUpdate(KSVDUpdate):
    """K-SVD sweep in the span of the anchors, RKDL eqs. (4) and (5), then the anchors.

    Parameters
    ----------
    restrict : bool
        Update the samples that use an atom, as the sparsity constraint of eq. (3)
        demands; otherwise all of them, which makes the codes dense.
    descent : AnchorDescent, optional
        How the anchors move; they stay without it.
    linear_weight, linear_coder : float, SparseCoder
        λ in eq. (8), and the pursuit for the codes X there: by default `OMP` with 5
        non-zeros, but at most a quarter of the features.
    exact, min_uses, max_coherence
        As in `KSVDUpdate`; the samples that replace atoms are those worst represented
        within the span.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **KSVDUpdate._parameter_constraints,
        "restrict": ["boolean"],
        "descent": [AnchorDescent, None],
        "linear_weight": [NOT_NEGATIVE],
        "linear_coder": [SparseCoder, None],
    }

    def __init__(
        self,
        restrict: bool = True,
        descent: AnchorDescent | None = None,
        *,
        linear_weight: float = 0.0,
        linear_coder: SparseCoder | None = None,
        exact: bool = False,
        min_uses: int = 4,
        max_coherence: float = 0.99,
    ) -> None:
        super().__init__(exact, min_uses, max_coherence=max_coherence)
        self.restrict = restrict
        self.descent = descent
        self.linear_weight = linear_weight
        self.linear_coder = linear_coder

    def step(self, dictionary: Any, coded: Coded, rng: np.random.Generator) -> Step:
        codes = coded.codes if self.restrict else _widened(coded.codes)
        dictionary, codes = self._swept(dictionary, codes, rng)
        if self.descent is not None:
            dictionary = self._descended(dictionary, codes, self.descent)
        errors = to_numpy(dictionary.inside(codes))
        total = errors.sum(dtype=np.float64) + float(double(dictionary.outside).sum())
        uses = coded.codes.uses()
        fresh: Any = self._refreshed(dictionary.unit(), coded.X, uses, errors)
        return Step(fresh.unit(), float(total))

    def _swept(
        self,
        dictionary: AnchoredDictionary,
        codes: SparseCodes,
        rng: np.random.Generator,
    ) -> tuple[AnchoredDictionary, SparseCodes]:
        """Atoms and the coefficients that go with them, one atom after the other."""
        xp = namespace(dictionary.atoms)
        order = index_like(rng.permutation(dictionary.n_atoms), dictionary.atoms)
        atoms, values = (
            xp.asarray(array, copy=True) for array in (dictionary.atoms, codes.values)
        )
        residual = ops.subtract_codes(dictionary.features, codes.indices, values, atoms)
        ops.ksvd_sweep(residual, atoms, codes.indices, values, order, self.exact)
        return dictionary.with_weights(atoms), replace(codes, values=values)

    def _descended(
        self,
        dictionary: AnchoredDictionary,
        codes: SparseCodes,
        descent: AnchorDescent,
    ) -> AnchoredDictionary:
        start, samples = dictionary.anchors, dictionary.samples
        weights = codes.toarray() @ dictionary.coefs
        kernel = KernelTerm(dictionary.kernel, samples, dictionary.energies, weights)
        linear = self._linear_term(samples, start)
        objective = kernel if linear is None else Mixed(kernel, linear)
        moved = dictionary.with_anchors(descent.run(objective, start))
        if linear is None:
            return moved
        noted = (*moved.linear_errors, linear.error(moved.anchors))
        return replace(moved, linear_errors=noted)

    def _linear_term(self, samples: Array, anchors: Array) -> LinearTerm | None:
        if not self.linear_weight:
            return None
        width = max(1, min(5, samples.shape[1] // 4, len(anchors)))
        coder = OMP(width) if self.linear_coder is None else self.linear_coder
        return LinearTerm(samples, anchors, coder, self.linear_weight)


def _widened(codes: SparseCodes) -> SparseCodes:
    """The codes with a slot for every atom, zero where it was not used."""
    slots = np.tile(np.arange(codes.n_atoms), (len(codes), 1))
    return SparseCodes(as_like(slots, codes.indices), codes.toarray(), codes.n_atoms)
