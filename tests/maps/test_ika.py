"""IKA: its invariants, its functions, refined filters, sources of rows."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from scipy import sparse
from scipy.linalg import eigh

import kernlets
from kernlets import RBF, FourierMap, IKAMap, Matern, NystroemMap, Polynomial
from kernlets.maps.ika import (
    Sample,
    captured_norm2,
    orthonormal,
    projected_gram,
    refine_filters,
)
from kernlets.metrics import kernel_error

KERNEL = RBF(sigma=2.0)


@pytest.fixture
def X(rng) -> np.ndarray:
    return rng.standard_normal((80, 4))


def on_sample(X, landmarks, kernel=KERNEL, **params) -> IKAMap:
    """IKA with all rows of X as the sample."""
    return IKAMap(kernel, landmarks=landmarks, random_state=0, **params).fit(X)


def gram(fitted, X) -> np.ndarray:
    F = fitted.transform(X)
    return F @ F.T


def naive(B, G, m) -> tuple[np.ndarray, np.ndarray]:
    """Algorithm 1 with P and M as printed, for well-conditioned P: λ and √λ v."""
    S = len(B)
    values, vectors = eigh(B.T @ G @ B / S**2, B.T @ B / S)  # vᵀPv = 1
    leading = np.argsort(-values)[:m]
    return values[leading], vectors[:, leading] * np.sqrt(values[leading])


def projector(B) -> np.ndarray:
    return B @ np.linalg.pinv(B, rcond=1e-9)


def test_map_is_algorithm_1(X):
    Z, kernel = X[:9] + 0.1, RBF(sigma=1.0)
    fitted = on_sample(X, Z, kernel, n_components=5)
    values, projection = naive(kernel(X, Z), kernel(X, X), 5)
    np.testing.assert_allclose(fitted.eigenvalues_, values, rtol=1e-9)
    expected = kernel(X, Z) @ projection
    np.testing.assert_allclose(gram(fitted, X), expected @ expected.T, atol=1e-9)


def test_eigenfunctions_are_orthonormal_and_diagonalise_the_kernel(X):
    """VᵀPV = I and VᵀMV = diag λ."""
    Z, S = X[:9], len(X)
    fitted = on_sample(X, Z, RBF(sigma=1.0))
    B, G = RBF(sigma=1.0)(X, Z), RBF(sigma=1.0)(X, X)
    V = fitted.projection_ / np.sqrt(fitted.eigenvalues_)
    np.testing.assert_allclose(V.T @ (B.T @ B / S) @ V, np.eye(9), atol=1e-8)
    M = V.T @ (B.T @ G @ B / S**2) @ V
    np.testing.assert_allclose(M, np.diag(fitted.eigenvalues_), atol=1e-8)
    assert (np.diff(fitted.eigenvalues_) < 0).all()


def test_on_the_sample_it_is_the_projection_of_the_gram_matrix(X):
    Z = X[:30]
    P, G = projector(KERNEL(X, Z)), KERNEL(X, X)
    np.testing.assert_allclose(gram(on_sample(X, Z), X), P @ G @ P, atol=1e-7)


def test_no_other_weights_are_better_on_the_sample(X, rng):
    """Nyström's among them."""
    Z = X[:20]
    B, G = KERNEL(X, Z), KERNEL(X, X)
    best = np.linalg.norm(G - gram(on_sample(X, Z), X))
    nystroem = NystroemMap(KERNEL, landmarks=Z).fit(X)
    others = [gram(nystroem, X), B @ np.linalg.pinv(KERNEL(Z, Z)) @ B.T]
    fitted = on_sample(X, Z).projection_
    for _ in range(10):
        W = fitted @ fitted.T + 1e-3 * rng.standard_normal((20, 20))
        others.append(B @ (W + W.T) @ B.T / 2)
    assert best < min(np.linalg.norm(G - other) for other in others)


