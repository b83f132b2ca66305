"""The command line and the user's files: columns by name, and what is overwritten."""

from __future__ import annotations

import errno
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import warnings
from collections import namedtuple
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from typer.testing import CliRunner, Result

from kernlets import KSVD, NystroemMap, SRCClassifier, load, registry, save
from kernlets.cli import app, output_files
from kernlets.datasets import read_table
from kernlets.io.row_numbers import row_ids

FIT = ["--method", "ksvd", "--atoms", "8", "--scale", "none"]
NAMES = ["sepal_length", "sepal_width", "petal_length", "petal_width"]
posix = pytest.mark.skipif(os.name != "posix", reason="needs POSIX")


def run(*arguments: Any) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def ok(*arguments: Any) -> str:
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    assert "Traceback" not in result.output
    return result.stdout


def error(*arguments: Any) -> str:
    """What a command that fails says: one line, after warnings if there are any."""
    result = run(*arguments)
    assert result.exit_code == 1, result.output
    *warned, told = result.stderr.splitlines()
    assert all(line.startswith("warning: ") for line in warned)
    assert told.startswith("error: ") and result.stdout == ""
    return result.stderr


# -------------------------------------------------------------------- columns by name


def write_columns(path: Path, columns: dict[str, Any]) -> Path:
    if path.suffix == ".parquet":
        arrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
        import pyarrow.parquet

        pyarrow.parquet.write_table(arrow.table(columns), path)
        return path
    lines = [",".join(map(str, row)) for row in zip(*columns.values(), strict=True)]
    path.write_text("\n".join([",".join(columns), *lines, ""]))
    return path


@pytest.fixture(scope="module")
def iris() -> dict[str, Any]:
    X, y = load_iris(return_X_y=True)
    return {**dict(zip(NAMES, X.T, strict=True)), "species": y}


def reordered(columns: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: columns[name] for name in names}


@pytest.fixture(scope="module", params=[".csv", ".parquet"])
def files(
    request: Any, iris: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Path]:
    """The same rows with columns in several orders, and a model."""
    folder, suffix = tmp_path_factory.mktemp("iris"), request.param
    tables = {
        "plain": iris,
        "mixed": reordered(iris, "species", *NAMES[::-1]),
        "more": reordered({**iris, "note": ["x"] * 150}, "note", *NAMES, "species"),
        "less": reordered(iris, *NAMES[1:], "species"),
        "bare": reordered(iris, *NAMES[::-1]),
        "other": {name.upper(): column for name, column in iris.items()},
    }
    found = {
        name: write_columns(folder / f"{name}{suffix}", columns)
        for name, columns in tables.items()
    }
    found["model"] = folder / "iris.model"
    ok("fit", found["plain"], "-m", found["model"], "--label", "species", *FIT)
    return found


def test_columns_in_another_order_give_the_same(files: dict[str, Path]) -> None:
    label = ["--label", "species"]
    expected = ok("score", files["model"], files["plain"], *label)
    assert float(expected.split()[1]) > 0.8
    assert ok("score", files["model"], files["mixed"], *label) == expected
    predicted = ok("predict", files["model"], files["plain"], *label)
    assert ok("predict", files["model"], files["bare"]) == predicted
    assert ok("predict", files["model"], files["mixed"], *label) == predicted


def test_codes_of_columns_in_another_order(
    files: dict[str, Path], tmp_path: Path
) -> None:
    outs = [tmp_path / "plain.npy", tmp_path / "bare.npy"]
    ok("transform", files["model"], files["plain"], "-o", outs[0], "--label", "species")
    ok("transform", files["model"], files["bare"], "-o", outs[1])
    np.testing.assert_array_equal(np.load(outs[0]), np.load(outs[1]))


def test_missing_and_extra_columns_are_named(files: dict[str, Path]) -> None:
    model = files["model"]
    told = error("predict", model, files["less"])
    assert "lacks the model's columns 'sepal_length', but has 'species'" in told
    told = error("predict", model, files["other"])
    assert "'sepal_length', 'sepal_width', 'petal_length', 'petal_width'" in told
    result = run("predict", model, files["more"], "--label", "species")
    assert result.exit_code == 0
    assert "are left out: 'note'" in result.stderr
    assert result.stdout == ok("predict", model, files["bare"])
    told = error("score", model, files["plain"])
    assert "left out: 'species'" in told and "name them with --label" in told
    told = error("score", model, files["plain"], "--label", "petal_width")
    assert "'petal_width' is a feature of the model" in told


def test_the_test_set_is_matched_by_name(
    files: dict[str, Path], tmp_path: Path
) -> None:
    options = ["--label", "species", *FIT]
    fit = ["fit", files["plain"], "-m", tmp_path / "m", *options]
    tests = ("plain", "mixed")
    last = [ok(*fit, "--test", files[name]).splitlines()[-1] for name in tests]
    assert last[0] == last[1] and last[0].startswith("accuracy")
    assert "lacks the model's columns" in error(*fit, "--test", files["less"])


