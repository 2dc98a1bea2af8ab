"""The interpreter: executable semantics of the IR at every level, in numpy.

A tensor, memref, vector or tile is an array, an index a Python int, another scalar a numpy scalar, an LLVM pointer a
`Pointer` into bytes. Operations define their semantics by `ref` (pure: arrays in, arrays out) or `interpret(frame)`
(regions, memory, calls). It is slow but exact; native code is compared with it bit for bit.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from mlc.ir import sizes
from mlc.ir.affine_syntax import parse_size
from mlc.ir.core import Block, Op, Region, Value
from mlc.ir.diag import (
    UNKNOWN,
    Error,
    InternalError,
    IRError,
    Loc,
    UserAssertionError,
    UserError,
    UserIndexError,
)
from mlc.ir.kernel_sites import words
from mlc.ir.sizes import Size
from mlc.ir.types import TensorType, to_numpy

MAX_STEPS = 200_000_000
ELEMENTS = 1 << 40
"""An error record is one word, trap id * ELEMENTS + element; the unsigned minimum is kept. -1 means no error."""


class Ranks(Protocol):
    """The other ranks of a program that several run together (dialects/shard/ranks.py)."""

    @property
    def rank(self) -> int: ...

    def collective(self, op: Op, x: Any) -> Any:
        """The result of this rank of an operation in which others take part, for its operand x."""

    def start(self, op: Op, x: Any) -> Any:
        """Begin such an operation, without waiting for the others; the request."""

    def wait(self, op: Op, request: Any) -> Any:
        """The result of the operation of a request, for which `op` waits."""

    def send(self, op: Op, x: Any) -> None:
        """Send x to another rank, without waiting for it."""

    def receive(self, op: Op) -> Any:
        """The value that another rank sends."""


class Interpreter:
    """Runs the functions of one module. `watch(op, results)` is called after every operation, if given.

    limit  most operations to execute; IRError beyond
    ranks  the other ranks, in a program of one of several
    """

    def __init__(self, module: Op, watch: Callable[[Op, Sequence[Any]], None] | None = None,
                 limit: int = MAX_STEPS) -> None:
        self.limit = limit
        self.module = module
        self.watch = watch
        self.functions = {op.attrs["sym_name"]: op for op in module.regions[0].block if "sym_name" in op.attrs}
        self.steps = 0
        self.active: list[str] = []              # the functions that are being called, outermost first
        self.globals: dict[str, Any] = {}
        self.heap = Heap()
        self.ranks: Ranks | None = None

    def function(self, name: str) -> Op:
        if name not in self.functions:
            raise UserError(f"the module has no function @{name}", code="MLC0320",
                            hint="it has " + ", ".join(f"@{n}" for n in self.functions))
        return self.functions[name]

    def frame(self) -> Frame:
        """Frame of a call; tools override it to observe or change the execution of operations."""
        return Frame(self)

    def another(self, module: Op) -> Interpreter:
        """An interpreter of the same kind for another module, one that implements an operation of this one."""
        out = Interpreter(module, self.watch)
        out.ranks = self.ranks
        return out

    def run(self, name: str, args: Sequence[Any]) -> list[Any]:
        """Like `run_function`; afterwards `steps` is the number of operations executed."""
        native_entry = self.functions.get(f"{name}_entry")
        function = native_entry if name not in self.functions else self.function(name)
        interface = (native_entry or function or self.function(name)).attrs.get("interface")
        if interface is None:
            return self._call_public(name, args)
        return Contract(self, name, interface, native_entry or function).call(args)

    def _call_public(self, name: str, args: Sequence[Any]) -> list[Any]:
        """Call a function on arrays: complex ones as it takes them, with both parts along the last axis."""
        attrs = self.function(name).attrs
        packed, unpacked = attrs.get("complex_args", ()), attrs.get("complex_results", ())
        out = self.call(name, [in_parts(np.asarray(x)) if i in packed else x for i, x in enumerate(args)])
        return [of_parts(x) if i in unpacked else x for i, x in enumerate(out)]

    def call(self, name: str, args: Sequence[Any]) -> list[Any]:
        """Call function `name` directly, on values of its level."""
        function = self.function(name)
        entry = function.regions[0].blocks[0]
        if len(args) != len(entry.args):
            raise UserError(f"@{name} takes {len(entry.args)} arguments, got {len(args)}", code="MLC0321")
        frame = self.frame()
        bind_sizes([a.type for a in entry.args], args, frame.sizes)
        self.active.append(name)
        try:
            with np.errstate(all="ignore"):
                return frame.run(function.regions[0], args)
        except RecursionError:                   # its place is that of the call
            if self.active.count(name) == 1:
                raise
            raise IRError(f"@{name} is recursive through this call, so its memory is unbounded", code="MLC0162") \
                from None
        finally:
            self.active.pop()


class Frame:
    """Activation record of a function: the values defined so far, and the numbers bound to size symbols."""

    __slots__ = ("env", "interpreter", "sizes", "state")

    def __init__(self, interpreter: Interpreter) -> None:
        self.interpreter = interpreter
        self.env: dict[Value, Any] = {}
        self.sizes: dict[str, int] = {}
        self.state: dict[Op, Any] = {}           # state of operations with regions while they run

    def __getitem__(self, value: Value) -> Any:
        return self.env[value]

    def all(self, values: Sequence[Value]) -> list[Any]:
        env = self.env
        return [env[v] for v in values]

    def size(self, dim: int | Size) -> int:
        """Evaluate a size in this activation."""
        try:
            return sizes.evaluate(dim, self.sizes)
        except KeyError as error:
            raise IRError(f"the size {error.args[0]} is no size of an argument", code="MLC0161") from None
        except ZeroDivisionError:
            raise UserError(f"size {dim} divides by zero", code="MLC0328") from None

    def shape(self, shape: Sequence[int | Size]) -> tuple[int, ...]:
        return tuple(self.size(d) for d in shape)

    def run(self, region: Region, args: Sequence[Any] = ()) -> list[Any]:
        """Execute a region from its entry block; returns the operands of the terminator that leaves it."""
        block: Block = region.blocks[0]
        env = self.env
        while True:
            for arg, value in zip(block.args, args):
                env[arg] = value
            for op in block:
                if not op.terminator:
                    self.step(op)
                elif not op.successors:
                    return self.all(op.operands)
                else:
                    block, args = op.branch(self)  # type: ignore[attr-defined]
                    break
            else:
                return []

    def step(self, op: Op) -> None:
        """Execute one operation and bind its results."""
        interpreter = self.interpreter
        interpreter.steps += 1
        if interpreter.steps > interpreter.limit:
            raise IRError(f"interpretation passed {interpreter.limit} steps", code="MLC0121", loc=op.loc)
        interpret = getattr(op, "interpret", None)
        try:
            out = interpret(self) if interpret is not None else op.ref(*self.all(op.operands))
        except IRError as error:                           # about a size, for instance, which has no place
            if error.loc is UNKNOWN:
                error.loc = op.loc
            raise
        results = op.results
        if len(results) == 1 and not isinstance(out, list):
            out = (out,)
        for result, value in zip(results, out or ()):
            self.env[result] = self.conform(op, result.type, value)
        if interpreter.watch is not None:
            interpreter.watch(op, [self.env[r] for r in results])

    def conform(self, op: Op, type: Any, value: Any) -> Any:
        """Check that a tensor has the dtype and shape of its type: otherwise the op's `ref` and `infer` disagree."""
        if isinstance(type, TensorType):
            value = np.asarray(value)
            shape = self.shape(type.shape) if not type.is_static else type.shape
            if value.dtype != to_numpy(type.dtype) or value.shape != shape:
                raise IRError(f"{op.name}: ref returns {value.dtype}{list(value.shape)}, the result type is {type}",
                              code="MLC0122", loc=op.loc)
        return value


