"""The writer of StableHLO: lines, names of values, regions, and the table of operations that the families fill."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mlc.dialects.func import Func
from mlc.ir.core import Block, Op, Value
from mlc.ir.diag import UNKNOWN, UserError
from mlc.ir.types import FloatType, IndexType, IntType, ScalarType, TensorType, Type, i1, i64, to_numpy

CODE = "MLC0864"
"""Of what cannot be written."""
Row = Callable[..., Any]
ROWS: dict[str, Row] = {}
"""Functions of the writer and an operation, by its name."""


def row(*names: str) -> Callable[[Row], Row]:
    """Make a function the row of these operations."""
    def register(f: Row) -> Row:
        for name in names:
            ROWS[name] = f
        return f
    return register


def array_type(type: Type, op: Op | None = None) -> TensorType:
    """The type of an array that holds a value."""
    if isinstance(type, ScalarType):
        return TensorType((), i64 if isinstance(type, IndexType) else type)
    if not isinstance(type, TensorType):
        raise refused(op, f"values of {type}")
    if not type.is_static:
        raise refused(op, f"the size of {type} is no number")
    return type


def refused(op: Op | None, reason: str) -> UserError:
    """The error of an operation that is not written."""
    name = "" if op is None else f"{op.name}: "
    loc = UNKNOWN if op is None else op.loc
    return UserError(f"{name}{reason}; it is not written as StableHLO", code=CODE, loc=loc,
                     hint="give arguments of fixed sizes, and write the function without the operation")


def hexadecimal(value: Any, dtype: ScalarType) -> str:
    """A number as a literal that has all of its bits."""
    array = np.asarray(value, to_numpy(dtype))
    if dtype == i1:
        return "true" if array else "false"
    if isinstance(dtype, FloatType):
        bits = int(array.reshape(1).view(np.dtype(f"u{array.itemsize}"))[0])
        return f"0x{bits:0{2 * array.itemsize}X}"
    return str(int(array))


class Writer:
    """The lines of a function, and the names of its values."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.names: dict[Value, str] = {}
        self.types: dict[str, TensorType] = {}
        self.indent = 2
        self.count = 0

    # -- values ---------------------------------------------------------------------------------------------------
    def new(self, type: TensorType) -> str:
        """A new name for a value of a type."""
        self.count += 1
        name = f"%{self.count}"
        self.types[name] = type
        return name

    def line(self, text: str) -> None:
        """Add a line."""
        self.lines.append("  " * self.indent + text)

    def of(self, value: Value) -> str:
        """The name of a value."""
        return self.names[value]

    def op(self, name: str, operands: Sequence[str], type: TensorType, attrs: dict[str, str] | None = None) -> str:
        """Write an operation of one result, and give its name."""
        if "." not in name:
            name = "stablehlo." + name
        result = self.new(type)
        inside = ", ".join(f"{k} = {v}" for k, v in (attrs or {}).items())
        types = ", ".join(str(self.types[n]) for n in operands)
        self.line(f'{result} = "{name}"({", ".join(operands)})' + (f" <{{{inside}}}>" if inside else "")
                  + f" : ({types}) -> {type}")
        return result

    def constant(self, value: Any, type: TensorType) -> str:
        """An array: all elements the same number, or those of an array."""
        if isinstance(value, np.ndarray) and value.ndim:
            if type.dtype == i1:
                text = f"[{', '.join('true' if x else 'false' for x in value.ravel())}]"
                flat = TensorType((value.size,), i1)
                found = self.op("constant", [], flat, {"value": f"dense<{text if value.size else ''}> : {flat}"})
                return self.reshape(found, type.shape)
            data = np.ascontiguousarray(value, to_numpy(type.dtype)).tobytes().hex().upper()
            return self.op("constant", [], type, {"value": f'dense<{repr_hex(data)}> : {type}'})
        return self.op("constant", [], type, {"value": f"dense<{hexadecimal(value, type.dtype)}> : {type}"})

    def full(self, value: Any, like: str) -> str:
        """A number in every element of an array like another."""
        return self.constant(value, self.types[like])

    def reshape(self, x: str, shape: Sequence[Any]) -> str:
        """An array in another shape."""
        type = self.types[x].with_shape(shape)
        return x if type == self.types[x] else self.op("reshape", [x], type)

    def broadcast(self, x: str, shape: Sequence[Any]) -> str:
        """An array as numpy broadcasts it."""
        type = self.types[x]
        if type.shape == tuple(shape):
            return x
        kept = [a for a, n in enumerate(type.shape) if n != 1 or shape[len(shape) - type.rank + a] == 1]
        x = self.reshape(x, [type.shape[a] for a in kept])
        axes = ", ".join(str(len(shape) - type.rank + a) for a in kept)
        return self.op("broadcast_in_dim", [x], type.with_shape(shape), {"broadcast_dimensions": ints(axes)})

    def cast(self, x: str, dtype: ScalarType) -> str:
        """An array in another element type."""
        type = self.types[x].with_dtype(dtype)
        return x if type == self.types[x] else self.op("convert", [x], type)

    def compare(self, direction: str, x: str, y: str) -> str:
        """Where elements compare so."""
        dtype = self.types[x].dtype
        kind = "FLOAT" if dtype.is_float else \
            "UNSIGNED" if dtype == i1 or (isinstance(dtype, IntType) and dtype.unsigned) else "SIGNED"
        return self.op("compare", [x, y], self.types[x].with_dtype(i1), {
            "comparison_direction": f"#stablehlo<comparison_direction {direction}>",
            "compare_type": f"#stablehlo<comparison_type {kind}>"})

    def select(self, which: str, x: str, y: str) -> str:
        """x where a condition holds, else y."""
        return self.op("select", [which, x, y], self.types[x])

    # -- regions --------------------------------------------------------------------------------------------------
    def region(self, head: str, types: Sequence[TensorType], build: Callable[[list[str]], list[str]]) -> None:
        """A region with arguments: its operations, and what it returns."""
        names = [self.new(t) for t in types]
        arguments = ", ".join(f"{n}: {t}" for n, t in zip(names, types))
        self.line(f"{head}{{")
        self.line(f"^bb0({arguments}):" if arguments else "^bb0:")
        self.indent += 1
        out = build(names)
        self.line(f'"stablehlo.return"({", ".join(out)}) : ({", ".join(str(self.types[n]) for n in out)}) -> ()')
        self.indent -= 1

    def block(self, block: Block) -> list[str]:
        """The operations of a block; the names of what it ends with."""
        for op in block.ops[:-1]:
            self.write(op)
        return [self.of(v) for v in block.ops[-1].operands]

    def combined(self, name: str, operands: Sequence[str], type: TensorType, attrs: dict[str, str],
                 kind: str) -> str:
        """An operation with a region that combines two numbers by another operation; "" gives the second."""
        result = self.new(type)
        scalar = TensorType((), self.types[operands[0]].dtype)
        inside = ", ".join(f"{k} = {v}" for k, v in attrs.items())
        self.line(f'{result} = "stablehlo.{name}"({", ".join(operands)}) <{{{inside}}}> (')
        self.region("", [scalar, scalar], lambda xs: [self.op(kind, xs, scalar)] if kind else xs[1:])
        self.line(f"}}) : ({', '.join(str(self.types[n]) for n in operands)}) -> {type}")
        return result

    # -- operations -----------------------------------------------------------------------------------------------
    def write(self, op: Op) -> None:
        """Write an operation, and name its results."""
        f = ROWS.get(op.name)
        if f is None:
            raise refused(op, "has no counterpart")
        out = f(self, op)
        names = [] if out is None else [out] if isinstance(out, str) else list(out)
        for value, name in zip(op.results, names, strict=True):
            if self.types[name] != array_type(value.type, op):
                raise refused(op, f"{self.types[name]} in place of {value.type}")
            self.names[value] = name

    def function(self, f: Func) -> list[str]:
        """The lines of a function."""
        arguments = [array_type(a.type, f) for a in f.args]
        for value, type in zip(f.args, arguments):
            self.names[value] = self.new(type)
        given = ", ".join(f"{self.of(a)}: {t}" for a, t in zip(f.args, arguments))
        out = self.block(f.block)
        types = ", ".join(str(self.types[n]) for n in out)
        visible = "public" if f.sym_name == "main" else "private"
        return [f"  func.func {visible} @{f.sym_name}({given}) -> ({types}) {{", *self.lines,
                f'    "func.return"({", ".join(out)}) : ({types}) -> ()', "  }"]


def repr_hex(data: str) -> str:
    """The hexadecimal digits of an array as a dense literal takes them."""
    return f'"0x{data}"' if data else ""


def ints(text: str) -> str:
    """An attribute that is a list of integers."""
    return f"array<i64: {text}>" if text else "array<i64>"
