"""Non-negative codes and atoms, kept through the updates of K-SVD."""

from __future__ import annotations

import numpy as np
import pytest

from kernlets import KSVD, OMP, KernelKSVD, options
from kernlets.coders import encode
from kernlets.coders.encoding import statistics
from kernlets.contracts import Coded
from kernlets.dictionaries import ExplicitDictionary, GramDictionary
from kernlets.updates import KSVDUpdate, ParallelKSVDUpdate, ksvd_parallel
from kernlets.updates.ksvd import clip_negative
from kernlets.updates.ksvd_parallel import gauss_seidel, positive_sweeps

CODER = OMP(3, positive=True)
KEEP = {"min_uses": 0, "max_coherence": 2.0}
SIGNS = [(True, False), (False, True), (True, True)]


def unit(atoms):
    return atoms / np.linalg.norm(atoms, axis=1, keepdims=True)


@pytest.fixture
def problem(rng):
    """Samples of both signs, so that the constraint is felt."""
    X = np.abs(rng.standard_normal((90, 12))) - 0.3
    return X, np.abs(unit(rng.standard_normal((8, 12))))


def swept(X, atoms, codes, exact, positive, positive_atoms):
    """One sweep in plain Python; the state of atoms and codes after it."""
    dense, atoms = codes.toarray().copy(), atoms.copy()
    order = np.random.default_rng(0).permutation(len(atoms))
    used = dense != 0
    for j in order:
        rows = used[:, j]
        error = X[rows] - dense[rows] @ atoms + np.outer(dense[rows, j], atoms[j])
        for _ in range(10 if exact else 1):
            atom = dense[rows, j] @ error
            atom = np.maximum(atom, 0) if positive_atoms else atom
            if not atom.any():
                break
            atoms[j] = atom / np.linalg.norm(atom)
            dense[rows, j] = error @ atoms[j]
            if positive:
                dense[rows, j] = np.maximum(dense[rows, j], 0)
    return atoms, dense


@pytest.mark.parametrize("signs", SIGNS)
@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("loops", ["reference", "fast"])
def test_sweep_is_the_naive_one(problem, xp, signs, exact, loops):
    X, atoms = problem
    if loops == "reference" and not isinstance(xp.asarray(X), np.ndarray):
        pytest.skip("of NumPy arrays only")
    dictionary = ExplicitDictionary(xp.asarray(atoms))
    codes = encode(dictionary, CODER, xp.asarray(X))
    names = dict(zip(("positive", "positive_atoms"), signs, strict=True))
    update = KSVDUpdate(exact=exact, **KEEP, **names)
    with options(loops="reference" if loops == "reference" else options.loops):
        coded = Coded(xp.asarray(X), codes)
        step = update.step(dictionary, coded, np.random.default_rng(0))
    plain = encode(ExplicitDictionary(atoms), CODER, X)
    expected, dense = swept(X, atoms, plain, exact, *signs)
    np.testing.assert_allclose(xp.to_numpy(step.dictionary.atoms), expected, atol=1e-9)
    after = ((X - dense @ expected) ** 2).sum()
    assert step.error == pytest.approx(after)
    assert after < float(plain.residual.sum())
    if names["positive_atoms"]:
        assert expected.min() == 0


@pytest.mark.parametrize("exact", [False, True])
def test_kernel_atoms_move_as_explicit_ones(problem, xp, exact):
    X, _ = problem
    matrix, rows = xp.asarray(X @ X.T), xp.asarray(np.arange(8))
    trained = GramDictionary.of_samples(matrix, rows)
    explicit = ExplicitDictionary(xp.asarray(xp.to_numpy(trained.coefs) @ X))
    steps = []
    for dictionary, samples in ((explicit, xp.asarray(X)), (trained, rows)):
        samples = xp.asarray(np.arange(len(X))) if samples is rows else samples
        coded = Coded(samples, encode(dictionary, CODER, samples))
        # one step of alternation, also where the leading pair is asked for
        exactly = exact and dictionary is trained
        update = KSVDUpdate(exact=exactly, **KEEP, positive=True)
        steps.append(update.step(dictionary, coded, np.random.default_rng(0)))
    atoms = xp.to_numpy(steps[1].dictionary.coefs) @ X
    np.testing.assert_allclose(atoms, xp.to_numpy(steps[0].dictionary.atoms), atol=1e-8)
    assert steps[1].error == pytest.approx(steps[0].error)


