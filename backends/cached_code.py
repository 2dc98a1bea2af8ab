"""Code of recorded modules, cached in the process and, if possible, on the machine."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from mlc.dialects.builtin import Module
from mlc.ir import changes, logs
from mlc.ir.compilation_lock import compiling
from mlc.ir.printer import to_text

if TYPE_CHECKING:
    from mlc.backends.cuda.image import DeviceImage
    from mlc.backends.fingerprint import LocationTable
    from mlc.backends.image import Image
    from mlc.backends.toolchain import Executable, Toolchain

RECENT = 1024
"""Number of unreferenced programs that stay loaded, so that one that is compiled repeatedly is compiled once."""
_cache: dict[tuple[str, Any], Executable] = {}
"""Loaded code by the key of its module and its placement, the least recently used first."""


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
        text = _text(module) if cache else None
        if text is None:
            found: Executable = toolchain.load(make(module))
            return found.at(locations.interface)              # type: ignore[no-any-return]
        key = _key(text, toolchain)
        known = key, toolchain.load_context()
        if known in _cache:
            logs.write("cache", f"{key[:16]} is loaded already", key=key, found="process")
        if known not in _cache:
            _cache[known] = toolchain.load(_cached(text, module, toolchain, locations, make))
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
        text = _text(module)
        made = make(module) if text is None else _cached(text, module, toolchain, locations, make)
        return made.at(locations.interface)                   # type: ignore[no-any-return]


def _text(module: Module) -> str | None:
    """The text that the code of a module depends on; None if it depends on rules or operations of others, too."""
    from mlc.backends import fingerprint, named_code
    text = None if changes.choice() else fingerprint.structural_text(module)
    if text is None or not named_code.folder():
        return text
    return "\n".join([text, *(str(op.loc) for op in module.walk())])      # places, which the code then has


def _key(text: str, toolchain: Toolchain) -> str:
    """Cache key of the code of a module with this text."""
    from mlc.backends import cache
    return cache.key_of(toolchain.kind, [text, *toolchain.key()])


def _cached(text: str, module: Module, toolchain: Toolchain, locations: LocationTable,
            make: Callable[[Module], Any]) -> Any:
    """Look an image up in the compile cache and in what has come with mlc, or make and store it."""
    from mlc.backends import named_code
    key, found = _key(text, toolchain), "machine"
    image = toolchain.lookup(key)
    if image is None:
        image, found = toolchain.installed(text), "installation"
    how = "made" if image is None else f"in the {'cache of the machine' if found == 'machine' else found}"
    logs.write("cache", f"{key[:16]} is {how}", key=key, found="" if image is None else found)
    if image is None:
        with nullcontext() if named_code.folder() else locations.numbered():
            image = make(module)
        toolchain.store(key, image)
    else:
        for name in logs.OF_PASSES:
            logs.write(name, f"{key[:16]} is {how} and goes through no passes; MLC_CACHE=0 makes it anew", key=key,
                       found=found)
    return image
