"""``python -m demo.draw``: digits that one draws are recognised in the browser.

`to_page` writes a classifier of pictures as a page to draw on, which needs no server.
The page runs the graph that an ONNX file would hold: `run.js` knows its operations,
`draw.js` is the page, `draw.html` its frame.
"""

from __future__ import annotations

import argparse
import json
from base64 import b64encode
from html import escape
from math import isqrt
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer
from sklearn.utils.validation import check_is_fitted

from kernlets import KSVD, datasets
from kernlets.base.pipelines import last_step, steps_of
from kernlets.classifiers import ResidualClassifier
from kernlets.contracts import Dictionary
from kernlets.dictionaries import ExplicitDictionary, KernelDictionary
from kernlets.export.graph import OperationGraph, refusal
from kernlets.export.onnx import before_last, class_scores, precision
from kernlets.io.atomic_write import atomic_write
from kernlets.maps import NystroemMap, UnitNorm
from kernlets.numerics.arrays import to_numpy

EXAMPLES = 10  # pictures to start from
DIGITS = 3  # of the pixels of pictures
RESIDUALS = (
    "The smallest residual wins.",
    "Squared residuals of the classes",
    "Atoms that the winner uses, with their weights",
)
SCORES = (
    "The largest score wins.",
    "Scores of the classes",
    "Atoms that are used, with their weights",
)


def to_page(
    model: Any,
    path: str | Path,
    examples: Any = None,
    labels: Any = None,
    *,
    title: str = "Draw a digit",
) -> None:
    """Write a page to draw on, on which a classifier of pictures runs by itself.

    It shows the residuals or scores of the classes and the atoms that are used, while
    one draws or erases. The page is one file with the model in it; it loads nothing.

    Parameters
    ----------
    model : estimator
        A fitted `ResidualClassifier`, `SRCClassifier`, `LCKSVDClassifier` or
        `DKSVDClassifier`, or a Pipeline of scalers, perhaps a `NystroemMap`, and one
        of these. Rows are square pictures.
    path : path
        The file to write.
    examples : array (n, p), optional
        Pictures to start from; the first ones are taken. Their largest entry is the
        ink. They may be left out if the model scales rows to unit norm.
    labels : array (n,), optional
        Their labels: one picture of each class is taken then.
    title : str
        The heading of the page.
    """
    check_is_fitted(model)
    side, graph = _side(model.n_features_in_), _graph(model)
    last = last_step(model)
    by_residuals = hasattr(last, "residuals")
    rule, scores, atoms = RESIDUALS if by_residuals else SCORES
    shown = _some(examples, labels)
    ink = _ink(model, shown)
    data = {
        "side": side,
        "ink": ink,
        "labels": [str(label) for label in model.classes_],
        "residuals": by_residuals,
        "together": not isinstance(last, ResidualClassifier),
        "atomClasses": _atom_classes(last).tolist(),
        "atoms": _rounded(_pictures(model)).ravel().tolist(),
        "examples": _rounded(shown / ink).tolist(),
        "graph": _packed(graph),
    }
    text = Template(_own_file("draw.html")).substitute(
        title=escape(title),
        rule=rule,
        scores=scores,
        atoms=atoms,
        model=json.dumps(data, separators=(",", ":")).replace("<", "\\u003c"),
        script=_own_file("run.js") + _own_file("draw.js"),
    )
    with atomic_write(path) as file:
        file.write(text.encode())


def _own_file(name: str) -> str:
    return Path(__file__).with_name(name).read_text("utf-8")


def _rounded(values: np.ndarray) -> np.ndarray:
    return np.round(values.astype(np.float64), DIGITS)


# --------------------------------------------------------------------- pictures


def _side(n_features: int) -> int:
    side = isqrt(n_features)
    if side**2 != n_features:
        raise ValueError(
            f"rows have {n_features} features, which are not the pixels of a square "
            "picture: fit to square pictures, e.g. of 8 x 8 or 28 x 28 pixels"
        )
    return side


