"""Modules whose calls are compiled: what `mlc.compile` makes of a module."""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar
from weakref import WeakKeyDictionary

from mlc.api import Compiled, compile
from mlc.frontend.trace import state

if TYPE_CHECKING:
    from mlc.nn.module import Module


@dataclass(eq=False)
class Compilation:
    """How a module was compiled.

    module    the module
    compiled  the compiled function, with the module as its first argument
    options   of `mlc.compile`
    others    the compiled functions of other modules of the class, such as one of other arrays
    """

    module: Module
    compiled: Compiled
    options: Mapping[str, Any]
    others: WeakKeyDictionary[CompiledModule, Compiled] = field(default_factory=WeakKeyDictionary)


class CompiledModule:
    """The same module by another class, a subclass of its own, that calls compiled code.

    It has the attributes of the module, not copies: what is assigned to one is assigned to the other. What changes the
    class of one, as parametrizations and pruning do, does not change that of the other.
    """

    _compilation: ClassVar[Compilation]

    def __init_subclass__(cls, **keywords: Any) -> None:
        """Nothing: this class is not one of those that the module's class may count."""

    def _call(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """A call of any module of the class, at any time."""
        if state.trace is not None:                        # a part of what is recorded
            return super().__call__(*args, **keywords)  # type: ignore[misc]
        return self._compiled()(*args, **keywords)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)  # type: ignore[misc]
        except AttributeError:
            if name.startswith("_") or not hasattr(self._compilation.compiled, name):
                raise
        return getattr(self._compiled(), name)

    def __reduce_ex__(self, protocol: Any) -> Any:
        if not self._is_of_its_class():
            return super().__reduce_ex__(protocol)
        plain = self._plain()
        plain.__dict__ = dict(vars(self))                  # a copy has attributes of its own
        return _compiled_again, (plain, self._compilation.options)

    def _compiled(self) -> Compiled:
        """The compiled function of this module."""
        known = self._compilation
        if vars(self) is vars(known.module) and self._is_of_its_class():
            return known.compiled
        found = known.others.get(self)
        if found is None or not _is_twin(found.signature.bound[0], self):
            twin = _twin(type(self), self)                 # which does not keep this module alive
            found = known.others[self] = Compiled(twin, **known.options)
        return found

    def _is_of_its_class(self) -> bool:
        """Whether it is of the class that `as_compiled` made, not one derived from it, as parametrizations do."""
        return "_compilation" in vars(type(self))

    def _as_compiled(self, compiled: Compiled, options: Mapping[str, Any]) -> Module:
        return as_compiled(self._plain(), compiled, options)

    def _plain(self) -> Module:
        """The module by its own class, with the attributes of this one."""
        return _twin(type(self._compilation.module), self)


def as_compiled(module: Module, compiled: Compiled, options: Mapping[str, Any]) -> Module:
    """A module whose calls are those of a compiled function."""
    own = type(module)
    attributes = vars(module)

    def __call__(self: CompiledModule, *args: Any, **keywords: Any) -> Any:
        # What `_call` and Compiled.__call__ come to for this module, without their calls, which take longer than it.
        if type(self) is cls and vars(self) is attributes and state.trace is None:
            direct = compiled.direct
            if direct is not None and not direct.unsteady:
                return direct.dispatcher(*args, **keywords)
        return self._call(args, keywords)

    members = {"_compilation": Compilation(module, compiled, options), "__call__": __call__,
               "__module__": own.__module__, "__qualname__": own.__qualname__, "__doc__": own.__doc__}
    cls = types.new_class(own.__name__, (CompiledModule, own), exec_body=lambda body: body.update(members))
    return _twin(cls, module)


def _twin(cls: type, module: Any) -> Module:
    """A module of a class, with the attributes of another one."""
    out: Module = object.__new__(cls)
    out.__dict__ = vars(module)
    return out


def _is_twin(a: Any, b: Any) -> bool:
    """Whether two modules are of the same class and have the same attributes."""
    return type(a) is type(b) and vars(a) is vars(b)


def _compiled_again(module: Module, options: Mapping[str, Any]) -> Module:
    return compile(module, **options)  # type: ignore[no-any-return]
