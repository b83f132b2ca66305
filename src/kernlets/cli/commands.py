"""What the commands on data and models do, loaded when the first of them runs.

``kernlets --help`` and completion in a shell need none of it.
"""

from __future__ import annotations

from .apply import explain_rows, predict_rows, score_rows, transform_rows
from .build import Recipe
from .cards import show_card
from .exports import export_model
from .jobs import Source, check_resume, fit_model, session
from .pictures import PictureJob, denoise_picture, inpaint_picture
from .show import show_info, show_tables

__all__ = [
    "PictureJob",
    "Recipe",
    "Source",
    "check_resume",
    "denoise_picture",
    "explain_rows",
    "export_model",
    "fit_model",
    "inpaint_picture",
    "predict_rows",
    "score_rows",
    "session",
    "show_card",
    "show_info",
    "show_tables",
    "transform_rows",
]
