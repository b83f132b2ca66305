"""Formulas, parameters, composition and bad input of the kernels."""

from __future__ import annotations

import pickle
import tracemalloc
from math import exp, sqrt, tanh

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.gaussian_process import kernels as gp
from sklearn.metrics import pairwise
from sklearn.pipeline import make_pipeline

from kernlets import (
    KSVD,
    AdditiveChi2,
    BudgetKernelDL,
    Clipped,
    DictionaryOutlierDetector,
    FourierMap,
    IKAMap,
    KernelKSVD,
    KSADClassifier,
    LocalAlignment,
    NystroemMap,
    ReducedKernelDL,
    ResidualClassifier,
    Shifted,
    Squared,
    SRCClassifier,
    kernels,
    options,
)
from kernlets.kernels import (
    KERNELS,
    RBF,
    Callable,
    Chi2,
    Constant,
    Cosine,
    Intersection,
    Kernel,
    Laplacian,
    Linear,
    Matern,
    Normalized,
    Polynomial,
    Precomputed,
    Product,
    Radial,
    RationalQuadratic,
    Sigmoid,
    Sum,
    as_kernel,
    resolve,
)
from kernlets.kernels.dot import power

UNBOUND = [RBF(), Laplacian(), Matern(), RationalQuadratic()]


def dist(x, y):
    return sqrt(sum((a - b) ** 2 for a, b in zip(x, y, strict=True)))


def dot(x, y):
    return sum(a * b for a, b in zip(x, y, strict=True))


def l1(x, y):
    return sum(abs(a - b) for a, b in zip(x, y, strict=True))


def harmonic(a, b):
    return 2 * a * b / (a + b) if a + b else 0.0


def chi2(x, y):
    terms = ((a - b) ** 2 / (a + b) for a, b in zip(x, y, strict=True) if a + b)
    return sum(terms)


def matern52(x, y, scale):
    r = sqrt(5) * dist(x, y) / scale
    return (1 + r + r * r / 3) * exp(-r)


FORMULAS = [
    (Linear(), dot),
    (Polynomial(3, 0.5, scale=2.0), lambda x, y: (2 * dot(x, y) + 0.5) ** 3),
    (Polynomial(), lambda x, y: dot(x, y) ** 2),
    (Sigmoid(0.3, -0.1), lambda x, y: tanh(0.3 * dot(x, y) - 0.1)),
    (Cosine(), lambda x, y: dot(x, y) / sqrt(dot(x, x) * dot(y, y))),
    (RBF(sigma=1.5), lambda x, y: exp(-(dist(x, y) ** 2) / (2 * 1.5**2))),
    (RBF(gamma=0.7), lambda x, y: exp(-0.7 * dist(x, y) ** 2)),
    (Matern(0.9, 0.5), lambda x, y: exp(-dist(x, y) / 0.9)),
    (
        Matern(0.9, 1.5),
        lambda x, y: (
            (1 + sqrt(3) * dist(x, y) / 0.9) * exp(-sqrt(3) * dist(x, y) / 0.9)
        ),
    ),
    (Matern(0.9, 2.5), lambda x, y: matern52(x, y, 0.9)),
    (
        RationalQuadratic(1.1, 0.6),
        lambda x, y: (1 + dist(x, y) ** 2 / (2 * 0.6 * 1.1**2)) ** -0.6,
    ),
    (Laplacian(0.4), lambda x, y: exp(-0.4 * l1(x, y))),
    (Chi2(0.8), lambda x, y: exp(-0.8 * chi2(x, y))),
    (Intersection(), lambda x, y: sum(map(min, x, y))),
    (AdditiveChi2(), lambda x, y: sum(map(harmonic, x, y))),
]

SCIKIT_LEARN = [
    (Linear(), pairwise.linear_kernel),
    (RBF(), pairwise.rbf_kernel),
    (Laplacian(), pairwise.laplacian_kernel),
    (Sigmoid(), pairwise.sigmoid_kernel),
    (Cosine(), pairwise.cosine_similarity),
    (Chi2(), pairwise.chi2_kernel),
    (Polynomial(3, 1.0, scale=1 / 5), pairwise.polynomial_kernel),
    (Matern(0.7, 1.5), gp.Matern(0.7, nu=1.5)),
    (RationalQuadratic(0.7, 1.3), gp.RationalQuadratic(0.7, 1.3)),
]


