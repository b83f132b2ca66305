"""What every dictionary learner promises, on every array library."""

from __future__ import annotations

import inspect
from copy import deepcopy

import numpy as np
import pytest

from kernlets import KSVD, OMP, Lasso, Schedule, options
from kernlets.contracts import SparseCodes
from kernlets.learners import LEARNERS


@pytest.fixture(params=LEARNERS)
def Learner(request):
    """The learner's class, with atoms and non-zeros as the first two arguments."""
    Class = LEARNERS[request.param]
    if "kernel" not in inspect.signature(Class).parameters:
        return Class

    def learner(n_components=None, n_nonzero_coefs=None, **params):
        sizes = {"n_components": n_components, "n_nonzero_coefs": n_nonzero_coefs}
        return Class("poly:2", **sizes, **params)

    learner.__name__ = Class.__name__
    return learner


def samples(rng, n=120, p=24, dtype=np.float64):
    atoms = rng.standard_normal((12, p))
    codes = np.where(rng.random((n, 12)) < 0.2, rng.standard_normal((n, 12)), 0)
    return (codes @ atoms + 0.05 * rng.standard_normal((n, p))).astype(dtype)


def test_learning_lowers_the_error(Learner, xp, rng):
    """Mostly: the path of a stream depends on rounding, and so does its end."""
    X, shares = xp.asarray(samples(rng)), []
    for seed in range(3):
        learner = Learner(n_components=12, n_nonzero_coefs=2, random_state=seed).fit(X)
        objective = learner.history_["objective"]
        shares.append(objective[-1] / objective[0])
    assert np.median(shares) < 0.7
    assert learner.n_iter_ == learner.max_iter == len(objective)
    assert len(learner.history_["seconds"]) == learner.n_iter_


def test_fitted_things_fit_together(Learner, xp, rng):
    X = samples(rng)
    learner = Learner(12, 2, max_iter=3, random_state=0).fit(xp.asarray(X))
    codes = learner.transform(xp.asarray(X))
    assert codes.shape == (120, 12)
    assert ((xp.to_numpy(codes) != 0).sum(1) <= 2).all()
    sparse = learner.encode(xp.asarray(X))
    assert isinstance(sparse, SparseCodes)
    np.testing.assert_allclose(xp.to_numpy(sparse.toarray()), xp.to_numpy(codes))
    errors = xp.to_numpy(learner.reconstruction_error(xp.asarray(X), per_sample=True))
    assert errors.shape == (120,)
    mean = learner.reconstruction_error(xp.asarray(X))
    assert mean == pytest.approx(errors.mean())
    assert learner.score(xp.asarray(X)) == -mean


def test_dtype_is_kept(Learner, xp, rng):
    X = xp.asarray(samples(rng, dtype=np.float32))
    learner = Learner(6, 2, max_iter=2, random_state=0).fit(X)
    assert xp.to_numpy(learner.transform(X)).dtype == np.float32
    assert xp.to_numpy(learner.dictionary_.weights).dtype == np.float32


def test_libraries_agree(Learner, xp, rng):
    X = samples(rng)
    with options(loops="reference"):
        expected = Learner(10, 2, max_iter=4, random_state=3).fit(X)
    found = Learner(10, 2, max_iter=4, random_state=3).fit(xp.asarray(X))
    np.testing.assert_allclose(
        xp.to_numpy(found.dictionary_.weights), expected.dictionary_.weights, atol=1e-7
    )


@pytest.mark.rounding
def test_seed_decides_and_threads_do_not(Learner, rng):
    X = samples(rng, n=300)

    def atoms(seed, n_threads):
        with options(n_threads=n_threads, block_rows=50):
            return Learner(10, 2, max_iter=3, random_state=seed).fit(X).dictionary_

    first = atoms(1, 1)
    np.testing.assert_array_equal(first.weights, atoms(1, 4).weights)
    assert np.abs(first.weights - atoms(2, 1).weights).max() > 1e-3


def test_atoms_have_unit_norm(Learner, xp, rng):
    X = xp.asarray(samples(rng))
    learner = Learner(12, 2, max_iter=3, random_state=0).fit(X)
    gram = xp.to_numpy(learner.dictionary_.gram())
    np.testing.assert_allclose(np.diag(gram), 1, rtol=1e-10)


def test_other_coders(Learner, rng):
    X = samples(rng)
    learner = Learner(12, coder=Lasso(0.1), max_iter=3, random_state=0).fit(X)
    assert learner.coder_.alpha == 0.1
    with pytest.raises(ValueError, match="n_nonzero_coefs and coder"):
        Learner(12, 3, coder=OMP(3)).fit(X)


