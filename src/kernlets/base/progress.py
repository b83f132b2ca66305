"""Progress lines of long fits: rows, speed and remaining time."""

from __future__ import annotations

import threading
import time
from datetime import timedelta

SECONDS = 10.0  # between two lines


class RowClock:
    """Counts finished rows, from any thread, and prints progress every few seconds."""

    def __init__(self, title: str, total: int | None) -> None:
        self.title, self.total, self.n_done = title, total, 0
        self._start_time = self._last_print = time.monotonic()
        self._lock = threading.Lock()

    def __call__(self, n: int) -> None:
        with self._lock:
            self.n_done += n
            time_now = time.monotonic()
            if time_now - self._last_print < SECONDS:
                return
            self._last_print = time_now
        print(f"{self.title}: {self._text(time_now - self._start_time)}", flush=True)

    def _text(self, seconds: float) -> str:
        speed = self.n_done / seconds
        if self.total is None:
            return f"{self.n_done:,} rows, {speed:,.0f} rows/s"
        seconds_left = max(self.total - self.n_done, 0) / speed
        return (
            f"{self.n_done:,} of {self.total:,} rows, {speed:,.0f} rows/s, "
            f"{timedelta(seconds=round(seconds_left))} left"
        )