def test_names_are_where_scikit_learn_keeps_them(
    files: dict[str, Path], iris: dict[str, Any]
) -> None:
    model = load(files["model"])
    assert list(model.feature_names_in_) == NAMES
    assert "by name: 'sepal_length', 'sepal_width', " in ok("info", files["model"])
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(reordered(iris, *NAMES))
    assert np.mean(model.predict(frame) == iris["species"]) > 0.9
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[NAMES[::-1]])


def test_a_model_of_python_knows_its_columns(
    files: dict[str, Path], iris: dict[str, Any], tmp_path: Path
) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(reordered(iris, *NAMES))
    model = KSVD(5, 2, random_state=0).fit(frame)
    save(model, tmp_path / "m")
    told = ok("score", tmp_path / "m", files["bare"])
    assert told.split()[-1] == f"{-model.score(frame):.6g}"


def test_files_without_names_are_matched_by_position(
    files: dict[str, Path], iris: dict[str, Any], tmp_path: Path
) -> None:
    X = np.column_stack([iris[name] for name in NAMES])
    np.save(tmp_path / "x.npy", X)
    np.savetxt(tmp_path / "x.csv", X, delimiter=",")
    predicted = ok("predict", files["model"], files["bare"])
    for name in ("x.npy", "x.csv"):
        assert ok("predict", files["model"], tmp_path / name) == predicted
    np.save(tmp_path / "narrow.npy", X[:, :3])
    assert "has 3 features, the model 4" in error(
        "predict", files["model"], tmp_path / "narrow.npy"
    )
    # a model without names takes named columns by position as well
    ok("fit", tmp_path / "x.npy", "-m", tmp_path / "m", *FIT)
    assert "4, by position" in ok("info", tmp_path / "m")
    ok("transform", tmp_path / "m", files["bare"], "-o", tmp_path / "codes.npz")


def test_columns_of_files_larger_than_memory(
    files: dict[str, Path], tmp_path: Path
) -> None:
    if files["plain"].suffix == ".csv":
        pytest.skip("text is read whole")
    small = ["--memory", "10kB"]
    fit = ["--method", "mod", "--atoms", "8", "--scale", "none", "--label", "species"]
    ok("fit", files["plain"], "-m", tmp_path / "m", *fit, *small)
    assert list(load(tmp_path / "m").feature_names_in_) == NAMES
    expected = ok("predict", tmp_path / "m", files["bare"])
    assert ok("predict", tmp_path / "m", files["bare"], *small) == expected
    label = ["--label", "species"]
    assert ok("predict", tmp_path / "m", files["mixed"], *label, *small) == expected


def test_twins_are_matched_by_position_with_a_warning(tmp_path: Path) -> None:
    rows = np.random.default_rng(0).standard_normal((40, 3))
    lines = ["a,a,b", *(",".join(map(str, row)) for row in rows)]
    (tmp_path / "d.csv").write_text("\n".join(lines))
    result = run("fit", tmp_path / "d.csv", "-m", tmp_path / "m", *FIT)
    assert result.exit_code == 0
    assert "some columns have the same name" in result.stderr
    assert not hasattr(load(tmp_path / "m"), "feature_names_in_")


def test_a_header_of_numbers(tmp_path: Path) -> None:
    rows = np.random.default_rng(0).standard_normal((40, 3)).round(3).tolist()
    lines = ["0,1,2", *(",".join(map(str, row)) for row in rows)]
    data = tmp_path / "d.csv"
    data.write_text("\n".join(lines))
    result = run("fit", data, "-m", tmp_path / "m", *FIT)
    assert "40 of 3 features" in result.stdout and "taken for a header" in result.stderr
    result = run("fit", data, "-m", tmp_path / "m", *FIT, "--header")
    assert "40 of 3 features" in result.stdout and result.stderr == ""
    result = run("fit", data, "-m", tmp_path / "m", *FIT, "--no-header")
    assert "41 of 3 features" in result.stdout and result.stderr == ""


@pytest.mark.parametrize(
    ("cell", "told"),
    [("", "the cell is empty"), ("nan", "'nan' stands for no value")],
)
def test_a_gap_names_line_and_column(tmp_path: Path, cell: str, told: str) -> None:
    """Where the model, which has seen no gaps, does not take them."""
    rows = "1,2,x\n3,4,y\n2,2,x\n3,5,y\n"
    (tmp_path / "d.csv").write_text(f"a,b,kind\n{rows}")
    how = ["--label", "kind", "--map", "fourier", "--atoms", "1", "--sparsity", "1"]
    ok("fit", tmp_path / "d.csv", "-m", tmp_path / "m", *how)
    (tmp_path / "new.csv").write_text(f"a,b\n1,2\n3,{cell}\n")
    text = error("predict", tmp_path / "m", tmp_path / "new.csv")
    assert f"column 'b', line 3: {told}" in text


