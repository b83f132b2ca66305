"""Declarations of what objects consist of, and the limits of what files may ask for."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator

from kernlets.io.decode import (
    FACTOR,
    FLOOR,
    MAX_DEPTH,
    MAX_OBJECTS,
    MemoryBudget,
    check_outline,
)
from kernlets.numerics.text import printable
from kernlets.schema import (
    Conditions,
    Declared,
    Either,
    Field,
    Flag,
    Floats,
    History,
    Indices,
    Labels,
    Many,
    Maybe,
    Misfit,
    Names,
    Nothing,
    Number,
    Part,
    Size,
    Sizes,
    Text,
    Whole,
    check,
)

# -------------------------------------------------------------------------- kinds

M = np.ones((3, 2))
GOOD: list[tuple[Field, Any]] = [
    (Floats("m", "p"), M),
    (Floats("m", "p"), M.astype("f4")),
    (Floats("m", "m"), np.eye(2)),
    (Floats("w>=0", 2), np.ones((0, 2))),
    (Floats(None, None), np.ones((0, 5))),
    (Floats("m", finite=False), np.array([np.nan, np.inf])),
    (Floats("m", "p", csr=True), sparse.csr_array(M)),
    (Floats("m", like="float64"), np.ones(3)),
    (Indices("m"), np.arange(3)),
    (Indices("m", below=3), np.arange(3)),
    (Indices("m", least=-1), np.array([-1, 0])),
    (Labels("C"), np.array(["a", "b"])),
    (Labels("C"), np.array(["a", "b"], dtype=object)),
    (Labels("C"), np.array([-1.5, 2.0])),
    (Labels("C"), np.array([False, True])),
    (Labels("C", gaps=True), np.array(["a", None], dtype=object)),
    (Labels("C", gaps=True), np.array([1.0, np.nan])),
    (Names("p"), np.array(["größe in cm", "x"], dtype=object)),
    (Number(), -0.5),
    (Number(), np.float32(2)),
    (Number(finite=False), np.inf),
    (Whole(), np.int64(3)),
    (Size("p"), 4),
    (Text(), "a\nb"),
    (Text("x", "y"), "y"),
    (Flag(), np.bool_(True)),
    (Nothing(), None),
    (Many(Number(), "n"), [1, 2.5]),
    (Many(Indices(None), 2), [np.arange(3), np.arange(0)]),
    (Either(Nothing(), Number()), 3),
    (History(), {"objective": [1.0, np.nan], "seconds": [0, 1], "cost": []}),
]
BAD: list[tuple[Field, Any]] = [
    (Floats("m", "p"), M[0]),
    (Floats("m", "m"), M),
    (Floats("m", "p"), M[:0]),
    (Floats("m", "p"), M.astype(int)),
    (Floats("m", "p"), M.astype("f2")),
    (Floats("m", "p"), M.tolist()),
    (Floats("m", "p"), sparse.csr_array(M)),
    (Floats("m", "p"), np.full((3, 2), np.nan)),
    (Floats("m", like="float64"), np.ones(3, "f4")),
    (Floats(3), np.ones(4)),
    (Indices("m"), np.array([-1, 0])),
    (Indices("m", below=3), np.arange(4)),
    (Indices("m"), np.ones(3)),
    (Indices("m"), np.ones(3, np.uint64)),
    (Indices("m", like="int64"), np.ones(3, np.int32)),
    (Labels("C"), np.array(["b", "a"])),
    (Labels("C"), np.array(["a", "a"])),
    (Labels("C"), np.array([1.0, np.nan])),
    (Labels("C"), np.array(["a", 1], dtype=object)),
    (Labels("C"), np.array(["a", None], dtype=object)),
    (Labels("C"), np.array([], dtype=str)),
    (Names("p"), np.array(["\x1b[2J"], dtype=object)),
    (Names("p"), np.array([3], dtype=object)),
    (Number(), np.inf),
    (Number(), True),
    (Number(), "3"),
    (Number(least=0), -1e-9),
    (Whole(), 3.0),
    (Whole(), True),
    (Whole(1), 0),
    (Whole(), 2**60),
    (Size("p"), 0),
    (Text(), b"a"),
    (Text("x", "y"), "z"),
    (Text(), "\u202eabc"),
    (Flag(), 1),
    (Nothing(), 0),
    (Many(Number(), "n"), [1, "a"]),
    (Many(Number(), "n"), 3),
    (Many(Number(), 3), [1]),
    (Either(Nothing(), Number()), "x"),
    (History(), {"objective": [1.0]}),
    (History(), {"objective": [], "seconds": []}),
    (History(), {"objective": [1.0], "seconds": ["x"]}),
    (History(), [1.0]),
]


def _id(case: Any) -> str:
    return f"{type(case).__name__}" if isinstance(case, Field) else repr(case)[:30]


@pytest.mark.parametrize(("kind", "value"), GOOD, ids=_id)
def test_what_fits(kind: Field, value: Any) -> None:
    kind.check(value, Sizes(None, {}))


@pytest.mark.parametrize(("kind", "value"), BAD, ids=_id)
def test_what_does_not_fit(kind: Field, value: Any) -> None:
    with pytest.raises(Misfit):
        kind.check(value, Sizes(None, {}))


# ------------------------------------------------------------------------ objects


@dataclass
class Inner:
    rows: Any
    notes: Any = None

    _declared: ClassVar[Declared] = {
        "rows": Floats("n", "p"),
        "notes": Either(Nothing(), Floats("n")),
    }


class Outer(BaseEstimator):
    _declared: ClassVar[Declared] = {
        "places_": Indices("n", below="k"),  # before k is known
        "n_features_in_": Size("p"),
        "inner_": Part(Inner, n="n", p="p"),
        "many_": Many(Part(Inner, p="p"), "k"),
        "extra_": Maybe(Floats(".depth", "p")),
    }
    _conditions: ClassVar[Conditions] = {
        "places_ must begin with 0": lambda self: self.places_[0] == 0,
    }
    _early = ("n_features_in_",)

    def __init__(self, depth: int = 3) -> None:
        self.depth = depth


class Heir(Outer):
    _declared: ClassVar[Declared] = {"more_": Number()}


def outer(cls: Any = Outer, **changes: Any) -> Any:
    model, inner = cls(), Inner(np.ones((4, 2)), np.ones(4))
    values = {
        "places_": np.array([0, 1, 1, 0]),
        "n_features_in_": 2,
        "inner_": inner,
        "many_": [inner, Inner(np.ones((7, 2)))],
        **changes,
    }
    vars(model).update({name: v for name, v in values.items() if v is not None})
    return model


def test_an_object_that_fits_has_sizes() -> None:
    assert check(outer()) == {"p": 2, "n": 4, "k": 2}
    assert check(outer(extra_=np.ones((3, 2)))).fitted
    assert check(outer(Heir, more_=1.5))["n"] == 4


def test_before_a_fit_there_is_nothing() -> None:
    assert not check(Outer()).fitted
    early = Outer()
    early.n_features_in_ = 2
    assert not check(early).fitted


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"places_": np.array([0, 2, 0, 0])}, "places_ has numbers from 0 to 2"),
        ({"places_": np.array([1, 1, 1, 0])}, "Outer: places_ must begin with 0"),
        ({"places_": np.array([0, 1])}, r"has the shape \(2,\), it must be \(n=4\)"),
        ({"n_features_in_": 3}, "inner_ has p=2, but there is p=3"),
        ({"inner_": Inner(np.ones((4, 2)), np.ones(3))}, "Inner.notes .* the shape"),
        ({"inner_": Inner(np.ones((4, 3)))}, "inner_ has p=3, but there is p=2"),
        ({"inner_": np.ones(3)}, "must be of the class Inner"),
        ({"many_": [Inner(np.ones((1, 5)))] * 2}, "many_ at 0 has p=5"),
        ({"extra_": np.ones((4, 2))}, r"extra_ has the shape \(4, 2\), it must be \(3"),
        ({"new_": 1}, "Outer has no attribute 'new_'"),
        ({"many_": None}, "Outer lacks 'many_'"),
    ],
    ids=lambda case: str(case)[:30],
)
def test_objects_that_do_not_fit(changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(Misfit, match=problem):
        check(outer(**changes))


def test_heirs_have_to_have_all() -> None:
    with pytest.raises(Misfit, match="Heir lacks 'more_'"):
        check(outer(Heir))


def test_a_part_that_is_not_fitted_is_refused() -> None:
    class Holder(BaseEstimator):
        _declared: ClassVar[Declared] = {"part_": Part(Outer)}

    holder = Holder()
    holder.part_ = Outer()
    with pytest.raises(Misfit, match="part_ is not fitted"):
        check(holder)


# ------------------------------------------------------------------------- limits


def _depth(value: Any) -> int:
    parts = value.values() if isinstance(value, dict) else value
    if not isinstance(value, (dict, list)):
        return 0
    return 1 + max(map(_depth, parts), default=0)


def _random_value(rng: np.random.Generator, depth: int) -> Any:
    kind = rng.integers(5) if depth else rng.integers(2)
    if kind == 0:
        return int(rng.integers(100))
    if kind == 1:
        return "".join(rng.choice([*'a"\\[]{},:', "\n", "é"], rng.integers(6)))
    parts = [_random_value(rng, depth - 1) for _ in range(rng.integers(4))]
    return parts if kind < 4 else {f'k"{i}\\': part for i, part in enumerate(parts)}


@pytest.mark.parametrize("seed", range(50))
def test_the_outline_is_that_of_the_value(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Depth and objects as `json` finds them, whatever stands in texts."""
    value = _random_value(np.random.default_rng(seed), 6)
    text, depth = json.dumps(value).encode(), _depth(value)
    n_objects = str(value).count("{")  # an upper bound: texts have some, too
    limits = "kernlets.io.decode"
    monkeypatch.setattr(f"{limits}.MAX_DEPTH", depth)
    monkeypatch.setattr(f"{limits}.MAX_OBJECTS", n_objects)
    check_outline(text, MemoryBudget(len(text)))
    monkeypatch.setattr(f"{limits}.MAX_DEPTH", depth - 1)
    with pytest.raises(ValueError, match="nested"):
        check_outline(text, MemoryBudget(len(text)))


