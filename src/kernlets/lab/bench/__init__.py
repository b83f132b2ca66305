"""The bench that every measurement uses; each task has one module.

`timing` takes seconds, `memory` bytes; `machine` says what ran; `skip` is the way to
say that a run is impossible here; `records` writes and reads JSON lines; `tables`
serves terminals and Markdown; `html`, `charts` and `pictures` serve pages.
"""
