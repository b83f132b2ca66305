"""Rows on disk: lazy rows, files opened and written by blocks, bounded memory."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from click.testing import Result
from scipy import sparse
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer
from typer.testing import CliRunner

from kernlets import (
    KSVD,
    MOD,
    RBF,
    Anchors,
    Blocks,
    FDDLClassifier,
    KernelKSVD,
    KernelMOD,
    KSADClassifier,
    LCKSVDClassifier,
    NystroemMap,
    OnlineDictionary,
    ReducedKernelDL,
    ResidualClassifier,
    RLSDictionary,
    SRCClassifier,
    UnitNorm,
    datasets,
    load,
    options,
)
from kernlets.cli import app
from kernlets.data.block_loop import release_pages, report_rows_to
from kernlets.data.lazy_rows import LazyRows, is_lazy_or_dask
from kernlets.data.rows import map_rows, row_batches, sum_rows, take_rows
from kernlets.learners import LEARNERS

SMALL = 200_000  # bytes: nothing of these samples fits


@pytest.fixture
def X(rng):
    atoms = rng.standard_normal((20, 8))
    codes = np.where(rng.random((2000, 20)) < 0.15, 1.0, 0.0)
    return codes @ atoms + 0.1 * rng.standard_normal((2000, 8))


@pytest.fixture
def y(X):
    return (X[:, 0] > 0).astype(int) + (X[:, 1] > 1)


@pytest.fixture
def disk(X, tmp_path):
    np.save(tmp_path / "X.npy", X)
    return np.load(tmp_path / "X.npy", mmap_mode="r")


@pytest.fixture
def parquet(X, y, tmp_path):
    """Two files of several row groups each, labels in the middle."""
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pandas.DataFrame(X, columns=[f"f{i}" for i in range(8)])
    frame.insert(3, "class", np.array(["a", "b", "c"])[y])
    (tmp_path / "table").mkdir()
    for i, part in enumerate((frame[:1300], frame[1300:])):
        path = tmp_path / "table" / f"part{i}.parquet"
        part.to_parquet(path, row_group_size=400, index=False)
    return tmp_path / "table"


def joined(blocks):
    return np.concatenate([np.asarray(block) for block in blocks])


# Lazy rows


@pytest.mark.rounding
def test_results_that_do_not_fit_are_made_when_read(X, disk):
    made = []

    def double(block):
        made.append(len(block))
        return 2 * block

    with options(memory=SMALL, block_rows=100):
        lazy = map_rows(double, disk, 64)
        assert isinstance(lazy, LazyRows) and made == [1]  # to know its shape
        assert repr(lazy).startswith(f"<LazyRows {lazy.shape} of float")
        assert lazy.shape == (2000, 8) and lazy.dtype == X.dtype and len(lazy) == 2000
        np.testing.assert_array_equal(lazy[30:330], 2 * X[30:330])
        assert sum(made) == 301
        np.testing.assert_array_equal(lazy[::-7], 2 * X[::-7])
        np.testing.assert_array_equal(take_rows(lazy, np.array([5, 3])), 2 * X[[5, 3]])
        np.testing.assert_array_equal(np.asarray(lazy), 2 * X)
        twice = map_rows(double, lazy, 64)
        assert isinstance(twice, LazyRows)
        total = sum_rows(lambda block: block.sum(0), twice, 64)
        np.testing.assert_allclose(total, 4 * X.sum(0))
        parts = list(row_batches(twice, 450))
        assert all(isinstance(part, LazyRows) for part in parts)
        np.testing.assert_array_equal(joined(parts), 4 * X)
        chosen = LazyRows(twice, rows=np.array([9, 1, 1999]))
        np.testing.assert_array_equal(np.asarray(chosen), 4 * X[[9, 1, 1999]])
        part = chosen.slice_rows(slice(1, 3))
        np.testing.assert_array_equal(part[:], 4 * X[[1, 1999]])
    assert isinstance(map_rows(double, disk, 64), np.ndarray)  # now it fits


def test_pages_are_given_back_and_read_again(X, disk, tmp_path):
    assert disk[100:200].sum() == pytest.approx(X[100:200].sum())
    release_pages(disk, slice(0, 2000))
    release_pages(disk[500:], slice(3, 9))
    release_pages(disk, np.array([5, 7]))
    np.testing.assert_array_equal(disk, X)
    changed = np.load(tmp_path / "X.npy", mmap_mode="c")
    changed[:] = 7.0  # lives in memory only, and must not be dropped
    release_pages(changed, slice(0, 2000))
    assert (changed == 7).all()
    written = np.load(tmp_path / "X.npy", mmap_mode="r+")
    written[:3] = 8.0
    release_pages(written, slice(0, 2000))
    assert (written[:3] == 8).all()


def test_rows_are_counted_once(X, disk):
    learner = MOD(10, 2, max_iter=3, random_state=0, init=X[:10])
    seen = []
    with report_rows_to(seen.append), options(block_rows=128, n_threads=2):
        learner.fit(disk)
    assert sum(seen) % 2000 == 1 and 3 <= sum(seen) // 2000 <= 4  # and the first row


# Learners


@pytest.mark.parametrize(
    "learner",
    [
        MOD(15, 3, max_iter=3),
        KSVD(15, 3, max_iter=3, update="ksvd-parallel"),
        OnlineDictionary(15, 3, schedule="batch_size=300", max_iter=2),
        RLSDictionary(15, 3, schedule="batch_size=300", max_iter=1),
    ],
    ids=lambda learner: type(learner).__name__,
)
def test_learning_from_lazy_rows(learner, X, disk):
    features = NystroemMap(
        "rbf", "leverage", n_landmarks=50, n_components=20, random_state=0
    )
    model = make_pipeline(UnitNorm(), features, learner.set_params(random_state=0))
    expected = clone(model).fit(X)
    with options(memory=SMALL):
        found = clone(model).fit(disk)
        virtual = found[:-1].transform(disk)
        assert isinstance(virtual, LazyRows)
        codes = found.transform(disk)
        assert isinstance(codes, LazyRows)
        error = found[-1].reconstruction_error(virtual)
    scale = np.abs(expected[-1].components_).max()
    np.testing.assert_allclose(
        found[-1].components_, expected[-1].components_, atol=1e-5 * scale
    )
    np.testing.assert_allclose(np.asarray(codes), expected.transform(X), atol=1e-5)
    assert error == pytest.approx(-expected.score(X))


@pytest.mark.parametrize(
    "learner",
    [
        MOD(10, 2, max_iter=2),
        OnlineDictionary(10, 2, schedule="batch_size=500", max_iter=2),
    ],
    ids=lambda learner: type(learner).__name__,
)
def test_long_passes_say_how_far_they_are(learner, disk, monkeypatch, capsys):
    monkeypatch.setattr("kernlets.base.progress.SECONDS", 0.0)  # as if they were
    clone(learner).set_params(schedule__verbose=True, random_state=0).fit(disk)
    said = [line for line in capsys.readouterr().out.splitlines() if " rows/s" in line]
    assert said[-1].startswith(f"{type(learner).__name__}: 4,000 of 4,000 rows")
    assert said[-1].endswith("0:00:00 left")
    clone(learner).set_params(random_state=0).fit(disk)
    assert capsys.readouterr().out == ""


def test_truncation_by_samples_of_lazy_results(X, disk):
    features = NystroemMap(
        "rbf",
        "uniform",
        n_landmarks=50,
        n_components=10,
        truncation="samples",
        random_state=0,
    )
    expected = features.fit_transform(X)
    with options(memory=SMALL):
        found = features.fit_transform(disk)
        assert isinstance(found, LazyRows)
    F = np.asarray(found)
    np.testing.assert_allclose(F @ F[:9].T, expected @ expected[:9].T, atol=1e-8)


@pytest.mark.rounding
def test_what_needs_all_rows_is_loaded_or_refused(X, disk):
    lazy = LazyRows(disk)
    expected = KSVD(10, 2, max_iter=2, random_state=0).fit(X).components_
    found = KSVD(10, 2, max_iter=2, random_state=0).fit(lazy).components_
    np.testing.assert_array_equal(found, expected)
    with options(memory=X.nbytes - 1):
        for learner in (KSVD(10), KernelKSVD("rbf", 10)):
            with pytest.raises(MemoryError, match="memory"):
                learner.fit(lazy)
        with pytest.raises(MemoryError, match="update='ksvd-parallel'"):
            KSVD(10).fit(disk)


@pytest.mark.parametrize(
    "estimator",
    [
        ReducedKernelDL("rbf", 10),
        LCKSVDClassifier(),
        FDDLClassifier(),
        KSADClassifier(),
        SRCClassifier(),
    ],
    ids=lambda e: type(e).__name__,
)
def test_what_needs_all_rows_names_itself(estimator, X, y, disk):
    name = type(estimator).__name__
    with (
        options(memory=X.nbytes - 1),
        pytest.raises(MemoryError, match=rf"{name} needs.*options\(memory"),
    ):
        estimator.fit(disk, y)


@pytest.mark.rounding
@pytest.mark.parametrize("kind", ["disk", "blocks", "list"])
def test_residual_classifier(kind, X, y, disk):
    cuts = [0, 300, 301, 1500, 2000]
    parts = [X[a:b] for a, b in pairwise(cuts)]
    rows = {"disk": disk, "blocks": Blocks(lambda: iter(parts)), "list": parts}[kind]
    learner = MOD(10, 2, max_iter=3, init=X[:10])  # not from the first block
    expected = ResidualClassifier(learner, random_state=0).fit(X, y)
    with options(memory=SMALL):
        found = ResidualClassifier(learner, random_state=0).fit(rows, y)
        labels, shares = found.predict(rows), found.predict_proba(rows)
    for own, other in zip(found.learners_, expected.learners_, strict=True):
        np.testing.assert_allclose(own.components_, other.components_, atol=1e-8)
    assert found.temperature_ == pytest.approx(expected.temperature_)
    if kind != "disk":
        labels, shares = joined(labels), joined(shares)
    np.testing.assert_array_equal(labels, expected.predict(X))
    np.testing.assert_allclose(np.asarray(shares), expected.predict_proba(X), atol=1e-8)


def test_a_class_that_begins_thinly(X, y):
    order = np.argsort(y == 1, kind="stable")  # the second class comes last
    rows, labels = X[order], y[order]
    n_others = int((y != 1).sum())
    cuts = [0, 500, n_others + 3, n_others + 5, 2000]
    parts = [rows[a:b] for a, b in pairwise(cuts)]
    model = ResidualClassifier(MOD(10, 2, max_iter=2, random_state=0))
    model.fit(Blocks(lambda: iter(parts)), labels)
    assert [len(each.components_) for each in model.learners_] == [10] * 3
    assert model.score(X, y) > 0.6
    once = MOD(10, 2, max_iter=1, random_state=0)
    found = clone(once).fit(iter(parts[::-1]))  # blocks of 2 rows are passed on, too
    again = clone(once).fit(iter([parts[-1], np.concatenate(parts[-2::-1])]))
    np.testing.assert_allclose(found.components_, again.components_, atol=1e-8)


def test_blocks_and_labels_must_agree(X, y):
    model = ResidualClassifier(MOD(5, random_state=0))
    for labels in (y[:-1], np.append(y, 0)):
        with pytest.raises(ValueError, match="labels"):
            model.fit([X[:900], X[900:]], labels)
    with pytest.raises(ValueError, match="only once"):
        model.fit(iter([X]), y)


def test_unit_norm_is_that_of_scikit_learn(X, disk, xp):
    X[3] = 0.0
    X[4] *= 1e-200
    found = UnitNorm().fit_transform(xp.asarray(X))
    np.testing.assert_allclose(xp.to_numpy(found)[:4], Normalizer().transform(X[:4]))
    np.testing.assert_allclose(np.linalg.norm(xp.to_numpy(found)[4]), 1)
    parts = UnitNorm().fit([X[:50], X[50:]]).transform([X[:50], X[50:]])
    np.testing.assert_allclose(joined(parts), xp.to_numpy(found))


# Files


def test_open_npy(X, y, disk, tmp_path):
    assert isinstance(datasets.open_rows(tmp_path / "X.npy").X, np.memmap)
    np.save(tmp_path / "Xy.npy", np.insert(X, 2, y, axis=1))
    table = datasets.open_rows(tmp_path / "Xy.npy", label=2)
    assert isinstance(table.X, LazyRows) and is_lazy_or_dask(table.X)
    np.testing.assert_array_equal(table.y, y)
    np.testing.assert_array_equal(np.asarray(table.X), X)


def test_open_parquet(X, y, parquet):
    with options(memory="1MB"):
        table = datasets.open_rows(parquet)
        blocks = list(table.X)
        assert len(blocks) > 2 and table.X.n_rows == 2000
        np.testing.assert_array_equal(joined(table.X), X)
    np.testing.assert_array_equal(table.y, np.array(["a", "b", "c"])[y])
    assert table.feature_names == [f"f{i}" for i in range(8)]
    one = datasets.open_rows(parquet / "part1.parquet", label="class")
    np.testing.assert_array_equal(joined(one.X), X[1300:])
    whole = datasets.read_table(parquet / "part0.parquet")
    np.testing.assert_array_equal(joined(one.X), joined(table.X)[1300:])
    np.testing.assert_array_equal(whole.X, X[:1300])


def test_learning_from_parquet(X, parquet):
    table = datasets.open_rows(parquet)
    features = NystroemMap(RBF(3.0), X[:40])
    start = features.fit_transform(X)[:10]
    learner = MOD(10, 2, max_iter=2, init=start, random_state=0)
    model = make_pipeline(features, ResidualClassifier(learner))
    expected = clone(model).fit(X, table.y)
    with options(memory="1MB"):
        found = model.fit(table.X, table.y)
        labels = joined(found.predict(table.X))
    np.testing.assert_array_equal(labels, expected.predict(X))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda folder: folder / "absent.npy", "does not exist"),
        (lambda folder: folder, "nor a folder of .parquet files"),
        (lambda folder: _written(folder / "text.csv", b"1,2"), "a .npy or .parquet"),
        (lambda folder: _written(folder / "bad.npy", b"no array"), "damaged"),
        (lambda folder: _saved(folder / "flat.npy", np.ones(3)), "needs a matrix"),
    ],
    ids=["absent", "folder", "text", "damaged", "flat"],
)
def test_files_that_cannot_be_opened(make, message, tmp_path):
    with pytest.raises(datasets.DataFileError, match=message):
        datasets.open_rows(make(tmp_path))


def _written(path, content):
    path.write_bytes(content)
    return path


def _saved(path, array):
    np.save(path, array)
    return path


def test_empty_cells_of_parquet(tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pandas.DataFrame({"a": [1.0, None, 2.0], "b": [1, 2, 3]})
    frame.to_parquet(tmp_path / "holes.parquet")
    table = datasets.open_rows(tmp_path / "holes.parquet")
    with pytest.raises(datasets.DataFileError, match="column 'a', row 1 is empty"):
        list(table.X)


@pytest.mark.rounding
@pytest.mark.parametrize("kind", ["array", "lazy", "blocks", "iterator", "vector"])
def test_write_rows(kind, X, disk, tmp_path):
    rows = {
        "array": X,
        "lazy": LazyRows(disk),
        "blocks": Blocks(lambda: iter([X[:7], X[7:]])),
        "iterator": iter([X[:7], X[7:]]),
        "vector": X[:, 0],
    }[kind]
    assert datasets.write_rows(tmp_path / "out.npy", rows) == 2000
    expected = X[:, 0] if kind == "vector" else X
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), expected)


def test_a_file_appears_when_it_is_complete(X, tmp_path):
    def broken():
        yield X
        raise OSError("disk gone")

    with pytest.raises(OSError, match="disk gone"):
        datasets.write_rows(tmp_path / "out.npy", broken())
    with pytest.raises(ValueError, match="without blocks"):
        datasets.write_rows(tmp_path / "out.npy", iter([]))
    assert list(tmp_path.glob("*out.npy*")) == []


# Memory


PEAK = """
import numpy as np
from pathlib import Path
from sklearn.pipeline import make_pipeline
from kernlets import MOD, RBF, NystroemMap, options

