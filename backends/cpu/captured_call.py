"""Native code for captured inputs (backends/cpu/captured.py), in the llvm dialect.

    captured_hold     whether a call may take the fast path
    begin_captured    before the code runs: the pointers to captured inputs, and to results that are not returned
    commit_captured   after it: what the call changes
    end_captured      at the end, whatever has happened

All of it runs under the GIL; the code itself may not.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable as Function
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mlc.backends.cpu import layout
from mlc.backends.cpu.assemble import I1, I32, I64, PTR, Assembler, ModuleBuilder
from mlc.backends.cpu.captured import ROW, Array, Captured, State
from mlc.backends.cpu.support import Callable, offset
from mlc.ir.core import Value

_ARRAY = ctypes.sizeof(Array)
EMPTY = ("weak", "history", "storage", "view")
"""Offsets of slots that a tensor has empty if it has nothing but an array, in `State`."""


def captured_functions(builder: ModuleBuilder, changes: bool) -> None:
    """Add the functions that wrappers call; `commit_captured` if calls change what they reach."""
    first_changed(builder)
    _has_type(builder)
    _follow(builder)
    _captured_hold(builder)
    if changes:
        _unshared(builder)
        _replaced_array(builder)
        _put_over(builder)
        _fill_spares(builder)
        _recyclable(builder)
        _put_gradient(builder)
        _commit(builder)
        _is_changed(builder)
    _end(builder)
    _begin(builder, changes)


def first_changed(builder: ModuleBuilder, public: bool = False) -> None:
    """first_changed(rows, start, count): the number of the first row from `start` on whose word is not at its address;
    `count` if there is none."""
    a = Assembler(builder, "first_changed", [PTR, I64, I64], I64, public=public)
    rows, start, count = a.args
    loop, row, following, done = a.block(I64), a.block(), a.block(), a.block(I64)
    a.goto(loop, start)
    a.start(loop)
    number = loop.args[0]
    a.branch(a.compare("slt", number, count), row, done, (), (count,))
    a.start(row)
    at = a.at(rows, a.mul(number, a.i64(ROW)))
    same = a.compare("eq", a.load(I64, a.load(PTR, at)), a.load(I64, at, 8))
    a.branch(same, following, done, (), (number,))
    a.start(following)
    a.goto(loop, a.add(number, a.i64(1)))
    a.start(done)
    a.ret(done.args[0])


# -- loops and fields -------------------------------------------------------------------------------------------------
@contextmanager
def _loop(a: Assembler, count: Value) -> Iterator[tuple[Value, Function[[], None]]]:
    """A loop over the numbers below `count`; yields the number, and a function that emits going on to the next. What is
    emitted in the context is the body; afterwards the insertion point is behind the loop."""
    head, body, following, done = a.block(I64), a.block(), a.block(), a.block()
    a.goto(head, a.i64(0))
    a.start(head)
    number, = head.args
    a.branch(a.compare("ult", number, count), body, done)
    a.start(body)
    yield number, lambda: a.goto(following)
    a.start(following)
    a.goto(head, a.add(number, a.i64(1)))
    a.start(done)


def _field(a: Assembler, type: Any, structure: Any, base: Value, name: str) -> Value:
    return a.load(type, base, offset(structure, name))


def _row(a: Assembler, state: Value, table: str, number: Value) -> Value:
    return a.at(_field(a, PTR, State, state, table), a.mul(number, a.i64(_ARRAY)))


def _item(a: Assembler, state: Value, name: str, number: Value) -> Value:
    """The address of an item of a list."""
    items = a.load(PTR, _field(a, PTR, State, state, name), layout.LIST_ITEMS)
    return a.at(items, a.mul(number, a.i64(8)))


def _pointer(a: Assembler, state: Value, number: Value) -> Value:
    """The address of the pointer to the elements of a captured input."""
    return a.at(_field(a, PTR, State, state, "pointers"), a.mul(number, a.i64(8)))


def _replace(a: Assembler, slot: Value, obj: Value) -> Value:
    """Put a new reference to an object into a slot; returns what it had, whose reference is the caller's."""
    before = a.load(PTR, slot)
    a.call("Py_IncRef", obj)
    a.store(obj, slot)
    return before


