"""OMP without a Gram matrix finds what OMP with one finds, everywhere."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from kernlets import KSVD, OMP
from kernlets.coders import encode
from kernlets.dictionaries import ExplicitDictionary
from kernlets.loops import table
from kernlets.loops.omp import reference

from .test_operations import DTYPES, call, library, problem, products  # noqa: F401

SHAPES = [(60, 20, 90, 6), (40, 7, 30, 5), (12, 150, 2100, 20)]  # n, p, m, width
REFERENCES = {"rows_omp": reference.omp, "positive_rows_omp": reference.positive_omp}


@pytest.fixture(params=list(REFERENCES))
def name(request):
    return request.param


def pursued(library, name, X, atoms, width, tol=0.0):  # noqa: F811
    return call(library, name, atoms, X, (X * X).sum(1), width, tol)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("tol", [0.0, 3.0])
def test_the_codes_are_those_with_a_gram_matrix(library, rng, name, shape, dtype, tol):  # noqa: F811
    *sizes, width = shape
    X, atoms = problem(rng, *sizes, dtype=np.float64)
    expected = REFERENCES[name](*products(X, atoms), width, tol)
    given = X.astype(dtype), atoms.astype(dtype)
    indices, values, error = pursued(library, name, *given, width, tol)
    energy = (X * X).sum(1)
    close = 1e-10 if dtype == np.float64 else 1e-4
    assert values.dtype == error.dtype == dtype
    np.testing.assert_array_equal(indices, expected[0])
    np.testing.assert_allclose(error / energy, expected[2] / energy, atol=close)
    left = X - np.einsum("nw,nwp->np", values, atoms[indices])
    np.testing.assert_allclose((left**2).sum(1) / energy, error / energy, atol=close)


def test_nothing_to_code_and_nothing_finite(library, rng, name):  # noqa: F811
    X, atoms = problem(rng, n=5)
    X[1], X[3] = 0, np.inf
    indices, values, error = pursued(library, name, X, atoms, 4)
    assert (indices[[1, 3]] == -1).all() and (values[[1, 3]] == 0).all()
    assert error[1] == 0 and np.isnan(error[3])
    assert (indices[[0, 2, 4]] >= 0).all()


def test_equal_atoms_are_taken_once(library, rng, name):  # noqa: F811
    X, atoms = problem(rng, n=20, m=8)
    indices, *_ = pursued(library, name, X, np.repeat(atoms, 2, axis=0), 8)
    for row in indices:
        taken = row[row >= 0] // 2
        assert len(set(taken)) == len(taken)


def test_atoms_of_any_length(library, rng, name):  # noqa: F811
    X, atoms = problem(rng, m=40, dtype=np.float32)
    atoms *= np.logspace(-3, 3, 40, dtype=np.float32)[:, None]
    gram, corr, energy = products(X.astype(float), atoms.astype(float))
    expected = REFERENCES[name](gram, corr, energy, 3, 0.0)
    indices, _, error = pursued(library, name, X, atoms, 3)
    np.testing.assert_array_equal(indices, expected[0])
    np.testing.assert_allclose(error, expected[2], rtol=1e-3)


def test_near_ties_are_decided_as_in_the_type_of_the_rows(library, rng):  # noqa: F811
    """Correlations that differ less than half precision can tell."""
    p, m = 64, 3000
    x = rng.standard_normal(p)
    x /= np.linalg.norm(x)
    aside = rng.standard_normal((m, p))
    aside -= np.outer(aside @ x, x)
    aside /= np.linalg.norm(aside, axis=1, keepdims=True)
    cosines = 0.8 - 1e-5 * rng.permutation(m)  # the best is ahead by 1e-5
    atoms = cosines[:, None] * x + np.sqrt(1 - cosines**2)[:, None] * aside
    given = np.repeat(x[None], 3, axis=0).astype(np.float32), atoms.astype(np.float32)
    indices, *_ = pursued(library, "rows_omp", *given, 1)
    assert (indices[:, 0] == cosines.argmax()).all()


@pytest.fixture
def few_is_many(monkeypatch):
    monkeypatch.setattr(table, "MANY_ATOMS", 10)


@pytest.mark.parametrize("positive", [False, True])
def test_encoding_without_a_gram_matrix(rng, few_is_many, monkeypatch, positive):
    X, atoms = problem(rng)
    coder = OMP(4, positive=positive)
    wanted = coder.solve(*products(X, atoms)).toarray()

    def refuse(self):
        raise AssertionError("a Gram matrix of many atoms")

    monkeypatch.setattr(ExplicitDictionary, "_compute_gram", refuse)
    found = encode(ExplicitDictionary(atoms), coder, X).toarray()
    np.testing.assert_allclose(found, wanted, atol=1e-10)


def test_learning_many_atoms(rng, few_is_many, monkeypatch):
    X, _ = problem(rng, n=200)
    model = KSVD(20, 3, max_iter=3, update="ksvd-parallel", random_state=0)
    found = model.fit(X).dictionary_.atoms
    monkeypatch.setattr(table, "MANY_ATOMS", 2**15)
    np.testing.assert_allclose(found, model.fit(X).dictionary_.atoms, atol=1e-8)


def test_sparse_rows(rng, few_is_many):
    X, atoms = problem(rng)
    X = sparse.csr_array(np.where(X > 0.5, X, 0))
    found = encode(ExplicitDictionary(atoms), OMP(3), X).toarray()
    dense = encode(ExplicitDictionary(atoms), OMP(3), X.toarray()).toarray()
    np.testing.assert_allclose(found, dense, atol=1e-12)


def test_rows_of_another_width_are_refused(rng):
    X, atoms = problem(rng)
    with pytest.raises(ValueError, match="19 features"):
        table.rows_omp(atoms, X[:, 1:], (X**2).sum(1), 3, 0.0)


def test_sums_over_codes(rng):
    """On a GPU they are added up atom by atom."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    from kernlets.loops.updates.torch import code_cross, code_gram

    device = "cuda" if torch.cuda.is_available() else "cpu"
    X, atoms = problem(rng, n=500, m=1500, dtype=np.float32)
    codes = encode(ExplicitDictionary(atoms), OMP(6), X)
    codes.indices[3] = -1
    codes.values[3] = 0
    Gamma = codes.toarray().astype(float)
    there = [torch.as_tensor(a, device=device) for a in (codes.indices, codes.values)]
    there[0] = there[0].long()
    rows = torch.as_tensor(X, device=device)
    gram = code_gram(*there, 1500).cpu().numpy()
    cross = code_cross(*there, rows, 1500).cpu().numpy()
    np.testing.assert_allclose(gram, Gamma.T @ Gamma, atol=1e-4)
    np.testing.assert_allclose(cross, Gamma.T @ X, atol=1e-4)