def status(field):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) / 1e3

def model():
    features = NystroemMap(RBF(8.0), "coreset", n_landmarks=30, random_state=0)
    return make_pipeline(features, MOD(20, 2, max_iter=1, random_state=0))

X = np.load({path!r}, mmap_mode="r")
with options(memory="20MB", n_threads=2):
    model().fit(np.array(X[:5000]))
    base = status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")
    fitted = model().fit(X)
    codes = fitted.transform(X)
    total = sum(codes[i : i + 50_000].sum() for i in range(0, len(codes), 50_000))
    print(status("VmHWM") - base, X.nbytes / 1e6, codes.nbytes / 1e6, total)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="peaks are read from /proc")
def test_memory_is_bounded_whatever_is_on_disk(tmp_path):
    """All of the process's memory, with the pages of the file that it has mapped."""
    path = str(tmp_path / "X.npy")
    rng = np.random.default_rng(0)
    parts = (rng.standard_normal((100_000, 50), dtype="f4") for _ in range(8))
    datasets.write_rows(path, parts)
    script = textwrap.dedent(PEAK.format(path=path))
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    peak, data, codes, total = map(float, done.stdout.split())
    assert data == 160 and codes == 64 and np.isfinite(total)
    assert peak < 80


# Command line


def run(*arguments) -> Result:
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert done.exit_code == 0, done.output
    return done


