"""Missing values: formulas against naive loops, training, and bad input."""

from __future__ import annotations

import warnings
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline

from kernlets import (
    KSVD,
    MOD,
    OMP,
    RBF,
    DKSVDClassifier,
    FourierMap,
    KernelKSVD,
    KSADClassifier,
    Lasso,
    Linear,
    NystroemMap,
    OnlineDictionary,
    OrthogonalDictionary,
    Polynomial,
    ResidualClassifier,
    RLSDictionary,
    Schedule,
    SRCClassifier,
    Standardize,
    Threshold,
    UnitNorm,
    mark_missing,
    options,
)
from kernlets.base.pipelines import takes_missing
from kernlets.coders import encode
from kernlets.data.missing import group_by_mask
from kernlets.dictionaries import ExplicitDictionary, KernelDictionary

P, M = 24, 30

UPDATE = "ksvd-parallel"


@pytest.fixture
def rng():
    return np.random.default_rng(5)


@pytest.fixture
def atoms(rng):
    D = rng.standard_normal((M, P))
    return D / np.linalg.norm(D, axis=1, keepdims=True)


def with_holes(rng, X, share=0.3):
    return np.where(rng.random(X.shape) < share, np.nan, X)


def low_rank(rng, n=300, p=P, m=8, q=2):
    """Samples that a small dictionary explains but for a little noise."""
    D = rng.standard_normal((m, p))
    codes = np.zeros((n, m))
    for code in codes:
        code[rng.choice(m, q, replace=False)] = rng.standard_normal(q) + 2
    return codes @ D + 0.01 * rng.standard_normal((n, p))


def naive_code(atoms, x, q):
    """OMP by least squares on the observed entries, atom after atom."""
    o = ~np.isnan(x)
    D, left, support = atoms[:, o], x[o], []
    for _ in range(q):
        score = np.abs(D @ left) / np.linalg.norm(D, axis=1)
        score[support] = 0
        support.append(int(score.argmax()))
        coefs = np.linalg.lstsq(D[support].T, x[o], rcond=None)[0]
        left = x[o] - coefs @ D[support]
    code = np.zeros(len(atoms))
    code[support] = coefs
    return code, left @ left


def test_codes_are_least_squares_over_what_was_observed(rng, atoms):
    X = with_holes(rng, rng.standard_normal((40, P)))
    codes = encode(ExplicitDictionary(atoms), OMP(3), X)
    for x, code, error in zip(X, codes.toarray(), codes.residual, strict=True):
        expected, left = naive_code(atoms, x, 3)
        np.testing.assert_allclose(code, expected, atol=1e-10)
        np.testing.assert_allclose(error, left, atol=1e-10)


def test_equal_masks_are_the_problem_without_these_features(rng, atoms):
    """Grouped rows take another route than rows with masks of their own."""
    X = rng.standard_normal((40, P))
    X[:, [2, 5, 11]] = np.nan
    codes = encode(ExplicitDictionary(atoms), OMP(3), X).toarray()
    expected = [naive_code(atoms, x, 3)[0] for x in X]
    np.testing.assert_allclose(codes, expected, atol=1e-10)


@pytest.mark.parametrize("coder", [OMP(3), OMP(tol=0.5), Lasso(0.1)])
def test_a_linear_kernel_is_the_explicit_dictionary(rng, atoms, coder):
    X = with_holes(rng, rng.standard_normal((30, P)))
    linear = KernelDictionary(Linear(), atoms, np.eye(M))
    found = encode(linear, coder, X)
    expected = encode(ExplicitDictionary(atoms), coder, X)
    np.testing.assert_allclose(found.toarray(), expected.toarray(), atol=1e-6)
    np.testing.assert_allclose(found.residual, expected.residual, atol=1e-6)


def test_a_lasso_weighs_the_error_of_all_features(rng, atoms):
    """Optimality: |⟨d_o, r_o⟩| is share · alpha on the support, no more elsewhere."""
    x = with_holes(rng, rng.standard_normal((1, P)))
    o, alpha = ~np.isnan(x[0]), 0.2
    coder = Lasso(alpha, tol=1e-12)
    code = encode(ExplicitDictionary(atoms), coder, x).toarray()[0]
    pull = atoms[:, o] @ (x[0, o] - code @ atoms[:, o])
    np.testing.assert_allclose(np.abs(pull[code != 0]), alpha * o.mean(), rtol=1e-6)
    assert np.abs(pull).max() <= alpha * o.mean() + 1e-9


