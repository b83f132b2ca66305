"""Squared errors of pursuits are right where atoms are almost, or quite, alike."""

from __future__ import annotations

import numpy as np
import pytest

from kernlets import OMP, GroupOMP, SimultaneousOMP
from kernlets.coders import encode
from kernlets.config import options
from kernlets.contracts import SparseCodes
from kernlets.dictionaries import ExplicitDictionary
from kernlets.loops import table

P, M, WIDTH = 16, 4, 7
DISTANCES = [1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-10, 1e-12]
ALLOWED = {np.float64: 1e-6, np.float32: 1e-4}  # of the energy


def coded(coder):
    return lambda atoms, X: encode(ExplicitDictionary(atoms), coder, X)


def by_rows(positive):
    def pursue(atoms, X):
        operation = table.positive_rows_omp if positive else table.rows_omp
        codes = operation(atoms, X, (X * X).sum(1), WIDTH, 0.0)
        return SparseCodes(*codes[:2], atoms.shape[0], codes[2])

    return pursue


PURSUITS = {
    "OMP": coded(OMP(WIDTH)),
    "OMP, tolerance": coded(OMP(tol=1e-4)),
    "positive OMP": coded(OMP(WIDTH, positive=True)),
    "OMP by rows": by_rows(False),
    "positive OMP by rows": by_rows(True),
    "GroupOMP": coded(GroupOMP(WIDTH)),
    "GroupOMP, groups": coded(GroupOMP(2, np.arange(3 * M) // 3)),
    "SimultaneousOMP": coded(SimultaneousOMP(WIDTH)),
    "SimultaneousOMP, groups": coded(SimultaneousOMP(WIDTH, group_size=2)),
}


def problem(rng, distance):
    """Atoms in threes at this distance; samples along what tells them apart."""
    base, apart = rng.standard_normal((2, M, P))
    base /= np.linalg.norm(base, axis=1, keepdims=True)
    further = base + distance * (apart + rng.standard_normal((M, P)))
    atoms = np.concatenate([base, base + distance * apart, further])
    X = [base + apart, 3 * apart + 0.1 * base, rng.standard_normal((M, P))]
    return atoms / np.linalg.norm(atoms, axis=1, keepdims=True), np.concatenate(X)


def energy_left(atoms, X, codes):
    """‖x_o − γD_o‖² in extended precision."""
    left = np.where(np.isnan(X), 0, X - codes.astype(np.longdouble) @ atoms)
    return (left * left).sum(axis=1)


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("loops", ["auto", "reference"])
@pytest.mark.parametrize("name", PURSUITS)
def test_errors_are_those_of_the_codes(xp, rng, name, loops, dtype, missing):
    if missing and ("rows" in name or name == "SimultaneousOMP, groups"):
        pytest.skip("takes complete rows only")
    for distance in DISTANCES:
        atoms, X = (x.astype(dtype) for x in problem(rng, distance))
        if missing:
            X[rng.random(X.shape) < 0.2] = np.nan
        with options(loops=loops):
            codes = PURSUITS[name](xp.asarray(atoms), xp.asarray(X))
        expected = energy_left(atoms, X, xp.to_numpy(codes.toarray()))
        wrong = np.abs(xp.to_numpy(codes.residual) - expected)
        share = wrong / np.nansum(X.astype(np.float64) ** 2, axis=1)
        assert share.max() < ALLOWED[dtype], distance


def test_coherent_atoms_are_still_told_apart(xp, rng):
    """Atoms whose correlation is .99995 in float64, .995 in float32, are not alike."""
    for dtype, distance in ((np.float64, 1e-2), (np.float32, 1e-1)):
        first, other = np.linalg.qr(rng.standard_normal((P, 2)))[0].T
        atoms = np.stack([first, (first + distance * other) / (1 + distance**2) ** 0.5])
        X = (first + 3 * other)[None]
        dictionary = ExplicitDictionary(xp.asarray(atoms.astype(dtype)))
        codes = encode(dictionary, OMP(2), xp.asarray(X.astype(dtype)))
        assert (xp.to_numpy(codes.toarray()) != 0).all()
        assert xp.to_numpy(codes.residual)[0] < 1e-3
