"""Modules whose calls are compiled: what `mlc.compile` makes of a module."""

from __future__ import annotations

import types
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar
from weakref import WeakKeyDictionary

from mlc.api import compile
from mlc.frontend.trace import state

if TYPE_CHECKING:
    from mlc.api import Compiled
    from mlc.nn.module import Module


class CompiledModule:
    """The same module by another class, a subclass of its own, that calls compiled code.

    It has the attributes of the module, not copies: what is assigned to one is assigned to the other.

    compiled  the compiled function, with the module as its first argument
    options   how it was compiled
    original  the module
    others    by each other module of the class, such as one of other arrays: what to call for it
    """

    compiled: ClassVar[Compiled]
    options: ClassVar[Mapping[str, Any]]
    original: ClassVar[Module]
    others: ClassVar[WeakKeyDictionary[CompiledModule, Module]]

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        if state.trace is not None:                        # a part of what is recorded
            return super().__call__(*args, **keywords)  # type: ignore[misc]
        if vars(self) is vars(self.original):
            return self.compiled(*args, **keywords)
        if self not in self.others:                        # made of the leaves of one
            self.others[self] = _compiled_again(self._plain(), self.options)
        return self.others[self](*args, **keywords)

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_") and hasattr(self.compiled, name):
            return getattr(self.compiled, name)
        return super().__getattr__(name)  # type: ignore[misc]

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _compiled_again, (self._plain(), self.options)

    def _as_compiled(self, compiled: Compiled, options: Mapping[str, Any]) -> Module:
        return as_compiled(self._plain(), compiled, options)

    def _plain(self) -> Module:
        """The module by its own class, with the attributes of this one."""
        out = object.__new__(type(self.original))
        out.__dict__ = vars(self)
        return out


def as_compiled(module: Module, compiled: Compiled, options: Mapping[str, Any]) -> Module:
    """A module whose calls are those of a compiled function."""
    own = type(module)
    members = {"compiled": staticmethod(compiled), "options": options, "original": module,
               "others": WeakKeyDictionary(), "__module__": own.__module__,
               "__qualname__": own.__qualname__, "__doc__": own.__doc__}
    cls = types.new_class(own.__name__, (CompiledModule, own), exec_body=lambda body: body.update(members))
    out: Module = object.__new__(cls)
    out.__dict__ = vars(module)
    return out


def _compiled_again(module: Module, options: Mapping[str, Any]) -> Module:
    return compile(module, **options)  # type: ignore[no-any-return]
