"""The judge on planted cases: what it says is known beforehand."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import numpy as np
import pytest
from scipy.stats import ttest_1samp

from papers.catalogue import exhibits
from papers.claims import (
    below,
    highest_at,
    lead,
    ratio,
    rises,
    together,
    value,
)
from papers.exhibits.lkdl_studies import NOISES
from papers.findings import findings
from papers.judge import Terms, judge_claim, judge_number
from papers.points import Missing, Points, by_seed
from papers.published import Published, number
from papers.records import Cell, Record
from papers.settings import Setting, no_timing
from papers.spec import EVERY, Axes, Claim, Derived, Exhibit, Metric, Study
from papers.text import cells, claim_cells, matrix
from papers.unreproduced import OPEN, unreproduced_page

NOISE = np.array([-1.0, -0.5, 0.0, 0.5, 1.0])  # around a planted mean


def around(mean: float, spread: float = 1.0) -> list[float]:
    return (mean + spread * NOISE).tolist()


# ---------------------------------------------------------------- numbers


@pytest.mark.parametrize(
    ("values", "terms", "verdict"),
    [
        (around(90.1), Terms(), "reproduced"),
        (around(99.0), Terms(better="higher"), "better"),
        (around(81.0), Terms(better="higher"), "worse"),
        (around(81.0), Terms(better="lower"), "better"),
        (around(99.0), Terms(better="lower"), "worse"),
        (around(99.0), Terms(), "mismatch"),
        (around(81.0), Terms(), "mismatch"),
        (around(91.0, 20.0), Terms(better="higher"), "reproduced"),
        (around(91.0, 20.0), Terms(better="higher", span=5.0), "undecided"),
        (around(91.0, 0.01), Terms(better="higher", span=5.0), "better"),
        (around(91.0, 0.01), Terms(allowance=1.0), "reproduced"),
        ([90.0], Terms(), "undecided"),
        ([95.0], Terms(better="higher"), "undecided"),
        ([90.0, 90.0], Terms(), "undecided"),
        ([90.04], Terms(allowance=0.05, exact=True), "reproduced"),
        ([90.06], Terms(allowance=0.05, exact=True), "mismatch"),
    ],
)
def test_planted_numbers(values, terms, verdict):
    """Clear wins and losses, noise, no good side, one seed, one run that is enough."""
    assert judge_number(90.0, values, terms).name == verdict


def test_the_interval_is_that_of_the_difference_of_two_means():
    """With very many runs in the paper it is the one-sample interval of scipy."""
    values = around(91.0, 2.0)
    known = ttest_1samp(np.array(values) - 90.0, 0.0).confidence_interval(0.95)
    ours = judge_number(90.0, values, Terms(runs=10**12)).interval
    assert ours is not None
    assert (ours.low, ours.high) == pytest.approx((known.low, known.high))
    once = judge_number(90.0, values, Terms(runs=5)).interval
    assert once is not None
    assert once.half_width == pytest.approx(2**0.5 * ours.half_width)


def test_verdicts_are_wrong_as_rarely_as_they_say():
    """Of means that agree, some 5 % are called a mismatch."""
    rng = np.random.default_rng(0)
    draws = rng.normal(size=(1000, 20))
    said = [judge_number(d[10:].mean(), d[:10], Terms(runs=10)).name for d in draws]
    assert 0.03 < np.mean([name == "mismatch" for name in said]) < 0.07


# ---------------------------------------------------------------- claims


@pytest.mark.parametrize(
    ("parts", "bounds", "verdict", "part"),
    [
        ({"a": around(5.0)}, (0.0, inf), "holds", "a"),
        ({"a": around(-5.0)}, (0.0, inf), "fails", "a"),
        ({"a": around(0.3)}, (0.0, inf), "undecided", "a"),
        ({"a": around(-0.3)}, (0.0, inf), "undecided", "a"),
        ({"a": [5.0]}, (0.0, inf), "undecided", "a"),
        ({"a": [5.0, 5.0]}, (0.0, inf), "undecided", "a"),
        ({"a": around(5.0), "b": around(9.0)}, (0.0, inf), "holds", "a"),
        ({"a": around(5.0), "b": around(-5.0)}, (0.0, inf), "fails", "b"),
        ({"a": around(5.0), "b": around(0.1)}, (0.0, inf), "undecided", "b"),
        ({"a": around(5.5)}, (6.0, inf), "undecided", "a"),
        ({"a": around(3.0)}, (6.0, inf), "fails", "a"),
        ({"a": around(0.1, 0.1)}, (-0.5, 0.5), "holds", "a"),
        ({"a": around(0.9, 0.1)}, (-0.5, 0.5), "fails", "a"),
        ({"a": around(-0.9, 0.1)}, (-0.5, 0.5), "fails", "a"),
        ({"a": around(3.0)}, (-inf, 6.0), "holds", "a"),
    ],
)
def test_planted_claims(parts, bounds, verdict, part):
    found = judge_claim(parts, *bounds)
    assert (found.name, found.part) == (verdict, part)
    assert found.seeds == len(parts[part])
    assert found.mean == pytest.approx(np.mean(parts[part]))


def test_many_parts_do_not_fail_by_chance():
    """One of 20 parts that is low by chance fails alone, but not among the others."""
    low = around(-0.6, 0.5)
    assert judge_claim({"low": low}, 0.0).name == "fails"
    others = {f"part {i}": around(50.0) for i in range(19)}
    found = judge_claim({**others, "low": low}, 0.0)
    assert (found.name, found.part) == ("undecided", "low")
    assert found.interval is not None and found.interval.high > 0


def test_pairs_remove_what_seeds_share():
    """Seeds differ by far more than methods do: only the pairs show the lead."""
    seeds = {seed: 10.0 * seed for seed in range(5)}
    lift = [1.0, 1.1, 0.9, 1.05, 0.95]
    points = Points(
        {
            ("a", None): {s: v + lift[s] for s, v in seeds.items()},
            ("b", None): {**seeds, 99: 1e6},  # a seed that only one of them has
        }
    )
    found = judge_claim(lead(("a", None), ("b", None))(points), 0.0)
    assert (found.name, found.seeds) == ("holds", 5)
    assert found.mean == pytest.approx(1.0)


def test_what_claims_are_about():
    points = Points(
        {("a", x): {0: float(x), 1: 2.0 * x} for x in (1, 2, 4)} | {("b", 1): {0: 0.5}}
    )
    assert lead(("a", 2), ("b", 1))(points) == {"a at 2 − b at 1": [1.5]}
    assert below(("b", 1), ("a", 1))(points) == {"b at 1 below a at 1": [0.5]}
    assert ratio(("a", 4), ("a", 2))(points) == {"a at 4 / a at 2": [2.0, 2.0]}
    assert value(("a", 4))(points) == {"a at 4": [4.0, 8.0]}
    steps = rises("a", (1, 2, 4))(points)
    assert list(steps.values()) == [[1.0, 2.0], [2.0, 4.0]]
    assert len(highest_at("a", 4)(points)) == 2
    assert len(together(value(("a", 1)), value(("a", 2)))(points)) == 2
    with pytest.raises(Missing, match=r"c at 1"):
        lead(("a", 1), ("c", 1))(points)


def test_only_seeds_that_all_points_have_are_compared():
    """Runs that were stopped leave more seeds of one point than of another."""
    more, fewer = {0: 1.0, 1: 2.0, 2: 3.0}, {2: 5.0, 0: 4.0}
    assert by_seed(more, fewer) == [(1.0, 4.0), (3.0, 5.0)]
    with pytest.raises(Missing, match="same seed"):
        by_seed({0: 1.0}, {1: 1.0})


@pytest.mark.parametrize("each", exhibits().values(), ids=lambda e: e.name)
def test_runs_that_were_stopped_can_be_judged(each):
    """A seed more of the first cases of the grid than of the others."""
    cases = each.study.cases("full")
    cells = [
        Cell(each.study.name, "full", case, seed)
        for index, case in enumerate(cases)
        for seed in range(3 if index < len(cases) / 2 else 2)
    ]
    records = [Record(cell, {each.value: seen(each, cell.seed)}) for cell in cells]
    for row in findings(each, records, "full").compared:
        assert row.verdict


def seen(each, seed):
    if each.x is None and each.axes.kind == "lines":
        return {str(x): 1.0 + seed for x in (*NOISES, *range(201))}
    return 1.0 + seed


def test_a_claim_without_a_bound_is_refused():
    with pytest.raises(ValueError, match=r"'nothing' has no bound: set at_least"):
        Claim("nothing", value(("a", 1)))


# ---------------------------------------------------------------- exhibits


class Toy(Study):
    name = "toy.study"
    grid = {"method": ("ours", "rival", "other reading"), "x": (1, 2)}
    sizes = {"smoke": {"n": 1}, "small": {"n": 9}, "full": {"n": 9}}

    def measure(self, case, seed, sizes):
        raise NotImplementedError


SCORE = Metric("score")
SESSIONS = {
    "alone": {"device": "cpu", "machine": {"processes": 1, "threads": 2}},
    "crowd": {"device": "cpu", "machine": {"processes": 8, "threads": 2}},
    "gpu": {"device": "H200", "machine": {"processes": 1, "threads": 3}},
}


def published(row, x, printed, **changes):
    return Published("toy", "table", row, x, printed, **changes)


def exhibit(**changes):
    numbers = {("ours", 1): published("ours", 1, 90.0)}
    settings = {
        "name": "toy/table",
        "title": "A toy",
        "study": Toy(),
        "value": "score",
        "x": "x",
        "metric": SCORE,
        "protocol": "none",
        "published": numbers,
        "proposed": ("ours",),
        "axes": Axes(kind="none"),
        **changes,
    }
    return Exhibit(**settings)


def runs(method, x, values, session="alone"):
    return [
        Record(
            Cell("toy.study", "full", {"method": method, "x": x}, seed),
            {"score": score, "seconds": score},
            session=session,
        )
        for seed, score in enumerate(values)
    ]


def judged(shown, *groups):
    records = [record for group in groups for record in group]
    return findings(shown, records, "full", SESSIONS)


def test_a_number_that_two_readings_show_is_counted_once():
    twice = exhibit(
        published=dict.fromkeys(
            (("ours", 1), ("other reading", 1)), published("ours", 1, 90.0)
        ),
        repeats={"other reading": "counted in ours"},
    )
    found = judged(
        twice, runs("ours", 1, around(80.0)), runs("other reading", 1, around(90.0))
    )
    assert found.verdicts == {"worse": 1}
    verdicts = {row.series: row.verdict for row in found.compared}
    assert verdicts == {"ours": "worse", "other reading": "reproduced"}
    (other,) = (row for row in found.compared if not row.counted)
    assert cells(other)[-1] == "reproduced: counted in ours"


def test_a_claim_that_is_made_twice_is_counted_once():
    claim = Claim("leads", lead(("ours", 1), ("rival", 1)), at_least=0.0)
    again = replace(claim, text="leads again", repeats="counted above")
    found = judged(
        exhibit(claims=(claim, again)),
        runs("ours", 1, around(95.0)),
        runs("rival", 1, around(90.0)),
    )
    assert [each.verdict for each in found.claims] == ["holds", "holds"]
    assert found.verdicts["holds"] == 1


def test_a_claim_about_nothing_that_was_measured():
    claims = (
        Claim("is unknown", value(("rival", 2)), at_least=0.0),
        Claim("has no parts", lambda points: {}, at_least=0.0),
    )
    found = judged(exhibit(claims=claims), runs("ours", 1, around(90.0)))
    assert [each.verdict for each in found.claims] == ["not measured"] * 2
    assert claim_cells(found.claims[0])[-1] == "not measured"


def test_what_a_parameter_was_fitted_to_confirms_nothing():
    fitted = exhibit(calibrated={EVERY: "its width was fitted to it"})
    for mean in (90.0, 99.0):
        found = judged(fitted, runs("ours", 1, around(mean)))
        assert found.verdicts == {"calibrated": 1}
        assert cells(found.rows[0])[-1] == "calibrated: its width was fitted to it"


def test_what_misses_after_the_fit_is_a_miss():
    fitted = exhibit(calibrated={EVERY: "its width was fitted to it"})
    found = judged(fitted, runs("ours", 1, around(50.0)))
    assert found.verdicts == {"worse": 1}
    said = "worse: missed although its width was fitted to it"
    assert cells(found.rows[0])[-1] == said


def test_a_rival_is_never_better():
    names = ("ours", "rival")
    both = exhibit(published={(name, 1): published(name, 1, 50.0) for name in names})
    found = judged(both, *(runs(name, 1, around(62.0)) for name in names))
    assert found.verdicts == {"better": 1, "mismatch": 1}


def test_a_number_without_a_good_side_is_never_better():
    plain = exhibit(metric=Metric("anchors", better=""))
    found = judged(plain, runs("ours", 1, around(62.0)))
    assert found.verdicts == {"mismatch": 1}


def test_reasons_are_found_by_curve_and_place():
    wide = exhibit(
        published={
            (name, x): published(name, x, 90.0)
            for name in ("ours", "rival")
            for x in (1, 2)
        },
        incomparable={("ours", 1): "this", "rival": "these"},
    )
    groups = [runs(name, x, around(90.0)) for name in ("ours", "rival") for x in (1, 2)]
    found = judged(wide, *groups)
    assert {(row.series, row.x): row.why for row in found.rows} == {
        ("ours", 1): "this",
        ("ours", 2): "",
        ("rival", 1): "these",
        ("rival", 2): "these",
    }


def test_an_interval_wider_than_the_effect_decides_nothing():
    """The published numbers are 2 apart; 5 seeds with a spread of 4 cannot see that."""
    both = {
        ("ours", 1): published("ours", 1, 90.0),
        ("rival", 1): published("rival", 1, 88.0),
    }
    found = judged(exhibit(published=both), runs("ours", 1, around(90.0, 5.0)))
    assert found.rows[0].verdict == "undecided"
    assert "at 5 seeds: the interval is wider" in cells(found.rows[0])[-1]
    stated = exhibit(published=both, effect=100.0)
    seen = judged(stated, runs("ours", 1, around(90.0, 5.0)))
    assert seen.rows[0].verdict == "reproduced"


def test_a_line_shows_all_that_the_verdict_rests_on():
    read = published("ours", 1, 90.0, source="figure", allowance=0.1)
    claim = Claim("is high", value(("ours", 1)), at_least=80.0)
    shown = exhibit(published={("ours", 1): read}, claims=(claim,), runs=10)
    found = judged(shown, runs("ours", 1, around(90.2)))
    assert cells(found.rows[0]) == (
        "ours",
        "1",
        "90.00",
        "90.20",
        "0.79",
        "5",
        "+0.20",
        "-1.00 to +1.40",
        "paper: mean of 10; read from the figure ± 0.1",
        "reproduced",
    )
    line = claim_cells(found.claims[0])
    assert line[:4] == ("is high", "ours at 1", "≥ 80", "90.20")
    assert line[5:] == (
        "5",
        "+10.20",
        "+89.22 to +91.18",
        "t interval over seeds",
        "holds",
    )


def test_numbers_may_be_compared_with_another_exhibit():
    other = exhibit(name="toy/other", value="seconds")
    gain = Derived(
        "gain",
        published("gain", None, 0.0),
        lambda own, there: [
            a - b for a, b in own.pairs_with(there, ("ours", 1), ("ours", 1))
        ],
        SCORE,
        beside=other,
    )
    found = judged(exhibit(derived=(gain,)), runs("ours", 1, around(90.0)))
    assert found.derived[0].values == (0.0,) * 5


# ---------------------------------------------------------------- seconds

TIMED = Metric("seconds", "lower", timing=True)
FASTER = Claim("faster", ratio(("rival", 1), ("ours", 1)), at_least=2.0, timing=True)


@pytest.mark.parametrize(
    ("session", "verdicts", "why"),
    [
        ("alone", {"reproduced": 1, "holds": 1}, ""),
        ("crowd", {"not comparable": 2}, "timed with 8 processes side by side"),
        ("lost", {"not comparable": 2}, "timed on an unknown machine"),
    ],
)
def test_seconds_count_only_if_taken_alone(session, verdicts, why):
    found = judged(
        exhibit(metric=TIMED, claims=(FASTER,)),
        runs("ours", 1, around(90.0), session),
        runs("rival", 1, around(900.0), session),
    )
    assert found.verdicts == verdicts
    assert found.claims[0].why == why and found.rows[0].why == why
    if not why:
        assert found.rows[0].rule.endswith("; cpu, 2 threads")


def test_seconds_of_a_crowd_are_left_out_where_some_were_taken_alone():
    crowd = runs("ours", 1, around(500.0), "crowd")
    alone = runs("ours", 1, around(90.0)[:3], "alone")
    others = [run for run in crowd if run.cell.seed > 2]
    found = judged(exhibit(metric=TIMED), alone, others)
    assert found.rows[0].values == tuple(around(90.0)[:3])
    assert found.rows[0].rule.endswith("; cpu, 2 threads")
    scores = judged(exhibit(), alone, others)  # whose spread is no matter of seconds
    assert len(scores.rows[0].values) == 5


def test_runs_without_seconds_do_not_say_how_others_were_timed():
    alone = runs("ours", 1, around(90.0)[:3], "alone")
    untimed = [
        replace(run, values={"accuracy": 1.0})
        for run in runs("rival", 1, around(1.0), "gpu")
    ]
    found = judged(exhibit(metric=TIMED), alone, untimed)
    assert found.rows[0].rule.endswith("; cpu, 2 threads")
    assert found.rows[0].why == ""


def test_seconds_of_two_devices_are_never_in_one_column():
    groups = (
        runs("ours", 1, around(90.0)),
        runs("rival", 1, around(900.0)),
        runs("ours", 2, around(1.0), "gpu"),
    )
    found = judged(exhibit(metric=TIMED), *groups)
    assert list(found.points) == [("ours", 1), ("rival", 1)]
    header, first, *_ = matrix(judged(exhibit(seconds=("seconds",)), *groups))
    unknown = runs("ours", 1, around(90.0), "lost")
    mixed = judged(exhibit(metric=TIMED), unknown[:1], groups[0][1:])
    assert mixed.rows[0].why == "timed on an unknown machine"
    assert header[-2:] == (
        "seconds, s (cpu, 2 threads)",
        "seconds, s (H200, 3 threads)",
    )
    assert first[-2:] == ("90", "1")
    both = [Setting("cpu", 1, 2), Setting("H200", 1, 3)]
    assert no_timing(both) == "timed on several devices"
    threads = [Setting("cpu", 1, 2), Setting("cpu", 1, 1)]
    assert no_timing(threads) == "timed with several numbers of threads"


# ---------------------------------------------------------------- the catalogue


def counted() -> dict[object, int]:
    """How often each published number is counted, if all of them were measured."""
    found: dict[object, int] = {}
    for each in exhibits().values():
        numbers = [(*at, printed) for at, printed in each.published.items()]
        numbers += [(d.label, None, d.published) for d in each.derived if d.published]
        for series, x, printed in numbers:
            keys = ((series, x), series, x, EVERY)
            repeated = any(key in each.repeats for key in keys)
            found[printed.identity] = found.get(printed.identity, 0) + (not repeated)
    return found


NOT_AS_NUMBERS = {
    ("ksad", "table2", "LKDL", "yaleb"): "the mean of two numbers of LKDL's",
}


def test_every_published_number_is_counted_once():
    times = counted()
    assert len(times) > 150
    assert {key for key, n in times.items() if n != 1} == NOT_AS_NUMBERS.keys()


def test_claims_are_distinct():
    texts = [
        (each.name, claim.text)
        for each in exhibits().values()
        for claim in each.claims
        if not claim.repeats
    ]
    assert len(set(texts)) == len(texts)


def test_what_exhibits_declare_is_there():
    """A misspelt curve would silently change a verdict."""
    for each in exhibits().values():
        known = {series for series, _ in each.published} | {EVERY}
        known |= {x for _, x in each.published} | set(each.published)
        known |= {derived.label for derived in each.derived}
        reasons = {*each.incomparable, *each.calibrated, *each.repeats}
        assert {*reasons, *each.deciders, *each.proposed} <= known, each.name


def test_the_papers_own_bounds():
    def bound(name, words):
        (claim,) = (c for c in exhibits()[name].claims if words in c.text)
        return claim.at_least

    assert bound("rkdl/table2", "six times") == 6.0
    assert bound("lkdl/fig1b", "gap of 0.5 points between") == 0.5
    grows = exhibits()["budget/fig1"].claims[0]
    budgets = (25, 50, 100, 150, 200, 250)
    curve = Points({("pruning", b): {0: float(b)} for b in budgets})
    assert len(grows.parts(curve)) == len(budgets) - 1


def test_what_a_printed_number_may_be_off_by():
    assert number("rkdl", "table1", "RKDL-D", "mnist").allowance == pytest.approx(5e-4)
    assert number("lkdl", "fig2a", "LKDL", 1).allowance == pytest.approx(5e-5)
    assert number("budget", "fig1", "pruning", 100).allowance == pytest.approx(1e-3)
    share = published("a", 1, 50.0, allowance=0.5).over(
        published("b", 1, 200.0, allowance=2.0)
    )
    assert share.value == 0.25 and share.identity == ("toy", "table", "a", 1)
    assert share.allowance == pytest.approx(0.25 * (0.01 + 0.01))


# ---------------------------------------------------------------- the page of misses


def test_misses_are_listed_with_what_decides_them(monkeypatch):
    from papers import catalogue
    from papers.spec import Decider

    monkeypatch.setitem(catalogue.PAPERS, "toy", "Toys")
    decider = Decider("The rival shows it.", (("rival", 1),))
    both = {(name, 1): published(name, 1, 90.0) for name in ("ours", "rival")}
    shown = exhibit(published=both, deciders={"ours": decider})
    groups = runs("ours", 1, around(80.0)), runs("rival", 1, around(99.0))
    page = unreproduced_page([judged(shown, *groups)])
    fitted = exhibit(calibrated={EVERY: "its width was fitted to it"})
    missed = unreproduced_page([judged(fitted, groups[0])])
    assert "worse: missed although its width was fitted to it" in missed
    first, second = page.index("The rival shows it."), page.index(OPEN)
    assert "| ours | 1 | 90.00 | 80.00 ± 0.79 (" in page[:first]
    assert "| rival | 1 | 99.00 ± 0.79 |" in page[first:second]
    assert "| rival | 1 | 90.00 | 99.00 ± 0.79 (" in page[first:second]
    good = unreproduced_page([judged(exhibit(), runs("ours", 1, around(90.0)))])
    assert "toy/table" not in good
    few = unreproduced_page([judged(exhibit(), runs("ours", 1, [90.0]))])
    assert "## Undecided" in few and "undecided at 1 seed" in few
