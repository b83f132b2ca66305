"""Reading users' files: one real file of every kind, whole and damaged."""

from __future__ import annotations

import contextlib
import os
import struct
import subprocess
import sys
import threading
import tracemalloc
import warnings
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse

from kernlets import options
from kernlets.datasets import DataFileError, open_rows, read_table

X = np.array([[1.0, 2.5], [3.0, -4.0], [5.0, 6.0]])
WORDS = np.array(["cat", "dog", "cat"])


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def failure(path: Path, **options: object) -> str:
    """The message of the refusal: one line that starts with the file's path."""
    with pytest.raises(DataFileError) as caught:
        read_table(path, **options)
    message = str(caught.value)
    assert "\n" not in message and message.startswith(str(path))
    return message


# -- arrays -------------------------------------------------------------------------


@pytest.mark.parametrize("names", [("X", "y"), ("X_train", "y_train"), ("fea", "gnd")])
@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_npz_by_the_usual_names(tmp_path: Path, names, save) -> None:
    save(tmp_path / "d.npz", **dict(zip(names, (X, WORDS), strict=True)))
    table = read_table(tmp_path / "d.npz")
    np.testing.assert_array_equal(table.X, X)
    np.testing.assert_array_equal(table.y, WORDS)
    assert table.feature_names is None and table.image_shape is None
    assert table.class_names == ["cat", "dog"]


def test_npz_by_key_finds_the_labels_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "d.npz"
    np.savez(path, X_train=X, y_train=[0, 1, 0], X_test=X[:2], y_test=[1, 0], Z=X + 1)
    assert read_table(path).y.tolist() == [0, 1, 0]
    assert read_table(path, key="X_test").y.tolist() == [1, 0]
    other = read_table(path, key="Z")
    np.testing.assert_array_equal(other.X, X + 1)
    assert other.y is None
    assert read_table(path, key="Z", label="y_train").y.tolist() == [0, 1, 0]
    assert "choose from X_train, y_train" in failure(path, key="W")
    assert "no array 'w'" in failure(path, label="w")


def test_npz_members_that_are_no_arrays_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", "text")
    with pytest.raises(DataFileError, match="array"):
        read_table(path)
    np.savez(path, X=np.eye(3))
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("readme.txt", "text")
    np.testing.assert_array_equal(read_table(path).X, np.eye(3))


def test_npz_with_one_matrix_needs_no_name(tmp_path: Path) -> None:
    np.savez(tmp_path / "d.npz", pixels=X, y=[1, 2, 3])
    table = read_table(tmp_path / "d.npz")
    np.testing.assert_array_equal(table.X, X)
    assert table.y.tolist() == [1, 2, 3]
    np.savez(tmp_path / "two.npz", a=X, b=X)
    assert "name one of a, b with key=" in failure(tmp_path / "two.npz")


def test_images_are_flattened_and_bytes_become_float64(tmp_path: Path) -> None:
    images = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    np.savez(tmp_path / "d.npz", X=images)
    table = read_table(tmp_path / "d.npz")
    assert table.X.shape == (2, 12) and table.X.dtype == np.float64
    assert table.image_shape == (3, 4) and table.y is None


def test_npy_is_memory_mapped(tmp_path: Path) -> None:
    path = tmp_path / "d.npy"
    np.save(path, X.astype(np.float32))
    table = read_table(path)
    assert isinstance(table.X, np.memmap) and table.X.dtype == np.float32
    np.testing.assert_array_equal(table.X, X)
    assert table.y is None and table.class_names is None


def test_npy_label_by_column_index(tmp_path: Path) -> None:
    path = tmp_path / "d.npy"
    np.save(path, np.column_stack([X, [7, 8, 7]]))
    table = read_table(path, label=-1)
    np.testing.assert_array_equal(table.X, X)
    assert table.y.tolist() == [7, 8, 7]
    assert "label=3 is outside" in failure(path, label=3)
    assert "give its index" in failure(path, label="class")


def test_mat_with_rows_labels_and_cells(tmp_path: Path) -> None:
    cells = np.array(WORDS, dtype=object).reshape(-1, 1)
    scipy.io.savemat(tmp_path / "d.mat", {"X": X, "y": [[4], [5], [4]], "names": cells})
    assert read_table(tmp_path / "d.mat").y.tolist() == [4, 5, 4]
    table = read_table(tmp_path / "d.mat", label="names")
    assert table.y.tolist() == WORDS.tolist()
    np.testing.assert_array_equal(table.X, X)


def test_mat_sparse_matrix_becomes_dense(tmp_path: Path) -> None:
    scipy.io.savemat(tmp_path / "d.mat", {"fea": scipy.sparse.csc_matrix(X)})
    np.testing.assert_array_equal(read_table(tmp_path / "d.mat").X, X)


def test_mat_with_samples_in_columns_is_explained(tmp_path: Path) -> None:
    scipy.io.savemat(tmp_path / "d.mat", {"X": X.T, "y": [1, 2, 3]})
    assert "2 rows but 3 labels: transpose it" in failure(tmp_path / "d.mat")


def test_mat_v73_says_how_to_save(tmp_path: Path) -> None:
    header = b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM"
    (tmp_path / "d.mat").write_bytes(header + bytes(400))
    assert "-v7" in failure(tmp_path / "d.mat")


def test_label_count_must_match(tmp_path: Path) -> None:
    np.savez(tmp_path / "d.npz", X=np.ones((3, 4)), y=[1, 2])
    assert "3 rows but 2 labels: give one label" in failure(tmp_path / "d.npz")


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        (np.ones(3), "needs a numeric matrix"),
        (np.ones((3, 2), dtype=complex), "needs a numeric matrix"),
        (np.array([["1", "2"]]), "needs a numeric matrix"),
        (np.ones((0, 4)), "at least one number"),
        (np.ones((0, 4, 4)), "at least one number"),
        (np.array([[{}, 1]], dtype=object), "Python objects are not read"),
    ],
)
@pytest.mark.parametrize("suffix", [".npz", ".npy"])
def test_arrays_that_are_no_rows(tmp_path: Path, rows, reason, suffix) -> None:
    path = tmp_path / f"d{suffix}"
    if suffix == ".npz":
        np.savez(path, X=rows)
    else:
        np.save(path, rows)
    assert reason in failure(path)


