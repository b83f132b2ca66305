"""Time over floor, growth, and what one would pick instead, at tiny sizes."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import floors, growth, instead
from benchmarks.digits import load_digits
from benchmarks.floors import BareCalls, Call
from benchmarks.harness.skip import Skip
from benchmarks.peers.summary import ByAccuracy, OverFloor
from benchmarks.peers.tables import markdown


def operations(job: floors.Job) -> float:
    return sum(call.operations for call in job.calls)


def test_operations_are_those_of_the_products():
    assert Call("product", (3, 4, 5), times=2).operations == 2 * 2 * 60
    assert Call("read", (80,), times=3).operations == 0
    assert Call("read", (80,), times=3).bytes_read == 240
    assert Call("eigenpairs", (7,)).bytes_read == 0


def test_a_product_of_many_rows_is_computed_in_blocks(monkeypatch):
    monkeypatch.setattr(floors, "BLOCK_ROWS", 4)
    heights = []
    real = np.matmul

    def noting(left, right, out):
        heights.append(len(left))
        return real(left, right, out=out)

    monkeypatch.setattr(np, "matmul", noting)
    Call("product", (10, 2, 3)).prepared()()
    assert heights == [4, 4, 2]


@pytest.mark.parametrize("case", floors.BENCHMARK.quick_grid, ids=lambda c: c["method"])
def test_every_job_runs_and_has_a_floor(case):
    job = floors.BENCHMARK.problem(case)
    job.run()
    bare = BareCalls(job)
    figures = bare.figures(bare.run())
    assert figures["GFLOP"] == pytest.approx(operations(job) / 1e9) and figures["GFLOP"]
    assert figures["product, s"] > 0


def test_floors_have_the_operations_of_the_formulas():
    exact = {"method": floors.EXACT, "data": "digits", "n": 300, "m": 20, "q": 3}
    job = floors.BENCHMARK.problem({**exact, "iterations": 2})
    n, p, m = 300, 64, 20
    assert operations(job) == n * n * p + 2 * 2 * m * m * n
    (lkdl,) = (c for c in floors.BENCHMARK.quick_grid if c["method"] == floors.LKDL)
    job, digits = floors.BENCHMARK.problem(lkdl), load_digits("digits", lkdl["n"])
    n, n_new, c, k, m = len(digits.X_train), len(digits.X_test), 60, 30, 30
    maps = c * c * p + 2 * (n + n_new) * c * (p + k)
    assert operations(job) == maps + 2 * k * m * (2 * n + 10 * n_new)


def test_steps_of_fddl_are_counted_and_the_class_is_as_before():
    from kernlets.classifiers.fddl_codes import CodeDescent

    before = CodeDescent._block_step
    (case,) = (c for c in floors.BENCHMARK.quick_grid if c["method"] == floors.FDDL)
    job = floors.BENCHMARK.problem(case)
    assert CodeDescent._block_step is before
    steps = [call for call in job.calls if call.shape[1:] == (case["m"],) * 2]
    assert len(steps) == 1 and steps[0].shape[0] >= case["n"]  # one step at least


def result(case, **seconds):
    methods = {
        name: {
            "seconds": value,
            "all_seconds": [value],
            "share": 1,
            "figures": {"GFLOP": 3.0, "GB read": 0.5},
        }
        for name, value in seconds.items()
    }
    return {"case": case, "methods": methods, "targets": [], "skipped": {}}


def test_time_over_floor_is_ours_over_the_bare_calls():
    cases = [
        result({"method": "a", "n": 5}, ours=3.0, bare=2.0),
        result({"method": "b", "n": 5}),
    ]
    table = OverFloor("bare").table({"ours": "ours", "cases": cases})
    assert table.rows == [["a", "n=5", "3", "0.5", "2", "3", "1.50"]]


def test_the_most_accurate_come_first():
    def of(features, **accuracies):
        found = {
            name: {"figures": {"accuracy": a}, "peak_mb": 7.0}
            for name, a in accuracies.items()
        }
        return {"case": {"data": "x", "features": features}, "methods": found}

    cases = [of(10, a=90.0, b=95.0), of(20, a=97.0)]
    table = ByAccuracy("x", "features").table({"cases": cases})
    assert table.rows == [
        ["a", "20", "97", "7"],
        ["b", "10", "95", "7"],
        ["a", "10", "90", "7"],
    ]


def test_exponents_are_slopes():
    (case, *_) = growth.BENCHMARK.quick_grid
    method = growth.Kernlets(case)
    figures = method.figures([1.0, 4.0, 16.0, 64.0, 256.0])
    assert figures["exponent"] == pytest.approx(2)
    assert figures["of the last doubling"] == pytest.approx(2)
    assert figures["× 16, s"] == 256
    assert len(method.run()) == growth.DOUBLINGS + 1 == 5


def test_each_size_of_each_method_is_doubled():
    doubled = {(c["method"], c["doubled"]) for c in growth.BENCHMARK.grid}
    assert {size for _, size in doubled} == {
        "samples", "features", "atoms", "non-zeros", "landmarks", "classes",
    }  # fmt: skip
    assert doubled == {(m, size) for m, sizes in growth.FIRST.items() for size in sizes}
    case = {**growth.BENCHMARK.quick_grid[0], "doubled": growth.N}
    shapes = []

    def job(sizes):
        shapes.append(growth.samples(sizes).shape)
        return lambda: None

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(growth.JOBS, case["method"], job)
        growth.Kernlets(case)
    assert [n for n, _ in shapes] == [case[growth.N] * 2**i for i in range(5)]
    assert len({p for _, p in shapes}) == 1


def test_rivals_learn_digits_and_those_without_features_run_once():
    few, many = instead.BENCHMARK.quick_grid
    problem = instead.BENCHMARK.problem(many)
    assert problem.gamma == pytest.approx(1 / (2 * problem.sigma**2))
    for rival in instead.BENCHMARK.methods:
        method = rival(problem)
        figures = method.figures(method.run())
        assert figures["accuracy"] > 90, rival.name
        assert set(figures) == {"accuracy", "fit, s", "predict, s"}
    for rival in (instead.SVC, instead.KernelRidge):
        with pytest.raises(Skip, match="no number of features"):
            rival(instead.BENCHMARK.problem(few))


def test_the_footer_names_code_for_another_processor():
    results = {"ours": "a", "title": "", "about": "", "cases": [], "quick": False}
    about = {"date": "today", "versions": {"python": "3"}}
    told = {"processor": "x", "threads": 2, "blas": "y"}
    text = markdown({**results, **about, "machine": told})
    assert "y; . Seconds" in text
    told["code_for"] = "OPENBLAS_CORETYPE=Haswell"
    assert "y, OPENBLAS_CORETYPE=Haswell;" in markdown(
        {**results, **about, "machine": told}
    )
