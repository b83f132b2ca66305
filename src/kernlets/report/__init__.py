"""The demonstration (`demo.py`) and the pages that show results, self-contained HTML.

Nothing is imported here: `measure.py` must load in a fresh process without the rest.
"""
