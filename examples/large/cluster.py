"""
A cluster: rows that never move
===============================

A kernel dictionary is learned on a Dask cluster, from rows that never leave it.
Here the cluster is two processes of this machine; give the address of a scheduler for
another one. What comes back is an ordinary estimator, saved and applied without Dask.
Half a minute: ``python examples/large/cluster.py [ADDRESS]``
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import dask.array as da
import numpy as np
from dask.distributed import Client
from sklearn.pipeline import make_pipeline

import kernlets
from kernlets import MOD, RBF, NystroemMap

N_CHUNKS, ROWS, FEATURES = 20, 20_000, 100
HERE = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}


def chunk(block_info: dict | None = None) -> np.ndarray:  # (ROWS, FEATURES)
    """Rows as a worker would read them from its disk: around 30 points."""
    number = block_info[None]["chunk-location"][0] if block_info else 0
    points = np.random.default_rng(0).standard_normal((30, FEATURES), dtype="f4")
    rng = np.random.default_rng([1, number])
    noise = rng.standard_normal((ROWS, FEATURES), dtype="f4")
    return 2 * points[rng.integers(30, size=ROWS)] + noise


def main(address: str | None = None) -> None:
    with Client(address) if address else Client(**HERE) as client:
        lengths = (ROWS,) * N_CHUNKS
        X = da.map_blocks(chunk, chunks=(lengths, (FEATURES,)), dtype=np.float32)
        virtual = NystroemMap(
            RBF(10.0), "kmeans", n_landmarks=300, n_components=60, random_state=0
        )
        model = make_pipeline(virtual, MOD(100, 4, max_iter=3, random_state=0))
        began = time.perf_counter()
        model.fit(X)
        codes = model.transform(X)  # a Dask array: nothing is computed yet
        used = (codes != 0).sum(axis=0).compute()
        seconds = time.perf_counter() - began
        n_workers = len(client.scheduler_info()["workers"])
    print(f"{X.shape[0]} rows, {X.nbytes / 1e6:.0f} MB, {n_workers} workers")
    print(f"{seconds:.1f} s; errors {np.round(model[-1].history_['objective'], 4)}")
    print(f"atoms were used {used.min()} to {used.max()} times")
    with TemporaryDirectory() as folder:
        path = Path(folder) / "rows.kernlets"
        kernlets.save(model, path)
        codes = kernlets.load(path).transform(chunk()[:5])
        print(f"a model of {path.stat().st_size / 1e6:.1f} MB, applied without Dask;")
        print(f"atoms of five rows: {[np.flatnonzero(c).tolist() for c in codes]}")


if __name__ == "__main__":
    main(*sys.argv[1:2])

# %%
# **What one sees.** Two workers read, map and code four hundred thousand rows; only
# sums and landmarks travel. The error falls from one pass to the next, and every atom
# is used.
#
# **What to change.** ``N_CHUNKS`` and ``ROWS`` for more data, ``n_workers`` for more
# processes, or the address of a scheduler for more machines.
#
# sphinx_gallery_thumbnail_path = 'images/cluster.svg'
