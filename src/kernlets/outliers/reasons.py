"""Explanations of scores: shares of the features, and usual values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..numerics.text import printable

MAX_FEATURES = 5  # number of features that the text names


@dataclass(frozen=True)
class OutlierExplanation:
    """Why a row gets its outlier score; printed, a few lines of text.

    Parameters
    ----------
    score, threshold : float
        The score of the row, and the score above which rows are outliers.
    rank : float
        The share of the training rows with a lower score.
    contributions : array (p,)
        The contribution of each feature to the score.
    values : array (p,)
        The row with missing values filled in.
    expected : array (p,)
        Usual values: the representation of the row by the dictionaries.
    nearest : array (p,)
        The nearest normal training row.
    nearest_row : int
        Its position in the X that the detector was fitted to.
    names : tuple of str
        Names of the features.
    nearest_name : int, str or None
        The label of the nearest row in the index of a dataframe, or its row in a file.

    Examples
    --------
    >>> import numpy as np
    >>> from kernlets import DictionaryOutlierDetector
    >>> X = np.random.default_rng(0).standard_normal((200, 3))
    >>> found = DictionaryOutlierDetector(random_state=0).fit(X)
    >>> reason = found.explain([[0.1, 12.0, 0.2]])[0]
    >>> int(reason.order[0]), reason.is_outlier
    (1, True)
    """

    score: float
    threshold: float
    rank: float
    contributions: np.ndarray  # (p,)
    values: np.ndarray  # (p,)
    expected: np.ndarray  # (p,)
    nearest: np.ndarray  # (p,)
    nearest_row: int
    names: tuple[str, ...]
    nearest_name: Any = None

    @property
    def is_outlier(self) -> bool:
        """Whether the score is above the threshold."""
        return self.score > self.threshold

    @property
    def shares(self) -> np.ndarray:  # (p,)
        """Contributions divided by their sum."""
        total = float(self.contributions.sum())
        p = len(self.contributions)
        return self.contributions / total if total > 0 else np.full(p, 1 / p)

    @property
    def order(self) -> np.ndarray:  # (p,)
        """Features by their share, the largest first."""
        return np.argsort(-self.contributions, kind="stable")

    def __str__(self) -> str:
        return "\n".join([self._verdict(), *self._features(), self._neighbour()])

    def brief(self, n_features: int = 3) -> str:
        """Describe the features with the largest shares in one line."""
        features = self.order[:n_features]
        return "; ".join(
            f"{self.names[j]}={self.values[j]:.4g} (usual {self.expected[j]:.4g}, "
            f"{100 * self.shares[j]:.0f} %)"
            for j in features
        )

    def _verdict(self) -> str:
        kind = "outlier" if self.is_outlier else "normal"
        side = "above" if self.is_outlier else "not above"
        return (
            f"{kind}: score {self.score:.4g}, {side} the threshold "
            f"{self.threshold:.4g}; {100 * self.rank:.1f} % of the training rows score "
            "lower"
        )

    def _features(self) -> list[str]:
        lines = [
            f"  {self.names[j]} is {self.values[j]:.4g} where {self.expected[j]:.4g} "
            f"is usual: {100 * self.shares[j]:.0f} % of the score"
            for j in self.order[:MAX_FEATURES]
        ]
        n_more = len(self.names) - len(lines)
        share = 1 - float(self.shares[self.order[:MAX_FEATURES]].sum())
        more = [f"  {n_more} other features: {100 * share:.0f} %"] if n_more > 0 else []
        return [*lines, *more]

    def _neighbour(self) -> str:
        row = self.nearest_row if self.nearest_name is None else self.nearest_name
        return f"nearest normal training row: {printable(row)}"
