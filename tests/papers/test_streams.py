"""LKDL's Table II, reduced: one pass over shifted digits. Run with ``make test-slow``.

The full run, 540 000 images, is ``python -m benchmarks streams``.
"""

from __future__ import annotations

import numpy as np
import pytest

from kernlets import (
    Forgetting,
    NystroemMap,
    OnlineDictionary,
    ResidualClassifier,
    RLSDictionary,
    Schedule,
    datasets,
)
from kernlets.datasets import remove_mean_and_normalize, shifted_batches

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("shared_data")]
N_IMAGES = 6000
ATOMS, WIDTH = 300, 11
FORGETTING = Forgetting(0.999, "linear", horizon=9 * N_IMAGES // 10)


@pytest.fixture(scope="module")
def digits():
    data = datasets.load("mnist")
    rows = np.random.default_rng(0).permutation(60_000)[:N_IMAGES]
    new = remove_mean_and_normalize(data.X_test)
    return data.X_train[rows], data.y_train[rows], new, data.y_test


def accuracy(learner, digits, features=None):
    """Percent correct after one pass over nine batches."""
    X, y, new, truth = digits
    model = ResidualClassifier(learner)
    for batch, labels in shifted_batches(X, y, (28, 28), random_state=0):
        rows = remove_mean_and_normalize(batch)
        rows = rows if features is None else features.transform(rows)
        model.partial_fit(rows, labels)
    new = new if features is None else features.transform(new)
    score = 100 * np.mean(model.predict(new) == truth)
    print(learner, "mapped" if features else "linear", score)
    return score


@pytest.fixture(scope="module")
def features(digits):
    rows = remove_mean_and_normalize(digits[0])
    return NystroemMap(
        "poly:2", "coreset", n_landmarks=1500, n_components=784, random_state=0
    ).fit(rows)


@pytest.mark.parametrize("Learner", [RLSDictionary, OnlineDictionary])
@pytest.mark.parametrize("forgetting", [1.0, FORGETTING], ids=["all", "forget"])
def test_one_pass_over_shifted_digits(Learner, forgetting, digits, features):
    schedule = Schedule(forgetting=forgetting)
    learner = Learner(ATOMS, WIDTH, schedule=schedule, random_state=0)
    linear = accuracy(learner, digits)
    mapped = accuracy(learner, digits, features)
    assert linear >= 96.5
    assert mapped >= 97.3 and mapped >= linear + 0.3
