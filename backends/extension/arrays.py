"""Array arguments of an extension module's functions, by the buffer protocol, and array results, by numpy.empty."""

from __future__ import annotations

import struct

from mlc.backends.cpu.assemble import I1, I8, I32, I64, PTR, Assembler, ModuleBuilder
from mlc.backends.extension import python
from mlc.backends.extension.objects import State, error, item, loop
from mlc.backends.extension.signature import dtype_name, shown
from mlc.ir.core import Value
from mlc.ir.types import FloatType, ScalarType, TensorType, bf16, i1

BOOL, SIGNED, UNSIGNED, FLOAT = 1, 2, 3, 4
"""Element kinds by buffer format; 0 stands for any other."""
SWAPPED = 8
"""Added to the kind of elements in non-native byte order."""

_FORMATS = {BOOL: "?", SIGNED: "bhilqn", UNSIGNED: "BHILQN", FLOAT: "efd"}

_KIND, _ITEMSIZE, _RANK, _DONATED, _DTYPE, _OBJECT, _NUMBER, _ELEMENTS, _DIMENSIONS, _MEMORY = range(0, 80, 8)
"""Layout of an argument's type description for `take_array`: numbers, the offset of its dtype in the state, and the
offsets of the error messages for a wrong object, number, element type, rank or memory."""

NUMPY = ("empty", "asarray", "require", "dtype")
"""The numpy functions in the module state."""
CONTIGUOUS = "CA"
"""Requirements passed to `numpy.require`: contiguous in row-major order, and aligned."""


def expected(type: TensorType, name: str, donated: bool, state: State) -> bytes:
    """The type description of argument `name`, as constant bytes."""
    name, kind, dtype = (text.replace("%", "%%") for text in (name, shown(type), dtype_name(type.dtype)))
    texts = [f"{name} is a %s, expected an array {kind}", f"{name} is %s, which is no {dtype}",
             f"{name} has dtype %s, expected {dtype}",
             f"{name} has %d dimensions, its type {kind} has {type.rank}",
             f"{name} is donated, but its memory is not writable, aligned and contiguous in row-major order"]
    data, at = b"", 80
    offsets = []
    for text in texts:
        offsets.append(at + len(data))
        data += text.encode() + bytes(1)
    return struct.pack("<10q", _kind_of(type.dtype), type.dtype.itemsize, type.rank, donated,
                       state.add(f"dtype {dtype_name(type.dtype)}"), *offsets) + data


def _kind_of(type: ScalarType) -> int:
    if type == i1:
        return BOOL
    if isinstance(type, FloatType) and type != bf16:
        return FLOAT
    return UNSIGNED if type == bf16 or str(type).startswith("u") else SIGNED


def emit(builder: ModuleBuilder, state: State) -> None:
    """Emit all functions of this file."""
    _element_kind(builder)
    _viewed(builder)
    _required(builder, state)
    _number_array(builder, state)
    _take_array(builder)
    _new_result(builder, state)
    _forget(builder)
    _release_all(builder)


def _element_kind(builder: ModuleBuilder) -> None:
    """element_kind(format): the kind of a buffer's elements, plus SWAPPED if they are in non-native byte order."""
    a = Assembler(builder, "element_kind", [PTR], I64)
    text, = a.args
    bytes_, some = a.block(), a.block()
    a.branch(a.is_null(text), bytes_, some)
    a.start(bytes_)
    a.ret(a.i64(UNSIGNED))                                  # PEP 3118: no format means bytes

    def is_one_of(letter: Value, letters: str) -> Value:
        out = a.false
        for c in letters:
            out = a.or_(out, a.compare("eq", letter, a.i64(ord(c))))
        return out

    a.start(some)
    first = a.widen(a.load(I8, text))
    swapped = is_one_of(first, ">!")
    prefix = a.widen(a.or_(swapped, is_one_of(first, "@=<^")))
    letter = a.widen(a.load(I8, a.at(text, prefix)))
    kind = a.i64(0)
    for number, letters in _FORMATS.items():
        kind = a.select(is_one_of(letter, letters), a.i64(number), kind)
    known, compound = a.block(), a.block()
    a.branch(a.compare("eq", letter, a.i64(0)), compound, known)
    a.start(known)
    alone = a.compare("eq", a.widen(a.load(I8, a.at(text, prefix), 1)), a.i64(0))
    kind = a.select(alone, kind, a.i64(0))
    a.ret(a.add(kind, a.select(swapped, a.i64(SWAPPED), a.i64(0))))
    a.start(compound)
    a.ret(a.i64(0))


