"""First atoms: bad ones are refused, and huge ones do no harm."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.base import clone

from kernlets import (
    KSVD,
    BudgetKernelDL,
    KernelKSVD,
    KernelMOD,
    OrthogonalDictionary,
    ReducedKernelDL,
    RLSDictionary,
)
from kernlets.learners.initial_atoms import from_svd


def test_atoms_that_are_no_rows_of_numbers(rng):
    with pytest.raises(TypeError, match="init must hold rows of numbers, not list"):
        KSVD(2, init=[{"a": 1}, {"a": 2}]).fit(rng.standard_normal((20, 3)))
    with pytest.raises(TypeError, match="init must be numbers"):
        model = BudgetKernelDL("poly:2", init=[{"a": 1}, {"a": 2}])
        model.fit(rng.standard_normal((20, 3)))


@pytest.mark.parametrize("init", [np.array(3), [-1], [[0]], [20], []])
def test_row_numbers_that_are_none(init, rng):
    X = rng.standard_normal((20, 3))
    for learner in (ReducedKernelDL("rbf:1", anchors=3), KernelKSVD("rbf:1")):
        with pytest.raises(ValueError, match="init must be"):
            learner.set_params(init=init, n_nonzero_coefs=1).fit(X)


def test_huge_samples_start_from_singular_vectors_without_a_warning():
    X = np.array([[1e19, 0.0], [0.0, 1.0], [1.0, 1.0]], dtype=np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        atoms = from_svd(X * np.float32(1.5), 1, np.random.default_rng(0))
    np.testing.assert_allclose(np.abs(atoms), [[1, 0]], atol=1e-6)


def test_samples_that_are_all_zero_have_no_random_combination():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match="there are no"):
            KernelMOD("linear", 2, init="normal", random_state=0).fit(np.zeros((5, 3)))


def test_singular_vectors_have_the_same_signs_everywhere(rng):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    X = rng.standard_normal((40, 6))
    draw = np.random.default_rng(0)
    first = from_svd(X, 4, draw)
    assert (first.max(axis=1) >= -first.min(axis=1)).all()
    np.testing.assert_allclose(from_svd(torch.as_tensor(X), 4, draw), first, atol=1e-9)


@pytest.mark.parametrize("learner", [KSVD(), OrthogonalDictionary(), RLSDictionary()])
@pytest.mark.parametrize("init", [np.array(3), [[1.0], [1.0, 2.0]], []])
def test_first_atoms_that_are_no_rows(learner, init, rng):
    with pytest.raises(ValueError, match=r"array|inhomogeneous"):
        clone(learner).set_params(init=init).fit(rng.standard_normal((20, 3)))


def test_row_numbers_in_a_tensor_or_in_lists_of_unequal_length(rng):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    X, whole = rng.standard_normal((20, 3)), torch.tensor([2, 5])
    for learner in (ReducedKernelDL("rbf:1", anchors=3), KernelKSVD("rbf:1")):
        learner.set_params(n_nonzero_coefs=1, max_iter=1, random_state=0)
        assert clone(learner).set_params(init=whole).fit(X).dictionary_.n_atoms == 2
        for init in (torch.tensor(3), [[1], [1, 2]]):
            with pytest.raises(ValueError, match="init must be"):
                clone(learner).set_params(init=init).fit(X)
