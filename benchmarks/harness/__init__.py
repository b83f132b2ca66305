"""What every measurement uses; each task has one module.

`timing` measures seconds and `memory` bytes; `machine` describes the machine; `skip`
marks runs that are impossible here; `records` writes and reads JSON lines; `tables`
serves terminals and Markdown; `html`, `charts` and `pictures` serve pages.
"""
