"""A classifier that chooses its own dictionaries, kernel and scaling."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ..backend.arrays import as_like, move_like, to_numpy
from ..backend.constraints import AT_LEAST_1, POSITIVE
from ..backend.estimator import Estimator
from ..backend.masks import has_missing
from ..backend.missing_rows import all_in_memory
from ..backend.pipelines import takes_gaps
from ..backend.random import generator
from ..backend.rows import map_rows
from ..backend.validation import check_rows
from ..config import options
from ..core import Array
from ..fields import (
    Declared,
    Facts,
    Floats,
    History,
    Indices,
    Labels,
    Many,
    Maybe,
    Number,
    Part,
    Size,
    Whole,
)
from ..imputers import DictionaryImputer
from ..kernels.complete import completed_rows
from ..sklearn_base import ClassifierMixin
from .clock import Clock
from .halving import Search, as_array
from .labels import checked_labels
from .learned import FAMILIES
from .trials import Outcome, described

OVERTIME = 0.2  # share of the budget by which the last fit may exceed it


def _best_has(method: str) -> Callable[[Any], bool]:
    def check(model: Any) -> bool:
        return hasattr(getattr(model, "best_pipeline_", None), method)

    return check


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
    all numbers of non-zeros or neighbours. The winner is fitted to all rows.

    Missing values (NaN) in training rows are filled in by a `DictionaryImputer`, which
    becomes a part of the winner; new rows may have some in any case.

    Parameters
    ----------
    seconds : float, optional
        Time for the search and the last fit. The list of candidates is finite, so small
        data take less. None: no limit.
    max_candidates : int, optional
        Largest number of candidates to try. Default: limited by time only.
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
        A fitted pipeline, which can be used on its own.
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
        "robust": ["boolean"],
        "families": ["array-like", None],
        "random_state": ["random_state", np.random.Generator],
        "verbose": ["verbose"],
        "callback": [callable, None],
    }

    _declared: ClassVar[Declared] = {
        "n_features_in_": Size("p"),
        "classes_": Labels("C"),
        "rows_like_": Floats(0, "p"),
        "history_": History("score"),
        "best_score_": Number(),
        "best_params_": Facts(),
        "table_": Many(Facts(), "t"),
        "n_candidates_": Whole(least=1),
        "best_pipeline_": Part(Pipeline, p="p"),
        "best_rows_": Maybe(Indices(None)),
    }

    def __init__(
        self,
        seconds: float | None = 60.0,
        max_candidates: int | None = None,
        *,
        robust: bool = False,
        families: Sequence[str] | None = None,
        random_state: Any = None,
        verbose: bool = False,
        callback: Callable[[dict[str, Any]], Any] | None = None,
    ) -> None:
        self.seconds = seconds
        self.max_candidates = max_candidates
        self.robust = robust
        self.families = families
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback

    def fit(self, X: Any, y: Any) -> AutoDictionaryClassifier:
        """Search, then fit the winner to all rows."""
        clock = Clock(self.seconds)
        self._validate_params()
        X = check_rows(
            self,
            X,
            reset=True,
            ensure_min_samples=2,
            whole=True,
            allow_nan=all_in_memory(X),
        )
        labels = checked_labels(self, y, X.shape[0])
        self.classes_, places = np.unique(labels, return_inverse=True)
        families = self._families()
        seed = int(generator(self.random_state).integers(2**31))
        given = clock, self.robust, self.max_candidates, seed, self._watch
        self.history_: dict[str, list[float]] = {"score": [], "seconds": []}
        self._stage_shown = -1
        self.rows_like_ = as_like(np.empty((0, X.shape[1])), X)
        # fits of candidates are not resumed, and the search knows of small classes
        with options(checkpoint=None, device=None), warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            rows = as_array(X)
            search = Search(completed_rows(rows), places, families, *given)
            best = search.run()
            self._keep(search, best, rows)
        return self

    def _families(self) -> list[str]:
        if self.families is None:
            names = FAMILIES.items()
            return [n for n, each in names if self.robust or not each.for_damage]
        given = np.atleast_1d(np.asarray(self.families, dtype=object)).tolist()
        unknown = [name for name in given if name not in list(FAMILIES)]
        if unknown or not given:
            what = repr(unknown[0]) if unknown else "nothing"
            raise ValueError(
                f"families has {what}: choose from {', '.join(map(repr, FAMILIES))}"
            )
        return given

    def _watch(self, state: dict[str, Any]) -> Any:
        """Record the progress of the search, and report it."""
        new_stage = state["stage"] != self._stage_shown
        self._stage_shown = state["stage"]
        self.history_["score"].append(float(state["best"]))
        self.history_["seconds"].append(float(state["elapsed"]))
        if self.verbose and new_stage:
            print(
                f"stage {state['stage'] + 1} of {state['n_stages']}: "
                f"{state['n_rows']} rows, best so far {state['best']:.4f}, "
                f"{state['elapsed']:.1f} s",
                flush=True,
            )
        return self.callback(state) if self.callback is not None else None

    def _keep(self, search: Search, best: Outcome, X: np.ndarray) -> None:
        rows = self._affordable_rows(search, best)
        self.best_score_ = float(best.score)
        self.best_params_ = described(best)
        self.table_ = search.table
        self.n_candidates_ = len(search.known)
        first = [DictionaryImputer()] if has_missing(X) else []
        pipeline = make_pipeline(*first, *search.steps(best, rows))
        labels = self.classes_[search.y[rows]]
        self.best_pipeline_ = pipeline.fit(X[rows], labels)
        self.best_rows_ = rows
        del self._stage_shown

    def _affordable_rows(self, search: Search, best: Outcome) -> np.ndarray:
        """All rows, or as many as can be fitted in the remaining time."""
        n, smallest = len(search.y), best.stage.n_rows
        predicted = best.fit_seconds(n)
        left = search.clock.left + OVERTIME * search.clock.budget
        if smallest == n or predicted <= left:
            return np.arange(n)
        share = max(left, 0.0) / predicted  # work grows faster than rows
        count = max(smallest, int(share * n))
        warnings.warn(
            f"only {count} of {n} rows could be fitted in seconds={self.seconds}: "
            "raise it",
            RuntimeWarning,
            stacklevel=4,
        )
        return np.sort(search.order[:count])

    def predict(self, X: Any) -> Array:  # (n,)
        """The labels that the best pipeline gives."""
        places = to_numpy(self._answers("predict", X)).astype(np.intp)
        labels = self.classes_[places]
        is_number = labels.dtype.kind in "iufb"
        return move_like(labels, X) if is_number else labels

    @available_if(_best_has("predict_proba"))
    def predict_proba(self, X: Any) -> Array:  # (n, n_classes)
        """Probabilities, where the best pipeline gives some."""
        return self._answers("predict_proba", X)

    @available_if(_best_has("decision_function"))
    def decision_function(self, X: Any) -> Array:  # (n, n_classes), (n,) for two
        """Scores of the classes, where the best pipeline gives some."""
        return self._answers("decision_function", X)

    def _answers(self, method: str, X: Any) -> Array:
        """The output of the best pipeline, computed by blocks of rows.

        The pipeline works on the host; rows and results are on the model's device.
        """
        check_is_fitted(self)
        gaps = takes_gaps(self.best_pipeline_)
        X = check_rows(
            self, X, by_blocks=True, like=self.rows_like_, allow_nan=gaps
        )
        answer = getattr(self.best_pipeline_, method)

        def block(rows: Array) -> Array:
            found = answer(to_numpy(rows))
            if method == "predict":
                found = np.searchsorted(self.classes_, found)
            return as_like(found, self.rows_like_)

        row_bytes = 32 * (X.shape[1] + self.best_params_["n_landmarks"])
        return map_rows(block, X, row_bytes)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags
