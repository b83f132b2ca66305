"""Kernels of strings: the substrings of length k that they share, and local alignments.

Samples are text, or sequences of characters or small whole numbers. Strings shorter
than k have no substrings, and κ = 0. Kernels of substrings are sums of products of
counts; `CountMap` gives the counts themselves as a sparse matrix.
"""

from __future__ import annotations

from itertools import combinations, product
from math import comb, exp
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from ..base.constraints import AT_LEAST_0, AT_LEAST_1, NOT_NEGATIVE, POSITIVE
from ..loops.kernels.layout import Series
from ..loops.table import log_local
from .base import positive
from .series import slice_series
from .structured import AllAlignments, Counting, digest_sequences

MAX_VARIANTS = 20_000  # largest number of neighbours or parts of one substring
NO_PARTS = np.empty(0, np.uint64), np.empty(0)  # of a string that is too short


class _Substrings(Counting):
    """A kernel of the substrings of a string."""

    takes: ClassVar[str] = "strings"
    k: int

    def _windows(self, sample: str, size: int) -> np.ndarray:  # (m, size)
        codes = code_points(sample)
        if len(codes) < size:
            return np.empty((0, size), np.uint32)
        return np.lib.stride_tricks.sliding_window_view(codes, size)


def code_points(text: str) -> np.ndarray:  # (length,)
    """Return the numbers of the characters of a text."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)


class Spectrum(_Substrings):
    """κ(x, y) = Σ over substrings of length k of their counts in x times those in y.

    Parameters
    ----------
    k : int, default=3
        Length of the substrings.

    Notes
    -----
    C. Leslie et al., The spectrum kernel, PSB 2002. Use ``Normalized(Spectrum(k))`` for
    strings of different lengths.

    Examples
    --------
    >>> from kernlets import Spectrum
    >>> Spectrum(2)(["banana", "ananas", "b"]).tolist()
    [[9.0, 8.0, 0.0], [8.0, 9.0, 0.0], [0.0, 0.0, 0.0]]
    """

    _parameter_constraints = {"k": [AT_LEAST_1]}

    def __init__(self, k: int = 3) -> None:
        self.k = k

    def parts(self, sample: str) -> tuple[np.ndarray, np.ndarray]:
        windows = self._windows(sample, int(self.k))
        if not len(windows):
            return NO_PARTS
        return digest_sequences(list(windows.T)), np.ones(len(windows))


class Mismatch(_Substrings):
    """Spectrum kernel in which a substring also counts for similar substrings.

    Each substring of length k adds 1 to all strings over the alphabet that differ from
    it in at most m places.

    Parameters
    ----------
    k : int, default=4
        Length of the substrings.
    m : int, default=1
        Number of places that may differ.
    alphabet : str, default=None
        The characters that may replace others. None means those of the training
        strings.

    Notes
    -----
    C. Leslie et al., Mismatch string kernels for discriminative protein classification,
    Bioinformatics 2004. Each substring has Σᵢ C(k, i)(a - 1)ⁱ neighbours, for an
    alphabet of a characters.

    Examples
    --------
    >>> from kernlets import Mismatch
    >>> Mismatch(2, 1, alphabet="ab")(["ab", "bb"]).tolist()
    [[3.0, 2.0], [2.0, 3.0]]
    """

    _parameter_constraints = {
        "k": [AT_LEAST_1],
        "m": [AT_LEAST_0],
        "alphabet": [str, None],
    }
    set_from_data = ("alphabet",)

    def __init__(self, k: int = 4, m: int = 1, *, alphabet: str | None = None) -> None:
        self.k = k
        self.m = m
        self.alphabet = alphabet

    def defaults(self, samples: np.ndarray) -> dict[str, Any]:
        return {"alphabet": "".join(sorted({c for sample in samples for c in sample}))}

    def __call__(self, X: Any, Y: Any = None) -> np.ndarray:  # (n, m)
        if self.alphabet is not None:
            return super().__call__(X, Y)
        strings = [*self.samples(X), *([] if Y is None else self.samples(Y))]
        kernel = type(self)(self.k, self.m, **self.defaults(np.array(strings, object)))
        return kernel(X, Y)

    def parts(self, sample: str) -> tuple[np.ndarray, np.ndarray]:
        size = int(self.k)
        windows = self._windows(sample, size)
        if not len(windows):
            return NO_PARTS
        alphabet = sorted(set(sample)) if self.alphabet is None else self.alphabet
        letters = np.array([ord(c) for c in alphabet], dtype=np.uint32)
        self._check_variants(size, len(letters))
        digest_blocks, weight_blocks = [], []
        for changes in range(min(int(self.m), size) + 1):
            for positions in combinations(range(size), changes):
                digests, weights = _variants(windows, positions, letters)
                digest_blocks.append(digests)
                weight_blocks.append(weights)
        return np.concatenate(digest_blocks), np.concatenate(weight_blocks)

    def _check_variants(self, size: int, letters: int) -> None:
        number = 0
        for changes in range(min(int(self.m), size) + 1):
            number += comb(size, changes) * letters**changes
            if number > MAX_VARIANTS:
                raise ValueError(
                    f"Mismatch: a substring of k={size} has more than {MAX_VARIANTS} "
                    f"neighbours with m={self.m} of {letters} characters: lower m or "
                    "k, or use Gappy"
                )


def _variants(
    windows: np.ndarray,  # (n, k)
    positions: tuple[int, ...],
    letters: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Return digests and weights of windows with other letters at these positions."""
    columns = [column[:, None] for column in windows.T]
    words = list(product(letters, repeat=len(positions)))
    choices = np.array(words, dtype=np.uint32).reshape(len(words), len(positions))
    is_different = np.ones((len(windows), len(choices)), dtype=bool)
    variants = [np.broadcast_to(column, is_different.shape) for column in columns]
    for number, position in enumerate(positions):
        variants[position] = np.broadcast_to(choices[:, number], is_different.shape)
        is_different &= choices[:, number] != columns[position]
    return digest_sequences([column[is_different] for column in variants]), np.ones(
        int(is_different.sum())
    )


