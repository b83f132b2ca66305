"""Tables with columns that are not numbers: each is named, with the remedy."""

from __future__ import annotations

import datetime

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from kernlets import KSVD, MOD, DictionaryImputer, NystroemMap, ResidualClassifier
from kernlets.data.check import check_rows
from kernlets.data.columns import check_columns, columns_error

N = 12
NUMBERS = np.arange(N) * 1.5
DAYS = np.datetime64("2020-01-01") + np.arange(N)
MODELS = [
    KSVD(3, 1, max_iter=1, random_state=0),
    NystroemMap("rbf:9", n_landmarks=5, random_state=0),
    ResidualClassifier(MOD(2, 1, max_iter=1), random_state=0),
]


@pytest.fixture
def pandas():
    return pytest.importorskip("pandas", reason="pandas is not installed")


@pytest.fixture
def cars(pandas):
    """Columns of every kind."""
    whole = np.arange(N)
    names = ["chevrolet", "toyota", "fiat"] * 4
    return pandas.DataFrame(
        {
            "weight": NUMBERS,
            "name": names,
            "nullable": pandas.array(names, dtype="string"),
            "origin": pandas.Categorical(names),
            "power": pandas.Series([130, "?", *whole[2:]], dtype=object),
            "spelled": pandas.Series(["130", "?", *["90"] * 10], dtype=object),
            "sold": DAYS,
            "zoned": pandas.Series(DAYS).dt.tz_localize("UTC"),
            "month": pandas.Series(DAYS).dt.to_period("M"),
            "day": pandas.Series([datetime.date(2020, 1, 1)] * N, dtype=object),
            "dated": pandas.Categorical(DAYS),
            "age": DAYS - DAYS[0],
            "lap": pandas.Series([datetime.timedelta(1)] * N, dtype=object),
            "doors": pandas.array([2, pandas.NA] * 6, dtype="Int64"),
            "coded": pandas.Categorical([1, 2, 3] * 4),
            "digits": ["1", "2", "3"] * 4,
        }
    )


def message(X):
    with pytest.raises(ValueError) as caught:
        check_rows(MOD(), X, reset=True, allow_nan=True)
    return str(caught.value)


def test_all_columns_that_are_not_numbers_are_named_at_once(cars):
    assert message(cars) == (
        "X must be numbers, but it has text in columns 'name', 'nullable', 'origin', "
        "'power' (only in part, the first is '?'), 'spelled' (only in part, the first "
        "is '?'), dates in columns 'sold', 'zoned', 'month', 'day', 'dated', durations "
        "in columns 'age', 'lap'. Drop such columns, or encode text, e.g. with "
        "ColumnTransformer([('text', OneHotEncoder(sparse_output=False), ['name', "
        "'nullable', 'origin', ...])], remainder='passthrough') in front, or replace "
        "single values by NaN; turn dates into numbers, e.g. (dates - dates.min()) / "
        "numpy.timedelta64(1, 'D'); turn durations into numbers, e.g. durations / "
        "numpy.timedelta64(1, 's')"
    )


def test_each_column_by_itself(cars):
    """Dates alone were turned into counts of a unit that depends on their type."""
    for name in ("weight", "doors", "coded", "digits"):
        assert check_rows(MOD(), cars[[name]], reset=True, allow_nan=True).shape[0] == N
    for name in cars.columns.difference(["weight", "doors", "coded", "digits"]):
        assert f"in column '{name}'" in message(cars[[name]])
        with_numbers = cars[[name, "weight"]]
        assert f"in column '{name}'" in message(with_numbers)
        objects = with_numbers.astype(object).to_numpy()
        assert "in column 0" in message(objects)


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_estimators_refuse_them_in_fits_and_new_rows(model, cars):
    y, X = np.arange(N) % 2, cars[["weight", "coded"]]
    model.fit(X.to_numpy(dtype=float), y)
    method = getattr(model, "transform", None) or model.predict
    for names, words in (
        (["weight", "name"], "text in column 'name'"),
        (["sold", "weight"], "dates in column 'sold'"),
        (["age", "lap"], "durations in columns 'age', 'lap'"),
    ):
        with pytest.raises(ValueError, match=words):
            model.fit(cars[names], y)
        with pytest.raises(ValueError, match=words):
            method(cars[names])


