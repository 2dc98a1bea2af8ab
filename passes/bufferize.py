"""Give every tensor a buffer.

takes  FUSED
gives  BUFFERIZED: kernels read and write memrefs; every public function has the interface of compiled code
why    everything below addresses memory

A public function `@f(tensors) -> tensors` becomes

    @f(one index per size symbol, inputs, results that have no donated buffer, %arena: memref<?xi8>,
       %errors: memref<2xi64>)

with the attributes `interface` (its tensor type, as text), `symbols`, `aliases` (per result: the position of the
donated input whose buffer it takes, or -1), `error_sites`, `conditions` (sizes that must not be negative: the caller
sees to it), `condition_sites` and `temporaries` (bytes of all values in the arena), and a companion `@f_arena_bytes`
that computes how many bytes of arena a call needs. All temporary values lie in the arena: a plan gives each an offset,
and two whose lifetimes do not overlap may share bytes. A kernel writes in place over an operand that dies there if it
reads each element only where it writes it.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mlc.dialects import arith, loop, memref
from mlc.dialects import tensor as tn
from mlc.dialects.builtin import Module
from mlc.dialects.func import Func, Return
from mlc.dialects.tensor.kernel import Kernel, buffer_type, to_buffer
from mlc.ir import sizes
from mlc.ir.core import Block, Op, Region, Symbol, Value, at_end, before, clone_region
from mlc.ir.diag import IRError
from mlc.ir.passes import Pass
from mlc.ir.sizes import Dim, Quotient, Size
from mlc.ir.types import FunctionType, MemRefType, TensorType, i8, i64, index, to_numpy
from mlc.passes.conditions import op_sizes, size_conditions
from mlc.passes.forms import BUFFERIZED, FUSED
from mlc.passes.fuse import POINTWISE

ALIGNMENT = 64
"""Bytes between possible offsets in the arena: a cache line, and the widest vector."""


def run(module: Module) -> None:
    """Bufferize every function of `module`."""
    for function in list(module.inside(Func)):
        _Bufferizer(module, function).run()


@dataclass(eq=False)
class Slot:
    """A piece of the arena and the last kernel that uses what lies there now."""

    bytes: Dim
    free_after: int


class SizeBuilder:
    """Numbers of sizes as index values of one function."""

    def __init__(self, symbols: dict[str, Value]) -> None:
        self.symbols = symbols
        self.known: dict[Dim, Value] = {}

    def value(self, size: Dim) -> Value:
        """The index value of a size; built once, at the current insertion point."""
        if size not in self.known:
            self.known[size] = self._build(size)
        return self.known[size]

    def _build(self, size: Dim) -> Value:
        if isinstance(size, int):
            return arith.constant(size, index)
        total: Value | None = None
        for monomial, coefficient in size.terms:
            term: Value | None = None
            for atom, power in monomial:
                if isinstance(atom, str):
                    factor = self.symbols[atom]
                else:
                    factor = quotient(atom, self.value(atom.num), self.value(atom.den))
                for _ in range(power):
                    term = factor if term is None else arith.MulI(term, factor).result
            number = self.value(coefficient)
            term = number if term is None else term if coefficient == 1 else arith.MulI(term, number).result
            total = term if total is None else arith.AddI(total, term).result
        assert total is not None
        return total


def quotient(atom: Quotient, num: Value, den: Value) -> Value:
    """num floordiv den or num mod den, rounded down also where num is negative; den is positive."""
    if sizes.is_natural(atom.num):
        return (arith.DivUI if atom.op == "floordiv" else arith.RemUI)(num, den).result
    down = arith.FloorDivSI(num, den).result
    return down if atom.op == "floordiv" else arith.SubI(num, arith.MulI(down, den).result).result


class _Bufferizer:
    def __init__(self, module: Module, function: Func) -> None:
        self.module = module
        self.function = function
        self.block = function.block
        self.buffers: dict[Value, Value] = {}
        self.slots: list[Slot] = []

    def run(self) -> None:
        function = self.function
        returned = self.block.terminator.operands
        inputs = [a.type for a in self.block.args]
        if not all(isinstance(t, TensorType) for t in inputs):
            function.fail("only functions of tensors can be bufferized; inline the others", code="MLC0160")
        names = _symbols(inputs)
        interface = FunctionType(tuple(inputs), tuple(v.type for v in returned))
        self.check_symbols(names)
        self.steps = {op: i for i, op in enumerate(self.block)}
        self.last = self.last_uses()
        aliases = self.donations(returned)
        old_args = list(self.block.args)
        symbols = {n: self.block.add_arg(index, n) for n in names}
        for arg in old_args:
            new = self.block.add_arg(buffer_type(arg.type), arg.name)
            self.buffers[arg] = new
        for i, v in enumerate(returned):
            if aliases[i] < 0:
                self.block.add_arg(buffer_type(v.type), f"out{i}")
        targets = iter(self.block.args[len(old_args) + len(names) + len(old_args):])
        self.results = [next(targets) if a < 0 else self.buffers[old_args[a]] for a in aliases]
        self.arena = self.block.add_arg(MemRefType((None,), i8), "arena")
        self.errors = self.block.add_arg(MemRefType((2,), i64), "errors")
        self.sizes = SizeBuilder(dict(symbols))
        self.symbols = symbols
        self.kernel_symbols = kernel_names(names)
        self.renamed = {a: sizes.sym(b) for a, b in zip(names, self.kernel_symbols) if a != b}
        self.sites: list[str] = []
        work = _work(self.block)
        conditions = size_conditions(function)
        self.place(returned)
        for op in list(self.block):
            self.rewrite(op)
        for arg in reversed(old_args):
            self.block.erase_arg(arg.index)
        function.attrs |= {"interface": str(interface), "symbols": tuple(names), "aliases": tuple(aliases),
                           "error_sites": tuple(self.sites), "work": str(work)}
        if conditions:
            function.attrs |= {"conditions": tuple(map(str, conditions)), "condition_sites": tuple(conditions.values())}
        if not isinstance(self.temporaries, int):
            function.attrs["temporaries"] = str(self.temporaries)
        function.attrs.pop("donate", None)
        function.update_type()
        self.companion(names)

    def check_symbols(self, names: list[str]) -> None:
        for op in self.function.walk():
            if unknown := {n for d in op_sizes(op) for n in sizes.symbols(d)} - set(names):
                op.fail(f"the size {', '.join(sorted(unknown))} is no size of an argument", code="MLC0161")

    def last_uses(self) -> dict[Value, int]:
        """The last step that reads each value, also through views; what is returned lives to the end."""
        last: dict[Value, int] = {}
        for op in reversed(list(self.block)):
            step = self.steps[op]
            for v in op.operands:
                last.setdefault(v, step)
            if isinstance(op, tn.Reshape):
                last[op.x] = max(last[op.x], last.get(op.result, step))
        return last

    # -- donated and returned buffers -----------------------------------------------------------------------------
    def donations(self, returned: Sequence[Value]) -> list[int]:
        """For each result, the donated argument whose buffer it can take: its last reader writes it in place."""
        donate = set(self.function.attrs.get("donate", ()))
        taken: set[int] = set()
        out = [-1] * len(returned)
        for i, v in enumerate(returned):
            if not isinstance(v.op, Kernel) or list(returned).index(v) != i:
                continue
            for arg in self.block.args:
                if arg.index in donate and arg.index not in taken and arg.type == v.type and self.fits_in_place(
                        v.op, v, arg):
                    out[i] = arg.index
                    taken.add(arg.index)
                    break
        return out

    def fits_in_place(self, kernel: Kernel, result: Value, operand: Value) -> bool:
        """Whether `result` may be written over `operand`: same bytes, last read here, element by element."""
        a, b = result.type, operand.type
        if a.shape != b.shape or a.dtype.itemsize != b.dtype.itemsize:
            return False
        if self.last.get(operand, -1) > self.steps[kernel] or _is_viewed(operand):
            return False
        if operand not in kernel.ins:
            return self.last.get(operand, -1) < self.steps[kernel]
        argument = kernel.body.block.args[kernel.ins.index(operand)]
        return kernel.ins.count(operand) == 1 and reads_own_element(kernel, argument, a.shape)

    def place(self, returned: Sequence[Value]) -> None:
        """A buffer for every kernel result: the caller's, that of an operand, or a slot of the arena."""
        in_slot: dict[Value, Slot] = {}
        self.temporaries: Dim = 0
        for kernel in [op for op in self.block if isinstance(op, Kernel)]:
            step = self.steps[kernel]
            used: set[Slot] = set()
            for v in kernel.results:
                if v in returned:
                    self.buffers[v] = self.results[list(returned).index(v)]
                    continue
                size = (v.type.size * v.type.dtype.itemsize + (ALIGNMENT - 1)) // ALIGNMENT * ALIGNMENT
                slot = next((s for x in kernel.ins if (s := in_slot.get(x)) is not None and s not in used
                             and s.free_after == step and self.fits_in_place(kernel, v, x)), None)
                slot = slot or self.free_slot(size, step)
                slot.free_after = max(self.last.get(v, step), step)
                used.add(slot)
                in_slot[v] = slot
                self.temporaries = self.temporaries + v.type.size * v.type.dtype.itemsize
        self.lay_out(in_slot)

    def lay_out(self, in_slot: dict[Value, Slot]) -> None:
        """Offsets of the slots, and the views of the arena at the start of the function."""
        offsets: dict[Slot, Dim] = {}
        self.total: Dim = 0
        for slot in self.slots:
            offsets[slot] = self.total
            self.total = self.total + slot.bytes
        first = self.block.first
        assert first is not None
        with before(first):
            for v, slot in in_slot.items():
                type = buffer_type(v.type)
                dynamic = tuple(self.sizes.value(d) for d in v.type.shape if not isinstance(d, int))
                view = memref.View(self.arena, self.sizes.value(offsets[slot]), dynamic, type).result
                view.name = v.name
                self.buffers[v] = view

    def free_slot(self, size: Dim, step: int) -> Slot:
        """A slot that nothing uses at `step`: the smallest that holds `size`, the largest grown, or a new one."""
        free = [s for s in self.slots if s.free_after < step]
        if equal := next((s for s in free if s.bytes == size), None):
            return equal
        if isinstance(size, int):
            numbers = [(s.bytes, i, s) for i, s in enumerate(free) if isinstance(s.bytes, int)]
            if fitting := [n for n in numbers if n[0] >= size]:
                return min(fitting)[2]
            if numbers:
                slot = max(numbers)[2]
                slot.bytes = size
                return slot
        slot = Slot(size, step)
        self.slots.append(slot)
        return slot

    # -- rewriting ------------------------------------------------------------------------------------------------
    def rewrite(self, op: Op) -> None:
        if isinstance(op, Kernel):
            self.kernel(op)
        elif isinstance(op, tn.Reshape):
            with before(op):
                self.buffers[op.result] = self.view(op)
        elif isinstance(op, tn.Constant):
            self.buffers[op.result] = self.constant(op)
        elif isinstance(op, Return):
            self.finish(op)
        elif op.name.startswith(("tensor.", "func.")):
            op.fail("stands outside a kernel", code="MLC0162")

    def kernel(self, op: Kernel) -> None:
        sites = _sites(op)
        with before(op):
            body = op.regions[0]
            if self.renamed:
                body = clone_region(body, {}, env=self.renamed)
            else:
                op.regions = ()
                body.parent = None
            errors = self.errors if sites else None
            new = Kernel(tuple(self.buffers[v] for v in op.ins), tuple(self.buffers[v] for v in op.results),
                         tuple(self.symbols.values()), errors, body, (), symbols=self.kernel_symbols, label=op.label,
                         unfused=op.unfused)
            new.attrs["site"] = len(self.sites)
            self.sites += sites

    def view(self, op: tn.Reshape) -> Value:
        """A row-major buffer under another shape."""
        shape = op.result.type.shape
        strides: list[Dim] = [1] * len(shape)
        for axis in reversed(range(len(shape) - 1)):
            strides[axis] = strides[axis + 1] * shape[axis + 1]
        view = memref.reinterpret(self.buffers[op.x], 0, [self.number(d) for d in shape],
                                  [self.number(s) for s in strides])
        return memref.Cast(view, buffer_type(op.result.type)).result

    def number(self, size: Dim) -> int | Value:
        return size if isinstance(size, int) else self.sizes.value(size)

    def constant(self, op: tn.Constant) -> Value:
        """An array of the program's data, one global per constant."""
        type = buffer_type(op.result.type)
        block = self.module.body.block
        names = {o.attrs.get("sym_name") for o in block}
        name = next(n for i in itertools.count() if (n := f"constant_{i}") not in names)
        block.insert(memref.Global.make([], {
            "sym_name": Symbol(name), "type": type, "sym_visibility": "private", "constant": True, "alignment": None,
            "initial_value": to_buffer(np.ascontiguousarray(op.value), to_numpy(type.dtype))}, [], loc=op.loc),
            before=self.function)
        data = memref.GetGlobal.make([], {"name": Symbol(name)}, [type], loc=op.loc)
        self.block.insert(data, op)
        return data.result

    def finish(self, op: Return) -> None:
        op.set_operands(())
        for old in reversed([o for o in self.block if any(isinstance(r.type, TensorType) for r in o.results)]):
            old.erase()

    def companion(self, names: list[str]) -> None:
        """`@f_arena_bytes`: the size of the arena for given sizes."""
        name = f"{self.function.sym_name}_arena_bytes"
        block = Block([index] * len(names), names)
        with at_end(block, self.function.loc):
            total = SizeBuilder(dict(zip(names, block.args))).value(self.total)
            Return((total,))
        companion = Func.make([], {"sym_name": Symbol(name), "sym_visibility": None, "function_type": FunctionType(
            (index,) * len(names), (index,))}, [], [Region(block)], loc=self.function.loc)
        self.module.body.block.insert(companion)


