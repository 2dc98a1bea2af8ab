"""Which name of a program stands for what: variables with all their places, by the scopes of the language.

A name may be bound anew within a function; all its places there are of one variable.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from mlc.frontend.language import library
from mlc.frontend.language import syntax as S
from mlc.frontend.language.expressions import names_in
from mlc.frontend.language.flow import assigned
from mlc.tools.language_server.analysis import Span


@dataclass(eq=False)
class Variable:
    """A name and its places, in the order of the text.

    kind   "function", "model", "parameter", "size", "variable", "member" or "import"
    nodes  the nodes that it is known by
    """

    name: str
    kind: str
    places: list[Span] = field(default_factory=list)
    nodes: list[Any] = field(default_factory=list)

    def ordered(self) -> list[Span]:
        """The places, the definition first; a function may be used above it."""
        starts = [n.at for n in self.nodes if isinstance(n, S.Function | S.Model | S.Declared | S.Parameter)]
        return sorted(self.places, key=lambda s: (s.start not in starts[:1], s.start))


class Scope:
    """The names of a block of the language, and those around."""

    def __init__(self, start: int, end: int, outer: Scope | None = None) -> None:
        self.start, self.end, self.outer = start, end, outer
        self.names: dict[str, Variable] = {}

    def find(self, name: str) -> Variable | None:
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.outer
        return None

    def bind(self, name: str, kind: str) -> Variable:
        return self.names.setdefault(name, Variable(name, kind))

    def visible(self) -> dict[str, Variable]:
        """All names, the inner ones before the outer ones."""
        out: dict[str, Variable] = {}
        scope: Scope | None = self
        while scope is not None:
            out = {**out, **{n: v for n, v in scope.names.items() if n not in out}}
            scope = scope.outer
        return out


class Names:
    """The names of a file.

    scopes  all of them, the outer ones first
    loose   names of the library and of what is defined nowhere, with their nodes
    """

    def __init__(self, file: S.File, text: str) -> None:
        self.text = text
        self.scopes = [Scope(0, len(text))]
        self.loose: list[tuple[Span, Any]] = []
        self.attributes: list[tuple[Span, S.Attribute]] = []
        self.keywords: list[tuple[Span, S.Call, str]] = []
        self._file(file)
        for scope in self.scopes:
            for variable in scope.names.values():
                variable.places = sorted(set(variable.places), key=lambda s: s.start)

    def variable_at(self, at: int) -> tuple[Variable, Span] | None:
        """The variable whose name stands at a place."""
        for scope in self.scopes:
            for variable in scope.names.values():
                for span in variable.places:
                    if span.start <= at <= span.end:
                        return variable, span
        return None

    def scope_at(self, at: int) -> Scope:
        """The innermost scope."""
        inside = [s for s in self.scopes if s.start <= at <= s.end]
        return inside[-1]

    # -- the walk -----------------------------------------------------------------------------------------------------
    def _new(self, node: Any, end: int, outer: Scope) -> Scope:
        scope = Scope(node.at, end, outer)
        self.scopes.append(scope)
        return scope

    def _put(self, variable: Variable, at: int, node: Any = None) -> None:
        if self.text.startswith(variable.name, at):
            variable.places.append(Span(at, at + len(variable.name)))
        if node is not None:
            variable.nodes.append(node)

    def _file(self, file: S.File) -> None:
        scope = self.scopes[0]
        for node in file.body:
            self._declare(node, scope, "variable")
        ends = [*(x.at for x in file.body[1:]), len(self.text)]
        for node, end in zip(file.body, ends):
            self._statement(node, scope, end)

    def _declare(self, node: Any, scope: Scope, kind: str) -> None:
        """Bind the names that a node defines in a file or a model."""
        if isinstance(node, S.Function | S.Model):
            self._put(scope.bind(node.name, "function" if isinstance(node, S.Function) else "model"), node.at, node)
        elif isinstance(node, S.Declared):
            self._put(scope.bind(node.name, kind), node.at, node)
        elif isinstance(node, S.Assigned):
            for name in names_in(node.target):
                scope.bind(name, kind)
        elif isinstance(node, S.Import):
            for name, at in node.names or [(node.name, self.text.find(node.name, node.at + len(node.file)))]:
                self._put(scope.bind(name, "import"), at, node)
        elif isinstance(node, S.Broken):
            for name in node.names:
                scope.bind(name, kind)

    def _block(self, body: Iterable[Any], scope: Scope, end: int) -> None:
        nodes = list(body)
        for node, after in zip(nodes, [*(x.at for x in nodes[1:]), end]):
            self._statement(node, scope, after)

    def _statement(self, node: Any, scope: Scope, end: int) -> None:
        if isinstance(node, S.Function):
            self._function(node, scope, end)
        elif isinstance(node, S.Model):
            self._model(node, scope, end)
        elif isinstance(node, S.If):
            self._expression(node.condition, scope)
            self._block(node.body, scope, end)
            self._block(node.other, scope, end)
        elif isinstance(node, S.For):
            for x in (node.target, node.source, node.results):
                self._expression(x, scope)
            self._block(node.body, scope, end)
        elif isinstance(node, S.While):
            self._expression(node.condition, scope)
            self._block(node.body, scope, end)
        elif isinstance(node, S.Declared):
            found = scope.find(node.name)
            if found is not None:
                self._put(found, node.at, node)
            for x in (node.type, node.value, node.distribution):
                self._expression(x, scope)
        elif isinstance(node, S.Broken):
            self._block(node.body, scope, end)
        elif not isinstance(node, S.Import):
            for name in ("target", "value", "condition"):
                self._expression(getattr(node, name, None), scope)

    def _function(self, node: S.Function, outer: Scope, end: int) -> None:
        scope = self._new(node, end, outer)
        for p in node.parameters:
            self._put(scope.bind(p.name, "parameter"), p.at, p)
            self._type(p.type, scope)
            self._expression(p.default, scope)
        self._type(node.result, scope)
        members = {name for name, v in outer.names.items() if v.kind == "member"} if outer.outer else set()
        for name in assigned(node.body):
            if name not in members and name not in scope.names:
                scope.bind(name, "variable")
        self._loop_targets(node.body, scope)
        self._block(node.body, scope, end)

    def _loop_targets(self, body: Iterable[Any], scope: Scope) -> None:
        for x in body:
            if isinstance(x, S.For):
                for name in names_in(x.target):
                    scope.bind(name, "variable")
            if isinstance(x, S.For | S.While | S.If):
                self._loop_targets([*x.body, *getattr(x, "other", ())], scope)

    def _model(self, node: S.Model, outer: Scope, end: int) -> None:
        scope = self._new(node, end, outer)
        for p in node.parameters:
            self._put(scope.bind(p.name, "parameter"), p.at, p)
            self._expression(p.default, scope)
        for x in node.body:
            self._declare(x, scope, "member")
        self._block(node.body, scope, end)

    def _type(self, node: Any, scope: Scope) -> None:
        """A declared type: a size that stands for nothing else is told by the arguments."""
        if isinstance(node, S.TensorType):
            work: list[Any] = [*node.shape]
            while work:
                x = work.pop(0)
                if isinstance(x, S.Name):
                    if scope.find(x.name) is None and library.find(x.name) is None:
                        scope.bind(x.name, "size")
                    self._expression(x, scope)
                elif isinstance(x, S.Chain):
                    work = [x.first, *(y for _, _, y in x.rest), *work]
                elif isinstance(x, S.Node):
                    self._expression(x, scope)
        elif isinstance(node, S.TupleType):
            for x in node.items:
                self._type(x, scope)
        elif node is not None:
            self._expression(node, scope)

    def _expression(self, root: Any, outer: Scope) -> None:
        work: list[tuple[Any, Scope]] = [(root, outer)]
        while work:
            node, scope = work.pop()
            if isinstance(node, S.Name):
                self._name(node, node.name, scope)
            elif isinstance(node, S.TensorType | S.TupleType):
                self._type(node, scope)
            elif isinstance(node, S.NamedType):
                self._name(node, node.names[0], scope)
                work.append((node.arguments, scope))
            elif isinstance(node, S.Lambda):
                inner = self._new(node, self._end(node.value, scope), scope)
                for p in node.parameters:
                    self._put(inner.bind(p.name, "parameter"), p.at, p)
                work.append((node.value, inner))
            elif isinstance(node, S.Comprehension):
                inner = self._new(node, self._end(node.source, scope), scope)
                for name in names_in(node.target):
                    inner.bind(name, "variable")
                work += [(node.source, scope), (node.target, inner), (node.value, inner)]
            elif isinstance(node, S.Node):
                if isinstance(node, S.Attribute):
                    self.attributes.append((Span(node.at, node.at + len(node.name)), node))
                elif isinstance(node, S.Call):
                    self.keywords += [(Span(at, at + len(name)), node, name) for name, at, _ in node.keywords]
                work += [(x, scope) for x in children(node)]

    def _name(self, node: Any, name: str, scope: Scope) -> None:
        found = scope.find(name)
        if found is not None:
            self._put(found, node.at, node)
        else:
            self.loose.append((Span(node.at, node.at + len(name)), node))

    def _end(self, node: Any, scope: Scope) -> int:
        """About where an expression ends: at the end of its line."""
        last = max((x.at for x in inside(node)), default=node.at)
        end = self.text.find("\n", last)
        return min(len(self.text) if end < 0 else end, scope.end)


def children(node: Any) -> list[Any]:
    """The nodes directly in a node."""
    out, work = [], [getattr(node, name) for name in node.__dataclass_fields__ if name not in ("at", "depth")]
    while work:
        x = work.pop()
        if isinstance(x, S.Node):
            out.append(x)
        elif isinstance(x, list | tuple):
            work += x
    return out


def inside(node: Any) -> list[Any]:
    """A node and all in it."""
    out = [node] if isinstance(node, S.Node) else []
    for x in out:
        out += children(x)
    return out
