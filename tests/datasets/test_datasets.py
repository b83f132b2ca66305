"""Named data sets, the split per class, row-wise preparation and corruption."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.error import URLError

import numpy as np
import pytest
from sklearn.datasets import load_digits

from kernlets import datasets
from kernlets.datasets import Dataset, DatasetNotFoundError, add_noise, drop_pixels
from kernlets.datasets import catalogue as sources
from kernlets.datasets.catalogue import CATALOGUE


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty data folder and an empty cache, so that nothing is found by chance."""
    (tmp_path / "data").mkdir()
    monkeypatch.setenv("KERNLETS_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(**_: object) -> None:
        raise URLError("no network")

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fail)


def tiny_mnist() -> dict[str, np.ndarray]:
    grey = np.arange(2 * 784, dtype=np.uint8).reshape(2, 28, 28)
    labels = np.array([3, 7], dtype=np.uint8)
    return {"X_train": grey, "y_train": labels, "X_test": grey, "y_test": labels}


# -- loading ------------------------------------------------------------------------


def test_digits_are_scikit_learns_in_the_unit_interval() -> None:
    digits = datasets.load("digits")
    X, y = load_digits(return_X_y=True)
    assert digits.X_train.dtype == np.float32
    assert digits.image_shape == (8, 8)
    assert len(digits.X_train) == 898 and len(digits.X_test) == 899
    rows = np.concatenate([digits.X_train, digits.X_test])
    np.testing.assert_array_equal(rows, X / 16)  # exact in binary
    labels = np.concatenate([digits.y_train, digits.y_test])
    np.testing.assert_array_equal(labels, y)


def test_dtype_and_white_are_options() -> None:
    raw = datasets.load("digits", white=16, dtype=np.float64)
    assert raw.X_train.dtype == np.float64
    np.testing.assert_array_equal(raw.X_train, load_digits().data[:898])


def test_smoothing_is_a_gaussian_with_zeros_around() -> None:
    plain = datasets.load("digits", dtype=np.float64)
    blurred = datasets.load("digits", smooth=0.75, dtype=np.float64)
    offsets = np.arange(-3, 4)
    taps = np.exp(-(offsets**2) / (2 * 0.75**2))
    taps /= taps.sum()
    image = np.pad(plain.X_train[5].reshape(8, 8), 3)
    expected = np.array(
        [
            [taps @ image[i : i + 7, j : j + 7] @ taps for j in range(8)]
            for i in range(8)
        ]
    )
    np.testing.assert_allclose(blurred.X_train[5].reshape(8, 8), expected, rtol=1e-12)


def test_unknown_name_suggests_the_nearest() -> None:
    with pytest.raises(ValueError, match=r"name='usp'.*did you mean 'usps'"):
        datasets.load("usp")


def test_unknown_options_are_refused() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'blur'"):
        datasets.load("digits", blur=1.0)


def test_file_of_another_set_is_refused(home: Path) -> None:
    sources.save_arrays(home / "data" / "usps.npz", {"faces": np.ones((2, 3))})
    with pytest.raises(datasets.DataFileError, match=r"usps\.npz: has no array X"):
        datasets.load("usps")


@pytest.mark.parametrize("name", ["mnist", "usps"])
def test_absent_set_says_where_and_what(home: Path, offline: None, name: str) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        datasets.load(name)
    assert isinstance(caught.value, DatasetNotFoundError)
    message = str(caught.value)
    assert repr(name) in message and "KERNLETS_DATA" in message
    assert str(home / "data") in message and str(home / "cache") in message


