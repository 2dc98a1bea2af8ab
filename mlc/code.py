"""Code of recorded modules, cached in the process and, if possible, on the machine."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from mlc.dialects.builtin import Module
from mlc.frontend.compiler import compiling
from mlc.frontend.devices import CPU, as_device, is_device
from mlc.frontend.location import user_loc
from mlc.ir import changes, logs
from mlc.ir.diag import BackendError, UserError
from mlc.ir.instrumentation import CHECKS, NONE, TIMES, Instrumentation
from mlc.ir.printer import to_text

if TYPE_CHECKING:
    from mlc.backends.cuda.image import DeviceImage
    from mlc.backends.cuda.memory import DeviceMemory
    from mlc.backends.fingerprint import LocationTable
    from mlc.backends.image import Image
    from mlc.backends.target import Target
    from mlc.backends.toolchain import Executable, Toolchain

RECENT = 1024
"""Number of unreferenced programs that stay loaded, so that one that is compiled repeatedly is compiled once."""
_cache: dict[tuple[str, Any], Executable] = {}
"""Loaded code by the key of its module and its placement, the least recently used first."""


class Checked:
    """Whether all code reports what is undefined, as of passes/insert_checks: what `mlc run --checked` asks for."""

    always = False


@dataclass(frozen=True)
class Placement:
    """The device of a function, and the requirements on its code.

    device     "cpu" or "cuda:0"; None: that of its arguments
    target     the machine to compile for; None: this one
    graph      whether to launch all kernels of a call as one CUDA graph, if possible
    precision  of matrix products: "ieee", "tf32" or None
    added      what the code has besides: checks, or the times of kernels, if it is to run on a processor of this
               process
    threads    maximum number of threads that the code uses at once; None: that of the process
    cache      whether code may come from the caches of the process and of the machine, and go there
    """

    device: str | None = CPU
    target: Target | None = None
    graph: bool = False
    precision: str | None = None
    added: Instrumentation = NONE
    threads: int | None = None
    cache: bool = True

    def at(self, device: str) -> Placement:
        """The same for arguments that are on this device."""
        return self if self.device is not None else replace(self, device=device)

    def toolchain(self, here: bool = True) -> Toolchain:
        """Toolchain that generates the code; `here` says whether it is to run in this process."""
        from mlc.backends.toolchain import toolchain_for
        assert self.device is not None, "arguments tell the device"
        try:
            return toolchain_for(self.device, self.target, graph=self.graph, precision=self.precision,
                                 added=self._added(here), threads=self.threads, here=here)
        except (UserError, BackendError) as error:         # there is no such device, or no such code for it
            error.loc = user_loc()
            raise

    def timed(self, timed: bool) -> Placement:
        """The same for code that a profile times, unless it is checked."""
        return replace(self, added=TIMES) if timed and self.added is NONE else self

    def _added(self, here: bool) -> Instrumentation:
        """The instrumentation: saved code has none of times, and checked code runs as checks need it."""
        if Checked.always and self.device == CPU:
            return CHECKS
        return NONE if self.added is TIMES and not (here and self.device == CPU) else self.added

    def named(self, text: str) -> Placement:
        """The same for a machine that code is made for and that need not be this one."""
        from mlc.backends.cpu.targets import LEVELS
        device, target = (CPU, LEVELS[text]) if text in LEVELS else target_named(text)
        return replace(self, device=device, target=target)


def target_named(text: str | None) -> tuple[str | None, Target | None]:
    """The device that a target names, and the target of the code; None for what it does not specify."""
    if text is None or text == "host":
        return (None if text is None else CPU), None
    if is_device(text) and (text.partition(":")[2].isdigit() or ":" not in text):
        return as_device(text), None
    from mlc.backends.target import Target
    try:
        target = Target.parse(text)
    except BackendError as error:
        raise UserError(error.message, code=error.code, loc=user_loc(), hint=f'{error.hint}, "cpu", "cuda"') from None
    if not target.is_gpu:
        raise UserError(f"what is compiled here runs here, and {text} may be another machine", code="MLC0501",
                        loc=user_loc(), hint='use target="host"; mlc compile --target makes code for other machines')
    return f"{target.vendor}:0", target


def loaded(module: Module, toolchain: Toolchain, make: Callable[[Module], Any], cache: bool = True) -> Executable:
    """Load the code of a module of the tensor level, compiled once per process and, with the cache, once per machine.

    Modules that differ in names and locations only share code.

    make   compiles the module; called on a cache miss
    cache  False compiles it anew and stores nothing
    """
    from mlc.backends.fingerprint import LocationTable
    with compiling:
        if logs.wants("graph"):
            logs.write("graph", "\n" + to_text(module), module=to_text(module))
        locations = LocationTable(module)
        key = _key(module, toolchain) if cache else None
        if key is None:
            found: Executable = toolchain.load(make(module))
            return found.at(locations.interface)              # type: ignore[no-any-return]
        known = key, toolchain.load_context()
        if known in _cache:
            logs.write("cache", f"{key[:16]} is loaded already", key=key, found="process")
        if known not in _cache:
            _cache[known] = toolchain.load(_cached(key, module, toolchain, locations, make))
        found = _cache[known] = _cache.pop(known)
        if len(_cache) > RECENT:
            del _cache[next(iter(_cache))]
        return found.at(locations.interface)                  # type: ignore[no-any-return]


def image_of(module: Module, toolchain: Toolchain) -> Image | DeviceImage:
    """Image of a module of the tensor level, not loaded: its target need not be this machine."""
    def make(module: Module) -> Any:
        return toolchain.compile(toolchain.lower(module), cache=True)

    from mlc.backends.fingerprint import LocationTable
    with compiling:
        locations = LocationTable(module)
        key = _key(module, toolchain)
        made = make(module) if key is None else _cached(key, module, toolchain, locations, make)
        return made.at(locations.interface)                   # type: ignore[no-any-return]


def _key(module: Module, toolchain: Toolchain) -> str | None:
    """Cache key of the code of a module; None if it depends on rules or operations that are defined elsewhere."""
    from mlc.backends import cache, fingerprint, named_code
    text = fingerprint.structural_text(module)
    if text is None or changes.choice():
        return None
    places = [str(op.loc) for op in module.walk()] if named_code.folder() else []       # which the code then has
    return cache.key_of(toolchain.kind, [text, *places, *toolchain.key()])


def _cached(key: str, module: Module, toolchain: Toolchain, locations: LocationTable,
            make: Callable[[Module], Any]) -> Any:
    """Look an image up in the compile cache, or make and store it."""
    from mlc.backends import named_code
    image = toolchain.lookup(key)
    logs.write("cache", f"{key[:16]} is {'made' if image is None else 'in the cache of the machine'}", key=key,
               found="" if image is None else "machine")
    if image is None:
        with nullcontext() if named_code.folder() else locations.numbered():
            image = make(module)
        toolchain.store(key, image)
    return image


def device_memory(device: str) -> DeviceMemory:
    """The memory of a device such as `cuda:0`; BackendError at the user's line if there is none."""
    from mlc.backends.target import part_of
    vendor, _, ordinal = device.partition(":")
    try:
        return part_of(vendor, "toolchain").device_memory(int(ordinal or 0))  # type: ignore[no-any-return]
    except BackendError as error:
        error.loc = user_loc()
        raise
