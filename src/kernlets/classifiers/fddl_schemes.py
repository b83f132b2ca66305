"""How FDDL compares a new sample with the classes: LKDL's local and global scheme."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from ..base.constraints import NOT_NEGATIVE
from ..base.estimator import NAMED
from ..base.names import build
from ..contracts import Array
from ..dictionaries import ExplicitDictionary
from ..numerics.arrays import as_like, empty, namespace, row_norms
from ..numerics.scaling import quiet
from ..sklearn_base import BaseEstimator
from .base import class_residuals
from .fddl_objective import consecutive_slices


class LocalScheme(BaseEstimator):
    """Code a sample over the atoms of each class separately.

    Compared are min over γ of ‖x − γD_c‖² + lambda1 ‖γ‖₁ + gamma ‖γ − μ_c^c‖², with the
    mean code μ_c^c of class c over its own atoms.

    Parameters
    ----------
    gamma : float
        Weight of the distance from the mean code of a class.

    Examples
    --------
    >>> from kernlets import FDDLClassifier
    >>> model = FDDLClassifier(20, scheme="local:0.01")
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {"gamma": [NOT_NEGATIVE]}

    def __init__(self, gamma: float = 0.005) -> None:
        self.gamma = gamma

    def residuals(self, model: Any) -> Callable[[Array], Array]:
        """Return a function of rows (n, p) to residuals (n, C).

        Each is a lasso: its last term adds gamma I to the Gram matrix, gamma μ to corr.
        """
        gamma = self.gamma
        class_columns = consecutive_slices(np.bincount(model.atom_classes_))

        def compare(X: Array) -> Array:
            xp = namespace(X)
            lambda1 = min(float(model.lambda1), float(xp.finfo(X.dtype).max))
            residuals = empty((X.shape[0], len(model.classes_)), like=X)
            for c, columns in enumerate(class_columns):
                atoms, mean = model.components_[columns], model.class_means_[c, columns]
                gram = atoms @ atoms.T + as_like(gamma * np.eye(len(atoms)), atoms)
                energy = row_norms(X) + gamma * (mean @ mean)
                codes = model.coder_.solve(gram, X @ atoms.T + gamma * mean, energy)
                # Sums of `codes.values` are rounded otherwise where other rows are
                # wider.
                l1_norms = xp.abs(codes.toarray()).sum(1)
                residuals[:, c] = codes.residual + lambda1 * l1_norms
            return residuals

        return compare


class GlobalScheme(BaseEstimator):
    """Code a sample over all atoms at once.

    Compared are ‖x − γ^c D_c‖² + gamma ‖γ − μ_c‖², with the part γ^c of the code over
    the atoms of class c, and its mean code μ_c.

    Parameters
    ----------
    gamma : float
        Weight of the distance from the mean code of a class.

    Examples
    --------
    >>> from kernlets import FDDLClassifier
    >>> model = FDDLClassifier(20, scheme="global:0.1")
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {"gamma": [NOT_NEGATIVE]}

    def __init__(self, gamma: float = 0.5) -> None:
        self.gamma = gamma

    def residuals(self, model: Any) -> Callable[[Array], Array]:
        """Return a function of rows (n, p) to residuals (n, C)."""
        dictionary, means = model.dictionary_, ExplicitDictionary(model.class_means_)
        gram = dictionary.gram()

        def compare(X: Array) -> Array:
            with quiet():  # the coder refuses values that overflow
                corr, energy = dictionary.correlate(X), dictionary.energy(X)
            codes = model.coder_.solve(gram, corr, energy)
            dense = codes.toarray()
            mean_distances = means.energy(dense)[:, None] - 2 * means.correlate(dense)
            mean_distances = mean_distances + row_norms(model.class_means_)
            squared_errors = class_residuals(
                codes, gram, corr, energy, model.atom_classes_, len(model.classes_)
            )
            return squared_errors + self.gamma * mean_distances

        return compare


SCHEMES = {"local": LocalScheme, "global": GlobalScheme}


def resolve_scheme(spec: Any) -> LocalScheme | GlobalScheme:
    """Return the scheme that a name such as ``"local:0.01"`` describes, or `spec`."""
    scheme = build("scheme", spec, SCHEMES) if isinstance(spec, str) else spec
    scheme._validate_params()
    return scheme


NAMED["scheme"] = resolve_scheme
