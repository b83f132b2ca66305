"""Images shifted by one pixel: all at once, and as a mixed stream."""

from __future__ import annotations

import numpy as np
import pytest

from kernlets.datasets import shifted, shifted_batches


def naive_shift(image, dy, dx):
    moved = np.zeros_like(image)
    height, width = image.shape
    for y in range(height):
        for x in range(width):
            if 0 <= y - dy < height and 0 <= x - dx < width:
                moved[y, x] = image[y - dy, x - dx]
    return moved


def test_all_nine_shifts(rng):
    X = rng.random((4, 15)).astype(np.float32)
    found = shifted(X, (3, 5))
    expected = [
        naive_shift(image, dy, dx).ravel()
        for dy in (-1, 0, 1)
        for dx in (-1, 0, 1)
        for image in X.reshape(4, 3, 5)
    ]
    np.testing.assert_array_equal(found, expected)
    assert found.dtype == np.float32


def test_batches_hold_each_shift_once_and_mixed(rng):
    X, y = rng.integers(256, size=(20, 12), dtype=np.uint8), np.arange(20)
    parts = list(shifted_batches(X, y, (3, 4), n_batches=7, random_state=0))
    assert {len(rows) for rows, _ in parts} == {25, 26}
    rows, labels = (np.concatenate(part) for part in zip(*parts, strict=True))
    both = np.column_stack([labels, rows])
    every = np.column_stack([np.tile(y, 9), shifted(X, (3, 4))])
    np.testing.assert_array_equal(np.sort(both, axis=0), np.sort(every, axis=0))
    assert {tuple(row) for row in both} == {tuple(row) for row in every}
    assert len(np.unique(parts[0][1])) > 10  # not sorted by image
    again = next(shifted_batches(X, y, (3, 4), n_batches=7, random_state=0))
    np.testing.assert_array_equal(again[0], parts[0][0])


def test_wrong_shape_is_named(rng):
    with pytest.raises(ValueError, match="image_shape"):
        shifted(rng.random((4, 15)), (4, 4))
