"""Gross errors that nobody marked: found, and left out."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline

from kernlets import GrossErrorMask, SRCClassifier
from kernlets.imputation.gross import _Atoms


def faces(rng, n=10, classes=6, p=120):
    """Samples of classes that are subspaces of their own, all of one sign."""
    bases = [rng.random((3, p)) for _ in range(classes)]
    X = np.concatenate([rng.random((n, 3)) @ basis for basis in bases])
    return X, np.repeat(np.arange(classes), n)


def covered(rng, X, share):
    X, width = X.copy(), int(share * X.shape[1])
    wrong = np.zeros(X.shape, bool)
    for row, mark in zip(X, wrong, strict=True):
        first = rng.integers(X.shape[1] - width + 1)
        row[first : first + width] = 3 * rng.random(width)
        mark[first : first + width] = True
    return X, wrong


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def test_covered_parts_are_found(rng):
    X, _ = faces(rng)
    new, wrong = covered(rng, X[::3], 0.3)
    found = np.isnan(GrossErrorMask().fit(X).transform(new))
    assert found[wrong].mean() > 0.7 and found[~wrong].mean() < 0.3


def test_a_classifier_behind_it_is_not_fooled(rng):
    X, y = faces(rng, 20)
    new, _ = covered(rng, X[1::2], 0.4)
    plain = SRCClassifier("linear", 10).fit(X[::2], y[::2])
    for by_class in (True, False):
        mask = GrossErrorMask(by_class=by_class)
        robust = make_pipeline(mask, SRCClassifier("linear", 10)).fit(X[::2], y[::2])
        assert robust.score(new, y[1::2]) > plain.score(new, y[1::2]) + 0.15


def test_the_class_with_the_smallest_weighted_error_says_what_is_marked(rng):
    """The loop of the formula over each class alone."""
    X, y = faces(rng, 5, 4, 40)
    (x,), _ = covered(rng, X[:1], 0.3)
    mask = GrossErrorMask(max_iter=3).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="max_iter=3 rounds"):
        found = np.isnan(mask.transform(x[None])[0])
    results = []
    for label in np.unique(y):
        D = X[y == label] / np.linalg.norm(X[y == label], axis=1, keepdims=True)
        left = x - X.mean(axis=0)
        for _ in range(3):
            level = np.quantile(left**2, 0.6)
            w = 1 / (1 + np.exp(np.minimum(8 * (left**2 / level - 1), 50)))
            system = (D * w) @ D.T
            system += 0.01 * np.trace(system) / len(D) * np.eye(len(D))
            left = x - np.linalg.solve(system, (D * w) @ x) @ D
        results.append(((w * left**2).sum() / w.sum(), w))
    np.testing.assert_array_equal(found, min(results, key=lambda r: r[0])[1] < 0.5)


def test_labels_find_what_all_samples_together_explain(rng):
    """With as many directions as features anything is explained by all of them."""
    X, y = faces(rng, 6, 30, 80)
    new, wrong = covered(rng, X[::9], 0.3)
    hits = {}
    for by_class in (True, False):
        model = GrossErrorMask(by_class=by_class).fit(X, y)
        hits[by_class] = (np.isnan(model.transform(new)) == wrong).mean()
    assert hits[True] > hits[False] + 0.05


@pytest.mark.parametrize("y", [None, "numbers", "none of them"])
def test_without_labels_all_samples_are_one_set(rng, y):
    X, labels = faces(rng)
    given = {"numbers": rng.random(len(X)), "none of them": labels}.get(y)
    model = GrossErrorMask(by_class=y != "none of them").fit(X, given)
    assert not model.groups_.any() and len(model.groups_) == len(X)


def test_labels_of_another_length_are_refused(rng):
    X, y = faces(rng)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        GrossErrorMask().fit(X, y[1:])


def test_weights_are_those_of_the_formula(rng):
    X, _ = faces(rng, 3, 2, 20)
    x = covered(rng, X[:1], 0.3)[0][0]
    model = GrossErrorMask(max_iter=1).fit(X)
    squares = (x - X.mean(axis=0)) ** 2
    weights = 1 / (1 + np.exp(8 * (squares / np.quantile(squares, 0.6) - 1)))
    with pytest.warns(ConvergenceWarning, match="max_iter=1 rounds"):
        found = np.isnan(model.transform(x[None])[0])
    np.testing.assert_array_equal(found, weights < 0.5)
    assert found.any()


def test_nothing_is_marked_in_the_samples_themselves(rng):
    X, _ = faces(rng)
    assert not np.isnan(GrossErrorMask().fit_transform(X)).any()
    assert not np.isnan(GrossErrorMask().fit_transform(*faces(rng, 60))).any()


def test_what_is_unknown_stays_unknown(rng):
    X, _ = faces(rng)
    new = X[:2].copy()
    new[0, 4] = np.nan
    new[1] = np.nan
    found = GrossErrorMask().fit(X).transform(new)
    assert np.isnan(found[0, 4]) and np.isnan(found[1]).all()
    assert not np.isnan(found[0]).all()


def test_samples_that_are_all_zero_are_refused():
    with pytest.raises(ValueError, match="other than zero"):
        GrossErrorMask().fit(np.zeros((3, 4)))


def test_both_forms_of_the_code_agree(rng):
    """With more samples than features the system is solved for the features."""
    atoms, x, weights = rng.random((9, 5)), rng.random(5), rng.random(5)
    found = _Atoms(atoms, 0.1).reconstruct(x, weights)
    gram = (atoms * weights) @ atoms.T
    level = 0.1 * np.diagonal(gram).mean() * np.eye(9)
    expected = np.linalg.solve(gram + level, (atoms * weights) @ x) @ atoms
    np.testing.assert_allclose(found, expected, rtol=1e-9)