def test_thresholding_over_orthonormal_atoms_is_the_lasso(rng):
    D = np.linalg.qr(rng.standard_normal((P, 10)))[0].T
    X = with_holes(rng, rng.standard_normal((20, P)))
    found = encode(ExplicitDictionary(D), Threshold(0.1), X).toarray()
    expected = encode(ExplicitDictionary(D), Lasso(0.1, tol=1e-10), X).toarray()
    np.testing.assert_allclose(found, expected, atol=1e-4)


def kernel_by_hand(kernel, X, Y, o, p):
    """The restricted kernels by their formulas."""
    x, y = X[:, o], Y[:, o]
    if isinstance(kernel, RBF):
        squares = ((x[:, None] - y[None]) ** 2).sum(2)
        return np.exp(-squares * (p / o.sum()) / (2 * kernel.sigma**2))
    scale = 1.0 if kernel.coef0 == 0 else p / o.sum()
    return (scale * x @ y.T + kernel.coef0) ** kernel.degree


@pytest.mark.parametrize(
    "kernel", [RBF(sigma=3.0), Polynomial(2), Polynomial(3, coef0=1.0)]
)
def test_kernel_codes_use_the_kernel_of_the_observed_features(rng, kernel):
    Z, x = rng.standard_normal((12, P)), rng.standard_normal((1, P))
    x[0, rng.random(P) < 0.4] = np.nan
    A = rng.standard_normal((5, 12))
    found = encode(KernelDictionary(kernel, Z, A), OMP(2), x)
    o = ~np.isnan(x[0])
    gram = A @ kernel_by_hand(kernel, Z, Z, o, P) @ A.T
    corr = (kernel_by_hand(kernel, x, Z, o, P) @ A.T)[0]
    norms = np.sqrt(np.diag(gram))
    first = int((np.abs(corr) / norms).argmax())
    left = np.abs(corr - corr[first] / gram[first, first] * gram[first]) / norms
    left[first] = 0
    support = [first, int(left.argmax())]
    coefs = np.linalg.solve(gram[np.ix_(support, support)], corr[support])
    np.testing.assert_allclose(found.toarray()[0, support], coefs, rtol=1e-8)
    energy = kernel_by_hand(kernel, x, x, o, P)[0, 0]
    np.testing.assert_allclose(found.residual[0], energy - coefs @ corr[support])


def test_a_sum_of_kernels_is_scaled_as_a_whole(rng):
    kernel, x = Linear() + Polynomial(2), rng.standard_normal((2, 5))
    found = kernel.restricted(0.5)(x)
    np.testing.assert_allclose(found, 2 * x @ x.T + (2 * x @ x.T) ** 2)


def test_kernels_without_features_refuse_with_advice(rng):
    X = rng.standard_normal((20, 4))
    gap = X.copy()
    gap[0, 0] = np.nan
    learner = KernelKSVD("precomputed", 5, random_state=0).fit(X @ X.T)
    with pytest.raises(ValueError, match="NaN"):
        learner.transform(gap @ X.T)


@pytest.mark.parametrize("loops", ["auto", "reference"])
def test_nothing_missing_is_the_same_bit_by_bit(rng, atoms, loops):
    X = rng.standard_normal((200, P))
    with options(loops=loops):
        first = encode(ExplicitDictionary(atoms), OMP(4), X)
        learned = KSVD(12, 3, max_iter=2, random_state=0).fit(X)
    np.testing.assert_array_equal(first.toarray(), _plain(atoms, X, 4, loops))
    assert learned.transform(X).dtype == X.dtype


def _plain(atoms, X, q, loops):
    with options(loops=loops):
        products = atoms @ atoms.T, X @ atoms.T, np.einsum("ij,ij->i", X, X)
        return OMP(q).solve(*products).toarray()


def test_blocks_and_threads_do_not_show(rng, atoms):
    X = with_holes(rng, rng.standard_normal((3000, P)))
    dictionary = ExplicitDictionary(atoms)
    with options(n_threads=1):
        expected = encode(dictionary, OMP(4), X).toarray()
    with options(n_threads=2):
        np.testing.assert_array_equal(encode(dictionary, OMP(4), X).toarray(), expected)
    with options(block_rows=100):
        found = encode(dictionary, OMP(4), X).toarray()
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-10)


