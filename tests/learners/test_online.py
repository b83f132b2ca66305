"""Learners of streams: recursive least squares, running sums, labels in blocks."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

from kernlets import (
    KSVD,
    MOD,
    Blocks,
    Forgetting,
    KernelKSVD,
    Lasso,
    NystroemMap,
    OnlineDictionary,
    ResidualClassifier,
    RLSDictionary,
    Schedule,
    load,
    options,
    save,
)
from kernlets.coders import OMP, encode
from kernlets.coders.encoding import statistics, without_atoms
from kernlets.contracts import SparseCodes
from kernlets.data.rows import row_batches
from kernlets.dictionaries import ExplicitDictionary
from kernlets.learners.rls import ROWS, Recursion
from kernlets.updates import CoordinateUpdate, KSVDUpdate, MODUpdate
from kernlets.updates.coordinate import coordinate_sweep

STREAMS = pytest.mark.parametrize("Learner", [RLSDictionary, OnlineDictionary])


def samples(rng, n=300, p=12, m=8):
    atoms = rng.standard_normal((m, p))
    codes = np.where(rng.random((n, m)) < 0.3, rng.standard_normal((n, m)), 0)
    return codes @ atoms + 0.05 * rng.standard_normal((n, p))


def unit_rows(rng, m, p):
    atoms = rng.standard_normal((m, p))
    return atoms / np.linalg.norm(atoms, axis=1, keepdims=True)


def random_codes(rng, n, m, width=3):
    indices = np.stack([rng.permutation(m)[:width] for _ in range(n)])
    return SparseCodes(indices, rng.standard_normal((n, width)), m)


def in_library(codes, xp):
    return SparseCodes(xp.asarray(codes.indices), xp.asarray(codes.values), 8)


# ------------------------------------------------------- recursive least squares


def test_recursion_without_forgetting_is_the_closed_form(xp, rng):
    """LKDL's protocol, in rows: (I + ΓᵀΓ)⁻¹(D₀ + ΓᵀX)."""
    n = ROWS + 40  # more than one block
    X, D, codes = rng.standard_normal((n, 12)), unit_rows(rng, 8, 12), None
    codes = random_codes(rng, n, 8)
    G = codes.toarray()
    start = Recursion.start(xp.asarray(D))
    end = start.update(xp.asarray(X), in_library(codes, xp), np.ones(n))
    expected = np.linalg.solve(np.eye(8) + G.T @ G, D + G.T @ X)
    np.testing.assert_allclose(xp.to_numpy(end.atoms), expected, rtol=1e-9, atol=1e-12)
    inverse = np.linalg.inv(np.eye(8) + G.T @ G)
    np.testing.assert_allclose(xp.to_numpy(end.covariance), inverse, rtol=1e-9)


def one_by_one(atoms, covariance, X, codes, factors):
    """RLS-DLA as published, sample by sample, without a bound on C."""
    D, C = atoms.copy(), covariance.copy()
    for x, code, factor in zip(X, codes, factors, strict=True):
        C = C / factor
        u = C @ code
        alpha = 1 / (1 + code @ u)
        D = D + alpha * np.outer(u, x - code @ D)
        C = C - alpha * np.outer(u, u)
    return D, C


