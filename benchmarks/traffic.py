"""Bytes that the processes of a Dask cluster send to each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def bytes_sent() -> int:
    """Bytes that this process has sent since the first call."""
    from distributed.comm.tcp import TCP

    if not hasattr(TCP, "sent"):
        write, TCP.sent = TCP.write, 0

        async def counted(self: Any, *args: Any, **kwargs: Any) -> int:
            size = await write(self, *args, **kwargs)
            TCP.sent += size
            return size

        TCP.write = counted
    return TCP.sent


def traffic(client: Any, work: Callable[[], Any]) -> int:
    """Bytes that client, scheduler and workers send for a piece of work."""

    def total() -> int:
        return bytes_sent() + sum(client.run(bytes_sent).values())

    before = total()
    work()
    return total() - before
