"""All experiments by name: the exhibits in `exhibits/` and the studies behind them."""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module

from kernlets.base.names import guess

from .spec import Exhibit, Study

PAPERS = {
    "lkdl": "Linearized Kernel Dictionary Learning (Golts and Elad, 2016)",
    "budget": "Online Kernel Dictionary Learning on a Budget (Lee and Kim, 2016)",
    "ika": "IKA: Independent Kernel Approximator (Ronchetti, 2018)",
    "rkdl": "Reduced Kernel Dictionary Learning (Ilie-Ablachim and Dumitrescu, 2022)",
    "ksad": "Improved Image Discrimination using Fast Non-linear Orthogonal Dictionary "
    "Learning, K-SAD (Chhabra, Wallace and Hopgood, 2017)",
}


@lru_cache(maxsize=1)
def exhibits() -> dict[str, Exhibit]:
    """Every table and figure, in the order of the papers."""
    found = (
        exhibit
        for paper in PAPERS
        for exhibit in import_module(f".exhibits.{paper}", __package__).EXHIBITS
    )
    return {exhibit.name: exhibit for exhibit in found}


@lru_cache(maxsize=1)
def studies() -> dict[str, Study]:
    """Every study, by name."""
    return {each.study.name: each.study for each in exhibits().values()}


def chosen(names: list[str]) -> list[Exhibit]:
    """The exhibits of names: "all", a paper, or "paper/exhibit"."""
    known = exhibits()
    found: dict[str, Exhibit] = {}
    for name in names:
        parts = {key: e for key, e in known.items() if name in ("all", key, e.paper)}
        if not parts:
            hint = guess(name, ["all", *PAPERS, *known])
            raise ValueError(f"experiment {name!r} is unknown: {hint}see the list")
        found |= parts
    return list(found.values())
