"""`kernlets info --card`: what users of a model should know, in Markdown."""

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
    """Return the card of a model file in Markdown."""
    info, model = file_facts(path), load_model(path)
    kind = _kind(model)
    sections = [
        f"# {markdown_text(path.stem)}",
        _section("Model", _table(_model_facts(model, info))),
        _section("Parameters", _table(dict(_parameters(model)))),
        _section("Data", _table(_data_facts(info))),
        _section("Accuracy", _accuracy(info["notes"])),
        _section("Intended use", USES[kind]),
        _section("Limits", "\n".join(f"* {line}" for line in LIMITS[kind] + ALWAYS)),
        _section("Versions", _table(_versions(info))),
    ]
    return "\n\n".join(sections)


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


def _model_facts(model: Any, info: dict[str, Any]) -> dict[str, str]:
    steps = ", then ".join(type(step).__name__ for step in steps_of(model))
    facts = {"steps": steps}
    if all(map(_has_atoms, fitted_learners(model))):
        facts["atoms"] = atoms_text(model)
    return facts | {"size": info["size"]}


def _has_atoms(learner: Any) -> bool:
    return hasattr(learner, "dictionary_") or isinstance(learner, SampledDictionaries)


def _parameters(model: Any) -> Iterator[tuple[str, str]]:
    """Yield the parameters of all steps, and the coder of the learners."""
    for step in steps_of(model):
        for name, value in step.get_params(deep=False).items():
            yield f"{type(step).__name__}.{name}", " ".join(repr(value).split())
    for learner in fitted_learners(model)[:1]:
        if learner is not last_step(model):
            yield "coder of each dictionary", repr(getattr(learner, "coder_", None))


def _data_facts(info: dict[str, Any]) -> dict[str, str]:
    notes = info["notes"]
    facts = {name: notes[name] for name in ("data", "rows") if name in notes}
    return facts | {"features": info["features"], "classes": info["classes"]}


def _accuracy(notes: dict[str, str]) -> str:
    scores = {
        name: value for name, value in notes.items() if name not in ("data", "rows")
    }
    if scores:
        return _table(scores)
    return (
        "Not recorded: `kernlets fit` writes it into the file with `--holdout` or "
        "`--test`; `kernlets score` measures it."
    )


def _versions(info: dict[str, Any]) -> dict[str, str]:
    return {name: info[name] for name in ("written by", "format", "sha256")}
