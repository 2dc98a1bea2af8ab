"""The lock that a thread holds while it compiles."""

from __future__ import annotations

import os
import threading

compiling = threading.RLock()
"""Held during a compilation. A fork waits for it, since a child cannot continue what another thread has begun."""
os.register_at_fork(before=compiling.acquire, after_in_parent=compiling.release, after_in_child=compiling.release)
