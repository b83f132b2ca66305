"""Our numbers beside the published ones: an exhibit with all that was measured for it.

How verdicts are reached is in `judge`, what they are about in `verdicts`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from .points import Points, points_of, shown_records
from .records import Record
from .settings import Sessions, Setting, made_with, no_timing, timed_alike
from .spec import SCALES, Exhibit
from .verdicts import (
    Context,
    Judged,
    Row,
    judged_claims,
    judged_derived,
    judged_rows,
)

COLUMNS = 12  # that a table may have
NO_SESSIONS: Sessions = MappingProxyType({})


@dataclass(frozen=True)
class Findings:
    """An exhibit with everything that was measured for it at one scale."""

    exhibit: Exhibit
    scale: str
    records: tuple[Record, ...]
    points: Points
    rows: tuple[Row, ...]  # one per curve and place
    derived: tuple[Row, ...]  # numbers computed from those
    claims: tuple[Judged, ...]
    made: Mapping[str, Setting]  # what the runs were made with, by session

    @property
    def compared(self) -> list[Row]:
        """Rows for which there is a published number."""
        return [row for row in (*self.rows, *self.derived) if row.published is not None]

    @property
    def places(self) -> list[Any]:
        """All places on the curves, in order; None stands for everywhere."""
        found = dict.fromkeys(row.x for row in self.rows if row.values)
        if all(isinstance(x, (int, float)) for x in found if x is not None):
            return sorted(found, key=lambda x: (x is None, x or 0))
        return list(found)

    @property
    def few_places(self) -> list[Any]:
        """Places for a table: all, or some evenly spread, the last among them."""
        places = self.places
        step = -(-len(places) // COLUMNS)
        return places[::-1][::step][::-1] if step > 1 else places

    def curve(self, series: str) -> dict[Any, Row]:
        """What was measured on one curve."""
        return {r.x: r for r in self.rows if r.series == series and r.values}

    @property
    def verdicts(self) -> Counter[str]:
        """How often each verdict was given to a number or a claim.

        One that is shown several times is counted where it is declared to be.
        """
        counted = [row.verdict for row in self.compared if row.counted]
        return Counter([*counted, *(c.verdict for c in self.claims if c.counted)])

    @property
    def skipped(self) -> list[str]:
        """The reasons why runs were not made."""
        reasons = (r.skipped or r.error for r in self.records if not r.done)
        return sorted(set(reasons))

    @property
    def settings(self) -> list[Setting]:
        """What its runs were made with."""
        return _kinds(self.records, self.made)

    @property
    def seconds(self) -> float:
        return sum(record.seconds for record in self.records)

    @property
    def peak_bytes(self) -> int:
        return max((record.peak_bytes or 0 for record in self.records), default=0)

    @property
    def planned(self) -> int:
        """Runs that the study makes at this scale."""
        study = self.exhibit.study
        return sum(study.repeats(c, self.scale) for c in study.cases(self.scale))


def findings(
    exhibit: Exhibit,
    records: Iterable[Record],
    scale: str,
    sessions: Sessions = NO_SESSIONS,
) -> Findings:
    """Compare an exhibit with the records of its study at one scale.

    Without the sessions that the records name, seconds are not judged.
    """
    records = tuple(records)
    own = shown_records(exhibit, records, scale)
    made = made_with(own, sessions)
    if exhibit.metric.timing:
        timed = [r for r in own if not r.done or exhibit.value in r.values]
        own = timed_alike(timed, made)
    points, kinds = points_of(exhibit, own), _kinds(own, made)
    context = Context(
        exhibit,
        points,
        _beside(exhibit, records, scale),
        "" if exhibit.study.comparable(scale) else f"problem of scale {scale}",
        no_timing(kinds),
        " and ".join(map(str, kinds)),
        _exact(exhibit, scale),
    )
    return Findings(
        exhibit,
        scale,
        own,
        points,
        tuple(judged_rows(context)),
        tuple(judged_derived(context)),
        tuple(judged_claims(context)),
        made,
    )


def _kinds(records: Iterable[Record], made: Mapping[str, Setting]) -> list[Setting]:
    """The distinct settings of some runs; none if that of one is unknown."""
    names = {record.session for record in records if record.done}
    known = [setting for name, setting in made.items() if name in names]
    return list(dict.fromkeys(known)) if names <= made.keys() else []


def _beside(
    exhibit: Exhibit, records: Iterable[Record], scale: str
) -> Mapping[str, Points]:
    """Points of the exhibits that claims and derived numbers look up, by name."""
    wanted = [each.beside for each in exhibit.claims]
    wanted += [each.beside for each in exhibit.derived]
    return {
        each.name: points_of(each, shown_records(each, records, scale))
        for each in wanted
        if each is not None
    }


def _exact(exhibit: Exhibit, scale: str) -> frozenset[str]:
    """Curves whose runs draw no random numbers: one of each is made, of others more."""
    study, many = exhibit.study, exhibit.study.seeds[scale] > 1
    return frozenset(
        str(case.get(exhibit.series, exhibit.series))
        for case in study.cases(scale)
        if many and study.repeats(case, scale) == 1
    )


def largest_scale(records: Iterable[Record]) -> str | None:
    """The largest scale at which there are runs."""
    present = {record.cell.scale for record in records}
    return next((scale for scale in reversed(SCALES) if scale in present), None)
