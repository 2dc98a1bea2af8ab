"""Files of `torch.save`, read as data: nothing in them is executed.

Such a file is a zip archive of a pickle, `data.pkl`, and of one record of bytes for each storage, uncompressed. The
pickle is interpreted (mlc/pickled_data.py); it may name what states of models, optimizers and schedulers consist of.
Records are mapped into memory, and tensors that share a storage in the file share its memory. Those that
PyTorch would conjugate or negate when it reads them share another copy of it.
"""

from __future__ import annotations

import io
import mmap
import os
import struct
import zipfile
import zlib
from collections import Counter, OrderedDict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mlc.frontend.autograd.differentiable import mark_parameter
from mlc.frontend.device import device
from mlc.frontend.dtypes import ALL, DType
from mlc.frontend.location import user_loc
from mlc.frontend.size import Size
from mlc.frontend.storage import Storage
from mlc.frontend.tensor import Tensor, wrap
from mlc.ir.diag import UserError
from mlc.pickled_data import Callee, DamagedPickle, RefusedGlobal, atoms, loads

ZIP = b"PK\x03\x04"
_LOCAL = struct.Struct("<4s5H3I2H")
"""Header of a record: signature, ..., length of its name, length of its extra field."""
_MAX_ELEMENTS = 2**48
_MAX_DIMENSIONS = 64
STORAGES = {"Float": "float32", "Double": "float64", "Half": "float16", "BFloat16": "bfloat16", "Long": "int64",
             "Int": "int32", "Short": "int16", "Char": "int8", "Byte": "uint8", "Bool": "bool",
             "ComplexFloat": "complex64", "ComplexDouble": "complex128"}
Raw = np.ndarray[Any, Any]


def mapped(path: Any) -> Raw | None:
    """The bytes of a zip file, mapped into memory: writes to them stay in this process; None of any other file."""
    if not isinstance(path, str | os.PathLike) or not Path(path).is_file():
        return None
    with open(path, "rb") as stream:
        if stream.read(len(ZIP)) != ZIP:
            return None
        return np.frombuffer(mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_COPY), np.uint8)


