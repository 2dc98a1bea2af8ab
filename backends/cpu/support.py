"""Support code of emitted wrappers: the fields of a callable, the CPython functions they call, memory allocation.

Fields of a callable change only under the GIL.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np

from mlc.backends.cpu import layout
from mlc.backends.cpu.assemble import I1, I32, I64, PTR, Assembler, ModuleBuilder, Signature
from mlc.ir import abi
from mlc.ir.abi import Context
from mlc.ir.core import Value
from mlc.ir.types import SCALARS, ScalarType, i64, index, to_numpy, ui8

MAX_BYTES = 1 << 62
"""Upper bound (exclusive) of the bytes of an array or arena."""

SIGNATURES: dict[str, Signature] = {
    "PyObject_Vectorcall": (PTR, (PTR, PTR, I64, PTR)),
    "PyObject_GetAttr": (PTR, (PTR, PTR)),
    "Py_IncRef": (None, (PTR,)),
    "Py_DecRef": (None, (PTR,)),
    "PyDict_GetItem": (PTR, (PTR, PTR)),
    "PyTuple_New": (PTR, (I64,)),
    "PyTuple_SetItem": (I32, (PTR, I64, PTR)),
    "PyLong_FromLongLong": (PTR, (I64,)),
    "PyType_GenericAlloc": (PTR, (PTR, I64)),
    "PyErr_NoMemory": (PTR, ()),
    "PyEval_SaveThread": (PTR, ()),
    "PyEval_RestoreThread": (None, (PTR,)),
    "PyMem_RawMalloc": (PTR, (I64,)),
    "PyMem_RawFree": (None, (PTR,)),
    "PyObject_GC_UnTrack": (None, (PTR,)),
    "PyObject_GC_Del": (None, (PTR,)),
    "PyObject_ClearWeakRefs": (None, (PTR,)),
}
EXTERNALS = frozenset(SIGNATURES)
"""The functions of CPython that emitted wrappers may import."""

DTYPES: tuple[ScalarType, ...] = tuple(t for t in SCALARS.values() if t != index)
"""The order of `Callable.dtypes`."""


@cache
def dtypes() -> tuple[np.dtype[Any], ...]:
    """numpy's singleton descriptor of each of them, which almost all arrays of that type share."""
    return tuple(np.zeros(0, to_numpy(type)).dtype for type in DTYPES)


class Callable(ctypes.Structure):
    """Memory layout of a compiled callable."""

    _fields_ = [
        ("refcnt", ctypes.c_ssize_t), ("type", ctypes.c_void_p), ("vectorcall", ctypes.c_void_p),
        ("weaklist", ctypes.c_void_p),
        ("slow_path", ctypes.c_void_p),           # called with the same arguments
        ("on_error", ctypes.c_void_p),            # called with an error record; raises
        ("consumed", ctypes.c_void_p),            # replaces the array of a donated tensor
        ("keep", ctypes.c_void_p),                # owners of the memory that the pointers below refer to
        ("function", ctypes.c_void_p),            # the entry
        ("array_type", ctypes.c_void_p), ("tensor_type", ctypes.c_void_p), ("payload", ctypes.c_ssize_t),
        ("autograd", ctypes.c_ssize_t),           # offset of a tensor's slot, empty or `none` for constants
        ("none", ctypes.c_void_p),
        ("new_from_descr", ctypes.c_void_p), ("set_base_object", ctypes.c_void_p),
        ("calls", ctypes.c_void_p), ("all_calls", ctypes.c_void_p),
        ("pool", ctypes.c_void_p),                # free `Scratch`es
        ("bindings", ctypes.c_void_p),            # `Binding`s that must hold, terminated by one without a place
        ("new_copy", ctypes.c_void_p),
        ("pattern", ctypes.c_void_p),             # the `Pattern` of a call that is not compiled for its signature
        ("captured", ctypes.c_void_p),            # the `Captured` inputs after the arguments
        ("dtypes", ctypes.c_void_p * len(DTYPES)),
    ]


OWNED = ("slow_path", "on_error", "consumed", "keep")
"""The fields that are references."""


class Binding(ctypes.Structure):
    """A variable that the function read when it was recorded: a key of a dict or, without one, a cell."""

    _fields_ = [("place", ctypes.c_void_p), ("key", ctypes.c_void_p), ("value", ctypes.c_void_p)]


