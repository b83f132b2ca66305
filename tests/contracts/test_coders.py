"""What every pursuit promises, on every array library."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from kernlets import KSVD, OMP, KernelKSVD, Lasso, Ridge, Threshold
from kernlets.coders import CODERS, encode
from kernlets.config import options
from kernlets.data.block_loop import block_slices
from kernlets.dictionaries import ExplicitDictionary


def precise(coder):
    """An iterative coder with enough steps for comparisons."""
    wanted = {"tol": 1e-10, "max_iter": 10**5}
    return coder.set_params(**wanted) if hasattr(coder, "max_iter") else coder


REGISTERED = [precise(kind()) for kind in CODERS.values()]
MORE = [
    OMP(4),
    OMP(tol=1.0),
    OMP(6, tol=2.0),
    OMP(5, positive=True),
    OMP(6, tol=2.0, positive=True),
    Lasso(0.2, positive=True, tol=1e-10, max_iter=10**5),
    Ridge(3.0),
    Threshold(0.3),
    Threshold(0.3, kind="hard"),
    Threshold(kind="top-k", n_nonzero_coefs=3),
]
INSTANCES = [*REGISTERED, *MORE]


@pytest.fixture(params=INSTANCES, ids=str)
def coder(request):
    return request.param


def problem(rng, n=40, p=12, m=20, dtype=np.float64):
    atoms = rng.standard_normal((m, p))
    atoms /= np.linalg.norm(atoms, axis=1, keepdims=True)
    return rng.standard_normal((n, p)).astype(dtype), atoms.astype(dtype)


def test_every_coder_is_tested():
    assert [type(coder) for coder in REGISTERED] == list(CODERS.values())
    assert len(REGISTERED) >= 3


def test_residual_is_that_of_the_codes(coder, xp, rng):
    X, atoms = problem(rng)
    codes = encode(ExplicitDictionary(xp.asarray(atoms)), coder, xp.asarray(X))
    dense = xp.to_numpy(codes.toarray())
    np.testing.assert_allclose(
        xp.to_numpy(codes.residual), ((X - dense @ atoms) ** 2).sum(1), atol=1e-10
    )
    np.testing.assert_allclose(codes.tocsr().toarray(), dense)
    np.testing.assert_array_equal(codes.uses(), (dense != 0).sum(0))


def test_dtype_is_kept(coder, xp, rng):
    X, atoms = problem(rng, dtype=np.float32)
    codes = encode(ExplicitDictionary(xp.asarray(atoms)), coder, xp.asarray(X))
    assert xp.to_numpy(codes.values).dtype == np.float32
    assert xp.to_numpy(codes.residual).dtype == np.float32
    assert xp.to_numpy(codes.toarray()).dtype == np.float32


def test_libraries_agree(coder, xp, rng):
    X, atoms = problem(rng)
    codes = encode(ExplicitDictionary(xp.asarray(atoms)), coder, xp.asarray(X))
    with options(loops="reference"):
        expected = encode(ExplicitDictionary(atoms), coder, X).toarray()
    np.testing.assert_allclose(xp.to_numpy(codes.toarray()), expected, atol=1e-7)


@pytest.mark.rounding
def test_blocks_and_threads_change_nothing(coder, rng):
    X, atoms = problem(rng, n=101)
    dictionary = ExplicitDictionary(atoms)
    whole = encode(dictionary, coder, X).toarray()
    for block_rows, n_threads in ((7, 1), (7, 3), (100, 2)):
        with options(block_rows=block_rows, n_threads=n_threads):
            assert len(block_slices(101, 8)) > 1
            found = encode(dictionary, coder, X).toarray()
        np.testing.assert_allclose(found, whole, atol=1e-12)


def test_zero_samples_have_zero_codes(coder, xp, rng):
    X, atoms = problem(rng)
    X[3] = 0
    codes = encode(ExplicitDictionary(xp.asarray(atoms)), coder, xp.asarray(X))
    assert (xp.to_numpy(codes.toarray())[3] == 0).all()
    assert xp.to_numpy(codes.residual)[3] == 0


def test_clone(coder):
    assert repr(clone(coder)) == repr(coder)


def test_thresholds_are_exact_for_orthonormal_atoms(xp, rng):
    X, _ = problem(rng)
    atoms = np.linalg.qr(rng.standard_normal((12, 12)))[0]
    dictionary, X = ExplicitDictionary(xp.asarray(atoms)), xp.asarray(X)

    def codes(coder):
        return xp.to_numpy(encode(dictionary, coder, X).toarray())

    np.testing.assert_allclose(codes(Threshold(0.4)), codes(Lasso(0.4)), atol=1e-6)
    np.testing.assert_allclose(
        codes(Threshold(kind="top-k", n_nonzero_coefs=3)), codes(OMP(3))
    )


@pytest.mark.parametrize(
    ("coder", "name"),
    [
        (OMP(0), "n_nonzero_coefs"),
        (OMP(21), "n_nonzero_coefs"),
        (OMP(2, tol=-1), "tol"),
        (Lasso(-1), "alpha"),
        (Lasso(float("nan")), "alpha"),
        (Ridge(0), "alpha"),
        (Threshold(-1), "alpha"),
        (Threshold(kind="top-k", n_nonzero_coefs=30), "n_nonzero_coefs"),
        (Threshold(kind="top-k"), "n_nonzero_coefs"),
        (Threshold(0.3, n_nonzero_coefs=2), "set kind=.top-k"),
        (Threshold(1, kind="firm"), "kind"),
    ],
    ids=str,
)
def test_bad_parameters_are_named(coder, name, rng):
    X, atoms = problem(rng)
    with pytest.raises(ValueError, match=name):
        encode(ExplicitDictionary(atoms), coder, X)


def test_encode_takes_an_array_of_atoms(xp, rng):
    atoms = rng.standard_normal((12, 8))
    atoms /= np.linalg.norm(atoms, axis=1)[:, None]
    X = rng.standard_normal((20, 8))
    expected = encode(ExplicitDictionary(atoms), OMP(4), X).toarray()
    for given in (xp.asarray(atoms), atoms, atoms.tolist()):
        found = encode(given, OMP(4), xp.asarray(X)).toarray()
        np.testing.assert_allclose(xp.to_numpy(found), expected, atol=1e-9)
    whole = encode(np.eye(8, dtype=int), OMP(8), X.round().astype(int))
    np.testing.assert_allclose(whole.toarray(), X.round())


def test_encode_says_what_to_do_with_other_shapes(rng):
    atoms, X = rng.standard_normal((12, 8)), rng.standard_normal((20, 8))
    for columns in (atoms.T, ExplicitDictionary(atoms.T)):
        with pytest.raises(ValueError, match="transpose the atoms"):
            encode(columns, OMP(4), X)
    for rows in (X[:, :5], X[0]):
        with pytest.raises(ValueError, match="atoms have 8 features, but X has shape"):
            encode(atoms, OMP(4), rows)
    for nothing in (atoms[0], "ksvd", None):
        with pytest.raises(TypeError, match="with the atoms as rows"):
            encode(nothing, OMP(4), X)


def on_a_cluster(codes):
    da = pytest.importorskip("dask.array", reason="Dask is not installed")
    return da.from_array(codes, chunks=(10, -1))


@pytest.mark.parametrize("held", [np.asarray, sparse.csr_array, on_a_cluster])
@pytest.mark.parametrize("model", [KSVD(3), KernelKSVD("rbf:1", 3)], ids=repr)
def test_codes_that_nothing_can_be_made_of(model, held, rng):
    fitted = clone(model).fit(rng.standard_normal((30, 4)).astype(np.float32))
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        for value in (np.nan, np.inf, np.finfo(float).max):
            with pytest.raises(ValueError, match=r"contains? NaN or infinity"):
                np.asarray(fitted.inverse_transform(held(np.full((20, 3), value))))
        with pytest.raises(ValueError, match="each of the 3 atoms"):
            np.asarray(fitted.inverse_transform(held(np.ones((20, 4)))))
