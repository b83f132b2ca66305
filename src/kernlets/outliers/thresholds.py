"""Thresholds of scores: shares, fences, rates of false alarms; and probabilities."""

from __future__ import annotations

from math import ceil, erf, inf, sqrt

import numpy as np
from scipy.stats import binom

WHISKER = 1.5  # interquartile ranges from the upper quartile to the fence
FAR_OUT = 3.0  # interquartile ranges beyond which a score is far out
MEDCOUPLE_ROWS = 1000  # number of scores for the skewness, which compares all pairs


def share_threshold(scores: np.ndarray, share: float) -> float:
    """Return the score that the given share of the scores exceeds."""
    return float(np.quantile(scores, 1 - share))


def fence(scores: np.ndarray) -> float:
    """Return the upper fence of the boxplot for skewed samples.

    Q₃ + 1.5 · exp(3·MC) · IQR with the medcouple MC, or exp(4·MC) if that is negative:
    Hubert and Vandervieren, "An adjusted boxplot for skewed distributions", 2008. Of
    normal and of moderately skewed scores it cuts off 0.35 %.
    """
    scores = np.asarray(scores, dtype=np.float64)
    lower, upper = np.quantile(scores, [0.25, 0.75])
    skewness = medcouple(scores)
    rate = 3.0 if skewness >= 0 else 4.0
    return float(upper + WHISKER * np.exp(rate * skewness) * (upper - lower))


def far_out(scores: np.ndarray, ceiling: float = inf) -> float:
    """Return Tukey's outer fence Q₃ + 3 IQR, robust against a quarter of outliers.

    Scores s that cannot exceed a ceiling c crowd below it: there the fence is that of
    s / (c − s), and nothing is beyond it if more than a quarter of them are c.
    """
    lower, upper = (float(q) for q in np.quantile(scores, [0.25, 0.75]))
    if ceiling == inf:
        return upper + FAR_OUT * (upper - lower)
    if upper >= ceiling:
        return ceiling
    lower, upper = lower / (ceiling - lower), upper / (ceiling - upper)
    odds = upper + FAR_OUT * (upper - lower)
    return ceiling * odds / (1 + odds)


def medcouple(values: np.ndarray) -> float:
    """Return the median of ((b − m) − (m − a)) / (b − a), a ≤ m ≤ b, m the median."""
    values = np.sort(values)
    if len(values) > MEDCOUPLE_ROWS:
        indices = np.linspace(0, len(values) - 1, MEDCOUPLE_ROWS).round().astype(int)
        values = values[indices]
    middle = float(np.median(values))
    below, above = values[values <= middle], values[values >= middle]
    spans = above[:, None] - below
    sums = (above[:, None] - middle) - (middle - below)
    return float(np.median(sums[spans > 0] / spans[spans > 0])) if spans.any() else 0.0


def conformal_threshold(scores: np.ndarray, alpha: float) -> float:
    """Return the score that a fresh row exceeds with a probability of at most alpha.

    Of n calibration scores it is the ⌈(1 − alpha)(n + 1)⌉-th smallest.
    """
    rank = _conformal_rank(len(scores), alpha)
    if rank > len(scores):
        n_needed = 1 / alpha - 1 - 1e-9
        n_needed = n_needed if n_needed == inf else ceil(n_needed)
        raise ValueError(
            f"alpha={alpha} needs at least {n_needed} calibration rows, but there are "
            f"{len(scores)} (half of the rows): pass more rows or a larger alpha"
        )
    return float(np.sort(scores)[rank - 1])


def running_threshold(scores: np.ndarray, alpha: float) -> float:
    """Return the conformal threshold, or the largest score if they are too few."""
    rank = min(_conformal_rank(len(scores), alpha), len(scores))
    return float(np.partition(scores, rank - 1)[rank - 1])


def _conformal_rank(n: int, alpha: float) -> int:
    """Return the rank ⌈(1 − alpha)(n + 1)⌉ of the threshold among n scores."""
    return ceil((1 - alpha) * (n + 1) - 1e-9)


def p_values(scores: np.ndarray, calibration: np.ndarray) -> np.ndarray:  # (n,)
    """(1 + number of calibration scores that are not below) / (1 + their number)."""
    ordered = np.sort(calibration)
    above = len(ordered) - np.searchsorted(ordered, scores, side="left")
    return (1 + above) / (1 + len(ordered))


def linear_odds(scores: np.ndarray, training: np.ndarray) -> np.ndarray:  # (n,)
    """Map scores from the smallest to the largest training score to 0 to 1."""
    low, high = float(training.min()), float(training.max())
    if high <= low:
        return (scores > low).astype(np.float64)
    return np.clip((scores - low) / (high - low), 0, 1)


def unified_odds(scores: np.ndarray, training: np.ndarray) -> np.ndarray:  # (n,)
    """max(0, erf(z/√2)) of the standardised scores: Kriegel et al. 2011."""
    deviation = float(training.std()) or 1.0
    standard = (scores - float(training.mean())) / (deviation * sqrt(2))
    return np.clip([erf(value) for value in standard], 0, 1)


ODDS = {"linear": linear_odds, "unify": unified_odds}


def confidence(
    scores: np.ndarray,  # (n,)
    training: np.ndarray,
    is_outlier: np.ndarray,  # (n,)
    share: float,
) -> np.ndarray:  # (n,)
    """Return the probability that another training set gives the same label.

    Perini, Vercruyssen and Davis, "Quantifying the confidence of anomaly detectors in
    their example-wise predictions", 2020, as PyOD computes it.
    """
    n = len(training)
    below = np.searchsorted(np.sort(training), scores, side="right")
    posterior = (1 + below) / (2 + n)
    outlying = 1 - binom.cdf(n - int(n * share), n, posterior)
    return np.where(is_outlier, outlying, 1 - outlying)
