"""The atoms that come with the library; `benchmarks/patch_atoms.py` learns them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ..numerics.scaling import unit_rows

PATH = Path(__file__).with_name("atoms.npy")
SIZE = 8  # pixels along a side of a patch


def bundled_atoms() -> np.ndarray:  # (256, 64)
    """Atoms learned on eight photographs, without mean, of unit norm."""
    atoms = np.load(PATH).astype(np.float64)
    return unit_rows(atoms - atoms.mean(axis=1, keepdims=True))