def _some(examples: Any, labels: Any) -> np.ndarray:  # (n, p)
    """The first pictures, or the first of each class."""
    if examples is None:
        return np.zeros((0, 1))
    rows = to_numpy(np.asarray(examples))
    if labels is None:
        return rows[:EXAMPLES]
    return rows[np.unique(np.asarray(labels), return_index=True)[1][:EXAMPLES]]


def _ink(model: Any, shown: np.ndarray) -> float:
    """The entry of a pixel that is full of ink."""
    if len(shown) and shown.max() > 0:
        return float(shown.max())
    if not isinstance(steps_of(model)[0], (UnitNorm, Normalizer)):
        raise ValueError(
            "examples are needed to know how large the entries of a picture are: pass "
            "some rows, or begin the pipeline with UnitNorm"
        )
    return 1.0


def _atom_classes(last: Any) -> np.ndarray:  # (m,)
    if isinstance(last, ResidualClassifier):
        sizes = [learner.dictionary_.n_atoms for learner in last.learners_]
        return np.repeat(np.arange(len(sizes)), sizes)
    return np.asarray(last.atom_classes_)


def _pictures(model: Any) -> np.ndarray:  # (m, p)
    """The atoms as pictures; those of feature space by pre-images."""
    last, before = last_step(model), steps_of(model)[:-1]
    virtual = before[-1] if before and isinstance(before[-1], NystroemMap) else None
    parts = getattr(last, "learners_", [last])
    found = np.concatenate([_seen(part.dictionary_, virtual) for part in parts])
    if found.shape[1] != model.n_features_in_:
        raise refusal("a map without pictures of its atoms", "use NystroemMap or none")
    sign = np.where(found.sum(axis=1, keepdims=True) < 0, -1, 1)  # of atoms is free
    most = np.abs(found).max(axis=1, keepdims=True)
    return sign * found / np.where(most > 0, most, 1)


def _seen(dictionary: Dictionary, virtual: NystroemMap | None) -> np.ndarray:  # (m, p)
    if isinstance(dictionary, ExplicitDictionary):
        if virtual is None:
            return to_numpy(dictionary.atoms)
        dictionary = KernelDictionary.behind(virtual, dictionary)
    elif virtual is not None or not isinstance(dictionary, KernelDictionary):
        raise refusal("a map without pictures of its atoms", "use NystroemMap or none")
    coefs = to_numpy(dictionary.coefs)
    if np.count_nonzero(coefs) == len(coefs):  # atoms are samples
        return to_numpy(dictionary.anchors)[np.abs(coefs).argmax(axis=1)]
    return to_numpy(dictionary.preimages().points)


# ------------------------------------------------------------------------ graphs


def _graph(model: Any) -> OperationGraph:
    """Scores and codes of rows."""
    graph = OperationGraph(precision(model))
    X = before_last(model, graph.input("X", model.n_features_in_))
    for name, value in class_scores(last_step(model), X)._asdict().items():
        graph.output(name, value)
    graph.prune()
    return graph


def _packed(graph: OperationGraph) -> dict[str, Any]:
    """A graph as JSON, its tables as text."""
    return {
        "input": "X",
        "outputs": list(graph.outputs),
        "nodes": [[n.op, n.inputs, n.output, n.settings] for n in graph.nodes],
        "constants": {
            name: {
                "shape": array.shape,
                "type": str(array.dtype),
                "data": b64encode(array.tobytes()).decode(),
            }
            for name, array in graph.constants.items()
        },
    }


# ------------------------------------------------------------------------ digits


def write_digits_page(path: str | Path) -> None:
    """Write the page for digits, each with a dictionary in a polynomial space."""
    digits = datasets.load("digits")
    model = make_pipeline(
        UnitNorm(),
        NystroemMap(
            "poly:2,coef0=1", n_landmarks=200, n_components=100, random_state=0
        ),
        ResidualClassifier(KSVD(30, n_nonzero_coefs=5, random_state=0)),
    )
    model.fit(digits.X_train, digits.y_train)
    to_page(model, path, digits.X_test, digits.y_test)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m demo.draw", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("draw.html"), help="the page")
    asked = parser.parse_args(arguments)
    write_digits_page(asked.out)
    print(f"wrote {asked.out}")


if __name__ == "__main__":
    main()