class Scratch(ctypes.Structure):
    """An arena of a callable, used by one call at a time."""

    _fields_ = [("next", ctypes.c_void_p), ("context", Context), ("memory", ctypes.c_void_p)]


def offset(structure: Any, field: str) -> int:
    """The offset of a field of a `ctypes.Structure`."""
    return int(getattr(structure, field).offset)


def dtype_offset(type: ScalarType) -> int:
    """The offset of numpy's descriptor of an element type in a callable."""
    return offset(Callable, "dtypes") + 8 * DTYPES.index(i64 if type == index else type)


def fitting_array(builder: ModuleBuilder, tensors: bool, histories: bool = False) -> None:
    """fitting_array(self, obj, dtype, rank, flags): the array that `obj` is or, as a tensor, holds; NULL unless it has
    this element type and rank and at least these flags, or, without `histories`, if autograd has a record of it."""
    a = Assembler(builder, "fitting_array", [PTR, PTR, PTR, I32, I32], PTR)
    self, obj, dtype, rank, flags = a.args
    array_type = a.load(PTR, self, offset(Callable, "array_type"))
    kind = a.load(PTR, obj, layout.OB_TYPE)
    array, refused, fits = a.block(PTR), a.block(), a.block()
    if tensors:
        other, tensor, constant, held = a.block(), a.block(), a.block(), a.block()
        a.branch(a.compare("eq", kind, a.load(PTR, self, offset(Callable, "tensor_type"))), tensor, other)
        a.start(tensor)
        autograd = a.load(PTR, a.at(obj, a.load(I64, self, offset(Callable, "autograd"))))
        is_constant = a.or_(a.is_null(autograd), a.compare("eq", autograd, a.load(PTR, self, offset(Callable, "none"))))
        a.branch(a.true if histories else is_constant, constant, refused)
        a.start(constant)
        payload = a.load(PTR, a.at(obj, a.load(I64, self, offset(Callable, "payload"))))
        a.branch(a.is_null(payload), refused, held)
        a.start(held)
        a.branch(a.compare("eq", a.load(PTR, payload, layout.OB_TYPE), array_type), array, refused, (payload,))
        a.start(other)
    a.branch(a.compare("eq", kind, array_type), array, refused, (obj,))

    a.start(array)
    found, = array.args
    same = a.compare("eq", a.load(PTR, found, layout.ARRAY_DESCR), dtype)
    same = a.and_(same, a.compare("eq", a.load(I32, found, layout.ARRAY_NDIM), rank))
    same = a.and_(same, a.compare("eq", a.and_(a.load(I32, found, layout.ARRAY_FLAGS), flags), flags))
    a.branch(same, fits, refused)
    a.start(fits)
    a.ret(found)
    a.start(refused)
    a.ret(a.null)


def held_by(builder: ModuleBuilder) -> None:
    """held_by(self, array, count): whether there are `count` references to an array, and nobody else has its memory."""
    a = Assembler(builder, "held_by", [PTR, PTR, I64], I1)
    self, array, count = a.args
    single, based, last, own, other = (a.block() for _ in range(5))
    a.branch(a.compare("eq", a.load(I64, array, layout.OB_REFCNT), count), single, other)
    a.start(single)
    base = a.load(PTR, array, layout.ARRAY_BASE)
    a.branch(a.is_null(base), own, based)
    a.start(based)                                           # views of an array refer to its base
    is_array = a.compare("eq", a.load(PTR, base, layout.OB_TYPE), a.load(PTR, self, offset(Callable, "array_type")))
    a.branch(a.and_(is_array, a.compare("eq", a.load(I64, base, layout.OB_REFCNT), a.i64(1))), last, other)
    a.start(last)
    a.ret(a.is_null(a.load(PTR, base, layout.ARRAY_BASE)))
    a.start(own)
    a.ret(a.true)
    a.start(other)
    a.ret(a.false)


