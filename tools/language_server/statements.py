"""Statements of a function that an edit leaves as they are, and the values that they need not be evaluated for again.

An assignment gives values of the same types if it reads values of the same types, and definitions of the same text. So
where one is met again, the names that it assigns are given tensors of these types, which nothing computes. This holds
in a check alone, which is about types and runs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from mlc.frontend.language import syntax as S
from mlc.frontend.language.expressions import names_in
from mlc.frontend.language.values import Environment, session
from mlc.frontend.trace import current
from mlc.frontend.tracer import Tracer
from mlc.ir.sizes import Size
from mlc.ir.types import TensorType
from mlc.tools.language_server.nodes import inside

_CONSTANTS = (type(None), bool, int, float, str)
Run = Callable[[Any, Environment], None]
Watch = Callable[[Any, Any], None]


@dataclass
class _Tensor:
    """The type of a tensor that a statement assigns."""

    type: TensorType
    weak: bool


@dataclass
class _Met:
    """A statement that was evaluated, what it read, and what it assigned.

    node        which is held, so that no other node has its id
    read        the kinds of values that it read
    assigned    by name, a constant or the type of a tensor
    operations  the number of operations that were recorded
    known       the values of its expressions, as an editor shows them
    """

    node: S.Node
    read: Any
    assigned: dict[str, Any]
    operations: int
    known: dict[int, Any]


class Statements:
    """The statements of a file that have been met."""

    def __init__(self) -> None:
        self._met: dict[int, _Met] = {}
        self._names: dict[int, tuple[str, ...]] = {}

    def keep(self, body: Iterable[S.Node]) -> None:
        """Forget all statements but those of these definitions."""
        there = {id(x) for definition in body for x in getattr(definition, "body", ())}
        self._met = {key: met for key, met in self._met.items() if key in there}
        self._names = {key: self._names[key] for key in self._met}

    def running(self, known: dict[int, Any], watching: Callable[[dict[int, Any]], Watch],
                digests: Mapping[str, Any], defined: Mapping[str, Any]) -> Callable[[Run, S.Node, Environment], None]:
        """A function that evaluates a statement of a function that is checked, or knows what that would give.

        known     where the values of expressions go
        watching  the function that notes these somewhere
        digests   of the definitions of the file, by name
        defined   all names of the file
        """
        def run(evaluated: Run, node: S.Node, env: Environment) -> None:
            alone = len(session.active) == 1 and not current().in_region and env.owner is None
            read = self._read(node, env, digests, defined) if alone and type(node) is S.Assigned else None
            if read is None:
                evaluated(node, env)
                return
            met, trace = self._met.get(id(node)), current()
            if met is not None and met.read == read and met.operations <= trace.root.left:
                trace.root.left -= met.operations
                known.update(met.known)
                for name, value in met.assigned.items():
                    env.names[name] = trace.arg(value.type, weak=value.weak) if type(value) is _Tensor else value
                return
            before, new, saved = trace.root.left, dict[int, Any](), session.watch
            named, errors = len(trace.root.named), _errors()
            session.watch = watching(new)
            try:
                evaluated(node, env)
            finally:
                session.watch = saved
                known.update(new)
            if (len(trace.root.named), _errors()) == (named, errors):
                self._note(_Met(node, read, {}, int(before - trace.root.left), new), env)

        return run

    def _note(self, met: _Met, env: Environment) -> None:
        """Remember a statement, if all that it has assigned can be made again."""
        assert isinstance(met.node, S.Assigned)
        for name in names_in(met.node.target):
            value = env.names[name]
            if type(value) is not Tracer and type(value) not in _CONSTANTS:
                return
            met.assigned[name] = _Tensor(value.type, value.weak) if type(value) is Tracer else value
        self._met[id(met.node)] = met

    def _read(self, node: S.Node, env: Environment, digests: Mapping[str, Any], defined: Mapping[str, Any]) -> Any:
        """The kinds of values that a statement reads; None where they cannot be compared."""
        names = self._names.get(id(node))
        if names is None or id(node) not in self._met:
            names = self._names[id(node)] = tuple({x.name for x in inside(node) if isinstance(x, S.Name)})
        out = []
        for name in names:
            if name in env.names:
                kind = _kind(env.names[name])
            elif name in defined:
                kind = digests.get(name)
            else:
                continue                                   # a name of the library, which is always the same
            if kind is None:
                return None
            out.append((name, kind))
        return tuple(out)


def _kind(value: Any) -> Any:
    """A constant, or the type of a tensor; None for all else."""
    if type(value) is Tracer:
        return value.type, value.weak
    if type(value) in _CONSTANTS or isinstance(value, Size):
        return type(value), str(value)
    return None


def _errors() -> int:
    return len(session.diagnostics.found) if session.diagnostics is not None else 0
