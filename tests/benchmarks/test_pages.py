"""The one table of published numbers, and the pages made from records."""

from __future__ import annotations

import csv
import re
import shutil
from collections import Counter
from importlib.resources import files
from pathlib import Path

import pytest

from benchmarks import pages
from benchmarks.harness import marks
from benchmarks.harness.tables import Table
from benchmarks.peers.summary import SUMMARIES, Methods, Peers, Pivot
from papers.catalogue import PAPERS, exhibits
from papers.published import SOURCES, as_place, number, numbers
from papers.records import Records
from papers.show import all_findings
from papers.text import cells, claim_cells

ROOT = Path(__file__).parents[2]
DECIDED = ("reproduced", "better", "worse", "mismatch", "holds", "fails")
with files("papers").joinpath("published.csv").open(encoding="utf-8") as file:
    TABLE = list(csv.DictReader(file))

# ---------------------------------------------------------------- published numbers

# Literals that happen to be equal to a published number and are something else.
COINCIDENCES = {
    "benchmarks/budget.py: 0.965": "an independent reference, of another budget",
    "benchmarks/recovery.py: 0.965": "a target for our own recovery",
    "docs/structured.md: .965": "our own accuracy on series",
}


def significant(text: str) -> int:
    return len(text.lstrip("-").replace(".", "").strip("0"))


def telling(text: str) -> bool:
    """Whether a number is too long to be met by chance: three digits and a point."""
    return "." in text and significant(text) >= 3


def sources() -> list[Path]:
    """Everything that people write: code, tests but this one, docs."""
    folders = ("src/kernlets", "papers", "benchmarks", "demo", "tests", "examples")
    code = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    code.remove(Path(__file__))
    return [*code, *(ROOT / "docs").glob("*.md"), ROOT / "README.md"]


def written(path: Path) -> str:
    """A file without its generated parts."""
    return marks.without_parts(path.read_text("utf-8"))


def any_published() -> re.Pattern[str]:
    values = {line["value"].lstrip("-0") for line in TABLE if telling(line["value"])}
    assert len(values) > 80
    alternatives = "|".join(map(re.escape, sorted(values)))
    return re.compile(rf"(?<![\d.])0?({alternatives})(?!\d)")


def test_published_numbers_are_recognised():
    for text in ("x = 96.08", "(96.08,", ".9286", "0.9286", "−9043.5 96.049"):
        assert any_published().search(text), text
    for text in ("196.08", "96.081", "0.196.08", "96"):
        assert not any_published().search(text), text


def test_a_published_number_stands_once():
    pattern = any_published()
    found = {
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path in sources()
        for match in pattern.finditer(written(path))
    }
    assert sorted(found) == sorted(COINCIDENCES)


def test_rows_of_the_table_are_distinct_and_complete():
    places = Counter((x["paper"], x["place"], x["row"], x["at"]) for x in TABLE)
    assert max(places.values()) == 1
    assert {line["source"] for line in TABLE} == set(SOURCES)
    assert {line["paper"] for line in TABLE} == set(PAPERS)


def test_numbers_are_found_by_place():
    assert number("budget", "fig2b", "0.8", 4).value == 168
    assert str(number("rkdl", "table2", "MORKDL-D", "mnist")) == "49"
    both = numbers("budget", "fig3a", {"reconstruction cost": ("one", "two")})
    assert set(both) == {("one", 1.2), ("two", 1.2)}
    with pytest.raises(KeyError, match=r"lkdl/table9, row 'x'"):
        number("lkdl", "table9", "x")


def test_exhibits_take_their_numbers_from_the_table():
    known = set(numbers_of_the_table())
    for exhibit in exhibits().values():
        derived = (each.published for each in exhibit.derived)
        for each in (*exhibit.published.values(), *filter(None, derived)):
            assert each.identity in known
            assert each.paper == exhibit.paper


def numbers_of_the_table():
    for line in TABLE:
        yield line["paper"], line["place"], line["row"], as_place(line["at"])


# ---------------------------------------------------------------- pages


def test_the_pages_are_up_to_date_with_the_records():
    stale = [str(path.relative_to(ROOT)) for path in pages.changes(ROOT)]
    assert stale == [], "run `make pages`"


def test_every_line_of_a_verdict_in_the_records_is_complete():
    """Published, ours, seeds, difference, interval, rule, verdict: none is empty."""
    records = Records(ROOT / "docs" / "reproduction" / "results")
    lines = []
    for found in all_findings(records, "full"):
        numbers = [cells(r) for r in found.compared if r.verdict in DECIDED]
        claims = [claim_cells(c) for c in found.claims if c.verdict in DECIDED]
        lines += [(found.exhibit.name, *line) for line in numbers + claims]
    assert len(lines) > 50
    for name, what, _, published, ours, _, *rest in lines:
        assert all((name, what, published, ours, *rest)), (name, what)


