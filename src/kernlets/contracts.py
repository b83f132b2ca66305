"""The contracts of the library: kernels, dictionaries, coders and updates.

A pursuit never needs the samples or the atoms, only inner products. So a dictionary
is any object that provides the Gram matrix, correlations and energies, and everything
else in the library uses only the classes below. There is no algorithm here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from scipy import sparse

from .numerics.arrays import Array as Array
from .numerics.arrays import bincount, is_torch, namespace, to_numpy
from .numerics.text import field_text
from .schema import Declared, Either, Floats, Indices, Nothing, Number, Part, Whole
from .sklearn_base import BaseEstimator

UNUSED = -1  # atom index of an empty slot in SparseCodes


@dataclass(frozen=True)
class SparseCodes:
    """n sparse vectors over m atoms, stored with a fixed number of slots each.

    Each vector has `width` slots; empty slots have index `UNUSED` and value 0.
    """

    _declared: ClassVar[Declared] = {
        "n_atoms": Whole(1),
        "indices": Indices("n>=0", "w>=0", below=".n_atoms", least=UNUSED),
        "values": Floats("n>=0", "w>=0"),
        "residual": Either(Nothing(), Floats("n>=0")),
    }

    indices: Array  # (n, width) integers
    values: Array  # (n, width)
    n_atoms: int
    residual: Array | None = None  # (n,) squared errors, if they were computed

    __repr__ = field_text

    def __len__(self) -> int:
        return self.indices.shape[0]

    @property
    def width(self) -> int:
        return self.indices.shape[1]

    def uses(self) -> np.ndarray:  # (m,)
        """Count the samples that use each atom with a non-zero coefficient."""
        used_atoms = self.indices[(self.indices >= 0) & (self.values != 0)]
        return bincount(used_atoms, self.n_atoms)

    def tocsr(self) -> sparse.csr_array:
        """Return the codes as a SciPy CSR matrix of shape (n, n_atoms)."""
        indices, values = to_numpy(self.indices), to_numpy(self.values)
        is_used = indices >= 0
        row_starts = np.concatenate([[0], np.cumsum(is_used.sum(axis=1))])
        shape = (len(self), self.n_atoms)
        codes = sparse.csr_array(
            (values[is_used], indices[is_used], row_starts), shape=shape
        )
        codes.sort_indices()
        return codes

    def toarray(self) -> Array:  # (n, m)
        """Return the codes as a dense array of the same kind as the values."""
        if not is_torch(self.values):
            return self.tocsr().toarray()
        rows = self.values.new_zeros((len(self), self.n_atoms + 1))
        slots = self.indices.where(self.indices >= 0, self.n_atoms).long()
        rows.scatter_(1, slots, self.values)
        return rows[:, : self.n_atoms].contiguous()


class Dictionary(ABC):
    """m atoms in an inner-product space, which is known only through these methods.

    Atom updates work in `coordinates`: the rows of X for an explicit dictionary,
    coefficients over the anchors for a kernel dictionary.
    """

    constant_fields: ClassVar[tuple[str, ...]] = ()
    """Fields that learning never changes, which a checkpoint does not store."""

    @property
    def n_atoms(self) -> int:
        """m."""
        return self.weights.shape[0]

    @property
    @abstractmethod
    def row_bytes(self) -> int:
        """Working memory that `correlate` needs for one sample."""

    @abstractmethod
    def gram(self) -> Array:  # (m, m)
        """Return inner products of the atoms."""

    @abstractmethod
    def correlate(self, X: Array) -> Array:  # (n, m)
        """Return inner products of the samples with the atoms."""

    @abstractmethod
    def energy(self, X: Array) -> Array:  # (n,)
        """Return squared norms of the samples."""

    @abstractmethod
    def coordinates(self, X: Array) -> Array:  # (n, r)
        """Return the samples in the coordinates of `weights`."""

    def cross(self, codes: SparseCodes, X: Array) -> Array:  # (m, r)
        """Return Γᵀ · coordinates(X), with Γ kept sparse on NumPy."""
        coordinates = self.coordinates(X)
        if isinstance(coordinates, np.ndarray):
            return codes.tocsr().T @ coordinates
        return codes.toarray().T @ coordinates

    @abstractmethod
    def dual(self) -> Array:  # (m, r)
        """Return inner products of the atoms with unit vectors of the coordinates."""

    @property
    @abstractmethod
    def weights(self) -> Array:  # (m, r)
        """The atoms in coordinates."""

    @abstractmethod
    def with_weights(self, weights: Array) -> Dictionary:
        """Return the same space with other atoms."""

    def snapshot(self) -> Dictionary:
        """Return the dictionary as it is now, a copy if updates overwrite it."""
        return self

    @property
    def linear_atoms(self) -> Array | None:  # (m, p)
        """The atoms as rows of features, where inner products are those of rows."""
        return None

    def restricted(self, features: Array) -> Dictionary:
        """Return the same atoms over some features, where they have no unit norm."""
        raise TypeError(f"{type(self).__name__} has no atoms over some of the features")

    def restricted_share(self, share: float) -> float:
        """Return the expected share of the energy in this share of the features."""
        return share

    def rescaled(self, factors: Array) -> Dictionary:  # factors: (m,)
        """Return each atom times its factor."""
        return self.with_weights(self.weights * factors[:, None])


class SparseCoder(BaseEstimator, ABC):
    """A pursuit, which computes sparse codes from inner products; it holds no data."""

    group_size = 1  # consecutive rows that are coded together, never cut apart

    @abstractmethod
    def solve(
        self,
        gram: Array,  # (m, m), unit diagonal
        corr: Array,  # (n, m)
        energy: Array,  # (n,)
    ) -> SparseCodes:
        """Return sparse codes of n samples, with their squared residuals."""


@dataclass(frozen=True)
class Coded:
    """Samples with their codes, the input of updates that need all codes."""

    _declared: ClassVar[Declared] = {
        "X": Either(Floats("n>=0", "p"), Indices("n>=0")),
        "codes": Part(SparseCodes, n="n>=0"),
        "weights": Either(Nothing(), Floats("n>=0")),
    }

    X: Array  # (n, p)
    codes: SparseCodes
    weights: np.ndarray | None = None  # (n,) how often each sample counts; None: once

    @property
    def n_samples(self) -> float:
        """The number of samples, each counted with its weight."""
        return len(self.codes) if self.weights is None else float(self.weights.sum())


class BlockSums:
    """A data class of sums over a block of rows, which add up over blocks."""

    def __sizeof__(self) -> int:
        """Return the bytes of all fields, by which Dask plans transfers."""
        return sum(getattr(value, "nbytes", 8) for value in vars(self).values())


@dataclass(frozen=True)
class Statistics(BlockSums):
    """Sums over coded samples, the input of least-squares updates.

    Sums over blocks of rows can be added, so that updates work on data larger than
    memory and on clusters.
    """

    _declared: ClassVar[Declared] = {
        "codes_gram": Floats("m", "m"),
        "cross": Floats("m", "r"),
        "uses": Indices("m"),
        "error": Number(),
        "n_samples": Number(least=0),
        "worst": Floats("w>=0", "p"),
        "worst_error": Floats("w>=0"),
    }

    codes_gram: Array  # (m, m)   ΓᵀΓ
    cross: Array  # (m, r)   Γᵀ · coordinates(X)
    uses: np.ndarray  # (m,)     samples that use the atom
    error: float  # Σ squared residuals
    n_samples: float
    worst: Array  # (w, p) the worst represented samples, worst first
    worst_error: np.ndarray  # (w,)

    def __add__(self, other: Statistics) -> Statistics:
        errors = np.concatenate([self.worst_error, other.worst_error])
        worst_first = np.argsort(-errors, kind="stable")[: self.codes_gram.shape[0]]
        return Statistics(
            codes_gram=self.codes_gram + other.codes_gram,
            cross=self.cross + other.cross,
            uses=self.uses + other.uses,
            error=self.error + other.error,
            n_samples=self.n_samples + other.n_samples,
            worst=namespace(self.worst).concat([self.worst, other.worst])[worst_first],
            worst_error=errors[worst_first],
        )

    def fade(self, factor: float) -> Statistics:
        """Return the sums times `factor`, without the worst samples."""
        is_scaled = factor != 1.0  # for one row the product would take most of the time
        return Statistics(
            codes_gram=self.codes_gram * factor if is_scaled else self.codes_gram,
            cross=self.cross * factor if is_scaled else self.cross,
            uses=self.uses,
            error=self.error * factor,
            n_samples=self.n_samples * factor,
            worst=self.worst[:0],
            worst_error=self.worst_error[:0],
        )

    def __len__(self) -> int:
        return len(self.worst_error)


@dataclass(frozen=True)
class Step:
    """The result of an update: the new dictionary and its total squared error.

    The error may belong to a dictionary other than the new one. Then the update also
    returns that dictionary (`before` useless atoms were replaced), with its codes or
    with factors (`lengths`) of the codes.
    """

    _declared: ClassVar[Declared] = {
        "dictionary": Part(Dictionary),
        "error": Number(),
        "before": Either(Nothing(), Part(Dictionary)),
        "codes": Either(Nothing(), Part(SparseCodes)),
        "lengths": Either(Nothing(), Floats("m")),
    }

    dictionary: Dictionary
    error: float
    before: Dictionary | None = None
    codes: SparseCodes | None = None
    lengths: Array | None = None  # (m,)


class AtomUpdate(BaseEstimator, ABC):
    """One pass over the atoms with the codes fixed."""

    needs: ClassVar[Literal["codes", "statistics"]] = "codes"
    """The input of `step`: `Coded` (all samples with their codes) or `Statistics`."""

    may_raise_error: ClassVar[bool] = False
    """Whether a step may raise the error at fixed codes, so that no fit is `steady`."""

    @abstractmethod
    def step(
        self,
        dictionary: Dictionary,
        coded: Any,  # what it `needs`
        rng: np.random.Generator,
    ) -> Step:
        """Return the dictionary after one update.

        The dictionary is handed over: it may be overwritten and returned. Only
        `GramDictionary` is, whose arrays are a good part of the memory of a fit.
        """
