"""``fit --search``, ``fit --holdout`` and ``explain`` on the command line."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest
from sklearn.datasets import load_wine
from sklearn.pipeline import Pipeline
from typer.testing import CliRunner

from kernlets import load
from kernlets.cli.app import app
from kernlets.cli.build import Recipe


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
