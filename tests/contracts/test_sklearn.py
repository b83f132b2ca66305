"""scikit-learn's own checks, for every public estimator."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import parametrize_with_checks

from kernlets import (
    KSVD,
    MOD,
    AutoDictionaryClassifier,
    BudgetKernelDL,
    DKSVDClassifier,
    FDDLClassifier,
    KernelKSVD,
    KernelMOD,
    KSADClassifier,
    LCKSVDClassifier,
    OnlineDictionary,
    OrthogonalDictionary,
    ReducedKernelDL,
    RLSDictionary,
    registry,
)
from kernlets.classifiers import fddl, lc_ksvd
from kernlets.learners import budget
from kernlets.learners.linear_learner import LinearLearner
from kernlets.numerics.scaling import unit_rows

# Rows repeated in their places are compared in test_weights.py.
PLACES = "first atoms are drawn by the places of rows, which this check shuffles"
ORDER = "passes are in a random order of places, which this check shuffles"
ROUNDING = "probabilities of K-SAD show rounding errors that its iterations enlarge"
BOTH_KINDS = ("dense", "sparse")
#: the reason and the kinds of rows for which the check of weights cannot pass
RANDOM = {
    BudgetKernelDL: (ORDER, BOTH_KINDS),
    KSADClassifier: (ROUNDING, BOTH_KINDS),
    KernelKSVD: (PLACES, BOTH_KINDS),
    KernelMOD: (PLACES, BOTH_KINDS),
    **{
        Estimator: (PLACES, ("dense",))
        for Estimator in (
            DKSVDClassifier,
            FDDLClassifier,
            KSVD,
            LCKSVDClassifier,
            MOD,
            OnlineDictionary,
            OrthogonalDictionary,
            RLSDictionary,
            ReducedKernelDL,
        )
    },
}
WEIGHTS = "check_sample_weight_equivalence_on_{}_data"


def expected_failures(estimator):
    """Checks that cannot pass, with the reason; it is tested below for each.

    A linear learner that is not listed, because somebody adds it, starts as `MOD` does.
    """
    others = RANDOM[MOD] if isinstance(estimator, LinearLearner) else ("", ())
    reason, kinds = RANDOM.get(type(estimator), others)
    return {WEIGHTS.format(kind): reason for kind in kinds}


def checked(Estimator):
    """With its default parameters, but a search that ends soon."""
    few = {"max_candidates": 4} if Estimator is AutoDictionaryClassifier else {}
    return Estimator(**few)


@pytest.mark.filterwarnings("ignore::UserWarning")  # small classes in the checks' data
@parametrize_with_checks(
    [checked(Estimator) for Estimator in registry.estimators()],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def passes_weights(estimator, kind):
    """Run scikit-learn's check of weights, which fails by an AssertionError."""
    check = getattr(estimator_checks, WEIGHTS.format(kind))
    check(type(estimator).__name__, estimator)


EXPECTED = [(kind, each) for kind, (_, each) in RANDOM.items()]
ENTRIES = [(Estimator, kind) for Estimator, kinds in EXPECTED for kind in kinds]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(("Estimator", "kind"), ENTRIES)
def test_no_check_is_expected_to_fail_that_passes(Estimator, kind):
    with pytest.raises(AssertionError, match="is not equivalent"):
        passes_weights(Estimator(), kind)


CLASSIFIERS_WITH_DRAWN_ATOMS = [DKSVDClassifier, FDDLClassifier, LCKSVDClassifier]
ATOMS = np.random.default_rng(0).random((5, 30))  # the check has 30 features
WITH_FIRST_ATOMS = [
    KSVD(init=ATOMS),
    MOD(init=ATOMS),
    OrthogonalDictionary(init=ATOMS),
    OnlineDictionary(init=ATOMS, schedule="batch_size=500"),
    RLSDictionary(init=ATOMS, schedule="batch_size=500"),
    ReducedKernelDL(anchors=ATOMS, init="anchors"),
]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("estimator", WITH_FIRST_ATOMS, ids=repr)
def test_weights_pass_the_check_with_given_first_atoms(estimator):
    passes_weights(estimator, "dense")


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("Classifier", CLASSIFIERS_WITH_DRAWN_ATOMS)
def test_weights_pass_the_check_with_given_atoms_of_classes(Classifier, monkeypatch):
    def given(X, labels, sizes, *others):
        return unit_rows(np.random.default_rng(0).random((sizes.sum(), X.shape[1])))

    for module in (lc_ksvd, fddl):
        monkeypatch.setattr(module, "class_atoms", given)
    passes_weights(Classifier(), "dense")