def numbered(
    path: Path, iris: dict[str, Any], ids: list[Any], name: str = "id"
) -> Path:
    """Iris with a first column that tells rows apart."""
    return write_columns(path, {name: ids, **iris})


TEXT = [f"plant {j}" for j in range(150)]
SHUFFLED = [int(j) for j in np.random.default_rng(0).permutation(150)]
SPARSE = [int(j) ** 2 % 10_007 for j in range(1, 151)]  # all different, in no order


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize(
    ("ids", "name"),
    [
        (list(range(150)), "a"),
        ([3 * j for j in range(150)], "a"),
        (SHUFFLED, "a"),
        (SPARSE, "PlantId"),
        (SPARSE, "plant_ID"),
        (TEXT, "a"),
    ],
)
def test_columns_that_number_rows_are_left_out(
    tmp_path: Path, iris: dict[str, Any], ids: list[Any], name: str, suffix: str
) -> None:
    data = numbered(tmp_path / f"d{suffix}", iris, ids, name)
    model, label = tmp_path / "m", ["--label", "species"]
    fit = ["fit", data, "-m", model, *label, *FIT]
    result = run(*fit, "--test", data)
    told = "holds text with more than 15 values" if ids is TEXT else "only tells rows"
    assert f"column '{name}' {told}" in result.stderr
    assert "150 of 4 features" in result.stdout and "accuracy" in result.stdout
    assert list(load(model).feature_names_in_) == NAMES
    expected = ok("fit", data, "-m", tmp_path / "n", *label, *FIT, "--test", data)
    assert result.stdout.splitlines()[-1] == expected.splitlines()[-1]
    for command in (["score", *label], ["predict"], ["explain"]):
        done = run(command[0], model, data, *command[1:])
        assert done.exit_code == 0 and f"left out: '{name}'" in done.stderr
    n_features = 154 if ids is TEXT else 5
    assert f"150 of {n_features} features" in ok(*fit, "--keep", name)
    assert f"'{name}" in ok("info", model)


@pytest.mark.parametrize("memory", [[], ["--memory", "10kB"]])
@pytest.mark.parametrize("suffix", [".npy", ".npz", ".csv"])
def test_columns_that_number_rows_are_remembered_by_position(
    tmp_path: Path, iris: dict[str, Any], suffix: str, memory: list[str]
) -> None:
    if memory and suffix != ".npy":
        pytest.skip("these are read whole")
    X = np.column_stack([np.arange(150), *(iris[name] for name in NAMES)])
    data, bare = tmp_path / f"d{suffix}", tmp_path / f"b{suffix}"
    for path, rows in ((data, X), (bare, X[:, 1:])):
        if suffix == ".npy":
            np.save(path, rows)
        elif suffix == ".npz":
            np.savez(path, X=rows)
        else:
            np.savetxt(path, rows, delimiter=",")
    fit = ["--method", "mod", "--atoms", "8", "--scale", "none", *memory]
    result = run("fit", data, "-m", tmp_path / "m", *fit)
    assert "column '0' only tells rows apart" in result.stderr
    expected = ok("fit", bare, "-m", tmp_path / "n", *fit)
    assert "150 of 4 features" in expected and "150 of 4 features" in result.stdout
    score = ok("score", tmp_path / "n", bare)
    for path in (data, bare):
        np.testing.assert_allclose(
            float(ok("score", tmp_path / "m", path, *memory).split()[-1]),
            float(score.split()[-1]),
            rtol=1e-4,
        )
    kept = ok("fit", data, "-m", tmp_path / "m", *fit, "--keep", "0")
    assert "150 of 5 features" in kept
    assert "has no column '7'" in error(
        "fit", data, "-m", tmp_path / "m", *fit, "--keep", "7"
    )


@pytest.mark.parametrize("name", ["iris", "wine", "breast_cancer", "digits"])
def test_no_feature_of_a_real_table_is_left_out(tmp_path: Path, name: str) -> None:
    import sklearn.datasets

    bunch = getattr(sklearn.datasets, f"load_{name}")()
    path = tmp_path / "d.csv"
    names = [str(feature) for feature in bunch.feature_names]
    columns = dict(zip(names, bunch.data.T, strict=True))
    write_columns(path, {**columns, "target": bunch.target})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_table(path, keep=[]).feature_names == names


