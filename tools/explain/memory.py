"""The memory plan of a compilation, as bufferize wrote it: views of the arena, and the kernels that use them."""

from __future__ import annotations

from collections.abc import Mapping

from mlc.dialects import arith, memref
from mlc.dialects.func import Call, Func, Return
from mlc.dialects.tensor.kernel import Kernel
from mlc.ir import sizes
from mlc.ir.core import BlockArg, Op, Value
from mlc.ir.sizes import Dim
from mlc.ir.types import MemRefType, element, i8
from mlc.tools.explain.explanation import Buffer, MemoryPlan
from mlc.tools.explain.lineage import Lineage
from mlc.tools.explain.printing import ContinuousPrinter

ARENA = "arena"
COMPANION = "_arena_bytes"


def plans(module: Op, lineage: Lineage, printer: ContinuousPrinter) -> list[MemoryPlan]:
    """The plan of each function that has an arena and puts something there."""
    functions = {str(f.sym_name): f for f in module.inside(Func)}
    out = []
    for name, function in functions.items():
        arena = next((a for a in function.args if a.name == ARENA and isinstance(a.type, MemRefType)), None)
        if arena is None or not any(isinstance(u, memref.View) for u in arena.users):
            continue
        plan = _plan(function, arena, lineage, printer)
        companion = functions.get(name + COMPANION)
        total = _returned(companion) if companion is not None else _passed(module, name)
        out.append(MemoryPlan(name, total, plan.steps, plan.buffers))
    return out


def _passed(module: Op, name: str) -> str:
    """The size of the arena that a caller passes to a private function, in the caller's sizes."""
    for call in module.inside(Call):
        if call.callee == name:
            for view in (v.op for v in call.args):
                if isinstance(view, memref.View) and view.source.name == ARENA and view.result.type.dtype == i8 and (
                        found := _size(view.sizes[0]) if view.sizes else None) is not None:
                    return str(found)
    return ""


def _plan(function: Func, arena: Value, lineage: Lineage, printer: ContinuousPrinter) -> MemoryPlan:
    steps: dict[Op, int] = {op: i for i, op in enumerate(op for op in function.walk() if isinstance(op, Kernel | Call))}
    inside: dict[Op, tuple[int, int]] = {}                 # first and last step of an operation with regions
    for op, i in steps.items():
        outer = op.parent_op
        while outer is not None and outer is not function:
            inside[outer] = inside.get(outer, (i, i))[0], i
            outer = outer.parent_op
    buffers = []
    for view in arena.users:
        if not isinstance(view, memref.View):
            continue
        used = [step for user in _uses(view.result) for step in _steps(user, view, steps, inside)]
        if used:
            offset, extent = _number(view.byte_shift), _bytes(view)
            buffers.append(Buffer(printer.name_in(function, view.result), str(view.result.type), offset, extent,
                                  min(used), max(used), lineage.number_of[view]))
    return MemoryPlan(str(function.sym_name), "", [_label(op) for op in steps], buffers)


def _label(step: Op) -> str:
    return step.label if isinstance(step, Kernel) else f"call @{step.attrs['callee']}"


def _uses(value: Value) -> list[Op]:
    """The users of a buffer, and of views of it."""
    out, work, seen = list[Op](), [value], set[Value]()
    while work:
        v = work.pop()
        if v in seen:
            continue
        seen.add(v)
        for user in v.users:
            out.append(user)
            work += [r for r in user.results if isinstance(r.type, MemRefType)]
    return out


def _steps(user: Op, view: Op, steps: Mapping[Op, int], inside: Mapping[Op, tuple[int, int]]) -> list[int]:
    """The steps in which a user runs: one, or all of a loop around it that the buffer outlives."""
    found = [steps[user]] if user in steps else list(inside.get(user, ()))
    around = user.parent_op
    while around is not None and around is not view.parent_op:
        found += inside.get(around, ())
        around = around.parent_op
    return found


# -- numbers ----------------------------------------------------------------------------------------------------------
def _number(value: Value) -> str:
    found = _size(value)
    return "?" if found is None else str(found)


def _size(value: Value) -> Dim | None:
    """An index as a size: a constant, an argument, or sums, products and quotients of such."""
    op = value.op
    if op is None:
        return sizes.sym(value.name) if isinstance(value, BlockArg) and value.name else None
    if isinstance(op, arith.Constant):
        return int(op.value)
    operands = [_size(v) for v in op.operands]
    if any(x is None for x in operands) or len(operands) != 2:
        return None
    a, b = operands
    assert a is not None and b is not None
    if isinstance(op, arith.AddI):
        return a + b
    if isinstance(op, arith.MulI):
        return a * b
    if isinstance(op, arith.DivUI):
        return sizes.divide(a, b)
    return None


def _bytes(view: memref.View) -> str:
    dynamic = iter(view.sizes)
    total: Dim = max(1, element(view.result.type).width // 8)
    for n in view.result.type.shape:
        found = _size(next(dynamic)) if n is None else n
        if found is None:
            return "?"
        total = total * found
    return str(total)


def _returned(companion: Func) -> str:
    returned = next(companion.inside(Return))
    found = _size(returned.operands[0])
    return "" if found is None else str(found)