# -- arrays -----------------------------------------------------------------------------------------------------------
def _has_type(builder: ModuleBuilder) -> None:
    """has_type(self, row, array, flags): whether what a slot has is a numpy array of the type of a row, with flags."""
    a = Assembler(builder, "has_type", [PTR, PTR, PTR, I32], I1)
    self, row, array, flags = a.args
    other, some, same = a.block(), a.block(), a.block()
    a.branch(a.is_null(array), other, some)
    a.start(some)
    kind = a.load(PTR, array, layout.OB_TYPE)
    a.branch(a.compare("eq", kind, a.load(PTR, self, offset(Callable, "array_type"))), same, other)
    a.start(same)
    rank = _field(a, I64, Array, row, "rank")
    fits = a.compare("eq", a.load(PTR, array, layout.ARRAY_DESCR), _field(a, PTR, Array, row, "descr"))
    fits = a.and_(fits, a.compare("eq", a.widen(a.load(I32, array, layout.ARRAY_NDIM)), rank))
    fits = a.and_(fits, a.compare("eq", a.and_(a.load(I32, array, layout.ARRAY_FLAGS), flags), flags))
    axes = a.block()
    a.branch(fits, axes, other)
    a.start(axes)
    dims, wanted = a.load(PTR, array, layout.ARRAY_DIMS), _field(a, PTR, Array, row, "dims")
    with _loop(a, rank) as (axis, following):
        at, next_axis = a.mul(axis, a.i64(8)), a.block()
        a.branch(a.compare("eq", a.load(I64, a.at(dims, at)), a.load(I64, a.at(wanted, at))), next_axis, other)
        a.start(next_axis)
        following()
    a.ret(a.true)
    a.start(other)
    a.ret(a.false)


def _follow(builder: ModuleBuilder) -> None:
    """follow(self, state): whether the tensors have the arrays that they had, or others of the same type, which are
    those of the state then."""
    a = Assembler(builder, "follow", [PTR, PTR], I1)
    self, state = a.args
    different = a.block()
    with _loop(a, _field(a, I64, State, state, "input_count")) as (k, following):
        row = _row(a, state, "inputs", k)
        array = a.load(PTR, _field(a, PTR, Array, row, "slot"))
        other, free, taken, same = a.block(), a.block(), a.block(), a.block()
        a.branch(a.compare("eq", array, _field(a, PTR, Array, row, "array")), same, other)
        a.start(other)                                       # while a call runs, the pointers have to stay
        a.branch(a.compare("eq", _field(a, I64, State, state, "users"), a.i64(0)), free, different)
        a.start(free)
        flags = a.i32(layout.C_CONTIGUOUS | layout.ALIGNED)
        a.branch(a.call("has_type", self, row, array, flags), taken, different)
        a.start(taken)
        _take(a, state, row, array)
        a.goto(same)
        a.start(same)
        following()
    a.ret(a.true)
    a.start(different)
    a.ret(a.false)


def _take(a: Assembler, state: Value, row: Value, array: Value) -> None:
    """Have an array be that of an input."""
    number = _field(a, I64, Array, row, "number")
    a.store(array, row, offset(Array, "array"))
    a.store(a.load(PTR, array, layout.ARRAY_DATA), _pointer(a, state, number))
    a.call("Py_DecRef", _replace(a, _item(a, state, "arrays", number), array))


