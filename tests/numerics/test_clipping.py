"""Numbers that are more than a fold has: a warning, and the largest that there is."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from kernlets import (
    KSVD,
    MOD,
    OMP,
    RBF,
    BudgetKernelDL,
    IKAMap,
    KernelKSVD,
    KSADClassifier,
    LCKSVDClassifier,
    NystroemMap,
    OnlineDictionary,
    OrthogonalDictionary,
    ReducedKernelDL,
    ResidualClassifier,
    SRCClassifier,
    Threshold,
)

FEW = {"max_iter": 2, "random_state": 0}
LINE = {"kernel": "linear"}  # whose φ(0) is 0, so that zero rows are no atoms


@pytest.fixture
def rows(rng):
    """Twenty rows, the last three of which are zero."""
    X = rng.standard_normal((20, 4))
    X[17:] = 0
    return X


def atoms(fitted):
    return fitted.dictionary_.weights


def learned(fitted, X):
    return atoms(fitted), fitted.transform(X)


def mapped(fitted, X):
    return (fitted.transform(X),)


def scores(fitted, X):
    return (fitted.predict_proba(X),)


CASES = {
    "atoms": (KSVD, {"n_components": 30}, 17, learned),
    "atoms of k-means": (KSVD, {"n_components": 18, "init": "kmeans"}, 17, learned),
    "atoms behind an SVD": (MOD, {"n_components": 30, "init": "svd"}, 21, learned),
    "atoms of a stream": (OnlineDictionary, {"n_components": 18}, 17, learned),
    "atoms of a kernel": (KernelKSVD, {"n_components": 18, **LINE}, 17, learned),
    "atoms on anchors": (ReducedKernelDL, {"n_components": 18, **LINE}, 17, learned),
    "atoms from anchors": (
        ReducedKernelDL,
        {"n_components": 9, "anchors": 6, "init": "anchors"},
        6,
        learned,
    ),
    "anchors": (ReducedKernelDL, {"anchors": 18}, 17, learned),
    "atoms on a budget": (BudgetKernelDL, {"n_components": 18, **LINE}, 17, learned),
    "orthonormal atoms": (OrthogonalDictionary, {"n_components": 5}, 4, learned),
    "non-zeros": (KSVD, {"n_nonzero_coefs": 9, "n_components": 6}, 6, learned),
    "largest entries": (
        OrthogonalDictionary,
        {"n_nonzero_coefs": 4, "n_components": 3},
        3,
        learned,
    ),
    "landmarks": (NystroemMap, {"n_landmarks": 25}, 20, mapped),
    "features": (NystroemMap, {"n_components": 8, "n_landmarks": 6}, 6, mapped),
    "functions": (IKAMap, {"n_components": 8, "n_landmarks": 6}, 6, mapped),
    "non-zeros of a classifier": (
        LCKSVDClassifier,
        {"n_nonzero_coefs": 9, "n_atoms_per_class": 3},
        6,
        lambda fitted, X: (atoms(fitted), fitted.decision_function(X)),
    ),
    "non-zeros over samples": (
        SRCClassifier,
        {"n_nonzero_coefs": 18, **LINE},
        17,
        lambda fitted, X: (fitted.residuals(X),),
    ),
    "features of a classifier": (
        KSADClassifier,
        {"n_components": 12, "n_landmarks": 10, "n_neighbors": 3, "kernel": "rbf"},
        10,
        scores,
    ),
}


@pytest.mark.rounding
@pytest.mark.parametrize("name", CASES)
def test_the_largest_possible_number_is_used(name, rows):
    Estimator, params, most, results = CASES[name]
    asked = next(iter(params))
    known = {key: FEW[key] for key in FEW.keys() & Estimator().get_params()}
    y = np.arange(20) % 2
    message = f"{asked}={params[asked]} is more than the {most} .*{most} is used"
    with pytest.warns(UserWarning, match=message):
        found = Estimator(**known, **params).fit(rows, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        expected = Estimator(**known, **{**params, asked: most}).fit(rows, y)
    for own, other in zip(results(found, rows), results(expected, rows), strict=True):
        np.testing.assert_array_equal(own, other)


def test_attributes_tell_the_real_numbers(rows):
    with pytest.warns(UserWarning):
        learner = KSVD(30, 40, **FEW).fit(rows)
    assert learner.n_components == 30 and learner.n_nonzero_coefs == 40
    assert learner.components_.shape == (17, 4)
    assert learner.coder_.n_nonzero_coefs == 17
    assert len(learner.get_feature_names_out()) == 17


@pytest.mark.parametrize("coder", [OMP(9), Threshold(kind="top-k", n_nonzero_coefs=9)])
def test_a_given_coder_is_left_as_it_is(coder, rows):
    with pytest.warns(UserWarning, match="n_nonzero_coefs=9 is more than the 6 atoms"):
        learner = KSVD(6, coder=coder, **FEW).fit(rows)
    assert coder.n_nonzero_coefs == 9
    assert learner.coder_.n_nonzero_coefs == 6


@pytest.mark.parametrize("Estimator", [KSVD, KernelKSVD, OrthogonalDictionary])
@pytest.mark.parametrize("params", [{"n_components": 0}, {"n_nonzero_coefs": -1}])
def test_nonsense_is_refused(Estimator, params, rows):
    with pytest.raises(ValueError, match=next(iter(params))):
        Estimator(**params).fit(rows)


@pytest.mark.parametrize("Estimator", [KSVD, KernelKSVD, BudgetKernelDL])
def test_nothing_to_learn_from_is_refused(Estimator):
    estimator = Estimator(n_components=2)
    if "kernel" in estimator.get_params():
        estimator.set_params(kernel="linear")
    with pytest.raises(ValueError, match="no non-zero samples"):
        estimator.fit(np.zeros((5, 3)))


def test_no_candidate_of_a_search_fails(rng):
    X, y = rng.standard_normal((24, 5)), np.arange(24) % 2
    model = make_pipeline(
        NystroemMap(RBF(2.0), random_state=0), ResidualClassifier(KSVD(**FEW))
    )
    grid = {
        "nystroemmap__n_landmarks": [8, 20],
        "residualclassifier__learner__n_components": [3, 11],
        "residualclassifier__learner__n_nonzero_coefs": [2, 7],
    }
    search = GridSearchCV(model, grid, cv=3, error_score="raise")
    with pytest.warns(UserWarning, match="n_landmarks=20 is more than the 16 samples"):
        search.fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
