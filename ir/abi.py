"""The call contract between compiled code and its callers: `status = f_entry(ctx, args, sizes, results)`.

    args, results   arrays of pointers to contiguous row-major data, one per argument and result
    sizes           array of i64, one per size symbol in the order of `symbols`
    ctx             a `Context`: the arena and the error record; for timed code a `TimedContext`

A result that reuses the buffer of a donated argument is passed that argument's pointer. Calls are re-entrant: a
context and its arena belong to one call at a time.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from mlc.ir import sizes
from mlc.ir.affine_syntax import parse_size
from mlc.ir.core import Op
from mlc.ir.diag import BackendError
from mlc.ir.parser import Parser
from mlc.ir.sizes import Dim
from mlc.ir.types import ComplexType, FloatType, FunctionType, TensorType

OK, ARENA_TOO_SMALL, ERROR_RECORDED = 0, 1, 2
"""Status codes of an entry: success; nothing has run, and the arena needs `needed` bytes; an error is recorded."""

ARENA_ALIGN = 64
"""Alignment of the arena in bytes."""

RESULT_ALIGN, BIG_RESULT = 64, 1 << 15
"""Alignment of results of BIG_RESULT bytes or more: whole cache lines are worth a second allocation."""

ENTRY_SUFFIX = "_entry"

ALLOWED_EXTERNALS = frozenset({"memcpy", "memset", "memmove", "aligned_alloc", "free"})
"""External symbols that code may import: those that LLVM emits calls to, and allocation of data-dependent sizes."""

HOOK = "mlc_parallel"
"""Global variable of a library with the address of its parallel-for implementation; null runs everything serially."""


class Context(ctypes.Structure):
    """The struct that the first argument of an entry points to."""

    _fields_ = [("arena", ctypes.c_void_p), ("capacity", ctypes.c_int64), ("needed", ctypes.c_int64),
                ("record", ctypes.c_int64)]
    arena: int | None
    capacity: int
    needed: int
    record: int


class TimedContext(Context):
    """The context of timed code: `times` points to the `words` 64-bit integers of ir/kernel_sites.py."""

    _fields_ = [("times", ctypes.c_void_p), ("words", ctypes.c_int64)]
    times: int | None
    words: int


ARENA, CAPACITY, NEEDED, RECORD = (getattr(Context, name).offset for name, *_ in Context._fields_)
TIMES, WORDS = (getattr(TimedContext, name).offset for name, *_ in TimedContext._fields_)
"""Byte offsets of the fields of a context."""

OVERWRITES = "overwrites"
"""Attribute of an entry, see `Interface`."""

REPLACES = -2
"""In `overwrites`, for a result: it may be written over something that the call replaces and does not read."""

SOURCES = "sources"
"""Attribute of @f_constants and @f_with_constants (pass hoist_constants): per argument, the number of that of @f; for
result n of @f_constants, -1 - n."""

ATTRIBUTES = ("interface", "symbols", "aliases", "error_sites", "arg_names", "work", "size_constraints",
              "constraint_sites",
              "temporaries", "arena", "kernels", SOURCES, OVERWRITES)
"""The attributes of an entry that hold its interface."""


COMPLEX_ARGS, COMPLEX_RESULTS = "complex_args", "complex_results"
"""Attributes of a public function: the arguments and the results that are complex to callers, and in the IR have both
parts along their last axis."""


def complex_type(type: TensorType) -> TensorType:
    """The type, to a caller, of a tensor with real and imaginary parts along its last axis."""
    assert isinstance(type.dtype, FloatType) and type.shape[-1] == 2
    return TensorType(type.shape[:-1], ComplexType(type.dtype))


OPTIONAL = {"optional": True}
"""Metadata of a field that files leave out where it has its default."""


def is_entry(function: Op) -> bool:
    """Whether a function has the interface of a compiled entry."""
    return "interface" in function.attrs


@dataclass(frozen=True)
class Interface:
    """Calling interface of a compiled function.

    symbols      the size symbols, in the order of the argument `sizes`
    aliases      per result: the argument whose buffer it reuses, or -1
    error_sites  by trap id: "file:line:col: message"
    arg_names    names of the arguments in messages; "" for one without a name
    size_constraints  sizes that must be non-negative; the caller checks them
    constraint_sites  "file:line:col: message" of each
    temporaries  total bytes of the values between kernels
    arena        bytes of the arena into which they are packed
    work         the number of elementary steps of a call, if known (negative: without bound)
    kernels      of timed code: the `KernelSite` of each slot of its times, as text
    sources      of a function without its constants, and of that which computes them: where the arguments come from
    overwrites   per result: the argument whose buffer a caller may pass for it, `REPLACES`, or -1; a call that fails
                 has not written to what it would write over
    """

    name: str
    type: FunctionType
    symbols: tuple[str, ...] = ()
    aliases: tuple[int, ...] = ()
    error_sites: tuple[str, ...] = ()
    arg_names: tuple[str, ...] = ()
    size_constraints: tuple[Dim, ...] = ()
    constraint_sites: tuple[str, ...] = ()
    temporaries: Dim = 0
    arena: Dim = 0
    work: Dim | None = None
    kernels: tuple[str, ...] = field(default=(), metadata=OPTIONAL)
    sources: tuple[int, ...] = field(default=(), metadata=OPTIONAL)
    overwrites: tuple[int, ...] = field(default=(), metadata=OPTIONAL)

    def __post_init__(self) -> None:
        if any(not isinstance(t, TensorType) for t in (*self.type.inputs, *self.type.results)):
            self._wrong(f"{self.type} is not a function of tensors")
        if len(self.aliases) != len(self.results):
            self._wrong(f"{len(self.aliases)} aliases for {len(self.results)} results")
        taken = [a for a in self.aliases if a >= 0]
        if len(set(taken)) != len(taken) or any(a >= len(self.inputs) for a in taken):
            self._wrong(f"aliases {list(self.aliases)} of {len(self.inputs)} arguments")
        for argument, result in zip(self.aliases, self.results):
            if argument >= 0 and self.inputs[argument] != result:
                self._wrong(f"result {result} takes the buffer of an argument {self.inputs[argument]}")
        over = [a for a in self.overwrites if a >= 0]
        fit = all(a == -1 or (alias < 0 and (a == REPLACES or (0 <= a < len(self.inputs) and self.inputs[a] == r)))
                  for a, alias, r in zip(self.overwrites, self.aliases, self.results))
        if len(self.overwrites) not in (0, len(self.results)) or not fit or len({*over, *taken}) < len([*over, *taken]):
            self._wrong(f"results {list(self.overwrites)} over {len(self.inputs)} arguments")
        if len(self.size_constraints) != len(self.constraint_sites):
            self._wrong(f"{len(self.constraint_sites)} sites for {len(self.size_constraints)} constraints")
        computed = [*(d for t in (*self.inputs, *self.results) for d in t.shape), *self.size_constraints,
                    self.temporaries,
                    self.arena]
        used = set[str]().union(*map(sizes.symbols, computed))
        if missing := used - set(self.symbols):
            self._wrong(f"size {sorted(missing)[0]} is not among the symbols {list(self.symbols)}")

    def _wrong(self, what: str) -> None:
        raise BackendError(f"interface of {self.name}: {what}", code="MLC0560")

    @property
    def inputs(self) -> tuple[TensorType, ...]:
        return self.type.inputs  # type: ignore[return-value]

    @property
    def results(self) -> tuple[TensorType, ...]:
        return self.type.results  # type: ignore[return-value]

    @cached_property
    def donated(self) -> tuple[int, ...]:
        """The arguments whose buffers results reuse, in order of the results."""
        return tuple(a for a in self.aliases if a >= 0)

    @cached_property
    def binders(self) -> Mapping[str, tuple[int, int]]:
        """The (argument, axis) that binds each symbol: the first size that is the symbol alone."""
        out: dict[str, tuple[int, int]] = {}
        plain: dict[Dim, str] = {sizes.sym(name): name for name in self.symbols}
        for i, type in enumerate(self.inputs):
            for axis, dim in enumerate(type.shape):
                if dim in plain:
                    out.setdefault(plain[dim], (i, axis))
        return out

    def argument(self, i: int) -> str:
        """Name of argument `i` in a message: its path if it has one, as arrays nested in a module are hard to count."""
        name = self.arg_names[i] if i < len(self.arg_names) else ""
        return f"argument {name or i}"

    def error_site(self, number: int) -> str:
        """Location and message of a trap id."""
        if not 0 <= number < len(self.error_sites):
            raise BackendError(f"{self.name} reports error {number} of {len(self.error_sites)}", code="MLC0561")
        return self.error_sites[number]


def interface_of(entry: Op) -> Interface:
    """The interface in the attributes of an `llvm.func @f_entry`."""
    attrs = entry.attrs
    name = str(attrs["sym_name"])
    type = Parser(attrs["interface"], f"interface of @{name}").type()
    if not isinstance(type, FunctionType):
        raise BackendError(f"interface of {name}: {type} is not a function of tensors", code="MLC0560")
    work = attrs.get("work")
    steps = None if work is None else parse_size(work) if isinstance(work, str) else int(work)
    return Interface(
        name.removesuffix(ENTRY_SUFFIX), type, _strings(attrs.get("symbols")),
        tuple(int(a) for a in _items(attrs.get("aliases"))) or (-1,) * len(type.results),
        _strings(attrs.get("error_sites")), _strings(attrs.get("arg_names")),
        tuple(map(parse_size, _strings(attrs.get("size_constraints")))), _strings(attrs.get("constraint_sites")),
        parse_size(str(attrs.get("temporaries", 0))), parse_size(str(attrs.get("arena", 0))), steps,
        _strings(attrs.get("kernels")), tuple(int(i) for i in _items(attrs.get(SOURCES))),
        tuple(int(i) for i in _items(attrs.get(OVERWRITES))))


def interfaces(module: Op) -> dict[str, Interface]:
    """The interface of every entry of a module, by name of the function."""
    found = [interface_of(op) for op in module.regions[0].block
             if str(op.attrs.get("sym_name", "")).endswith(ENTRY_SUFFIX) and is_entry(op)]
    return {interface.name: interface for interface in found}


def _items(value: Any) -> Sequence[Any]:
    return () if value is None else value  # a list, a tuple, or an array of numbers


def _strings(value: Any) -> tuple[str, ...]:
    return tuple(str(item) for item in _items(value))
