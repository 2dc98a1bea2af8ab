"""Matching of the arguments of a call against a call pattern: the table, and the emitted functions that read it.

The functions fill a `Frame`, which backends/cpu/pattern_call.py then runs.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable as Function
from collections.abc import Sequence

from mlc.backends.cpu import layout, support
from mlc.backends.cpu.assemble import F64, I1, I32, I64, PTR, Assembler, ModuleBuilder, Signature
from mlc.backends.cpu.support import Callable, offset
from mlc.ir.core import Value
from mlc.ir.types import Type

MAX_ARRAYS, MAX_SYMBOLS, MAX_RESULTS, MAX_RANK = 1024, 16, 512, 8
"""The largest calls that fit in a `Frame`; patterns of others take the slow path. Pullbacks of whole modules have an
array for each parameter. A frame takes 50 kB of the stack, of which only what a call uses is touched."""

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
_EQ = 2


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
    always     whether it is called in any case
    distinct   whether different symbols are different sizes
    bare       whether the result is not in a tuple
    empty      offsets of the slots of a new tensor that are None
    """

    _fields_ = [("positional", ctypes.c_int64), ("count", ctypes.c_int64), ("keywords", ctypes.c_int64),
                ("names", ctypes.c_void_p), ("arguments", ctypes.c_void_p), ("results", ctypes.c_void_p),
                ("result_count", ctypes.c_int64), ("symbols", ctypes.c_int64), ("order", ctypes.c_void_p),
                ("largest", ctypes.c_int64), ("long", ctypes.c_int64), ("bare", ctypes.c_int64),
                ("constant", ctypes.c_int64), ("fixed", ctypes.c_void_p), ("fixed_count", ctypes.c_int64),
                ("always", ctypes.c_int64), ("record", ctypes.c_void_p), ("empty", ctypes.c_int64 * 3),
                ("float_type", ctypes.c_void_p), ("int_type", ctypes.c_void_p), ("str_type", ctypes.c_void_p),
                ("list_type", ctypes.c_void_p), ("tuple_type", ctypes.c_void_p), ("distinct", ctypes.c_int64)]


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


class Matching(Assembler):
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


def field(a: Assembler, structure: type[ctypes.Structure], pointer: Value, name: str) -> Value:
    kind = next(field[1] for field in structure._fields_ if field[0] == name)
    return a.load(PTR if kind is ctypes.c_void_p else I64, pointer, offset(structure, name))


def place(a: Assembler, name: str, frame: Value, number: Value) -> Value:
    """The address of an element of an array of the frame."""
    return a.at(frame, a.add(a.mul(number, a.i64(8)), a.i64(offset(Frame, name))))


def loop(a: Assembler, count: Value, body: Function[[Value], Value | None]) -> None:
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


def item(a: Assembler, table: Value, structure: type[ctypes.Structure], number: Value) -> Value:
    return a.at(table, a.mul(number, a.i64(ctypes.sizeof(structure))))


def same_constant(builder: ModuleBuilder) -> None:
    """same_constant(pattern, x, y): whether two objects are one, or equal numbers, texts, tuples or lists of these, of
    the same types down to their elements."""
    a = Matching(builder, "same_constant", [PTR, PTR, PTR])
    pattern, x, y = a.args
    different, compared, not_plain, real, not_real, listed, same = (a.block() for _ in range(7))
    a.branch(a.compare("eq", x, y), same, different)
    a.start(different)
    type = a.load(PTR, x, layout.OB_TYPE)

    def is_a(*names: str) -> Value:
        found = a.false
        for name in names:
            found = a.or_(found, a.compare("eq", type, field(a, Pattern, pattern, name)))
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

    loop(a, count, equal_items)
    a.goto(same)
    a.start(same)
    a.finish()


def bind_sizes(builder: ModuleBuilder) -> None:
    """bind_sizes(pattern, dims, sizes, rank, frame): whether the dimensions of an array have these sizes. A symbol is
    bound where it first appears, to a size above 1 that, if the symbols are distinct, no other one and no number is."""
    a = Matching(builder, "bind_sizes", [PTR, PTR, PTR, I64, PTR])
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
        which, count = a.sub(a.i64(-1), size), field(a, Frame, frame, "found")
        a.branch(a.compare("slt", which, count), known, first)
        a.start(known)
        a.need(a.compare("eq", found, a.load(I64, place(a, "symbols", frame, which))))
        a.goto(following)
        a.start(first)
        a.need(a.compare("sgt", found, a.i64(1)), a.compare("sle", found, field(a, Pattern, pattern, "largest")))
        others = a.select(a.compare("eq", field(a, Pattern, pattern, "distinct"), a.i64(0)), a.i64(0), count)
        loop(a, others, lambda i: a.need(a.compare("ne", found, a.load(I64, place(a, "symbols", frame, i)))))
        fixed = field(a, Pattern, pattern, "fixed")
        loop(a, field(a, Pattern, pattern, "fixed_count"), lambda i: a.need(a.compare(
            "ne", found, a.load(I64, a.at(fixed, a.mul(i, a.i64(8)))))))
        a.store(found, place(a, "symbols", frame, which))
        a.store(a.add(count, a.i64(1)), frame, offset(Frame, "found"))
        a.goto(following)
        a.start(following)

    loop(a, rank, bind)
    a.store(a.add(field(a, Frame, frame, "elements"), a.load(I64, elements)), frame, offset(Frame, "elements"))
    a.finish()


