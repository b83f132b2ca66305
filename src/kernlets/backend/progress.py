"""Progress lines of long fits: rows, speed and remaining time."""

from __future__ import annotations

import threading
import time
from datetime import timedelta

SECONDS = 10.0  # between two lines


class RowClock:
    """Counts finished rows, from any thread, and prints progress every few seconds."""

    def __init__(self, title: str, total: int | None) -> None:
        self.title, self.total, self.done = title, total, 0
        self._began = self._said = time.monotonic()
        self._lock = threading.Lock()

    def __call__(self, n: int) -> None:
        with self._lock:
            self.done += n
            now = time.monotonic()
            if now - self._said < SECONDS:
                return
            self._said = now
        print(f"{self.title}: {self._text(now - self._began)}", flush=True)

    def _text(self, seconds: float) -> str:
        speed = self.done / seconds
        if self.total is None:
            return f"{self.done:,} rows, {speed:,.0f} rows/s"
        left = max(self.total - self.done, 0) / speed
        return (
            f"{self.done:,} of {self.total:,} rows, {speed:,.0f} rows/s, "
            f"{timedelta(seconds=round(left))} left"
        )
