"""Codes of blocks of rows become the codes of all rows."""

from __future__ import annotations

import numpy as np

from kernlets.contracts import UNUSED, SparseCodes
from kernlets.loops.codes import concatenate


def block(first_row: int, n: int, width: int) -> SparseCodes:
    indices = np.tile(np.arange(width, dtype=np.int32), (n, 1))
    values = np.full((n, width), float(first_row))
    return SparseCodes(indices, values, 9, np.arange(first_row, first_row + n) / 2)


def test_blocks_are_joined_in_order_with_unused_slots():
    blocks = [block(0, 2, 3), block(2, 1, 1), block(3, 2, 2)]
    expected = np.concatenate([each.toarray() for each in blocks])
    codes = concatenate(blocks)
    np.testing.assert_array_equal(codes.toarray(), expected)
    np.testing.assert_array_equal(codes.residual, np.arange(5) / 2)
    np.testing.assert_array_equal(codes.indices[2], [0, UNUSED, UNUSED])
    np.testing.assert_array_equal(codes.values[2], [2, 0, 0])
    assert codes.indices.dtype == np.int32 and codes.width == 3


def test_joined_blocks_are_taken_out_of_the_list():
    """Otherwise codes would be in memory twice."""
    blocks = [block(0, 2, 3), block(2, 1, 1)]
    concatenate(blocks)
    assert blocks == []


def test_one_block_is_not_copied():
    (only,) = blocks = [block(0, 2, 3)]
    assert concatenate(blocks) is only
