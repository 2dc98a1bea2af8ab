"""Sealed files come back as they were, or not at all."""
from __future__ import annotations

import hashlib
import json

import pytest

from mlc.backends.sealed import FORMAT, HEADER, Broken, seal, unseal


def sealed() -> bytes:
    return b"".join(seal(b"MLCTEST0", {"a": 1}, {"x": b"one", "y": bytes(range(100))}))


def test_sealed_files_come_back() -> None:
    head, pieces = unseal(b"MLCTEST0", sealed())
    assert head == {"a": 1} and bytes(pieces["x"]) == b"one" and bytes(pieces["y"]) == bytes(range(100))
    assert unseal(b"MLCTEST0", b"".join(seal(b"MLCTEST0", {}, {}))) == ({}, {})


def test_every_change_of_a_byte_is_found() -> None:
    data = sealed()
    for i in range(len(data)):
        for change in (1, 128, 255):
            with pytest.raises(Broken):
                unseal(b"MLCTEST0", data[:i] + bytes([data[i] ^ change]) + data[i + 1:])


def test_every_truncation_is_found() -> None:
    data = sealed()
    for i in range(len(data)):
        with pytest.raises(Broken):
            unseal(b"MLCTEST0", data[:i])
    for more in (b"\0", data):
        with pytest.raises(Broken):
            unseal(b"MLCTEST0", data + more)


def test_heads_that_are_none() -> None:
    for pieces in (3, [["x", -1], ["y", 1]], [["x", 1]], [["x"]], None):
        with pytest.raises(Broken):
            unseal(b"MLCTEST0", resealed({"pieces": pieces}))


def resealed(head: dict[str, object]) -> bytes:
    """A file with a right checksum and this head."""
    text = json.dumps(head).encode()
    before = HEADER.pack(b"MLCTEST0", FORMAT, len(text), HEADER.size + len(text), b"")[:HEADER.size - 32]
    return before + hashlib.sha256(before + text).digest() + text


def test_with_a_key_nobody_else_can_write_one() -> None:
    data = b"".join(seal(b"MLCTEST0", {"a": 1}, {"x": b"one"}, b"secret"))
    assert unseal(b"MLCTEST0", data, b"secret")[0] == {"a": 1}
    for other in (b"", b"guess"):
        with pytest.raises(Broken, match="checksum"):
            unseal(b"MLCTEST0", data, other)
        with pytest.raises(Broken, match="another key"):
            unseal(b"MLCTEST0", b"".join(seal(b"MLCTEST0", {"a": 1}, {"x": b"one"}, other)), b"secret")