FIT = "--method mod --map nystroem --n-landmarks 40 --atoms 8 --iterations 3".split()


def assert_same_atoms(first, second):
    for a, b in zip(first[-1].learners_, second[-1].learners_, strict=True):
        np.testing.assert_allclose(a.components_, b.components_, atol=1e-8)


@pytest.mark.rounding
def test_command_line_with_little_memory(X, y, tmp_path, monkeypatch):
    np.save(tmp_path / "Xy.npy", np.column_stack([X, y]))
    whole, bounded = tmp_path / "whole.model", tmp_path / "bounded.model"
    data, label = tmp_path / "Xy.npy", ("--label", "-1")
    run("fit", data, "-m", whole, *label, *FIT)
    run("fit", data, "-m", bounded, *label, *FIT, "--memory", "200kB")
    assert_same_atoms(load(whole), load(bounded))
    monkeypatch.setattr("kernlets.cli.input_data.BATCH_BYTES", 10_000)
    shown = run("score", bounded, data, *label, "--memory", "200kB").output
    assert shown == run("score", whole, data, *label).output
    for suffix in (".npy", ".csv", ".npz"):
        outputs = [tmp_path / f"{name}{suffix}" for name in ("a", "b")]
        run("transform", bounded, data, *label, "-o", outputs[0], "--memory", "200kB")
        run("transform", bounded, data, *label, "-o", outputs[1])
        first, second = (
            (datasets.read_table(o).X for o in outputs)
            if (suffix == ".npy")
            else (o.read_bytes() for o in outputs)
        )
        assert np.array_equal(first, second)


