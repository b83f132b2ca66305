"""The README is short, its code prints what it shows, its numbers are measured."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from demo.first_picture import IMPUTED, NEIGHBORS, OURS, ZEROS, experiment, shown_digit
from kernlets.cli.app import app

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")
ROWS = {
    OURS: "kernlets, as above",
    IMPUTED: "`KNNImputer`, then `SVC(C=10)`",
    NEIGHBORS: '`KNeighborsClassifier(5, metric="nan_euclidean")`',
    ZEROS: "`SVC(C=10)`, unknown pixels set to 0",
}


def blocks(kind):
    return re.findall(rf"```{kind}\n(.*?)```", README, re.DOTALL)


@pytest.fixture(scope="module")
def measured():
    return experiment()


def test_it_is_short_and_begins_with_what_to_do():
    lines = README.splitlines()
    assert len(lines) < 150
    assert any("pip install ." in line for line in lines[:16])


def test_the_code_prints_what_it_shows(capsys):
    (code,), (shown,) = blocks("python"), blocks("text")
    assert len([line for line in code.splitlines() if line]) <= 8
    exec(code, {})
    assert capsys.readouterr().out == shown


def test_the_table_has_the_accuracies_of_the_same_split(measured):
    accuracies = measured.accuracies()
    assert set(accuracies) == set(ROWS)
    for name, words in ROWS.items():
        assert f"| {words} | {100 * accuracies[name]:.0f} % |" in README
    assert f"{accuracies[OURS]:.0%}" in blocks("text")[0]


def test_the_caption_says_what_the_picture_shows(measured):
    i = shown_digit(measured)
    answers = {name: labels[i] for name, labels in measured.predictions().items()}
    assert answers[OURS] == measured.y[i]
    assert f"fills in the rest and answers {answers[OURS]}." in README
    assert answers[NEIGHBORS] == answers[IMPUTED]
    assert f"behind an imputer answer {answers[IMPUTED]}." in README


def test_links_lead_to_files():
    links = re.findall(r"\]\((?!http)([^)#]+)[^)]*\)", README)
    assert len(links) > 20
    for link in [*links, *re.findall(r'src="([^"]+)"', README)]:
        assert (ROOT / link).exists(), link


def test_commands_exist():
    makefile = (ROOT / "Makefile").read_text("utf-8")
    for target in re.findall(r"`?make ([a-z]+)", README):
        assert f"\n{target}:" in makefile, target
    terminal = README[
        README.index("## In a terminal") : README.index("## Two commands")
    ]
    commands = re.findall("^kernlets (.*)$", terminal, re.MULTILINE)
    assert len(commands) == 3
    for command in commands:
        name, *words = command.split()
        described = CliRunner().invoke(app, [name, "--help"]).output
        for option in (word for word in words if word.startswith("-")):
            assert option in described, command
