"""Online kernel dictionary learning on a budget."""

from __future__ import annotations

EXHIBITS = ()
