"""Functions of a program: binding of arguments, checking, and evaluation of bodies."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

from mlc.frontend import location, tree
from mlc.frontend.buffers import Buffers
from mlc.frontend.derivatives import run_now
from mlc.frontend.language import syntax as S
from mlc.frontend.language.bindings import in_a_loop_only
from mlc.frontend.language.declared import Misfit, argument, fit, is_definite, settle, template, written
from mlc.frontend.language.diagnostics import suggestion
from mlc.frontend.language.expressions import EVALUATE, evaluate
from mlc.frontend.language.statements import NOTHING, run_block
from mlc.frontend.language.values import (
    POISON,
    Applicable,
    Environment,
    FileScope,
    Poisoned,
    checking,
    deeper,
    is_poisoned,
    report,
    session,
)
from mlc.frontend.trace import Trace, current, state
from mlc.ir.diag import UserError


class Status:
    """State of the check of a definition: whether it has begun, and whether it found errors."""

    begun = broken = False

    def begin(self) -> bool:
        """Whether the definition is unchecked; if so, marks its check as begun, which the caller must do."""
        first, self.begun = not self.begun, True
        return first

    def end(self, broken: bool) -> None:
        self.broken = broken


class Function(Applicable):
    """`def name(parameters) -> result`, or `x => value` with the names in scope.

    owner     the model that the function belongs to
    written   its place in the text, which all functions have in common that come of one `x => value`
    """

    def __init__(self, node: S.Function, scope: FileScope, owner: Any = None, around: dict[str, Any] | None = None,
                 status: Status | None = None, written: S.Node | None = None) -> None:
        self.node = node
        self.written = written or node
        self.name = self.__name__ = node.name
        self.__qualname__ = node.name
        self.__doc__ = node.doc
        self.scope = scope
        self.owner = owner
        self.around = around or {}
        self.status = status or Status()
        self.specs: list[Any] | None = None
        self.__self__ = owner

    @staticmethod
    def of_lambda(node: S.Lambda, env: Environment) -> Function:
        returned = S.Returned(node.value)
        returned.at = node.value.at
        definition = S.Function("function", node.parameters, None, [returned])
        definition.at = node.at
        if session.diagnostics is not None:                # it may never be called
            inner = env.copy()
            inner.names.update({p.name: POISON for p in node.parameters})
            evaluate(node.value, inner)
        return Function(definition, env.scope, env.owner, dict(env.names), written=node)

    @property
    def __signature__(self) -> inspect.Signature:
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        return inspect.Signature([inspect.Parameter(p.name, kind, default=inspect.Parameter.empty if p.default is None
                                                    else ...) for p in self.node.parameters])

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """A call from the library, by grad, vmap and the like."""
        if state.trace is None:
            return run_now(self._on, (self.owner, args, keywords), {})
        out = self.apply(args, keywords, -1, self.env())
        if is_poisoned(out):
            raise Poisoned
        return out

    def _on(self, owner: Any, args: Sequence[Any], keywords: dict[str, Any]) -> Any:
        return Function(self.node, self.scope, owner, self.around, self.status, self.written)(*args, **keywords)

    def env(self) -> Environment:
        return Environment(self.scope, dict(self.around), self.owner)

    # -- calls --------------------------------------------------------------------------------------------------------
    def apply(self, args: Sequence[Any], keywords: dict[str, Any], at: int, env: Environment) -> Any:
        given = self.given(args, keywords, at, env)
        if session.diagnostics is not None:
            (self.check if self.owner is None else self.owner.model.check)()
        with deeper(env, at, 2):
            inner = self.env()
            for p in self.node.parameters:
                inner.names[p.name] = self._argument(p, given, at, env, inner)
            if self._key(inner) in session.active:
                raise env.error(at, "MLC0628", f"{self.name} calls itself",
                                  "repeat with while or for: what is compiled is finite")
            try:
                settle(inner)
            except Misfit as misfit:
                return report(self._unfit(misfit, at, env))
            if is_poisoned([inner.names[p.name] for p in self.node.parameters]) or self.status.broken:
                return POISON
            known = len(session.diagnostics.found) if session.diagnostics is not None else 0
            out = self._run(inner)
            if session.diagnostics is not None and at >= 0:           # wrong for these arguments, if not by itself
                for error in list(session.diagnostics.found.values())[known:]:
                    error.notes = (*error.notes, f"in the call at {env.loc(at)}")
            return out

    def given(self, args: Sequence[Any], keywords: dict[str, Any], at: int, env: Environment) -> dict[str, Any]:
        """The arguments by name."""
        names = [p.name for p in self.node.parameters]
        takes = f"{self.name} takes {', '.join(names) or 'no arguments'}"
        if len(args) > len(names):
            raise env.error(at, "MLC0627", f"{self.name} is given {len(args)} arguments", takes)
        given = dict(zip(names, args))
        for name, value in keywords.items():
            if name not in names:
                raise env.error(at, "MLC0627", f"{self.name} has no parameter {name}",
                                  suggestion(name, names) or takes)
            if name in given:
                raise env.error(at, "MLC0627", f"{self.name} is given {name} twice", takes)
            given[name] = value
        missing = [p.name for p in self.node.parameters if p.name not in given and p.default is None]
        if missing:
            raise env.error(at, "MLC0627", f"{self.name} is not given {' and '.join(missing)}", takes)
        return given

    def _argument(self, p: S.Parameter, given: dict[str, Any], at: int, env: Environment, inner: Environment) -> Any:
        value = given[p.name] if p.name in given else evaluate(p.default, inner) if p.default is not None else POISON
        if p.type is None or value is POISON:
            return value
        try:
            return fit(p.type, value, inner, p.name)
        except Misfit as misfit:
            return report(self._unfit(misfit, at, env))

    def _unfit(self, misfit: Misfit, at: int, env: Environment) -> UserError:
        return env.error(at, "MLC0626", f"{self.name}: {misfit.message}", misfit.hint, (
            f"{self.name} is defined at {self.scope.source.loc(self.node.at)}",))

    def _run(self, inner: Environment) -> Any:
        key = self._key(inner)                             # now: the body may give its parameters other values
        session.active.add(key)
        try:
            return self._result(run_block(self.node.body, inner), inner)
        finally:
            session.active.discard(key)

    def _key(self, inner: Environment) -> tuple[Any, ...]:
        """The function with the functions and models that it is given, of which a text has finitely many: called again
        with these, within itself, it would not end."""
        return id(self.written), id(self.owner), *(_kind(inner.names[p.name]) for p in self.node.parameters)

    def _result(self, out: Any, inner: Environment) -> Any:
        if out is NOTHING:
            out = None
            if any(isinstance(x, S.Broken) for x in self.node.body):
                return POISON
            if self.node.result is not None:
                return report(inner.error(self.node.at, "MLC0639", f"{self.name} returns nothing, declared "
                                          f"{written(self.node.result, inner)}", "end it with return"))
        if is_poisoned(out):
            return out
        at = last_return(self.node.body) or self.node.at
        in_a_loop_only(out, at, inner)
        if self.node.result is None:
            return out
        try:
            return fit(self.node.result, out, inner, "the result")
        except Misfit as misfit:
            return report(inner.error(at, "MLC0639", f"{self.name}: {misfit.message}", misfit.hint))

    # -- checking -----------------------------------------------------------------------------------------------------
    def check(self) -> None:
        """Check the definition once, independently of its calls."""
        if session.diagnostics is not None and self.status.begin():
            before = len(session.diagnostics.found)
            with checking(session.diagnostics):
                self.look()
            self.status.end(len(session.diagnostics.found) > before)

    def look(self) -> None:
        """Check the body for arguments of the declared types, with unknown values for untyped ones."""
        trace = Trace(self.name if self.name.isidentifier() else "f", current())
        saved, location.text.loc = location.text.loc, self.scope.source.loc(self.node.at)
        inner, buffers = self.env(), Buffers()
        try:
            with trace.recording():
                self.specs = self.arguments(inner)
                buffers = Buffers(self.owner, list(inner.names.values()))
                self._run(inner)
        except Poisoned:
            pass
        except UserError as error:
            report(error)
        finally:
            location.text.loc = saved
            buffers.restore()                              # for the next function of the model

    def _check_default(self, p: S.Parameter, inner: Environment) -> None:
        assert p.default is not None and p.type is not None
        try:
            fit(p.type, evaluate(p.default, inner), inner, p.name)
        except Misfit as misfit:
            report(inner.error(p.default.at, "MLC0626", misfit.message, misfit.hint))

    def arguments(self, inner: Environment) -> list[Any]:
        """Specifications of the parameters, and arguments of these types in the env; None for untyped ones."""
        out: list[Any] = []
        for p in self.node.parameters:
            specs = None
            if p.type is not None:
                try:
                    specs = template(p.type, inner)
                except UserError as error:
                    specs = report(error)
                value = POISON if specs is POISON else argument(specs, p.name)
                if p.default is not None and value is not POISON:
                    self._check_default(p, inner.copy())
                if p.name in inner.names and p.name not in self.around:
                    report(inner.error(p.at, "MLC0627", f"{p.name} is a parameter and a size", "rename one of them"))
            else:
                value = POISON if p.default is None else evaluate(p.default, inner)
            inner.names[p.name] = value
            if session.watch is not None:
                session.watch(p, value)
            out.append(specs if p.type is None or is_definite(p.type) else None)
        return out


def _kind(value: Any) -> Any:
    if isinstance(value, Function):
        return id(value.written), id(value.owner)
    if isinstance(value, tree.AttributeTree):
        return id(type(value))
    return id(value) if isinstance(value, Applicable) else None


def last_return(body: Sequence[S.Node]) -> int | None:
    """Location of the result of a block."""
    last = body[-1] if body else None
    return last.value.at if isinstance(last, S.Returned) and last.value is not None else None


EVALUATE[S.Lambda] = Function.of_lambda
