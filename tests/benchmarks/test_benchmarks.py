"""The benchmarks run (tiny sizes, peers optional) and judge what they measured."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.harness.marks import filled
from benchmarks.harness.records import JsonLines
from benchmarks.harness.skip import Skip, require
from benchmarks.peers import runner
from benchmarks.peers.memory import peak_of
from benchmarks.peers.records import last_results
from benchmarks.peers.spec import Benchmark, Method, Target
from benchmarks.peers.tables import markdown

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def benchmarks() -> Any:
    """The folder beside `src`, whichever way pytest was started."""
    sys.path.insert(0, str(ROOT))
    try:
        yield importlib.import_module("benchmarks")
    finally:
        sys.path.remove(str(ROOT))


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, "-m", "benchmarks", *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )


@pytest.fixture(scope="module")
def quick_omp(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], str]:
    out = tmp_path_factory.mktemp("results")
    done = run("omp", "--quick", "--out", str(out))
    assert done.returncode == 0, done.stderr
    results = last_results(JsonLines(out), "omp")
    return results, (out / "omp.md").read_text()


def test_quick_run_times_ours_and_scikit_learn(quick_omp: Any) -> None:
    results, table = quick_omp
    (case,) = results["cases"]
    for name in ("kernlets", "scikit-learn"):
        assert min(case["methods"][name]["all_seconds"]) > 0
        assert f"| {name} |" in table
    assert set(case["methods"]) | set(case["skipped"]) == {
        "kernlets",
        "SPAMS",
        "scikit-learn",
        "scikit-learn, 2 jobs",
    }


def test_codes_of_ours_and_scikit_learn_have_equal_error(quick_omp: Any) -> None:
    figures = quick_omp[0]["cases"][0]["figures"]
    assert figures["error: scikit-learn"] == pytest.approx(1, abs=1e-4)


def test_record_names_seed_versions_threads_but_no_machine(quick_omp: Any) -> None:
    results, _ = quick_omp
    machine = results["machine"]
    assert machine["threads"] == 2
    assert results["versions"]["numpy"]
    assert results["cases"][0]["seed"] == 0
    assert os.uname().nodename not in json.dumps(results)
    assert str(ROOT) not in json.dumps(results)


@pytest.mark.skipif(sys.platform != "linux", reason="peaks are read from /proc")
def test_peak_memory_sees_an_array(benchmarks: Any) -> None:
    omp = benchmarks.load("omp")
    quick = peak_of(omp, 0, omp.ours, quick=True)
    large = peak_of(omp, 0, omp.ours, quick=False)
    data = 20000 * 256 * 4 / 1e6  # of the first case of the grid
    assert data <= large["data_mb"] < data + 20
    assert large["peak_mb"] >= large["data_mb"]
    assert quick["peak_mb"] < 20


def test_unknown_name_is_refused_with_the_known_ones() -> None:
    done = run("speed")
    assert done.returncode == 2
    assert "choose from omp" in done.stderr


def test_missing_module_is_a_reason_to_skip() -> None:
    with pytest.raises(Skip, match=r"no_such_peer.*pip install"):
        require("no_such_peer")


def test_figures_of_numpy_can_be_judged_and_written() -> None:
    runs = [(1.0, {"x": np.float64(2)}), (1.0, {"x": np.float64(3)})]
    summary = runner._summary(runs, share=1)
    lines = runner.judged([Target("x", ">=", 2)], summary["figures"])
    assert json.loads(json.dumps(lines))[0]["met"] is True


@pytest.mark.parametrize(
    ("sense", "bound", "good", "bad"),
    [(">=", 1.5, 1.5, 1.4), ("<=", 40, 40, 41), ("≈", 1e-4, 0.99995, 0.9998)],
)
def test_target(sense: Any, bound: float, good: float, bad: float) -> None:
    target = Target("x", sense, bound)
    assert target.met(good)
    assert not target.met(bad)


def test_scaled_share_and_speed() -> None:
    mine = runner._summary([(1.0, {"error": 2.0}), (3.0, {"error": 2.0})], share=1.0)
    peer = runner._summary([(1.0, {"error": 4.0})], share=0.1)
    figures = runner.compared({"us": mine, "them": peer}, "us")
    assert figures["speed: them"] == pytest.approx(5)
    assert figures["error: them"] == pytest.approx(0.5)


def test_a_page_gets_the_new_table_in_its_part(quick_omp: Any) -> None:
    page = "a\n<!-- omp -->\nold\n<!-- end -->\nb <!-- end -->\n"
    text = filled(page, "omp", markdown(quick_omp[0]))
    assert text.startswith("a\n<!-- omp -->\n")
    assert text.endswith("<!-- end -->\nb <!-- end -->\n")
    assert "old" not in text
    assert "| scikit-learn |" in text


class Constant(Method):
    name = "ours"
    memory = False

    def __init__(self, problem: int) -> None:
        self.problem = problem

    def run(self) -> int:
        return self.problem

    def figures(self, result: int) -> dict[str, float]:
        return {"value": float(result)}


class Numbers(Benchmark):
    name, title, about = "numbers", "Numbers", "Four numbers"
    grid = tuple({"n": n} for n in range(4))
    quick_grid = ({"n": 9},)
    methods = (Constant,)
    repeats = 1
    limit = 9  # cases from here on end in an error

    def problem(self, case: Any) -> int:
        if case["n"] < 9 and case["n"] >= self.limit:
            raise OSError("out of power")
        return case["n"]


def test_a_run_that_was_stopped_goes_on_where_it_was(tmp_path: Path) -> None:
    store, benchmark, seen = JsonLines(tmp_path), Numbers(), []
    benchmark.limit = 2
    with pytest.raises(OSError, match="out of power"):
        runner.run(benchmark, False, 1, store, seen.append)
    benchmark.limit = 9
    runner.run(benchmark, False, 1, store, seen.append, resume=True)
    assert sum("numbers: n=1" in line for line in seen) == 1
    results = last_results(store, "numbers")
    assert [each["case"]["n"] for each in results["cases"]] == [0, 1, 2, 3]
    assert len(store.sessions("numbers")) == 1


def test_parts_share_a_session_and_their_cases_come_in_order(tmp_path: Path) -> None:
    store = JsonLines(tmp_path)
    for part in ((2, 2), (1, 2)):
        runner.run(Numbers(), False, 1, store, print, resume=True, part=part)
    cases = last_results(store, "numbers")["cases"]
    assert [each["case"]["n"] for each in cases] == [0, 1, 2, 3]


def test_what_is_measured_in_another_way_is_not_continued(tmp_path: Path) -> None:
    store, other = JsonLines(tmp_path), Numbers()
    runner.run(Numbers(), False, 1, store, print)
    other.about = "Four numbers, twice"
    runner.run(other, False, 1, store, print, resume=True)
    assert len(store.sessions("numbers")) == 2


@pytest.mark.parametrize("text", ["2", "0/2", "3/2", "a/b"])
def test_a_part_that_is_none_is_refused(text: str) -> None:
    done = run("omp", "--part", text)
    assert done.returncode == 2 and "is no part: write e.g. 1/2" in done.stderr


@pytest.fixture(scope="module")
def gpu_recovery(benchmarks: Any) -> Any:
    pytest.importorskip("torch")
    return importlib.import_module("benchmarks.gpu_recovery")


def test_large_hidden_dictionaries_are_those_of_the_small_ones(
    gpu_recovery: Any,
) -> None:
    """Latent 0 in half of the samples, with one half of the others; never twice one."""
    data = gpu_recovery.hidden(m=60, n=400, k=10, seed=1)
    assert data.X.shape == (400, 36) and data.X.dtype == np.float32
    live = data.test_codes != 0
    assert (live.sum(axis=1) == 10).all() and live[:, 0].all()
    assert not live[:, 1:30].any() and live[:, 30:].any(axis=0).all()
    np.testing.assert_allclose(data.test, data.test_codes @ data.atoms, atol=1e-5)
    rng = np.random.default_rng(0)
    drawn = gpu_recovery.distinct(rng, 2000, 5, range(3, 13))
    assert all(len(set(row)) == 5 for row in drawn)
    counts = np.bincount(drawn.ravel(), minlength=13)
    assert (counts[:3] == 0).all() and (abs(counts[3:] - 1000) < 150).all()


def test_a_large_hidden_dictionary_is_found_and_a_stopped_run_goes_on(
    gpu_recovery: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["--device", "cpu", "--latents", "60", "--samples", "3000"]
    words += ["--non-zeros", "3", "--iterations", "40"]
    whole = gpu_recovery.main([*words, "--out", str(tmp_path / "whole.json")])
    assert whole["correlation"] > 0.8 and whole["share found"] > 0.6
    rows = json.loads((tmp_path / "whole.json").read_text())["rows"]
    assert [row.get("iteration") for row in rows] == [*range(1, 41), None]
    assert rows[-2]["mean nearest cosine"] > rows[0]["mean nearest cosine"]

    class Stopped(Exception):
        pass

    note = gpu_recovery.Notes.__call__

    def stop_at_fifth(self: Any, row: dict[str, Any]) -> None:
        note(self, row)
        if row.get("iteration") == 5:
            raise Stopped

    kept = [*words, "--checkpoint", str(tmp_path / "states")]
    with monkeypatch.context() as patch:
        patch.setattr(gpu_recovery.Notes, "__call__", stop_at_fifth)
        with pytest.raises(Stopped):
            gpu_recovery.main(kept)
    resumed = gpu_recovery.main([*kept, "--out", str(tmp_path / "rest.json")])
    first = json.loads((tmp_path / "rest.json").read_text())["rows"][0]
    assert 1 < first["iteration"] <= 6
    assert resumed["correlation"] == pytest.approx(whole["correlation"], abs=1e-9)


def test_fits_after_equal_times(benchmarks: Any) -> None:
    """The longest fit within the time counts, and one iteration at least."""
    convergence = importlib.import_module("benchmarks.convergence")
    benchmark = convergence.BENCHMARK
    limited = benchmark.problem(benchmark.quick_grid[0])
    short, long = (
        convergence.Kernlets(limited._replace(seconds=seconds)) for seconds in (0, 0.3)
    )
    first, last = (method.figures(method.run()) for method in (short, long))
    assert first["iterations"] == 1 < last["iterations"]
    assert last["error"] < first["error"]
    peer = convergence.ScikitLearn(limited._replace(seconds=0))
    assert peer.figures(peer.run())["error"] > last["error"]
    targets = benchmark.targets(benchmark.grid[0])
    assert {target.bound for target in targets} == {1.0}


def test_a_covered_block_has_its_share_and_the_proportions_of_the_image() -> None:
    from benchmarks.occlusion import covered

    faces = np.full((6, 28, 24), 2.0)  # noise is from 0 to 1
    found = covered(faces, 0.25, "noise", np.random.default_rng(0)) < 2
    np.testing.assert_array_equal(found.sum(axis=(1, 2)), 14 * 12)
    assert (found.any(axis=2).sum(axis=1) == 14).all()
    assert len(np.unique(found.any(axis=2), axis=0)) > 1  # at different places
    assert (faces == 2).all()
