"""`DictionaryImputer`: its formula, its passes, its place in pipelines."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from kernlets import KSVD, DictionaryImputer, KernelKSVD, load, save
from kernlets.kernels.complete import completed_rows, fill_in, neighbors


@pytest.fixture
def rng():
    return np.random.default_rng(2)


def hidden(rng, X, share=0.3):
    return np.where(rng.random(X.shape) < share, np.nan, X)


def error(found, X, holed):
    return float(np.square(found - X)[np.isnan(holed)].mean())


def test_a_row_is_filled_in_by_ridge_regression_on_its_neighbours(rng):
    samples, x = rng.standard_normal((30, 5)), rng.standard_normal((1, 5))
    x[0, [1, 4]] = np.nan
    model = DictionaryImputer().fit(samples)
    found = fill_in(x, samples, model.kernel_, 8, 0.3)[0]
    seen, share = [0, 2, 3], 3 / 5
    distance = ((samples[:, seen] - x[0, seen]) ** 2).sum(axis=1)
    near = samples[np.argsort(distance)[:8]]
    mean = near.mean(axis=0)
    Z, z = (near - mean)[:, seen], (x[0] - mean)[seen]

    def kernel(a, b):
        squares = ((a[:, None] - b[None]) ** 2).sum(axis=2)
        return a @ b.T / share / 5 + np.exp(-squares / share / 10)

    K = kernel(Z, Z)
    K += 0.3 * np.diag(K).mean() * np.eye(8)
    code = np.linalg.solve(K, kernel(z[None], Z)[0])
    np.testing.assert_allclose(found[[1, 4]], (mean + code @ (near - mean))[[1, 4]])
    np.testing.assert_array_equal(found[seen], x[0, seen])


def test_neighbours_are_those_over_the_observed_features(rng):
    samples, X = rng.standard_normal((40, 6)), hidden(rng, rng.standard_normal((9, 6)))
    found = neighbors(X, samples, 5, np.arange(9))
    for i, x in enumerate(X):
        o = ~np.isnan(x)
        distance = ((samples[:, o] - x[o]) ** 2).sum(axis=1)
        distance[i] = np.inf
        assert set(found[i]) == set(np.argsort(distance)[:5])


def test_it_is_nearer_than_means_and_neighbours(rng):
    X = load_iris().data
    holed = hidden(rng, X)
    found = error(DictionaryImputer().fit_transform(holed), X, holed)
    for other in (SimpleImputer(), KNNImputer()):
        assert found < error(other.fit_transform(holed), X, holed)


@pytest.mark.parametrize(
    "learner",
    [
        KSVD(40, n_nonzero_coefs=4, random_state=0),
        KernelKSVD("poly:2", 40, n_nonzero_coefs=4, random_state=0),
    ],
    ids=lambda m: type(m).__name__,
)
def test_learned_atoms_fill_in_images(rng, learner):
    X = load_digits().data[:300]
    holed = hidden(rng, X)
    model = DictionaryImputer(learner)
    found = error(model.fit_transform(holed), X, holed)
    assert found < 0.7 * error(SimpleImputer().fit_transform(holed), X, holed)


def test_observed_values_stay_and_complete_rows_are_untouched(rng):
    X = rng.standard_normal((50, 4)) * 7 + 3
    holed = hidden(rng, X)
    found = DictionaryImputer().fit(holed).transform(holed)
    seen = ~np.isnan(holed)
    np.testing.assert_array_equal(found[seen], holed[seen])
    np.testing.assert_array_equal(DictionaryImputer().fit(X).transform(X), X)


def test_passes_and_convergence_are_told(rng):
    X = hidden(rng, load_iris().data)
    model = DictionaryImputer().fit(X)
    assert model.converged_ and 1 < model.n_iter_ == len(model.changes_)
    assert model.changes_[-1] < model.changes_[0]
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        model = DictionaryImputer(max_iter=2, tol=1e-9).fit(X)
    assert not model.converged_ and model.n_iter_ == 2


def test_indicators_and_names(rng):
    table = pd.DataFrame(rng.standard_normal((30, 3)), columns=["a", "b", "c"])
    table.loc[4, "b"] = np.nan
    model = DictionaryImputer(add_indicator=True).set_output(transform="pandas")
    found = model.fit_transform(table)
    assert list(found.columns) == ["a", "b", "c", "missingindicator_b"]
    assert found["missingindicator_b"].tolist() == [float(i == 4) for i in range(30)]
    assert model.transform(table).shape == (30, 4)


def test_it_stands_in_front_of_any_estimator(rng):
    data = load_iris()
    X = hidden(rng, data.data, 0.2)
    model = make_pipeline(DictionaryImputer(), LogisticRegression(max_iter=500))
    assert model.fit(X, data.target).score(X, data.target) > 0.85


def test_rows_and_columns_without_any_value(rng):
    X = hidden(rng, rng.standard_normal((40, 4)) + 5)
    X[3] = np.nan
    found = DictionaryImputer().fit_transform(X)
    assert np.isfinite(found).all() and (np.abs(found[3] - 5) < 2).all()
    X[:, 2] = np.nan
    with pytest.warns(UserWarning, match="never observed"):
        found = DictionaryImputer().fit_transform(X)
    assert (found[:, 2] == 0).all()


def test_infinity_is_refused(rng):
    X = rng.standard_normal((20, 3))
    X[0, 0] = np.inf
    with pytest.raises(ValueError, match="inf"):
        DictionaryImputer().fit(X)


def test_it_is_saved_and_loaded(rng, tmp_path):
    X = hidden(rng, rng.standard_normal((40, 4)))
    for model in (
        DictionaryImputer(add_indicator=True),
        DictionaryImputer(KSVD(5, n_nonzero_coefs=2, max_iter=100, random_state=0)),
    ):
        save(model.fit(X), tmp_path / "imputer")
        again = load(tmp_path / "imputer")
        np.testing.assert_array_equal(again.transform(X), model.transform(X))


def test_a_single_row_is_filled_in_by_means():
    x = np.array([[1.0, np.nan, 3.0]])
    np.testing.assert_array_equal(completed_rows(x), [[1.0, 0.0, 3.0]])
