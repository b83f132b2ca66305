"""The residual classifier."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.base import clone

from kernlets import (
    KSVD,
    MOD,
    BudgetKernelDL,
    KernelKSVD,
    OnlineDictionary,
    ReducedKernelDL,
    ResidualClassifier,
    RLSDictionary,
    datasets,
    options,
)
from kernlets.coders import OMP, encode
from kernlets.data import check as validation
from kernlets.learners import LEARNERS


def classes(rng, n=60, p=10):
    """Three classes, each near its own two-dimensional subspace."""
    bases = rng.standard_normal((3, 2, p))
    X = [rng.standard_normal((n, 2)) @ b for b in bases]
    X = np.concatenate(X) + 0.05 * rng.standard_normal((3 * n, p))
    return X, np.repeat(["pear", "apple", "fig"], n)


def test_separates_subspaces_with_any_labels(xp, rng):
    X, y = classes(rng)
    model = ResidualClassifier(KSVD(4, 2, random_state=0))
    model.fit(xp.asarray(X[::2]), y[::2])
    assert model.classes_.tolist() == ["apple", "fig", "pear"]
    assert (model.predict(xp.asarray(X[1::2])) == y[1::2]).mean() > 0.97


def test_torch_labels_come_back_as_torch(rng):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    X, y = classes(rng)
    y = torch.as_tensor(np.unique(y, return_inverse=True)[1] - 1)  # -1, 0, 1
    model = ResidualClassifier(MOD(4, 2, random_state=0)).fit(torch.as_tensor(X), y)
    found = model.predict(torch.as_tensor(X))
    assert isinstance(found, torch.Tensor) and (found == y).double().mean() > 0.97


def test_residuals_are_those_of_the_dictionaries(rng):
    X, y = classes(rng)
    model = ResidualClassifier(KSVD(4, 2, random_state=0)).fit(X, y)
    naive = np.stack(
        [encode(one.dictionary_, OMP(2), X).residual for one in model.learners_], axis=1
    )
    np.testing.assert_allclose(model.residuals(X), naive)
    np.testing.assert_array_equal(model.predict(X), model.classes_[naive.argmin(1)])
    np.testing.assert_allclose(
        softmax(model.decision_function(X), axis=1), model.predict_proba(X)
    )


def test_each_class_is_fitted_on_its_own_rows(rng):
    X, y = classes(rng)
    model = ResidualClassifier(KSVD(4, 2, random_state=0)).fit(X, y)
    alone = KSVD(4, 2, random_state=0).fit(X[y == "fig"])
    np.testing.assert_allclose(model.learners_[1].components_, alone.components_)


def test_probabilities_rank_like_residuals(rng):
    X, y = classes(rng)
    model = ResidualClassifier(KSVD(4, 2, random_state=0)).fit(X, y)
    chances = model.predict_proba(X)
    np.testing.assert_allclose(chances.sum(1), 1)
    np.testing.assert_array_equal(chances.argmax(1), model.residuals(X).argmin(1))


def test_two_classes_have_one_decision_value(rng):
    X, y = classes(rng)
    keep = y != "fig"
    model = ResidualClassifier(KSVD(4, 2, random_state=0)).fit(X[keep], y[keep])
    decision = model.decision_function(X[keep])
    assert decision.shape == (120,)
    labels = model.classes_[(decision > 0).astype(int)]
    np.testing.assert_array_equal(labels, model.predict(X[keep]))


def test_small_class_gets_fewer_atoms_with_a_warning(rng):
    X, y = classes(rng)
    few = np.concatenate([np.arange(60), np.arange(60, 65)])
    with pytest.warns(UserWarning, match="5 samples, fewer than n_components=8"):
        model = ResidualClassifier(KSVD(8, 6, random_state=0)).fit(X[few], y[few])
    assert [len(one.components_) for one in model.learners_] == [5, 8]


def test_one_warning_for_all_small_classes(rng):
    X, y = classes(rng)
    few = np.concatenate([np.arange(60), np.arange(60, 65), np.arange(120, 123)])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ResidualClassifier(KSVD(8, 6, random_state=0)).fit(X[few], y[few])
    (one,) = caught
    expected = "2 classes have 3 to 5 samples, fewer than n_components=8"
    assert expected in str(one.message)


SAMPLE_LEARNERS = (KSVD(), MOD(), KernelKSVD("linear"), ReducedKernelDL("linear"))


@pytest.mark.parametrize("learner", SAMPLE_LEARNERS, ids=str)
def test_small_classes_keep_their_samples_by_default(learner, rng):
    X = rng.standard_normal((9 + 50 + 200, 60))
    X[3] = 0  # is no atom
    y = np.repeat([0, 1, 2], [9, 50, 200])
    model = ResidualClassifier(learner, random_state=0).fit(X, y)
    assert [one.dictionary_.n_atoms for one in model.learners_] == [8, 30, 50]
    assert [one.coder_.n_nonzero_coefs for one in model.learners_] == [8, 10, 10]
    asked = clone(learner).set_params(n_components=3, n_nonzero_coefs=2)
    model = ResidualClassifier(asked, random_state=0).fit(X, y)
    assert [one.dictionary_.n_atoms for one in model.learners_] == [3] * 3
    assert [one.coder_.n_nonzero_coefs for one in model.learners_] == [2] * 3
    alone = clone(learner).set_params(random_state=0).fit(X[:9])
    assert alone.dictionary_.n_atoms == 2  # a learner on its own is to be shorter


def test_few_samples_span_their_class(rng):
    """Up to ten non-zeros of fewer samples: the distance to their linear span."""
    X = rng.standard_normal((12, 40))
    y = np.repeat([0, 1], 6)
    new = rng.standard_normal((5, 40))
    model = ResidualClassifier(random_state=0).fit(X, y)
    for c, residuals in enumerate(model.residuals(new).T):
        basis = np.linalg.qr(X[y == c].T)[0]
        naive = ((new - new @ basis @ basis.T) ** 2).sum(axis=1)
        np.testing.assert_allclose(residuals, naive)


def test_few_samples_are_not_below_their_nearest_neighbour():
    data = datasets.load("digits")
    X, new = (datasets.unit_norm(A) for A in (data.X_train, data.X_test))
    for n in (3, 8, 20):
        gains = [_gain(X, data.y_train, new, data.y_test, n, seed) for seed in range(3)]
        assert np.mean(gains) > 0.005


def _gain(X, y, new, truth, n, seed):
    """Accuracy over that of the nearest neighbour, n random samples per class."""
    order = np.random.default_rng(seed).permutation(len(X))
    rows = np.concatenate([order[y[order] == c][:n] for c in range(10)])
    model = ResidualClassifier(random_state=0).fit(X[rows], y[rows])
    nearest = (new @ X[rows].T).argmax(axis=1)
    return model.score(new, truth) - np.mean(y[rows][nearest] == truth)


def test_probabilities_of_kept_samples_are_not_all_or_nothing(rng):
    X, y = classes(rng, n=8)
    model = ResidualClassifier(random_state=0).fit(X, y)
    found = model.predict_proba(X + 0.5 * rng.standard_normal(X.shape))
    assert 0.01 < np.mean((found > 0.001) & (found < 0.999)) and found.max() <= 1
    assert model.temperature_ > 0.01


@pytest.mark.rounding
def test_threads_do_not_change_the_model(rng):
    X, y = classes(rng)

    def fitted(n_threads):
        with options(n_threads=n_threads):
            return ResidualClassifier(KSVD(6, 2, random_state=0)).fit(X, y)

    np.testing.assert_array_equal(fitted(1).residuals(X), fitted(3).residuals(X))


def test_bad_input_is_named(rng):
    X, y = classes(rng)
    with pytest.raises(ValueError, match="one class only"):
        ResidualClassifier().fit(X[:60], y[:60])
    with pytest.raises(ValueError, match="180 samples but y has 179"):
        ResidualClassifier().fit(X, y[:-1])
    with pytest.raises(ValueError, match="learner"):
        ResidualClassifier("ksvd").fit(X, y)
    with pytest.raises(ValueError, match="continuous"):
        ResidualClassifier().fit(X, rng.standard_normal(180))


def counted_checks(monkeypatch):
    """The shapes of the rows that scikit-learn's check converts from now on."""
    seen, check = [], validation.validate_data

    def counting(estimator, X, **keys):
        if not keys.get("skip_check_array"):
            seen.append(np.shape(X))
        return check(estimator, X, **keys)

    monkeypatch.setattr(validation, "validate_data", counting)
    return seen


