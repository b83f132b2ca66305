"""Probabilities of residuals and distances, and the temperature that is fitted."""

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline

from kernlets import (
    KSVD,
    KSADClassifier,
    NystroemMap,
    ResidualClassifier,
    RLSDictionary,
    SRCClassifier,
    datasets,
)
from kernlets.classifiers.ksad_atoms import class_distances, count_votes
from kernlets.classifiers.temperature import (
    FLOOR,
    _ranks_in_classes,
    _splits,
    class_probabilities,
    fit_temperature,
    residuals_of_prior,
)


@pytest.fixture
def residuals(rng):
    truth = rng.integers(0, 3, 200)
    values = rng.random((200, 3)) + 0.2
    values[np.arange(200), truth] *= 0.6
    return values, truth


def test_probabilities_are_those_of_the_formula(residuals):
    values, _ = residuals
    powers = (values / values.max(axis=1, keepdims=True) + FLOOR) ** (-1 / 0.3)
    expected = powers / powers.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(class_probabilities(0.3, values), expected)
    np.testing.assert_allclose(class_probabilities(0.3, 1e9 * values), expected)
    np.testing.assert_allclose(class_probabilities(0.3, np.zeros((2, 4))), 0.25)


def test_temperature_has_the_least_log_loss(residuals):
    """Of a fine grid none is better."""
    values, truth = residuals
    targets = np.full(values.shape, 1 / 202 / 2)
    targets[np.arange(200), truth] = 201 / 202

    def loss(temperature):
        logs = np.log(class_probabilities(temperature, values))
        return -(targets * logs).sum(axis=1).mean()

    best = fit_temperature(values, truth)
    assert loss(best) <= min(map(loss, np.geomspace(0.02, 50, 2000))) + 1e-9
    assert 0.05 < best < 5


def test_samples_without_an_error_do_not_make_the_next_one_certain():
    values = np.tile([0.2, 1.0], (20, 1))
    chances = class_probabilities(fit_temperature(values, np.zeros(20, int)), values)
    assert chances[0, 0] == pytest.approx(21 / 22, abs=1e-3)


@pytest.mark.parametrize("temperature", [0.1, 0.5, 1.0])
def test_shares_of_classes_are_probabilities_of_their_residuals(temperature):
    counts = np.array([3, 5, 2])
    prior = residuals_of_prior(counts, temperature)
    found = class_probabilities(temperature, prior[None])
    np.testing.assert_allclose(found[0], counts / 10)


def test_copies_of_a_row_are_left_out_together(rng):
    X = np.repeat(rng.standard_normal((40, 3)), 2, axis=0)
    y = np.repeat(np.arange(40) % 3, 2)
    y[:2] = 3  # copies of one row, which nothing else could represent
    n_out = np.zeros(80, int)
    for train, valid in _splits(_ranks_in_classes(X, y), y):
        assert sorted([*train, *valid]) == list(range(80))
        copies = set(map(tuple, X[train])) & set(map(tuple, X[valid]))
        assert not copies
        n_out[valid] += 1
    assert (n_out[2:] == 1).all() and (n_out[:2] == 0).all()


def test_of_many_rows_some_are_left_out_once(rng):
    X, y = rng.standard_normal((3000, 2)), np.arange(3000) % 3
    ((train, valid),) = _splits(_ranks_in_classes(X, y), y)
    assert 490 < len(valid) < 510 and len(train) + len(valid) == 3000
    assert np.bincount(y[valid]).min() > 150


@pytest.mark.parametrize("k", [1, 2, 5, 8])
def test_the_class_with_most_votes_is_nearest(k, rng, xp):
    points, labels = rng.standard_normal((300, 4)), rng.integers(0, 3, 300)
    new = rng.standard_normal((100, 4))
    Q, P = xp.asarray(new), xp.asarray(points)
    distances = xp.to_numpy(class_distances(Q, P, labels, k))
    votes = xp.to_numpy(count_votes(Q, P, labels, k))
    np.testing.assert_array_equal(distances.argmin(axis=1), votes.argmax(axis=1))
    squares = ((new[:, None] - points) ** 2).sum(axis=2)
    ranked = [np.sort(squares[:, labels == c])[:, (k + 1) // 2 - 1] for c in range(3)]
    expected = np.sort(np.transpose(ranked))
    ratios = np.sort(distances) / distances.max(axis=1, keepdims=True)
    np.testing.assert_allclose(ratios, expected / expected[:, -1:])


def _calibration_error(chances, truth):
    """Mean difference of confidence and accuracy over ten bins of confidence."""
    confidence, is_right = chances.max(axis=1), chances.argmax(axis=1) == truth
    bins = np.minimum((10 * confidence).astype(int), 9)
    gaps = np.bincount(bins, confidence - is_right, minlength=10)
    return np.abs(gaps).sum() / len(truth)


def _models():
    return {
        "residual": ResidualClassifier(KSVD(20, 4, random_state=0)),
        "defaults": ResidualClassifier(random_state=0),
        "map": make_pipeline(
            NystroemMap("rbf", n_landmarks=100, random_state=0),
            ResidualClassifier(KSVD(20, 4, random_state=0)),
        ),
        "samples": SRCClassifier("rbf"),
        "K-SAD": KSADClassifier("rbf", "fisher:0.03", random_state=0),
        "neighbours": KSADClassifier("rbf", "fisher", n_neighbors=5, random_state=0),
    }


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", _models())
def test_probabilities_are_calibrated(name):
    """As scikit-learn's calibration of five fits would have them."""
    digits = datasets.load("digits")
    X, y = digits.X_train[:600], digits.y_train[:600]
    new, truth = digits.X_test, digits.y_test
    chances = _models()[name].fit(X, y).predict_proba(new)
    peer = CalibratedClassifierCV(_models()[name]).fit(X, y).predict_proba(new)
    assert log_loss(truth, chances) < 1.05 * log_loss(truth, peer)
    assert _calibration_error(chances, truth) < 0.05


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    "model", [ResidualClassifier(), SRCClassifier(), KSADClassifier("rbf")], ids=repr
)
def test_two_rows_have_probabilities(model, rng):
    X = rng.standard_normal((2, 4))
    chances = model.fit(X, [0, 1]).predict_proba(X)
    np.testing.assert_allclose(chances.sum(axis=1), 1)
    assert model.temperature_ == 0.5


def test_temperature_follows_a_stream(rng):
    """Rows between the classes make it rise, once dictionaries are there."""
    X = rng.standard_normal((90, 6)) + 4 * np.eye(6)[np.arange(90) % 3]
    y = np.arange(90) % 3
    learner = RLSDictionary(4, 2, random_state=0)
    model = ResidualClassifier(learner, random_state=0)
    temperatures = [model.partial_fit(X, y).temperature_]
    temperatures += [model.partial_fit(X, y).temperature_]
    temperatures += [model.partial_fit(X, rng.permutation(y)).temperature_]
    assert temperatures[0] == 0.5
    assert temperatures[1] < temperatures[0] < temperatures[2]