# -- text ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["label", "Class", "TARGET", "y"])
@pytest.mark.parametrize(
    ("suffix", "mark"), [(".csv", ","), (".tsv", "\t"), (".csv", ";")]
)
def test_text_with_header_and_usual_label(tmp_path: Path, name, suffix, mark) -> None:
    lines = [
        ["a", name, "b"],
        ["1", "cat", "2.5"],
        ["3", "dog", "-4"],
        ["5", "cat", "6"],
    ]
    path = written(tmp_path / f"d{suffix}", "\n".join(mark.join(row) for row in lines))
    table = read_table(path)
    np.testing.assert_array_equal(table.X, X)
    assert table.y.tolist() == WORDS.tolist()
    assert table.feature_names == ["a", "b"]


def test_text_without_header_takes_a_last_column_of_words(tmp_path: Path) -> None:
    path = written(tmp_path / "d.csv", "1,2.5,cat\n3,-4,dog\n5,6,cat\n")
    table = read_table(path)
    np.testing.assert_array_equal(table.X, X)
    assert table.y.tolist() == WORDS.tolist() and table.feature_names is None


def test_text_of_numbers_has_no_labels_unless_asked(tmp_path: Path) -> None:
    path = written(tmp_path / "d.csv", "1,2.5,1\n3,-4,0\n5,6,1\n")
    assert read_table(path).y is None and read_table(path).X.shape == (3, 3)
    table = read_table(path, label=-1)
    np.testing.assert_array_equal(table.X, X)
    assert table.y.dtype == np.int64 and table.y.tolist() == [1, 0, 1]


def test_text_label_by_name_and_label_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "d.csv", "0,1,kind\n1,2.5,1.5\n3,-4,2.5\n")
    table = read_table(path, label="kind")
    assert table.feature_names == ["0", "1"] and table.y.tolist() == ["1.5", "2.5"]
    numbers = written(tmp_path / "n.csv", "a,y\n1,2\n3,4\n")
    assert read_table(numbers).y.tolist() == [2, 4]
    assert read_table(numbers, label=False).feature_names == ["a", "y"]
    assert "there are 'a', 'y'" in failure(numbers, label="z")


def test_text_with_quotes_blank_lines_mark_and_crlf(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_bytes(
        '\ufeff"a","b","label"\r\n\r\n1,"2.5","cat, black"\r\n3,-4,dog\r\n\r\n'.encode()
    )
    table = read_table(path)
    np.testing.assert_array_equal(table.X, X[:2])
    assert table.feature_names == ["a", "b"] and table.y.tolist() == [
        "cat, black",
        "dog",
    ]


def test_text_index_column_is_left_out(tmp_path: Path) -> None:
    path = written(tmp_path / "d.csv", ",a,b,label\nr0,1,2.5,cat\nr1,3,-4,dog\n")
    table = read_table(path)
    np.testing.assert_array_equal(table.X, X[:2])
    assert table.feature_names == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a,b\n1,2\n3,four\n", "column 'b', line 3: 'four' is not a number"),
        ("a,b\n1,2\n3,\n", "column 'b', line 3: the cell is empty: fill it in"),
        ("a,b\n1,2\n\n3, NA\n", "column 'b', line 4: 'NA' stands for no value"),
        ("1,2\n3,nan\n", "column 1, line 2: 'nan' stands for no value"),
        ("a,b\n1,2\n-inf,4\n", "column 'a', line 3: '-inf' is not finite"),
        ("a,b,y\n1,2,0\n,4,1\n", "column 'a', line 3: the cell is empty"),
        ("a,\x1b[2J\n1,x\n2,3\n", "column '?[2J', line 2: 'x' is not a number"),
        ("1,2\n3,4\nx,6\n", "column 0, line 3: 'x' is not a number"),
        ("1,x\n3,4\n5,6\n", "column 1, line 1: 'x' is not a number"),
        ("a,b\n1,2\n\n3\n", "line 4 has 1 cells instead of 2"),
        ("a,b,label\n1,2,c\n3,4,5,d\n", "line 3 has 4 cells instead of 3"),
        ("a,b\n1,2,3\n", "names 2 columns but has 3"),
        ("a,label\n1,c\n\n2,\n", "line 4 has no label in column 'label': fill it in"),
        (
            "a,label\n1,4\n2,nan\n3,5\n",
            "line 3 has no label in column 'label': fill it in",
        ),
        ("label\nc\nd\n", "no column besides the labels"),
        ("a,b\n", "no rows of data"),
        ("\n\n", "no rows of data"),
    ],
)
def test_text_culprit_is_named(tmp_path: Path, text: str, reason: str) -> None:
    assert reason in failure(written(tmp_path / "d.csv", text))


@pytest.mark.parametrize(
    ("labels", "values"),
    [
        (["0", "10", "-3"], [0, 10, -3]),
        (["007", "7", "7"], ["007", "7", "7"]),
        (["1e2", "100", "+1"], ["1e2", "100", "+1"]),
        (["1.0", "2.0", "1"], ["1.0", "2.0", "1"]),
        (["-0", "0", "1"], ["-0", "0", "1"]),
        (["9" * 30, "1", "2"], ["9" * 30, "1", "2"]),
        (["yes", "-", "none"], ["yes", "-", "none"]),
        ([" a ", "a", "A"], ["a", "a", "A"]),
    ],
)
def test_labels_are_the_text_in_the_file_unless_all_are_integers(
    tmp_path: Path, labels: list[str], values: list[object]
) -> None:
    lines = [f"{j},{label}" for j, label in enumerate(labels)]
    path = written(tmp_path / "d.csv", "\n".join(["a,kind", *lines]))
    y = read_table(path, label="kind").y
    assert y.tolist() == values
    assert y.dtype == (np.int64 if isinstance(values[0], int) else object)


@pytest.mark.parametrize("mark", ["", "?", "NaN", "NA", "null", "-"])
def test_a_missing_label_is_no_class(tmp_path: Path, mark: str) -> None:
    path = written(tmp_path / "d.csv", f"a,kind\n1,0\n2,{mark}\n3,1\n")
    assert "line 3 has no label" in failure(path, label="kind")


def test_a_column_that_begins_with_gaps_is_no_column_of_labels(tmp_path: Path) -> None:
    path = written(tmp_path / "d.csv", "a,b\n1,NA\n3,?\n5,6\n")
    table = read_table(path, gaps=True)
    assert table.y is None and table.feature_names == ["a", "b"]


def test_columns_without_a_name_are_refused_if_they_hold_something(
    tmp_path: Path,
) -> None:
    inner = written(tmp_path / "d.csv", "a,,b\n1,,3\n4,5,6\n")
    assert "column 2 has no name in line 1, but '5' in line 3" in failure(inner)
    blank = written(tmp_path / "b.csv", "a,,b,\n1,,3,\n4,,6,\n")  # trailing commas
    assert read_table(blank).feature_names == ["a", "b"]
    lost = written(tmp_path / "l.csv", ",a,b\n0.5,1,2\n0.25,3,4\n")
    assert "the first column has no name, and does not" in failure(lost)


