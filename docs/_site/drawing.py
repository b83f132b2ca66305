"""The page to draw on: digits, recognised in the browser, beside the other pages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sklearn.pipeline import make_pipeline
from sphinx.application import Sphinx

from kernlets import (
    KSVD,
    NystroemMap,
    ResidualClassifier,
    UnitNorm,
    datasets,
    to_page,
)


def digits_model() -> Any:
    """A dictionary for each digit, in the space of a polynomial kernel."""
    digits = datasets.load("digits")
    virtual = NystroemMap(
        "poly:2,coef0=1", n_landmarks=200, n_components=100, random_state=0
    )
    learner = KSVD(30, n_nonzero_coefs=5, random_state=0)
    model = make_pipeline(UnitNorm(), virtual, ResidualClassifier(learner))
    return model.fit(digits.X_train, digits.y_train)


def write_page(app: Sphinx, error: Exception | None) -> None:
    if error is None and app.builder.format == "html":
        digits = datasets.load("digits")
        page = Path(app.outdir) / "draw.html"
        to_page(digits_model(), page, digits.X_test, digits.y_test)


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("build-finished", write_page)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
