"""Reduced kernel dictionary learning against exact, naive and numerical forms."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest

import kernlets
from kernlets import (
    KSVD,
    MOD,
    OMP,
    RBF,
    Anchors,
    Budget,
    BudgetKernelDL,
    Callable,
    KernelKSVD,
    Linear,
    Polynomial,
    ReducedKernelDL,
    UnitNorm,
    options,
)
from kernlets.coders import encode
from kernlets.contracts import Coded, SparseCodes
from kernlets.dictionaries import AnchoredDictionary
from kernlets.kernels import Normalized
from kernlets.learners.anchors import orient_atoms
from kernlets.updates import AnchorDescent, AnchoredUpdate, KSVDUpdate
from kernlets.updates.descent import (
    KernelTerm,
    LinearTerm,
    Objective,
    ObjectiveSum,
    OnSpheres,
)
from kernlets.updates.reduced import _with_all_slots

KERNELS = [RBF(1.5), Polynomial(3, coef0=1.0, scale=0.3)]
COMPOSED = [Normalized(Polynomial(2, coef0=0.5)), 0.5 * RBF(2.0) + Linear()]


@pytest.fixture
def X(rng):
    return rng.standard_normal((90, 6))


def trained(kernel, X, anchors, rng, n_atoms=7, width=2):
    """A dictionary over the anchors and the codes of the samples over it."""
    coefs = rng.standard_normal((n_atoms, len(anchors)))
    energies = kernel.diag(X)
    dictionary = AnchoredDictionary.over_anchors(
        kernel, X, energies, anchors, coefs
    ).with_unit_atoms()
    rows = np.arange(len(X))
    return dictionary, rows, encode(dictionary, OMP(width), rows)


def term_of(dictionary, codes):
    weights = codes.toarray() @ dictionary.coefs
    samples, energies = dictionary.samples, dictionary.energies
    return KernelTerm(dictionary.kernel, samples, energies, weights)


def naive_objective(kernel, X, D, A, Z):
    """Tr[K_YY − 2 K_YD A Z + ZᵀAᵀ K_DD A Z], as in the paper: A (n, p), Z (p, N)."""
    K_YD, K_DD = kernel(X, D), kernel(D)
    AZ = A @ Z
    return np.trace(kernel(X) - 2 * K_YD @ AZ + AZ.T @ K_DD @ AZ)


def central_differences(f, D, h=1e-5):
    slope = np.empty_like(D)
    for place in np.ndindex(D.shape):
        up, down = D.copy(), D.copy()
        up[place] += h
        down[place] -= h
        slope[place] = (f(up) - f(down)) / (2 * h)
    return slope


@pytest.mark.parametrize("kernel", [*KERNELS, *COMPOSED], ids=repr)
def test_gradient_is_that_of_the_naive_trace(kernel, X, rng):
    D = rng.standard_normal((9, 6))
    dictionary, _, codes = trained(kernel, X, D, rng)
    A, Z = dictionary.coefs.T, codes.toarray().T
    term = term_of(dictionary, codes)

    def naive(moved):
        return naive_objective(kernel, X, moved, A, Z)

    assert term.value(D) == pytest.approx(naive(D), rel=1e-10)
    expected = central_differences(naive, D)
    np.testing.assert_allclose(
        term.gradient(D), expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max()
    )


def test_gradient_is_that_of_the_paper_element_by_element(X, rng):
    """g_ij = Tr[A Z (Zᵀ Aᵀ ∂K_DD − 2 ∂K_YD)], matrices (6) and (7) written out."""
    kernel, D = RBF(gamma=0.1), rng.standard_normal((5, 6))
    dictionary, _, codes = trained(kernel, X, D, rng)
    AZ = dictionary.coefs.T @ codes.toarray().T
    slope = term_of(dictionary, codes).gradient(D)
    for j, i in np.ndindex(D.shape):
        dYD, dDD = np.zeros((len(X), 5)), np.zeros((5, 5))
        dYD[:, j] = -0.2 * kernel(X, D)[:, j] * (D[j, i] - X[:, i])
        change = -0.2 * kernel(D)[:, j] * (D[j, i] - D[:, i])
        dDD[:, j] += change
        dDD[j] += change
        assert slope[j, i] == pytest.approx(np.trace(AZ @ (AZ.T @ dDD - 2 * dYD)))


def test_gradient_is_autograd(X, rng):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    kernel, D = RBF(1.5), rng.standard_normal((9, 6))
    dictionary, _, codes = trained(kernel, X, D, rng)
    moving = torch.asarray(D).requires_grad_()
    W = torch.asarray(codes.toarray() @ dictionary.coefs)
    value = -2 * (W * kernel(torch.asarray(X), moving)).sum()
    (value + (W.T @ W * kernel(moving)).sum()).backward()
    slope = term_of(dictionary, codes).gradient(D)
    np.testing.assert_allclose(slope, moving.grad.numpy(), atol=1e-9)


def test_linear_term_is_the_weighted_residual(X, rng):
    D = 3 * rng.standard_normal((9, 6))
    term = LinearTerm(X, D, OMP(2), weight=0.7)
    norms = np.linalg.norm(D, axis=1)
    gram, corr = (D / norms[:, None]) @ (D / norms[:, None]).T, X @ (D.T / norms)
    codes = OMP(2).solve(gram, corr, (X**2).sum(1)).toarray() / norms

    def naive(moved):
        return 0.7 * ((X - codes @ moved) ** 2).sum()

    for place in (D, D + 0.1):
        assert term.value(place) == pytest.approx(naive(place))
    expected = central_differences(naive, D)
    np.testing.assert_allclose(term.gradient(D), expected, rtol=1e-6, atol=1e-6)


def test_published_steps_are_plain_gradient_steps(X, rng):
    dictionary, _, codes = trained(KERNELS[0], X, X[:9], rng)
    term, D = term_of(dictionary, codes), X[:9]
    for _ in range(3):
        D = D - 0.01 * term.gradient(D)
    found = AnchorDescent(n_steps=3, rate=0.01).run(term, X[:9])
    np.testing.assert_allclose(found, D)
    with pytest.raises(ValueError, match="n_steps"):
        AnchorDescent(n_steps=0).run(term, X[:9])


def test_step_of_the_mixed_term_is_the_printed_one(X, rng):
    """d ← d − γ(g − e) with e = (Y − DX)Xᵀ: half of the gradient of eq. (8)."""
    kernel, D, rate = KERNELS[0], X[:9] + 0.1, 1e-3
    dictionary, rows, codes = trained(kernel, X, D, rng)
    linear = LinearTerm(X, D, OMP(2), weight=1.0)
    e = linear.cross - linear.codes_gram @ D
    g = term_of(dictionary, codes).gradient(D)
    for linear_rate, printed in ((rate / 2, g - e), (None, g - 2 * e)):
        descent = AnchorDescent(1, rate, linear_rate=linear_rate)
        update = AnchoredUpdate(descent=descent, linear_weight=1.0, linear_coder=OMP(2))
        coded = Coded(rows, codes)
        moved = update._move_anchors(dictionary, coded, descent)
        np.testing.assert_allclose(moved.anchors, D - rate * printed, atol=1e-12)
        error = linear.error(moved.anchors)  # of (8), whatever the rate
        assert moved.linear_errors[-1] == pytest.approx(error)


def test_guard_halves_steps_that_raise_the_objective(X, rng):
    dictionary, _, codes = trained(KERNELS[0], X, X[:9], rng)
    term, D = term_of(dictionary, codes), X[:9]
    slope, start = term.gradient(D), term.value(D)
    rate = 1e-3
    while term.value(D - rate * slope) <= start:
        rate *= 2
    guarded = AnchorDescent(1, 4 * rate, guard=True).run(term, D)
    assert term.value(guarded) <= start < term.value(D - 4 * rate * slope)
    halved = [D - 4 * rate / 2**k * slope for k in range(12)]
    lower = next(each for each in halved if term.value(each) <= start)
    np.testing.assert_allclose(guarded, lower)
    small = AnchorDescent(1, rate / 1024, guard=True).run(term, D)
    np.testing.assert_allclose(small, D - rate / 1024 * slope)


def test_guard_keeps_anchors_that_no_step_improves(X):
    class Rising(Objective):
        def value(self, anchors):
            return float(np.abs(anchors - X[:3]).sum())  # least where it starts

        def gradient(self, anchors):
            return np.ones_like(anchors)

    found = AnchorDescent(2, 0.5, guard=True).run(Rising(), X[:3])
    np.testing.assert_array_equal(found, X[:3])


def test_gradient_on_spheres_is_that_of_finite_differences(X, rng):
    D = 2 * rng.standard_normal((5, 6))
    dictionary, _, codes = trained(KERNELS[0], X, D, rng)
    term = OnSpheres(term_of(dictionary, codes))
    expected = central_differences(term.value, D)
    np.testing.assert_allclose(term.gradient(D), expected, rtol=1e-6, atol=1e-6)
    inside = (term.gradient(D) * D).sum(axis=1)
    np.testing.assert_allclose(inside, 0, atol=1e-9)  # tangent


@pytest.mark.parametrize("rate", [None, 1e-3], ids=["line search", "plain"])
@pytest.mark.parametrize("weight", [0.0, 1.0])
def test_anchors_of_norm_one_stay_so_and_improve(rate, weight, X):
    descent = AnchorDescent(3, rate, unit_norm=True, guard=rate is not None)
    model = ReducedKernelDL(
        RBF(1.5),
        8,
        n_nonzero_coefs=2,
        anchors=Anchors(12, descent=descent, linear_weight=weight),
        random_state=0,
    ).fit(X)
    np.testing.assert_allclose(np.linalg.norm(model.anchors_, axis=1), 1)
    assert model.history_["objective"][-1] < model.history_["objective"][0]


def test_more_anchors_than_signals(X):
    few = X[:20]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # not all of them are independent
        learned = ReducedKernelDL.rkdl_d(RBF(2.0), n_anchors=30, random_state=0)
        given = ReducedKernelDL(RBF(2.0), 5, anchors=X[:40], random_state=0)
        assert len(learned.fit(few).anchors_) == 30
        assert len(given.fit(few).anchors_) == 40
    exact = ReducedKernelDL(RBF(2.0), 5, anchors=few, init=range(5), random_state=0)
    more = ReducedKernelDL(RBF(2.0), 5, anchors=X, init=range(5), random_state=0)
    paths = [model.fit(few).history_["objective"] for model in (exact, more)]
    np.testing.assert_allclose(*paths, rtol=1e-6)  # φ of the signals spans them all


def test_random_combinations_as_first_atoms(X):
    model = ReducedKernelDL(
        RBF(2.0), 6, anchors=10, init="normal", max_iter=1, random_state=0
    ).fit(X)
    assert model.coefs_.shape == (6, 10)
    different = model.set_params(init="samples").fit(X).history_["objective"]
    again = model.set_params(init="normal").fit(X).history_["objective"]
    assert again != different


def test_line_search_goes_down_whatever_the_unit_of_the_data(X, rng):
    def path(scale):
        samples = scale * X
        kernel, first = RBF(1.5 * scale), samples[:9]
        again = np.random.default_rng(0)
        dictionary, _, codes = trained(kernel, samples, first, again)
        term, D, values = term_of(dictionary, codes), first, []
        for _ in range(6):
            values.append(term.value(D))
            D = AnchorDescent(n_steps=3).run(term, D)
        return values

    values = path(1.0)
    assert (np.diff(values) < 0).all()
    np.testing.assert_allclose(path(1e-3), values, rtol=1e-6)
    np.testing.assert_allclose(path(1e3), values, rtol=1e-6)


def naive_sweep(K_DD, K_YD, A, Z, order, restrict):
    """Algorithm 1 with the sign of eq. (4) put right, in the paper's shapes."""
    A, Z = A.copy(), Z.copy()
    for j in order:
        users = np.flatnonzero(Z[j]) if restrict else np.arange(Z.shape[1])
        if not Z[j].any():
            continue
        others = np.delete(np.arange(len(Z)), j)
        R = A[:, others] @ Z[np.ix_(others, users)]
        z = Z[j, users]
        a = (np.linalg.solve(K_DD, K_YD[users].T) - R) @ z / (z @ z)
        A[:, j] = a / np.sqrt(a @ K_DD @ a)
        Z[j, users] = (K_YD[users] - R.T @ K_DD) @ A[:, j]
    return A, Z


