"""Self-description of an extension module, appended to the shared object, so that it can be checked before loading.

    shared object                       as the system's loader maps it; the loader ignores what follows
    head          JSON in UTF-8         name, functions, targets, weights
    digest        32 bytes              SHA-256 of everything else
    head size     u32
    file size     u64
    magic         8 bytes

Numbers are little endian. The digest detects corruption, not forgery.
"""

from __future__ import annotations

import hashlib
import json
import struct
from dataclasses import dataclass

from mlc.backends.checksummed import CorruptFile
from mlc.backends.dataclass_json import from_json, to_json
from mlc.backends.target import Target

MAGIC = b"MLCEXT\x00\x01"
"""The last byte is the version of the layout."""
_FOOT = struct.Struct("<32sIQ8s")
ELF_MAGIC = b"\x7fELF"
_MACHINES = {62: "x86_64", 183: "aarch64"}
MAX_HEAD = 64 << 20


@dataclass(frozen=True)
class Description:
    """Self-description of a module.

    functions  human-readable signature of each function
    targets    processors that it has code for, in ascending order of requirements
    weights    bytes of its arrays; `beside` names the file that contains them, `digest` is the SHA-256 of that file
    """

    name: str
    functions: tuple[str, ...]
    targets: tuple[Target, ...]
    weights: int = 0
    beside: str = ""
    digest: str = ""


def pack(code: bytes, description: Description) -> bytes:
    """The file of a module."""
    head = json.dumps(to_json(description), separators=(",", ":"), sort_keys=True).encode()
    size = len(code) + len(head) + _FOOT.size
    rest = struct.pack("<IQ8s", len(head), size, MAGIC)
    digest = hashlib.sha256(code + head + rest).digest()
    return code + head + digest + rest


def unpack(data: bytes) -> Description:
    """The description stored in the file of a module; raises CorruptFile if the file is not intact."""
    if data[:4] != ELF_MAGIC:
        raise CorruptFile("it is no shared object")
    if len(data) < _FOOT.size or data[-7:] != MAGIC[-7:]:
        raise CorruptFile("it does not end as mlc compile writes a module: it is cut off, or another linker's")
    digest, head_size, size, magic = _FOOT.unpack(data[-_FOOT.size:])
    if magic != MAGIC:
        raise CorruptFile("it is of another version of mlc")
    if size != len(data):
        raise CorruptFile(f"it has {len(data)} bytes, {size} were written")
    found = hashlib.sha256(memoryview(data)[:-_FOOT.size])
    found.update(data[-_FOOT.size + 32:])
    if found.digest() != digest:
        raise CorruptFile("its checksum is wrong")
    if not 0 < head_size <= min(MAX_HEAD, size - _FOOT.size):
        raise CorruptFile("its head is ill-formed")
    return _description(data[-_FOOT.size - head_size:-_FOOT.size])


def _description(head: bytes) -> Description:
    try:
        data = json.loads(head)
    except (ValueError, RecursionError):
        raise CorruptFile("its head is ill-formed") from None
    found = from_json(data, Description)
    if found.beside and (found.beside in (".", "..") or "/" in found.beside or "\0" in found.beside):
        raise CorruptFile(f"the file of its weights is called {found.beside!a}")
    return found


def machine(data: bytes) -> str:
    """The architecture that a shared object is for, as platform.machine() calls it."""
    number = struct.unpack_from("<H", data, 18)[0] if len(data) >= 20 else 0
    return _MACHINES.get(number, f"machine {number}")


def check_beside(description: Description, found: bytes) -> None:
    """CorruptFile unless these bytes are the file of weights that belongs to a module."""
    if len(found) != description.weights:
        raise CorruptFile(f"{description.beside} has {len(found)} bytes, {description.weights} were written")
    if hashlib.sha256(found).hexdigest() != description.digest:
        raise CorruptFile(f"the checksum of {description.beside} is wrong")


