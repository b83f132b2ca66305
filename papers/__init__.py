"""The papers' experiments, run again and compared with the published numbers.

A `Study` is a grid of runs, an `Exhibit` one table or figure of a paper (`spec.py`);
both are listed per paper in `exhibits/`. `runner.py` makes the runs and keeps one line
of JSON for each (`records.py`); `findings.py` compares; `figures.py`, `pages.py` and
`report.py` show. `published.csv` has the numbers that the papers print.

``python -m papers`` runs them. Nothing of this is in the installed package: it uses
`kernlets`, and is run in the folder of the repository.
"""
