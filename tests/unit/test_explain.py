"""Why a label: residuals, atoms, and the training rows behind them."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernlets import (
    KSVD,
    RBF,
    AutoDictionaryClassifier,
    DKSVDClassifier,
    FDDLClassifier,
    KernelKSVD,
    KSADClassifier,
    LCKSVDClassifier,
    NystroemMap,
    ResidualClassifier,
    SRCClassifier,
    UnitNorm,
    datasets,
    explain,
)

KERNEL = RBF(gamma=1.0)
MODELS = {
    "linear": ResidualClassifier(KSVD(8, 2, max_iter=2, random_state=0)),
    "exact": ResidualClassifier(
        KernelKSVD(KERNEL, 8, n_nonzero_coefs=2, max_iter=2, random_state=0)
    ),
    "mapped": make_pipeline(
        NystroemMap(KERNEL, n_landmarks=60, random_state=0),
        ResidualClassifier(KSVD(8, 2, max_iter=2, random_state=0)),
    ),
    "samples": SRCClassifier(KERNEL, 6),
    "one step": make_pipeline(SRCClassifier(KERNEL, 6)),
    "lc-ksvd": LCKSVDClassifier(4, 3, max_iter=2, random_state=0),
    "d-ksvd": make_pipeline(
        NystroemMap(KERNEL, n_landmarks=60, random_state=0),
        DKSVDClassifier(4, 3, max_iter=2, random_state=0),
    ),
    "fddl": FDDLClassifier(3, simplified=True, max_iter=1, random_state=0),
    "fisher": KSADClassifier(KERNEL, "fisher", n_neighbors=3, random_state=0),
    "auto": AutoDictionaryClassifier(None, max_candidates=4, random_state=0),
}


@pytest.fixture(scope="module")
def digits():
    data = datasets.load("digits", dtype=np.float64)
    some = slice(0, 200)
    X = UnitNorm().fit_transform(data.X_train[some])
    return X, data.y_train[some], UnitNorm().fit_transform(data.X_test[:5])


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", MODELS)
def test_the_label_and_the_winner_agree(name, digits):
    X, y, new = digits
    model = MODELS[name].fit(X, y)
    for x, label in zip(new, model.predict(new), strict=True):
        found = explain(model, x)
        assert found.label == label
        assert found.classes[found.order[0]] == label
        assert found.atoms or name == "auto"
        assert str(found).startswith(f"label {label}\n")


@pytest.mark.parametrize("name", ["samples", "exact", "mapped"])
def test_samples_with_their_weights_make_the_representation(name, digits):
    """‖φ(x) − Σ wᵢ φ(xᵢ)‖² over the named rows is the residual of all atoms used."""
    X, y, new = digits
    model = MODELS[name].fit(X, y)
    found = explain(model, new[0])
    if name == "samples":
        rows = np.array([use.row for use in found.samples if use.label == found.label])
        chosen = [use for use in found.samples if use.label == found.label]
    else:
        rows = np.array([use.row for use in found.samples])
        chosen = list(found.samples)
    w = np.array([use.weight for use in chosen])
    K = KERNEL(X[rows], X[rows])
    if name == "mapped":
        F = model[0].transform(X[rows])
        K = F @ F.T
        k, energy = F @ model[0].transform(new[:1])[0], 0.0
        energy = float(np.sum(model[0].transform(new[:1]) ** 2))
    else:
        k, energy = KERNEL(X[rows], new[:1])[:, 0], 1.0
    residual = energy - 2 * w @ k + w @ K @ w
    assert residual == pytest.approx(found.scores.min(), abs=1e-8)
    assert all(use.label == y[use.row] for use in found.samples)


def test_rows_without_energy_do_not_shift_the_numbers():
    X = np.array([[0.0, 0.0], [1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]])
    model = SRCClassifier("linear", 1).fit(X, [0, 0, 0, 1, 1])
    (use,) = explain(model, np.array([0.0, 2.0])).samples
    assert use.row == 3


def test_nearest_rows_of_fisher_codes_vote(digits):
    X, y, new = digits
    model = MODELS["fisher"].fit(X, y)
    found = explain(model, new[0])
    assert sum(use.weight for use in found.samples) == pytest.approx(1)
    votes = np.bincount([int(use.label) for use in found.samples], minlength=10)
    np.testing.assert_allclose(votes / 3, found.scores)


def test_what_cannot_be_explained(digits):
    X, y, new = digits
    with pytest.raises(ValueError, match="one row at a time"):
        explain(MODELS["samples"].fit(X, y), new)
    other = make_pipeline(StandardScaler(), LogisticRegression(max_iter=20)).fit(X, y)
    with pytest.raises(TypeError, match="LogisticRegression has no atoms"):
        explain(other, new[0])


def test_picture(digits):
    pytest.importorskip("matplotlib").use("agg")
    from kernlets.plotting import plot_explanation

    X, y, new = digits
    found = explain(MODELS["samples"].fit(X, y), new[0])
    ax = plot_explanation(found, new[0], (8, 8), X_train=X, n_samples=3)
    assert ax.images[0].get_array().shape == (8, 4 * 8 + 3)
    assert ax.get_title().startswith(str(found.label))
