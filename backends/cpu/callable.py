"""Compiled functions as Python objects: an emitted type whose instances are called at C speed.

An instance takes the fast path of backends/cpu/wrapper.py or, if that does not apply, calls its slow path; attributes
that it lacks are looked up on the slow path. If the object layout is not the one the wrapper assumes (`problem`), only
the slow path is used.
"""

from __future__ import annotations

import ctypes
import os
import threading
import types
from collections.abc import Callable as Function
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from types import MethodType
from typing import Any

import numpy as np

from mlc.backends.cpu import layout, pattern_call, pattern_match, runtime
from mlc.backends.cpu.assemble import I32, I64, PTR, Assembler, ModuleBuilder
from mlc.backends.cpu.captured import CapturedInputs
from mlc.backends.cpu.captured_call import first_changed as first_changed_code
from mlc.backends.cpu.pattern_table import PatternTable
from mlc.backends.cpu.support import EXTERNALS, OWNED, SIGNATURES, Binding, Callable, Scratch, dtypes, offset
from mlc.backends.cpu.wrapper import NAME, Reached, wrapper_module
from mlc.backends.executable import FAST_ENTRIES, Entry
from mlc.backends.load import Library
from mlc.backends.target import Target
from mlc.dialects.builtin import Module
from mlc.ir.abi import Interface
from mlc.ir.call_pattern import CallPattern
from mlc.ir.weak_references import WeakTable

Variable = tuple[Any, str | None, Any]
"""A dict and a key, a cell and None, or a function and one of `FUNCTION_SLOTS`; and its value."""

MAX_VALUES = 256
"""Functions of more arguments and results have no wrapper: compiling one would take longer than a second of slow calls
saves."""

MAX_FAST_PATHS = 8
"""Maximum number of signatures that a dispatcher tries before its slow path; each costs a few nanoseconds."""

MAX_RETIRED = 256
"""Maximum number of fast paths that a dispatcher has given up; they stay in memory, since a call may be in one."""


class SlowCallable:
    """A compiled function without a fast path, with the same interface as one that has it."""

    __slots__ = ("__weakref__", "fast_path", "keep", "slow_path")

    def __init__(self, slow_path: Function[..., Any], keep: tuple[Any, ...], fast_path: str) -> None:
        self.slow_path = slow_path
        self.keep = keep
        self.fast_path = fast_path

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        return self.slow_path(*args, **keywords)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.slow_path, name)

    def __copy__(self) -> Any:
        """The function itself, as of all functions."""
        return self

    def __deepcopy__(self, memo: Any) -> Any:
        return self

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.slow_path.__reduce_ex__(protocol)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """Bind to an instance like a function, which takes the instance as its first argument."""
        return self if instance is None else MethodType(self, instance)

    def __repr__(self) -> str:
        entry = next((x for x in self.keep if isinstance(x, Entry)), None)
        return f"<compiled: {self.slow_path!r}>" if entry is None else f"<compiled {entry.interface.name}>"


def _binding(variable: Variable) -> Binding:
    """The binding of a variable: a key of a dict, a cell, or a slot of an object, which is read like a cell."""
    place, key, value = variable
    if not isinstance(place, dict) and key is not None:
        slot = layout.FUNCTION_SLOTS[key] if isinstance(place, types.FunctionType) else layout.slot_offset(
            type(place), key)
        assert slot is not None, f"{type(place)} has no slot {key}"
        return Binding(id(place) + slot - layout.CELL_CONTENTS, None, id(value))
    return Binding(id(place), None if key is None else id(key), id(value))


