"""Files of models, of unfinished fits, and of rows.

A model is one file in the format safetensors: no pickle, and no code is run on loading.
`models.py` has `save` and `load` and the layout of a file. `encode.py` turns a model
into JSON and arrays, and `decode.py` does the reverse. Classes declare their fitted
attributes, see `schema`.

`checkpoint.py` stores the states of unfinished fits, and `atomic_write.py` writes any
file completely or not at all.

`tables.py` reads and opens files of rows in many formats, and writes them.
"""

from .encode import PersistenceError
from .models import (
    FORMAT_VERSION,
    CheckpointError,
    ModelFileError,
    info,
    is_model,
    load,
    load_state,
    save,
    save_state,
)

__all__ = [
    "FORMAT_VERSION",
    "CheckpointError",
    "ModelFileError",
    "PersistenceError",
    "info",
    "is_model",
    "load",
    "load_state",
    "save",
    "save_state",
]