def test_measurements_that_are_all_different_stay(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    columns = {
        "weight": rng.random(200),
        "rising": np.sort(rng.random(200)),
        "income": rng.choice(10**6, 200, replace=False),
        "grid": rng.choice(10**6, 200, replace=False),
    }
    path = write_columns(tmp_path / "d.csv", columns)
    with pytest.warns(UserWarning, match="whole number in 'income', 'grid'"):
        assert read_table(path, keep=[]).feature_names == list(columns)
    few = write_columns(tmp_path / "f.csv", {"a": [1, 2, 3], "b": [4, 5, 6]})
    assert read_table(few, keep=[]).X.shape == (3, 2)
    assert read_table(path).X.shape == (200, 4)


@pytest.mark.parametrize(
    ("names", "leave"),
    [
        ("id ID Id patient_id customerID PassengerId index row.nr No uuid", True),
        ("acid paid grid Fluid monkey nox price_index bodyMassIndex solid", False),
    ],
)
def test_names_of_columns_that_number_rows(names: str, leave: bool) -> None:
    X = np.array([[5.0], [3.0], [8.0]])
    for name in names.split():
        assert row_ids(X, [name]) == ([0] if leave else [], []), name


def labelled(path: Path, labels: list[str]) -> Path:
    """Two groups of rows of two features, with these labels in turn."""
    rng = np.random.default_rng(0)
    rows = rng.random((40, 2)) + 3 * np.eye(2)[np.arange(40) % 2]
    cells = [labels[i % len(labels)] for i in range(40)]
    lines = [f"{a:.3f},{b:.3f},{c}" for (a, b), c in zip(rows, cells, strict=True)]
    path.write_text("\n".join(["a,b,kind", *lines]))
    return path


def test_predictions_are_written_as_labels_were(tmp_path: Path) -> None:
    data = labelled(tmp_path / "d.csv", ["007", "7"])
    model, out = tmp_path / "m", tmp_path / "out.csv"
    told = ok("fit", data, "-m", model, "--label", "kind")
    assert re.search(r"classes +2\n", told)
    ok("predict", model, data, "-o", out)
    header, *lines = out.read_text().split()
    assert header == "row,label"
    assert lines == [f"{row},{('007', '7')[row % 2]}" for row in range(40)]
    assert "accuracy  1.0000" in ok("score", model, data, "--label", "kind")


def test_labels_that_are_no_classes(tmp_path: Path) -> None:
    fit = ["-m", tmp_path / "m", "--label", "kind"]
    data = labelled(tmp_path / "d.csv", ["1.0", "2.0"])
    ok("fit", data, *fit)
    data = labelled(tmp_path / "d.csv", ["1.0", "2.5"])
    assert "labels such as 2.5 are measurements" in error("fit", data, *fit)
    data = labelled(tmp_path / "d.csv", [f"row{i}" for i in range(40)])
    result = run("fit", data, *fit, "--atoms", "1", "--sparsity", "1")
    assert "every row has a label of its own" in result.stderr


def test_what_is_larger_than_memory_says_how_to_raise_it(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "d.npz", X=np.zeros((500, 500)))
    model = tmp_path / "m"
    told = error("fit", tmp_path / "d.npz", "-m", model, "--memory", "1MB")
    assert "takes 1.91 MiB" in told and "raise it with --memory" in told
    assert not model.exists()


KNOWN = ["lkdl", "src", "lc-ksvd", "outliers"]
FILLED = ["--search 2s", "--map fourier"]


@pytest.mark.parametrize("method", [*KNOWN, *FILLED])
def test_a_fit_of_rows_with_empty_cells(tmp_path: Path, method: str) -> None:
    rng = np.random.default_rng(0)
    rows = rng.random((90, 4)).round(3) + 2 * np.eye(3, 4)[np.arange(90) % 3]
    lines = [
        ",".join(["" if rng.random() < 0.1 else str(cell) for cell in row] + [kind])
        for row, kind in zip(rows, "xyz" * 30, strict=True)
    ]
    data, model = tmp_path / "d.csv", tmp_path / "m"
    data.write_text("\n".join(["a,b,c,d,kind", *lines]))
    how = method.split() if method in FILLED else ["--method", method]
    told = ok("fit", data, "-m", model, "--label", "kind", *how)
    way = "filled in over similar rows" if method in FILLED else "taken as unknown"
    assert way in told
    told = ok("score", model, data, "--label", "kind")
    if method != "outliers":
        assert float(re.search(r"accuracy +([\d.]+)", told)[1]) > 0.8


def test_empty_cells_are_unknown_to_a_model_that_takes_them(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = rng.random((60, 4)).round(3) + 2 * np.eye(2, 4)[np.arange(60) % 2]
    names = np.array(["x", "y"])[np.arange(60) % 2]
    lines = [",".join([*map(str, r), k]) for r, k in zip(rows, names, strict=True)]
    (tmp_path / "d.csv").write_text("\n".join(["a,b,c,d,kind", *lines]))
    whole, options = [tmp_path / "d.csv", "-m", tmp_path / "m"], ["--label", "kind"]
    ok("fit", *whole, *options, "--scale", "unit")
    (tmp_path / "new.csv").write_text("a,b,c,d\n2.5,,0.5,NA\n0.5,2.5,?,0.5\n")
    told = ok("predict", tmp_path / "m", tmp_path / "new.csv")
    found = told.split()
    assert found[-2:] == ["x", "y"]
    (tmp_path / "new.csv").write_text("a,b,c,d\n2.5,inf,0.5,1\n")
    told = error("predict", tmp_path / "m", tmp_path / "new.csv")
    assert "not finite" in told


# ------------------------------------------------------------------ what is overwritten


@pytest.fixture
def data(tmp_path: Path, iris: dict[str, Any]) -> Path:
    return write_columns(tmp_path / "iris.csv", iris)


def test_the_data_are_not_overwritten(data: Path) -> None:
    before = data.read_bytes()
    told = error("fit", data, "-m", data, *FIT)
    assert "is not a model" in told and "--force" in told
    assert data.read_bytes() == before
    assert "is not a model" in error("fit", data, "-m", data, *FIT, "--test", data)


def test_another_file_is_overwritten_with_force_only(
    data: Path, tmp_path: Path
) -> None:
    notes = tmp_path / "notes.old"
    notes.write_text("years of work")
    assert "--force" in error("fit", data, "-m", notes, *FIT)
    assert notes.read_text() == "years of work"
    ok("fit", data, "-m", notes, *FIT, "--force")
    assert load(notes).n_features_in_ == 5


def test_models_and_empty_files_are_overwritten(data: Path, tmp_path: Path) -> None:
    model = tmp_path / "m"
    model.touch()
    ok("fit", data, "-m", model, *FIT)
    ok("fit", data, "-m", model, *FIT, "--set", "n_components=3")
    assert load(model).dictionary_.n_atoms == 3


@pytest.mark.parametrize("command", ["predict", "transform"])
def test_outputs_are_no_inputs(data: Path, tmp_path: Path, command: str) -> None:
    model = tmp_path / "model.npz"  # a name that an output may have
    ok("fit", data, "-m", tmp_path / "m", *FIT, "--label", "species")
    (tmp_path / "m").rename(model)
    link = tmp_path / "link.csv"
    os.link(data, link)
    use = [command, model, data, "--label", "species"]
    before = data.read_bytes(), model.read_bytes()
    for output in (data, model, link):
        told = error(*use, "-o", output)
        assert "is read by this command" in told and "--force" in told
    assert (data.read_bytes(), model.read_bytes()) == before
    other = tmp_path / "other.csv"
    other.write_text("replaced without a word")
    ok(*use, "-o", other)
    ok(*use, "-o", data, "--force")
    assert data.read_bytes() == other.read_bytes() != before[0]


def special(path: Path, kind: str) -> Path:
    """Something that is not a regular file."""
    if kind == "device":
        os.mknod(path, 0o666 | 0o020000, os.makedev(1, 3))  # as /dev/null
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        socket.socket(socket.AF_UNIX).bind(str(path))
    else:
        path.symlink_to("/dev/null")
    return path


@posix
@pytest.mark.parametrize("force", [[], ["--force"]])
@pytest.mark.parametrize("kind", ["device", "pipe", "socket", "link"])
def test_what_is_not_a_regular_file_is_left_alone(
    data: Path, tmp_path: Path, kind: str, force: list[str]
) -> None:
    """As root, too, who could replace /dev/null by a model."""
    try:
        path = special(tmp_path / "out.npz", kind)
    except PermissionError:
        pytest.skip("only root makes devices")
    before = path.lstat()
    assert "regular file" in error("fit", data, "-m", path, *FIT, *force)
    ok("fit", data, "-m", tmp_path / "m", *FIT)
    for command in ("predict", "transform"):
        told = error(command, tmp_path / "m", data, "-o", path, *force)
        assert "regular file" in told
    after = path.lstat()
    assert (after.st_ino, after.st_mode) == (before.st_ino, before.st_mode)


def never(*_: Any, **__: Any) -> Any:
    raise AssertionError("the work began before the output was checked")


@pytest.fixture
def no_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernlets.cli.fit.fit_with_progress", never)
    monkeypatch.setattr("kernlets.cli.input_data.read_table", never)


@pytest.mark.usefixtures("no_work")
def test_places_are_checked_before_the_fit(data: Path, tmp_path: Path) -> None:
    assert "no such folder" in error("fit", data, "-m", tmp_path / "a" / "m")
    assert "is a folder" in error("fit", data, "-m", tmp_path)
    link, nowhere = tmp_path / "link", tmp_path / "not" / "there"
    link.symlink_to(nowhere / "m")
    assert f"create {nowhere} first" in error("fit", data, "-m", link)
    taken = ["--checkpoint", data]
    assert "cannot be made a folder" in error("fit", data, "-m", tmp_path / "m", *taken)


@pytest.mark.usefixtures("no_work")
def test_a_folder_of_checkpoints_is_not_made_where_a_file_is_named(
    data: Path, tmp_path: Path
) -> None:
    new = tmp_path / "new"
    assert "name another folder" in error("fit", data, "-m", new, "--checkpoint", new)
    assert "name another folder" in error("fit", new, "-m", data, "--checkpoint", new)
    assert not new.exists()


@posix
@pytest.mark.usefixtures("no_work")
def test_folders_that_cannot_be_written_are_found_before_the_fit(data: Path) -> None:
    closed = data.parent / "closed"
    closed.mkdir(0o500)
    if os.access(closed, os.W_OK):  # root may write everywhere but here
        closed = Path("/proc")
        if not closed.is_dir():
            pytest.skip("no folder that root cannot write to")
    assert "cannot be written" in error("fit", data, "-m", closed / "m", *FIT)


@posix
@pytest.mark.usefixtures("no_work")
def test_write_protected_files_are_kept(data: Path, tmp_path: Path) -> None:
    model = tmp_path / "m"
    save(KSVD(), model)
    model.chmod(0o400)
    if os.access(model, os.W_OK):
        pytest.skip("root may write everywhere")
    assert "write-protected" in error("fit", data, "-m", model, *FIT)


Disk = namedtuple("Disk", "total used free")


def test_a_full_disk_is_found_before_the_work(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tmp_path / "m"
    ok("fit", data, "-m", model, *FIT)
    least = 150 * 8 * 4  # rows, atoms, bytes of the smallest number
    monkeypatch.setattr(output_files, "ROOM", 1000)

    def room(free: int) -> None:
        monkeypatch.setattr(shutil, "disk_usage", lambda _: Disk(10**9, 0, free))

    room(least - 1)
    dense = tmp_path / "codes.npy"
    told = error("transform", model, data, "-o", dense)
    assert "needs at least 4.8 kB, its disk has 4.8 kB left" in told
    room(least)
    ok("transform", model, data, "-o", dense)
    room(999)
    monkeypatch.setattr("kernlets.cli.fit.fit_with_progress", never)
    assert "make room" in error("fit", data, "-m", model, *FIT)
    assert "make room" in error("predict", model, data, "-o", tmp_path / "p.csv")


def test_a_model_that_cannot_be_saved_is_rescued(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk fills up during the fit."""
    refuge, wanted = tmp_path / "tmp", tmp_path / "m"
    refuge.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(refuge))

    def full(model: Any, path: Path, **how: Any) -> None:
        if path == wanted:
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        save(model, path, **how)

    monkeypatch.setattr(output_files, "save", full)
    told = error("fit", data, "-m", wanted, *FIT)
    (rescued,) = refuge.rglob("*.model")
    assert f"{wanted}: No space left on device; the model was saved as" in told
    assert f" {rescued} " in told
    assert load(rescued).n_features_in_ == 5 and not wanted.exists()
    monkeypatch.setattr(output_files, "save", lambda *_, **__: full(None, wanted))
    assert f"error: {wanted}: No space left on device\n" == error(
        "fit", data, "-m", wanted, *FIT
    )


SMALL_FILES = """
import resource, runpy, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]),) * 2)
sys.argv = ["kernlets", *sys.argv[2:]]
runpy.run_module("kernlets", run_name="__main__")
"""


def with_small_files(n_bytes: int, *arguments: Any) -> subprocess.CompletedProcess[str]:
    """A process to which the system refuses longer files, as on a full disk."""
    words = [sys.executable, "-c", SMALL_FILES, n_bytes, *arguments]
    return subprocess.run([*map(str, words)], capture_output=True, text=True)


@posix
def test_errors_of_writing_name_the_target(data: Path, tmp_path: Path) -> None:
    ok("fit", data, "-m", tmp_path / "m", *FIT)
    out = tmp_path / "codes.npy"
    done = with_small_files(2000, "transform", tmp_path / "m", data, "-o", out)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"error: {out}: {os.strerror(errno.EFBIG)}\n"
    assert not [path for path in tmp_path.iterdir() if path.suffix == ".part"]


def test_checkpoints_that_cannot_be_written_do_not_end_the_fit(
    data: Path, tmp_path: Path
) -> None:
    """Nor does each of them warn."""
    states = tmp_path / "states"
    states.mkdir()
    (states / "ResidualClassifier-1").touch()  # where a folder is to be
    options = ["--label", "species", "--iterations", 3, "--checkpoint", states]
    result = run("fit", data, "-m", tmp_path / "m", *FIT, *options)
    assert result.exit_code == 0
    (told,) = result.stderr.splitlines()
    assert told.startswith("warning: ") and "cannot be written" in told
    assert len(load(tmp_path / "m").learners_) == 3


# --------------------------------------------------- every method through every command

METHODS = {
    *registry.table("learners"),
    *registry.table("classifiers"),
    *registry.table("outliers"),
} - {"residual"}
WITHOUT_CODES = {"image-classifier", "kernel-ridge-classifier"}
WITH_PROBA = {*registry.table("learners"), "ksad", "lkdl", "src"}
WITH_PROBA |= {"kernel-ridge-classifier", "image-classifier"}


@pytest.fixture(scope="module")
def blobs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three classes of 40 rows."""
    rng = np.random.default_rng(0)
    y = np.arange(120) % 3
    X = np.abs(rng.standard_normal((120, 6)) + 6 * np.eye(3, 6)[y])
    path = tmp_path_factory.mktemp("blobs") / "blobs.npz"
    np.savez(path, X=X, y=np.array(["a", "b", "c"])[y])
    return path