def make_callable(entry: Entry, slow_path: Function[..., Any], result: str = "tensor",
                  tensor_type: type | None = None, payload: str = "_array", consumed: Any = None,
                  bindings: Sequence[Variable] = (), captured: CapturedInputs | None = None) -> Any:
    """A callable that runs `entry` on positional arrays, and `slow_path` on any other arguments.

    result       "tensor": results are instances of `tensor_type`; "ndarray": they are numpy arrays
    tensor_type  instances are also taken as arguments: its slot `payload` holds a numpy array, and its slot `_autograd`
                 is None or empty unless the slow path has to record the call for derivatives
    consumed     replaces the array of a donated tensor
    bindings     variables and the values that they must have for the fast path (guards)
    captured     the inputs of `entry` after the arguments
    `fast_path` of the callable says "yes", or why every call takes the slow path.
    """
    if result not in ("tensor", "ndarray") or (result == "tensor" and tensor_type is None):
        raise ValueError(f"result is 'tensor', with a tensor_type, or 'ndarray'; got {result!r}")
    keep: tuple[Any, ...] = (entry, tensor_type, captured)
    interface = entry.interface if captured is None else captured.interface
    slot = layout.slot_offset(tensor_type, payload) if tensor_type is not None else 0
    autograd = layout.slot_offset(tensor_type, "_autograd") if tensor_type is not None else 0
    reason = layout.problem() or _unsuited(interface)
    if reason is None and (slot is None or autograd is None):
        reason = f"{tensor_type} has no slot {payload if slot is None else '_autograd'}"
    if reason is not None:
        return SlowCallable(slow_path, keep, reason)
    library = _wrapper(replace(interface, name="wrapped", error_sites=(), arg_names=(), overwrites=(),
                               constraint_sites=("",) * len(interface.size_constraints)),
                       tensor_type is not None, result == "tensor", _reached(captured))
    rows = (Binding * (len(bindings) + 1))(*map(_binding, bindings))
    made = _new(slow_path, entry.fail, consumed, (*keep, rows, tuple(bindings), library))
    fields = _filled(made, entry, tensor_type, slot or 0, autograd or 0)
    fields.bindings = ctypes.addressof(rows) if bindings else None
    fields.vectorcall = library.address(NAME)
    if captured is not None:
        captured.callable = made
        captured.renew()
    return made


def make_pattern_callable(entry: Entry, pattern: CallPattern, slow_path: Function[..., Any], tensor_type: type,
                          record: Function[..., Any] | None, gate: types.CellType) -> Any:
    """A callable that runs `entry` for calls of a pattern, and `slow_path` for all others; None if there is none.

    tensor_type  arguments may be instances, and results are: its slots are `_array`, `_autograd`, `_storage`, `_view`
    record       called on the result and the arguments if the slot `_autograd` of an argument is not None; its result
                 is that of the call
    gate         the slow path is taken unless this cell contains None
    """
    slots = [layout.slot_offset(tensor_type, name) for name in ("_array", "_autograd", "_storage", "_view")]
    table = None if layout.problem() or None in slots else PatternTable.of(pattern, entry.interface)
    if table is None:
        return None
    payload, autograd, *_ = empty = [slot or 0 for slot in slots]
    rows, library = (Binding * 2)(_binding((gate, None, None))), _pattern_library()
    made = _new(slow_path, entry.fail, None, (entry, tensor_type, rows, gate, table, record, library))
    fields = _filled(made, entry, tensor_type, payload, autograd)
    fields.bindings, fields.pattern = ctypes.addressof(rows), ctypes.addressof(table.pattern)
    table.pattern.record = None if record is None else id(record)
    table.pattern.empty[:] = empty[1:]
    fields.vectorcall = library.address(pattern_call.NAME)
    return made


@cache
def _pattern_library() -> Library:
    return _native("pattern", pattern_call.pattern_module, [pattern_call.NAME], frozenset(pattern_match.SIGNATURES))


def _filled(made: Any, entry: Entry, tensor_type: type | None, payload: int, autograd: int) -> Callable:
    """The fields of a new instance, those set that all wrappers read."""
    fields = Callable.from_address(id(made))
    fields.function = entry.address
    fields.array_type = id(np.ndarray)
    fields.tensor_type = id(tensor_type) if tensor_type is not None else None
    fields.payload = payload
    fields.autograd, fields.none = autograd, id(None)
    for name, address in layout.numpy_functions().items():
        setattr(fields, name, address)
    fields.calls, fields.all_calls = ctypes.addressof(entry.fast_calls), ctypes.addressof(FAST_ENTRIES)
    for i, dtype in enumerate(dtypes()):
        fields.dtypes[i] = id(dtype)
    return fields


