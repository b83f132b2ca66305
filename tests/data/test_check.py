"""Rows at the border: one type for all containers, clear words for the rest."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from kernlets import KSVD, MOD, RBF, NystroemMap, ResidualClassifier, datasets, options
from kernlets.data.check import check_rows
from kernlets.data.lazy_rows import LazyRows
from kernlets.numerics.arrays import as_float, working_dtype

WIDE = ["?", "u1", "i1", "u2", ">i2", "i4", ">u4", "i8", ">u8", "f8", ">f8", "g"]
NARROW = ["f2", ">f2", "f4", ">f4"]


@pytest.fixture
def whole(rng):
    return rng.integers(0, 100, (30, 4))


def computed(dtype):
    return np.float32 if dtype in NARROW else np.float64


def on_disk(X, folder):
    np.save(folder / "X.npy", X)
    return np.load(folder / "X.npy", mmap_mode="r")


def same_rows(found, X, dtype):
    assert found.dtype == computed(dtype) and found.dtype.isnative
    np.testing.assert_array_equal(np.asarray(found), X.astype(computed(dtype)))


@pytest.mark.parametrize("dtype", [*WIDE, *NARROW])
@pytest.mark.parametrize("lazy", [False, True])
def test_every_numpy_type(dtype, lazy, whole, tmp_path):
    X = whole.astype(dtype)
    assert working_dtype(dtype) == computed(dtype)
    same_rows(as_float(X), X, dtype)
    disk = on_disk(X, tmp_path)
    for rows in (X, X[::-1], np.asfortranarray(X), disk, LazyRows(disk)):
        found = check_rows(
            MOD(), rows, reset=True, containers="disk" if lazy else "array"
        )
        same_rows(found, np.asarray(rows, dtype=X.dtype), dtype)
    if X.dtype.isnative and dtype not in ("f2", "g"):  # SciPy has no such matrices
        same_rows(as_float(sparse.csr_array(X)).toarray(), X, dtype)


@pytest.mark.parametrize("dtype", [*WIDE, *NARROW])
def test_every_type_on_a_cluster(dtype, whole):
    da = pytest.importorskip("dask.array", reason="Dask is not installed")
    X = whole.astype(dtype)
    found = check_rows(
        MOD(), da.from_array(X, chunks=(10, 3)), reset=True, containers="dask"
    )
    assert found.dtype == computed(dtype) and found.chunks == ((10, 10, 10), (4,))
    same_rows(found.compute(), X, dtype)


def test_rows_that_need_no_change_are_the_same_array(whole):
    X = whole.astype(np.float32)
    learner = MOD()
    assert check_rows(learner, X, reset=True) is X and learner.n_features_in_ == 4
    assert check_rows(learner, X, like=X[:0]) is X
    assert check_rows(learner, X, like=X[:0].astype(float)).dtype == np.float64
    with pytest.raises(ValueError, match="expecting 4 features"):
        check_rows(learner, X[:, :2], like=X[:0])
    with pytest.raises(ValueError, match="minimum of 31"):
        check_rows(learner, X, reset=True, ensure_min_samples=31)
    X[3, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        check_rows(learner, X, reset=True)


def test_names_of_features_are_compared_and_forgotten(whole):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = pandas.DataFrame(whole.astype(float), columns=list("abcd"))
    learner, X = MOD(), frame.to_numpy()
    check_rows(learner, frame, reset=True)
    with pytest.warns(UserWarning, match="valid feature names"):
        check_rows(learner, X, like=X[:0])
    check_rows(learner, X, reset=True)
    assert not hasattr(learner, "feature_names_in_")


TENSORS = "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64"


@pytest.mark.parametrize("dtype", TENSORS.split())
def test_every_torch_type(dtype, whole):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    X = torch.asarray(whole).to(getattr(torch, dtype))
    found = check_rows(MOD(), X, reset=True)
    narrow = dtype in ("float16", "bfloat16", "float32")
    assert found.dtype == (torch.float32 if narrow else torch.float64)
    assert bool((found == X.to(found.dtype)).all())


FRAMES = {
    "bool and float": ({"a": bool, "b": "f4"}, "f8"),
    "bytes and float32": ({"a": "u1", "b": "f4", "c": "i1", "d": "f2"}, "f4"),
    "nullable": ({"a": "Int64", "b": "boolean", "c": "Float32"}, "f8"),
    "nullable float32": ({"a": "Float32", "b": "f4", "c": "f4", "d": "f4"}, "f4"),
    "category": ({"a": "category"}, "f8"),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_dataframes_in_memory_and_on_a_cluster(kind, whole):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    dd = pytest.importorskip("dask.dataframe", reason="Dask is not installed")
    types, dtype = FRAMES[kind]
    frame = pandas.DataFrame(whole, columns=list("abcd"))
    frame[["a", "b"]] %= 2  # so that they may be true or false
    X, frame = frame.to_numpy(), frame.astype(types)
    same_rows(check_rows(MOD(), frame, reset=True), X, dtype)
    chunks = dd.from_pandas(frame, npartitions=3)
    same_rows(
        check_rows(MOD(), chunks, reset=True, containers="dask").compute(), X, dtype
    )


NOT_NUMBERS = {
    "complex": (lambda X: X + 1j, "Complex data not supported"),
    "text": (lambda X: X.astype(str), "holds <U.*not real numbers"),
    "dates": (lambda X: X.astype("M8[s]"), "holds datetime.*not real numbers"),
    "records": (lambda X: X.astype("i8,f8"), "not real numbers"),
}


@pytest.mark.parametrize("kind", NOT_NUMBERS)
@pytest.mark.parametrize("model", [MOD(3), KSVD(3), NystroemMap(RBF(9.0))], ids=repr)
def test_what_is_not_a_number_is_refused(kind, model, whole, tmp_path):
    da = pytest.importorskip("dask.array", reason="Dask is not installed")
    make, words = NOT_NUMBERS[kind]
    X = make(whole)
    with pytest.raises(ValueError, match=words):
        model.fit(on_disk(X, tmp_path))
    with pytest.raises(ValueError, match=words):
        check_rows(model, da.from_array(X, chunks=10), reset=True, containers="dask")
    if kind == "complex":
        with pytest.raises(ValueError, match=words):
            model.fit(X)


def test_complex_tensors_and_lazy_rows_are_refused(whole, tmp_path):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    with pytest.raises(ValueError, match="Complex data not supported"):
        MOD(3).fit(torch.asarray(whole + 1j))
    with pytest.raises(ValueError, match="Complex data not supported"):
        LazyRows(on_disk(whole + 1j, tmp_path))
    with pytest.raises(ValueError, match="Complex data not supported"):
        RBF(9.0)(whole + 1j)


def test_rows_that_are_converted_are_counted_as_they_will_be(whole, tmp_path):
    """A file of bytes that fits into the memory option may not as float64."""
    disk = on_disk(np.tile(whole, (20, 1)).astype("u1"), tmp_path)
    with options(memory=3 * disk.nbytes), pytest.raises(MemoryError, match="KSVD"):
        KSVD(3).fit(disk)
    with options(memory=3 * disk.nbytes):
        assert MOD(3, 1, max_iter=1, random_state=0).fit(disk).n_iter_ == 1


def test_a_matrix_of_whole_numbers_as_kernel(whole, tmp_path):
    """Of a precomputed matrix on disk rows, columns and the diagonal are needed."""
    K, y = whole @ whole.T, np.arange(30) % 2
    disk = on_disk(K, tmp_path)
    for model in (
        NystroemMap("precomputed", n_landmarks=9, random_state=0),
        NystroemMap("precomputed", "column-norm", n_landmarks=9, random_state=0),
    ):
        wanted = model.fit_transform(K.astype(np.float64))
        np.testing.assert_array_equal(model.fit_transform(disk), wanted)
        np.testing.assert_array_equal(model.fit(disk).transform(disk), wanted)
    from kernlets import KernelMOD

    model = ResidualClassifier(
        KernelMOD("precomputed", 4, n_nonzero_coefs=2), random_state=0
    )
    wanted = model.fit(K.astype(np.float64), y).decision_function(K.astype(np.float64))
    np.testing.assert_array_equal(model.fit(disk, y).decision_function(disk), wanted)


def test_files_of_either_kind_are_computed_in_one_type(whole, tmp_path):
    """Images in bytes: the same model from .npy, which is mapped, and from .npz."""
    X = whole.astype(np.uint8)
    np.save(tmp_path / "X.npy", X)
    np.savez(tmp_path / "X.npz", X=X)
    learner = MOD(5, 2, max_iter=2, random_state=0)
    models = [
        learner.fit(rows).components_
        for rows in (
            X,
            datasets.read_table(tmp_path / "X.npy").X,
            datasets.read_table(tmp_path / "X.npz").X,
            datasets.open_rows(tmp_path / "X.npy").X,
        )
    ]
    for found in models[1:]:
        np.testing.assert_array_equal(found, models[0])
    assert datasets.unit_norm(X).dtype == working_dtype(X.dtype)


def test_labels_beside_rows_on_disk_keep_their_type(whole, tmp_path):
    X = whole.astype(np.uint8)
    X[:, 0] %= 3
    np.save(tmp_path / "X.npy", X)
    read = datasets.read_table(tmp_path / "X.npy", label=0)
    opened = datasets.open_rows(tmp_path / "X.npy", label=0)
    assert read.y.dtype == opened.y.dtype == np.uint8
    np.testing.assert_array_equal(opened.y, read.y)
    np.testing.assert_array_equal(np.asarray(opened.X), read.X)


def test_names_of_features_do_not_outlive_a_fit(whole):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    torch = pytest.importorskip("torch", reason="torch is not installed")
    model = MOD(3, 1, max_iter=1, random_state=0)
    model.fit(pandas.DataFrame(whole, columns=list("abcd")))
    assert list(model.feature_names_in_) == list("abcd")
    model.fit(torch.asarray(whole))
    assert not hasattr(model, "feature_names_in_")


def test_labels_of_another_byte_order_on_torch_rows(rng):
    torch = pytest.importorskip("torch")
    X, y = rng.random((20, 4)), (np.arange(20) % 2).astype(">i4")
    model = ResidualClassifier(MOD(3, random_state=0)).fit(X, y)
    found = model.predict(torch.asarray(X))
    np.testing.assert_array_equal(found, model.predict(X))


def test_a_frame_without_columns(rng):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    with pytest.raises(ValueError, match="no columns"):
        KSVD(2).fit(pandas.DataFrame(index=range(5)))
    with pytest.raises(ValueError, match="no columns"):
        KSVD(2).fit(pandas.DataFrame())
