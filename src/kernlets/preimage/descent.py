"""Iterative pre-image methods, which never end farther from the target than they start.
"""

from __future__ import annotations

from ..backend.arrays import eps, namespace, row_norms
from ..backend.convergence import warn_unfinished
from ..core import Array
from .targets import WORTH, Settings, Targets, admitted

SHORTEST = 0.01  # stop when a step covers less than this share of the way
STILL = 1e-6  # stop when gradient steps are shorter than this part of the reach


def by_fixed_point(targets: Targets, start: Array, settings: Settings) -> Array:
    """x ← Σ wᵢzᵢ/Σ wᵢ with wᵢ = aᵢκ'(‖x − zᵢ‖²), if that brings x nearer.

    If it does not (some aᵢ are negative), half of the step is tried, then a quarter.
    """
    xp, kernel, anchors = namespace(start), targets.kernel, targets.anchors
    points, best = start, targets.squared_distance(start)
    share = xp.ones_like(best)
    for _ in range(settings.max_iter):
        weights = targets.coefs * kernel.slope(kernel.pairs(points, anchors))
        total = xp.sum(weights, axis=1)
        usable = xp.abs(total) > eps(total) * xp.sum(xp.abs(weights), axis=1)
        means = (weights @ anchors) / xp.where(usable, total, 1.0)[:, None]
        trial = points + share[:, None] * (means - points)
        squared = targets.squared_distance(trial)
        better = usable & (squared < best - WORTH * targets.energy)
        points = xp.where(better[:, None], trial, points)
        best = xp.where(better, squared, best)
        share = xp.where(better, xp.clip(2 * share, 0, 1), share / 2)
        if bool(xp.all(share < SHORTEST)):
            break
    else:
        warn_unfinished(_unfinished("fixed-point", settings))
    return points


def by_gradient(targets: Targets, start: Array, settings: Settings) -> Array:
    """Steepest descent with a step length of its own for each point.

    A step that does not lower the distance is repeated with a quarter of its length;
    otherwise the next one has the length of Barzilai and Borwein, ⟨s, s⟩/⟨s, y⟩ for a
    step s that changed the gradient by y. No step is longer than the reach of the
    anchors.
    """
    xp, reach = namespace(start), targets.reach()
    points, best = start, targets.squared_distance(start)
    slope = targets.gradient(points)
    length = 0.1 * reach / _norms(slope)
    for _ in range(settings.max_iter):
        length = xp.minimum(length, reach / _norms(slope))
        trial = admitted(targets.kernel, points - length[:, None] * slope)
        squared, new = targets.squared_distance(trial), targets.gradient(trial)
        better = squared < best
        step, change = trial - points, new - slope
        bend = xp.vecdot(step, change)
        natural = row_norms(step) / xp.where(bend > 0, bend, 1.0)
        grown = xp.where(bend > 0, natural, 2 * length)
        length = xp.where(better, grown, length / 4)
        points = xp.where(better[:, None], trial, points)
        slope = xp.where(better[:, None], new, slope)
        best = xp.where(better, squared, best)
        if not bool(xp.any(length * _norms(slope) > STILL * reach)):
            break
    else:
        warn_unfinished(_unfinished("gradient", settings))
    return points


def _unfinished(method: str, settings: Settings) -> str:
    return (
        f"pre-images by method={method!r} still moved after max_iter="
        f"{settings.max_iter} iterations: raise max_iter"
    )


def _norms(rows: Array) -> Array:  # (m,)
    """Lengths of rows, never 0."""
    squares = row_norms(rows)
    xp = namespace(squares)
    return xp.sqrt(xp.clip(squares, float(xp.finfo(squares.dtype).tiny), None))
