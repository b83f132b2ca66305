"""Measured runs of the library: seconds (`bench.py`), and the papers' experiments.

A `Study` is a grid of runs, an `Exhibit` one table or figure of a paper with its
published numbers (`spec.py`); both are listed per paper in `papers/`. `runner.py` runs
them and keeps one line of JSON per run (`records.py`); `findings.py` compares, and
`figures.py`, `pages.py` and `html.py` show. ``python -m kernlets.experiments`` runs
them where neither a terminal library nor Matplotlib is at hand.
"""
