"""The site: `make docs` builds it from these pages, the docstrings and the examples.

Nothing is fetched while it is built, and nothing when it is read: formulas are MathML,
fonts are the reader's own. `make docs ONLINE=1` also links to the sites of other
libraries, for which their inventories are fetched.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import kernlets

sys.path.insert(0, str(Path(__file__).parent / "_site"))
sys.path.insert(0, str(Path(__file__).parents[1]))  # the page to draw on is in `demo`

from gallery_order import SECTIONS

project = "kernlets"
author = "kernlets developers"
version = release = kernlets.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.intersphinx",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "drawing",
    "links",
    "mathml",
    "reference",
]
# the site's own code, and records, beside which benchmarks write their tables
exclude_patterns = ["_site", "benchmarks/*"]

# ---------------------------------------------------------------- Markdown

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4  # those that GitHub makes, so that links work there, too

# ---------------------------------------------------------------- docstrings

default_role = "py:obj"
autodoc_typehints = "none"  # numpydoc sections say what the types are
numpydoc_show_class_members = False  # `reference` lists the library's own
python_use_unqualified_type_names = True

# ---------------------------------------------------------------- other libraries

ELSEWHERE = {
    "python": ("https://docs.python.org/3", None),
    "numpy": ("https://numpy.org/doc/stable", None),
    "scipy": ("https://docs.scipy.org/doc/scipy", None),
    "sklearn": ("https://scikit-learn.org/stable", None),
}
intersphinx_mapping = ELSEWHERE if os.environ.get("ONLINE") else {}

# ---------------------------------------------------------------- gallery

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "backreferences_dir": "api/used",
    "doc_module": ("kernlets",),
    "reference_url": {"kernlets": None},
    # all are run but the one that starts processes, which import the main module
    "filename_pattern": r"/(?!cluster)\w+\.py$",
    "subsection_order": [f"../examples/{name}" for name in SECTIONS],
    "within_subsection_order": "gallery_order.EasyFirst",
    "capture_repr": (),
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,  # its table loads a script from elsewhere
}

# ---------------------------------------------------------------- pages

# The address of the repository stands in pyproject.toml alone.
PROJECT = (Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8")
address = re.search(r'^Repository = "(.*)"$', PROJECT, re.MULTILINE)[1]
icon = {"name": "Repository", "url": address, "html": "Repository", "class": ""}
repository = [] if "example.org" in address else [icon]

html_theme = "furo"
html_math_renderer = "mathml"
html_title = "kernlets"
html_logo = "images/logo.svg"
html_theme_options = {"sidebar_hide_name": True, "footer_icons": repository}
html_extra_path = ["_site/root"]  # llms.txt
copyright = "kernlets developers, BSD-3 licence"
html_static_path = ["_site/static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
