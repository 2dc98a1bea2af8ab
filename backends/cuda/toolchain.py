"""From a recorded module to kernels of an NVIDIA GPU and the program that launches them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mlc.backends.cuda import dlpack, image
from mlc.backends.cuda.device import assembler, target_for
from mlc.backends.cuda.executable import Entry, Executable, place
from mlc.backends.cuda.image import DeviceImage
from mlc.backends.cuda.memory import Place
from mlc.backends.cuda.targets import architecture
from mlc.backends.target import Target
from mlc.dialects.builtin import Module
from mlc.ir.core import Op
from mlc.ir.machine import GPU
from mlc.passes import pipeline


class Toolchain:
    """Code for one kind of GPU, loaded on one device.

    form, assemble  the kind of code that is loaded, and what makes it of kernels
    where           the memory of the device; None where code is only made
    graph           whether all kernels of a call are launched as one
    precision       of products of matrices, as users ask for it
    """

    kind = "cuda"

    def __init__(self, target: Target, form: str, assemble: Callable[[Op, Target], bytes], where: Place | None = None,
                 graph: bool = False, precision: str | None = None) -> None:
        self.target, self.form, self.assemble = target, form, assemble
        self.where, self.graph, self.precision = where, graph, precision

    def key(self) -> Sequence[str]:
        return str(pipeline.order(self.target.machine)), repr(self.target), self.form, str(self.precision)

    def home(self) -> tuple[Place | None, bool]:
        return self.where, self.graph

    def lower(self, module: Module) -> Module:
        pipeline.lower(module, "low", self.target.machine, products=self.target.products(self.precision))
        return module

    def compile(self, module: Module) -> DeviceImage:
        return image.image_of(module, self.target, self.assemble)

    def load(self, image: DeviceImage) -> Executable:
        assert self.where is not None, "this toolchain makes code for a device that need not be here"
        return Executable(image, self.where, self.graph)

    def recall(self, key: str) -> DeviceImage | None:
        return image.recall(key)

    def keep(self, key: str, made: DeviceImage) -> None:
        image.keep(key, made)


def toolchain(device: str, target: Target | None = None, *, graph: bool = False, precision: str | None = None,
              checked: bool = False, here: bool = True) -> Toolchain:
    """The toolchain of `cuda:N`. UserError if checked code is asked for, BackendError where there is no such device,
    unless only a target is needed."""
    pipeline.order(GPU, checked)
    ordinal = int(device.partition(":")[2] or 0)
    if here:
        where = place(ordinal)
        return Toolchain(target or target_for(where.device), where.device.form, where.device.assemble, where, graph,
                         precision)
    return Toolchain(target or target_for(place(ordinal).device), *assembler(), precision=precision)


def adopt(x: Any) -> Any:
    """The array of another library's tensor that is on one of these devices, sharing its memory."""
    return dlpack.adopt(x, place(x.__dlpack_device__()[1]))


def entry(images: Sequence[DeviceImage], where: Place, name: str) -> Entry:
    """A function of that among saved images that is best for a device. BackendError if it runs none of them."""
    fitting = [image for image in images if architecture(image.target) <= where.device.architecture]
    return Executable(max(fitting or images, key=lambda image: architecture(image.target)), where).entry(name)
