"""Matched atoms and codes against all permutations, and in the space of a kernel."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from scipy import sparse

from kernlets import KSVD, KernelKSVD
from kernlets.dictionaries import ExplicitDictionary, KernelDictionary
from kernlets.kernels import Linear, Polynomial
from kernlets.metrics import (
    Match,
    code_correlation,
    match_atoms,
    recovery,
    stability,
)


def unit(atoms):
    return atoms / np.linalg.norm(atoms, axis=1, keepdims=True)


def test_no_permutation_is_better(rng, xp):
    first, second = rng.standard_normal((2, 5, 4))
    cosines = unit(first) @ unit(second).T
    best = max(
        sum(abs(cosines[j, k]) for j, k in enumerate(order))
        for order in permutations(range(5))
    )
    match = match_atoms(xp.asarray(first), ExplicitDictionary(xp.asarray(second)))
    np.testing.assert_allclose(match.cosines, cosines[match.first, match.second])
    assert np.abs(match.cosines).sum() == pytest.approx(best)
    assert sorted(match.second) == list(range(5))


def test_sign_length_and_order_do_not_matter(rng):
    atoms = rng.standard_normal((6, 9))
    order = rng.permutation(6)
    moved = atoms[order] * rng.choice([-3.0, 0.5], (6, 1))
    match = match_atoms(atoms, moved)
    np.testing.assert_array_equal(order[match.second], match.first)
    found = recovery(atoms, moved, threshold=1.0)
    assert found.share == 1 and found.cosine == pytest.approx(1)
    assert found.correlation is None


def test_share_counts_all_true_atoms(rng):
    atoms = np.linalg.qr(rng.standard_normal((8, 8)))[0]
    near = atoms[:3] + 0.1 * atoms[3:6]
    assert recovery(atoms, near, threshold=0.99).share == pytest.approx(3 / 8)
    assert recovery(atoms, near, threshold=0.999).share == 0
    assert recovery(near, atoms).share == 1


def test_kernel_atoms_are_matched_in_the_feature_space(rng):
    """With a linear kernel these are plain atoms."""
    Z, W = rng.standard_normal((2, 10, 4))
    A, B = rng.standard_normal((2, 5, 10))
    plain = match_atoms(A @ Z, B @ W)
    kernel = [KernelDictionary(Linear(), *pair) for pair in ((Z, A), (W, B))]
    match = match_atoms(*kernel)
    np.testing.assert_array_equal(match.second, plain.second)
    np.testing.assert_allclose(match.cosines, plain.cosines)


def test_fitted_learners(rng):
    X = rng.standard_normal((80, 5))
    for learner in (KSVD(6, 2), KernelKSVD("poly:2", 6, n_nonzero_coefs=2)):
        learner.set_params(random_state=0, max_iter=3).fit(X)
        assert recovery(learner, learner).share == 1


def test_spaces_that_differ_are_refused(rng):
    Z, A = rng.standard_normal((2, 5, 5))
    squares = KernelDictionary(Polynomial(2), Z, A)
    with pytest.raises(TypeError, match="one space"):
        match_atoms(A, squares)
    with pytest.raises(ValueError, match="kernels differ"):
        match_atoms(KernelDictionary(Linear(), Z, A), squares)
    learner = KernelKSVD("precomputed", 3, n_nonzero_coefs=2, random_state=0)
    learner.fit(Z @ Z.T)
    with pytest.raises(ValueError, match=r"Match\.of"):
        match_atoms(learner, learner)
    with pytest.raises(ValueError, match="threshold"):
        recovery(A, A, threshold=1.5)
    assert Match.of(-np.eye(3)).cosines.tolist() == [-1, -1, -1]


def test_correlation_is_that_of_numpy(rng):
    true = rng.standard_normal((50, 4))
    found = true[:, [2, 0, 3, 1]] + 0.5 * rng.standard_normal((50, 4))
    whole = np.abs(np.corrcoef(true.T, found.T)[:4, 4:])
    best = max(
        np.mean([whole[j, k] for j, k in enumerate(order)])
        for order in permutations(range(4))
    )
    assert code_correlation(true, found) == pytest.approx(best)
    assert code_correlation(sparse.csr_array(true), found) == pytest.approx(best)


def test_codes_that_never_occur_do_not_count(rng):
    true = rng.random((30, 5))
    true[:, 2] = 0.7
    assert code_correlation(true, true) == pytest.approx(1)
    assert code_correlation(true, true[:, :3]) == pytest.approx(0.5, abs=0.2)
    with pytest.raises(ValueError, match="constant"):
        code_correlation(np.ones((4, 2)), true[:4])
    with pytest.raises(ValueError, match="same"):
        code_correlation(true, true[:5])


def test_stability(rng):
    atoms = rng.standard_normal((4, 30))
    assert stability([atoms, -atoms[::-1]]) == pytest.approx(1)
    assert stability([atoms, rng.standard_normal((4, 30))]) < 0.6
    with pytest.raises(ValueError, match="two"):
        stability([atoms])


def planted_in_feature_space(rng, n=700, m=20):
    """Samples that are sparse in the feature space of (xᵀy)², atoms over 25 anchors.

    No point of the input space is a sum of several φ(z), so samples are known by their
    inner products, and by their coordinates in the 15 dimensions of the space.
    """
    kernel, Z = Polynomial(2), rng.standard_normal((25, 5))
    coefs = np.where(rng.random((m, 25)) < 0.2, rng.standard_normal((m, 25)), 0)
    coefs[:, :m] += np.eye(m)
    true = KernelDictionary(kernel, Z, coefs)
    true = true.rescaled(1 / np.sqrt(np.diag(true.gram())))
    codes = np.zeros((n, m))
    for code in codes:
        code[rng.choice(m, 2, replace=False)] = rng.choice([-1, 1], 2) + rng.normal(
            0, 0.2, 2
        )
    upper = np.triu_indices(5)
    phi = Z[:, upper[0]] * Z[:, upper[1]] * np.where(upper[0] == upper[1], 1, 2**0.5)
    return true, codes, phi


def test_planted_kernel_atoms_are_found_up_to_sign(rng):
    true, codes, phi = planted_in_feature_space(rng)
    mixing = codes @ true.coefs  # samples over the anchors
    between = true.kernel(true.anchors) @ mixing.T  # K(anchors, samples)
    how = {
        "n_nonzero_coefs": 2,
        "max_iter": 40,
        "random_state": 0,
        "schedule": "n_init=3",
    }
    learner = KernelKSVD("precomputed", 20, update="ksvd-parallel", **how)
    found = recovery(true, learner.fit(mixing @ between), between=between)
    assert found.share > 0.7 and found.cosine > 0.9
    # the same learner on coordinates of the feature space
    explicit = KSVD(20, update="ksvd-parallel", **how).fit(mixing @ phi)
    same = recovery(true.coefs @ phi, explicit)
    assert same.share == pytest.approx(found.share, abs=0.11)
    np.testing.assert_allclose(
        np.abs(match_atoms(true, learner, between).cosines), np.abs(found.match.cosines)
    )


def test_inner_products_between_anchors_may_be_given(rng):
    kernel, Z, Y = Polynomial(2), *rng.standard_normal((2, 6, 3))
    first, second = (
        KernelDictionary(kernel, points, rng.standard_normal((4, 6)))
        for points in (Z, Y)
    )
    given, computed = (
        match_atoms(first, second, between) for between in (kernel(Z, Y), None)
    )
    np.testing.assert_allclose(given.cosines, computed.cosines)
    with pytest.raises(ValueError, match="between has the shape"):
        match_atoms(first, second, np.ones((6, 5)))
    with pytest.raises(TypeError, match="between is for two kernel dictionaries"):
        match_atoms(first, np.ones((4, 3)), np.ones((6, 3)))
