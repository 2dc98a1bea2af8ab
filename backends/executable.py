"""Callable functions from the llvm dialect: emit, generate code, link, load, and check arguments.

`Entry.call` is the slow path: it takes any arrays, names the one that does not fit, and copies if the layout is not
the one compiled code expects. `backends/cpu/callable.py` has the fast path, which falls back on this one.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property
from typing import Any, ClassVar

import numpy as np

from mlc.backends.argument_checks import MAX_BYTES, ArgumentChecks
from mlc.backends.cpu import threads
from mlc.backends.cpu.layout import data_address
from mlc.backends.cpu.targets import host
from mlc.backends.image import Image, compile_image, link_image
from mlc.backends.load import Library, load
from mlc.backends.target import Target
from mlc.ir import abi
from mlc.ir.abi import ALLOWED_EXTERNALS, Context, Interface
from mlc.ir.core import Op
from mlc.ir.diag import BackendError, Error, UserError, UserMemoryError, UserTypeError
from mlc.ir.profiling import enter

Array = np.ndarray[Any, Any]

# Bound at import, so that calls do not depend on later changes to numpy's namespace.
_ndarray, _uint8 = np.ndarray, np.dtype(np.uint8)


def build(module: Op, target: Target | None = None, *, opt_level: int = 2,
          allowed: frozenset[str] = ALLOWED_EXTERNALS) -> Executable:
    """Compile and load native code for every entry of a module of the llvm dialect.

    opt_level  as in `compile_object`
    allowed    the external symbols that the code may use
    """
    return Executable(compile_image(module, host() if target is None else target, opt_level, allowed))


def load_object(objs: bytes | Sequence[bytes], interfaces: Mapping[str, Interface], target: Target | None = None,
                allowed: frozenset[str] = ALLOWED_EXTERNALS) -> Executable:
    """Link and load the functions of one or several relocatable objects; `interfaces` has the interface of each."""
    target = host() if target is None else target
    check_runs(target)
    return Executable(link_image(objs, interfaces, target, allowed))


def check_runs(target: Target) -> None:
    """Raise BackendError unless this machine can run code for `target`."""
    if not host().runs(target):
        raise BackendError(f"this machine cannot run code made for {target}", code="MLC0562",
                           hint="--target host compiles for this machine")


class Executable:
    """Loaded native code of one module.

    image      the shared object
    undefined  the external symbols it uses
    threads    maximum number of threads that it uses at once; None: that of the process
    """

    entry_type: ClassVar[type[Entry]]                      # set below the class of entries
    timed: ClassVar[bool] = False                          # whether what each thread does is measured

    def __init__(self, linked: Image, library: Library | None = None, threads: int | None = None) -> None:
        if any(i.kernels for i in linked.interfaces.values()) and self.entry_type is Entry:
            raise BackendError("the code is of a profile, whose calls have a buffer for times", code="MLC0562",
                               hint="compile it anew, outside of the profile")
        self.linked = linked
        self.image = linked.code
        self.target = linked.target
        self.undefined = list(linked.undefined)
        self.library = self._load(threads) if library is None else library
        self.entries = {name: self.entry_type(self.library, interface) for name, interface in linked.interfaces.items()}

    def _load(self, max_threads: int | None) -> Library:
        check_runs(self.target)
        library = load(self.image)
        if self.linked.shares:
            threads.attach(library, max_threads, self.timed)
        return library

    def at(self, interface: Callable[[Interface], Interface]) -> Executable:
        """The same code under mapped interfaces: other names and locations."""
        linked = self.linked.at(interface)
        return self if linked is self.linked else type(self)(linked, self.library)

    def entry(self, name: str) -> Entry:
        if name not in self.entries:
            raise UserError(f"the module has no function @{name}", code="MLC0320",
                            hint="it has " + ", ".join(f"@{n}" for n in self.entries))
        return self.entries[name]

    @property
    def calls(self) -> int:
        """The number of calls of compiled code of this module."""
        return sum(entry.calls for entry in self.entries.values())

    def report(self) -> str:
        """Human-readable summary of the executable."""
        lines = [f"{len(self.image)} bytes for {self.target}, external symbols: {', '.join(self.undefined) or 'none'}"]
        return "\n".join(lines + [f"@{name}: {entry.interface.type}" for name, entry in self.entries.items()])


class Entry(ArgumentChecks):
    """One compiled function. Any number of threads may call it at once."""

    def __init__(self, library: Library, interface: Interface) -> None:
        super().__init__(interface)
        self.library = library                    # keeps the code mapped
        self.address = library.address(interface.name + abi.ENTRY_SUFFIX)
        self.fast_calls = ctypes.c_uint64()       # written by emitted wrappers, under the GIL
        self._slow_calls = 0
        self._function = library.function(interface.name + abi.ENTRY_SUFFIX, ctypes.c_int32, [ctypes.c_void_p] * 4)
        self._free: deque[Arena] = deque()       # append and pop are atomic; a lock could stay held after a fork

    @property
    def scratch_bytes(self) -> int:
        """The bytes of scratch memory of a call, if they do not depend on sizes."""
        return int(self.interface.arena)

    def share_scratch(self, arenas: deque[Arena]) -> None:
        """Take scratch memory from, and return it to, where other functions do that are not called at once."""
        self._free = arenas

    @property
    def direct(self) -> Entry | None:
        """The entry that native code may call without asking this object."""
        return self

    @property
    def repeats(self) -> bool:
        """Whether calls may go past this object."""
        return True

    @property
    def calls(self) -> int:
        """The number of calls of the compiled function, by either path."""
        return self._slow_calls + self.fast_calls.value

    def call(self, arrays: Sequence[Any], sizes: Mapping[str, int] | None = None) -> list[Array]:
        """Call the function on `arrays`; `sizes` binds symbols that no argument binds."""
        interface = self.interface
        self._check_count(arrays)
        if interface.symbols or sizes:
            inputs = [self._array(i, array) for i, array in enumerate(arrays)]
            env = self._bind(inputs, sizes or {})
            given = [(shape, dtype) for shape, (_, dtype, _) in zip(self._result_shapes(env), self._results)]
        else:
            inputs = [self.checked_array(i, array) for i, array in enumerate(arrays)]
            env, given = {}, self.static_results
        pointers = [data_address(array) for array in inputs]
        self.check_overlap(inputs, pointers)
        try:
            results = [inputs[a] if a >= 0 else new_array(shape, dtype)
                       for a, (shape, dtype) in zip(interface.aliases, given)]
        except MemoryError as error:
            why = error.message if isinstance(error, Error) else error
            raise UserMemoryError(f"{interface.name}: its results do not fit in memory: {why}", code="MLC0328",
                                  hint="make the arrays smaller, or compute in parts") from None
        self._enter(pointers, [env[name] for name in interface.symbols],
                    [pointers[a] if a >= 0 else data_address(r) for a, r in zip(interface.aliases, results)])
        return results

    # -- calls without symbolic sizes ------------------------------------------------------------------------------
    @cached_property
    def static_results(self) -> list[tuple[tuple[int, ...], np.dtype[Any]]]:
        """Shapes and dtypes of the results of an entry without symbolic sizes, whose constraints hold."""
        assert not self.interface.symbols
        self._check_sizes({})
        return [(shape, dtype) for shape, (_, dtype, _) in zip(self._result_shapes({}), self._results)]

    @cached_property
    def reused(self) -> list[tuple[int, int]]:
        """The results that take the memory of donated arguments, with these."""
        return [(n, a) for n, a in enumerate(self.interface.aliases) if a >= 0]

    def checked_array(self, i: int, array: Any) -> Array:
        """Argument `i` of an entry without symbolic sizes, as the code expects it; UserError for another type."""
        out = self._array(i, array)
        if out.shape != self._inputs[i][2]:
            axis = next(k for k, (n, expected) in enumerate(zip(out.shape, self._inputs[i][2])) if n != expected)
            raise UserError(f"{self.interface.argument(i)} has size {out.shape[axis]} on axis {axis}, expected "
                            f"{self._inputs[i][2][axis]}", code="MLC0323")
        return out

    @staticmethod
    def address_of(array: Array) -> int:
        """The address of the elements of an array."""
        return data_address(array)

    def enter(self, arguments: Sequence[int], results: Sequence[int], numbers: Sequence[int] = ()) -> None:
        """Run on arguments at these addresses, and write results to others; `numbers` are the values of the symbols."""
        self._enter(arguments, numbers, results)

    def result_shapes(self, numbers: Sequence[int]) -> list[tuple[int, ...]]:
        """The shapes of the results for these values of the symbols; UserError if they break a constraint."""
        env = dict(zip(self.interface.symbols, numbers))
        self._check_sizes(env)
        return self._result_shapes(env)

    # -- what a caller passes -------------------------------------------------------------------------------------
    def _array(self, i: int, array: Any) -> Array:
        """Argument `i` in native byte order, contiguous and aligned. A donated argument is not copied but rejected."""
        if not isinstance(array, _ndarray):
            raise UserTypeError(f"{self.interface.argument(i)} is a {array.__class__.__name__}, expected an array",
                                code="MLC0324", hint="x.cpu() copies it" if hasattr(array, "device") else None)
        same, flags = self._check_type(i, array), array.flags
        fits = same and flags.c_contiguous and flags.aligned
        if i in self._donated and not (fits and flags.writeable):
            why = ("read-only" if not flags.writeable else "byte-swapped" if not same else
                   "not contiguous in row-major order" if not flags.c_contiguous else "not aligned")
            raise UserError(f"{self.interface.argument(i)} is donated, but its memory is {why}", code="MLC0326",
                            hint="donate a contiguous, writable array, such as the result of .copy()")
        return array if fits else array.astype(self._inputs[i][1], order="C", subok=False, copy=True)

    # -- the call itself ------------------------------------------------------------------------------------------
    def _enter(self, arguments: Sequence[int], numbers: Sequence[int], results: Sequence[int]) -> None:
        """Run the compiled function with a sufficiently large arena, and raise the error that it reports."""
        try:
            arena = self._free.pop()
        except IndexError:
            arena = self._arena()
        inputs, outputs = _pointers(len(arguments))(*arguments), _pointers(len(results))(*results)
        symbols = _numbers(len(numbers))(*numbers)
        try:
            status = self._invoke(arena, inputs, symbols, outputs)
            _count(self)
            if status == abi.ERROR_RECORDED:
                raise self.error(arena.context.record)
            if status != abi.OK:
                raise BackendError(f"{self.interface.name} returned status {status}", code="MLC0563")
        finally:
            self._free.append(arena)

    def _invoke(self, arena: Arena, *pointers: Any) -> int:
        """The status of the function, once its arena is large enough."""
        status = enter(self._function, arena.address, *pointers)
        if status == abi.ARENA_TOO_SMALL:
            arena.grow(arena.context.needed)
            status = enter(self._function, arena.address, *pointers)
        return status

    def _arena(self) -> Arena:
        """A new arena."""
        return Arena(Context())


Executable.entry_type = Entry


class Arena:
    """Scratch memory for one call at a time, and the context that passes it to the entry point.

    times  the buffer of timed code
    """

    def __init__(self, context: Context) -> None:
        self.context = context
        self.address = ctypes.addressof(self.context)
        self.memory: Array | None = None
        self.times: Array | None = None

    def grow(self, needed: int) -> None:
        if not 0 <= needed < MAX_BYTES:
            raise UserMemoryError(f"a call needs {needed} bytes of scratch memory", code="MLC0328")
        self.memory = None                        # free the old one before allocating
        self.context.arena, self.context.capacity = None, 0
        try:
            self.memory = _aligned_bytes(needed, abi.ARENA_ALIGN)
        except MemoryError:
            raise UserMemoryError(f"a call needs {needed} bytes of scratch memory", code="MLC0328") from None
        self.context.arena, self.context.capacity = data_address(self.memory), needed


# ctypes forgets a type of arrays with the last of them; it would be made anew in each call, and live until gc finds it.
@cache
def _pointers(count: int) -> type[ctypes.Array[ctypes.c_void_p]]:
    return ctypes.c_void_p * count


@cache
def _numbers(count: int) -> type[ctypes.Array[ctypes.c_int64]]:
    return ctypes.c_int64 * count


def new_array(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """An uninitialised array; a large one is aligned to a cache line."""
    count = dtype.itemsize
    for n in shape:
        count *= n
    if count < abi.BIG_RESULT:
        return _ndarray(shape, dtype)
    memory = _aligned_bytes(count, abi.RESULT_ALIGN)
    return _ndarray(shape, dtype, memory)


def _aligned_bytes(count: int, align: int) -> Array:
    try:
        memory: Array = _ndarray((count + align,), _uint8)
    except MemoryError:
        raise UserMemoryError(f"the call needs {count} bytes of memory for a result or for temporary values, which "
                              "cannot be had", code="MLC0328",
                              hint="make the arrays smaller, or compute in parts") from None
    start = -data_address(memory) % align
    return memory[start: start + count]


# -- call counts ------------------------------------------------------------------------------------------------------
_counting = threading.Lock()
os.register_at_fork(after_in_child=_counting._at_fork_reinit)  # type: ignore[attr-defined]
_slow_entries = 0
FAST_ENTRIES = ctypes.c_uint64()
"""Calls by emitted wrappers, which count under the GIL."""


def native_entries() -> int:
    """The number of calls of compiled code in this process."""
    return _slow_entries + FAST_ENTRIES.value


def _count(entry: Entry) -> None:
    global _slow_entries
    with _counting:
        _slow_entries += 1
        entry._slow_calls += 1
