"""Models of a program: each is a subclass of `mlc.nn.Module`, created from declarations.

The declarations `name: type = value` and `name: type ~ distribution` are parameters, or with a leading `buffer`,
buffers; `name = value` are layers and sizes. All are in scope in the functions of the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlc.frontend.derivatives import run_now
from mlc.frontend.dtypes import as_dtype
from mlc.frontend.language import library
from mlc.frontend.language import syntax as S
from mlc.frontend.language.bindings import hold
from mlc.frontend.language.declared import Modelled, as_specs, holds, in_range, names_of, template, written
from mlc.frontend.language.diagnostics import Diagnostics, suggestion
from mlc.frontend.language.expressions import bind, evaluate, names_in
from mlc.frontend.language.functions import Function, Status
from mlc.frontend.language.library import call_library
from mlc.frontend.language.values import (
    ELEMENTS,
    POISON,
    Environment,
    FileScope,
    checking,
    deeper,
    is_poisoned,
    report,
    session,
    shown,
)
from mlc.frontend.tensor import OPERATIONS, Tensor
from mlc.frontend.trace import state
from mlc.ir import sizes
from mlc.ir.diag import UserError
from mlc.ir.sizes import Size

HIDDEN = frozenset({"training", "_parameters", "_buffers", "_frozen_names", "_unsaved"})
"""Attributes of a module that do not come from its declarations."""


def _is_of_every_model(name: str) -> bool:
    """Whether every module has an attribute of this name."""
    return name != "forward" and (hasattr(library.package("nn.Module"), name) or name in ("member_names", "model"))


class Method:
    """A function of a model, in its class: found on an instance, it is the function of that instance."""

    def __init__(self, node: S.Function, scope: FileScope) -> None:
        self.node, self.scope, self.status = node, scope, Status()
        self.__doc__ = node.doc

    def __get__(self, instance: Any, owner: type) -> Any:
        return self if instance is None else Function(self.node, self.scope, instance, status=self.status)


class Model(Modelled):
    """`model Name(parameters):`. The parameters are compile-time constants."""

    def __init__(self, node: S.Model, scope: FileScope) -> None:
        self.node = node
        self.name = node.name
        self.scope = scope
        self.status = Status()
        self._cls: type | None = None

    @property
    def cls(self) -> type:
        if self._cls is None:
            model, base = self, library.package("nn.Module")

            def __init__(instance: Any, *args: Any, **keywords: Any) -> None:
                model.fill(instance, model.bound(args, keywords, -1, model.env()))

            def member_names(instance: Any) -> list[str]:
                return ["training", *(n for n in vars(instance) if n not in HIDDEN), *model.functions()]

            body: dict[str, Any] = {"__init__": __init__, "member_names": member_names, "model": self,
                                    "__doc__": self.node.doc, "__module__": self.scope.source.name,
                                    "__qualname__": self.name}
            body |= {x.name: Method(x, self.scope) for x in self.node.body
                     if isinstance(x, S.Function) and not _is_of_every_model(x.name)}
            self._cls = type(self.name, (base,), body)
        return self._cls

    @property
    def is_whole(self) -> bool:
        """Whether all its lines could be parsed."""
        return not any(isinstance(x, S.Broken) for x in self.node.body)

    def functions(self) -> list[str]:
        return [x.name for x in self.node.body if isinstance(x, S.Function)]

    def env(self) -> Environment:
        return Environment(self.scope)

    # -- instantiation ------------------------------------------------------------------------------------------------
    def apply(self, args: Sequence[Any], keywords: dict[str, Any], at: int, env: Environment) -> Any:
        given = self.bound(args, keywords, at, env)
        if session.diagnostics is not None:
            self.check()
        if is_poisoned(list(given.values())) or self.status.broken:
            return POISON
        for name, value in given.items():
            if isinstance(value, Size) and not session.general:
                raise env.error(at, "MLC0631", f"{name} of {self.name} is {shown(value)}, which is known only when "
                                  "the program runs", "use a number, or give the model as an argument")
        key = (id(self.node), 0)
        with deeper(env, at, 3):
            if key in session.active:
                raise env.error(at, "MLC0628", f"{self.name} holds itself", "what is compiled is finite")
            session.active.add(key)
            try:
                return self.fill(object.__new__(self.cls), given)
            finally:
                session.active.discard(key)

    def bound(self, args: Sequence[Any], keywords: dict[str, Any], at: int, env: Environment) -> dict[str, Any]:
        """The values of the parameters."""
        maker = Function(S.Function(self.name, self.node.parameters, None), self.scope)
        given = maker.given(args, keywords, at, env)
        inner = self.env()
        for p in self.node.parameters:
            value = given[p.name] if p.name in given else evaluate(p.default, inner)  # type: ignore[arg-type]
            if isinstance(value, Tensor):
                raise env.error(at, "MLC0631", f"{p.name} of {self.name} is {shown(value)}, which is known only when "
                                  "the program runs", "use a number, or a size of a declared type")
            inner.names[p.name] = value
        return dict(inner.names)

    def fill(self, instance: Any, given: dict[str, Any]) -> Any:
        """Set the sizes, parameters and layers of an instance; POISON for those with errors."""
        inner = self.env()
        inner.names.update(given)
        for name, value in given.items():
            self._keep(name, value, instance, inner)
        for x in self.node.body:
            if isinstance(x, S.Function):
                continue
            try:
                self._member(x, instance, inner)
            except UserError as error:
                report(error)
                for name in [x.name] if isinstance(x, S.Declared) else (
                        names_in(x.target) if isinstance(x, S.Assigned) else []):
                    self._keep(name, POISON, instance, inner)
        return instance

    def _member(self, x: S.Node, instance: Any, inner: Environment) -> None:
        if isinstance(x, S.Declared):
            self._check_name(x.name, x, inner)
            value = self._parameter(x, inner)
            if x.buffer:
                instance._buffers = (*instance._buffers, x.name)
            else:
                instance._parameters = (*instance._parameters, x.name)
            self._keep(x.name, value, instance, inner)
            if session.watch is not None:
                session.watch(x, value)
        elif isinstance(x, S.Assigned) and not x.operator:
            value = evaluate(x.value, inner)
            before = set(inner.names)
            bind(x.target, value, inner)
            for name in names_in(x.target):
                self._check_name(name, x, inner, name in before)
                found = inner.names[name]
                if isinstance(found, Tensor) or (isinstance(found, list | tuple) and any(
                        isinstance(y, Tensor) for y in found)):
                    raise inner.error(x.at, "MLC0640", f"{name} is a tensor without a declared type",
                                      f"declare it: {name}: f32[sizes] = value")
                self._keep(name, found, instance, inner)
        elif isinstance(x, S.Asserted):
            if not any(isinstance(v, Size) for v in inner.names.values()):     # else: for sizes that are not known yet
                hold(x, inner)
        elif isinstance(x, S.Broken):
            for name in x.names:
                self._keep(name, POISON, instance, inner)
        else:
            raise inner.error(x.at, "MLC0643", "a model holds declarations and functions",
                              "move this line into a function of the model")

    def _check_name(self, name: str, x: S.Node, inner: Environment, is_known: bool | None = None) -> None:
        if name in self.functions() or (name in inner.names if is_known is None else is_known):
            raise inner.error(x.at, "MLC0646", f"{name} is there already in {self.name}", "choose another name")
        if name == "forward" or _is_of_every_model(name):
            raise inner.error(x.at, "MLC0646", f"{name} is there in every model", "choose another name")

    def _keep(self, name: str, value: Any, instance: Any, inner: Environment) -> None:
        inner.names[name] = value
        if name not in self.functions() and not _is_of_every_model(name):
            setattr(instance, name, value)

    def _parameter(self, x: S.Declared, inner: Environment) -> Any:
        """The initial value of a parameter; while a program is checked, recorded zeros."""
        known = set(inner.names)
        specs = template(x.type, inner)
        if opened := [n for n in inner.names if n not in known]:
            raise inner.error(x.type.at, "MLC0622", f"there is no {opened[0]} here",
                              suggestion(opened[0], known) or f"give it to the model: model {self.name}({opened[0]})")
        if specs is POISON:
            return POISON
        if not hasattr(specs, "type"):
            raise inner.error(x.type.at, "MLC0640", f"{x.name} is declared as no tensor",
                              "layers are made without a type: name = Layer(sizes)")
        if x.value is None and x.distribution is None:
            raise inner.error(x.at, "MLC0640", f"nothing says how {x.name} begins",
                              "write = 0, or ~ normal(0, 0.02)")
        element, shape = as_dtype(specs.type.dtype), specs.shape
        drawn = self._drawn(x.distribution, inner) if x.distribution is not None else None
        value = self._initial(x.value, inner) if x.value is not None else None
        if drawn is POISON or is_poisoned(value):
            return POISON
        if drawn is not None:
            function, name, args, keywords = drawn
            if session.diagnostics is not None:
                return self._zeros(shape, element, x, inner)
            return call_library(function, name, (shape, *args), {**keywords, "dtype": element}, x.at, inner)
        return self._valued(value, shape, element, x, inner)

    def _initial(self, node: S.Node, inner: Environment) -> Any:
        if state.trace is not None or isinstance(node, S.Literal):
            return evaluate(node, inner)
        return run_now(lambda: evaluate(node, inner), (), {})

    def _zeros(self, shape: Sequence[Any], element: Any, x: S.Node, inner: Environment) -> Any:
        return call_library(OPERATIONS["zeros"], "zeros", (tuple(shape),), {"dtype": element}, x.at, inner)

    def _drawn(self, node: S.Node, inner: Environment) -> Any:
        """(function of nn.init, its name, arguments, keywords) of a distribution."""
        call = node if isinstance(node, S.Call) else S.Call(node, (), ())
        name = call.function.name if isinstance(call.function, S.Name) else ""
        if name not in library.INITIALISERS:
            raise inner.error(node.at, "MLC0647", f"{name or 'this'} is no distribution",
                              suggestion(name, library.INITIALISERS) or "one of " + ", ".join(sorted(
                                  library.INITIALISERS)))
        args = [evaluate(a, inner) for a in call.arguments]
        keywords = {k: evaluate(v, inner) for k, _, v in call.keywords}
        if is_poisoned(args) or is_poisoned(keywords):
            return POISON
        function = library.package(f"nn.init.{name}")
        if session.diagnostics is not None and not any(isinstance(v, Tensor) for v in (*args, *keywords.values())):
            with library.package("nn.init.shapes_only")():             # the arguments are checked on a small one
                call_library(function, name, ((4, 4, 3) if name == "dirac" else (4, 4), *args), keywords, node.at,
                             inner)
        return function, name, args, keywords

    def _valued(self, value: Any, shape: Sequence[Any], element: Any, x: S.Declared, inner: Environment) -> Any:
        if isinstance(value, int | float) and not holds(element, value):
            raise inner.error(x.at, "MLC0626", f"{x.name} begins as {shown(value)}, declared {written(x.type, inner)}",
                              in_range(element, value))
        if isinstance(value, int | float) and session.diagnostics is None:
            return call_library(library.package("nn.init.constant"), "constant", (shape, value), {"dtype": element},
                                x.at, inner)
        if isinstance(value, int | float):
            return self._zeros(shape, element, x, inner)
        if not isinstance(value, Tensor):
            raise inner.error(x.at, "MLC0626", f"{x.name} begins as {shown(value)}", "use a number or a tensor")
        if tuple(value.shape) not in ((), tuple(shape)) or value.dtype is not element:
            short = {v: k for k, v in ELEMENTS.items()}[element.name]
            raise inner.error(x.at, "MLC0626", f"{x.name} begins as {shown(value)}, declared "
                              f"{short}[{', '.join(map(str, shape))}]", "change the value or the declared type")
        return call_library(OPERATIONS["broadcast_to"], x.name, (value, tuple(shape)), {}, x.at, inner)

    # -- as a type ----------------------------------------------------------------------------------------------------
    def template(self, call: tuple[Sequence[Any], dict[str, Any]] | None, at: int, env: Environment) -> Any:
        if call is None and any(p.default is None for p in self.node.parameters):
            return as_specs(self._general())
        made = self.apply(*(call or ((), {})), at, env)
        return POISON if made is POISON or _is_wrong(made) else as_specs(made)

    def accepts(self, value: Any) -> bool:
        return isinstance(value, self.cls)

    def _general(self) -> Any:
        """An instance for all sizes; parameters without a default that are not sizes are unknown."""
        used = _sizes_of(self.node)
        given = {p.name: sizes.sym(p.name) if p.name in used else POISON for p in self.node.parameters
                 if p.default is None}
        return self.fill(object.__new__(self.cls), self.bound((), given, self.node.at, self.env()))

    # -- checking -----------------------------------------------------------------------------------------------------
    def check(self) -> None:
        """Check the model once, independently of its instances, for all sizes."""
        if not self.status.begin():
            return
        assert session.diagnostics is not None
        own = Diagnostics()
        for p in self.node.parameters:
            self._check_parameter(p, own)
        with checking(own, general=True):
            try:
                self._check_members()
            except UserError as error:
                own.add(error)
        certain = [e for e in own.found.values() if not _is_open(e)]
        for found in certain:
            session.diagnostics.add(found)
        self.status.end(bool(certain))

    def _check_parameter(self, p: S.Parameter, found: Diagnostics) -> None:
        try:
            if p.type is not None:
                raise self.env().error(p.at, "MLC0640", f"{p.name} of a model has a type",
                                         "leave it out: what a model is made of is known")
            self._check_name(p.name, p, self.env())
        except UserError as error:
            found.add(error)

    def _check_members(self) -> None:
        instance, seen = self._general(), set[str]()
        for x in self.node.body:
            if not isinstance(x, S.Function):
                continue
            if _is_of_every_model(x.name):
                report(self.env().error(x.at, "MLC0646", f"{x.name} is there in every model", "choose another name"))
                continue
            if x.name in seen:
                report(self.env().error(x.at, "MLC0646", f"{x.name} is there already in {self.name}",
                                          "give one of them another name"))
            seen.add(x.name)
            method: Method = vars(self.cls)[x.name]
            method.__get__(instance, self.cls).look()


def _is_wrong(instance: Any) -> bool:
    return any(x is POISON for x in vars(instance).values())


def _is_open(error: UserError) -> bool:
    """Whether the error may not occur for all sizes, since it depends on the remainder of a division."""
    return "floordiv" in error.message or " mod " in error.message


def _sizes_of(node: S.Model) -> set[str]:
    """The names that occur in the sizes of declared types."""
    used = set[str]()
    work: list[Any] = [*node.body]
    while work:
        x = work.pop()
        if isinstance(x, S.TensorType):
            used |= {n.name for n in names_of(x.shape)}
        elif isinstance(x, S.Declared):
            work.append(x.type)
        elif isinstance(x, S.TupleType):
            work += x.items
        elif isinstance(x, S.Function):
            work += [*(p.type for p in x.parameters), x.result]
    return used
