"""How many bytes the collectives of a rank have sent."""

from __future__ import annotations

import threading
from collections import Counter


class Traffic:
    """Calls and sent bytes by the name of the collective."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.sent: Counter[str] = Counter()
        self._lock = threading.Lock()

    def add(self, name: str, sent: int) -> None:
        """Count one call of a collective that has sent so many bytes."""
        with self._lock:
            self.calls[name] += 1
            self.sent[name] += sent

    @property
    def total(self) -> int:
        """Bytes that all collectives have sent."""
        with self._lock:
            return sum(self.sent.values())
