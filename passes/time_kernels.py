"""Read the clock around every kernel, and add up the times of each where it is called.

takes  LOOP
gives  LOOP: the same results; every function with kernels has a buffer for times among its arguments
why    what a profile shows of compiled code is measured in it; before equal kernels are outlined to one function, as
       each has lines of its own

The buffer is laid out as ir/kernel_sites.py says. A function takes it and its first slot as its last arguments; a
kernel has one slot, and a call as many as the function that is called. A public function gets the attribute `kernels`:
the line, the module and the label of each slot. Operations and bytes are counted by analysis/kernel_cost.py, here where
sizes are known as values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from mlc.dialects import arith, func, memref, scf
from mlc.dialects.builtin import Module
from mlc.dialects.func import Func
from mlc.dialects.index_arithmetic import SizeBuilder
from mlc.dialects.loop import Kernel, Store
from mlc.dialects.profile import Clock
from mlc.ir import abi
from mlc.ir.core import Op, Symbol, Value, after, at_end, before
from mlc.ir.diag import Loc
from mlc.ir.kernel_sites import EVENT, HEADER, SLOT, KernelSite, SourceLine
from mlc.ir.passes import Pass
from mlc.ir.types import MemRefType, i64, index
from mlc.passes.analysis import kernel_cost
from mlc.passes.forms import LOOP

TIMES = MemRefType((None,), i64)
"""The type of the buffer."""
MAX_LINES = 8
"""Lines of a kernel that are kept."""
VALUE_BYTES = 3
"""The word of a slot that has the bytes of a value."""
Slots = tuple[int, int]
"""The first slot of a kernel, call or value, and the one behind its last."""


@dataclass(frozen=True)
class Site:
    """A slot as of `KernelSite`, with locations for its lines."""

    label: str
    lines: Sequence[Loc]
    threads: bool = False
    live: tuple[int, ...] = ()
    number: str = "f32"

    def called(self, callee: Loc, call: Loc, first: int) -> Site:
        """The slot where the function is called, whose slots begin at `first` there."""
        return replace(self, lines=[loc.called(callee, call) for loc in self.lines],
                       live=tuple(first + slot for slot in self.live))

    def text(self) -> str:
        lines = tuple(SourceLine(loc.file, loc.line, loc.scope) for loc in self.lines)
        return KernelSite(self.label, lines, self.threads, self.live, self.number).text()


def run(module: Module) -> None:
    """Time every kernel of `module`."""
    record = _recorder(module)
    sites: dict[str, list[Site]] = {}
    timed: dict[str, Func] = {}
    for function in func.callees_first(module):
        found = _function(function, sites, timed, record)
        if found or abi.is_entry(function):
            sites[function.sym_name], timed[function.sym_name] = found, function
        if abi.is_entry(function):
            function.attrs["kernels"] = tuple(site.text() for site in found)


def _function(function: Func, sites: dict[str, list[Site]], timed: dict[str, Func], record: Symbol) -> list[Site]:
    """Time the kernels of a function, whose callees are done; the sites of its slots."""
    ops = [op for op in function.walk()
           if isinstance(op, Kernel) or (isinstance(op, func.Call) and sites.get(op.callee))]
    entry = abi.is_entry(function)
    if not ops and not entry:
        return []
    block = function.body.blocks[0]
    times, first = block.add_arg(TIMES, "times"), block.add_arg(index, "slot")
    function.update_type()
    out: list[Site] = []
    slots: dict[Op, Slots] = {}
    for op in ops:
        with before(op):
            slot = arith.AddI(first, arith.constant(len(out), index)).result
        if isinstance(op, func.Call):
            op.set_operands([*op.operands, times, slot])
            slots[op] = len(out), len(out) + len(sites[op.callee])
            out += [site.called(timed[op.callee].loc, op.loc, len(out)) for site in sites[op.callee]]
        else:
            _time(op, times, slot, record)
            slots[op] = len(out), len(out) + 1
            out.append(Site(op.label, kernel_cost.lines(op)[:MAX_LINES], bool(op.schedule.thread_dims),
                            number=kernel_cost.number(op)))
    for view in [op for op in function.walk() if isinstance(op, memref.View)]:
        if (found := _value(view, slots)) is not None:
            _measure(view, times, first, len(out))
            out.append(found)
    return out


def _value(view: memref.View, slots: dict[Op, Slots]) -> Site | None:
    """A value in the arena, with the slots of the kernels that use it; None if none does, or if it is an arena."""
    users: dict[Op, Value] = {}
    work: list[Value] = [view.result]
    while work:
        value = work.pop()
        for user in value.users:
            work += user.results if isinstance(user, memref.ViewLike) else ()
            op: Op | None = user
            while op is not None and op not in slots:
                op = op.parent_op
            if op is not None:
                users[op] = value
    if not users:
        return None
    first = min(users, key=lambda op: slots[op])
    if isinstance(first, func.Call):
        callee = func.callee(first)
        given = next(i for i, v in enumerate(first.operands) if v is users[first])
        if callee.args[given].name.startswith("arena"):
            return None
        lines: Sequence[Loc] = [first.loc]
    else:
        assert isinstance(first, Kernel)
        stores = [op.loc for op in first.inside(Store) if op.buffer is users[first]]
        lines = stores[:1] or kernel_cost.lines(first)[:1]
    live = min(slots[op][0] for op in users), max(slots[op][1] for op in users) - 1
    return Site(str(view.result.type).removeprefix("memref"), lines, live=live)


def _measure(view: memref.View, times: Value, first: Value, slot: int) -> None:
    """Store the bytes of a value."""
    with after(view):
        type = view.result.type
        count = arith.constant(type.dtype.itemsize * prod(n for n in type.shape if n is not None), index)
        for size in view.sizes:
            count = arith.MulI(count, size).result
        at = arith.AddI(first, _number(slot)).result
        place = arith.AddI(arith.MulI(at, _number(SLOT)).result, _number(HEADER + VALUE_BYTES)).result
        memref.Store(_word(count), times, (place,))


def _time(kernel: Kernel, times: Value, slot: Value, record: Symbol) -> None:
    """Read the clock before and after a kernel, and record what it says."""
    with before(kernel):
        sizes = SizeBuilder(dict(zip(kernel.symbols, kernel.operands)))
        flops, moved = sizes.value(kernel_cost.flops(kernel)), sizes.value(kernel_cost.moved(kernel))
        start = Clock().result
    with after(kernel):
        stop = Clock().result
        func.Call(record, (times, slot, start, stop, flops, moved), ())


def _recorder(module: Module) -> Symbol:
    """@record_kernel adds to the sums of a slot, and appends an event if there is room."""
    block = module.body.block
    made = func.function(func.free_symbol(block, "record_kernel"), [TIMES, index, i64, i64, index, index],
                         ("times", "slot", "start", "stop", "flops", "bytes"), private=True)
    block.insert(made)
    times, slot, start, stop, flops, moved = made.args
    with at_end(made.block, made.loc):
        at = arith.AddI(arith.MulI(slot, _number(SLOT)).result, _number(HEADER)).result
        cycles = arith.SubI(stop, start).result
        for i, more in enumerate((arith.constant(1, i64), cycles, _word(flops), _word(moved))):
            place = arith.AddI(at, _number(i)).result
            memref.Store(arith.AddI(memref.Load(times, (place,)).result, more).result, times, (place,))
        free, end = (arith.IndexCast(memref.Load(times, (_number(i),)).result, index).result for i in (0, 1))
        following = arith.AddI(free, _number(EVENT)).result
        room = scf.branch(arith.CmpI("sle", following, end).result, otherwise=False)
        with at_end(room.then_body.block):
            for i, word in enumerate((_word(slot), start, stop)):
                memref.Store(word, times, (arith.AddI(free, _number(i)).result,))
            memref.Store(_word(following), times, (_number(0),))
            scf.Yield(())
        func.Return(())
    made.update_type()
    return Symbol(made.sym_name)


def _number(n: int) -> Value:
    return arith.constant(n, index)


def _word(value: Value) -> Value:
    return arith.IndexCast(value, i64).result


PASS = Pass(run, takes=LOOP, gives=LOOP, whole=False)