@pytest.mark.parametrize("kind", BOTH_KINDS)
def test_weights_pass_the_check_with_passes_in_one_order(kind, monkeypatch):
    def by_content(X, n_rows, rng):
        key = X.toarray() if sparse.issparse(X) else X
        order = np.argsort(key[:, 0], kind="stable")
        for begin in range(0, len(order), n_rows):
            yield X[order[begin : begin + n_rows]]

    monkeypatch.setattr(budget, "shuffled_batches", by_content)
    passes_weights(BudgetKernelDL(), kind)


@pytest.mark.parametrize("kind", BOTH_KINDS)
def test_weights_pass_the_check_but_for_rounding(kind, monkeypatch):
    def close(found, expected, err_msg):
        np.testing.assert_allclose(found, expected, rtol=1e-5, err_msg=err_msg)

    monkeypatch.setattr(estimator_checks, "assert_allclose_dense_sparse", close)
    passes_weights(KSADClassifier(), kind)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("kind", BOTH_KINDS)
@pytest.mark.parametrize("Learner", [KernelKSVD, KernelMOD])
def test_weights_do_the_same_in_any_order_with_given_first_rows(Learner, kind, rng):
    """What the check compares; its first atoms are row numbers, which it shuffles."""
    X, weights = rng.random((15, 30)), rng.integers(0, 5, 15)
    first = np.flatnonzero(weights)[:4]
    results = []
    for _ in range(2):
        order = rng.permutation(15)
        rows = np.repeat(order, weights[order])
        places = [np.flatnonzero(rows == row)[0] for row in first]
        live = order[weights[order] > 0]  # rows of weight 0 are left out
        given = [np.flatnonzero(live == row)[0] for row in first]
        turn = sparse.csr_array if kind == "sparse" else np.asarray
        weighted = Learner(init=given, random_state=0).fit(
            turn(X[order]), None, weights[order]
        )
        results += [weighted, Learner(init=places, random_state=0).fit(turn(X[rows]))]
    codes = [np.asarray(each.transform(turn(X))) for each in results]
    for each in codes[1:]:
        np.testing.assert_allclose(each, codes[0], rtol=1e-7, atol=1e-9)


def test_every_expected_failure_has_a_test_of_its_reason():
    shown = {type(each) for each in WITH_FIRST_ATOMS} | {BudgetKernelDL}
    shown |= {KernelKSVD, KernelMOD, KSADClassifier, *CLASSIFIERS_WITH_DRAWN_ATOMS}
    assert shown == set(RANDOM)


DISPATCHED = """
import numpy as np, sklearn, torch
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from kernlets import KSVD, NystroemMap, ResidualClassifier
X, y = torch.randn(60, 6, generator=torch.manual_seed(0)), np.arange(60) % 3
learner = KSVD(5, 2, max_iter=2, random_state=0)
model = NystroemMap("rbf", random_state=0), ResidualClassifier(learner)
with sklearn.config_context(array_api_dispatch=True):
    codes = make_pipeline(StandardScaler(), learner).fit_transform(X)
    found = make_pipeline(StandardScaler(), *model).fit(X, y).predict(X)
plain = make_pipeline(StandardScaler(), learner).fit_transform(X.numpy())
assert isinstance(codes, torch.Tensor) and isinstance(found, torch.Tensor)
np.testing.assert_allclose(codes.numpy(), plain, atol=1e-4)
"""


def test_tensors_travel_through_pipelines_with_scikit_learns_steps():
    pytest.importorskip("torch")
    pytest.importorskip("scipy", "1.14", reason="what scikit-learn needs for it")
    environment = {**os.environ, "SCIPY_ARRAY_API": "1"}
    words = [sys.executable, "-c", DISPATCHED]
    done = subprocess.run(words, capture_output=True, env=environment)
    assert done.returncode == 0, done.stderr.decode()