def _viewed(builder: ModuleBuilder) -> None:
    """viewed(array, view): open the buffer of a new array, stealing the reference; whether that succeeded."""
    a = Assembler(builder, "viewed", [PTR, PTR], I1)
    array, view = a.args
    some, none = a.block(), a.block()
    a.branch(a.is_null(array), none, some)
    a.start(some)
    status = a.call("PyObject_GetBuffer", array, view, a.i32(python.BUFFER_FLAGS))
    a.call("Py_DecRef", array)
    a.ret(a.compare("eq", status, a.i32(0)))
    a.start(none)
    a.ret(a.false)


def _number_array(builder: ModuleBuilder, state: State) -> None:
    """number_array(state, obj, spec): a Python int or float as an array of the expected type; NULL without an exception
    if it is not representable, or obj is neither."""
    a = Assembler(builder, "number_array", [PTR, PTR, PTR], PTR)
    this, obj, spec = a.args
    number, refused, made, check, differs = a.block(), a.block(), a.block(), a.block(), a.block()
    a.branch(_is_number(a, obj), number, refused)
    a.start(number)
    dtype = a.load(PTR, a.at(this, a.load(I64, spec, _DTYPE)))
    a.call("Py_IncRef", obj)
    a.call("Py_IncRef", dtype)
    array = a.call("call", a.load(PTR, this, state.add("asarray")), obj, dtype)
    a.branch(a.is_null(array), refused, made)
    a.start(made)
    fine = a.block()
    a.branch(a.compare("eq", a.load(I64, spec, _KIND), a.i64(FLOAT)), fine, check)
    a.start(check)                                           # numpy truncates fractions
    equal = a.call("PyObject_RichCompareBool", array, obj, a.i32(python.EQUAL))
    a.branch(a.compare("eq", equal, a.i32(1)), fine, differs)
    a.start(fine)
    a.ret(array)
    a.start(differs)
    a.call("Py_DecRef", array)
    a.goto(refused)
    a.start(refused)
    a.call("PyErr_Clear")
    a.ret(a.null)


def _take_array(builder: ModuleBuilder) -> None:
    """take_array(state, obj, view, spec): open an argument as a buffer; the address of its elements.

    The elements are in native byte order, contiguous in row-major order and aligned; otherwise they are copied.
    """
    _open(builder)
    _check_type(builder)
    a = Assembler(builder, "take_array", [PTR, PTR, PTR, PTR], PTR)
    this, obj, view, spec = a.args
    failed, opened, typed = a.block(), a.block(), a.block()
    a.branch(a.call("open", this, obj, view, spec), opened, failed)
    a.start(opened)
    a.branch(a.call("check_type", obj, view, spec), typed, failed)

    a.start(typed)
    data = a.load(PTR, view, python.VIEW_DATA)
    misaligned = a.and_(a.address(data), a.sub(a.load(I64, spec, _ITEMSIZE), a.i64(1)))
    swapped = a.and_(a.call("element_kind", a.load(PTR, view, python.VIEW_FORMAT)), a.i64(SWAPPED))
    plain = a.compare("eq", a.or_(swapped, misaligned), a.i64(0))
    plain = a.and_(plain, a.compare("ne", a.call("PyBuffer_IsContiguous", view, a.i32(ord("C"))), a.i32(0)))
    writable = a.compare("eq", a.load(I32, view, python.VIEW_READONLY), a.i32(0))
    donated = a.compare("ne", a.load(I64, spec, _DONATED), a.i64(0))
    kept, borrowed, fits, locked, copied, native = (a.block() for _ in range(6))
    a.branch(donated, kept, borrowed)
    a.start(kept)
    a.branch(a.and_(plain, writable), fits, locked)
    a.start(locked)
    _refuse(a, "ValueError", spec, _MEMORY, a.call("numbers", a.null, a.i64(0)))
    a.goto(failed)
    a.start(borrowed)
    a.branch(plain, fits, copied)
    a.start(fits)
    a.ret(data)

    a.start(copied)
    a.call("PyBuffer_Release", view)
    a.store(a.null, view, python.VIEW_OBJECT)
    dtype = a.load(PTR, a.at(this, a.load(I64, spec, _DTYPE)))
    a.branch(a.call("viewed", a.call("required", this, obj, dtype), view), native, failed)
    a.start(native)
    a.ret(a.load(PTR, view, python.VIEW_DATA))
    a.start(failed)
    a.ret(a.null)