def test_a_first_column_without_a_name_is_row_numbers(
    tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    for rows in ("0,1,2\n1,3,4\n2,5,6", "r1,1,2\nr2,3,4\nr7,5,6"):
        table = read_table(written(tmp_path / "d.csv", f",a,b\n{rows}\n"))
        assert table.feature_names == ["a", "b"]
    assert not recwarn.list
    path = written(tmp_path / "d.csv", ",a,b\n7,1,2\n3,3,4\n")
    with pytest.warns(UserWarning, match="is left out, as numbers of rows"):
        assert read_table(path).feature_names == ["a", "b"]


@pytest.mark.parametrize(
    "text",
    [
        "a;b\n1,5;2\n,25;-3,5e1\n",
        "a\tb\n1,5\t2\n,25\t-3,5e1\n",
        "1,5;2\n0,25;-35\n",  # no header
        '"a";"b"\n"1,5";"2"\n"0,25";"-35"\n',
    ],
)
def test_decimal_commas_are_recognised(tmp_path: Path, text: str) -> None:
    table = read_table(written(tmp_path / "d.csv", text))
    np.testing.assert_array_equal(table.X, [[1.5, 2], [0.25, -35]])


def test_decimal_commas_far_down_and_beside_gaps(tmp_path: Path) -> None:
    rows = "".join(f"{j};{j}\n" for j in range(50))
    path = written(tmp_path / "d.csv", f"a;b\n{rows}1,5;NA\n")
    table = read_table(path, gaps=True)
    assert table.X[-1, 0] == 1.5 and np.isnan(table.X[-1, 1])
    assert "column 'a', line 52: '1,5' has a decimal comma" in failure(path)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a;b\n1,5;2\n3;4.5\n", "column 'a', line 2: '1,5' has a decimal comma"),
        ("a;b\n1,500;2\n3,250;4\n", "may mark decimals or thousands"),
        ('a,b\n"1,5",2\n', "'1,5' has a decimal comma: write a decimal point"),
        ('a,b\n"1,234,567",2\n', "'1,234,567' has marks of thousands"),
        ("a;b\n1.234,5;2\n", "'1.234,5' has marks of thousands"),
        ("a,b\n2024-05-01,2\n", "'2024-05-01' is a date: write a number"),
        ("a,b\n1_000,2\n", "'1_000' is not a number"),
        ("a,b\n\uff12,1\n", "is not a number"),
        ('a,label\n1,x\n2,"y\n3,x\n', "line 4: a label runs over several lines"),
        ("a,label,label\n1,x,2\n", None),
    ],
)
def test_numbers_that_are_written_in_another_way(
    tmp_path: Path, text: str, reason: str | None
) -> None:
    path = written(tmp_path / "d.csv", text)
    if reason is None:
        assert "has 2 columns called 'label'" in failure(path, label="label")
    else:
        assert reason in failure(path)
        assert reason in failure(path, gaps=True)


def test_all_columns_of_text_are_named_at_once(tmp_path: Path) -> None:
    text = "a,name,day,kind\n1,Ann,2024-05-01,x\n2,Bob,2024-05-02,y\n"
    told = failure(written(tmp_path / "d.csv", text))
    assert "columns 'name' (line 2: 'Ann'), 'day' (line 2: '2024-05-01') hold" in told
    assert "encode them as numbers or remove them" in told and "header" not in told
    many = ",".join(f"c{j}" for j in range(9))
    path = written(tmp_path / "m.csv", f"{many}\n{many}\n")
    assert "'c4' (line 2: 'c4') and 3 more hold" in failure(path)


def test_two_columns_of_the_usual_names_are_mentioned(tmp_path: Path) -> None:
    path = written(tmp_path / "d.csv", "a,class,target\n1,x,0\n2,y,1\n")
    with pytest.warns(UserWarning, match="'class' is taken for the labels, and 'tar"):
        assert read_table(path).feature_names == ["a", "target"]


def test_text_in_utf_16(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_text("a,label\n1,\u00e9t\u00e9\n", "utf-16")
    assert read_table(path).y.tolist() == ["\u00e9t\u00e9"]
    path.write_text("a,label\n1,cat\n", "utf-16-le")  # without a mark
    assert "bytes of zero" in failure(path)


def test_a_header_with_numbers_is_mentioned(tmp_path: Path) -> None:
    rows = "1,2,x\n3,4,y\n5,6,x\n7,8,y\n"
    path = written(tmp_path / "d.csv", f"2019,2021,kind\n{rows}")
    with pytest.warns(UserWarning, match="line 1 is taken for a row.*'kind'.*--header"):
        assert len(read_table(path).X) == 5
    table = read_table(path, header=True)
    assert table.feature_names == ["2019", "2021"] and len(table.X) == 4


@pytest.mark.filterwarnings("error")
def test_rows_of_unknown_values_are_no_header(tmp_path: Path) -> None:
    for first in ("NA,NA", "?,-,cat"):
        row = "1,2,dog"[: 3 + 4 * (first[0] == "?")]
        path = written(tmp_path / "d.csv", f"{first}\n{row}\n")
        assert np.isnan(read_table(path, gaps=True).X[0]).all()
    path = written(tmp_path / "glass.csv", "RI,Na,Mg\n1,2,3\n")
    assert read_table(path).feature_names == ["RI", "Na", "Mg"]


def test_bytes_of_zero_and_lines_in_names_and_labels(tmp_path: Path) -> None:
    path = written(tmp_path / "d.csv", "a,b\n1,\0x\n2,y\n")
    assert "has bytes of zero, as no text has: save it as UTF-8" in failure(path)
    path = written(tmp_path / "n.csv", '"a\nb",c\n1,2\n')
    assert "has a name on several lines" in failure(path)


def test_a_cell_that_never_ends(tmp_path: Path) -> None:
    rows = "1,2\n" * 40_000
    assert "close its quotation mark" in failure(
        written(tmp_path / "d.csv", f'a,b\n1,"2\n{rows}')
    )


def test_advice_on_labels_is_given_where_there_are_none(tmp_path: Path) -> None:
    words = written(tmp_path / "d.csv", "kind,a,b\nx,1,2\ny,3,4\n")
    assert "or set label to the column of labels" in failure(words)
    assert "set label" not in failure(words, label="b")


# -- headers of numbers -------------------------------------------------------------

EIGHT = "400,402,404,406,408,410,412,414"
ROW = "5.1,3.5,1.4,0.2,7,8,1,2"


@pytest.mark.filterwarnings("ignore:.*as numbers of rows")
@pytest.mark.parametrize(
    ("first", "row", "names"),
    [
        ("0,1,2", "4,9,1", ["0", "1", "2"]),
        ("1.0,2.0,3.0,4.0", "4,9,1,7", ["1.0", "2.0", "3.0", "4.0"]),
        ("0,1,2,kind", "4,9,1,cat", ["0", "1", "2"]),
        (",0,1", "0,4,9", ["0", "1"]),  # what pandas writes
        (EIGHT, ROW, EIGHT.split(",")),
        (f"{EIGHT},kind", f"{ROW},cat", EIGHT.split(",")),
    ],
)
def test_a_header_of_numbers_is_recognised(
    tmp_path: Path, first: str, row: str, names: list[str]
) -> None:
    path = written(tmp_path / "d.csv", f"{first}\n{row}\n{row}\n")
    with pytest.warns(UserWarning, match="line 1 is taken for a header"):
        table = read_table(path)
    assert table.feature_names == names and len(table.X) == 2
    assert table.y is None or table.y.tolist() == ["cat", "cat"]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "text",
    [
        "0,1\n4,9\n",  # too few columns to tell
        "1,2,3\n",  # nothing else
        "1,2,3\n4,9,1\n4,5,6\n",  # other lines count as well
        "0,1,2,cat\n4,9,1,dog\n4,9,2,cat\n",  # the word is a label
        "0,1,3\n4,9,1\n",
        "3,2,1\n4,9,1\n",
        "2,4,6\n4,9,1\n",
        "5,5,5,5,5,5,5,5\n" + ROW,
    ],
)
def test_rows_of_numbers_are_no_header(tmp_path: Path, text: str) -> None:
    table = read_table(written(tmp_path / "d.csv", text))
    assert len(table.X) == len(text.split()) and table.feature_names is None


