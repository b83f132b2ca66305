"""Loads models, and prints what is in them: facts, tables, cards in Markdown."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.table import Table
from sklearn.base import is_classifier, is_outlier_detector

from ..base.names import guess
from ..base.pipelines import last_step, steps_of
from ..io import ModelFileError, info, is_model, load
from ..io.data_file import list_names
from ..numerics.text import markdown_text, printable, size_text
from ..registry import TABLES, public_objects, summary, table


@contextmanager
def reading_model(path: Path) -> Iterator[None]:
    """Explain errors of reading a model: a missing file, or one that is no model."""
    if not path.exists():
        raise ValueError(
            f"{path}: there is no such model: check the path, or write one with "
            f"`kernlets fit DATA -m {path}`"
        )
    if path.is_dir():
        raise ValueError(f"{path}: is a folder: give MODEL, a file, before DATA")
    try:
        yield
    except ModelFileError as error:
        if is_model(path):  # a damaged one says so itself
            raise
        raise ValueError(
            f"{path}: is not a model file: give MODEL before DATA, or write one with "
            "`kernlets fit`"
        ) from error


def load_model(path: Path) -> Any:
    """Load a fitted model from a file."""
    with reading_model(path):
        model = load(path)
    if not hasattr(model, "n_features_in_"):
        raise ValueError(f"{path}: holds {type(model).__name__}, not a fitted model")
    return model


def fitted_learners(model: Any) -> list[Any]:
    """Return the fitted learners of a model: one, or one for each class."""
    final_step = last_step(model)
    if is_outlier_detector(final_step):
        final_step = last_step(final_step.learner_)
    return getattr(final_step, "learners_", [final_step])


def atoms_text(model: Any) -> str:
    """Say how many atoms the dictionaries of a model have."""
    learners = fitted_learners(model)
    if hasattr(learners[0], "patches_"):
        return f"{len(learners[0].patches_.components_)} of patches"
    if not hasattr(learners[0], "dictionary_") and not hasattr(learners[0], "atoms_"):
        return "none"
    if not hasattr(learners[0], "dictionary_"):  # `SampledDictionaries`
        return "{1} in each of {0} dictionaries".format(*learners[0].atoms_.shape)
    counts = [learner.dictionary_.n_atoms for learner in learners]
    atoms = "-".join(map(str, sorted({min(counts), max(counts)})))
    return f"{atoms} for each class" if len(counts) > 1 else atoms


def feature_names(model: Any) -> tuple[str, ...] | None:
    """Return the names of the columns that a model was fitted to, if they had any."""
    names = getattr(model, "feature_names_in_", None)
    return None if names is None else tuple(map(str, names))


IMAGES = "images"  # the fact, and the note of a file, that holds the shape of images


def image_shape(path: Path) -> tuple[int, ...] | None:
    """Return the shape of the images that `fit` read, as it noted it in the file."""
    size = info(path)["notes"].get(IMAGES, "").removesuffix(" pixels").split("x")
    is_shape = len(size) in (2, 3) and all(side.isdecimal() for side in size)
    return tuple(map(int, size)) if is_shape else None


MAX_CLASSES = 10  # classes named by `info` before it only counts


def show_facts(facts: dict[str, str]) -> None:
    """Print names and values, one pair on each line."""
    printable_facts = {printable(name): value for name, value in facts.items()}
    name_width = max(map(len, printable_facts), default=0)
    for name, value in printable_facts.items():
        typer.echo(f"{name:<{name_width}}  {printable(value)}")


def file_facts(path: Path) -> dict[str, Any]:
    """Return the content of a model file in words, with its `arrays` and `notes`."""
    with reading_model(path):
        content = info(path)
    names, labels, classes = content["feature_names"], content["classes"], "none"
    matched = "by position" if names is None else f"by name: {list_names(names)}"
    if labels is not None:
        more = ", ..." if len(labels) > MAX_CLASSES else ""
        classes = f"{len(labels)}: {', '.join(map(str, labels[:MAX_CLASSES]))}{more}"
    return {
        "model": content["model"],
        "features": f"{content['n_features']}, {matched}",
        "classes": classes,
        "written by": f"kernlets {content['library_version']}, "
        f"scikit-learn {content['sklearn_version']}",
        "format": f"{content['format']}, version {content['format_version']}",
        "size": size_text(content["bytes"]),
        "sha256": content["checksum"],
        "arrays": content["arrays"],
        "notes": content["notes"],
    }


def show_info(path: Path) -> None:
    """Print the content of a model file."""
    facts = file_facts(path)
    arrays, notes = facts.pop("arrays"), facts.pop("notes")
    show_facts(facts | notes | {"arrays": str(len(arrays))})
    for name, shape in arrays.items():
        typer.echo(f"  {shape:<20}  {printable(name)}")


def show_tables(kind: str | None) -> None:
    """Print all registered classes, one line each, or in full those of one kind."""
    kinds = list(TABLES) if kind is None else [kind]
    if kinds[0] not in TABLES:
        hint = guess(kinds[0], TABLES)
        raise typer.BadParameter(
            f"{hint}choose from {', '.join(TABLES)}", param_hint="KIND"
        )
    if kind is not None:
        grid = Table.grid(padding=(0, 2))
        for name, entry in table(kind).items():
            grid.add_row(f"  {name}", summary(entry))
        Console(highlight=False).print(f"[bold]{kind}[/bold]", grid)
        return
    entries = {table_name: table(table_name) for table_name in kinds}
    registered = {id(entry) for group in entries.values() for entry in group.values()}
    entries["classes for Python"] = {
        name.rpartition(".")[2]: entry
        for name, entry in public_objects().items()
        if hasattr(entry, "fit") and id(entry) not in registered
    }
    width = shutil.get_terminal_size().columns
    for title, group in entries.items():
        typer.secho(title, bold=True)
        name_width = max(map(len, group))
        for name, entry in group.items():
            text = first_part(summary(entry), width - name_width - 4)
            typer.echo(f"  {name:<{name_width}}  {text}")
    typer.echo("\nkernlets list KIND, e.g. kernlets list kernels, has whole sentences.")


def first_part(sentence: str, width: int) -> str:
    """Return a sentence, or as much of it as fits on a line, up to a mark or a word.

    >>> first_part("K-SVD: a pursuit finds sparse codes, fits find atoms.", 40)
    'K-SVD: a pursuit finds sparse codes'
    >>> first_part("Least squares for all atoms at once", 20)
    'Least squares for ...'
    """
    if len(sentence) <= width:
        return sentence
    for marks in (";:", ","):
        for end in range(min(width, len(sentence) - 1), width // 2, -1):
            part = sentence[:end]
            if sentence[end] in marks and part.count("(") == part.count(")"):
                return part
    return sentence[: width - 3].rpartition(" ")[0].rstrip(",;:") + " ..."


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
        "Probabilities are those of rows like the training rows, and of no others.",
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
NOT_RECORDED = (
    "Not recorded: `kernlets fit` writes it into the file with `--holdout` or "
    "`--test`; `kernlets score` measures it."
)


def show_card(path: Path) -> None:
    """Print the card of a model file in Markdown."""
    info, model = file_facts(path), load_model(path)
    facts = {"steps": ", then ".join(type(step).__name__ for step in steps_of(model))}
    if all(
        hasattr(learner, "dictionary_") or hasattr(learner, "atoms_")
        for learner in fitted_learners(model)
    ):
        facts["atoms"] = atoms_text(model)
    facts["size"] = info["size"]
    kind = "classifier" if is_classifier(model) else "other"
    if is_outlier_detector(model):
        kind = "detector"
    notes = info["notes"]
    names = ("data", "rows", "label", IMAGES, "text", "left out")
    data = {name: notes.pop(name) for name in names if name in notes}
    data |= {"features": info["features"], "classes": info["classes"]}
    accuracy = _table(notes) if notes else NOT_RECORDED
    versions = {name: info[name] for name in ("written by", "format", "sha256")}
    sections = [
        f"# {markdown_text(path.stem)}",
        _section("Model", _table(facts)),
        _section("Parameters", _table(dict(_parameters(model)))),
        _section("Data", _table(data)),
        _section("Accuracy", accuracy),
        _section("Intended use", USES[kind]),
        _section("Limits", "\n".join(f"* {line}" for line in LIMITS[kind] + ALWAYS)),
        _section("Versions", _table(versions)),
    ]
    print("\n\n".join(sections))


def _section(title: str, text: str) -> str:
    return f"## {title}\n\n{text}"


def _table(facts: dict[str, str]) -> str:
    lines = [
        f"| {markdown_text(name)} | {markdown_text(value)} |"
        for name, value in facts.items()
    ]
    return "\n".join(["| | |", "|---|---|", *lines])


def _parameters(model: Any) -> Iterator[tuple[str, str]]:
    """Yield the parameters of all steps, and the coder of the learners."""
    for step in steps_of(model):
        for name, value in step.get_params(deep=False).items():
            yield f"{type(step).__name__}.{name}", " ".join(repr(value).split())
    for learner in fitted_learners(model)[:1]:
        if learner is not last_step(model):
            yield "coder of each dictionary", repr(getattr(learner, "coder_", None))
