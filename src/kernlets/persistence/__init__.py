"""Models in files: one safetensors file each, no pickle, no code run on loading.

`file.py` holds the file (header, checksum, version), `codec.py`, `values.py` and
`objects.py` what is in it, `atomic.py` how it gets to the disk.
"""

from .codec import PersistenceError
from .file import FORMAT_VERSION, ModelFileError, info, load, save

__all__ = [
    "FORMAT_VERSION",
    "ModelFileError",
    "PersistenceError",
    "info",
    "load",
    "save",
]
