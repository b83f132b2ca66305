"""``kernlets fit --checkpoint DIR --resume`` killed at random times, real processes."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from kernlets import load
from kernlets.cli import app
from kernlets.io.models import MODEL, pack

FIT = ["--atoms", "24", "--iterations", "400", "--threads", "1", "--quiet"]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Four classes of 150 samples."""
    rng = np.random.default_rng(0)
    y = np.arange(600) % 4
    X = rng.standard_normal((600, 30)) + 2 * np.eye(4, 30)[y]
    np.savez(tmp_path / "data.npz", X=X, y=y)
    return tmp_path / "data.npz"


def command(data: Path, model: Path, *extra: Any) -> list[str]:
    words = [sys.executable, "-m", "kernlets", "fit", data, "-m", model, *FIT, *extra]
    return [str(word) for word in words]


def content(path: Path) -> bytes:
    """A model file without the seconds, which no two runs share."""
    model = load(path)
    for learner in model[-1].learners_:
        learner.history_["seconds"] = []
    return pack(model, MODEL)


def states(folder: Path) -> dict[Path, int]:
    """All checkpoints and when they were written."""
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*.checkpoint")}


def kill_after(run: list[str], folder: Path, progress: bool, delay: float) -> None:
    """Start, wait for a new state where asked to, then for the delay, and kill."""
    before = states(folder)
    process = subprocess.Popen(run)
    while progress and states(folder) == before and process.poll() is None:
        time.sleep(0.01)
    time.sleep(delay)
    process.kill()
    assert process.wait() == -signal.SIGKILL, "the fit was over before it was killed"


def test_killed_fits_end_with_the_same_model(data: Path, tmp_path: Path) -> None:
    whole, resumed = tmp_path / "whole.model", tmp_path / "resumed.model"
    # in a process of its own, as the others: threads of BLAS show in the last digit
    subprocess.run(command(data, whole), check=True)
    folder, rng = tmp_path / "states", np.random.default_rng(8)
    run = command(data, resumed, "--checkpoint", folder, "--resume")
    kill_after(run, folder, progress=False, delay=float(rng.uniform(0.2, 1)))
    for delay in rng.uniform(0, 0.1, size=3):
        kill_after(run, folder, progress=True, delay=float(delay))
        assert not resumed.exists()
    assert len(states(folder)) > 0
    subprocess.run(run, check=True)
    assert content(resumed) == content(whole)


EACH_STEP = """
import os, signal, sys
import numpy as np
from pathlib import Path
from kernlets import KSVD, options
from kernlets.io import checkpoint

checkpoint.WRITING_SHARE = np.inf  # write every state
X = np.random.default_rng(0).standard_normal((200, 10))
root, left = Path(sys.argv[1]), [0]


def fit(folder):
    with options(checkpoint=folder, n_threads=1):
        return KSVD(12, 2, max_iter=5, random_state=0).fit(X).components_


def deadly(call):
    def wrapped(*args):
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return call(*args)

    return wrapped


whole = fit(root / "whole")
for count in range(1, 15):  # the k-th of: flush the file, rename it, flush the folder
    child = os.fork()
    if child == 0:
        left[0] = count
        os.fsync, os.replace = deadly(os.fsync), deadly(os.replace)
        fit(root / str(count))
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL, count
    assert np.array_equal(fit(root / str(count)), whole), count
    assert not list((root / str(count)).glob(".*.part")), count
print("fine")
"""


def test_killed_at_each_step_of_writing(tmp_path: Path) -> None:
    """One process after the other dies before each system call that matters."""
    run = [sys.executable, "-c", EACH_STEP, str(tmp_path)]
    done = subprocess.run(run, capture_output=True, text=True)
    assert done.stdout == "fine\n", done.stderr


def test_what_resume_refuses(data: Path, tmp_path: Path) -> None:
    def run(*words: Any) -> Any:
        fixed = ["fit", data, "-m", tmp_path / "m", "--atoms", 9, "--iterations", 2]
        return CliRunner().invoke(app, [str(word) for word in [*fixed, *words]])

    at = ["--checkpoint", tmp_path / "states"]
    assert run(*at).exit_code == 0
    assert run(*at, "--resume").exit_code == 0
    for words, message in {
        (*at,): "holds the checkpoints of a fit: add --resume",
        (*at, "--resume", "--sparsity", 3): "n_nonzero_coefs was None, is 3",
        (*at, "--resume", "--seed", 1): "random_state was 0, is 1",
        (*at, "--resume", "--kernel", "rbf"): "its samples had other values",
        ("--resume",): "needs --checkpoint DIR",
    }.items():
        result = run(*words)
        assert result.exit_code in (1, 2)
        assert message in result.stderr
