"""Rows in every container and every type give one result, for every estimator.

The samples are small whole numbers, which all types hold exactly. So the reference is
the same estimator on the same samples as a plain array of floats, and bits must agree:
what differs is the container, not what is computed.
"""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.utils.validation import check_array

from kernlets import options
from kernlets.classifiers import CLASSIFIERS
from kernlets.data.lazy_rows import LazyRows
from kernlets.data.stream import Blocks
from kernlets.learners import LEARNERS
from kernlets.maps import MAPS
from kernlets.numerics.arrays import working_dtype

from .models import INSTANCES, NEED_MEMORY, TAKE_BLOCKS, N, outcome, samples

INTEGERS = ["?", "u1", "i1", "u2", "<i2", ">i4", "u4", "i8", ">u8"]
SHORT_FLOATS = ["f2", ">f2", "f4", ">f4"]
NUMPY = [*INTEGERS, *SHORT_FLOATS, "f8", ">f8", "g"]
SOME = ["?", "u1", ">i4", "f2", ">f4", "f8"]


@pytest.fixture(autouse=True)
def one_thread():
    with options(n_threads=1):  # threads have nothing to do with tiny samples
        yield


@pytest.fixture(params=INSTANCES)
def name(request):
    return request.param


@pytest.fixture(scope="module")
def whole():
    return samples()


def stored(whole, dtype):
    """The samples in a type; two levels only for booleans."""
    return (whole > 5 if np.dtype(dtype).kind == "b" else whole).astype(dtype)


@pytest.fixture(scope="module")
def expected(whole):
    """Results on plain arrays, computed once for each set of values and type."""
    known = {}

    def of(name, dtype, order="C"):
        computed = working_dtype(dtype)
        key = name, computed, np.dtype(dtype).kind == "b", order
        if key not in known:
            plain = stored(whole, dtype).astype(computed, order=order)
            known[key] = outcome(name, plain)
            assert known[key].dtype == computed and np.isfinite(known[key]).all()
            assert np.abs(known[key]).max() > 0
        return known[key]

    return of


def on_disk(X, folder):
    path = folder / f"{X.dtype.str.strip('<>|')}{X.dtype.byteorder == '>'}.npy"
    np.save(path, X)
    return np.load(path, mmap_mode="r")


def test_every_estimator_is_tested():
    registered = {*LEARNERS.values(), *MAPS.values(), *CLASSIFIERS.values()}
    missing = registered - {type(instance) for instance in INSTANCES.values()}
    assert not missing


def test_rule():
    for dtype in NUMPY:
        narrow = np.float32 if dtype in SHORT_FLOATS else np.float64
        assert working_dtype(dtype) == narrow and working_dtype(dtype).isnative


# In the order of rows, and by the same blocks: bits agree


def test_memory_maps(name, whole, expected, tmp_path):
    for dtype in SOME:
        disk = on_disk(stored(whole, dtype), tmp_path)
        assert isinstance(disk, np.memmap) and disk.dtype == np.dtype(dtype)
        np.testing.assert_array_equal(outcome(name, disk), expected(name, dtype), dtype)


@pytest.mark.parametrize("name", sorted({*INSTANCES} - NEED_MEMORY))
def test_memory_maps_in_little_memory(name, whole, tmp_path):
    """Rows stay on disk, and blocks are of a few rows each."""
    for dtype in ("u1", ">f4"):
        disk = on_disk(stored(whole, dtype), tmp_path)
        plain = stored(whole, dtype).astype(working_dtype(dtype))
        with options(memory=20_000, block_rows=7):
            wanted = outcome(name, on_disk(plain, tmp_path))
            found = outcome(name, disk)
        np.testing.assert_array_equal(found, wanted, dtype)


def test_arrays_and_lists(name, whole, expected):
    for dtype in SOME:
        X, wanted = stored(whole, dtype), expected(name, dtype)
        np.testing.assert_array_equal(outcome(name, X), wanted, dtype)
        rows = np.repeat(X, 2, axis=0)[::2]
        np.testing.assert_array_equal(outcome(name, rows), wanted, dtype)
    rows = stored(whole, "i8").tolist()
    np.testing.assert_array_equal(outcome(name, rows), expected(name, "f8"))


