"""What `--help` and `list` show on a terminal of 80 columns."""

from __future__ import annotations

import re

import pytest
import typer.rich_utils
from typer.testing import CliRunner

from kernlets import registry
from kernlets.cli import app
from kernlets.cli.model_info import first_part

COMMANDS = [
    command.name or command.callback.__name__
    for command in app.registered_commands
    if command.callback is not None
]


@pytest.fixture(autouse=True)
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal of 80 columns, as typer, rich and Python see it."""
    monkeypatch.setattr(typer.rich_utils, "MAX_WIDTH", 80)
    monkeypatch.setenv("COLUMNS", "80")


def shown(*arguments: str) -> str:
    result = CliRunner().invoke(app, [*arguments])
    assert result.exit_code == 0
    text = re.sub(r"\x1b\[[\d;]*m", "", result.stdout)
    assert max(map(len, text.splitlines())) <= 80
    assert "…" not in text
    return text


@pytest.mark.parametrize("command", COMMANDS)
def test_help_shows_all_and_an_example(command: str) -> None:
    text = shown(command, "--help")
    (example,) = re.findall(r"Example: kernlets (\w+) (.*)", text)
    assert example[0] == command
    for option in re.findall(r"-[\w-]+", example[1]):
        assert re.search(rf"[│ ,]{option}\s", text), option


def test_options_of_fit_stand_in_groups() -> None:
    text = shown("fit", "--help")
    titles = re.findall(r"╭─ (\w+) ─", text)
    groups = ["Output", "Input", "Accuracy", "Method", "Computer"]
    assert titles == ["Arguments", "Options", *groups]
    assert "nystroemmap__kernel__degree=3" in text
    (ungrouped,) = re.findall(r"╭─ Options (.*?)╰", text, re.DOTALL)
    assert re.findall(r"--\w+", ungrouped) == ["--help"]


def test_help_is_wrapped_between_words_only_where_it_is_full() -> None:
    text = shown("predict", "--help")
    assert "with a score that is higher for less normal rows, and with" in " ".join(
        text.split()
    )
    assert "score that\n" not in text.split("╭")[0]


def test_list_has_one_line_for_everything() -> None:
    lines = shown("list").splitlines()
    names = [line.split()[0] for line in lines if line.startswith("  ")]
    for kind in registry.TABLES:
        assert kind in lines
        for name in registry.table(kind):
            assert name in names
    for name in ("UnitNorm", "Standardize", "ImageDenoiser", "PatchDictionaryMap"):
        assert names.count(name) == 1
    assert len(names) == len([line for line in lines if line[:2] == "  "])


def test_list_of_a_kind_has_whole_sentences() -> None:
    text = " ".join(shown("list", "learners").split())
    for entry in registry.table("learners").values():
        assert " ".join(registry.summary(entry).split()) in text


def test_sentences_are_cut_at_marks_outside_of_brackets() -> None:
    assert first_part("f(a, b) is short", 20) == "f(a, b) is short"
    assert first_part("a long clause, f(a, b) and so on", 24) == "a long clause"
    assert first_part("one two three four (five, six)", 28) == "one two three four ..."