def kernel_name(value):
    """Names without addresses of functions, which differ from process to process."""
    return repr(value)[:40] if isinstance(value, Kernel) else "formula"


@pytest.fixture
def pair(rng):
    X, Y = rng.uniform(size=(7, 5)), rng.uniform(size=(6, 5))
    X[0, :3] = Y[0, 1:4] = 0.0
    return X, Y


@pytest.mark.parametrize(("kernel", "formula"), FORMULAS, ids=kernel_name)
def test_formula(kernel, formula, pair, xp):
    X, Y = pair
    expected = [[formula(x, y) for y in Y] for x in X]
    K = xp.to_numpy(kernel(xp.asarray(X), xp.asarray(Y)))
    np.testing.assert_allclose(K, expected, rtol=1e-12, atol=1e-14)


def test_every_registered_kernel_has_a_formula_here():
    tested = {type(kernel) for kernel, _ in FORMULAS}
    of_rows = {kind for kind in KERNELS.values() if kind.takes == "rows"}
    assert of_rows - {Precomputed} <= tested


@pytest.mark.parametrize(("ours", "theirs"), SCIKIT_LEARN, ids=kernel_name)
def test_same_as_scikit_learn(ours, theirs, pair):
    X, Y = pair
    np.testing.assert_allclose(ours(X, Y), theirs(X, Y), rtol=1e-10)


def test_two_functions_make_a_radial_kernel(pair, rng):
    class Cauchy(Radial):
        def profile(self, s):
            return 1 / (1 + s)

        def slope(self, s):
            return -1 / (1 + s) ** 2

    X, Y = pair
    W = rng.normal(size=(7, 6))
    reference = RationalQuadratic(sqrt(0.5), alpha=1.0)
    np.testing.assert_allclose(Cauchy()(X, Y), reference(X, Y))
    np.testing.assert_allclose(Cauchy().diag(X), np.ones(7))
    np.testing.assert_allclose(Cauchy().pull(X, Y, W), reference.pull(X, Y, W))
    assert Cauchy().bound(X)(X).shape == (7, 7)


def test_bandwidth_from_the_data(rng, xp):
    data = rng.normal(size=(50, 4)) * [1.0, 2.0, 3.0, 4.0] + 10.0
    X, var = xp.asarray(data), data.var()
    assert RBF().bound(X).gamma == pytest.approx(1 / (4 * var))
    assert Matern().bound(X).length_scale == pytest.approx(sqrt(4 * var / 2))
    assert RationalQuadratic().bound(X).length_scale == pytest.approx(sqrt(2 * var))
    assert Laplacian().bound(X).gamma == pytest.approx(1 / (4 * sqrt(var)))
    assert Sigmoid().bound(X).scale == pytest.approx(1 / 4)


def test_bandwidth_does_not_depend_on_blocks_or_kind_of_rows(rng, tmp_path):
    X = rng.integers(0, 250, size=(300, 6)).astype(np.uint8)
    np.save(tmp_path / "X.npy", X)
    expected = pytest.approx(1 / (6 * X.var()))
    assert RBF().bound(np.load(tmp_path / "X.npy", mmap_mode="r")).gamma == expected
    assert RBF().bound(sparse.csr_array(X)).gamma == expected
    assert RBF().bound(X.tolist()).gamma == expected
    with options(block_rows=7):
        assert RBF().bound(X).gamma == expected
    assert RBF().bound(sparse.csr_array(np.full((3, 6), 0.1))).gamma == 1 / 6


@pytest.mark.parametrize("kernel", UNBOUND, ids=repr)
def test_binding_leaves_the_kernel_alone(kernel, pair):
    before = kernel.get_params()
    bound = kernel.bound(pair[0])
    assert kernel.get_params() == before and kernel.unset and not bound.unset
    assert type(bound) is type(kernel)


def test_far_from_the_origin_distances_survive_float32(rng):
    X = rng.normal(size=(30, 8))
    far = (X + 1000.0).astype(np.float32)
    exact = RBF(2.0)(far.astype(np.float64))
    np.testing.assert_allclose(RBF(2.0)(far), exact, atol=1e-5)
    np.testing.assert_allclose(RBF(2.0)(far[:9], far), exact[:9], atol=1e-5)


@pytest.mark.parametrize("exponent", range(10))
def test_power(exponent, rng, xp):
    base = rng.normal(size=(3, 4))
    result = xp.to_numpy(power(xp.asarray(base.copy()), exponent))
    np.testing.assert_allclose(result, base**exponent, rtol=1e-13)