@pytest.mark.parametrize("restrict", [True, False])
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_update_is_algorithm_one(kernel, restrict, X, rng):
    D = X[:9] + 0.1
    dictionary, rows, codes = trained(kernel, X, D, rng)
    A, Z = dictionary.coefs.T, codes.toarray().T
    before = naive_objective(kernel, X, D, A, Z)
    order = np.random.default_rng(5).permutation(7)
    A, Z = naive_sweep(kernel(D), kernel(X, D), A, Z, order, restrict)
    update = AnchoredUpdate(restrict, min_uses=0, max_coherence=2)
    step = update.step(dictionary, Coded(rows, codes), np.random.default_rng(5))
    np.testing.assert_allclose(step.dictionary.coefs.T, A, atol=1e-8)
    assert step.error == pytest.approx(naive_objective(kernel, X, D, A, Z))
    assert step.error < before
    assert ((Z != 0).sum(0) <= 2).all() == restrict


@pytest.mark.parametrize("weight", [0.0, 2.0])
def test_update_with_moving_anchors_reports_its_objective(weight, X, rng):
    kernel = KERNELS[0]
    dictionary, rows, codes = trained(kernel, X, X[:9], rng)
    fixed = AnchoredUpdate(min_uses=0, max_coherence=2)
    moving = AnchoredUpdate(
        descent=AnchorDescent(),
        linear_weight=weight,
        linear_coder=OMP(2),
        min_uses=0,
        max_coherence=2,
    )
    still, moved = (
        update.step(dictionary, Coded(rows, codes), np.random.default_rng(5))
        for update in (fixed, moving)
    )
    assert (moved.error < still.error) or weight
    assert len(moved.dictionary.linear_errors) == (weight > 0)
    np.testing.assert_allclose(np.diag(moved.dictionary.gram()), 1)
    A = moved.dictionary.coefs
    np.testing.assert_allclose(
        np.diag(A @ kernel(moved.dictionary.anchors) @ A.T), 1, rtol=1e-9
    )


