"""The interpreter: the meaning of IR at every level, in numpy.

A tensor, memref, vector or tile is an array, an index a Python int, another scalar a numpy scalar, an LLVM pointer a
`Pointer` into bytes. Operations give their meaning by `ref` (pure: arrays in, arrays out) or by `interpret(frame)`
(regions, memory, calls). It is slow and exact; native code is compared with it bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mlc.ir import sizes
from mlc.ir.core import Block, Op, Region, Value
from mlc.ir.diag import IRError, UserError
from mlc.ir.sizes import Size
from mlc.ir.types import TensorType, to_numpy

MAX_STEPS = 200_000_000


class Interpreter:
    """Runs the functions of one module. `watch(op, results)` is called after every operation, if given."""

    def __init__(self, module: Op, watch: Callable[[Op, Sequence[Any]], None] | None = None) -> None:
        self.module = module
        self.watch = watch
        self.functions = {op.attrs["sym_name"]: op for op in module.regions[0].block if "sym_name" in op.attrs}
        self.steps = 0
        self.globals: dict[str, Any] = {}

    def function(self, name: str) -> Op:
        if name not in self.functions:
            raise UserError(f"the module has no function @{name}", code="MLC0320",
                            hint="it has " + ", ".join(f"@{n}" for n in self.functions))
        return self.functions[name]

    def call(self, name: str, args: Sequence[Any]) -> list[Any]:
        """The results of function `name`, on values of the level's own kind."""
        function = self.function(name)
        entry = function.regions[0].blocks[0]
        if len(args) != len(entry.args):
            raise UserError(f"@{name} takes {len(entry.args)} arguments, got {len(args)}", code="MLC0321")
        frame = Frame(self)
        bind_sizes([a.type for a in entry.args], args, frame.sizes)
        with np.errstate(all="ignore"):
            return frame.run(function.regions[0], args)


class Frame:
    """One activation of a function: the value of everything defined so far, and the numbers of its size symbols."""

    __slots__ = ("env", "interpreter", "sizes")

    def __init__(self, interpreter: Interpreter) -> None:
        self.interpreter = interpreter
        self.env: dict[Value, Any] = {}
        self.sizes: dict[str, int] = {}

    def __getitem__(self, value: Value) -> Any:
        return self.env[value]

    def all(self, values: Sequence[Value]) -> list[Any]:
        env = self.env
        return [env[v] for v in values]

    def size(self, dim: int | Size) -> int:
        """The number a size stands for in this activation."""
        return sizes.evaluate(dim, self.sizes)

    def shape(self, shape: Sequence[int | Size]) -> tuple[int, ...]:
        return tuple(self.size(d) for d in shape)

    def run(self, region: Region, args: Sequence[Any] = ()) -> list[Any]:
        """Execute a region from its entry block; the result is what its last terminator hands over."""
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
        if interpreter.steps > MAX_STEPS:
            raise IRError(f"interpretation passed {MAX_STEPS} steps", code="MLC0121", loc=op.loc)
        interpret = getattr(op, "interpret", None)
        out = interpret(self) if interpret is not None else op.ref(*self.all(op.operands))
        results = op.results
        if len(results) == 1 and not isinstance(out, list):
            out = (out,)
        for result, value in zip(results, out or ()):
            self.env[result] = self.conform(op, result.type, value)
        if interpreter.watch is not None:
            interpreter.watch(op, [self.env[r] for r in results])

    def conform(self, op: Op, type: Any, value: Any) -> Any:
        """A tensor's value has the dtype and shape of its type: where it has not, an op's `ref` and `infer` differ."""
        if isinstance(type, TensorType):
            value = np.asarray(value)
            shape = self.shape(type.shape) if not type.is_static else type.shape
            if value.dtype != to_numpy(type.dtype) or value.shape != shape:
                raise IRError(f"{op.name}: the meaning is {value.dtype}{list(value.shape)}, the type {type}",
                              code="MLC0122", loc=op.loc)
        return value


def bind_sizes(types: Sequence[Any], args: Sequence[Any], env: dict[str, int]) -> None:
    """Read the numbers of size symbols off the arguments; UserError where an argument contradicts its type."""
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
    for i, axis, dim, n in pending:
        if (expected := sizes.evaluate(dim, env)) != n:
            raise UserError(f"argument {i} has size {n} on axis {axis}, expected {dim}"
                            + (f" = {expected}" if isinstance(dim, Size) else ""), code="MLC0323")


class Pointer:
    """An LLVM pointer: a byte offset into a buffer. Out-of-bounds access is an IndexError of numpy's slicing."""

    __slots__ = ("buffer", "offset")

    def __init__(self, buffer: np.ndarray[Any, Any], offset: int = 0) -> None:
        self.buffer = buffer                     # one-dimensional, uint8
        self.offset = offset

    def __add__(self, count: int) -> Pointer:
        return Pointer(self.buffer, self.offset + count)

    def bytes(self, count: int) -> np.ndarray[Any, Any]:
        """The `count` bytes it points at, as a view."""
        if self.offset < 0 or self.offset + count > self.buffer.size:
            raise IndexError(f"access to bytes {self.offset}..{self.offset + count} of a buffer of "
                             f"{self.buffer.size}")
        return self.buffer[self.offset: self.offset + count]
