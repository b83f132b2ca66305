"""Why a label: residuals, atoms, and the training rows behind them."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernlets import (
    KSVD,
    RBF,
    AutoDictionaryClassifier,
    DictionaryOutlierDetector,
    DKSVDClassifier,
    FDDLClassifier,
    KernelKSVD,
    KSADClassifier,
    LCKSVDClassifier,
    NystroemMap,
    ReducedKernelDL,
    ResidualClassifier,
    SRCClassifier,
    StreamOutlierDetector,
    UnitNorm,
    datasets,
    explain,
    load,
    save,
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
    assert votes.argmax() == found.scores.argmax() == found.label


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


@pytest.fixture(scope="module")
def frame(digits):
    """Digits as a dataframe whose index is neither 0, 1, ... nor sorted."""
    pandas = pytest.importorskip("pandas")
    X, y, _ = digits
    return pandas.DataFrame(X, index=1000 - 3 * np.arange(len(X))), y


def _rows_are_there(found, y):
    """Each row that is named has the class that is shown with it."""
    assert found.samples
    assert all(use.label == y[use.row] for use in found.samples)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", ["samples", "exact", "mapped", "fisher"])
def test_rows_of_a_dataframe_have_the_names_of_its_index(name, frame, digits, tmp_path):
    X, y = frame
    model = MODELS[name].fit(X, y)
    found = explain(model, digits[2][0])
    assert all(use.name == X.index[use.row] for use in found.samples)
    assert f"  row {found.samples[0].name}, class {found.label}: " in str(found)
    save(model, tmp_path / "m.kernlets")
    again = explain(load(tmp_path / "m.kernlets"), digits[2][0])
    assert again.samples == found.samples
    model.fit(digits[0], y)  # an array has no names
    assert explain(model, digits[2][0]).samples[0].name is None


def test_text_in_an_index_is_shown_without_control_characters(frame, digits):
    X, y = frame
    names = [f"patient {i}\x1b[31m\n" for i in range(len(X))]
    model = SRCClassifier(KERNEL, 3).fit(X.set_axis(names), y)
    use = explain(model, digits[2][0]).samples[0]
    assert str(use).startswith(f"row patient {use.row}\\x1b[31m, class")


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", ["samples", "exact", "fisher"])
def test_rows_of_weight_zero_do_not_shift_the_numbers(name, digits):
    X, y, new = digits
    weights = np.ones(len(X), dtype=int)
    weights[:40:2] = 0
    weights[100:120] = 2  # these are repeated where weights are not taken
    model = MODELS[name].fit(X, y, sample_weight=weights)
    for x in new:
        found = explain(model, x)
        rows = [use.row for use in found.samples]
        assert len(set(rows)) == len(rows)
        assert weights[rows].all()
        _rows_are_there(found, y)


def test_rows_that_a_search_had_no_time_for_do_not_shift_the_numbers(digits):
    X, y, new = digits
    model = AutoDictionaryClassifier(
        None, max_candidates=2, families=["samples"], random_state=0
    )
    model._affordable_rows = lambda search, best: np.arange(50, 200)
    model.fit(X, y)
    found = explain(model, new[0])
    assert min(use.row for use in found.samples) >= 50
    _rows_are_there(found, y)


def test_anchors_that_are_not_the_training_rows_name_none(digits):
    """Reduced dictionaries move them, as many as a class may have rows."""
    X, y, new = digits
    learner = ReducedKernelDL(KERNEL, 5, anchors=15, max_iter=2, random_state=0)
    some = np.concatenate([np.flatnonzero(y == label)[:15] for label in range(10)])
    model = ResidualClassifier(learner).fit(X[some], y[some])
    assert explain(model, new[0]).samples == ()


def test_search_that_refits(digits):
    X, y, new = digits
    grid = {"n_nonzero_coefs": [3, 5]}
    found = GridSearchCV(SRCClassifier(KERNEL), grid, cv=2).fit(X, y)
    reason = explain(found, new[0])
    assert reason.samples == explain(found.best_estimator_, new[0]).samples
    found = GridSearchCV(SRCClassifier(KERNEL), grid, cv=2, refit=False).fit(X, y)
    with pytest.raises(ValueError, match="set refit=True"):
        explain(found, new[0])


def test_detectors_explain_themselves(digits):
    model = DictionaryOutlierDetector(random_state=0).fit(digits[0])
    with pytest.raises(TypeError, match="call its method explain"):
        explain(model, digits[2][0])


@pytest.mark.parametrize("learner", [None, KSVD(8, 2, max_iter=2)])
def test_nearest_row_of_a_detector_has_its_name(learner, frame, digits, tmp_path):
    X, _ = frame
    model = DictionaryOutlierDetector(learner, random_state=0).fit(X)
    save(model, tmp_path / "m.kernlets")
    (reason,) = load(tmp_path / "m.kernlets").explain(digits[2][:1])
    assert reason.nearest_name == X.index[reason.nearest_row]
    assert str(reason).endswith(f"nearest normal training row: {reason.nearest_name}")


def test_names_end_with_the_rows_of_the_fit(frame, digits):
    """The numbers of later rows of a stream go on; they have no names."""
    X, _ = frame
    model = StreamOutlierDetector(window=80, random_state=0).fit(X)
    model.partial_fit(X.iloc[::-1])
    (reason,) = model.explain(digits[2][:1])
    assert reason.nearest_row >= 200
    assert reason.nearest_name is None
