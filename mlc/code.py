"""Native code of recorded modules: made once in this process, and kept where it can be.

    passes (passes/pipeline.py) -> llvm dialect -> native code (backends/executable.py)
                                -> kernels -> PTX (backends/cuda/executable.py)

Importing it gives the frontend its compiler.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from mlc.dialects.builtin import Module
from mlc.frontend.devices import CPU, CUDA, Devices
from mlc.frontend.eager import Compiler, compiling
from mlc.frontend.location import user_loc
from mlc.ir import changes
from mlc.ir.core import Op
from mlc.ir.diag import BackendError, UserError

if TYPE_CHECKING:
    from mlc.backends.canonical import Places
    from mlc.backends.cuda.executable import Executable as DeviceExecutable
    from mlc.backends.cuda.image import DeviceImage
    from mlc.backends.cuda.memory import DeviceArray, Place
    from mlc.backends.executable import Executable
    from mlc.backends.image import Image
    from mlc.backends.target import Target

RECENT = 1024
"""So many programs stay loaded that nobody holds: one that is compiled again and again costs that once."""
_cache: dict[str, Executable] = {}
"""Native code by the key of the module it was made from, the least recently wanted first."""
_device_cache: dict[tuple[str, Place, bool], DeviceExecutable] = {}
"""The same for devices, on which code is loaded, and whether it is launched as a graph."""


class Checked:
    """Whether all code reports what is undefined, as of passes/insert_checks: what `mlc run --checked` asks for."""

    always = False


def executable(module: Module, checked: bool = False) -> Executable:
    """Native code of a module of the tensor level, made once in this process and, where it can be kept, once on this
    machine: modules that differ in names and places only share it.

    checked  whether it reports what is undefined, as of passes/insert_checks
    """
    from mlc.backends.canonical import Places
    from mlc.backends.executable import Executable
    from mlc.backends.target import host
    with compiling:
        places = Places(module)
        key, image = _image(module, places, host(), checked or Checked.always)
        if key is None:                                    # rules or operations of others: they may change
            return Executable(image()).at(places.interface)
        if (found := _cache.pop(key, None)) is None:
            found = Executable(image())
        _cache[key] = found
        if len(_cache) > RECENT:
            del _cache[next(iter(_cache))]
        return found.at(places.interface)


def _image(module: Module, places: Places, target: Target, checked: bool) -> tuple[str | None, Callable[[], Image]]:
    """What a module's code for processors is known by, None for that of others' rules; and what gives it."""
    from mlc.backends import cache, canonical, image  # LLVM comes in only when something must be compiled
    from mlc.passes import pipeline
    text = canonical.canonical_text(module)
    key = None if text is None or changes.choice() else cache.key_of(
        "module", [text, str(pipeline.order("cpu", checked)), repr(target)])

    def made() -> Image:
        if key is not None and (kept := image.recall(key)) is not None:
            return kept
        with places.numbered() if key is not None else nullcontext():
            pipeline.lower(module, "llvm", target.vector_bits, checked=checked)
            new = image.compile_image(module, target)
        if key is not None:
            image.keep(key, new)
        return new

    return key, made


def device_executable(module: Module, where: Place, target: Target, graph: bool = False,
                      precision: str | None = None) -> DeviceExecutable:
    """The same for a device: PTX is made once on this machine, and loaded once in this process."""
    from mlc.backends.canonical import Places
    from mlc.backends.cuda.executable import Executable
    with compiling:
        places = Places(module)
        key, image = _device_image(module, places, target, where.device.form, where.device.assemble, precision)
        if key is None:
            return Executable(image(), where, graph).at(places.interface)
        if (found := _device_cache.pop((key, where, graph), None)) is None:
            found = Executable(image(), where, graph)
        _device_cache[key, where, graph] = found
        if len(_device_cache) > RECENT:
            del _device_cache[next(iter(_device_cache))]
        return found.at(places.interface)


def _device_image(module: Module, places: Places, target: Target, form: str,
                  assemble: Callable[[Op, Target], bytes],
                  precision: str | None) -> tuple[str | None, Callable[[], DeviceImage]]:
    """What a module's code for devices is known by, None for that of others' rules; and what gives it."""
    from mlc.backends import cache, canonical
    from mlc.backends.cuda import image
    from mlc.passes import pipeline
    text = canonical.canonical_text(module)
    key = None if text is None or changes.choice() else cache.key_of(
        "cuda", [text, str(pipeline.ORDERS["gpu"]), repr(target), form, str(precision)])

    def made() -> DeviceImage:
        if key is not None and (kept := image.recall(key)) is not None:
            return kept
        with places.numbered() if key is not None else nullcontext():
            new = image.compile_image(module, target, assemble, precision)
        if key is not None:
            image.keep(key, new)
        return new

    return key, made


def image_for(module: Module, where: str, target: Target | None = None,
              precision: str | None = None, checked: bool = False) -> Image | DeviceImage:
    """The code of a module for a machine, which need not be this one; of `cuda` alone for the device that is here."""
    from mlc.backends.canonical import Places
    if where == CPU:
        if target is None:
            return executable(module, checked).linked
        with compiling:
            places = Places(module)
            return _image(module, places, target, checked)[1]().at(places.interface)
    _refuse_checks(checked)
    from mlc.backends.cuda.device import assembler, target_for
    target = target or target_for(place_named(where).device)
    with compiling:
        places = Places(module)
        _, image = _device_image(module, places, target, *assembler(), precision)
        return image().at(places.interface)


def code_for(module: Module, where: str, target: Target | None = None, graph: bool = False,
             precision: str | None = None, checked: bool = False) -> Executable | DeviceExecutable:
    """The code of a module for the device of this name, for exactly `target` if one is given."""
    if where == CPU:
        return executable(module, checked)
    _refuse_checks(checked)
    place = place_named(where)
    from mlc.backends.cuda.device import target_for
    return device_executable(module, place, target or target_for(place.device), graph, precision)


def _refuse_checks(checked: bool) -> None:
    """UserError if checked code is asked for that is for a device."""
    from mlc.passes import pipeline
    try:
        pipeline.order("gpu", checked)
    except UserError as error:
        error.loc = user_loc()
        raise


def place_named(where: str) -> Place:
    """The memory of the device `cuda:N`; BackendError at the user's line if there is none."""
    from mlc.backends.cuda.executable import place
    try:
        return place(int(where.partition(":")[2] or 0))
    except BackendError as error:
        error.loc = user_loc()
        raise


def _entry(module: Module, where: str) -> Any:
    return code_for(module, where).entry("main")


def _put(array: Any, where: str) -> DeviceArray:
    return place_named(where).array(array)


def _adopt(x: Any) -> DeviceArray:
    from mlc.backends.cuda.dlpack import adopt
    return adopt(x, place_named(f"{CUDA}:{x.__dlpack_device__()[1]}"))


Compiler.compile = staticmethod(_entry)
Devices.check = staticmethod(place_named)
Devices.put = staticmethod(_put)
Devices.adopt = staticmethod(_adopt)