@pytest.mark.parametrize("labels", [[], ["--unsupervised"]])
@pytest.mark.parametrize("method", sorted({"lkdl", *METHODS}))
def test_every_method_through_every_command(
    method: str, labels: list[str], blobs: Path, tmp_path: Path
) -> None:
    model, codes, table = tmp_path / "m", tmp_path / "c.npz", tmp_path / "p.csv"
    fit = ["fit", blobs, "-m", model, "--method", method, *labels]
    detects = method in registry.table("outliers")
    if labels and method in registry.table("classifiers"):
        assert "needs labels" in error(*fit)
        return
    ok(*fit, "--test", blobs)
    assert "features" in ok("info", model)
    name = "accuracy" if not labels else "mean squared error"
    assert ("mean score" if detects else name) in ok("score", model, blobs)
    if detects or method in WITHOUT_CODES:
        assert "gives no sparse codes" in error("transform", model, blobs, "-o", codes)
    else:
        ok("transform", model, blobs, "-o", codes)
        assert np.load(codes)["shape"][0] == 120
    if labels and not detects:
        assert "fitted without labels" in error("predict", model, blobs)
        return
    ok("predict", model, blobs, "-o", table)
    assert len(table.read_text().splitlines()) == 121
    chosen = method == "auto" and hasattr(load(model), "predict_proba")
    if chosen or method in WITH_PROBA:
        check_proba(model, blobs, tmp_path)
    elif detects:
        header = ok("predict", model, blobs, "--proba").splitlines()[0]
        assert header == "row,label,proba_normal,proba_outlier"
    else:
        assert "gives no probabilities" in error("predict", model, blobs, "--proba")


