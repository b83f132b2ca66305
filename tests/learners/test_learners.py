"""K-SVD, MOD and replacement of useless atoms, by independent means."""

from __future__ import annotations

import numpy as np
import pytest

from kernlets import KSVD, MOD, OMP
from kernlets.coders import encode
from kernlets.coders.encoding import statistics
from kernlets.contracts import Coded
from kernlets.dictionaries import ExplicitDictionary
from kernlets.learners.initial_atoms import STARTS
from kernlets.updates import KSVDUpdate, MODUpdate, ParallelKSVDUpdate
from kernlets.updates.replace import refresh, useless_atoms


def unit(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.fixture
def coded(rng):
    X = rng.standard_normal((150, 10))
    dictionary = ExplicitDictionary(unit(rng.standard_normal((20, 10))))
    return dictionary, X, encode(dictionary, OMP(3), X)


def error_at_fixed_codes(dictionary, X, codes):
    return ((X - codes.tocsr() @ dictionary.atoms) ** 2).sum()


def test_mod_is_least_squares(coded, rng):
    dictionary, X, codes = coded
    dense = codes.toarray()
    expected = np.linalg.lstsq(dense, X, rcond=None)[0]
    step = MODUpdate(min_uses=0, max_coherence=2).step(
        dictionary, statistics(dictionary, X, codes), rng
    )
    np.testing.assert_allclose(step.dictionary.atoms, unit(expected), atol=1e-9)
    assert step.error == pytest.approx(((X - dense @ expected) ** 2).sum())
    assert step.error < error_at_fixed_codes(dictionary, X, codes)


def test_mod_keeps_an_atom_that_nobody_uses(coded, rng):
    dictionary, X, codes = coded
    codes.values[codes.indices == 4] = 0
    codes.indices[codes.indices == 4] = -1
    step = MODUpdate(min_uses=0, max_coherence=2).step(
        dictionary, statistics(dictionary, X, codes), rng
    )
    np.testing.assert_allclose(step.dictionary.atoms[4], dictionary.atoms[4])
    assert np.isfinite(step.dictionary.atoms).all()


def test_statistics_add_up_over_blocks(coded):
    dictionary, X, codes = coded
    whole = statistics(dictionary, X, codes)
    parts = [
        statistics(dictionary, X[rows], encode(dictionary, OMP(3), X[rows]))
        for rows in (slice(0, 40), slice(40, 150))
    ]
    total = parts[0] + parts[1]
    for name in ("codes_gram", "cross", "uses", "error", "n_samples", "worst_error"):
        np.testing.assert_allclose(getattr(total, name), getattr(whole, name))
    np.testing.assert_allclose(total.worst, whole.worst)


@pytest.mark.parametrize("exact", [False, True])
def test_ksvd_step_reports_its_error_and_never_raises_it(coded, rng, exact):
    dictionary, X, codes = coded
    update = KSVDUpdate(exact=exact, min_uses=0, max_coherence=2)
    step = update.step(dictionary, Coded(X, codes), rng)
    assert step.error < error_at_fixed_codes(dictionary, X, codes)
    np.testing.assert_allclose((step.dictionary.atoms**2).sum(1), 1)
    assert np.abs(dictionary.atoms - step.dictionary.atoms).max() > 0.01  # a new one


@pytest.mark.parametrize("n_sweeps", [1, 2, 3])
def test_parallel_step_is_the_naive_sweep_over_samples(coded, rng, n_sweeps):
    """Each atom in turn is fitted to what the others leave; then the way back."""
    dictionary, X, codes = coded
    dense, atoms = codes.toarray(), dictionary.atoms.copy()
    for sweep in range(n_sweeps):
        for j in range(len(atoms))[:: (-1) ** sweep]:
            gap = X - dense @ atoms + np.outer(dense[:, j], atoms[j])
            atoms[j] = np.linalg.lstsq(dense[:, [j]], gap, rcond=None)[0][0]
    step = ParallelKSVDUpdate(min_uses=0, max_coherence=2, n_sweeps=n_sweeps).step(
        dictionary, statistics(dictionary, X, codes), rng
    )
    np.testing.assert_allclose(step.dictionary.atoms, unit(atoms), atol=1e-9)
    assert step.error == pytest.approx(((X - dense @ atoms) ** 2).sum())


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", ["mixed", "planted"])
def test_parallel_ksvd_learns_as_well(kind, seed):
    """At equal iterations the error is at most 5 % above that of the sweep."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((400, 10)) @ rng.standard_normal((10, 10))
    if kind == "planted":
        live = rng.random((600, 30)) < 0.1
        codes = np.where(live, rng.standard_normal(live.shape), 0)
        X = codes @ rng.standard_normal((30, 16))
        X += 0.05 * rng.standard_normal(X.shape)
    swept, parallel = (
        KSVD(20, 3, max_iter=15, update=update, random_state=0).fit(X)
        for update in ("ksvd", "ksvd-parallel")
    )
    error = parallel.reconstruction_error(X)
    assert error < 1.05 * swept.reconstruction_error(X)
    assert error < 0.8 * parallel.history_["objective"][0]


def test_ksvd_step_does_not_write_to_its_input(coded, rng):
    dictionary, X, codes = coded
    copies = dictionary.atoms.copy(), X.copy(), codes.values.copy()
    KSVDUpdate().step(dictionary, Coded(X, codes), rng)
    for now, then in zip((dictionary.atoms, X, codes.values), copies, strict=True):
        np.testing.assert_array_equal(now, then)


def test_useless_atoms_are_rare_ones_and_all_but_one_of_equals(rng):
    atoms = unit(rng.standard_normal((6, 30)))
    atoms[3] = -atoms[1]
    atoms[5] = atoms[1]
    uses = np.array([9, 9, 3, 9, 9, 9])
    found = useless_atoms(atoms @ atoms.T, uses, min_uses=4, max_coherence=0.99)
    assert found.tolist() == [2, 3, 5]


def test_refresh_puts_the_worst_samples_in_place(rng):
    dictionary = ExplicitDictionary(unit(rng.standard_normal((5, 8))))
    worst = rng.standard_normal((3, 8))
    errors = np.array([3.0, 2.0, 0.0])  # the last is represented already
    uses = np.array([0, 9, 0, 0, 9])
    atoms = refresh(dictionary, uses, worst, errors).atoms
    np.testing.assert_allclose(atoms[[0, 2]], unit(worst[:2]))
    np.testing.assert_array_equal(atoms[[1, 3, 4]], dictionary.atoms[[1, 3, 4]])


def test_ksvd_recovers_a_dictionary(rng):
    truth = unit(rng.standard_normal((30, 20)))
    codes = np.zeros((1500, 30))
    for code in codes:
        code[rng.choice(30, 3, replace=False)] = rng.standard_normal(3)
    found = KSVD(30, 3, max_iter=40, random_state=0).fit(codes @ truth).components_
    best = np.abs(truth @ found.T).max(axis=1)
    assert (best > 0.99).mean() >= 0.8


@pytest.mark.parametrize("init", STARTS)
def test_starts(init, rng):
    X = rng.standard_normal((100, 6))
    learner = KSVD(10, 2, init=init, max_iter=5, random_state=0).fit(X)
    assert learner.components_.shape == (10, 6)
    assert learner.history_["objective"][-1] < learner.history_["objective"][0]


def test_given_start(rng):
    X, atoms = rng.standard_normal((100, 6)), rng.standard_normal((9, 6))
    first = KSVD(init=atoms, n_nonzero_coefs=2, max_iter=1, random_state=0).fit(X)
    assert first.components_.shape == (9, 6)
    again = KSVD(9, 2, init=unit(atoms), max_iter=1, random_state=0).fit(X)
    np.testing.assert_allclose(first.components_, again.components_)
    with pytest.raises(ValueError, match="init has 9 atoms but n_components=8"):
        KSVD(8, init=atoms).fit(X)
    with pytest.raises(ValueError, match="columns"):
        KSVD(init=atoms[:, :5]).fit(X)
    with pytest.raises(ValueError, match="zero"):
        KSVD(init=0 * atoms).fit(X)


def test_inverse_transform(rng):
    X = rng.standard_normal((60, 6))
    learner = MOD(12, 3, max_iter=3, random_state=0).fit(X)
    back = learner.inverse_transform(learner.transform(X))
    error = ((X - back) ** 2).sum(1)
    np.testing.assert_allclose(
        error, learner.reconstruction_error(X, per_sample=True), atol=1e-10
    )
    np.testing.assert_allclose(learner.inverse_transform(learner.encode(X)), back)


def test_float32_follows_float64(rng):
    X = rng.standard_normal((300, 12))
    double = KSVD(20, 3, max_iter=3, random_state=0).fit(X)
    single = KSVD(20, 3, max_iter=3, random_state=0).fit(X.astype(np.float32))
    np.testing.assert_allclose(
        single.history_["objective"], double.history_["objective"], rtol=1e-3
    )


def test_default_sizes(rng):
    learner = KSVD(max_iter=1, random_state=0).fit(rng.standard_normal((400, 10)))
    assert learner.components_.shape == (20, 10)
    assert learner.coder_.n_nonzero_coefs == 2