def bindings_hold(builder: ModuleBuilder) -> None:
    """bindings_hold(self): whether every variable that the callable depends on is unchanged."""
    a = Assembler(builder, "bindings_hold", [PTR], I1)
    self, = a.args
    loop, row, of_dict, of_cell = a.block(PTR), a.block(), a.block(), a.block()
    found, following, done = a.block(PTR), a.block(), a.block(I1)
    first = a.load(PTR, self, offset(Callable, "bindings"))
    a.branch(a.is_null(first), done, loop, (a.true,), (first,))
    a.start(loop)
    at, = loop.args
    place = a.load(PTR, at, offset(Binding, "place"))
    a.branch(a.is_null(place), done, row, (a.true,))
    a.start(row)
    key = a.load(PTR, at, offset(Binding, "key"))
    a.branch(a.is_null(key), of_cell, of_dict)
    a.start(of_dict)
    a.goto(found, a.call("PyDict_GetItem", place, key))
    a.start(of_cell)
    a.goto(found, a.load(PTR, place, layout.CELL_CONTENTS))
    a.start(found)
    same = a.compare("eq", found.args[0], a.load(PTR, at, offset(Binding, "value")))
    a.branch(same, following, done, (), (a.false,))
    a.start(following)
    a.goto(loop, a.at(at, a.i64(ctypes.sizeof(Binding))))
    a.start(done)
    a.ret(done.args[0])


def consume(builder: ModuleBuilder) -> None:
    """consume(self, obj, array): replace the array of `obj` by `consumed`, if `obj` is a tensor."""
    a = Assembler(builder, "consume", [PTR, PTR, PTR], None)
    self, obj, array = a.args
    tensor, done = a.block(), a.block()
    a.branch(a.compare("eq", obj, array), done, tensor)
    a.start(tensor)
    slot = a.at(obj, a.load(I64, self, offset(Callable, "payload")))
    marker, old = a.load(PTR, self, offset(Callable, "consumed")), a.load(PTR, slot)
    a.call("Py_IncRef", marker)
    a.store(marker, slot)
    a.call("Py_DecRef", old)
    a.goto(done)
    a.start(done)
    a.ret()


def tensor_of(builder: ModuleBuilder) -> None:
    """tensor_of(self, array): a new tensor that takes over the reference to `array`; NULL if there is no memory."""
    a = Assembler(builder, "tensor_of", [PTR, PTR], PTR)
    self, array = a.args
    tensor = a.call("PyType_GenericAlloc", a.load(PTR, self, offset(Callable, "tensor_type")), a.i64(0))
    made, done = a.block(), a.block()
    a.branch(a.is_null(tensor), done, made)
    a.start(made)
    a.store(array, a.at(tensor, a.load(I64, self, offset(Callable, "payload"))))
    a.goto(done)
    a.start(done)
    a.ret(tensor)


def new_array(builder: ModuleBuilder) -> None:
    """new_array(self, dtype, rank, dims, bytes): an uninitialised array, or NULL and an exception."""
    a = Assembler(builder, "new_array", [PTR, PTR, I32, PTR, I64], PTR)
    self, dtype, rank, dims, size = a.args
    make = a.load(PTR, self, offset(Callable, "new_from_descr"))
    array_type = a.load(PTR, self, offset(Callable, "array_type"))
    small, big, owned, placed, failed = a.block(), a.block(), a.block(), a.block(), a.block()
    a.branch(a.compare("ult", size, a.i64(abi.BIG_RESULT)), small, big)

    a.start(small)
    a.call("Py_IncRef", dtype)                               # NewFromDescr takes a reference
    a.ret(a.call_pointer(make, PTR, array_type, dtype, rank, dims, a.null, a.null, a.i32(0), a.null))

    a.start(big)                                             # a view of cache-line aligned bytes
    count = a.alloca(1)
    a.store(a.add(size, a.i64(abi.RESULT_ALIGN)), count)
    byte = a.load(PTR, self, dtype_offset(ui8))
    a.call("Py_IncRef", byte)
    memory = a.call_pointer(make, PTR, array_type, byte, a.i32(1), count, a.null, a.null, a.i32(0), a.null)
    a.branch(a.is_null(memory), failed, owned)

    a.start(owned)
    a.call("Py_IncRef", dtype)
    data = _aligned(a, a.load(PTR, memory, layout.ARRAY_DATA), abi.RESULT_ALIGN)
    flags = layout.C_CONTIGUOUS | layout.ALIGNED | layout.WRITEABLE
    view = a.call_pointer(make, PTR, array_type, dtype, rank, dims, a.null, data, a.i32(flags), a.null)
    lost = a.block()
    a.branch(a.is_null(view), lost, placed)

    a.start(lost)
    a.call("Py_DecRef", memory)
    a.goto(failed)

    a.start(placed)
    set_base = a.load(PTR, self, offset(Callable, "set_base_object"))
    a.call_pointer(set_base, I32, view, memory)              # takes the reference; cannot fail for a new array
    a.ret(view)

    a.start(failed)
    a.ret(a.null)