def test_too_deep_and_too_many() -> None:
    deep = b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1)
    check_outline(deep[1:-1], MemoryBudget(10**6))
    with pytest.raises(ValueError, match="nested more than"):
        check_outline(deep, MemoryBudget(10**6))
    with pytest.raises(ValueError, match="objects"):
        check_outline(b"[" + b"{}," * MAX_OBJECTS + b"{}]", MemoryBudget(10**9))
    with pytest.raises(ValueError, match="memory"):
        check_outline(b"[" + b"[]," * 10**6 + b"1]", MemoryBudget(3 * 10**6))


def test_memory_is_counted() -> None:
    budget = MemoryBudget(100)
    budget.take(FACTOR * 100)
    budget.take(FLOOR)
    with pytest.raises(ValueError, match="far more memory"):
        budget.take(1)


# --------------------------------------------------------------------------- text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("κ(x, y) = é", "κ(x, y) = é"),
        ("two\nlines \t here ", "two lines here"),
        ("\x1b[2J\x07", "\\x1b[2J\\x07"),
        ("a\u202eb\u200b", "a\\u202eb\\u200b"),
        ("\ud800", "\\ud800"),
        (3.5, "3.5"),
    ],
)
def test_text_that_may_be_shown(text: object, shown: str) -> None:
    assert printable(text) == shown
    assert printable(text).isprintable()