def make_dispatcher(slow_path: Function[..., Any]) -> Any:
    """A callable that initially calls `slow_path` only, and keeps its identity when fast paths are added."""
    if reason := layout.problem():
        return SlowCallable(slow_path, (), reason)
    made = _new(slow_path, None, None, ([],))              # the fast paths that it has given up
    Callable.from_address(id(made)).vectorcall = _support().address("forward")
    return made


def add_fast_path(dispatcher: Any, entry: Entry, result: str = "tensor", tensor_type: type | None = None,
                  payload: str = "_array", consumed: Any = None, bindings: Sequence[Variable] = (),
                  captured: CapturedInputs | None = None) -> str:
    """Add a fast path to a dispatcher: run `entry` if its guards hold, before the existing ones; "yes", or why not.

    The entry must be equivalent to the slow path for every call that passes the guards.
    """
    if isinstance(dispatcher, SlowCallable):
        return dispatcher.fast_path
    with _adding:
        if len(known := _fast_paths(dispatcher)) >= MAX_FAST_PATHS and not _retire_one(dispatcher, known):
            return f"the function has {len(known)} signatures with a fast path already"
        before: Any = dispatcher.slow_path
        made = make_callable(entry, before, result, tensor_type, payload, consumed, bindings, captured)
        if isinstance(made, SlowCallable):
            return made.fast_path
        fields = Callable.from_address(id(dispatcher))
        fields.slow_path = _reference(made)
        ctypes.pythonapi.Py_DecRef(ctypes.py_object(before))
    return "yes"


def _fast_paths(dispatcher: Any) -> list[Any]:
    """The fast paths of a dispatcher, the newest first."""
    found, following = list[Any](), dispatcher.slow_path
    kind: Any = _callable_type()
    while isinstance(following, kind):
        found.append(following)
        following = following.slow_path
    return found


def _retire_one(dispatcher: Any, known: list[Any]) -> bool:
    """Give up the oldest fast path that reaches tensors, whose state another one may have replaced; False if there is
    none."""
    retired: list[Any] = dispatcher.keep[0]
    oldest = next((i for i, x in reversed([*enumerate(known)]) if x.keep[2] is not None), None)
    if oldest is None or len(retired) >= MAX_RETIRED:
        return False
    gone = known[oldest]
    gone.keep[2].retire()
    Callable.from_address(id(known[oldest - 1] if oldest else dispatcher)).slow_path = _reference(gone.slow_path)
    retired.append(gone)                                   # with the reference that the one before has given up
    ctypes.pythonapi.Py_DecRef(ctypes.py_object(gone))
    return True


@contextmanager
def without_fast_path(dispatcher: Any, slow_path: Function[..., Any]) -> Iterator[None]:
    """Context in which a dispatcher calls `slow_path` only."""
    if isinstance(dispatcher, SlowCallable):
        yield
        return
    fields = Callable.from_address(id(dispatcher))
    with _adding:
        before, fields.slow_path = fields.slow_path, _reference(slow_path)
    try:
        yield
    finally:
        with _adding:
            fields.slow_path = before
        ctypes.pythonapi.Py_DecRef(ctypes.py_object(slow_path))


_adding = threading.RLock()
os.register_at_fork(after_in_child=_adding._at_fork_reinit)  # type: ignore[attr-defined]


def _new(slow_path: Function[..., Any], on_error: Any, consumed: Any, keep: tuple[Any, ...]) -> Any:
    """Allocate an instance with these references; it is not callable yet."""
    made = _allocate(_callable_type())
    fields = Callable.from_address(id(made))
    for name, value in (("slow_path", slow_path), ("on_error", on_error), ("consumed", consumed), ("keep", keep)):
        setattr(fields, name, _reference(value))
    return made


def _unsuited(interface: Interface) -> str | None:
    """The reason why a signature has no fast path; None if it has one."""
    if unbound := set(interface.symbols) - set(interface.binders):
        return f"no argument binds size {sorted(unbound)[0]}"
    if (count := len(interface.inputs) + len(interface.results)) > MAX_VALUES:
        return f"{count} arguments and results are more than {MAX_VALUES}"
    return None