def test_command_line_on_parquet(X, y, parquet, tmp_path):
    model, out = tmp_path / "model", tmp_path / "labels.npy"
    small = ("--memory", "400kB")
    shown = run("fit", parquet, "-m", model, *FIT, *small).output
    assert "2000 of 8 features" in shown and "classes" in shown
    run("predict", model, parquet, "-o", out, *small)
    found = np.load(out)
    assert found.shape == (2000,) and set(found) <= {"a", "b", "c"}
    assert np.mean(found == np.array(["a", "b", "c"])[y]) > 0.6


@pytest.mark.parametrize("suffix", [".npy", ".parquet"])
@pytest.mark.parametrize("method", [["--n-landmarks", "40"], ["--method", "ksvd"]])
def test_the_command_line_takes_a_method_that_reads_blocks(
    suffix, method, X, parquet, tmp_path
):
    """K-SVD needs all codes at once: of rows on disk it updates all atoms from sums."""
    np.save(tmp_path / "x.npy", X)
    data = tmp_path / "x.npy" if suffix == ".npy" else parquet
    model, sizes = tmp_path / "m", ["--atoms", "8", "--iterations", "2"]
    shown = run("fit", data, "-m", model, *method, *sizes, "--memory", "200kB").output
    assert "update    ksvd-parallel, because rows do not fit into memory\n" in shown
    learner = load(model)[-1]
    learner = getattr(learner, "learner", learner)
    assert learner.update == "ksvd-parallel"
    if suffix == ".npy":
        shown = run("fit", data, "-m", model, *method, *sizes).output
        assert "ksvd-parallel" not in shown


