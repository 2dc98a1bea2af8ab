"""Sealed files come back as they were, or not at all."""
from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest

from mlc.backends.sealed import FORMAT, HEADER, Broken, seal, unseal, write_whole


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


def test_files_appear_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    write_whole(path, [b"one", b"two"])
    assert path.read_bytes() == b"onetwo" and path.stat().st_mode & 0o111 == 0

    def stop(*args: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", stop)
    with pytest.raises(KeyboardInterrupt):
        write_whole(path, [b"three"])
    assert os.listdir(tmp_path) == ["file"] and path.read_bytes() == b"onetwo"