@pytest.mark.parametrize(
    ("kernel", "matrices"),
    [
        (Polynomial(2, 1.0), 1.1),
        (RBF(1.0), 1.1),
        (Polynomial(3, 1.0), 2.1),
        (Matern(1.0, 2.5), 2.1),
        (2.0 * RBF(1.0) + 1, 1.1),
        (RBF(1.0) * Linear(), 2.1),
        (Normalized(Polynomial(2)), 1.1),
        (Laplacian(1.0), 1.5),
        (Intersection(), 1.5),
        (Chi2(), 1.5),
    ],
    ids=kernel_name,
)
def test_memory_in_units_of_the_result(kernel, matrices, rng):
    X, Y = rng.uniform(size=(4000, 4)), rng.uniform(size=(500, 4))
    tracemalloc.start()
    with options(block_rows=256, n_threads=1):
        kernel(X, Y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < matrices * 8 * 4000 * 500


# ---------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("kernel", "named"),
    [
        (RBF(sigma=-1.0), "sigma=-1.0"),
        (RBF(sigma=1e-200), "sigma=1e-200"),
        (RBF(gamma="scale"), "gamma='scale'"),
        (Laplacian(0.0), "gamma=0.0"),
        (Matern(1.0, nu=2.0), "nu=2.0"),
        (Matern(float("nan")), "length_scale=nan"),
        (RationalQuadratic(1.0, alpha=-1), "alpha=-1"),
        (Polynomial(0), "degree=0"),
        (Polynomial(2.5), "degree=2.5"),
        (Polynomial(2, coef0=-1.0), "coef0=-1.0"),
        (Polynomial(2, scale=0.0), "scale=0.0"),
        (Chi2(-1.0), "gamma=-1.0"),
        (Constant(-1.0), "value=-1.0"),
    ],
    ids=lambda k: str(k)[:40],
)
def test_bad_parameters_are_named(kernel, named, pair):
    with pytest.raises(ValueError) as error:
        kernel(pair[0])
    assert named in str(error.value)


def test_two_bandwidths_are_refused(pair):
    with pytest.raises(ValueError, match=r"sigma=1\.0 and gamma=2\.0"):
        RBF(sigma=1.0, gamma=2.0)
    with pytest.raises(ValueError, match="set one of them to None"):
        RBF(sigma=1.0).set_params(gamma=2.0)(pair[0])


@pytest.mark.parametrize("kernel", [Chi2(), Intersection()], ids=repr)
def test_negative_histograms_are_refused(kernel, pair, xp):
    X, Y = pair
    Y[2, 3] = -0.1
    with pytest.raises(ValueError, match="Y has negative values"):
        kernel(xp.asarray(X), xp.asarray(Y))


def test_overflow_is_an_error(rng, xp):
    X = xp.asarray(1e9 * rng.normal(size=(5, 3)).astype(np.float32))
    for kernel in (Polynomial(8), Polynomial(3) * Polynomial(3) + 1.0):
        with pytest.raises(ValueError, match=r"Polynomial.*scale them"):
            kernel.bound(X)
    with pytest.raises(ValueError, match="overflows"):
        RBF().bound(X * 1e15)
    if xp.name == "cuda":
        return  # each block of distances would have to wait for the answer
    with pytest.raises(ValueError, match="scale the data"):
        RBF(1.0)(X * 1e15)


def test_overflow_of_new_samples_is_an_error(rng):
    X = rng.normal(size=(5, 3))
    kernel = Polynomial(20).bound(X)
    with pytest.raises(ValueError, match="scale them"):
        kernel(1e20 * X, X)
    with pytest.raises(ValueError, match="scale them"):
        (Polynomial(10) * Polynomial(10))(1e12 * X)


def test_shapes_are_checked(pair):
    X, Y = pair
    with pytest.raises(ValueError, match="X has 5 features but Y has 4"):
        RBF()(X, Y[:, :4])
    with pytest.raises(ValueError, match="reshape"):
        Linear()(X[0])
    with pytest.raises(TypeError, match=r"X\.toarray"):
        Laplacian()(sparse.csr_array(X))
    with pytest.raises(TypeError, match="dense"):
        RBF().pull(sparse.csr_array(X), Y, np.ones((7, 6)))


# ------------------------------------------------------------- composition


