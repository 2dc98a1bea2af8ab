"""The values of a module that are the same in every call, since they depend on constant arguments alone.

Constant are the arguments that a public function says are, such as the weights of a model (`constants`), and those of a
private function that are at each call.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet

from mlc.dialects import func, tensor
from mlc.dialects.func import CONSTANTS, Func
from mlc.dialects.tensor.traits import checked_operand, moves_elements
from mlc.ir import sizes
from mlc.ir.core import Op, Value
from mlc.ir.types import TensorType
from mlc.passes.analysis.effects import is_pure, pure_functions
from mlc.passes.analysis.free_values import free_values
from mlc.passes.analysis.size_constraints import op_sizes


class ConstantValues:
    """The constant values of a module.

    arguments  the constant arguments of each function
    """

    def __init__(self, module: Op) -> None:
        self._pure = pure_functions(module)
        self.arguments: dict[Func, set[Value]] = {}
        calls: dict[str, list[list[bool]]] = {}            # of functions that are seen before what they call
        every = Counter(call.callee for call in module.walk() if isinstance(call, func.Call))
        for function in reversed(func.callees_first(module)):
            if function.is_declaration or len(function.body.blocks) != 1:
                continue
            at_calls = calls.get(function.sym_name, [])
            is_seen = len(at_calls) == every[function.sym_name] > 0             # not one that calls itself
            held = [i for i in range(len(function.args)) if is_seen and all(known[i] for known in at_calls)]
            self.arguments[function] = {function.args[i] for i in (
                function.attrs.get(CONSTANTS, ()) if function.is_public else held)}
            known = self.of(function)
            for call in function.inside(func.Call):
                calls.setdefault(call.callee, []).append([v in known for v in call.args])

    def of(self, function: Func) -> set[Value]:
        """The constant arguments of a function, and the values that its block computes of them and of literals alone.

        What takes more memory than the constants that it is computed of, as a broadcast or a widened number, is none of
        them, unless it is padded and little: it is computed in each call, from what takes less. A sum of such numbers
        may be one, and they are if they are there for such sums alone.
        """
        known, large = set(self.arguments[function]), dict[Value, set[Value]]()
        for op in function.block if known else ():
            if (held := self.computed_of(op, known, large)) and _is_kept(op, held):
                known.update(op.results)
            elif held:
                large |= dict.fromkeys(op.results, held)
        for value in reversed(large):
            if value.uses and all(user.results and known.issuperset(user.results) for user in value.users):
                known.add(value)
        return known

    def is_constant(self, op: Op, known: AbstractSet[Value]) -> bool:
        """Whether an operation gives constants, given those that are `known`."""
        held = self.computed_of(op, known, {})
        return bool(held) and _is_kept(op, held)

    def computed_of(self, op: Op, known: AbstractSet[Value], large: Mapping[Value, AbstractSet[Value]]) -> set[Value]:
        """The constants that the results of an operation are computed of: those among its operands, and those that
        `large` values are computed of; none if they depend on anything else.

        Panels are unpacked where they are read. What checks its operand stays where it is, and may not be reached.
        """
        if op.terminator or isinstance(op, tensor.Unpack) or not op.operands or not all(
                v in known or v in large or is_literal(v) for v in op.operands):
            return set()
        if _has_symbols(op) or not is_pure(op, self._pure) or checked_operand(op) is not None or not all(
                map(_is_static, op.results)) or (op.regions and set(free_values(op)) != set(op.operands)):
            return set()
        return {root for v in op.operands for root in (large.get(v) or {v} & known)}

    def add_pure(self, function: Func) -> None:
        """Take note of a function without effects that a pass has made."""
        self._pure.add(function.sym_name)


ROOM = 1.25
"""How much more memory than its operands a constant may take: panels are padded."""
LITTLE = 1 << 16
"""Bytes that a padded constant may take in any case."""


def is_view_of_argument(value: Value, arguments: Collection[Value]) -> bool:
    """Whether a value has the elements of an argument, elsewhere at most, so that keeping it saves no computation."""
    while value.op is not None and moves_elements_only(value.op):
        value = value.op.operands[0]
    return value in arguments


def moves_elements_only(op: Op) -> bool:
    """Whether an operation only moves elements of its operand, and its layout is none that is chosen for a reader."""
    return (moves_elements(op) or isinstance(op, tensor.Reshape)) and not isinstance(op, tensor.Pack | tensor.Pad)


def _is_static(value: Value) -> bool:
    return isinstance(value.type, TensorType) and value.type.is_static


def is_literal(value: Value) -> bool:
    """Whether a value is that of an operation which depends on nothing."""
    op = value.op
    return op is not None and op.pure and not op.operands and not op.regions and not _has_symbols(op)


def _has_symbols(op: Op) -> bool:
    """Whether an operation depends on sizes of other arguments."""
    return any(sizes.symbols(d) for inner in op.walk() for d in op_sizes(inner))


def _is_kept(op: Op, held: Iterable[Value]) -> bool:
    """Whether the results of an operation are kept in memory, given the constants that they are computed of."""
    size = _bytes(op.results)
    return size <= ROOM * _bytes(held) or (isinstance(op, tensor.Pad) and size <= LITTLE)


def _bytes(values: Iterable[Value]) -> int:
    return sum(sizes.evaluate(v.type.size, {}) * v.type.dtype.itemsize for v in values)
