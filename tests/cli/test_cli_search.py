"""``fit --search``, ``fit --holdout`` and ``explain`` on the command line."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import Any

import pytest
from sklearn.datasets import load_wine
from sklearn.pipeline import Pipeline
from typer.testing import CliRunner

from kernlets import load
from kernlets.base.row_names import row_names
from kernlets.cli.app import app
from kernlets.cli.recipe import Recipe


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("search") / "wine.csv"
    wine = load_wine()
    with path.open("w") as file:
        lines = csv.writer(file)
        lines.writerow([*wine.feature_names, "class"])
        rows = zip(wine.data.tolist(), wine.target, strict=True)
        lines.writerows([*row, f"kind {label}"] for row, label in rows)
    return path


def run(*arguments: Any) -> Any:
    return CliRunner().invoke(app, [str(each) for each in arguments])


def test_search_and_holdout(table: Path, tmp_path: Path) -> None:
    model = tmp_path / "wine.kernlets"
    # candidates end the search, not the clock: the same on every machine
    options = ["--search", "1h", "--holdout", "0.25", "--set", "max_candidates=8"]
    done = run("fit", table, "-m", model, *options)
    assert done.exit_code == 0, done.output
    facts = dict(line.split(None, 1) for line in done.output.splitlines())
    assert facts["candidates"] == "8 tried" and "scale standard" in facts["chosen"]
    assert facts["rows"] == "133 of 13 features"
    share, _, counts = facts["accuracy"].partition(" ")
    assert counts.endswith("of 45)") and float(share) > 0.9
    loaded = load(model)
    assert isinstance(loaded, Pipeline) and loaded.n_features_in_ == 13

    told = run("explain", model, table, "--rows", "2")
    assert told.exit_code == 0, told.output
    assert told.output.startswith("row 0: label kind 0\n")
    assert "row 1: label kind 0\n" in told.output


@pytest.mark.parametrize("method", ["src", "lkdl", "outliers"])
def test_training_rows_are_named_as_in_the_file(
    method: str, table: Path, tmp_path: Path
) -> None:
    """A training row is explained by itself, and no row that was held out is named."""
    model = tmp_path / "m"
    options = ["--method", method, "--holdout", "0.5", "--quiet"]
    assert run("fit", table, "-m", model, *options).exit_code == 0
    fitted = row_names(load(model))
    told = run("explain", model, table, "--rows", "178")
    assert told.exit_code == 0, told.output
    first: dict[int, int] = {}  # row of the file: the training row that counts most
    for part in re.split("(?m)^row ", told.output)[1:]:
        named = re.search(r"(?:^  row |training row: )(\d+)", part, re.MULTILINE)
        if named is not None:
            first[int(part.partition(":")[0])] = int(named[1])
    assert len(first) == 178
    assert set(first.values()) <= set(fitted.tolist())
    if method == "src":
        assert all(first[row] == row for row in fitted.tolist())


def test_more_rows_are_explained_than_are_read_at_once(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("fit", table, "-m", tmp_path / "m", "--method", "src").exit_code == 0
    monkeypatch.setattr("kernlets.cli.input_data.BATCH_BYTES", 1)
    told = run("explain", tmp_path / "m", table, "--rows", "3")
    assert told.output.count(": label ") == 3


def test_holdout_is_no_part_of_the_fit(table: Path, tmp_path: Path) -> None:
    model = tmp_path / "m"
    done = run("fit", table, "-m", model, "--method", "src", "--holdout", "0.5")
    assert done.exit_code == 0, done.output
    assert "of 89)" in done.output
    assert load(model)[-1].dictionary_.n_atoms == 89


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--search", "9s", "--kernel", "rbf"], "--kernel: a search chooses that"),
        (["--search", "9s", "--atoms", "3"], "--atoms: a search chooses that"),
        (["--search", "9s", "--method", "ksvd"], "--method ksvd: leave it out"),
        (["--search", "9s", "--unsupervised"], "--search needs labels"),
        (["--holdout", "0.5", "--unsupervised"], "--holdout needs labelled rows"),
        (["--holdout", "0.01"], "0.01 of 178 rows is 2, but there are 3 classes"),
        (["--search", "soon"], "'soon' is no time: write e.g. 60s"),
        (["--search", "0s"], "'0s' is no time"),
        (["--holdout", "0.5", "--test", "wine.csv"], "give one of them"),
    ],
)
def test_what_does_not_go_together(
    options: list[str], told: str, table: Path, tmp_path: Path
) -> None:
    done = run("fit", table, "-m", tmp_path / "m", *options)
    text = done.output + str(done.exception)
    assert done.exit_code != 0 and told in " ".join(text.replace("│", "").split())
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize(("text", "seconds"), [("90", 90), ("2m", 120), ("1h", 3600)])
def test_times(text: str, seconds: float) -> None:
    from kernlets.cli.options import _seconds

    assert _seconds(text) == seconds
    assert Recipe(search=_seconds(text)).build(labelled=True).seconds == seconds
