"""`budget_stream` for tensors: the compiled loop, in host memory."""

from __future__ import annotations

import torch
from torch import Tensor

from .budget import Outcome, Pursuit, Rules, Stock
from .numba_budget import budget_stream as compiled


def budget_stream(
    stock: Stock,  # changed in place
    size: int,
    cross: Tensor,
    energy: Tensor,
    rates: Tensor,
    rules: Rules,
    pursuit: Pursuit,
) -> Outcome:
    """A dictionary on a budget learns from a block of samples.

    Each step waits for the one before and is small: the processor does them in a
    fraction of the time in which a GPU could be told to.
    """
    host = Stock(*[part.cpu().numpy() for part in stock])
    rows, own, steps = (part.cpu().numpy() for part in (cross, energy, rates))
    done = compiled(host, size, rows, own, steps, rules, pursuit)
    for part, result in zip(stock, host, strict=True):
        part.copy_(torch.from_numpy(result))
    noted = [torch.from_numpy(part).to(cross.device) for part in done[-3:]]
    return Outcome(*done[:-3], *noted)
