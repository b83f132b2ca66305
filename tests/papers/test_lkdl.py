"""Published accuracies of LKDL, means over seeds. Run with ``make test-slow``."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

from kernlets import KSVD, KernelKSVD, NystroemMap, ResidualClassifier, datasets
from kernlets.datasets import unit_norm
from papers.published import numbers

from .usps import accuracies, kernel_ksvd, ksvd, lkdl

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("shared_data")]
SEEDS = range(5)


def mean(build, *args, seeds=SEEDS, noises=(0.0,)):
    scores = [accuracies(build(seed, *args), noises, seed) for seed in seeds]
    print(build.__name__, *args, noises, np.mean(scores, 0), np.std(scores, 0))
    return np.mean(scores, axis=0)


def test_usps_clean_and_noisy():
    linear = mean(ksvd, noises=(0.0, 1.0))
    coreset = mean(lkdl, "coreset", noises=(0.0, 1.0))
    published = numbers("lkdl", "fig1b")
    assert linear[0] == pytest.approx(published["K-SVD", None].value, abs=0.4)
    assert coreset[0] == pytest.approx(published["coreset", 20].value, abs=0.3)
    assert coreset[1] >= 86 and coreset[1] >= linear[1] + 9


def test_usps_kmeans():
    assert mean(lkdl, "kmeans")[0] == pytest.approx(96.0, abs=0.3)


def test_usps_exact_kernel():
    assert mean(kernel_ksvd, seeds=range(3))[0] == pytest.approx(96.0, abs=0.3)


@pytest.mark.parametrize(
    ("model", "at_least"),
    [
        (ResidualClassifier(KSVD(700, 11, max_iter=2, random_state=0)), 97.5),
        (
            make_pipeline(
                NystroemMap(
                    "poly:2",
                    "coreset",
                    n_landmarks=3000,
                    n_components=784,
                    random_state=0,
                ),
                ResidualClassifier(KSVD(700, 11, max_iter=2, random_state=0)),
            ),
            98.1,
        ),
        (
            ResidualClassifier(
                KernelKSVD(
                    "poly:2", 700, n_nonzero_coefs=11, max_iter=2, random_state=0
                )
            ),
            98.0,
        ),
    ],
    ids=["ksvd", "lkdl", "kernel-ksvd"],
)
def test_mnist(model, at_least):
    data = datasets.load("mnist")
    model.fit(unit_norm(data.X_train), data.y_train)
    score = 100 * model.score(unit_norm(data.X_test), data.y_test)
    print(score)
    assert score >= at_least
