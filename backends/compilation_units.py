"""Partitioning of a module of the llvm dialect into compilation units, so that equal code is compiled once.

A private function is a unit, with the constants that it alone uses and the functions whose address it takes. Its linker
name is a hash of its text, which refers to other units by their final names, so units of equal name are the same code
in all modules. The last unit holds everything else: public functions, functions that only they call, functions below
the outline threshold, and definitions that several units use.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from mlc.backends.emit_llvm import Part, TargetLike, emit, emit_part
from mlc.backends.object_code import compile_object
from mlc.backends.target import Target
from mlc.dialects import llvm
from mlc.ir.core import Op, Symbol

Definition = llvm.Func | llvm.Global

OUTLINE_THRESHOLD = 32
"""Outline threshold: minimum operations of a unit, with the functions whose address it takes. A unit costs 2 ms."""

_OWN = "mlc_unit_being_named"
"""Placeholder for the name of a unit while that name is computed."""


@dataclass(frozen=True)
class CompilationUnit:
    """LLVM IR of one unit.

    shared  whether equal units of other modules share the object
    ops     its functions and globals, of which `part` says how they are written
    """

    text: str
    shared: bool
    ops: Sequence[Op] = ()
    part: Part = field(default_factory=Part)
    kind = "llvm"

    @property
    def names(self) -> Mapping[str, str]:
        """The names that its functions and globals have in the module, where they have others here."""
        own = [str(op.attrs["sym_name"]) for op in self.ops]
        return {self.part.names[name]: name for name in own if name in self.part.names}

    @property
    def seconds(self) -> float:
        """Predicted time of `compile`, measured over kernels of 5,000 to 80,000 characters."""
        return 2e-3 + len(self.text) * 1.6e-6

    def compile(self, target: Target, opt_level: int) -> bytes:
        """The object of the unit."""
        return compile_object(self.text, target, opt_level)


def compilation_units(module: Op, target: TargetLike) -> list[CompilationUnit]:
    """Compilation units of a module, deduplicated, callees first."""
    program = _Program(module)
    order = program.order()
    if order is None:                                      # mutual recursion
        return [CompilationUnit(emit(module, target), False, list(module.regions[0].block), Part())]
    names: dict[str, str] = {}
    out: dict[str, CompilationUnit] = {}
    for root in order:
        members = program.members[root]
        own = {str(op.sym_name): f"local{i}" for i, op in enumerate(members) if op.sym_name != root}
        part = Part({**names, **own, root: _OWN}, (root,), _distinct(program.outside(members), names), hints=False)
        text = emit_part([*members, *program.imports(members)], target, part)
        names[root] = "u" + hashlib.sha256(text.encode()).hexdigest()[:40]
        out[names[root]] = CompilationUnit(text.replace(_OWN, names[root]), True,
                                           [*members, *program.imports(members)],
                                           replace(part, names={**part.names, root: names[root]}))
    rest = [op for op in module.regions[0].block if isinstance(op, Definition) and op.sym_name not in program.unit]
    seen = {op.sym_name for members in program.members.values() for op in program.outside(members)}
    part = Part(names, seen, _distinct(program.outside(rest), names), hints=False)
    return [*out.values(), CompilationUnit(emit_part(rest, target, part), False, rest, part)]


def _distinct(ops: Sequence[Definition], names: Mapping[str, str]) -> list[Definition]:
    """One definition per final name, since equal functions share a name."""
    return list({names.get(str(op.sym_name), str(op.sym_name)): op for op in reversed(ops)}.values())[::-1]


class _Program:
    """Use graph of the symbols of a module.

    unit     the root of the unit that a symbol belongs to
    members  the definitions of each unit, by its root, in the module's order
    """

    def __init__(self, module: Op) -> None:
        self.symbols: dict[str, Definition] = {
            op.sym_name: op for op in module.regions[0].block if isinstance(op, Definition)}
        self.uses = {name: _used(op, self.symbols) for name, op in self.symbols.items()}
        self.users: dict[str, list[str]] = {name: [] for name in self.symbols}
        for name, used in self.uses.items():
            for other in used:
                self.users[other].append(name)
        self.addresses = {name: [other for other in _addresses(op) if isinstance(self.symbols.get(other), llvm.Func)]
                          for name, op in self.symbols.items()}
        pointed = {other for others in self.addresses.values() for other in others}
        self.unit: dict[str, str] = {}
        for name, op in self.symbols.items():
            callers = [self.symbols[user] for user in self.users[name]]
            if (op.linkage != "external" and name not in pointed and self._is_large(op)
                    and not all(user.linkage == "external" for user in callers)):
                self.unit[name] = name
        self._assign_private_uses()
        self.members: dict[str, list[Definition]] = {root: [] for root in self.unit.values()}
        for name, op in self.symbols.items():
            if name in self.unit:
                self.members[self.unit[name]].append(op)

    def _is_large(self, op: Definition) -> bool:
        """Whether a function, with those whose address it takes, reaches the outline threshold."""
        return isinstance(op, llvm.Func) and OUTLINE_THRESHOLD <= sum(
            _length(self.symbols[name]) for name in (op.sym_name, *self.addresses[op.sym_name]))

    def _assign_private_uses(self) -> None:
        """Assign definitions that a single unit uses to that unit, to a fixed point."""
        changed = True
        while changed:
            changed = False
            for name, op in self.symbols.items():
                if name in self.unit or not _is_defined(op) or op.linkage == "external" or not self.users[name]:
                    continue
                roots = {self.unit.get(user) for user in self.users[name] if user != name}
                if len(roots) == 1 and None not in roots:
                    self.unit[name] = str(roots.pop())
                    changed = True

    def order(self) -> list[str] | None:
        """Roots in topological order, callees first; None if there is a cycle."""
        done: dict[str, bool] = {}                         # False: in progress
        out: list[str] = []
        for root in self.members:
            work = [root]
            while work:
                top = work[-1]
                if top not in done:
                    done[top] = False
                    needed = {self.unit[op.sym_name] for op in self.outside(self.members[top])
                              if op.sym_name in self.unit}
                    if any(done.get(n) is False for n in needed):
                        return None
                    work += sorted(n for n in needed if n not in done)
                    continue
                work.pop()
                if not done[top]:
                    done[top] = True
                    out.append(top)
        return out

    def outside(self, members: Sequence[Definition]) -> list[Definition]:
        """Definitions of other units that these use."""
        return [op for op in self._used_by(members) if _is_defined(op)]

    def imports(self, members: Sequence[Definition]) -> list[Definition]:
        """External declarations that these use."""
        return [op for op in self._used_by(members) if not _is_defined(op)]

    def _used_by(self, members: Sequence[Definition]) -> list[Definition]:
        inside = {op.sym_name for op in members}
        used = dict.fromkeys(name for op in members for name in self.uses[op.sym_name] if name not in inside)
        return [self.symbols[name] for name in used]


def _is_defined(op: Definition) -> bool:
    return bool(op.body.blocks) if isinstance(op, llvm.Func) else op.value is not None or op.linkage != "external"


def _length(op: Definition) -> int:
    return sum(len(block) for block in op.body.blocks) if isinstance(op, llvm.Func) else 0


def _used(op: Op, symbols: Iterable[str]) -> list[str]:
    """Symbols that an operation refers to, in order of first use."""
    return list(dict.fromkeys(str(value) for inner in op.walk() for key, value in inner.attrs.items()
                              if isinstance(value, Symbol) and key != "sym_name" and value in symbols))


def _addresses(op: Op) -> set[str]:
    """Symbols whose address an operation takes."""
    return {str(inner.global_name) for inner in op.inside(llvm.AddressOf)}
