"""
A stream of blocks from disk
============================

A kernel dictionary per class, with one block in memory at a time. Digits and their
shifts by one pixel are written to files as a sensor or a log might leave them.
Landmarks come from one look at the files; then each block is mapped, learned from, and
forgotten. A few seconds: ``python examples/large/stream_from_disk.py``
"""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import numpy as np

from kernlets import (
    Blocks,
    Forgetting,
    NystroemMap,
    ResidualClassifier,
    RLSDictionary,
    Schedule,
    datasets,
)
from kernlets.datasets import remove_mean_and_normalize, shifted_batches


def write_blocks(digits: datasets.Dataset, folder: Path) -> list[Path]:
    """Nine times the training images, mixed, in ten files."""
    files = []
    rows = digits.X_train, digits.y_train, digits.image_shape
    for i, (X, y) in enumerate(shifted_batches(*rows, n_batches=10, random_state=0)):
        files.append(folder / f"block-{i}.npz")
        np.savez(files[-1], X=remove_mean_and_normalize(X), y=y)
    return files


def learn(files: list[Path]) -> Iterator[tuple[NystroemMap, ResidualClassifier]]:
    """The map and the classifier after each block."""
    rows = Blocks(lambda: (np.load(file)["X"] for file in files))
    virtual = NystroemMap("poly:2", n_landmarks=300, random_state=0).fit(rows)
    # what the first atoms, and codes over them, have left fades during the stream
    forgetting = Forgetting(0.995, "linear", horizon=800)
    schedule = Schedule(batch_size=64, forgetting=forgetting)
    learner = RLSDictionary(40, 5, schedule=schedule)
    model = ResidualClassifier(learner, random_state=0)
    for file in files:
        block = np.load(file)
        model.partial_fit(virtual.transform(block["X"]), block["y"], classes=range(10))
        yield virtual, model


# %%
# After each block, the accuracy on digits of other writers.

digits = datasets.load("digits")
new = remove_mean_and_normalize(digits.X_test)
seen, scores = [], []
with TemporaryDirectory() as folder:
    for virtual, model in learn(write_blocks(digits, Path(folder))):
        scores.append(100 * model.score(virtual.transform(new), digits.y_test))
        seen.append(model.class_count_.sum())
        print(f"{seen[-1]:5} images seen, {scores[-1]:.2f} % of new ones correct")

figure, axes = plt.subplots(figsize=(6, 3.5), layout="constrained")
axes.plot(seen, scores, "o-")
axes.set(xlabel="images seen", ylabel="accuracy on new images (%)")
plt.show()

# %%
# **What one sees.** Most is learned from the first file. Later ones add two percent,
# with ups and downs of less than one percent.
#
# **What to change.** ``Forgetting(1.0)`` weighs all images equally. ``n_landmarks``:
# the map cannot improve after its first look.