def _take_items(a: Matching) -> None:
    """Take each item of a sequence by the argument of its place."""
    self, argument, obj, frame = a.args
    count = field(a, Argument, argument, "count")
    a.need(a.compare("eq", a.call("PySequence_Size", obj), count))

    def take_item(i: Value) -> None:
        child = a.call("PySequence_GetItem", obj, i)
        fits = a.call("take", self, item(a, field(a, Argument, argument, "items"), Argument, i), child, frame)
        a.call("Py_DecRef", child)                           # which the list still refers to
        a.need(fits)

    loop(a, count, take_item)


def take(builder: ModuleBuilder) -> None:
    """take(self, argument, obj, frame): whether an object is such an argument, which is then in the frame."""
    a = Matching(builder, "take", [PTR, PTR, PTR, PTR])
    self, argument, obj, frame = a.args
    pattern = a.load(PTR, self, offset(Callable, "pattern"))
    type, kind, number = a.load(PTR, obj, layout.OB_TYPE), field(a, Argument, argument, "kind"), field(
        a, Frame, frame, "count")
    scalar, done = place(a, "scalars", frame, number), a.block()

    def case(wanted: int, emit: Function[[], None]) -> None:
        inside, other = a.block(), a.block()
        a.branch(a.compare("eq", kind, a.i64(wanted)), inside, other)
        a.start(inside)
        emit()
        a.goto(done)
        a.start(other)

    def put(array: Value, data: Value, flags: Value) -> None:
        a.store(array, place(a, "arrays", frame, number))
        a.store(flags, place(a, "flags", frame, number))
        a.store(data, place(a, "data", frame, number))
        a.store(a.add(number, a.i64(1)), frame, offset(Frame, "count"))

    def real() -> None:
        a.need(a.compare("eq", type, field(a, Pattern, pattern, "float_type")))
        a.store(a.call("PyFloat_AsDouble", obj), scalar)
        put(a.null, scalar, a.i64(0))

    def integer() -> None:
        a.need(a.compare("eq", type, field(a, Pattern, pattern, "int_type")))
        overflow = a.alloca(1)
        a.store(a.call("PyLong_AsLongLongAndOverflow", obj, overflow), scalar)
        a.need(a.compare("eq", a.load(I32, overflow), a.i32(0)))
        put(a.null, scalar, a.i64(0))

    def array() -> None:
        found = _array_of(a, self, obj, type, frame)
        a.need(a.compare("eq", a.load(PTR, found, layout.ARRAY_DESCR), field(a, Argument, argument, "object")))
        rank = a.load(I32, argument, offset(Argument, "count"))
        a.need(a.compare("eq", a.load(I32, found, layout.ARRAY_NDIM), rank))
        a.need(a.call("bind_sizes", pattern, a.load(PTR, found, layout.ARRAY_DIMS),
                      field(a, Argument, argument, "sizes"), field(a, Argument, argument, "count"), frame))
        put(found, a.load(PTR, found, layout.ARRAY_DATA), field(a, Argument, argument, "flags"))

    def items() -> None:
        a.need(a.or_(a.compare("eq", type, field(a, Pattern, pattern, "list_type")),
                     a.compare("eq", type, field(a, Pattern, pattern, "tuple_type"))))
        _take_items(a)

    for kind_of, emit in ((ARRAY, array), (FLOAT, real), (INT, integer), (ITEMS, items)):
        case(kind_of, emit)
    a.need(a.call("same_constant", pattern, obj, field(a, Argument, argument, "object")))
    a.goto(done)
    a.start(done)
    a.finish()


def _array_of(a: Matching, self: Value, obj: Value, type: Value, frame: Value) -> Value:
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


def names_match(builder: ModuleBuilder) -> None:
    """names_match(pattern, kwnames): whether the keywords of a call are those of the pattern, in this order."""
    a = Matching(builder, "names_match", [PTR, PTR])
    pattern, given = a.args
    wanted, none, some, done = field(a, Pattern, pattern, "keywords"), a.block(), a.block(), a.block()
    a.branch(a.is_null(given), none, some)
    a.start(none)
    a.need(a.compare("eq", wanted, a.i64(0)))
    a.goto(done)
    a.start(some)
    a.need(a.compare("eq", a.call("PySequence_Size", given), wanted))

    def same(i: Value) -> None:
        name = a.call("PySequence_GetItem", given, i)
        a.call("Py_DecRef", name)                            # which the tuple still refers to
        a.need(a.compare("eq", name, a.load(PTR, a.at(field(a, Pattern, pattern, "names"), a.mul(i, a.i64(8))))))

    loop(a, wanted, same)
    a.goto(done)
    a.start(done)
    a.finish()
