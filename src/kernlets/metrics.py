"""Measures of maps and dictionaries.

`kernel_error` tells how well a feature map approximates its kernel, `recovery` whether
a dictionary contains the atoms of another one. Errors of learned dictionaries are
methods of the learners.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from .contracts import Array, Dictionary
from .dictionaries import ExplicitDictionary, KernelDictionary
from .kernels import Kernel, resolve
from .numerics.arrays import (
    as_like,
    diagonal,
    double,
    index_like,
    is_array,
    row_norms,
    to_numpy,
)
from .numerics.random import generator
from .numerics.text import field_text

__all__ = [
    "KernelError",
    "Match",
    "Recovery",
    "code_correlation",
    "kernel_error",
    "match_atoms",
    "recovery",
    "stability",
]

GROUPS = 20  # groups of rows, left out in turn to estimate standard errors


@dataclass(frozen=True)
class KernelError:
    """Errors of F Fᵀ against K, with standard errors if rows were sampled.

    Parameters
    ----------
    frobenius : float
        ‖K − F Fᵀ‖_F / ‖K‖_F, LKDL equation (29).
    trace : float
        Σ(κ(x, x) − ‖f(x)‖²) / Σκ(x, x).
    frobenius_std, trace_std : float
        Standard errors of both; 0 if all rows were used.
    n_rows : int
        Number of rows that were used.

    Examples
    --------
    >>> import numpy as np
    >>> from kernlets import metrics
    >>> X = np.eye(3)
    >>> round(metrics.kernel_error(X[:, :2], X, kernel="linear").trace, 4)
    0.3333
    """

    frobenius: float
    trace: float
    frobenius_std: float
    trace_std: float
    n_rows: int


def kernel_error(
    virtual: Any,
    X: Array,
    kernel: Kernel | str | None = None,
    n_max: int = 2000,
    random_state: Any = None,
) -> KernelError:
    """Compute the error of the kernel matrix of X when virtual samples approximate it.

    Parameters
    ----------
    virtual : fitted map, or array (n, k)
        An object with `transform`, or the virtual samples of X.
    X : array (n, p)
        The samples; for a precomputed kernel the square kernel matrix.
    kernel : Kernel or str, optional
        The kernel to compare with. Default: that of the map.
    n_max : int
        If X has at most `n_max` rows, the errors are exact. Otherwise they are
        estimated from `n_max` random rows, and the standard errors come from a
        jackknife over 20 groups of rows.
    random_state : int, RandomState, Generator or None
        Seed of the random rows.

    Returns
    -------
    KernelError
        Relative Frobenius and trace errors.

    Examples
    --------
    >>> from kernlets import NystroemMap, datasets, metrics
    >>> X = datasets.load("digits").X_train
    >>> rough = NystroemMap("poly:2", n_landmarks=50, random_state=0).fit(X)
    >>> fine = NystroemMap("poly:2", n_landmarks=500, random_state=0).fit(X)
    >>> errors = [metrics.kernel_error(m, X).frobenius for m in (rough, fine)]
    >>> errors[0] > 3 * errors[1]
    True
    """
    if n_max < 2:
        raise ValueError(
            f"n_max={n_max} must be at least 2, because errors need pairs of rows"
        )
    if kernel is not None:
        kernel = resolve(kernel).bound(X)
    elif hasattr(virtual, "kernel_"):
        kernel = virtual.kernel_
    else:
        raise ValueError(
            "kernel=None: pass the kernel that the virtual samples approximate"
        )
    n = X.shape[0]
    rows = np.arange(n)
    if n > n_max:
        rows = generator(random_state).choice(n, n_max, replace=False)
    indices = index_like(rows, X)
    F = virtual[indices] if is_array(virtual) else virtual.transform(X[indices])
    sums = _group_sums(kernel, X, rows, F)
    if not sums.energy.any():
        raise ValueError(
            "kernel is zero on X, so a relative error is not defined: check X"
        )
    std = _jackknife(sums, n) if len(rows) < n else (0.0, 0.0)
    return KernelError(*_errors(sums, n), *std, len(rows))


class _Sums(NamedTuple):
    """Sums over pairs of rows (g, g) and over single rows (g,), per group of rows."""

    kernel_pairs: np.ndarray  # Σ κ(x, y)², x ≠ y
    error_pairs: np.ndarray  # Σ (κ(x, y) − ⟨f(x), f(y)⟩)², x ≠ y
    kernel_diagonal: np.ndarray  # Σ κ(x, x)²
    error_diagonal: np.ndarray
    energy: np.ndarray  # Σ κ(x, x)
    energy_error: np.ndarray  # Σ κ(x, x) − ‖f(x)‖²
    size: np.ndarray

    def without(self, group: int) -> _Sums:
        """Return the sums with one group of rows left out."""
        is_other = np.arange(len(self.size)) != group
        return _Sums(
            *(s[is_other][:, is_other] if s.ndim == 2 else s[is_other] for s in self)
        )


def _group_sums(kernel: Kernel, X: Array, rows: np.ndarray, F: Array) -> _Sums:
    groups = np.array_split(np.arange(len(rows)), min(GROUPS, len(rows)))
    starts = [group[0] for group in groups]
    columns = kernel.take(X, index_like(rows, X))
    F = to_numpy(double(F))
    energy = to_numpy(double(kernel.diag(X)))[rows]
    energy_errors = energy - row_norms(F)
    pairs = []
    for group in groups:
        K = to_numpy(kernel(X[index_like(rows[group], X)], columns)).astype(np.float64)
        for values in (K, K - F[group] @ F.T):
            values[np.arange(len(group)), group] = 0.0
            pairs.append(np.add.reduceat((values**2).sum(axis=0), starts))
    return _Sums(
        kernel_pairs=np.array(pairs[::2]),
        error_pairs=np.array(pairs[1::2]),
        kernel_diagonal=np.add.reduceat(energy**2, starts),
        error_diagonal=np.add.reduceat(energy_errors**2, starts),
        energy=np.add.reduceat(energy, starts),
        energy_error=np.add.reduceat(energy_errors, starts),
        size=np.array([len(group) for group in groups]),
    )


def _errors(sums: _Sums, n: int) -> tuple[float, float]:
    """Extrapolate both errors from the rows in the sums to all n rows."""
    s = int(sums.size.sum())
    pairs = n * (n - 1) / max(s * (s - 1), 1)
    error = pairs * sums.error_pairs.sum() + n / s * sums.error_diagonal.sum()
    total = pairs * sums.kernel_pairs.sum() + n / s * sums.kernel_diagonal.sum()
    return (
        float(np.sqrt(error / total)),
        float(sums.energy_error.sum() / sums.energy.sum()),
    )


def _jackknife(sums: _Sums, n: int) -> tuple[float, float]:
    """Estimate standard errors of both errors by leaving out each group in turn."""
    g = len(sums.size)
    errors = np.array([_errors(sums.without(group), n) for group in range(g)])
    sampled_share = sums.size.sum() / n  # with all rows there is no error
    frobenius, trace = np.sqrt((g - 1) * (1 - sampled_share)) * errors.std(axis=0)
    return float(frobenius), float(trace)


# -------------------------------------------------- atoms of two dictionaries, matched


@dataclass(frozen=True)
class Match:
    """Pairs of atoms of two dictionaries, each atom in at most one pair.

    Parameters
    ----------
    first, second : array (min(m₁, m₂),)
        Numbers of the atoms of both dictionaries, pair by pair.
    cosines : array (min(m₁, m₂),)
        Cosine of the angle between the two atoms of a pair, with its sign.

    Examples
    --------
    >>> import numpy as np
    >>> from kernlets import metrics
    >>> metrics.Match.of(np.array([[0.1, -0.9], [0.8, 0.7]])).cosines.tolist()
    [-0.9, 0.8]
    """

    first: np.ndarray
    second: np.ndarray
    cosines: np.ndarray

    __repr__ = field_text

    @classmethod
    def of(cls, cosines: Any) -> Match:  # (m₁, m₂)
        """Return the pairs with the largest sum of |cosines|, given all cosines."""
        cosines = np.asarray(cosines)
        first, second = linear_sum_assignment(-np.abs(cosines))
        return cls(first, second, cosines[first, second])


@dataclass(frozen=True)
class Recovery:
    """How much of a true dictionary was found.

    Parameters
    ----------
    share : float
        Part of the true atoms whose partner has at least the cosine asked for.
    cosine : float
        Mean |cosine| of all true atoms with their partners; 0 for those without one.
    correlation : float or None
        Mean |correlation| of true and found codes, see `code_correlation`.
    match : Match
        The pairs of atoms.

    Examples
    --------
    >>> import numpy as np
    >>> from kernlets import metrics
    >>> metrics.recovery(np.eye(3), -np.eye(3)[[2, 0]]).share
    0.6666666666666666
    """

    share: float
    cosine: float
    correlation: float | None
    match: Match


def match_atoms(first: Any, second: Any, between: Any = None) -> Match:
    """Find the best one-to-one pairs of the atoms of two dictionaries, up to sign.

    They maximise Σ|cos(dⱼ, d'ₖ)|. Angles are those of the space of the atoms: that of
    kernel dictionaries is the feature space, by A K(Z, Z') A'ᵀ.

    Parameters
    ----------
    first, second : array (m, p), Dictionary or fitted learner
        Atoms of any length. Kernel dictionaries must have the same kernel.
    between : array (n, n'), optional
        K(Z, Z') between the anchors of two kernel dictionaries, if it cannot be
        computed from them: with a precomputed kernel an anchor is only a number.

    Returns
    -------
    Match
        Numbers of the atoms, pair by pair, and their cosines. If only the cosines are
        known, use ``Match.of(cosines)``.

    Examples
    --------
    >>> import numpy as np
    >>> from kernlets import metrics
    >>> atoms = np.array([[1.0, 0.0], [0.6, 0.8]])
    >>> match = metrics.match_atoms(atoms, -2 * atoms[::-1])
    >>> match.second.tolist(), match.cosines.round(6).tolist()
    ([1, 0], [-1.0, -1.0])
    """
    return Match.of(_cosines(_as_dictionary(first), _as_dictionary(second), between))


def recovery(
    true: Any,
    found: Any,
    threshold: float = 0.99,
    codes: tuple[Any, Any] | None = None,
    between: Any = None,
) -> Recovery:
    """Measure how much of a true dictionary another one contains.

    Parameters
    ----------
    true, found : array (m, p), Dictionary or fitted learner
        As in `match_atoms`.
    threshold : float
        An atom counts as found if its |cosine| with its partner is at least this.
    codes : tuple of two arrays (n, m), optional
        True and found codes of the same samples, best those of unseen ones.
    between : array (n, n'), optional
        As in `match_atoms`.

    Returns
    -------
    Recovery
        Share of the atoms found, mean cosine, and mean correlation of the codes.

    Examples
    --------
    >>> import numpy as np
    >>> from kernlets import KSVD, OMP, metrics
    >>> rng = np.random.default_rng(0)
    >>> atoms = rng.standard_normal((12, 20))
    >>> codes = rng.random((1000, 12)) * (rng.random((1000, 12)) < 0.1)
    >>> coder = OMP(2, positive=True)
    >>> learner = KSVD(12, coder=coder, max_iter=50, random_state=0)
    >>> metrics.recovery(atoms, learner.fit(codes @ atoms)).share
    1.0
    """
    if not 0 < threshold <= 1:
        raise ValueError(f"threshold={threshold!r} must be a cosine above 0, at most 1")
    match = match_atoms(true, found, between)
    abs_cosines, n = np.abs(match.cosines), _as_dictionary(true).n_atoms
    share = float((abs_cosines >= threshold * (1 - 1e-12)).sum() / n)
    correlation = None if codes is None else code_correlation(*codes)
    return Recovery(share, float(abs_cosines.sum() / n), correlation, match)


def code_correlation(true: Any, found: Any) -> float:
    """Compute the mean |correlation| of true and found codes, matched one to one.

    Parameters
    ----------
    true, found : array (n, m), dense or sparse
        Codes of the same samples; the numbers of atoms may differ.

    Returns
    -------
    float
        The mean over the true atoms whose codes are not constant; 0 counts for one
        without a partner.

    Examples
    --------
    >>> import numpy as np
    >>> from kernlets import metrics
    >>> codes = np.array([[1.0, 0.0], [0.0, 2.0], [3.0, 1.0]])
    >>> round(metrics.code_correlation(codes, -5 * codes[:, ::-1]), 6)
    1.0
    """
    true, found = (_standardize_codes(codes) for codes in (true, found))
    if len(true) != len(found):
        raise ValueError(
            f"codes of {len(true)} and of {len(found)} samples: pass codes of the same "
            "samples"
        )
    is_varying = true.any(axis=0)
    if not is_varying.any():
        raise ValueError("true codes are constant: pass more samples")
    match = Match.of(true[:, is_varying].T @ found)
    return float(np.abs(match.cosines).sum() / is_varying.sum())


def stability(dictionaries: Sequence[Any]) -> float:
    """Compute the mean |cosine| of matched atoms over all pairs of dictionaries.

    Parameters
    ----------
    dictionaries : sequence
        Two or more, as in `match_atoms`, e.g. learners fitted with different seeds.

    Returns
    -------
    float
        1 if all have the same atoms.

    Examples
    --------
    >>> import numpy as np
    >>> from kernlets import metrics
    >>> metrics.stability([np.eye(3), np.eye(3)[::-1], -np.eye(3)])
    1.0
    """
    if len(dictionaries) < 2:
        raise ValueError("dictionaries must be two or more, to be compared")
    pairs = combinations(dictionaries, 2)
    return float(np.mean([np.abs(match_atoms(*pair).cosines).mean() for pair in pairs]))


def _as_dictionary(atoms: Any) -> Dictionary:
    atoms = getattr(atoms, "dictionary_", atoms)
    if isinstance(atoms, Dictionary):
        return atoms
    return ExplicitDictionary(atoms if is_array(atoms) else np.asarray(atoms))


def _cosines(
    first: Dictionary, second: Dictionary, between: Any = None
) -> np.ndarray:  # (m₁, m₂)
    """Divide inner products of the atoms by their lengths, in float64."""
    lengths = [np.sqrt(to_numpy(double(diagonal(d.gram())))) for d in (first, second)]
    divisors = [np.where(length > 0, length, 1.0) for length in lengths]
    if between is None:
        products = to_numpy(double(_inner_products(first, second)))
    else:
        products = _products_through(first, second, between)
    return products / divisors[0][:, None] / divisors[1]


def _inner_products(first: Dictionary, second: Dictionary) -> Array:  # (m₁, m₂)
    if isinstance(first, ExplicitDictionary) and isinstance(second, ExplicitDictionary):
        return first.atoms @ as_like(second.atoms, first.atoms).T
    if isinstance(first, KernelDictionary) and isinstance(second, KernelDictionary):
        return _products_in_feature_space(first, second)
    raise TypeError(
        f"atoms of {type(first).__name__} and {type(second).__name__} are not in one "
        "space: pass two dictionaries of a kind, or use Match.of(cosines)"
    )


def _products_through(first: Any, second: Any, between: Any) -> np.ndarray:  # (m₁, m₂)
    """Compute A K(Z, Z') A'ᵀ, where the user passes K(Z, Z') as `between`."""
    for d in (first, second):
        if not isinstance(d, KernelDictionary):
            raise TypeError(
                "between is for two kernel dictionaries, but one is of "
                f"{type(d).__name__}: leave it out"
            )
    A, A2 = (to_numpy(double(d.coefs)) for d in (first, second))
    K = to_numpy(between) if is_array(between) else np.asarray(between)
    if K.shape != (A.shape[1], A2.shape[1]):
        raise ValueError(
            f"between has the shape {K.shape}, but the dictionaries have "
            f"{A.shape[1]} and {A2.shape[1]} anchors: pass K(Z, Z')"
        )
    return A @ K.astype(np.float64) @ A2.T


def _products_in_feature_space(
    first: KernelDictionary, second: KernelDictionary
) -> Array:  # (m₁, m₂)
    if repr(first.kernel) != repr(second.kernel):
        raise ValueError(
            f"kernels differ, {first.kernel!r} and {second.kernel!r}: atoms can be "
            "compared in one feature space only"
        )
    if first.kernel.by_index:
        raise ValueError(
            "kernel is precomputed, and K between the anchors of both dictionaries is "
            "not known: pass it as between, or use Match.of(cosines)"
        )
    return (as_like(second.coefs, first.coefs) @ first.correlate(second.anchors)).T


def _standardize_codes(codes: Any) -> np.ndarray:  # (n, m)
    """Scale columns to mean 0 and length 1, or to 0 where they are constant."""
    codes = codes.toarray() if hasattr(codes, "toarray") else codes
    codes = to_numpy(codes) if is_array(codes) else np.asarray(codes)
    codes = codes.astype(np.float64)
    codes -= codes.mean(axis=0)
    lengths = np.linalg.norm(codes, axis=0)
    rounding = 1e-12 * np.sqrt(len(codes)) * np.abs(codes).max(initial=0)
    return np.where(lengths > rounding, codes / np.maximum(lengths, 1e-300), 0)
