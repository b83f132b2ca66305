"""The demonstration runs, counts rightly, and its page needs nothing but itself."""

from __future__ import annotations

import io
import re
import zlib
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

from benchmarks.harness import charts, html, machine, memory
from chromium import Chromium, find_chromium
from demo import run as demo
from demo import trial
from demo.__main__ import main
from demo.choice import folds, grid, score
from demo.methods import (
    LINEAR,
    LKDL,
    METHODS,
    PEERS,
    SAMPLES,
    TOLD,
    TOLD_KERNEL,
    TOLD_LINEAR,
    classifier,
)
from demo.novelties import OURS
from demo.reasons import chosen
from demo.terminal import verdict
from kernlets import explain
from kernlets.base.notebook import png
from kernlets.cli import app


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """One quick run: its result, its page and what it printed."""
    folder = tmp_path_factory.mktemp("demo")
    console = Console(file=io.StringIO(), width=80)
    result = demo.run_demo(folder, quick=True, console=console)
    return result, result.path.read_text("utf-8"), console.file.getvalue()


def test_demo_writes_its_page_and_nothing_else(quick):
    result, *_ = quick
    assert [p.name for p in result.path.parent.iterdir()] == ["kernlets-demo.html"]
    assert result.path.stat().st_mode & 0o444 == 0o444


def test_demo_prints_the_accuracies(quick):
    result, _, printed = quick
    for method in METHODS:
        (line,) = (row for row in printed.splitlines() if row.startswith(f"{method} "))
        values = list(map(float, line.removeprefix(method).split()))
        expected = [
            100 * result.accuracy(method, c).mean() for c in result.plan.corruptions()
        ]
        np.testing.assert_allclose(values[: len(expected)], expected, atol=0.051)
        assert len(values) == len(expected) + 2  # two times


def test_demo_table_fits_80_columns(quick):
    assert "…" not in quick[2]


def test_demo_accuracies_are_those_of_the_models(quick):
    result, *_ = quick
    data, corruption = result.data, trial.Corruption("noise", 0.4)
    X = corruption(data.X_test, result.plan.seeds[0])
    for method in METHODS:
        (only,) = result.of(method)
        right = sum(only.model.predict(X) == data.y_test) / len(data.y_test)
        assert only.accuracy[corruption] == pytest.approx(right)
        assert min(only.fit_seconds, only.predict_seconds) > 0


def test_known_holes_are_where_the_pixels_are_lost(quick):
    result, *_ = quick
    data, seed = result.data, result.plan.seeds[0]
    lost = trial.Corruption("missing", 0.5)
    black, told = lost(data.X_test, seed), lost.told(data.X_test, seed)
    assert np.isnan(told).mean() == pytest.approx(lost.level)
    np.testing.assert_array_equal(np.nan_to_num(told), black)
    for method in TOLD:
        (only,) = result.of(method)
        right = sum(only.model.predict(told) == data.y_test) / len(data.y_test)
        assert only.accuracy[lost] == pytest.approx(right)
    assert result.percent(TOLD_LINEAR, lost) > result.percent(LINEAR, lost) + 20


def test_kernel_dictionary_beats_the_linear_one_under_corruption(quick):
    result, *_ = quick
    for corruption in result.plan.corruptions()[:-1]:
        kernel, linear = (result.accuracy(m, corruption)[0] for m in (LKDL, LINEAR))
        assert kernel > linear


class Elements(HTMLParser):
    """Collects elements, checks that they are closed in order."""

    VOID = {"meta", "img"}

    def __init__(self):
        super().__init__()
        self.found, self.open = [], []

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_page_is_well_formed_and_self_contained(quick):
    _, text, _ = quick
    elements = Elements()
    elements.feed(text)
    assert elements.open == []
    for tag, attributes in elements.found:
        assert tag not in {"script", "link", "iframe", "object", "base"}
        for name in {"src", "href", "srcset", "poster"} & attributes.keys():
            assert attributes[name].startswith("data:")
        if tag == "img":
            assert attributes["alt"]
        if attributes.get("role") == "img":
            assert attributes["aria-label"]
    assert not re.search(r"https?://|@import|url\(", text)