@pytest.mark.parametrize("suffix", [".npy", ".parquet"])
@pytest.mark.parametrize(
    "method",
    ["lc-ksvd", "ksvd --set steady=True", "kernel-ksvd", "src", "auto"],
)
def test_the_command_line_names_its_own_remedies(
    method, suffix, X, y, parquet, tmp_path, monkeypatch
):
    """A refusal comes before the fit begins, and tells of options, not of Python."""
    np.save(tmp_path / "x.npy", np.column_stack([X, y]))
    data = [tmp_path / "x.npy", "--label", "8"] if suffix == ".npy" else [parquet]
    began = []
    monkeypatch.setattr(NystroemMap, "_fit", lambda *_: began.append(1))
    mapped = ["--map", "nystroem"] if method in ("lc-ksvd", "ksvd") else []
    arguments = ["fit", *data, "-m", tmp_path / "m", "--memory", "100kB"]
    arguments += ["--method", *method.split(), *mapped]
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert done.exit_code == 1 and not began
    assert "--memory" in done.output and "--method" in done.output
    for python in ("kernlets.", "options(", "KSVD(", "np.", "n_landmarks="):
        assert python not in done.output.removeprefix("error: ").split("needs")[1]


def test_command_line_on_a_cluster(X, y, parquet, tmp_path, monkeypatch):
    distributed = pytest.importorskip("distributed")
    np.save(tmp_path / "Xy.npy", np.column_stack([X, y]))
    here, there = tmp_path / "here", tmp_path / "there"
    data, label = tmp_path / "Xy.npy", ("--label", "8")
    run("fit", data, "-m", here, *label, *FIT)
    with distributed.LocalCluster(
        n_workers=1, processes=False, dashboard_address=None
    ) as cluster:
        address = ("--scheduler", cluster.scheduler_address)
        run("fit", data, "-m", there, *label, *FIT, *address)
        run("predict", there, data, *label, "-o", tmp_path / "there.npy", *address)
        scores = run("score", there, data, *label, *address).output
        run("transform", there, data, *label, "-o", tmp_path / "codes.npz", *address)
        run("fit", parquet, "-m", tmp_path / "third", *FIT, *address)
    assert_same_atoms(load(here), load(there))
    run("predict", here, data, *label, "-o", tmp_path / "here.npy")
    np.testing.assert_array_equal(
        np.load(tmp_path / "here.npy"), np.load(tmp_path / "there.npy")
    )
    assert scores == run("score", here, data, *label).output
    assert (tmp_path / "codes.npz").exists() and (tmp_path / "third").exists()
    run("transform", there, data, *label, "-o", tmp_path / "local.npz")
    codes, local = (sparse.load_npz(tmp_path / f"{k}.npz") for k in ("codes", "local"))
    np.testing.assert_allclose(codes.toarray(), local.toarray(), atol=1e-12)
    monkeypatch.setattr("kernlets.data.on_dask.CONNECT_TIMEOUT", 0.5)
    done = CliRunner().invoke(
        app, ["score", str(here), str(data), "--scheduler", "tcp://127.0.0.1:1"]
    )
    assert done.exit_code == 1 and "after 0.5 s; give an address" in done.output


