"""GPU code with the host functions that launch it, as stored in the compile cache and in saved models."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mlc.backends import cache
from mlc.backends.checksummed import CorruptFile
from mlc.backends.dataclass_json import from_json
from mlc.backends.image import Image
from mlc.backends.target import Target
from mlc.dialects import gpu, memref
from mlc.ir import abi
from mlc.ir.abi import Interface
from mlc.ir.core import Op
from mlc.ir.diag import Error
from mlc.ir.parser import Parser, parse_module
from mlc.ir.printer import to_text
from mlc.ir.types import ScalarType, from_numpy, to_numpy
from mlc.passes import pipeline

Array = np.ndarray[Any, Any]
KIND = "cuda"


@dataclass(frozen=True)
class DeviceImage:
    """A program for a GPU.

    code        kernels, in the form that the device loads: PTX
    host        IR text of the functions that launch them
    data        constants
    interfaces  interface of each public function
    target      GPUs that can run it
    """

    code: bytes
    host: str
    data: Mapping[str, Array]
    interfaces: Mapping[str, Interface]
    target: Target

    def at(self, interface: Callable[[Interface], Interface]) -> DeviceImage:
        """The same code under mapped interfaces: other names and locations."""
        changed = {name: interface(old) for name, old in self.interfaces.items()}
        return self if changed == self.interfaces else replace(self, interfaces=changed)

    def head(self) -> dict[str, Any]:
        """All fields but the pieces, as JSON data."""
        return {**Image(b"", self.interfaces, self.target).head(),
                "data": [[name, str(from_numpy(a.dtype)), list(a.shape)] for name, a in self.data.items()]}

    def pieces(self) -> dict[str, bytes]:
        """The code, the host functions and the data."""
        return {"code": self.code, "host": self.host.encode("utf-8", "surrogatepass"),
                **{f"data {name}": a.tobytes() for name, a in self.data.items()}}

    @staticmethod
    def of(head: Any, pieces: Mapping[str, bytes | memoryview]) -> DeviceImage:
        """The image with this head and these pieces; raises CorruptFile if they are ill-formed."""
        if not isinstance(head, dict) or "data" not in head:
            raise CorruptFile("what it says of its code is ill-formed")
        known = Image.of({name: value for name, value in head.items() if name != "data"}, b"")
        constants = from_json(head["data"], tuple[tuple[str, str, tuple[int, ...]], ...])
        try:
            data = {name: np.frombuffer(pieces[f"data {name}"], _dtype(dtype)).reshape(shape)
                    for name, dtype, shape in constants}
            return DeviceImage(bytes(pieces["code"]), bytes(pieces["host"]).decode("utf-8", "surrogatepass"), data,
                               known.interfaces, known.target)
        except (KeyError, ValueError, Error) as error:
            raise CorruptFile(f"what it says of its code is ill-formed: {error}") from None

    def program(self) -> Op:
        """The functions that launch kernels."""
        return parse_module(self.host, "host")


def compile_image(module: Op, target: Target, assemble: Callable[[Op, Target], bytes],
                  precision: str | None = None) -> DeviceImage:
    """Compile a module of the tensor level, which is lowered in place.

    assemble   compiles its kernels
    precision  precision of matrix products, as set by the user
    """
    pipeline.lower(module, "low", target.machine, products=target.products(precision))
    return image_of(module, target, assemble)


def image_of(module: Op, target: Target, assemble: Callable[[Op, Target], bytes]) -> DeviceImage:
    """The image of a lowered module: kernels, and the functions that launch them."""
    body = module.regions[0].block
    data: dict[str, Array] = {}
    for op in body:
        if isinstance(op, memref.Global) and op.initial_value is not None:
            data[str(op.sym_name)], op.initial_value = np.ascontiguousarray(op.initial_value), None
    found = {i.name: i for i in (abi.interface_of(op) for op in body if abi.is_entry(op))}
    holders = [op for op in body if isinstance(op, gpu.GPUModule)]
    code = assemble(module, target) if holders else b""
    for op in holders:
        op.detach()
    return DeviceImage(code, to_text(module, locations=False), data, found, target)


# -- in the cache -----------------------------------------------------------------------------------------------------
def lookup(key: str) -> DeviceImage | None:
    """Image of a key in the compile cache; None if there is none."""
    entries = cache.store()
    found = entries.get(KIND, key) if entries is not None else None
    if found is None:
        return None
    try:
        return DeviceImage.of(*found)
    except CorruptFile:
        return None


def store(key: str, image: DeviceImage) -> None:
    """Put an image into the compile cache, if there is one."""
    if (entries := cache.store()) is not None:
        entries.put(KIND, key, image.head(), image.pieces())


def _dtype(text: str) -> np.dtype[Any]:
    type = Parser(text, "an element type").type()
    if not isinstance(type, ScalarType):
        raise TypeError(f"{text} is not an element type")
    return to_numpy(type)
