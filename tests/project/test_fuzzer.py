"""The fuzzer finds what it should find, and nothing in a short run."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fuzz import case, oracle, pool, report
from fuzz.draw import Draw
from fuzz.pool import Plan, Tally
from fuzz.values import draw_matrix
from kernlets import KSVD

ROOT = Path(__file__).parents[2]
CASES = 400


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, "-m", "fuzz", *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )


def test_a_short_run_finds_nothing() -> None:
    done = command("--cases", str(CASES), "--seed", "0", "--minutes", "5")
    assert f"{CASES} cases" in done.stdout, done.stderr
    assert done.returncode == 0, done.stdout


def test_a_number_tells_everything() -> None:
    number = 7
    first, second = (draw_matrix(Draw(number)) for _ in range(2))
    assert first.text == second.text
    np.testing.assert_array_equal(first.values, second.values)
    assert draw_matrix(Draw(number + 1)).text != first.text


def test_a_case_can_be_told_again() -> None:
    done = command("--case", "5")
    assert done.returncode == 0, done.stderr
    for word in ("case 5, estimators", "model: ", "rows: ", "labels: ", "options: "):
        assert word in done.stderr


def test_every_kind_has_its_share() -> None:
    kinds = [case.kind_of(number) for number in range(160)]
    assert {kind: kinds.count(kind) // 10 for kind in kinds} == case.SHARES


# ------------------------------------------------------- what counts as a finding


def caught(f: Callable[[], Any]) -> BaseException:
    with pytest.raises(Exception) as info:
        f()
    return info.value


@pytest.mark.parametrize(
    ("error", "what"),
    [
        (lambda: np.linalg.cholesky(-np.eye(2)), "LinAlgError"),
        (lambda: np.ones(2)[5], "IndexError"),
        (lambda: 1 / 0, "ZeroDivisionError"),
        (lambda: {}["a"], "KeyError"),
        (lambda: sorted([1, "a"]), "TypeError by accident"),
        (lambda: np.ones((2, 3)) @ np.ones((2, 3)), "ValueError by accident"),
    ],
)
def test_accidents_are_findings(error: Callable[[], Any], what: str) -> None:
    finding = oracle.judge(caught(error))
    assert finding is not None and finding.what == what


def test_refusals_on_purpose_are_none() -> None:
    meant = caught(lambda: KSVD(5, init=np.eye(6)).fit(np.eye(6)))  # the library's own
    assert isinstance(meant, ValueError) and oracle.judge(meant) is None
    checked = caught(lambda: KSVD(2).fit([[np.nan]] * 4))  # scikit-learn's
    assert oracle.judge(checked) is None
    assert oracle.judge(MemoryError()) is None


def test_a_message_is_a_sentence() -> None:
    error = caught(lambda: KSVD(5, init=np.eye(6)).fit(np.eye(6)))
    error.args = ("bad",)
    finding = oracle.judge(error)
    assert finding is not None and finding.what == "ValueError without a sentence"


def test_warnings_about_numbers_are_findings() -> None:
    with oracle.watched_warnings() as found:
        np.array([1.0]) / 0
        np.array([0.0]) / 0
    assert [finding.what for finding in found] == ["RuntimeWarning"] * 2


def test_wrong_results_are_findings() -> None:
    broken = KSVD(2, max_iter=1, random_state=0).fit(np.eye(4))
    oracle.check_numbers(broken)
    broken.dictionary_.atoms[0, 0] = np.inf
    bad = [
        lambda: oracle.check_numbers(broken),
        lambda: oracle.check_finite(np.array([1, np.nan]), "f"),
        lambda: oracle.check_shape(np.ones((2, 3)), (3, None), "f"),
        lambda: oracle.check_type(np.ones(2), np.dtype("float32"), "f"),
        lambda: oracle.check_equal(np.ones(2), np.zeros(2), "f"),
        lambda: oracle.check_close([1.0], [2.0], 0.1, "f", "differs"),
    ]
    whats = {oracle.judge(caught(f)).what for f in bad}
    assert len(whats) == len(bad)


# ---------------------------------------------------------- crashes, hangs, groups


BAD_CASES = """
import faulthandler, time

def kind_of(number):
    return "bad"

def run_case(number):
    if number == 2:
        faulthandler._sigsegv()
    if number == 5:
        time.sleep(60)
    return True, None
"""


def test_crashes_and_hangs_are_found_and_the_run_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bad_cases.py").write_text(BAD_CASES)
    monkeypatch.syspath_prepend(tmp_path)
    plan = Plan(0, 2, cases=8, limit=1.0, home="bad_cases")
    tally = pool.run(plan, lambda *_: None)
    assert [(n, f.what) for n, f in tally.findings] == [(2, "crash"), (5, "hang")]
    assert tally.results == 6
    assert "Segmentation fault" in tally.findings[0][1].trace


def test_findings_are_grouped() -> None:
    one = oracle.Finding("IndexError", "kernlets/a.py:f", "one")
    two = oracle.Finding("IndexError", "kernlets/a.py:f", "two")
    other = oracle.Finding("crash", "kernlets/b.py:g", "signal 11")
    text = report.text(Tally(7, 3, 2.0, [(4, one), (1, two), (9, other)]))
    assert text.startswith("10 cases in 2 s (5 per second): 7 results, 3 refusals")
    assert "2 × IndexError at kernlets/a.py:f" in text
    assert "python -m fuzz --case 1 4" in text
    assert text.index("IndexError") < text.index("crash")