def test_page_shows_every_method_and_section(quick):
    result, text, _ = quick
    for words in (
        *METHODS,
        *result.outliers.auc,
        "Read correctly: a",
        "Misread: a",
        "restored by kernlets",
        "scikit-learn",
    ):
        assert words in text
    for method in METHODS:
        mean = 100 * result.accuracy(method, trial.Corruption()).mean()
        assert f"{mean:.1f}" in text
    assert text.count("<h1>") == 1
    assert "`" not in text[text.index("<body") :]


def test_page_ends_with_what_to_type_for_own_data(quick):
    _, text, _ = quick
    last = text[text.rindex("<h2>") :]
    assert "Your own data" in last
    assert len(re.findall("^kernlets|>kernlets", last, re.MULTILINE)) == 3
    runner = CliRunner()
    for command in re.findall("(?:^|>)kernlets (.*?)(?:<|$)", last, re.MULTILINE):
        name, *words = command.split()
        described = runner.invoke(app, [name, "--help"]).output
        for option in (word for word in words if word.startswith("-")):
            assert option in described, command


def test_page_names_no_host_and_no_folder(quick):
    import platform

    result, text, _ = quick
    assert str(result.path.parent) not in text
    assert platform.node() not in re.sub(r"base64,[^\"]*", "", text).split()


