"""The vectorcall function of a compiled callable, specialised to one signature, in the llvm dialect.

    vectorcall(callable, args, nargsf, kwnames) -> object

takes positional arguments that are exactly numpy arrays (or tensors, whose slot holds one) of the right element type,
rank, sizes and layout, allocates the results through numpy's C functions, calls the entry and wraps what it returns.
Any other call takes the slow path, an equivalent Python callable; so does a call whose entry fails, except that an
error record is raised at once, since a second run would see overwritten donated arguments.

The code holds no address: types, functions and element types are fields of the callable (`Callable`), and CPython's
functions are symbols (`EXTERNALS`). So it depends on the signature alone, and callables of one signature share it.

Fields of a callable change only under the GIL, which is released while the entry runs, unless the call is too short
for that to pay off.
"""

from __future__ import annotations

from typing import NamedTuple

from mlc.backends.cpu import captured_call, layout, support
from mlc.backends.cpu.assemble import I1, I64, PTR, Assembler, ModuleBuilder
from mlc.backends.cpu.captured import Captured, State
from mlc.backends.cpu.checked_call import CheckedCall, Refusal
from mlc.backends.cpu.support import Callable, Scratch, dtype_offset, offset
from mlc.dialects.builtin import Module
from mlc.ir import abi
from mlc.ir.abi import Context, Interface
from mlc.ir.core import Value
from mlc.ir.types import ScalarType, Type

NAME = "vectorcall"


class Reached(NamedTuple):
    """The inputs of an entry that are no arguments of the call, and what it does to them.

    inputs    their number
    results   the number of all results of the entry
    returned  which of them the call returns; None for all: it changes nothing
    records   whether the call is recorded for autograd afterwards, so that arguments may have a history
    leaves    whether it leaves arrays for backward, which what is called afterwards takes as its last argument
    wanted    the numbers of the arguments that have a history, and no others have; None if any may
    """

    inputs: int = 0
    results: int = 0
    returned: tuple[int, ...] | None = None
    records: bool = False
    leaves: bool = False
    wanted: tuple[int, ...] | None = None

    @property
    def changed(self) -> bool:
        return self.returned is not None

    def __bool__(self) -> bool:
        return self.changed or self.inputs > 0


NOTHING = Reached()


def wrapper_module(interface: Interface, tensors: bool, wrap: bool, reached: Reached = NOTHING) -> Module:
    """The wrapper of one signature.

    tensors  whether arguments may be tensors
    wrap     whether results become tensors
    """
    builder = ModuleBuilder(support.SIGNATURES)
    support.bindings_hold(builder)
    support.fitting_array(builder, tensors, reached.records)
    if tensors:
        support.consume(builder)
    if wrap:
        support.tensor_of(builder)
    support.drop_all(builder)
    support.new_array(builder)
    support.take_scratch(builder)
    support.grow(builder)
    if interface.donated or reached.changed:
        support.held_by(builder)
    if interface.donated:
        support.count_overlaps(builder)
    if reached:
        captured_call.captured_functions(builder, reached.changed)
    _Wrapper(builder, interface, tensors, wrap, reached).emit()
    return builder.module


