"""The lock under which loops are imported.

A process is forked when no thread imports loops. Otherwise the child would have half of
a module, and would wait forever for the thread that imported it.
"""

from __future__ import annotations

import os
import threading

import_lock = threading.RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=import_lock.acquire,
        after_in_parent=import_lock.release,
        after_in_child=import_lock.release,
    )
