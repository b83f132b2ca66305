"""Experiments: what is kept of runs, how they are made, judged and shown."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

from benchmarks.harness.skip import Skip
from chromium import FLAGS, find_chromium
from papers import findings as f
from papers import pages, report, runner, text
from papers.__main__ import main
from papers.catalogue import PAPERS, chosen, exhibits, studies
from papers.claims import below, lead, value
from papers.exhibits.lkdl_studies import NOISES
from papers.published import Published
from papers.records import Cell, Record, Records
from papers.runner import Job
from papers.spec import (
    EVERY,
    SCALES,
    Axes,
    Claim,
    Derived,
    Exhibit,
    Metric,
    Study,
)

ACCURACY = Metric("accuracy, %")


class Toy(Study):
    """Case "a" works, "b" is skipped, "c" fails, "d" warns."""

    name = "toy.study"
    grid = {"method": ("a", "b", "c", "d"), "x": (1, 2)}
    fewer = {"smoke": {"x": (1,)}}
    sizes = {"smoke": {"n": 1}, "small": {"n": 9}, "full": {"n": 9}}
    seeds = {"smoke": 1, "small": 1, "full": 3}

    def cost(self, case):
        return {"a": 3.0}.get(case["method"], 1.0)

    def measure(self, case, seed, sizes):
        if case["method"] == "b":
            raise Skip("no data")
        if case["method"] == "c":
            raise ArithmeticError("sums do not add up")
        if case["method"] == "d":
            warnings.warn("mind the gap")
        return {"score": 90.0 + seed + case["x"], "seconds": 0.5 * sizes["n"]}


def toy(published=None, **changes):
    """An exhibit beside published numbers, given as {(series, x): value}."""
    known = {
        (series, x): Published("toy", "table", series, x, value)
        for (series, x), value in (published or {}).items()
    }
    settings = {
        "name": "toy/table",
        "title": "A toy",
        "study": Toy(),
        "value": "score",
        "x": "x",
        "metric": ACCURACY,
        "protocol": "none",
        "published": known,
        **changes,
    }
    return Exhibit(**settings)


@pytest.fixture
def known_toy(monkeypatch):
    monkeypatch.setattr(runner, "studies", lambda: {"toy.study": Toy()})


def cell(method="a", x=1, seed=0, scale="full"):
    return Cell("toy.study", scale, {"method": method, "x": x}, seed)


def record(value, method="a", x=1, seed=0, **changes):
    return Record(cell(method, x, seed), {"score": value}, 1.0, 10**6, **changes)


def judged(exhibit, *records, scale="full"):
    return f.findings(exhibit, records, scale)


# ---------------------------------------------------------------- what is kept


def test_records_come_back(tmp_path):
    store = Records(tmp_path)
    skipped = Record(cell("b"), skipped="no data")
    kept = [record(1.5), record({"0.5": 2.0}, x=2), skipped]
    for each in kept:
        store.add(each)
    assert sorted(store.read(), key=str) == sorted(kept, key=str)
    assert [path.name for path in tmp_path.iterdir()] == ["toy.jsonl"]


def test_the_last_run_counts_but_a_failure_hides_nothing(tmp_path):
    store = Records(tmp_path)
    for each in (record(1.0), record(2.0), Record(cell(), error="no memory")):
        store.add(each)
    assert store.read() == [record(2.0)]


def test_a_torn_line_costs_itself_only(tmp_path):
    store = Records(tmp_path)
    store.add(record(1.0))
    path = tmp_path / "toy.jsonl"
    path.write_bytes(path.read_bytes() + b'{"study": "toy.st')
    store.add(record(2.0, x=2))
    assert [each.values["score"] for each in store.read()] == [1.0, 2.0]


def test_a_cell_is_known_whatever_the_order_of_its_case():
    one = Cell("s", "full", {"a": 1, "b": 2}, 0)
    assert one.key == Cell("s", "full", {"b": 2, "a": 1}, 0).key


# ---------------------------------------------------------------- how runs are made


def run_toy(folder, **settings):
    seen = []
    runner.run([toy()], Job(**settings), folder, lambda *each: seen.append(each))
    return seen


def test_runs_are_made_once_and_failures_again(known_toy, tmp_path):
    first = run_toy(tmp_path)
    assert [(count, total) for _, count, total in first] == [
        (i, 4) for i in (1, 2, 3, 4)
    ]
    by_method = {each.cell.case["method"]: each for each, *_ in first}
    assert by_method["a"].values == {"score": 91.0, "seconds": 0.5}
    assert by_method["b"].skipped == "no data"
    assert by_method["c"].error == "ArithmeticError: sums do not add up"
    assert by_method["d"].warned == ("UserWarning: mind the gap",)
    again = {each.cell.case["method"] for each, *_ in run_toy(tmp_path)}
    assert again == {"b", "c"}


class Timed(Toy):
    warm = True


def test_runs_that_were_timed_side_by_side_are_made_again_alone(known_toy, tmp_path):
    def made(study, **settings):
        seen = []
        job = Job(**settings)
        runner.run([toy(study=study)], job, tmp_path, lambda *each: seen.append(each))
        return [each.cell.case["method"] for each, *_ in seen]

    first = made(Timed())
    assert sorted(first) == ["a", "b", "c", "d"]
    lines = (tmp_path / "toy.jsonl").read_text()
    (tmp_path / "toy.jsonl").write_text(lines.replace('"processes":1', '"processes":8'))
    assert sorted(made(Toy())) == ["b", "c"]  # failures only: it has no seconds
    assert sorted(made(Timed())) == ["a", "b", "c", "d"]
    assert sorted(made(Timed())) == ["b", "c"]


def test_cheap_runs_come_first(known_toy, tmp_path):
    order = [each.cell.case["method"] for each, *_ in run_toy(tmp_path)]
    assert order[-1] == "a"


def test_seeds_are_those_asked_for(known_toy, tmp_path):
    run_toy(tmp_path, scale="full", seeds=2)
    seeds = {each.cell.seed for each in Records(tmp_path).read()}
    assert seeds == {0, 1}
    assert len(runner.cells([Toy()], Job("full"))) == 4 * 2 * 3


@pytest.mark.parametrize(("seconds", "seeds"), [(60, 10), (61, 5), (301, 3)])
def test_long_runs_get_fewer_seeds(monkeypatch, seconds, seeds):
    monkeypatch.setattr(Toy, "seeds", {"full": 10, "smoke": 1})
    monkeypatch.setattr(Toy, "cost", lambda study, case: seconds)
    case = Toy().cases("full")[0]
    assert [Toy().repeats(case, scale) for scale in ("full", "smoke")] == [seeds, 1]


def test_the_time_limit_stops_and_the_next_run_goes_on(known_toy, tmp_path):
    assert run_toy(tmp_path, time_limit=0.0) == []
    assert len(run_toy(tmp_path)) == 4


def test_sessions_say_what_runs_were_made_with(known_toy, tmp_path):
    run_toy(tmp_path)
    ((name, session),) = Records(tmp_path).sessions().items()
    assert {each.session for each in Records(tmp_path).read()} == {name}
    assert session["versions"]["numpy"] == np.__version__
    assert session["device"] == "cpu" and session["machine"]["processes"] == 1


@pytest.mark.rounding
def test_processes_find_what_one_finds(tmp_path):
    wanted = chosen(["ika/4.2"])
    (study,) = {each.study.name: each.study for each in wanted}.values()
    todo = runner.cells([study], Job(seeds=1))
    if not all(runner.make(each, None, 1).done for each in todo):
        pytest.skip("no patches at hand")
    runner.run(wanted, Job(jobs=2), tmp_path, lambda *_: None)
    apart = {each.cell.key: each.values for each in Records(tmp_path).read()}
    assert apart == {each.key: runner.make(each, None, 1).values for each in todo}


def test_a_process_that_dies_costs_its_run_only():
    lost = [Cell(f"no.study{i}", "smoke", {}, 0) for i in range(3)]
    found = list(runner.over_processes(runner.make, lost, (None, 1), 2, None))
    assert {each.cell.study for each in found} == {each.study for each in lost}
    assert all(each.error == "its process ended with code 1" for each in found)


def test_a_process_that_dies_before_it_reads_costs_its_run_only(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "/nowhere")
    monkeypatch.setenv("PYTHONHOME", "/nowhere")  # no interpreter starts there
    lost = [Cell("no.study", "smoke", {}, seed) for seed in range(2)]
    found = list(runner.over_processes(runner.make, lost, (None, 1), 2, None))
    assert len(found) == 2
    assert all("its process ended with code" in each.error for each in found)


def test_processes_stop_at_the_deadline():
    began = time.monotonic()
    todo = [Cell("no.study", "smoke", {}, seed) for seed in range(50)]
    found = list(runner.over_processes(runner.make, todo, (None, 1), 2, began + 0.05))
    assert len(found) < 50


def test_an_unknown_scale_is_refused():
    with pytest.raises(ValueError, match=r"scale='huge'.*smoke, small, full"):
        Job("huge")


# ---------------------------------------------------------------- how they are judged


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"incomparable": {EVERY: "other data"}}, "other data"),
        ({"incomparable": {"a": "other method"}}, "other method"),
        ({"incomparable": {1: "other set"}}, "other set"),
    ],
)
def test_what_is_not_comparable_says_why(changes, why):
    found = judged(toy(published={("a", 1): 95.0}, **changes), record(91.0))
    (row,) = found.rows
    assert (row.verdict, row.why) == ("not comparable", why)


def test_smaller_problems_are_not_compared_and_claim_nothing():
    claim = Claim("c", value(("a", 1)), at_least=0.0)
    exhibit = toy(published={("a", 1): 95.0}, claims=(claim,), proposed=("a",))
    small = Record(cell(scale="smoke"), {"score": 91.0})
    found = judged(exhibit, small, scale="smoke")
    assert found.rows[0].why == "problem of scale smoke"
    assert found.claims[0].verdict == "not comparable"
    same = [
        Record(Cell("toy.study", "small", {"method": "a", "x": 1}, seed), {"score": 91})
        for seed in range(3)
    ]
    assert judged(exhibit, *same, scale="small").rows[0].verdict == "worse"


def test_published_numbers_without_runs_are_listed():
    found = judged(toy(published={("a", 2): 95.0}), record(91.0))
    assert [(row.x, row.mean, row.verdict) for row in found.rows] == [
        (1, 91.0, ""),
        (2, None, "not measured"),
    ]


def test_derived_numbers_and_claims():
    gain = Derived(
        "gain",
        Published("toy", "text", "gain", None, 2.0),
        lambda p: [b - a for a, b in p.pairs(("a", 1), ("a", 2))],
        ACCURACY,
    )
    unknown = Published("toy", "text", "lost", None, 1.0)
    lost = Derived("lost", unknown, lambda p: [p.mean("z")], ACCURACY)
    claims = (
        Claim("rises", lead(("a", 2), ("a", 1)), at_least=0.0),
        Claim("falls", below(("a", 2), ("a", 1)), at_least=0.0),
        Claim("unknown", value(("z", None)), at_least=0.0),
    )
    exhibit = toy(derived=(gain, lost), claims=claims)
    runs = [record(90.0 + s, seed=s) for s in (0, 1, 2)]
    runs += [record(92.0 + s, x=2, seed=s) for s in (0, 1, 2)]
    found = judged(exhibit, *runs)
    assert [(row.mean, row.verdict) for row in found.derived] == [
        (2.0, "reproduced"),
        (None, "not measured"),
    ]
    assert [each.verdict for each in found.claims] == ["holds", "fails", "not measured"]
    known = {"reproduced": 1, "holds": 1, "fails": 1, "not measured": 2}
    assert found.verdicts == known


def test_values_that_are_lists_or_mappings_become_curves():
    exhibit = toy(x=None)
    points = judged(exhibit, record([3.0, 2.0])).points
    assert list(points) == [("a", 1), ("a", 2)] and points.mean("a", 2) == 2.0
    points = judged(exhibit, record({"0.5": 3.0, "2": 1.0, "orl": 7.0})).points
    assert points.places("a") == [0.5, 2, "orl"]


def test_order_is_that_of_the_grid_not_of_the_runs():
    runs = [record(1.0, "d"), record(2.0, "a", x=2), record(3.0, "a")]
    points = judged(toy(), *runs).points
    assert list(points) == [("a", 1), ("a", 2), ("d", 1)]


def test_other_studies_and_scales_stay_out():
    elsewhere = Cell("toy.other", "full", {"method": "a", "x": 1}, 0)
    other = Record(elsewhere, {"score": 1.0})
    small = Record(cell(scale="smoke"), {"score": 1.0})
    assert not judged(toy(), other, small).points


# ---------------------------------------------------------------- the catalogue


@pytest.mark.parametrize("exhibit", exhibits().values(), ids=lambda e: e.name)
def test_exhibits_are_about_runs_that_are_made(exhibit):
    study, cases = exhibit.study, exhibit.study.cases("full")
    assert exhibit.paper in PAPERS and study.paper == exhibit.paper
    assert set(study.sizes) == set(study.seeds) == set(SCALES)
    if exhibit.axes == Axes(kind="none") and not study.grid:
        return
    series = {str(case.get(exhibit.series, exhibit.series)) for case in cases}
    kept = [c for c in cases if all(c.get(k) == v for k, v in exhibit.where.items())]
    assert kept
    places = {
        (str(c.get(exhibit.series, exhibit.series)), c.get(exhibit.x)) for c in kept
    }
    for name, x in exhibit.published:
        assert name in series
        assert exhibit.x is None or (name, x) in places
    assert set(exhibit.notes) <= series


@pytest.mark.parametrize("exhibit", exhibits().values(), ids=lambda e: e.name)
def test_claims_are_about_points_that_are_measured(exhibit):
    """With every point of the grid at hand, none is missing for a claim or number."""
    points = full_points(exhibit)

    def beside(each):
        return () if each.beside is None else (full_points(each.beside),)

    for claim in exhibit.claims:
        parts = claim.parts(points, *beside(claim))
        assert parts and all(len(each) == 2 for each in parts.values())
    for derived in exhibit.derived:
        assert np.isfinite(derived.compute(points, *beside(derived))).sum() == 2


def full_points(exhibit):
    """Two values at every point of a grid."""
    cases = exhibit.study.cases("full")
    kept = [c for c in cases if all(c.get(k) == v for k, v in exhibit.where.items())]
    values = {}
    for case in kept:
        series = str(case.get(exhibit.series, exhibit.series))
        inner = (*NOISES, *range(201))  # places on curves that one run measures
        curve = inner if exhibit.axes.kind == "lines" else [None]
        inside = [case[exhibit.x]] if exhibit.x else curve
        values |= {(series, x): {0: 1.0, 1: 2.0} for x in inside}
    return f.Points(values)


def test_smoke_sizes_are_told_from_full_ones():
    for study in studies().values():
        if study.grid:
            assert not study.comparable("smoke"), study.name


def test_experiments_are_chosen_by_name():
    assert [e.name for e in chosen(["lkdl/fig1b", "lkdl/fig1a"])] == [
        "lkdl/fig1b",
        "lkdl/fig1a",
    ]
    assert {e.paper for e in chosen(["ika", "rkdl"])} == {"ika", "rkdl"}
    assert len(chosen(["all"])) == len(exhibits())
    with pytest.raises(ValueError, match=r"'lkdl/fig9'.*did you mean 'lkdl/fig"):
        chosen(["lkdl/fig9"])


# ---------------------------------------------------------------- how they are shown


def drawn_toy():
    exhibit = toy(
        published={("a", 1): 91.2, ("d", 1): 70.0},
        deviations=("Toys differ & vary.",),
        notes={"a": "first"},
        axes=Axes(x_label="x"),
        proposed=("a", "d"),
        claims=(Claim("1 < 2", lead(("a", 2), ("a", 1)), at_least=0.0),),
        also=("seconds",),
    )
    runs = [
        Record(cell(m, x, seed), {"score": 90.0 + seed + x, "seconds": 2.0}, 1.0)
        for m in ("a", "d")
        for x in (1, 2)
        for seed in (0, 1, 2)
    ]
    return judged(exhibit, *runs)


def test_plain_text_has_the_numbers():
    lines = text._section(drawn_toy()).splitlines()
    assert lines[0] == "toy/table: A toy (accuracy, %)"
    start = "a 1 91.20 92.00 1.00 3 +0.80 -4.17 to +5.77".split()
    assert lines[2].split()[: len(start)] == start
    assert lines[2].endswith("reproduced")
    assert lines[3].split()[:2] == ["d", "1"] and lines[3].endswith("better")
    assert lines[5].startswith("  1 < 2") and lines[5].endswith("holds")
    assert lines[6] == "1 reproduced, 1 better, 1 holds"


def test_pages_have_numbers_deviations_and_figures(tmp_path, monkeypatch):
    monkeypatch.setitem(PAPERS, "toy", "Toys")
    index = pages.write_pages([drawn_toy()], {}, tmp_path)
    page = (tmp_path / "toy.md").read_text()
    line = "| a | 1 | 91.20 | 92.00 ± 1.00 (3) | +0.80 (-4.17 to +5.77) | reproduced |"
    assert line in page
    assert "Rule, unless a line names another: paper: one" in page
    assert "| a | 92.00 ± 1.00 | 93.00 ± 1.00 | 2 |" in page
    assert "* Toys differ & vary." in page
    assert "12 of 24 runs, 12 s in all" in page
    assert (tmp_path / "figures" / "toy-table.svg").read_text().startswith("<svg")
    verdicts = "1 reproduced, 1 better, 1 holds"
    assert f"(toy.md#toy-table) | A toy | {verdicts} |" in index.read_text()
    assert "| 1 < 2 | holds | [toy/table](toy.md#toy-table) |" in index.read_text()
    assert '<a id="toy-table">' in page
    assert (tmp_path / pages.UNREPRODUCED).exists()


def test_figures_are_the_same_for_the_same_numbers():
    from papers.figures import draw

    assert list(draw(drawn_toy())) == ["toy-table.svg"]
    assert draw(drawn_toy()) == draw(drawn_toy())


def test_the_report_is_self_contained_and_escapes():
    written = report.report_page([drawn_toy()], {})
    assert "Toys differ &amp; vary." in written
    assert not re.findall(r"""(?:src|href)=["'](?!#|data:)""", written)
    assert "http" not in re.sub(r"<style>.*?</style>", "", written, flags=re.DOTALL)
    assert written.count('class="verdict reproduced"') == 1
    assert written.count('class="verdict holds"') == 1


