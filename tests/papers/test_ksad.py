"""K-SAD on faces and digits, means over splits. Run with ``make test-slow``."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier

from kernlets import KSADClassifier
from kernlets.datasets import unit_norm
from papers.datasets import load
from papers.published import number

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("shared_data")]


def faces(name, n_train, seed, centred=False):
    """Unit-norm rows of one split, without the mean training image if `centred`."""
    split = load(name).split(n_train, random_state=seed)
    mean = split.X_train.mean(axis=0) if centred else 0.0
    X, X_test = unit_norm(split.X_train - mean), unit_norm(split.X_test - mean)
    return X, X_test, split.y_train, split.y_test


def accuracy(model, X, X_test, y, y_test):
    return 100 * np.mean(model.fit(X, y).predict(X_test) == y_test)


def mean_accuracy(name, n_train, seeds, centred, **params):
    scores = [
        accuracy(
            KSADClassifier(**params, random_state=seed),
            *faces(name, n_train, seed, centred),
        )
        for seed in seeds
    ]
    print(name, params, np.mean(scores), np.std(scores))
    return np.mean(scores)


def test_orl_as_published():
    """An independent reference gave 96.35 on these ten splits."""
    score = mean_accuracy("orl", 6, range(10), True, n_components=240)
    assert score >= 96.2


def test_orl_as_published_is_nearest_neighbour_on_the_images():
    for seed in range(3):
        X, X_test, y, y_test = faces("orl", 6, seed, centred=True)
        ksad = KSADClassifier(n_components=240, random_state=seed).fit(X, y)
        plain = KNeighborsClassifier(1, algorithm="brute").fit(X, y)
        assert np.mean(ksad.predict(X_test) == plain.predict(X_test)) > 0.99


def test_orl_fisher_atoms():
    params = {"dictionary": "fisher", "n_landmarks": 1.0}
    score = mean_accuracy("orl", 6, range(10), False, **params)
    assert score >= 97.0


def test_yaleb_as_published():
    """Nearest neighbours cannot reach the published number; re-measured 72-74."""
    score = mean_accuracy("yaleb", 32, range(2), False, n_components=740)
    assert score == pytest.approx(75, abs=3)


def test_yaleb_fisher_atoms():
    params = {"dictionary": "fisher", "n_landmarks": 1.0}
    score = mean_accuracy("yaleb", 32, range(5), False, **params)
    assert score >= 97.0
    best = mean_accuracy(
        "yaleb", 32, range(5), False, kernel="poly:2,coef0=1", **params
    )
    assert best >= number("ksad", "table2", "K-SAD", "yaleb").value


@pytest.mark.parametrize(
    ("params", "at_least"),
    [
        ({"n_components": 300}, 96.6),
        (
            {
                "dictionary": "fisher",
                "landmarks": "uniform",
                "n_landmarks": 2000,
                "n_neighbors": 10,
            },
            97.4,
        ),
    ],
    ids=["published", "fisher"],
)
def test_mnist(params, at_least):
    data = load("mnist")
    X, X_test = unit_norm(data.X_train), unit_norm(data.X_test)
    model = KSADClassifier(**params, random_state=0)
    score = accuracy(model, X, X_test, data.y_train, data.y_test)
    print(params, score)
    assert score >= at_least