def _refuse(a: Assembler, exception: str, spec: Value, text: int, arguments: Value) -> None:
    """Set an exception with one of the messages of a type description."""
    a.call("raise_error", error(a, exception), a.at(spec, a.load(I64, spec, text)), arguments)


def _open(builder: ModuleBuilder) -> None:
    """open(state, obj, view, spec): open an object, or a Python number converted to the expected type, as a buffer;
    whether that succeeded."""
    a = Assembler(builder, "open", [PTR, PTR, PTR, PTR], I1)
    this, obj, view, spec = a.args
    opened, closed, number, other, unfit, stranger, failed = (a.block() for _ in range(7))
    status = a.call("PyObject_GetBuffer", obj, view, a.i32(python.BUFFER_FLAGS))
    a.branch(a.compare("eq", status, a.i32(0)), opened, closed)
    a.start(opened)
    a.ret(a.true)

    a.start(closed)
    a.store(a.null, view, python.VIEW_OBJECT)
    a.call("PyErr_Clear")
    array = a.call("number_array", this, obj, spec)
    a.branch(a.is_null(array), other, number)
    a.start(number)
    a.ret(a.call("viewed", array, view))
    a.start(other)
    a.branch(_is_number(a, obj), unfit, stranger)
    a.start(unfit)
    a.call("Py_IncRef", obj)
    _refuse(a, "TypeError", spec, _NUMBER, a.call("tuple_of", obj, a.null))
    a.goto(failed)
    a.start(stranger)
    _refuse(a, "TypeError", spec, _OBJECT, a.call("type_name", obj))
    a.goto(failed)
    a.start(failed)
    a.ret(a.false)


def _check_type(builder: ModuleBuilder) -> None:
    """check_type(obj, view, spec): whether a buffer has the expected element type and rank."""
    a = Assembler(builder, "check_type", [PTR, PTR, PTR], I1)
    obj, view, spec = a.args
    typed, mistyped, unknown, unsupported, ranked, misranked, failed = (
        a.block(), a.block(), a.block(), a.block(PTR), a.block(), a.block(), a.block())
    text = a.load(PTR, view, python.VIEW_FORMAT)
    kind = a.and_(a.call("element_kind", text), a.i64(SWAPPED - 1))
    same = a.and_(a.compare("eq", kind, a.load(I64, spec, _KIND)),
                  a.compare("eq", a.load(I64, view, python.VIEW_ITEMSIZE), a.load(I64, spec, _ITEMSIZE)))
    a.branch(same, typed, mistyped)
    a.start(mistyped)
    dtype = a.call("PyObject_GetAttrString", obj, a.text("dtype"))
    a.branch(a.is_null(dtype), unknown, unsupported, (), (dtype,))
    a.start(unknown)                                         # a buffer of another library
    a.call("PyErr_Clear")
    a.goto(unsupported, a.call("PyUnicode_FromString", a.select(a.is_null(text), a.text("B"), text)))
    a.start(unsupported)
    _refuse(a, "TypeError", spec, _ELEMENTS, a.call("tuple_of", unsupported.args[0], a.null))
    a.goto(failed)

    a.start(typed)
    ndim = a.widen(a.load(I32, view, python.VIEW_NDIM))
    a.branch(a.compare("eq", ndim, a.load(I64, spec, _RANK)), ranked, misranked)
    a.start(misranked)
    number = a.alloca(1)
    a.store(ndim, number)
    _refuse(a, "TypeError", spec, _DIMENSIONS, a.call("numbers", number, a.i64(1)))
    a.goto(failed)
    a.start(ranked)
    a.ret(a.true)
    a.start(failed)
    a.ret(a.false)


