"""Columns of text in tables: coded by values, left out, and read again for a model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from kernlets import datasets
from kernlets.datasets import DataFileError, read_table
from kernlets.io.text_columns import source_columns

COLOURS = ["red", "blue", "", "red"]


def write_csv(path: Path, n_rows: int = 40) -> Path:
    """Write a table with a name, two colours, a mixed ticket, a date and a number."""
    lines = ["name,colour,ticket,when,size"]
    for i in range(n_rows):
        ticket = f"PC {i}" if i % 3 else str(i)
        when = f"2020-{1 + i // 28:02d}-{1 + i % 28:02d}"
        lines.append(f"n{i % 30},{COLOURS[i % 4]},{ticket},{when},{i * 0.5}")
    path.write_text("\n".join(lines) + "\n")
    return path


def to_parquet(path: Path) -> Path:
    """Write the same table in Parquet."""
    csv = pytest.importorskip("pyarrow.csv")
    parquet = pytest.importorskip("pyarrow.parquet")
    options = csv.ConvertOptions(strings_can_be_null=True)
    table = csv.read_csv(path, convert_options=options)
    colour = table.schema.get_field_index("colour")
    table = table.set_column(colour, "colour", table["colour"].dictionary_encode())
    parquet.write_table(table, path.with_suffix(".parquet"))
    return path.with_suffix(".parquet")


@pytest.mark.parametrize("convert", [Path, to_parquet])
def test_few_values_are_coded_and_many_are_left_out(
    tmp_path: Path, convert: type[Path]
) -> None:
    path = convert(write_csv(tmp_path / "t.csv"))
    with pytest.warns(UserWarning) as warned:
        table = read_table(path, label=False, keep=[], gaps=True)
    assert table.feature_names == ["colour=blue", "colour=red", "size"]
    assert table.text_columns == {"colour": ["blue", "red"]}
    assert table.left_out == ("name", "ticket", "when")
    (text,) = [str(warning.message) for warning in warned]
    assert "'name', 'ticket', 'when' hold text with more than 4 values" in text
    nan = np.nan
    expected = [[0, 1, 0], [1, 0, 0.5], [nan, nan, 1], [0, 1, 1.5]]
    assert_array_equal(table.X[:4], expected)


@pytest.mark.parametrize("convert", [Path, to_parquet])
def test_a_model_reads_other_values_and_columns_in_another_order(
    tmp_path: Path, convert: type[Path]
) -> None:
    path = tmp_path / "new.csv"
    path.write_text("size,colour,sunny\n1,green,True\n2,,False\n3,blue,True\n")
    columns = ["sunny=True", "colour=blue", "colour=red", "size"]
    with pytest.warns(UserWarning) as warned:
        table = read_table(convert(path), columns=columns, gaps=True)
    texts = [str(warning.message) for warning in warned]
    assert ["'sunny'" in texts[0], "'colour'" in texts[1]] == [True, True]
    assert "values that the model does not know: 'green': they count as" in texts[1]
    assert table.feature_names == columns
    expected = [[1, 0, 0, 1], [0, np.nan, np.nan, 2], [1, 1, 0, 3]]
    assert_array_equal(table.X, expected)


def test_columns_of_one_text_may_be_apart(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b\nx,1\ny,2\n")
    table = read_table(path, columns=["a=y", "b", "a=x"])
    assert table.X.tolist() == [[0, 1, 1], [1, 2, 0]]


def test_columns_that_are_coded_already_come_first(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,a=x\ny,5\nx,6\n")
    with pytest.warns(UserWarning, match="left out: 'a'"):
        assert read_table(path, columns=["a=x"]).X.tolist() == [[5], [6]]
    assert source_columns(["a=x", "b=1"], ["a", "a=x"]) == {"a=x": [], "b=1": []}


def test_files_without_a_header_are_matched_by_position(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    rows = [f"{i},{'ab'[i % 2]},n{i},{'no yes'.split()[i % 2]}" for i in (5, 2) * 20]
    path.write_text("\n".join(rows) + "\n")
    table = read_table(path, keep=[], header=False)
    names = ["column 0 of 3", "column 1 of 3=a", "column 1 of 3=b"]
    assert table.feature_names == [*names, "column 2 of 3=n2", "column 2 of 3=n5"]
    again = read_table(path, columns=table.feature_names)  # the label stands there, too
    assert_array_equal(again.X, table.X)
    path.write_text("\n".join(row.rpartition(",")[0] for row in rows) + "\n")
    again = read_table(path, columns=table.feature_names)
    assert_array_equal(again.X, table.X)
    assert again.y is None


def test_mistakes_among_numbers_remain_errors(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b\n" + "1,2\n" * 30 + "1,x\n")
    with pytest.raises(DataFileError, match=r"column 'b', line 32: 'x' is not a numb"):
        read_table(path, keep=[])
    path.write_text("a,b\n" + '1,"1,234"\n' * 30)
    with pytest.raises(DataFileError, match="marks of thousands"):
        read_table(path, label=False, keep=[])


def test_text_is_refused_unless_columns_are_chosen(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "t.csv")
    with pytest.raises(DataFileError, match="hold something else than numbers"):
        read_table(path, gaps=True)
    with pytest.raises(DataFileError, match="hold no numbers"):
        read_table(to_parquet(path), gaps=True)


def test_a_table_of_nothing_but_names_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b\n" + "".join(f"x{i},y{i}\n" for i in range(30)))
    with pytest.raises(DataFileError, match="hold something else than numbers"):
        read_table(path, label=False, keep=[])
    with pytest.raises(DataFileError, match="hold no numbers"):
        read_table(to_parquet_plain(path), label=False, keep=[])


def to_parquet_plain(path: Path) -> Path:
    csv, parquet = map(pytest.importorskip, ("pyarrow.csv", "pyarrow.parquet"))
    parquet.write_table(csv.read_csv(path), path.with_suffix(".parquet"))
    return path.with_suffix(".parquet")


@pytest.mark.parametrize("convert", [Path, to_parquet])
@pytest.mark.filterwarnings("ignore:.*are left out")
def test_columns_can_be_kept_chosen_and_dropped(
    tmp_path: Path, convert: type[Path]
) -> None:
    path = convert(write_csv(tmp_path / "t.csv"))
    kept = read_table(path, label=False, keep=["name"], gaps=True)
    assert kept.X.shape[1] == 33
    assert kept.left_out == ("ticket", "when")
    chosen = read_table(
        path, label=False, keep=[], columns=["size", "colour"], gaps=True
    )
    assert chosen.feature_names == ["colour=blue", "colour=red", "size"]
    assert chosen.left_out == ()
    dropped = ["name", "ticket", "when", "colour"]
    table = read_table(path, label=False, drop=dropped)
    assert table.feature_names == ["size"]
    assert table.left_out == (*dropped,)
    with pytest.raises(DataFileError, match="no column 'sizes' to drop: did you"):
        read_table(path, label=False, drop=["sizes"])
    with pytest.raises(DataFileError, match="no column 'sizes' to use: did you"):
        read_table(path, label=False, keep=[], columns=["sizes"])


def test_a_dropped_or_kept_column_is_no_label(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b,class\n" + "1,2,x\n3,4,y\n" * 10)
    assert read_table(path).label_name == "class"
    table = read_table(path, drop=["class"])
    assert (table.y, table.label_name) == (None, None)
    table = read_table(path, keep=["class"])
    assert table.feature_names == ["a", "b", "class=x", "class=y"]


def test_a_label_without_a_value_names_its_column(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,kind\n1,x\n2,\n3,y\n")
    with pytest.raises(DataFileError, match="line 3 has no label in column 'kind'"):
        read_table(path)


def test_names_and_values_that_cannot_be_told_apart_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a=b,c\n" + "x,1\ny,2\n" * 10)
    with pytest.raises(DataFileError, match="rename it without ="):
        read_table(path, keep=[])
    path.write_text("a,a=x\n" + "x,1\ny,1\n" * 10)
    with pytest.raises(DataFileError, match="2 columns called 'a=x'"):
        read_table(path, keep=[])
    path.write_text("a,c\n" + "x\x1b,1\ny,2\n" * 10)
    with pytest.raises(DataFileError, match="characters that cannot be shown"):
        read_table(path, keep=[])


def test_coded_columns_count_for_the_memory_option(tmp_path: Path) -> None:
    from kernlets import options

    path = tmp_path / "t.csv"
    n = 3000
    path.write_text("a,b\n" + "".join(f"t{i},{i % 7}\n" for i in range(n)))
    with (
        options(memory=8 * n * n // 2),
        pytest.raises(DataFileError, match="more than the memory option"),
    ):
        read_table(path, label=False, keep=["a"])


def test_missing_text_is_an_error_where_gaps_are(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b\nx,1\n,2\n")
    with pytest.raises(DataFileError, match="column 'a', line 3: the cell is empty"):
        read_table(path, columns=["a=x", "b"])


@pytest.mark.filterwarnings("ignore:.*are left out")
def test_text_of_files_larger_than_memory(tmp_path: Path) -> None:
    path = to_parquet(write_csv(tmp_path / "t.csv"))
    with pytest.raises(DataFileError, match=r"'colour' .* or remove them \(--drop\)"):
        datasets.open_rows(path, keep=[])
    table = datasets.open_rows(path, keep=[], drop=["colour"])
    assert table.feature_names == ["size"]
    assert table.left_out == ("colour", "name", "ticket", "when")


@pytest.mark.filterwarnings("ignore:.*are? left out")
@pytest.mark.parametrize("convert", [lambda path: path, to_parquet])
@pytest.mark.parametrize("last", ["2020-{:02d}-11", "{}/2/1999", "1.{}.20 10:30"])
def test_a_last_column_of_dates_is_no_label(tmp_path: Path, convert, last) -> None:
    path = tmp_path / "t.csv"
    lines = [
        f"{'red' if i % 2 else 'blue'},{i / 7},{last.format(1 + i % 12)}\n"
        for i in range(40)
    ]
    path.write_text("colour,size,when\n" + "".join(lines))
    if convert is to_parquet and not last.startswith("2020"):
        pytest.skip("in Parquet other dates are text")
    table = read_table(convert(path), keep=[])
    assert table.y is None and table.left_out == ("when",)


def test_a_column_of_text_that_is_not_there_is_named_once(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("size\n1\n2\n")
    with pytest.raises(DataFileError, match=r"lacks the model's columns 'colour', but"):
        read_table(path, columns=["colour=red", "colour=blue"])