@pytest.mark.parametrize("kernel", [RBF(1.5), Polynomial(2, coef0=1.0)], ids=repr)
@pytest.mark.filterwarnings("ignore:φ of the")  # 90 anchors, 28 dimensions
def test_anchors_at_all_samples_are_exact_kernel_ksvd(kernel, X, rng):
    start = rng.permutation(90)[:12]
    common = {"init": start, "n_nonzero_coefs": 3, "random_state": 0, "max_iter": 8}
    exact = KernelKSVD(kernel, **common).fit(X)
    found = ReducedKernelDL(kernel, anchors=X, **common).fit(X)
    np.testing.assert_allclose(
        found.history_["objective"], exact.history_["objective"], rtol=1e-7
    )
    new = rng.standard_normal((20, 6))
    np.testing.assert_allclose(found.transform(new), exact.transform(new), atol=1e-6)
    np.testing.assert_allclose(
        found.reconstruction_error(new, per_sample=True),
        exact.reconstruction_error(new, per_sample=True),
        atol=1e-7,
    )


@pytest.mark.parametrize("optimize", [False, True])
@pytest.mark.parametrize("anchors", ["dictionary", "kmeans", "samples", MOD(15, 2)])
def test_invariants_of_a_fitted_model(anchors, optimize, X):
    kernel = RBF(1.5)
    model = ReducedKernelDL(
        kernel,
        8,
        n_nonzero_coefs=3,
        anchors=Anchors(15, anchors, descent=optimize),
        random_state=0,
    ).fit(X)
    A, D = model.coefs_, model.anchors_
    assert A.shape == (8, 15) and D.shape == (15, 6)
    np.testing.assert_allclose(np.diag(A @ kernel(D) @ A.T), 1, rtol=1e-9)
    assert ((model.transform(X) != 0).sum(1) <= 3).all()
    K_YD = kernel(X, D)
    bound = 1 - np.einsum("ij,ji->i", K_YD, np.linalg.solve(kernel(D), K_YD.T))
    errors = model.reconstruction_error(X, per_sample=True)
    assert (errors >= bound - 1e-9).all()
    assert model.history_["objective"][-1] >= bound.mean() - 1e-9
    codes = model.transform(X)
    naive = 1 - 2 * (codes * (K_YD @ A.T)).sum(1)
    naive += np.einsum("ij,jk,ik->i", codes, A @ kernel(D) @ A.T, codes)
    np.testing.assert_allclose(errors, naive, atol=1e-9)