@pytest.mark.parametrize(
    "learner",
    [KSVD(4, 2, random_state=0), KernelKSVD("poly:2", 4, random_state=0)],
    ids=["linear", "kernel"],
)
def test_rows_are_checked_once_for_all_classes(learner, rng, monkeypatch):
    X, y = classes(rng)
    seen = counted_checks(monkeypatch)
    model = ResidualClassifier(learner).fit(X.tolist(), y)  # lists are converted
    assert seen == [X.shape]
    model.predict(X[:7].tolist())
    assert seen == [X.shape, (7, 10)]


def test_batches_of_a_stream_are_checked_once(rng, monkeypatch):
    X, y = classes(rng)
    seen = counted_checks(monkeypatch)
    learner = RLSDictionary(4, 2, random_state=0)
    ResidualClassifier(learner).partial_fit(X.tolist(), y)
    assert seen == [X.shape]


def test_new_rows_have_the_right_number_of_features(rng):
    X, y = classes(rng)
    model = ResidualClassifier(KSVD(4, 2, random_state=0)).fit(X, y)
    for learner in (model, *model.learners_):
        with pytest.raises(ValueError, match="5 features"):
            learner.encode(X[:, :5])


STREAMS = [Learner for Learner in LEARNERS.values() if hasattr(Learner, "partial_fit")]


@pytest.mark.parametrize("classifies", [False, True])
@pytest.mark.parametrize("Learner", STREAMS)
def test_fit_and_partial_fit_have_the_same_defaults(Learner, classifies, rng):
    """A default of BudgetKernelDL is a quarter of the samples, which a stream hides."""
    n = 400 if Learner is BudgetKernelDL else 200
    X, y = rng.standard_normal((n, 64)), np.arange(n) % 2
    numbers = []
    for road in ("fit", "partial_fit"):
        model = Learner(random_state=0)
        model = ResidualClassifier(model) if classifies else model
        getattr(model, road)(X, y)
        parts = model.learners_ if classifies else [model]
        sizes = [part.dictionary_.n_atoms for part in parts]
        numbers.append((sizes, [repr(part.coder_) for part in parts]))
    assert numbers[0] == numbers[1]


def test_zero_rows_are_no_default_atoms(rng, recwarn):
    """Also of a stream, and without a warning about a number that nobody gave."""
    X, y = rng.standard_normal((40, 8)), np.arange(40) % 2
    X[:10] = 0
    for learner in (KSVD(random_state=0), KernelKSVD("linear", random_state=0)):
        model = ResidualClassifier(learner).fit(X, y)
        assert [each.dictionary_.n_atoms for each in model.learners_] == [15, 15]
    stream = ResidualClassifier(OnlineDictionary(random_state=0)).partial_fit(X, y)
    assert [each.dictionary_.n_atoms for each in stream.learners_] == [15, 15]
    assert not recwarn.list
    assert model.learner.n_components is None
