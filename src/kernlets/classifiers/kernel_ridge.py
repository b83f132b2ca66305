"""`KernelRidgeClassifier`: least squares on a kernel, its penalty by leave-one-out."""

from __future__ import annotations

from functools import partial
from math import isqrt
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.special import logsumexp
from sklearn.utils.validation import check_is_fitted

from ..base.constraints import AT_LEAST_1, POSITIVE, clipped
from ..contracts import Array
from ..data.limits import memory_limit
from ..data.rows import apply_to_rows, load_row_subset, map_rows, sum_rows
from ..data.samples import float_like
from ..kernels import Kernel, kernel_or_class, resolve
from ..kernels.indefinite import check_symmetric, refuse_negative, rounding
from ..kernels.samples import check_samples, describe_input
from ..numerics.arrays import (
    as_like,
    double,
    eps,
    index_like,
    namespace,
    to_numpy,
)
from ..numerics.random import generator
from ..numerics.scaling import quiet
from ..numerics.threads import threads_if_large
from ..schema import Declared, Either, Floats, Indices, Number, Part, Samples
from .base import ScoreVoting
from .labels import check_labels

MAX_ROWS = 12_000  # all rows are anchors up to here
N_LANDMARKS = 5_000  # anchors of more rows
SEARCHED = 2_000  # rows on which penalty and width are chosen
RATES = (0.25, 0.5, 1.0, 2.0)  # times the default rate of an open kernel
ALPHAS = 10.0 ** np.arange(-6, 1.5, 0.5)  # times the mean κ(x, x)
TEMPERATURES = np.geomspace(0.01, 1.0, 41)


class LeaveOneOut(NamedTuple):
    """A penalty and the scores of each row by the model without that row."""

    alpha: float
    deficit: float  # δ, for which K(Z, Z) + δI is positive definite
    kernel: Kernel
    scores: np.ndarray  # (n, C)
    error: float  # mean squared error of the scores


