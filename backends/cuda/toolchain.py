"""Toolchain for NVIDIA GPUs: from a recorded module to kernels and the host program that launches them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mlc.backends.cuda import foreign, image
from mlc.backends.cuda.devices import assembler, target_for
from mlc.backends.cuda.executable import Entry, Executable, device_memory
from mlc.backends.cuda.image import DeviceImage
from mlc.backends.cuda.memory import DeviceMemory
from mlc.backends.cuda.targets import architecture, runs_on
from mlc.backends.target import Target
from mlc.dialects.builtin import Module
from mlc.ir.core import Op
from mlc.ir.instrumentation import NONE, Instrumentation
from mlc.ir.machine import GPU
from mlc.passes import pipeline


class Toolchain:
    """Toolchain of one GPU architecture and one device.

    form, assemble  kind of loadable code, and its assembler
    memory          device memory; None if the code is not loaded
    graph           whether the kernels of a call are launched as one CUDA graph
    precision       precision of matrix products, as set by the user
    """

    kind = "cuda"

    def __init__(self, target: Target, form: str, assemble: Callable[[Op, Target], bytes],
                 memory: DeviceMemory | None = None, graph: bool = False, precision: str | None = None) -> None:
        self.target, self.form, self.assemble = target, form, assemble
        self.memory, self.graph, self.precision = memory, graph, precision

    def key(self) -> Sequence[str]:
        return str(pipeline.order(self.target.machine)), repr(self.target), self.form, str(self.precision)

    def load_context(self) -> tuple[DeviceMemory | None, bool]:
        return self.memory, self.graph

    def lower(self, module: Module) -> Module:
        pipeline.lower(module, "low", self.target.machine, products=self.target.products(self.precision))
        return module

    def compile(self, module: Module, cache: bool) -> DeviceImage:
        return image.image_of(module, self.target, self.assemble)

    def load(self, image: DeviceImage) -> Executable:
        assert self.memory is not None, "this toolchain compiles for a device that is not present"
        return Executable(image, self.memory, self.graph)

    def lookup(self, key: str) -> DeviceImage | None:
        return image.lookup(key)

    def installed(self, text: str) -> None:
        """None has."""

    def store(self, key: str, made: DeviceImage) -> None:
        image.store(key, made)


def toolchain(device: str, target: Target | None = None, *, graph: bool = False, precision: str | None = None,
              added: Instrumentation = NONE, threads: int | None = None, here: bool = True) -> Toolchain:
    """The toolchain of `cuda:N`; times and `threads` apply to processors only. Raises UserError if checked code is
    requested, and BackendError if the device is needed and does not exist."""
    pipeline.order(GPU, added)
    ordinal = int(device.partition(":")[2] or 0)
    if here:
        memory = device_memory(ordinal)
        return Toolchain(target or target_for(memory.device), memory.device.form, memory.device.assemble, memory, graph,
                         precision)
    return Toolchain(target or target_for(device_memory(ordinal).device), *assembler(), precision=precision)


def import_dlpack(x: Any) -> Any:
    """Import a tensor of another library on one of these devices by DLPack, without a copy."""
    return foreign.import_dlpack(x, device_memory(x.__dlpack_device__()[1]))


def entry(images: Sequence[DeviceImage], memory: DeviceMemory, name: str) -> Entry:
    """Entry point of the best of several images for a device. Raises BackendError if it runs none of them."""
    fitting = [image for image in images if runs_on(image.target, memory.device.architecture)]
    best = max(fitting or images, key=lambda image: (architecture(image.target), image.target.cpu))
    return Executable(best, memory).entry(name)