def test_positive_sweeps_end_at_non_negative_least_squares(rng, xp):
    from scipy.optimize import nnls

    codes, X = rng.random((60, 5)), rng.standard_normal((60, 7)) + 0.5
    sums = codes.T @ codes, codes.T @ X
    start = np.abs(rng.standard_normal((5, 7)))
    best = np.stack([nnls(codes, column)[0] for column in X.T], axis=1)
    errors = []
    for count in (0, 1, 2, 5, 400):
        found = positive_sweeps(*map(xp.asarray, (*sums, start)), count)
        errors.append(((X - codes @ xp.to_numpy(found)) ** 2).sum())
    assert (np.diff(errors) < 0).all()
    assert (best == 0).any()
    np.testing.assert_allclose(xp.to_numpy(found), best, atol=1e-7)


def test_positive_sweeps_are_plain_ones_where_nothing_is_negative(rng, xp):
    codes, atoms = rng.random((60, 5)), 1 + rng.random((5, 7))
    sums = codes.T @ codes, codes.T @ (codes @ atoms)
    near = atoms + 1e-3 * rng.standard_normal((5, 7))
    both = [
        xp.to_numpy(sweep(*map(xp.asarray, (*sums, near)), 3))
        for sweep in (gauss_seidel, positive_sweeps)
    ]
    np.testing.assert_allclose(*both, atol=1e-12)


@pytest.mark.parametrize("whole", [False, True])  # as on a GPU, where there is one
@pytest.mark.parametrize("columns", [5, 40])  # fewer and more than the atoms
def test_a_sweep_moves_atom_by_atom(rng, monkeypatch, whole, columns):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    device = (lambda gram: gram.device) if whole else (lambda gram: None)
    monkeypatch.setattr(ksvd_parallel, "gpu_of", device)
    codes, X = rng.standard_normal((90, 12)), rng.standard_normal((90, columns))
    gram, cross = codes.T @ codes, codes.T @ X
    start = rng.standard_normal((12, columns))
    expected = start.copy()
    for j in [*range(12), *reversed(range(12))]:
        expected[j] += (cross[j] - gram[j] @ expected) / gram[j, j]
    found = gauss_seidel(*map(torch.asarray, (gram, cross, start)), 2)
    np.testing.assert_allclose(found.numpy(), expected, atol=1e-10)


@pytest.mark.parametrize("update", ["ksvd", "ksvd:exact=True", "ksvd-parallel"])
def test_sparse_non_negative_factorisation(rng, xp, update):
    parts = np.where(rng.random((8, 16)) < 0.3, rng.random((8, 16)), 0)
    weights = np.where(rng.random((300, 8)) < 0.3, rng.random((300, 8)), 0)
    X = weights @ parts + 0.01 * rng.standard_normal((300, 16))
    update += ",positive_atoms=True" if ":" in update else ":positive_atoms=True"
    learner = KSVD(8, coder=CODER, update=update, max_iter=30, random_state=0)
    learner.fit(xp.asarray(X))
    atoms, codes = (
        xp.to_numpy(a) for a in (learner.components_, learner.transform(xp.asarray(X)))
    )
    assert (atoms >= 0).all() and (codes >= 0).all()
    np.testing.assert_allclose((atoms**2).sum(1), 1)
    assert learner.reconstruction_error(xp.asarray(X)) < 0.1 * (X**2).sum(1).mean()


def test_statistics_and_samples_that_take_places(rng):
    """Atoms without uses give way to samples, whose signs are then cut off."""
    X = rng.standard_normal((50, 6))
    dictionary = ExplicitDictionary(np.abs(unit(rng.standard_normal((4, 6)))))
    codes = encode(dictionary, OMP(1, positive=True), X)
    coded = statistics(dictionary, X, codes)
    for update, given in (
        (ParallelKSVDUpdate(min_uses=1000, positive_atoms=True), coded),
        (KSVDUpdate(min_uses=1000, positive_atoms=True), Coded(X, codes)),
    ):
        atoms = update.step(dictionary, given, rng).dictionary.atoms
        assert (atoms >= 0).all()
        np.testing.assert_allclose((atoms**2).sum(1), 1)


def test_nonnegative_turns_what_is_all_negative():
    atoms = clip_negative(np.array([[3.0, -1.0], [-3.0, -4.0]]))
    np.testing.assert_allclose(atoms, [[1, 0], [0.6, 0.8]])


@pytest.mark.parametrize(
    "update", [KSVDUpdate(positive_atoms=True), ParallelKSVDUpdate(positive_atoms=True)]
)
def test_kernel_atoms_have_no_signs(rng, update):
    with pytest.raises(ValueError, match="positive_atoms"):
        KernelKSVD("poly:2", 5, update=update).fit(rng.standard_normal((40, 4)))


def test_learners_tell_the_update_that_codes_are_non_negative():
    assert KSVD(coder=CODER)._atom_update().positive
    assert KernelKSVD(coder=CODER, update="ksvd:exact=True")._atom_update().positive
    assert not KSVD()._atom_update().positive