def test_composition_identities(pair):
    X, Y = pair
    a, b = RBF(1.0), Polynomial(2, 1.0)
    np.testing.assert_allclose((a + b)(X, Y), a(X, Y) + b(X, Y))
    np.testing.assert_allclose((a * b)(X, Y), a(X, Y) * b(X, Y))
    np.testing.assert_allclose((3 * a)(X, Y), 3 * a(X, Y))
    np.testing.assert_allclose((1 + a)(X, Y), 1 + a(X, Y))
    np.testing.assert_allclose((2 * a + 1).diag(X), 2 * a.diag(X) + 1)
    np.testing.assert_allclose(Normalized(Linear())(X, Y), Cosine()(X, Y))
    np.testing.assert_allclose(Normalized(b).diag(X), 1.0)
    np.testing.assert_allclose(Normalized(5.0 * b)(X, Y), Normalized(b)(X, Y))
    poly = Linear() * Linear() + 2 * Linear() + 1.0
    np.testing.assert_allclose(poly(X, Y), Polynomial(2, 1.0)(X, Y))


def test_composites_of_sparse_rows(pair):
    X, Y = pair
    kernel = Normalized(2.0 * RBF(1.0) + Polynomial(2) * Linear())
    K = kernel(sparse.csr_array(X), sparse.csr_array(Y))
    np.testing.assert_allclose(K, kernel(X, Y))


def test_composites_reach_their_parameters(pair):
    kernel = 2.0 * RBF() + Normalized(Polynomial(2, 1.0))
    assert isinstance(kernel, Sum) and isinstance(kernel.first, Product)
    kernel.set_params(first__first__sigma=3.0, second__kernel__degree=4)
    again = pickle.loads(pickle.dumps(clone(kernel)))
    assert again.first.first.sigma == 3.0 and again.second.kernel.degree == 4
    np.testing.assert_array_equal(again(pair[0]), kernel(pair[0]))


def test_composites_bind_their_parts(pair):
    X, Y = pair
    kernel = Normalized(RBF() + Linear()) * Laplacian()
    bound = kernel.bound(X)
    assert kernel.first.kernel.first.unset and not bound.first.kernel.first.unset
    parts = Normalized(RBF().bound(X) + Linear()) * Laplacian().bound(X)
    np.testing.assert_array_equal(bound(X, Y), parts(X, Y))


def test_negative_energies_cannot_be_normalised(pair):
    with pytest.raises(ValueError, match="positive semi-definite"):
        Normalized(Sigmoid(1.0, coef0=-100.0))(pair[0])


def test_as_kernel():
    kernel = RBF()
    assert as_kernel(kernel) is kernel
    assert as_kernel(np.float32(2)).value == 2.0
    with pytest.raises(TypeError, match="'rbf'"):
        RBF() + "rbf"


# ------------------------------------------------------- functions, matrices


def shared_letters(x, y):
    return float(len(set(x) & set(y)))


WORDS = ["kernel", "lets", "atoms", "", "sets"]


@pytest.mark.parametrize("make", [list, lambda w: np.array(w, dtype=object), tuple])
def test_strings(make):
    words = make(WORDS)
    kernel = Callable(shared_letters, pairwise=True)
    expected = [[shared_letters(x, y) for y in WORDS] for x in WORDS]
    np.testing.assert_array_equal(kernel(words), expected)
    np.testing.assert_array_equal(kernel(words, words[1:3]), np.array(expected)[:, 1:3])
    np.testing.assert_array_equal(kernel.diag(words), np.diag(expected))
    some = kernel.take(words, np.array([3, 0]))
    np.testing.assert_array_equal(kernel(words, some), np.array(expected)[:, [3, 0]])
    composite = Normalized(kernel + 1.0)
    np.testing.assert_allclose(np.diag(composite(words)), 1.0)
    assert composite.bound(words) is composite
    assert list(composite.take(words, [1])) == ["lets"]


def trace_block(X, Y):
    return np.einsum("iab,jab->ij", X, Y)


def test_stacks_of_matrices(rng):
    X = rng.normal(size=(6, 3, 3)).astype(np.float32)
    kernel = Callable(trace_block)
    K = kernel(X, kernel.take(X, np.array([4, 1])))
    assert K.dtype == np.float32 and K.shape == (6, 2)
    flat = X.reshape(6, 9)
    np.testing.assert_allclose(K, flat @ flat[[4, 1]].T, rtol=1e-5)
    np.testing.assert_allclose(kernel.diag(X), (flat**2).sum(axis=1), rtol=1e-5)
    pairs = Callable(lambda x, y: np.trace(x @ y.T), pairwise=True)
    np.testing.assert_allclose(pairs(X), kernel(X), rtol=1e-5, atol=1e-6)