def in_parts(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A complex array as floats, with real and imaginary parts along a new last axis; others as they are."""
    if x.dtype.kind != "c":
        return x
    return np.ascontiguousarray(x).reshape(*x.shape, 1).view(x.real.dtype)


def of_parts(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The complex array of real and imaginary parts along the last axis."""
    return np.ascontiguousarray(x).view(np.result_type(x.dtype, np.complex64))[..., 0]


def bind_sizes(types: Sequence[Any], args: Sequence[Any], env: dict[str, int]) -> None:
    """Bind size symbols to the sizes of arguments; UserError if an argument does not match its type."""
    pending: list[tuple[int, int, Any, int]] = []
    for i, (type, value) in enumerate(zip(types, args)):
        if not isinstance(type, TensorType):
            continue
        shape = np.shape(value)
        if len(shape) != type.rank:
            raise UserError(f"argument {i} has {len(shape)} dimensions, its type {type} has {type.rank}",
                            code="MLC0322")
        for axis, (dim, n) in enumerate(zip(type.shape, shape)):
            if isinstance(dim, Size) and str(dim).isidentifier() and str(dim) not in env:
                env[str(dim)] = n
            pending.append((i, axis, dim, n))
    while any(_solve(dim, n, env) for _, _, dim, n in pending):
        pass                                         # a size that is known now may solve an earlier equation
    for i, axis, dim, n in pending:
        expected = sizes.evaluate(dim, env) if sizes.symbols(dim) <= env.keys() else None
        if expected != n:
            raise UserError(f"argument {i} has size {n} on axis {axis}, expected {dim}"
                            + (f" = {expected}" if isinstance(dim, Size) and expected is not None else ""),
                            code="MLC0323")


def _solve(dim: Any, n: int, env: dict[str, int]) -> bool:
    """Bind the only unknown symbol of a linear size, as S of 2*S + 3, which the caller compares with n, if there is
    one."""
    unknown = sizes.symbols(dim) - env.keys()
    if len(unknown) == 1 and not any(True for _ in sizes.quotients(dim)):
        name, = unknown
        least, next, third = (sizes.evaluate(dim, {**env, name: value}) for value in (0, 1, 2))
        step = next - least
        if step and third - next == step and (n - least) % step == 0 and (n - least) // step >= 0:
            env[name] = (n - least) // step
            return True
    return False


class Pointer:
    """An LLVM pointer: a byte offset into a buffer. An out-of-bounds access raises IndexError."""

    __slots__ = ("buffer", "offset")

    def __init__(self, buffer: np.ndarray[Any, Any], offset: int = 0) -> None:
        self.buffer = buffer                     # one-dimensional, uint8
        self.offset = offset

    def __add__(self, count: int) -> Pointer:
        return Pointer(self.buffer, self.offset + count)

    def bytes(self, count: int) -> np.ndarray[Any, Any]:
        """View of the `count` bytes at this address."""
        if self.offset < 0 or self.offset + count > self.buffer.size:
            raise IndexError(f"access to bytes {self.offset}..{self.offset + count} of a buffer of "
                             f"{self.buffer.size}")
        return self.buffer[self.offset: self.offset + count]


def run_function(module: Op, name: str, args: Sequence[Any],
                 watch: Callable[[Op, Sequence[Any]], None] | None = None, limit: int = MAX_STEPS) -> list[Any]:
    """Call `@name` on arrays, at any level.

    Before bufferization the function is called directly. After it, the attribute `interface` has the tensor types:
    sizes, results, arena and error record are passed according to the call contract (ir/abi.py), and arguments are
    copied, so that the caller's arrays are not modified.
    """
    return Interpreter(module, watch, limit).run(name, args)


class Contract:
    """Interprets a bufferized function according to its call contract."""

    def __init__(self, interpreter: Interpreter, name: str, interface: str, holder: Op | None) -> None:
        from mlc.ir.parser import Parser
        assert holder is not None
        self.interpreter = interpreter
        self.name = name
        self.type: Any = Parser(interface, f"interface of @{name}").type()
        self.attrs = holder.attrs

    def call(self, args: Sequence[Any]) -> list[Any]:
        from mlc.ir.abi import OVERWRITES
        env: dict[str, int] = {}
        if len(args) != len(self.type.inputs):
            raise UserError(f"@{self.name} takes {len(self.type.inputs)} arguments, got {len(args)}", code="MLC0321")
        bind_sizes(self.type.inputs, args, env)
        for size, site in zip(self.attrs.get("size_constraints", ()), self.attrs.get("constraint_sites", ())):
            if sizes.evaluate(parse_size(size), env) < 0:
                raise size_error(site, env)
        numbers = [env[s] for s in self.attrs["symbols"]]
        inputs = [held(np.asarray(a, to_numpy(t.dtype))) for a, t in zip(args, self.type.inputs)]
        aliases = self.attrs["aliases"]
        over = self.attrs.get(OVERWRITES, aliases)       # for these, the buffers of the arguments have to do
        results = [inputs[max(pair)] if max(pair) >= 0 else poisoned([sizes.evaluate(d, env) for d in t.shape], t)
                   for t, *pair in zip(self.type.results, aliases, over)]
        fresh = [r for r, alias in zip(results, aliases) if alias < 0]
        buffers = [in_parts(x) for x in inputs], [in_parts(x) for x in fresh]
        error = self.run_entry(numbers, inputs, results) if f"{self.name}_entry" in self.interpreter.functions else \
            self.run_buffers(numbers, *buffers)
        if error != -1:
            site, element = divmod(error, ELEMENTS)
            raise site_error(self.attrs["error_sites"][site], element)
        return [r != 0 if t.dtype.is_bool else r.view(to_numpy(t.dtype)) for r, t in zip(results, self.type.results)]

    def run_buffers(self, numbers: list[int], inputs: list[Any], fresh: list[Any]) -> int:
        """Call the function on memrefs; returns its error record."""
        call = self.interpreter.call
        arena = aligned(call(f"{self.name}_arena_bytes", numbers)[0]).view(np.int8)
        errors = np.full(1, -1, np.int64)
        timed = [self.times(), 0] if "kernels" in self.attrs else []
        call(self.name, [*numbers, *inputs, *fresh, arena, errors, *timed])
        return int(errors[0])

    def times(self) -> np.ndarray[Any, Any]:
        """A buffer for the times of timed code, without room for events."""
        count = words(len(self.attrs["kernels"]), 0)
        out = np.zeros(count, np.int64)
        out[:2] = count
        return out

    def run_entry(self, numbers: list[int], inputs: list[Any], results: list[Any]) -> int:
        """Call the entry at the llvm level on a context, argument pointers, sizes and result pointers; returns the
        error record."""
        pointer = self.interpreter.heap.pointer
        context = np.zeros(6, np.int64)
        if "kernels" in self.attrs:
            buffer = self.times()
            context[4], context[5] = start_of(pointer(buffer).buffer), len(buffer)
        tables = [np.array([start_of(pointer(a).buffer) for a in arrays] or [0], np.int64)
                  for arrays in (inputs, results)]
        operands = [pointer(t) for t in (context, tables[0], np.array(numbers or [0], np.int64), tables[1])]
        status = self.interpreter.call(f"{self.name}_entry", operands)[0]
        if status == 1:
            arena = aligned(int(context[2]))
            context[0], context[1] = start_of(pointer(arena).buffer), arena.size
            status = self.interpreter.call(f"{self.name}_entry", operands)[0]
        return int(context[3]) if status == 2 else -1


class Heap:
    """Table of buffers by address, so that a pointer can be stored in memory as eight bytes.

    Addresses are those of the arrays in this process: native code and the interpreter can share memory.
    """

    def __init__(self) -> None:
        self.starts: list[int] = []
        self.buffers: list[np.ndarray[Any, Any]] = []

    def pointer(self, array: np.ndarray[Any, Any]) -> Pointer:
        """A pointer to the first byte of a contiguous array, which is registered."""
        flat = array.reshape(-1)
        assert np.shares_memory(flat, array) or not array.size, "a pointer needs contiguous memory"
        buffer = flat.view(np.uint8)
        self.know(buffer)
        return Pointer(buffer)

    def know(self, buffer: np.ndarray[Any, Any]) -> None:
        start = start_of(buffer)
        at = bisect_right(self.starts, start)
        if buffer.size and not (at and self.starts[at - 1] == start and self.buffers[at - 1].size >= buffer.size):
            self.starts.insert(at, start)
            self.buffers.insert(at, buffer)

    def find(self, address: int) -> Pointer:
        """The pointer with this address; outside all registered buffers, one that cannot be dereferenced."""
        at = bisect_right(self.starts, address)
        for i in range(at - 1, max(-1, at - 3), -1):
            if address - self.starts[i] < self.buffers[i].size:
                return Pointer(self.buffers[i], address - self.starts[i])
        return Pointer(NOWHERE, address)

    def address(self, pointer: Pointer) -> int:
        self.know(pointer.buffer)
        return start_of(pointer.buffer) + pointer.offset


def start_of(buffer: np.ndarray[Any, Any]) -> int:
    """The address of a buffer's first byte; 0 for no buffer."""
    return int(buffer.__array_interface__["data"][0]) if buffer.size else 0


NOWHERE = np.empty(0, np.uint8)
"""Buffer of invalid pointers."""


def aligned(size: int, alignment: int = 64) -> np.ndarray[Any, Any]:
    """A buffer aligned to `alignment` bytes, filled with 0xFF."""
    storage = np.full(size + alignment, 255, np.uint8)
    start = -start_of(storage) % alignment
    return storage[start: start + size]


def held(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A contiguous copy in the memory representation: a bool is a byte, integers are signless."""
    array = np.array(array, order="C")
    if array.dtype == bool:
        return array.astype(np.int8)
    return array.view(f"i{array.dtype.itemsize}") if array.dtype.kind == "u" else array


def poisoned(shape: Sequence[int], type: TensorType) -> np.ndarray[Any, Any]:
    """Memory for a tensor, filled with 0xFF to expose reads before writes."""
    out = held(np.zeros(shape, to_numpy(type.dtype)))
    out.reshape(-1).view(np.uint8)[...] = 255
    return out


ASSERTION = "assertion: "
"""Prefix of the message of a trap that is an assertion."""
TRAP = "trap: "
"""Prefix of the message of a trap that is a check of `insert_checks`; all others are indices out of range."""


def site_error(site: str, element: int) -> Error:
    """Error for a failed assertion, a failed check or an index out of range at `file:line:col: message`."""
    message, loc = _located(site)
    if message.startswith(TRAP):
        number, half = element - ELEMENTS // 2, ELEMENTS // 2
        shown = number if -half < number < half - 1 else f"{number} or beyond"
        return InternalError(f"{message.removeprefix(TRAP)} {shown}", code="MLC0480", loc=loc,
                             hint="this is a defect of mlc, unless a dump was edited")
    if message.startswith(ASSERTION):
        return UserAssertionError(message.removeprefix(ASSERTION), code="MLC0612", loc=loc)
    return UserIndexError(f"{message} (element {element} of the kernel)", code="MLC0340", loc=loc)


def size_error(site: str, env: Mapping[str, int]) -> UserError:
    """Error for a violated size constraint at `file:line:col: message`."""
    message, loc = _located(site)
    return UserError(f"{message}, where {', '.join(f'{name} = {n}' for name, n in env.items())}", code="MLC0328",
                     loc=loc)


def _located(site: str) -> tuple[str, Loc]:
    """Split `file:line:col: message` into message and location."""
    found = re.match(r"(.*?):(\d+)(?::(\d+))?: (.*)", site, re.DOTALL)
    return (found[4], Loc(found[1], int(found[2]), int(found[3] or 0))) if found else (site, UNKNOWN)
