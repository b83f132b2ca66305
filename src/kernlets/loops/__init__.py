"""Hot loops on plain arrays: a readable reference and its fast twins.

Nothing here knows a kernel, a dictionary or an estimator. Each folder holds a few
operations, their specification in ``reference.py`` and their twins in ``numba.py``,
``torch.py`` and ``triton.py``. The rest of the library calls them through
`kernlets.loops.table`.
"""
