"""Codes of rows with NaN, for every coder: by its definition, and of no other row."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.optimize import nnls

from kernlets import (
    KSVD,
    OMP,
    RBF,
    FDDLClassifier,
    GroupOMP,
    KernelKSVD,
    Lasso,
    Polynomial,
    Ridge,
    SimultaneousOMP,
    SRCClassifier,
    Threshold,
)
from kernlets.coders import CODERS, encode
from kernlets.config import options
from kernlets.dictionaries import ExplicitDictionary, KernelDictionary

N, P, M = 60, 12, 20
GROUPS = np.arange(M) // 2
EXACT = {"tol": 1e-12, "max_iter": 10**5}
INSTANCES = [
    *(kind() for kind in CODERS.values()),
    *(OMP(4), OMP(tol=1.0), OMP(5, positive=True)),
    *(Lasso(0.2, **EXACT), Lasso(0.2, positive=True, **EXACT), Ridge(3.0)),
    *(Threshold(0.2), Threshold(0.5), Threshold(0.3, kind="hard")),
    Threshold(kind="top-k", n_nonzero_coefs=3),
    *(GroupOMP(2, GROUPS), GroupOMP(3), SimultaneousOMP(3)),
]


@pytest.fixture(params=INSTANCES, ids=str)
def coder(request):
    return request.param


@pytest.fixture
def atoms(rng):
    D = rng.standard_normal((M, P))
    return D / np.linalg.norm(D, axis=1, keepdims=True)


def with_holes(rng, X, share=0.3):
    """A third of the rows lose entries, one all, and one all but one."""
    holed = np.where(rng.random(X.shape) < share, np.nan, X)
    holed[np.arange(len(X)) % 3 != 0] = X[np.arange(len(X)) % 3 != 0]
    holed[3], holed[6], holed[6, 2] = np.nan, np.nan, 1.5
    return holed


def test_every_coder_is_tested():
    assert set(CODERS.values()) <= {type(coder) for coder in INSTANCES}


@pytest.mark.rounding
@pytest.mark.parametrize("loops", ["auto", "reference"])
def test_complete_rows_have_the_codes_they_would_have(coder, xp, rng, atoms, loops):
    X = rng.standard_normal((N, P))
    holed = with_holes(rng, X)
    complete = ~np.isnan(holed).any(axis=1)
    kernel = KernelDictionary(RBF(sigma=3.0), xp.asarray(atoms), xp.asarray(np.eye(M)))
    for dictionary in (ExplicitDictionary(xp.asarray(atoms)), kernel):
        with options(loops=loops):
            found = encode(dictionary, coder, xp.asarray(holed))
            expected = encode(dictionary, coder, xp.asarray(X))
        for part in ("toarray", "residual"):
            left, right = (getattr(codes, part) for codes in (found, expected))
            left, right = (x() if callable(x) else x for x in (left, right))
            left, right = xp.to_numpy(left), xp.to_numpy(right)
            np.testing.assert_array_equal(left[complete], right[complete])


@pytest.mark.rounding
def test_classes_of_complete_rows_have_the_residuals_they_would_have(coder, rng):
    X, new = rng.standard_normal((M, P)), rng.standard_normal((N, P))
    holed = with_holes(rng, new)
    complete = ~np.isnan(holed).any(axis=1)
    model = SRCClassifier("rbf", coder=coder).fit(X, np.arange(M) % 2)
    with pytest.warns(UserWarning, match="no observed value"):
        found = model.residuals(holed)
    np.testing.assert_array_equal(found[complete], model.residuals(new)[complete])


@pytest.mark.rounding
@pytest.mark.parametrize("seed", range(6))
def test_an_incomplete_row_with_many_atoms_rounds_no_other(seed):
    """Codes are stored as wide as the widest, which must not change their sums."""
    rng = np.random.default_rng(seed)
    X, new = rng.standard_normal((N, P)), rng.standard_normal((N, P))
    model = FDDLClassifier(20, max_iter=2, random_state=0).fit(X, np.arange(N) % 2)
    new[0] *= 100  # it needs nearly all atoms
    holed = new.copy()
    holed[0, 1:] = np.nan
    np.testing.assert_array_equal(model.residuals(holed)[1:], model.residuals(new)[1:])


def greedy(D, x, blocks, count):
    """Least squares on the groups of atoms that explain most, one after another."""
    support, left, coefs = [], x, np.zeros(0)
    for _ in range(count):
        free = [block for block in blocks if not set(block) <= set(support)]
        shares = [np.linalg.norm(_projected(D[block], left)) for block in free]
        support.extend(free[int(np.argmax(shares))])
        coefs = np.linalg.lstsq(D[support].T, x, rcond=None)[0]
        left = x - coefs @ D[support]
    code = np.zeros(len(D))
    code[support] = coefs
    return code


def _projected(atoms, x):
    return np.linalg.lstsq(atoms.T, x, rcond=None)[0] @ atoms


def positive_greedy(D, x, count):
    """OMP with non-negative least squares on the support."""
    support, left, code = [], x, np.zeros(len(D))
    while len(support) < count:
        score = D @ left / np.linalg.norm(D, axis=1)
        score[support] = -np.inf
        if score.max() <= 1e-9:
            break
        support.append(int(score.argmax()))
        coefs = nnls(D[support].T, x)[0]
        support = [atom for atom, coef in zip(support, coefs, strict=True) if coef > 0]
        code = np.zeros(len(D))
        code[support] = coefs[coefs > 0]
        left = x - code @ D
    return code


def shrunk(coder, share, corr):
    """The threshold for the estimated error of all features."""
    if coder.kind == "top-k":
        order = np.argsort(-np.abs(corr))[: coder.n_nonzero_coefs]
        return np.where(np.isin(np.arange(len(corr)), order), corr, 0)
    if coder.kind == "soft":
        return np.sign(corr) * np.maximum(np.abs(corr) - coder.alpha * share, 0)
    return np.where(np.abs(corr) > coder.alpha * share**0.5, corr, 0)


def check_by_definition(coder, D, x, code):
    """The code of one row is what its coder promises over the observed features."""
    o = ~np.isnan(x)
    D_o, x_o, share = D[:, o], x[o], o.mean()
    if isinstance(coder, Threshold):  # of the row that the code fills in
        length = max(1, np.linalg.norm(D, 2) ** 2)
        whole = np.where(o, x, code @ D / length)
        np.testing.assert_allclose(code, shrunk(coder, share, D @ whole), atol=1e-4)
        return
    if isinstance(coder, Lasso):
        pull, level = D_o @ (x_o - code @ D_o), coder.alpha * share
        used = code != 0
        near = 1e-4 if coder.tol > 1e-10 else 1e-8
        np.testing.assert_allclose(pull[used], level * np.sign(code[used]), atol=near)
        size = pull if coder.positive else np.abs(pull)
        assert size.max() <= level + near
        return
    if isinstance(coder, Ridge):
        system = D_o @ D_o.T + coder.alpha * share * np.eye(M)
        expected = np.linalg.solve(system, D_o @ x_o)
    elif isinstance(coder, GroupOMP):
        groups = np.arange(M) if coder.groups is None else GROUPS
        blocks = [list(np.flatnonzero(groups == g)) for g in np.unique(groups)]
        expected = greedy(D_o, x_o, blocks, coder.n_groups)
    elif isinstance(coder, OMP) and coder.positive:
        expected = positive_greedy(D_o, x_o, coder.n_nonzero_coefs)
    else:
        tol, singles = getattr(coder, "tol", None), [[j] for j in range(M)]
        width = coder.n_nonzero_coefs or (M // 10 if tol is None else 0)
        expected = greedy(D_o, x_o, singles, width)
        if tol is not None:  # as many atoms as the observed part asks for
            while ((x_o - expected @ D_o) ** 2).sum() > tol * share:
                width += 1
                expected = greedy(D_o, x_o, singles, width)
    np.testing.assert_allclose(code, expected, atol=1e-8)


def test_incomplete_rows_have_the_codes_of_the_definition(coder, xp, rng, atoms):
    X = with_holes(rng, rng.standard_normal((N, P)))
    X[6] = X[3]  # with one feature all atoms are as good
    codes = encode(ExplicitDictionary(xp.asarray(atoms)), coder, xp.asarray(X))
    dense, residual = xp.to_numpy(codes.toarray()), xp.to_numpy(codes.residual)
    for x, code, error in zip(X, dense, residual, strict=True):
        o = ~np.isnan(x)
        left = x[o] - code @ atoms[:, o]
        np.testing.assert_allclose(error, left @ left, atol=1e-9)
        if not o.any():
            assert (code == 0).all()
        elif not o.all():
            check_by_definition(coder, atoms, x, code)


@pytest.mark.parametrize("kind", ["soft", "hard", "top-k"])
@pytest.mark.parametrize("m", [8, 20, 90])
@pytest.mark.filterwarnings("ignore:codes by Threshold")  # but these are near enough
def test_thresholds_come_to_rest_over_any_atoms(rng, kind, m):
    """One NaN, many, and almost all; a few atoms, a frame, and many that are alike."""
    D = rng.standard_normal((m, P)) + (2.0 if m == 90 else 0)
    D /= np.linalg.norm(D, axis=1, keepdims=True)
    X = rng.standard_normal((N, P))
    for i in range(N):
        X[i, rng.permutation(P)[: 1 + i % (P - 1)]] = np.nan
    count = {"n_nonzero_coefs": 3} if kind == "top-k" else {}
    coder = Threshold(0.2, kind, **count)
    codes = encode(ExplicitDictionary(D), coder, X).toarray()
    assert np.abs(codes).max() < 10 * np.nanmax(np.abs(X)) * P**0.5
    for x, code in zip(X, codes, strict=True):
        check_by_definition(coder, D, x, code)


@pytest.mark.parametrize(
    "coder",
    [Threshold(0.5), Threshold(0.5, "hard"), Threshold(1, "top-k", n_nonzero_coefs=3)],
    ids=str,
)
def test_one_nan_hardly_changes_a_fit(rng, coder):
    X = rng.standard_normal((200, 20))
    holed = X.copy()
    holed[3, 4] = np.nan
    learner = KSVD(30, coder=coder, max_iter=1, random_state=0)
    expected = learner.fit(X).history_["objective"]
    found = learner.fit(holed).history_["objective"]
    np.testing.assert_allclose(found, expected, rtol=0.05)


KERNELS = [(RBF(sigma=3.0), 1.0), (Polynomial(2), 4 / 9), (Polynomial(2, 1.0), 1.0)]


@pytest.mark.parametrize(("kernel", "share"), KERNELS, ids=str)
def test_penalties_are_for_what_is_left_of_the_kernel(rng, atoms, kernel, share):
    """Kernels that are scaled to all features have energies of all features."""
    x = rng.standard_normal((1, P))
    x[0, :4] = np.nan
    dictionary = KernelDictionary(kernel, atoms, np.eye(M))
    smaller, D_o, x_o = kernel.restricted(8 / 12), atoms[:, 4:], x[:, 4:]
    gram, corr, energy = smaller(D_o), smaller(x_o, D_o)[0], smaller.diag(x_o)[0]

    code = encode(dictionary, Lasso(0.2, **EXACT), x).toarray()[0]
    assert (code != 0).any()
    np.testing.assert_allclose(np.abs(corr - gram @ code).max(), 0.2 * share, atol=1e-8)
    code = encode(dictionary, Ridge(0.5), x).toarray()[0]
    np.testing.assert_allclose(corr - gram @ code, 0.5 * share * code, atol=1e-8)
    least = encode(dictionary, OMP(M), x).residual[0]
    wanted = (energy + least) / 2
    codes = encode(dictionary, OMP(tol=wanted / share), x)
    count = int((codes.toarray() != 0).sum())
    assert codes.residual[0] <= wanted
    assert count == 1 or encode(dictionary, OMP(count - 1), x).residual[0] > wanted


def test_groups_of_rows_with_nan_are_refused(rng, atoms):
    X = rng.standard_normal((6, P))
    X[0, 0] = np.nan
    coder = SimultaneousOMP(2, group_size=3)
    with pytest.raises(ValueError, match="group_size=3 needs rows without missing"):
        encode(ExplicitDictionary(atoms), coder, X)
    with pytest.raises(ValueError, match="group_size=3 needs rows without missing"):
        SRCClassifier(coder=coder).fit(atoms, np.arange(M) % 2).predict(X)


@pytest.mark.rounding
def test_kernel_learners_code_complete_rows_as_if_all_were(coder, rng):
    X = rng.standard_normal((N, P))
    holed = with_holes(rng, X)
    complete = ~np.isnan(holed).any(axis=1)
    model = KernelKSVD("rbf", M, coder=coder, max_iter=1, random_state=0).fit(X)
    found, expected = model.transform(holed), model.transform(X)
    np.testing.assert_array_equal(found[complete], expected[complete])


def test_thresholds_of_rows_with_missing_values_come_to_rest(rng):
    X = rng.standard_normal((20, 5)).astype("f4")
    model = SRCClassifier(coder=Threshold(0.006)).fit(X, np.arange(20) % 2)
    X[3, 2] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isfinite(model.decision_function(X)).all()
