"""Checksummed containers come back as they were, or not at all."""
from __future__ import annotations

import hashlib
import json

import pytest

from mlc.backends.checksummed import FORMAT, HEADER, CorruptFile, pack, unpack


def packed() -> bytes:
    return b"".join(pack(b"MLCTEST0", {"a": 1}, {"x": b"one", "y": bytes(range(100))}))


def test_checksummed_files_come_back() -> None:
    head, pieces = unpack(b"MLCTEST0", packed())
    assert head == {"a": 1} and bytes(pieces["x"]) == b"one" and bytes(pieces["y"]) == bytes(range(100))
    assert unpack(b"MLCTEST0", b"".join(pack(b"MLCTEST0", {}, {}))) == ({}, {})


def test_every_change_of_a_byte_is_found() -> None:
    data = packed()
    for i in range(len(data)):
        for change in (1, 128, 255):
            with pytest.raises(CorruptFile):
                unpack(b"MLCTEST0", data[:i] + bytes([data[i] ^ change]) + data[i + 1:])


def test_every_truncation_is_found() -> None:
    data = packed()
    for i in range(len(data)):
        with pytest.raises(CorruptFile):
            unpack(b"MLCTEST0", data[:i])
    for more in (b"\0", data):
        with pytest.raises(CorruptFile):
            unpack(b"MLCTEST0", data + more)


def test_ill_formed_headers() -> None:
    for pieces in (3, [["x", -1], ["y", 1]], [["x", 1]], [["x"]], None):
        with pytest.raises(CorruptFile):
            unpack(b"MLCTEST0", repacked({"pieces": pieces}))


def repacked(head: dict[str, object]) -> bytes:
    """A file with a right checksum and this head."""
    text = json.dumps(head).encode()
    before = HEADER.pack(b"MLCTEST0", FORMAT, len(text), HEADER.size + len(text), b"")[:HEADER.size - 32]
    return before + hashlib.sha256(before + text).digest() + text


def test_with_a_key_nobody_else_can_write_one() -> None:
    data = b"".join(pack(b"MLCTEST0", {"a": 1}, {"x": b"one"}, b"secret"))
    assert unpack(b"MLCTEST0", data, b"secret")[0] == {"a": 1}
    for other in (b"", b"guess"):
        with pytest.raises(CorruptFile, match="checksum"):
            unpack(b"MLCTEST0", data, other)
        with pytest.raises(CorruptFile, match="another key"):
            unpack(b"MLCTEST0", b"".join(pack(b"MLCTEST0", {"a": 1}, {"x": b"one"}, other)), b"secret")
