"""The state of a lowering: the value mapping, the insertion point and the table of rules."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeVar

from mlc.dialects import amx, llvm
from mlc.dialects.builtin import Module
from mlc.dialects.nvgpu import TokenType
from mlc.ir.core import Block, Op, Region, Value, at_end, insertion
from mlc.ir.diag import BackendError, Loc
from mlc.ir.types import FloatType, IntType, MemRefType, ScalarType, Type, VectorType, element, i16, i64, index

NAME = "scf_to_llvm"
Number = int | Value
"""A constant i64, or a value."""
Parts = list[Value]
"""Lowered form of a value: an LLVM value; one per row of a vector of several dimensions; or a memref's pointer, dynamic
sizes and dynamic strides."""

O = TypeVar("O", bound=Op)
Rule = Callable[["Lowering", Any], Sequence[Value] | Sequence[Parts] | None]
RULES: dict[type[Op], Rule] = {}
"""Lowering rules. A rule returns the value of the only result, or the parts of each result; None without results."""


def rule(*targets: type[Op]) -> Callable[[Rule], Rule]:
    """Register a rule for some classes of operations."""
    def register(apply: Rule) -> Rule:
        RULES.update(dict.fromkeys(targets, apply))
        return apply
    return register


@dataclass
class Memory:
    """An unpacked memref: the address of element 0, sizes, and strides in elements."""

    pointer: Value
    sizes: list[Number]
    strides: list[Number]
    dtype: ScalarType


@dataclass
class Lowering:
    """The lowering of one function to the llvm dialect."""

    module: Module                          # receives helper functions
    function: llvm.Func
    block: Block                            # the current block, to which instructions are appended
    functions: dict[str, llvm.Func]         # possible callees
    loc: Loc                                # location of the emitted operations
    origin: Loc | None = None               # location of the operation that is being lowered
    env: dict[Value, Parts] = field(default_factory=dict)
    memories: dict[Value, Memory] = field(default_factory=dict)
    offsets: dict[Value, tuple[Number, int]] = field(default_factory=dict)
    """Sums of a number and a constant that occur in addresses only, and for which there is no instruction."""
    bases: dict[tuple[object, ...], Value] = field(default_factory=dict)
    """Addresses that are computed already and dominate the current block."""

    @property
    def is_for_gpu(self) -> bool:
        """Whether the function is a kernel of a GPU."""
        return bool(self.function.attrs.get("nvvm.kernel"))

    # -- values -----------------------------------------------------------------------------------------------------
    def one(self, value: Value) -> Value:
        """Lowered form of a value that has a single part."""
        part, = self.env[value]
        return part

    def all(self, values: Sequence[Value]) -> list[Value]:
        """The concatenated parts of several values."""
        return [p for v in values for p in self.env[v]]

    def bind(self, values: Sequence[Value], parts: Sequence[Value]) -> None:
        """Bind several values to their parts, given as one list."""
        at = 0
        for value in values:
            count = len(convert(value.type))
            self.env[value] = own = list(parts[at: at + count])
            if value.name:
                for part in own:
                    part.name = part.name or value.name
            at += count
            if isinstance(value.type, MemRefType):          # once, where its sizes are defined, for all uses
                with at_end(self.block, self.loc):
                    self.memories[value] = self._memory(value)
        assert at == len(parts)

    def memory(self, value: Value) -> Memory:
        """The unpacked form of a memref."""
        return self.memories[value]

    def _memory(self, value: Value) -> Memory:
        type = value.type
        pointer, *dynamic = self.env[value]
        numbers = iter(dynamic)
        sizes: list[Number] = [next(numbers) if n is None else n for n in type.shape]
        if type.strides is not None:
            strides: list[Number] = [next(numbers) if n is None else n for n in type.strides]
        else:
            strides = [1] * type.rank
            for axis in range(type.rank - 2, -1, -1):
                strides[axis] = self.times(sizes[axis + 1], strides[axis + 1])
        return Memory(pointer, sizes, strides, convert_scalar(type.dtype))

    def memref_parts(self, type: MemRefType, pointer: Value, sizes: Sequence[Number],
                     strides: Sequence[Number]) -> Parts:
        """The parts of a memref: its pointer, and the sizes and strides that are dynamic in its type."""
        dynamic = [n for n, static in zip(sizes, type.shape) if static is None]
        if type.strides is not None:
            dynamic += [n for n, static in zip(strides, type.strides) if static is None]
        return [pointer, *(self.value(n) for n in dynamic)]

    # -- numbers ----------------------------------------------------------------------------------------------------
    def number(self, value: Value) -> Number:
        """Lowered form of an index; an int if it is constant."""
        return known(self.one(value))

    def term(self, index: Value) -> tuple[Number, int]:
        """An index as a sum of a number and a constant."""
        number, offset = self.offsets[index] if index in self.offsets else (self.number(index), 0)
        return (0, number + offset) if isinstance(number, int) else (number, offset)

    def mixed(self, numbers: Sequence[int | Value]) -> list[Number]:
        return [n if isinstance(n, int) else self.number(n) for n in numbers]

    def value(self, number: Number) -> Value:
        return llvm.constant(number, i64) if isinstance(number, int) else number

    def plus(self, a: Number, b: Number) -> Number:
        if isinstance(a, int) and isinstance(b, int):
            return a + b
        return b if a == 0 else a if b == 0 else llvm.Add(self.value(a), self.value(b)).result

    def times(self, a: Number, b: Number) -> Number:
        if isinstance(a, int) and isinstance(b, int):
            return a * b
        if a == 0 or b == 0:
            return 0
        return b if a == 1 else a if b == 1 else llvm.Mul(self.value(a), self.value(b)).result

    def dot(self, numbers: Sequence[Number], strides: Sequence[Number]) -> Number:
        total: Number = 0
        for n, s in zip(numbers, strides):
            total = self.plus(total, self.times(n, s))
        return total

    # -- code -------------------------------------------------------------------------------------------------------
    def new_block(self, types: Sequence[Type] = ()) -> Block:
        return self.function.body.add(Block(types))

    @contextmanager
    def in_entry(self) -> Iterator[None]:
        """Context in which instructions are inserted at the start of the function."""
        entry = self.function.body.blocks[0]
        with insertion(entry, entry.first):
            yield

    def region(self, region: Region, args: Sequence[Value]) -> list[Value]:
        """Lower the only block of a region here; returns the parts of the operands of its terminator."""
        self.bind(region.block.args, args)
        outer, self.bases = self.bases, dict(self.bases)
        for op in region.block:
            if op.terminator:
                self.bases = outer
                with self.at(op):
                    return self.all(op.operands)
            self.lower(op)
        raise AssertionError("the block has no terminator")

    def at(self, op: Op) -> insertion:
        """Context in which instructions are appended to the current block, with the location of `op`."""
        if op.loc is not self.origin:                   # adjacent operations mostly share a location
            self.origin, self.loc = op.loc, op.loc.through(NAME)
        return at_end(self.block, self.loc)

    def lower(self, op: Op) -> None:
        """Apply the rule for an operation, and bind its results."""
        apply = RULES.get(type(op))
        if apply is None:
            raise BackendError(f"{op.name} has no lowering to llvm", code="MLC0540", loc=op.loc)
        with self.at(op):
            out = apply(self, op) or ()
        if len(op.results) == 1 and out and isinstance(out[0], Value):
            self.bind(op.results, out)  # type: ignore[arg-type]
        else:
            for result, parts in zip(op.results, out):
                self.bind([result], parts)  # type: ignore[arg-type]


def known(value: Value) -> Number:
    """The value, or its number if it is an integer constant."""
    if isinstance(value.op, llvm.Constant) and isinstance(value.op.value, int):
        return value.op.value
    return value


def pool_constants(function: llvm.Func) -> None:
    """Keep one copy of each constant, at the start of the function: a constant is an operand, not an instruction."""
    entry = function.body.blocks[0]
    pool: dict[tuple[object, ...], llvm.Constant | llvm.Poison] = {}
    for op in [op for op in function.walk() if isinstance(op, llvm.Constant | llvm.Poison)]:
        first = pool.setdefault((type(op), op.type, _bits_of(op)), op)
        if first is not op:
            op.replace_by(first.result)
    for op in reversed(pool.values()):
        op.detach()
        entry.insert(op, entry.first)


def _bits_of(op: llvm.Constant | llvm.Poison) -> int | bytes | None:
    """A key that is equal for bitwise equal constants of one type."""
    if isinstance(op, llvm.Poison):
        return None
    if isinstance(op.type, IntType) and isinstance(op.value, int):
        return op.value % (1 << op.type.width)
    bits: bytes = op.ref().tobytes()
    return int.from_bytes(bits, sys.byteorder) if isinstance(op.type, IntType) else bits


def convert_scalar(type: ScalarType) -> ScalarType:
    """The machine type of an element: i64 for index, i16 for 16-bit floats.

    LLVM would split, select and store vectors of bfloat through f32 and back, with library calls.
    """
    return i64 if type == index else i16 if is_narrow(type) else type


@lru_cache(1 << 12)
def convert(type: Type) -> tuple[Type, ...]:
    """The types of the parts that a value of `type` becomes."""
    if isinstance(type, MemRefType):
        unknown = type.shape.count(None) + (type.strides.count(None) if type.strides is not None else 0)
        return (llvm.ptr, *[i64] * unknown)
    if isinstance(type, VectorType) and type.rank:
        return (VectorType(type.shape[-1:], convert_scalar(type.dtype)),) * math.prod(type.shape[:-1])
    if isinstance(type, ScalarType):
        return (convert_scalar(type),)
    if isinstance(type, amx.TileType):
        return (llvm.x86_amx,)
    if isinstance(type, TokenType):
        return ()                                        # a token: hardware counts the copies
    if isinstance(type, llvm.StructType):
        return (type,)
    raise BackendError(f"type {type} cannot be converted to the llvm dialect", code="MLC0541")


def convert_all(types: Sequence[Type]) -> list[Type]:
    return [t for type in types for t in convert(type)]


def width(value: Value) -> int:
    return element(value.type).width


def as_int(type: Type) -> Type:
    """The integer type of the same width and shape."""
    scalar = IntType(element(type).width)
    return VectorType(type.shape, scalar) if isinstance(type, VectorType) else scalar


def with_element(type: Type, scalar: ScalarType) -> Type:
    return VectorType(type.shape, scalar) if isinstance(type, VectorType) else scalar


def is_narrow(type: Type) -> bool:
    """Whether the element type is a 16-bit float, whose arithmetic is done in f32."""
    scalar = element(type)
    return isinstance(scalar, FloatType) and scalar.width < 32

