"""A classifier that chooses its own dictionaries, kernel and scaling."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ... import schema
from ...base.constraints import AT_LEAST_1, POSITIVE, StrOptions
from ...base.estimator import Estimator
from ...base.pipelines import takes_missing
from ...config import options
from ...contracts import Array
from ...data.check import check_rows
from ...data.missing import all_in_memory, has_missing
from ...data.rows import map_rows
from ...imputation import DictionaryImputer
from ...kernels.complete import completed_rows
from ...numerics.arrays import as_like, to_numpy
from ...numerics.random import generator
from ...sklearn_base import ClassifierMixin
from ..base import labels_like
from ..labels import check_labels
from .candidates import FAMILIES, Family
from .search import Search
from .trials import Clock, Outcome


def _best_pipeline_has(method: str) -> Callable[[Any], bool]:
    def has_method(model: Any) -> bool:
        return hasattr(getattr(model, "best_pipeline_", None), method)

    return has_method


def _has_scores(model: Any) -> bool:
    """Whether pipelines are averaged, or the only one has scores."""
    is_averaged = len(getattr(model, "pipelines_", [])) > 1
    return is_averaged or _best_pipeline_has("decision_function")(model)


class AutoDictionaryClassifier(ClassifierMixin, Estimator):
    """Dictionaries, kernel and scaling chosen by cross-validation in a given time.

    Candidates are combinations of a scaling (none, standard, unit norm, centred unit
    norm), a kernel and its width, a family of classifiers and its settings:

    * ``"fisher"``: atoms that tell classes apart, `KSADClassifier`;
    * ``"samples"``: all training samples as atoms, `SRCClassifier`;
    * ``"classes"``: a dictionary for each class behind a `NystroemMap`;
    * ``"orthogonal"``: one orthonormal dictionary, nearest samples;
    * ``"exact"``: a dictionary for each class by exact `KernelKSVD`, few rows only;
    * ``"label consistent"``: `LCKSVDClassifier` behind a `NystroemMap`;
    * ``"class samples"``: the samples of each class as its dictionary; with ``robust``.

    They are chosen by successive halving on growing parts of the rows. All candidates
    of a space share its map, and one pursuit or one set of codes gives the scores for
    all numbers of non-zeros or neighbours. The winner is fitted to all rows, and so are
    others that may be as good; their probabilities are averaged.

    Missing values (NaN) in training rows are filled in by a `DictionaryImputer`, which
    becomes a part of the winner; new rows may have some in any case.

    Parameters
    ----------
    seconds : float, optional
        Time for the search and the last fit. The list of candidates is finite, so small
        data take less. None: no limit.
    max_candidates : int, optional
        Largest number of candidates to try. Default: limited by time only.
    n_averaged : int
        Largest number of candidates whose probabilities are averaged: those whose
        accuracy in cross-validation is at most one standard error below the best. With
        1 the best alone predicts.
    scoring : "accuracy" or "balanced_accuracy"
        What candidates are chosen by: the share of correct labels, or its mean over
        the classes, where a rare class counts as much as a large one.
    robust : bool
        Whether to choose by the mean accuracy on three versions of the validation rows:
        unchanged, with noise of their own standard deviation, and with half of the
        features set to zero.
    families : sequence of str, optional
        Which of the families above to choose from. Default: all; the last one only if
        `robust`.
    random_state : int, RandomState, Generator or None
        Seed of folds and fits. It determines the order of the candidates; the clock
        determines how many are tried. With ``seconds=None``, or if the list ends in
        time, the result depends on the seed only.
    verbose : bool
        Print a line for each stage of the search.
    callback : callable, optional
        Called with a dict after each candidate of each stage: a row of `table_` with
        ``n_stages``, ``best`` and ``elapsed``. A true result ends the search.

    Attributes
    ----------
    best_pipeline_ : Pipeline
        The fitted pipeline of the best candidate, which can be used on its own.
    pipelines_ : list of Pipeline
        The fitted pipelines that are averaged, of which this is the first.
    best_rows_ : array (r,)
        The rows that it was fitted to: all of them, unless time was too short.
    best_score_ : float
        Its accuracy in cross-validation, smoothed over adjacent numbers of non-zeros or
        neighbours. As the best of many it is slightly too high: hold out rows to
        measure the accuracy.
    best_params_ : dict
        The row of `table_` that won.
    table_ : list of dict
        The candidates in the order of the trials: ``stage``, ``n_rows``, ``n_folds``,
        ``scale``, ``kernel``, ``width``, ``n_landmarks``, ``family``, ``setting``,
        ``score``, ``seconds``, ``error``.
    history_ : dict with ``score`` (the best so far) and ``seconds`` of the search
    n_candidates_ : int
    classes_ : array of labels
    rows_like_ : array (0, p)
        An empty array of the type and on the device of the training rows.

    Examples
    --------
    >>> from kernlets import AutoDictionaryClassifier, datasets
    >>> digits = datasets.load("digits")
    >>> model = AutoDictionaryClassifier(60, max_candidates=6, random_state=0)
    >>> model = model.fit(digits.X_train, digits.y_train)
    >>> model.score(digits.X_test, digits.y_test) > 0.9
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "seconds": [POSITIVE, None],
        "max_candidates": [AT_LEAST_1, None],
        "n_averaged": [AT_LEAST_1],
        "scoring": [StrOptions({"accuracy", "balanced_accuracy"})],
        "robust": ["boolean"],
        "families": ["array-like", None],
        "random_state": ["random_state", np.random.Generator],
        "verbose": ["verbose"],
        "callback": [callable, None],
    }

    _declared: ClassVar[schema.Declared] = {
        "n_features_in_": schema.Size("p"),
        "classes_": schema.Labels("C"),
        "rows_like_": schema.Floats(0, "p"),
        "history_": schema.History("score"),
        "best_score_": schema.Number(),
        "best_params_": schema.Facts(),
        "table_": schema.Many(schema.Facts(), "t"),
        "n_candidates_": schema.Whole(least=1),
        "best_pipeline_": schema.Part(Pipeline, p="p"),
        "pipelines_": schema.Many(schema.Part(Pipeline, p="p"), "e"),
        "best_rows_": schema.Maybe(schema.Indices(None)),
    }

    def __init__(
        self,
        seconds: float | None = 60.0,
        max_candidates: int | None = None,
        *,
        n_averaged: int = 8,
        scoring: str = "accuracy",
        robust: bool = False,
        families: Sequence[str] | None = None,
        random_state: Any = None,
        verbose: bool = False,
        callback: Callable[[dict[str, Any]], Any] | None = None,
    ) -> None:
        self.seconds = seconds
        self.max_candidates = max_candidates
        self.n_averaged = n_averaged
        self.scoring = scoring
        self.robust = robust
        self.families = families
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback

    def fit(self, X: Any, y: Any) -> AutoDictionaryClassifier:
        """Search, then fit the winner, and others that may be as good, to all rows."""
        clock = Clock(self.seconds)
        self._validate_params()
        allow_nan = all_in_memory(X)
        X = check_rows(
            self,
            X,
            reset=True,
            containers="memory",
            allow_nan=allow_nan,
            ensure_min_samples=2,
        )
        labels = check_labels(self, y, X.shape[0])
        self.classes_, class_indices = np.unique(labels, return_inverse=True)
        families = self._candidate_families()
        seed = int(generator(self.random_state).integers(2**31))
        self.rows_like_ = as_like(np.empty((0, X.shape[1])), X)
        host_rows = np.ascontiguousarray(to_numpy(X))
        # Fits of candidates are not resumed, and their warnings of small classes
        # would be repeated for every fold.
        with options(checkpoint=None, device=None), warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            search = Search(
                completed_rows(host_rows),
                class_indices,
                families,
                clock,
                balanced=self.scoring == "balanced_accuracy",
                robust=self.robust,
                max_candidates=self.max_candidates,
                seed=seed,
                verbose=bool(self.verbose),
                callback=self.callback,
            )
            best = search.run()
            self._fit_winners(search, best, host_rows)
        self.best_score_, self.best_params_ = float(best.score), best.row_of_table()
        self.table_, self.history_ = search.table, search.history
        self.n_candidates_ = len(search.outcomes)
        return self

    def _candidate_families(self) -> list[Family]:
        if self.families is None:
            families = FAMILIES.values()
            return [f for f in families if self.robust or not f.is_for_corruption]
        names = np.atleast_1d(np.asarray(self.families, dtype=object)).tolist()
        unknown_names = [name for name in names if name not in list(FAMILIES)]
        if unknown_names or not names:
            offender = repr(unknown_names[0]) if unknown_names else "nothing"
            raise ValueError(
                f"families has {offender}: choose from {', '.join(map(repr, FAMILIES))}"
            )
        return [FAMILIES[name] for name in names]

    def _fit_winners(self, search: Search, best: Outcome, X: np.ndarray) -> None:
        """Fit the pipelines of the best trials to all rows, if time allows."""
        self.best_rows_ = rows = search.affordable_rows(best)
        members = search.members(best, self.n_averaged)
        if len(rows) < len(X):
            members = [best]
            warnings.warn(
                f"only {len(rows)} of {len(X)} rows could be fitted in "
                f"seconds={self.seconds}: raise it",
                RuntimeWarning,
                stacklevel=4,
            )
        self.pipelines_ = []
        for outcome in members:
            imputer_steps = [DictionaryImputer()] if has_missing(X) else []
            pipeline = make_pipeline(*imputer_steps, *search.steps(outcome, rows))
            pipeline.fit(X[rows], self.classes_[search.y[rows]])
            self.pipelines_.append(pipeline)
        self.best_pipeline_ = self.pipelines_[0]

    def predict(self, X: Any) -> Array:  # (n,)
        """Return the labels with the largest mean probability."""
        check_is_fitted(self)
        if len(self.pipelines_) == 1:
            class_indices = to_numpy(self._call_pipelines("predict", X)).astype(np.intp)
        else:
            class_indices = to_numpy(self.predict_proba(X)).argmax(axis=1)
        labels = self.classes_[class_indices]
        return labels_like(labels, X)

    @available_if(_best_pipeline_has("predict_proba"))
    def predict_proba(self, X: Any) -> Array:  # (n, n_classes)
        """Return the class probabilities, the mean of those of `pipelines_`.

        They are missing only if "label consistent" is the only family that was named.
        """
        return self._call_pipelines("predict_proba", X)

    @available_if(_has_scores)
    def decision_function(self, X: Any) -> Array:  # (n, n_classes), (n,) for two
        """Return the mean probabilities, of two classes the second minus the first.

        If there is one pipeline, these are its own scores, if it has any.
        """
        if len(self.pipelines_) == 1:
            return self._call_pipelines("decision_function", X)
        chances = self.predict_proba(X)
        return chances[:, 1] - chances[:, 0] if len(self.classes_) == 2 else chances

    def _call_pipelines(self, method: str, X: Any) -> Array:
        """Call a method on blocks of rows, and average the outputs of the pipelines.

        Pipelines work on the host; rows and results are on the model's device.
        """
        check_is_fitted(self)
        allow_nan = takes_missing(self.best_pipeline_)
        X = check_rows(
            self, X, containers="disk", like=self.rows_like_, allow_nan=allow_nan
        )

        def call_on_block(rows: Array) -> Array:
            host_rows = to_numpy(rows)
            outputs = [getattr(model, method)(host_rows) for model in self.pipelines_]
            if method == "predict":
                return as_like(
                    np.searchsorted(self.classes_, outputs[0]), self.rows_like_
                )
            return as_like(np.mean(outputs, axis=0), self.rows_like_)

        row_bytes = 32 * (X.shape[1] + self.best_params_["n_landmarks"])
        return map_rows(call_on_block, X, row_bytes)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags
