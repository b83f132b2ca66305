"""Hot loops on plain arrays: a readable reference and its fast twins.

Nothing here knows a kernel, a dictionary or an estimator. The rest of the library
comes in through `kernlets.loops.ops`.
"""
