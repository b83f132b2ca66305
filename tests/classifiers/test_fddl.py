"""FDDL: every term against loops, gradients, monotone turns, both decision rules."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import Lasso as SklearnLasso
from sklearn.pipeline import make_pipeline

import kernlets
from kernlets import FDDLClassifier, NystroemMap, datasets
from kernlets.classifiers import GlobalScheme, fddl
from kernlets.classifiers.fddl_codes import (
    CodeDescent,
    FisherProblem,
    Quadratic,
    fisher_problems,
)
from kernlets.classifiers.fddl_objective import (
    ClassLayout,
    FisherSums,
    Moments,
    Penalties,
    improve_atoms,
)
from kernlets.datasets import unit_norm
from kernlets.loops.lasso import reference

COUNTS, SIZES = [5, 3, 4], [2, 4, 3]
LABELS, OWNERS = np.repeat(range(3), COUNTS), np.repeat(range(3), SIZES)
LAYOUT = ClassLayout.of(COUNTS, SIZES)
SMALL = {"n_atoms_per_class": 12, "max_iter": 3, "random_state": 0}


def problem(rng, n_features=6):
    """Samples, unit atoms and codes of three unequal classes."""
    X = rng.standard_normal((sum(COUNTS), n_features))
    atoms = unit_norm(rng.standard_normal((sum(SIZES), n_features)))
    return X, atoms, rng.standard_normal(LAYOUT.shape)


def naive_terms(X, atoms, codes):
    """All terms of eq. (7), sample by sample."""
    names = ("total", "own", "cross", "absolute", "within", "between", "squares")
    terms = dict.fromkeys(names, 0.0)
    mean = sum(codes) / len(codes)
    for c in range(3):
        members = [i for i in range(len(X)) if LABELS[i] == c]
        centre = sum(codes[i] for i in members) / len(members)
        terms["between"] += len(members) * np.sum((centre - mean) ** 2)
        for i in members:
            parts = [codes[i, OWNERS == j] @ atoms[OWNERS == j] for j in range(3)]
            terms["total"] += np.sum((X[i] - sum(parts)) ** 2)
            terms["own"] += np.sum((X[i] - parts[c]) ** 2)
            terms["cross"] += sum(np.sum(parts[j] ** 2) for j in range(3) if j != c)
            terms["within"] += np.sum((codes[i] - centre) ** 2)
            terms["absolute"] += np.sum(np.abs(codes[i]))
            terms["squares"] += np.sum(codes[i] ** 2)
    return terms


def naive_objective(X, atoms, codes, lambda1, lambda2, eta):
    t = naive_terms(X, atoms, codes)
    fisher = t["within"] - t["between"] + eta * t["squares"]
    data = t["total"] + t["own"] + t["cross"]
    return data + lambda1 * t["absolute"] + lambda2 * fisher


def descent(X, atoms, codes, lambda1=0.0, lambda2=0.0, eta=1.0):
    penalties = Penalties(lambda1, lambda2, eta, len(X))
    return CodeDescent(X, atoms, codes.copy(), LAYOUT, penalties)


def slopes(f, point, h=1e-6):
    """Finite differences of f at every entry."""
    found = np.empty_like(point)
    for place in np.ndindex(*point.shape):
        moved = [point.copy(), point.copy()]
        moved[0][place] += h
        moved[1][place] -= h
        found[place] = (f(moved[0]) - f(moved[1])) / (2 * h)
    return found


@pytest.fixture(scope="module")
def digits():
    data = datasets.load("digits")
    X, y = unit_norm(data.X_train).astype(float), data.y_train
    return X[:800:2], y[:800:2], X[1:800:2], y[1:800:2]


# the objective


def own_only(codes):
    return codes * (LABELS[:, None] == OWNERS)


def foreign_only(codes):
    return codes * (LABELS[:, None] != OWNERS)


@pytest.mark.parametrize("part", [own_only, foreign_only, lambda codes: codes])
def test_data_terms_against_loops(part, rng):
    """Own codes only: no cross term. Foreign only: the own term is the energy."""
    X, atoms, codes = problem(rng)
    codes = part(codes)
    t = naive_terms(X, atoms, codes)
    if part is own_only:
        assert t["cross"] == 0 and t["own"] == pytest.approx(t["total"])
    if part is foreign_only:
        assert t["own"] == pytest.approx((X**2).sum())
    expected = t["total"] + t["own"] + t["cross"]
    assert descent(X, atoms, codes).value() == pytest.approx(expected)
    moments = Moments.of(X, codes, LAYOUT)
    fit = moments.data_terms(atoms, LAYOUT)
    assert fit + 2 * (X**2).sum() == pytest.approx(expected)


@pytest.mark.parametrize(
    ("weights", "names"),
    [
        ({"lambda1": 0.3}, {"absolute": 0.3}),
        ({"lambda2": 0.2}, {"within": 0.2, "between": -0.2, "squares": 0.2}),
        (
            {"lambda2": 0.2, "eta": 2.5},
            {"within": 0.2, "between": -0.2, "squares": 0.5},
        ),
    ],
    ids=str,
)
def test_penalties_against_loops(weights, names, xp, rng):
    X, atoms, codes = problem(rng)
    given = [xp.asarray(A) for A in (X, atoms, codes)]
    penalties = Penalties(
        **{"lambda1": 0.0, "lambda2": 0.0, "eta": 1.0, **weights}, n_total=len(X)
    )
    with_them = CodeDescent(*given, LAYOUT, penalties).value()
    without = CodeDescent(*given, LAYOUT, Penalties(0, 0, 1, len(X))).value()
    terms = naive_terms(X, atoms, codes)
    expected = sum(weight * terms[name] for name, weight in names.items())
    assert with_them - without == pytest.approx(expected)


def test_scatters_add_up_to_the_total_one(rng):
    X, atoms, codes = problem(rng)
    t = naive_terms(X, atoms, codes)
    assert t["within"] + t["between"] == pytest.approx(len(X) * codes.var(0).sum())
    sums = descent(X, atoms, codes).sums
    trace = Penalties(0, 1, 1, len(X)).trace(sums, np.array(COUNTS))
    assert trace == pytest.approx(t["within"] - t["between"])


def test_fisher_term_is_convex_at_one(rng):
    """A quadratic form is convex where it is never negative; below 1 it can be."""
    X, atoms, _ = problem(rng)
    equal = np.eye(3)[LABELS] @ rng.standard_normal((3, sum(SIZES)))
    equal -= equal.mean(0)
    for codes in (equal, rng.standard_normal(LAYOUT.shape)):
        sums = descent(X, atoms, codes).sums
        counts = np.array(COUNTS)
        assert Penalties(0, 1, 1, len(X)).value(sums, counts) > -1e-9
    sums = descent(X, atoms, equal).sums
    assert Penalties(0, 1, 0.9, len(X)).value(sums, counts) < -0.01


@pytest.mark.parametrize("n_features", [3, 6], ids=["factored", "dense"])
def test_quadratic_form(n_features, xp, rng):
    X, atoms, codes = problem(rng, n_features)
    Q = atoms @ atoms.T * (1 + (OWNERS[:, None] == OWNERS))
    found = Quadratic(xp.asarray(atoms), LAYOUT)
    assert (found.dense is None) == (n_features == 3)
    np.testing.assert_allclose(xp.to_numpy(found(xp.asarray(codes))), codes @ Q)
    assert np.linalg.eigvalsh(Q)[-1] <= found.bound


# codes


def test_slope_of_the_codes(rng):
    """A step without threshold goes along the gradient."""
    X, atoms, codes = problem(rng)
    weights = {"lambda1": 0.0, "lambda2": 0.3, "eta": 1.7}
    steps = descent(X, atoms, codes, **weights)
    steps._step(0.0)
    gradient = 2 * steps.curvature * (codes - steps.previous_codes)

    def J(moved):
        return naive_objective(X, atoms, moved, **weights)

    np.testing.assert_allclose(gradient, slopes(J, codes), rtol=1e-6, atol=1e-6)


def test_momentum_is_a_step_from_a_point_ahead(rng):
    X, atoms, codes = problem(rng)
    weights = {"lambda1": 0.2, "lambda2": 0.3}
    steps = descent(X, atoms, codes, **weights)
    steps._accept(steps._step(0.0))
    ahead = steps.codes + 0.6 * (steps.codes - steps.previous_codes)
    steps._step(0.6)
    plain = descent(X, atoms, ahead, **weights)
    plain._step(0.0)
    np.testing.assert_allclose(steps.previous_codes, plain.previous_codes, atol=1e-12)


def test_every_step_over_codes_lowers_the_objective(rng):
    X, atoms, codes = problem(rng)
    weights = {"lambda1": 0.2, "lambda2": 0.05}
    steps = descent(X, atoms, codes, **weights)
    values = [steps.value(), *(steps.run(5, 0.0) for _ in range(40))]
    assert (np.diff(values) <= 1e-12 * values[0]).all()
    expected = naive_objective(X, atoms, steps.codes, eta=1.0, **weights)
    assert values[-1] == pytest.approx(expected)


def test_codes_meet_the_conditions_of_the_minimum(rng):
    X, atoms, codes = problem(rng)
    weights = {"lambda1": 0.2, "lambda2": 0.05}
    steps = descent(X, atoms, codes, **weights)
    steps.run(5000, 0.0)

    def smooth(moved):
        return naive_objective(X, atoms, moved, 0.0, 0.05, 1.0)

    gradient, live = slopes(smooth, steps.codes), steps.codes != 0
    assert 0 < live.mean() < 1
    expected = -0.2 * np.sign(steps.codes[live])
    np.testing.assert_allclose(gradient[live], expected, atol=1e-5)
    assert np.abs(gradient[~live]).max() < 0.2 + 1e-5


def test_without_fisher_term_codes_are_a_lasso(xp, rng):
    X, atoms, codes = problem(rng)
    Q = atoms @ atoms.T * (1 + (OWNERS[:, None] == OWNERS))
    corr = X @ atoms.T * (1 + (LABELS[:, None] == OWNERS))
    expected, _ = reference.descend(Q, corr, 0.15, False, 10_000, 1e-12)
    given = [xp.asarray(A) for A in (X, atoms, codes)]
    steps = CodeDescent(*given, LAYOUT, Penalties(0.3, 0.0, 1.0, len(X)))
    steps.run(5000, 0.0)
    np.testing.assert_allclose(xp.to_numpy(steps.codes), expected, atol=1e-5)


def test_blocks_of_rows_change_nothing(rng):
    X, atoms, codes = problem(rng)
    found = []
    for block_rows in (2, 1000):
        with kernlets.options(block_rows=block_rows):
            steps = descent(X, atoms, codes, 0.2, 0.05)
            steps.run(50, 0.0)
        found.append(steps.codes)
    np.testing.assert_allclose(*found, atol=1e-10)


def test_sums_add_up(rng):
    codes = rng.standard_normal((7, 4))
    parts = FisherSums.of(codes[:3], 1, 3) + FisherSums.of(codes[3:], 1, 3)
    np.testing.assert_allclose(parts.class_sums[1], codes.sum(0))
    assert not parts.class_sums[[0, 2]].any()
    assert parts.absolute == pytest.approx(np.abs(codes).sum())
    assert parts.squares == pytest.approx((codes**2).sum())


# atoms


def test_atoms_are_improved_one_by_one(xp, rng):
    """The last one updated is the best of its kind: its slope points at itself."""
    X, atoms, codes = problem(rng)
    moments = Moments.of(xp.asarray(X), xp.asarray(codes), LAYOUT)
    moved = xp.to_numpy(improve_atoms(xp.asarray(atoms), moments, LAYOUT))
    np.testing.assert_allclose(np.linalg.norm(moved, axis=1), 1)

    def J(D):
        return naive_objective(X, D, codes, 0.1, 0.2, 1.0)

    assert J(moved) < J(atoms)
    slope = slopes(J, moved)[-1]
    # of 2s‖d‖² − 2⟨d, v⟩ at d = v/‖v‖: along d, and outwards lies no better unit d
    across = slope - (slope @ moved[-1]) * moved[-1]
    np.testing.assert_allclose(across, 0, atol=1e-5)
    assert J(np.vstack([moved[:-1], -moved[-1:]])) > J(moved)


def test_each_atom_of_the_sweep_lowers_the_objective(rng):
    X, atoms, codes = problem(rng)
    moved = improve_atoms(atoms, Moments.of(X, codes, LAYOUT), LAYOUT)
    values = []
    for k in range(len(atoms) + 1):
        mixed = np.vstack([moved[:k], atoms[k:]])
        values.append(naive_objective(X, mixed, codes, 0.1, 0.2, 1.0))
    assert (np.diff(values) < 0).all()


def test_unused_atoms_stay(rng):
    X, atoms, codes = problem(rng)
    codes[:, 4] = 0
    moved = improve_atoms(atoms, Moments.of(X, codes, LAYOUT), LAYOUT)
    np.testing.assert_array_equal(moved[4], atoms[4])


def test_a_turn_knows_its_objective(rng):
    X, atoms, _ = problem(rng)
    fisher = FisherProblem(X, atoms, LAYOUT, Penalties(0.3, 0.1, 1.5, len(X)))
    value = fisher.improve()
    expected = naive_objective(X, fisher.atoms, fisher.codes, 0.3, 0.1, 1.5)
    assert value == pytest.approx(expected)
    means = [fisher.codes[LABELS == c].mean(0) for c in range(3)]
    np.testing.assert_allclose(fisher.means, means)


# the classifier


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("simplified", [False, True])
def test_objective_never_rises(simplified, dtype, digits):
    X, y, *_ = digits
    model = FDDLClassifier(12, simplified=simplified, max_iter=8, random_state=0)
    objective = model.fit(X.astype(dtype), y).history_["objective"]
    assert len(objective) == model.n_iter_ == 8
    rounding = 1e-12 if dtype == np.float64 else 1e-6
    assert (np.diff(objective) <= rounding).all()
    assert objective[-1] < 0.95 * objective[0]
    assert model.components_.dtype == model.class_means_.dtype == dtype


def test_simplified_is_the_same_objective_with_own_codes_only(digits):
    X, y, *_ = digits
    order = np.argsort(y, kind="stable")
    X, y = X[order], y[order]
    layout = ClassLayout.of(np.bincount(y), np.full(10, 12))
    penalties = Penalties(0.1, 0.2, 1.0, len(X))
    atoms = unit_norm(np.random.default_rng(0).standard_normal((120, 64)))
    parts = fisher_problems(X, atoms, layout, penalties, simplified=True)
    values = [part.code().value() for part in parts]
    codes = np.zeros((len(X), 120))
    for part, rows, columns in zip(parts, layout.rows, layout.columns, strict=True):
        codes[rows, columns] = part.codes
    whole = CodeDescent(X, atoms, codes, layout, penalties)
    assert sum(values) == pytest.approx(whole.value())
    assert whole.run(50, 0.0) < sum(values)


def test_local_scheme_against_scikit_learn(digits):
    X, y, X_new, _ = digits
    model = FDDLClassifier(simplified=True, scheme="local:0.2", **SMALL).fit(X, y)
    residuals = model.residuals(X_new[:3])
    for c in range(10):
        own = model.atom_classes_ == c
        atoms, mean = model.components_[own], model.class_means_[c, own]
        # ‖γ − μ‖² as more rows to be fitted; scikit-learn's error is halved and a mean
        A = np.vstack([atoms.T, np.sqrt(0.2) * np.eye(12)])
        peer = SklearnLasso(
            0.05 / len(A), fit_intercept=False, tol=1e-12, max_iter=100_000
        )
        for x, residual in zip(X_new[:3], residuals[:, c], strict=True):
            b = np.concatenate([x, np.sqrt(0.2) * mean])
            gamma = peer.fit(A, b).coef_
            expected = np.sum((b - A @ gamma) ** 2) + 0.1 * np.abs(gamma).sum()
            assert residual == pytest.approx(expected, rel=1e-6)


def test_a_scheme_is_chosen_after_the_fit(digits):
    X, y, X_new, _ = digits
    model = FDDLClassifier(simplified=True, **SMALL).fit(X, y)
    changed = model.set_params(scheme=GlobalScheme(0.1)).residuals(X_new[:3])
    by_name = model.set_params(scheme="global:0.1").residuals(X_new[:3])
    np.testing.assert_array_equal(changed, by_name)
    with pytest.raises(ValueError, match="gamma"):
        model.set_params(scheme__gamma=-1.0).predict(X_new[:3])
    with pytest.raises(TypeError, match="give 'local'"):
        fddl.resolve_scheme(3)


def test_global_scheme_against_loops(digits):
    X, y, X_new, _ = digits
    model = FDDLClassifier(scheme="global", **SMALL).fit(X, y)
    residuals, codes = model.residuals(X_new[:5]), model.transform(X_new[:5])
    for i, c in np.ndindex(5, 10):
        own = model.atom_classes_ == c
        left = X_new[i] - codes[i, own] @ model.components_[own]
        apart = codes[i] - model.class_means_[c]
        expected = np.sum(left**2) + 0.5 * np.sum(apart**2)
        assert residuals[i, c] == pytest.approx(expected)


def test_codes_of_new_samples(digits):
    X, y, X_new, _ = digits
    model = FDDLClassifier(simplified=True, **SMALL).fit(X, y)
    codes, atoms = model.transform(X_new[:20]), model.components_
    slope = 2 * (codes @ atoms - X_new[:20]) @ atoms.T
    live = codes != 0
    np.testing.assert_allclose(slope[live], -0.1 * np.sign(codes[live]), atol=1e-4)
    assert np.abs(slope[~live]).max() < 0.1001


@pytest.mark.parametrize("scheme", ["local", "global"])
@pytest.mark.parametrize("simplified", [False, True])
def test_reads_digits(simplified, scheme, digits):
    X, y, X_new, y_new = digits
    model = FDDLClassifier(simplified=simplified, scheme=scheme, **SMALL).fit(X, y)
    assert model.score(X_new, y_new) > 0.92


def test_behind_a_map(digits):
    X, y, X_new, y_new = digits
    features = NystroemMap("poly:2", n_landmarks=0.3, n_components=50, random_state=0)
    model = make_pipeline(features, FDDLClassifier(simplified=True, **SMALL))
    assert model.fit(X, y).score(X_new, y_new) > 0.92


@pytest.mark.parametrize("simplified", [False, True])
def test_libraries_agree(simplified, digits, xp):
    X, y, X_new, _ = digits
    model = FDDLClassifier(6, simplified=simplified, max_iter=2, random_state=0)
    expected = model.fit(X, y).residuals(X_new)
    found = model.fit(xp.asarray(X), y).residuals(xp.asarray(X_new))
    np.testing.assert_allclose(xp.to_numpy(found), expected, rtol=1e-5)


@pytest.mark.rounding
@pytest.mark.parametrize("simplified", [False, True])
def test_threads_change_nothing(simplified, digits):
    X, y, *_ = digits
    found = []
    for n_threads in (1, 2):
        with kernlets.options(n_threads=n_threads):
            model = FDDLClassifier(simplified=simplified, **SMALL).fit(X, y)
        found.append(model.components_)
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("names", [["seven", "one"], [-3, -1]], ids=["text", "ints"])
def test_labels_of_any_kind_and_unequal_classes(names, digits):
    X, y, X_new, y_new = digits
    train, test = np.isin(y, [1, 7]), np.isin(y_new, [1, 7])
    few = train & ((y == 1) | (np.cumsum(y == 7) <= 8))
    labels = np.where(y == 7, names[0], names[1])
    with pytest.warns(UserWarning, match="1 of 2 classes.*fewer samples than n_atoms"):
        model = FDDLClassifier(**SMALL).fit(X[few], labels[few])
    counts = dict(zip(model.classes_, np.bincount(model.atom_classes_), strict=True))
    assert counts == {names[0]: 8, names[1]: 12}
    assert model.decision_function(X_new[test]).shape == (test.sum(),)
    expected = np.where(y_new == 7, names[0], names[1])[test]
    assert model.score(X_new[test], expected) > 0.9


def test_callback_and_progress(digits, capsys):
    X, y, *_ = digits
    seen = []
    model = FDDLClassifier(
        5, simplified=True, verbose=True, callback=lambda state: seen.append(state) or 1
    )
    assert model.fit(X, y).n_iter_ == 1
    assert seen[0]["dictionary"].n_atoms == 50
    assert "FDDLClassifier 1/5: mean objective" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"lambda1": -1}, "lambda1"),
        ({"eta": 0.5}, "eta"),
        ({"scheme": "local:-1"}, "gamma"),
        ({"scheme": "best"}, "scheme"),
        ({"n_atoms_per_class": 0}, "n_atoms_per_class"),
    ],
    ids=str,
)
def test_bad_parameters_are_named(params, message, digits):
    X, y, *_ = digits
    with pytest.raises(ValueError, match=message):
        FDDLClassifier(**{**SMALL, **params}).fit(X, y)
