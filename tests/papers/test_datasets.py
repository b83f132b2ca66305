"""The data sets of the papers are found and have the shapes that they should."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kernlets.datasets import DatasetNotFoundError
from kernlets.datasets.catalogue import save_arrays
from papers.datasets import SETS, load


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty data folder and an empty cache, so that nothing is found by chance."""
    (tmp_path / "data").mkdir()
    monkeypatch.setenv("KERNLETS_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def test_unknown_name_suggests_the_nearest() -> None:
    with pytest.raises(ValueError, match=r"name='olr'.*did you mean 'orl'"):
        load("olr")


def test_features_have_no_options_of_images() -> None:
    with pytest.raises(TypeError, match=r"'ar' takes no option 'smooth': it has no im"):
        load("ar", smooth=1.0)


@pytest.mark.parametrize("name", ["orl", "usps", "adbench/wine"])
def test_absent_sets_are_not_downloaded(home: Path, name: str) -> None:
    with pytest.raises(DatasetNotFoundError, match=str(home / "data")):
        load(name)


def test_sets_of_adbench_have_numbers_in_their_file_names(home: Path) -> None:
    (home / "data" / "adbench").mkdir()
    table = {"X": np.zeros((4, 2)), "y": np.arange(4) % 2}
    save_arrays(home / "data" / "adbench" / "45_wine.npz", table)
    assert load("adbench/Wine").y_train.tolist() == [0, 1, 0, 1]


SHAPES = {
    "usps": ((7291, 256), (2007, 256), 10),
    "mnist": ((60000, 784), (10000, 784), 10),
    "orl": ((400, 112 * 92), None, 40),
    "yaleb": ((2414, 48 * 42), None, 38),
    "yaleb-features": ((2414, 504), None, 38),
    "ar": ((700, 300), (699, 300), 100),
    "ar-540": ((1386, 540), None, 99),
    "cifar10-airplane": ((5000, 1024), None, None),
    "stl10": ((256, 96 * 96 * 3), None, None),
    "adbench/ionosphere": ((351, 32), None, 2),
}


@pytest.mark.parametrize("name", SHAPES)
def test_sets_of_the_papers(shared_data: Path, name: str) -> None:
    train, test, n_classes = SHAPES[name]
    data = load(name)
    assert data.X_train.shape == train and data.X_train.dtype == np.float32
    assert (None if data.X_test is None else data.X_test.shape) == test
    assert (None if data.y_train is None else len(set(data.y_train))) == n_classes
    assert np.isfinite(data.X_train).all()
    if data.image_shape is not None:
        assert np.prod(data.image_shape) == train[1]
        white = 2 if name == "usps" else 1
        # The brightest pixel of the 400 ORL faces is 251 of 255.
        assert data.X_train.min() == 0
        assert 0.98 * white < data.X_train.max() <= white


def test_every_set_is_tried() -> None:
    assert SHAPES.keys() >= SETS.keys()
