"""K-SAD: scatter against loops, gradients, the alternation, and who decides."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.neighbors import KNeighborsClassifier

from kernlets import KSADClassifier, Lasso, NystroemMap, datasets, load, options, save
from kernlets.classifiers import FisherAtoms, OrthogonalAtoms
from kernlets.classifiers.ksad_atoms import (
    CodesThenAtoms,
    count_votes,
    soft_threshold,
)
from kernlets.classifiers.scatter import NormScatter, Scatter, fisher_directions
from kernlets.data.lazy_rows import LazyRows
from kernlets.datasets import unit_norm
from kernlets.numerics.arrays import smallest
from kernlets.updates.orthogonal import nearest_orthonormal, procrustes
from papers.exhibits.common import Searched
from papers.written import Fista

ONE_PASS = "orthogonal:max_iter=1"


def groups(rng, n=60, k=7, n_classes=4):
    labels = np.arange(n) % n_classes
    labels[: n // 3] = 0  # classes of unequal size
    return rng.standard_normal((n, k)) + labels[:, None] * rng.random(k), labels


def naive_traces(Q, labels):
    """tr S_w and tr S_b, sample by sample and class by class."""
    classes = sorted(set(labels))
    mean = sum(Q) / len(Q)
    within = between = 0.0
    for c in classes:
        members = [q for q, label in zip(Q, labels, strict=True) if label == c]
        own = sum(members) / len(members)
        within += sum(np.sum((q - own) ** 2) for q in members) / len(members)
        between += len(members) * np.sum((own - mean) ** 2)
    return within, between


@pytest.fixture(scope="module")
def digits():
    data = datasets.load("digits")
    X, y = unit_norm(data.X_train).astype(float), data.y_train
    return X[:500], y[:500], X[500:800], y[500:800]


# scatter


def test_scatter_against_loops(xp, rng):
    Q, labels = groups(rng)
    scatter = Scatter.of(xp.asarray(Q), labels, 4)
    within, between = naive_traces(Q, labels)
    assert scatter.within == pytest.approx(within)
    assert scatter.between == pytest.approx(between)
    assert scatter.ratio == pytest.approx(within / between)


def test_scatter_adds_up_over_blocks(rng):
    Q, labels = groups(rng)
    parts = [Scatter.of(Q[p], labels[p], 4) for p in (slice(0, 25), slice(25, None))]
    assert (parts[0] + parts[1]).ratio == pytest.approx(Scatter.of(Q, labels, 4).ratio)


def central_differences(f, Q, h=1e-6):
    slope = np.empty_like(Q)
    for place in np.ndindex(*Q.shape):
        up, down = Q.copy(), Q.copy()
        up[place] += h
        down[place] -= h
        slope[place] = (f(up) - f(down)) / (2 * h)
    return slope


def test_gradient_of_the_ratio(rng):
    Q, labels = groups(rng, n=20, k=3)
    scale, shift = Scatter.of(Q, labels, 4).slope()
    gradient = scale[labels][:, None] * Q - shift[labels]

    def ratio(moved):
        within, between = naive_traces(moved, labels)
        return within / between

    expected = central_differences(ratio, Q)
    np.testing.assert_allclose(gradient, expected, rtol=1e-5, atol=1e-9)


def naive_norm(Q, labels):
    """‖Σ_c K_c (μ_c − μ)(μ_c − μ)ᵀ‖², entry by entry."""
    total = np.zeros((Q.shape[1], Q.shape[1]))
    for c in np.unique(labels):
        offset = Q[labels == c].mean(axis=0) - Q.mean(axis=0)
        total += (labels == c).sum() * np.outer(offset, offset)
    return (total**2).sum()


def test_printed_scatter_and_its_gradient(xp, rng):
    Q, labels = groups(rng, n=20, k=3)
    scatter = NormScatter.of(xp.asarray(Q), labels, 4)
    assert scatter.between == pytest.approx(naive_norm(Q, labels))
    scale, shift = (xp.to_numpy(part) for part in scatter.slope())
    gradient = scale[labels][:, None] * Q - shift[labels]

    def ratio(moved):
        return naive_traces(moved, labels)[0] / naive_norm(moved, labels)

    expected = central_differences(ratio, Q)
    np.testing.assert_allclose(gradient, expected, rtol=1e-5, atol=1e-9)


def test_printed_scatter_decides_the_objective(digits):
    X, y, *_ = digits
    params = {"n_components": 20, "random_state": 0}
    trace, norm = (
        OrthogonalAtoms(beta2=5.0, max_iter=3, between=between)
        for between in ("trace", "norm")
    )
    model = KSADClassifier(**params, dictionary=norm).fit(X, y)
    F, Z = model.map_.transform(X), model.dictionary_.atoms
    steps = CodesThenAtoms(F, y, Z, 0.1, 5.0, NormScatter)
    found = steps.step(lambda: None)["objective"]
    Q, Z = steps.codes, steps.atoms
    ratio = naive_traces(Q, y)[0] / naive_norm(Q, y)
    error = ((F - Q @ Z) ** 2).sum() + 0.1 * np.abs(Q).sum() + 5 * ratio
    assert found == pytest.approx(error)
    other = KSADClassifier(**params, dictionary=trace).fit(X, y)
    assert model.history_["objective"] != other.history_["objective"]


def test_new_codes_of_line_15_have_no_threshold(digits, tmp_path):
    X, y, X_new, _ = digits
    params = {"n_components": 20, "random_state": 0}
    line_15 = OrthogonalAtoms(0.3, threshold_new=False)
    model = KSADClassifier(**params, dictionary=line_15).fit(X, y)
    corr = model.map_.transform(X_new) @ model.dictionary_.atoms.T
    np.testing.assert_allclose(model.encode(X_new).toarray(), corr)
    usual = KSADClassifier(**params, dictionary="orthogonal:0.3").fit(X, y)
    np.testing.assert_array_equal(model.codes_, usual.codes_)
    np.testing.assert_allclose(
        usual.encode(X_new).toarray(), soft_threshold(corr, 0.15)
    )
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(X_new), model.predict(X_new))


def test_classes_without_difference_do_no_harm(rng):
    Q = np.concatenate([np.eye(3), np.eye(3)])
    scatter = NormScatter.of(Q, np.array([0, 0, 0, 1, 1, 1]), 2)
    assert scatter.ratio == 0 and not np.any(scatter.slope()[1])
    scatter = Scatter.of(Q, np.array([0, 0, 0, 1, 1, 1]), 2)
    assert scatter.ratio == 0
    assert not np.any(scatter.slope()[0]) and not np.any(scatter.slope()[1])


def test_fisher_directions_solve_the_eigenproblem(xp, rng):
    F, labels = groups(rng, n=200)
    scatter = Scatter.of(xp.asarray(F), labels, 4)
    atoms, criterion = fisher_directions(xp.asarray(F), scatter, 0.05)
    atoms = xp.to_numpy(atoms)
    assert atoms.shape == (3, 7)
    means = np.stack([F[labels == c].mean(0) for c in range(4)])
    residual = F - means[labels]
    inside = residual.T @ residual / 200
    inside += 0.05 * np.trace(inside) / 7 * np.eye(7)
    offsets = means[labels] - F.mean(0)
    outside = offsets.T @ offsets / 200
    np.testing.assert_allclose(atoms @ inside @ atoms.T, np.eye(3), atol=1e-9)
    spread = atoms @ outside @ atoms.T
    np.testing.assert_allclose(spread, np.diag(np.diag(spread)), atol=1e-9)
    assert (np.diff(np.diag(spread)) < 0).all()
    assert criterion == pytest.approx(np.trace(np.linalg.solve(inside, outside)))
    assert np.trace(spread) == pytest.approx(criterion)


# codes and atoms by turns


def test_codes_and_sums_of_one_pass(xp, rng):
    F, labels = groups(rng)
    Z = nearest_orthonormal(rng.standard_normal((7, 7)))
    steps = CodesThenAtoms(xp.asarray(F), labels, xp.asarray(Z), 0.4, 3.0)
    first = steps.code()
    Q = soft_threshold(F @ Z.T, 0.2)
    np.testing.assert_allclose(xp.to_numpy(steps.codes), Q, atol=1e-12)
    np.testing.assert_allclose(xp.to_numpy(first.cross), Q.T @ F, atol=1e-10)
    again = steps.code()
    scale, shift = Scatter.of(Q, labels, 4).slope()
    gradient = scale[labels][:, None] * Q - shift[labels]
    Q = soft_threshold(F @ Z.T - 1.5 * gradient, 0.2)
    np.testing.assert_allclose(xp.to_numpy(steps.codes), Q, atol=1e-12)
    within, between = naive_traces(Q, labels)
    expected = ((F - Q @ Z) ** 2).sum() + 0.4 * np.abs(Q).sum() + 3 * within / between
    assert steps.objective(again) == pytest.approx(expected)


def test_soft_threshold():
    values = np.array([-3.0, -0.5, 0.0, 0.4, 2.0])
    np.testing.assert_allclose(soft_threshold(values, 0.5), [-2.5, 0, 0, 0, 1.5])


def test_objective_never_rises_without_the_fisher_term(digits):
    X, y, *_ = digits
    model = KSADClassifier(
        dictionary=OrthogonalAtoms(2.0, 0), n_components=60, random_state=0
    )
    objective = model.fit(X, y).history_["objective"]
    assert len(objective) == model.n_iter_ == 20
    assert (np.diff(objective) <= 1e-9 * objective[0]).all()
    assert objective[-1] < 0.99 * objective[0]


def test_fisher_term_lowers_the_ratio(digits):
    X, y, *_ = digits

    def ratio(beta2):
        atoms = OrthogonalAtoms(beta2=beta2)
        model = KSADClassifier(dictionary=atoms, n_components=60, random_state=0)
        model.fit(X, y)
        return Scatter.of(model.codes_, y, 10).ratio

    assert ratio(1e6) < 0.95 * ratio(0.0)


def test_atoms_are_orthonormal_and_optimal(digits, xp):
    X, y, *_ = digits
    model = KSADClassifier(n_components=50, random_state=0).fit(xp.asarray(X), y)
    Z = xp.to_numpy(model.dictionary_.atoms)
    np.testing.assert_allclose(Z @ Z.T, np.eye(50), atol=1e-10)
    F, Q = (xp.to_numpy(a) for a in (model.map_.transform(xp.asarray(X)), model.codes_))
    better = procrustes(Q.T @ F, Z)
    nuclear = np.linalg.svd(Q.T @ F, compute_uv=False).sum()
    assert (Q.T @ F * better).sum() == pytest.approx(nuclear, rel=1e-7)
    assert (Q.T @ F * Z).sum() <= nuclear


# neighbours


@pytest.mark.parametrize("k", [1, 3, 10])
def test_votes_are_those_of_scikit_learn(k, xp, rng):
    points, labels = groups(rng, n=3000)
    new = rng.standard_normal((50, 7))
    peer = KNeighborsClassifier(k, algorithm="brute").fit(points, labels)
    votes = count_votes(xp.asarray(new), xp.asarray(points), labels, k)
    np.testing.assert_allclose(xp.to_numpy(votes) / k, peer.predict_proba(new))


@pytest.mark.parametrize("count", [1, 2, 7])
@pytest.mark.parametrize("n", [7, 100, 4001])
def test_smallest(n, count, rng):
    values = rng.standard_normal((20, n))
    found = np.sort(smallest(values, count), axis=1)
    expected = np.sort(np.argsort(values, axis=1)[:, :count], axis=1)
    np.testing.assert_array_equal(found, expected)


# the classifier


def test_fista_reaches_the_lasso(rng):
    atoms = rng.standard_normal((12, 20))
    X = rng.standard_normal((5, 20))
    problem = atoms @ atoms.T, X @ atoms.T, (X**2).sum(axis=1)
    expected = Lasso(alpha=2.0, tol=1e-12).solve(*problem).toarray()
    found = Fista(alpha=2.0, max_iter=3000).solve(*problem).toarray()
    assert np.count_nonzero(expected) < expected.size
    np.testing.assert_allclose(found, expected, atol=1e-8)
    few = Fista(alpha=2.0, max_iter=3).solve(*problem).toarray()
    assert np.abs(few - expected).max() > 1e-3


def test_the_kernel_is_chosen_on_training_rows(digits):
    X, y, X_new, _ = digits
    asked = []

    class Watched(KSADClassifier):
        def fit(self, X, y):
            asked.append((self.kernel, len(X)))
            return super().fit(X, y)

    grid = {"kernel": ["poly:2,coef0=1", "rbf:100"]}
    model = Searched(Watched(dictionary="fisher", random_state=0), grid, 0, 150)
    model.fit(X, y)
    assert sorted({rows for _, rows in asked}) == [100, 500]  # folds, then all
    assert model.model.kernel == asked[-1][0] in grid["kernel"]
    assert len(model.predict(X_new)) == len(X_new)


def test_orthogonal_atoms_have_no_say_in_the_labels(digits):
    """Without a threshold: k-NN on codes is k-NN on features, and here on samples."""
    X, y, X_new, _ = digits
    X, y = X[:200], y[:200]
    atoms = OrthogonalAtoms(0, 0, max_iter=3)
    params = {"dictionary": atoms, "n_landmarks": 1.0}
    model = KSADClassifier(**params, n_neighbors=3, random_state=0).fit(X, y)
    F, F_new = model.map_.transform(X), model.map_.transform(X_new)
    on_features = KNeighborsClassifier(3, algorithm="brute").fit(F, y)
    np.testing.assert_array_equal(model.predict(X_new), on_features.predict(F_new))
    on_samples = KNeighborsClassifier(1, algorithm="brute").fit(X, y)
    first = model.set_params(n_neighbors=1).fit(X, y)
    assert (first.predict(X_new) == on_samples.predict(X_new)).mean() > 0.98


def test_fisher_atoms_without_the_angle_are_discriminant_analysis(digits):
    X, y, X_new, _ = digits
    model = KSADClassifier(
        dictionary="fisher:1e-6", n_components=40, random_state=0
    ).fit(X, y)
    F, F_new = model.map_.transform(X), model.map_.transform(X_new)
    peer = LinearDiscriminantAnalysis(solver="eigen", priors=np.full(10, 0.1)).fit(F, y)
    atoms = model.dictionary_.atoms
    centres = np.stack([F[y == c].mean(0) for c in range(10)])
    gaps = (F_new[:, None] - centres) @ atoms.T
    labels = (gaps**2).sum(2).argmin(1)
    assert (labels == peer.predict(F_new)).mean() > 0.99


def test_both_dictionaries_read_digits(digits):
    X, y, X_new, y_new = digits
    scores = {
        name: KSADClassifier(dictionary=name, random_state=0)
        .fit(X, y)
        .score(X_new, y_new)
        for name in ("orthogonal", "fisher")
    }
    assert min(scores.values()) > 0.9, scores


@pytest.mark.parametrize("dictionary", ["orthogonal", "fisher"])
def test_libraries_agree(dictionary, digits, xp):
    X, y, X_new, _ = digits
    model = KSADClassifier(
        n_components=40, landmarks="uniform", dictionary=dictionary, random_state=0
    )
    expected = model.fit(X, y).predict_proba(X_new)
    found = model.fit(xp.asarray(X), y).predict_proba(xp.asarray(X_new))
    is_close = np.isclose(xp.to_numpy(found), expected, rtol=1e-3, atol=1e-6)
    assert is_close.all(axis=1).mean() > 0.99


@pytest.mark.parametrize("dictionary", ["orthogonal", "fisher"])
def test_float32_stays(dictionary, digits):
    X, y, X_new, _ = digits
    model = KSADClassifier(n_components=30, dictionary=dictionary, random_state=0)
    model.fit(X.astype(np.float32), y)
    assert model.encode(X_new.astype(np.float32)).values.dtype == np.float32
    assert model.codes_.dtype == model.dictionary_.atoms.dtype == np.float32


def test_labels_of_any_kind_and_unequal_classes(digits):
    X, y, X_new, y_new = digits
    names = np.array(["zero", "one or more"])[(y > 0).astype(int)]
    model = KSADClassifier(dictionary="fisher", random_state=0).fit(X, names)
    assert model.dictionary_.n_atoms == 1
    assert model.score(X_new, np.where(y_new > 0, "one or more", "zero")) > 0.95


def test_landmarks_follow_the_number_of_atoms(digits):
    X, y, *_ = digits
    few = KSADClassifier(dictionary=ONE_PASS, n_components=80, random_state=0).fit(X, y)
    assert (few.map_.n_landmarks_, few.dictionary_.n_atoms) == (160, 80)
    many = KSADClassifier(dictionary=ONE_PASS, n_components=400).fit(X, y)
    assert many.map_.n_landmarks_ == 500
    given = KSADClassifier(dictionary=ONE_PASS, n_components=20, landmarks=X[:50])
    given.fit(X, y)
    assert given.map_.n_landmarks_ == 50


def test_atoms_in_feature_space(digits):
    X, y, *_ = digits
    model = KSADClassifier("rbf:1", n_components=20, random_state=0).fit(X, y)
    in_features = model.dictionary_.correlate(model.map_.transform(X))
    np.testing.assert_allclose(
        model.kernel_dictionary_.correlate(X), in_features, atol=1e-8
    )
    assert model.kernel_dictionary_.preimages().points.shape == (20, 64)


def test_samples_that_outweigh_all_others_are_worth_a_warning(digits):
    X, y, *_ = digits
    long = X * np.where(np.arange(len(X)) % 50, 1.0, 4.0)[:, None]
    with pytest.warns(UserWarning, match="unit norm"):
        KSADClassifier(dictionary=ONE_PASS, random_state=0).fit(long, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        KSADClassifier(dictionary=ONE_PASS, random_state=0).fit(X, y)
        KSADClassifier("rbf", ONE_PASS, random_state=0).fit(long, y)


@pytest.mark.parametrize(
    ("name", "atoms"),
    [
        ("orthogonal:beta1=0.3,max_iter=2", OrthogonalAtoms(0.3, max_iter=2)),
        ("fisher:0.1", FisherAtoms(shrinkage=0.1)),
    ],
)
def test_atoms_by_name_and_as_objects_are_the_same(name, atoms, digits):
    X, y, *_ = digits
    params = {"n_components": 20, "random_state": 0}
    by_name = KSADClassifier(dictionary=name, **params).fit(X, y)
    by_object = KSADClassifier(dictionary=atoms, **params).fit(X, y)
    np.testing.assert_array_equal(by_name.codes_, by_object.codes_)
    key, value = next(iter(atoms.get_params().items()))
    assert by_name.get_params()[f"dictionary__{key}"] == value


def test_precomputed_kernel(digits):
    X, y, X_new, _ = digits
    params = {"landmarks": "uniform", "n_components": 40, "random_state": 0}
    kernel = NystroemMap("poly:8,coef0=1").fit(X).kernel_
    expected = KSADClassifier(**params).fit(X, y).predict(X_new)
    model = KSADClassifier("precomputed", **params).fit(kernel(X), y)
    np.testing.assert_array_equal(model.predict(kernel(X_new, X)), expected)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_neighbors": 501}, "n_neighbors=501 is more than the 500"),
        ({"dictionary": OrthogonalAtoms(beta1=-1)}, "beta1"),
        ({"dictionary": "fisher:0"}, "shrinkage"),
        ({"dictionary": "best"}, "dictionary"),
        ({"dictionary": "orthogonal:between='matrix'"}, "between"),
        ({"dictionary": OrthogonalAtoms(threshold_new="no")}, "threshold_new"),
        ({"landmarks": "some"}, "landmarks='some'"),
    ],
    ids=str,
)
def test_bad_parameters_are_named(params, message, digits):
    X, y, *_ = digits
    with pytest.raises(ValueError, match=message):
        KSADClassifier(**params).fit(X, y)


def test_k_sad_with_a_huge_weight_and_with_equal_samples(rng):
    X, y = rng.random((33, 2)).astype(np.float32), np.arange(33) % 2
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        KSADClassifier(
            dictionary=OrthogonalAtoms(1e300, max_iter=2), random_state=0
        ).fit(X, y).predict(X)
    with pytest.raises(ValueError, match="means of all classes agree"):
        same = np.full((20, 3), 9.0, np.float32)
        KSADClassifier(dictionary="fisher", random_state=0).fit(same, y[:20])


def test_votes_of_rows_that_would_overflow(rng):
    points = rng.standard_normal((40, 3)).astype(np.float32)
    labels = (points[:, 0] > 0).astype(int)
    ray = 1e38 * np.array([[1, 0, 0], [-1, 0, 0]], np.float32)
    few = rng.standard_normal((20, 3)).astype(np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        votes = count_votes(ray, 4 * points, labels, 5)
        near = count_votes(few, points, labels, 5)
    assert votes.argmax(axis=1).tolist() == [1, 0]
    order = np.linalg.norm(few[:, None] - points, axis=2).argsort(axis=1)[:, :5]
    np.testing.assert_array_equal(near[:, 1], labels[order].sum(axis=1))


def test_k_sad_where_most_virtual_samples_are_zero():
    """Atoms are as many as features, also if fewer samples can be atoms."""
    F = np.zeros((12, 3))
    F[::6, 0] = 1.0
    model = KSADClassifier("linear", n_components=3, random_state=0)
    rng = np.random.default_rng(0)
    learned = OrthogonalAtoms(max_iter=3).learn(F, np.arange(12) % 2, rng, model)
    atoms, codes = learned.atoms, learned.codes
    np.testing.assert_allclose(atoms @ atoms.T, np.eye(3), atol=1e-12)
    assert codes.shape == (12, 3)


@pytest.mark.parametrize("dictionary", ["orthogonal", "fisher"])
def test_virtual_samples_of_k_sad_that_do_not_fit_into_memory(
    dictionary, rng, tmp_path
):
    X, y = rng.standard_normal((600, 3)), np.arange(600) % 3
    X += 3 * y[:, None]
    np.save(tmp_path / "X.npy", X)
    stored = np.load(tmp_path / "X.npy", mmap_mode="r")
    model = KSADClassifier("rbf:2", dictionary, n_components=40, random_state=0)
    expected = model.fit(X, y).predict_proba(X)
    with options(memory="60KB"):  # and 192 kB of virtual samples
        assert isinstance(model.map_.transform(stored), LazyRows)
        found = clone(model).fit(stored, y)
        shares, codes = found.predict_proba(stored), found.encode(stored)
    atoms = found.dictionary_.atoms, model.dictionary_.atoms
    np.testing.assert_allclose(*atoms, atol=1e-9)
    np.testing.assert_allclose(shares, expected, atol=1e-12)
    np.testing.assert_allclose(codes.toarray(), model.encode(X).toarray(), atol=1e-9)


# Atoms with labels


def naive_decision(model, X, compare):
    """The classes of samples by loops over the atoms, lines 15 to 18 of Algorithm 1."""
    Phi, Z = model.map_.transform(X), model.dictionary_.atoms
    labels = model.code_classes_
    decided = []
    for phi in Phi:
        if compare == "atoms":
            distances = [np.linalg.norm(phi - z) for z in Z]
            decided.append(labels[np.argmin(distances)])
        else:
            energies = np.zeros(labels.max() + 1)
            for z, label in zip(Z, labels, strict=True):
                energies[label] += (z @ phi) ** 2
            decided.append(energies.argmax())
    return model.classes_[np.array(decided)]


@pytest.mark.parametrize("compare", ["atoms", "energy"])
def test_atoms_with_labels_decide(compare, digits):
    X, y, X_test, y_test = digits
    atoms = OrthogonalAtoms(compare=compare, threshold_new=False)
    model = KSADClassifier(dictionary=atoms, n_components=60, random_state=0).fit(X, y)
    found = model.predict(X_test)
    np.testing.assert_array_equal(found, naive_decision(model, X_test, compare))
    assert np.mean(found == y_test) > 0.5  # a guess is right in a tenth
    by_rows = model.classes_[model.code_classes_]
    np.testing.assert_array_equal(by_rows, y[model.code_rows_])
    assert len(set(model.code_rows_)) == 60
    assert (np.bincount(model.code_classes_) == 6).all()
    likely = model.classes_[model.predict_proba(X_test).argmax(axis=1)]
    np.testing.assert_array_equal(likely, found)


def test_atoms_with_labels_are_saved(digits, tmp_path):
    X, y, X_test, _ = digits
    atoms = OrthogonalAtoms(compare="energy")
    model = KSADClassifier(dictionary=atoms, n_components=20, random_state=0).fit(X, y)
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(X_test), model.predict(X_test))


def test_every_class_needs_an_atom_and_every_atom_a_sample(digits):
    X, y, *_ = digits
    model = KSADClassifier(dictionary=OrthogonalAtoms(compare="atoms"), n_components=9)
    with pytest.raises(ValueError, match=r"at least 10, one for each class"):
        model.fit(X, y)
    with pytest.raises(ValueError, match="n_neighbors=21 is more than the 20"):
        model.set_params(n_components=20, n_neighbors=21).fit(X, y)


def test_the_block_method_of_the_paper_finds_the_same_space(digits):
    """The full solver and block Krylov agree where both are used by request."""
    X, y, X_test, _ = digits
    params = {"n_components": 20, "n_landmarks": 400, "random_state": 0}
    full, block = (
        KSADClassifier(**params, eigen_solver=solver).fit(X, y)
        for solver in ("full", "randomized")
    )
    assert block.map_.eigen_solver == "randomized"
    F, G = (model.map_.transform(X_test) for model in (full, block))
    np.testing.assert_allclose(G @ G.T, F @ F.T, atol=0.02 * np.abs(F @ F.T).max())
    with pytest.raises(ValueError, match="n_components"):
        KSADClassifier(eigen_solver="randomized").fit(X, y)
