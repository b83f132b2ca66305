"""Supervised dictionaries on faces and digits, means over splits or seeds.

Run with ``make test-slow``. The faces stand in for the files of LKDL's Table IV.
"""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

from kernlets import (
    RBF,
    FDDLClassifier,
    LCKSVDClassifier,
    NystroemMap,
)
from kernlets.datasets import unit_norm
from papers.datasets import load

from .usps import accuracies

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("shared_data")]


def faces(name, n_train, seeds, build, prepare=unit_norm):
    """Mean accuracy in percent over random splits."""
    scores = []
    for seed in seeds:
        X, X_test, y, y_test = load(name).split(n_train, random_state=seed)
        model = build(seed).fit(prepare(X), y)
        scores.append(100 * model.score(prepare(X_test), y_test))
    print(name, build(0), np.mean(scores), np.std(scores))
    return np.mean(scores)


def lc_ksvd(variant, alpha, beta=0.0, sigma=None, atoms=15, size=504, **params):
    """LC-KSVD as in the paper, behind a Gaussian map if a width is given."""

    def build(seed):
        given = {"alpha": alpha, "beta": beta, "max_iter": 50, **params}
        classifier = LCKSVDClassifier(
            atoms, 30, variant=variant, random_state=seed, **given
        )
        if sigma is None:
            return classifier
        features = NystroemMap(
            RBF(sigma), "uniform", n_landmarks=1.0, n_components=size
        )
        return make_pipeline(features, classifier)

    return build


@pytest.mark.parametrize("build", [lc_ksvd(1, 16.0), lc_ksvd(2, 16.0, 4.0)])
def test_yaleb_plain_rows(build):
    """The published numbers are those of the authors' features."""
    assert faces("yaleb-features", 32, range(5), build, np.asarray) >= 94.0


@pytest.mark.parametrize(
    "build",
    [lc_ksvd(1, 1 / 200**2, sigma=2), lc_ksvd(2, 1 / 600**2, 1 / 900**2, sigma=2)],
)
def test_yaleb_behind_a_map(build):
    """The published numbers are those of the authors' features."""
    assert faces("yaleb-features", 32, range(5), build) >= 94.6


@pytest.mark.parametrize("variant", [1, 2])
def test_yaleb_with_fewer_iterations_and_less_ridge(variant):
    build = lc_ksvd(variant, 1e-5, sigma=2, max_iter=10, tau=0.1)
    assert faces("yaleb-features", 32, range(5), build) >= 95.5


@pytest.mark.parametrize("variant", [1, 2])
def test_ar_gains_from_the_map(variant):
    """The published numbers are those of occluded images too."""
    alpha, beta = (1 / 14**2, 0.0) if variant == 1 else (1 / 15**2, 1 / 17**2)
    params = {"variant": variant, "alpha": alpha, "beta": beta, "atoms": 5}
    behind = faces("ar-540", 11, range(3), lc_ksvd(**params, sigma=0.5, size=540))
    assert behind >= 95.5


def fddl(seed, n_atoms, behind, **params):
    classifier = FDDLClassifier(n_atoms, random_state=seed, **params)
    if not behind:
        return classifier
    features = NystroemMap(
        "poly:2", "kmeans", n_landmarks=0.2, n_components=256, random_state=seed
    )
    return make_pipeline(features, classifier)


def usps(n_atoms, behind, **params):
    """Mean accuracy in percent of three seeds on the smoothed images."""
    models = [fddl(seed, n_atoms, behind, **params) for seed in range(3)]
    scores = [accuracies(model)[0] for model in models]
    print(models[0], np.mean(scores), np.std(scores))
    return np.mean(scores)


@pytest.mark.parametrize(("behind", "at_least"), [(False, 95.8), (True, 95.9)])
def test_usps_simplified(behind, at_least):
    assert usps(300, behind, simplified=True) >= at_least


def test_usps_full_objective():
    """Re-measured 95.5 with 30 atoms per class; the global rule is a point worse."""
    local = usps(30, False)
    assert local == pytest.approx(95.5, abs=0.4)
    assert usps(30, False, scheme="global") < local - 0.3