def test_functions_at_all_samples_reproduce_the_gram_matrix(X):
    np.testing.assert_allclose(gram(on_sample(X, X), X), KERNEL(X, X), atol=1e-7)


def test_filters_as_the_sample_give_nystroem(X, rng):
    new, few = rng.standard_normal((30, 4)), X[:12]
    ika = on_sample(few, few)
    nystroem = NystroemMap(KERNEL, landmarks=few).fit(few)
    np.testing.assert_allclose(gram(ika, new), gram(nystroem, new), atol=1e-6)


def test_each_eigenfunction_lowers_the_error_by_its_eigenvalue(X):
    """error²(m) − error²(m + 1) = S² λ²_{m+1}."""
    Z, G, S = X[:10], KERNEL(X, X), len(X)
    squares = [
        np.linalg.norm(G - gram(on_sample(X, Z, n_components=m), X)) ** 2
        for m in range(1, 11)
    ]
    values = on_sample(X, Z).eigenvalues_
    np.testing.assert_allclose(-np.diff(squares), (S * values[1:]) ** 2, rtol=1e-5)


def test_recombined_and_repeated_functions_change_nothing(X, rng):
    mixing = rng.standard_normal((10, 10))
    plain = partial(KERNEL, Y=X[:10])
    expected = gram(IKAMap(KERNEL, plain).fit(X), X)
    for basis in (
        lambda A: plain(A) @ mixing,
        lambda A: plain(A) * np.logspace(-6, 6, 10),
        lambda A: np.hstack([plain(A), plain(A)[:, :4]]),
    ):
        np.testing.assert_allclose(
            gram(IKAMap(KERNEL, basis).fit(X), X), expected, atol=1e-6
        )


def test_repeated_landmarks_do_no_harm(X):
    twice = np.concatenate([X[:10], X[:10]])
    np.testing.assert_allclose(
        gram(on_sample(X, twice), X), gram(on_sample(X, X[:10]), X), atol=1e-7
    )


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_singular_bases_stay_finite_on_new_rows(rng, dtype):
    """P of these functions has a condition number beyond 1e18."""
    X, new = rng.random((2, 300, 2)).astype(dtype)
    fitted = IKAMap(RBF(sigma=3.0), n_landmarks=150, random_state=0).fit(X)
    gap = gram(fitted, new) - RBF(sigma=3.0)(new, new)
    assert np.abs(gap).max() < (1e-6 if dtype == np.float64 else 1e-4)


def test_gram_matrix_in_blocks(X, rng):
    U = rng.standard_normal((80, 7))
    sample = Sample(X, X, KERNEL.diag(X))
    for block_rows in (1, 7, 80):
        with kernlets.options(block_rows=block_rows):
            found = projected_gram(KERNEL, sample, U)
        np.testing.assert_allclose(found, U.T @ KERNEL(X, X) @ U, atol=1e-10)


