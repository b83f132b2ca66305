"""Entry point of the command ``kernlets`` and of ``python -m kernlets``.

Ctrl-C ends a run with exit code 130, whatever it is doing. Python itself only sets a
flag, and raises KeyboardInterrupt when the main thread is back from compiled code; it
then waits for other threads, and some libraries swallow the exception. So a thread
watches, and ends the process if it does not end by itself. This is set up before
anything else is imported.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading

INTERRUPTED = 130  # 128 + SIGINT, which is how shells say it
GRACE = 3.0  # seconds to clean up in after Ctrl-C; a second one ends the run at once
SHOW_CURSOR = "\x1b[?25h"  # progress bars hide it


class Interrupted(KeyboardInterrupt):
    """Ctrl-C. For KeyboardInterrupt itself Python may end by a signal, not a code."""


_state = {"interrupted": False, "leaving": False, "told": False}


def main() -> None:
    """Run the command line."""
    _watch_for_interrupts()
    try:
        from .cli.app import app

        app(prog_name="kernlets")
    except (KeyboardInterrupt, SystemExit) as end:
        if isinstance(end, SystemExit) and not _state["interrupted"]:
            raise
        _print_interrupted()
        sys.exit(INTERRUPTED)
    finally:
        _state["leaving"] = True


def _watch_for_interrupts() -> None:
    """Start the watching thread, unless Ctrl-C is to be ignored."""
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) in (None, signal.SIG_IGN):
        return
    receiver, sender = socket.socketpair()
    sender.setblocking(False)
    # Python writes to this at once, even while the main thread is in compiled code.
    signal.set_wakeup_fd(sender.fileno(), warn_on_full_buffer=False)
    signal.signal(signal.SIGINT, _interrupt)
    watcher = threading.Thread(target=_watch, args=(receiver, sender), daemon=True)
    watcher.start()


def _interrupt(number: int, frame: object) -> None:
    if _state["leaving"]:  # Python would print an exception and not end
        _end_now()
    _state["interrupted"] = True  # even if someone catches what is raised here
    raise Interrupted


def _watch(receiver: socket.socket, sender: socket.socket) -> None:
    """Wait for Ctrl-C; then end the process after a while, or at the next one.

    Two may be read at once on a busy machine. The sender is held here so that it stays
    open.
    """
    n_interrupts = 0
    try:
        while n_interrupts < 2:
            n_interrupts += receiver.recv(4096).count(signal.SIGINT)
            if n_interrupts:
                receiver.settimeout(GRACE)
    except TimeoutError:
        pass
    _end_now()


def _end_now() -> None:
    """End the process at once, but remove files that it has begun to write."""
    atomic = sys.modules.get("kernlets.io.atomic_write")
    if atomic is not None:
        atomic.remove_open_parts()
    _print_interrupted()
    os._exit(INTERRUPTED)


def _print_interrupted() -> None:
    if not _state["told"]:
        _state["told"] = True
        text = SHOW_CURSOR if os.isatty(2) else ""
        os.write(2, f"{text}interrupted\n".encode())


if __name__ == "__main__":
    main()