def test_long_curves_become_short_tables():
    found = judged(toy(x=None), record([float(x) for x in range(200, 0, -1)]))
    assert len(found.places) == 200
    assert len(found.few_places) == 12 and found.few_places[-1] == 200
    assert len(judged(toy(x=None), record([1.0] * 12)).few_places) == 12


# ---------------------------------------------------------------- on the command line


def command(*arguments):
    return main([str(argument) for argument in arguments])


def test_the_command_lists_all_experiments(capsys):
    assert command() == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in (*PAPERS, *exhibits()))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["lkdl/fig77"], "experiment 'lkdl/fig77' is unknown"),
        (["lkdl", "--device", "abacus"], "abacus"),
        (["--report"], "holds no results of scale full"),
    ],
)
def test_the_command_refuses_in_one_line(arguments, message, tmp_path, capsys):
    assert command(*arguments, "--out", tmp_path) == 2
    said = capsys.readouterr().err
    assert message in said and said.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_the_report_shows_the_largest_scale(tmp_path):
    (study,) = {e.study.name: e.study for e in chosen(["ika/4.2"])}.values()
    store = Records(tmp_path)
    for scale, error in (("smoke", 0.5), ("full", 0.25)):
        for case in study.cases(scale):
            store.add(Record(Cell(study.name, scale, case, 0), {"error": error}))
    assert command("--report", "--out", tmp_path, "--pages", tmp_path / "pages") == 0
    assert "0.2500" in (tmp_path / "report.html").read_text()
    assert "0.2500" in (tmp_path / "pages" / "ika.md").read_text()
    command("--report", "--out", tmp_path, "--scale", "smoke")
    assert "0.5000" in (tmp_path / "report.html").read_text()


