"""Toolchain interface: the steps from a recorded module to loaded code, implemented by the folder of each vendor.

A toolchain belongs to one device: it lowers modules for it, compiles them, and loads the code there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from mlc.backends.target import Target, part_of
from mlc.dialects.builtin import Module
from mlc.ir.abi import Interface
from mlc.ir.instrumentation import NONE, Instrumentation


class Image(Protocol):
    """Compiled code with its interfaces and its target."""

    @property
    def interfaces(self) -> Mapping[str, Interface]: ...
    @property
    def target(self) -> Target: ...
    def at(self, interface: Callable[[Interface], Interface]) -> Any:
        """The same code under mapped interfaces: other names and locations."""


class Executable(Protocol):
    """Loaded code."""

    linked: Any

    def at(self, interface: Callable[[Interface], Interface]) -> Any:
        """See `Image.at`."""

    def entry(self, name: str) -> Any:
        """Entry point of a function, callable with arrays."""


class Toolchain(Protocol):
    """Compiler from modules of the tensor level to code of one target.

    kind  entry kind in the compile cache
    """

    kind: str

    def key(self) -> Sequence[str]:
        """Cache key parts besides the module: everything else that the code depends on."""

    def load_context(self) -> Any:
        """Context that code is loaded in: equal for toolchains that can share loaded code."""

    def lower(self, module: Module) -> Module:
        """Lower the module in place to the level that `compile` takes, and return it."""

    def compile(self, module: Module, cache: bool) -> Any:
        """Compile a lowered module to an image, with `cache` by what is known of parts of it."""

    def load(self, image: Any) -> Any:
        """Load an image on this machine."""

    def lookup(self, key: str) -> Any:
        """Image of a key in the compile cache; None if there is none."""

    def installed(self, text: str) -> Any:
        """Image of a module, by its structural text, that has come with mlc; None if there is none."""

    def store(self, key: str, image: Any) -> None:
        """Put an image into the compile cache, if there is one."""


def toolchain_for(device: str, target: Target | None = None, *, graph: bool = False, precision: str | None = None,
                  added: Instrumentation = NONE, threads: int | None = None, here: bool = True) -> Toolchain:
    """The toolchain of a device: `cpu`, `cuda:0`.

    target     target of code generation; the default is that of the device
    graph      whether the kernels of a call are launched as one CUDA graph where possible
    precision  precision of matrix products, as set by the user
    added      what the code of a processor has besides: checks, or the times of kernels
    threads    maximum number of threads that loaded code uses at once; None: that of the process
    here       whether the code will be loaded; if not, the device need not exist
    """
    vendor = part_of(device.partition(":")[0], "toolchain")
    made: Toolchain = vendor.toolchain(device, target, graph=graph, precision=precision, added=added,
                                       threads=threads, here=here)
    return made