def test_gram_matrix_is_never_held(rng):
    import tracemalloc

    X = rng.standard_normal((3000, 3)).astype(np.float32)
    IKAMap(KERNEL, n_landmarks=10).fit(X[:50])
    tracemalloc.start()
    with kernlets.options(n_threads=2, block_rows=100):
        IKAMap(KERNEL, n_landmarks=10, random_state=0).fit(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3000**2 * 4 / 3


def test_orthonormal_basis(X):
    B = KERNEL(X, X[:20])
    U, R = orthonormal(B)
    np.testing.assert_allclose(U.T @ U, np.eye(U.shape[1]), atol=1e-10)
    np.testing.assert_allclose(B @ R, U, atol=1e-6)


@pytest.mark.parametrize("basis", ["kernel", "relu", "sigmoid", "cosine"])
def test_more_functions_lower_the_error(rng, basis):
    X, new = rng.standard_normal((2, 500, 5))
    errors = [
        kernel_error(
            IKAMap(KERNEL, basis, n_landmarks=n, random_state=0).fit(X), new
        ).frobenius
        for n in (10, 40)
    ]
    assert errors[1] < 0.8 * errors[0] < 0.8


def test_units(X):
    fitted = IKAMap(KERNEL, "relu", n_landmarks=6, random_state=0).fit(X)
    W, t = fitted.landmarks_, fitted.offsets_
    np.testing.assert_allclose((X @ W.T).std(axis=0), 1)
    B = np.array([[max(0.0, w @ x - s) for w, s in zip(W, t, strict=True)] for x in X])
    np.testing.assert_allclose(fitted.transform(X), B @ fitted.projection_)
    at_a_sample = np.abs((X @ W.T)[:, :, None] - t).min(axis=0).diagonal()
    np.testing.assert_allclose(at_a_sample, 0, atol=1e-12)


def test_sigmoid_units_do_not_overflow():
    X = np.linspace(-1, 1, 50)[:, None] * 1e4
    fitted = IKAMap(RBF(sigma=1e4), "sigmoid", n_landmarks=5, random_state=0).fit(X)
    assert np.isfinite(fitted.transform(1e6 * X)).all()


def test_features_of_another_map_as_functions(rng):
    """IKA improves Fourier features on the data: weights fitted instead of equal."""
    X, new = rng.standard_normal((2, 600, 5))
    fourier = FourierMap(KERNEL, 60, random_state=0).fit(X)
    ika = IKAMap(KERNEL, fourier.transform).fit(X)
    assert ika.landmarks_ is None
    assert kernel_error(ika, new).frobenius < 0.7 * kernel_error(fourier, new).frobenius


def test_functions_that_return_nonsense_are_refused(X):
    for basis, message in (
        (lambda A: A[0], "one row per row"),
        (lambda A: A / 0.0 * np.inf, "NaN"),
        (lambda A: 0 * A, "all basis functions are zero"),
    ):
        with np.errstate(all="ignore"), pytest.raises(ValueError, match=message):
            IKAMap(KERNEL, basis).fit(X)


@pytest.mark.parametrize("kernel", [KERNEL, Polynomial(2), Matern(3.0, nu=2.5)])
def test_gradient_in_the_filters_is_that_of_finite_differences(X, rng, kernel):
    Z = rng.standard_normal((6, 4))
    value, slope = captured_norm2(kernel, X, Z)
    P = projector(kernel(X, Z))
    assert value == pytest.approx(np.linalg.norm(P @ kernel(X, X) @ P) ** 2)
    for _ in range(5):
        step = 1e-5 * rng.standard_normal(Z.shape)
        rise = (
            captured_norm2(kernel, X, Z + step)[0]
            - captured_norm2(kernel, X, Z - step)[0]
        )
        assert rise / 2 == pytest.approx((slope * step).sum(), rel=1e-4, abs=1e-6)


def test_refined_filters_lower_the_error_on_the_sample_and_beyond(rng):
    X, new = rng.standard_normal((2, 400, 3))
    errors = []
    for steps in (0, 3, 30):
        fitted = on_sample(X, X[:15], refine_filters=steps)
        errors.append([kernel_error(fitted, rows).frobenius for rows in (X, new)])
    errors = np.array(errors)
    assert (np.diff(errors[:, 0]) < 0).all()
    assert errors[2, 0] < 0.5 * errors[0, 0]
    assert errors[2, 1] < 0.7 * errors[0, 1]
    assert fitted.landmark_indices_ is None


def test_refinement_refuses_sparse_rows(X):
    rows = sparse.csr_array(X)
    with pytest.raises(TypeError, match=r"refine_filters=1 .* dense rows"):
        IKAMap(n_landmarks=5, refine_filters=1, random_state=0).fit(rows)


def test_refinement_keeps_the_dtype_and_does_not_change_its_input(X):
    sample, filters = X.astype(np.float32), X[:5].astype(np.float32)
    before = filters.copy()
    found = refine_filters(KERNEL, sample, filters, 3)
    assert found.dtype == np.float32 and found.shape == filters.shape
    np.testing.assert_array_equal(filters, before)


def test_refinement_is_refused_where_there_is_no_gradient(X):
    for params in ({"basis": "relu"}, {"kernel": lambda A, B: A @ B.T}):
        with pytest.raises(ValueError, match=r"refine_filters=2.*differentiable"):
            IKAMap(**params, refine_filters=2).fit(X)


def test_share_of_the_spectrum(X):
    every = on_sample(X, X[:30])
    some = on_sample(X, X[:30], n_components=0.9)
    kept = some.eigenvalues_.sum() / every.eigenvalues_.sum()
    assert 0.9 <= kept and len(some.eigenvalues_) < len(every.eigenvalues_)
    without_last = some.eigenvalues_[:-1].sum() / every.eigenvalues_.sum()
    assert without_last < 0.9


def test_trace_error(X):
    fitted = on_sample(X, X[:10])
    expected = 1 - (fitted.transform(X) ** 2).sum() / len(X)
    assert fitted.kernel_error_ == pytest.approx(expected)


def test_precomputed_kernel(X):
    K = KERNEL(X, X)
    fitted = IKAMap("precomputed", n_landmarks=20, n_samples=50, random_state=0).fit(K)
    twin = IKAMap(KERNEL, n_landmarks=20, n_samples=50, random_state=0).fit(X)
    new = X[::3] + 0.1
    np.testing.assert_allclose(
        fitted.transform(KERNEL(new, X)), twin.transform(new), atol=1e-8
    )
    np.testing.assert_array_equal(fitted.landmark_indices_, twin.landmark_indices_)


def test_sparse_rows(X):
    X[X < 0] = 0
    fitted = IKAMap(KERNEL, n_landmarks=20, n_samples=50, random_state=0)
    dense = fitted.fit(X).transform(X)
    found = fitted.fit(sparse.csr_array(X)).transform(sparse.csr_array(X))
    np.testing.assert_allclose(found @ found.T, dense @ dense.T, atol=1e-8)


def test_stream_keeps_a_sample_and_knows_its_rows(rng):
    X = rng.standard_normal((1000, 3))
    blocks = [X[:100], X[100:101], X[101:700], X[700:]]
    fitted = IKAMap(KERNEL, n_landmarks=30, n_samples=200, random_state=0)
    fitted.fit(iter(blocks))
    assert fitted.n_samples_ == 200
    np.testing.assert_array_equal(X[fitted.landmark_indices_], fitted.landmarks_)
    assert kernel_error(fitted, X).frobenius < 0.1


def test_indices_mean_nothing_in_a_stream(X):
    with pytest.raises(ValueError, match="iterable of blocks"):
        IKAMap(KERNEL, landmarks=[1, 2, 3]).fit(iter([X, X]))


def test_landmarks_of_any_kind(X):
    by_index = IKAMap(KERNEL, landmarks=[3, 7, 20], random_state=0).fit(X)
    np.testing.assert_array_equal(by_index.landmarks_, X[[3, 7, 20]])
    by_kmeans = IKAMap(KERNEL, landmarks="kmeans", n_landmarks=5).fit(X)
    assert by_kmeans.landmarks_.shape == (5, 4)


def test_saved_and_loaded(X, tmp_path):
    for basis in ("kernel", "relu"):
        fitted = IKAMap(KERNEL, basis, n_landmarks=9, random_state=0).fit(X)
        kernlets.save(fitted, tmp_path / basis)
        again = kernlets.load(tmp_path / basis)
        np.testing.assert_array_equal(again.transform(X), fitted.transform(X))


def test_bad_parameters_are_refused(X):
    with pytest.raises(ValueError, match="only the square"):
        IKAMap("precomputed").fit(X)
    with pytest.raises(ValueError, match="frequencies"):
        IKAMap("poly:2", "cosine").fit(X)
    with pytest.raises(ValueError, match="zero"):
        IKAMap("poly:2").fit(0 * X)
