"""``kernlets bench`` measures what it says."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from kernlets.cli.app import app
from kernlets.lab.bench.timing import timed_median
from kernlets.lab.speed import Row


def test_quick_run_writes_all_jobs(shared_data, tmp_path):
    done = CliRunner().invoke(app, ["bench", "--quick", "-o", str(tmp_path / "b.json")])
    assert done.exit_code == 0, done.output
    found = json.loads((tmp_path / "b.json").read_text())
    assert {row["job"] for row in found["rows"]} == {
        "OMP",
        "LKDL, MNIST",
        "exact kernel K-SVD, MNIST",
    }
    assert all(row["seconds"] > 0 and row["floor"] > 0 for row in found["rows"])
    assert [r["accuracy"] > 0.9 for r in found["rows"] if r["accuracy"]] == [True, True]


def test_ratio():
    assert Row("a", "b", seconds=3.0, floor=2.0).over_floor == 1.5


def test_first_run_is_not_timed():
    calls = []
    last, _ = timed_median(lambda: calls.append(1) or len(calls), repeats=3)
    assert len(calls) == 4 and last == 4


def test_unknown_device_is_refused():
    done = CliRunner().invoke(app, ["bench", "--quick", "--device", "abacus"])
    assert done.exit_code == 1
    assert "abacus" in done.output + done.stderr


@pytest.mark.parametrize("name", ["bench", "demo"])
def test_help(name):
    assert CliRunner().invoke(app, [name, "--help"]).exit_code == 0