def test_sparse_output(Learner, rng):
    X = samples(rng)
    learner = Learner(12, 2, random_state=0, max_iter=2).fit(X)
    dense = learner.transform(X)
    codes = learner.set_params(sparse_output=True).transform(X)
    assert codes.format == "csr"
    np.testing.assert_array_equal(codes.toarray(), dense)


def test_callback_sees_each_iteration_and_can_stop(Learner, rng):
    seen = []

    def stop_at_third(state):
        seen.append((state["iteration"], state["objective"]))
        return len(seen) == 3

    schedule = Schedule(callback=stop_at_third)
    learner = Learner(6, 2, schedule=schedule, random_state=0).fit(samples(rng))
    assert [i for i, _ in seen] == [0, 1, 2]
    assert learner.n_iter_ == 3
    assert learner.history_["objective"] == [error for _, error in seen]


def test_what_a_callback_sees_does_not_change_later(Learner, xp, rng):
    """Atoms that a callback keeps stay those of their iteration."""
    kept = []

    def keep(state):
        dictionary = state["dictionary"]
        kept.append((dictionary, deepcopy(dictionary)))

    X = xp.asarray(samples(rng))
    schedule = Schedule(callback=keep)
    learner = Learner(8, 2, schedule=schedule, max_iter=4, random_state=0).fit(X)
    assert len(kept) == 4
    for dictionary, then in kept:
        for name in ("weights", "gram"):
            now, before = (getattr(d, name) for d in (dictionary, then))
            if callable(now):
                now, before = now(), before()
            np.testing.assert_array_equal(xp.to_numpy(now), xp.to_numpy(before))
    first, last = (xp.to_numpy(kept[i][0].weights) for i in (0, -1))
    assert first.shape != last.shape or (first != last).any()
    grams = (xp.to_numpy(d.gram()) for d in (kept[-1][0], learner.dictionary_))
    np.testing.assert_allclose(*grams, atol=1e-7)


def test_verbose_prints_the_error(Learner, rng, capsys):
    schedule = Schedule(verbose=True)
    Learner(6, 2, max_iter=2, schedule=schedule, random_state=0).fit(samples(rng))
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 and Learner.__name__ in lines[0] and "1/2" in lines[0]


@pytest.mark.parametrize(
    ("params", "name"),
    [
        ({"n_components": 0}, "n_components"),
        ({"n_components": "many"}, "n_components"),
        ({"max_iter": 0}, "max_iter"),
        ({"init": "magic"}, "init"),
        ({"coder": "opm"}, "coder"),
    ],
    ids=str,
)
def test_bad_parameters_are_named(Learner, params, name, rng):
    with pytest.raises(ValueError, match=name):
        Learner(**params).fit(samples(rng))


@pytest.mark.parametrize(
    ("params", "name"),
    [
        ({"n_components": 1000}, "n_components"),
        ({"n_components": 5, "n_nonzero_coefs": 6}, "n_nonzero_coefs"),
    ],
    ids=str,
)
def test_more_than_there_is_is_clipped(Learner, params, name, rng):
    X = samples(rng)
    with pytest.warns(UserWarning, match=f"{name}={params[name]} is more than"):
        learner = Learner(**params, max_iter=1, random_state=0).fit(X)
    assert learner.dictionary_.n_atoms <= len(X)
    assert learner.transform(X).shape == (len(X), learner.dictionary_.n_atoms)


def test_bad_samples(Learner, xp, rng):
    X = samples(rng)
    X[3, 2] = np.inf
    with pytest.raises(ValueError, match="infin"):
        Learner(5).fit(xp.asarray(X))
    with pytest.raises(ValueError, match="2D"):
        Learner(5).fit(xp.asarray(X[0]))
    with pytest.raises(ValueError, match="non-zero"):
        Learner(5).fit(xp.asarray(np.zeros((9, 4))))
    learner = Learner(5, random_state=0, max_iter=1).fit(xp.asarray(samples(rng)))
    with pytest.raises(ValueError, match="features"):
        learner.transform(xp.asarray(np.ones((3, 2))))


def test_awkward_samples_give_finite_models(Learner, xp, rng):
    X = samples(rng)
    X[:40] = X[0]  # duplicates
    X[40:50] = 0  # zero rows
    X[:, 1] = 3.0  # a constant feature
    learner = Learner(20, 3, random_state=0).fit(xp.asarray(X))
    assert np.isfinite(xp.to_numpy(learner.dictionary_.weights)).all()
    assert np.isfinite(xp.to_numpy(learner.transform(xp.asarray(X)))).all()


def test_repr_of_defaults():
    assert repr(KSVD()) == "KSVD()"
