"""What a user of the wheel does first: fit, predict and list, on a small table.

Run by `make dist` with the Python of an environment that holds the wheel alone.
"""

from __future__ import annotations

import csv
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from sklearn.datasets import load_iris

COMMAND = Path(sys.executable).with_name("kernlets")


def run(folder: str, *arguments: str) -> str:
    """What the installed command prints."""
    done = subprocess.run(
        [str(COMMAND), *arguments],
        cwd=folder,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return done.stdout


def main() -> None:
    X, y = load_iris(return_X_y=True)
    with TemporaryDirectory() as folder:
        with open(Path(folder, "iris.csv"), "w", newline="") as file:
            table = csv.writer(file)
            table.writerow(["a", "b", "c", "d", "class"])
            table.writerows([*row, label] for row, label in zip(X, y, strict=True))
        run(folder, "fit", "iris.csv", "-m", "iris.kernlets", "--label", "class")
        labels = run(folder, "predict", "iris.kernlets", "iris.csv", "--label", "class")
        assert len(labels.split()) >= len(y), labels
        assert " rbf " in run(folder, "list", "kernels")
    for name in ("papers", "benchmarks", "demo"):
        assert find_spec(name) is None, f"the wheel brings {name}"


if __name__ == "__main__":
    sys.path.pop(0)  # the folder of this file
    main()