def test_functions_on_tensors(rng, xp):
    X = xp.asarray(rng.normal(size=(4, 3)))
    kernel = Callable(lambda X, Y: X @ Y.T, diagonal=lambda X: (X * X).sum(1))
    for part, whole in [(kernel(X), Linear()(X)), (kernel.diag(X), Linear().diag(X))]:
        assert type(part) is type(whole)
        np.testing.assert_allclose(xp.to_numpy(part), xp.to_numpy(whole))


def test_scikit_learn_functions_keep_float32(pair):
    X, Y = (a.astype(np.float32) for a in pair)
    K = Callable(gp.RBF(1.0))(X, Y)
    assert K.dtype == np.float32
    np.testing.assert_allclose(K, RBF(1.0)(X, Y), rtol=1e-5)


def test_gradient_of_a_function(pair, rng):
    X, Y = pair
    W = rng.normal(size=(7, 6))
    kernel = Callable(lambda X, Y: X @ Y.T, gradient=lambda X, Y, W: W @ Y)
    assert kernel.differentiable and not Callable(trace_block).differentiable
    product = RBF(1.0) * kernel
    assert product.differentiable
    expected = (RBF(1.0) * Linear()).pull(X, Y, W)
    np.testing.assert_allclose(product.pull(X, Y, W), expected)
    assert not (RBF(1.0) + Callable(trace_block)).differentiable
    with pytest.raises(NotImplementedError, match="Callable has no gradient"):
        Callable(trace_block).pull(X, Y, W)


def test_bad_functions_are_caught(pair):
    with pytest.raises(ValueError, match="pairwise=True"):
        Callable(lambda X, Y: X @ X.T)(*pair)
    with pytest.raises(ValueError, match="NaN"):
        Callable(lambda x, y: np.nan, pairwise=True)(pair[0])


def test_precomputed(rng, xp):
    data = rng.normal(size=(8, 3))
    K = xp.asarray(data @ data.T)
    kernel = Precomputed()
    assert kernel(K) is K
    columns = kernel.take(K, np.array([5, 2]))
    np.testing.assert_array_equal(columns, [5, 2])
    np.testing.assert_array_equal(
        xp.to_numpy(kernel(K[:3], columns)), xp.to_numpy(K)[:3][:, [5, 2]]
    )
    np.testing.assert_array_equal(xp.to_numpy(kernel.diag(K)), np.diag(xp.to_numpy(K)))
    with pytest.raises(ValueError, match="only the square"):
        kernel.diag(K[:3])
    with pytest.raises(ValueError, match="indices of training samples"):
        kernel(K, K)


def test_precomputed_composites_leave_the_matrix_alone(rng):
    X = rng.normal(size=(8, 3))
    K = X @ X.T
    before = K.copy()
    for kernel in (2.0 * Precomputed() + 1, Product(Constant(2.0), Precomputed()) + 1):
        columns = kernel.take(K, np.array([1, 6]))
        np.testing.assert_allclose(kernel(K, columns), 2 * K[:, [1, 6]] + 1)
        np.testing.assert_allclose(kernel(K), 2 * K + 1)
    np.testing.assert_allclose(Normalized(Precomputed())(K), Cosine()(X))
    np.testing.assert_array_equal(K, before)


# ------------------------------------------------------------------ names


@pytest.mark.parametrize(
    ("spec", "kernel"),
    [
        ("poly:2", Polynomial(2)),
        ("polynomial: 3, coef0=1", Polynomial(3, coef0=1)),
        ("rbf:sigma=2", RBF(sigma=2)),
        ("rbf:0.5", RBF(sigma=0.5)),
        ("RBF", RBF()),
        ("rbf:gamma=1e-3", RBF(gamma=1e-3)),
        ("matern:1.0,2.5", Matern(1.0, 2.5)),
        ("rational-quadratic:alpha=2", RationalQuadratic(alpha=2)),
        ("laplacian:0.1", Laplacian(0.1)),
        ("sigmoid:gamma=0.1", Sigmoid(scale=0.1)),
        ("linear", Linear()),
        ("cosine", Cosine()),
        ("chi2:0.5", Chi2(0.5)),
        ("intersection", Intersection()),
        ("precomputed", Precomputed()),
    ],
)
def test_names(spec, kernel):
    found = resolve(spec)
    assert type(found) is type(kernel) and found.get_params() == kernel.get_params()


