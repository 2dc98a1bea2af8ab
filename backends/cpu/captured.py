"""Captured inputs of a compiled callable: tensors that its function reaches by itself.

A call takes the fast path if none of the guards has changed, words of memory each with the value that it had: those of
the state that the recording depends on, and the slots of the tensors. The addresses of the elements are then known.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable as Function
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from mlc.backends.cpu import layout
from mlc.backends.cpu.assemble import I1, I64, PTR, Assembler, ModuleBuilder
from mlc.backends.cpu.checked_call import LONG_WORK
from mlc.backends.cpu.support import Callable, offset
from mlc.backends.executable import Entry
from mlc.ir import sizes
from mlc.ir.abi import Interface
from mlc.ir.types import FunctionType

ROW = 16
"""Bytes of an address and a word."""


class Guards(NamedTuple):
    """Words of memory that must not change: rows of an address and a word; `owner` keeps what they are in."""

    rows: int
    number: int
    owner: Any


class GradMode(NamedTuple):
    """An object whose attribute of a name is False if nothing is recorded for derivatives."""

    holder: Any
    name: str


class Captured(ctypes.Structure):
    """Captured inputs as they were at a call; a newer one replaces it, and none is written to.

    keep  the Python objects that the pointers belong to
    """

    keep: tuple[Any, ...]
    _fields_ = [
        ("owner", ctypes.c_void_p),               # this object, to which a call holds a reference
        ("guards", ctypes.c_void_p), ("guard_count", ctypes.c_int64),
        ("slots", ctypes.c_void_p), ("slot_count", ctypes.c_int64),     # rows of the slots of tensors
        ("pointers", ctypes.c_void_p),            # the elements of the tensors
        ("mode", ctypes.c_void_p), ("name", ctypes.c_void_p),           # the grad mode, if a tensor requires a gradient
        ("off", ctypes.c_void_p),                 # False
    ]


class CapturedInputs:
    """The captured inputs of the fast path of an entry.

    own      number of the arguments; the other inputs of the entry are the tensors
    guards   the guards of the state that the recording depends on; None where it has to be looked at
    """

    def __init__(self, entry: Entry, own: int, tensors: Sequence[Any], guards: Function[[], Guards | None],
                 mode: GradMode) -> None:
        self.entry, self.own, self.tensors, self.guards, self.mode = entry, own, tensors, guards, mode
        self.callable: Any = None
        self._now: Captured | None = None
        self._lock = threading.RLock()

    @property
    def differentiable(self) -> bool:
        """Whether a tensor requires a gradient, so that calls in grad mode are recorded."""
        return any(t.requires_grad for t in self.tensors)

    def renew(self) -> None:
        """Take the present state as that in which calls take the fast path; none does if it has to be looked at."""
        with self._lock:
            if self.callable is None:
                return
            guards = self.guards()
            if self._now is not None and self._unchanged(self._now, guards):
                return
            found, fresh = [(t, t._array, t._autograd) for t in self.tensors], None
            if guards is not None and all(self._fits(j, array) for j, (_, array, _) in enumerate(found)):
                fresh = self._snapshot(guards, found)
            Callable.from_address(id(self.callable)).captured = None if fresh is None else ctypes.addressof(fresh)
            self._now = fresh                              # the former one may go now that no call finds it any more

    def retire(self) -> None:
        """Have no call take the fast path any more, and no tensor be kept."""
        with self._lock:
            Callable.from_address(id(self.callable)).captured = None
            self.callable = self._now = None
            self.tensors, self.guards = (), _none

    @staticmethod
    def _unchanged(now: Captured, guards: Guards | None) -> bool:
        rows = now.keep[1]
        return guards is not None and (guards.rows, guards.number) == (now.guards, now.guard_count) and all(
            _word(address) == value for address, value in zip(rows[::2], rows[1::2]))

    def _fits(self, j: int, array: Any) -> bool:
        return type(array) is np.ndarray and self.entry.checked_array(self.own + j, array) is array

    def _snapshot(self, guards: Guards, found: Sequence[tuple[Any, Any, Any]]) -> Captured:
        """The tensors with these arrays and autograd records, which other threads may replace meanwhile."""
        arrays = [array for _, array, _ in found]
        slots = list[int]()
        for tensor, array, meta in found:
            slots += [id(tensor) + _slot(tensor.__class__, "_array"), id(array),
                      id(tensor) + _slot(tensor.__class__, "_autograd"), id(meta)]
            if meta is not None:
                slots += [id(meta) + _slot(meta.__class__, "requires_grad"), id(meta.requires_grad)]
        rows = (ctypes.c_uint64 * len(slots))(*slots)
        pointers = (ctypes.c_uint64 * len(arrays))(*map(layout.data_address, arrays))
        name = self.mode.name
        made = Captured(guards=guards.rows, guard_count=guards.number, slots=ctypes.addressof(rows),
                        slot_count=len(slots) // 2, pointers=ctypes.addressof(pointers), name=id(name), off=id(False),
                        mode=id(self.mode.holder) if self.differentiable else None)
        made.owner = id(made)
        made.keep = guards, rows, pointers, tuple(found), self.mode
        return made


def _none() -> None:
    """The guards of what has no state any more."""


def _word(address: int) -> int:
    return ctypes.c_uint64.from_address(address).value


@cache
def _slot(kind: Any, name: str) -> int:
    found = layout.slot_offset(kind, name)
    assert found is not None, f"{kind} has no slot {name}"
    return found


def of_arguments(interface: Interface, own: int) -> Interface:
    """The interface of an entry without the inputs after its arguments, which have no symbolic sizes."""
    if own == len(interface.inputs):
        return interface
    rest = sum(sizes.evaluate(t.size, {}) for t in interface.inputs[own:])
    work = -1 if interface.work is None and rest >= LONG_WORK else interface.work
    return replace(interface, type=FunctionType(interface.inputs[:own], interface.results), work=work)


# -- emitted code -----------------------------------------------------------------------------------------------------
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


def captured_hold(builder: ModuleBuilder) -> None:
    """captured_hold(self): whether the captured inputs are as they were, and a call is not recorded for derivatives."""
    first_changed(builder)
    a = Assembler(builder, "captured_hold", [PTR], I1)
    self, = a.args
    captured, changed = a.load(PTR, self, offset(Callable, "captured")), a.block()

    def need(condition: Any) -> None:
        following = a.block()
        a.branch(condition, following, changed)
        a.start(following)

    need(a.not_null(captured))
    for rows, number in (("guards", "guard_count"), ("slots", "slot_count")):
        count = a.load(I64, captured, offset(Captured, number))
        need(a.compare("eq", count, a.call("first_changed", a.load(PTR, captured, offset(Captured, rows)), a.i64(0),
                                           count)))
    mode, asked, holds = a.load(PTR, captured, offset(Captured, "mode")), a.block(), a.block()
    a.branch(a.is_null(mode), holds, asked)
    a.start(asked)
    off, owner = a.load(PTR, captured, offset(Captured, "off")), a.load(PTR, captured)
    a.call("Py_IncRef", owner)                               # asking may let another thread replace it
    enabled = a.call("PyObject_GetAttr", mode, a.load(PTR, captured, offset(Captured, "name")))
    a.call("Py_DecRef", enabled)                             # which takes NULL; True and False live on
    is_same = a.compare("eq", captured, a.load(PTR, self, offset(Callable, "captured")))
    a.call("Py_DecRef", owner)
    a.branch(a.and_(is_same, a.compare("eq", enabled, off)), holds, changed)
    a.start(holds)
    a.ret(a.true)
    a.start(changed)
    a.ret(a.false)


def put_captured(builder: ModuleBuilder) -> None:
    """put_captured(self, to, count): store the addresses of the captured inputs, and hold what owns them: the result,
    which `Py_DecRef` releases."""
    a = Assembler(builder, "put_captured", [PTR, PTR, I64], PTR)
    self, to, count = a.args
    captured = a.load(PTR, self, offset(Callable, "captured"))
    pointers, owner = a.load(PTR, captured, offset(Captured, "pointers")), a.load(PTR, captured)
    a.call("Py_IncRef", owner)
    loop, row, done = a.block(I64), a.block(), a.block()
    a.goto(loop, a.i64(0))
    a.start(loop)
    i, = loop.args
    a.branch(a.compare("ult", i, count), row, done)
    a.start(row)
    at = a.mul(i, a.i64(8))
    a.store(a.load(PTR, a.at(pointers, at)), a.at(to, at))
    a.goto(loop, a.add(i, a.i64(1)))
    a.start(done)
    a.ret(owner)