def test_torch_agrees(rng, atoms):
    torch = pytest.importorskip("torch")
    X = with_holes(rng, rng.standard_normal((60, P)))
    learner = KSVD(M, 3, max_iter=1, init=atoms).fit(rng.standard_normal((90, P)))
    expected = learner.transform(X)
    moved = KSVD(M, 3, max_iter=1, init=atoms)
    moved.fit(torch.from_numpy(rng.standard_normal((90, P))))
    moved.dictionary_ = ExplicitDictionary(torch.from_numpy(learner.components_.copy()))
    found = moved.transform(torch.from_numpy(X)).numpy()
    np.testing.assert_allclose(found, expected, atol=1e-8)


LEARNERS = [
    KSVD(10, 2, max_iter=20, random_state=0),
    MOD(10, 2, max_iter=40, random_state=0),
    OnlineDictionary(10, 2, max_iter=40, schedule="batch_size=100", random_state=0),
    RLSDictionary(10, 2, max_iter=20, random_state=0),
]


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda m: type(m).__name__)
def test_learning_from_gaps_restores_what_was_hidden(rng, learner):
    X = low_rank(rng)
    holed = with_holes(rng, X, 0.3)
    learner.fit(holed)
    filled = learner.inverse_transform(learner.transform(holed))
    hidden = np.isnan(holed)
    error = ((filled - X)[hidden] ** 2).mean() / (X[hidden] ** 2).mean()
    means = np.broadcast_to(np.nanmean(holed, axis=0), X.shape)
    by_means = ((means - X)[hidden] ** 2).mean() / (X[hidden] ** 2).mean()
    assert error < 0.3 * by_means
    np.testing.assert_allclose(np.linalg.norm(learner.components_, axis=1), 1)


def test_masked_ksvd_never_raises_the_error_of_its_codes(rng):
    """The objective after each update is at most that of the codes it was given."""
    holed = with_holes(rng, low_rank(rng), 0.4)
    seen = []

    def note(state):
        seen.append((state["objective"], state["dictionary"]))

    schedule = Schedule(callback=note)
    KSVD(10, 2, max_iter=6, schedule=schedule, random_state=0).fit(holed)
    for (_, before), (after, _) in pairwise(seen):
        given = encode(before, OMP(2), holed).residual.mean()
        assert after <= given * (1 + 1e-9)


def test_mod_on_gaps_is_the_filled_least_squares(rng):
    """One step by hand: code, fill in, solve, normalise."""
    holed = with_holes(rng, low_rank(rng), 0.3)
    start = KSVD(10, 2, max_iter=1, random_state=0).fit(holed).components_
    learner = MOD(10, 2, max_iter=1, init=start).fit(holed)
    codes = encode(ExplicitDictionary(start), OMP(2), holed).toarray()
    full = np.where(np.isnan(holed), codes @ start, holed)
    moved = np.linalg.lstsq(codes, full, rcond=None)[0]
    moved /= np.linalg.norm(moved, axis=1, keepdims=True)
    used = (codes != 0).any(axis=0)
    close = np.abs(np.einsum("ij,ij->i", moved, learner.components_))[used]
    assert np.median(close) > 1 - 1e-9


def test_a_feature_that_was_never_observed_plays_no_part(rng):
    X = low_rank(rng, n=120)
    holed = X.copy()
    holed[:, 4] = np.nan
    rest = np.delete(np.arange(P), 4)
    start = X[:10, rest]
    wide = np.zeros((10, P))
    wide[:, rest] = start
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a feature never observed
        found = KSVD(10, 2, max_iter=3, init=wide, update=UPDATE).fit(holed)
    expected = KSVD(10, 2, max_iter=3, init=start, update=UPDATE).fit(X[:, rest])
    np.testing.assert_allclose(
        found.components_[:, rest], expected.components_, atol=1e-8
    )
    assert (found.components_[:, 4] == 0).all()
    np.testing.assert_allclose(
        found.transform(holed), expected.transform(X[:, rest]), atol=1e-8
    )


def test_a_feature_that_was_never_observed_is_told(rng):
    X = low_rank(rng, n=60)
    X[:, 3] = np.nan
    with pytest.warns(UserWarning, match="never observed.*columns 3"):
        KSVD(5, 2, max_iter=1, random_state=0).fit(X)


