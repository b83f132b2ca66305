"""What the commands of the laboratory do: demo, bench, experiments.

Apart from `commands.py`, because it takes half a second to load.
"""

from __future__ import annotations

from ..lab.demo.run import run_demo
from .benches import show_bench
from .jobs import session
from .reproduce import Job, list_experiments
from .reproduce import report as write_report
from .reproduce import reproduce as run_experiments

__all__ = [
    "Job",
    "list_experiments",
    "run_demo",
    "run_experiments",
    "session",
    "show_bench",
    "write_report",
]