def takes_blocks(Learner):
    try:
        Learner(max_iter=1).fit([np.eye(4), np.eye(4)])
    except (TypeError, ValueError):
        return False
    return hasattr(Learner, "components_")


FROM_BLOCKS = [
    *(Learner for Learner in LEARNERS.values() if takes_blocks(Learner)),
    partial(KSVD, update="ksvd-parallel"),
]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("init", ["samples", "kmeans", "svd", "normal"])
@pytest.mark.parametrize("Learner", FROM_BLOCKS)
def test_blocks_give_the_atoms_of_an_array(Learner, init, gaps, rng):
    X = rng.standard_normal((120, 6)) + 2 * rng.standard_normal(6)
    X[:25] *= 0.1  # rows of the first blocks are not like the others
    X[5:9] = 0
    if gaps:
        if init == "svd":
            return  # rows with gaps have no singular vectors
        X[rng.random(X.shape) < 0.1] = np.nan
    blocks = Blocks(lambda: iter(np.split(X, [20, 21, 70])))
    given = {"n_components": 5, "n_nonzero_coefs": 2, "random_state": 0}
    learner = Learner(init=init, max_iter=3, **given)
    expected = clone(learner).fit(X).components_
    for rows in (blocks, list(blocks)):
        found = clone(learner).fit(rows).components_
        np.testing.assert_allclose(found, expected, atol=1e-5)