def test_order_of_the_anchors_does_not_matter(X, rng):
    D = X[:20] + 0.1 * rng.standard_normal((20, 6))
    mixed = rng.permutation(20)
    common = {
        "n_nonzero_coefs": 2,
        "init": np.arange(30, 38),
        "random_state": 0,
    }
    descent = AnchorDescent(3, rate=1e-3)
    one, other = (
        ReducedKernelDL(
            "rbf:2", anchors=Anchors(start=start, descent=descent), **common
        )
        for start in (D, D[mixed])
    )
    one.fit(X), other.fit(X)
    np.testing.assert_allclose(other.anchors_, one.anchors_[mixed], atol=1e-9)
    np.testing.assert_allclose(other.coefs_, one.coefs_[:, mixed], atol=1e-6)
    np.testing.assert_allclose(other.transform(X), one.transform(X), atol=1e-7)


def test_anchors_that_coincide_are_left_out_with_a_warning(X, rng):
    D = X[:20]
    common = {"n_nonzero_coefs": 2, "init": np.arange(30, 38), "random_state": 0}
    plain = ReducedKernelDL("rbf:2", anchors=D, **common).fit(X)
    with pytest.warns(UserWarning, match=r"25 anchors spans 20.*n_anchors"):
        twice = ReducedKernelDL("rbf:2", anchors=[*D, *D[:5]], **common).fit(X)
    np.testing.assert_allclose(twice.transform(X), plain.transform(X), atol=1e-7)
    assert np.isfinite(twice.coefs_).all()


