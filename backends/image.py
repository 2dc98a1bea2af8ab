"""Linked code with its interfaces and target, as stored in the compile cache and in saved models."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from mlc.backends import cache, named_code
from mlc.backends.checksummed import CorruptFile
from mlc.backends.dataclass_json import from_json, to_json
from mlc.backends.target import Target
from mlc.ir import abi
from mlc.ir.abi import HOOK, Interface
from mlc.ir.core import Op

if TYPE_CHECKING:
    from mlc.backends.kernel_units import KernelUnit


@dataclass(frozen=True)
class Head:
    """Description of an image's code, stored in its file."""

    interfaces: tuple[Interface, ...]
    target: Target
    undefined: tuple[str, ...]
    shares: bool


@dataclass(frozen=True)
class Image:
    """A shared object.

    interfaces  how each of its functions is called
    target      the machine it is for
    undefined   the external symbols it uses
    shares      whether it has parallel work, and so the variable HOOK
    """

    code: bytes
    interfaces: Mapping[str, Interface]
    target: Target
    undefined: tuple[str, ...] = ()
    shares: bool = False

    def head(self) -> dict[str, Any]:
        """All fields but the code, as JSON data."""
        out: dict[str, Any] = to_json(Head(tuple(self.interfaces.values()), self.target, self.undefined, self.shares))
        return out

    def at(self, interface: Callable[[Interface], Interface]) -> Image:
        """The same code under mapped interfaces: other names and locations."""
        changed = {name: interface(old) for name, old in self.interfaces.items()}
        return self if changed == self.interfaces else replace(self, interfaces=changed)

    @staticmethod
    def of(head: Any, code: bytes | memoryview) -> Image:
        """The image with this head; raises CorruptFile if the head is ill-formed."""
        known = from_json(head, Head)
        return Image(bytes(code), {i.name: i for i in known.interfaces}, known.target, known.undefined, known.shares)


# The compiler is imported lazily: a program whose image is cached never needs it.
def compile_image(module: Op, target: Target, opt_level: int = 2,
                  allowed: frozenset[str] = abi.ALLOWED_EXTERNALS, kernels: Sequence[KernelUnit] = ()) -> Image:
    """Compile a module of the llvm dialect, with the kernels that it only declares."""
    from mlc.backends import compile_many
    from mlc.backends.compilation_units import compilation_units
    if named_code.folder():
        return _for_debuggers(module, target, opt_level, allowed)
    units = compilation_units(module, target)
    objects = compile_many.objects([*kernels, *units], target, opt_level)
    return link_image(objects, abi.interfaces(module), target, allowed)


def _for_debuggers(module: Op, target: Target, opt_level: int, allowed: frozenset[str]) -> Image:
    """The image of a module as one object, whose functions keep their names, and which has the lines of the program."""
    from mlc.backends.debug_sections import attached
    from mlc.backends.emit_llvm import Part, emit
    from mlc.backends.object_code import compile_object
    made = compile_object(emit(module, target, Part(sources=True)), target, opt_level)
    image = link_image([made], abi.interfaces(module), target, allowed, [{}])
    return replace(image, code=attached(image.code, made))


def compile_kernels(module: Op, target: Target, opt_level: int = 2,
                    allowed: frozenset[str] = abi.ALLOWED_EXTERNALS) -> Image:
    """Compile a module of level `loop`: each kernel by itself, so that one that is known is not lowered either."""
    from mlc.backends.kernel_units import split_kernels
    from mlc.ir.passes import Pipeline
    from mlc.passes import pipeline
    kernels = [] if named_code.folder() else split_kernels(module, target)
    Pipeline(pipeline.below_loop(target.machine)).run(module)
    return compile_image(module, target, opt_level, allowed, kernels)


def link_image(objects: bytes | Sequence[bytes], interfaces: Mapping[str, Interface], target: Target,
               allowed: frozenset[str] = abi.ALLOWED_EXTERNALS,
               names: Sequence[Mapping[str, str]] | None = None) -> Image:
    """Link one or several relocatable objects.

    names  makes a table of all functions; of each object, the names that are shown for others
    """
    from mlc.backends.combine import combined, exportable, imports, renamed, variable
    from mlc.backends.link import link_file, read_objects
    source = read_objects(objects) if names is None or isinstance(objects, bytes) else renamed(objects, names)
    if HOOK in imports(source):                                # parallel kernels, and the rest has no parallel work
        source = combined([source, variable(HOOK, 8, source.machine)])
    shares = HOOK in exportable(source)
    exports = [name + abi.ENTRY_SUFFIX for name in interfaces] + [HOOK] * shares
    shown = None if names is None else {key: name for row in names for key, name in row.items()}
    code = link_file(source, exports, allowed, names=shown)
    return Image(code, interfaces, target, tuple(imports(source)), shares)


# -- in the cache -----------------------------------------------------------------------------------------------------
def lookup(key: str) -> Image | None:
    """Image of a key in the compile cache; None if there is none."""
    entries = cache.store()
    found = entries.get("module", key) if entries is not None else None
    if found is None or "code" not in found[1]:
        return None
    try:
        return Image.of(found[0], found[1]["code"])
    except CorruptFile:                                         # intact, but with an ill-formed head
        return None


def store(key: str, image: Image) -> None:
    """Put an image into the compile cache, if there is one."""
    if (entries := cache.store()) is not None:
        entries.put("module", key, image.head(), {"code": image.code})
