"""Labels of every kind, good and bad, for every classifier and every container."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning

from kernlets import MOD, Blocks, ResidualClassifier, RLSDictionary
from kernlets.classifiers import CLASSIFIERS

from .models import INSTANCES, N, labels, samples

MODELS = {type(m): m for m in INSTANCES.values() if type(m) in CLASSIFIERS.values()}
STREAMED = ResidualClassifier(MOD(6, 2, max_iter=1, random_state=0))


@pytest.fixture(params=MODELS, ids=lambda kind: kind.__name__)
def model(request):
    return clone(MODELS[request.param])


@pytest.fixture(scope="module")
def X():
    return samples().astype(np.float64)


def objects(*values):
    """Labels that are Python objects, in turn these."""
    found = np.empty(N, dtype=object)
    found[:] = [values[i % len(values)] for i in range(N)]
    return found


class Missing:
    """What pandas puts where there is nothing."""

    def __ne__(self, other):
        raise TypeError("ambiguous")


Missing.__name__ = "NAType"

BAD = {
    "mixed list": (objects(1, "a").tolist(), "y mixes numbers .* and text|text .* and"),
    "mixed objects": (objects("b", 2.5), "y mixes .*one kind"),
    "numbers and others": (objects(1, b"a"), "y mixes .*one kind"),
    "None": (objects("a", None, "b"), "missing labels"),
    "None beside numbers": (objects(1, None, 2), "missing labels"),
    "NA": (objects(1, Missing(), 2), "missing labels"),
    "NaN": (np.where(labels() == 1, np.nan, labels()), "NaN or infinity"),
    "infinity": (np.where(labels() == 1, np.inf, labels()), "NaN or infinity"),
    "NaN beside text": (objects("a", float("nan"), "b"), "missing labels"),
    "NaN in a list of text": (objects("a", float("nan")).tolist(), "missing labels"),
    "no time": (labels().astype("M8[D]") + np.timedelta64("NaT"), "NaN"),
    "continuous": (np.linspace(0, 1, N), "Unknown label type: continuous"),
    "continuous objects": (objects(0.5, 1.25), "Unknown label type: continuous"),
    "too few": (labels()[:-1], "y has 47|shape \\(47,\\)|47 labels"),
    "too many": (np.append(labels(), 0), "y has 49|shape \\(49,\\)|49 labels"),
    "two columns": (np.c_[labels(), labels()], "1d array"),
    "one class": (np.zeros(N), "one class only"),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_labels(kind, model, X):
    y, words = BAD[kind]
    with pytest.raises(ValueError, match=words):
        model.fit(X, y)


@pytest.mark.parametrize("kind", BAD)
def test_bad_labels_of_blocks(kind, X):
    y, words = BAD[kind]
    with pytest.raises(ValueError, match=words):
        clone(STREAMED).fit(Blocks(lambda: iter([X[:20], X[20:]])), y)


@pytest.mark.parametrize("kind", BAD)
@pytest.mark.parametrize("where", ["here", "there"])
def test_bad_labels_on_a_cluster(kind, where, X):
    """Labels that the client has, and those that are chunks themselves."""
    da = pytest.importorskip("dask.array", reason="Dask is not installed")
    y, words = BAD[kind]
    if where == "there":
        y = da.from_array(np.array(y, dtype=object if "list" in kind else None), 17)
        words = words.replace("1d array", "one label for each row")
    with pytest.raises(ValueError, match=words):
        clone(STREAMED).fit(da.from_array(X, chunks=(20, 5)), y)


def test_labels_that_are_mixed_only_between_chunks(X):
    da = pytest.importorskip("dask.array", reason="Dask is not installed")
    numbers, text = labels()[:24].astype(object), labels()[24:].astype(str)
    y = da.concatenate([da.from_array(p.astype(object), 24) for p in (numbers, text)])
    with pytest.raises(ValueError, match=r"y mixes .*one kind"):
        clone(STREAMED).fit(da.from_array(X, chunks=(24, 5)), y)


def test_bad_labels_in_a_score_on_a_cluster(X):
    da = pytest.importorskip("dask.array", reason="Dask is not installed")
    rows = da.from_array(X, chunks=(20, 5))
    fitted = clone(STREAMED).fit(rows, labels())
    y = np.where(labels() == 1, np.nan, labels())
    for given in (y, da.from_array(y, 17)):
        with pytest.raises(ValueError, match="NaN"):
            fitted.score(rows, given)


def test_no_labels(model, X):
    with pytest.raises(ValueError, match="requires y"):
        model.fit(X, None)
    with pytest.raises(ValueError, match="requires y"):
        clone(STREAMED).fit([X[:20], X[20:]], None)


GOOD = {
    "bytes": labels().astype(np.uint8),
    "foreign bytes": labels().astype(">i4"),
    "whole floats": labels() * 2.0,
    "text": np.array(["one", "two", "three"])[labels()],
    "objects of text": objects("one", "two", "three"),
    "objects of numbers": objects(0, 1, 2),
    "list": labels().tolist(),
    "list of text": objects("one", "two", "three").tolist(),
    "truth": labels() == 1,
    "days": labels().astype("M8[D]"),
}


@pytest.mark.parametrize("kind", GOOD)
def test_good_labels(kind, model, X):
    """The same classes, whatever they are called."""
    y = GOOD[kind]
    places = np.unique(np.array(y), return_inverse=True)[1]
    found = model.fit(X, y).predict(X)
    wanted = clone(model).fit(X, places).predict(X)
    np.testing.assert_array_equal(found, model.classes_[wanted])
    assert set(found.tolist()) <= set(np.asarray(y).tolist())


@pytest.mark.parametrize("kind", GOOD)
def test_good_labels_on_a_cluster(kind, X):
    da = pytest.importorskip("dask.array", reason="Dask is not installed")
    rows, y = da.from_array(X, chunks=(20, 5)), np.array(GOOD[kind])
    wanted = clone(STREAMED).fit(rows, np.unique(y, return_inverse=True)[1])
    scores = wanted.decision_function(rows).compute()
    for given in (GOOD[kind], da.from_array(y, 17)):
        found = clone(STREAMED).fit(rows, given)
        np.testing.assert_array_equal(found.classes_, np.unique(y))
        np.testing.assert_array_equal(found.decision_function(rows).compute(), scores)
        assert found.score(rows, given) == wanted.score(
            rows, np.unique(y, return_inverse=True)[1]
        )


def test_a_single_column_is_taken_with_a_warning(model, X):
    with pytest.warns(DataConversionWarning, match="column-vector"):
        model.fit(X, labels()[:, None])
    with warnings.catch_warnings():
        warnings.simplefilter("error", DataConversionWarning)
        found = clone(model).fit(X, labels()).predict(X)
    np.testing.assert_array_equal(model.predict(X), found)


def test_a_single_column_on_a_cluster(X):
    da = pytest.importorskip("dask.array", reason="Dask is not installed")
    rows, column = da.from_array(X, chunks=(20, 5)), labels()[:, None]
    for y in (column, da.from_array(column, chunks=17)):
        with pytest.warns(DataConversionWarning, match="column-vector"):
            model = clone(STREAMED).fit(rows, y)
        assert model.classes_.tolist() == [0, 1, 2]


def test_labels_of_a_stream(X):
    stream = ResidualClassifier(RLSDictionary(4, 2), random_state=0)
    with pytest.raises(ValueError, match="y mixes"):
        clone(stream).partial_fit(X, labels(), classes=[0, 1, "2"])
    begun = stream.partial_fit(X, labels())
    for y, words in (
        (labels().astype(str), "y mixes"),
        (labels() + 1, "the label 3"),
        (objects(0, None), "missing"),
    ):
        with pytest.raises(ValueError, match=words):
            begun.partial_fit(X, y)


def test_tensors_as_labels(model, X):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    found = clone(model).fit(X, torch.asarray(labels())).predict(X)
    np.testing.assert_array_equal(found, model.fit(X, labels()).predict(X))
    with pytest.raises(ValueError, match="NaN"):
        model.fit(X, torch.asarray(BAD["NaN"][0]))
