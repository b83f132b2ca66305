"""Every experiment of every paper, tiny, through the command.

One test per paper, so that they run side by side. What the numbers should be is in the
other files of this folder; here: that all runs are made, and all is written.
"""

from __future__ import annotations

import re

import pytest

from papers.__main__ import main
from papers.catalogue import exhibits
from papers.findings import findings
from papers.points import shown_records
from papers.records import Records
from papers.spec import Unavailable

pytestmark = pytest.mark.usefixtures("shared_data")


@pytest.mark.parametrize("paper", dict.fromkeys(e.paper for e in exhibits().values()))
def test_smoke(paper, tmp_path, capsys):
    code = main([paper, "--scale", "smoke", "--out", str(tmp_path)])
    output = capsys.readouterr().out
    assert code == 0, output
    records = Records(tmp_path).read()
    shown = [each for each in exhibits().values() if each.paper == paper]
    report = (tmp_path / "report.html").read_text()
    page = (tmp_path / "pages" / f"{paper}.md").read_text()
    for exhibit in shown:
        check_exhibit(exhibit, records)
        assert exhibit.name in output
        assert f"{exhibit.name}: " in report and f"## {exhibit.name}: " in page
    for figure in re.findall(r"\]\((figures/.*?)\)", page):
        assert (tmp_path / "pages" / figure).stat().st_size > 1000


def check_exhibit(exhibit, records):
    """All runs of its grid were made, finite, and found their place."""
    found = findings(exhibit, records, "smoke")
    if isinstance(exhibit.study, Unavailable):
        assert found.skipped == [exhibit.study.reason]
        return
    assert found.skipped == []
    cases = exhibit.study.cases("smoke")
    made = shown_records(exhibit, records, "smoke")
    assert sorted(str(r.cell.case) for r in made) == sorted(map(str, cases))
    assert found.points
    for record in found.records:
        assert not any("RuntimeWarning" in text for text in record.warned)
    for row in found.rows:
        assert all(abs(value) < 1e6 for value in row.values), row
    assert set(exhibit.notes) <= {series for series, _ in found.points}
