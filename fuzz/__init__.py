"""Random attacks on the library: ``python -m fuzz --seed 0 --minutes 20``.

A case is made from one number and nothing else, so that ``python -m fuzz --case 12345``
shows again what a long run has found. `values`, `containers` and `labels` make input;
`estimators`, `relations`, `structures`, `files` and `commands` are the kinds of cases;
`oracle` says which outcomes are right; `pool` runs cases in processes that may crash or
hang; `report` groups what was found.
"""