@pytest.mark.filterwarnings("error")
def test_a_header_can_be_told(tmp_path: Path) -> None:
    path = written(tmp_path / "d.csv", "0,1,2\n4,9,1\n")
    assert read_table(path, header=False).X.tolist() == [[0, 1, 2], [4, 9, 1]]
    table = read_table(path, header=True)
    assert table.X.tolist() == [[4, 9, 1]] and table.feature_names == ["0", "1", "2"]
    short = written(tmp_path / "short.csv", "7,8\n1,2\n")
    assert read_table(short, header=True).feature_names == ["7", "8"]
    # names that are asked for are a header, too
    assert read_table(short, columns=["8", "7"]).X.tolist() == [[2, 1]]
    named = written(tmp_path / "named.csv", "a,b\n1,2\n")
    told = failure(named, header=False)
    assert "columns 0 (line 1: 'a'), 1 (line 1: 'b') hold something else" in told
    assert told.endswith("or header if line 1 names the columns")
    assert "has no header" in failure(named, header=False, label="b")


# -- columns by name ----------------------------------------------------------------


def columns_file(path: Path, columns: dict[str, list[object]]) -> Path:
    """A table in the format that the suffix names."""
    if path.suffix == ".parquet":
        return parquet(path, **columns)
    rows = [columns, *zip(*columns.values(), strict=True)]
    return written(path, "\n".join(",".join(map(str, row)) for row in rows))


SUFFIXES = pytest.mark.parametrize("suffix", [".csv", ".parquet"])


@SUFFIXES
@pytest.mark.parametrize("reader", [read_table, open_rows])
def test_columns_are_taken_by_name(tmp_path: Path, suffix: str, reader) -> None:
    if reader is open_rows and suffix == ".csv":
        pytest.skip("text is read whole")
    columns = {"c": [5.0, 6.0], "b": [3.0, 4.0], "kind": ["x", "y"], "a": [1.0, 2.0]}
    path = columns_file(tmp_path / f"d{suffix}", columns)
    with pytest.warns(UserWarning, match=r"left out: 'c'$"):
        table = reader(path, "kind", columns=["a", "b"])
    rows = table.X if reader is read_table else np.concatenate(list(table.X))
    np.testing.assert_array_equal(rows, [[1, 3], [2, 4]])
    assert table.feature_names == ["a", "b"] and table.y.tolist() == ["x", "y"]


@SUFFIXES
def test_columns_that_do_not_fit_are_named(tmp_path: Path, suffix: str) -> None:
    columns = {"a": [1.0, 2.0], "b": [3.0, 4.0], "kind": [0, 1]}
    path = columns_file(tmp_path / f"d{suffix}", columns)
    told = failure(path, columns=["A", "b"])
    assert "lacks the model's columns 'A', but has 'a', 'kind'" in told
    assert "'b' is a feature" in failure(path, label="b", columns=["a", "b"])
    many = failure(path, columns=[f"x{j}" for j in range(90)])
    assert "'x4' and 85 more" in many and len(many) < 400


@SUFFIXES
@pytest.mark.filterwarnings("error")
def test_a_feature_may_have_a_name_of_labels(tmp_path: Path, suffix: str) -> None:
    columns = {"x": [1.0, 2.0], "y": [3.0, 4.0], "kind": ["u", "v"]}
    path = columns_file(tmp_path / f"d{suffix}", columns)
    table = read_table(path, columns=["x", "y"])
    assert table.X.shape == (2, 2) and table.y.tolist() == ["u", "v"]


@pytest.mark.filterwarnings("error")
def test_files_without_names_are_read_as_they_are(tmp_path: Path) -> None:
    np.save(tmp_path / "d.npy", X)
    bare = written(tmp_path / "d.csv", "1,2.5\n3,-4\n5,6\n")
    for path in (tmp_path / "d.npy", bare):
        np.testing.assert_array_equal(read_table(path, columns=["b", "a"]).X, X)
    np.testing.assert_array_equal(open_rows(tmp_path / "d.npy", columns=["b"]).X, X)


def test_twins_are_refused_where_names_matter(tmp_path: Path) -> None:
    path = written(tmp_path / "d.csv", "a,a,b\n1,2,3\n4,5,6\n")
    assert read_table(path).X.shape == (2, 3)
    assert "has 2 columns called 'a'" in failure(path, columns=["a", "b"])


