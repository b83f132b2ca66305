"""What every kernel promises, for everything registered and a few composites."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from kernlets.kernels import (
    KERNELS,
    RBF,
    Constant,
    Cosine,
    Laplacian,
    Linear,
    Matern,
    Normalized,
    Polynomial,
    Precomputed,
    RationalQuadratic,
    Sigmoid,
)

# kernels of series, strings, graphs and matrices are in `test_structured`
REGISTERED = [
    kind()
    for kind in KERNELS.values()
    if kind is not Precomputed and kind.takes == "rows"
]
MORE = [
    RBF(sigma=1.3),
    RBF(gamma=0.2),
    Matern(1.2, nu=0.5),
    Matern(1.2, nu=2.5),
    RationalQuadratic(0.8, alpha=2.5),
    Laplacian(0.3),
    Polynomial(1, coef0=0.5),
    Polynomial(3, coef0=1.0, scale=0.5),
    Polynomial(7, coef0=1.0, scale=0.2),
    Sigmoid(0.1, coef0=-0.2),
    Constant(2.0),
    RBF(1.5) + Polynomial(2, 1.0),
    RBF(1.5) * Linear(),
    0.5 * Cosine() + 2.0,
    Normalized(Polynomial(3, 1.0)),
    Normalized(RBF(1.0) * Linear() + Matern(1.0)),
]
KINDS = [*REGISTERED, *MORE]
N, M, P = 12, 9, 4


def _id(kernel):
    return " ".join(repr(kernel).split())


def _kernels(kinds):
    return pytest.mark.parametrize("kernel", list(kinds), ids=_id)


every_kernel = _kernels(KINDS)
psd_kernels = _kernels(k for k in KINDS if getattr(k, "psd", True))
sparse_kernels = _kernels(k for k in KINDS if getattr(k, "accept_sparse", False))
smooth_kernels = _kernels(k for k in KINDS if k.differentiable)


def samples(kernel, rng, n=N):
    """Rows on which the kernel is defined."""
    X = rng.normal(size=(n, P))
    return np.abs(X) if getattr(kernel, "non_negative", False) else X


@pytest.fixture
def pair(kernel, rng):
    return samples(kernel, rng), samples(kernel, rng, M)


@every_kernel
def test_shapes_and_symmetry(kernel, pair, xp):
    X, Y = map(xp.asarray, pair)
    assert tuple(kernel(X, Y).shape) == (N, M)
    assert tuple(kernel.diag(X).shape) == (N,)
    K = xp.to_numpy(kernel(X))
    np.testing.assert_allclose(K, K.T, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(
        xp.to_numpy(kernel(X, Y)), xp.to_numpy(kernel(Y, X)).T, rtol=1e-12, atol=1e-13
    )


@every_kernel
def test_diag_is_the_diagonal(kernel, pair, xp):
    X = xp.asarray(pair[0])
    diagonal = np.diagonal(xp.to_numpy(kernel(X)))
    np.testing.assert_allclose(xp.to_numpy(kernel.diag(X)), diagonal, rtol=1e-12)


@every_kernel
def test_one_block_or_many_give_the_same(kernel, pair, xp):
    X, Y = map(xp.asarray, pair)
    whole = xp.to_numpy(kernel(X, Y))
    parts = [xp.to_numpy(kernel(X[i : i + 5], Y)) for i in range(0, N, 5)]
    np.testing.assert_allclose(np.concatenate(parts), whole, rtol=1e-12, atol=1e-14)
    again = xp.to_numpy(kernel(X, xp.asarray(pair[0].copy())))
    # Distances between equal rows of two arrays are 0 up to rounding only.
    np.testing.assert_allclose(again, xp.to_numpy(kernel(X)), atol=1e-6)


@psd_kernels
def test_positive_semi_definite(kernel, rng):
    X = samples(kernel, rng, 40)
    X[20:25] = X[:5]
    eigenvalues = np.linalg.eigvalsh(kernel(X))
    assert eigenvalues[0] >= -1e-12 * eigenvalues[-1]


@every_kernel
def test_torch_equals_numpy(kernel, pair):
    torch = pytest.importorskip("torch")
    X, Y = pair
    tensors = torch.asarray(X), torch.asarray(Y)
    np.testing.assert_allclose(kernel(*tensors).numpy(), kernel(X, Y), rtol=1e-12)
    np.testing.assert_allclose(kernel.diag(tensors[0]).numpy(), kernel.diag(X))
    bound = kernel.bound(X)
    np.testing.assert_allclose(
        kernel.bound(tensors[0])(*tensors).numpy(), bound(X, Y), rtol=1e-12
    )


@every_kernel
def test_float32_is_kept_and_close(kernel, pair, xp):
    X, Y = pair
    narrow = [xp.asarray(a.astype(np.float32)) for a in (X, Y)]
    K, diagonal = xp.to_numpy(kernel(*narrow)), xp.to_numpy(kernel.diag(narrow[0]))
    assert K.dtype == diagonal.dtype == np.float32
    scale = np.abs(kernel(X, Y)).max()
    np.testing.assert_allclose(K, kernel(X, Y), atol=2e-5 * scale)
    scale = np.abs(kernel.diag(X)).max()
    np.testing.assert_allclose(diagonal, kernel.diag(X), atol=2e-6 * scale)


@smooth_kernels
def test_pull_keeps_float32(kernel, pair, rng, xp):
    arrays = [*pair, rng.normal(size=(N, M))]
    pulled = kernel.pull(*(xp.asarray(a.astype(np.float32)) for a in arrays))
    expected = kernel.pull(*arrays)
    assert xp.to_numpy(pulled).dtype == np.float32
    tolerance = 1e-4 * np.abs(expected).max()
    np.testing.assert_allclose(xp.to_numpy(pulled), expected, atol=tolerance)


@smooth_kernels
def test_pull_is_the_gradient(kernel, pair, rng, xp):
    X, Y = pair
    W, step = rng.normal(size=(N, M)), 1e-5
    expected = np.empty_like(X)
    for c, direction in enumerate(step * np.eye(P)):
        change = kernel(X + direction, Y) - kernel(X - direction, Y)
        expected[:, c] = (W * change).sum(axis=1) / (2 * step)
    pulled = xp.to_numpy(kernel.pull(*map(xp.asarray, (X, Y, W))))
    np.testing.assert_allclose(pulled, expected, atol=1e-6 * np.abs(expected).max())


@smooth_kernels
def test_autograd_passes_through(kernel, pair, rng):
    torch = pytest.importorskip("torch")
    X, Y, W = (torch.asarray(a) for a in (*pair, rng.normal(size=(N, M))))
    X.requires_grad_()
    (W * kernel(X, Y) + 0.0 * X.sum()).sum().backward()
    pulled = kernel.pull(X.detach(), Y, W).numpy()
    np.testing.assert_allclose(X.grad.numpy(), pulled, rtol=1e-9, atol=1e-11)


@every_kernel
def test_arguments_are_left_alone(kernel, pair, rng, xp):
    arrays = [*pair, rng.normal(size=(N, M))]
    X, Y, W = (xp.asarray(a.copy()) for a in arrays)
    kernel(X, Y), kernel(X), kernel.diag(X), kernel.bound(X)
    if kernel.differentiable:
        kernel.pull(X, Y, W)
    for after, before in zip((X, Y, W), arrays, strict=True):
        np.testing.assert_array_equal(xp.to_numpy(after), before)


@every_kernel
def test_degenerate_rows_never_give_nan(kernel, pair, xp):
    X, Y = pair
    X[0] = Y[0] = Y[1] = 0.0
    X[1] = Y[2]
    for A, B in [(X, Y), (X[:1], Y), (X, Y[:1]), (X[:1], X[:1]), (X, X)]:
        V = xp.asarray(np.ones((len(A), len(B))))
        A, B = xp.asarray(A), xp.asarray(B)
        results = [kernel(A, B), kernel(A), kernel.diag(A)]
        if kernel.differentiable:
            results.append(kernel.pull(A, B, V))
        for result in results:
            assert np.isfinite(xp.to_numpy(result)).all()


@every_kernel
@pytest.mark.parametrize("value", [0.0, 0.1, 3.0])
def test_constant_data_can_be_bound(kernel, value, xp):
    X = xp.asarray(np.full((5, P), value))
    bound = kernel.bound(X)  # 1/p where the variance is 0, as when not bound
    np.testing.assert_array_equal(xp.to_numpy(bound(X)), xp.to_numpy(kernel(X)))
    assert np.isfinite(xp.to_numpy(bound(X))).all()


@every_kernel
def test_no_rows_give_no_rows(kernel, pair, xp):
    X, Y = map(xp.asarray, pair)
    assert tuple(kernel(X[:0], Y).shape) == (0, M)


@every_kernel
def test_integers_are_computed_in_float64(kernel, rng, xp):
    X = rng.integers(0, 5, size=(N, P))
    K = xp.to_numpy(kernel(xp.asarray(X)))
    assert K.dtype == np.float64
    np.testing.assert_allclose(K, kernel(X.astype(float)), rtol=1e-12)


@every_kernel
def test_params_clone_and_pickle(kernel, pair):
    X, Y = pair
    for twin in (clone(kernel), pickle.loads(pickle.dumps(kernel))):
        assert twin is not kernel and repr(twin) == repr(kernel)
        assert twin.get_params().keys() == kernel.get_params().keys()
        np.testing.assert_array_equal(twin(X, Y), kernel(X, Y))


@every_kernel
def test_bound_is_final(kernel, pair):
    X, Y = pair
    bound = kernel.bound(X)
    assert bound.bound(Y) is bound
    if not getattr(kernel, "unset", False):
        assert bound is kernel


@sparse_kernels
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("make", [sparse.csr_array, sparse.csr_matrix])
def test_sparse_rows(kernel, pair, dtype, make):
    X, Y = (np.where(a > 0, a, 0.0).astype(dtype) for a in pair)
    X[0] = 0.0
    dense = kernel(X, Y)
    tolerance = 50 * np.finfo(dtype).eps * max(1.0, np.abs(dense).max())
    for A, B in [(make(X), make(Y)), (make(X), Y), (X, make(Y))]:
        K = kernel(A, B)
        assert isinstance(K, np.ndarray) and K.dtype == dtype
        np.testing.assert_allclose(K, dense, atol=tolerance)
    np.testing.assert_allclose(kernel(make(X)), kernel(X), atol=tolerance)
    np.testing.assert_allclose(kernel.diag(make(X)), kernel.diag(X), rtol=1e-5)
    np.testing.assert_allclose(
        kernel.bound(make(X))(X, Y), kernel.bound(X)(X, Y), atol=tolerance
    )
