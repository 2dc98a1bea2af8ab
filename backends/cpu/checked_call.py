"""Code common to all emitted wrappers, between unpacking arrays and returning results, in the llvm dialect.

Size symbols are bound from the arguments and checked against their types, derived sizes are computed, donated buffers
are checked for overlap, and the entry is called: with a larger arena if it needs one, and without the GIL if that pays
off. Each wrapper defines how a rejected call is handled (`guard`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial, reduce

from mlc.backends.cpu import support
from mlc.backends.cpu.assemble import I1, I32, PTR, Assembler
from mlc.ir import abi, sizes
from mlc.ir.abi import Interface
from mlc.ir.affine import AffineExpr, Algebra, fold
from mlc.ir.bounds import MAX_ELEMENTS, magnitude
from mlc.ir.core import Block, Value
from mlc.ir.sizes import Dim, Leaf, Quotient, Size, quotients
from mlc.ir.types import ScalarType

LONG_WORK = 1 << 14
"""Minimum number of elements accessed (or elementary steps, if known) for which a call releases the GIL."""

Refusal = Callable[[], None]
"""Emits the handling of a rejected call."""


class EntryCall:
    """The blocks that call an entry.

    data, numbers, outputs  the pointers to its arguments, its sizes, and the pointers to its results
    """

    def __init__(self, a: Assembler, data: Value, numbers: Value, outputs: Value) -> None:
        self.a = a
        self.data, self.numbers, self.outputs = data, numbers, outputs

    def call_entry(self, function: Value | str, scratch: Value) -> Value:
        """Call the entry, again with a larger arena if it needs one; returns its status."""
        a = self.a
        context = a.at(scratch, support.offset(support.Scratch, "context"))
        attempt, returned, finished = a.block(I1), a.block(I32), a.block(I32)
        a.goto(attempt, a.true)
        a.start(attempt)
        self.enter(function, context, returned)

        a.start(returned)
        status, again, grow = returned.args[0], attempt.args[0], a.block()
        a.branch(a.and_(again, a.compare("eq", status, a.i32(abi.ARENA_TOO_SMALL))), grow, finished, (), (status,))
        a.start(grow)
        a.branch(a.call("grow", scratch), attempt, finished, (a.false,), (a.i32(abi.ARENA_TOO_SMALL),))
        a.start(finished)
        return finished.args[0]

    def enter(self, function: Value | str, context: Value, returned: Block) -> None:
        """Call the entry, without the GIL if that pays off."""
        a = self.a
        arguments = context, self.data, self.numbers, self.outputs
        work = self.work()
        free, held = a.block(), a.block()
        if isinstance(work, bool):
            a.goto(free if work else held)
        else:
            a.branch(work, free, held)
        a.start(free)
        thread = a.call("PyEval_SaveThread")
        status = self.called(function, *arguments)
        a.call("PyEval_RestoreThread", thread)
        a.goto(returned, status)
        a.start(held)
        a.goto(returned, self.called(function, *arguments))

    def called(self, function: Value | str, *arguments: Value) -> Value:
        a = self.a
        return a.call(function, *arguments) if isinstance(function, str) else a.call_pointer(function, I32, *arguments)

    def work(self) -> bool | Value:
        """Whether a call is long enough to release the GIL, statically or as a function of sizes."""
        raise NotImplementedError


class CheckedCall(EntryCall):
    """The blocks of one wrapper that depend on the interface of what it calls, which may take and give more than that
    says."""

    def __init__(self, a: Assembler, interface: Interface, inputs: int = 0, results: int = 0) -> None:
        super().__init__(a, a.alloca(max(len(interface.inputs) + inputs, 1)),
                         a.alloca(max(len(interface.symbols), 1)), a.alloca(max(len(interface.results) + results, 1)))
        self.interface = interface
        self.env: dict[str, Value] = {}               # values of the size symbols
        self.known: dict[Dim, Value] = {}             # sizes computed so far
        self.dims: list[list[Value]] = []             # the sizes of the arguments
        computed = [d for t in (*interface.inputs, *interface.results) for d in t.shape]
        divided = [d for atom in quotients(interface.temporaries) for d in (atom.num, atom.den)]
        self.largest = min(largest_symbol([*computed, *interface.size_constraints, *divided]), MAX_ELEMENTS)
        self.spans = a.alloca(2 * len(interface.inputs)) if interface.donated else None

    # -- handling of rejected calls
    def guard(self, *checks: tuple[Value, Refusal]) -> None:
        """Continue if all conditions hold; otherwise reject the call by the refusal of the first that fails."""
        raise NotImplementedError

    def wrong_size(self, i: int, axis: int, expected: Value) -> None:
        """The size of argument i along an axis differs from `expected`."""

    def wrong_condition(self, number: int) -> None:
        """A size constraint of the function is violated."""

    def wrong_result(self, number: int) -> None:
        """A result would have an invalid size."""

    def too_large(self) -> None:
        """Derived sizes, or the bytes of temporary values, overflow."""

    def overlap(self, i: int) -> None:
        """The donated argument i shares memory with another one."""

    def divides_by_zero(self, divisor: Dim) -> None:
        """A size is divided by one that is not positive."""

    def check_sizes(self) -> None:
        """Bind each symbol where it is first a whole dimension, and check every other size."""
        a, interface = self.a, self.interface
        checks: list[tuple[Value, Refusal]] = []
        for name, (i, axis) in interface.binders.items():
            self.env[name] = self.dims[i][axis]
            checks.append((a.compare("ule", self.env[name], a.i64(self.largest)), self.too_large))
        later: list[tuple[int, int, Dim, Value]] = []
        for i, type in enumerate(interface.inputs):
            for axis, (dim, found) in enumerate(zip(type.shape, self.dims[i])):
                if isinstance(dim, int):
                    expected = a.i64(dim)
                elif (name := str(dim)) not in self.env:
                    later.append((i, axis, dim, found))
                    continue
                elif interface.binders[name] == (i, axis):
                    continue
                else:
                    expected = self.env[name]
                checks.append((a.compare("eq", found, expected), partial(self.wrong_size, i, axis, expected)))
        if checks:
            self.guard(*checks)
        for i, axis, dim, found in later:
            expected = self.size(dim)
            self.guard((a.compare("eq", found, expected), partial(self.wrong_size, i, axis, expected)))
        for k, name in enumerate(interface.symbols):
            a.store(self.env[name], self.numbers, 8 * k)

    def check_size_constraints(self) -> None:
        """Check the size constraints, and that the bytes of temporary values fit 64 bits."""
        a, interface = self.a, self.interface
        for number, size in enumerate(interface.size_constraints):
            self.guard((a.compare("sge", self.size(size), a.i64(0)), partial(self.wrong_condition, number)))
        if isinstance(interface.temporaries, Size):
            total = fold(interface.temporaries, _FloatWork(self))
            self.guard((a.compare_floats("olt", total, a.f64(float(support.MAX_BYTES))), self.too_large))

    def check_results(self) -> None:
        """Check that no result size is negative, and that the bytes of each result fit 64 bits."""
        a = self.a
        for number, type in enumerate(self.interface.results):
            wrong = partial(self.wrong_result, number)
            computed = [d for d in type.shape if isinstance(d, Size) and str(d) not in self.env]
            for dim in computed:
                self.guard((a.compare("sge", self.size(dim), a.i64(0)), wrong))
            if not type.is_static and (computed or type not in self.interface.inputs):
                count = self.float_size(type.shape, type.dtype.itemsize)
                self.guard((a.compare_floats("olt", count, a.f64(float(support.MAX_BYTES))), wrong))

    def check_overlaps(self) -> None:
        """Check that a donated buffer overlaps no other argument."""
        a, interface = self.a, self.interface
        assert self.spans is not None
        spans = []
        for i, type in enumerate(interface.inputs):
            start = a.address(a.load(PTR, self.data, 8 * i))
            end = a.add(start, self.byte_size(self.dims[i], type.dtype))
            a.store(start, self.spans, 16 * i)
            a.store(end, self.spans, 16 * i + 8)
            spans.append((start, end))
        for i in interface.donated:
            found = a.call("count_overlaps", self.spans, a.i64(len(spans)), *spans[i])
            self.guard((a.compare("ule", found, a.i64(1)), partial(self.overlap, i)))

    # -- sizes
    def size(self, dim: Dim) -> Value:
        """The value of a size. Calls with divisors that are not positive are rejected."""
        if isinstance(dim, int):
            return self.a.i64(dim)
        if dim not in self.known:
            self.known[dim] = fold(dim, _Sizes(self))
        return self.known[dim]

    def quotient(self, atom: Quotient, num: Value, den: Value) -> Value:
        """Floor division, or the corresponding remainder."""
        a = self.a
        if not isinstance(atom.den, int):
            self.guard((a.compare("sgt", den, a.i64(0)), partial(self.divides_by_zero, atom.den)))
        quotient = a.sdiv(num, den)
        rest = a.sub(num, a.mul(quotient, den))
        below = a.widen(a.compare("slt", rest, a.i64(0)))
        return a.sub(quotient, below) if atom.op == "floordiv" else a.add(rest, a.mul(below, den))

    def byte_size(self, dims: Sequence[Value], dtype: ScalarType) -> Value:
        out = self.a.i64(dtype.itemsize)
        for d in dims:
            out = self.a.mul(out, d)
        return out

    def float_size(self, shape: Sequence[Dim], scale: int) -> Value:
        """scale * product of the sizes, in a float, which cannot overflow."""
        a, number = self.a, float(scale)
        factors = []
        for dim in shape:
            if isinstance(dim, int):
                number *= dim
            else:
                factors.append(a.to_float(self.size(dim)))
        out = a.f64(number)
        for factor in factors:
            out = a.fmul(out, factor)
        return out

    def work(self) -> bool | Value:
        """Whether a call is long enough to release the GIL, statically or as a function of sizes."""
        a, interface = self.a, self.interface
        if interface.work is not None:
            if isinstance(interface.work, int):
                return not 0 <= interface.work < LONG_WORK
            return a.compare_floats("oge", fold(interface.work, _FloatWork(self)), a.f64(float(LONG_WORK)))
        types = (*interface.inputs, *interface.results)
        static = sum(sizes.evaluate(t.size, {}) for t in types if t.is_static)
        total = a.f64(float(static))
        if static >= LONG_WORK or all(t.is_static for t in types):
            return static >= LONG_WORK
        for type in types:
            if not type.is_static:
                total = a.fadd(total, self.float_size(type.shape, 1))
        return a.compare_floats("oge", total, a.f64(float(LONG_WORK)))


class _Sizes(Algebra[Value]):
    """Sizes as integers of a wrapper, each computed once."""

    def __init__(self, call: CheckedCall) -> None:
        self.call, self.a = call, call.a

    def expression(self, expr: AffineExpr) -> Value:
        return self.call.size(expr)

    def constant(self, value: int) -> Value:
        return self.a.i64(value)

    def leaf(self, leaf: Leaf) -> Value:
        assert isinstance(leaf, str), "sizes are made of symbols"
        return self.call.env[leaf]

    def quotient(self, quotient: Quotient, num: Value, den: Value) -> Value:
        return self.call.quotient(quotient, num, den)

    def add(self, a: Value, b: Value) -> Value:
        return self.a.add(a, b)

    def product(self, coefficient: int, factors: Iterator[Value]) -> Value:
        """Emits all factors before their product."""
        found = list(factors)
        if coefficient != 1 or not found:
            found.append(self.constant(coefficient))
        return reduce(self.a.mul, found)


class _FloatWork(_Sizes):
    """Sizes in floats, which cannot overflow; nested quotients are integers."""

    def sum(self, terms: Iterator[Value]) -> Value:
        return reduce(self.a.fadd, terms, self.a.f64(0.0))

    def product(self, coefficient: int, factors: Iterator[Value]) -> Value:
        term = self.a.f64(float(coefficient))
        for factor in factors:
            term = self.a.fmul(term, self.a.to_float(factor))
        return term


def largest_symbol(dims: Sequence[Dim]) -> int:
    """The largest power of two such that symbols up to it keep every size, and all terms of it, below 2**62."""
    def fit(largest: int) -> bool:
        return all(magnitude(d, lambda _: largest) <= 1 << 62 for d in dims)

    return next(1 << k for k in range(62, -1, -1) if k == 0 or fit(1 << k))