def test_files_of_one_table_may_order_columns_in_their_own_way(tmp_path: Path) -> None:
    parquet(tmp_path / "0.parquet", a=[1.0], b=[2.0])
    parquet(tmp_path / "1.parquet", b=[4.0], a=[3.0])
    table = open_rows(tmp_path)
    np.testing.assert_array_equal(np.concatenate(list(table.X)), [[1, 2], [3, 4]])
    parquet(tmp_path / "2.parquet", b=[4.0], c=[3.0])
    with pytest.raises(DataFileError, match=r"2\.parquet: lacks the column 'a'"):
        list(open_rows(tmp_path).X)


@SUFFIXES
@pytest.mark.filterwarnings("ignore:.*taken for a header")
def test_an_index_of_labels_that_is_also_a_name(tmp_path: Path, suffix: str) -> None:
    """As in tables that pandas wrote with an index and with numbers for names."""
    columns = {"": [0, 1], "0": [1.0, 2.0], "1": [3, 4], "2": [5, 6]}
    path = columns_file(tmp_path / f"d{suffix}", columns)
    told = failure(path, label=2)
    assert "label=2 is the index of column '1'" in told and "(label=-1)" in told
    assert read_table(path, label=-1).y.tolist() == [5, 6]
    del columns[""]
    path = columns_file(tmp_path / f"e{suffix}", columns)
    assert read_table(path, label=2).y.tolist() == [5, 6]