@pytest.fixture
def copy(tmp_path):
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    shutil.copy(ROOT / "README.md", tmp_path)
    return tmp_path


def test_a_changed_record_changes_every_page_that_shows_it(copy, capsys):
    results = copy / "docs" / "reproduction" / "results" / "ksad.jsonl"
    wrong = results.read_text().replace('"accuracy":', '"accuracy":1')
    results.write_text(wrong)
    (copy / "docs" / "reproduction" / "figures" / "old.png").write_bytes(b"")
    assert pages.main(["--check", str(copy)]) == 1
    told = capsys.readouterr().out
    for name in ("README.md", "ksad.md", "unreproduced.md", "old.png"):
        assert re.search(rf"out of date: .*{name}\n", told), name
    assert pages.main([str(copy)]) == 0
    assert pages.main(["--check", str(copy)]) == 0
    assert not (copy / "docs" / "reproduction" / "figures" / "old.png").exists()


def test_the_readme_gets_the_counts_where_it_has_the_marks(copy):
    readme = copy / "README.md"
    readme.write_text("# x\n\n<!-- papers -->\n<!-- end -->\n")
    pages.main([str(copy)])
    assert re.search(r"Of \d+ numbers and claims that can be", readme.read_text())
    assert "](docs/reproduction/lkdl.md) |" in readme.read_text()


def test_parts_are_found_and_replaced():
    text = "a\n<!-- one -->\nold\n<!-- end -->\n<!-- two -->\n<!-- end -->\nb\n"
    assert list(marks.names(text)) == ["one", "two"]
    new = marks.filled(text, "one", "new")
    assert new.startswith("a\n<!-- one -->\n\nnew\n\n<!-- end -->\n<!-- two -->")
    assert marks.filled(new, "one", "new") == new
    assert marks.without_parts(new) == "a\n\n\nb\n"
    with pytest.raises(ValueError, match="no part 'three'"):
        marks.filled(text, "three", "")


# ---------------------------------------------------------------- tables


def test_one_table_for_terminal_and_markdown():
    table = Table(["", "n", "empty"], [["a|b", "1", ""], ["c", "22", ""]]).filled()
    assert table.markdown() == "|  | n |\n| --- | --- |\n| a∣b | 1 |\n| c | 22 |"
    assert table.text() == "       n\n  a|b  1\n  c    22"
    wide = Table(["x", "y", "z"], [["1", "2", "3"], ["1", "20", "3"]])
    assert wide.text() == "  x   y  z\n  1   2  3\n  1  20  3"


def test_all_methods_side_by_side_with_their_means():
    def of(data, **scores):
        found = {name: {"figures": {"score": s}} for name, s in scores.items()}
        return {"case": {"data": data}, "methods": found}

    cases = [of("a", ours=1.0, peer=3.0), of("b", ours=2.0, peer=5.0)]
    cases += [of("c", ours=9.0)]
    table = Peers(("data",), "score", 1).table({"cases": [*cases, of("d")]})
    assert table.header == ["", "ours", "peer"]
    assert table.rows[1:] == [
        ["b", "2.0", "5.0"],
        ["c", "9.0", ""],
        ["mean of 2", "1.5", "4.0"],
    ]


def measured(case, **figures):
    return {"case": case, "methods": {"ours": {"figures": figures}}}


def test_summaries_of_benchmarks():
    cases = [
        measured({"m": "a", "d": 1}, score=1.0, spread=0.25),
        measured({"m": "a", "d": 2}, score=2.0, spread=0.0),
        measured({"m": "b", "d": 1}, other=3.0),
        {"case": {"m": "c", "d": 1}, "methods": {}},
    ]
    results = {"ours": "ours", "cases": cases}
    pivot = Pivot(("m",), ("d",), "score", 2).table(results)
    assert (pivot.header, pivot.rows) == (
        ["", "1", "2"],
        [["a", "1.00 ± 0.25", "2.00"]],
    )
    few = Pivot(("m",), ("d",), "score", 1, ("d", (2,))).table(results)
    assert few.rows == [["a", "2.0"]]
    assert Methods("m", "b").table(results).rows == [["ours", "3"]]
    files = {path.stem for path in (ROOT / "benchmarks").glob("*.py")}
    assert {name.replace("-", "_") for name in SUMMARIES} <= files


def test_a_part_without_a_record_says_how_to_make_one(tmp_path):
    said = pages.part("robust summary", tmp_path, [])
    assert "`python -m benchmarks robust --out docs/benchmarks`" in said
