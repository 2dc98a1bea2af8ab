"""The way from a recorded module to code that runs: what the compiler asks of the folder of each vendor.

A toolchain belongs to one machine: it lowers modules for it, compiles them, and loads the code there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from mlc.backends.target import Target, part_of
from mlc.dialects.builtin import Module
from mlc.ir.abi import Interface


class Image(Protocol):
    """Code with what one must know to use it."""

    @property
    def interfaces(self) -> Mapping[str, Interface]: ...
    @property
    def target(self) -> Target: ...
    def at(self, interface: Callable[[Interface], Interface]) -> Any:
        """The same code for callers who speak of it by other interfaces, with places and names of their own."""


class Executable(Protocol):
    """Code that is loaded."""

    linked: Any

    def at(self, interface: Callable[[Interface], Interface]) -> Any:
        """As of `Image`."""

    def entry(self, name: str) -> Any:
        """One of its functions, ready to be called with arrays."""


class Toolchain(Protocol):
    """How modules of the tensor level become code for one machine.

    kind  what the compile cache calls such code
    """

    kind: str

    def key(self) -> Sequence[str]:
        """All that the code of a module depends on besides the module."""

    def home(self) -> Any:
        """Further context that code is loaded for: equal for toolchains that can share loaded code."""

    def lower(self, module: Module) -> Module:
        """The module at the level that code is made from: the module itself, which is lowered in place."""

    def compile(self, module: Module) -> Any:
        """The image of a lowered module."""

    def load(self, image: Any) -> Any:
        """An image made ready to run here."""

    def recall(self, key: str) -> Any:
        """The image that the compile cache has under a key; None if it has none."""

    def keep(self, key: str, image: Any) -> None:
        """Put an image into the compile cache, if there is one."""


def toolchain_for(device: str, target: Target | None = None, *, graph: bool = False, precision: str | None = None,
                  checked: bool = False, here: bool = True) -> Toolchain:
    """The toolchain of a device: `cpu`, `cuda:0`.

    target     the machine to make code for, in place of that device itself
    graph      whether all kernels of a call are launched as one, where that is possible
    precision  of products of matrices, as users ask for it
    checked    whether code reports what is undefined, as of passes/insert_checks
    here       whether code is to be loaded; without it the device need not be there
    """
    vendor = part_of(device.partition(":")[0], "toolchain")
    made: Toolchain = vendor.toolchain(device, target, graph=graph, precision=precision, checked=checked, here=here)
    return made
