"""Models in files: one safetensors file each, no pickle, no code run on loading.

`models.py` has `save` and `load` and the layout of a file, `values.py` turns a model
into JSON and arrays and back, `parameters.py` and `limits.py` say what is refused,
`atomic_write.py` gets a file to the disk, and `checkpoint.py` keeps the states of
unfinished fits. What objects consist of is declared in their classes, see `schema`.
"""

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
from .values import PersistenceError

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