def _aligned(a: Assembler, pointer: Value, align: int) -> Value:
    """The first multiple of `align` from `pointer` on."""
    return a.at(pointer, a.and_(a.sub(a.i64(0), a.address(pointer)), a.i64(align - 1)))


def drop_all(builder: ModuleBuilder) -> None:
    """drop_all(objects, count): give up the references in an array, some of which may be NULL."""
    a = Assembler(builder, "drop_all", [PTR, I64], None)
    objects, count = a.args
    check, loop, done = a.block(I64), a.block(), a.block()
    a.goto(check, a.i64(0))
    a.start(check)
    i, = check.args
    a.branch(a.compare("ult", i, count), loop, done)
    a.start(loop)
    slot = a.at(objects, a.mul(i, a.i64(8)))
    obj = a.load(PTR, slot)
    a.store(a.null, slot)
    a.call("Py_DecRef", obj)                                 # which takes NULL
    a.goto(check, a.add(i, a.i64(1)))
    a.start(done)
    a.ret()


def take_scratch(builder: ModuleBuilder) -> None:
    """take_scratch(pool): a scratch from the free list, or a new one without an arena; NULL if out of memory."""
    a = Assembler(builder, "take_scratch", [PTR], PTR)
    pool, = a.args
    first = a.load(PTR, pool)
    fresh, pooled, ready, failed = a.block(), a.block(), a.block(), a.block()
    a.branch(a.is_null(first), fresh, pooled)

    a.start(pooled)
    a.store(a.load(PTR, first, offset(Scratch, "next")), pool)
    a.ret(first)

    a.start(fresh)
    made = a.call("PyMem_RawMalloc", a.i64(ctypes.sizeof(Scratch)))
    a.branch(a.is_null(made), failed, ready)
    a.start(ready)
    for at in range(0, ctypes.sizeof(Scratch), 8):
        a.store(a.i64(0), made, at)
    a.goto(failed)
    a.start(failed)
    a.ret(made)


def grow(builder: ModuleBuilder) -> None:
    """grow(scratch): enlarge the arena to the bytes that the entry needs; whether that succeeded."""
    a = Assembler(builder, "grow", [PTR], I1)
    scratch, = a.args
    context = a.at(scratch, offset(Scratch, "context"))
    needed = a.load(I64, context, offset(Context, "needed"))
    a.call("PyMem_RawFree", a.load(PTR, scratch, offset(Scratch, "memory")))
    for at, base in ((offset(Scratch, "memory"), scratch), (offset(Context, "arena"), context),
                     (offset(Context, "capacity"), context)):
        a.store(a.i64(0), base, at)
    possible, taken, failed = a.block(), a.block(), a.block()
    a.branch(a.compare("ult", needed, a.i64(MAX_BYTES)), possible, failed)

    a.start(possible)
    memory = a.call("PyMem_RawMalloc", a.add(needed, a.i64(abi.ARENA_ALIGN)))
    a.branch(a.is_null(memory), failed, taken)

    a.start(taken)
    a.store(memory, scratch, offset(Scratch, "memory"))
    a.store(_aligned(a, memory, abi.ARENA_ALIGN), context, offset(Context, "arena"))
    a.store(needed, context, offset(Context, "capacity"))
    a.ret(a.true)

    a.start(failed)
    a.ret(a.false)


def count_overlaps(builder: ModuleBuilder) -> None:
    """count_overlaps(spans, count, start, end): the number of (start, end) pairs that overlap the given one."""
    a = Assembler(builder, "count_overlaps", [PTR, I64, I64, I64], I64)
    spans, count, start, end = a.args
    loop, done = a.block(I64, I64), a.block(I64)
    a.goto(loop, a.i64(0), a.i64(0))
    a.start(loop)
    i, found = loop.args
    span = a.at(spans, a.mul(i, a.i64(16)))
    meets = a.and_(a.compare("ult", a.load(I64, span), end), a.compare("ult", start, a.load(I64, span, 8)))
    found_now, following = a.add(found, a.widen(meets)), a.add(i, a.i64(1))
    a.branch(a.compare("ult", following, count), loop, done, (following, found_now), (found_now,))
    a.start(done)
    a.ret(done.args[0])