def _is_number(a: Assembler, obj: Value) -> Value:
    """Whether the type of an object is exactly int or float."""
    kind = a.load(PTR, obj, python.OB_TYPE)
    return a.or_(a.compare("eq", kind, _type(a, "PyLong_Type")), a.compare("eq", kind, _type(a, "PyFloat_Type")))


def _type(a: Assembler, name: str) -> Value:
    return a.address_of(a.builder.variable(name, 8, defined=False))


def _required(builder: ModuleBuilder, state: State) -> None:
    """required(state, obj, dtype): obj as an aligned, row-major array in native byte order."""
    a = Assembler(builder, "required", [PTR, PTR, PTR], PTR)
    this, obj, dtype = a.args
    arguments = a.call("PyTuple_New", a.i64(3))
    some, none = a.block(), a.block()
    a.branch(a.is_null(arguments), none, some)
    a.start(some)
    for i, x in enumerate((obj, dtype, a.load(PTR, this, state.add(CONTIGUOUS)))):
        a.call("Py_IncRef", x)
        a.call("PyTuple_SetItem", arguments, a.i64(i), x)
    array = a.call("PyObject_CallObject", a.load(PTR, this, state.add("require")), arguments)
    a.call("Py_DecRef", arguments)
    a.ret(array)
    a.start(none)
    a.ret(a.null)


def _new_result(builder: ModuleBuilder, state: State) -> None:
    """new_result(state, dtype, rank, dims, place): a new array; the address of its elements is stored to `place`."""
    a = Assembler(builder, "new_result", [PTR, PTR, I64, PTR, PTR], PTR)
    this, dtype, rank, dims, place = a.args
    view = a.alloca(python.VIEW_SIZE // 8)
    a.call("Py_IncRef", dtype)
    array = a.call("call", a.load(PTR, this, state.add("empty")), a.call("numbers", dims, rank), dtype)
    made, opened, closed, failed = a.block(), a.block(), a.block(), a.block()
    a.branch(a.is_null(array), failed, made)
    a.start(made)
    status = a.call("PyObject_GetBuffer", array, view, a.i32(python.BUFFER_FLAGS))
    a.branch(a.compare("eq", status, a.i32(0)), opened, closed)
    a.start(opened)
    a.store(a.load(PTR, view, python.VIEW_DATA), place)
    a.call("PyBuffer_Release", view)                         # the array is not shared yet, so it cannot be resized
    a.ret(array)
    a.start(closed)
    a.call("Py_DecRef", array)
    a.goto(failed)
    a.start(failed)
    a.ret(a.null)


def _forget(builder: ModuleBuilder) -> None:
    """forget(objects, count, views, arrays): initialise the objects and views as empty."""
    a = Assembler(builder, "forget", [PTR, I64, PTR, I64], None)
    objects, count, views, arrays = a.args
    i, done = loop(a, count)
    a.store(a.null, item(a, objects, i))
    done()
    i, done = loop(a, arrays)
    a.store(a.null, a.at(views, a.mul(i, a.i64(python.VIEW_SIZE))), python.VIEW_OBJECT)
    done()
    a.ret()


def _release_all(builder: ModuleBuilder) -> None:
    """release_all(views, count): release the open buffers."""
    a = Assembler(builder, "release_all", [PTR, I64], None)
    views, count = a.args
    i, done = loop(a, count)
    a.call("PyBuffer_Release", a.at(views, a.mul(i, a.i64(python.VIEW_SIZE))))
    done()
    a.ret()