def test_no_warning_about_a_number_we_chose(X):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ReducedKernelDL("poly:2", 5, n_nonzero_coefs=2, random_state=0).fit(X)


def test_dense_codes_are_the_authors_reading(X):
    common = {"max_iter": 4, "random_state": 0}
    kept, dense = (
        ReducedKernelDL(
            "rbf:2",
            8,
            n_nonzero_coefs=2,
            anchors=Anchors(15, restrict=restrict),
            **common,
        )
        for restrict in (True, False)
    )
    kept.fit(X)
    dense.fit(X)
    assert dense.history_["objective"][0] < kept.history_["objective"][0]
    assert dense.history_["objective"][-1] < dense.reconstruction_error(X)


def test_mixed_objective_is_noted_and_pulls_the_anchors_to_the_samples(X):
    def fitted(weight):
        return ReducedKernelDL(
            RBF(2.0),
            8,
            n_nonzero_coefs=2,
            anchors=Anchors(start=KSVD(15, 2), descent=True, linear_weight=weight),
            random_state=0,
        ).fit(X)

    mixed, plain = fitted(5.0), fitted(0.0)
    assert "mixed" not in plain.history_
    history = mixed.history_
    linear = (np.array(history["mixed"]) - history["objective"]) / 5.0
    last = LinearTerm(X, mixed.anchors_, OMP(2), 1.0).error(mixed.anchors_) / len(X)
    other = LinearTerm(X, plain.anchors_, OMP(2), 1.0).error(plain.anchors_) / len(X)
    assert last < other
    assert linear[-1] == pytest.approx(last, rel=0.05)  # one more coding