class Gappy(_Substrings):
    """Kernel of subsequences of k characters within windows of g characters.

    Each window of g characters adds 1 to every string of k characters that can be made
    from it by leaving out g - k of them.

    Parameters
    ----------
    k : int, default=3
        Length of the subsequences.
    g : int, default=4
        Length of the windows, at least k.

    Notes
    -----
    C. Leslie and R. Kuang, Fast string kernels using inexact matching for protein
    sequences, JMLR 2004.

    Examples
    --------
    >>> from kernlets import Gappy
    >>> Gappy(2, 3)(["abc", "acb"]).tolist()
    [[3.0, 2.0], [2.0, 3.0]]
    """

    _parameter_constraints = {"k": [AT_LEAST_1], "g": [AT_LEAST_1]}

    def __init__(self, k: int = 3, g: int = 4) -> None:
        self.k = k
        self.g = g

    def parts(self, sample: str) -> tuple[np.ndarray, np.ndarray]:
        size = int(self.k)
        if self.g < size:
            raise ValueError(f"Gappy: g={self.g!r} must be at least k={size}")
        windows = self._windows(sample, int(self.g))
        if not len(windows):
            return NO_PARTS
        is_large = size < self.g and self.g > MAX_VARIANTS  # then there are g or more
        if is_large or comb(int(self.g), size) > MAX_VARIANTS:
            raise ValueError(
                f"Gappy: a window of g={self.g!r} has more than {MAX_VARIANTS} "
                f"subsequences of k={size}: choose a g that is not much more than k"
            )
        subsets = combinations(range(int(self.g)), size)
        digests = [
            digest_sequences([windows[:, c] for c in positions])
            for positions in subsets
        ]
        ordered = np.sort(np.stack(digests, axis=1), axis=1)  # (windows, subsets)
        is_repeat = np.zeros(ordered.shape, dtype=bool)
        is_repeat[:, 1:] = ordered[:, 1:] == ordered[:, :-1]
        distinct = ordered[~is_repeat]
        return distinct, np.ones(len(distinct))


MOST = 200.0  # β times a score, so that sums of a row are finite


class LocalAlignment(AllAlignments):
    """Σ over local alignments π of exp(β score(π)), divided by √(κ(x, x) κ(y, y)).

    The score of an alignment is the sum over aligned characters of `match` or
    `mismatch`, less `gap_open` and `gap_extend` for each gap. Where the Smith-Waterman
    algorithm takes the best alignment, all of them are added, so that the kernel is
    positive semi-definite.

    Parameters
    ----------
    beta : float, default=0.5
        Factor β of scores; the best alignment outweighs the others if it is large.
    match, mismatch : float, default=2 and -1
        Scores of equal and of different characters; `mismatch` is at most `match`.
    gap_open, gap_extend : float, default=3 and 1
        Costs of the first character and of each further one of a gap.

    Notes
    -----
    J.-P. Vert, H. Saigo and T. Akutsu, Local alignment kernels for biological
    sequences, 2004. Two empty strings have κ = 1: one alignment, of nothing.

    Examples
    --------
    >>> from kernlets import LocalAlignment
    >>> LocalAlignment()(["banana", "ananas", "kiwi"]).round(3).tolist()
    [[1.0, 0.473, 0.058], [0.473, 1.0, 0.058], [0.058, 0.058, 1.0]]
    """

    takes: ClassVar[str] = "strings"
    _parameter_constraints = {
        "beta": [POSITIVE],
        "match": [Real],
        "mismatch": [Real],
        "gap_open": [NOT_NEGATIVE],
        "gap_extend": [NOT_NEGATIVE],
    }

    def __init__(
        self,
        beta: float = 0.5,
        *,
        match: float = 2.0,
        mismatch: float = -1.0,
        gap_open: float = 3.0,
        gap_extend: float = 1.0,
    ) -> None:
        self.beta = beta
        self.match = match
        self.mismatch = mismatch
        self.gap_open = gap_open
        self.gap_extend = gap_extend

    def prepare(self, samples: np.ndarray) -> Series:
        codes = [code_points(sample)[:, None] for sample in samples]
        return Series.of(codes)

    def tile(
        self, left: Series, right: Series, rows: slice, columns: slice
    ) -> np.ndarray:
        return log_local(
            slice_series(left, rows), slice_series(right, columns), *self._weights()
        )

    def energies(self, prepared: Series) -> np.ndarray:  # (n,)
        return np.ones(len(prepared.lengths))

    def _weights(self) -> tuple[float, float, float, float]:
        """Return exp(β score) of a match, a mismatch, a new gap and a longer one."""
        beta = positive(self, "beta")
        if not self.mismatch <= self.match:
            raise ValueError(
                f"LocalAlignment: mismatch={self.mismatch!r} must be at most "
                f"match={self.match!r}, or κ is not positive semi-definite"
            )
        scores = self.match, self.mismatch, -self.gap_open, -self.gap_extend
        if beta * max(map(abs, scores)) > MOST:
            raise ValueError(
                f"LocalAlignment: exp(β score) overflows: lower beta={self.beta!r}, or "
                "the scores"
            )
        return tuple(exp(beta * score) for score in scores)  # type: ignore
