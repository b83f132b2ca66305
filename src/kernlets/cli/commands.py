"""The functions that do the work of the commands, loaded when the first one runs.

``kernlets --help`` and completion in a shell need none of it.
"""

from __future__ import annotations

from .apply import explain_rows, export_model, predict_rows, score_rows, transform_rows
from .fit import check_resume, fit_model, session
from .input_data import Source
from .model_info import show_card, show_info, show_tables
from .pictures import PictureJob, denoise_picture, inpaint_picture
from .recipe import Recipe

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
