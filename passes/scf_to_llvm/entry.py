"""The entry wrapper of a compiled function: `status = f_entry(ctx, args, sizes, results)`, all pointers.

See ir/abi.py for the layout of these.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce

from mlc.dialects import func, llvm
from mlc.ir import sizes
from mlc.ir.abi import (
    ARENA,
    ARENA_TOO_SMALL,
    ATTRIBUTES,
    CAPACITY,
    ENTRY_SUFFIX,
    ERROR_RECORDED,
    NEEDED,
    OK,
    RECORD,
    TIMES,
    WORDS,
)
from mlc.ir.affine import Algebra, fold
from mlc.ir.core import Block, Value, at_end
from mlc.ir.diag import BackendError
from mlc.ir.parser import Parser
from mlc.ir.sizes import Dim, Leaf, Quotient, Size
from mlc.ir.types import FunctionType, TensorType, i8, i32, i64
from mlc.passes.lower_to_llvm.lowering import NAME


def arena_function(function: func.Func) -> str:
    """The name of the function that returns the number of arena bytes an entry needs."""
    return f"{function.sym_name}_arena_bytes"


def entry(function: func.Func, callee: llvm.Func, arena_bytes: llvm.Func | None) -> llvm.Func:
    """The wrapper of an entry function, detached; `callee` is the function in the llvm dialect."""
    interface, symbols, aliases = _interface(function)
    out = llvm.function(f"{function.sym_name}{ENTRY_SUFFIX}", [llvm.ptr] * 4, [i32],
                        ("ctx", "args", "sizes", "results"))
    ctx, args, numbers, results = out.args
    out.loc = function.loc
    out.attrs |= {name: function.attrs[name] for name in ATTRIBUTES if name in function.attrs}
    first = out.body.blocks[0]
    too_small, run = out.body.add(Block()), out.body.add(Block())
    loc = function.loc.through(NAME)

    with at_end(first, loc):
        env = {name: _load(numbers, 8 * i) for i, name in enumerate(symbols)}
        needed = llvm.constant(0, i64)
        if arena_bytes is not None:
            arena_size = llvm.call(arena_bytes, list(env.values()))
            assert arena_size is not None
            needed = arena_size
        llvm.Store(needed, _at(ctx, NEEDED), 8)
        llvm.Store(llvm.constant(-1, i64), _at(ctx, RECORD), 8)
        capacity = _load(ctx, CAPACITY)
        llvm.CondBr(llvm.ICmp("ugt", needed, capacity).result, (), (), too_small, run)
    with at_end(too_small, loc):
        llvm.Return(llvm.constant(ARENA_TOO_SMALL, i32))
    with at_end(run, loc):
        operands = list(env.values())
        for i, type in enumerate(interface.inputs):
            operands += _memref(function, type, _load_pointer(args, 8 * i), env)
        for i, type in enumerate(interface.results):
            if aliases[i] < 0:
                operands += _memref(function, type, _load_pointer(results, 8 * i), env)
        operands += [_load_pointer(ctx, ARENA), capacity, _at(ctx, RECORD)]
        if "kernels" in function.attrs:
            operands += [_load_pointer(ctx, TIMES), _load(ctx, WORDS), llvm.constant(0, i64)]
        if [v.type for v in operands] != list(callee.function_type.params):
            raise BackendError(f"@{function.sym_name}: the arguments do not match its interface {interface}",
                               code="MLC0546", loc=function.loc)
        llvm.call(callee, operands)
        failed = llvm.ICmp("ne", _load(ctx, RECORD), llvm.constant(-1, i64)).result
        llvm.Return(llvm.Select(failed, llvm.constant(ERROR_RECORDED, i32), llvm.constant(OK, i32)).result)
    return out


def _interface(function: func.Func) -> tuple[FunctionType, tuple[str, ...], tuple[int, ...]]:
    """The tensor types of a function, its size symbols, and for each result the argument whose buffer it reuses."""
    interface = Parser(function.attrs["interface"], function.loc.file).type()
    if not isinstance(interface, FunctionType):
        raise BackendError(f"@{function.sym_name}: interface is not a function type", code="MLC0546", loc=function.loc)
    aliases = tuple(function.attrs.get("aliases", ())) or (-1,) * len(interface.results)
    symbols = tuple(function.attrs.get("symbols", ()))
    free = {s for t in (*interface.inputs, *interface.results) if isinstance(t, TensorType) for d in t.shape
            for s in sizes.symbols(d)}
    if len(aliases) != len(interface.results) or not free <= set(symbols):
        raise BackendError(f"@{function.sym_name}: aliases {list(aliases)} or symbols {list(symbols)} do not fit its "
                           f"interface {interface}", code="MLC0546", loc=function.loc)
    return interface, symbols, aliases


def _memref(function: func.Func, type: object, pointer: Value, env: dict[str, Value]) -> list[Value]:
    """The parts of a contiguous memref of a tensor type: its pointer and dynamic sizes."""
    if not isinstance(type, TensorType):
        raise BackendError(f"@{function.sym_name}: {type} in the interface is not a tensor", code="MLC0546",
                           loc=function.loc)
    return [pointer, *(size_value(d, env) for d in type.shape if isinstance(d, Size))]


def _at(base: Value, offset: int) -> Value:
    return llvm.element_address(base, offset, i8) if offset else base


def _load(base: Value, offset: int) -> Value:
    return llvm.Load(_at(base, offset), i64, 8).result


def _load_pointer(base: Value, offset: int) -> Value:
    return llvm.Load(_at(base, offset), llvm.ptr, 8).result


def size_value(dim: Dim, env: dict[str, Value]) -> Value:
    """Evaluate a size polynomial as an i64."""
    return fold(dim, _Numbers(env))


class _Numbers(Algebra[Value]):
    """i64 arithmetic for size polynomials. Division rounds down; divisors are positive."""

    def __init__(self, env: dict[str, Value]) -> None:
        self.env = env

    def constant(self, value: int) -> Value:
        return llvm.constant(value, i64)

    def leaf(self, leaf: Leaf) -> Value:
        assert isinstance(leaf, str), "sizes are made of symbols"
        return self.env[leaf]

    def add(self, a: Value, b: Value) -> Value:
        return llvm.Add(a, b).result

    def multiply(self, a: Value, b: Value) -> Value:
        return llvm.Mul(a, b).result

    def product(self, coefficient: int, factors: Iterator[Value]) -> Value:
        """Emits all factors before their product."""
        terms = list(factors)
        if coefficient != 1 or not terms:
            terms.append(self.constant(coefficient))
        return reduce(self.multiply, terms)

    def quotient(self, quotient: Quotient, num: Value, den: Value) -> Value:
        zero = llvm.constant(0, i64)
        remainder = llvm.SRem(num, den).result
        negative = llvm.ICmp("slt", remainder, zero).result
        if quotient.op == "mod":
            return llvm.Select(negative, llvm.Add(remainder, den).result, remainder).result
        return llvm.Add(llvm.SDiv(num, den).result, llvm.SExt(negative, i64).result).result