@pytest.mark.parametrize("rows", [1, 7, 60])
def test_blocks_are_sample_by_sample(rows, xp, rng):
    X, codes = rng.standard_normal((60, 12)), random_codes(rng, 60, 8, width=6)
    D = unit_rows(rng, 8, 12)
    # enough is known of each atom that no variance comes near its bound
    C = np.linalg.inv(50 * np.eye(8) + np.ones((8, 8)))
    factors = Forgetting(0.99, "quadratic", 50).factors(0, 60)
    state = Recursion(xp.asarray(D), xp.asarray(C))
    for begin in range(0, 60, rows):
        part = slice(begin, begin + rows)
        some = SparseCodes(codes.indices[part], codes.values[part], 8)
        state = state.update(xp.asarray(X[part]), in_library(some, xp), factors[part])
    atoms, covariance = one_by_one(D, C, X, codes.toarray(), factors)
    np.testing.assert_allclose(xp.to_numpy(state.atoms), atoms, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(xp.to_numpy(state.covariance), covariance, rtol=1e-8)


def test_unit_norms_change_the_units_of_the_codes_only(rng):
    """Learning on from normalised atoms is learning on with codes scaled to match."""
    X, codes = rng.standard_normal((50, 12)), random_codes(rng, 50, 8)
    state = Recursion.start(unit_rows(rng, 8, 12)).update(X, codes, np.ones(50))
    norms = np.linalg.norm(state.atoms, axis=1)
    X, codes = rng.standard_normal((30, 12)), random_codes(rng, 30, 8)
    scaled = SparseCodes(codes.indices, codes.values * norms[codes.indices], 8)
    plain = state.update(X, codes, np.ones(30)).atoms
    unit = state.with_unit_atoms(state.atoms).update(X, scaled, np.ones(30)).atoms
    np.testing.assert_allclose(unit * norms[:, None], plain, rtol=1e-9, atol=1e-12)


def test_forgetting_leaves_atoms_out_of_use_alone(rng):
    """No wind-up: after 0.9²⁰⁰⁰ an atom weighs as much as one sample, as at first."""
    D, x = np.eye(12)[:8], np.eye(12)[5] + 0.3 * np.eye(12)[9]
    codes = SparseCodes(np.zeros((2000, 1), int), rng.standard_normal((2000, 1)), 8)
    X = codes.values * D[0] + 0.01 * rng.standard_normal((2000, 12))
    state = Recursion.start(D).update(X, codes, np.full(2000, 0.9))
    np.testing.assert_allclose(np.diag(state.covariance)[1:], 1)
    np.testing.assert_allclose(state.atoms[1:], D[1:], atol=1e-12)
    one = SparseCodes(np.array([[5]]), np.ones((1, 1)), 8)
    moved = state.update(x[None], one, np.array([0.9])).atoms[5]
    np.testing.assert_allclose(moved, (D[5] + x) / 2)


def test_learner_repeats_the_recursion(rng):
    X = samples(rng)
    learner = RLSDictionary(
        init=X[:8], n_nonzero_coefs=2, schedule="batch_size=100", max_iter=1
    ).fit(X)
    typical = np.sqrt((X[:100] ** 2).sum(1).mean())
    D, C = unit_norm(X[:8]), np.eye(8) / 4 ** np.round(np.log2(typical))
    for begin in (0, 100, 200):
        part = X[begin : begin + 100]
        codes = encode(ExplicitDictionary(D), OMP(2), part)
        atoms, C = one_by_one(D, C, part, codes.toarray(), np.ones(100))
        norms = np.linalg.norm(atoms, axis=1)
        D, C = atoms / norms[:, None], C / np.outer(norms, norms)
    np.testing.assert_allclose(learner.components_, D, atol=1e-9)
    np.testing.assert_allclose(learner.covariance_, C, atol=1e-9)


def unit_norm(X):
    return X / np.linalg.norm(X, axis=1, keepdims=True)


# ---------------------------------------------------------------- running sums


def naive_sweep(A, B, D):
    """Algorithm 2 of Mairal et al. with unit norms, atom by atom."""
    D = D.copy()
    for j in range(len(D)):
        target = B[j] - A[j] @ D + A[j, j] * D[j]
        if np.linalg.norm(target) > 0:
            D[j] = target / np.linalg.norm(target)
    return D


def test_sweep_in_blocks_is_the_sweep_atom_by_atom(xp, rng):
    m, p = 150, 20  # more atoms than a block has
    G, X = rng.standard_normal((400, m)), rng.standard_normal((400, p))
    G[:, 7] = 0  # an atom that no sample uses
    A, B, D = G.T @ G, G.T @ X, unit_rows(rng, m, p)
    found, gain = coordinate_sweep(*map(xp.asarray, (A, B, D)))
    expected = naive_sweep(A, B, D)
    np.testing.assert_allclose(xp.to_numpy(found), expected, atol=1e-9)
    np.testing.assert_array_equal(xp.to_numpy(found)[7], D[7])
    fell = np.sum((X - G @ D) ** 2) - np.sum((X - G @ expected) ** 2)
    assert gain == pytest.approx(fell, rel=1e-9) and gain > 0


def test_sweep_visits_the_atoms_asked_for(xp, rng):
    m, p = 90, 20
    G, X = rng.standard_normal((400, m)), rng.standard_normal((400, p))
    A, B, D = G.T @ G, G.T @ X, unit_rows(rng, m, p)
    visited = np.sort(rng.permutation(m)[:40])  # more than a block has
    found, _ = coordinate_sweep(*map(xp.asarray, (A, B, D)), visited)
    expected = D.copy()
    for j in visited:
        expected[j] = unit_norm((B[j] - A[j] @ expected + A[j, j] * expected[j])[None])
    np.testing.assert_allclose(xp.to_numpy(found), expected, atol=1e-9)


def test_coordinate_update_in_the_alternation(rng):
    X = samples(rng)
    learner = KSVD(8, 2, update=CoordinateUpdate(), random_state=0).fit(X)
    assert learner.history_["objective"][-1] < 0.6 * learner.history_["objective"][0]
    with pytest.raises(TypeError, match="rows of a matrix"):
        KernelKSVD("poly:2", 8, n_nonzero_coefs=2, update=CoordinateUpdate()).fit(X)


@pytest.mark.parametrize("update", [CoordinateUpdate(), MODUpdate()], ids=str)
def test_one_batch_of_all_rows_is_the_batch_update(update, xp, rng):
    X = xp.asarray(samples(rng))
    params = {"n_components": 8, "n_nonzero_coefs": 2, "random_state": 0}
    online = OnlineDictionary(
        **params, update=update, schedule="batch_size=300", max_iter=1
    )
    batch = KSVD(**params, update=update, max_iter=1).fit(X)
    np.testing.assert_allclose(
        xp.to_numpy(online.fit(X).components_),
        xp.to_numpy(batch.components_),
        atol=1e-12,
    )
    assert online.n_samples_seen_ == 300


def test_one_batch_of_mod_is_mod(rng):
    X = samples(rng)
    online = OnlineDictionary(8, 2, schedule="batch_size=300", update="mod", max_iter=1)
    online.set_params(random_state=0).fit(X)
    expected = MOD(8, 2, max_iter=1, random_state=0).fit(X).components_
    np.testing.assert_array_equal(online.components_, expected)


def test_running_sums_fade(rng):
    X = samples(rng, n=200)
    learner = OnlineDictionary(
        8, 2, schedule="batch_size=100,forgetting=0.99", random_state=0
    )
    learner.partial_fit(X[:100])
    before = learner.statistics(X[100:])
    first = learner.statistics_
    learner.partial_fit(X[100:])
    share = 0.99**100
    np.testing.assert_allclose(
        learner.statistics_.codes_gram, share * first.codes_gram + before.codes_gram
    )
    np.testing.assert_allclose(
        learner.statistics_.cross, share * first.cross + before.cross
    )
    assert learner.statistics_.n_samples == pytest.approx(100 * share + 100)


def test_learner_repeats_the_sums_that_forget_by_uses_and_the_mean(rng):
    """Each use counts exp(−∫ du/√(12u)) later; atoms have the weights (i/n)³."""
    X = samples(rng, n=400)
    params = {"init": X[:8], "n_nonzero_coefs": 2, "schedule": "batch_size=100"}
    D = unit_norm(X[:8])
    A, B, uses, weighted = np.zeros((8, 8)), np.zeros((8, 12)), 0.0, np.zeros((8, 12))
    for k in range(4):
        part = X[100 * k : 100 * k + 100]
        codes = encode(ExplicitDictionary(D), OMP(2), part)
        G, more = codes.toarray(), codes.uses().mean()
        steps = np.linspace(np.sqrt(uses), np.sqrt(uses + more), 1000) ** 2
        middles = (steps[1:] + steps[:-1]) / 2
        share = np.exp(-np.sum(np.diff(steps) / np.sqrt(12 * middles)))
        A, B, uses = share * A + G.T @ G, share * B + G.T @ part, uses + more
        D = naive_sweep(A, B, D)
        weighted += ((k + 1) ** 4 - k**4) * D
    learner = OnlineDictionary(**params, max_iter=1).fit(X)
    np.testing.assert_allclose(learner.statistics_.codes_gram, A, rtol=1e-3)
    np.testing.assert_allclose(learner.latest_.atoms, D, atol=1e-4)
    # the mean is brought to unit norm after each batch, which changes weights a little
    np.testing.assert_allclose(learner.components_, unit_norm(weighted), atol=0.02)
    given = OnlineDictionary(**{**params, "schedule": "forgetting=0.99"}).fit(X)
    np.testing.assert_array_equal(given.components_, given.latest_.atoms)


def test_forgetting_by_uses_finds_true_atoms_that_equal_weights_do_not():
    rng = np.random.default_rng(0)
    atoms = unit_rows(rng, 40, 24)
    codes = random_codes(rng, 4000, 40).toarray()
    X = codes @ atoms + 0.05 * rng.standard_normal((4000, 24))

    def n_found(schedule):
        learner = OnlineDictionary(40, 3, schedule=schedule, random_state=0).fit(X)
        return (np.abs(learner.components_ @ atoms.T).max(axis=0) > 0.99).sum()

    assert n_found(None) >= n_found("forgetting=1.0") + 10


def test_sums_of_parts_are_the_sums_of_the_whole(rng):
    X = samples(rng)
    params = {"n_components": 8, "n_nonzero_coefs": 2, "schedule": "batch_size=150"}
    merged = OnlineDictionary(**params, random_state=0).partial_fit(X[:150])
    parts = [merged.statistics(X[150:200]), merged.statistics(X[200:])]
    merged.absorb(parts[0] + parts[1])
    whole = OnlineDictionary(**params, random_state=0)
    whole.partial_fit(X[:150]).partial_fit(X[150:])
    np.testing.assert_allclose(merged.components_, whole.components_, atol=1e-12)
    assert merged.n_samples_seen_ == 300
    np.testing.assert_array_equal(merged.uses_, whole.uses_)


def test_without_atoms_is_learning_from_what_they_leave(rng):
    """Sums without an atom are those of the samples minus their part along it."""
    X, D = samples(rng), ExplicitDictionary(unit_rows(rng, 8, 12))
    codes = encode(D, OMP(3), X)
    found = without_atoms(statistics(D, X, codes), D, np.array([2]))
    G = codes.toarray()
    rest = X - G[:, [2]] @ D.atoms[[2]]
    G[:, 2] = 0
    np.testing.assert_allclose(found.codes_gram, G.T @ G, atol=1e-12)
    np.testing.assert_allclose(found.cross, G.T @ rest, atol=1e-12)


def test_updates_that_need_all_codes_are_refused(rng):
    with pytest.raises(ValueError, match="needs all codes"):
        OnlineDictionary(8, 2, update=KSVDUpdate()).fit(samples(rng))


# --------------------------------------------------------------- both learners


@STREAMS
@pytest.mark.parametrize("coder", [None, Lasso(0.3)], ids=["l0", "l1"])
def test_learning_finds_a_better_dictionary(Learner, coder, rng):
    X = samples(rng, n=2000)
    width = 3 if coder is None else None
    params = {"n_components": 8, "n_nonzero_coefs": width, "coder": coder}
    learner = Learner(
        **params, schedule="batch_size=50", random_state=0, max_iter=3
    ).fit(X[:1000])
    start = KSVD(**params, init=X[:8], max_iter=1).fit(X[:8])
    ours, theirs = (one.reconstruction_error(X[1000:]) for one in (learner, start))
    assert ours < 0.5 * theirs


@pytest.mark.rounding
@STREAMS
def test_partial_fit_by_blocks_is_fit_on_them(Learner, rng):
    X = samples(rng)
    blocks = [X[:100], X[100:150], X[150:]]
    params = {"n_components": 8, "n_nonzero_coefs": 2, "schedule": "batch_size=50"}
    # blocks that can be read again give first atoms from all rows; an iterator does not
    fitted = Learner(**params, max_iter=1, random_state=0).fit(iter(blocks))
    streamed = Learner(**params, random_state=0)
    for block in blocks:
        streamed.partial_fit(block)
    np.testing.assert_array_equal(streamed.components_, fitted.components_)
    assert streamed.n_samples_seen_ == fitted.n_samples_seen_ == 300


@STREAMS
@pytest.mark.parametrize("kind", ["memmap", "blocks", "iterator", "function"])
def test_all_sources_give_the_same_atoms(Learner, kind, tmp_path, rng):
    X = samples(rng)
    np.save(tmp_path / "X.npy", X)
    pieces = [X[:70], X[70:75], X[75:]]
    source = {
        "memmap": np.load(tmp_path / "X.npy", mmap_mode="r"),
        "blocks": pieces,
        "iterator": iter(pieces),
        "function": Blocks(lambda: iter(pieces)),
    }[kind]
    passes = 1 if kind == "iterator" else 2
    schedule = "batch_size=40,forgetting=0.999"
    learner = Learner(init=X[:8], n_nonzero_coefs=2, schedule=schedule, max_iter=passes)
    expected = learner.fit(X).components_
    with options(block_rows=13):
        found = learner.fit(source).components_
    np.testing.assert_allclose(found, expected, atol=1e-10)


@STREAMS
def test_stream_of_single_samples(Learner, rng):
    X = samples(rng)
    learner = Learner(8, 2, random_state=0)
    row = np.empty((1, 12))  # the caller's own, used again and again
    for row[0] in X[:7]:
        learner.partial_fit(row)
    np.testing.assert_array_equal(learner.pending_, X[:7])
    with pytest.raises(NotFittedError):
        learner.transform(X)
    for x in X[7:]:
        learner.partial_fit(x[None])
    assert learner.n_samples_seen_ == 300 and not hasattr(learner, "pending_")
    at_once = Learner(8, 2, schedule="batch_size=1", max_iter=1, init=X[:8]).fit(X)
    ours, theirs = learner.reconstruction_error(X), at_once.reconstruction_error(X)
    assert ours == pytest.approx(theirs, rel=0.3)


@pytest.mark.rounding
@STREAMS
def test_batches_of_one_follow_each_sample(Learner, rng):
    X = samples(rng, n=60)
    params = {"init": X[:8], "n_nonzero_coefs": 2}
    small = Learner(**params, schedule="batch_size=1", max_iter=1).fit(X)
    streamed = Learner(**params)
    for x in X:
        streamed.partial_fit(x[None])
    np.testing.assert_array_equal(small.components_, streamed.components_)


@STREAMS
def test_fit_begins_anew_and_partial_fit_goes_on(Learner, rng):
    X = samples(rng)
    learner = Learner(8, 2, max_iter=1, random_state=0)
    once = learner.fit(X).components_
    np.testing.assert_array_equal(learner.fit(X).components_, once)
    learner.partial_fit(X[:20])
    assert learner.n_samples_seen_ == 320
    assert np.abs(learner.components_ - once).max() > 1e-6


@STREAMS
def test_atoms_out_of_use_are_replaced(Learner, rng):
    """An atom that stands across all samples, and one of two equal ones, give way."""
    X = samples(rng, n=600)
    X[:, -1] = 0
    init = np.concatenate([X[:6], X[[0]], np.eye(12)[[11]]])
    learner = Learner(
        init=init, n_nonzero_coefs=2, schedule="batch_size=100", max_iter=1
    ).fit(X)
    atoms = learner.components_
    assert abs(atoms[7, 11]) < 1e-6
    coherence = np.abs(atoms @ atoms.T) - np.eye(8)
    assert coherence.max() < 0.99


@STREAMS
def test_float32_stays_float32(Learner, xp, rng):
    X = xp.asarray(samples(rng).astype(np.float32))
    learner = Learner(8, 2, schedule="batch_size=64,forgetting=0.99", random_state=0)
    for begin in range(0, 300, 100):
        learner.partial_fit(X[begin : begin + 100])
    assert xp.to_numpy(learner.components_).dtype == np.float32


@STREAMS
def test_bad_streams_are_named(Learner, rng):
    X = samples(rng)
    with pytest.raises(ValueError, match="batch_size"):
        Learner(8, schedule="batch_size=0").fit(X)
    with pytest.raises(ValueError, match="forgetting"):
        Learner(8, schedule="forgetting=1.5").fit(X)
    with pytest.raises(ValueError, match="only once"):
        Learner(8, 2, max_iter=2).fit(iter([X]))
    with pytest.raises(ValueError, match="without blocks"):
        Learner(8, 2, max_iter=1).fit(iter([]))
    with pytest.raises(ValueError, match="features"):
        Learner(8, 2).partial_fit(X).partial_fit(X[:, :5])


@STREAMS
def test_a_saved_model_goes_on(Learner, tmp_path, rng):
    X = samples(rng)
    forgetting = Forgetting(0.99, "exponential", 100)
    schedule = Schedule(batch_size=30, forgetting=forgetting)
    learner = Learner(8, 2, schedule=schedule, random_state=0)
    save(learner.partial_fit(X[:150]), tmp_path / "half.model")
    resumed = load(tmp_path / "half.model").partial_fit(X[150:])
    learner.partial_fit(X[150:])
    np.testing.assert_array_equal(resumed.components_, learner.components_)
    assert resumed.schedule.forgetting == forgetting and resumed.n_samples_seen_ == 300


# ------------------------------------------------------------------ forgetting


@pytest.mark.parametrize(
    ("curve", "half"),
    [
        ("constant", 0.9),
        ("linear", 0.95),
        ("quadratic", 0.975),
        ("cubic", 0.9875),
        ("exponential", 1 - 0.1 * 0.5**0.5),
        ("hyperbolic", 1 - 0.1 / 1.5),
    ],
)
def test_curves_of_forgetting(curve, half):
    factors = Forgetting(0.9, curve, 1000).factors(0, 3000)
    assert factors[0] == pytest.approx(0.9) and factors[500] == pytest.approx(half)
    assert (np.diff(factors) >= 0).all() and factors.max() <= 1
    if curve in ("linear", "quadratic", "cubic"):
        assert (factors[1000:] == 1).all()
    later = Forgetting(0.9, curve, 1000).factors(500, 100)
    np.testing.assert_array_equal(later, factors[500:600])


def test_bad_forgetting_is_named():
    for params, match in [
        ({"start": 0.0}, "start"),
        ({"start": 1.2}, "start"),
        ({"curve": "slowly"}, "one of constant"),
        ({"curve": "linear"}, "number of samples after which"),
        ({"curve": "linear", "horizon": 0}, "number of samples after which"),
    ]:
        with pytest.raises(ValueError, match=match):
            Forgetting(**params)


# ---------------------------------------------------------------- row batches


@pytest.mark.parametrize("sizes", [(10,), (3, 3, 4), (1,) * 10, (7, 0, 3)], ids=str)
def test_batches_do_not_depend_on_blocks(sizes, xp, rng):
    X = rng.standard_normal((10, 2))
    ends = np.cumsum(sizes)
    blocks = [xp.asarray(X[e - s : e]) for s, e in zip(sizes, ends, strict=True)]
    found = [xp.to_numpy(batch) for batch in row_batches(blocks, 4)]
    assert [len(batch) for batch in found] == [4, 4, 2]
    np.testing.assert_array_equal(np.concatenate(found), X)


# ------------------------------------------------------------ labels and kernels


def labelled(rng, n=300, p=10):
    """Three classes, each near its own two-dimensional subspace, mixed."""
    bases, y = rng.standard_normal((3, 2, p)), rng.integers(3, size=n)
    X = np.einsum("ik,ikp->ip", rng.standard_normal((n, 2)), bases[y])
    return X + 0.05 * rng.standard_normal((n, p)), np.array(["fig", "pear", "plum"])[y]


@pytest.mark.rounding
@STREAMS
def test_labelled_blocks_are_the_classes_own_streams(Learner, rng):
    X, y = labelled(rng)
    model = ResidualClassifier(Learner(6, 2, random_state=0))
    alone = Learner(6, 2, random_state=0)
    for begin in range(0, 200, 50):
        part = slice(begin, begin + 50)
        model.partial_fit(X[part], y[part])
        alone.partial_fit(X[part][y[part] == "pear"])
    assert model.classes_.tolist() == ["fig", "pear", "plum"]
    np.testing.assert_array_equal(model.learners_[1].components_, alone.components_)
    assert model.class_count_.tolist() == [np.sum(y[:200] == c) for c in model.classes_]
    assert (model.predict(X[200:]) == y[200:]).mean() > 0.97
    assert model.predict_proba(X[:5]).sum(1) == pytest.approx(1)


def test_classes_that_come_late_are_named_at_first(rng):
    X, y = labelled(rng)
    order = np.argsort(y, kind="stable")  # one class after the other
    blocks = np.array_split(order, 10)
    model = ResidualClassifier(RLSDictionary(6, 2), random_state=0)
    with pytest.raises(ValueError, match=r"label pear.*pass all labels"):
        for rows in blocks:
            model.partial_fit(X[rows], y[rows])
    model = ResidualClassifier(RLSDictionary(6, 2), random_state=0)
    for rows in blocks[:5]:
        model.partial_fit(X[rows], y[rows], classes=["plum", "fig", "pear"])
    with pytest.raises(NotFittedError, match="class plum has too few"):
        model.predict(X)
    for rows in blocks[5:]:
        model.partial_fit(X[rows], y[rows])
    assert (model.predict(X) == y).mean() > 0.97
    seeds = [one.random_state for one in model.learners_]
    assert len(set(seeds)) == 3


def test_classifiers_go_on_after_fit(rng):
    X, y = labelled(rng)
    model = ResidualClassifier(RLSDictionary(6, 2, random_state=0))
    model.fit(X[:150], y[:150])
    before = model.learners_[0].components_
    model.partial_fit(X[150:], y[150:])
    assert model.class_count_.sum() == 300
    assert np.abs(model.learners_[0].components_ - before).max() > 1e-6


def test_learners_without_partial_fit_have_none_in_the_classifier():
    assert not hasattr(ResidualClassifier(KSVD()), "partial_fit")
    assert hasattr(ResidualClassifier(RLSDictionary()), "partial_fit")


@STREAMS
def test_kernel_stream_from_disk(Learner, tmp_path, rng):
    """One pipeline on blocks from disk is the map, then the learner, block by block."""
    X = samples(rng)
    files = [tmp_path / f"{i}.npy" for i in range(3)]
    for i, file in enumerate(files):
        np.save(file, X[100 * i : 100 * (i + 1)])
    read = Blocks(lambda: map(np.load, files))
    features = NystroemMap("poly:2", X[:30], random_state=0)
    init = features.fit(X[:30]).transform(X[:8])
    learner = Learner(
        8, 2, schedule="batch_size=50", max_iter=1, init=init, random_state=0
    )
    model = make_pipeline(features, learner).fit(read)
    again = Learner(8, 2, schedule="batch_size=50", init=init, random_state=0)
    for block in read:
        again.partial_fit(model[:-1].transform(block))
    np.testing.assert_allclose(model[-1].components_, again.components_, atol=1e-12)
    twice = make_pipeline(features, learner.set_params(max_iter=2)).fit(read)
    assert twice[-1].n_samples_seen_ == 600


def test_features_of_blocks_can_be_read_again(rng):
    X = samples(rng)
    features = NystroemMap("poly:2", X[:30]).fit(X)
    virtual = features.transform([X[:100], X[100:]])
    for _ in range(2):
        found = np.concatenate(list(virtual))
        np.testing.assert_allclose(found, features.transform(X), atol=1e-12)
    once = features.transform(iter([X]))
    assert next(once).shape[0] == 300 and next(once, None) is None


def test_mini_batches_of_rows_beat_the_update_from_all_rows():
    """At as many passes, from the same start."""
    rng = np.random.default_rng(0)
    n, m, q = 4000, 64, 4
    atoms = rng.standard_normal((m, 32))
    codes = np.zeros((n, m))
    places = rng.random((n, m)).argpartition(q, axis=1)[:, :q]
    np.put_along_axis(codes, places, rng.standard_normal((n, q)), axis=1)
    X = codes @ atoms + 0.1 * rng.standard_normal((n, 32))
    how = {"update": "ksvd-parallel", "max_iter": 3, "random_state": 0}
    whole = KSVD(m, q, **how).fit(X)
    schedule = Schedule(batch_size=n // 20, forgetting=1 - 4 / n)
    batches = OnlineDictionary(m, q, schedule=schedule, **how).fit(X)
    assert batches.reconstruction_error(X) < whole.reconstruction_error(X)


def test_recursion_after_a_huge_row(rng):
    X = rng.standard_normal((60, 16))
    X[7] *= 1e9
    for seed in range(8):
        model = RLSDictionary(
            8, max_iter=3, schedule="batch_size=1", random_state=seed
        ).fit(X)
        assert np.isfinite(model.components_).all()


def test_sums_of_a_stream_that_overflow_are_refused_and_not_kept(rng, tmp_path):
    rows = rng.standard_normal((40, 5)).astype(np.float32) * np.float32(6e17)
    np.save(tmp_path / "rows.npy", rows)
    X = np.load(tmp_path / "rows.npy", mmap_mode="r")
    model = OnlineDictionary(3, 1, schedule="forgetting=1.0", random_state=0)
    model.partial_fit(X)
    before = model.statistics_
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        with pytest.raises(ValueError, match="sums over the samples overflow"):
            for _ in range(40):
                before = model.statistics_
                model.partial_fit(X)
    assert model.statistics_ is before and np.isfinite(before.codes_gram).all()