# -- whether a call may take the fast path ----------------------------------------------------------------------------
def _captured_hold(builder: ModuleBuilder) -> None:
    """captured_hold(self, alone): whether the captured inputs are as they were, and calls are recorded for derivatives
    or not as they have to be; `alone`: and no other call runs."""
    a = Assembler(builder, "captured_hold", [PTR, I1], I1)
    self, alone = a.args
    captured, changed = a.load(PTR, self, offset(Callable, "captured")), a.block()

    def need(condition: Any, otherwise: Any) -> None:
        following = a.block()
        a.branch(condition, following, otherwise)
        a.start(following)

    need(a.not_null(captured), changed)
    for rows, number in (("guards", "guard_count"), ("slots", "slot_count")):
        count = _field(a, I64, Captured, captured, number)
        need(a.compare("eq", count, a.call("first_changed", _field(a, PTR, Captured, captured, rows), a.i64(0), count)),
             changed)
    owner, different = a.load(PTR, captured), a.block()
    a.call("Py_IncRef", owner)                               # what follows may let another thread replace it
    mode, asked, known = _field(a, PTR, Captured, captured, "mode"), a.block(), a.block()
    a.branch(a.is_null(mode), known, asked)
    a.start(asked)
    enabled = a.call("PyObject_GetAttr", mode, _field(a, PTR, Captured, captured, "name"))
    a.call("Py_DecRef", enabled)                             # which takes NULL; True and False live on
    need(a.compare("eq", enabled, _field(a, PTR, Captured, captured, "wanted")), different)
    a.goto(known)
    a.start(known)
    state = _field(a, PTR, Captured, captured, "state")
    busy = a.and_(alone, a.compare("ne", _field(a, I64, State, state, "users"), a.i64(0)))
    need(a.compare("eq", busy, a.false), different)
    need(a.call("follow", self, state), different)
    is_same = a.compare("eq", captured, a.load(PTR, self, offset(Callable, "captured")))
    a.call("Py_DecRef", owner)
    a.ret(is_same)
    a.start(different)
    a.call("Py_DecRef", owner)
    a.goto(changed)
    a.start(changed)
    a.ret(a.false)


def _is_changed(builder: ModuleBuilder) -> None:
    """is_changed(self, obj): whether an object is a tensor that a call changes: one whose slot is among theirs."""
    a = Assembler(builder, "is_changed", [PTR, PTR], I1)
    self, obj = a.args
    state = _field(a, PTR, Captured, a.load(PTR, self, offset(Callable, "captured")), "state")
    slots = _field(a, PTR, State, state, "changed")
    slot = a.address(a.at(obj, a.load(I64, self, offset(Callable, "payload"))))
    loop, halve, other, found, absent = a.block(I64, I64), a.block(), a.block(), a.block(), a.block()
    a.goto(loop, a.i64(0), _field(a, I64, State, state, "changed_count"))
    a.start(loop)                                            # it is among those from `low` on, before `high`
    low, high = loop.args
    a.branch(a.compare("ult", low, high), halve, absent)
    a.start(halve)
    middle = a.shift_right(a.add(low, high), 1)
    held = a.load(I64, a.at(slots, a.mul(middle, a.i64(8))))
    a.branch(a.compare("eq", held, slot), found, other)
    a.start(other)
    below = a.compare("ult", held, slot)
    a.goto(loop, a.select(below, a.add(middle, a.i64(1)), low), a.select(below, high, middle))
    a.start(absent)
    a.ret(a.false)
    a.start(found)
    a.ret(a.true)


# -- the call ---------------------------------------------------------------------------------------------------------
def _begin(builder: ModuleBuilder, changes: bool) -> None:
    """begin_captured(self, data, outputs): store the pointers of a call, which holds what they belong to until
    `end_captured` takes the result; NULL with an exception if memory is short, or what has to be asked before fails."""
    a = Assembler(builder, "begin_captured", [PTR, PTR, PTR], PTR)
    self, data, outputs = a.args
    captured = a.load(PTR, self, offset(Callable, "captured"))
    state = _field(a, PTR, Captured, captured, "state")
    a.call("Py_IncRef", a.load(PTR, captured))
    a.store(a.add(_field(a, I64, State, state, "users"), a.i64(1)), state, offset(State, "users"))
    with _loop(a, _field(a, I64, State, state, "pointer_count")) as (i, following):
        a.store(a.load(PTR, _pointer(a, state, i)), a.at(data, a.mul(i, a.i64(8))))
        following()
    if changes:
        before, asking, answered, prepared, ready, failed = (
            _field(a, PTR, State, state, "before"), *(a.block() for _ in range(5)))
        a.branch(a.is_null(before), prepared, asking)
        a.start(asking)                                      # first, as it may let another thread take an array
        answer = a.call("PyObject_Vectorcall", before, a.null, a.i64(0), a.null)
        a.branch(a.is_null(answer), failed, answered)
        a.start(answered)
        a.call("Py_DecRef", answer)
        a.goto(prepared)
        a.start(prepared)
        a.branch(a.call("fill_spares", self, state, outputs), ready, failed)
        a.start(failed)
        a.call("end_captured", captured)
        a.ret(a.null)
        a.start(ready)
    a.ret(captured)


