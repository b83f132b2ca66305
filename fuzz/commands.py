"""Cases of the third kind: command lines on generated files.

Every command runs in this process, inside a folder of its own. It ends with 0 and
sound output, with 1 and one line that says what to do, or with 2 for a command line
that cannot be understood; and it leaves all files alone that it was not told to write.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from typer.testing import CliRunner

import kernlets
from kernlets.cli import app
from kernlets.registry import table

from .draw import Draw
from .files import changed_bytes
from .oracle import Refusal, Wrong
from .tables import WIDTH, draw_file

UNFORESEEN = re.compile(r"^error: \w*(Error|Exception): |--debug shows")
ARITHMETIC = re.compile(r"encountered in|[Mm]ean of empty slice|ill-conditioned")
COMMANDS = {"fit": 6, "predict": 4, "score": 3, "transform": 3, "info": 1, "list": 1}
LEFT_OVER = (".part", ".tmp", "~")


def run(draw: Draw, note: Callable[[str], Any], folder: Path) -> None:
    """One command line."""
    with inside(folder):
        line = Line(draw, folder)
        words = line.words()
        note("kernlets " + " ".join(map(repr, words)))
        before = snapshot(folder)
        result = CliRunner().invoke(app, words)
        note(f"exit code {result.exit_code}: {result.output[-400:]!r}")
        check_exit(" ".join(words[:1]), result)
        check_files(words, line, before, snapshot(folder), result.exit_code)
        if result.exit_code:
            raise Refusal(result.stderr)


@contextmanager
def inside(folder: Path) -> Iterator[None]:
    """Work in a folder for a while."""
    home = os.getcwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(home)


class Line:
    """A command line that is drawn word by word."""

    def __init__(self, draw: Draw, folder: Path) -> None:
        self.draw, self.folder = draw, folder
        self.outputs: list[str] = []

    def words(self) -> list[str]:
        command = self.draw.weighted(COMMANDS)
        words = [command, *getattr(self, f"_{command}")()]
        return self._mistyped(words) if self.draw.chance(0.1) else words

    def _mistyped(self, words: list[str]) -> list[str]:
        """A word is left out, said twice, cut short, or another one."""
        place = self.draw.count(0, len(words) - 1)
        word = words[place]
        odd = [[], [word, word], [word[:-1]], ["--" + word], ["-x"], ["--help"], [""]]
        return words[:place] + self.draw.pick(odd) + words[place + 1 :]

    def _data(self, stem: str = "data") -> str:
        return draw_file(self.draw, self.folder, stem)

    def _model(self) -> str:
        """A sound model, a damaged one, something else, or nothing."""
        kind, name = "classifiers", "residual"
        if self.draw.chance(0.3):
            kind = self.draw.pick(["classifiers", "learners", "maps", "kernels"])
            name = self.draw.pick(sorted(table(kind)))
        data = model_file(kind, name)
        if self.draw.chance(0.05):
            data = changed_bytes(data, self.draw)
        (self.folder / "a.model").write_bytes(data)
        return "a.model" if self.draw.chance(0.95) else self._data("model")

    def _output(self, suffixes: list[str], data: str) -> str:
        """Where to write: mostly a new file."""
        new = f"out{self.draw.pick(suffixes)}"
        odd = [data, ".", "nowhere/out.model", "pipe", "old.txt", "out.xyz", ""]
        name = new if self.draw.chance(0.85) else self.draw.pick(odd)
        if name == "pipe":
            os.mkfifo(self.folder / "pipe")
        if name == "old.txt":
            (self.folder / name).write_text("precious")
        self.outputs.append(name)
        return name

    def _reading(self) -> list[str]:
        """Options of all commands that read data."""
        values = {
            "--label": ["label", "lable", "-1", "0", "99", "c1", ""],
            "--key": ["X", "A", "y", "zz"],
            "--memory": ["1GB", "100MB", "10KB", "0", "-3", "lots", "1e9"],
            "--threads": ["1", "2", "0", "-1", "two"],
            "--size": ["2x2", "1x1", "0x2", "2", "axb"],
        }
        flags = self.draw.some(["--header", "--no-header"], 0.05)
        return [*self._options(values, {"--label": 0.5}, 0.06), *flags]

    def _options(
        self, values: dict[str, list[str]], often: dict[str, float], share: float
    ) -> list[str]:
        """Some options, most of them with the first value, which is sound."""
        words = []
        for key, choices in values.items():
            if self.draw.chance(often.get(key, share)):
                sound = self.draw.chance(0.6)
                words += [key, choices[0] if sound else self.draw.pick(choices)]
        return words

    def _fit(self) -> list[str]:
        data = self._data()
        methods = ["lkdl", *table("learners"), *table("classifiers"), "ksdv", ""]
        odd_kernels = ["poly:3", "rbf:0.5", "rbf:x", "poly:2,2,2,2"]
        settings = [
            "init=kmeans",
            "max_iter=1",
            "tol",
            "a=b=c",
            "kernel__degree=3",
            "=",
        ]
        values = {
            "--method": methods,
            "--map": [*table("maps"), "none"],
            "--kernel": [*table("kernels"), *odd_kernels],
            "--landmarks": [*table("landmarks"), "best"],
            "--n-landmarks": ["3", "0.5", "0", "-2", "1000", "x"],
            "--n-components": ["2", "0.9", "0", "500"],
            "--atoms": ["2", "1", "0", "999"],
            "--sparsity": ["1", "2", "0", "50"],
            "--iterations": ["1", "2", "0"],
            "--seed": ["0", "1", "-1"],
            "--set": settings,
            "--test": [data, "absent.csv"],
            "--checkpoint": ["states", data],
            "--device": ["cpu", "cuda:99", "abacus"],
        }
        often = {"--method": 0.5, "--iterations": 0.6, "--atoms": 0.5}
        flags = self.draw.some(["--unsupervised", "--scale=none", "--quiet"], 0.2)
        flags += self.draw.some(["--resume"], 0.03) + self.draw.some(["--force"], 0.1)
        flags += ["-m", self._output([".model", ""], data)]
        return [data, *self._reading(), *self._options(values, often, 0.1), *flags]

    def _predict(self) -> list[str]:
        model, data = self._model(), self._data()
        tables = [".csv", ".npy", ".npz"]
        to = ["-o", self._output(tables, data)] if self.draw.chance(0.5) else []
        to += self.draw.some(["--proba", "--force"], 0.15)
        return [model, data, *to, *self._reading()]

    def _score(self) -> list[str]:
        return [self._model(), self._data(), *self._reading()]

    def _transform(self) -> list[str]:
        model, data = self._model(), self._data()
        tables = [".csv", ".npy", ".npz"]
        return [model, data, "-o", self._output(tables, data), *self._reading()]

    def _info(self) -> list[str]:
        return [self._model()]

    def _list(self) -> list[str]:
        return self.draw.pick([[], ["kernels"], ["kernel"], ["x"], ["maps", "maps"]])


@cache
def model_file(kind: str, name: str) -> bytes:
    """The file of a model for rows like those in `tables`, fitted once."""
    model = table(kind)[name]()
    if hasattr(model, "fit"):
        seeds = [key for key in model.get_params() if key.endswith("random_state")]
        model.set_params(**dict.fromkeys(seeds, 0))
        X = np.random.default_rng(0).random((24, WIDTH))
        model.fit(X, np.repeat(["a", "b"], 12))
    with TemporaryDirectory() as folder:
        kernlets.save(model, Path(folder) / "a.model")
        return (Path(folder) / "a.model").read_bytes()


# ---------------------------------------------------------------------- oracle


def check_exit(command: str, result: Any) -> None:
    """The code, and the line that says why."""
    call, errors = f"kernlets {command}", result.stderr
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    if result.exit_code not in (0, 1, 2):
        raise Wrong("exit code", call, f"{result.exit_code}: {errors}")
    if ARITHMETIC.search(errors):
        raise Wrong("warning about numbers", call, errors)
    if result.exit_code == 1:
        last = errors.strip().splitlines()[-1] if errors.strip() else ""
        if not last.startswith("error: ") or len(last.split()) < 4:
            raise Wrong("no message", call, errors or "nothing on standard error")
        if UNFORESEEN.search(last) or "Traceback" in errors:
            raise Wrong("error not foreseen", _place(call, last), last)


def _place(call: str, line: str) -> str:
    """The kind of error belongs to the group."""
    found = re.search(r"\w*Error", line)
    return f"{call}, {found.group()}" if found else call


def snapshot(folder: Path) -> dict[str, str]:
    """What is in a folder: a digest of each file, the kind of everything else."""
    found = {}
    for path in sorted(folder.rglob("*")):
        mode = path.lstat().st_mode
        content = path.read_bytes() if stat.S_ISREG(mode) else b"%o" % stat.S_IFMT(mode)
        found[str(path.relative_to(folder))] = hashlib.sha256(content).hexdigest()
    return found


def check_files(
    words: list[str],
    line: Line,
    before: dict[str, str],
    after: dict[str, str],
    code: int,
) -> None:
    """Nothing is lost that was to be kept, and nothing is left over."""
    call = " ".join(["kernlets", *words[:1]])
    replaced = line.outputs if code == 0 and "--force" in words else []
    for name, digest in before.items():
        if name not in replaced and after.get(name) != digest:
            raise Wrong("file overwritten", call, f"{name} is no longer what it was")
    new = sorted(set(after) - set(before))
    left = [name for name in new if name.endswith(LEFT_OVER) or "/." in f"/{name}"]
    if left:
        raise Wrong("left over", call, f"{left} remain")
    if code != 0 and any(name in new for name in line.outputs):
        raise Wrong("output of a failed command", call, f"{new}")
