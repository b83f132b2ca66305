"""`NystroemMap`: the invariants of LKDL, the solvers, and bad input."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse

from kernlets import (
    RBF,
    Linear,
    NystroemMap,
    Polynomial,
    Precomputed,
    Sigmoid,
    options,
)
from kernlets.landmarks import SAMPLERS
from kernlets.maps.spectral import _krylov, block_size, leading_eigenpairs

KERNELS = [RBF(sigma=1.5), Polynomial(2), Polynomial(3, coef0=1.0), Linear()]


@pytest.fixture
def X(rng):
    return rng.standard_normal((120, 6))


@pytest.fixture(params=KERNELS, ids=str)
def kernel(request):
    return request.param


def nystroem(K, chosen, k=None):
    """C W_k⁺ Cᵀ from the whole kernel matrix, by a dense pseudo-inverse."""
    W, C = K[np.ix_(chosen, chosen)], K[:, chosen]
    if k is not None:
        values, vectors = np.linalg.eigh(W)
        W = (vectors[:, -k:] * values[-k:]) @ vectors[:, -k:].T
    return C @ np.linalg.pinv(W, rcond=1e-11, hermitian=True) @ C.T


def best_rank(K, k):
    values, vectors = np.linalg.eigh(K)
    return (vectors[:, -k:] * values[-k:]) @ vectors[:, -k:].T


def product(F):
    return F @ F.T


def close(A, B, tolerance=1e-8):
    return np.linalg.norm(A - B) <= tolerance * np.linalg.norm(B)


# Invariants of LKDL, PAPERS section 1


@pytest.mark.parametrize("k", [None, 4])
def test_is_the_pseudo_inverse_formula(kernel, X, k):
    chosen = np.arange(3, 33)
    F = NystroemMap(kernel, chosen, n_components=k).fit_transform(X)
    assert close(product(F), nystroem(kernel(X), chosen, k))


def test_is_exact_on_landmarks(kernel, X):
    virtual = NystroemMap(kernel, n_landmarks=30, random_state=0).fit(X)
    L = virtual.landmarks_
    assert close(product(virtual.transform(L)), kernel(L))


def test_never_exceeds_the_kernel(kernel, X):
    F = NystroemMap(kernel, n_landmarks=20, random_state=0).fit_transform(X)
    K = kernel(X)
    assert np.linalg.eigvalsh(K - product(F)).min() > -1e-9 * np.linalg.norm(K)


def test_all_landmarks_give_the_kernel_and_its_best_approximations(kernel, X):
    K = kernel(X)
    full = NystroemMap(kernel, n_landmarks=1.0).fit(X)
    assert close(product(full.transform(X)), K) and full.kernel_error_ < 1e-8
    for truncation in ("landmarks", "samples"):
        virtual = NystroemMap(
            kernel, "uniform", n_landmarks=1.0, n_components=5, truncation=truncation
        )
        assert close(product(virtual.fit_transform(X)), best_rank(K, 5))


def test_order_of_landmarks_plays_no_part(kernel, X, rng):
    chosen = rng.choice(len(X), 25, replace=False)
    one, other = (
        NystroemMap(kernel, c, n_components=6).fit_transform(X)
        for c in (chosen, rng.permutation(chosen))
    )
    assert close(product(one), product(other))


def test_more_landmarks_never_raise_the_trace_error(kernel, X, rng):
    order = rng.permutation(len(X))
    errors = []
    for c in (5, 10, 20, 40, 80):
        virtual = NystroemMap(kernel, order[:c])
        virtual.fit_transform(X)
        errors.append(virtual.kernel_error_)
    assert all(b <= a + 1e-12 for a, b in pairwise(errors))


@pytest.mark.parametrize("landmarks", SAMPLERS)
def test_the_best_rank_is_a_lower_bound(landmarks, X):
    kernel = RBF(sigma=1.5)
    K = kernel(X)
    F = NystroemMap(kernel, landmarks, n_landmarks=15, random_state=0).fit_transform(X)
    bound = np.linalg.norm(K - best_rank(K, 15))
    assert np.linalg.norm(K - product(F)) > bound
    assert np.trace(K) - (F**2).sum() >= np.trace(K) - np.trace(best_rank(K, 15))


def test_linear_kernel_gives_a_rotation(X):
    for dtype, tolerance in ((np.float64, 1e-10), (np.float32, 1e-5)):
        A = X.astype(dtype)
        F = NystroemMap("linear", n_landmarks=50, random_state=0).fit_transform(A)
        assert F.shape == A.shape  # the rank is found
        turn = np.linalg.lstsq(A, F, rcond=None)[0]
        np.testing.assert_allclose(A @ turn, F, atol=tolerance * 10)
        np.testing.assert_allclose(turn @ turn.T, np.eye(6), atol=tolerance)


def test_minibatch_map_is_one_map_with_pooled_landmarks(X):
    blocks = [X[:50], X[50:60], X[60:]]
    for landmarks in ("uniform", "kmeans"):
        pooled = NystroemMap(RBF(1.0), landmarks, n_landmarks=0.2, random_state=0).fit(
            iter(blocks)
        )
        one = NystroemMap(RBF(1.0), pooled.landmarks_)
        stacked = np.vstack(list(pooled.transform(iter(blocks))))
        np.testing.assert_allclose(stacked, one.fit_transform(X), atol=1e-12)
        assert pooled.kernel_error_ == pytest.approx(one.kernel_error_)


# Truncation, components, solvers


def test_truncation_by_samples_is_the_best_part_of_the_full_matrix(kernel, X):
    chosen = np.arange(30)
    full = nystroem(kernel(X), chosen)
    virtual = NystroemMap(kernel, chosen, n_components=4, truncation="samples")
    F = virtual.fit_transform(X)
    assert close(product(F), best_rank(full, 4))
    np.testing.assert_allclose(virtual.eigenvalues_, np.linalg.eigvalsh(full)[:-5:-1])
    assert close(product(virtual.fit(X).transform(X)), best_rank(full, 4))


def test_truncation_by_samples_from_blocks(X):
    points = X[:30]
    make = NystroemMap(
        RBF(1.0), points, n_landmarks=None, n_components=4, truncation="samples"
    )
    expected = product(make.fit_transform(X))
    assert close(product(make.fit([X[:70], X[70:]]).transform(X)), expected)


def test_share_of_the_trace(X):
    virtual = NystroemMap(RBF(1.0), np.arange(60), n_components=0.9).fit(X)
    values = np.linalg.eigvalsh(RBF(1.0)(X[:60]))[::-1]
    share = values.cumsum() / values.sum()
    k = len(virtual.eigenvalues_)
    assert share[k - 2] < 0.9 <= share[k - 1]
    np.testing.assert_allclose(virtual.eigenvalues_, values[:k])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_randomized_solver_is_the_full_one(dtype, rng):
    X = rng.standard_normal((500, 5)).astype(dtype)
    full, fast = (
        NystroemMap(
            RBF(sigma=2.0),
            "uniform",
            n_landmarks=400,
            n_components=30,
            eigen_solver=s,
            random_state=0,
        )
        for s in ("full", "randomized")
    )
    expected, found = (product(m.fit_transform(X)) for m in (full, fast))
    tolerance = 1e-6 if dtype == np.float64 else 1e-4
    assert close(found, expected, tolerance)
    np.testing.assert_allclose(fast.eigenvalues_, full.eigenvalues_, rtol=1e-3)


@pytest.mark.parametrize(("decay", "least"), [(1.0, 0.999), (0.1, 0.95)])
def test_leading_eigenpairs_of_a_slow_spectrum(decay, least, rng):
    c, k = 500, 30
    values = np.arange(1, c + 1) ** -decay  # no gap anywhere
    Q = np.linalg.qr(rng.standard_normal((c, c)))[0]
    W = (Q * values) @ Q.T
    found = leading_eigenpairs(W, k, rng)
    assert least * values[:k].sum() < found.values.sum() <= values[:k].sum() + 1e-12
    np.testing.assert_allclose(found.vectors.T @ found.vectors, np.eye(k), atol=1e-12)
    ritz = np.diag(found.vectors.T @ W @ found.vectors)
    np.testing.assert_allclose(ritz, found.values, atol=1e-12)


@pytest.mark.rounding
@pytest.mark.parametrize("fall", [0.5, 0.97])  # of the eigenvalues, in float32
def test_krylov_space_is_orthonormal_and_its_projection_block_tridiagonal(fall, rng):
    c, block = 1200, 40
    Q = np.linalg.qr(rng.standard_normal((c, c)))[0]
    W = ((Q * fall ** np.arange(c)) @ Q.T).astype(np.float32)
    basis, projected = _krylov(W, block, rng)
    gram = basis.T.astype(np.float64) @ basis
    np.testing.assert_allclose(gram, np.eye(len(gram)), atol=5e-6)
    np.testing.assert_allclose(projected, basis.T @ W @ basis, atol=5e-6)


@pytest.mark.rounding
def test_leading_eigenpairs_do_not_depend_on_threads(rng):
    A = rng.standard_normal((2100, 80)).astype(np.float32)
    found = []
    for n_threads in (1, 2, 3):
        with options(n_threads=n_threads):
            W = Linear()(A)
            found.append(leading_eigenpairs(W, 30, np.random.default_rng(0)))
    for other in found[1:]:
        np.testing.assert_array_equal(other.values, found[0].values)
        np.testing.assert_array_equal(other.vectors, found[0].vectors)


@pytest.mark.rounding
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("case", ["low rank", "ones", "zeros", "few rows"])
def test_leading_eigenpairs_at_low_rank(case, dtype, rng):
    c, k = 300, 20
    assert 9 * block_size(k) < c  # or the full solver would answer
    A = rng.standard_normal((c, 7)) if case == "low rank" else np.ones((c, 1))
    if case == "zeros":
        A = A * 0
    if case == "few rows":
        A = np.eye(c, 9)
    found = leading_eigenpairs((A @ A.T).astype(dtype), k, rng)
    # of the small AᵀA: LAPACK's own error on the large matrix depends on the processor
    expected = np.zeros(k)
    expected[: A.shape[1]] = np.linalg.eigvalsh(A.T @ A)[::-1]
    scale = max(1.0, expected[0])
    assert np.isfinite(found.vectors).all()
    np.testing.assert_allclose(
        found.values, expected, atol=10 * np.finfo(dtype).eps * scale
    )


@pytest.mark.parametrize(
    ("params", "c", "n_pairs"),
    [
        ({"n_components": 20}, 5000, 20),
        ({"n_components": 20}, 500, None),
        ({"n_components": 2000}, 5000, None),
        ({"n_components": 0.9}, 5000, None),
        ({"n_components": 20, "truncation": "samples"}, 5000, None),
        ({"n_components": 20, "eigen_solver": "full"}, 5000, None),
        ({"n_components": 20, "eigen_solver": "randomized"}, 500, 20),
    ],
)
def test_choice_of_the_solver(params, c, n_pairs):
    assert NystroemMap(**params)._n_pairs(c) == n_pairs


# Singular, indefinite and otherwise difficult


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("landmarks", SAMPLERS)
def test_duplicates_and_zero_rows(landmarks, dtype, rng):
    X = rng.standard_normal((60, 4)).astype(dtype)
    X[20:40], X[40:50] = X[:20], 0.0
    virtual = NystroemMap("poly:2", landmarks, n_landmarks=55, random_state=0)
    F = virtual.fit_transform(X)
    assert np.isfinite(F).all() and F.shape[1] == 10  # p(p+1)/2 monomials
    assert close(product(F), (X @ X.T) ** 2, 1e-8 if dtype == np.float64 else 1e-4)
    assert virtual.kernel_error_ < 1e-4


def test_float32_is_as_good_as_float64(X):
    for kernel in (RBF(sigma=3.0), Polynomial(2)):
        wide, narrow = (
            NystroemMap(kernel, np.arange(100)).fit_transform(A)
            for A in (X, X.astype(np.float32))
        )
        assert narrow.dtype == np.float32
        assert close(product(narrow.astype(np.float64)), product(wide), 1e-4)


def test_precomputed_kernel(X):
    K = RBF(1.0)(X)
    train, test = np.arange(80), np.arange(80, 120)
    expected = NystroemMap(RBF(1.0), [5, 3, 60]).fit(X[train])
    for landmarks in ([5, 3, 60], "uniform", "column-norm", "rpcholesky", "leverage"):
        virtual = NystroemMap("precomputed", landmarks, random_state=0)
        F = virtual.fit_transform(K[np.ix_(train, train)])
        same = NystroemMap(RBF(1.0), virtual.landmark_indices_).fit(X[train])
        np.testing.assert_allclose(F, same.transform(X[train]), atol=1e-8)
        assert virtual.kernel_error_ == pytest.approx(same.kernel_error_, abs=1e-10)
        assert virtual.fit(K[np.ix_(train, train)]).kernel_error_ == pytest.approx(
            same.kernel_error_, abs=1e-10
        )
    virtual = NystroemMap(Precomputed(), [5, 3, 60]).fit(K[np.ix_(train, train)])
    F = virtual.transform(K[np.ix_(test, train)])
    np.testing.assert_allclose(F, expected.transform(X[test]), atol=1e-10)
    assert virtual.__sklearn_tags__().input_tags.pairwise
    with pytest.raises(ValueError, match="square"):
        virtual.fit(K[:50])


def test_sparse_rows(X):
    X[X < 0.5] = 0.0
    for landmarks in SAMPLERS:
        virtual = NystroemMap(Polynomial(2), landmarks, n_landmarks=30, random_state=0)
        expected = virtual.fit_transform(X)
        found = virtual.fit_transform(sparse.csr_array(X))
        if landmarks != "kmeans":  # a sparse k-means rounds differently
            assert close(product(found), product(expected))
        assert isinstance(found, np.ndarray) and np.isfinite(found).all()


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_landmarks": 0}, "n_landmarks"),
        ({"n_landmarks": 1.5}, "n_landmarks"),
        ({"n_components": 0}, "n_components"),
        ({"n_components": 1.0}, "n_components"),
        ({"landmarks": "k-means"}, "did you mean 'kmeans'"),
        ({"kernel": "rfb"}, "did you mean 'rbf'"),
        ({"kernel": lambda A, B: -(A @ B.T)}, "not positive semi-definite"),
        ({"kernel": lambda A, B: A[:, :1] + 0 * B[:, 0]}, "not symmetric"),
        ({"kernel": lambda A, B: A @ B.T - 0.5}, "not positive semi-definite"),
        ({"eigen_solver": "randomized"}, "set n_components"),
        ({"truncation": "rows"}, "truncation"),
    ],
)
def test_errors_name_the_argument(params, message, X):
    with pytest.raises(ValueError, match=message):
        NystroemMap(**params).fit(X)


def test_a_kernel_known_to_be_indefinite_is_cut(X):
    F = NystroemMap(Sigmoid(scale=1.0, coef0=-1.0), n_landmarks=50, random_state=0)
    assert np.isfinite(F.fit_transform(X)).all()
    assert (F.eigenvalues_ > 0).all()


@pytest.mark.parametrize("landmarks", SAMPLERS)
def test_zero_data(landmarks):
    with pytest.raises(ValueError, match="zero rows"):
        NystroemMap("linear", landmarks).fit(np.zeros((20, 3)))


def test_iterators_are_read_once(X):
    with pytest.raises(ValueError, match="only once"):
        NystroemMap().fit_transform(iter([X]))
    with pytest.raises(ValueError, match="only once"):
        NystroemMap(truncation="samples").fit(iter([X]))
    with pytest.raises(ValueError, match="without blocks"):
        NystroemMap().fit(iter([]))
    with pytest.raises(ValueError, match="NaN"):
        NystroemMap().fit(iter([X, np.full((3, 6), np.nan)]))
    with pytest.raises(ValueError, match="features"):
        NystroemMap().fit(iter([X, X[:, :3]]))


def test_one_sample():
    X = np.array([[1.0, 2.0]])
    F = NystroemMap("linear").fit_transform(X)
    np.testing.assert_allclose(F @ F.T, [[5.0]])


def test_kernel_error_of_fit_is_an_estimate_on_spread_rows(rng):
    X = rng.standard_normal((5000, 3))
    virtual = NystroemMap(RBF(1.0), "uniform", n_landmarks=20, random_state=0)
    virtual.fit_transform(X)
    exact = virtual.kernel_error_
    K_diag, F = np.ones(len(X)), virtual.transform(X)
    assert exact == pytest.approx((K_diag - (F**2).sum(1)).sum() / K_diag.sum())
    assert virtual.fit(X).kernel_error_ == pytest.approx(exact, rel=0.1)
    assert virtual.kernel_error_ != exact


def test_fit_transform_computes_the_kernel_block_once(X):
    evaluated = []

    def counting(A, B):
        evaluated.append(len(A) * len(B))
        return A @ B.T

    NystroemMap(counting, np.arange(30)).fit_transform(X)
    # W, C, and one value per sample for the energies
    assert sum(evaluated) == 30 * 30 + len(X) * 30 + len(X)


# Numbers of PAPERS section 1, on the data of the papers

MEASURED = {  # error (29) at c = 5, 10, 20, 50 %
    "uniform": (0.0865, 0.0479, 0.0218, 0.0055),
    "diagonal": (0.0865, 0.0479, 0.0218, 0.0055),  # uniform for unit-norm rows
    "column-norm": (0.1028, 0.0574, 0.0283, 0.0082),
    "kmeans": (0.0521, 0.0280, 0.0141, 0.0036),
    "coreset": (0.0863, 0.0433, 0.0199, 0.0047),
}


@pytest.fixture(scope="module")
def usps(shared_data):
    """Five draws of 2000 smoothed images, and their poly-2 kernel matrices."""
    from kernlets import datasets

    X = datasets.load("usps", smooth=0.75).X_train
    X = datasets.remove_mean_and_normalize(X)
    draws = [
        np.random.default_rng(seed).choice(len(X), 2000, False) for seed in range(5)
    ]
    return [(X[draw], (X[draw] @ X[draw].T) ** 2) for draw in draws]


def mean_error(usps, landmarks, fraction):
    errors = []
    for seed, (X, K) in enumerate(usps):
        virtual = NystroemMap(
            "poly:2", landmarks, n_landmarks=fraction, random_state=100 + seed
        )
        gap = K - product(virtual.fit_transform(X))
        errors.append(np.linalg.norm(gap) / np.linalg.norm(K))
    return np.mean(errors)


@pytest.mark.parametrize("landmarks", MEASURED)
@pytest.mark.parametrize("percent", [5, 10, 20])
def test_errors_on_usps(usps, landmarks, percent):
    expected = MEASURED[landmarks][[5, 10, 20].index(percent)]
    assert mean_error(usps, landmarks, percent / 100) == pytest.approx(
        expected, rel=0.1
    )


@pytest.mark.slow
@pytest.mark.parametrize("landmarks", MEASURED)
def test_errors_on_usps_with_half_of_the_samples(usps, landmarks):
    expected = MEASURED[landmarks][3]
    assert mean_error(usps, landmarks, 0.5) == pytest.approx(expected, rel=0.1)


@pytest.mark.slow
def test_randomized_solver_on_mnist(shared_data):
    """784 of 3000 eigenvectors, with a spectrum that has no gap to help."""
    from kernlets import datasets

    rows = np.random.default_rng(0).permutation(60_000)[:5000]
    X = datasets.unit_norm(datasets.load("mnist").X_train[rows])
    train, test = X[:3000], X[3000:]
    K = (test @ test.T) ** 2
    errors = {}
    for solver in ("full", "randomized"):
        virtual = NystroemMap(
            "poly:2", train, n_landmarks=None, n_components=784, eigen_solver=solver
        )
        F = virtual.set_params(random_state=0).fit(train).transform(test)
        errors[solver] = np.linalg.norm(K - product(F))
    assert errors["randomized"] < 1.01 * errors["full"]


def test_features_do_not_depend_on_the_signs_that_lapack_chooses(rng, monkeypatch):
    X = np.concatenate([rows := rng.standard_normal((12, 4)), -rows])  # equal entries
    expected = NystroemMap("poly:2,coef0=1", n_landmarks=1.0).fit_transform(X)
    eigh = np.linalg.eigh

    def flipped_eigh(matrix):
        values, vectors = eigh(matrix)
        return values, vectors * rng.choice([-1, 1], len(values))

    monkeypatch.setattr(np.linalg, "eigh", flipped_eigh)
    for _ in range(4):
        found = NystroemMap("poly:2,coef0=1", n_landmarks=1.0).fit_transform(X)
        np.testing.assert_array_equal(found, expected)
