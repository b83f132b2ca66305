"""The page to draw on: it says what the model says, and shows what was drawn."""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from chromium import Chromium, find_chromium
from demo import draw as page
from demo.draw import to_page
from kernlets import (
    KSVD,
    FourierMap,
    KernelKSVD,
    KSADClassifier,
    LCKSVDClassifier,
    NystroemMap,
    ResidualClassifier,
    SRCClassifier,
    Standardize,
    UnitNorm,
    datasets,
)
from kernlets.export import ExportError

DIGITS = datasets.load("digits")
LEARNER = KSVD(20, n_nonzero_coefs=4, max_iter=5, random_state=0)
VIRTUAL = NystroemMap("poly:2", n_landmarks=80, n_components=40, random_state=0)
MODELS = {
    "linear": make_pipeline(UnitNorm(), ResidualClassifier(LEARNER)),
    "virtual": make_pipeline(UnitNorm(), VIRTUAL, ResidualClassifier(LEARNER)),
    "kernel": ResidualClassifier(
        KernelKSVD("rbf", 8, n_nonzero_coefs=3, max_iter=2, random_state=0)
    ),
    "samples": make_pipeline(UnitNorm(), SRCClassifier("rbf", 6)),
    "labels": make_pipeline(
        UnitNorm(), LCKSVDClassifier(8, 5, max_iter=3, random_state=0)
    ),
}
#: the second digit of each kind: the first ones are on the page
SHOWN = [int(np.flatnonzero(DIGITS.y_test == digit)[1]) for digit in range(10)]


@cache
def fitted(name, n=300):
    X = DIGITS.X_train[:n].astype(np.float64)
    return clone(MODELS[name]).fit(X, DIGITS.y_train[:n])


def written(tmp_path, model, examples=DIGITS.X_test, labels=DIGITS.y_test):
    path = tmp_path / "draw.html"
    to_page(model, path, examples, labels)
    return path


def embedded(path):
    text = path.read_text("utf-8").partition('id="model">')[2].partition("</script>")[0]
    return json.loads(text)


@pytest.fixture(scope="module")
def browser():
    find_chromium()
    with Chromium() as found:
        yield found


def show(browser, row):
    """What the page makes of a picture with entries from 0 to 1."""
    return browser.evaluate(f"show({json.dumps(row.tolist())})")


# ----------------------------------------------------------------------- in a browser


def test_nine_of_ten_test_digits_are_recognised(browser, tmp_path):
    path = written(tmp_path, fitted("virtual", n=len(DIGITS.X_train)))
    browser.open(path, 1100, 800, "light")
    right = 0
    for row in SHOWN:
        show(browser, DIGITS.X_test[row])
        shown = browser.evaluate("document.getElementById('label').textContent")
        right += shown == str(DIGITS.y_test[row])
    assert right >= 9
    assert not browser.complaints


@pytest.mark.parametrize("name", MODELS)
def test_labels_and_scores_are_those_of_python(browser, tmp_path, name):
    model = fitted(name)
    ink = DIGITS.X_test.max()
    browser.open(written(tmp_path, model), 1100, 800, "light")
    X = DIGITS.X_test[:25].astype(np.float64)
    found = [show(browser, row / ink) for row in X]
    assert [each["label"] for each in found] == [str(y) for y in model.predict(X)]
    last, F = model, X
    if hasattr(model, "steps"):
        last, F = model[-1], model[:-1].transform(X)
    scores = np.array([each["scores"] for each in found])
    np.testing.assert_allclose(scores, last._scores(F), rtol=0, atol=1e-9)
    codes = np.array([each["codes"] for each in found])
    np.testing.assert_allclose(codes, last.encode(F).toarray(), rtol=0, atol=1e-9)
    assert not browser.complaints


def mouse(browser, kind, x, y):
    given = {"type": kind, "x": x, "y": y, "button": "left", "clickCount": 1}
    browser.ask("Input.dispatchMouseEvent", **given)


def box_of(browser, name):
    script = f"(b => [b.left, b.top, b.width])({name}.getBoundingClientRect())"
    return browser.evaluate(script)


def draw(browser, *points):
    """A stroke through points, in shares of the canvas."""
    left, top, width = box_of(browser, "paper")
    places = [(left + x * width, top + y * width) for x, y in points]
    mouse(browser, "mousePressed", *places[0])
    for place in places[1:]:
        mouse(browser, "mouseMoved", *place)
    mouse(browser, "mouseReleased", *places[-1])


def click(browser, name):
    browser.evaluate(f"document.getElementById('{name}').click()")


@pytest.mark.parametrize("width", [1100, 390])
def test_drawing_and_erasing_with_the_mouse(browser, tmp_path, width):
    browser.open(written(tmp_path, fitted("linear")), width, 900, "light")
    click(browser, "clear")
    assert browser.evaluate("document.getElementById('label').textContent") == "–"
    draw(browser, (0.5, 0.06), (0.5, 0.5), (0.5, 0.94))
    pixels = np.array(browser.evaluate("pixels")).reshape(8, 8)
    assert (pixels[:, 3:5] > 0.5).all() and not pixels[:, [0, 1, 6, 7]].any()
    assert browser.evaluate("document.querySelectorAll('#classes li').length") == 10
    n_atoms = browser.evaluate("document.querySelectorAll('#atoms figure').length")
    assert 1 <= n_atoms <= 4
    click(browser, "erase")
    draw(browser, (0.3, 0.06), (0.7, 0.06))
    after = np.array(browser.evaluate("pixels")).reshape(8, 8)
    assert after[0].sum() < 0.2 * pixels[0].sum()
    assert (after[4:] == pixels[4:]).all()
    assert not browser.complaints


