"""Sealed files: bytes that say what they are, and by a checksum whether they are still what was written.

    magic     8 bytes     the kind of file
    format    u32         the version of this layout and of what stands in the head
    head      u32         bytes of the head
    size      u64         bytes of the whole file
    digest    32 bytes    SHA-256 of everything else
    head                  JSON in UTF-8: {"pieces": [[name, bytes], ...], ...}
    pieces                one after another, as the head lists them

Numbers are little endian. No part is used before the checksum has been found right, so a damaged file is never more
than a message; it tells damage from health and not friend from foe.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

FORMAT = 1
HEADER = struct.Struct("<8sIIQ32s")
_BEFORE_DIGEST = HEADER.size - 32

Piece = bytes | memoryview


class Broken(Exception):
    """The bytes are not such a file, or not whole; the message says why."""


def seal(magic: bytes, head: Mapping[str, Any], pieces: Mapping[str, Piece]) -> list[Piece]:
    """The file, in parts to be written one after another."""
    lengths = [[name, len(piece)] for name, piece in pieces.items()]
    text = json.dumps({**head, "pieces": lengths}, separators=(",", ":")).encode()
    size = HEADER.size + len(text) + sum(map(len, pieces.values()))
    before = HEADER.pack(magic, FORMAT, len(text), size, b"")[:_BEFORE_DIGEST]
    digest = hashlib.sha256(before)
    for part in (text, *pieces.values()):
        digest.update(part)
    return [before + digest.digest(), text, *pieces.values()]


def write_whole(path: Path, parts: Iterable[Piece], mode: int = 0o666) -> None:
    """Write a file: it appears with all its parts, or not at all; OSError if that cannot be done."""
    temporary = path.with_name(f".{os.urandom(8).hex()}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    with open(os.open(temporary, flags, mode), "wb") as file:
        try:
            for part in parts:
                file.write(part)
            file.flush()
            os.fsync(file.fileno())
            os.replace(temporary, path)
        except BaseException:                              # interruptions too
            temporary.unlink(missing_ok=True)
            raise


def unseal(magic: bytes, data: bytes) -> tuple[dict[str, Any], dict[str, memoryview]]:
    """The head and the pieces of a whole file; Broken for any other."""
    if data[:len(magic)] != magic:
        raise Broken("it does not start as one")
    if len(data) < HEADER.size:
        raise Broken(f"it ends after {len(data)} bytes")
    _, format, head_size, size, digest = HEADER.unpack_from(data)
    if format != FORMAT:
        raise Broken(f"its format is {format}, this version of mlc reads {FORMAT}")
    if size != len(data):
        raise Broken(f"it has {len(data)} bytes, {size} were written")
    view = memoryview(data)
    found = hashlib.sha256(view[:_BEFORE_DIGEST])
    found.update(view[HEADER.size:])
    if found.digest() != digest:
        raise Broken("its checksum is wrong")
    return _parts(view[HEADER.size:], head_size)


def _parts(body: memoryview, head_size: int) -> tuple[dict[str, Any], dict[str, memoryview]]:
    try:
        head = json.loads(bytes(body[:head_size]))
        lengths = [(str(name), int(length)) for name, length in head.pop("pieces")]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise Broken("its head is ill-formed") from None
    if any(length < 0 for _, length in lengths) or head_size + sum(length for _, length in lengths) != len(body):
        raise Broken("its pieces do not fill it")
    pieces, at = {}, head_size
    for name, length in lengths:
        pieces[name] = body[at:at + length]
        at += length
    return head, pieces
