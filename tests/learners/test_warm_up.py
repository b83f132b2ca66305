"""Sparsity that grows at the start of a fit, and the stop at rest."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from kernlets import (
    KSVD,
    MOD,
    OMP,
    KernelKSVD,
    KernelMOD,
    Lasso,
    Threshold,
    options,
)
from kernlets.coders import encode
from kernlets.coders.encoding import statistics
from kernlets.contracts import Coded
from kernlets.dictionaries import ExplicitDictionary
from kernlets.learners.code_and_update import CodeAndUpdate
from kernlets.learners.schedule import Schedule, has_settled, warm_up_coder
from kernlets.updates.replace import exchange_atoms

SEVERAL = {"schedule": "n_init=3", "random_state": 0}
LEARNERS = [KSVD(12), KSVD(12, update="ksvd-parallel"), MOD(12)]
LEARNERS += [KernelKSVD("poly:2", 12), KernelMOD("poly:2", 12)]


def samples(rng, n=200, p=20):
    atoms = rng.standard_normal((12, p))
    codes = np.where(rng.random((n, 12)) < 0.25, rng.random((n, 12)), 0)
    return codes @ atoms + 0.02 * rng.standard_normal((n, p))


def test_non_zeros_grow_from_one_to_all():
    coder = OMP(5, positive=True)
    widths = [warm_up_coder(coder, i, 10).n_nonzero_coefs for i in range(12)]
    assert widths == [1, 1, 1, 2, 2, 3, 3, 3, 4, 4, 5, 5]
    assert warm_up_coder(coder, 3, 10).positive and coder.n_nonzero_coefs == 5
    assert warm_up_coder(coder, 0, 0) is coder


@pytest.mark.parametrize("coder", [Threshold(0.1), OMP(tol=0.1)])
def test_a_coder_without_a_number_of_non_zeros_cannot_grow(coder, rng):
    with pytest.raises(ValueError, match="warm_up=3"):
        KSVD(5, coder=coder, schedule="warm_up=3").fit(samples(rng))


@pytest.mark.parametrize("learner", LEARNERS, ids=str)
def test_iterations_are_those_of_growing_coders(learner, rng, xp):
    """The first iteration is that of one non-zero; in the end codes have all."""
    X, learner = xp.asarray(samples(rng)), clone(learner).set_params(random_state=0)
    warm = clone(learner).set_params(
        n_nonzero_coefs=3, max_iter=4, schedule="warm_up=3"
    )
    warm.fit(X)
    first = clone(learner).set_params(n_nonzero_coefs=1, max_iter=1).fit(X)
    assert warm.history_["objective"][0] == first.history_["objective"][0]
    assert (xp.to_numpy(warm.transform(X)) != 0).sum(1).max() == 3


@pytest.mark.parametrize("learner", LEARNERS, ids=str)
def test_the_stop_is_where_the_error_rests(learner, rng, xp):
    X = xp.asarray(samples(rng))
    params = {"n_nonzero_coefs": 3, "random_state": 0, "max_iter": 60}
    errors = (
        learner.set_params(**params, schedule="tol=0.0").fit(X).history_["objective"]
    )
    assert len(errors) == 60
    found = learner.set_params(schedule__tol=0.02).fit(X).history_["objective"]
    learner.set_params(schedule__tol=0.0)
    assert 4 <= len(found) < 60
    assert found == errors[: len(found)]
    assert min(found[:-3]) - min(found[-3:]) <= 0.02 * min(found[:-3])
    for n in range(4, len(found)):
        assert not has_settled(errors[:n], 0.02, 0)


def test_the_stop_waits_for_the_warm_up():
    flat = [1.0] * 20
    assert has_settled(flat[:4], 0.01, 0) and not has_settled(flat[:3], 0.01, 0)
    assert has_settled(flat[:14], 0.01, 10) and not has_settled(flat[:13], 0.01, 10)
    assert not has_settled(flat, 0.0, 0)
    assert not has_settled([1.0, 1.0, 0.5, 1.2], 0.01, 0)  # it fell, and rose again


def test_a_resumed_fit_warms_up_where_it_was(rng, tmp_path):
    X = samples(rng)
    learner = KSVD(8, 3, max_iter=6, schedule="warm_up=5", random_state=0)
    whole = learner.fit(X).history_["objective"]

    def stop(state):
        if state["iteration"] == 2:
            raise KeyboardInterrupt

    with options(checkpoint=tmp_path / "fit"):
        with pytest.raises(KeyboardInterrupt):
            learner.set_params(schedule__callback=stop).fit(X)
        learner.set_params(schedule__callback=None)
        resumed = learner.fit(X).history_["objective"]
    assert resumed == whole


@pytest.mark.parametrize("needs", ["codes", "statistics"])
def test_atoms_of_least_value_are_exchanged(needs, rng, xp):
    """Of three atoms, two nearly equal, one of these goes; the others stay."""
    atoms = np.array([[1.0, 0, 0], [0, 1.0, 0], [0, 0.8, 0.6]])
    X = np.concatenate([np.repeat(atoms, 10, axis=0), [[0.1, -3, 9.0], [0.5, 0.5, 0]]])
    dictionary = ExplicitDictionary(xp.asarray(atoms))
    codes = encode(dictionary, OMP(1), xp.asarray(X))
    coded = Coded(xp.asarray(X), codes)
    if needs == "statistics":
        coded = statistics(dictionary, coded.X, codes)
    found = xp.to_numpy(exchange_atoms(dictionary, coded, 1).atoms)
    moved = np.flatnonzero((found != atoms).any(axis=1))
    assert len(moved) == 1 and moved[0] in (1, 2)
    np.testing.assert_allclose(found[moved[0]], X[30] / np.linalg.norm(X[30]))
    known = exchange_atoms(dictionary.with_weights(xp.asarray(found)), coded, 1).atoms
    assert (xp.to_numpy(known) != X[30] / np.linalg.norm(X[30])).any(axis=1).sum() >= 2


def test_nothing_is_exchanged_where_all_is_explained(rng):
    atoms = np.eye(4)
    X = np.repeat(atoms, 5, axis=0)
    dictionary = ExplicitDictionary(atoms)
    coded = Coded(X, encode(dictionary, OMP(1), X))
    assert exchange_atoms(dictionary, coded, 2) is dictionary


def test_exchanges_leave_time_to_settle():
    schedule = Schedule(exchange=1)
    turns = [i for i in range(50) if schedule.is_exchange_due(i, 50)]
    assert turns == [4, 9, 14, 19, 24, 29, 34]


@pytest.mark.parametrize("learner", LEARNERS, ids=str)
def test_learners_exchange_atoms(learner, rng, xp):
    """The first five iterations are the same, the sixth is not."""
    X, learner = xp.asarray(samples(rng)), clone(learner)
    learner.set_params(n_nonzero_coefs=2, random_state=0, max_iter=12)
    plain, other = (
        clone(learner).set_params(schedule__exchange=n).fit(X).history_["objective"]
        for n in (0, 2)
    )
    assert plain[:5] == other[:5] and plain[5] < other[5]


def test_exchanged_atoms_keep_their_signs(rng):
    X = rng.standard_normal((80, 6))
    update, schedule = "ksvd:positive_atoms=True", Schedule(exchange=2)
    learner = KSVD(8, 2, update=update, schedule=schedule, max_iter=6, random_state=0)
    assert (learner.fit(X).components_ >= 0).all()


@pytest.mark.parametrize("params", [{"tol": -1.0}, {"warm_up": -1}, {"exchange": 0.5}])
def test_bad_parameters_are_named(params, rng):
    with pytest.raises(ValueError, match=next(iter(params))):
        KSVD(5, schedule=Schedule(**params)).fit(samples(rng))


def test_the_penalty_of_lasso_falls_to_its_value():
    coder = Lasso(0.02, positive=True)
    alphas = [warm_up_coder(coder, i, 4).alpha for i in range(6)]
    np.testing.assert_allclose(alphas[:4], 0.02 * 10 ** (1 - np.arange(4) / 4))
    assert alphas[4:] == [0.02, 0.02] and warm_up_coder(coder, 0, 4).positive


@pytest.mark.parametrize("update", ["ksvd", "ksvd-parallel"])
def test_starts_race(rng, update, monkeypatch):
    X, seen = rng.standard_normal((150, 10)), []
    step = CodeAndUpdate.step

    def counted(self, keep):
        seen.append(self)
        return step(self, keep)

    monkeypatch.setattr(CodeAndUpdate, "step", counted)
    how = {"update": update, "max_iter": 9, "random_state": 3}
    single = KSVD(15, 3, **how).fit(X)
    assert len(seen) == 9
    seen.clear()
    learner = KSVD(15, 3, **how, schedule="n_init=4").fit(X)
    counts = sorted(seen.count(fit) for fit in set(seen))
    assert counts == [3, 3, 6, 9]  # three parts: 4 fits, 2, 1
    assert learner.n_iter_ == 9
    # one of the starts is that of a single fit
    assert learner.history_["objective"][0] <= single.history_["objective"][0]
    error = learner.reconstruction_error(X)
    assert error <= 1.05 * single.reconstruction_error(X)
    again = KSVD(15, 3, **how, schedule="n_init=4").fit(X)
    np.testing.assert_array_equal(again.components_, learner.components_)


def test_given_atoms_are_one_start(rng):
    X = rng.standard_normal((60, 6))
    one, many = (
        KSVD(init=X[:8], max_iter=3, schedule=f"n_init={n}", random_state=0).fit(X)
        for n in (1, 5)
    )
    np.testing.assert_array_equal(one.components_, many.components_)


@pytest.mark.parametrize(
    "learner",
    [
        KSVD(8, update="ksvd-parallel", max_iter=8, **SEVERAL),
        KernelKSVD("poly:2", 8, max_iter=8, **SEVERAL),
    ],
    ids=["linear", "kernel"],
)
def test_a_race_that_was_stopped_goes_on(rng, learner, tmp_path):
    X = rng.standard_normal((60, 6))
    expected = clone(learner).fit(X)

    def stop(state):
        if state["iteration"] == 4:
            raise KeyboardInterrupt

    with options(checkpoint=str(tmp_path)), pytest.raises(KeyboardInterrupt):
        clone(learner).set_params(schedule__callback=stop).fit(X)
    with options(checkpoint=str(tmp_path)):
        resumed = clone(learner).fit(X)
    assert resumed.history_["objective"] == expected.history_["objective"]
    weights = (each.dictionary_.weights for each in (resumed, expected))
    np.testing.assert_array_equal(*weights)
