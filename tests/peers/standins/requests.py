"""Stand-in for requests: the answer is always a small random graph in the format of the Cora data set."""

from __future__ import annotations

import io
import tarfile
from types import SimpleNamespace
from typing import Any

import numpy as np

NODES, WORDS = 90, 24


def _archive() -> bytes:
    rng = np.random.default_rng(3)
    content = [f"{100 + i} {' '.join(map(str, rng.integers(0, 2, WORDS)))} class{i % 3}" for i in range(NODES)]
    pairs = {(int(a), int(b)) for a, b in rng.integers(0, NODES, (200, 2)) if a != b}
    files = {"cora/cora.content": content, "cora/cora.cites": [f"{100 + a} {100 + b}" for a, b in sorted(pairs)]}
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for name, lines in files.items():
            data = ("\n".join(lines) + "\n").encode()
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


class Answer:
    """An answer that is read once."""

    def __init__(self) -> None:
        self.raw = SimpleNamespace(read=io.BytesIO(_archive()).read)

    def __enter__(self) -> Answer:
        return self

    def __exit__(self, *_: Any) -> None:
        pass


def get(url: str, stream: bool = False) -> Answer:
    """The archive."""
    return Answer()