def _reference(value: Any) -> int:
    """The address of an object, with one more reference to it."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(value))
    return id(value)


def _reached(captured: CapturedInputs | None) -> Reached:
    if captured is None:
        return Reached()
    changes, count = captured.changes, len(captured.entry.interface.results)
    if changes is None:
        return Reached(len(captured.inputs), count)
    return Reached(len(captured.inputs), count, changes.returned, changes.records, changes.left is not None,
                   changes.wanted)


def _wrapper(signature: Interface, tensors: bool, wrap: bool, reached: Reached) -> Library:
    """The emitted wrapper for a signature, shared by all live functions with it."""
    key = signature, tensors, wrap, reached
    if (found := _wrappers.get(key)) is None:
        found = _native(f"{signature} {tensors} {wrap} {reached}",
                        lambda: wrapper_module(signature, tensors, wrap, reached), [NAME])
        _wrappers.put(key, found)
    return found


_wrappers = WeakTable[tuple[Interface, bool, bool, Reached], Library]()


def _native(what: str, source: Function[[], Module], exports: list[str],
            externals: frozenset[str] = EXTERNALS) -> Library:
    """Compile a module, which `what` identifies completely."""
    def text(target: Target) -> str:
        from mlc.backends.emit_llvm import emit  # only if the code has not been made before
        return emit(source(), target)

    return runtime.library(what, text, exports, externals)


# -- the type ---------------------------------------------------------------------------------------------------------
class _Member(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("kind", ctypes.c_int), ("offset", ctypes.c_ssize_t),
                ("flags", ctypes.c_int), ("doc", ctypes.c_char_p)]


class _Slot(ctypes.Structure):
    _fields_ = [("slot", ctypes.c_int), ("function", ctypes.c_void_p)]


class _Spec(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("basicsize", ctypes.c_int), ("itemsize", ctypes.c_int),
                ("flags", ctypes.c_uint), ("slots", ctypes.POINTER(_Slot))]


_T_OBJECT, _T_PYSSIZET, _READONLY = 6, 19, 1
_TP_CALL, _TP_DEALLOC, _TP_TRAVERSE, _TP_MEMBERS = 50, 52, 71, 72
_DISALLOW_INSTANTIATION, _HAVE_VECTORCALL, _HAVE_GC = 1 << 7, 1 << 11, 1 << 14


def _allocate(type: type) -> Any:
    """A new zero-initialised object of a type."""
    allocate = ctypes.pythonapi.PyType_GenericAlloc
    allocate.restype, allocate.argtypes = ctypes.py_object, [ctypes.py_object, ctypes.c_ssize_t]
    return allocate(type, 0)


@cache
def _callable_type() -> type:
    """The type of compiled functions, made by PyType_FromSpec."""
    code = _support()
    members = (_Member * 5)(
        _Member(b"__vectorcalloffset__", _T_PYSSIZET, offset(Callable, "vectorcall"), _READONLY),
        _Member(b"__weaklistoffset__", _T_PYSSIZET, offset(Callable, "weaklist"), _READONLY),
        _Member(b"slow_path", _T_OBJECT, offset(Callable, "slow_path"), _READONLY),
        _Member(b"keep", _T_OBJECT, offset(Callable, "keep"), _READONLY))
    call = ctypes.cast(ctypes.pythonapi.PyVectorcall_Call, ctypes.c_void_p).value
    slots = (_Slot * 5)(
        _Slot(_TP_DEALLOC, code.address("dealloc")), _Slot(_TP_TRAVERSE, code.address("traverse")),
        _Slot(_TP_CALL, call), _Slot(_TP_MEMBERS, ctypes.addressof(members)))
    spec = _Spec(b"mlc.Compiled", ctypes.sizeof(Callable), 0, _DISALLOW_INSTANTIATION | _HAVE_VECTORCALL | _HAVE_GC,
                 slots)
    make = ctypes.pythonapi.PyType_FromSpec
    make.restype, make.argtypes = ctypes.py_object, [ctypes.POINTER(_Spec)]
    made: Any = make(ctypes.byref(spec))
    made.__doc__ = property(lambda self: self.slow_path.__doc__)
    for method in ("__copy__", "__deepcopy__", "__get__", "__getattr__", "__reduce_ex__", "__repr__"):
        setattr(made, method, getattr(SlowCallable, method))
    made.fast_path = "yes"
    _type_parts.append((members, slots, spec, code))
    return made  # type: ignore[no-any-return]


_type_parts: list[Any] = []
"""Objects that the type points to; they are kept alive until the process ends."""


@cache
def _support() -> Library:
    return _native("support", _support_module, ["dealloc", "traverse", "forward", "first_changed"])


@cache
def first_changed() -> Function[[int, int, int], int] | None:
    """A native function of the address of rows of an address and a word each, and of two numbers: the number of the
    first row from the one on, before the other, whose word is not at its address; None where there is no such code."""
    if layout.problem() is not None:
        return None
    return _support().function("first_changed", ctypes.c_int64, [ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64])


def _support_module() -> Module:
    """Slots that CPython requires of a type whose instances hold references, and the vectorcall of a dispatcher.

    There is no tp_clear: Python code cannot make one of the references point back, so, as with a tuple, a cycle goes
    through some other object, which can be cleared.
    """
    builder = ModuleBuilder(SIGNATURES)
    _forward(builder)
    _traverse(builder)
    _dealloc(builder)
    first_changed_code(builder, public=True)
    return builder.module


def _forward(builder: ModuleBuilder) -> None:
    """forward(self, args, nargsf, kwnames): call the slow path."""
    a = Assembler(builder, "forward", [PTR, PTR, I64, PTR], PTR, public=True)
    self, args, nargsf, kwnames = a.args
    a.ret(a.call("PyObject_Vectorcall", a.load(PTR, self, offset(Callable, "slow_path")), args, nargsf, kwnames))


def _traverse(builder: ModuleBuilder) -> None:
    """traverse(self, visit, arg): visit the type and every reference, until a visit returns non-zero."""
    a = Assembler(builder, "traverse", [PTR, PTR, PTR], I32, public=True)
    self, visit, arg = a.args
    stop = a.block(I32)
    for at in (layout.OB_TYPE, *(offset(Callable, name) for name in OWNED)):
        obj, seen, following = a.load(PTR, self, at), a.block(), a.block()
        a.branch(a.is_null(obj), following, seen)
        a.start(seen)
        found = a.call_pointer(visit, I32, obj, arg)
        a.branch(a.compare("eq", found, a.i32(0)), following, stop, (), (found,))
        a.start(following)
    a.goto(stop, a.i32(0))
    a.start(stop)
    a.ret(stop.args[0])


def _dealloc(builder: ModuleBuilder) -> None:
    """dealloc(self): weak references, references, arenas, the memory, and the reference to the type."""
    a = Assembler(builder, "dealloc", [PTR], None, public=True)
    self, = a.args
    type = a.load(PTR, self, layout.OB_TYPE)
    a.call("PyObject_GC_UnTrack", self)
    watched, unwatched, loop, some, done = a.block(), a.block(), a.block(PTR), a.block(), a.block()
    a.branch(a.is_null(a.load(PTR, self, offset(Callable, "weaklist"))), unwatched, watched)
    a.start(watched)
    a.call("PyObject_ClearWeakRefs", self)
    a.goto(unwatched)
    a.start(unwatched)
    for name in OWNED:
        a.call("Py_DecRef", a.load(PTR, self, offset(Callable, name)))
    a.goto(loop, a.load(PTR, self, offset(Callable, "pool")))
    a.start(loop)
    scratch = loop.args[0]
    a.branch(a.is_null(scratch), done, some)
    a.start(some)
    following = a.load(PTR, scratch, offset(Scratch, "next"))
    a.call("PyMem_RawFree", a.load(PTR, scratch, offset(Scratch, "memory")))
    a.call("PyMem_RawFree", scratch)
    a.goto(loop, following)
    a.start(done)
    a.call("PyObject_GC_Del", self)
    a.call("Py_DecRef", type)
    a.ret()