def check_format(start: bytes, name: str) -> None:
    """UserError (MLC0748) for the first bytes of a file that PyTorch wrote in a format before that of 1.6."""
    if (start[:1] == b"\x80" and start[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05")) or start[257:262] == b"ustar":
        kind = "tar file" if start[257:262] == b"ustar" else "pickle"
        raise UserError(f"{name} is a {kind}, which may be a file of a PyTorch before 1.6, and is not read",
                        code="MLC0748", loc=user_loc(),
                        hint="load it in PyTorch, and save it again: torch.save(state, path) writes a zip file")


def read(raw: Raw, name: str, map_location: str | None = None) -> Any:
    """The object of a file that `torch.save` wrote.

    Args:
        raw: Its bytes, which may be hostile; tensors have their memory.
        name: The file's name, for messages.
        map_location: Device of all tensors; None for the one that each was on.

    Raises:
        UserError: It names what is not on the list, or a tensor is of a kind that mlc lacks (MLC0747), or the file is
            damaged or of another format (MLC0748).
    """
    try:
        archive = _Archive(raw)
        return loads(archive.record("data.pkl").tobytes(), _table(map_location), archive.storage)
    except RefusedGlobal as error:
        raise UserError(f"{name} names {error.name} at byte {error.position} of its pickle, which is not on the list "
                        "of names for files of data", code="MLC0747", loc=user_loc(), hint=_hint(error.name)) from None
    except UserError as error:
        if error.code == "MLC0747":
            error.message = f"{name}: {error.message}"
        raise
    except (DamagedPickle, zipfile.BadZipFile, ValueError, TypeError, IndexError, KeyError, OverflowError,
            AttributeError, NotImplementedError, struct.error, EOFError, RecursionError) as error:
        raise UserError(f"{name} is no file of torch.save, or it is damaged: {error}", code="MLC0748",
                        loc=user_loc()) from None


def _hint(name: str) -> str:
    if name.startswith(("torch.nn.modules", "torch.nn.parallel")) or not name.startswith(
            ("torch.", "numpy.", "builtins.", "os.", "posix.", "collections.", "pathlib.")):
        return "it seems to hold whole objects: save their state_dict() in PyTorch"
    return "save only tensors, numbers, strings and containers of them in PyTorch, such as state_dict()"


def _refuse(what: str) -> UserError:
    return UserError(what, code="MLC0747", loc=user_loc(), hint="convert the tensor in PyTorch, and save it again")


# -- the archive ------------------------------------------------------------------------------------------------------
@dataclass
class Stored:
    """A storage: its bytes, the device it was on, its dtype or None, the tensors made of it, and what others read."""

    raw: Raw
    location: str
    dtype: DType | None
    tensors: list[Tensor] = field(default_factory=list)
    shared: Storage | None = None
    changed: dict[tuple[DType, bool, bool], Stored] = field(default_factory=dict)


class _Archive:
    """The records of a file by name, without the folder that they are all in."""

    def __init__(self, raw: Raw) -> None:
        self.raw = raw
        self.storages: dict[str, Stored] = {}
        with zipfile.ZipFile(io.BufferedReader(_Bytes(raw))) as listing:
            entries = listing.infolist()
        names = [entry.filename for entry in entries]
        if len(set(names)) != len(names):
            raise DamagedPickle("two records have one name")
        root = next((n.removesuffix("data.pkl") for n in names if n.count("/") == 1 and n.endswith("/data.pkl")), None)
        if root is None:
            raise DamagedPickle("it is a zip file without the record data.pkl" + (
                ", but with arrays of numpy (np.load)" if any(n.endswith(".npy") for n in names) else ""))
        self.entries = {e.filename.removeprefix(root): e for e in entries if e.filename.startswith(root)}
        if "constants.pkl" in self.entries or any(n.startswith("code/") for n in self.entries):
            raise DamagedPickle("it is a TorchScript program, whose weights are "
                                "torch.jit.load(path).state_dict()")
        if "byteorder" in self.entries and self.record("byteorder").tobytes() != b"little":
            raise DamagedPickle("its numbers are big-endian")

    def record(self, name: str) -> Raw:
        """The bytes of a record, compared with its checksum."""
        if name not in self.entries:
            raise DamagedPickle(f"it has no record {name}")
        entry = self.entries[name]
        if entry.compress_type != zipfile.ZIP_STORED or entry.flag_bits & 1 or entry.file_size != entry.compress_size:
            raise DamagedPickle(f"the record {name} is compressed or encrypted, as torch.save writes none")
        head = self.raw[entry.header_offset:entry.header_offset + _LOCAL.size].tobytes()
        signature, *_, name_length, extra_length = _LOCAL.unpack(head)
        start = entry.header_offset + _LOCAL.size + name_length + extra_length
        found = self.raw[start:start + entry.file_size]
        if signature != ZIP or len(found) != entry.file_size:
            raise DamagedPickle(f"the record {name} reaches beyond the file")
        if zlib.crc32(found.data) != entry.CRC:
            raise DamagedPickle(f"the record {name} does not have its checksum")
        return found

    def storage(self, pid: Any) -> Stored:
        """The storage that a pickle refers to: ("storage", type, record, device, number of elements)."""
        if not isinstance(pid, tuple) or len(pid) != 5 or pid[0] != "storage" or not atoms(*pid[2:4]):
            raise DamagedPickle("a reference to no storage")
        _, dtype, key, location, _ = pid
        if not (dtype is None or isinstance(dtype, DType)) or not isinstance(key, str):
            raise DamagedPickle("a reference to no storage")
        if key not in self.storages:
            self.storages[key] = Stored(self.record(f"data/{key}"), str(location), dtype)
        return self.storages[key]


class _Bytes(io.RawIOBase):
    """An array of bytes as a file, without a copy."""

    def __init__(self, raw: Raw) -> None:
        self._raw, self._at = raw.data, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        at = (0, self._at, len(self._raw))[whence] + offset
        if at < 0:
            raise ValueError("a position before the beginning")
        self._at = at
        return at

    def readinto(self, target: Any) -> int:
        part = self._raw[self._at:self._at + len(target)]
        target[:len(part)] = part
        self._at += len(part)
        return len(part)


# -- tensors ----------------------------------------------------------------------------------------------------------
def tensor_of(stored: Any, offset: Any, size: Any, stride: Any, dtype: DType | None, metadata: Any,
              place: str | None) -> Tensor:
    """The tensor of elements of a storage; those of one storage share its memory.

    metadata  what PyTorch does to the elements when it reads them, or None
    """
    if not isinstance(stored, Stored) or not isinstance(size, tuple) or not isinstance(stride, tuple):
        raise DamagedPickle("a tensor without a storage, size or stride")
    dtype = dtype or stored.dtype
    numbers = (offset, *size, *stride)
    if dtype is None or len(size) != len(stride) or any(type(n) is not int or n < 0 for n in numbers):
        raise DamagedPickle("a tensor whose sizes and strides make no sense")
    kind = dtype.dtype
    stored = _read_as(stored, dtype, {} if metadata is None else metadata)
    if len(size) > _MAX_DIMENSIONS or max((*size, *stride), default=0) > _MAX_ELEMENTS or (
            Size(size).numel() > _MAX_ELEMENTS):
        raise _refuse(f"a tensor of shape {list(size)[:8]} has more dimensions or elements than tensors have here")
    last = offset + sum((n - 1) * s for n, s in zip(size, stride)) if 0 not in size else -1
    if (last + 1) * kind.itemsize > len(stored.raw):
        raise DamagedPickle(f"a tensor of shape {list(size)} reaches beyond its storage")
    if 0 in size:
        array = np.zeros(size, kind)
    else:
        if stored.raw.ctypes.data % kind.alignment:
            stored.raw = stored.raw.copy()
        array = np.ndarray(size, kind, stored.raw, offset * kind.itemsize, tuple(s * kind.itemsize for s in stride))
    out = wrap(array)
    _share(stored, out)
    where = stored.location if place is None else place
    return out if where == "cpu" else out.to(where)


def _read_as(stored: Stored, dtype: DType, metadata: Any) -> Stored:
    """A storage with its elements conjugated or negated, which PyTorch does when it reads a tensor with these bits.

    All of its elements, and once for all tensors: a tensor may have each of them many times.
    """
    if type(metadata) is not dict or not metadata.keys() <= {"conj", "neg"} or any(
            type(x) is not bool for x in metadata.values()):
        raise _refuse("a tensor with other metadata than that it is conjugated or negated")
    conj, neg = metadata.get("conj", False), metadata.get("neg", False)
    if not conj and not neg:
        return stored
    if (dtype, conj, neg) not in stored.changed:
        x = stored.raw[:len(stored.raw) // dtype.dtype.itemsize * dtype.dtype.itemsize].copy().view(dtype.dtype)
        x = np.conjugate(x) if conj else x
        x = np.negative(x) if neg else x
        stored.changed[dtype, conj, neg] = Stored(x.view(np.uint8), stored.location, dtype)
    return stored.changed[dtype, conj, neg]


def _share(stored: Stored, tensor: Tensor) -> None:
    """Register a tensor with its storage, which exists once there are two, or one that is not in row-major order."""
    stored.tensors.append(tensor)
    if stored.shared is None and len(stored.tensors) == 1 and tensor._array.flags.c_contiguous:
        return
    new = [tensor]
    if stored.shared is None:
        stored.shared, new = Storage(stored.raw, True), stored.tensors
    for x in new:
        x._array.flags.writeable = False                   # writes go through the storage
        stored.shared.add(x)


def _table(place: str | None) -> dict[str, Any]:
    """The names that a pickle of `torch.save` may have, and their meaning."""
    def rebuilt(storage: Any, offset: Any, size: Any, stride: Any, requires_grad: Any = False, hooks: Any = None,
                metadata: Any = None) -> Tensor:
        out = tensor_of(storage, offset, size, stride, None, metadata, place)
        return out.requires_grad_() if requires_grad is True else out

    def rebuilt_as(storage: Any, offset: Any, size: Any, stride: Any, requires_grad: Any, hooks: Any, dtype: Any,
                   metadata: Any = None) -> Tensor:
        if not isinstance(dtype, DType):
            raise DamagedPickle("a tensor without a dtype")
        out = tensor_of(storage, offset, size, stride, dtype, metadata, place)
        return out.requires_grad_() if requires_grad is True else out

    def parameter(data: Any, requires_grad: Any, *rest: Any) -> Tensor:
        if type(data) is not Tensor:
            raise DamagedPickle("a parameter of no tensor")
        return mark_parameter(data, requires_grad is True)

    def of_type(callee: Any, kind: Any, arguments: Any, state: Any) -> Any:
        if type(callee) is not Callee or not isinstance(arguments, tuple):
            raise DamagedPickle("a tensor that nothing makes")
        return callee.function(*arguments)                 # its attributes are no data of the tensor

    dtypes = {f"torch.{d.name}": d for d in ALL}
    storages = {f"torch.{name}Storage": dtypes.get(f"torch.{dtype}") for name, dtype in STORAGES.items()}
    return {
        **dtypes, **{name: dtype for name, dtype in storages.items() if dtype is not None},
        "torch.storage.UntypedStorage": None, "torch._utils._rebuild_tensor_v3": Callee(rebuilt_as),
        "torch._utils._rebuild_tensor": Callee(rebuilt), "torch._utils._rebuild_tensor_v2": Callee(rebuilt),
        "torch._utils._rebuild_parameter": Callee(parameter),
        "torch._utils._rebuild_parameter_with_state": Callee(parameter),
        "torch._tensor._rebuild_from_type_v2": Callee(of_type), "torch.Tensor": object(),
        "torch.nn.parameter.Parameter": Callee(parameter), "torch.Size": Callee(_size), "torch.device": Callee(_device),
        "collections.OrderedDict": Callee(_ordered), "collections.Counter": Callee(_counter),
        "builtins.set": Callee(_set), "builtins.bytearray": Callee(_bytearray), "builtins.complex": Callee(_complex),
        "_codecs.encode": Callee(_encoded),
    }


# -- functions that pickles call ----------------------------------------------------------------------------------
def _size(sizes: Any) -> Size:
    if not isinstance(sizes, tuple) or not atoms(*sizes):
        raise DamagedPickle("a size of no integers")
    return Size(sizes)


def _device(kind: Any, index: Any = None) -> device:
    if not isinstance(kind, str) or not isinstance(index, int | None):
        raise DamagedPickle("a device without a name")
    return device(kind, index)


def _ordered(items: Any = ()) -> OrderedDict[Any, Any]:
    made = OrderedDict[Any, Any]()
    if not isinstance(items, list | tuple):
        raise DamagedPickle("an OrderedDict of no items")
    for key, value in items:
        if not atoms(key):
            raise DamagedPickle("an OrderedDict whose keys are no strings or numbers")
        made[key] = value
    return made


def _counter(counts: Any = None) -> Counter[Any]:
    if counts is not None and type(counts) is not dict:
        raise DamagedPickle("a Counter of no dict")
    return Counter(counts or {})


def _set(members: Any = ()) -> set[Any]:
    if not isinstance(members, list | tuple) or not atoms(*members):
        raise DamagedPickle("a set of neither strings nor numbers")
    return set(members)


def _bytearray(data: Any = b"", encoding: Any = None) -> bytearray:
    return bytearray(data if isinstance(data, bytes) else _encoded(data, encoding))


def _complex(real: Any, imaginary: Any) -> complex:
    if type(real) is not float or type(imaginary) is not float:
        raise DamagedPickle("a complex number of no numbers")
    return complex(real, imaginary)


def _encoded(text: Any, encoding: Any = "latin1") -> bytes:
    if not isinstance(text, str) or encoding not in ("latin1", "latin-1"):
        raise DamagedPickle("bytes in an unknown encoding")
    return text.encode("latin1")