def test_rows_without_any_value_have_no_code_and_the_commonest_label(rng):
    X = np.concatenate([low_rank(rng, 40), low_rank(rng, 60) + 5])
    y = np.repeat([0, 1], [40, 60])
    empty = np.full((2, P), np.nan)
    learner = KSVD(8, 2, max_iter=1, random_state=0).fit(X)
    assert (learner.transform(empty) == 0).all()
    assert learner.reconstruction_error(empty) == 0
    for model in (
        ResidualClassifier(KSVD(8, 2, max_iter=1, random_state=0)).fit(X, y),
        SRCClassifier("linear", 4).fit(X, y),
    ):
        with pytest.warns(UserWarning, match="no observed value"):
            assert model.predict(empty).tolist() == [1, 1]
    model = ResidualClassifier(KSVD(8, 2, max_iter=1, random_state=0)).fit(X, y)
    with pytest.warns(UserWarning, match="no observed value"):
        np.testing.assert_allclose(model.predict_proba(empty)[0], [0.4, 0.6])


def test_src_residuals_are_those_of_the_observed_part(rng):
    X, y = rng.standard_normal((30, P)), np.arange(30) % 3
    new = with_holes(rng, rng.standard_normal((5, P)))
    model = SRCClassifier("linear", 6).fit(X, y)
    found = model.residuals(new)
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    for x, row in zip(new, found, strict=True):
        o, (code, _) = ~np.isnan(x), naive_code(unit, x, 6)
        for c in range(3):
            left = x[o] - (code * (y == c)) @ unit[:, o]
            np.testing.assert_allclose(row[c], left @ left, rtol=1e-6)


def test_unit_norm_estimates_the_length_of_the_whole_row(rng):
    X = with_holes(rng, rng.standard_normal((6, P)))
    found = UnitNorm().fit_transform(X)
    for x, row in zip(X, found, strict=True):
        o = ~np.isnan(x)
        length = np.sqrt(P / o.sum() * (x[o] ** 2).sum())
        np.testing.assert_allclose(row[o], x[o] / length)
        assert np.isnan(row[~o]).all()


def test_standardize_uses_what_was_observed(rng):
    X = with_holes(rng, rng.standard_normal((50, 4)) * 3 + 100)
    X[0] = np.nan
    X[:, 2] = np.where(np.isnan(X[:, 2]), np.nan, 7.1)
    model = Standardize().fit(X)
    np.testing.assert_allclose(model.mean_, np.nanmean(X, axis=0))
    expected = np.nanstd(X, axis=0)
    expected[2] = 1.0
    np.testing.assert_allclose(model.scale_, expected)
    assert (np.isnan(model.transform(X)) == np.isnan(X)).all()


def test_nystroem_maps_the_combination_of_landmarks_that_fits(rng):
    X = rng.standard_normal((60, P))
    model = NystroemMap(RBF(sigma=4.0), n_landmarks=15, random_state=0).fit(X)
    x = X[:1].copy()
    x[0, :8] = np.nan
    Z, o = model.landmarks_, ~np.isnan(x[0])
    W = kernel_by_hand(model.kernel_, Z, Z, o, P)
    k = kernel_by_hand(model.kernel_, x, Z, o, P)[0]
    a = np.linalg.solve(W + 0.1 * np.eye(15), k)
    expected = a @ model.kernel_(Z) @ model.projection_
    np.testing.assert_allclose(model.transform(x)[0], expected, rtol=1e-8)
    near = model.transform(X[:1])
    far = model.transform(np.where(np.isnan(x), 0, x))
    assert np.linalg.norm(model.transform(x) - near) < np.linalg.norm(far - near)


def test_pipelines_carry_what_is_missing_through(rng):
    X = np.concatenate([low_rank(rng, 60), low_rank(rng, 60)])
    y = np.repeat([0, 1], 60)
    new = with_holes(rng, X[::4])
    model = make_pipeline(
        Standardize(), UnitNorm(), ResidualClassifier(KSVD(10, 2, random_state=0))
    )
    assert model.fit(X, y).score(new, y[::4]) > 0.8
    assert model.fit(with_holes(rng, X), y).score(new, y[::4]) > 0.7


def test_missing_values_of_pandas(rng):
    X = low_rank(rng, 50, p=6)
    table = pd.DataFrame(X, columns=list("abcdef"))
    learner = KSVD(5, 2, max_iter=1, random_state=0).fit(table)
    gap = table.copy()
    gap.loc[0, "b"] = None
    expected = X.copy()
    expected[0, 1] = np.nan
    np.testing.assert_array_equal(
        learner.transform(gap),
        KSVD(5, 2, max_iter=1, random_state=0).fit(X).transform(expected),
    )
    whole = pd.DataFrame({name: [1, 2, None] for name in "abcdef"}, dtype="Int64")
    assert np.isfinite(learner.transform(whole)).all()


