"""The seconds of K-SAD's Tables II and III, and what the paper says about them."""

from __future__ import annotations

from typing import Any

from ..claims import ratio, together
from ..points import Points
from ..published import number, numbers
from ..spec import (
    BEST_RIVAL,
    EVERY,
    Axes,
    Claim,
    Decider,
    Derived,
    Exhibit,
    Metric,
    Study,
)
from .common import OTHER_MACHINE, SECONDS
from .ksad_studies import PUBLISHED, Digits, Faces

TIMES = Metric("times K-SAD's", digits=1, timing=True)
OWN = {"K-SAD": (PUBLISHED,)}
RIVALS: dict[str, dict[Any, tuple[str, ...]]] = {
    "table2": {
        "orl": ("KK-SVD", "FDDL", "LKA + FDDL"),
        "yaleb": ("KK-SVD", "LKA + FDDL"),
    },
    "table3": {None: ("LKA + KK-SVD",)},
}
BESIDE = {"table3": (("LKDL", None),)}  # what a claim compares with
NAMES = {"orl": " on ORL", "yaleb": " on Yale B", None: " on MNIST"}


def _times(table: str, rival: str, at: Any) -> Derived:
    """The seconds of a rival over K-SAD's."""
    rows = (number("ksad", f"{table}-seconds", row, at) for row in (rival, "K-SAD"))
    slow, fast = rows

    def compute(points: Points) -> list[float]:
        return [a / b for a, b in points.pairs((rival, at), (PUBLISHED, at))]

    return Derived(f"{rival} / K-SAD{NAMES[at]}", slow.over(fast), compute, TIMES)


def _programs(table: str) -> Decider:
    """The seconds behind the ratios."""
    shown = tuple(
        (name, at)
        for at, names in RIVALS[table].items()
        for name in (PUBLISHED, *names)
    )
    return Decider(
        "Ratios of seconds compare programs. Here all methods are of one library, with "
        "compiled pursuits and a Gram matrix that is computed once for a dictionary, "
        "from which the rivals gain most; K-SAD consists of matrix products and "
        "decompositions, which are fast in any program. How much a pursuit loses that "
        "is programmed as its text reads is measured in lkdl/fig3b.",
        shown + BESIDE.get(table, ()),
    )


def _seconds(table: str, study: Study, x: str | None, *claims: Claim) -> Exhibit:
    published = numbers("ksad", f"{table}-seconds", OWN)
    rivals = ((each, at) for at, names in RIVALS[table].items() for each in names)
    return Exhibit(
        name=f"ksad/{table}-seconds",
        title=f"Seconds of {table.replace('table', 'Table ')}, training and test",
        study=study,
        value="seconds",
        x=x,
        metric=SECONDS,
        protocol=f"as in ksad/{table}",
        published=published,
        runs=10,
        incomparable=dict.fromkeys({name for name, _ in published}, OTHER_MACHINE),
        repeats={
            name: "counted as a ratio" for name, _ in published if name != PUBLISHED
        },
        derived=tuple(_times(table, *each) for each in rivals),
        deciders={EVERY: _programs(table)},
        deviations=(
            "All methods are this library's; the paper's rivals are their authors' "
            "programs.",
            BEST_RIVAL,
        ),
        claims=claims,
        axes=Axes(kind="none"),
    )


def _fastest(at: Any) -> Claim:
    names = RIVALS["table2"][at]
    return Claim(
        f"K-SAD takes less time than its rivals{NAMES[at]}",
        together(*(ratio((name, at), (PUBLISHED, at)) for name in names)),
        at_least=1.0,
        timing=True,
        decider=_programs("table2"),
    )


FIFTY_FIVE = number("ksad", "text", "LKDL / K-SAD")
TIMES2 = _seconds("table2", Faces(), "data", _fastest("orl"), _fastest("yaleb"))
TIMES3 = _seconds(
    "table3",
    Digits(),
    None,
    Claim(
        f"K-SAD is {FIFTY_FIVE} times as fast as LKDL on MNIST",
        ratio(("LKDL", None), (PUBLISHED, None)),
        at_least=FIFTY_FIVE.value,
        timing=True,
        decider=_programs("table3"),
    ),
)
