"""Sealed files: bytes that say what they are, and by a checksum whether they are still what was written.

    magic     8 bytes     the kind of file
    format    u32         the version of this layout and of what stands in the head
    head      u32         bytes of the head
    size      u64         bytes of the whole file
    digest    32 bytes    SHA-256 of everything else, or HMAC-SHA256 where writer and reader share a key
    head                  JSON in UTF-8: {"pieces": [[name, bytes], ...], ...}
    pieces                one after another, as the head lists them

Numbers are little endian. No part is used before the checksum has been found right, so a damaged file is never more
than a message. Without a key that tells damage from health and not friend from foe: who can write such a file can
also compute its checksum. With one, the file is what somebody wrote who had the key.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import struct
from collections.abc import Mapping
from typing import Any

FORMAT = 1
HEADER = struct.Struct("<8sIIQ32s")
_BEFORE_DIGEST = HEADER.size - 32

Piece = bytes | memoryview


class Broken(Exception):
    """The bytes are not such a file, or not whole; the message says why."""


def seal(magic: bytes, head: Mapping[str, Any], pieces: Mapping[str, Piece], key: bytes = b"") -> list[Piece]:
    """The file, in parts to be written one after another."""
    lengths = [[name, len(piece)] for name, piece in pieces.items()]
    text = json.dumps({**head, "pieces": lengths}, separators=(",", ":")).encode()
    size = HEADER.size + len(text) + sum(map(len, pieces.values()))
    before = HEADER.pack(magic, FORMAT, len(text), size, b"")[:_BEFORE_DIGEST]
    digest = _digest(key)
    for part in (before, text, *pieces.values()):
        digest.update(part)
    return [before + digest.digest(), text, *pieces.values()]


def unseal(magic: bytes, data: bytes, key: bytes = b"") -> tuple[dict[str, Any], dict[str, memoryview]]:
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
    found = _digest(key)
    found.update(view[:_BEFORE_DIGEST])
    found.update(view[HEADER.size:])
    if not hmac.compare_digest(found.digest(), digest):
        raise Broken("its checksum is wrong" + (", or it was written with another key" if key else ""))
    return _parts(view[HEADER.size:], head_size)


def _digest(key: bytes) -> Any:
    return hmac.new(key, digestmod="sha256") if key else hashlib.sha256()


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
