"""The kernel library: code of common eager operations, compiled when mlc is installed.

A library is a file of the package for one level of processors, such as x86-64-v4 (cpu/targets.py). It belongs to the
sources that it was compiled from, and counts as absent beside others, as after an edit in a checkout. Its code has the
bits that the host's own would have: what the passes decide follows from the machine model, which is the same. Like the
sources it is trusted, and like a saved model it stands under a checksum. An entry is known by the text of its module
without names and locations; the compile cache is asked before the library. MLC_CACHE=0 turns off both.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from mlc.backends.cache import digest_of
from mlc.backends.checksummed import CorruptFile, pack, unpack
from mlc.backends.cpu.targets import host, level_of
from mlc.backends.target import Target
from mlc.backends.versions import PACKAGE, source_digest, versions
from mlc.ir import logs
from mlc.ir.files import replace

MAGIC = b"MLCKERNL"
FOLDER = PACKAGE / "kernel_library"


class Entry(NamedTuple):
    """Code in a library.

    kind   "module": a compiled module, "runtime": code shared by many programs
    parts  everything besides the sources and the level that the code depends on
    head   the description of the code, as JSON data
    """

    kind: str
    parts: Sequence[str]
    head: Mapping[str, Any]
    code: bytes

    def packed(self) -> bytes:
        return zlib.compress(json.dumps(self.head).encode() + b"\0" + self.code, 9)


def lookup(kind: str, parts: Sequence[str]) -> tuple[dict[str, Any], bytes] | None:
    """Head and code of an entry for this machine; None if there is none."""
    if os.environ.get("MLC_CACHE") == "0" or (level := level_of(host())) is None:
        return None
    found = _opened(FOLDER / f"{level}.bin", str(level)).get(digest_of([kind, *parts]))
    if found is None:
        return None
    head, _, code = zlib.decompress(found).partition(b"\0")
    return json.loads(head), code


def write(folder: Path, level: Target, entries: Iterable[Entry]) -> Path:
    """Write the library of a level; returns its path."""
    pieces = {digest_of([e.kind, *e.parts]): e.packed() for e in entries}
    path = folder / f"{level}.bin"
    replace(path, pack(MAGIC, {"sources": source_digest(), "level": str(level)}, dict(sorted(pieces.items()))), 0o644)
    return path


@cache
def _opened(path: Path, level: str) -> Mapping[str, memoryview]:
    """The packed entries of a library by their digests; none if it belongs to other sources."""
    try:
        head, pieces = unpack(MAGIC, path.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, CorruptFile) as error:
        logs.write("cache", f"the kernel library {path.name} is not used: {error}", found="")
        return {}
    if head != {"sources": versions().get("mlc"), "level": level}:
        logs.write("cache", f"the kernel library {path.name} belongs to other sources", found="")
        return {}
    return pieces
