"""``python -m benchmarks.speed`` measures what it says."""

from __future__ import annotations

import json

from benchmarks.harness.timing import timed_median
from benchmarks.speed import Row, main


def test_quick_run_writes_all_jobs(shared_data, tmp_path):
    assert main(["--quick", "--out", str(tmp_path / "b.json")]) == 0
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


def test_unknown_device_is_refused(capsys):
    assert main(["--quick", "--device", "abacus"]) == 1
    assert "abacus" in capsys.readouterr().err