def test_text_in_another_encoding(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_bytes("a,label\n1,\u00e9t\u00e9\n".encode("latin-1"))
    assert "UTF-8" in failure(tmp_path / "d.csv")


# -- Parquet ------------------------------------------------------------------------


def test_parquet_columns_of_text_are_named_at_once(tmp_path: Path) -> None:
    path = parquet(tmp_path / "d.parquet", a=["x", "y"], b=["u", "v"], y=[0, 1])
    told = failure(path)
    assert "columns 'a' (string), 'b' (string) hold no numbers" in told


def test_parquet_columns_without_a_name(tmp_path: Path) -> None:
    path = parquet(tmp_path / "d.parquet", **{"a": [1.0], "": [2.0]})
    assert "column 2 has no name" in failure(path)


def parquet(path: Path, **columns: object) -> Path:
    arrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    import pyarrow.parquet

    pyarrow.parquet.write_table(arrow.table(columns), path)
    return path


def test_parquet(tmp_path: Path) -> None:
    path = parquet(tmp_path / "d.parquet", a=X[:, 0], b=X[:, 1], kind=WORDS)
    table = read_table(path)
    np.testing.assert_array_equal(table.X, X)
    assert table.y.tolist() == WORDS.tolist() and table.feature_names == ["a", "b"]
    by_name = read_table(path.parent / "d.parquet", label="kind")
    assert by_name.y.tolist() == WORDS.tolist()


def test_parquet_keeps_float32_and_integer_labels(tmp_path: Path) -> None:
    floats = X.astype(np.float32)
    path = parquet(tmp_path / "d.parquet", y=[1, 2, 1], a=floats[:, 0], b=floats[:, 1])
    table = read_table(path)
    assert table.X.dtype == np.float32 and table.y.tolist() == [1, 2, 1]


def test_parquet_culprits(tmp_path: Path) -> None:
    words = parquet(tmp_path / "w.parquet", a=["x", "y"], b=[1.0, 2.0])
    assert "columns 'a' (string) hold no numbers" in failure(words)
    holes = parquet(tmp_path / "h.parquet", a=[1.0, None], y=[0, 1])
    assert "column 'a', row 1 is empty" in failure(holes)
    with pytest.raises(DataFileError, match="column 'a', row 1 is empty"):
        list(open_rows(holes).X)
    gaps = parquet(tmp_path / "g.parquet", a=[1.0, 2.0], b=[0.0, np.nan])
    assert "column 'b', row 1 is nan" in failure(gaps)


# -- folders of images --------------------------------------------------------------


def image_folder(path: Path, shapes: dict[str, tuple[int, int]]) -> Path:
    image = pytest.importorskip("PIL.Image", reason="pillow is not installed")
    for number, (name, (height, width)) in enumerate(shapes.items()):
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        grey = np.full((height, width), 51 * number, dtype=np.uint8)
        image.fromarray(grey).save(path / name)
    return path


def test_images_by_class(tmp_path: Path) -> None:
    names = ("cat/b.png", "cat/a.PNG", "dog/a.pgm")
    folder = image_folder(tmp_path / "set", dict.fromkeys(names, (4, 3)))
    (folder / "cat" / "Thumbs.db").write_bytes(b"not an image")
    (folder / ".hidden").mkdir()
    table = read_table(folder)
    assert table.y.tolist() == ["cat", "cat", "dog"]
    assert table.X.shape == (3, 12) and table.X.dtype == np.float32
    np.testing.assert_allclose(table.X[:, 0], [0.2, 0.0, 0.4], rtol=1e-6)
    assert table.image_shape == (4, 3)
    assert read_table(folder, label=False).y is None
    assert read_table(folder, color=True).image_shape == (4, 3, 3)


def test_images_without_classes_have_no_labels(tmp_path: Path) -> None:
    folder = image_folder(tmp_path / "set", {"a.png": (2, 2), "b.png": (2, 2)})
    table = read_table(folder)
    assert table.y is None and table.X.shape == (2, 4)


def test_images_of_several_sizes(tmp_path: Path) -> None:
    shapes = {"c/a.png": (4, 3), "c/b.png": (5, 8), "c/d.png": (9, 4)}
    folder = image_folder(tmp_path / "set", shapes)
    with pytest.warns(UserWarning, match="3 sizes, the smallest 4x3, the largest 5x8"):
        table = read_table(folder)
    assert table.image_shape == (5, 4)  # the medians of heights and of widths
    np.testing.assert_allclose(table.X, [[0.0] * 20, [0.2] * 20, [0.4] * 20], rtol=1e-6)
    assert read_table(folder, size=(6, 2)).image_shape == (6, 2)


def test_the_size_of_turned_images_is_as_one_sees_them(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image", reason="pillow is not installed")
    folder = image_folder(tmp_path / "set", {"c/a.png": (4, 3)})
    for suffix in (".jpg", ".tif", ".png"):
        how = image.Exif()
        how[274] = 6  # lies on its side
        lying = image.fromarray(np.zeros((3, 4), dtype=np.uint8))
        lying.save(folder / "c" / f"b{suffix}", exif=how)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_table(folder).image_shape == (4, 3)


def test_sixteen_bit_images_are_not_clipped(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image", reason="pillow is not installed")
    deep = np.array([[0, 13107], [26214, 65535]], dtype=np.uint16)
    (tmp_path / "c").mkdir()
    image.fromarray(deep).save(tmp_path / "c" / "a.png")
    np.testing.assert_allclose(read_table(tmp_path).X, [[0, 0.2, 0.4, 1]], rtol=1e-6)


@pytest.mark.parametrize("suffix", [".png", ".jpg"])
def test_truncated_image_is_named(tmp_path: Path, suffix: str, rng) -> None:
    image = pytest.importorskip("PIL.Image", reason="pillow is not installed")
    (tmp_path / "c").mkdir()
    path = tmp_path / "c" / f"a{suffix}"
    image.fromarray(rng.integers(0, 255, (64, 64), dtype=np.uint8)).save(path)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(DataFileError, match=r"a\.\w+: cannot be read"):
        read_table(tmp_path)


def test_folders_without_images(tmp_path: Path) -> None:
    pytest.importorskip("PIL.Image", reason="pillow is not installed")
    assert "one sub-folder per class" in failure(tmp_path)
    folder = image_folder(tmp_path / "set", {"cat/a.png": (2, 2)})
    (folder / "dog").mkdir()
    assert "no image in 'dog'" in failure(folder)


GREY = np.array([[0, 51, 102], [153, 204, 255]], dtype=np.uint8)  # fifths of white


def pictured(folder: Path, picture, name: str = "a.png", **how: object) -> Path:
    """A folder with one class of one image."""
    (folder / "c").mkdir(parents=True, exist_ok=True)
    picture.save(folder / "c" / name, **how)
    return folder


@pytest.mark.parametrize(
    ("mode", "name"),
    [(m, "a.tif") for m in ("1", "L", "LA", "RGB", "RGBA", "CMYK", "I;16", "I;16B")]
    + [(m, "a.png") for m in ("1", "L", "P", "LA", "RGB", "RGBA", "I;16")]
    + [("P", "a.gif"), ("L", "a.pgm"), ("RGB", "a.bmp"), ("YCbCr", "a.jpg")],
)
def test_images_of_every_mode_are_read_as_they_are_seen(
    tmp_path: Path, mode: str, name: str
) -> None:
    image = pytest.importorskip("PIL.Image", reason="pillow is not installed")
    if mode == "1":
        shares = (GREY > 127) * 1.0
        picture = image.fromarray(GREY).convert("1", dither=0)
    elif mode.startswith("I;16"):
        shares = GREY / 255
        deep = GREY.astype(">u2" if mode.endswith("B") else "<u2") * 257
        deep = deep.astype(">u2" if mode.endswith("B") else "<u2")
        picture = image.frombytes(mode, (3, 2), deep.tobytes())
    elif mode == "YCbCr":
        shares = np.full((2, 3), 0.6)
        picture = image.new("RGB", (3, 2), (153, 153, 153)).convert(mode)
    else:
        shares, picture = GREY / 255, image.fromarray(GREY).convert("RGB").convert(mode)
    table = read_table(pictured(tmp_path, picture, name))
    np.testing.assert_allclose(table.X, shares.reshape(1, -1), atol=1.5 / 255)


def transparent(mode: str):
    """A picture that is white where it can be seen, with black that cannot be seen."""
    image = pytest.importorskip("PIL.Image", reason="pillow is not installed")
    pixels = np.zeros((2, 2, 4), dtype=np.uint8)
    pixels[0], pixels[1, 0] = (0, 0, 0, 0), (0, 0, 0, 255)
    pixels[1, 1] = (0, 0, 0, 102)  # black of two fifths
    picture, how = image.fromarray(pixels), {}
    if mode == "LA":
        picture = picture.convert("LA")
    elif mode in ("P", "L", "RGB"):  # a colour that means transparency
        flat = np.array([[7, 7], [0, 153]], dtype=np.uint8)
        picture = image.fromarray(flat).convert(mode)
        if mode == "P":
            picture.putpalette([level for level in range(256) for _ in range(3)])
        how = {"transparency": (7, 7, 7) if mode == "RGB" else 7}
    return picture, how


@pytest.mark.parametrize("mode", ["RGBA", "LA", "P", "L", "RGB"])
def test_transparent_pixels_lie_on_white(tmp_path: Path, mode: str) -> None:
    picture, how = transparent(mode)
    folder = pictured(tmp_path, picture, **how)
    np.testing.assert_allclose(read_table(folder).X, [[1, 1, 0, 0.6]], atol=1 / 255)
    colours = read_table(folder, color=True)
    assert colours.image_shape == (2, 2, 3)
    np.testing.assert_allclose(colours.X[0, ::3], [1, 1, 0, 0.6], atol=1 / 255)
    small = read_table(folder, size=(1, 1))  # transparency first, then interpolation
    assert 0.55 < small.X[0, 0] < 0.75


@pytest.mark.parametrize(
    ("pixels", "told"),
    [
        (np.array([[0.0, 0.25, 1.0]], dtype=np.float32), None),
        (np.array([[0.0, 2.0]], dtype=np.float32), "from 0.0 to 2.0, which must"),
        (np.array([[-1.0, 1.0]], dtype=np.float32), "from -1.0 to 1.0"),
        (np.array([[np.nan, 1.0]], dtype=np.float32), "from nan to nan"),
        (np.array([[0, 2**29, 2**31 - 1]], dtype=np.int32), None),
        (np.array([[-1, 2**30]], dtype=np.int32), "grey values from -1 to"),
        (np.array([[0, 70, 255]], dtype=np.int32), "save it with 16 bits"),
        (np.zeros((1, 3), dtype=np.int32), None),
    ],
)
def test_deep_images_are_in_the_unit_interval(tmp_path: Path, pixels, told) -> None:
    image = pytest.importorskip("PIL.Image", reason="pillow is not installed")
    folder = pictured(tmp_path, image.fromarray(pixels), "a.tif")
    if told is not None:
        with pytest.raises(DataFileError, match=told):
            read_table(folder)
        return
    white = 1 if pixels.dtype == np.float32 else 2**31 - 1
    np.testing.assert_allclose(read_table(folder).X, pixels / white, atol=1e-6)
    assert read_table(folder, color=True).image_shape == (1, 3, 3)
    enlarged = read_table(folder, size=(9, 9)).X
    assert enlarged.min() >= 0 and enlarged.max() <= 1


def test_unsigned_integers_and_reversed_greys_of_tiff(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image", reason="pillow is not installed")
    pixels = np.array([[0, 2**31, 2**32 - 1]], dtype=np.uint32)
    folder = pictured(tmp_path / "u", image.fromarray(pixels.view(np.int32)), "a.tif")
    path = folder / "c" / "a.tif"
    entry = struct.pack("<HHIH", 339, 3, 1, 2)  # the tag that says signed
    content = path.read_bytes()
    assert content.count(entry) == 1
    path.write_bytes(content.replace(entry, struct.pack("<HHIH", 339, 3, 1, 1)))
    np.testing.assert_allclose(read_table(folder).X, [[0, 0.5, 1]], atol=1e-6)
    deep = image.fromarray(GREY.astype(np.uint16) * 257)
    folder = pictured(tmp_path / "w", deep, "a.tif", tiffinfo={262: 0})
    with image.open(folder / "c" / "a.tif") as opened:
        is_reversed = opened.tag_v2[262] == 0
    shares = 1 - GREY / 255 if is_reversed else GREY / 255
    np.testing.assert_allclose(read_table(folder).X, [shares.ravel()], atol=1e-6)


@pytest.mark.parametrize("suffix", [".jpg", ".tif", ".png"])
def test_images_are_turned_as_their_exif_data_say(tmp_path: Path, suffix: str) -> None:
    image = pytest.importorskip("PIL.Image", reason="pillow is not installed")
    pixels = np.zeros((16, 32), dtype=np.uint8)
    pixels[:, 16:] = 255
    exif = image.Exif()
    exif[274] = 6  # to be turned by a quarter, so that the right becomes the bottom
    picture = image.fromarray(pixels)
    table = read_table(pictured(tmp_path, picture, f"a{suffix}", exif=exif))
    assert table.image_shape == (32, 16)
    seen = table.X.reshape(32, 16)
    assert seen[:14].max() < 0.1 and seen[18:].min() > 0.9


def test_files_of_several_images_are_refused(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image", reason="pillow is not installed")
    one, two = image.fromarray(GREY), image.fromarray(255 - GREY)
    for name in ("a.gif", "a.tif"):
        folder = pictured(
            tmp_path / name, one, name, save_all=True, append_images=[two]
        )
        with pytest.raises(DataFileError, match="holds 2 pictures"):
            read_table(folder)
    phone = pictured(
        tmp_path / "p", one, "a.jpg", format="MPO", save_all=True, append_images=[two]
    )
    assert read_table(phone).X.shape == (1, 6)  # the others are previews


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs POSIX")
@pytest.mark.parametrize(
    ("reader", "name"),
    [
        (read_table, "d.csv"),
        (read_table, "d.npy"),
        (read_table, "folder/a.png"),
        (read_table, "folder/cat/a.png"),
        (open_rows, "d.npy"),
        (open_rows, "folder/a.parquet"),
    ],
)
def test_pipes_are_refused(tmp_path: Path, reader, name: str) -> None:
    """Opening one would wait for ever, so the reader runs in a thread of its own."""
    pytest.importorskip("PIL.Image", reason="pillow is not installed")
    pipe = tmp_path / name
    pipe.parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(pipe)
    if name == "folder/a.png":  # beside images
        image_folder(tmp_path / "folder", {"b.png": (2, 2)})
    path = tmp_path / Path(name).parts[0]
    said: list[str] = []
    thread = threading.Thread(target=lambda: said.append(refusal(reader, path)))
    thread.start()
    thread.join(20)
    with contextlib.suppress(OSError):  # lets a reader that waits go on
        os.close(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))
    thread.join()
    assert said == [f"{pipe}: is not a regular file: save it as one, or remove it"]


def refusal(reader, path: Path) -> str:
    """The message of a reader that refuses a file."""
    try:
        reader(path)
    except DataFileError as error:
        return str(error)
    return ""


def test_files_that_are_no_images_are_mentioned(tmp_path: Path) -> None:
    folder = image_folder(tmp_path / "set", {"__other__/a.png": (2, 2)})
    (folder / "__other__" / "b.heic").write_bytes(b"of a phone")
    (folder / "__MACOSX").mkdir()
    with pytest.warns(UserWarning, match=r"by their names are left out: 'b\.heic'"):
        assert read_table(folder).y.tolist() == ["__other__"]


def test_images_beside_sub_folders_are_mentioned(tmp_path: Path) -> None:
    shapes = {"cat/a.png": (2, 2), "b.png": (2, 2)}
    folder = image_folder(tmp_path / "set", shapes)
    with pytest.warns(UserWarning, match=r"are left out: 'b\.png'"):
        assert read_table(folder).X.shape == (1, 4)


# -- small files that would take gigabytes -------------------------------------------


@contextlib.contextmanager
def peak_below(n_bytes: int) -> Iterator[None]:
    """Fail if Python and NumPy allocate more."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < n_bytes
    finally:
        tracemalloc.stop()


def arrow_peak(code: str) -> int:
    """The most that Arrow allocates while a process of its own runs the code."""
    lines = [
        "import sys",
        "from kernlets import options",
        "from kernlets.datasets import DataFileError, open_rows, read_table",
        code,
        "import pyarrow",
        "print(pyarrow.default_memory_pool().max_memory())",
    ]
    command = [sys.executable, "-c", "\n".join(lines)]
    return int(subprocess.run(command, check=True, capture_output=True).stdout)


def test_one_long_label_does_not_make_all_labels_long(tmp_path: Path) -> None:
    long = "x" * 100_000
    rows = "".join(f"{j},kind {j % 300}\n" for j in range(3000))
    path = written(tmp_path / "d.csv", f"a,label\n{rows}0,{long}\n")
    with peak_below(20_000_000):  # 1.2 GB as text of one width
        y = read_table(path).y
    assert y[-1] == long and y[0] == "kind 0"
    cells = np.empty((3000, 1), dtype=object)
    cells[:, 0] = "kind"
    cells[-1, 0] = long
    scipy.io.savemat(tmp_path / "d.mat", {"X": np.ones((3000, 2)), "y": cells})
    with peak_below(20_000_000):
        assert read_table(tmp_path / "d.mat").y[-1] == long


@pytest.mark.parametrize("reader", ["read_table", "open_rows"])
def test_a_long_label_of_parquet_is_in_memory_once(tmp_path: Path, reader: str) -> None:
    values = np.arange(2000.0)
    path = parquet(tmp_path / "d.parquet", a=values, label=["x" * 100_000] * 2000)
    code = f"y = {reader}({str(path)!r}).y\nassert y[-1] == 'x' * 100_000"
    assert arrow_peak(code) < 20_000_000  # 200 MB of text


def test_a_small_file_of_parquet_with_many_rows(tmp_path: Path) -> None:
    path = parquet(tmp_path / "d.parquet", a=np.zeros(10**7), b=np.zeros(10**7))
    assert path.stat().st_size < 200_000
    code = (
        "with options(memory='100MB'):\n"
        f"    try: read_table({str(path)!r})\n"
        "    except DataFileError as error: assert 'the memory option' in str(error)\n"
        "    else: sys.exit(1)"
    )
    assert arrow_peak(code) < 20_000_000


def test_arrays_that_are_not_used_are_not_read(tmp_path: Path) -> None:
    rows, large = np.ones((10, 3)), np.zeros((1000, 1000))
    np.savez_compressed(tmp_path / "d.npz", X=rows, y=np.arange(10), other=large)
    scipy.io.savemat(tmp_path / "d.mat", {"other": large, "X": rows})
    for name in ("d.npz", "d.mat"):
        with peak_below(2_000_000):
            assert read_table(tmp_path / name).X.shape == (10, 3)


def large_file(path: Path) -> Path:
    """A file of 1000 rows of 1000 zeros."""
    rows = np.zeros((1000, 1000))
    if path.suffix == ".npz":
        np.savez_compressed(path, X=rows)
    elif path.suffix == ".mat":
        scipy.io.savemat(path, {"X": rows})
    elif path.suffix == ".parquet":
        parquet(path, **{f"c{j}": column for j, column in enumerate(rows)})
    elif path.suffix == ".sparse":
        path = path.with_suffix(".mat")
        scipy.io.savemat(path, {"X": scipy.sparse.csc_matrix(rows)})
    else:
        image = pytest.importorskip("PIL.Image", reason="pillow is not installed")
        (path / "c").mkdir(parents=True)
        for name in "ab":
            image.fromarray(rows.astype(np.uint8)).save(path / "c" / f"{name}.png")
    return path


@pytest.mark.parametrize("name", ["d.npz", "d.mat", "d.sparse", "d.parquet", "folder"])
def test_what_does_not_fit_into_the_memory_option_is_refused(
    tmp_path: Path, name: str
) -> None:
    path = large_file(tmp_path / name)
    with options(memory="7MB"), peak_below(7_000_000):
        with pytest.raises(DataFileError, match=r"more than the memory option.*--mem"):
            read_table(path)
    with options(memory="100MB"):
        assert read_table(path).X.size in (10**6, 2 * 10**6)


def test_the_number_of_images_counts(tmp_path: Path) -> None:
    path = large_file(tmp_path / "folder")  # each alone would fit
    with options(memory="7.9MB"):
        with pytest.raises(DataFileError, match="more than the memory option"):
            read_table(path, size=(990, 1000))
    with options(memory="8.1MB"):
        assert read_table(path, size=(990, 1000)).X.shape == (2, 990_000)


def test_a_large_image_takes_the_memory_of_its_pixels(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image", reason="pillow is not installed")
    (tmp_path / "c").mkdir()
    image.new("L", (1000, 1000)).save(tmp_path / "c" / "a.png")
    with peak_below(20_000_000):  # names of columns would take 60 MB
        assert read_table(tmp_path).X.shape == (1, 1_000_000)


def test_the_limit_of_pillow_is_named(tmp_path: Path, monkeypatch) -> None:
    image = pytest.importorskip("PIL.Image", reason="pillow is not installed")
    monkeypatch.setattr(image, "MAX_IMAGE_PIXELS", 100)
    folder = image_folder(tmp_path / "set", {"c/a.png": (11, 11)})
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # the memory option is the limit here
        assert read_table(folder).X.shape == (1, 121)
    folder = image_folder(tmp_path / "more", {"c/a.png": (20, 20)})
    with pytest.raises(DataFileError, match=r"PIL\.Image\.MAX_IMAGE_PIXELS"):
        read_table(folder)


def test_labels_of_characters_in_mat(tmp_path: Path) -> None:
    scipy.io.savemat(tmp_path / "d.mat", {"X": X, "y": np.array(["cat", "dog", "cat"])})
    assert read_table(tmp_path / "d.mat").y.tolist() == WORDS.tolist()


# -- damage of every kind -----------------------------------------------------------


def whole_file(path: Path) -> Path:
    """A file of 200 x 20 numbers of the kind its suffix names."""
    rows = np.random.default_rng(0).standard_normal((200, 20))
    if path.suffix == ".npz":
        np.savez_compressed(path, X=rows)
    elif path.suffix == ".npy":
        np.save(path, rows)
    elif path.suffix == ".mat":
        scipy.io.savemat(path, {"X": rows}, do_compression=True)
    else:
        parquet(path, **{f"c{j}": column for j, column in enumerate(rows.T)})
    return path


@pytest.mark.parametrize("suffix", [".npz", ".npy", ".mat", ".parquet"])
@pytest.mark.parametrize("share", [0.02, 0.5, 0.97])
def test_truncated_binary_file(tmp_path: Path, suffix: str, share: float) -> None:
    path = whole_file(tmp_path / f"d{suffix}")
    assert read_table(path).X.shape == (200, 20)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    assert "again" in failure(path)


@pytest.mark.parametrize("suffix", [".npz", ".npy", ".csv", ".tsv", ".mat", ".parquet"])
def test_empty_file(tmp_path: Path, suffix: str) -> None:
    assert "is empty" in failure(written(tmp_path / f"d{suffix}", ""))


@pytest.mark.parametrize("suffix", [".npz", ".npy", ".csv", ".mat", ".parquet"])
def test_file_of_another_kind(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"d{suffix}"
    path.write_bytes(bytes(range(256)) * 8)
    failure(path)


def test_array_files_under_each_others_name(tmp_path: Path) -> None:
    np.savez(tmp_path / "d.npz", X=X)
    (tmp_path / "d.npz").rename(tmp_path / "d.npy")
    failure(tmp_path / "d.npy")
    np.save(tmp_path / "e.npy", X)
    (tmp_path / "e.npy").rename(tmp_path / "e.npz")
    failure(tmp_path / "e.npz")


def test_missing_and_unknown_files(tmp_path: Path) -> None:
    assert "does not exist" in failure(tmp_path / "no.csv")
    assert "is none of .npz" in failure(written(tmp_path / "d.xls", "1,2"))


@pytest.mark.parametrize(
    ("library", "name"), [("pyarrow.parquet", "d.parquet"), ("PIL", "")]
)
def test_missing_library_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, library: str, name: str
) -> None:
    path = written(tmp_path / name, "x") if name else tmp_path
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(
        ImportError, match=r"pip install 'kernlets\[(parquet|images)\]'"
    ):
        read_table(path)