def test_moving_anchors_lower_the_error(X):
    common = {"n_nonzero_coefs": 3, "random_state": 0}
    still = ReducedKernelDL("rbf:2", 8, anchors="samples:10", **common).fit(X)
    anchors = "samples:10,descent=True"
    moved = ReducedKernelDL("rbf:2", 8, anchors=anchors, **common).fit(X)
    assert moved.reconstruction_error(X) < 0.9 * still.reconstruction_error(X)


def test_facing_turns_and_stretches(rng):
    X = rng.standard_normal((50, 4)) + 2
    atoms = rng.standard_normal((6, 4))
    atoms /= np.linalg.norm(atoms, axis=1, keepdims=True)
    turned = orient_atoms(atoms, X)
    assert (turned @ X.mean(0) >= 0).all()
    np.testing.assert_allclose((turned**2).sum(1), (X**2).sum(1).mean())
    np.testing.assert_allclose(
        np.abs(turned @ atoms.T).max(1) ** 2, (X**2).sum(1).mean()
    )


def test_named_methods_have_the_published_settings():
    plain = ReducedKernelDL.rkdl_d(RBF(gamma=0.1), random_state=3)
    assert (plain.n_components, plain.n_nonzero_coefs, plain.max_iter) == (20, 4, 10)
    assert (plain.anchors.start.n_components, plain.anchors.start.n_nonzero_coefs) == (
        50,
        5,
    )
    assert not plain.anchors.descent and plain.random_state == 3
    assert plain.init == "mean" and plain.anchors.redraw and not plain.anchors.restrict
    moving = ReducedKernelDL.orkdl_d("rbf", rate=6e-4, n_components=10)
    half = AnchorDescent(3, 3e-4, one_by_one=True)
    assert repr(moving.anchors.descent) == repr(half)
    assert moving.n_components == 10 and moving.anchors.linear_weight == 0
    mixed = ReducedKernelDL.morkdl_d(rate=6e-4)
    assert mixed.anchors.linear_weight == 1
    assert repr(mixed.anchors.descent) == repr(half)


def test_published_anchors_move_one_by_one_along_half_of_the_gradient(X, rng):
    """Against the derivative of each column in turn, by differences of the value."""
    dictionary, rows, codes = trained(KERNELS[0], X, X[:4].astype(float), rng)
    linear = LinearTerm(X, X[:4], OMP(2), weight=1.0)
    term = ObjectiveSum(term_of(dictionary, codes), linear)
    rate, step = 1e-3, 1e-5
    D = X[:4].astype(float)
    for _ in range(2):
        for i in range(len(D)):
            slope = np.zeros(D.shape[1])
            for f in range(D.shape[1]):
                more, less = D.copy(), D.copy()
                more[i, f] += step
                less[i, f] -= step
                slope[f] = (term.value(more) - term.value(less)) / (2 * step)
            D[i] -= rate / 2 * slope
    found = AnchorDescent(2, rate / 2, one_by_one=True).run(term, X[:4].astype(float))
    np.testing.assert_allclose(found, D, atol=1e-6)
    assert not np.array_equal(found, X[:4])


