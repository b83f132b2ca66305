"""The walk of one sample through `fit` and `predict`, as docs/development.md tells it.

A hop is a call by which a module hands the sample to another one: in an array with its
row, or with its features. The module of a method is that of the object's class. The
back end answers questions about arrays and cuts them into blocks; it is walked through
without a hop, except for validation and compiled loops.
"""

from __future__ import annotations

import re
import sys
from dataclasses import fields, is_dataclass
from graphlib import TopologicalSorter
from pathlib import Path

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

from kernlets import KSVD, NystroemMap, ResidualClassifier, options

PAGE = Path(__file__).parents[2] / "docs" / "development.md"
GROUND = ("backend.", "config", "core", "fields")
COUNTED = ("backend.validation", "backend.ops")
LIMIT = 30
ROW = re.compile(r"^\| `([\w.]+)` \| `([\w.]+)` \| ", re.MULTILINE)


class Walk:
    """Listens to calls, and notes those that hand the sample on."""

    def __init__(self, *sample):
        self.sample, self.hops, self._path = sample, [], ["Pipeline"]

    def __call__(self, frame, event, _):
        module = self._module(frame)
        if module is None:
            return
        if event == "return":
            self._path.pop()
        elif event == "call":
            ground = module.startswith(GROUND) and module not in COUNTED
            here = self._path[-1] if ground else module
            if here != self._path[-1] and self._is_given(frame):
                self.hops.append((self._path[-1], here))
            self._path.append(here)

    def _module(self, frame):
        name = frame.f_globals.get("__name__", "")
        owner = type(frame.f_locals.get("self")).__module__
        if owner.startswith("kernlets.") and not owner[9:].startswith(GROUND):
            name = owner
        return name[9:] if name.startswith("kernlets.") else None

    def _is_given(self, frame):
        code = frame.f_code
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        return any(self._holds(frame.f_locals.get(n)) for n in names if n != "self")

    def _holds(self, value):
        if is_dataclass(value) and not isinstance(value, type):
            return any(self._holds(getattr(value, f.name, None)) for f in fields(value))
        if not isinstance(value, np.ndarray) or value.ndim != 2:
            return False
        known = (row for row in self.sample if len(row) == value.shape[1])
        return any(np.isclose(value, row, rtol=1e-9).all(1).any() for row in known)


def walked(sample, method, *args):
    walk = Walk(*sample)
    sys.setprofile(walk)
    try:
        method(*args)
    finally:
        sys.setprofile(None)
    return list(dict.fromkeys(walk.hops))


@pytest.fixture(scope="module")
def hops():
    rng = np.random.default_rng(0)
    X, y = rng.random((90, 13)), np.arange(90) % 3
    model = make_pipeline(
        NystroemMap("poly:2", n_landmarks=20, random_state=0),
        ResidualClassifier(KSVD(5, n_nonzero_coefs=2, max_iter=2, random_state=0)),
    )
    with options(n_threads=1):
        features = model.fit(X, y)[0].transform(X)
        chosen = model[0].landmark_indices_
        i = next(i for i in range(90) if i not in chosen)
        sample = X[i], features[i]
        fit = walked(sample, model.fit, X, y)
        return {"fit": fit, "predict": walked(sample, model.predict, X[i : i + 1])}


def told():
    """The tables of the page."""
    text = PAGE.read_text().partition("## The walk of one sample")[2]
    fit, _, predict = text.partition("### `predict`")
    return {"fit": ROW.findall(fit), "predict": ROW.findall(predict)}


@pytest.mark.parametrize("method", ["fit", "predict"])
def test_the_page_tells_the_walk(hops, method):
    assert told()[method] == hops[method], "\n".join(
        f"| `{here}` | `{there}` | ... |" for here, there in hops[method]
    )


@pytest.mark.parametrize("method", ["fit", "predict"])
def test_the_walk_is_short_and_does_not_turn_back(hops, method):
    assert 10 <= len(hops[method]) <= LIMIT
    graph = {}
    for here, there in hops[method]:
        graph.setdefault(here, set()).add(there)
    TopologicalSorter(graph).prepare()  # raises CycleError, which names the modules
