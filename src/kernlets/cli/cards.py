"""`kernlets info --card`: what one should know before one uses a model, in Markdown."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sklearn.base import is_classifier, is_outlier_detector

from ..backend.pipelines import last_step, steps_of
from ..backend.text import markdown_text
from ..outliers import SampledDictionaries
from .model_parts import atoms_text, fitted_learners, load_model
from .show import file_facts

USES = {
    "classifier": "Labels for rows like those that it was fitted to: the same columns, "
    "the same units, measured in the same way.",
    "detector": "Scores of how unusual rows are among rows like those that it was "
    "fitted to: the same columns, the same units.",
    "other": "Features or sparse codes of rows like those that it was fitted to: the "
    "same columns, the same units.",
}
LIMITS = {
    "classifier": [
        "Every row gets one of the labels above, also a row of another kind.",
        "Probabilities rank the classes; they are not calibrated frequencies.",
    ],
    "detector": [
        "Unusual is not wrong, and usual is not right: look at the rows.",
        "What is usual changes with time and place; fit again when it does.",
    ],
    "other": ["Rows that are unlike the training rows are represented badly."],
}
ALWAYS = [
    "Measure it on rows from where it is to be used before decisions rest on it.",
    "How it differs among groups of people was not examined.",
]


def show_card(path: Path) -> None:
    """Print the card of a model file."""
    print(card(path))


def card(path: Path) -> str:
    """The card of a model file, in Markdown."""
    found, model = file_facts(path), load_model(path)
    kind = _kind(model)
    parts = [
        f"# {markdown_text(path.stem)}",
        _section("Model", _table(_model_facts(model, found))),
        _section("Parameters", _table(dict(_parameters(model)))),
        _section("Data", _table(_data_facts(found))),
        _section("Accuracy", _accuracy(found["notes"])),
        _section("Intended use", USES[kind]),
        _section("Limits", "\n".join(f"* {line}" for line in LIMITS[kind] + ALWAYS)),
        _section("Versions", _table(_versions(found))),
    ]
    return "\n\n".join(parts)


def _kind(model: Any) -> str:
    if is_outlier_detector(model):
        return "detector"
    return "classifier" if is_classifier(model) else "other"


def _section(title: str, text: str) -> str:
    return f"## {title}\n\n{text}"


def _table(facts: dict[str, str]) -> str:
    lines = [
        f"| {markdown_text(name)} | {markdown_text(value)} |"
        for name, value in facts.items()
    ]
    return "\n".join(["| | |", "|---|---|", *lines])


def _model_facts(model: Any, found: dict[str, Any]) -> dict[str, str]:
    steps = ", then ".join(type(step).__name__ for step in steps_of(model))
    facts = {"steps": steps}
    if all(map(_has_atoms, fitted_learners(model))):
        facts["atoms"] = atoms_text(model)
    return facts | {"size": found["size"]}


def _has_atoms(part: Any) -> bool:
    return hasattr(part, "dictionary_") or isinstance(part, SampledDictionaries)


def _parameters(model: Any) -> Iterator[tuple[str, str]]:
    """Parameters of all steps; those that are models themselves speak for parts."""
    for step in steps_of(model):
        for name, value in step.get_params(deep=False).items():
            yield f"{type(step).__name__}.{name}", " ".join(repr(value).split())
    for part in fitted_learners(model)[:1]:
        if part is not last_step(model):
            yield "coder of each dictionary", repr(getattr(part, "coder_", None))


def _data_facts(found: dict[str, Any]) -> dict[str, str]:
    notes = found["notes"]
    facts = {name: notes[name] for name in ("data", "rows") if name in notes}
    return facts | {"features": found["features"], "classes": found["classes"]}


def _accuracy(notes: dict[str, str]) -> str:
    measured = {n: v for n, v in notes.items() if n not in ("data", "rows")}
    if measured:
        return _table(measured)
    return (
        "Not recorded: `kernlets fit` writes it into the file with `--holdout` or "
        "`--test`; `kernlets score` measures it."
    )


def _versions(found: dict[str, Any]) -> dict[str, str]:
    return {name: found[name] for name in ("written by", "format", "sha256")}