def test_a_pipeline_of_one_step(blobs: Path, tmp_path: Path) -> None:
    """A search saves one where no scaling won."""
    data = np.load(blobs)
    model = make_pipeline(SRCClassifier("rbf", 3)).fit(data["X"], data["y"])
    save(model, tmp_path / "m")
    ok("transform", tmp_path / "m", blobs, "-o", tmp_path / "c.npz")
    codes = sparse.load_npz(tmp_path / "c.npz").toarray()
    np.testing.assert_allclose(codes, model[-1].encode(data["X"]).toarray())
    assert ok("explain", tmp_path / "m", blobs).startswith("row 0: label a")


def check_proba(model: Path, data: Path, folder: Path) -> None:
    """Standard output and three formats say the same."""
    header, *lines = ok("predict", model, data, "--proba").splitlines()
    assert header == "row,label,proba_a,proba_b,proba_c"
    assert [line.split(",")[1] for line in lines] == ok("predict", model, data).split()
    shares = np.array([line.split(",")[2:] for line in lines], dtype=float)
    np.testing.assert_array_equal(shares, load(model).predict_proba(np.load(data)["X"]))
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    outs = [folder / f"proba{suffix}" for suffix in (".csv", ".npy", ".npz")]
    for out in outs:
        ok("predict", model, data, "--proba", "-o", out)
    assert outs[0].read_text().splitlines() == [header, *lines]
    np.testing.assert_array_equal(np.load(outs[1]), shares)
    archive = np.load(outs[2])
    np.testing.assert_array_equal(archive["proba"], shares)
    assert archive["y"].tolist() == [line.split(",")[1] for line in lines]


