"""OMP over groups of atoms against a loop in plain NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from kernlets import KSVD, OMP, GroupOMP
from kernlets.coders import encode
from kernlets.dictionaries import ExplicitDictionary

GROUPS = np.array([0, 1, 2, 0, 1, 1, 3, 3, 2, 4, 4, 0])


@pytest.fixture
def problem(rng):
    atoms = rng.standard_normal((12, 9))
    atoms /= np.linalg.norm(atoms, axis=1, keepdims=True)
    return rng.standard_normal((40, 9)), atoms


def naive(x, atoms, n_groups):
    """Projections on the span of each group, then on that of all groups taken."""
    code, chosen = np.zeros(len(atoms)), []
    for _ in range(n_groups):
        left, gains = x - code @ atoms, {}
        for group in set(GROUPS) - set(chosen):
            part = atoms[GROUPS == group]
            fit = np.linalg.lstsq(part.T, left, rcond=None)[0] @ part
            gains[group] = fit @ fit
        chosen.append(max(gains, key=gains.get))
        live = np.isin(GROUPS, chosen)
        code = np.zeros(len(atoms))
        code[live] = np.linalg.lstsq(atoms[live].T, x, rcond=None)[0]
    return code


@pytest.mark.parametrize("n_groups", [1, 2, 3])
def test_it_is_the_naive_loop(problem, xp, n_groups):
    X, atoms = problem
    dictionary = ExplicitDictionary(xp.asarray(atoms))
    codes = encode(dictionary, GroupOMP(n_groups, groups=GROUPS), xp.asarray(X))
    expected = np.array([naive(x, atoms, n_groups) for x in X])
    np.testing.assert_allclose(xp.to_numpy(codes.toarray()), expected, atol=1e-9)
    left = ((X - expected @ atoms) ** 2).sum(1)
    np.testing.assert_allclose(xp.to_numpy(codes.residual), left, atol=1e-9)


def test_groups_of_one_atom_are_omp(problem):
    X, atoms = problem
    found, expected = (
        encode(ExplicitDictionary(atoms), coder, X).toarray()
        for coder in (GroupOMP(3), OMP(3))
    )
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_a_sample_of_one_group_needs_no_other(problem, rng):
    _, atoms = problem
    X = rng.standard_normal((10, 3)) @ atoms[GROUPS == 1]
    coder = GroupOMP(3, groups=GROUPS)
    codes = encode(ExplicitDictionary(atoms), coder, X).toarray()
    assert (codes[:, GROUPS != 1] == 0).all() and (codes[:, GROUPS == 1] != 0).all()


def test_no_group_is_taken_twice(xp, rng):
    """What is left lies outside all groups: only rounding could choose again."""
    atoms, X = np.eye(4, 9), rng.standard_normal((10, 9))
    coder = GroupOMP(4, groups=[0, 0, 1, 1])
    codes = encode(ExplicitDictionary(xp.asarray(atoms)), coder, xp.asarray(X))
    np.testing.assert_allclose(xp.to_numpy(codes.toarray()), X[:, :4])
    for row in xp.to_numpy(codes.indices):
        assert len(set(row[row >= 0])) == (row >= 0).sum()


def test_groups_of_equal_atoms_share_their_part(problem):
    X, atoms = problem
    twice = np.concatenate([atoms[:2], atoms[:2]])
    coder = GroupOMP(1, groups=[0, 1, 0, 1])
    codes = encode(ExplicitDictionary(twice), coder, X).toarray()
    np.testing.assert_allclose(codes[:, :2], codes[:, 2:], atol=1e-12)
    assert np.isfinite(codes).all()


def test_learners_take_it(problem):
    X, _ = problem
    coder = GroupOMP(1, groups=[0, 0, 1, 1, 2, 2])
    learner = KSVD(6, coder=coder, update="ksvd-parallel", max_iter=5, random_state=0)
    used = learner.fit(X).transform(X).reshape(40, 3, 2) != 0
    assert (used.any(axis=2).sum(axis=1) == 1).all()


@pytest.mark.parametrize("groups", [[0, 1], [0.5] * 12, [[0] * 12]])
def test_bad_groups_are_named(problem, groups):
    X, atoms = problem
    with pytest.raises(ValueError, match="groups must be 12 whole numbers"):
        encode(ExplicitDictionary(atoms), GroupOMP(1, groups=groups), X)
