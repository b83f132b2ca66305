"""What all tests share: random numbers, the data folder, array libraries, and how a
run can be varied (threads, order).
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernlets import options

SEED = 20170405


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--threads", type=int, help="threads of the library")
    parser.addoption("--shuffle", type=int, metavar="SEED", help="order of the tests")


def pytest_configure(config: pytest.Config) -> None:
    if (threads := config.getoption("--threads")) is not None:
        options.set(n_threads=threads)


def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """With ``--shuffle`` files come in another order, and tests within each file.

    Files stay together, so that what a file prepares is prepared once.
    """
    if (seed := config.getoption("--shuffle")) is None:
        return
    order = random.Random(seed)
    files = {item.path: order.random() for item in items}
    keys = {item.nodeid: order.random() for item in items}
    items.sort(key=lambda item: (files[item.path], keys[item.nodeid]))


@dataclass(frozen=True)
class ArrayLibrary:
    """One array library as tests see it: made from and turned into NumPy arrays."""

    name: str
    asarray: Callable[[Any], Any]
    to_numpy: Callable[[Any], np.ndarray]


@pytest.fixture
def rng() -> np.random.Generator:
    """A fresh generator with a fixed seed."""
    return np.random.default_rng(SEED)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of the papers' data sets; tests that need it skip without it.

    With KERNLETS_REQUIRE_DATA=1 they fail instead, so that no run that should have the
    data passes by skipping.
    """
    folder = os.environ.get("KERNLETS_DATA", "")
    if folder and any(Path(folder).glob("*.npz")):
        return Path(folder)
    reason = f"no data sets in KERNLETS_DATA={folder!r}"
    if os.environ.get("KERNLETS_REQUIRE_DATA") == "1":
        pytest.fail(f"{reason}, but KERNLETS_REQUIRE_DATA=1")
    pytest.skip(reason)


@pytest.fixture(params=["numpy", "torch", "cuda"])
def xp(request: pytest.FixtureRequest) -> ArrayLibrary:
    """Each array library that is installed, torch also on a GPU where there is one."""
    if request.param == "numpy":
        return ArrayLibrary("numpy", np.asarray, np.asarray)
    torch = pytest.importorskip("torch", reason="torch is not installed")
    if request.param == "cuda" and not torch.cuda.is_available():
        pytest.skip("no GPU")
    device = "cuda" if request.param == "cuda" else "cpu"

    def asarray(values: Any) -> Any:
        return torch.asarray(values, device=device)

    return ArrayLibrary(request.param, asarray, lambda a: a.detach().cpu().numpy())
