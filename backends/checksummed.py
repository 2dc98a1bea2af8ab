"""Checksummed container: a file with a header and named pieces, whose integrity is verified before any part is read.

    magic     8 bytes     the kind of file
    format    u32         the version of this layout and of the head's contents
    head      u32         bytes of the head
    size      u64         bytes of the whole file
    digest    32 bytes    SHA-256 of everything else, or HMAC-SHA256 if writer and reader share a key
    head                  JSON in UTF-8: {"pieces": [[name, bytes], ...], ...}
    pieces                consecutive, in the order of the head

Numbers are little endian. No part is used before the checksum has been verified, so a corrupt file causes an error
message and nothing else. A checksum without a key detects corruption, not forgery: whoever can write the file can
compute its checksum. With a key it authenticates the writer.
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


class CorruptFile(Exception):
    """The bytes are not an intact container; the message gives the reason."""


def pack(magic: bytes, head: Mapping[str, Any], pieces: Mapping[str, Piece], key: bytes = b"") -> list[Piece]:
    """Pack a container; returns the consecutive parts of the file."""
    lengths = [[name, len(piece)] for name, piece in pieces.items()]
    text = json.dumps({**head, "pieces": lengths}, separators=(",", ":")).encode()
    size = HEADER.size + len(text) + sum(map(len, pieces.values()))
    before = HEADER.pack(magic, FORMAT, len(text), size, b"")[:_BEFORE_DIGEST]
    digest = _digest(key)
    for part in (before, text, *pieces.values()):
        digest.update(part)
    return [before + digest.digest(), text, *pieces.values()]


def unpack(magic: bytes, data: bytes, key: bytes = b"") -> tuple[dict[str, Any], dict[str, memoryview]]:
    """Header and pieces of a container; raises CorruptFile if the bytes are not an intact one."""
    if data[:len(magic)] != magic:
        raise CorruptFile("it does not start as one")
    if len(data) < HEADER.size:
        raise CorruptFile(f"it ends after {len(data)} bytes")
    _, format, head_size, size, digest = HEADER.unpack_from(data)
    if format != FORMAT:
        raise CorruptFile(f"its format is {format}, this version of mlc reads {FORMAT}")
    if size != len(data):
        raise CorruptFile(f"it has {len(data)} bytes, {size} were written")
    view = memoryview(data)
    found = _digest(key)
    found.update(view[:_BEFORE_DIGEST])
    found.update(view[HEADER.size:])
    if not hmac.compare_digest(found.digest(), digest):
        raise CorruptFile("its checksum is wrong" + (", or it was written with another key" if key else ""))
    return _parts(view[HEADER.size:], head_size)


def _digest(key: bytes) -> Any:
    return hmac.new(key, digestmod="sha256") if key else hashlib.sha256()


def _parts(body: memoryview, head_size: int) -> tuple[dict[str, Any], dict[str, memoryview]]:
    try:
        head = json.loads(bytes(body[:head_size]))
        lengths = [(str(name), int(length)) for name, length in head.pop("pieces")]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise CorruptFile("its head is ill-formed") from None
    if any(length < 0 for _, length in lengths) or head_size + sum(length for _, length in lengths) != len(body):
        raise CorruptFile("its pieces do not fill it")
    pieces, at = {}, head_size
    for name, length in lengths:
        pieces[name] = body[at:at + length]
        at += length
    return head, pieces
