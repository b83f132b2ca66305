"""Exact kernel dictionary learning against linear and naive forms."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy import sparse
from sklearn.model_selection import GridSearchCV

from kernlets import (
    KSVD,
    MOD,
    OMP,
    RBF,
    Callable,
    KernelKSVD,
    KernelMOD,
    Lasso,
    Polynomial,
    ResidualClassifier,
    SRCClassifier,
    Threshold,
    options,
)
from kernlets.coders import encode
from kernlets.dictionaries import ExplicitDictionary, KernelDictionary
from kernlets.learners.rls import Recursion
from kernlets.loops import table
from kernlets.updates import KSVDUpdate
from papers.written import exact_kernel_ksvd, kernel_omp

PAIRS = [(KSVD, KernelKSVD, {}), (KSVD, KernelKSVD, {"update": "ksvd:exact=True"})]
PAIRS += [(KSVD, KernelKSVD, {"update": "ksvd-parallel"}), (MOD, KernelMOD, {})]


def factor(K):
    """Rows whose inner products are K: exact virtual samples, eq. (16) of LKDL."""
    values, vectors = np.linalg.eigh(K)
    return vectors * np.sqrt(np.clip(values, 0, None))


@pytest.fixture
def X(rng):
    return rng.standard_normal((120, 8))


@pytest.fixture
def start(rng):
    return rng.permutation(120)[:15]


@pytest.mark.parametrize(("Linear", "Kernelized", "params"), PAIRS)
def test_linear_kernel_is_the_linear_algorithm(Linear, Kernelized, params, X, start):
    common = {"n_components": 15, "n_nonzero_coefs": 3, "random_state": 0, **params}
    linear = Linear(init=X[start], **common).fit(X)
    kernel = Kernelized("linear", init=start, **common).fit(X)
    np.testing.assert_allclose(
        kernel.history_["objective"], linear.history_["objective"], rtol=1e-9
    )
    np.testing.assert_allclose(kernel.coefs_ @ X, linear.components_, atol=1e-8)
    np.testing.assert_allclose(kernel.transform(X), linear.transform(X), atol=1e-8)
    np.testing.assert_allclose(
        kernel.reconstruction_error(X, per_sample=True),
        linear.reconstruction_error(X, per_sample=True),
        atol=1e-8,
    )


@pytest.mark.parametrize(("Linear", "Kernelized", "params"), PAIRS)
@pytest.mark.parametrize("kernel", [RBF(2.0), Polynomial(2, coef0=1.0)])
def test_exact_virtual_samples_give_the_kernel_method(
    Linear, Kernelized, params, kernel, X, start
):
    common = {"n_components": 15, "n_nonzero_coefs": 3, "random_state": 0, **params}
    virtual = factor(kernel(X))
    linear = Linear(init=virtual[start], **common).fit(virtual)
    exact = Kernelized(kernel, init=start, **common).fit(X)
    np.testing.assert_allclose(
        exact.history_["objective"], linear.history_["objective"], rtol=1e-7
    )


def naive_kernel_omp(kernel, Z, A, x, q):
    """Table I of LKDL, term by term, with no Gram matrix of atoms."""
    K, k = kernel(Z), kernel(x[None], Z)[0]
    support, gamma = [], np.zeros(0)
    for _ in range(q):
        S = A[support]
        scores = [k @ a - gamma @ (S @ K @ a) for a in A]
        scores = [0 if j in support else abs(s) for j, s in enumerate(scores)]
        support.append(int(np.argmax(scores)))
        S = A[support]
        gamma = np.linalg.solve(S @ K @ S.T, S @ k)
    code = np.zeros(len(A))
    code[support] = gamma
    return code


def test_kernel_omp_is_table_one(rng, X):
    kernel = Polynomial(2, coef0=0.5)
    A = rng.standard_normal((10, 30))
    A /= np.sqrt(np.einsum("ij,jk,ik->i", A, kernel(X[:30]), A))[:, None]
    codes = encode(KernelDictionary(kernel, X[:30], A), OMP(3), X[30:50]).toarray()
    naive = [naive_kernel_omp(kernel, X[:30], A, x, 3) for x in X[30:50]]
    np.testing.assert_allclose(codes, naive, atol=1e-9)


def test_kernel_lasso_is_the_lasso_on_virtual_samples(rng, X):
    kernel = RBF(3.0)
    virtual = factor(kernel(X))
    A = rng.standard_normal((10, 120))
    A /= np.sqrt(np.einsum("ij,jk,ik->i", A, kernel(X), A))[:, None]
    coder = Lasso(0.05, tol=1e-10, max_iter=10**4)
    found = encode(KernelDictionary(kernel, X, A), coder, X).toarray()
    expected = encode(ExplicitDictionary(A @ virtual), coder, virtual).toarray()
    np.testing.assert_allclose(found, expected, atol=1e-7)


@pytest.mark.parametrize("Learner", [KernelKSVD, KernelMOD])
def test_precomputed_is_the_kernel(Learner, X, start):
    kernel, new = RBF(2.0), X[:20] + 0.1
    common = {"init": start, "n_nonzero_coefs": 3, "random_state": 0}
    plain = Learner(kernel, **common).fit(X)
    given = Learner("precomputed", **common).fit(kernel(X))
    np.testing.assert_allclose(given.coefs_, plain.coefs_, atol=1e-10)
    codes = given.transform(kernel(new, X))
    np.testing.assert_allclose(codes, plain.transform(new), atol=1e-9)
    np.testing.assert_allclose(  # κ(x, x) = 1 for every sample, so errors agree too
        given.reconstruction_error(kernel(new, X), per_sample=True),
        plain.reconstruction_error(new, per_sample=True),
        atol=1e-9,
    )
    with pytest.raises(ValueError, match="square"):
        Learner("precomputed").fit(X)


def test_precomputed_in_the_residual_classifier_and_grid_search(rng):
    X = np.concatenate([rng.standard_normal((40, 6)), rng.standard_normal((40, 6)) + 2])
    y = np.repeat([0, 1], 40)
    kernel = RBF(2.0)
    plain = ResidualClassifier(
        KernelKSVD(kernel, 8, n_nonzero_coefs=2, random_state=0)
    ).fit(X, y)
    given = ResidualClassifier(
        KernelKSVD("precomputed", 8, n_nonzero_coefs=2, random_state=0)
    )
    given.fit(kernel(X), y)
    new = X + 0.1
    np.testing.assert_array_equal(given.predict(kernel(new, X)), plain.predict(new))
    search = GridSearchCV(given, {"learner__n_nonzero_coefs": [1, 2]}, cv=3)
    assert search.fit(kernel(X), y).best_score_ > 0.7


def shared_pairs(a, b):
    """How many pairs of neighbouring letters two words share: a string kernel."""
    left, right = ([w[i : i + 2] for i in range(len(w) - 1)] for w in (a, b))
    return float(sum(left.count(p) * right.count(p) for p in set(left)))


WORDS = ["banana", "bandana", "cabana", "anna", "hannah", "savanna", "manna"]
OTHER = ["kernel", "colonel", "sternum", "tern", "kern", "eternal", "lantern"]


def test_strings_through_a_callable():
    kernel = Callable(shared_pairs, pairwise=True)
    learner = KernelKSVD(kernel, 4, n_nonzero_coefs=2, random_state=0, max_iter=3).fit(
        WORDS + OTHER
    )
    assert learner.transform(["nanna", "turn"]).shape == (2, 4)
    model = ResidualClassifier(
        KernelKSVD(kernel, 3, n_nonzero_coefs=2, random_state=0, max_iter=3)
    )
    model.fit(WORDS + OTHER, ["a"] * 7 + ["e"] * 7)
    assert model.predict(["banan", "internal"]).tolist() == ["a", "e"]


def test_matrices_through_a_callable(rng):
    def log_euclidean(A, B):
        def logs(stack):
            values, vectors = np.linalg.eigh(stack)
            logs = np.einsum("nij,nj,nkj->nik", vectors, np.log(values), vectors)
            return logs.reshape(len(stack), -1)

        return np.exp(logs(A) @ logs(B).T / 10)

    half = rng.standard_normal((50, 3, 3))
    spd = half @ half.transpose(0, 2, 1) + 0.5 * np.eye(3)
    learner = KernelMOD(log_euclidean, 10, n_nonzero_coefs=2, random_state=0).fit(spd)
    assert learner.history_["objective"][-1] < learner.history_["objective"][0]
    assert learner.transform(spd[:4]).shape == (4, 10)


@pytest.mark.parametrize("kernel", ["linear", "poly:2", "rbf:2"])
def test_sparse_rows(kernel, X, start):
    X = np.where(np.abs(X) > 1, X, 0)
    params = {"init": start, "n_nonzero_coefs": 2, "random_state": 0}
    dense = KernelKSVD(kernel, **params).fit(X)
    rows = sparse.csr_array(X)
    found = KernelKSVD(kernel, **params).fit(rows)
    np.testing.assert_allclose(found.coefs_, dense.coefs_, atol=1e-9)
    np.testing.assert_allclose(found.transform(rows), dense.transform(X), atol=1e-9)


def test_float32_follows_float64(X, start):
    params = {"init": start, "n_nonzero_coefs": 3, "random_state": 0, "max_iter": 5}
    double = KernelKSVD("poly:2", **params).fit(X)
    single = KernelKSVD("poly:2", **params).fit(X.astype(np.float32))
    assert single.coefs_.dtype == np.float32
    np.testing.assert_allclose(
        single.history_["objective"], double.history_["objective"], rtol=1e-4
    )


def test_products_do_not_drift(rng):
    """K·A is updated atom by atom: after many sweeps it is still K·A."""
    from kernlets.contracts import Coded
    from kernlets.dictionaries import GramDictionary
    from kernlets.updates import KSVDUpdate

    X = rng.standard_normal((200, 8)).astype(np.float32)
    K, rows = RBF(2.0)(X), np.arange(200)
    dictionary = GramDictionary.of_samples(K, rows[:20])
    for _ in range(30):
        codes = encode(dictionary, OMP(3), rows)
        dictionary = KSVDUpdate().step(dictionary, Coded(rows, codes), rng).dictionary
    exact = dictionary.coefs.astype(float) @ K.astype(float)
    np.testing.assert_allclose(dictionary.products, exact, atol=1e-4)


def test_memory_is_little_more_than_the_kernel_matrix(rng):
    X = rng.standard_normal((1500, 10)).astype(np.float32)
    learner = KernelKSVD("rbf", 100, n_nonzero_coefs=4, max_iter=2, random_state=0)
    learner.fit(X[:50].repeat(4, axis=0))  # compile first
    with options(n_threads=1, block_rows=64):
        tracemalloc.start()
        learner.fit(X)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 1.3 * 4 * 1500**2


def test_too_large_is_refused_with_advice(rng):
    X = rng.standard_normal((1000, 3))
    with options(memory="5MB"), pytest.raises(MemoryError, match="NystroemMap") as info:
        KernelKSVD().fit(X)
    assert "1000 samples" in str(info.value) and "memory" in str(info.value)


@pytest.mark.parametrize("Kernelized", [KernelKSVD, KernelMOD])
def test_random_combinations_of_all_samples_as_first_atoms(Kernelized, X):
    """For the linear kernel they are random directions: the same path from there."""
    coefs = np.random.default_rng(0).standard_normal((15, len(X)))
    common = {"n_nonzero_coefs": 3, "max_iter": 4, "random_state": 0}
    found = Kernelized("linear", 15, init="normal", **common).fit(X)
    linear = {KernelKSVD: KSVD, KernelMOD: MOD}[Kernelized]
    rng = np.random.default_rng(0)
    rng.standard_normal(coefs.shape)  # what the start has drawn
    expected = linear(15, init=coefs @ X, **{**common, "random_state": rng}).fit(X)
    np.testing.assert_allclose(
        found.history_["objective"], expected.history_["objective"], rtol=1e-8
    )


def test_equal_samples_are_as_likely_as_their_weight(X):
    """w equal rows have √w times the coefficient of one, in distribution."""
    weights = np.full(len(X), 1.0)
    weights[:60] = 100.0
    model = KernelKSVD("linear", 40, init="normal", n_nonzero_coefs=1, random_state=0)
    start = model._first_dictionary(X @ X.T, np.random.default_rng(0), weights)
    sizes = np.abs(start.coefs).mean(axis=0)
    assert sizes[:60].mean() / sizes[60:].mean() == pytest.approx(10, rel=0.1)
    norms = (start.coefs @ (X @ X.T) * start.coefs).sum(axis=1)
    np.testing.assert_allclose(norms, 1)


def test_bad_init(X):
    for bad in ([[1, 2]], [0.5, 1.0], [0, 500]):
        with pytest.raises(ValueError, match="init"):
            KernelKSVD(init=bad).fit(X)


def test_src_with_a_linear_kernel_is_the_naive_form(rng):
    X, y = rng.standard_normal((30, 10)), np.repeat(["b", "a", "c"], 10)
    new = rng.standard_normal((12, 10))
    model = SRCClassifier("linear", n_nonzero_coefs=6).fit(X, y)
    atoms = X / np.linalg.norm(X, axis=1, keepdims=True)
    codes = encode(ExplicitDictionary(atoms), OMP(6), new).toarray()
    naive = np.stack(
        [
            ((new - np.where(y == c, codes, 0) @ atoms) ** 2).sum(1)
            for c in model.classes_
        ],
        axis=1,
    )
    np.testing.assert_allclose(model.residuals(new), naive, atol=1e-10)
    np.testing.assert_array_equal(model.predict(new), model.classes_[naive.argmin(1)])


def test_src_separates_with_kernels_and_torch(xp, rng):
    angle = rng.uniform(0, 2 * np.pi, 200)
    y = np.arange(200) % 2
    circles = np.stack([np.cos(angle), np.sin(angle)], axis=1) * (1 + y)[:, None]
    X = xp.asarray(circles + 0.05 * rng.standard_normal((200, 2)))
    model = SRCClassifier(RBF(0.3), n_nonzero_coefs=5).fit(X[:100], y[:100])
    assert (xp.to_numpy(model.predict(X[100:])) == y[100:]).mean() > 0.97


def test_learning_as_written_follows_the_library(X):
    """The slow form that speed-ups are measured against computes the same errors."""
    kernel, coder = RBF(2.0), OMP(3)
    rng = np.random.default_rng(0)
    slow = exact_kernel_ksvd(kernel(X), 15, coder, 5, rng)
    bare = KSVDUpdate(min_uses=0, max_coherence=2.0)

    class Transposed(np.random.Generator):
        """Draws the first coefficients as the slow form does: (N, m)."""

        def standard_normal(self, size):
            return super().standard_normal(size[::-1]).T

    drawn = Transposed(np.random.PCG64(0))
    fast = KernelKSVD(
        kernel, 15, coder=coder, max_iter=5, init="normal", update=bare
    ).set_params(random_state=drawn)
    np.testing.assert_allclose(fast.fit(X).history_["objective"], slow, rtol=1e-9)


def test_pursuit_of_the_table_is_omp_in_feature_space(X, rng):
    K, A = RBF(2.0)(X), rng.standard_normal((len(X), 12))
    A /= np.sqrt((A * (K @ A)).sum(axis=0))
    new = rng.standard_normal((4, 8))
    k_new = RBF(2.0)(new, X)
    expected = OMP(3).solve(A.T @ K @ A, k_new @ A, np.ones(4)).toarray()
    for code, k_z in zip(expected, k_new, strict=True):
        np.testing.assert_allclose(kernel_omp(K, A, k_z, 3), code, atol=1e-9)


@pytest.mark.parametrize("coder", [Lasso(0.01), Threshold(0.5, "hard")])
@pytest.mark.parametrize("loops", ["reference", "numba"])
def test_atoms_over_samples_on_a_line_keep_their_norm(rng, coder, loops):
    """Where others explain all, what is left for an atom is rounding."""
    x = rng.standard_normal((13, 1))
    with options(loops=loops):
        model = KernelKSVD("precomputed", 4, coder=coder, max_iter=3, random_state=31)
        gram = model.fit(x @ x.T).dictionary_
    atoms = gram.coefs @ (x @ x.T) @ gram.coefs.T
    np.testing.assert_allclose(np.diag(atoms), 1, atol=1e-6)


def test_atoms_that_are_differences_of_near_equal_samples_have_unit_norm(rng):
    """In float32 their squared norms were off by up to 15 %."""
    coder = Threshold(alpha=1e-4)
    for _ in range(5):
        X = (1 + 1e-3 * rng.standard_normal((20, 2))).astype(np.float32)
        model = KernelKSVD("rbf:1", 2, coder=coder, max_iter=1, random_state=2).fit(X)
        squares = np.diag(model.dictionary_.gram())
        np.testing.assert_allclose(squares, 1, atol=3e-4)


def test_an_atom_that_the_samples_cancel_out():
    state = Recursion(np.array([[0.0], [2.0]]), np.eye(2))
    found = state.with_unit_atoms(np.array([[-1.0], [1.0]]))
    assert found.atoms.tolist() == [[-1.0], [1.0]]
    assert found.covariance.tolist() == [[1.0, 0.0], [0.0, 0.25]]


@pytest.mark.parametrize("library", ["reference", "numba"])
@pytest.mark.parametrize("n", [60, 500])
def test_atoms_of_samples_that_are_alike(library, n):
    """What is left beside the atom of their mean is rounding, and no direction."""
    for seed in range(8):
        rng = np.random.default_rng(seed)
        K = 1 - 1e-7 * np.abs(rng.standard_normal((n, n)))
        K = np.minimum(K, K.T).astype("f4")
        np.fill_diagonal(K, 1)
        coefs = np.zeros((2, n), "f4")
        coefs[0], coefs[1, 0] = 1 / n, 1
        products = coefs @ K
        values = np.ones((n, 2), "f4")
        values[:, 1] = 1e-4 * (1 + 0.3 * rng.standard_normal(n))
        places, order = np.tile(np.arange(2, dtype=np.int32), (n, 1)), np.array([1])
        gram = products @ coefs.T
        sweep = table.gram_sweep.loop(library)
        sweep(K, coefs, products, gram, places, values, order, False)
        atom = coefs[1].astype(float)
        assert abs(atom @ K.astype(float) @ atom - 1) < 0.1