def test_first_atoms_are_the_mean_and_random_directions(X):
    model = ReducedKernelDL(
        RBF(2.0), 6, anchors=Anchors(start=X[:9]), init="mean", random_state=0
    )
    model.kernel_ = RBF(2.0)  # as `fit` sets it
    weights = np.arange(len(X)) % 3 + 1.0
    start = model._first_dictionary(X, np.random.default_rng(0), weights)
    features = np.asarray(start.features)
    mean = np.average(features, axis=0, weights=weights)
    np.testing.assert_allclose(start.atoms[0], mean / np.linalg.norm(mean))
    np.testing.assert_allclose(np.linalg.norm(start.atoms, axis=1), 1)
    others = model.set_params(init="normal")._first_dictionary(
        X, np.random.default_rng(0), weights
    )
    np.testing.assert_allclose(start.atoms[1:], others.atoms[1:])


def test_unused_atoms_are_drawn_again(X, rng):
    dictionary, rows, codes = trained(KERNELS[0], X, X[:9], rng)
    unused = replace(codes, values=np.where(codes.indices == 1, 0.0, codes.values))
    update = AnchoredUpdate(restrict=False, min_uses=1, redraw=True)
    others_stay = AnchoredUpdate(restrict=False, min_uses=0, max_coherence=2.0)
    moved, plain = (
        each.step(dictionary, Coded(rows, unused), np.random.default_rng(0)).dictionary
        for each in (update, others_stay)
    )
    np.testing.assert_allclose(np.linalg.norm(moved.atoms, axis=1), 1)
    same = np.isclose(moved.atoms, plain.atoms).all(axis=1)
    assert not same[1] and same[np.arange(len(same)) != 1].all()
    np.testing.assert_allclose(plain.atoms[1], dictionary.atoms[1])
    plain = KSVD(5, 2, update=KSVDUpdate(min_uses=1, redraw=True), init="normal")
    atoms = plain.set_params(random_state=0).fit(X[:4]).components_
    np.testing.assert_allclose(np.linalg.norm(atoms, axis=1), 1)


def test_torch_moves_the_anchors_as_numpy_does(X):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    model = ReducedKernelDL(
        RBF(2.0),
        8,
        n_nonzero_coefs=2,
        anchors=Anchors(
            12, "samples", descent=AnchorDescent(3, rate=1e-3), linear_weight=0.5
        ),
        random_state=0,
    )
    with options(loops="reference"):
        expected = kernlets.ReducedKernelDL(**model.get_params(deep=False)).fit(X)
    found = model.fit(torch.asarray(X))
    assert isinstance(found.anchors_, torch.Tensor)
    np.testing.assert_allclose(found.anchors_.numpy(), expected.anchors_, atol=1e-9)
    np.testing.assert_allclose(
        found.history_["mixed"], expected.history_["mixed"], rtol=1e-9
    )


def test_float32_moves_in_float32(X):
    model = ReducedKernelDL(
        "rbf:2", 8, n_nonzero_coefs=2, anchors=Anchors(descent=True), random_state=0
    )
    single = model.fit(X.astype(np.float32)).history_["objective"]
    assert model.anchors_.dtype == model.coefs_.dtype == np.float32
    double = model.fit(X).history_["objective"]
    np.testing.assert_allclose(single[:2], double[:2], rtol=1e-3)


def moved_by(weight=0.0, **params):
    return Anchors(descent=AnchorDescent(**params), linear_weight=weight)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"kernel": "precomputed"}, "KernelKSVD"),
        (
            {
                "kernel": Callable(lambda a, b: a @ b.T),
                "anchors": Anchors(descent=True),
            },
            "differentiable",
        ),
        ({"anchors": Anchors(linear_weight=1.0)}, "set descent=True"),
        ({"anchors": moved_by(linear_rate=0.1)}, "set rate"),
        ({"anchors": moved_by(guard=True)}, "guard is about plain"),
        ({"anchors": moved_by(one_by_one=True)}, "one_by_one is about plain"),
        (
            {"anchors": moved_by(rate=0.1, guard=True, one_by_one=True)},
            "leave one_by_one out",
        ),
        ({"anchors": moved_by(rate=0.1, linear_rate=0.1)}, "set linear_weight"),
        ({"anchors": moved_by(1.0, rate=-1.0, linear_rate=0.1)}, "positive rate"),
        ({"anchors": "magic"}, "anchors"),
        ({"anchors": Anchors(5, np.ones((4, 6)))}, "n_anchors=5"),
        ({"anchors": np.ones((4, 5))}, "anchors has 5 columns"),
        ({"init": [0, 500]}, "init"),
        ({"init": [0.5, 1.0]}, "init"),
        ({"kernel": RBF(1e-3), "n_components": 20, "anchors": 5}, "wider kernel"),
    ],
    ids=lambda value: ",".join(value) if isinstance(value, dict) else value,
)
def test_bad_parameters_are_named(params, message, X):
    with pytest.raises(ValueError, match=message):
        ReducedKernelDL(**params, random_state=0).fit(X)