# -- what depends on the signature ------------------------------------------------------------------------------------
class _Wrapper(CheckedCall):
    """The blocks of one wrapper, in order of execution."""

    def __init__(self, builder: ModuleBuilder, interface: Interface, tensors: bool, wrap: bool,
                 reached: Reached) -> None:
        count = len(interface.results)
        super().__init__(Assembler(builder, NAME, [PTR, PTR, I64, PTR], PTR, public=True), interface, reached.inputs,
                         reached.results - count if reached.changed else 0)
        self.reached = reached
        self.numbers_of_results = reached.returned if reached.returned is not None else range(count)
        self.tensors = tensors
        self.wrap = wrap
        self.self, self.args, self.nargsf, self.kwnames = self.a.args
        self.slow = self.a.block()
        self.failed = self.a.block()
        self.objects: list[Value] = []                # the arguments,
        self.arrays: list[Value] = []                 # and their arrays

    def emit(self) -> None:
        a, interface = self.a, self.interface
        self.made = a.alloca(len(interface.results) + len(interface.inputs) + 1)
        self.shape = a.alloca(max([t.rank for t in interface.results] + [1]))
        for k in range(len(interface.results)):
            a.store(a.null, self.made, 8 * k)

        self.check_count()
        self.need(a.call("bindings_hold", self.self))
        if self.reached:
            self.need(a.call("captured_hold", self.self, a.true if self.reached.changed else a.false))
        for i in range(len(interface.inputs)):
            self.check_argument(i)
        if self.reached.records:
            self.check_histories()
        self.check_sizes()
        self.check_size_constraints()
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

    def guard(self, *checks: tuple[Value, Refusal]) -> None:
        self.need(*(condition for condition, _ in checks))

    def need(self, *conditions: Value) -> None:
        """Continue if all conditions hold; otherwise take the slow path, which reports the error."""
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
        self.need(a.compare("eq", count, a.i64(len(self.interface.inputs))), a.is_null(self.kwnames))

    def check_argument(self, i: int) -> None:
        """Check type, element type, rank and layout of one argument, and load its sizes."""
        a, type = self.a, self.interface.inputs[i]
        flags = layout.C_CONTIGUOUS | layout.ALIGNED | (layout.WRITEABLE if i in self.interface.donated else 0)
        obj = a.load(PTR, self.args, 8 * i)
        array = a.call("fitting_array", self.self, obj, self.dtype(type.dtype), a.i32(type.rank), a.i32(flags))
        self.need(a.not_null(array))
        if self.tensors and i in self.interface.donated:     # a record for autograd may have the array of a tensor, too
            self.need(a.or_(a.compare("eq", obj, array), a.call("held_by", self.self, array, a.i64(1))))
        dims: list[Value] = []
        if type.rank:
            where = a.load(PTR, array, layout.ARRAY_DIMS)
            dims = [a.load(I64, where, 8 * axis) for axis in range(type.rank)]
        if self.reached.changed:
            self.need(a.compare("eq", a.call("is_changed", self.self, obj), a.false))
        a.store(a.load(PTR, array, layout.ARRAY_DATA), self.data, 8 * i)
        self.objects.append(obj)
        self.arrays.append(array)
        self.dims.append(dims)

    def check_histories(self) -> None:
        """Leave a call in which nothing has a history, or other arguments than the code is for, to the slow path."""
        a, none, wanted = self.a, self.field("none"), self.reached.wanted
        found = a.compare("ne", a.load(I64, self.field("captured"), offset(Captured, "histories")), a.i64(0))
        for i, (obj, array) in enumerate(zip(self.objects, self.arrays)):
            tensor, other, known = a.block(), a.block(), a.block(I1)
            a.branch(a.compare("eq", obj, array), other, tensor)
            a.start(tensor)
            autograd = a.load(PTR, a.at(obj, self.field("autograd", I64)))
            a.goto(known, a.and_(a.not_null(autograd), a.compare("ne", autograd, none)))
            a.start(other)
            a.goto(known, a.false)
            a.start(known)
            has = known.args[0]
            if wanted is not None:
                self.need(has if i in wanted else a.compare("eq", has, a.false))
            found = a.or_(found, has)
        self.need(found)

    # -- the call
    def allocate_results(self) -> None:
        a, interface = self.a, self.interface
        for k, (alias, type) in enumerate(zip(interface.aliases, interface.results)):
            number = self.numbers_of_results[k]
            if alias >= 0:
                a.store(a.load(PTR, self.data, 8 * alias), self.outputs, 8 * number)
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
            a.store(a.load(PTR, made, layout.ARRAY_DATA), self.outputs, 8 * number)

    def run(self) -> None:
        """Call the entry, with a larger arena if it needs one, and return its results."""
        a = self.a
        scratch = a.call("take_scratch", a.at(self.self, offset(Callable, "pool")))
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
        if self.reached:
            self.begin(scratch)
        status = self.call_entry(self.field("function"), scratch)
        self.finish(status, scratch, context)

    def begin(self, scratch: Value) -> None:
        """Store the pointers to captured inputs and what becomes of them."""
        a = self.a
        self.captured = a.call("begin_captured", self.self, a.at(self.data, 8 * len(self.interface.inputs)),
                               self.outputs)
        if not self.reached.changed:                         # which cannot fail
            return
        unready, ready = a.block(), a.block()
        a.branch(a.is_null(self.captured), unready, ready)
        a.start(unready)
        self.give_back(scratch)
        a.goto(self.failed)
        a.start(ready)

    def give_back(self, scratch: Value) -> None:
        """Give up the arena and the arrays of tensors."""
        a = self.a
        a.store(self.field("pool"), scratch, offset(Scratch, "next"))
        a.store(scratch, self.self, offset(Callable, "pool"))
        if self.tensors:
            for array in self.arrays:
                a.call("Py_DecRef", array)

    def finish(self, status: Value, scratch: Value, context: Value) -> None:
        """Release what the call holds; then, by `status`, return results, raise, or take the slow path."""
        a = self.a
        record = a.load(I64, context, offset(Context, "record"))
        for name in ("calls", "all_calls"):
            counter = self.field(name)
            a.store(a.add(a.load(I64, counter), a.i64(1)), counter)
        for k, alias in enumerate(self.interface.aliases):
            if alias >= 0:
                a.call("Py_IncRef", self.arrays[alias])
                a.store(self.arrays[alias], self.made, 8 * k)
        self.give_back(scratch)
        if self.reached and not self.reached.changed:
            a.call("end_captured", self.captured)
        ran, refused, raised, done, rejected = a.block(), a.block(), a.block(), a.block(), a.block()
        error = a.compare("eq", status, a.i32(abi.ERROR_RECORDED))
        a.branch(a.or_(error, a.compare("eq", status, a.i32(abi.OK))), ran, refused)

        a.start(ran)
        if self.tensors:
            for i in self.interface.donated:
                a.call("consume", self.self, self.objects[i], self.arrays[i])
        a.branch(error, raised, done)

        a.start(done)
        if self.reached.changed:
            self.commit()
        self.hand_over()

        a.start(raised)
        if self.reached.changed:
            a.call("end_captured", self.captured)
        self.drop_results()
        self.raise_error(record)

        a.start(refused)                                     # not run, or unknown status
        if self.reached.changed:
            a.call("end_captured", self.captured)
        a.goto(rejected)
        a.start(rejected)
        self.drop_results()
        a.goto(self.slow)

    def commit(self) -> None:
        """Have what the call changes happen."""
        a, changed = self.a, self.a.block()
        self.left = a.call("commit_captured", self.self, self.captured)
        self.after = a.load(PTR, a.load(PTR, self.captured, offset(Captured, "state")), offset(State, "after"))
        a.call("Py_IncRef", self.after)                      # which takes NULL
        a.call("end_captured", self.captured)
        a.branch(a.is_null(self.left), self.failed, changed)
        a.start(changed)

    def hand_over(self) -> None:
        """Return the results: wrapped if asked for, as a tuple unless there is exactly one; None if there is none."""
        a, count = self.a, len(self.interface.results)
        for k in range(count if self.wrap else 0):
            tensor = self.object_or_fail(a.call("tensor_of", self.self, a.load(PTR, self.made, 8 * k)))
            a.store(tensor, self.made, 8 * k)
        if self.reached.changed:
            self.call_after(count)
        if not count and self.reached.changed:
            none = self.field("none")
            a.call("Py_IncRef", none)
            a.ret(none)
            return
        if count == 1:
            a.ret(a.load(PTR, self.made))
            return
        out = self.object_or_fail(a.call("PyTuple_New", a.i64(count)))
        for k in range(count):
            a.call("PyTuple_SetItem", out, a.i64(k), a.load(PTR, self.made, 8 * k))
        a.ret(out)

    def call_after(self, count: int) -> None:
        """Call what is to be called on the results and the arguments."""
        a = self.a
        asked, alone, done = a.block(), a.block(), a.block()
        a.branch(a.is_null(self.after), alone, asked)
        a.start(alone)
        a.call("Py_DecRef", self.left)
        a.goto(done)
        a.start(asked)
        given = [*self.objects, self.left] if self.reached.leaves else self.objects
        for i, obj in enumerate(given):
            a.store(obj, self.made, 8 * (count + i))
        answer = a.call("PyObject_Vectorcall", self.after, self.made, a.i64(count + len(given)), a.null)
        a.call("Py_DecRef", self.after)
        a.call("Py_DecRef", self.left)
        self.object_or_fail(answer)
        a.call("Py_DecRef", answer)
        a.goto(done)
        a.start(done)

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