def _end(builder: ModuleBuilder) -> None:
    """end_captured(captured): give up what a call holds."""
    a = Assembler(builder, "end_captured", [PTR], None)
    captured, = a.args
    state = _field(a, PTR, Captured, captured, "state")
    a.store(a.sub(_field(a, I64, State, state, "users"), a.i64(1)), state, offset(State, "users"))
    a.call("Py_DecRef", a.load(PTR, captured))
    a.ret()


def _replaced_array(builder: ModuleBuilder) -> None:
    """replaced_array(self, state, row): the array that a result replaces, a borrowed reference, if it may be written
    to, has the type of the result, and nobody else has it; else NULL."""
    a = Assembler(builder, "replaced_array", [PTR, PTR, PTR], PTR)
    self, state, row = a.args
    held = a.load(PTR, _field(a, PTR, Array, row, "slot"))
    tensor, gradient, plain, fits, alone, other = (a.block() for _ in range(6))
    array, place = a.block(PTR, I64), _field(a, I64, Array, row, "place")
    a.branch(a.compare("slt", place, a.i64(0)), gradient, tensor)
    a.start(tensor)                                          # it is the one that the code reads, and in the list, too
    read = _field(a, PTR, Array, _row(a, state, "inputs", place), "array")
    a.branch(a.compare("eq", held, read), array, other, (held, a.i64(2)))
    a.start(gradient)
    a.branch(a.call("unshared", self, state, held), plain, other)
    a.start(plain)
    a.goto(array, a.load(PTR, a.at(held, a.load(I64, self, offset(Callable, "payload")))), a.i64(1))
    a.start(array)
    found, count = array.args
    flags = a.i32(layout.C_CONTIGUOUS | layout.ALIGNED | layout.WRITEABLE)
    a.branch(a.call("has_type", self, row, found, flags), fits, other)
    a.start(fits)
    a.branch(a.call("held_by", self, found, count), alone, other)
    a.start(alone)
    a.ret(found)
    a.start(other)
    a.ret(a.null)


def _put_over(builder: ModuleBuilder) -> None:
    """put_over(self, state, row, item): make the array that a result replaces the spare one for it, if that may be
    written over; whether it may. Otherwise the spare one stays, unless somebody has it since a call that failed."""
    a = Assembler(builder, "put_over", [PTR, PTR, PTR, PTR], I1)
    self, state, row, item = a.args
    none, spare = a.load(PTR, self, offset(Callable, "none")), a.load(PTR, item)
    full, taken, asked, alone, other = (a.block() for _ in range(5))
    a.branch(a.compare("eq", spare, none), asked, full)
    a.start(full)
    a.branch(a.call("held_by", self, spare, a.i64(1)), asked, taken)
    a.start(taken)
    a.call("Py_DecRef", _replace(a, item, none))
    a.goto(asked)
    a.start(asked)
    array = a.call("replaced_array", self, state, row)
    a.branch(a.is_null(array), other, alone)
    a.start(alone)
    a.call("Py_DecRef", _replace(a, item, array))
    a.ret(a.true)
    a.start(other)
    a.ret(a.false)


