"""Every plotting function draws what it is given on the axes it is given."""

from __future__ import annotations

import builtins

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernlets import (
    KSVD,
    RBF,
    DictionaryOutlierDetector,
    KernelKSVD,
    KSADClassifier,
    NystroemMap,
    ResidualClassifier,
    SRCClassifier,
    datasets,
    explain,
    metrics,
    plotting,
)

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")


@pytest.fixture
def ax():
    from matplotlib import pyplot

    figure, ax = pyplot.subplots()
    yield ax
    pyplot.close(figure)


@pytest.fixture
def rows():
    return np.random.default_rng(0).standard_normal((60, 12))


def test_mosaic_puts_each_atom_at_its_place():
    atoms = np.array([[0, 2.0, 0, -2.0], [1.0, 0, 0, 0], [0, 0, 0, 0]])
    picture = plotting.mosaic(atoms, (2, 2), n_columns=2)
    assert picture.shape == (5, 5)
    np.testing.assert_allclose(picture[:2, :2], [[0.5, 1.0], [0.5, 0.0]])
    np.testing.assert_allclose(picture[:2, 3:], [[1.0, 0.5], [0.5, 0.5]])
    np.testing.assert_allclose(picture[3:, :2], 0.5)  # a zero atom is grey
    np.testing.assert_allclose(picture[2], 1.0)  # gap
    np.testing.assert_allclose(picture[3:, 3:], 1.0)  # no fourth atom


def test_mosaic_of_colour_images():
    assert plotting.mosaic(np.ones((3, 12)), (2, 2, 3)).shape == (5, 5, 3)


def test_show_atoms_of_learner_and_array_agree(ax, rows):
    learner = KSVD(6, 2, max_iter=2, random_state=0).fit(rows)
    assert plotting.show_atoms(learner, (3, 4), ax) is ax
    plotting.show_atoms(learner.components_, (3, 4), ax)
    first, second = (image.get_array() for image in ax.get_images())
    np.testing.assert_array_equal(first, second)


def test_show_atoms_gives_each_class_a_row(ax, rows):
    labels = np.arange(60) % 3
    model = make_pipeline(StandardScaler(), ResidualClassifier(KSVD(5, 2, max_iter=1)))
    plotting.show_atoms(model.fit(rows, labels), (3, 4), ax, n_atoms=4)
    (image,) = ax.get_images()
    assert image.get_array().shape == (3 * 4 - 1, 4 * 5 - 1)


def test_show_atoms_of_kernel_dictionaries_shows_preimages(ax, rows):
    kernel = RBF(sigma=2.0)
    exact = KernelKSVD(kernel, 5, n_nonzero_coefs=1, init=np.arange(5), max_iter=1).fit(
        rows
    )
    plotting.show_atoms(exact, (3, 4), ax, n_atoms=3)
    expected = exact.dictionary_.preimages().points[:3]
    plotting.show_atoms(expected, (3, 4), ax)
    mapped = make_pipeline(NystroemMap(kernel), KSVD(5, 1, max_iter=1)).fit(rows)
    plotting.show_atoms(mapped, (3, 4), ax, n_atoms=3)
    ksad = KSADClassifier(kernel, n_components=5).fit(rows, np.arange(60) % 3)
    plotting.show_atoms(ksad, (3, 4), ax, n_atoms=3)
    shown, again, *others = (image.get_array() for image in ax.get_images())
    np.testing.assert_allclose(shown, again, atol=1e-3)
    assert [picture.shape for picture in others] == 2 * [shown.shape]


def test_show_atoms_refuses_what_is_no_image(ax, rows):
    with pytest.raises(ValueError, match="shape of the training images"):
        plotting.show_atoms(rows, (8, 8), ax)
    with pytest.raises(TypeError, match="fit it first"):
        plotting.show_atoms(StandardScaler(), (3, 4), ax)


@pytest.mark.parametrize("shape", [(12,), (1, 12), (12, 1), None])
def test_atoms_of_one_dimension_are_lines(ax, rows, shape):
    atoms = rows[:5]
    plotting.show_atoms(atoms, shape, ax, n_columns=3)
    assert not ax.get_images()
    lines = [line for line in ax.get_lines() if len(line.get_xdata()) == 12]
    assert len(lines) == 5
    for index, (line, atom) in enumerate(zip(lines, atoms, strict=True)):
        row, column = divmod(index, 3)
        x, y = line.get_data()
        assert column <= x.min() and x.max() < column + 1
        np.testing.assert_allclose(np.corrcoef(y, atom)[0, 1], 1)
        assert np.abs(y + row).max() < 0.5


