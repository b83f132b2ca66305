"""Iterative pre-image methods. None ends farther from the target than it starts."""

from __future__ import annotations

from typing import Any

from ..contracts import Array
from ..numerics.arrays import eps, namespace, row_norms
from ..numerics.convergence import warn_unfinished
from .targets import WORTH, PreimageSettings, Targets, clip_to_domain

SHORTEST = 0.01  # stop when all steps are shorter than this share of a full step
STILL = 1e-6  # stop when gradient steps are shorter than this share of the reach


def by_fixed_point(targets: Targets, start: Array, settings: PreimageSettings) -> Array:
    """x ← Σ wᵢzᵢ/Σ wᵢ with wᵢ = aᵢκ'(‖x − zᵢ‖²), if that brings x nearer.

    If it does not (some aᵢ are negative), half of the step is tried, then a quarter.
    """
    xp, anchors = namespace(start), targets.anchors
    kernel: Any = targets.kernel  # radial
    points, best = start, targets.squared_distance(start)
    share = xp.ones_like(best)
    for _ in range(settings.max_iter):
        weights = targets.coefs * kernel.slope(kernel.pairs(points, anchors))
        total = xp.sum(weights, axis=1)
        usable = xp.abs(total) > eps(total) * xp.sum(xp.abs(weights), axis=1)
        means = (weights @ anchors) / xp.where(usable, total, 1.0)[:, None]
        trial = points + share[:, None] * (means - points)
        squared = targets.squared_distance(trial)
        is_better = usable & (squared < best - WORTH * targets.energy)
        points = xp.where(is_better[:, None], trial, points)
        best = xp.where(is_better, squared, best)
        share = xp.where(is_better, xp.clip(2 * share, 0, 1), share / 2)
        if bool(xp.all(share < SHORTEST)):
            break
    else:
        warn_unfinished(_unfinished("fixed-point", settings))
    return points


def by_gradient(targets: Targets, start: Array, settings: PreimageSettings) -> Array:
    """Steepest descent with a step length of its own for each point.

    A step that does not lower the distance is repeated with a quarter of its length;
    otherwise the next one has the length of Barzilai and Borwein, ⟨s, s⟩/⟨s, y⟩ for a
    step s that changed the gradient by y. No step is longer than the reach of the
    anchors.
    """
    xp, reach = namespace(start), targets.reach()
    points, best = start, targets.squared_distance(start)
    gradient = targets.gradient(points)
    length = 0.1 * reach / _norms(gradient)
    for _ in range(settings.max_iter):
        length = xp.minimum(length, reach / _norms(gradient))
        trial = clip_to_domain(targets.kernel, points - length[:, None] * gradient)
        squared, new_gradient = targets.squared_distance(trial), targets.gradient(trial)
        is_better = squared < best
        s, y = trial - points, new_gradient - gradient
        s_y = xp.vecdot(s, y)
        barzilai_borwein = row_norms(s) / xp.where(s_y > 0, s_y, 1.0)
        grown = xp.where(s_y > 0, barzilai_borwein, 2 * length)
        length = xp.where(is_better, grown, length / 4)
        points = xp.where(is_better[:, None], trial, points)
        gradient = xp.where(is_better[:, None], new_gradient, gradient)
        best = xp.where(is_better, squared, best)
        if not bool(xp.any(length * _norms(gradient) > STILL * reach)):
            break
    else:
        warn_unfinished(_unfinished("gradient", settings))
    return points


def _unfinished(method: str, settings: PreimageSettings) -> str:
    return (
        f"pre-images by method={method!r} still moved after max_iter="
        f"{settings.max_iter} iterations: raise max_iter"
    )


def _norms(rows: Array) -> Array:  # (m,)
    """Lengths of rows, never 0."""
    squares = row_norms(rows)
    xp = namespace(squares)
    return xp.sqrt(xp.clip(squares, float(xp.finfo(squares.dtype).tiny), None))
