"""Models in files: one safetensors file each, no pickle, no code run on loading.

`file.py` says which files there are, `container.py` how one is laid out (header,
checksum, version), `codec.py`, `values.py` and `objects.py` what is in it, `limits.py`
and `parameters.py` what is refused, `io/atomic_write.py` how it gets to the disk. What
objects consist of is declared in their classes, see `fields`.
"""

from .codec import PersistenceError
from .file import (
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
