"""The function behind a compiled callable: CPython's vectorcall, specialised to one signature, in the llvm dialect.

    vectorcall(callable, args, nargsf, kwnames) -> object

takes positional arguments that are exactly numpy arrays (or tensors, whose slot holds one) of the right element type,
rank, sizes and layout, allocates the results through numpy's C functions, calls the entry and wraps what it returns.
Anything else goes to the slow path, a Python callable with the same meaning; so does a call whose entry refuses, except
that an error record becomes an exception at once, for a second run would see donated arguments already written.

The code holds no address: types, functions and element types are fields of the callable (`Callable`), and CPython's
functions are symbols (`EXTERNALS`). So it depends on the signature alone, and callables of one signature share it.

Fields of a callable change only under the global lock. The lock is released while the entry runs, unless the call is
too short for that to pay.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlc.backends.cpu import abi, layout, support
from mlc.backends.cpu.abi import Context, Interface
from mlc.backends.cpu.assemble import I1, I32, I64, PTR, Assembler, Unit
from mlc.backends.cpu.support import Callable, Scratch, dtype_offset, offset
from mlc.dialects.builtin import Module
from mlc.ir import sizes
from mlc.ir.core import Block, Value
from mlc.ir.sizes import Dim, Quotient, Size, quotients
from mlc.ir.types import ScalarType, Type

NAME = "vectorcall"

LONG_WORK = 1 << 14
"""Elements touched (or elementary steps, where they are known) from which a call releases the global lock."""

def wrapper_module(interface: Interface, tensors: bool, wrap: bool) -> Module:
    """The wrapper of one signature.

    tensors  whether arguments may be tensors
    wrap     whether results become tensors
    """
    unit = Unit(support.SIGNATURES)
    support.fitting_array(unit, tensors)
    if tensors:
        support.consume(unit)
    if wrap:
        support.tensor_of(unit)
    support.drop_all(unit)
    support.new_array(unit)
    support.take_scratch(unit)
    support.grow(unit)
    if interface.donated:
        support.count_overlaps(unit)
    _Wrapper(unit, interface, tensors, wrap).emit()
    return unit.module


# -- what depends on the signature ------------------------------------------------------------------------------------
class _Wrapper:
    """The blocks of one wrapper, in order of execution."""

    def __init__(self, unit: Unit, interface: Interface, tensors: bool, wrap: bool) -> None:
        self.interface = interface
        self.tensors = tensors
        self.wrap = wrap
        self.a = Assembler(unit, NAME, [PTR, PTR, I64, PTR], PTR, public=True)
        self.self, self.args, self.nargsf, self.kwnames = self.a.args
        self.slow = self.a.block()
        self.failed = self.a.block()
        self.env: dict[str, Value] = {}               # the number of each size symbol
        self.known: dict[Dim, Value] = {}             # sizes computed so far
        self.objects: list[Value] = []                # the arguments,
        self.arrays: list[Value] = []                 # their arrays
        self.dims: list[list[Value]] = []             # and the sizes of those
        computed = [d for t in (*interface.inputs, *interface.results) for d in t.shape]
        divided = [d for atom in quotients(interface.temporaries) for d in (atom.num, atom.den)]
        self.largest = _largest_symbol([*computed, *interface.conditions, *divided])

    def emit(self) -> None:
        a, interface = self.a, self.interface
        count = max(len(interface.inputs), 1)
        results = max(len(interface.results), 1)
        self.data, self.numbers = a.alloca(count), a.alloca(max(len(interface.symbols), 1))
        self.outputs, self.made = a.alloca(results), a.alloca(results)
        self.shape = a.alloca(max([t.rank for t in interface.results] + [1]))
        self.spans = a.alloca(2 * count) if interface.donated else None
        for k in range(len(interface.results)):
            a.store(a.null, self.made, 8 * k)

        self.check_count()
        for i in range(len(interface.inputs)):
            self.check_argument(i)
        self.check_sizes()
        self.check_conditions()
        self.check_results()
        if interface.donated:
            self.check_overlaps()
        self.allocate_results()
        self.run()

        a.start(self.slow)
        a.ret(a.call("PyObject_Vectorcall", self.field("slow_path"), self.args, self.nargsf, self.kwnames))
        a.start(self.failed)
        self.drop_results()
        a.ret(a.null)

    def guard(self, *conditions: Value) -> None:
        """Go on if all hold; else to the slow path."""
        a, following = self.a, self.a.block()
        condition = conditions[0]
        for other in conditions[1:]:
            condition = a.and_(condition, other)
        a.branch(condition, following, self.slow)
        a.start(following)

    def field(self, name: str, type: Type = PTR) -> Value:
        """A field of the callable."""
        return self.a.load(type, self.self, offset(Callable, name))

    def dtype(self, type: ScalarType) -> Value:
        """numpy's descriptor of an element type."""
        return self.a.load(PTR, self.self, dtype_offset(type))

    # -- what the caller passes
    def check_count(self) -> None:
        a = self.a
        count = a.and_(self.nargsf, a.i64(layout.VECTORCALL_OFFSET_FLAG - 1))
        self.guard(a.compare("eq", count, a.i64(len(self.interface.inputs))), a.is_null(self.kwnames))

    def check_argument(self, i: int) -> None:
        """Type, element type, rank and layout of one argument; its sizes become known."""
        a, type = self.a, self.interface.inputs[i]
        flags = layout.C_CONTIGUOUS | layout.ALIGNED | (layout.WRITEABLE if i in self.interface.donated else 0)
        obj = a.load(PTR, self.args, 8 * i)
        array = a.call("fitting_array", self.self, obj, self.dtype(type.dtype), a.i32(type.rank), a.i32(flags))
        self.guard(a.not_null(array))
        dims: list[Value] = []
        if type.rank:
            where = a.load(PTR, array, layout.ARRAY_DIMS)
            dims = [a.load(I64, where, 8 * axis) for axis in range(type.rank)]
        a.store(a.load(PTR, array, layout.ARRAY_DATA), self.data, 8 * i)
        self.objects.append(obj)
        self.arrays.append(array)
        self.dims.append(dims)

    def check_sizes(self) -> None:
        """Static sizes, and symbols bound where they first stand alone; then every other size against them."""
        a, interface = self.a, self.interface
        conditions = []
        for name, (i, axis) in interface.binders.items():
            self.env[name] = self.dims[i][axis]
            if self.largest < 1 << 62:
                conditions.append(a.compare("ule", self.env[name], a.i64(self.largest)))
        later: list[tuple[Dim, Value]] = []
        for i, type in enumerate(interface.inputs):
            for axis, (dim, found) in enumerate(zip(type.shape, self.dims[i])):
                if isinstance(dim, int):
                    conditions.append(a.compare("eq", found, a.i64(dim)))
                elif (name := str(dim)) not in self.env:
                    later.append((dim, found))
                elif interface.binders[name] != (i, axis):
                    conditions.append(a.compare("eq", found, self.env[name]))
        if conditions:
            self.guard(*conditions)
        for dim, found in later:
            self.guard(a.compare("eq", found, self.size(dim)))
        for k, name in enumerate(interface.symbols):
            a.store(self.env[name], self.numbers, 8 * k)

    def check_conditions(self) -> None:
        """Sizes are as the function needs them, and its temporary values not larger than 64 bits can say."""
        a, interface = self.a, self.interface
        for size in interface.conditions:
            self.guard(a.compare("sge", self.size(size), a.i64(0)))
        if isinstance(interface.temporaries, Size):
            self.guard(a.compare_floats("olt", self.float_work(interface.temporaries), a.f64(float(support.MAX_BYTES))))

    def check_results(self) -> None:
        """No size is negative, and no array larger than 64 bits can say."""
        a = self.a
        for type in self.interface.results:
            computed = [d for d in type.shape if isinstance(d, Size) and str(d) not in self.env]
            for dim in computed:
                self.guard(a.compare("sge", self.size(dim), a.i64(0)))
            if not type.is_static and (computed or type not in self.interface.inputs):
                count = self.float_size(type.shape, type.dtype.itemsize)
                self.guard(a.compare_floats("olt", count, a.f64(float(support.MAX_BYTES))))

    def check_overlaps(self) -> None:
        """A donated buffer meets no argument but itself."""
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
            self.guard(a.compare("ule", found, a.i64(1)))

    # -- sizes
    def size(self, dim: Dim) -> Value:
        """The number of a size. Divisors that are not positive lead to the slow path."""
        a = self.a
        if isinstance(dim, int):
            return a.i64(dim)
        if dim in self.known:
            return self.known[dim]
        total: Value | None = None
        for monomial, coefficient in dim.terms:
            factors = [self.env[atom] if isinstance(atom, str) else self.quotient(atom)
                       for atom, power in monomial for _ in range(power)]
            if coefficient != 1 or not factors:
                factors.append(a.i64(coefficient))
            term = factors[0]
            for factor in factors[1:]:
                term = a.mul(term, factor)
            total = term if total is None else a.add(total, term)
        assert total is not None
        self.known[dim] = total
        return total

    def quotient(self, atom: Quotient) -> Value:
        """Division rounding down, or the remainder that goes with it."""
        a, num, den = self.a, self.size(atom.num), self.size(atom.den)
        if not isinstance(atom.den, int):
            self.guard(a.compare("sgt", den, a.i64(0)))
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

    # -- the call
    def allocate_results(self) -> None:
        a, interface = self.a, self.interface
        for k, (alias, type) in enumerate(zip(interface.aliases, interface.results)):
            if alias >= 0:
                a.store(a.load(PTR, self.data, 8 * alias), self.outputs, 8 * k)
                continue
            dims = [self.size(d) for d in type.shape]
            for axis, d in enumerate(dims):
                a.store(d, self.shape, 8 * axis)
            made = a.call("new_array", self.self, self.dtype(type.dtype), a.i32(type.rank), self.shape,
                          self.byte_size(dims, type.dtype))
            following = a.block()
            a.branch(a.is_null(made), self.failed, following)
            a.start(following)
            a.store(made, self.made, 8 * k)
            a.store(a.load(PTR, made, layout.ARRAY_DATA), self.outputs, 8 * k)

    def run(self) -> None:
        """Call the entry, with a larger arena if it asks for one, and hand over what it did."""
        a = self.a
        scratch = a.call("take_scratch", self.self)
        without, ready = a.block(), a.block()
        a.branch(a.is_null(scratch), without, ready)
        a.start(without)
        a.call("PyErr_NoMemory")
        a.goto(self.failed)

        a.start(ready)
        context = a.at(scratch, offset(Scratch, "context"))
        if self.tensors:                                     # another thread may give a tensor another array
            for array in self.arrays:
                a.call("Py_IncRef", array)
        attempt, returned, finished = a.block(I1), a.block(I32), a.block(I32)
        a.goto(attempt, a.true)
        a.start(attempt)
        self.enter(context, returned)

        a.start(returned)
        status, again, grow = returned.args[0], attempt.args[0], a.block()
        a.branch(a.and_(again, a.compare("eq", status, a.i32(abi.ARENA_TOO_SMALL))), grow, finished, (), (status,))
        a.start(grow)
        a.branch(a.call("grow", scratch), attempt, finished, (a.false,), (a.i32(abi.ARENA_TOO_SMALL),))

        a.start(finished)
        self.finish(finished.args[0], scratch, context)

    def enter(self, context: Value, returned: Block) -> None:
        """Call the entry, without the global lock where that pays."""
        a = self.a
        function = self.field("function")
        arguments = context, self.data, self.numbers, self.outputs
        work = self.work()
        free, held = a.block(), a.block()
        if isinstance(work, bool):
            a.goto(free if work else held)
        else:
            a.branch(work, free, held)
        a.start(free)
        thread = a.call("PyEval_SaveThread")
        status = a.call_pointer(function, I32, *arguments)
        a.call("PyEval_RestoreThread", thread)
        a.goto(returned, status)
        a.start(held)
        a.goto(returned, a.call_pointer(function, I32, *arguments))

    def work(self) -> bool | Value:
        """Whether a call is long, known now or from its sizes."""
        a, interface = self.a, self.interface
        if interface.work is not None:
            if isinstance(interface.work, int):
                return not 0 <= interface.work < LONG_WORK
            return a.compare_floats("oge", self.float_work(interface.work), a.f64(float(LONG_WORK)))
        types = (*interface.inputs, *interface.results)
        static = sum(sizes.evaluate(t.size, {}) for t in types if t.is_static)
        total = a.f64(float(static))
        if static >= LONG_WORK or all(t.is_static for t in types):
            return static >= LONG_WORK
        for type in types:
            if not type.is_static:
                total = a.fadd(total, self.float_size(type.shape, 1))
        return a.compare_floats("oge", total, a.f64(float(LONG_WORK)))

    def float_work(self, work: Size) -> Value:
        """The terms of `work`, in floats."""
        a, total = self.a, self.a.f64(0.0)
        for monomial, coefficient in work.terms:
            term = a.f64(float(coefficient))
            for atom, power in monomial:
                number = self.env[atom] if isinstance(atom, str) else self.quotient(atom)
                for _ in range(power):
                    term = a.fmul(term, a.to_float(number))
            total = a.fadd(total, term)
        return total

    def finish(self, status: Value, scratch: Value, context: Value) -> None:
        """Give back what the call held; results, an exception, or the slow path by `status`."""
        a = self.a
        record = a.load(I64, context, offset(Context, "record"))
        a.store(self.field("pool"), scratch, offset(Scratch, "next"))
        a.store(scratch, self.self, offset(Callable, "pool"))
        for name in ("calls", "all_calls"):
            counter = self.field(name)
            a.store(a.add(a.load(I64, counter), a.i64(1)), counter)
        for k, alias in enumerate(self.interface.aliases):
            if alias >= 0:
                a.call("Py_IncRef", self.arrays[alias])
                a.store(self.arrays[alias], self.made, 8 * k)
        if self.tensors:
            for array in self.arrays:
                a.call("Py_DecRef", array)
        ran, refused, raised, done, rejected = a.block(), a.block(), a.block(), a.block(), a.block()
        error = a.compare("eq", status, a.i32(abi.ERROR_RECORDED))
        a.branch(a.or_(error, a.compare("eq", status, a.i32(abi.OK))), ran, refused)

        a.start(ran)
        if self.tensors:
            for i in self.interface.donated:
                a.call("consume", self.self, self.objects[i], self.arrays[i])
        a.branch(error, raised, done)

        a.start(done)
        self.hand_over()

        a.start(raised)
        self.drop_results()
        self.raise_error(record)

        a.start(refused)                                     # not run, or not for a reason that we know
        a.goto(rejected)
        a.start(rejected)
        self.drop_results()
        a.goto(self.slow)

    def hand_over(self) -> None:
        """Return the results: wrapped if asked for, as a tuple unless there is exactly one."""
        a, count = self.a, len(self.interface.results)
        for k in range(count if self.wrap else 0):
            tensor = self.object_or_fail(a.call("tensor_of", self.self, a.load(PTR, self.made, 8 * k)))
            a.store(tensor, self.made, 8 * k)
        if count == 1:
            a.ret(a.load(PTR, self.made))
            return
        out = self.object_or_fail(a.call("PyTuple_New", a.i64(count)))
        for k in range(count):
            a.call("PyTuple_SetItem", out, a.i64(k), a.load(PTR, self.made, 8 * k))
        a.ret(out)

    def raise_error(self, record: Value) -> None:
        """Let `on_error` turn the record into an exception."""
        a = self.a
        argument = a.alloca(1)
        number = self.object_or_fail(a.call("PyLong_FromLongLong", record))
        a.store(number, argument)
        a.call("PyObject_Vectorcall", self.field("on_error"), argument, a.i64(1), a.null)
        a.call("Py_DecRef", number)
        a.ret(a.null)

    def object_or_fail(self, obj: Value) -> Value:
        following = self.a.block()
        self.a.branch(self.a.is_null(obj), self.failed, following)
        self.a.start(following)
        return obj

    def drop_results(self) -> None:
        self.a.call("drop_all", self.made, self.a.i64(len(self.interface.results)))


def _largest_symbol(dims: Sequence[Dim]) -> int:
    """The largest power of two such that symbols up to it keep every size, and all terms of it, below 2**62."""
    return next(1 << k for k in range(62, -1, -1) if k == 0 or all(_bound(d, 1 << k) <= 1 << 62 for d in dims))


def _bound(dim: Dim, largest: int) -> int:
    """How large a size, or a part of it, can become when no symbol exceeds `largest`."""
    if isinstance(dim, int):
        return abs(dim)
    total = 0
    for monomial, coefficient in dim.terms:
        term = abs(coefficient)
        for atom, power in monomial:
            if isinstance(atom, str):
                bound = largest
            else:
                num, den = _bound(atom.num, largest), _bound(atom.den, largest)
                bound = max(num, den) + 1               # also bounds what is computed on the way
            term *= bound ** power
        total += term
    return total
