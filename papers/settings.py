"""What runs were made with, which decides whether their seconds may be judged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from .records import Record

Sessions = Mapping[str, Mapping[str, Any]]


class Setting(NamedTuple):
    """Where runs were made, and how many of them side by side."""

    device: str
    processes: int
    threads: int

    def __str__(self) -> str:
        aside = f"{self.processes} processes of " if self.processes > 1 else ""
        some = "thread" if self.threads == 1 else "threads"
        return f"{self.device}, {aside}{self.threads} {some}"


def made_with(records: Iterable[Record], sessions: Sessions) -> dict[str, Setting]:
    """The setting of each session of some runs, as far as it is recorded."""
    names = dict.fromkeys(record.session for record in records if record.done)
    return {name: _setting(sessions[name]) for name in names if name in sessions}


def timed_alike(
    records: Sequence[Record], made: Mapping[str, Setting]
) -> tuple[Record, ...]:
    """Of timed runs those made alone, if any were, on the device with most of them.

    Seconds of a crowd, or of two devices, are never part of one mean.
    """
    known = [record for record in records if record.session in made]
    alone = [record for record in known if made[record.session].processes == 1]
    chosen = alone or known
    devices = Counter(made[record.session].device for record in chosen)
    if len(devices) < 2 and len(chosen) == len(known):
        return tuple(records)  # also those of unknown sessions, which forbid a verdict
    ((most, _),) = devices.most_common(1)
    return tuple(r for r in chosen if made[r.session].device == most)


def _setting(session: Mapping[str, Any]) -> Setting:
    machine = session["machine"]
    return Setting(session["device"], machine.get("processes", 1), machine["threads"])


def no_timing(found: Iterable[Setting]) -> str:
    """Why seconds of these settings give no verdict; empty if they do."""
    known = list(found)
    if not known:
        return "timed on an unknown machine"
    if len({each.device for each in known}) > 1:
        return "timed on several devices"
    most = max(each.processes for each in known)
    if most > 1:
        return f"timed with {most} processes side by side"
    several = len({each.threads for each in known}) > 1
    return "timed with several numbers of threads" if several else ""
