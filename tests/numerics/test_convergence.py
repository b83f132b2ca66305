"""Iterations that end before they reach their tolerance say so, once for each call."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso as PeerLasso

from kernlets import (
    KSVD,
    MOD,
    RBF,
    BudgetKernelDL,
    DictionaryImputer,
    FDDLClassifier,
    GrossErrorMask,
    KernelKSVD,
    Lasso,
    ResidualClassifier,
    Schedule,
    SRCClassifier,
    Threshold,
    options,
    preimage,
)
from kernlets.classifiers import fddl_codes
from kernlets.coders import encode, masked
from kernlets.dictionaries import ExplicitDictionary
from kernlets.kernels import complete

N, P = 90, 12


@pytest.fixture
def X(rng):
    """Rows near a plane, in three groups that are alike."""
    codes = rng.standard_normal((N, 3)) + 3 * np.eye(3)[np.arange(N) % 3]
    rows = codes @ rng.standard_normal((3, P)) + 0.1 * rng.standard_normal((N, P))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.fixture
def y():
    return np.arange(N) % 3


def holed(X):
    return np.where(np.random.default_rng(3).random(X.shape) < 0.3, np.nan, X)


def convergence_warnings(call, *args):
    with warnings.catch_warnings(record=True) as noted:
        warnings.simplefilter("always")
        call(*args)
    return [each for each in noted if each.category is ConvergenceWarning]


def lasso(limit):
    return Lasso(0.01, max_iter=10**5 if limit is None else limit)


def code_blocks(X, y, limit):
    with options(block_rows=10, n_threads=3):
        encode(ExplicitDictionary(X[:40]), lasso(limit), X)


def learn(X, y, limit):
    KSVD(20, coder=lasso(limit), max_iter=3, random_state=0).fit(X)


def classify(X, y, limit):
    learner = KSVD(8, coder=lasso(limit), max_iter=2, random_state=0)
    ResidualClassifier(learner).fit(X, y)


def compare_with_all(X, y, limit):
    model = SRCClassifier(coder=lasso(limit)).fit(X, y)
    with options(block_rows=10, n_threads=3):
        model.predict(X[:35] + 0.1)


def code_incomplete(X, y, limit):
    encode(ExplicitDictionary(X[:40]), lasso(limit), holed(X))


def learn_on_a_budget(X, y, limit):
    coder = lasso(limit)
    BudgetKernelDL(RBF(sigma=1.0), 10, coder=coder, max_iter=1, random_state=0).fit(X)


REST = {"schedule": "tol=0.01", "random_state": 0}


def come_to_rest(X, y, limit):
    MOD(8, 2, max_iter=limit or 60, **REST).fit(X)


def come_to_rest_in_feature_space(X, y, limit):
    learner = KernelKSVD("rbf", 8, max_iter=limit or 60, **REST)
    learner.fit(X)


def separate(X, y, limit):
    FDDLClassifier(3, max_iter=limit or 30, random_state=0).fit(X, y)


def impute(X, y, limit):
    DictionaryImputer(max_iter=limit or 50).fit(holed(X))


def impute_by_atoms(X, y, limit):
    learner = KSVD(8, 2, max_iter=2 if limit else 60, random_state=0)
    DictionaryImputer(learner, tol=1e-4 if limit else 0.05).fit(holed(X))


def mask_errors(X, y, limit):
    covered = X[:20].copy()
    covered[:, :4] = 2.0
    GrossErrorMask(max_iter=limit or 200).fit(X[20:]).transform(covered)


def find_preimages(X, y, limit):
    coefs = np.random.default_rng(0).random((30, 20)) / 20
    preimage.preimages(RBF(1.0), X[:20], coefs, "gradient", max_iter=limit or 2000)


def find_preimages_by_means(X, y, limit):
    coefs = np.random.default_rng(0).random((30, 20)) / 20
    preimage.preimages(RBF(1.0), X[:20], coefs, "fixed-point", max_iter=limit or 2000)


CASES = {
    "codes of many blocks": (code_blocks, 2, "raise max_iter or tol of the coder"),
    "a fit": (learn, 2, "raise max_iter or tol of the coder"),
    "fits of classes": (classify, 2, "raise max_iter or tol of the coder"),
    "residuals": (compare_with_all, 2, "raise max_iter or tol of the coder"),
    "incomplete rows": (code_incomplete, 2, "raise max_iter or tol of the coder"),
    "budget": (learn_on_a_budget, 1, "raise max_iter or tol of the coder"),
    "tol of a learner": (come_to_rest, 4, "raise max_iter or tol"),
    "tol, kernel": (come_to_rest_in_feature_space, 4, "raise max_iter or tol"),
    "imputer": (impute, 1, "raise max_iter or tol"),
    "imputer, learner": (impute_by_atoms, 2, "raise max_iter of the learner, or tol"),
    "gross errors": (mask_errors, 1, "raise max_iter"),
    "pre-images": (find_preimages, 2, "raise max_iter"),
    "pre-images by means": (find_preimages_by_means, 2, "raise max_iter"),
}


@pytest.mark.parametrize("name", CASES)
def test_the_limit_is_told_once_with_the_remedy(name, X, y):
    call, limit, remedy = CASES[name]
    (told,) = convergence_warnings(call, X, y, limit)
    assert remedy in str(told.message)
    assert told.filename == __file__


@pytest.mark.parametrize("name", CASES)
def test_what_has_converged_is_silent(name, X, y):
    assert not convergence_warnings(CASES[name][0], X, y, None)


def test_codes_of_fddl_that_still_move_are_told(X, y, monkeypatch):
    assert not convergence_warnings(separate, X, y, None)
    monkeypatch.setattr(fddl_codes, "STEPS", 1)
    (told,) = convergence_warnings(separate, X, y, 1)
    assert "FDDLClassifier" in str(told.message)
    assert "raise max_iter" in str(told.message)


def test_rows_that_a_fit_fills_in_are_told(X, monkeypatch):
    learner = KernelKSVD("rbf", 8, max_iter=1, random_state=0)
    assert not convergence_warnings(learner.fit, holed(X))
    monkeypatch.setattr(complete, "ROUNDS", 1)
    (told,) = convergence_warnings(learner.fit, holed(X))
    assert "DictionaryImputer" in str(told.message)


def test_thresholds_of_incomplete_rows_are_told(X, monkeypatch):
    learner = KSVD(8, coder=Threshold(0.01), max_iter=2, random_state=0)
    assert not convergence_warnings(learner.fit, holed(X))
    monkeypatch.setattr(masked, "MAX_ROUNDS", 1)
    (told,) = convergence_warnings(learner.fit, holed(X))
    assert "Threshold" in str(told.message)


def test_a_callback_that_stops_a_fit_is_no_failure(X):
    schedule = Schedule(tol=1e-9, callback=lambda state: True)
    learner = KSVD(8, 2, schedule=schedule, random_state=0)
    assert not convergence_warnings(learner.fit, X)


def test_a_number_of_iterations_without_a_tolerance_is_no_promise(X):
    assert not convergence_warnings(KSVD(8, 2, max_iter=1, random_state=0).fit, X)


def test_coherent_atoms_are_no_silent_failure():
    """100 digits as atoms: ten passes are not enough; the default number is."""
    X = load_digits().data[:110]
    X = X / np.linalg.norm(X, axis=1, keepdims=True)
    dictionary, new = ExplicitDictionary(X[:100]), X[100:]
    few = Lasso(0.01, max_iter=10)
    assert len(convergence_warnings(encode, dictionary, few, new)) == 1
    coder = Lasso(0.01)
    assert not convergence_warnings(encode, dictionary, coder, new)
    codes = encode(dictionary, coder, new).toarray()
    p = X.shape[1]
    peer = PeerLasso(0.01 / p, fit_intercept=False, max_iter=10**6, tol=1e-14)
    for x, code in zip(new, codes, strict=True):
        best = peer.fit(X[:100].T, x).coef_
        assert cost(x, X[:100], code) <= cost(x, X[:100], best) * (1 + 2e-6)


def mask_errors_of_digits(X, y):
    GrossErrorMask().fit(X[:900], y[:900]).transform(X[900:])


def separate_classes(X, y):
    FDDLClassifier(random_state=0).fit(X[::3], y[::3]).predict(X[1::3])


def learn_on_a_budget_in_float32(X, y):
    X = X.astype(np.float32)
    learner = BudgetKernelDL("poly:2", 20, budget=40, random_state=0)
    learner.partial_fit(X[:500]).partial_fit(X[500:] if len(X) > 500 else X)


def find_preimages_of_mixtures(X, y):
    coefs = np.random.default_rng(0).standard_normal((20, 60)) / 8
    preimage.preimages(RBF(sigma=1.0), X[:60, :2], coefs)


DEFAULTS = [
    mask_errors_of_digits,
    separate_classes,
    learn_on_a_budget_in_float32,
    find_preimages_of_mixtures,
]


@pytest.mark.parametrize("call", DEFAULTS, ids=lambda call: call.__name__)
@pytest.mark.parametrize("load", [load_digits, load_iris])
def test_defaults_are_enough_for_ordinary_rows(call, load):
    X, y = load(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))[:1200]
    X, y = X[order], y[order]
    if load is load_iris and call is mask_errors_of_digits:
        pytest.skip("it needs more features than there are samples of a class")
    X = X / np.linalg.norm(X, axis=1, keepdims=True)
    assert not convergence_warnings(call, X, y)


def cost(x, atoms, code):
    left = x - code @ atoms
    return 0.5 * (left @ left) + 0.01 * np.abs(code).sum()