@pytest.mark.parametrize("width", [1100, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_fits_its_window(browser, tmp_path, width, scheme):
    path = written(tmp_path, fitted("linear"))
    browser.open(path, width, 900, scheme)
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    count = "document.querySelectorAll('#examples button').length"
    assert browser.evaluate(count) == 10
    assert not browser.complaints
    if folder := os.environ.get("KERNLETS_SCREENSHOTS"):
        browser.screenshot(Path(folder) / f"draw-{width}-{scheme}.png")


def test_text_in_labels_stays_text(browser, tmp_path):
    names = np.array([f"</script><b>{digit}" for digit in range(10)])
    model = clone(MODELS["linear"])
    model.fit(DIGITS.X_train[:300], names[DIGITS.y_train[:300]])
    browser.open(written(tmp_path, model), 1100, 800, "light")
    X = DIGITS.X_test[:1]
    assert show(browser, X[0] / DIGITS.X_test.max())["label"] == model.predict(X)[0]


# --------------------------------------------------------------------------- the file


def test_the_page_needs_nothing_else(tmp_path):
    text = written(tmp_path, fitted("linear")).read_text("utf-8")
    assert "http" not in text and "src=" not in text and "@import" not in text


def test_examples_are_one_of_each_class(tmp_path):
    path = written(tmp_path, fitted("linear"))
    shown = np.array(embedded(path)["examples"]) * DIGITS.X_test.max()
    first = np.unique(DIGITS.y_test, return_index=True)[1]
    np.testing.assert_allclose(shown, DIGITS.X_test[first], atol=0.02)
    path = written(tmp_path, fitted("linear"), DIGITS.X_test, None)
    assert len(embedded(path)["examples"]) == page.EXAMPLES
    path = written(tmp_path, fitted("linear"), None, None)
    assert embedded(path)["examples"] == [] and embedded(path)["ink"] == 1


def test_atoms_that_are_samples_look_like_them(tmp_path):
    path = written(tmp_path, fitted("samples"))
    atoms = np.array(embedded(path)["atoms"]).reshape(-1, 64)
    rows = DIGITS.X_train[:300]
    expected = rows / rows.max(axis=1, keepdims=True)
    np.testing.assert_allclose(atoms, expected, atol=0.001)


@pytest.mark.parametrize(
    ("model", "columns", "error", "message"),
    [
        (MODELS["linear"], 63, ValueError, "63 features, .* square"),
        (ResidualClassifier(LEARNER), 64, ValueError, "begin the pipeline with UnitN"),
        (
            make_pipeline(UnitNorm(), KSADClassifier("rbf", random_state=0)),
            64,
            ExportError,
            "KSADClassifier cannot be exported: use ResidualClassifier",
        ),
        (
            make_pipeline(
                UnitNorm(), FourierMap(random_state=0), ResidualClassifier(LEARNER)
            ),
            64,
            ExportError,
            "use NystroemMap or none",
        ),
        (
            make_pipeline(UnitNorm(), VIRTUAL, SRCClassifier("linear", 4)),
            64,
            ExportError,
            "use NystroemMap or none",
        ),
    ],
    ids=["square", "ink", "KSAD", "Fourier", "SRC"],
)
def test_refusals(tmp_path, model, columns, error, message):
    model = clone(model).fit(DIGITS.X_train[:200, :columns], DIGITS.y_train[:200])
    with pytest.raises(error, match=message):
        to_page(model, tmp_path / "draw.html")
    assert not (tmp_path / "draw.html").exists()


def test_rows_that_are_shifted_need_examples(tmp_path):
    model = make_pipeline(Standardize(), ResidualClassifier(LEARNER))
    model.fit(DIGITS.X_train[:200], DIGITS.y_train[:200])
    with pytest.raises(ValueError, match="examples are needed"):
        to_page(model, tmp_path / "draw.html")
    assert embedded(written(tmp_path, model))["ink"] == DIGITS.X_test[:10].max()


def test_the_command_writes_the_page_for_digits(tmp_path, capsys):
    page.main(["--out", str(tmp_path / "d.html")])
    assert str(tmp_path / "d.html") in capsys.readouterr().out
    data = embedded(tmp_path / "d.html")
    assert data["side"] == 8 and data["labels"] == [str(digit) for digit in range(10)]


def test_a_title_is_no_markup(tmp_path):
    path = tmp_path / "draw.html"
    title = '</title><script>alert(1)</script> & "more"'
    to_page(fitted("linear"), path, DIGITS.X_test, DIGITS.y_test, title=title)
    text = path.read_text()
    assert "<script>alert" not in text
    assert text.count("&lt;script&gt;alert(1)&lt;/script&gt; &amp; &quot;more") == 2


def test_labels_are_no_markup(tmp_path):
    X, y = DIGITS.X_train[:200].astype(np.float64), DIGITS.y_train[:200]
    names = np.array([f"</script><img src=x onerror=alert(1)>{c}" for c in range(10)])
    model = clone(MODELS["linear"]).fit(X, names[y])
    text = written(tmp_path, model, X, names[y]).read_text()
    assert "<img" not in text and "u003cimg src=x" in text
