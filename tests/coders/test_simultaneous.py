"""Simultaneous OMP against a loop in plain NumPy, and inside learners."""

from __future__ import annotations

import numpy as np
import pytest

from kernlets import KSVD, MOD, OMP, KernelKSVD, SimultaneousOMP, metrics, options
from kernlets.coders import encode
from kernlets.dictionaries import ExplicitDictionary


def planted(rng, n_groups=60, size=3, m=16, p=12, width=2):
    """Groups of samples with common atoms and their own coefficients."""
    atoms = rng.standard_normal((m, p))
    atoms /= np.linalg.norm(atoms, axis=1, keepdims=True)
    codes = np.zeros((n_groups, size, m))
    for group in codes:
        support = rng.choice(m, width, replace=False)
        group[:, support] = rng.standard_normal((size, width))
    return codes.reshape(-1, m) @ atoms, atoms, codes.reshape(-1, m)


def naive(X, atoms, width):
    """One group: the atom with most of the residuals, then least squares."""
    support, left = [], X
    for _ in range(width):
        share = ((left @ atoms.T) ** 2).sum(axis=0)
        share[support] = 0
        support.append(int(share.argmax()))
        fit = np.linalg.lstsq(atoms[support].T, X.T, rcond=None)[0].T
        left = X - fit @ atoms[support]
    codes = np.zeros((len(X), len(atoms)))
    codes[:, support] = fit
    return codes


@pytest.mark.parametrize("size", [1, 2, 5])
def test_it_is_the_naive_loop(xp, rng, size):
    X, atoms, _ = planted(rng, n_groups=20, size=size)
    X = X + 0.3 * rng.standard_normal(X.shape)
    coder = SimultaneousOMP(3, group_size=size)
    found = encode(ExplicitDictionary(xp.asarray(atoms)), coder, xp.asarray(X))
    expected = np.vstack([naive(part, atoms, 3) for part in np.split(X, 20)])
    np.testing.assert_allclose(xp.to_numpy(found.toarray()), expected, atol=1e-9)
    left = ((X - expected @ atoms) ** 2).sum(axis=1)
    np.testing.assert_allclose(xp.to_numpy(found.residual), left, atol=1e-9)


def test_groups_of_one_are_omp(rng):
    X, atoms, _ = planted(rng)
    dictionary = ExplicitDictionary(atoms)
    found, expected = (
        encode(dictionary, coder, X).toarray() for coder in (SimultaneousOMP(3), OMP(3))
    )
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_a_group_finds_atoms_that_single_samples_miss(rng):
    X, atoms, codes = planted(rng, size=6, m=30, p=10, width=3)
    X = X + 0.2 * rng.standard_normal(X.shape)

    def right(coder):
        found = encode(ExplicitDictionary(atoms), coder, X).toarray()
        return ((found != 0) & (codes != 0)).sum() / (codes != 0).sum()

    assert right(SimultaneousOMP(3, group_size=6)) > right(OMP(3)) + 0.1


@pytest.mark.parametrize("block_rows", [1, 7, 8])
def test_blocks_do_not_tear_groups(rng, block_rows):
    X, atoms, _ = planted(rng)
    coder, dictionary = SimultaneousOMP(2, group_size=3), ExplicitDictionary(atoms)
    whole = encode(dictionary, coder, X).toarray()
    learner = MOD(16, coder=coder, init=atoms, max_iter=2).fit(X)
    with options(block_rows=block_rows):
        parts = encode(dictionary, coder, X).toarray()
        again = MOD(16, coder=coder, init=atoms, max_iter=2).fit(X)
        codes = again.transform(X)
        error = again.reconstruction_error(X)
    np.testing.assert_allclose(parts, whole, atol=1e-12)
    np.testing.assert_allclose(again.components_, learner.components_, atol=1e-9)
    np.testing.assert_allclose(codes, learner.transform(X), atol=1e-8)
    assert error == pytest.approx(learner.reconstruction_error(X))


def test_chunks_and_rows_read_later_do_not_tear_groups(rng, tmp_path):
    da = pytest.importorskip("dask.array", reason="Dask is not installed")
    X, atoms, _ = planted(rng)
    coder = SimultaneousOMP(2, group_size=3)
    learner = MOD(16, coder=coder, init=atoms, max_iter=2).fit(X)
    codes = learner.transform(X)
    np.save(tmp_path / "X.npy", X)
    disk = np.load(tmp_path / "X.npy", mmap_mode="r")
    with options(block_rows=7, memory=3 * codes.nbytes // 2):
        on_cluster = learner.transform(da.from_array(X, chunks=(60, -1))).compute()
        lazy = learner.transform(disk)
    with options(block_rows=7):
        np.testing.assert_allclose(lazy[:60], codes[:60], atol=1e-12)
    np.testing.assert_allclose(on_cluster, codes, atol=1e-12)


@pytest.mark.parametrize("update", ["ksvd", "ksvd-parallel"])
def test_learners_find_common_atoms(rng, update):
    X, atoms, _ = planted(rng, n_groups=300)
    coder = SimultaneousOMP(2, group_size=3)
    how = {"coder": coder, "update": update, "max_iter": 30, "random_state": 0}
    assert metrics.recovery(atoms, KSVD(16, **how).fit(X)).share > 0.8


def test_kernel_learners_take_it(rng):
    X, _, _ = planted(rng, n_groups=20)
    coder = SimultaneousOMP(2, group_size=3)
    learner = KernelKSVD("poly:2", 8, coder=coder, max_iter=2, random_state=0).fit(X)
    used = (learner.transform(X) != 0).reshape(20, 3, 8)
    assert (used.any(axis=1).sum(axis=1) <= 2).all()


def test_bad_numbers_are_refused(rng):
    X, atoms, _ = planted(rng)
    dictionary = ExplicitDictionary(atoms)
    with pytest.raises(ValueError, match="180 rows are no whole groups"):
        encode(dictionary, SimultaneousOMP(2, group_size=7), X)
    with pytest.raises(ValueError, match="between 1 and the number of atoms"):
        encode(dictionary, SimultaneousOMP(17), X)