def test_half_written_page_is_never_seen(tmp_path, monkeypatch):
    path = tmp_path / "html.html"
    html.write_page(path, "old")

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(OSError, match="disk full"):
        html.write_page(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_out_may_be_a_file(tmp_path):
    assert demo._page_path(tmp_path / "x.html") == (tmp_path / "x.html").resolve()
    assert demo._page_path(tmp_path).name == "kernlets-demo.html"


def test_text_is_escaped_and_markup_is_not():
    inner = html.tag("b", "<&>", title='"')
    assert html.html("a < b", inner) == ('a &lt; b<b title="&quot;">&lt;&amp;&gt;</b>')


def test_png_can_be_read_back():
    image = np.array([[0.0, 0.5, 1.0], [1.0, -3.0, 7.0]])
    data = png(image)
    PIL = pytest.importorskip("PIL.Image")
    read = np.asarray(PIL.open(io.BytesIO(data)))
    np.testing.assert_array_equal(read, [[0, 128, 255], [255, 0, 255]])
    assert zlib.crc32(data[-8:-4]) == int.from_bytes(data[-4:], "big")


def test_scale_is_linear_or_logarithmic():
    assert charts.Scale(0, 10, 100, 0)(2.5) == 75
    assert charts.Scale(1, 100, 0, 10, log=True)(10) == 5
    assert charts.Scale(0, 1, 0, 1).ticks() == [0, 0.2, 0.4, 0.6, 0.8, 1]
    assert charts.Scale(0.05, 1, 0, 1, log=True).ticks() == [0.05, 0.1, 0.2, 0.5, 1]


def test_line_chart_draws_every_point():
    curves = {"a": {1: [0.5, 0.7], 2: [0.1, 0.1]}, "b": {1: [0.2], 2: [0.4]}}
    drawn = charts.LineChart(curves, "x", "y").block()
    titles = re.findall(r"<title>(.*?)</title>", drawn)
    assert titles == ["a, 1: 0.6", "a, 2: 0.1", "b, 1: 0.2", "b, 2: 0.4"]
    assert drawn.count('class="band') == 1


def test_a_chart_is_a_file_of_its_own():
    curves = {"a & b": {1: [0.5, 0.7], 2: [0.1, 0.1]}}
    marks = {"a & b": {1: 0.65}}
    drawn = charts.LineChart(curves, "x", "y", bound=("c", {1: 0, 2: 0}), marks=marks)
    root = ElementTree.fromstring(drawn.file())
    texts = [each.text for each in root.iter("{http://www.w3.org/2000/svg}text")]
    assert texts[-3:] == ["a & b", "c", "published"]
    titles = [each.text for each in root.iter("{http://www.w3.org/2000/svg}title")]
    assert "a & b, 1, published: 0.65" in titles
    assert int(root.get("width")) > charts.WIDTH
    assert not re.search(r"@import|url\(|href", drawn.file())


def test_lines_are_named_at_their_ends():
    curves = {"low": {1: [0.5], 2: [0.1]}, "high": {1: [0.2], 2: [0.4]}}
    bound = "least", {1: 0.05, 2: 0.09}
    drawn = charts.LineChart(curves, "x", "y", bound=bound).named_block()
    names = re.findall(r'<g class="lead(?: c\d)?"( data-series="\d")?>.*?</g>', drawn)
    assert names == [' data-series="1"', ' data-series="0"', ""]
    found = re.findall(r'<text class="name"[^>]* y="([\d.]+)">(\w+)<', drawn)
    assert [name for _, name in found] == ["high", "low", "least"]
    heights = [float(y) for y, _ in found]
    assert min(np.diff(heights)) >= charts.APART
    listed = re.search(r'<ul class="legend">(.*)</ul>', drawn)[1]
    assert re.findall(r"</svg>(\w+)</li>", listed) == ["high", "low", "least"]


def test_names_that_would_overlap_are_moved_apart():
    places = charts._spread([100, 101, 102, 200], 15)
    assert places == [100, 115, 130, 200]
    bottom = charts.HEIGHT - charts.BOTTOM + 15
    assert charts._spread([bottom, bottom], 15) == [bottom - 15, bottom]


def test_a_line_on_another_lets_it_be_seen():
    first = {1: [0.2], 2: [0.4], 3: [0.9]}
    near = {1: [0.2], 2: [0.401], 3: [0.5]}
    curves = {"a": first, "b": near, "c": {1: [0.9], 2: [0.1], 3: [0.2]}}
    drawn = charts.LineChart(curves, "x", "y").block()
    assert re.findall(r'class="series c(\d) over"', drawn) == ["1"]


def test_bar_heights_are_proportional():
    drawn = charts.bar_chart([1.0, 2.0], "ab", "two bars", {1: "answer"}, height=114)
    assert re.findall(r'height="([\d.]+)"', drawn) == ["50.0", "100.0"]
    assert drawn.count('class="answer"') == 1


def test_peak_memory_is_that_of_the_work(tmp_path, monkeypatch):
    source = (
        "import numpy as np\ndef use(mb):\n    return lambda: np.ones(mb * 125_000)"
    )
    (tmp_path / "user.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    small, large = (memory.peak_memory("user:use", mb) for mb in (1, 200))
    assert 199e6 < large < 220e6
    assert small < 20e6
    with pytest.raises(RuntimeError, match="no_such"):
        memory.peak_memory("user:no_such")


def test_versions_and_machine(monkeypatch):
    assert machine.versions()["numpy"] == np.__version__
    assert "no-such-package" not in machine.versions("no-such-package")
    assert machine.machine(3)["threads"] == 3
    keys = {"system", "processor", "cores", "memory", "threads", "blas", "code_for"}
    assert set(machine.machine()) == keys
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
    monkeypatch.delenv("NUMBA_CPU_NAME", raising=False)
    assert machine.machine()["code_for"] == "OPENBLAS_CORETYPE=Haswell"


def test_corruption_leaves_clean_images_alone():
    X = trial.digits().X_test
    assert trial.Corruption()(X, 0) is X
    lost = trial.Corruption("missing", 0.5)(X, 0)
    assert np.all((lost == 0) | (lost == X))
    assert str(trial.Corruption("missing", 0.5)) == "missing 50%"


def test_choice_uses_the_training_half_only():
    data = trial.digits()
    held_out = {row.tobytes() for row in data.X_test}
    for part in folds(data):
        seen = {row.tobytes() for row in np.concatenate([part.X_train, part.X_test])}
        assert not seen & held_out
        assert len(part.y_train) + len(part.y_test) == len(data.y_train)


def test_choice_scores_a_setting():
    part = next(folds(trial.digits()))
    setting = {"residualclassifier__learner__n_components": 10}
    value = score(LINEAR, setting, [part], [trial.Corruption()])
    assert 0.8 < value < 1
    names = {key for setting in grid(LKDL) for key in setting}
    assert "nystroemmap__kernel__degree" in names


def test_a_new_method_is_one_line(monkeypatch, tmp_path):
    from kernlets import MOD

    extra = {"MOD": lambda seed: classifier(MOD(20, 2, max_iter=2, random_state=seed))}
    monkeypatch.setitem(METHODS, "MOD", extra["MOD"])
    console = Console(file=io.StringIO(), width=80)
    result = demo.run_demo(tmp_path, quick=True, console=console)
    assert re.search(r"^MOD +\d", console.file.getvalue(), flags=re.MULTILINE)
    assert ">MOD<" in result.path.read_text("utf-8")


def test_recorded_terminal_needs_no_font_from_elsewhere(tmp_path):
    svg = demo.record_terminal(tmp_path / "demo.svg", quick=True).read_text("utf-8")
    assert "LKDL" in svg
    assert "@font-face" not in svg
    assert not re.search(r"(src|href)=\"http|url\(\"http", svg)
    assert str(tmp_path) not in svg


def with_accuracy(result, method, corruption, value):
    """The result with another accuracy of one method."""
    trials = [
        replace(each, accuracy={**each.accuracy, corruption: value})
        if each.method == method
        else each
        for each in result.trials
    ]
    return replace(result, trials=trials)


def test_the_summary_says_where_dictionaries_are_not_best(quick):
    result, text, printed = quick
    assert verdict(result) in text
    assert verdict(result) in " ".join(printed.split())
    lost = trial.Corruption("missing", 0.5)
    assert f"reads {result.percent(TOLD_KERNEL, lost)} %" in verdict(result)
    clean = trial.Corruption()
    ahead = with_accuracy(result, "random forest", clean, 1.0)
    assert re.search(r"; behind others at [^;]*clean", verdict(ahead))
    equal = with_accuracy(ahead, SAMPLES, clean, 1.0)
    assert re.search(r"no better than others at [^;]*clean", verdict(equal))


def test_winners_are_within_a_standard_deviation_of_the_best(quick):
    result, *_ = quick
    clean = trial.Corruption()
    for method in METHODS:
        result = with_accuracy(result, method, clean, 0.5)
    result = with_accuracy(result, LKDL, clean, 0.93)
    again = with_accuracy(result, LINEAR, clean, 1.0)
    result = with_accuracy(result, LINEAR, clean, 0.9)
    both = replace(result, trials=[*result.trials, *again.trials])
    assert both.percent(LINEAR, clean) == 95  # and 5 is its deviation
    assert both.winners(clean) == [LKDL, LINEAR]


def test_no_peer_is_better_under_noise_than_samples_in_a_narrow_kernel(quick):
    result, *_ = quick
    noise = trial.Corruption("noise", 0.4)
    best = max(result.accuracy(name, noise)[0] for name in PEERS)
    assert result.accuracy(SAMPLES, noise)[0] >= best


def test_page_explains_a_digit_that_is_read_and_one_that_is_not(quick):
    result, text, _ = quick
    model = result.of(TOLD_KERNEL)[0].model
    damaged = trial.Corruption("missing", 0.5).told(result.data.X_test, 0)
    named = dict(chosen(result, damaged))
    assert list(named) == ["Read correctly", "Misread"]
    for name, i in named.items():
        found = explain(model, damaged[i])
        truth = result.data.y_test[i]
        assert (found.label == truth) == (name == "Read correctly")
        assert f"{name}: a {truth} read as {found.label}" in text
        assert f"training digit {found.samples[0].row}, a" in text


def test_outliers_are_no_threes_and_stand_out(quick):
    found = quick[0].outliers
    assert 3 not in found.labels and len(set(found.labels)) == len(found.labels)
    assert found.auc[OURS] > 0.98
    assert all(reason.is_outlier for reason in found.reasons)


def test_the_photograph_is_better_without_noise(quick):
    photo = quick[0].photograph
    assert photo.quality("restored") > photo.quality("blurred") + 2
    assert photo.quality("blurred") > photo.quality("noisy")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_page_on_a_phone_and_on_a_desk(quick, scheme):
    find_chromium()
    result, *_ = quick
    with Chromium() as browser:
        shown = "getComputedStyle(document.querySelector('.names')).display"
        for width, names in ((390, "none"), (1280, "inline")):
            browser.open(result.path, width, 900, scheme)
            assert browser.complaints == []
            assert browser.evaluate(shown) == names
            root = "document.documentElement."
            assert browser.evaluate(root + "scrollWidth") <= width
            assert browser.evaluate(root + "scrollHeight") < 7000


def test_the_command_passes_its_options_on(tmp_path, monkeypatch):
    calls = []
    monkeypatch.setattr("demo.__main__.run_demo", lambda *given: calls.append(given))
    main(["--quick", "--out", str(tmp_path)])
    main(["--open"])
    assert calls == [(tmp_path, True, False), (Path("."), False, True)]
