"""Bufferization of one function: buffer arguments, buffer assignment, and the rewriting of every operation."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from mlc.dialects import arith, func, memref, scf
from mlc.dialects import tensor as tn
from mlc.dialects.builtin import Module
from mlc.dialects.func import UPDATES, Func
from mlc.dialects.index_arithmetic import SizeBuilder
from mlc.dialects.tensor.control import bounds_in
from mlc.dialects.tensor.kernel import Kernel, Yield, buffer_type, copy_attributes, to_buffer
from mlc.ir import sizes
from mlc.ir.abi import REPLACES
from mlc.ir.bounds import most
from mlc.ir.core import Block, BlockArg, Op, Region, Symbol, Value, at_end, before, clone_region
from mlc.ir.interp import ELEMENTS
from mlc.ir.sizes import Dim
from mlc.ir.types import (
    FunctionType,
    MemRefType,
    TensorType,
    Type,
    i1,
    i8,
    i64,
    index,
    substitute_attr,
    to_numpy,
)
from mlc.passes.analysis import kernel_boundary
from mlc.passes.analysis.size_constraints import op_sizes, size_constraints
from mlc.passes.bufferize import regions
from mlc.passes.bufferize.interface import Callee, add_companion, as_taken, describe
from mlc.passes.bufferize.lifetimes import Lifetimes, Overwrites
from mlc.passes.bufferize.numbers import kernel_names, symbols_of
from mlc.passes.bufferize.plan import BufferPlan, Slot, updated, updates
from mlc.passes.bufferize.totals import Sites, sites_of, work_of


class Bufferizer:
    """Bufferizes one function.

    callees  interfaces of the bufferized callees
    sites    error sites of the module
    called   whether the function has callers in the module
    """

    def __init__(self, module: Module, function: Func, callees: dict[str, Callee], sites: Sites,
                 called: bool) -> None:
        self.module = module
        self.function = function
        self.block = function.block
        self.callees = callees
        self.sites = sites
        self.called = called

    def run(self) -> Callee:
        function, block = self.function, self.block
        returned = block.terminator.operands
        old_args = list(block.args)
        inputs = tuple(a.type for a in old_args)
        interface = FunctionType(inputs, tuple(v.type for v in returned))
        if function.is_public and not all(isinstance(t, TensorType) for t in (*interface.inputs, *interface.results)):
            function.fail("a public function takes and returns tensors only", code="MLC0160")
        names = symbols_of([t for t in inputs if isinstance(t, TensorType)])
        self.bounds = bounds_in(function)
        self.check(names)
        bound = {str(op.size): op for op in function.inside(tn.BindSize)}
        calls = {op: self.callees[op.callee].sizes_at(op) for op in function.inside(func.Call)}
        constraints = size_constraints(function, {n: (c.inputs, c.size_constraints) for n, c in self.callees.items()})
        for size, (message, loc) in constraints.items():
            if sizes.symbols(size) & bound.keys():
                function.fail(f"the data-dependent size {size} is not provably non-negative: {loc}: {message}",
                              code="MLC0161")
        for constraint in list(function.inside(tn.ConstrainSize)):
            constraint.erase()                             # part of the interface
        work = work_of(block, lambda call: self.callees[call.callee].work_at(calls[call]))
        work = None if work is None else most(work, self.bounds)
        if work is not None and sizes.symbols(work) & bound.keys():
            work = None
        self.life = Lifetimes(function, {name: c.overwrites for name, c in self.callees.items()})
        aliases = self.donations(returned)
        overwrites = self.overwrites(returned, aliases) if self.called else frozenset()
        if UPDATES in function.attrs:
            function.attrs[UPDATES] = self.updates(returned, aliases)
        self.add_arguments(names, old_args, returned, aliases)
        self.calls = calls
        arenas = {op: sizes.substitute(self.callees[op.callee].arena, env) for op, env in calls.items()}
        planned = {op: most(size, self.bounds) for op, size in arenas.items()}
        self.arena_bytes = {op: 0 if size is None or sizes.symbols(size) & bound.keys() else size
                            for op, size in planned.items()}
        self.heap_bytes = {op: size for op, size in arenas.items() if size != 0 and self.arena_bytes[op] == 0}
        self.plan = BufferPlan(self.life, self.argument_buffers, self.arena_bytes, self.bounds)
        temporaries = self.plan.temporaries
        for op, env in calls.items():
            if op not in self.heap_bytes:
                own = most(sizes.substitute(self.callees[op.callee].temporaries, env), self.bounds)
                temporaries = temporaries + (self.arena_bytes[op] if own is None else own)
        arena = self.lay_out()
        self.rewrite_block(block, [self.argument_buffers.get(v) for v in returned])
        self.first.erase()
        block.erase_args(range(len(old_args)))
        function.attrs.pop("donate", None)
        if function.is_public:
            describe(function, interface, names, aliases, self.sites, work, constraints, temporaries)
            function.attrs["arena"] = str(arena)
            add_companion(self.module, function, names, arena)
        function.update_type()
        return Callee(inputs, interface.results, tuple(names), tuple(aliases), overwrites, arena, temporaries, work,
                      constraints)

    def check(self, names: Sequence[str]) -> None:
        """Check that sizes are bound by arguments or dominating operations, and that there is no recursion."""
        work = [(self.block, set(names))]
        while work:
            block, bound = work.pop()
            for op in block:
                if not isinstance(op, Kernel):           # its sizes are those of its body
                    self.check_sizes(op, bound)
                if isinstance(op, func.Call) and op.callee not in self.callees:
                    op.fail(f"@{op.callee} is recursive through this call, so its memory is unbounded",
                            code="MLC0162")
                work += [(inner, set(bound)) for region in op.regions for inner in region.blocks]
        self.check_sizes(self.block.terminator, set(names), self.block.terminator.operands)
        for block in kernel_boundary.blocks_of(self.function):
            if not all(kernel_boundary.hands_over_its_own(block.terminator)):
                block.terminator.fail("yields a tensor that is not defined in its block", code="MLC0162",
                                      hint="run fuse")

    def check_sizes(self, op: Op, bound: set[str], values: Sequence[Value] = ()) -> None:
        """Check that the sizes of an operation and `values` are `bound`; a bind_size with an upper bound adds one."""
        found: Iterable[Dim] = [*op_sizes(op), *(d for v in values if isinstance(v.type, TensorType)
                                                 for d in v.type.shape)]
        if isinstance(op, tn.BindSize):                  # of one without a bound only calls use the size
            found = () if op.bound is None else (op.bound,)
        if unknown := {n for d in found for n in sizes.symbols(d)} - bound:
            names = ", ".join(sorted(unknown))
            if unknown & self.bounds.keys():
                op.fail(f"the data-dependent size {names} is not known here", code="MLC0161",
                        hint="it is known below its tensor.bind_size in the same block; pad what leaves "
                             "that block to the bound")
            op.fail(f"the size {names} is no size of an argument", code="MLC0161")
        if isinstance(op, tn.BindSize) and op.bound is not None:
            if str(op.size) in bound:
                op.fail(f"the size {op.size} is bound here already", code="MLC0161")
            bound.add(str(op.size))

    def donations(self, returned: Sequence[Value]) -> list[int]:
        """For each result, the donated argument whose buffer it can take: its last reader writes it in place.

        A function with callers alone also takes the buffers of arguments that it updates: a caller that needs the
        old elements makes the copy that the function would have to make for all of them.
        """
        by_type: dict[Type, list[int]] = {}
        for at in sorted(self.function.attrs.get("donate", ())):
            by_type.setdefault(self.block.args[at].type, []).append(at)
        taken: set[int] = set()
        out = [-1] * len(returned)
        for i, v in enumerate(returned):
            if v.op is None or list(returned).index(v) != i:
                continue
            for at in (*by_type.get(v.type, ()), *self.updated_argument(v)):
                if at not in taken and self.may_be_over(v, self.block.args[at]):
                    out[i] = at
                    taken.add(at)
                    break
        return out

    def updated_argument(self, v: Value) -> tuple[int, ...]:
        """The number of the argument that the operation of `v` updates, itself or in a function that it calls."""
        if not self.called or self.function.is_public:
            return ()
        x = updated(v.op)
        if isinstance(v.op, func.Call):
            at = self.callees[v.op.callee].aliases[v.op.results.index(v)]
            x = v.op.args[at] if at >= 0 else None
        return (x.index,) if isinstance(x, BlockArg) and x.block is self.block else ()

    def overwrites(self, returned: Sequence[Value], aliases: Sequence[int]) -> Overwrites:
        """The pairs of an argument and a result for which a caller may pass one buffer.

        A result in the buffer of a donated argument can overwrite no other argument.
        """
        by_type: dict[Type, list[int]] = {}
        for arg in self.block.args:
            by_type.setdefault(arg.type, []).append(arg.index)
        return frozenset((i, j) for j, v in enumerate(returned) for i in by_type.get(v.type, ())
                         if v.op is not None and aliases[j] in (-1, i)
                         and self.may_be_over(v, self.block.args[i]))

    def updates(self, returned: Sequence[Value], aliases: Sequence[int]) -> tuple[int, ...]:
        """For each result, the argument whose new elements it has if it may be written over that, `REPLACES`, or -1."""
        wanted, args = self.function.attrs[UPDATES], self.block.args
        wanted = (*wanted, *[-1] * (len(returned) - len(wanted)))
        times, donated = Counter(returned), {*aliases}
        own = [v.op is not None and alias < 0 and times[v] == 1 for v, alias in zip(returned, aliases)]
        return tuple(at if mine and (at == REPLACES or (
            at >= 0 and at not in donated and v.type == args[at].type and self.may_be_over(v, args[at]))) else -1
            for v, mine, at in zip(returned, own, wanted))

    def may_be_over(self, result: Value, argument: Value) -> bool:
        """Whether a result, and all values that it comes of by updates in place, may be written over an argument."""
        return all(self.life.fits_in_place(x.op, x, argument) for x in updates(result) if x.op is not None)

    def add_arguments(self, names: Sequence[str], old_args: Sequence[Value], returned: Sequence[Value],
                      aliases: Sequence[int]) -> None:
        """Symbols, inputs, results, arena and error record, after the old arguments."""
        block = self.block
        self.symbols: dict[str, Value] = {n: block.add_arg(index, n) for n in names}
        self.argument_buffers: dict[Value, Value] = {}
        for arg in old_args:
            if isinstance(arg.type, TensorType):
                self.argument_buffers[arg] = block.add_arg(buffer_type(arg.type), arg.name)
            else:
                arg.replace_by(block.add_arg(arg.type, arg.name))
        for i, v in enumerate(returned):
            if isinstance(v.type, TensorType):
                self.argument_buffers[v] = (self.argument_buffers[old_args[aliases[i]]] if aliases[i] >= 0 else
                                            block.add_arg(buffer_type(v.type), f"out{i}"))
        self.arena = block.add_arg(MemRefType((None,), i8), "arena")
        self.errors = block.add_arg(MemRefType((1,), i64), "errors")
        self.sizes = SizeBuilder(self.symbols)
        self.first_symbols = frozenset(names)
        every = [*names, *self.bounds]
        self.in_kernels = dict(zip(every, kernel_names(every)))
        self.renamed = {a: sizes.sym(b) for a, b in self.in_kernels.items() if a != b}
        assert block.first is not None
        self.first: Op = arith.Constant.make([], {"value": 0}, [index], loc=block.first.loc)
        block.insert(self.first, block.first)            # insertion point of sizes: the first operation may be replaced

    def lay_out(self) -> Dim:
        """Assign offsets to slots and create the views of the arena; returns its size."""
        plan = self.plan
        offsets: dict[Slot, Dim] = {}
        total: Dim = 0
        for slot in plan.slots:
            offsets[slot] = total
            total = total + slot.bytes
        self.buffers: dict[Value, Value] = {}
        self.later: dict[Value, Value] = {}             # values of data-dependent sizes, and their offsets
        self.arenas: dict[func.Call, Value] = dict.fromkeys(self.calls, self.arena)
        with before(self.first):
            for v, slot in plan.in_slot.items():
                x = updated(v.op)
                if x is not None and x in self.buffers and plan.in_slot.get(x) is slot:
                    self.buffers[v] = self.buffers[x]    # the same buffer tells that the update is in place
                elif any(self.is_bound(d) for d in v.type.shape):
                    self.later[v] = self.sizes.value(offsets[slot])
                else:
                    self.buffers[v] = self.view_of_arena(self.sizes.value(offsets[slot]), v)
            for call, slot in plan.arena_of.items():
                self.arenas[call] = memref.View(self.arena, self.sizes.value(offsets[slot]),
                                                (self.sizes.value(self.arena_bytes[call]),),
                                                MemRefType((None,), i8)).result
        return total

    def view_of_arena(self, offset: Value, v: Value) -> Value:
        dynamic = tuple(self.size(d) for d in v.type.shape if not isinstance(d, int))
        view = memref.View(self.arena, offset, dynamic, buffer_type(v.type)).result
        view.name = v.name
        return view

    # -- rewriting ------------------------------------------------------------------------------------------------
    def buffer(self, v: Value) -> Value:
        """The buffer of a tensor."""
        while v in self.plan.alias_of:
            v = self.plan.alias_of[v]
        if v not in self.buffers:
            storage = self.plan.storage_of.get(v)
            assert storage is not None and not isinstance(storage, Slot), f"{v} has no buffer"
            self.buffers[v] = storage.buffer
        return self.buffers[v]

    def is_bound(self, size: Dim) -> bool:
        """Whether a size is data-dependent."""
        return not sizes.symbols(size) <= self.first_symbols

    def size(self, size: Dim) -> Value:
        """Index value of a size, defined at the start of the function unless it is data-dependent."""
        if self.is_bound(size):
            return SizeBuilder(self.symbols).value(size)
        with before(self.first):
            return self.sizes.value(size)

    def kernel_sizes(self) -> tuple[tuple[Value, ...], tuple[str, ...]]:
        """Sizes that are defined here: their index values, and their names in kernels."""
        known = [n for n in self.symbols if n in self.in_kernels]
        return tuple(self.symbols[n] for n in known), tuple(self.in_kernels[n] for n in known)

    def rewrite_block(self, block: Block, targets: Sequence[Value | None]) -> None:
        """Rewrite the operations of a block, which yields tensors in the buffers `targets`."""
        around = set(self.symbols)
        for op in list(block):
            with before(op):
                if op.terminator:
                    self.end(op, targets)
                else:
                    self.rewrite(op)
        for name in self.symbols.keys() - around:
            del self.symbols[name]
        for old in reversed([o for o in block if any(isinstance(r.type, TensorType) for r in o.results)]):
            old.erase()

    def rewrite(self, op: Op) -> None:
        if isinstance(op, Kernel):
            self.kernel(op)
        elif isinstance(op, func.Call):
            self.call(op)
        elif isinstance(op, tn.Reshape):
            self.buffers[op.result] = self.view(op)
        elif isinstance(op, tn.Constant):
            self.buffers[op.result] = self.constant(op)
        elif isinstance(op, tn.Item):
            op.replace_by(self.item(op))
        elif isinstance(op, tn.FromScalar):
            self.from_scalar(op)
        elif isinstance(op, tn.Extent):
            op.replace_by(self.size(op.value))
        elif isinstance(op, tn.FailIf):
            self.assertion(op)
        elif isinstance(op, tn.BindSize):
            self.buffers[op.result] = self.bind_size(op)
        elif isinstance(op, scf.For):
            regions.rewrite_for(self, op)
        elif isinstance(op, scf.If):
            regions.rewrite_if(self, op)
        elif isinstance(op, scf.While):
            regions.rewrite_while(self, op)
        elif op.name.startswith("tensor."):
            op.fail("stands outside a kernel", code="MLC0162")

    def end(self, terminator: Op, targets: Sequence[Value | None]) -> None:
        """Copy the tensors that a block yields to the target buffers; scalars are yielded as before."""
        for v, target in zip(terminator.operands, targets):
            if target is not None and self.buffer(v) is not target:
                self.copy(v.type, self.buffer(v), target)
        terminator.set_operands([v for v in terminator.operands if not isinstance(v.type, TensorType)])

    def kernel(self, op: Kernel) -> None:
        found = sites_of(op)
        ins, outs = tuple(self.buffer(v) for v in op.ins), tuple(self.buffer(v) for v in op.results)
        body = op.regions[0]
        if self.renamed:
            body = clone_region(body, {}, env=self.renamed)
        else:
            op.regions = ()
            body.parent = None
        numbers, symbols = self.kernel_sizes()
        attrs = substitute_attr(op.attrs, self.renamed) if self.renamed else op.attrs
        Kernel(ins, outs, numbers, self.errors if found else None, body, (),
               **{**attrs, "symbols": symbols, "site": self.sites.first[op]})

    def copy(self, type: TensorType, source: Value, target: Value) -> None:
        """Copy a tensor from one buffer to another, at the insertion point."""
        shape = tuple(sizes.substitute(d, self.renamed) for d in type.shape)
        block = Block([type.with_shape(shape)])
        with at_end(block):
            Yield(tuple(block.args))
        numbers, symbols = self.kernel_sizes()
        Kernel((source,), (target,), numbers, None, Region(block), (), symbols=symbols, label="copy",
               **copy_attributes(shape))

    def call(self, op: func.Call) -> None:
        """Pass symbols, inputs, results, a part of the arena and the error record."""
        callee, env = self.callees[op.callee], self.calls[op]
        tensors = [v for v in op.results if isinstance(v.type, TensorType)]
        results = {v: self.buffer(v) for v in tensors}
        inputs = {i: self.buffer(v) if isinstance(v.type, TensorType) else v for i, v in enumerate(op.args)}
        for j, i in enumerate(callee.aliases):
            if i >= 0:                                   # the callee overwrites this argument
                if inputs[i] is not results[op.results[j]]:
                    self.copy(op.args[i].type, inputs[i], results[op.results[j]])
                inputs[i] = results.pop(op.results[j])
        heap = op in self.heap_bytes
        numbers = SizeBuilder(self.symbols)              # data-dependent sizes are defined here, not at the start
        operands: list[Value] = [numbers.value(env[name]) if self.is_bound(env[name]) else self.size(env[name])
                              for name in callee.symbols]
        operands += [as_taken(v, callee.inputs[i]) for i, v in inputs.items()]
        operands += [as_taken(results[v], t) for v, t in zip(op.results, callee.results) if v in results]
        scalars = [v for v in op.results if v not in tensors]
        arena = memref.Alloc(MemRefType((None,), i8), (numbers.value(self.heap_bytes[op]),)).result if heap else \
            self.arenas[op]
        new = func.Call(op.callee, (*operands, arena, self.errors), tuple(v.type for v in scalars))
        if heap:
            memref.Dealloc(arena)
        for old, value in zip(scalars, new.results):
            old.replace_by(value)
        if not tensors:
            op.erase()

    def view(self, op: tn.Reshape) -> Value:
        """Reinterpret a row-major buffer with another shape."""
        shape = op.result.type.shape
        strides: list[Dim] = [1] * len(shape)
        for axis in reversed(range(len(shape) - 1)):
            strides[axis] = strides[axis + 1] * shape[axis + 1]
        view = memref.reinterpret(self.buffer(op.x), 0, [self.number(d) for d in shape],
                                  [self.number(s) for s in strides])
        return memref.Cast(view, buffer_type(op.result.type)).result

    def number(self, size: Dim) -> int | Value:
        return size if isinstance(size, int) else self.size(size)

    def item(self, op: tn.Item) -> Value:
        zero = self.size(0)
        value: Value = memref.Load(self.buffer(op.x), (zero,) * op.x.type.rank).result
        if op.result.type == i1:
            return arith.CmpI("ne", value, arith.constant(0, i8)).result
        return value

    def from_scalar(self, op: tn.FromScalar) -> None:
        x = op.x
        if x.type == index:
            x = arith.IndexCast(x, i64).result
        elif x.type == i1:
            x = arith.ExtUI(x, i8).result
        memref.Store(x, self.buffer(op.result), ())

    def assertion(self, op: tn.FailIf) -> None:
        """Record the site if the assertion fails, unless one of a smaller number is recorded."""
        at = (self.size(0),)
        record = memref.Load(self.errors, at).result
        number = arith.constant(self.sites.first[op] * ELEMENTS, i64)
        failed = arith.MinUI(record, number).result
        memref.Store(arith.Select(op.bad, failed, record).result, self.errors, at)
        op.erase()

    def bind_size(self, op: tn.BindSize) -> Value:
        """Define the index value of a size; the result is a view of that many rows of no bytes."""
        number = arith.IndexCast(memref.Load(self.buffer(op.n), ()).result, index).result
        rows = arith.MaxSI(number, arith.constant(0, index)).result
        if op.bound is not None:
            rows = arith.MinSI(rows, self.size(op.bound)).result
        self.symbols[str(op.size)] = rows
        for v, offset in list(self.later.items()):
            used = {n for d in v.type.shape for n in sizes.symbols(d)}
            if str(op.size) in used and used <= self.symbols.keys():
                self.buffers[v] = self.view_of_arena(offset, v)
                del self.later[v]
        return memref.View(self.arena, arith.constant(0, index), (rows,), buffer_type(op.result.type)).result

    def constant(self, op: tn.Constant) -> Value:
        """Create a global for a constant."""
        type = buffer_type(op.result.type)
        block = self.module.body.block
        names = {o.attrs.get("sym_name") for o in block}
        name = next(n for i in itertools.count() if (n := f"constant_{i}") not in names)
        block.insert(memref.Global.make([], {
            "sym_name": Symbol(name), "type": type, "sym_visibility": "private", "constant": True, "alignment": None,
            "initial_value": to_buffer(np.ascontiguousarray(op.value), to_numpy(type.dtype))}, [], loc=op.loc),
            before=self.function)
        data = memref.GetGlobal.make([], {"name": Symbol(name)}, [type], loc=op.loc)
        assert op.parent is not None
        op.parent.insert(data, op)
        return data.result
