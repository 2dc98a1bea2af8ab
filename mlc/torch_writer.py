"""Files that `torch.load(path, weights_only=True)` reads: a zip file of a pickle and a record for each tensor."""

from __future__ import annotations

import io
import struct
import zipfile
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

import numpy as np

from mlc.frontend.dtypes import DType
from mlc.frontend.location import user_loc
from mlc.frontend.size import Size
from mlc.frontend.tensor import Tensor
from mlc.ir.diag import UserTypeError
from mlc.nn.parameter import Parameter
from mlc.saved_memory import Memory, shared_memory
from mlc.torch_file import STORAGES

_TYPED = {dtype: f"{name}Storage" for name, dtype in STORAGES.items()}
_CONSTANTS = {None: b"N", True: b"\x88", False: b"\x89"}


def contents(x: Any) -> list[bytes]:
    """The bytes of the file of an object; UserTypeError (MLC0764) if it holds what PyTorch would not load as data."""
    reader = _Writer(None)
    for _ in reader.value(x):
        pass
    writer = _Writer(shared_memory(reader.tensors))
    pickled = b"".join([b"\x80\x02", *writer.value(x), b"."])
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, data in (("data.pkl", pickled), ("byteorder", b"little"), *writer.records, ("version", b"3\n")):
            archive.writestr(zipfile.ZipInfo(f"archive/{name}"), data)
    return [file.getvalue()]


def _global(module: str, name: str) -> bytes:
    return f"c{module}\n{name}\n".encode()


_ORDERED = _global("collections", "OrderedDict") + b")R"


class _Writer:
    """A pickle in parts; what is one tensor several times is one record, and so is memory that several share.

    memory   the memory of the tensors that share it, by their identity; None to find out about the tensors alone
    tensors  those that were found
    """

    def __init__(self, memory: dict[int, Memory] | None) -> None:
        self.memory = memory
        self.tensors: list[Tensor] = []
        self.records: list[tuple[str, bytes]] = []
        self.keys: dict[int, tuple[str, Any]] = {}
        self.open: set[int] = set()

    def value(self, x: Any) -> Iterator[bytes]:
        if x is None or type(x) is bool:
            yield _CONSTANTS[x]
        elif type(x) is int:
            data = x.to_bytes(x.bit_length() // 8 + 1, "little", signed=True)
            yield b"\x8b" + struct.pack("<i", len(data)) + data if len(data) > 255 else b"\x8a" + bytes(
                [len(data)]) + data
        elif type(x) is float:
            yield b"G" + struct.pack(">d", x)
        elif isinstance(x, str):
            data = str(x).encode("utf-8", "surrogatepass")
            yield b"X" + struct.pack("<I", len(data)) + data
        elif isinstance(x, DType):
            yield _global("torch", x.name)
        elif isinstance(x, Tensor):
            yield from self._tensor(x)
        elif isinstance(x, np.ndarray | np.generic):
            yield from self._tensor(Tensor(np.asarray(x)))
        else:
            yield from self._container(x)

    def _container(self, x: Any) -> Iterator[bytes]:
        if id(x) in self.open or not isinstance(x, dict | list | tuple | set):
            what = f"{type(x).__name__}" + " that contains itself" * (id(x) in self.open)
            raise UserTypeError(f"PyTorch loads no {what} as data", code="MLC0764", loc=user_loc(),
                                hint="save tensors, numbers, strings and containers of them")
        self.open.add(id(x))
        if isinstance(x, dict):
            yield (_ORDERED if isinstance(x, OrderedDict) else b"}") + b"("
            for item in x.items():
                for part in item:
                    yield from self.value(part)
            yield b"u"
        elif isinstance(x, tuple):
            yield _global("torch", "Size") + b"(" if isinstance(x, Size) else b""
            yield from (b"(", *(data for part in x for data in self.value(part)), b"t")
            yield b"tR" if isinstance(x, Size) else b""
        else:
            yield _global("builtins", "set") + b"(](" if isinstance(x, set) else b"]("
            yield from (data for part in x for data in self.value(part))
            yield b"etR" if isinstance(x, set) else b"e"
        self.open.discard(id(x))

    def _tensor(self, x: Tensor) -> Iterator[bytes]:
        if self.memory is None:
            self.tensors.append(x)
            return
        shared = self.memory.get(id(x))
        array = np.ascontiguousarray(x.detach().cpu().numpy()).reshape(x.shape) if shared is None else shared.raw
        key = id(x) if shared is None else id(shared)
        if key not in self.keys:
            self.keys[key] = str(len(self.records)), x     # which keeps it, so that no other one gets this id
            self.records.append((f"data/{self.keys[key][0]}", array.tobytes()))
        offset, strides = (0, tuple(n // array.itemsize for n in array.strides)) if shared is None else shared.place(x)
        typed = _TYPED.get(x.dtype.name)
        yield _global("torch._utils", "_rebuild_parameter") + b"(" if isinstance(x, Parameter) else b""
        yield _global("torch._utils", "_rebuild_tensor_v2" if typed else "_rebuild_tensor_v3") + b"(("
        yield from self.value("storage")
        yield _global("torch", typed) if typed else _global("torch.storage", "UntypedStorage")
        for part in (self.keys[key][0], "cpu", array.nbytes // x.dtype.itemsize if typed else array.nbytes):
            yield from self.value(part)
        yield b"tQ"
        for value in (offset, tuple(map(int, x.shape)), strides, x.requires_grad and not isinstance(x, Parameter)):
            yield from self.value(value)
        yield _ORDERED + (b"" if typed else _global("torch", x.dtype.name)) + b"tR"
        if isinstance(x, Parameter):
            yield from (*self.value(bool(x.requires_grad)), _ORDERED + b"tR")