def _fill_spares(builder: ModuleBuilder) -> None:
    """fill_spares(self, state, outputs): whether there is an array for each result that is not returned, a spare one or
    that which it replaces; stores the pointers to their elements."""
    a = Assembler(builder, "fill_spares", [PTR, PTR, PTR], I1)
    self, state, outputs = a.args
    none, failed = a.load(PTR, self, offset(Callable, "none")), a.block()
    with _loop(a, _field(a, I64, State, state, "result_count")) as (k, following):
        row, item = _row(a, state, "results", k), _item(a, state, "spares", k)
        changed, other, missing, made, ready = (a.block() for _ in range(5))
        a.branch(a.compare("ne", _field(a, I64, Array, row, "over"), a.i64(0)), changed, other)
        a.start(changed)
        a.branch(a.call("put_over", self, state, row, item), ready, other)
        a.start(other)
        a.branch(a.compare("eq", a.load(PTR, item), none), missing, ready)
        a.start(missing)
        rank = a.narrow(_field(a, I64, Array, row, "rank"))
        new = a.call("new_array", self, _field(a, PTR, Array, row, "descr"), rank, _field(a, PTR, Array, row, "dims"),
                     _field(a, I64, Array, row, "bytes"))
        a.branch(a.is_null(new), failed, made)
        a.start(made)
        a.store(new, item)
        a.call("Py_DecRef", none)
        a.goto(ready)
        a.start(ready)
        number = _field(a, I64, Array, row, "number")
        a.store(a.load(PTR, a.load(PTR, item), layout.ARRAY_DATA), a.at(outputs, a.mul(number, a.i64(8))))
        following()
    a.ret(a.true)
    a.start(failed)
    a.ret(a.false)


# -- what a call changes ----------------------------------------------------------------------------------------------
def _recyclable(builder: ModuleBuilder) -> None:
    """recyclable(self, row, array, known): whether an array, to which the caller has a reference, may serve as a
    result: it has its type, as is `known` or not, and nobody else has it or its memory."""
    a = Assembler(builder, "recyclable", [PTR, PTR, PTR, I1], I1)
    self, row, array, known = a.args
    other, single, typed, unknown, fits = (a.block() for _ in range(5))
    a.branch(a.call("held_by", self, array, a.i64(1)), single, other)
    a.start(single)
    flags = a.i32(layout.C_CONTIGUOUS | layout.ALIGNED | layout.WRITEABLE)
    a.branch(known, typed, unknown)
    a.start(typed)
    found = a.and_(a.load(I32, array, layout.ARRAY_FLAGS), flags)
    a.branch(a.compare("eq", found, flags), fits, other)
    a.start(unknown)
    a.branch(a.call("has_type", self, row, array, flags), fits, other)
    a.start(fits)
    a.ret(a.true)
    a.start(other)
    a.ret(a.false)


def _unshared(builder: ModuleBuilder) -> None:
    """unshared(self, state, obj): whether an object is a tensor that only the caller has, without anything but an
    array, so that another array in it cannot be told from another tensor."""
    a = Assembler(builder, "unshared", [PTR, PTR, PTR], I1)
    self, state, obj = a.args
    none, other = a.load(PTR, self, offset(Callable, "none")), a.block()

    def need(condition: Value) -> None:
        following = a.block()
        a.branch(condition, following, other)
        a.start(following)

    need(a.compare("eq", a.load(I64, obj, layout.OB_REFCNT), a.i64(1)))
    need(a.compare("eq", a.load(PTR, obj, layout.OB_TYPE), a.load(PTR, self, offset(Callable, "tensor_type"))))
    for name in EMPTY:
        held = a.load(PTR, a.at(obj, _field(a, I64, State, state, name)))
        need(a.or_(a.is_null(held), a.compare("eq", held, none)))
    a.ret(a.not_null(a.load(PTR, a.at(obj, a.load(I64, self, offset(Callable, "payload"))))))
    a.start(other)
    a.ret(a.false)


