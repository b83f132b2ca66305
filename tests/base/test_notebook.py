"""What a notebook shows of fitted models."""

from __future__ import annotations

import base64
import re
import struct
from html.parser import HTMLParser

import numpy as np
import pytest
import sklearn
from sklearn.pipeline import make_pipeline

from kernlets import (
    KSVD,
    AutoDictionaryClassifier,
    BudgetKernelDL,
    DictionaryOutlierDetector,
    ImageClassifier,
    KernelKSVD,
    NystroemMap,
    ResidualClassifier,
    SRCClassifier,
    datasets,
    explain,
    registry,
)
from kernlets.base.notebook import beside_map, image_side, portrait

VOID = {"img", "br"}


class Closed(HTMLParser):
    """Checks that elements are closed in order, and collects attributes."""

    def __init__(self, text):
        super().__init__()
        self.open, self.attributes = [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def digits():
    return datasets.load("digits")


def test_a_model_that_is_not_fitted_has_scikit_learns_diagram_only():
    for Estimator in registry.estimators():
        assert portrait(Estimator()) == ""


def test_pictures_of_atoms_and_the_history(digits):
    learner = KSVD(60, 4, max_iter=3, random_state=0).fit(digits.X_train)
    text = portrait(learner)
    Closed(text)
    assert "<b>60</b> atoms · <b>64</b> features · <b>3</b> iterations" in text
    assert "OMP(n_nonzero_coefs=4)" in text and "48 of 60 atoms" in text
    first, last = learner.history_["objective"][0], learner.history_["objective"][-1]
    assert f"objective {first:.3g} → {last:.3g} in 3 iterations" in text
    (source,) = re.findall('src="data:image/png;base64,([^"]*)"', text)
    header = base64.b64decode(source)[16:24]
    assert struct.unpack(">II", header) == (12 * 9 - 1, 4 * 9 - 1)
    assert len(text) < 20_000


def test_lines_of_atoms(rng):
    X = np.cumsum(rng.standard_normal((80, 30)), axis=1)
    text = portrait(KSVD(6, 2, max_iter=3, random_state=0).fit(X))
    Closed(text)
    assert "<img" not in text and text.count("<polyline") == 6 + 1  # and the history
    points = re.search('<polyline points="([^"]*)"', text)[1].split()
    assert len(points) == 30


def test_a_row_of_atoms_for_each_class(digits):
    X, y = digits.X_train[:300], digits.y_train[:300]
    model = ResidualClassifier(KSVD(6, 2, max_iter=2, random_state=0)).fit(X, y)
    text = portrait(model)
    Closed(text)
    assert "<b>10</b> classes · <b>60</b> atoms" in text and "one row per class" in text
    assert text.count("<polyline") == 10
    (source,) = re.findall('src="data:image/png;base64,([^"]*)"', text)
    header = base64.b64decode(source)[16:24]
    assert struct.unpack(">II", header) == (6 * 9 - 1, 10 * 9 - 1)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (KernelKSVD("rbf", 8, max_iter=2), "48 of 200 anchors"),
        (BudgetKernelDL("rbf", 8, max_iter=2, budget=10), "10 anchors"),
        (NystroemMap("rbf", n_landmarks=20), "20 landmarks"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_kernel_models_show_samples(model, words, digits):
    text = portrait(model.fit(digits.X_train[:200]))
    Closed(text)
    assert words in text and "<img" in text


def test_every_estimator_can_be_shown(rng):
    X, y = rng.random((60, 9)), np.arange(60) % 2
    for Estimator in registry.estimators():
        shown = portrait(Estimator().fit(X, y))
        Closed(shown)
        assert ">nan<" not in shown and "nan," not in shown, Estimator


def test_pipelines_show_the_atoms_in_the_boxes_of_the_steps(digits):
    pipeline = make_pipeline(NystroemMap("rbf", n_landmarks=20), KSVD(6, 2, max_iter=2))
    assert "kernlets-portrait" not in pipeline._repr_html_()
    text = pipeline.fit(digits.X_train[:100])._repr_html_()
    if hasattr(sklearn.base.BaseEstimator, "_get_params_html"):  # 1.7
        assert text.count("kernlets-portrait") == 2
        assert "20 landmarks" in text and "6 atoms" in text
    learner = pipeline[-1]
    assert learner._repr_html_().count("kernlets-portrait") == 1


def test_detectors_show_their_scores_and_the_threshold(digits):
    for detector in (DictionaryOutlierDetector(), DictionaryOutlierDetector(KSVD(9))):
        text = portrait(detector.fit(digits.X_train[:100]))
        Closed(text)
        n_outliers = np.count_nonzero(detector.labels_)
        assert f"{n_outliers} of 100 training rows score above" in text
        assert text.count("<rect") == 40
    assert "9 atoms" in text and "<img" in text


def test_a_search_shows_what_it_chose(digits):
    model = AutoDictionaryClassifier(max_candidates=3, random_state=0)
    text = portrait(model.fit(digits.X_train[:200], digits.y_train[:200]))
    Closed(text)
    assert "<b>3</b> candidates tried" in text and f"{model.best_score_:.4f}" in text
    assert model.best_params_["family"] in text and "<img" in text


def test_classifiers_of_images_show_atoms_of_patches(rng):
    images, y = rng.random((40, 9, 8, 3)), np.arange(40) % 2
    model = ImageClassifier(robust=False, random_state=0).fit(images, y)
    text = portrait(model)
    Closed(text)
    assert "<b>2</b> classes" in text and "atoms of patches" in text
    (source,) = re.findall('src="data:image/png;base64,([^"]*)"', text)
    width, height = struct.unpack(">II", base64.b64decode(source)[16:24])
    assert (width, height) == (12 * 4 - 1, 4 * 4 - 1)  # patches of 3 x 3


def test_data_sets_and_reasons_are_no_dumps(digits, rng):
    assert "X_train=<float32 (898, 64)>" in repr(digits) and len(repr(digits)) < 300
    Closed(digits._repr_html_())
    assert "the first 24 images" in digits._repr_html_()
    assert repr(digits.split(20, 0)).startswith("Split(X_train=<float32 (200, 64)>")
    X, y = digits.X_train[:100], digits.y_train[:100]
    reason = explain(SRCClassifier(n_nonzero_coefs=5).fit(X, y), X[0])
    assert re.fullmatch(
        r"<Explanation: label 0, squared residual 0: \S+, \d: \S+>", repr(reason)
    )
    (why,) = DictionaryOutlierDetector().fit(X).explain(X[:1])
    assert len(repr(why)) < 300 and "\n" not in repr(why)
    for shown in (reason, why):
        Closed(shown._repr_html_())
        assert str(shown).splitlines()[-1] in shown._repr_html_()
    codes = KSVD(5, 2, max_iter=1).fit(X).encode(X)
    assert repr(codes).startswith("SparseCodes(indices=<int32 (100, 2)>")


def test_a_map_is_red_where_weights_are_positive():
    picture = beside_map(np.eye(2), np.array([[1.0, -2.0], [0.0, 0.5]]))
    assert picture.shape == (2, 5, 3)
    np.testing.assert_allclose(picture[:, :2, 0], np.eye(2))
    np.testing.assert_allclose(picture[0, 3], [1, 0.5, 0.5])  # on white
    np.testing.assert_allclose(picture[0, 4], 0.75 * np.array([0, 0, 1]))  # on black
    np.testing.assert_allclose(picture[1, 3], [0.75] * 3)
    assert ((picture >= 0) & (picture <= 1)).all()


def test_names_and_repr_are_escaped():
    learner = KSVD(3, 1, max_iter=2, random_state=0).fit(np.eye(5))
    learner.coder_.tol = "<script>"
    assert "<script>" not in portrait(learner)


def test_it_stands_below_the_diagram_of_scikit_learn(digits):
    learner = KSVD(8, 2, max_iter=2, random_state=0)
    plain = learner._repr_html_()
    assert "sk-top-container" in plain and "kernlets-portrait" not in plain
    learner.fit(digits.X_train)
    bundle = learner._repr_mimebundle_()
    assert bundle["text/plain"] == repr(learner)
    for text in (learner._repr_html_(), bundle["text/html"]):
        assert text.index("sk-top-container") < text.index("kernlets-portrait")
        assert text.endswith(portrait(learner))
    with sklearn.config_context(display="text"):
        assert "text/html" not in learner._repr_mimebundle_()
        assert not hasattr(learner, "_repr_html_")
    assert "KSVD" in make_pipeline(learner)._repr_html_()


def test_only_the_colour_of_the_text_is_used(digits):
    text = portrait(KSVD(8, 2, max_iter=2, random_state=0).fit(digits.X_train))
    assert set(re.findall('stroke="([^"]*)"', text)) == {"currentColor"}
    assert not re.search(r"#[0-9a-f]{3}|rgb\(|background", text.split("base64")[0])


def test_links_to_the_reference(monkeypatch):
    assert KSVD()._get_doc_link() == ""
    monkeypatch.setenv("KERNLETS_DOCS", "https://example.org/site/")
    address = "https://example.org/site/api/KSVD.html"
    assert KSVD()._get_doc_link() == address
    for model in (KSVD(), make_pipeline(KSVD()), DictionaryOutlierDetector(KSVD())):
        assert address in model._repr_html_()


def test_what_looks_like_a_picture(digits, rng):
    assert image_side(digits.X_train[:50].astype(float)) == 8
    waves = np.sin(np.linspace(0, 40, 64) + rng.uniform(0, 6, (50, 1)))
    noise = rng.standard_normal((50, 64))
    for rows in (waves, noise, np.zeros((3, 64)), waves[:, :60]):
        assert image_side(rows) == 0


def test_names_in_a_notebook_are_no_markup(rng):
    hostile = "<script>alert(1)</script>"
    labels = np.array([hostile, "other"])[np.arange(40) % 2]
    learner = KSVD(3, 2, coder=None, max_iter=1)
    model = ResidualClassifier(learner).fit(rng.standard_normal((40, 16)), labels)
    for shown in (model, KSVD(coder=hostile), make_pipeline(KSVD(coder=hostile))):
        assert "<script>alert" not in shown._repr_html_()