def test_marks_beside_numbers_that_cannot_be_nan():
    X = np.array([[1, -1, 3], [4, 5, -1]])
    expected = [[1, np.nan, 3], [4, 5, np.nan]]
    np.testing.assert_array_equal(mark_missing(X, value=-1), expected)
    np.testing.assert_array_equal(mark_missing(X, X < 0), expected)
    with pytest.raises(ValueError, match="shape of X"):
        mark_missing(X, np.zeros((2, 2), bool))
    with pytest.raises(ValueError, match="booleans"):
        mark_missing(X, np.zeros((2, 3)))
    with pytest.raises(ValueError, match="needs missing"):
        mark_missing(X)


def test_rows_are_grouped_by_their_masks(rng):
    known = rng.random((50, 11)) > 0.5
    known[10:20] = known[0]
    parts = group_by_mask(known)
    assert sorted(np.concatenate([part.rows for part in parts])) == list(range(50))
    for part in parts:
        expected = np.zeros(11, bool)
        expected[part.features] = True
        assert (known[part.rows] == expected).all()


def test_streams_learn_from_gaps(rng):
    X = with_holes(rng, low_rank(rng, 400), 0.3)
    learner = OnlineDictionary(10, 2, schedule="batch_size=50", random_state=0)
    for start in range(0, 400, 50):
        learner.partial_fit(X[start : start + 50])
    assert np.isfinite(learner.components_).all()
    blocks = MOD(10, 2, max_iter=3, random_state=0).fit([X[:200], X[200:]])
    assert np.isfinite(blocks.components_).all()


def test_orthonormal_atoms_are_learned_from_gaps(rng):
    X = with_holes(rng, low_rank(rng), 0.2)
    learner = OrthogonalDictionary(8, 2, max_iter=10, random_state=0).fit(X)
    D = learner.components_
    np.testing.assert_allclose(D @ D.T, np.eye(8), atol=1e-8)
    objective = learner.history_["objective"]
    assert objective[-1] < 0.7 * objective[0]


def test_rows_on_a_cluster(rng):
    da = pytest.importorskip("dask.array")
    X = low_rank(rng, 240)
    holed = with_holes(rng, X)
    there = da.from_array(holed, chunks=(80, P))
    learner = MOD(10, 2, max_iter=3, init=X[:10])
    found = learner.fit(there)
    expected = MOD(10, 2, max_iter=3, init=X[:10]).fit(holed)
    np.testing.assert_allclose(found.components_, expected.components_, atol=1e-8)
    codes = found.transform(there).compute()
    np.testing.assert_allclose(codes, found.transform(holed), atol=1e-10)
    scaled = Standardize().fit(there)
    np.testing.assert_allclose(scaled.mean_, np.nanmean(holed, axis=0))
    with pytest.raises(ValueError, match="NaN"):
        NystroemMap("linear", "uniform", n_landmarks=5).fit(there)
    bad = da.from_array(np.where(np.isnan(holed), np.inf, holed), chunks=(80, P))
    with pytest.raises(ValueError, match="infinity"):
        found.transform(bad).compute()


def test_what_is_missing_is_filled_in_by_maps_and_imputers(rng, tmp_path):
    X, y = rng.standard_normal((40, 5)), np.arange(40) % 2
    gaps = X.copy()
    gaps[3, 2] = np.nan
    for model in (
        make_pipeline(NystroemMap(random_state=0), DKSVDClassifier(random_state=0)),
        make_pipeline(SimpleImputer(), DKSVDClassifier(random_state=0)),
        make_pipeline(UnitNorm(), ResidualClassifier(KSVD(5, 2, random_state=0))),
        KSADClassifier(random_state=0),
    ):
        assert takes_missing(model)
        assert np.isfinite(model.fit(gaps, y).predict(gaps)).all()
    assert not takes_missing(make_pipeline(UnitNorm(), FourierMap(), KSVD()))
    np.save(tmp_path / "rows.npy", gaps)
    rows = np.load(tmp_path / "rows.npy", mmap_mode="r")
    np.testing.assert_array_equal(model.predict(rows), model.predict(gaps))