def _symbols(types: Sequence[TensorType]) -> list[str]:
    """The size symbols of argument types, in order of appearance; each must stand alone somewhere."""
    out = list(dict.fromkeys(str(d) for t in types for d in t.shape if isinstance(d, Size) and str(d).isidentifier()))
    for t in types:
        for d in t.shape:
            if missing := sizes.symbols(d) - set(out):
                raise IRError(f"the size {', '.join(sorted(missing))} cannot be read off any argument: it stands only "
                              f"in {t}", code="MLC0163")
    return out


def kernel_names(names: Sequence[str]) -> tuple[str, ...]:
    """What the size symbols are called in kernels, where `d0` and `t0` are coordinates and index tiles."""
    taken = set(names)
    out = []
    for name in names:
        inside = name
        while loop.is_reserved(name) and inside in taken:
            inside += "_"
        taken.add(inside)
        out.append(inside)
    return tuple(out)


def _is_viewed(value: Value) -> bool:
    return isinstance(value.op, tn.Reshape) or any(isinstance(u, tn.Reshape) for u in value.users)


def _sites(kernel: Kernel) -> list[str]:
    """The places in a kernel where an index can be out of range, as `file:line:col: message`."""
    return [f"{op.loc}: an index of {op.name.removeprefix('tensor.')} is out of range for axis {op.axis} of size "
            f"{op.x.type.shape[op.axis]}" for op in kernel.body.block if isinstance(op, tn.Take | tn.TakeAlong)]


def _work(block: Block) -> Dim:
    """About how many operations on elements a call makes: points times operations, over all kernels."""
    total: Dim = 0
    for kernel in block:
        if isinstance(kernel, Kernel):
            for op in kernel.body.block:
                for r in op.results:
                    points = r.type.size
                    if isinstance(op, tn.DotGeneral):
                        points = points * sizes.product(op.lhs.type.shape[a] for a, _ in op.contract)
                    total = total + points
    return total


def reads_own_element(kernel: Kernel, argument: Value, shape: tuple[Dim, ...]) -> bool:
    """Whether the kernel reads element p of `argument` only to compute element p of its results of that shape."""
    if any(v.type.shape != shape for v in kernel.body.block.terminator.operands):
        return False
    work = [argument]
    seen: set[Value] = set()
    while work:
        value = work.pop()
        if value in seen:
            continue
        seen.add(value)
        for user in value.users:
            if user.terminator:
                continue
            if not isinstance(user, POINTWISE) or user.results[0].type.shape != shape:
                return False
            work += user.results
    return True


PASS = Pass(run, takes=FUSED, gives=BUFFERIZED)