class KernelRidgeClassifier(ScoreVoting):
    """Ridge regression of class indicators on a kernel.

    With the indicators Y, one column per class, less their means π, the scores are

        f(x) = π + κ(x, Z) A,   A = (K + αI)⁻¹ (Y − π),

    where Z are all training rows, or with landmarks A = (CᵀC + αW)⁻¹ Cᵀ(Y − π) with
    C = K(X, Z) and W = K(Z, Z). The score of row i by the model of all others is
    yᵢ − aᵢ/Hᵢᵢ with H = (K + αI)⁻¹, so that leave-one-out errors for all penalties cost
    one eigendecomposition. Penalty, and the width of a kernel that has none, are those
    of the least mean squared leave-one-out error, on 2000 random rows if there are
    more, fewer if the memory option asks for it.

    Parameters
    ----------
    kernel : str, Kernel or callable
        The kernel; the width of "rbf" is chosen.
    alpha : float, optional
        The penalty. Default: chosen.
    n_landmarks : int, optional
        Number of random training rows Z. Default: all up to 12 000 rows, 5000 of more,
        fewer if the memory option asks for it.
    random_state : int, RandomState, Generator or None
        Draws rows.

    Attributes
    ----------
    classes_ : array (C,)
        The labels.
    kernel_ : Kernel
        The kernel with all parameters set.
    alpha_ : float
        The penalty.
    anchors_ : array (m, p)
        Z.
    coefs_ : array (m, C)
        A.
    prior_ : array (C,)
        π.
    loo_score_ : float
        Share of the rows that the models without them label correctly, of all rows or
        of 2500.
    loo_error_ : float
        Mean squared error of their scores.
    temperature_ : float
        That of `predict_proba`, for which these rows are most likely.

    Notes
    -----
    R. Rifkin and R. Lippert, Notes on regularized least squares, MIT 2007. With n
    anchors a fit takes a matrix of n² numbers in float64 and n³/3 operations.
    scikit-learn's `RidgeClassifierCV` has leave-one-out errors of linear models only.

    Examples
    --------
    >>> from kernlets import KernelRidgeClassifier, datasets
    >>> digits = datasets.load("digits")
    >>> model = KernelRidgeClassifier().fit(digits.X_train, digits.y_train)
    >>> model.score(digits.X_test, digits.y_test) > 0.97
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "kernel": [str, Kernel, callable],
        "alpha": [POSITIVE, None],
        "n_landmarks": [AT_LEAST_1, None],
        "random_state": ["random_state", np.random.Generator],
    }
    _declared: ClassVar[Declared] = {
        "kernel_": Part(Kernel),
        "alpha_": Number(0),
        "anchors_": Either(
            Floats("m", "p", csr=True), Indices("m", below="p"), Samples("m")
        ),
        "coefs_": Floats("m", "C"),
        "prior_": Floats("C", like="coefs_"),
        "loo_score_": Number(0),
        "loo_error_": Number(0),
        "temperature_": Number(0),
    }

    def __init__(
        self,
        kernel: Any = "rbf",
        *,
        alpha: float | None = None,
        n_landmarks: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.alpha = alpha
        self.n_landmarks = n_landmarks
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> KernelRidgeClassifier:
        """Choose penalty and width, and solve for the coefficients."""
        self._validate_params()
        kernel: Any = resolve(self.kernel)
        X = check_samples(self, X, kernel, reset=True, ensure_min_samples=2)
        labels, rng = check_labels(self, y, X.shape[0]), generator(self.random_state)
        self.classes_, class_indices = np.unique(labels, return_inverse=True)
        indicators = np.eye(len(self.classes_))[class_indices]
        prior = indicators.mean(axis=0)
        Y = indicators - prior

        # the penalty and the width of the least leave-one-out error
        kernels = [kernel.bound(X)]
        if getattr(kernel, "unset", False):
            rate = kernel.default_rate(X)
            kernels = [kernel.with_rate(factor * rate) for factor in RATES]
        # K, U, U² and what eigenvalues need, in float64
        n_searched = max(2, min(SEARCHED, isqrt(memory_limit(X) // (7 * 8))))
        rows = _random_rows(X, n_searched, rng)
        n_anchors = self._n_anchors(X)
        best = min(
            [
                leave_one_out(kernel, X, rows, Y[rows], self.alpha, n_anchors)
                for kernel in kernels
            ],
            key=lambda result: result.error,
        )
        self.kernel_, self.alpha_ = best.kernel, best.alpha
        scores, hits = best.scores + prior, class_indices[rows]
        self.loo_error_ = best.error
        self.loo_score_ = float(np.mean(scores.argmax(axis=1) == hits))
        self.temperature_ = _likeliest_temperature(scores, hits)

        # A = (K + αI)⁻¹ (Y − π), or (CᵀC + αW)⁻¹ Cᵀ(Y − π)
        anchor_rows = _random_rows(X, n_anchors, rng)
        has_all = len(anchor_rows) == X.shape[0]
        if has_all:
            samples, anchors = X, self.kernel_.take(X, index_like(anchor_rows, X))
        else:
            samples, anchors = _take_with_anchors(self.kernel_, X, anchor_rows)
        W = _host_matrix(self.kernel_, samples, anchors)
        if has_all:
            self._check_penalty(best.deficit)
            W[np.diag_indices_from(W)] += self.alpha_
            A = _solve(W, Y)
        else:
            CtC, CtY = _normal_equations(self.kernel_, X, anchors, Y)
            W[np.diag_indices_from(W)] += best.deficit
            W *= self.alpha_
            CtC += W
            CtC[np.diag_indices_from(CtC)] += eps(CtC) * np.trace(CtC)
            A = _solve(CtC, CtY)
        like = float_like(X)
        self.anchors_, self.coefs_ = anchors, as_like(A, like)
        self.prior_ = as_like(prior, like)
        return self

    def _n_anchors(self, X: Array) -> int:
        """Return the number of anchors: as many rows as a matrix of n² allows."""
        n = X.shape[0]
        if self.n_landmarks is not None:
            return clipped("n_landmarks", int(self.n_landmarks), n, "samples")
        most = isqrt(memory_limit(X) // 24)  # a matrix in float64, and copies of parts
        return n if n <= min(MAX_ROWS, most) else min(N_LANDMARKS, most, n)

    def _check_penalty(self, least: float) -> None:
        """Raise if K + αI need not be definite."""
        if self.alpha_ < least:
            raise ValueError(
                f"alpha={self.alpha_:.3g} is too small here: the kernel matrix has "
                "negative eigenvalues, by rounding or because the kernel is not "
                f"positive semi-definite. Set alpha to {least:.3g} or more, or pass "
                "float64"
            )

    def _scores(self, X: Any) -> Array:  # (n, C)
        check_is_fitted(self)
        rows = check_samples(
            self, X, self.kernel_, containers="disk", like=self._model_array
        )
        kernel, anchors = self.kernel_, self.anchors_

        def scores(block: Array) -> Array:
            return self.prior_ + kernel(block, anchors) @ self.coefs_

        return map_rows(scores, rows, 24 * self.coefs_.shape[0])

    def predict_proba(self, X: Any) -> Array:  # (n, C)
        """Return softmax(f / `temperature_`), calibrated by leave-one-out scores."""
        scores = self._scores(X)
        return apply_to_rows(partial(_softmax, self.temperature_), scores)

    @property
    def _model_array(self) -> Array:
        return self.coefs_

    def __sklearn_tags__(self) -> Any:
        tags = describe_input(super().__sklearn_tags__(), kernel_or_class(self.kernel))
        tags.input_tags.allow_nan = False
        return tags


def leave_one_out(
    kernel: Kernel,
    X: Array,
    rows: np.ndarray,
    Y: np.ndarray,  # (n, C)
    alpha: float | None,
    n_anchors: int = 0,
) -> LeaveOneOut:
    """Return the penalty of the least leave-one-out error, and its scores.

    With K = U Λ Uᵀ and H = U (Λ + αI)⁻¹ Uᵀ row i misses its target by (HY)ᵢ / Hᵢᵢ.
    Negative eigenvalues are rounding errors, unless the kernel says that it is
    indefinite, and penalties to choose from are twice those of all anchors or more.
    """
    K = _host_matrix(kernel, *_take_with_anchors(kernel, X, rows))
    check_symmetric(K)
    with threads_if_large(len(K)):
        values, U = np.linalg.eigh(K)
    if kernel.psd:
        tolerance, where = rounding(K, float_like(X)), f"{len(K)} samples"
        refuse_negative(float(values[0]), float(values[-1]), tolerance, where)
    deficit = 2 * max(-float(values[0]), 0.0) * max(n_anchors / len(K), 1.0)
    mean_energy = float(np.trace(K)) / len(K) or 1.0
    projected, squares = U.T @ Y, U * U
    precision, results = eps(as_like(0.0, float_like(X))), []
    penalties = np.maximum(ALPHAS * mean_energy, deficit)
    for penalty in penalties if alpha is None else [alpha]:
        shrinkage = 1 / (np.maximum(values, -penalty / 2) + penalty)
        A = U @ (shrinkage[:, None] * projected)
        misses = A / (squares @ shrinkage)[:, None]
        # new kernel values are rounded, and large coefficients add up the errors
        rounding_errors = precision * mean_energy * np.linalg.norm(A, axis=0)
        error = float(np.mean(misses * misses) + np.mean(rounding_errors**2))
        scores = Y - misses
        results.append(LeaveOneOut(float(penalty), deficit, kernel, scores, error))
    return min(results, key=lambda result: result.error)


def _take_with_anchors(kernel: Kernel, X: Array, rows: np.ndarray) -> tuple[Any, Any]:
    """Read rows, and return them also as anchors; of a kernel matrix by number."""
    source, indices = load_row_subset(X, rows)
    if kernel.by_index:
        return source[indices], kernel.take(X, index_like(rows, X))
    return source[indices], kernel.take(source, indices)


def _host_matrix(kernel: Kernel, X: Array, anchors: Array) -> np.ndarray:  # (n, m)
    """Compute K(X, anchors) by blocks, in float64 on the host."""
    return to_numpy(
        map_rows(lambda block: double(kernel(block, anchors)), X, 16 * anchors.shape[0])
    )


def _normal_equations(
    kernel: Kernel, X: Array, anchors: Array, Y: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:  # (m, m), (m, C)
    """Return CᵀC and CᵀY with C = K(X, anchors), of which blocks are in memory."""
    m = anchors.shape[0]

    def products(block: Array, first: int) -> np.ndarray:
        C = to_numpy(double(kernel(block, anchors)))
        return C.T @ np.hstack([C, Y[first : first + len(C)]])

    total = sum_rows(products, X, 16 * m, numbered=True, result_bytes=8 * m * m)
    return total[:, :m].copy(), total[:, m:]


def _solve(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Solve A Z = B for a positive definite A, which is overwritten."""
    with threads_if_large(len(A)):
        # the transpose is A in the order of LAPACK, which makes no copy of it
        factor = cho_factor(A.T, overwrite_a=True, check_finite=False)
        return cho_solve(factor, B, check_finite=False)


def _random_rows(X: Array, n: int, rng: np.random.Generator) -> np.ndarray:
    return np.sort(rng.choice(X.shape[0], min(n, X.shape[0]), replace=False))


def _softmax(temperature: float, scores: Array) -> Array:  # (n, C)
    """exp(f_c/temperature), divided by the sum over the classes."""
    xp = namespace(scores)
    scale = max(temperature, float(xp.finfo(scores.dtype).tiny) ** 0.5)
    excess = scores - xp.max(scores, axis=1, keepdims=True)
    with quiet():  # a class far below the best one gets probability 0
        weights = xp.exp(excess / as_like(scale, scores))
    return weights / xp.sum(weights, axis=1, keepdims=True)


def _likeliest_temperature(scores: np.ndarray, class_indices: np.ndarray) -> float:
    """Return the temperature whose softmax makes these labels most likely."""
    own = np.arange(len(scores)), class_indices

    def log_likelihood(temperature: float) -> float:
        logits = scores / temperature
        return float(np.mean(logits[own] - logsumexp(logits, axis=1)))

    return float(max(TEMPERATURES, key=log_likelihood))
