"""The log of `mlc fuzz`, from which the next run continues.

A text file of JSON objects, one a line, only ever appended to:

    {"fuzz": 1, "mlc": "0.9.0", "kind": "valid", "seed": 0, "shard": "0/2"}
        a run begins: the version of this format and of mlc, the kind, and which seeds are its own
    {"kind": "valid", "seed": 0, "shard": "0/2", "next": 400, "programs": 200, "seconds": 8.1}
        all seeds of the shard below `next` are done, the last so many of them in so much processor time
    {"kind": "valid", "found": 137, "failure": "MLC0901 pass cse ...", "message": "...", "file": "fuzz-valid-137.mlir"}
        the seed `found` fails; `failure` is the same for the same defect, of which only the first leaves a file

Seeds are counted from `seed`, and shard i of n has those whose number leaves i when divided by n. A line that was cut
off, as by a power failure, is passed over.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

VERSION = 1


@dataclass
class Journal:
    """A log file, or none."""

    path: Path | None

    def entries(self) -> list[dict[str, Any]]:
        if self.path is None or not self.path.exists():
            return []
        out = []
        for line in self.path.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                entry = json.loads(line)
            except ValueError:
                continue
            out += [entry] if isinstance(entry, dict) else []
        return out

    def next(self, kind: str, seed: int, shard: str) -> int:
        """The first seed that is not done."""
        return max((int(e["next"]) for e in self.entries() if "next" in e and e.get("kind") == kind
                    and e.get("seed") == seed and e.get("shard") == shard), default=seed)

    def failures(self) -> set[str]:
        """The keys of the failures in the log."""
        return {str(e["failure"]) for e in self.entries() if "failure" in e}

    def add(self, **entry: Any) -> None:
        if self.path is not None:
            cut_off = self.path.exists() and self.path.read_bytes()[-1:] not in (b"\n", b"")
            with self.path.open("a", encoding="utf-8") as file:
                file.write("\n" * cut_off + json.dumps(entry) + "\n")