def test_frames(name, whole, expected):
    """Products are rounded as those of an array that lies in memory as pandas has it.

    Columns in one piece or rows in one piece: that is up to the version of pandas.
    """
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = pandas.DataFrame(whole, columns=list("abcde"))
    mixed = frame.astype({"a": "u1", "b": "f4", "c": "f2", "d": "i1", "e": "f4"})
    nullable = frame.astype({"a": "Int64", "b": "f4", "c": "Float32", "d": "UInt8"})
    frames = {dtype: frame.astype(dtype) for dtype in ("u1", "f2")}
    frames |= {"?": frame > 5, "f4": mixed, "f8": nullable}
    for dtype, each in frames.items():
        computed = check_array(each, dtype=working_dtype(dtype))
        order = "C" if computed.flags.c_contiguous else "F"
        found = outcome(name, each)
        np.testing.assert_array_equal(found, expected(name, dtype, order), dtype)


def test_lazy_rows(name, whole, expected, tmp_path):
    for dtype in ("u1", "f2"):
        lazy = LazyRows(on_disk(stored(whole, dtype), tmp_path))
        np.testing.assert_array_equal(outcome(name, lazy), expected(name, dtype))


# In other pieces, or another library: bits agree with the same container of floats


def test_blocks(name, whole, tmp_path):
    cuts = [slice(0, 20), slice(20, 21), slice(21, N)]

    def of(dtypes, kind=list):
        parts = [stored(whole, t)[cut] for t, cut in zip(dtypes, cuts, strict=True)]
        return kind(parts)

    if name not in TAKE_BLOCKS:
        for dtype in ("u1", "f8"):
            with pytest.raises((ValueError, TypeError)):
                outcome(name, of([dtype] * 3))
        return
    for dtype in ("u1", ">f4"):
        plain = [part.astype(working_dtype(dtype)) for part in of([dtype] * 3)]
        wanted = outcome(name, plain)
        np.testing.assert_array_equal(outcome(name, of([dtype] * 3)), wanted, dtype)
        blocks = of([dtype] * 3, lambda parts: Blocks(lambda: iter(parts)))
        np.testing.assert_array_equal(outcome(name, blocks), wanted, dtype)
    if name == "UnitNorm":
        return  # each block has its own type, there being no model
    disk = [on_disk(part, tmp_path) for part in of(["u1", "f4", ">i4"])]
    np.testing.assert_array_equal(outcome(name, disk), outcome(name, of(["f8"] * 3)))


@pytest.mark.parametrize("kind", ["array", "dataframe"])
def test_dask(name, kind, whole):
    da = pytest.importorskip("dask.array", reason="Dask is not installed")
    dd = pytest.importorskip("dask.dataframe", reason="Dask is not installed")
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")

    def of(X):
        if kind == "array":
            return da.from_array(X, chunks=(20, 3))
        frame = pandas.DataFrame(X, columns=list("abcde"))
        return dd.from_pandas(frame, npartitions=3)

    if name in NEED_MEMORY:
        for dtype in ("u1", "f8"):
            with pytest.raises(TypeError, match="Dask"):
                outcome(name, of(stored(whole, dtype)))
        return
    for dtype in ("u1", ">f4") if kind == "array" else ("?", "f2"):
        X = stored(whole, dtype)
        wanted = outcome(name, of(X.astype(working_dtype(dtype))))
        found = outcome(name, of(X))
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted, dtype)


@pytest.fixture
def torch():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    before = torch.get_num_threads()
    torch.set_num_threads(1)  # tiny samples: threads would only wait for each other
    yield torch
    torch.set_num_threads(before)


def test_torch(name, torch, whole):
    for dtype in ("uint8", "bfloat16"):
        X = torch.asarray(whole)
        plain = X.to(torch.float32 if "float" in dtype else torch.float64)
        found, wanted = outcome(name, X.to(getattr(torch, dtype))), outcome(name, plain)
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted, dtype)