def test_absent_set_without_the_variable(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KERNLETS_DATA")
    with pytest.raises(DatasetNotFoundError, match="KERNLETS_DATA is not set"):
        datasets.load("usps", download=False)


def test_failed_download_names_the_network(home: Path, offline: None) -> None:
    with pytest.raises(DatasetNotFoundError, match="no network"):
        datasets.load("mnist")
    assert not list((home / "cache").rglob("*"))


def test_data_folder_comes_before_the_cache(home: Path) -> None:
    arrays = tiny_mnist()
    sources.save_arrays(home / "cache" / "kernlets" / "mnist.npz", arrays)
    assert datasets.load("mnist").y_train.tolist() == [3, 7]
    arrays["y_train"] = np.array([1, 2], dtype=np.uint8)
    sources.save_arrays(home / "data" / "mnist.npz", arrays)
    mnist = datasets.load("mnist")
    assert mnist.y_train.tolist() == [1, 2]
    assert mnist.X_train.shape == (2, 784)
    assert mnist.X_train.max() == 1.0


def test_truncated_set_is_named(home: Path) -> None:
    path = home / "data" / "mnist.npz"
    sources.save_arrays(path, tiny_mnist())
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(datasets.DataFileError, match=r"mnist\.npz: cannot be read"):
        datasets.load("mnist")


def usps_from_openml() -> tuple[np.ndarray, np.ndarray]:
    """Rows and labels as OpenML spells them: [-1, 1] and "1" to "10"."""
    test = np.repeat(np.arange(10), CATALOGUE["usps"].openml.test_counts)
    y = np.concatenate([np.arange(7291) % 10, test])
    X = np.linspace(-1, 1, len(y))[:, np.newaxis].repeat(256, axis=1)
    return X, (y + 1).astype(str).astype(object)


def test_openml_is_fetched_once_and_kept(
    home: Path, monkeypatch: pytest.MonkeyPatch, offline: None
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("sklearn.datasets.fetch_openml", lambda **_: usps_from_openml())
        first = datasets.load("usps")
    again = datasets.load("usps")  # offline now: from the cache
    assert first.X_train.shape == (7291, 256) and first.X_test.shape == (2007, 256)
    assert first.X_train.min() == 0.0 and first.X_test.max() == 2.0
    assert np.bincount(first.y_test).tolist()[0] == 359
    np.testing.assert_array_equal(first.X_test, again.X_test)
    np.testing.assert_array_equal(first.y_train, again.y_train)
    assert [p.name for p in (home / "cache" / "kernlets").iterdir()] == ["usps.npz"]


def test_openml_rows_in_another_order_are_refused(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = usps_from_openml()
    monkeypatch.setattr("sklearn.datasets.fetch_openml", lambda **_: (X, y[::-1]))
    with pytest.raises(DatasetNotFoundError, match="not the published split"):
        datasets.load("usps")
    assert not (home / "cache").exists()


def test_unwritable_cache_only_warns(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "cache").write_text("a file where the folder should be")
    monkeypatch.setattr("sklearn.datasets.fetch_openml", lambda **_: usps_from_openml())
    with pytest.warns(UserWarning, match="could not be cached"):
        assert datasets.load("usps").X_train.shape == (7291, 256)


def test_a_user_without_a_home_has_no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KERNLETS_DATA", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr("os.path.expanduser", lambda path: path)  # as without HOME
    with pytest.raises(DatasetNotFoundError, match="set KERNLETS_DATA"):
        datasets.load("mnist", download=False)
    monkeypatch.setattr("sklearn.datasets.fetch_openml", lambda **_: usps_from_openml())
    with pytest.warns(UserWarning, match="could not be cached.*XDG_CACHE_HOME"):
        assert datasets.load("usps").X_train.shape == (7291, 256)


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs users")
def test_folders_that_the_user_may_not_read_are_passed_over(home: Path) -> None:
    user = os.geteuid()
    home.chmod(0)
    try:
        if user == 0:  # root may read everything, so this is tried as nobody
            os.seteuid(65534)
        with pytest.raises(DatasetNotFoundError, match="that you may read"):
            datasets.load("mnist", download=False)
    finally:
        os.seteuid(user)
        home.chmod(0o700)


def test_interrupted_write_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(file, **_: object) -> None:
        file.write(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "savez_compressed", interrupt)
    with pytest.raises(KeyboardInterrupt):
        sources.save_arrays(tmp_path / "set.npz", {})
    assert list(tmp_path.iterdir()) == []


# -- a set as in the papers --------------------------------------------------------


def test_smoothed_usps_has_the_papers_spectrum(shared_data: Path, rng) -> None:
    """Best rank-c error of the poly-2 kernel on 2000 images (LKDL, Fig. 1a)."""
    usps = datasets.load("usps", smooth=0.75)
    rows = rng.choice(len(usps.X_train), 2000, replace=False)
    X = datasets.remove_mean_and_normalize(usps.X_train[rows]).astype(np.float64)
    energy = np.sort(np.linalg.eigvalsh((X @ X.T) ** 2))[::-1] ** 2
    errors = [np.sqrt(energy[c:].sum() / energy.sum()) for c in (100, 200, 400)]
    np.testing.assert_allclose(errors, [0.0310, 0.0142, 0.0050], rtol=0.05)


# -- splitting ----------------------------------------------------------------------


def labelled(counts: tuple[int, ...] = (5, 8, 6)) -> Dataset:
    y = np.repeat(np.arange(len(counts)), counts)
    return Dataset("toy", np.arange(len(y), dtype=np.float32)[:, None], y)


def test_split_takes_the_same_number_of_each_class() -> None:
    X_train, X_test, y_train, y_test = labelled().split(3, random_state=0)
    assert np.bincount(y_train).tolist() == [3, 3, 3]
    assert np.bincount(y_test).tolist() == [2, 5, 3]
    rows = np.concatenate([X_train, X_test])[:, 0]
    assert sorted(rows) == list(range(19))
    np.testing.assert_array_equal(
        labelled().y_train[X_train[:, 0].astype(int)], y_train
    )


def test_split_by_share_and_seed() -> None:
    half = labelled((4, 8, 6)).split(0.5, random_state=1)
    assert np.bincount(half.y_train).tolist() == [2, 4, 3]
    same = labelled((4, 8, 6)).split(0.5, random_state=1)
    other = labelled((4, 8, 6)).split(0.5, random_state=2)
    np.testing.assert_array_equal(half.X_train, same.X_train)
    assert not np.array_equal(half.X_train, other.X_train)


def test_split_pools_a_published_split() -> None:
    X, y = labelled().X_train, labelled().y_train
    data = Dataset("toy", X[::2], y[::2], X[1::2], y[1::2])
    parts = data.split(2, random_state=0)
    assert sorted(np.concatenate([parts.X_train, parts.X_test])[:, 0]) == list(
        range(19)
    )


@pytest.mark.parametrize("count", [0, 5, 9, 0.01, 1.0])
def test_split_refuses_empty_parts(count: float) -> None:
    with pytest.raises(ValueError, match=r"n_train_per_class=.*class 0 of 'toy'"):
        labelled().split(count)


def test_split_needs_labels() -> None:
    with pytest.raises(ValueError, match="has no labels"):
        Dataset("toy", np.zeros((3, 2)), None).split(1)


# -- preparation and corruption -----------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_remove_mean_and_normalize(rng, dtype) -> None:
    X = rng.random((6, 20)).astype(dtype)
    out = datasets.remove_mean_and_normalize(X)
    assert out.dtype == dtype
    expected = [(x - x.mean()) / np.sqrt(((x - x.mean()) ** 2).sum()) for x in X]
    np.testing.assert_allclose(out, expected, rtol=100 * np.finfo(dtype).eps, atol=1e-7)


@pytest.mark.parametrize("level", [0.0, 0.1, 1e6, -3.3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_constant_images_become_zero(level: float, dtype) -> None:
    X = np.full((3, 257), level, dtype=dtype)
    assert not datasets.remove_mean_and_normalize(X).any()


def test_unit_norm_of_zero_tiny_and_huge_rows() -> None:
    X = np.array([[0, 0], [3e-30, 4e-30], [3e30, 4e30], [3, 4]], dtype=np.float32)
    expected = [[0, 0], [0.6, 0.8], [0.6, 0.8], [0.6, 0.8]]
    np.testing.assert_allclose(datasets.unit_norm(X), expected, rtol=1e-6)


def test_bytes_become_float64() -> None:
    out = datasets.unit_norm(np.array([[0, 255]], dtype=np.uint8))
    assert out.dtype == np.float64 and out.tolist() == [[0.0, 1.0]]


def test_noise_has_the_asked_deviation_and_dtype() -> None:
    X = np.ones((200, 500), dtype=np.float32)
    noisy = add_noise(X, 0.4, random_state=0)
    assert noisy.dtype == np.float32
    # Mean and deviation of 100000 draws: 5 standard errors each.
    assert abs(noisy.mean() - 1) < 5 * 0.4 / np.sqrt(1e5)
    assert abs(noisy.std() - 0.4) < 5 * 0.4 / np.sqrt(2e5)
    np.testing.assert_array_equal(noisy, add_noise(X, 0.4, random_state=0))
    np.testing.assert_array_equal(add_noise(X, 0), X)


def test_drop_pixels_zeroes_an_exact_share_of_each_row() -> None:
    X = np.ones((50, 40))
    dropped = drop_pixels(X, 0.3, random_state=0)
    assert ((dropped == 0).sum(axis=1) == 12).all()
    assert X.all(), "the input is left alone"
    assert len(np.unique(dropped, axis=0)) > 45, "rows lose different pixels"
    assert (dropped.mean(axis=0) < 1).all(), "every pixel can be lost"


@pytest.mark.parametrize("share", [-0.1, 1.1, np.nan])
def test_drop_pixels_refuses_what_is_no_share(share: float) -> None:
    with pytest.raises(ValueError, match="share="):
        drop_pixels(np.ones((2, 3)), share)


def test_noise_refuses_a_negative_deviation() -> None:
    with pytest.raises(ValueError, match="s=-1"):
        add_noise(np.ones((2, 3)), -1)