def test_outliers_are_found(tmp_path: Path) -> None:
    """Scores are errors, and columns of different scales count alike."""
    X = np.random.default_rng(0).standard_normal((200, 4)) * [1, 10, 100, 1000]
    X[:5] *= 8
    np.save(tmp_path / "x.npy", X)
    data, model = tmp_path / "x.npy", tmp_path / "m"
    options = ["--method", "outliers", "--set", "contamination=0.05"]
    text = ok("fit", data, "-m", model, *options)
    assert "outliers  10 of these" in text
    header, *lines = ok("predict", model, data).splitlines()
    assert header == "row,label,score"
    cells = np.array([line.split(",") for line in lines], dtype=float)
    rows, labels, scores = cells.T
    np.testing.assert_array_equal(rows, np.arange(200))
    assert set(np.flatnonzero(labels < 0)) >= {0, 1, 2, 3, 4}
    np.testing.assert_array_equal(scores, -load(model).score_samples(X))
    assert scores[labels < 0].min() > scores[labels > 0].max()
    assert "outliers    10 of 200" in ok("score", model, data)
    for suffix, names in {".npz": ["y", "score"], ".npy": None}.items():
        ok("predict", model, data, "-o", tmp_path / f"p{suffix}")
        found = np.load(tmp_path / f"p{suffix}")
        found = found if names is None else found[names[1]]
        np.testing.assert_array_equal(found, scores)
    check_reasons(model, data, tmp_path)


