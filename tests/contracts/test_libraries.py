"""A model fitted on arrays of one library, given rows of another.

Rows follow the model: they are brought to its library, device and dtype, and so are the
results. Predicted labels are of the kind of the rows.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone, is_classifier

from kernlets import (
    MOD,
    Blocks,
    BudgetKernelDL,
    FourierMap,
    KernelKSVD,
    OnlineDictionary,
    ResidualClassifier,
    RLSDictionary,
    load,
    options,
    save,
)
from kernlets.data.lazy_rows import LazyRows

from .models import INSTANCES, answer, fitted, in_memory, labels, samples

torch = pytest.importorskip("torch", reason="torch is not installed")
DEVICES = [
    "cpu",
    pytest.param(
        "cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
    ),
]


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)  # tiny samples: threads would only wait for each other
    with options(n_threads=1):
        yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def X():
    return samples().astype(np.float64)


@pytest.fixture(params=DEVICES)
def device(request):
    return request.param


@pytest.fixture(params=[name for name in INSTANCES if name != "UnitNorm"])
def name(request):
    """All that learn something which rows can follow."""
    return request.param


def containers(X, folder):
    """The same rows in many ways, as NumPy and others have them."""
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    np.save(folder / "X.npy", X)
    np.save(folder / "whole.npy", X.astype("u1"))
    disk = np.load(folder / "X.npy", mmap_mode="r")
    frozen = X.copy()
    frozen.flags.writeable = False
    return {
        "array": frozen,
        "float32": X.astype(np.float32),
        "bytes": X.astype(np.uint8),
        "reversed": X[::-1].copy()[::-1],
        "list": X.tolist(),
        "frame": pandas.DataFrame(X),
        "memory map": disk,
        "memory map of bytes": np.load(folder / "whole.npy", mmap_mode="r"),
        "lazy": LazyRows(disk),
    }


def assert_close(found, wanted, kind=""):
    """The same numbers, but for the order in which products of rows are summed."""
    scale = np.abs(wanted).max()
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-9 * scale, err_msg=kind)


def test_fit_on_torch_then_numpy(name, X, device, tmp_path):
    model = fitted(name, torch.asarray(X, device=device))
    wanted = answer(model, torch.asarray(X, device=device))
    for kind, rows in containers(X, tmp_path).items():
        found = answer(model, rows)
        assert isinstance(found, torch.Tensor), kind
        assert found.dtype == wanted.dtype and found.device == wanted.device, kind
        assert_close(in_memory(found), in_memory(wanted), kind)
    if is_classifier(model):
        assert isinstance(model.predict(X), np.ndarray)
        assert model.score(X, labels()) > 0.4


def test_fit_on_numpy_then_torch(name, X, device):
    model = fitted(name, X)
    wanted = answer(model, X)
    for dtype in (torch.float64, torch.float32, torch.float16, torch.uint8):
        rows = torch.asarray(X, device=device).to(dtype)
        found = answer(model, rows)
        assert isinstance(found, np.ndarray)
        assert found.dtype == np.float64
        assert_close(found, wanted)
    if is_classifier(model):
        predicted = model.predict(rows)
        assert isinstance(predicted, torch.Tensor) and predicted.device == rows.device


def test_rows_on_disk_go_to_the_device_of_the_options(name, X, device, tmp_path):
    wanted = answer(fitted(name, torch.asarray(X, device=device)), X)
    disk = containers(X, tmp_path)
    for kind in ("memory map", "memory map of bytes", "lazy"):
        with options(device=device):
            found = answer(fitted(name, disk[kind]), disk[kind])
        assert isinstance(found, torch.Tensor) and found.device == wanted.device, kind
        assert_close(in_memory(found), in_memory(wanted), kind)


def test_narrow_model_and_wide_rows(name, X):
    """A model of float32 computes in float32, whatever it is given."""
    narrow = X.astype(np.float32)
    for kind, model in {
        "numpy": fitted(name, narrow),
        "torch": fitted(name, torch.asarray(narrow)),
    }.items():
        wanted, found = answer(model, narrow), answer(model, X)
        assert found.dtype == wanted.dtype, kind
        np.testing.assert_array_equal(in_memory(found), in_memory(wanted), kind)
        huge = X.copy()
        huge[3, 2] = 1e300
        for rows in (huge, torch.asarray(huge)):
            with pytest.raises(ValueError, match="too large for"):
                answer(model, rows)


def test_numbers_too_large_for_the_model_on_disk_and_on_a_cluster(X, tmp_path):
    da = pytest.importorskip("dask.array", reason="Dask is not installed")
    model = FourierMap(n_components=6, random_state=0).fit(X.astype(np.float32))
    X = X.copy()
    X[3, 2] = 1e300
    np.save(tmp_path / "X.npy", X)
    with pytest.raises(ValueError, match="too large for"):
        model.transform(np.load(tmp_path / "X.npy", mmap_mode="r"))
    with pytest.raises(ValueError, match="too large for"):
        model.transform(da.from_array(X, chunks=20)).compute()


def test_blocks_of_another_library(X):
    model = MOD(6, 2, max_iter=2, random_state=0).fit(torch.asarray(X))
    parts = model.transform(Blocks(lambda: iter([X[:20], X[20:].astype("u1")])))
    found = torch.concat(list(parts))
    assert_close(found.numpy(), model.transform(X).numpy())
    mixed = [X[:20], torch.asarray(X[20:]).half()]
    model = MOD(6, 2, max_iter=2, random_state=0).fit(mixed)
    wanted = MOD(6, 2, max_iter=2, random_state=0).fit([X[:20], X[20:]])
    np.testing.assert_array_equal(model.components_, wanted.components_)


STREAMS = {
    "RLS": RLSDictionary(6, 2, random_state=0),
    "online": OnlineDictionary(6, 2, random_state=0),
    "budget": BudgetKernelDL("poly:2", 6, budget=9, random_state=0),
    "residual": ResidualClassifier(RLSDictionary(6, 2), random_state=0),
}


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("first", ["numpy", "torch"])
def test_streams_that_change_library(stream, first, X, device):
    """The first rows decide; of a few of them no atoms can be made yet."""

    def learned(*kinds):
        model = clone(STREAMS[stream])
        cuts = slice(0, 4), slice(4, 30), slice(30, 48)
        for kind, cut in zip(kinds, cuts, strict=True):
            rows = X[cut] if kind == "numpy" else torch.asarray(X[cut], device=device)
            y = (labels()[cut], [0, 1, 2]) if stream == "residual" else ()
            model.partial_fit(rows, *y)
        return model

    other = {"numpy": "torch", "torch": "numpy"}[first]
    found = answer(learned(first, other, first), X)
    wanted = answer(learned(first, first, first), X)
    assert type(found) is type(wanted)
    assert_close(in_memory(found), in_memory(wanted))


def test_codes_and_features_of_another_library(X, device):
    """What `inverse_transform` is given follows the model, too."""
    kernel = KernelKSVD("poly:2", 6, n_nonzero_coefs=2, random_state=0)
    for learner in (MOD(6, 2, random_state=0), kernel):
        model = learner.fit(torch.asarray(X, device=device))
        codes = model.transform(X)
        wanted = model.inverse_transform(codes)
        host = codes.cpu().numpy()
        for given in (host, sparse.csr_array(host), model.encode(X)):
            assert_close(in_memory(model.inverse_transform(given)), in_memory(wanted))
        model = learner.fit(X)
        found = model.inverse_transform(codes)
        assert isinstance(found, np.ndarray)


def test_what_cannot_follow_a_model_of_tensors(X, tmp_path):
    da = pytest.importorskip("dask.array", reason="Dask is not installed")
    model = FourierMap(n_components=6, random_state=0).fit(torch.asarray(X))
    with pytest.raises(TypeError, match="save and load"):
        model.transform(da.from_array(X, chunks=20))
    with pytest.raises(TypeError, match="toarray"):
        model.transform(sparse.csr_array(X))
    save(model, tmp_path / "model.kernlets")
    found = load(tmp_path / "model.kernlets").transform(da.from_array(X, chunks=20))
    assert_close(found.compute(), model.transform(X).numpy())


def test_the_model_comes_before_the_device_of_the_options(X, tmp_path):
    model = MOD(6, 2, max_iter=2, random_state=0).fit(X)
    np.save(tmp_path / "X.npy", X)
    wanted = model.transform(X)
    with options(device="cpu"):
        for rows in (X, np.load(tmp_path / "X.npy", mmap_mode="r")):
            found = model.transform(rows)
            assert isinstance(found, np.ndarray)
            np.testing.assert_array_equal(found, wanted)
        moved = clone(model).fit(X)
        assert isinstance(moved.components_, torch.Tensor)
    assert isinstance(moved.transform(X), torch.Tensor)  # when the option is gone