def test_lines_of_classes_begin_a_row(ax, rows):
    model = ResidualClassifier(KSVD(3, 2, max_iter=1)).fit(rows, np.arange(60) % 2)
    plotting.show_atoms(model, ax=ax, n_atoms=2)
    lines = [line for line in ax.get_lines() if len(line.get_xdata()) == 12]
    heights = [round(float(np.median(line.get_ydata()))) for line in lines]
    assert heights == [0, 0, -1, -1]


def test_the_shape_of_images_is_guessed(ax):
    digits = datasets.load("digits").X_train[:300]
    plotting.show_atoms(KSVD(9, 3, max_iter=2).fit(digits), ax=ax)
    assert ax.get_images()[0].get_array().shape == (3 * 9 - 1, 3 * 9 - 1)


def test_mosaic_of_what_is_no_image(rows):
    with pytest.raises(ValueError, match=r"must be \(height, width\)"):
        plotting.mosaic(rows, (12,))


def test_plot_history_of_several(ax, rows):
    y = np.arange(len(rows)) % 2
    learner = KSVD(6, 2, max_iter=3, random_state=0)
    one, other = clone(learner).fit(rows), clone(learner).fit(rows[:30])
    model = ResidualClassifier(learner).fit(rows, y)
    given = {"one": one, "other": other.history_, "both": model}
    plotting.plot_history(given, ax)
    shown = [text.get_text() for text in ax.get_legend().get_texts()]
    assert shown == ["one", "other", "both, class 0", "both, class 1"]
    for fitted, drawn in zip([one, other], ax.get_lines(), strict=False):
        np.testing.assert_array_equal(drawn.get_ydata(), fitted.history_["objective"])
    with pytest.raises(ValueError, match="on two axes"):
        plotting.plot_history({"a": one, "b": {"score": [1.0]}}, ax)
    with pytest.raises(ValueError, match="empty dict"):
        plotting.plot_history({}, ax)


@pytest.mark.parametrize("kind", ["a", "a class with a name of many words"])
def test_the_title_of_an_explanation_stays_in_its_subplot(kind):
    from matplotlib import pyplot

    digits = datasets.load("digits")
    X, y = digits.X_train[:150], np.array([f"{kind} {c}" for c in digits.y_train[:150]])
    found = explain(SRCClassifier("rbf", 8).fit(X, y), digits.X_test[0])
    figure, axes = pyplot.subplots(3, 3)
    for ax in axes.ravel():
        plotting.plot_explanation(found, digits.X_test[0], (8, 8), ax, X)
    figure.canvas.draw()
    for ax in axes.ravel():
        title, place = ax.title.get_window_extent(), ax.get_position()
        cell = figure.transFigure.transform(place.get_points())[:, 0]
        assert cell[0] - 25 < title.x0 and title.x1 < cell[1] + 25
        assert figure.bbox.y1 > title.y1
        assert ax.get_title().startswith(kind[:7])
    pyplot.close(figure)


def test_plot_history(ax, rows):
    learner = KSVD(6, 2, max_iter=3, random_state=0).fit(rows)
    plotting.plot_history(learner, ax, label="K-SVD")
    plotting.plot_history(learner.history_, ax, x="seconds")
    iterations, seconds = ax.get_lines()
    np.testing.assert_array_equal(iterations.get_xdata(), [1, 2, 3])
    np.testing.assert_array_equal(seconds.get_xdata(), learner.history_["seconds"])
    np.testing.assert_array_equal(iterations.get_ydata(), learner.history_["objective"])
    with pytest.raises(ValueError, match="x='minutes'"):
        plotting.plot_history(learner, ax, x="minutes")


def test_plot_history_of_a_search(ax):
    search = {"score": [0.5, 0.75, 0.75], "seconds": [0.1, 0.2, 0.4]}
    plotting.plot_history(search, ax, x="seconds")
    (line,) = ax.get_lines()
    assert line.get_xydata().tolist() == [[0.1, 0.5], [0.2, 0.75], [0.4, 0.75]]
    assert ax.get_ylabel() == "best score so far"