def check_reasons(model: Path, data: Path, folder: Path) -> None:
    """Of each row in a column, of the first rows in sentences."""
    header, first, *_ = ok("predict", model, data, "--reasons").splitlines()
    assert header == "row,label,score,reason"
    assert first.startswith("0,-1,")
    assert first.count("usual") == 3
    ok("predict", model, data, "--reasons", "--proba", "-o", folder / "r.npz")
    found = np.load(folder / "r.npz")
    assert found["reason"].shape == (200,)
    assert found["proba"].shape == (200, 2)
    text = ok("explain", model, data, "--rows", "2")
    assert text.startswith("row 0: outlier: score")
    assert "nearest normal training row" in text
    assert "row 1: " in text


def test_models_that_cannot_do_what_is_asked(blobs: Path, tmp_path: Path) -> None:
    model = tmp_path / "m"
    save(NystroemMap("rbf", n_landmarks=9).fit(np.load(blobs)["X"]), model)
    codes = tmp_path / "c.npz"
    assert "no sparse codes" in error("transform", model, blobs, "-o", codes)
    assert "classifier to score" in error("score", model, blobs)
    assert "is for outlier detectors" in error("predict", model, blobs, "--reasons")
    assert "fitted without labels" in error("predict", model, blobs)


@pytest.fixture(scope="module")
def text(blobs: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """Blobs as CSV text with a header, and a model of them."""
    data = np.load(blobs)
    head = ",".join([f"c{j}" for j in range(data["X"].shape[1])] + ["label"])
    rows = zip(data["X"].tolist(), data["y"].tolist(), strict=True)
    lines = [",".join([*map(str, row), str(label)]) for row, label in rows]
    path = tmp_path_factory.mktemp("text") / "blobs.csv"
    path.write_text("\n".join([head, *lines, ""]))
    ok("fit", path, "-m", path.with_name("m"), "--method", "src", "--holdout", "0.2")
    return path.read_text(), path


@pytest.mark.parametrize("name", ["-", "/dev/stdin"])
def test_text_from_standard_input(
    name: str, text: tuple[str, Path], tmp_path: Path
) -> None:
    lines, path = text
    model, runner = path.with_name("m"), CliRunner()

    def piped(*arguments: Any, given: str = lines) -> Result:
        return runner.invoke(app, [str(each) for each in arguments], input=given)

    for command in (["predict"], ["score"], ["explain", "--rows", "2"]):
        result = piped(*command, model, name)
        assert result.exit_code == 0, result.output
        assert result.stdout == ok(*command, model, path)
    result = piped("fit", name, "-m", tmp_path / "m", "--method", "src")
    assert result.exit_code == 0, result.output
    assert "standard input" in ok("info", tmp_path / "m")
    for given, told in {
        "": "standard input: is empty",
        "1,2\n": "standard input: ",
        lines.replace("c1", "other"): "standard input: lacks the model's columns 'c1'",
        "PK\x03\x04": "standard input: is no text",
    }.items():
        result = piped("predict", model, name, given=given)
        assert result.exit_code == 1
        assert result.stderr.startswith(f"error: {told}"), result.stderr
    more = lines.replace("label\n", "label,more\n", 1).replace("\n", ",1\n")
    more = more.replace("more,1\n", "more\n", 1)
    result = piped("score", model, name, given=more)
    assert "warning: standard input: columns that the model does" in result.stderr


def test_text_from_a_pipe(text: tuple[str, Path], tmp_path: Path) -> None:
    lines, path = text
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=[lines])
    writer.start()
    assert ok("predict", path.with_name("m"), pipe) == ok(
        "predict", path.with_name("m"), path
    )
    writer.join()


def test_text_to_standard_output(text: tuple[str, Path], tmp_path: Path) -> None:
    _, path = text
    model = path.with_name("m")
    ok("predict", model, path, "-o", tmp_path / "p.csv")
    assert ok("predict", model, path, "-o", "-") == (tmp_path / "p.csv").read_text()
    ok("transform", model, path, "-o", tmp_path / "c.csv")
    assert ok("transform", model, path, "-o", "-") == (tmp_path / "c.csv").read_text()
