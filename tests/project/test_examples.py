"""Every example runs to its end, with a few of its numbers made smaller."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "examples"

#: example -> what to replace in its text so that it takes a second or two; each piece
#: must occur exactly once, so that an example that changes is noticed here
SMALLER = {
    "cluster.py": {
        "N_CHUNKS, ROWS, FEATURES = 20, 20_000, 100": (
            "N_CHUNKS, ROWS, FEATURES = 3, 200, 20"
        ),
        '"n_workers": 2,': '"n_workers": 1, "processes": False,',
        "n_landmarks=300, n_components=60": "n_landmarks=40, n_components=10",
        "MOD(100, 4, max_iter=3,": "MOD(12, 2, max_iter=2,",
    },
    "grid_search.py": {
        "[1, 2, 3]": "[2]",
        "[0.0, 1.0]": "[1.0]",
        "StratifiedKFold(5,": "StratifiedKFold(2,",
        "n_landmarks=0.3": "n_landmarks=30",
    },
    "plot_patches.py": {
        "ImageClassifier(random_state=0).fit(X, y)": (
            "ImageClassifier(random_state=0).fit(X[:150], y[:150])"
        ),
    },
    "plot_budget.py": {"BLOCK, N_BLOCKS = 200, 120": "BLOCK, N_BLOCKS = 50, 14"},
    "plot_denoise.py": {
        "X, clean = digits.X_train, ": "X, clean = digits.X_train[:150], ",
        "KSVD(100, 2, random": "KSVD(40, 2, random",
        "100, n_nonzero_coefs=8, max_iter=5": "20, n_nonzero_coefs=3, max_iter=2",
        "noisy = add_noise(clean, NOISE, 0)": (
            "clean = clean[:60]; noisy = add_noise(clean, NOISE, 0)"
        ),
        "digits.y_test[:200]": "digits.y_test[:60]",
    },
    "plot_photographs.py": {
        "[110:302, 140:332]": "[110:150, 140:180]",
        "ImageDenoiser(random": "ImageDenoiser(n_components=16, max_iter=1, random",
        "inpaint(clean, lost)": "inpaint(clean, lost, max_iter=1)",
        "inpaint(clean, written)": "inpaint(clean, written, max_iter=1)",
        "subplots(8, 16,": "subplots(2, 2,",
    },
    "plot_missing.py": {
        "fit(digits.X_train)": "fit(digits.X_train[:200])",
        "KSVD(100, n_nonzero_coefs=5, random": "KSVD(20, n_nonzero_coefs=3, random",
        "others = np.delete(X, 3, axis=0)": "others = np.delete(X, 3, axis=0)[:60]",
        "KSVD(60, n_nonzero_coefs=10, max_iter=5": (
            "KSVD(10, n_nonzero_coefs=2, max_iter=1"
        ),
        "[100:228:2, 300:428:2]": "[100:228:8, 300:428:8]",
        "KSVD(64, n_nonzero_coefs=3, max_iter=8": (
            "KSVD(16, n_nonzero_coefs=2, max_iter=1"
        ),
    },
    "plot_ika_bases.py": {
        "30_000, size=5": "600, size=5",
        "X[:24_000], X[24_000:26_000]": "X[:500], X[500:]",
        "n_samples=4000": "n_samples=300",
        "SIZES = (16, 32, 64, 128, 256)": "SIZES = (8, 16)",
    },
    "plot_ika_classification.py": {
        "split(0.6,": "split(0.2,",
        "SIZES = (16, 32, 64, 128)": "SIZES = (8, 16)",
        "SEEDS = range(3)": "SEEDS = range(1)",
        "KSVD(40, 4, max_iter=5": "KSVD(10, 2, max_iter=2",
    },
    "plot_ika_refined.py": {
        "30_000, size=5": "600, size=5",
        "X[:24_000], X[24_000:26_000]": "X[:500], X[500:]",
        "n_samples=1500": "n_samples=200",
        "in (8, 16, 32, 64)": "in (8,)",
        '"random, 40 steps": ("uniform", 40)': '"random, 4 steps": ("uniform", 4)',
    },
    "plot_ika_stacked.py": {
        "X, y = X[:3000], y[:3000]": (
            "X, y, new, truth = X[:200], y[:200], new[:100], truth[:100]"
        ),
        "in (250, 1000)": "in (20, 40)",
        "[:20_000]": "[:2_000]",
        "n_samples=3000": "n_samples=300",
    },
    "plot_kernel_error.py": {
        "split(0.75,": "split(0.2,",
        "SIZES = (16, 64, 256)": "SIZES = (8, 16)",
        "SEEDS = range(2)": "SEEDS = range(1)",
        "X, new = (datasets.remove_mean_and_normalize(rows) for rows in digits[:2])": (
            "X, new = (datasets.remove_mean_and_normalize(rows[:300]) "
            "for rows in digits[:2])"
        ),
    },
    "plot_outlier_maps.py": {"SIDE = 160": "SIDE = 96"},
    "plot_outlier_reasons.py": {},
    "plot_outliers.py": {
        "np.linspace(-2, 3, 90)": "np.linspace(-2, 3, 9)",
        "np.linspace(-1.5, 2, 90)": "np.linspace(-1.5, 2, 9)",
    },
    "plot_preimages.py": {
        "N_ATOMS = 16": "N_ATOMS = 3",
        "X, y = digits.X_train[:1000], digits.y_train[:1000]": (
            "X, y = digits.X_train[:120], digits.y_train[:120]"
        ),
        "n_landmarks=300": "n_landmarks=30",
    },
    "plot_covariances.py": {
        "N_TRIALS, N_STEPS, N_SENSORS = 180, 60, 8": (
            "N_TRIALS, N_STEPS, N_SENSORS = 60, 30, 8"
        ),
    },
    "plot_recovery.py": {"for seed in range(3)": "for seed in range(1)"},
    "plot_graphs.py": {"N_GRAPHS = 120": "N_GRAPHS = 60"},
    "plot_supervised_search.py": {
        '"nystroemmap__kernel__sigma": [0.5, 1, 2]': (
            '"nystroemmap__kernel__sigma": [1, 2]'
        ),
        "[1e-4, 1e-3, 1e-2]": "[1e-3]",
        "n_components=64": "n_components=20",
        "N_ATOMS = 12": "N_ATOMS = 5",
    },
    "stream_from_disk.py": {
        "n_batches=10,": "n_batches=3,",
        "n_landmarks=300": "n_landmarks=40",
        "RLSDictionary(40, 5,": "RLSDictionary(12, 2,",
    },
    "words.py": {},
}

#: where each of them stands
PATHS = {path.name: path for path in FOLDER.glob("*/*.py")}


def test_every_example_is_run():
    assert SMALLER.keys() == PATHS.keys()


def smaller(name):
    text = PATHS[name].read_text()
    for piece, replacement in SMALLER[name].items():
        assert text.count(piece) == 1, f"{piece!r} occurs {text.count(piece)} times"
        text = text.replace(piece, replacement)
    return text


@pytest.fixture
def no_display():
    """Figures are drawn, but neither shown nor kept."""
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("Agg")
    yield pyplot
    pyplot.close("all")


@pytest.mark.parametrize("name", SMALLER)
def test_the_example_runs(name, tmp_path, monkeypatch, capsys, request):
    if name == "cluster.py":
        pytest.importorskip("distributed")
    has_figures = name != "cluster.py"
    if has_figures:
        pyplot = request.getfixturevalue("no_display")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [name])
    names, n_figures = {"__name__": "__main__"}, 0
    for block in re.split(r"^# %%$", smaller(name), flags=re.MULTILINE):
        exec(compile(block, name, "exec"), names)
        if has_figures:
            n_figures += len(pyplot.get_fignums())
            look_at_figures(pyplot)
    assert capsys.readouterr().out, "an example prints what it found"
    assert (n_figures > 0) == has_figures


def look_at_figures(pyplot):
    """The gallery shows figures after each block: none has gaps then."""
    for number in pyplot.get_fignums():
        figure = pyplot.figure(number)
        figure.savefig(os.devnull, format="svg")
        assert all(axes.has_data() or not axes.axison for axes in figure.axes)
    pyplot.close("all")