def test_plot_history_finds_the_last_step(ax, rows):
    y = np.arange(len(rows)) % 2
    learner = KSVD(6, 2, max_iter=3, random_state=0)
    pipeline = make_pipeline(StandardScaler(), clone(learner)).fit(rows)
    plotting.plot_history(pipeline, ax)
    (line,) = ax.get_lines()
    objective = pipeline[-1].history_["objective"]
    np.testing.assert_array_equal(line.get_ydata(), objective)
    model = make_pipeline(StandardScaler(), ResidualClassifier(learner)).fit(rows, y)
    plotting.plot_history(model, ax)
    for one, drawn in zip(model[-1].learners_, ax.get_lines()[1:], strict=True):
        np.testing.assert_array_equal(drawn.get_ydata(), one.history_["objective"])
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["0", "1"]
    plotting.plot_history(DictionaryOutlierDetector(learner).fit(rows), ax)
    assert len(ax.get_lines()) == 4
    with pytest.raises(TypeError, match="StandardScaler has no history_"):
        plotting.plot_history(StandardScaler().fit(rows), ax)


def test_plot_accuracy_shows_mean_and_spread(ax):
    plotting.plot_accuracy({"a": {0.5: [0.7, 0.9], 0.0: [1.0, 1.0]}, "b": {0: 0.5}}, ax)
    line, other = ax.get_lines()
    np.testing.assert_allclose(line.get_xydata(), [[0.0, 1.0], [0.5, 0.8]])
    assert len(ax.collections) == 1  # the second method has one seed
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["a", "b"]


def test_plot_kernel_error(ax):
    errors = {"uniform": {10: 0.2, 20: 0.1}, "kmeans": {10: 0.1, 20: 0.05}}
    assert plotting.plot_kernel_error(errors, ax, {10: 0.05, 20: 0.01}) is ax
    assert ax.get_yscale() == "log"
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert names == ["uniform", "kmeans", "best rank c"]


def test_plot_residuals_marks_the_answer(ax):
    plotting.plot_residuals([0.5, 0.1, 0.3], ax, classes="abc", truth="c")
    heights = [bar.get_height() for bar in ax.patches]
    assert heights == [0.5, 0.1, 0.3]
    answer = ax.patches[1].get_facecolor()
    assert all(bar.get_facecolor() != answer for bar in ax.patches[::2])
    assert ax.patches[2].get_hatch()


def test_new_axes_when_none_is_given():
    from matplotlib import pyplot

    ax = plotting.plot_residuals([1.0, 2.0])
    assert ax in ax.figure.axes
    pyplot.close(ax.figure)


def test_advice_without_matplotlib(monkeypatch):
    real_import = builtins.__import__

    def without_matplotlib(name, *args, **kwargs):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real_import(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_matplotlib)
    with pytest.raises(ImportError, match=r"pip install 'kernlets\[plot\]'"):
        plotting.plot_residuals([1.0, 2.0])


def test_recovery_is_a_falling_share_of_the_true_atoms(ax):
    rng = np.random.default_rng(1)
    atoms = rng.standard_normal((10, 8))
    half = metrics.recovery(atoms, atoms[:5])
    noisy = [metrics.recovery(atoms, atoms + rng.normal(0, 0.5, (10, 8))) for _ in "ab"]
    assert plotting.plot_recovery({"half": half, "noisy": noisy}, ax, 0.2) is ax
    first, second = (line.get_ydata() for line in ax.lines)
    np.testing.assert_allclose(first, 0.5)
    assert (np.diff(second) <= 0).all() and second[0] > second[-1]
    middle = np.mean([(np.abs(r.match.cosines) >= 0.6).mean() for r in noisy])
    assert second[50] == pytest.approx(middle)


def test_figures_say_what_they_show():
    learner = KSVD(5, 2, max_iter=2, random_state=0).fit(np.eye(9) + 0.1)
    assert plotting.show_atoms(learner, (3, 3)).get_title() == "5 atoms"
    ax = plotting.plot_residuals([0.3, 0.1], classes="ab", truth="a")
    assert ax.get_title() == "answer b, truth a" and ax.get_xlabel() == "class"
    ax = plotting.plot_accuracy({"K-SVD": {0.0: 0.9, 0.5: 0.7}})
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("level of corruption", "accuracy")
