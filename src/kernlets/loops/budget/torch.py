"""`budget_stream` for tensors: the compiled loop, in host memory."""

from __future__ import annotations

import torch
from torch import Tensor

from .numba import budget_stream as compiled_stream
from .types import BudgetOutcome, BudgetPursuit, Rules, Stock


def budget_stream(
    stock: Stock,  # changed in place
    size: int,
    cross: Tensor,
    energy: Tensor,
    rates: Tensor,
    rules: Rules,
    pursuit: BudgetPursuit,
) -> BudgetOutcome:
    """Train a dictionary on a budget by a block of samples.

    Each step needs the one before and is small: the processor computes it in a
    fraction of the time that a GPU needs to start one.
    """
    host = Stock(*[array.cpu().numpy() for array in stock])
    rows, energies, steps = (array.cpu().numpy() for array in (cross, energy, rates))
    outcome = compiled_stream(host, size, rows, energies, steps, rules, pursuit)
    for array, result in zip(stock, host, strict=True):
        array.copy_(torch.from_numpy(result))
    diagnostics = [torch.from_numpy(array).to(cross.device) for array in outcome[-3:]]
    return BudgetOutcome(*outcome[:-3], *diagnostics)