def test_saved_and_loaded(tmp_path, X):
    model = ReducedKernelDL.orkdl_d("rbf:2", 1e-4, n_anchors=12, random_state=0)
    model.set_params(n_components=8, n_nonzero_coefs=2).fit(X)
    kernlets.save(model, tmp_path / "model")
    again = kernlets.load(tmp_path / "model")
    np.testing.assert_array_equal(again.transform(X), model.transform(X))
    assert again.anchors.descent.rate == 5e-5 and again.anchors.redraw


def test_codes_of_all_atoms_keep_their_values(rng):
    codes = SparseCodes(np.array([[2, 0], [1, -1]]), np.array([[3.0, 4], [5, 0]]), 4)
    wide = _with_all_slots(codes)
    np.testing.assert_array_equal(wide.toarray(), codes.toarray())
    assert wide.width == 4


@pytest.mark.parametrize("kernel", ["chi2", "intersection"])
@pytest.mark.parametrize("rate", [None, 1e-3], ids=["line search", "plain"])
@pytest.mark.parametrize("anchors", ["dictionary", "samples"])
def test_anchors_of_histogram_kernels_stay_histograms(kernel, rate, anchors, rng):
    X = rng.random((60, 8)) * (rng.random((60, 8)) < 0.4)
    learner = ReducedKernelDL(
        kernel,
        6,
        n_nonzero_coefs=2,
        anchors=Anchors(12, anchors, descent=AnchorDescent(3, rate)),
        max_iter=3,
        random_state=0,
    ).fit(X)
    assert (learner.anchors_ >= 0).all()
    assert np.isfinite(learner.transform(X)).all()


def test_coefficients_over_dependent_anchors_stay_small():
    """With 20 anchors in three dimensions the norms were made of rounding errors."""
    budget = Budget(admission="cost", update="feature", pruning="error")
    for seed in (0, 5, 26):
        X = np.random.default_rng(seed).standard_normal((33, 3))
        model = BudgetKernelDL(
            "linear", 3, n_nonzero_coefs=1, max_iter=6, budget=budget, random_state=58
        )
        dictionary = model.fit(UnitNorm().fit_transform(X)).dictionary_
        assert len(dictionary.anchors) > 10
        assert np.abs(dictionary.coefs).sum(axis=1).max() < 1e6
        atoms = dictionary.coefs @ dictionary.anchors
        np.testing.assert_allclose((atoms**2).sum(axis=1), 1, atol=2e-4)


def test_coefficients_of_first_anchors_that_are_no_rows(rng):
    for init in (np.array(3), np.empty((0, 4))):
        with pytest.raises(ValueError, match="a row for each of the first anchors"):
            BudgetKernelDL("rbf:1", init=init).fit(rng.standard_normal((20, 3)))


@pytest.mark.parametrize("n", [np.int64(5), np.int32(5)])
def test_a_number_of_anchors_may_be_one_of_numpy(n, rng):
    model = ReducedKernelDL("rbf:1", 3, anchors=n).fit(rng.standard_normal((60, 4)))
    assert len(model.anchors_) == 5
