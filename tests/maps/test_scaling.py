"""Columns or rows brought to one scale, and the command line that chooses which."""

from __future__ import annotations

import warnings
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from typer.testing import CliRunner

from kernlets import Blocks, IKAMap, Standardize, load
from kernlets.cli.app import app
from kernlets.cli.recipe import choose_scale
from kernlets.datasets import Table, remove_mean_and_normalize
from kernlets.preimage import over_landmarks


def columns(rng, n=300):
    """Of very different scale; one constant, one far from zero."""
    X = rng.standard_normal((n, 5)) * [1, 100, 1e-3, 0, 1]
    return X + [0, 5, 0, 7.7, 1e6]


def test_standardize_is_the_naive_form_from_every_source(xp, rng, tmp_path):
    X = columns(rng)
    naive = StandardScaler().fit_transform(X)
    assert_allclose = partial(np.testing.assert_allclose, atol=1e-8)  # of 1e6 / 1e-16
    assert_allclose(xp.to_numpy(Standardize().fit_transform(xp.asarray(X))), naive)
    np.save(tmp_path / "x.npy", X)
    stored = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert_allclose(np.asarray(Standardize().fit(stored).transform(X)), naive)
    blocks = Blocks(lambda: iter([X[:50], X[50:51], X[51:]]))
    assert_allclose(Standardize().fit(blocks).transform(X), naive)


def test_standardize_keeps_float32_and_constant_columns(rng):
    X = columns(rng).astype(np.float32)
    model = Standardize().fit(X)
    found = model.transform(X)
    assert found.dtype == model.mean_.dtype == np.float32
    assert_array_equal(found[:, 3], 0)
    assert_allclose(found[:, :3].std(axis=0), 1, rtol=1e-5)


def chosen(X, names=False, **more):
    names = [f"c{j}" for j in range(X.shape[1])] if names else None
    return choose_scale(Table(X, None, names, **more)).scale.value


def test_columns_of_tables_and_rows_of_images(rng):
    for load_table in (load_breast_cancer, load_wine, load_iris):
        X, _ = load_table(return_X_y=True)
        assert chosen(X) == chosen(X, names=True) == "standard"
    pixels = load_digits().data
    assert chosen(pixels) == chosen(pixels, names=True) == "unit"
    assert chosen(remove_mean_and_normalize(pixels)) == "unit"
    wide = rng.standard_normal((40, 60))
    assert chosen(wide) == "unit" and chosen(wide, names=True) == "standard"
    assert chosen(wide * np.geomspace(1, 1e4, 60)) == "standard"
    assert chosen(wide[:, :6], image_shape=(2, 3)) == "unit"
    assert chosen(np.zeros((3, 60))) == "unit"  # nothing to tell them by


def test_blocks_are_judged_by_the_first(rng):
    X = load_digits().data
    blocks = Blocks(lambda: iter([X[:99], X[99:]]))
    assert choose_scale(Table(blocks, None)).scale.value == "unit"


def run(*arguments):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture
def tables(tmp_path):
    """Writes training and test rows of a set of scikit-learn as .csv files."""

    def write(loader):
        frame = loader(as_frame=True).frame
        parts = train_test_split(
            frame, test_size=0.3, random_state=0, stratify=frame["target"]
        )
        for name, part in zip(("train.csv", "test.csv"), parts, strict=True):
            part.to_csv(tmp_path / name, index=False)
        return [(part.drop(columns="target"), part["target"]) for part in parts]

    return write


@pytest.mark.parametrize("loader", [load_breast_cancer, load_wine])
def test_a_raw_table_is_as_good_as_a_scaled_support_vector_machine(
    loader, tables, tmp_path
):
    pytest.importorskip("pandas", reason="pandas is not installed")
    train, test = tables(loader)
    said = run("fit", tmp_path / "train.csv", "-m", tmp_path / "m")
    assert "scaling" in said and "each column to mean 0 and variance 1" in said
    labels = run("predict", tmp_path / "m", tmp_path / "test.csv").split()
    found = np.array(labels[-len(test[1]) :], dtype=int)
    machine = make_pipeline(StandardScaler(), SVC()).fit(*train)
    assert np.mean(found == test[1]) >= machine.score(*test) - 0.01


def steps(tmp_path, *options):
    X, y = load_wine(return_X_y=True)
    np.savez(tmp_path / "wine.npz", X=X, y=y)
    atoms = ["--atoms", "9", "--iterations", "1"]
    run("fit", tmp_path / "wine.npz", "-m", tmp_path / "m", *atoms, *options)
    model = load(tmp_path / "m")
    kernels = [str(getattr(step, "kernel", "")) for step in model.named_steps.values()]
    return list(model.named_steps), "".join(kernels)


@pytest.mark.parametrize(
    ("options", "first", "kernel"),
    [
        ([], "standardize", "Laplacian()"),
        (["--scale", "standard"], "standardize", "Laplacian()"),
        (["--scale", "unit"], "unitnorm", "Polynomial(coef0=1)"),
        (["--scale", "none"], "nystroemmap", "Laplacian()"),
        (["--kernel", "poly:3"], "standardize", "Polynomial(degree=3)"),
        (["--kernel", "chi2"], "unitnorm", "Chi2()"),
        (["--map", "fourier"], "standardize", "rbf"),
        (["--map", "sketch"], "standardize", "poly:2"),
    ],
    ids=str,
)
def test_scale_and_kernel_go_together(options, first, kernel, tmp_path):
    names, kernels = steps(tmp_path, *options)
    assert names[0] == first and names[-1] == "residualclassifier"
    assert kernels == kernel


def test_detectors_scale_by_themselves(tmp_path):
    np.save(tmp_path / "x.npy", load_wine().data)
    command = ["fit", str(tmp_path / "x.npy"), "-m", str(tmp_path / "m")]
    said = run(*command, "--method", "outliers")
    assert "none (the detector has its own" in said
    assert type(load(tmp_path / "m")).__name__ == "DictionaryOutlierDetector"


def test_features_that_overflow_on_the_way_back_do_not_warn():
    X = 1e-9 * np.random.default_rng(0).standard_normal((60, 2)).astype(np.float32)
    model = IKAMap(n_components=4, n_samples=28, landmarks="diagonal", random_state=15)
    model.fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        over_landmarks(model, np.full((3, 4), 3e38, np.float32))


def test_columns_too_large_for_squares_are_refused_without_a_warning():
    X = np.array([[1e200, 1.0], [-1e200, 2.0], [0.0, 3.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match="overflow in float64: divide X"):
            Standardize().fit(X)
