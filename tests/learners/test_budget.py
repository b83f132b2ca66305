"""A kernel dictionary on a budget: the two gradients, admission, pruning, streams."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import Lasso as SklearnLasso

from kernlets import (
    OMP,
    BabelMeasure,
    Budget,
    BudgetKernelDL,
    FeatureDistance,
    Lasso,
    Linear,
    LinearDependence,
    Polynomial,
    ReducedKernelDL,
    ResidualClassifier,
    datasets,
    load,
    options,
    save,
)
from kernlets.updates import (
    Admission,
    Coherence,
    DecayingStep,
    ReconstructionCost,
    RootStep,
    StochasticGradient,
)
from kernlets.updates.admission import as_admission

ALPHA = 0.05  # λ
EXACT = Lasso(ALPHA, max_iter=10_000, tol=1e-12)
KERNEL = Polynomial(3, coef0=1.0)
RULES = ("budget", "admission", "update", "pruning")


@pytest.fixture
def X(rng):
    X = rng.standard_normal((60, 6))
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def learner(kernel=KERNEL, m=5, **changes):
    """A learner; the number of anchors and other rules may be among the changes."""
    rules = {"budget": 100, "admission": Admission(n_first=8)}
    rules |= {name: changes.pop(name) for name in RULES if name in changes}
    budget = Budget(rules.pop("budget"), **rules)
    settings = {"coder": EXACT, "budget": budget, "random_state": 0}
    return BudgetKernelDL(kernel, m, **(settings | changes))


def lasso_code(D, x):  # D: (m, p)
    """½‖x − Dᵀα‖² + λ‖α‖₁ by scikit-learn."""
    exact = {"tol": 1e-12, "max_iter": 10**6, "fit_intercept": False}
    return SklearnLasso(ALPHA / len(x), **exact).fit(D.T, x).coef_


# the gradient steps


@pytest.mark.parametrize("admission", [Admission(8), Coherence(0.0, n_first=8)])
def test_feature_space_step_is_the_explicit_one(admission, X):
    """Eq. (15) with the linear kernel is eq. (10): D ← (1 − μρ)D + ρ(x − Dα)αᵀ.

    So it is with samples that are not admitted: eight anchors span all six dimensions.
    """
    update = StochasticGradient("feature", step=0.05, penalty=0.1, guard=False)
    found = learner(Linear(), update=update, admission=admission).partial_fit(X)
    start, rho, mu = found.stock_.start, 0.05, 0.1
    D = start.T @ X[:8]  # (m, p)
    for x in X[8:]:
        code = lasso_code(D, x)
        D = (1 - mu * rho) * D + rho * np.outer(code, x - code @ D)
    np.testing.assert_allclose(found.coefs_ @ found.anchors_, D, atol=1e-8)


def test_rejected_samples_are_projected_on_the_anchors(X):
    """D ← (1 − μρ)D + ρ(Pφ(x) − Dα)αᵀ over anchors that span a part of the space."""
    update = StochasticGradient("feature", step=0.05, penalty=0.1, guard=False)
    one = learner(update=update, admission=Coherence(0.0, n_first=8))
    before = one.partial_fit(X[:8]).coefs_.T.copy()
    code = one.transform(X[30:31])[0]
    inside = np.linalg.solve(KERNEL(X[:8]), KERNEL(X[:8], X[30:31])[:, 0])
    expected = (1 - 0.1 * 0.05) * before
    expected += 0.05 * np.outer(inside - before @ code, code)
    after = one.partial_fit(X[30:31]).coefs_.T
    np.testing.assert_allclose(after, expected, atol=1e-9)


def test_rejected_samples_can_be_skipped(X):
    update = StochasticGradient(on_reject="skip")
    one = learner(update=update, admission=Coherence(0.0, n_first=8))
    first = one.partial_fit(X[:8]).coefs_.copy()
    np.testing.assert_array_equal(one.partial_fit(X[8:]).coefs_, first)


def test_the_two_spaces_agree_where_the_matrix_is_the_identity():
    """Orthonormal anchors under the linear kernel: equal steps, eqs. (15) and (20)."""
    rows = np.vstack([np.eye(6), np.eye(6)[::-1]])
    found = [
        learner(Linear(), update=update, admission=Admission(3)).partial_fit(rows)
        for update in ("parameter", "feature")
    ]
    np.testing.assert_allclose(*[each.coefs_ for each in found], atol=1e-12)


def cost(K, row, own, coefs, mu):
    """min over α of ½‖φ(x) − Dα‖² + λ‖α‖₁ + ½μ‖D‖² as a function of Ω."""
    gram, corr = coefs.T @ K @ coefs, row @ coefs
    code = np.zeros(len(gram))
    for _ in range(5000):  # coordinate descent
        for j in range(len(gram)):
            left = corr[j] - gram[j] @ code + gram[j, j] * code[j]
            code[j] = np.sign(left) * max(abs(left) - ALPHA, 0) / gram[j, j]
    fit = 0.5 * (own - 2 * corr @ code + code @ gram @ code)
    return fit + ALPHA * np.abs(code).sum() + 0.5 * mu * np.trace(gram)


def test_parameter_space_step_goes_down_the_gradient(X):
    """Eq. (19) against finite differences; codes move, the envelope theorem holds."""
    rho, mu, x = 1e-3, 0.1, X[20:21]
    update = StochasticGradient("parameter", step=rho, penalty=mu, guard=False)
    only_first = Coherence(0.0, n_first=8)
    first = learner(update=update, admission=only_first).partial_fit(X[:8])
    before = first.coefs_.T.copy()
    after = first.partial_fit(x).coefs_.T
    K, row, own = KERNEL(X[:8]), KERNEL(x, X[:8])[0], KERNEL.diag(x)[0]
    for place in [(0, 0), (3, 2), (7, 4), (5, 1)]:
        shift = np.zeros_like(before)
        shift[place] = 1e-5
        ahead, behind = (cost(K, row, own, before + s * shift, mu) for s in (1, -1))
        slope = (ahead - behind) / 2e-5
        assert (before - after)[place] / rho == pytest.approx(slope, rel=1e-4, abs=1e-7)


def test_parameter_gradient_is_the_matrix_times_the_feature_one(X):
    steps = {}
    for space in ("parameter", "feature"):
        update = StochasticGradient(space, step=1e-3, guard=False)
        first = learner(update=update).partial_fit(X[:8])
        before = np.vstack([first.coefs_.T, np.zeros((1, 5))])
        steps[space] = first.partial_fit(X[8:9]).coefs_.T - before
    K = KERNEL(X[:9])
    np.testing.assert_allclose(steps["parameter"], K @ steps["feature"], atol=1e-9)


def test_nothing_comes_of_zero(X):
    found = learner(init=np.zeros((8, 5)), max_iter=2).fit(X)
    assert not found.coefs_.any()


def test_units_of_the_kernel_do_not_matter(X):
    """κ → sκ, λ → sλ, ρ → ρ/s leaves Ω as it is."""
    coefs = []
    for s in (1.0, 4.0):
        update = StochasticGradient(step=0.02 / s)
        coder = Lasso(s * ALPHA, max_iter=10_000, tol=1e-12)
        found = learner(s * KERNEL, coder=coder, update=update, max_iter=2).fit(X)
        coefs.append(found.coefs_)
    # entries near zero carry the rounding of the others
    np.testing.assert_allclose(*coefs, rtol=1e-7, atol=1e-9)


# admission


def coherences(kernel, Z):
    K = kernel(Z)
    size = np.sqrt(np.diagonal(K))
    return np.abs(K / np.outer(size, size) - np.eye(len(Z)))


def test_anchors_are_not_coherent(X):
    found = learner(admission=Coherence(0.5, n_first=3)).fit(X)
    late = found.anchors_[3:]
    assert 3 < len(found.anchors_) < len(X)
    assert coherences(KERNEL, late).max() < 0.5


def test_admitted_set_depends_on_coherence_alone(X):
    sets = [
        learner(admission=Coherence(0.6, n_first=3), **changes).partial_fit(X).anchors_
        for changes in (
            {},
            {"coder": Lasso(0.5)},
            {"update": StochasticGradient(step=1e-4, penalty=3.0)},
            {"random_state": 7},
        )
    ]
    assert all(np.array_equal(sets[0], other) for other in sets[1:])


@pytest.mark.parametrize("half", [False, True])
def test_cost_admits_what_is_badly_represented(half, X):
    """Eq. (22), sample by sample."""
    rule = ReconstructionCost(2.0, half=half, n_first=8)
    stream, admitted = learner(m=20, admission=rule).partial_fit(X[:8]), []
    for x in X[8:, None]:
        error, size = stream.reconstruction_error(x), len(stream.anchors_)
        admitted.append(len(stream.partial_fit(x).anchors_) > size)
        assert admitted[-1] == (error > (4.0 if half else 2.0))
    assert 0 < sum(admitted) < len(admitted)


def test_no_sample_is_stored_twice(X):
    twice = np.repeat(X[:20], 2, axis=0)
    assert len(learner(max_iter=3).fit(twice).anchors_) == 20


@pytest.mark.parametrize("update", ["parameter", "feature"])
@pytest.mark.parametrize("rule", [Admission, ReconstructionCost])
def test_samples_are_stored_again_where_table_one_does(rule, update, X):
    """With (22) alone a sample that is badly represented comes in on each pass."""
    params = {"threshold": 0.0} if rule is ReconstructionCost else {}
    rule = rule(n_first=8, repeats=True, **params)
    found = learner(admission=rule, update=update, max_iter=2).fit(X[:20])
    assert len(found.anchors_) == 40
    assert len(np.unique(found.anchors_, axis=0)) == 20
    assert np.isfinite(found.coefs_).all()


def span_gap(K, row, own):
    return own - row @ np.linalg.lstsq(K, row, rcond=None)[0]


CRITERIA = {
    "distance": (
        FeatureDistance(2.0, n_first=8),
        lambda K, row, own: (own + np.diag(K) - 2 * row).min() > 4.0,
    ),
    "babel": (
        BabelMeasure(2.5, n_first=8),
        lambda K, row, own: (np.abs(row) / np.sqrt(np.diag(K) * own)).sum() < 2.5,
    ),
    "dependence": (
        LinearDependence(2.0, n_first=8),
        lambda K, row, own: span_gap(K, row, own) > 2.0,
    ),
}


@pytest.mark.parametrize("loops", ["reference", "numba"])
@pytest.mark.parametrize("name", CRITERIA)
def test_further_criteria_of_admission(name, loops, X, tmp_path):
    """Section III-A, sample by sample."""
    rule, admits = CRITERIA[name]
    with options(loops=loops):
        stream, admitted = learner(admission=rule).partial_fit(X[:8]), []
        for x in X[8:, None]:
            Z = stream.anchors_
            row, own = KERNEL(x, Z)[0], KERNEL.diag(x)[0]
            stream.partial_fit(x)
            admitted.append(len(stream.anchors_) > len(Z))
            assert admitted[-1] == admits(KERNEL(Z), row, own)
        assert 0 < sum(admitted) < len(admitted)
        before = len(stream.anchors_)
        assert len(stream.partial_fit(X).anchors_) == before  # none of them again
    save(stream, tmp_path / "model")
    assert load(tmp_path / "model").budget.admission.threshold == rule.threshold
    by_name = as_admission(name)
    assert type(by_name) is type(rule)


# the budget


@pytest.mark.parametrize("pruning", ["row-norm", "error", "merge"])
def test_never_above_the_budget(pruning, X):
    found = learner(budget=12, pruning=pruning, max_iter=3).fit(X)
    assert found.anchors_.shape == (12, 6)
    np.testing.assert_allclose(found.stock_.matrix, KERNEL(found.anchors_), atol=1e-12)


def test_the_smallest_row_goes(X):
    full = learner(budget=13).partial_fit(X[:13])
    tight = learner(budget=12).partial_fit(X[:13])
    smallest = np.linalg.norm(full.coefs_, axis=0).argmin()
    kept = np.delete(full.anchors_, smallest, axis=0)
    assert {tuple(z) for z in tight.anchors_} == {tuple(z) for z in kept}


def test_pruning_by_error_changes_the_atoms_least(X):
    """Whatever anchor goes, its projection on the others stays."""
    full = learner(budget=13).partial_fit(X[:13])
    tight = learner(budget=12, pruning="error").partial_fit(X[:13])
    K, lost = KERNEL(X[:13]), []
    for i in range(13):
        rest = np.delete(np.arange(13), i)
        part = np.linalg.solve(K[np.ix_(rest, rest)], K[rest, i])
        gap = K[i, i] - K[i, rest] @ part
        lost.append(gap * (full.coefs_[:, i] ** 2).sum())
    kept = np.delete(full.anchors_, np.argmin(lost), axis=0)
    assert {tuple(z) for z in tight.anchors_} == {tuple(z) for z in kept}


@pytest.mark.parametrize("pruning", ["row-norm", "error", "merge"])
@pytest.mark.parametrize("space", ["parameter", "feature"])
@pytest.mark.parametrize("coder", [EXACT, OMP(2)], ids=["lasso", "omp"])
def test_fast_loop_does_what_the_plain_one_does(pruning, space, coder, X):
    changes = {"coder": coder, "budget": 20, "pruning": pruning, "update": space}
    found = []
    for loops in ("reference", "numba"):
        with options(loops=loops):
            found.append(learner(**changes, max_iter=2).fit(X))
    np.testing.assert_array_equal(*[each.anchors_ for each in found])
    np.testing.assert_allclose(*[each.coefs_ for each in found], atol=1e-8)
    assert found[0].history_["cost"] == pytest.approx(found[1].history_["cost"])


# steps


def test_schedules():
    n = np.array([1, 2000, 10_000])
    np.testing.assert_allclose(DecayingStep()(n), [0.01 / 1.001, 0.01 / 3, 0.01 / 3])
    np.testing.assert_allclose(RootStep(0.1, 100)(n), 0.1 / np.sqrt(1 + n / 100))
    with pytest.raises(ValueError, match="'first'"):
        DecayingStep(first=-1.0)(n)


@pytest.mark.parametrize("space", ["parameter", "feature"])
def test_a_guarded_step_ends_little_past_the_minimum(space, X):
    """However long it was to be, so that the cost of the sample, its code kept, falls.

    The minimum along the step is at 1/1.8 of it.
    """
    x, mu, after = X[20:21], 0.1, {}
    K, row, own = KERNEL(X[:8]), KERNEL(x, X[:8])[0], KERNEL.diag(x)[0]
    for step in (1e-3, 100.0):
        update = StochasticGradient(space, step=step, penalty=mu)
        first = learner(update=update, admission=Coherence(0.0, 8)).partial_fit(X[:8])
        before, code = first.coefs_.T.copy(), first.transform(x)[0]
        after[step] = first.partial_fit(x).coefs_.T

    def kept_cost(coefs):
        gram = coefs.T @ K @ coefs
        fit = own - 2 * row @ coefs @ code + code @ gram @ code
        return 0.5 * (fit + mu * np.trace(gram))

    short, long = (after[step] - before for step in (1e-3, 100.0))
    factor = np.vdot(short, long) / np.vdot(short, short)
    np.testing.assert_allclose(long, factor * short, atol=1e-9)  # the same direction
    best = kept_cost(before + long / 1.8)
    assert kept_cost(before) > kept_cost(after[100.0]) > best
    assert all(kept_cost(before + t * long / 1.8) > best for t in (0.99, 1.01))


def test_without_the_guard_long_steps_grow_and_are_warned_of(X):
    assert np.isfinite(learner(update=StochasticGradient(step=5.0)).fit(X).coefs_).all()
    wild = learner(update=StochasticGradient(step=5.0, guard=False), max_iter=5)
    with (
        pytest.raises(ValueError, match="guard=True"),
        pytest.warns(UserWarning, match="steps were too long"),
        np.errstate(all="ignore"),
    ):
        wild.fit(X)


# atoms that die out


def turning(n_blocks, rng):
    """Blocks around a direction that turns by a half circle."""
    for angle in np.linspace(0, np.pi, n_blocks):
        middle = 3 * np.array([np.cos(angle), np.sin(angle), 0])
        yield middle + 0.5 * rng.standard_normal((50, 3))


@pytest.mark.parametrize("space", ["parameter", "feature"])
def test_idle_atoms_begin_anew(space):
    """Without patience most atoms are left behind where the data were."""
    used, errors = {}, {}
    for patience in (None, 100):
        update = StochasticGradient(space, step=0.05, patience=patience)
        budget = Budget(30, update=update)
        found = BudgetKernelDL("rbf:1", 12, budget=budget, random_state=0)
        for block in turning(40, np.random.default_rng(0)):
            found.partial_fit(block)
        codes = found.transform(block)
        used[patience] = int((codes != 0).any(axis=0).sum())
        errors[patience] = found.reconstruction_error(block)
        assert (found.stock_.idle > 100).sum() == (0 if patience else 12 - used[None])
    assert used[100] > used[None] + 3
    assert errors[100] < 0.8 * errors[None]


def test_an_idle_atom_becomes_the_newest_anchor(X):
    """As long as atoms in use are, all others left as the step has made them."""
    keys = {"admission": Coherence(1.0, n_first=8)}
    first = learner(update=StochasticGradient(step=1e-13), **keys).partial_fit(X[:8])
    x = X[20:21]
    before, atom = first.coefs_.copy(), int(np.abs(first.transform(x)).argmin())
    assert first.transform(x)[0, atom] == 0  # it stays idle
    first.stock_.idle[atom] = 50
    first.set_params(budget__update=StochasticGradient(step=1e-13, patience=10))
    after = first.partial_fit(x).coefs_
    others = np.arange(len(before)) != atom
    np.testing.assert_allclose(after[others, :8], before[others], atol=1e-6)
    np.testing.assert_array_equal(after[atom, :8], 0)
    np.testing.assert_array_equal(first.anchors_[8:], x)
    norms = np.diagonal(first.dictionary_.gram())
    assert norms[atom] == pytest.approx(norms[others].mean(), rel=1e-3)
    assert first.stock_.idle[atom] == 0


# streams


@pytest.mark.rounding
def test_one_by_one_is_the_same_as_blocks(X):
    whole = learner(budget=15).partial_fit(X)
    pieces, singles = learner(budget=15), learner(budget=15)
    for begin in range(0, 60, 7):
        pieces.partial_fit(X[begin : begin + 7])
    for i in range(60):
        singles.partial_fit(X[i : i + 1])
    for other in (pieces, singles):
        np.testing.assert_array_equal(other.anchors_, whole.anchors_)
        np.testing.assert_allclose(other.coefs_, whole.coefs_, atol=1e-10)
        assert other.n_samples_seen_ == 60


def test_libraries_agree(xp, X):
    plain = learner(budget=15, max_iter=2).fit(X)
    found = learner(budget=15, max_iter=2).fit(xp.asarray(X))
    np.testing.assert_allclose(xp.to_numpy(found.coefs_), plain.coefs_, atol=1e-9)
    codes = xp.to_numpy(found.transform(xp.asarray(X)))
    np.testing.assert_allclose(codes, plain.transform(X), atol=1e-6)


def test_single_precision_stays_single(xp, X):
    rows = xp.asarray(X.astype(np.float32))
    found = learner(budget=15, pruning="error").fit(rows)
    stock = found.stock_
    for part in (found.anchors_, found.coefs_, stock.matrix, found.transform(rows)):
        assert xp.to_numpy(part).dtype == np.float32
    assert xp.to_numpy(stock.inverse).dtype == np.float64  # of a near-singular matrix
    later = found.partial_fit(xp.asarray(X))  # float64 after float32
    assert xp.to_numpy(later.coefs_).dtype == np.float32


def test_learning_lowers_the_cost():
    X = datasets.unit_norm(datasets.load("digits").X_train)
    found = BudgetKernelDL("poly:4,coef0=1", 20, budget=60, max_iter=5, random_state=0)
    history = found.fit(X).history_
    assert history["cost"][-1] < 0.8 * history["cost"][0]
    assert len(history["seconds"]) == found.n_iter_ == 5


def test_a_dictionary_per_class():
    digits = datasets.load("digits")
    X, X_test = map(datasets.unit_norm, (digits.X_train, digits.X_test))
    one = BudgetKernelDL("poly:4,coef0=1", 20, budget=40, random_state=0)
    model = ResidualClassifier(one).fit(X, digits.y_train)
    assert model.score(X_test, digits.y_test) > 0.9


def test_bad_input(X):
    with pytest.raises(ValueError, match="KernelKSVD"):
        learner("precomputed").fit(X)
    with pytest.raises(ValueError, match="at most budget=100"):
        learner(init=np.ones((4, 3))).fit(X)
    with pytest.raises(ValueError, match="'threshold'"):
        learner(admission=FeatureDistance(-1.0)).fit(X)
    with pytest.raises(ValueError, match="'repeats'"):
        learner(admission=Admission(repeats="often")).fit(X)
    with pytest.raises(ValueError, match="no non-zero samples"):
        learner(Linear()).partial_fit(np.zeros((3, 6)))


def test_atoms_on_a_budget_of_one_anchor_have_unit_norm(rng):
    model = BudgetKernelDL(
        "poly:2", 5, n_nonzero_coefs=1, budget=1, max_iter=2, random_state=39
    )
    model.fit(np.abs(rng.standard_normal((8, 3))))
    coefs, anchors = model.dictionary_.coefs, model.dictionary_.anchors
    squares = np.diag(coefs @ model.kernel_(anchors) @ coefs.T)
    np.testing.assert_allclose(squares, 1, atol=1e-3)


def test_fewer_samples_near_the_anchors_than_atoms():
    far = np.array([[0.0, 0.0], [0.1, 0.0], [1e3, 0.0]])
    model = ReducedKernelDL("rbf:1", 3, anchors=far[:2], n_nonzero_coefs=1, max_iter=2)
    with pytest.warns(UserWarning, match="n_components=3 is more than the 2"):
        model.fit(far)
    assert model.dictionary_.n_atoms == 2


@pytest.mark.parametrize("loops", ["reference", "numba"])
def test_the_inverse_over_dependent_anchors_stays_finite(loops, rng):
    line = 500 * rng.standard_normal((60, 1)) * rng.standard_normal(5)
    budget = Budget(update="feature", pruning="merge")
    model = BudgetKernelDL("rbf:1000", 3, budget=budget)
    with options(loops=loops):
        model.set_params(max_iter=1, random_state=0).fit(line)
    stock = model.stock_
    jittered = stock.matrix + 1.5e-8 * np.eye(len(stock))
    error = jittered @ stock.inverse @ np.ones(len(stock)) - 1
    assert len(stock) > 15 and np.abs(error).max() < 0.01