def test_every_name_resolves_to_its_class():
    for name, kind in KERNELS.items():
        assert type(resolve(name)) is kind and issubclass(kind, Kernel)


def test_resolve_takes_kernels_functions_and_parameters():
    kernel = RBF()
    assert resolve(kernel) is kernel
    assert resolve(kernel, gamma=2.0).gamma == 2.0 and kernel.gamma is None
    assert resolve("rbf", gamma=0.1).gamma == 0.1
    assert resolve("poly", degree=3, gamma=0.5).scale == 0.5
    assert resolve(Matern, nu=0.5).nu == 0.5
    assert resolve(trace_block).function is trace_block
    assert resolve(shared_letters, pairwise=True).pairwise


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("rbff", "did you mean 'rbf'.*linear, polynomial"),
        ("wavelet", "unknown kernel 'wavelet': choose from linear"),
        ("rbf:width=2", "RBF has no parameter 'width'; it takes: sigma, gamma"),
        ("linear:2", "Linear has no parameter"),
        ("poly:two", "'two' is not a number"),
        ("rbf:1,2", "two names"),
    ],
)
def test_bad_names(spec, message):
    with pytest.raises(ValueError, match=message):
        resolve(spec)


def test_other_things_are_no_kernels():
    with pytest.raises(TypeError, match="must be a kernel"):
        resolve(3)


@pytest.mark.parametrize(
    "estimator",
    [
        make_pipeline(NystroemMap("poly:2"), ResidualClassifier(KSVD(5))),
        ResidualClassifier(KernelKSVD("poly:2", 5)),
        SRCClassifier("poly:2"),
        KSADClassifier("poly:2"),
        KernelKSVD("poly:2", 5),
        ReducedKernelDL("poly:2", 5),
        BudgetKernelDL("poly:2", 5),
        DictionaryOutlierDetector(KernelKSVD("poly:2", 5)),
        IKAMap("poly:2"),
        FourierMap("rbf:1"),
    ],
)
def test_new_rows_parse_no_name_of_a_kernel(estimator, rng, monkeypatch):
    X, y = rng.standard_normal((60, 4)), np.repeat([0, 1], 30)
    fitted = estimator.fit(X, y)

    def refuse(*arguments):
        raise AssertionError("a name was parsed")

    monkeypatch.setattr(kernels, "parse", refuse)
    method = "predict" if hasattr(fitted, "predict") else "transform"
    getattr(fitted, method)(X[:1])
    if hasattr(fitted, "partial_fit") and hasattr(fitted, "stock_"):
        fitted.partial_fit(X[:1])


@pytest.mark.parametrize("kernel", [k for k, _ in FORMULAS if k.invertible], ids=repr)
def test_inverse_gives_the_argument_of_the_profile(kernel):
    s = np.linspace(0.1, 3.0, 7)
    np.testing.assert_allclose(kernel.inverse(kernel.profile(s.copy())), s)


def test_kernels_of_a_distance_or_a_product_may_be_invertible():
    kinds = {type(k) for k, _ in FORMULAS if k.invertible}
    assert kinds == {Linear, Polynomial, RBF, RationalQuadratic}
    with pytest.raises(NotImplementedError, match="Matern has no inverse"):
        Matern(1.0).inverse(np.ones(2))


def test_a_matrix_that_is_no_kernel_matrix_is_refused(rng):
    X, y = rng.standard_normal((20, 5)), np.arange(20) % 2
    learner = BudgetKernelDL("precomputed", 2, n_nonzero_coefs=1, random_state=0)
    with pytest.raises(ValueError, match="not the square matrix"):
        ResidualClassifier(learner).fit(X, y)
    square = X @ X.T - 30 * np.eye(20)
    with pytest.raises(ValueError, match=r"κ\(x, x\) is negative"):
        NystroemMap("precomputed", landmarks="rpcholesky", n_landmarks=3).fit(square)


@pytest.mark.parametrize("remedy", [Clipped, Squared, Shifted])
def test_remedies_for_no_samples(remedy):
    assert remedy(LocalAlignment())([]).shape == (0, 0)