def test_default_number_of_atoms_of_blocks_is_that_of_an_array(rng):
    X = rng.standard_normal((4000, 300))
    X[:2500] = 0
    expected = MOD(max_iter=1, random_state=0).fit(X)
    found = MOD(max_iter=1, random_state=0).fit([X[:3000], X[3000:]])
    assert found.dictionary_.n_atoms == expected.dictionary_.n_atoms == 375


def test_blocks_that_change_between_passes_are_refused(rng):
    lengths = iter([50, 50, 20])
    blocks = Blocks(lambda: iter([rng.standard_normal((next(lengths), 4))]))
    learner = MOD(10, max_iter=1, random_state=0)
    with pytest.raises(ValueError, match="the same in each pass"):
        learner.fit(blocks)


def test_a_kernel_matrix_in_little_memory(rng, tmp_path):
    X = rng.standard_normal((12, 8)).astype(np.float32)
    np.save(tmp_path / "rows.npy", X)
    rows = np.load(tmp_path / "rows.npy", mmap_mode="r")
    model = KernelMOD("rbf:0.1", 2, n_nonzero_coefs=1, max_iter=2, random_state=0)
    wanted = model.fit(X).dictionary_.coefs
    with options(memory="1KB", block_rows=8):
        found = model.fit(rows).dictionary_.coefs
    np.testing.assert_allclose(found, wanted, atol=1e-5)


def test_reduced_dictionaries_in_little_memory(rng, tmp_path):
    np.save(tmp_path / "rows.npy", rng.standard_normal((20, 2)).astype(np.float32))
    rows = np.load(tmp_path / "rows.npy", mmap_mode="r")
    model = ReducedKernelDL(
        "rbf:1", 2, n_nonzero_coefs=2, anchors=Anchors(7, "samples"), init="anchors"
    )
    with options(memory="1KB"):
        found = model.set_params(max_iter=3, random_state=0).fit(rows).history_
    np.testing.assert_allclose(
        found["objective"], model.fit(np.array(rows)).history_["objective"], rtol=1e-4
    )


def test_a_kernel_matrix_on_disk_is_looked_at(rng, tmp_path):
    K = np.eye(300)
    K[7, 11] = K[11, 7] = np.nan  # not among the samples whose eigenvalues are found
    np.save(tmp_path / "matrix.npy", K)
    matrix = np.load(tmp_path / "matrix.npy", mmap_mode="r")
    for model in (SRCClassifier("precomputed"), KernelKSVD("precomputed", 3)):
        with pytest.raises(ValueError, match="NaN or infinity"):
            model.fit(matrix, np.arange(300) % 2)
