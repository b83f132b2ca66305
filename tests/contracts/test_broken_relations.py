"""Every relation of tests/relations.py notices an estimator that breaks it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone

import kernlets
import relations
from kernlets import KSVD, OnlineDictionary
from kernlets.learners import LEARNERS
from relations import RELATIONS, Broken, Data, DoesNotApply, check


def dense(X):
    return X.toarray() if sparse.issparse(X) else np.asarray(X)


class Shift(BaseEstimator):
    """Squared distances from the weighted mean of the rows."""

    def fit(self, X, y=None, sample_weight=None):
        self.mean_ = np.average(dense(X).astype(float), axis=0, weights=sample_weight)
        return self

    def transform(self, X):
        return self.scale(dense(X) - self.mean_)

    def scale(self, X):
        return np.square(X).sum(axis=1, keepdims=True)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.sparse = True
        return tags


class Nearest(ClassifierMixin, BaseEstimator):
    """The class of the nearest mean."""

    def fit(self, X, y):
        self.classes_, places = np.unique(y, return_inverse=True)
        self.means_ = np.array([X[places == c].mean(0) for c in np.unique(places)])
        return self

    def decision_function(self, X):
        return -((X[:, None] - self.means_) ** 2).sum(-1)

    def predict(self, X):
        return self.classes_[self.decision_function(X).argmax(1)]


class NumbersRows(Shift):
    def transform(self, X):
        return super().transform(X) + np.arange(len(dense(X)))[:, None]


class LooksAtOthers(Shift):
    def transform(self, X):
        return super().transform(X) - np.nanmax(dense(X))


class LooksAtGaps(Shift):
    def transform(self, X):
        return np.nan_to_num(super().transform(X)) + 1.0 * np.isnan(X).any()


class LearnsFirstRow(Shift):
    def fit(self, X, y=None):
        self.mean_ = X[0]
        return self


class ReadsNames(Nearest):
    def decision_function(self, X):
        return super().decision_function(X) + 1.0 * (self.classes_.dtype.kind == "U")


class FavoursFirst(Nearest):
    def decision_function(self, X):
        return super().decision_function(X) + [50, *[0] * (len(self.classes_) - 1)]


class IgnoresWeights(Shift):
    def fit(self, X, y=None, sample_weight=None):
        return super().fit(X)


class RoundsWeights(Shift):
    def fit(self, X, y=None, sample_weight=None):
        super().fit(X, None, sample_weight)
        self.mean_ = self.mean_ * (1 if sample_weight is None else 1 + 1e-15)
        return self


class OrdersFeatures(Shift):
    def scale(self, X):
        return X @ np.arange(X.shape[1])[:, None]


class CountsFeatures(Shift):
    def scale(self, X):
        return np.square(X).mean(axis=1, keepdims=True)


class SumsFeatures(Shift):
    def scale(self, X):
        return np.abs(X).sum(axis=1, keepdims=True)


class HasUnit(KSVD):
    def fit(self, X, y=None):
        return super().fit(X + 0.1)


class FirstAtomIsSpecial(KSVD):
    def transform(self, X):
        return super().transform(X) * [2, *[1] * (self.dictionary_.n_atoms - 1)]


class HasSign(KSVD):
    def transform(self, X):
        return np.abs(super().transform(X))


class Remembers(Shift):
    def fit(self, X, y=None):
        self.times_ = getattr(self, "times_", 0) + 1
        return super().fit(X)


class DiffersInOne(Shift):
    def fit_transform(self, X, y=None):
        return self.fit(X).transform(X) + 1


class PredictsInOne(Shift):
    def predict(self, X):
        return np.ones(len(X))

    def fit_predict(self, X, y=None):
        return -np.ones(len(X))


class ChangesRows(Shift):
    def fit(self, X, y=None):
        X[0] += 1
        return super().fit(X)


class KeepsRows(Shift):
    def fit(self, X, y=None):
        self.X_ = X
        return super().fit(X)

    def transform(self, X):
        return super().transform(X) + self.X_.sum()


class DrawsFromNumPy(Shift):
    def fit(self, X, y=None):
        super().fit(X).mean_ += np.random.rand()
        return self


class LooksAtLayout(Shift):
    def transform(self, X):
        return super().transform(X) + X.flags.f_contiguous


class LooksAtZeros(Shift):
    def transform(self, X):
        return super().transform(X) + sparse.issparse(X)


class LooksAtContainer(Shift):
    def transform(self, X):
        return super().transform(X) + isinstance(X, list)


class LearnsContainer(Shift):
    def fit(self, X, y=None):
        super().fit(X).mean_ += isinstance(X, list)
        return self


class LooksAtType(Shift):
    def transform(self, X):
        return super().transform(X) + (X.dtype != float)


class MOD(kernlets.MOD):
    def transform(self, X):
        return super().transform(X) * [2, *[1] * (self.dictionary_.n_atoms - 1)]


SMALL = {"n_components": 5, "n_nonzero_coefs": 2, "max_iter": 2, "random_state": 0}
FAULTY = {
    "new rows permuted": NumbersRows(),
    "row alone": LooksAtOthers(),
    "complete rows beside gaps": LooksAtGaps(),
    "fitted rows permuted": LearnsFirstRow(),
    "classes renamed": ReadsNames(),
    "classes permuted": FavoursFirst(),
    "weights repeat": IgnoresWeights(),
    "weights of one and zero": RoundsWeights(),
    "features permuted": OrdersFeatures(),
    "zero feature added": CountsFeatures(),
    "features halved": SumsFeatures(),
    "rows in another unit": HasUnit(**SMALL),
    "atoms permuted": FirstAtomIsSpecial(**SMALL),
    "atoms negated": HasSign(**SMALL),
    "first atoms permuted": MOD(**SMALL),
    "fitted again": Remembers(),
    "saved and loaded": KSVD(**SMALL),
    "stream saved midway": OnlineDictionary(**SMALL),
    "fit transform in one": DiffersInOne(),
    "fit predict in one": PredictsInOne(),
    "inputs left alone": ChangesRows(),
    "results left alone": KeepsRows(),
    "seeds decide": DrawsFromNumPy(),
    "layouts": LooksAtLayout(),
    "sparse rows": LooksAtZeros(),
    "containers of new rows": LooksAtContainer(),
    "containers of fitted rows": LearnsContainer(),
    "whole numbers": LooksAtType(),
    "single precision": LooksAtType(),
}


@pytest.fixture
def data():
    rng = np.random.default_rng(7)
    y = np.arange(30) % 3
    X = rng.random((30, 6)) * 3 + 5 * np.eye(3, 6)[y]
    return Data(X[:24], y[:24], X[24:], start=(1, 5, 9, 14))


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("allows_close_calls", [False, True])
def test_every_relation_can_break(relation, allows_close_calls, data, monkeypatch):
    model = FAULTY[relation]
    for cls in (HasUnit, FirstAtomIsSpecial, HasSign):
        monkeypatch.setitem(LEARNERS, cls.__name__, cls)
    if relation == "saved and loaded":  # something else comes back
        wrong = clone(model).fit(data.X[:, ::-1].copy())
        monkeypatch.setattr(relations.kernlets, "load", lambda path: wrong)
    if "midway" in relation:
        monkeypatch.setattr(relations.pickle, "loads", lambda data: clone(model))
    data = relations.replace(data, allows_close_calls=allows_close_calls)
    with pytest.raises(Broken):
        check(relation, model, data)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("model", [Shift(), Nearest()], ids=lambda m: type(m).__name__)
def test_sound_estimators_break_none(relation, model, data):
    if relation.startswith(("saved", "containers")):
        pytest.skip("only registered classes are saved, and take any container")
    try:
        check(relation, model, data)
    except DoesNotApply as reason:
        pytest.skip(str(reason))


class DrawsARow(Shift):
    """Measures from a row that is the same with each of the first seeds."""

    def __init__(self, random_state=0):
        self.random_state = random_state

    def fit(self, X, y=None):
        super().fit(X)
        self.mean_ = X[0] if self.random_state < 30 else X[1]
        return self


def test_a_draw_that_few_seeds_show_is_no_break(data):
    with pytest.raises(DoesNotApply, match="drawn by their places"):
        check("fitted rows permuted", DrawsARow(), data)


def test_equal_images_of_rows_are_a_tie(data):
    """A sigmoid kernel is 1 or −1 for rows as large as these."""
    data = relations.replace(data, X=1e7 * data.X, new=1e7 * data.new)
    model = kernlets.SRCClassifier(kernel="sigmoid")
    with pytest.raises(Broken):
        check("fitted rows permuted", model, data)
    data = relations.replace(data, allows_close_calls=True)
    with pytest.raises(DoesNotApply, match="equal images"):
        check("fitted rows permuted", model, data)
