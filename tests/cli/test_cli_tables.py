"""Tables as people have them: text, gaps, names, dates and truth values in columns."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from typer.testing import CliRunner, Result

from kernlets import load
from kernlets.cli import app

ISLANDS = {
    "Adelie": ["Torgersen", "Biscoe"],
    "Chinstrap": ["Dream"],
    "Gentoo": ["Biscoe"],
}
SIZES = {"Adelie": (39, 18), "Chinstrap": (49, 18), "Gentoo": (47, 15)}
FIT = ["--atoms", "5", "--iterations", "2", "--n-landmarks", "40"]


@pytest.fixture(scope="module")
def penguins(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table like that of the penguins: species, island, two numbers and the sex."""
    rng = np.random.default_rng(0)
    lines = ["species,island,bill_length_mm,bill_depth_mm,sex"]
    for i in range(120):
        species = [*SIZES][i // 40]
        island = ISLANDS[species][i % len(ISLANDS[species])]
        length, depth = SIZES[species] * (1 + 0.03 * rng.normal(size=2))
        sex = "" if i % 11 == 5 else ["MALE", "FEMALE"][i % 2]
        numbers = "NA,NA" if i == 3 else f"{length:.1f},{depth:.1f}"
        lines.append(f"{species},{island},{numbers},{sex}")
    path = tmp_path_factory.mktemp("tables") / "penguins.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def titanic(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table like that of the Titanic: numbers of rows, names, tickets, dates."""
    rng = np.random.default_rng(1)
    lines = ["PassengerId,Survived,Name,Sex,Age,Ticket,Cabin,Boarded,Alone"]
    for i in range(120):
        survived = i % 2
        sex = ["male", "female"][int(rng.random() < (0.9 if survived else 0.1))]
        age = "" if i % 7 == 0 else str(rng.integers(1, 80))
        ticket = f"PC {1000 + i}" if i % 3 == 0 else str(2000 + i)
        cabin = f"C{i}" if i % 4 == 0 else ""
        day = f"1912-04-{1 + i % 28:02d}"
        name = f'"Doe, Mr. J. ""{i}"""'
        lines.append(
            f"{i + 1},{survived},{name},{sex},{age},{ticket},{cabin},{day},{i % 3 == 0}"
        )
    path = tmp_path_factory.mktemp("tables") / "titanic.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def model(penguins: Path) -> Path:
    """A classifier of penguins."""
    path = penguins.with_name("p.kernlets")
    run("fit", penguins, "-m", path, "--label", "species", *FIT)
    return path


def run(*arguments: object) -> Result:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result


def refusal(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 1, result.output
    assert result.stderr.count("\n") == 1
    return result.stderr


def facts(result: Result) -> dict[str, str]:
    pairs = (line.partition("  ") for line in result.stdout.splitlines())
    return {name: value.strip() for name, _, value in pairs}


def test_a_table_with_text_is_fitted_at_once(penguins: Path, tmp_path: Path) -> None:
    options = ["--label", "species", "--holdout", "0.25", *FIT]
    result = run("fit", penguins, "-m", tmp_path / "p.kernlets", *options)
    told = facts(result)
    assert told["label"] == "'species'"
    text = "'island' (3 values), 'sex' (2 values), a column of 0 and 1 for each value"
    assert told["text"] == text
    assert "left out" not in told
    assert told["rows"] == "90 of 7 features"
    assert told["scaling"].startswith("each column to mean 0 and variance 1 (a table")
    assert told["kernel"].startswith("Laplacian(gamma=0.")
    assert told["kernel"].endswith("(goes with the scaling; --kernel changes it)")
    assert float(told["accuracy"].split()[0]) > 0.9
    assert result.stderr == ""


def test_columns_that_name_rows_are_left_out(titanic: Path, tmp_path: Path) -> None:
    path = tmp_path / "t.kernlets"
    result = run("fit", titanic, "-m", path, "--label", "Survived", *FIT)
    left_out = ["Name", "Ticket", "Cabin", "Boarded", "PassengerId"]
    assert facts(result)["left out"] == ", ".join(map(repr, left_out))
    many = "columns 'Name', 'Ticket', 'Cabin', 'Boarded' hold text with more than 12"
    assert many in result.stderr
    assert "column 'PassengerId' only tells rows apart" in result.stderr
    names = ["Sex=female", "Sex=male", "Age", "Alone=False", "Alone=True"]
    assert load(path).feature_names_in_.tolist() == names
    score = facts(run("score", path, titanic, "--label", "Survived"))["accuracy"]
    assert float(score.split()[0]) > 0.75
    card = run("info", path, "--card").stdout
    assert "| label | 'Survived' |" in card
    assert "| left out | 'Name', 'Ticket'," in card


def test_other_commands_take_the_same_table(
    penguins: Path, model: Path, tmp_path: Path
) -> None:
    labels = run("predict", model, penguins).stdout.split()
    truth = [line.split(",")[0] for line in penguins.read_text().splitlines()[1:]]
    assert np.mean(np.array(labels) == truth) > 0.9
    codes = tmp_path / "codes.npy"
    run("transform", model, penguins, "-o", codes)
    assert np.load(codes).shape == (120, 15)
    assert "row 0: label Adelie" in run("explain", model, penguins).stdout
    reordered = tmp_path / "reordered.csv"
    rows = [line.split(",") for line in penguins.read_text().splitlines()]
    reordered.write_text("\n".join(",".join(row[:0:-1]) for row in rows) + "\n")
    again = run("predict", model, reordered)
    assert again.stdout.split() == labels
    assert again.stderr == ""


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_predictions_are_those_of_the_coded_rows(penguins: Path, model: Path) -> None:
    fitted = load(model)
    lines = [line.split(",") for line in penguins.read_text().splitlines()[1:]]
    X = []
    for _, island, length, depth, sex in lines:
        islands = [float(island == name) for name in ("Biscoe", "Dream", "Torgersen")]
        sexes = [float(sex == name) if sex else np.nan for name in ("FEMALE", "MALE")]
        numbers = [np.nan if n == "NA" else float(n) for n in (length, depth)]
        X.append([*islands, *numbers, *sexes])
    labels = run("predict", model, penguins).stdout.split()
    assert_array_equal(fitted.predict(np.array(X)), labels)


def test_values_that_the_model_does_not_know(model: Path, tmp_path: Path) -> None:
    new = tmp_path / "new.csv"
    new.write_text(
        "island,bill_length_mm,bill_depth_mm,sex\nCormorant,39,18,MALE\nDream,49,18,\n"
    )
    result = run("predict", model, new)
    assert result.stdout.split()[1] == "Chinstrap"
    warning = "column 'island' has values that the model does not know: 'Cormorant'"
    assert warning in result.stderr
    new.write_text("bill_length_mm,bill_depth_mm,sex\n39,18,MALE\n")
    assert "lacks the model's columns 'island': " in refusal("predict", model, new)


def test_columns_and_drop(titanic: Path, tmp_path: Path) -> None:
    path, label = tmp_path / "t.kernlets", ["--label", "Survived"]
    columns = ["--columns", "Survived, Sex,Age"]
    result = run("fit", titanic, "-m", path, *label, *columns, *FIT)
    assert load(path).feature_names_in_.tolist() == ["Sex=female", "Sex=male", "Age"]
    assert result.stderr == ""
    drop = ["--drop", "PassengerId,Name,Ticket,Cabin,Boarded,Alone,Sex"]
    result = run("fit", titanic, "-m", path, *label, *drop, *FIT)
    assert load(path).feature_names_in_.tolist() == ["Age"]
    assert result.stderr == ""
    assert facts(result)["left out"].startswith("'PassengerId', 'Name'")
    run("score", path, titanic, *label)
    message = refusal("fit", titanic, "-m", path, *label, "--drop", "age")
    assert "has no column 'age' to drop: did you mean 'Age'?" in message
    np.save(tmp_path / "X.npy", np.zeros((3, 2)))
    message = refusal("fit", tmp_path / "X.npy", "-m", path, "--drop", "age")
    assert "--drop is for .csv, .tsv, .parquet: leave it out" in message


def test_reasons_of_outliers_name_the_columns(penguins: Path, tmp_path: Path) -> None:
    path, strange = tmp_path / "o.kernlets", tmp_path / "strange.csv"
    method = ["--method", "outliers", "--label", "species"]
    result = run("fit", penguins, "-m", path, *method)
    unused = "'species' (left out; --keep makes it a feature)"
    assert facts(result)["label"] == unused
    strange.write_text(
        "island,bill_length_mm,bill_depth_mm,sex\nDream,95,18,MALE\nNowhere,47,15,MALE\n"
    )
    number, text = run("explain", path, strange, "--rows", "2").stdout.split("row 1:")
    assert number.splitlines()[1].strip().startswith("bill_length_mm is 95")
    assert text.splitlines()[1].strip().startswith("island=")


def test_a_test_table_has_other_values(penguins: Path, tmp_path: Path) -> None:
    test = tmp_path / "test.csv"
    lines = penguins.read_text().splitlines()
    test.write_text("\n".join(line.replace("Dream", "Elba") for line in lines))
    options = ["--label", "species", "--test", test, *FIT]
    result = run("fit", penguins, "-m", tmp_path / "p.kernlets", *options)
    assert "'island' has values that the model does not know: 'Elba'" in result.stderr
    assert "accuracy" in facts(result)


def test_a_label_with_gaps_says_what_to_do(penguins: Path, tmp_path: Path) -> None:
    path = tmp_path / "o.kernlets"
    message = refusal("fit", penguins, "-m", path, "--method", "outliers")
    assert "has no label in column 'sex'" in message
    assert "--keep makes it a feature" in message
    run("fit", penguins, "-m", path, "--method", "outliers", "--keep", "sex")
    assert load(path).n_features_in_ == 10