ARRAYS = {
    "objects": (np.array([[1, "x"], [2, 3.0]], dtype=object), "column 1 .*is 'x'"),
    "lists": ([[1, "x", "y"], [2, 3.0, "z"]], "columns 1 .*first is 'x'.*, 2"),
    "text": (np.array([["a", "1"], ["b", "y"]]), "columns 0, 1 .*first is 'y'"),
    "bytes": (np.array([[b"1", b"a"], [b"2", b"b"]]), "text in column 1"),
    "dates": (DAYS.reshape(6, 2), "dates in columns 0, 1"),
    "durations": (DAYS.reshape(6, 2) - DAYS[0], "durations in columns 0, 1"),
    "objects of dates": (
        np.array([[1.0, DAYS[0]], [2.0, DAYS[1]]], dtype=object),
        "dates in column 1",
    ),
    "lists of dates": ([[DAYS[0]], [DAYS[1]]], "dates in column 0"),
    "lists of durations": ([[1.0, DAYS[0] - DAYS[1]]] * 2, "durations in column 1"),
}


@pytest.mark.parametrize("kind", ARRAYS)
def test_columns_of_arrays_are_named_by_number(kind):
    X, words = ARRAYS[kind]
    with pytest.raises(ValueError, match=rf"^X must be numbers, but .*{words}"):
        check_rows(MOD(), X, reset=True)


def test_columns_with_one_name(pandas):
    X = pandas.DataFrame([[1, "a", "b"]], columns=["x", "y", "y"])
    assert "text in columns 'y', 'y'. Drop" in message(X)


def test_an_error_names_no_more_than_twenty_columns():
    X = np.full((2, 700), "word", dtype=object)
    assert "columns 0, 1, 2" in message(X) and ", 19 and 680 more. Drop" in message(X)


def test_what_is_neither_gets_the_error_of_numpy():
    X = np.array([[1.0, {"a": 1}]], dtype=object)
    assert columns_error(X) is None
    with pytest.raises(TypeError, match="not 'dict'"):
        check_rows(MOD(), X, reset=True)


def test_the_remedies_work(cars):
    """Those of the message, typed in."""
    sold = (cars["sold"] - cars["sold"].min()) / np.timedelta64(1, "D")
    age = cars["age"] / np.timedelta64(1, "s")
    X = cars[["weight", "name", "origin"]].assign(sold=sold, age=age)
    encoder = OneHotEncoder(sparse_output=False)
    steps = [("text", encoder, ["name", "origin"])]
    front = ColumnTransformer(steps, remainder="passthrough")
    found = make_pipeline(front, MODELS[0]).fit_transform(X)
    assert np.isfinite(found).all()


def nullable(pandas, kind):
    """A frame in which every second entry of the first column is pandas' NA."""
    text = kind.startswith("str")
    values = [pandas.NA if i % 2 else (str(i) if text else i) for i in range(N)]
    first = pandas.Series(values, dtype=kind)
    return pandas.DataFrame({"a": first, "b": NUMBERS})


KINDS = ["object", "string", "Int64", "Float32", "Float64"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", ["frame", "objects"])
def test_na_of_pandas_is_nan(kind, form, pandas):
    frame = nullable(pandas, kind)
    X = frame if form == "frame" else frame.to_numpy(dtype=object)
    found = check_rows(MOD(), X, reset=True, allow_nan=True)
    np.testing.assert_array_equal(np.isnan(found[:, 0]), np.arange(N) % 2)
    np.testing.assert_array_equal(found[::2, 0], np.arange(0, N, 2))
    np.testing.assert_array_equal(found[:, 1], NUMBERS)
    with pytest.raises(ValueError, match="X contains NaN"):
        check_rows(MOD(), X, reset=True)
    imputer = DictionaryImputer().fit(X)
    assert np.isfinite(imputer.transform(X)).all()
    if form == "frame":
        assert list(imputer.feature_names_in_) == ["a", "b"]


def test_the_frame_of_the_user_keeps_its_na(pandas):
    frame = nullable(pandas, "object")
    objects = frame.to_numpy(dtype=object)
    check_columns(frame)
    check_columns(objects)
    assert frame["a"].isna().sum() == N // 2 and objects[1, 0] is pandas.NA


def test_columns_of_polars():
    polars = pytest.importorskip("polars", reason="polars is not installed")
    days = [datetime.date(2020, 1, 1)] * 3
    frame = polars.DataFrame({"a": [1.0, 2, 3], "b": ["x", "y", "z"], "c": days})
    assert "text in column 'b', dates in column 'c'" in message(frame)
    assert "dates in column 'c'" in message(frame[["a", "c"]])
    assert check_rows(MOD(), frame[["a"]], reset=True).shape == (3, 1)


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4"])
def test_numbers_of_polars(dtype):
    polars = pytest.importorskip("polars", reason="polars is not installed")
    X = np.arange(12).reshape(4, 3).astype(dtype)
    frame = polars.DataFrame(X, schema=["a", "b", "c"])
    found = check_rows(MOD(), frame, reset=True)
    assert found.dtype == (np.float32 if dtype == "f4" else np.float64)
    np.testing.assert_array_equal(found, X)
