"""LC-KSVD and D-KSVD: the objective against loops, the steps, labels of any kind."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

import kernlets
from kernlets import RBF, DKSVDClassifier, LCKSVDClassifier, NystroemMap, datasets
from kernlets.classifiers.lc_ksvd import join_columns, one_hot, ridge, split_joint_atoms
from kernlets.coders import OMP, encode
from kernlets.datasets import unit_norm
from kernlets.dictionaries import ExplicitDictionary
from kernlets.learners import KSVD
from kernlets.learners.code_and_update import CodeAndUpdate
from kernlets.learners.loop import Monitor, iterate
from kernlets.updates import KSVDUpdate

SMALL = {
    "n_atoms_per_class": 10,
    "n_nonzero_coefs": 6,
    "max_iter": 5,
    "random_state": 0,
}


@pytest.fixture(scope="module")
def digits():
    data = datasets.load("digits")
    X, y = unit_norm(data.X_train).astype(float), data.y_train
    return X[:800:2], y[:800:2], X[1:800:2], y[1:800:2]


def naive_terms(X, labels, atom_classes, codes, D, T, Theta):
    """The three terms of eq. (9), entry by entry."""
    terms = np.zeros(3)
    for i, gamma in enumerate(codes):
        for a in range(X.shape[1]):
            terms[0] += (X[i, a] - sum(gamma * D[:, a])) ** 2
        for a, owner in enumerate(atom_classes):
            terms[1] += (float(owner == labels[i]) - sum(gamma * T[:, a])) ** 2
        for c in range(Theta.shape[1]):
            terms[2] += (float(c == labels[i]) - sum(gamma * Theta[:, c])) ** 2
    return terms


# the objective


@pytest.mark.parametrize("alpha, beta", [(0, 0.7), (0.3, 0), (0.3, 0.7)])
def test_labels_beside_the_samples_are_the_objective(alpha, beta, rng):
    """One column per class stands for q and h, with classes of 2, 3 and 1 atoms."""
    sizes = np.array([2, 3, 1])
    owners, labels = np.repeat([0, 1, 2], sizes), np.array([0, 2, 1, 1, 0])
    X, D = rng.standard_normal((5, 4)), rng.standard_normal((6, 4))
    codes, Theta = rng.standard_normal((5, 6)), rng.standard_normal((6, 3))
    model = LCKSVDClassifier(alpha=alpha, beta=beta)
    root = np.sqrt(model._label_weights(sizes))
    joint = join_columns(X, one_hot(labels, 3, X) * root) - codes @ join_columns(
        D, Theta * root
    )
    terms = naive_terms(X, labels, owners, codes, D, Theta[:, owners], Theta)
    assert (joint**2).sum() == pytest.approx(terms @ [1, alpha, beta])


def published_form(X, labels, model, start):
    """LC-KSVD2 with q and h written out, from the same first atoms."""
    n_classes, n_features = len(model.classes_), X.shape[1]
    owners = model.atom_classes_
    H = np.eye(n_classes)[labels]
    Q = (labels[:, None] == owners).astype(float)
    gamma = encode(ExplicitDictionary(start), model.coder_, X).toarray()
    inverse = np.linalg.inv(gamma.T @ gamma + np.eye(len(start)))
    roots = np.sqrt([model.alpha, model.beta])
    T, Theta = inverse @ gamma.T @ Q, inverse @ gamma.T @ H
    atoms = np.hstack([start, roots[0] * T, roots[1] * Theta])
    atoms /= np.linalg.norm(atoms, axis=1, keepdims=True)
    rows = np.hstack([X, roots[0] * Q, roots[1] * H])
    monitor = Monitor(model.max_iter)
    rng = np.random.default_rng(5)
    first = ExplicitDictionary(atoms)
    steps = CodeAndUpdate(first, rows, model.coder_, KSVDUpdate(), rng)
    iterate(steps, monitor)
    joint = steps.dictionary.atoms
    joint = joint / np.linalg.norm(joint[:, :n_features], axis=1, keepdims=True)
    D, T = joint[:, :n_features], joint[:, n_features:-n_classes] / roots[0]
    return D, T, joint[:, -n_classes:] / roots[1], monitor.history["objective"]


def test_same_steps_as_with_ideal_codes_written_out(digits):
    X, y, *_ = digits
    model = LCKSVDClassifier(5, 5, alpha=0.01, beta=0.02, max_iter=4)
    sizes = np.repeat([5, 4, 3], [4, 3, 3])
    model.classes_, model.atom_classes_ = np.arange(10), np.repeat(range(10), sizes)
    model.coder_ = OMP(5)
    start = model._first_atoms(X, y, sizes, np.random.default_rng(0))
    model._learn(X, one_hot(y, 10, X), start, sizes, np.random.default_rng(5))
    D, T, Theta, objective = published_form(X, y, model, start)
    np.testing.assert_allclose(model.history_["objective"], objective, rtol=1e-9)
    np.testing.assert_allclose(model.components_, D, atol=1e-8)
    np.testing.assert_allclose(model.classifier_, Theta, atol=1e-7)
    np.testing.assert_allclose(model.consistency_, T, atol=1e-7)


def test_objective_falls(digits):
    X, y, *_ = digits
    for model in (
        LCKSVDClassifier(**{**SMALL, "max_iter": 15}, alpha=0.02, beta=0.01),
        DKSVDClassifier(**{**SMALL, "max_iter": 15}, beta=0.1),
    ):
        objective = np.array(model.fit(X, y).history_["objective"])
        assert len(objective) == model.n_iter_ == 15
        assert objective[-1] < 0.95 * objective[0]
        # coding is greedy and atoms are replaced: small rises are in its nature
        assert np.diff(objective).max() < 0.01 * objective[0]


def test_atoms_and_classifier_are_scaled_back_together(xp, rng):
    joint = rng.standard_normal((6, 9))
    joint[4, :5] = 0
    atoms, labels = (
        xp.to_numpy(part) for part in split_joint_atoms(xp.asarray(joint), 5)
    )
    live = np.arange(6) != 4
    np.testing.assert_allclose(np.linalg.norm(atoms[live], axis=1), 1)
    assert not atoms[4].any() and not labels[4].any()
    codes = rng.standard_normal((3, 6)) * live
    scaled = codes * np.linalg.norm(joint[:, :5], axis=1)
    np.testing.assert_allclose(scaled @ atoms, codes @ joint[:, :5])
    np.testing.assert_allclose(scaled @ labels, codes @ joint[:, 5:])


def test_ridge_is_scikit_learns(xp, rng):
    X, labels = rng.standard_normal((40, 6)), rng.integers(3, size=40)
    D = unit_norm(rng.standard_normal((9, 6)))
    H, dictionary = np.eye(3)[labels], ExplicitDictionary(xp.asarray(D))
    Theta = ridge(dictionary, OMP(3), xp.asarray(X), xp.asarray(H), 0.7)
    codes = encode(ExplicitDictionary(D), OMP(3), X).toarray()
    peer = Ridge(0.7, fit_intercept=False).fit(codes, H)
    np.testing.assert_allclose(xp.to_numpy(Theta), peer.coef_.T, atol=1e-10)


# how the variants hang together


def test_d_ksvd_is_lc_ksvd_without_ideal_codes(digits):
    X, y, *_ = digits
    plain = DKSVDClassifier(beta=0.05, **SMALL).fit(X, y)
    same = LCKSVDClassifier(alpha=0, beta=0.05, **SMALL).fit(X, y)
    np.testing.assert_array_equal(plain.components_, same.components_)
    np.testing.assert_array_equal(plain.classifier_, same.classifier_)
    equal = LCKSVDClassifier(alpha=0.004, beta=0.01, **SMALL).fit(X, y)
    np.testing.assert_allclose(plain.components_, equal.components_, atol=1e-9)


def test_without_weight_on_labels_it_is_ksvd(digits):
    X, y, *_ = digits
    model = LCKSVDClassifier(variant=1, alpha=0, **SMALL).fit(X, y)
    rng = np.random.default_rng(0)
    start = model._first_atoms(X, y, np.full(10, 10), rng)
    first = ExplicitDictionary(start)
    steps = CodeAndUpdate(first, X, OMP(6), KSVDUpdate(), rng)
    iterate(steps, Monitor(5))
    expected = steps.dictionary
    np.testing.assert_allclose(model.components_, expected.atoms, atol=1e-12)
    np.testing.assert_array_equal(model.label_map_, model.classifier_)
    close = LCKSVDClassifier(variant=1, alpha=1e-20, **SMALL).fit(X, y)
    np.testing.assert_allclose(close.components_, expected.atoms, atol=1e-6)


def test_first_atoms_are_those_of_each_class(digits):
    X, y, *_ = digits
    model = LCKSVDClassifier(**SMALL)
    model.atom_classes_ = np.repeat(range(10), 10)
    model.coder_ = OMP(6)
    start = model._first_atoms(X, y, np.full(10, 10), np.random.default_rng(3))
    seed = int(np.random.default_rng(3).integers(2**31, size=10)[7])
    alone = KSVD(10, 6, max_iter=20, random_state=seed).fit(X[y == 7])
    np.testing.assert_array_equal(start[70:80], alone.components_)


def test_variant_one_ends_with_a_ridge_on_codes(digits):
    X, y, *_ = digits
    model = LCKSVDClassifier(variant=1, alpha=0.01, tau=0.3, **SMALL).fit(X, y)
    peer = Ridge(0.3, fit_intercept=False).fit(model.transform(X), np.eye(10)[y])
    np.testing.assert_allclose(model.classifier_, peer.coef_.T, atol=1e-8)
    assert np.abs(model.label_map_ - model.classifier_).max() > 0.01


def test_ideal_codes_point_to_the_own_class(digits):
    X, y, X_new, y_new = digits
    model = LCKSVDClassifier(variant=1, alpha=0.1, **SMALL).fit(X, y)
    ideal = model.transform(X_new) @ model.consistency_
    own = model.atom_classes_ == y_new[:, None]
    assert ideal[own].mean() > 0.6 and abs(ideal[~own].mean()) < 0.1


# the classifier


@pytest.mark.parametrize(
    "model",
    [
        LCKSVDClassifier(variant=1, **SMALL),
        LCKSVDClassifier(variant=2, **SMALL),
        DKSVDClassifier(**SMALL),
    ],
    ids=["lc-ksvd1", "lc-ksvd2", "d-ksvd"],
)
def test_reads_digits_and_scores_codes(model, digits):
    X, y, X_new, y_new = digits
    assert model.fit(X, y).score(X_new, y_new) > 0.87
    codes = model.transform(X_new)
    assert (codes != 0).sum(axis=1).max() == 6
    np.testing.assert_allclose(np.linalg.norm(model.components_, axis=1), 1)
    scores = model.decision_function(X_new)
    np.testing.assert_allclose(scores, codes @ model.classifier_)
    np.testing.assert_array_equal(model.predict(X_new), scores.argmax(axis=1))


def test_grid_search_behind_a_map(digits):
    X, y, X_new, y_new = digits
    pipeline = make_pipeline(
        NystroemMap(RBF(1), n_landmarks=0.5, n_components=40, random_state=0),
        LCKSVDClassifier(6, 5, max_iter=2, random_state=0),
    )
    grid = {"nystroemmap__kernel__sigma": [0.5, 1], "lcksvdclassifier__alpha": [1e-3]}
    search = GridSearchCV(pipeline, grid, cv=2).fit(X, y)
    assert search.score(X_new, y_new) > 0.85


def test_libraries_agree(digits, xp):
    X, y, X_new, _ = digits
    model = LCKSVDClassifier(6, 5, max_iter=3, random_state=0)
    expected = model.fit(X, y).decision_function(X_new)
    found = model.fit(xp.asarray(X), y).decision_function(xp.asarray(X_new))
    np.testing.assert_allclose(xp.to_numpy(found), expected, atol=1e-6)


def test_float32_stays(digits):
    X, y, X_new, _ = digits
    model = LCKSVDClassifier(**SMALL).fit(X.astype(np.float32), y)
    assert model.transform(X_new.astype(np.float32)).dtype == np.float32
    assert model.classifier_.dtype == model.components_.dtype == np.float32


@pytest.mark.rounding
def test_threads_change_nothing(digits):
    X, y, *_ = digits
    found = []
    for n_threads in (1, 2):
        with kernlets.options(n_threads=n_threads):
            found.append(LCKSVDClassifier(**SMALL).fit(X, y).classifier_)
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("names", [["seven", "one"], [-3, -1]], ids=["text", "ints"])
def test_labels_of_any_kind_and_unequal_classes(names, digits):
    X, y, X_new, y_new = digits
    train, test = np.isin(y, [1, 7]), np.isin(y_new, [1, 7])
    few = train & ((y == 1) | (np.cumsum(y == 7) <= 8))
    labels = np.where(y == 7, names[0], names[1])
    model = LCKSVDClassifier(8, 4, max_iter=5, random_state=0).fit(X[few], labels[few])
    assert model.decision_function(X_new[test]).shape == (test.sum(),)
    expected = np.where(y_new == 7, names[0], names[1])[test]
    assert model.score(X_new[test], expected) > 0.9


def test_class_with_few_samples_gets_fewer_atoms(digits):
    X, y, *_ = digits
    keep = (y != 4) | (np.cumsum(y == 4) <= 3)
    with pytest.warns(UserWarning, match="1 of 10 classes, the first being 4"):
        model = LCKSVDClassifier(**SMALL).fit(X[keep], y[keep])
    counts = np.bincount(model.atom_classes_)
    assert counts[4] == 3 and (np.delete(counts, 4) == 10).all()


def test_default_number_of_atoms_suits_all_classes(digits):
    X, y, *_ = digits
    keep = (y != 4) | (np.cumsum(y == 4) <= 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = DKSVDClassifier(max_iter=1, random_state=0).fit(X[keep], y[keep])
    assert (np.bincount(model.atom_classes_) == 3).all()


def test_callback_stops(digits):
    X, y, *_ = digits
    model = LCKSVDClassifier(6, 5, random_state=0, callback=lambda state: True)
    assert model.fit(X, y).n_iter_ == 1


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_atoms_per_class": 0}, "n_atoms_per_class"),
        ({"alpha": 0, "beta": 0}, "raise beta above 0"),
        ({"variant": 3}, "variant"),
        ({"alpha": -1}, "alpha"),
        ({"tau": 0}, "tau"),
        ({"max_iter": 0}, "max_iter"),
    ],
    ids=str,
)
def test_bad_parameters_are_named(params, message, digits):
    X, y, *_ = digits
    with pytest.raises(ValueError, match=message):
        LCKSVDClassifier(**{**SMALL, **params}).fit(X, y)


def test_class_of_zeros_is_refused(digits):
    X, y, *_ = digits
    with pytest.raises(ValueError, match="class 3 has only zero samples"):
        LCKSVDClassifier(**SMALL).fit(X * (y != 3)[:, None], y)