def _put_gradient(builder: ModuleBuilder) -> None:
    """put_gradient(self, state, slot, array): have the tensor in a slot, or a new one, have an array, to which the
    caller's reference goes; returns the array of the former one, with a reference, or something else that it was. NULL
    with an exception if memory is short."""
    a = Assembler(builder, "put_gradient", [PTR, PTR, PTR, PTR], PTR)
    self, state, slot, array = a.args
    before, payload = a.load(PTR, slot), a.load(I64, self, offset(Callable, "payload"))
    reused, fresh, made, failed = (a.block() for _ in range(4))
    a.branch(a.call("unshared", self, state, before), reused, fresh)
    a.start(reused)
    place = a.at(before, payload)
    old = a.load(PTR, place)
    a.store(array, place)
    a.ret(old)

    a.start(fresh)
    tensor = a.call("tensor_of", self, array)
    a.branch(a.is_null(tensor), failed, made)
    a.start(failed)
    a.call("Py_DecRef", array)
    a.ret(a.null)
    a.start(made)
    a.store(tensor, slot)
    a.ret(before)


def _commit(builder: ModuleBuilder) -> None:
    """commit_captured(self, captured): have tensors take over the results that are not returned, and set gradients;
    arrays that they had are the spare ones of the next call. Returns a tuple of what the call leaves; NULL with an
    exception if memory is short."""
    a = Assembler(builder, "commit_captured", [PTR, PTR], PTR)
    self, captured = a.args
    state, none = _field(a, PTR, Captured, captured, "state"), a.load(PTR, self, offset(Callable, "none"))
    failed, begun, given_up_all = a.block(), a.block(), a.block()
    items = a.call("PyTuple_New", _field(a, I64, State, state, "left_count"))
    a.branch(a.is_null(items), failed, begun)
    a.start(begun)
    with _loop(a, _field(a, I64, State, state, "result_count")) as (k, following):
        row, item = _row(a, state, "results", k), _item(a, state, "spares", k)
        slot, place, fresh = _field(a, PTR, Array, row, "slot"), _field(a, I64, Array, row, "place"), a.load(PTR, item)
        gradient, tensor, replaced, kept, given_up = a.block(), a.block(), a.block(PTR, I1), a.block(), a.block()
        other, left = a.block(), a.block()
        a.call("Py_IncRef", fresh)
        a.branch(a.compare("slt", place, a.i64(0)), other, tensor)
        a.start(other)
        a.branch(a.compare("eq", place, a.i64(-1)), gradient, left)

        a.start(left)                                        # to the tuple, which takes the reference of the list
        a.call("PyTuple_SetItem", items, a.sub(a.i64(-2), place), fresh)
        a.call("Py_DecRef", fresh)
        a.call("Py_IncRef", none)
        a.store(none, item)
        following()

        a.start(tensor)
        taking, before = _row(a, state, "inputs", place), a.load(PTR, slot)
        known = a.compare("eq", before, _field(a, PTR, Array, taking, "array"))
        _take(a, state, taking, fresh)
        a.store(fresh, slot)
        a.goto(replaced, before, known)

        a.start(gradient)
        before = a.call("put_gradient", self, state, slot, fresh)
        a.branch(a.is_null(before), given_up_all, replaced, (), (before, a.false))

        a.start(replaced)
        old, known = replaced.args
        a.call("Py_DecRef", fresh)                           # the reference of the list of spares
        a.branch(a.call("recyclable", self, row, old, known), kept, given_up)
        a.start(kept)
        a.store(old, item)
        following()
        a.start(given_up)
        a.call("Py_IncRef", none)
        a.store(none, item)
        a.call("Py_DecRef", old)
        following()
    with _loop(a, _field(a, I64, State, state, "cleared_count")) as (k, following):
        slot = a.load(PTR, a.at(_field(a, PTR, State, state, "cleared"), a.mul(k, a.i64(8))))
        a.call("Py_DecRef", _replace(a, slot, none))
        following()
    a.ret(items)
    a.start(given_up_all)
    a.call("Py_DecRef", items)
    a.goto(failed)
    a.start(failed)
    a.ret(a.null)
