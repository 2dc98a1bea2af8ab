"""Calls of one pattern (ir/call_pattern.py) at C speed, through a vectorcall function that all patterns share.

    vectorcall(callable, args, nargsf, kwnames) -> object

matches the arguments against the pattern of the callable, a table in memory, allocates the results, calls the entry and
wraps what it returns in tensors. A call that does not match, or whose entry reports an error, takes the slow path with
the same arguments: nothing has been written to. If a tensor among the arguments has a record for autograd, the
callable's `record` is called on the result and the arguments, and its result is that of the call.

The wrapper of backends/cpu/wrapper.py is compiled for one signature and serves a compiled function. This one reads the
signature from a table, which takes some nanoseconds longer, and nothing is compiled for another operation.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable as Function
from collections.abc import Sequence

from mlc.backends.cpu import layout, support
from mlc.backends.cpu.assemble import F64, I1, I32, I64, PTR, Assembler, ModuleBuilder, Signature
from mlc.backends.cpu.checked_call import EntryCall
from mlc.backends.cpu.support import Callable, Scratch, offset
from mlc.dialects.builtin import Module
from mlc.ir import abi
from mlc.ir.core import Block, Value
from mlc.ir.types import Type

NAME = "vectorcall"
MAX_ARRAYS, MAX_SYMBOLS, MAX_RESULTS, MAX_RANK = 16, 16, 8, 8
"""The largest calls that fit in a `Frame`; patterns of others take the slow path."""

ARRAY, FLOAT, INT, CONSTANT, ITEMS = range(5)
"""The kinds of arguments."""

SIGNATURES: dict[str, Signature] = {
    **support.SIGNATURES,
    "PyFloat_AsDouble": (F64, (PTR,)),
    "PyLong_AsLongLongAndOverflow": (I64, (PTR, PTR)),
    "PyObject_RichCompareBool": (I32, (PTR, PTR, I32)),
    "PyErr_Clear": (None, ()),
    "PySequence_Size": (I64, (PTR,)),
    "PySequence_GetItem": (PTR, (PTR, I64)),
}
_EQ, _C_ORDER = 2, 0


class Argument(ctypes.Structure):
    """An argument of a pattern.

    object  numpy's descriptor of the element type, or the constant
    count   the rank, or the number of items
    sizes   per axis a size that has to be found or, below 0, the symbol ~s; the symbols are numbered as they appear
    """

    _fields_ = [("kind", ctypes.c_int64), ("object", ctypes.c_void_p), ("count", ctypes.c_int64),
                ("flags", ctypes.c_int64), ("sizes", ctypes.c_void_p), ("items", ctypes.c_void_p)]


class Result(ctypes.Structure):
    """A result of a pattern; `sizes` has per axis a number, to be added to the symbols times the following numbers."""

    _fields_ = [("dtype", ctypes.c_void_p), ("itemsize", ctypes.c_int64), ("rank", ctypes.c_int64),
                ("sizes", ctypes.c_void_p)]


class Pattern(ctypes.Structure):
    """A call pattern with the signature of its entry.

    fixed      the sizes above 1 of arguments that are numbers, `fixed_count` of them, which no symbol may be
    order      per size that the entry takes, the symbol that it is
    largest    the largest value of a symbol for which no size overflows
    long       the number of elements from which on a call releases the GIL
    constant   whether calls with such a tensor take the slow path
    record     called if a tensor among the arguments has a record for autograd; may be null
    bare       whether the result is not in a tuple
    empty      offsets of the slots of a new tensor that are None
    """

    _fields_ = [("positional", ctypes.c_int64), ("count", ctypes.c_int64), ("keywords", ctypes.c_int64),
                ("names", ctypes.c_void_p), ("arguments", ctypes.c_void_p), ("results", ctypes.c_void_p),
                ("result_count", ctypes.c_int64), ("symbols", ctypes.c_int64), ("order", ctypes.c_void_p),
                ("largest", ctypes.c_int64), ("long", ctypes.c_int64), ("bare", ctypes.c_int64),
                ("constant", ctypes.c_int64), ("fixed", ctypes.c_void_p),
                ("fixed_count", ctypes.c_int64), ("record", ctypes.c_void_p), ("empty", ctypes.c_int64 * 3),
                ("float_type", ctypes.c_void_p), ("int_type", ctypes.c_void_p), ("str_type", ctypes.c_void_p),
                ("list_type", ctypes.c_void_p), ("tuple_type", ctypes.c_void_p)]


class Frame(ctypes.Structure):
    """The state of a call, on the stack.

    arrays    references of the arguments that are arrays, null for numbers
    flags     what numpy has to say of their layout
    copies    those that had to be made, null for others
    scalars   the elements of those that are numbers
    symbols   the values of the symbols found so far, `found` of them
    elements  the number of elements of all arrays
    recorded  whether a tensor among the arguments has a record for autograd
    """

    _fields_ = [("count", ctypes.c_int64), ("found", ctypes.c_int64), ("elements", ctypes.c_int64),
                ("recorded", ctypes.c_int64), ("data", ctypes.c_void_p * MAX_ARRAYS),
                ("arrays", ctypes.c_void_p * MAX_ARRAYS), ("flags", ctypes.c_int64 * MAX_ARRAYS),
                ("copies", ctypes.c_void_p * MAX_ARRAYS), ("scalars", ctypes.c_int64 * MAX_ARRAYS),
                ("symbols", ctypes.c_int64 * MAX_SYMBOLS), ("numbers", ctypes.c_int64 * MAX_SYMBOLS),
                ("made", ctypes.c_void_p * MAX_RESULTS), ("outputs", ctypes.c_void_p * MAX_RESULTS),
                ("shape", ctypes.c_int64 * MAX_RANK)]


def pattern_module() -> Module:
    """The vectorcall function of all patterns."""
    builder = ModuleBuilder(SIGNATURES)
    for support_function in (support.bindings_hold, support.tensor_of, support.drop_all, support.new_array,
                             support.take_scratch, support.grow):
        support_function(builder)
    for function in (_same_constant, _bind_sizes, _take, _names_match, _copy, _allocate, _run, _hand_over, _record):
        function(builder)
    _vectorcall(builder)
    return builder.module


class _Matching(Assembler):
    """Builder of a function that returns false as soon as a condition fails."""

    def __init__(self, builder: ModuleBuilder, name: str, params: Sequence[Type]) -> None:
        super().__init__(builder, name, params, I1)
        self.refused = self.block()

    def need(self, *conditions: Value) -> None:
        for condition in conditions:
            following = self.block()
            self.branch(condition, following, self.refused)
            self.start(following)

    def finish(self) -> None:
        """True at the end of the current block, and the place where failures arrive."""
        self.ret(self.true)
        self.start(self.refused)
        self.ret(self.false)


def _field(a: Assembler, structure: type[ctypes.Structure], pointer: Value, name: str) -> Value:
    kind = next(field[1] for field in structure._fields_ if field[0] == name)
    return a.load(PTR if kind is ctypes.c_void_p else I64, pointer, offset(structure, name))


def _place(a: Assembler, name: str, frame: Value, number: Value) -> Value:
    """The address of an element of an array of the frame."""
    return a.at(frame, a.add(a.mul(number, a.i64(8)), a.i64(offset(Frame, name))))


def _loop(a: Assembler, count: Value, body: Function[[Value], Value | None]) -> None:
    """Emit `body` for the numbers below `count`."""
    check, inside, done = a.block(I64), a.block(), a.block()
    a.goto(check, a.i64(0))
    a.start(check)
    i, = check.args
    a.branch(a.compare("slt", i, count), inside, done)
    a.start(inside)
    body(i)
    a.goto(check, a.add(i, a.i64(1)))
    a.start(done)


def _item(a: Assembler, table: Value, structure: type[ctypes.Structure], number: Value) -> Value:
    return a.at(table, a.mul(number, a.i64(ctypes.sizeof(structure))))


# -- matching ---------------------------------------------------------------------------------------------------------
def _same_constant(builder: ModuleBuilder) -> None:
    """same_constant(pattern, x, y): whether two objects are one, or equal numbers, texts, tuples or lists of these, of
    the same types down to their elements."""
    a = _Matching(builder, "same_constant", [PTR, PTR, PTR])
    pattern, x, y = a.args
    different, compared, not_plain, real, not_real, listed, same = (a.block() for _ in range(7))
    a.branch(a.compare("eq", x, y), same, different)
    a.start(different)
    type = a.load(PTR, x, layout.OB_TYPE)

    def is_a(*names: str) -> Value:
        found = a.false
        for name in names:
            found = a.or_(found, a.compare("eq", type, _field(a, Pattern, pattern, name)))
        return found

    a.need(a.compare("eq", type, a.load(PTR, y, layout.OB_TYPE)))
    a.branch(is_a("int_type", "str_type"), compared, not_plain)
    a.start(compared)
    a.need(a.compare("eq", a.call("PyObject_RichCompareBool", x, y, a.i32(_EQ)), a.i32(1)))
    a.goto(same)
    a.start(not_plain)
    a.branch(is_a("float_type"), real, not_real)
    a.start(real)                                            # by their bits: zeros have a sign
    bits = a.alloca(2)
    for at, number in ((0, x), (8, y)):
        a.store(a.call("PyFloat_AsDouble", number), bits, at)
    a.need(a.compare("eq", a.load(I64, bits), a.load(I64, bits, 8)))
    a.goto(same)
    a.start(not_real)
    a.need(is_a("tuple_type", "list_type"))
    a.goto(listed)
    a.start(listed)
    count = a.call("PySequence_Size", x)
    a.need(a.compare("eq", count, a.call("PySequence_Size", y)))

    def equal_items(i: Value) -> None:
        items = [a.call("PySequence_GetItem", z, i) for z in (x, y)]
        equal = a.call("same_constant", pattern, *items)
        for item in items:
            a.call("Py_DecRef", item)                        # which their list still refers to
        a.need(equal)

    _loop(a, count, equal_items)
    a.goto(same)
    a.start(same)
    a.finish()


def _bind_sizes(builder: ModuleBuilder) -> None:
    """bind_sizes(pattern, dims, sizes, rank, frame): whether the dimensions of an array have these sizes. A symbol is
    bound where it first appears, to a size above 1 that no other symbol and no number is."""
    a = _Matching(builder, "bind_sizes", [PTR, PTR, PTR, I64, PTR])
    pattern, dims, sizes, rank, frame = a.args
    elements = a.alloca(1)
    a.store(a.i64(1), elements)

    def bind(axis: Value) -> None:
        found = a.load(I64, a.at(dims, a.mul(axis, a.i64(8))))
        size = a.load(I64, a.at(sizes, a.mul(axis, a.i64(8))))
        a.store(a.mul(a.load(I64, elements), found), elements)
        number, symbol, known, first, following = (a.block() for _ in range(5))
        a.branch(a.compare("slt", size, a.i64(0)), symbol, number)
        a.start(number)
        a.need(a.compare("eq", found, size))
        a.goto(following)
        a.start(symbol)
        which, count = a.sub(a.i64(-1), size), _field(a, Frame, frame, "found")
        a.branch(a.compare("slt", which, count), known, first)
        a.start(known)
        a.need(a.compare("eq", found, a.load(I64, _place(a, "symbols", frame, which))))
        a.goto(following)
        a.start(first)
        a.need(a.compare("sgt", found, a.i64(1)), a.compare("sle", found, _field(a, Pattern, pattern, "largest")))
        _loop(a, count, lambda i: a.need(a.compare("ne", found, a.load(I64, _place(a, "symbols", frame, i)))))
        fixed = _field(a, Pattern, pattern, "fixed")
        _loop(a, _field(a, Pattern, pattern, "fixed_count"), lambda i: a.need(a.compare(
            "ne", found, a.load(I64, a.at(fixed, a.mul(i, a.i64(8)))))))
        a.store(found, _place(a, "symbols", frame, which))
        a.store(a.add(count, a.i64(1)), frame, offset(Frame, "found"))
        a.goto(following)
        a.start(following)

    _loop(a, rank, bind)
    a.store(a.add(_field(a, Frame, frame, "elements"), a.load(I64, elements)), frame, offset(Frame, "elements"))
    a.finish()


def _take(builder: ModuleBuilder) -> None:
    """take(self, argument, obj, frame): whether an object is such an argument, which is then in the frame."""
    a = _Matching(builder, "take", [PTR, PTR, PTR, PTR])
    self, argument, obj, frame = a.args
    pattern = a.load(PTR, self, offset(Callable, "pattern"))
    type, kind, number = a.load(PTR, obj, layout.OB_TYPE), _field(a, Argument, argument, "kind"), _field(
        a, Frame, frame, "count")
    scalar, done = _place(a, "scalars", frame, number), a.block()

    def case(wanted: int, emit: Function[[], None]) -> None:
        inside, other = a.block(), a.block()
        a.branch(a.compare("eq", kind, a.i64(wanted)), inside, other)
        a.start(inside)
        emit()
        a.goto(done)
        a.start(other)

    def put(array: Value, data: Value, flags: Value) -> None:
        a.store(array, _place(a, "arrays", frame, number))
        a.store(flags, _place(a, "flags", frame, number))
        a.store(data, _place(a, "data", frame, number))
        a.store(a.add(number, a.i64(1)), frame, offset(Frame, "count"))

    def real() -> None:
        a.need(a.compare("eq", type, _field(a, Pattern, pattern, "float_type")))
        a.store(a.call("PyFloat_AsDouble", obj), scalar)
        put(a.null, scalar, a.i64(0))

    def integer() -> None:
        a.need(a.compare("eq", type, _field(a, Pattern, pattern, "int_type")))
        overflow = a.alloca(1)
        a.store(a.call("PyLong_AsLongLongAndOverflow", obj, overflow), scalar)
        a.need(a.compare("eq", a.load(I32, overflow), a.i32(0)))
        put(a.null, scalar, a.i64(0))

    def items() -> None:
        a.need(a.or_(a.compare("eq", type, _field(a, Pattern, pattern, "list_type")),
                     a.compare("eq", type, _field(a, Pattern, pattern, "tuple_type"))))
        count = _field(a, Argument, argument, "count")
        a.need(a.compare("eq", a.call("PySequence_Size", obj), count))

        def take_item(i: Value) -> None:
            item = a.call("PySequence_GetItem", obj, i)
            fits = a.call("take", self, _item(a, _field(a, Argument, argument, "items"), Argument, i), item, frame)
            a.call("Py_DecRef", item)                        # which the list still refers to
            a.need(fits)

        _loop(a, count, take_item)

    def array() -> None:
        found = _array_of(a, self, obj, type, frame)
        a.need(a.compare("eq", a.load(PTR, found, layout.ARRAY_DESCR), _field(a, Argument, argument, "object")))
        rank = a.load(I32, argument, offset(Argument, "count"))
        a.need(a.compare("eq", a.load(I32, found, layout.ARRAY_NDIM), rank))
        a.need(a.call("bind_sizes", pattern, a.load(PTR, found, layout.ARRAY_DIMS),
                      _field(a, Argument, argument, "sizes"), _field(a, Argument, argument, "count"), frame))
        put(found, a.load(PTR, found, layout.ARRAY_DATA), _field(a, Argument, argument, "flags"))

    for kind_of, emit in ((ARRAY, array), (FLOAT, real), (INT, integer), (ITEMS, items)):
        case(kind_of, emit)
    a.need(a.call("same_constant", pattern, obj, _field(a, Argument, argument, "object")))
    a.goto(done)
    a.start(done)
    a.finish()


def _array_of(a: _Matching, self: Value, obj: Value, type: Value, frame: Value) -> Value:
    """The array that an object is or, as a tensor, holds; whether the tensor has a record is noted in the frame."""
    array_type = a.load(PTR, self, offset(Callable, "array_type"))
    tensor, other, kept, following, array = a.block(), a.block(), a.block(), a.block(), a.block(PTR)
    a.branch(a.compare("eq", type, a.load(PTR, self, offset(Callable, "tensor_type"))), tensor, other)
    a.start(tensor)
    record = a.load(PTR, a.at(obj, a.load(I64, self, offset(Callable, "autograd"))))
    none = a.or_(a.is_null(record), a.compare("eq", record, a.load(PTR, self, offset(Callable, "none"))))
    a.branch(none, following, kept)
    a.start(kept)
    a.store(a.i64(1), frame, offset(Frame, "recorded"))
    a.goto(following)
    a.start(following)
    payload = a.load(PTR, a.at(obj, a.load(I64, self, offset(Callable, "payload"))))
    a.need(a.not_null(payload))
    a.need(a.compare("eq", a.load(PTR, payload, layout.OB_TYPE), array_type))
    a.goto(array, payload)
    a.start(other)
    a.need(a.compare("eq", type, array_type))
    a.goto(array, obj)
    a.start(array)
    return array.args[0]


def _names_match(builder: ModuleBuilder) -> None:
    """names_match(pattern, kwnames): whether the keywords of a call are those of the pattern, in this order."""
    a = _Matching(builder, "names_match", [PTR, PTR])
    pattern, given = a.args
    wanted, none, some, done = _field(a, Pattern, pattern, "keywords"), a.block(), a.block(), a.block()
    a.branch(a.is_null(given), none, some)
    a.start(none)
    a.need(a.compare("eq", wanted, a.i64(0)))
    a.goto(done)
    a.start(some)
    a.need(a.compare("eq", a.call("PySequence_Size", given), wanted))

    def same(i: Value) -> None:
        name = a.call("PySequence_GetItem", given, i)
        a.call("Py_DecRef", name)                            # which the tuple still refers to
        a.need(a.compare("eq", name, a.load(PTR, a.at(_field(a, Pattern, pattern, "names"), a.mul(i, a.i64(8))))))

    _loop(a, wanted, same)
    a.goto(done)
    a.start(done)
    a.finish()


# -- the call ---------------------------------------------------------------------------------------------------------
def _copy(builder: ModuleBuilder) -> None:
    """copy(self, frame): copy arrays that do not lie in memory in order; false, and an exception, if there is none."""
    a = _Matching(builder, "copy", [PTR, PTR])
    self, frame = a.args
    count = _field(a, Frame, frame, "count")
    _loop(a, count, lambda i: a.store(a.null, _place(a, "copies", frame, i)))

    def copy(i: Value) -> None:
        array, flags = a.load(PTR, _place(a, "arrays", frame, i)), a.load(I64, _place(a, "flags", frame, i))
        some, present, scattered, done = a.block(), a.block(), a.block(), a.block()
        a.branch(a.compare("eq", flags, a.i64(0)), done, some)
        a.start(some)
        found = a.and_(a.load(I64, array, layout.ARRAY_FLAGS), flags)
        a.branch(a.compare("eq", found, flags), done, scattered)
        a.start(scattered)
        made = a.call_pointer(a.load(PTR, self, offset(Callable, "new_copy")), PTR, array, a.i32(_C_ORDER))
        a.branch(a.is_null(made), a.refused, present)
        a.start(present)
        a.store(made, _place(a, "copies", frame, i))
        a.store(a.load(PTR, made, layout.ARRAY_DATA), _place(a, "data", frame, i))
        a.goto(done)
        a.start(done)

    _loop(a, count, copy)
    a.finish()


def _allocate(builder: ModuleBuilder) -> None:
    """allocate(self, frame): make the arrays of the results; false, and an exception, if there is no memory."""
    a = _Matching(builder, "allocate", [PTR, PTR])
    self, frame = a.args
    pattern = a.load(PTR, self, offset(Callable, "pattern"))
    count, found = _field(a, Pattern, pattern, "result_count"), _field(a, Frame, frame, "found")
    size, term = a.alloca(1), a.alloca(1)
    _loop(a, count, lambda k: a.store(a.null, _place(a, "made", frame, k)))

    def make(k: Value) -> None:
        result = _item(a, _field(a, Pattern, pattern, "results"), Result, k)
        a.store(_field(a, Result, result, "itemsize"), size)
        rank = _field(a, Result, result, "rank")

        def set_size(axis: Value) -> None:
            row = a.at(_field(a, Result, result, "sizes"), a.mul(a.mul(axis, a.add(found, a.i64(1))), a.i64(8)))
            a.store(a.load(I64, row), term)

            def add(symbol: Value) -> None:
                coefficient = a.load(I64, a.at(row, a.mul(a.add(symbol, a.i64(1)), a.i64(8))))
                product = a.mul(coefficient, a.load(I64, _place(a, "symbols", frame, symbol)))
                a.store(a.add(a.load(I64, term), product), term)

            _loop(a, found, add)
            a.store(a.load(I64, term), _place(a, "shape", frame, axis))
            a.store(a.mul(a.load(I64, size), a.load(I64, term)), size)

        _loop(a, rank, set_size)
        dtype, dims = _field(a, Result, result, "dtype"), a.at(frame, offset(Frame, "shape"))
        made = a.call("new_array", self, dtype, a.load(I32, result, offset(Result, "rank")), dims, a.load(I64, size))
        a.need(a.not_null(made))
        a.store(made, _place(a, "made", frame, k))
        a.store(a.load(PTR, made, layout.ARRAY_DATA), _place(a, "outputs", frame, k))

    _loop(a, count, make)
    a.finish()


class _Run(EntryCall):
    """The call of the entry for a frame."""

    def __init__(self, a: Assembler, pattern: Value, frame: Value) -> None:
        super().__init__(a, *(a.at(frame, offset(Frame, name)) for name in ("data", "numbers", "outputs")))
        self.pattern, self.frame = pattern, frame

    def work(self) -> Value:
        a = self.a
        return a.compare("sge", _field(a, Frame, self.frame, "elements"), _field(a, Pattern, self.pattern, "long"))


def _run(builder: ModuleBuilder) -> None:
    """run(self, frame): call the entry, with arrays that live meanwhile; its status, or ARENA_TOO_SMALL if there is no
    memory."""
    a = Assembler(builder, "run", [PTR, PTR], I32)
    self, frame = a.args
    pattern = a.load(PTR, self, offset(Callable, "pattern"))
    without, ready = a.block(), a.block()
    scratch = a.call("take_scratch", a.at(self, offset(Callable, "pool")))
    a.branch(a.is_null(scratch), without, ready)
    a.start(without)
    a.ret(a.i32(abi.ARENA_TOO_SMALL))
    a.start(ready)

    def number(k: Value) -> None:
        symbol = a.load(I64, a.at(_field(a, Pattern, pattern, "order"), a.mul(k, a.i64(8))))
        a.store(a.load(I64, _place(a, "symbols", frame, symbol)), _place(a, "numbers", frame, k))

    _loop(a, _field(a, Pattern, pattern, "symbols"), number)
    count = _field(a, Frame, frame, "count")

    def each_array(change: str) -> None:
        _loop(a, count, lambda i: a.call(change, a.load(PTR, _place(a, "arrays", frame, i))))

    each_array("Py_IncRef")                                  # another thread may give a tensor another array
    status = _Run(a, pattern, frame).call_entry(a.load(PTR, self, offset(Callable, "function")), scratch)
    each_array("Py_DecRef")
    a.store(a.load(PTR, self, offset(Callable, "pool")), scratch, offset(Scratch, "next"))
    a.store(scratch, self, offset(Callable, "pool"))
    for name in ("calls", "all_calls"):
        counter = a.load(PTR, self, offset(Callable, name))
        a.store(a.add(a.load(I64, counter), a.i64(1)), counter)
    a.ret(status)


def _hand_over(builder: ModuleBuilder) -> None:
    """hand_over(self, frame): the results as tensors, or the only one; null, and an exception, if there is no
    memory."""
    a = Assembler(builder, "hand_over", [PTR, PTR], PTR)
    self, frame = a.args
    pattern = a.load(PTR, self, offset(Callable, "pattern"))
    count, none = _field(a, Pattern, pattern, "result_count"), a.load(PTR, self, offset(Callable, "none"))
    failed, one, several, listed = a.block(), a.block(), a.block(), a.block()

    def present(obj: Value) -> Value:
        following = a.block()
        a.branch(a.is_null(obj), failed, following)
        a.start(following)
        return obj

    def wrap(k: Value) -> None:
        tensor = present(a.call("tensor_of", self, a.load(PTR, _place(a, "made", frame, k))))
        for i in range(3):
            a.call("Py_IncRef", none)
            a.store(none, a.at(tensor, a.load(I64, pattern, offset(Pattern, "empty") + 8 * i)))
        a.store(tensor, _place(a, "made", frame, k))

    _loop(a, count, wrap)
    a.branch(a.compare("ne", _field(a, Pattern, pattern, "bare"), a.i64(0)), one, several)
    a.start(one)
    a.ret(a.load(PTR, frame, offset(Frame, "made")))
    a.start(several)
    out = present(a.call("PyTuple_New", count))
    a.goto(listed)
    a.start(listed)
    _loop(a, count, lambda k: a.call("PyTuple_SetItem", out, k, a.load(PTR, _place(a, "made", frame, k))))
    a.ret(out)
    a.start(failed)
    a.call("drop_all", a.at(frame, offset(Frame, "made")), count)
    a.ret(a.null)


def _record(builder: ModuleBuilder) -> None:
    """record(self, out, args, count, kwnames, frame): the result after the pattern's function for autograd, if a tensor
    among the arguments has a record and the pattern has such a function."""
    a = Assembler(builder, "record", [PTR, PTR, PTR, I64, PTR, PTR], PTR)
    self, out, args, count, kwnames, frame = a.args
    pattern = a.load(PTR, self, offset(Callable, "pattern"))
    function = _field(a, Pattern, pattern, "record")
    wanted, some, done = a.block(), a.block(), a.block()
    a.branch(a.compare("ne", _field(a, Frame, frame, "recorded"), a.i64(0)), some, done)
    a.start(some)
    a.branch(a.is_null(function), done, wanted)
    a.start(wanted)
    all = a.alloca(MAX_ARRAYS + 1)
    a.store(out, all)
    total = a.add(count, _field(a, Pattern, pattern, "keywords"))
    _loop(a, total, lambda i: a.store(a.load(PTR, a.at(args, a.mul(i, a.i64(8)))),
                                      a.at(all, a.add(a.mul(i, a.i64(8)), a.i64(8)))))
    found = a.call("PyObject_Vectorcall", function, all, a.add(count, a.i64(1)), kwnames)
    a.call("Py_DecRef", out)
    a.ret(found)
    a.start(done)
    a.ret(out)


def _vectorcall(builder: ModuleBuilder) -> None:
    a = Assembler(builder, NAME, [PTR, PTR, I64, PTR], PTR, public=True)
    self, args, nargsf, kwnames = a.args
    pattern, frame = a.load(PTR, self, offset(Callable, "pattern")), a.alloca(ctypes.sizeof(Frame) // 8)
    slow, failed, dropped, scattered = (a.block() for _ in range(4))

    def need(condition: Value, otherwise: Block = slow) -> None:
        following = a.block()
        a.branch(condition, following, otherwise)
        a.start(following)

    count = a.and_(nargsf, a.i64(layout.VECTORCALL_OFFSET_FLAG - 1))
    need(a.compare("eq", count, _field(a, Pattern, pattern, "positional")))
    need(a.call("bindings_hold", self))
    need(a.call("names_match", pattern, kwnames))
    for name in ("count", "found", "elements", "recorded"):
        a.store(a.i64(0), frame, offset(Frame, name))
    table, made = _field(a, Pattern, pattern, "arguments"), a.at(frame, offset(Frame, "made"))
    results = _field(a, Pattern, pattern, "result_count")
    _loop(a, _field(a, Pattern, pattern, "count"), lambda i: need(a.call(
        "take", self, _item(a, table, Argument, i), a.load(PTR, a.at(args, a.mul(i, a.i64(8)))), frame)))
    refused = a.and_(_field(a, Frame, frame, "recorded"), _field(a, Pattern, pattern, "constant"))
    need(a.compare("eq", refused, a.i64(0)))
    need(a.call("copy", self, frame), scattered)
    need(a.call("allocate", self, frame), failed)
    status = a.call("run", self, frame)
    copies, arrays = a.at(frame, offset(Frame, "copies")), _field(a, Frame, frame, "count")
    a.call("drop_all", copies, arrays)
    need(a.compare("eq", status, a.i32(abi.OK)), dropped)
    out = a.call("hand_over", self, frame)
    following, empty = a.block(), a.block()
    a.branch(a.is_null(out), empty, following)
    a.start(empty)
    a.ret(a.null)
    a.start(following)
    a.ret(a.call("record", self, out, args, count, kwnames, frame))

    for block, after in ((scattered, slow), (failed, dropped)):
        a.start(block)
        a.call("PyErr_Clear")                                # the slow path says what does not fit
        a.call("drop_all", a.at(frame, offset(Frame, "copies")), _field(a, Frame, frame, "count"))
        a.goto(after)
    a.start(dropped)
    a.call("drop_all", made, results)
    a.goto(slow)
    a.start(slow)
    a.ret(a.call("PyObject_Vectorcall", a.load(PTR, self, offset(Callable, "slow_path")), args, nargsf, kwnames))
