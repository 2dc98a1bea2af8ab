"""Captured inputs of a compiled callable: tensors that its function reaches by itself, and what a call does to them.

A call takes the fast path if none of the guards has changed, words of memory each with the value that it had: those of
the state that the recording depends on, and what autograd knows of the tensors. A tensor that has another array than
before, of the same type, is followed. backends/cpu/captured_call.py is the native code.

A call that changes tensors, such as a training step, writes over the arrays that they have, where the code allows that
and nobody else holds them. Otherwise it writes to spare arrays, which then take the place of those. These are the spare
ones of the next call, unless somebody else holds them. So a step allocates nothing, and a call that fails has changed
nothing.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable as Function
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from mlc.backends.cpu import layout
from mlc.backends.cpu.checked_call import LONG_WORK
from mlc.backends.cpu.support import Callable
from mlc.backends.executable import Entry
from mlc.ir import sizes
from mlc.ir.abi import Interface
from mlc.ir.types import FunctionType

_OURS = 2
"""References to an array that nobody else holds, as `sys.getrefcount` counts them in `reclaim`: those of a variable and
of an argument. No other thread runs between that and the store, which call nothing that gives up the GIL."""
ROW = 16
"""Bytes of an address and a word."""


class Guards(NamedTuple):
    """Words of memory that must not change: rows of an address and a word; `owner` keeps what they are in."""

    rows: int
    number: int
    owner: Any


class GradMode(NamedTuple):
    """An object whose attribute of a name is whether computations are recorded for derivatives."""

    holder: Any
    name: str


@dataclass(frozen=True)
class Changes:
    """The effects of a call, besides its results.

    stored     per captured input that takes over a result: its number, and that of the result
    over       the numbers of results that may be written over what they replace
    gradients  tensors whose gradient is set to a result, by its number, or to None
    returned   the numbers of the results that are returned
    enabled    the grad mode that it is recorded for; None if it does not depend on it
    before     called before the code runs: it writes the inputs that are no tensors; None if there are none
    after      called on the returned tensors and the arguments when all is changed; None if there is nothing else to do
    records    whether that records the call for derivatives, so that arguments may have a history
    left       the numbers of the results that `after` takes as its last argument, a tuple of arrays, and no other has;
               None if it takes no such argument
    wanted     the numbers of the arguments that have a history, and no others have; None if any may
    """

    stored: Sequence[tuple[int, int]]
    over: Collection[int]
    gradients: Sequence[tuple[Any, int | None]]
    returned: tuple[int, ...]
    enabled: bool | None
    before: Function[[], None] | None
    after: Function[..., None] | None
    records: bool = False
    left: Sequence[int] | None = None
    wanted: tuple[int, ...] | None = None


class Array(ctypes.Structure):
    """A slot that has an array, or a tensor with one, and the type of that.

    array   of an input: the array that it had, which `State.arrays` keeps
    number  of the input or result
    place   of a result: which of the inputs takes it over; -1 for a gradient, which is a new tensor; -2 - i for one
            that becomes item i of the tuple of what a call leaves
    over    of a result: 1 if it may be written over what it replaces
    """

    _fields_ = [("slot", ctypes.c_void_p), ("array", ctypes.c_void_p), ("descr", ctypes.c_void_p),
                ("dims", ctypes.c_void_p), ("rank", ctypes.c_int64), ("bytes", ctypes.c_int64),
                ("number", ctypes.c_int64), ("place", ctypes.c_int64), ("over", ctypes.c_int64)]


class State(ctypes.Structure):
    """The captured inputs as the last call left them. It changes under the GIL, while no call runs (`users`).

    keep   the Python objects that the pointers belong to
    metas  what autograd has of the tensors whose gradients are set: their gradients are slots of it
    spare  the list of spare arrays
    """

    keep: tuple[Any, ...]
    metas: list[Any]
    spare: list[Any]
    _fields_ = [
        ("users", ctypes.c_int64),                # calls that run
        ("inputs", ctypes.c_void_p), ("input_count", ctypes.c_int64),   # `Array`s of the tensors: their slots
        ("arrays", ctypes.c_void_p),              # list of the arrays that the tensors had
        ("pointers", ctypes.c_void_p), ("pointer_count", ctypes.c_int64),   # the elements of all captured inputs
        ("results", ctypes.c_void_p), ("result_count", ctypes.c_int64),  # `Array`s of the results not returned
        ("spares", ctypes.c_void_p),              # list of arrays for them, or None
        ("changed", ctypes.c_void_p), ("changed_count", ctypes.c_int64),  # slots of tensors that are changed, in order
        ("cleared", ctypes.c_void_p), ("cleared_count", ctypes.c_int64),  # addresses of slots that are set to None
        ("left_count", ctypes.c_int64),           # the last results are items of a tuple
        ("before", ctypes.c_void_p), ("after", ctypes.c_void_p),         # functions, or NULL
        ("weak", ctypes.c_int64), ("history", ctypes.c_int64),           # offsets of slots of tensors
        ("storage", ctypes.c_int64), ("view", ctypes.c_int64),
    ]


class Captured(ctypes.Structure):
    """The guards of a call; newer ones replace them, and none are written to.

    keep  the Python objects that the pointers belong to
    """

    keep: tuple[Any, ...]
    _fields_ = [
        ("owner", ctypes.c_void_p),               # this object, to which a call holds a reference
        ("guards", ctypes.c_void_p), ("guard_count", ctypes.c_int64),
        ("slots", ctypes.c_void_p), ("slot_count", ctypes.c_int64),     # rows of slots of the tensors
        ("mode", ctypes.c_void_p), ("name", ctypes.c_void_p),           # the grad mode, if it matters
        ("wanted", ctypes.c_void_p),              # its value
        ("state", ctypes.c_void_p),
        ("histories", ctypes.c_int64),            # how many of the tensors require a gradient
    ]


class CapturedInputs:
    """The captured inputs of the fast path of an entry.

    own      number of the arguments; the other inputs of the entry are the captured ones
    inputs   these: tensors, and arrays of other inputs, which `changes.before` writes
    guards   the guards of the state that the recording depends on; None where it has to be looked at
    changes  what a call does to them; None if it only returns results
    """

    def __init__(self, entry: Entry, own: int, inputs: Sequence[Any], guards: Function[[], Guards | None],
                 mode: GradMode, changes: Changes | None = None) -> None:
        self.entry, self.own, self.inputs, self.guards, self.mode = entry, own, inputs, guards, mode
        self.changes = changes
        self.callable: Any = None
        self._now: Captured | None = None
        self._state: State | None = None
        self._lock = threading.RLock()

    @property
    def tensors(self) -> list[Any]:
        """The inputs that are tensors."""
        return [x for x in self.inputs if type(x) is not np.ndarray]

    @property
    def snapshot(self) -> object:
        """Stands for the state in which calls take the fast path: another object for each."""
        return self._now

    def takes(self, enabled: bool) -> bool:
        """Whether calls in a grad mode take the fast path: one that has to be recorded for derivatives does not."""
        return self._wanted() in (None, enabled)

    def _wanted(self) -> bool | None:
        """The grad mode of calls that take the fast path; None if it does not matter."""
        if self.changes is not None and self.changes.enabled is not None:
            return self.changes.enabled
        return False if any(t.requires_grad for t in self.tensors) else None

    @property
    def interface(self) -> Interface:
        """The interface of the entry without the captured inputs, and without results that are not returned."""
        interface = self.entry.interface
        rest = sum(sizes.evaluate(t.size, {}) for t in interface.inputs[self.own:])
        work = -1 if interface.work is None and rest >= LONG_WORK else interface.work
        returned = range(len(interface.results)) if self.changes is None else self.changes.returned
        return replace(interface, work=work, aliases=tuple(interface.aliases[n] for n in returned), overwrites=(),
                       type=FunctionType(interface.inputs[:self.own], tuple(interface.results[n] for n in returned)))

    def renew(self) -> None:
        """Take the present state as that in which calls take the fast path; none does if it has to be looked at."""
        with self._lock:
            if self.callable is None:
                return
            guards = self.guards()
            if self._now is not None and self._unchanged(self._now, guards):
                return
            fresh = None if guards is None else self._snapshot(guards)
            Callable.from_address(id(self.callable)).captured = None if fresh is None else ctypes.addressof(fresh)
            self._now = fresh                              # the former one may go now that no call finds it any more

    def retire(self) -> None:
        """Have no call take the fast path any more, and no tensor be kept."""
        with self._lock:
            Callable.from_address(id(self.callable)).captured = None
            self.callable = self._now = self._state = self.changes = None
            self.inputs, self.guards = (), _none

    def reclaim(self, left: list[Any]) -> None:
        """Have the next call take the arrays that one has left, the last of the list, if nobody else holds them. The
        list is empty afterwards."""
        state = self._state
        for place in range(1, 0 if state is None else state.left_count + 1):
            array = left.pop()
            if sys.getrefcount(array) <= _OURS and state.spare[-place] is None:  # type: ignore[union-attr]
                state.spare[-place] = array  # type: ignore[union-attr]
        left.clear()

    @staticmethod
    def _unchanged(now: Captured, guards: Guards | None) -> bool:
        return guards is not None and (guards.rows, guards.number) == (now.guards, now.guard_count) and all(
            _word(address) == value for address, value in zip(now.keep[1][::2], now.keep[1][1::2]))

    def _snapshot(self, guards: Guards) -> Captured | None:
        """The guards of the present state; None if the tensors are not as the code takes them."""
        tensors, changes = self.tensors, self.changes      # whose attributes other threads may replace meanwhile
        changed = [] if changes is None else [self.inputs[j] for j, _ in changes.stored]
        if any(t._storage is not None for t in changed):   # others see what is written to it
            return None
        metas = [] if changes is None else [t.autograd_meta for t, _ in changes.gradients]
        rows, found = list[tuple[int, Any]](), list[Any]()
        for tensor in tensors:
            meta = tensor._autograd
            found.append(meta)
            rows.append((_address(tensor, "_autograd"), meta))
            if meta is not None:
                rows.append((_address(meta, "requires_grad"), meta.requires_grad))
        rows += [(_address(t, "_storage"), None) for t in changed]
        rows += [] if changes is None else [
            (_address(t, "_autograd"), meta) for (t, _), meta in zip(changes.gradients, metas)]
        if self._state is None or self._state.metas != metas:
            self._state = self._new_state(metas)
        return None if self._state is None else self._guarded(guards, rows, self._state, (tensors, found))

    def _guarded(self, guards: Guards, found: Sequence[tuple[int, Any]], state: State, keep: Any) -> Captured:
        """A state with its guards: those of all that is reached, and slots with the objects that they have to have,
        unless these are among the former."""
        known = {*(ctypes.c_uint64 * (2 * guards.number)).from_address(guards.rows)[::2]}
        slots = [part for address, x in {a: (a, x) for a, x in found if a not in known}.values()
                 for part in (address, id(x))]
        rows, wanted = (ctypes.c_uint64 * len(slots))(*slots), self._wanted()
        made = Captured(guards=guards.rows, guard_count=guards.number, slots=ctypes.addressof(rows),
                        slot_count=len(slots) // 2, mode=None if wanted is None else id(self.mode.holder),
                        name=id(self.mode.name), wanted=id(wanted), state=ctypes.addressof(state),
                        histories=sum(t.requires_grad for t in self.tensors))
        made.owner = id(made)
        made.keep = guards, rows, state, keep, self.mode
        return made

    def _new_state(self, metas: list[Any]) -> State | None:
        """The inputs with the arrays that they have now; None if one is not as the code takes it."""
        arrays = [x if type(x) is np.ndarray else x._array for x in self.inputs]
        if not all(type(x) is np.ndarray and self.entry.checked_array(self.own + j, x) is x
                   for j, x in enumerate(arrays)):
            return None
        keep = list[Any]([self.inputs, arrays])
        tensors = [(j, x) for j, x in enumerate(self.inputs) if type(x) is not np.ndarray]
        rows = (Array * len(tensors))(*(
            _array(_address(t, "_array"), arrays[j].shape, arrays[j].dtype, keep, array=id(arrays[j]),
                   number=j) for j, t in tensors))
        pointers = (ctypes.c_uint64 * len(arrays))(*map(layout.data_address, arrays))
        made = State(inputs=ctypes.addressof(rows), input_count=len(rows), arrays=id(arrays),
                     pointers=ctypes.addressof(pointers), pointer_count=len(pointers))
        keep += [rows, pointers]
        if self.changes is not None:
            self._add_changes(made, self.changes, [j for j, _ in tensors], metas, keep)
        made.keep, made.metas = tuple(keep), metas
        return made

    def _add_changes(self, state: State, changes: Changes, tensors: Sequence[int], metas: Sequence[Any],
                     keep: list[Any]) -> None:
        """Add what a call changes to the state; `tensors` are the numbers of the inputs that are tensors."""
        shapes, places = self.entry.static_results, list[Array]()
        for j, n in changes.stored:
            slot = _address(self.inputs[j], "_array")
            places.append(_array(slot, *shapes[n], keep, number=n, place=tensors.index(j),
                                 over=int(n in changes.over)))
        cleared = list[int]()
        for meta, (_, number) in zip(metas, changes.gradients):
            slot = _address(meta, "grad")
            if number is None:
                cleared.append(slot)
            else:
                places.append(_array(slot, *shapes[number], keep, number=number, place=-1,
                                     over=int(number in changes.over)))
        left = changes.left or ()
        places += [_array(0, *shapes[n], keep, number=n, place=-2 - i) for i, n in enumerate(left)]
        results = (Array * len(places))(*places)
        state.spare = spares = [None] * len(places)
        state.left_count = len(left)
        changed = (ctypes.c_uint64 * len(changes.stored))(*sorted(_address(self.inputs[j], "_array")
                                                                  for j, _ in changes.stored))
        rows = (ctypes.c_uint64 * len(cleared))(*cleared)
        state.results, state.result_count = ctypes.addressof(results), len(results)
        state.spares, state.cleared, state.cleared_count = id(spares), ctypes.addressof(rows), len(rows)
        state.before = None if changes.before is None else id(changes.before)
        state.after = None if changes.after is None else id(changes.after)
        for owner, _ in changes.gradients[:1]:
            kind: Any = owner.__class__
            state.weak, state.history = kind.__weakrefoffset__, _slot(kind, "_autograd")
            state.storage, state.view = _slot(kind, "_storage"), _slot(kind, "_view")
        state.changed, state.changed_count = ctypes.addressof(changed), len(changed)
        keep += [results, spares, rows, changed, changes]


def _array(slot: int, shape: Sequence[int], dtype: np.dtype[Any], keep: list[Any], **more: Any) -> Array:
    sizes = (ctypes.c_int64 * len(shape))(*shape)
    keep += [sizes, dtype]
    count = dtype.itemsize
    for n in shape:
        count *= n
    return Array(slot=slot, descr=id(dtype), dims=ctypes.addressof(sizes), rank=len(shape), bytes=count, **more)


def _none() -> None:
    """The guards of what has no state any more."""


def _word(address: int) -> int:
    return ctypes.c_uint64.from_address(address).value


def _address(x: Any, name: str) -> int:
    """The address of a slot of an object."""
    return id(x) + _slot(x.__class__, name)


@cache
def _slot(kind: Any, name: str) -> int:
    found = layout.slot_offset(kind, name)
    assert found is not None, f"{kind} has no slot {name}"
    return found
