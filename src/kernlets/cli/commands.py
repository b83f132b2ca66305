"""What the commands of `app.py` do, loaded when the first of them runs.

``kernlets --help`` and completion in a shell need none of it.
"""

from __future__ import annotations

from ..lab.demo.run import run_demo
from .apply import explain_rows, predict_rows, score_rows, transform_rows
from .benches import show_bench
from .build import Recipe
from .jobs import Source, check_resume, fit_model, session
from .reproduce import Job, list_experiments
from .reproduce import report as write_report
from .reproduce import reproduce as run_experiments
from .show import show_info, show_tables

__all__ = [
    "Job",
    "Recipe",
    "Source",
    "check_resume",
    "explain_rows",
    "fit_model",
    "list_experiments",
    "predict_rows",
    "run_demo",
    "run_experiments",
    "score_rows",
    "session",
    "show_bench",
    "show_info",
    "show_tables",
    "transform_rows",
    "write_report",
]