# ---------------------------------------------------------------- without the rest

BARE = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("typer", "rich", "matplotlib", "dask", "torch"):
            raise ImportError(name)
sys.meta_path.insert(0, Missing())
from papers.__main__ import main
sys.exit(main(sys.argv[1:]))
"""


def bare(*arguments):
    return subprocess.run(
        [sys.executable, "-c", BARE, *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
    )


def test_runs_need_no_terminal_library_and_no_matplotlib(shared_data, tmp_path):
    done = bare("ika/4.2", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "ika/4.2: Effect of the sample size" in done.stdout
    lines = filter(None, (tmp_path / "ika.jsonl").read_text().splitlines())
    assert [json.loads(line).get("seed") for line in lines] == [None, 0, 0]
    assert (tmp_path / "report.html").exists()
    assert (tmp_path / "pages" / "ika.md").exists()


# ---------------------------------------------------------------- in a browser

ACT = """<script>
document.querySelector("#numbers th:nth-child(5)").click();
document.querySelector(".filters select[name=verdict]").value = "better";
document.querySelector(".filters select").dispatchEvent(new Event("input"));
document.querySelector(".legend li").click();
</script>"""


@pytest.fixture(scope="module")
def browser() -> str:
    return find_chromium()


def browse(browser: str, page: Path, *flags: str) -> str:
    profile = f"--user-data-dir={page.parent / 'profile'}"
    command = [browser, *FLAGS, profile, *flags, page.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, timeout=90).stdout


def test_the_report_works_in_a_browser(browser, tmp_path):
    page = tmp_path / "report.html"
    page.write_text(report.report_page([drawn_toy()], {}) + ACT)
    seen = browse(browser, page, "--dump-dom")
    assert "1 of 3</output>" in seen
    (numbers,) = re.findall(r'<table[^>]*id="numbers".*?</table>', seen, re.DOTALL)
    assert 'aria-sort="ascending"' in numbers
    assert numbers.count('class="hidden"') == 2
    assert re.search(r'<li data-series="0" class="off">', seen)
    assert re.search(r'<g class="series c0 hidden" data-series="0">', seen)
    picture = tmp_path / "seen.png"
    browse(browser, page, f"--screenshot={picture}", "--window-size=1200,1600")
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.stat().st_size > 30_000
