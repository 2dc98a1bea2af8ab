"""The writer of StableHLO: lines, names of values, regions, and the table of operations that the families fill."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mlc.dialects.func import Func
from mlc.ir import sizes
from mlc.ir.core import Block, Op, Value
from mlc.ir.diag import UNKNOWN, UserError
from mlc.ir.sizes import Dim, Quotient, Size
from mlc.ir.types import (
    ComplexType,
    FloatType,
    IndexType,
    IntType,
    ScalarType,
    TensorType,
    Type,
    i1,
    i32,
    i64,
    to_numpy,
)

CODE, DATA_DEPENDENT, RUN_TIME_CHECK = "MLC0864", "MLC0865", "MLC0866"
"""Of what cannot be written, of sizes that elements determine, and of errors that they decide."""
NUMBER = TensorType((), i64)
"""The type of a size."""
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
    return type


def type_text(type: TensorType) -> str:
    """A type as StableHLO writes it: a size that is no number is `?`."""
    return "tensor<" + "".join(f"{n if isinstance(n, int) else '?'}x" for n in type.shape) \
        + f"{type.dtype}>"


def refused(op: Op | None, reason: str, hint: str = "write the function without the operation",
            code: str = CODE) -> UserError:
    """The error of an operation that is not written."""
    name = "" if op is None else f"{op.name}: "
    loc = UNKNOWN if op is None else op.loc
    return UserError(f"{name}{reason}; it is not written as StableHLO", code=code, loc=loc, hint=hint)


def hexadecimal(value: Any, dtype: ScalarType) -> str:
    """A number as a literal that has all of its bits."""
    array = np.asarray(value, to_numpy(dtype))
    if dtype == i1:
        return "true" if array else "false"
    if isinstance(dtype, ComplexType):
        number = complex(array.reshape(1)[0])
        return f"({hexadecimal(number.real, dtype.part)}, {hexadecimal(number.imag, dtype.part)})"
    if isinstance(dtype, FloatType):
        bits = int(array.reshape(1).view(np.dtype(f"u{array.itemsize}"))[0])
        return f"0x{bits:0{2 * array.itemsize}X}"
    return str(int(array))


class Writer:
    """The lines of a function, and the names of its values.

    sources       per symbol of a size: the array and axis that has it, and the size of that axis in terms of it
    combinations  functions of the module that combine two numbers, by name: their lines
    """

    def __init__(self, combinations: dict[str, list[str]]) -> None:
        self.combinations = combinations
        self.lines: list[str] = []
        self.names: dict[Value, str] = {}
        self.types: dict[str, TensorType] = {}
        self.sources: dict[str, tuple[str, int, Dim]] = {}
        self.indent = 2
        self.count = 0
        self._known: list[dict[Any, str]] = [{}]

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

    def types_of(self, names: Sequence[str]) -> str:
        """The types of values, between commas."""
        return ", ".join(type_text(self.types[n]) for n in names)

    def op(self, name: str, operands: Sequence[str], type: TensorType, attrs: dict[str, str] | None = None) -> str:
        """Write an operation of one result, and give its name."""
        if "." not in name:
            name = "stablehlo." + name
        result = self.new(type)
        inside = ", ".join(f"{k} = {v}" for k, v in (attrs or {}).items())
        self.line(f'{result} = "{name}"({", ".join(operands)})' + (f" <{{{inside}}}>" if inside else "")
                  + f" : ({self.types_of(operands)}) -> {type_text(type)}")
        return result

    def constant(self, value: Any, type: TensorType) -> str:
        """An array: all elements the same number, or those of an array."""
        text = type_text(type)
        if isinstance(value, np.ndarray) and value.ndim:
            if type.dtype == i1:
                inside = f"[{', '.join('true' if x else 'false' for x in value.ravel())}]"
                flat = TensorType((value.size,), i1)
                found = self.op("constant", [], flat, {"value": f"dense<{inside if value.size else ''}> : {flat}"})
                return self.reshape(found, type.shape)
            data = np.ascontiguousarray(value, to_numpy(type.dtype)).tobytes().hex().upper()
            return self.op("constant", [], type, {"value": f"dense<{repr_hex(data)}> : {text}"})
        if not type.is_static:
            return self.broadcast(self.constant(value, type.with_shape(())), type.shape)
        return self.op("constant", [], type, {"value": f"dense<{hexadecimal(value, type.dtype)}> : {text}"})

    def full(self, value: Any, like: str) -> str:
        """A number in every element of an array like another."""
        return self.constant(value, self.types[like])

    def iota(self, axis: int, type: TensorType) -> str:
        """The index along an axis."""
        attrs = {"iota_dimension": f"{axis} : i64"}
        return self.op("iota", [], type, attrs) if type.is_static else \
            self.op("dynamic_iota", [self.shape(type.shape)], type, attrs)

    def reshape(self, x: str, shape: Sequence[Any]) -> str:
        """An array in another shape."""
        type = self.types[x].with_shape(shape)
        if type == self.types[x]:
            return x
        return self.op("reshape", [x], type) if type.is_static else \
            self.op("dynamic_reshape", [x, self.shape(shape)], type)

    def spread(self, x: str, axes: Sequence[int], shape: Sequence[Any]) -> str:
        """An array whose axes are those of a shape, repeated along the others."""
        type, attrs = self.types[x].with_shape(shape), {"broadcast_dimensions": ints(", ".join(map(str, axes)))}
        if type.is_static and self.types[x].is_static:
            return self.op("broadcast_in_dim", [x], type, attrs)
        return self.op("dynamic_broadcast_in_dim", [x, self.shape(shape)], type, attrs)

    def broadcast(self, x: str, shape: Sequence[Any]) -> str:
        """An array as numpy broadcasts it."""
        type = self.types[x]
        if type.shape == tuple(shape):
            return x
        before = len(shape) - type.rank
        kept = [a for a, n in enumerate(type.shape) if n != 1 or shape[before + a] == 1]
        return self.spread(self.reshape(x, [type.shape[a] for a in kept]), [before + a for a in kept], shape)

    def slice(self, x: str, starts: Sequence[Dim], stops: Sequence[Dim], steps: Sequence[int],
              type: TensorType) -> str:
        """Ranges of each axis."""
        if type.is_static and all(isinstance(n, int) for n in (*starts, *stops)):
            attrs = {"start_indices": starts, "limit_indices": stops, "strides": steps}
            return self.op("slice", [x], type, {k: ints(", ".join(map(str, v))) for k, v in attrs.items()})
        return self.op("real_dynamic_slice", [x, self.shape(starts), self.shape(stops), self.shape(steps)], type)

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

    # -- sizes ----------------------------------------------------------------------------------------------------
    def bind(self, value: str) -> None:
        """Let the symbols of a value's type be found in its shape."""
        for axis, d in enumerate(self.types[value].shape):
            if isinstance(d, int) or len(found := sizes.symbols(d)) != 1:
                continue
            name, = found
            linear = all(not m or m == ((name, 1),) for m, _ in d.terms) and any(m and c > 0 for m, c in d.terms)
            exact = sizes.symbol_name(d) is not None
            if linear and (name not in self.sources or (exact and sizes.symbol_name(self.sources[name][2]) is None)):
                self.sources[name] = value, axis, d

    def size(self, d: Dim) -> str:
        """A size as a number, in i64."""
        if isinstance(d, int):
            return self.known(d, lambda: self.constant(d, NUMBER))
        return self.known(d, lambda: self._computed(d))

    def shape(self, dims: Sequence[Dim]) -> str:
        """Sizes as an array of one dimension."""
        type = TensorType((len(dims),), i64)
        if all(isinstance(d, int) for d in dims):
            return self.known(tuple(dims), lambda: self.constant(np.array(dims, np.int64), type))
        parts = [self._vector(d) for d in dims]
        return self.known(tuple(dims), lambda: self.op("concatenate", parts, type, {"dimension": "0 : i64"})) \
            if len(dims) > 1 else parts[0]

    def _vector(self, d: Dim) -> str:
        """A size as an array of one element."""
        return self.known((d,), lambda: self.reshape(self.size(d), (1,)))

    def known(self, key: Any, make: Callable[[], str]) -> str:
        """The value that `make` gives, made once for this region and those within."""
        for scope in self._known:
            if key in scope:
                return scope[key]
        scope = self._known[-1]
        name = scope[key] = make()
        return name

    def extent(self, x: str, axis: int) -> str:
        """The size of an axis as the array has it."""
        found = self.op("get_dimension_size", [x], TensorType((), i32), {"dimension": f"{axis} : i64"})
        return self.cast(found, i64)

    def _computed(self, d: Size) -> str:
        if (name := sizes.symbol_name(d)) is not None:
            return self._symbol(name)
        total = None
        for monomial, factor in d.terms:
            term = None if factor == 1 and monomial else self.size(factor)
            for atom, power in monomial:
                one = self._quotient(atom) if isinstance(atom, Quotient) else self.size(sizes.of_atom(atom))
                for _ in range(power):
                    term = one if term is None else self.op("multiply", [term, one], NUMBER)
            assert term is not None, "a term has a factor"
            total = term if total is None else self.op("add", [total, term], NUMBER)
        assert total is not None, "a size that is no number has a term"
        return total

    def _quotient(self, atom: Quotient) -> str:
        """A quotient that is rounded down, or its remainder: operations of StableHLO round to zero."""
        num, den = atom.num, atom.den
        shift = shift_of(num, den)
        if shift is not None:
            name = "divide" if atom.op == "floordiv" else "remainder"
            found = self.op(name, [self.size(num + shift * den), self.size(den)], NUMBER)
            return found if atom.op == "mod" or shift == 0 else \
                self.op("subtract", [found, self.size(shift)], NUMBER)
        below = self.size(den)
        rest = self.op("remainder", [self.size(num), below], NUMBER)
        rest = self.op("remainder", [self.op("add", [rest, below], NUMBER), below], NUMBER)
        if atom.op == "mod":
            return rest
        return self.op("divide", [self.op("subtract", [self.size(num), rest], NUMBER), below], NUMBER)

    def _symbol(self, name: str) -> str:
        if name not in self.sources:
            raise refused(None, f"the elements of arrays determine the size {name}, and XLA has none of that kind",
                          "give the array a fixed size, and a mask of the elements that count", DATA_DEPENDENT)
        value, axis, d = self.sources[name]
        found = self.extent(value, axis)
        if sizes.symbol_name(d) is not None:
            return found
        assert isinstance(d, Size)
        factor = next(c for m, c in d.terms if m)
        rest = next((c for m, c in d.terms if not m), 0)
        if rest:
            found = self.op("subtract", [found, self.size(rest)], NUMBER)
        return found if factor == 1 else self.op("divide", [found, self.size(factor)], NUMBER)

    def demand(self, condition: str, message: str) -> None:
        """Have a call with other sizes be an error when shapes are refined."""
        text = message.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ").replace("{", "(").replace("}", ")")
        self.line(f'"stablehlo.custom_call"({condition}) <{{api_version = 2 : i32, call_target_name = '
                  f'"shape_assertion", has_side_effect = true}}> {{error_message = "{text}"}} : (tensor<i1>) -> ()')

    # -- regions --------------------------------------------------------------------------------------------------
    def region(self, head: str, types: Sequence[TensorType], build: Callable[[list[str]], list[str]]) -> None:
        """A region with arguments: its operations, and what it returns."""
        names = [self.new(t) for t in types]
        arguments = ", ".join(f"{n}: {type_text(t)}" for n, t in zip(names, types))
        self.line(f"{head}{{")
        self.line(f"^bb0({arguments}):" if arguments else "^bb0:")
        self.indent += 1
        self._known.append({})
        out = build(names)
        self._known.pop()
        self.line(f'"stablehlo.return"({", ".join(out)}) : ({self.types_of(out)}) -> ()')
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
        self.line(f"}}) : ({self.types_of(operands)}) -> {type_text(type)}")
        return result

    def combination(self, kind: str, dtype: ScalarType) -> str:
        """The name of a function that combines two numbers by an operation."""
        name, type = f"{kind}_of_{dtype}", f"tensor<{dtype}>"
        self.combinations[name] = [
            f"  func.func private @{name}(%0: {type}, %1: {type}) -> ({type}) {{",
            f'    %2 = "stablehlo.{kind}"(%0, %1) : ({type}, {type}) -> {type}',
            f'    "func.return"(%2) : ({type}) -> ()', "  }"]
        return name

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
        given = ", ".join(f"{self.of(a)}: {type_text(t)}" for a, t in zip(f.args, arguments))
        self._check_sizes([self.of(a) for a in f.args])
        out = self.block(f.block)
        types = self.types_of(out)
        visible = "public" if f.sym_name == "main" else "private"
        return [f"  func.func {visible} @{f.sym_name}({given}) -> ({types}) {{", *self.lines,
                f'    "func.return"({", ".join(out)}) : ({types}) -> ()', "  }"]

    def _check_sizes(self, arguments: Sequence[str]) -> None:
        """Find the symbols of sizes in the arguments, and demand that all their sizes fit."""
        for name in arguments:
            self.bind(name)
        for number, name in enumerate(arguments):
            for axis, d in enumerate(self.types[name].shape):
                if isinstance(d, int):
                    continue
                what = f"axis {axis} of argument {number}"
                if any(source == (name, axis, d) for source in self.sources.values()):
                    self._check_source(name, axis, d, what)
                else:
                    self.demand(self.compare("EQ", self.extent(name, axis), self.size(d)), f"{what} is not {d}")

    def _check_source(self, name: str, axis: int, d: Size, what: str) -> None:
        """Demand that the size that a symbol is found by is one of those that there are."""
        symbol, = sizes.symbols(d)
        factor = next(c for m, c in d.terms if m)
        rest = next((c for m, c in d.terms if not m), 0)
        if factor != 1:
            over = self.extent(name, axis)
            if rest:
                over = self.op("subtract", [over, self.size(rest)], NUMBER)
            self.demand(self.compare("EQ", self.op("remainder", [over, self.size(factor)], NUMBER), self.size(0)),
                        f"{what} is not {d}")
        if rest > 0:
            self.demand(self.compare("GE", self.size(sizes.sym(symbol)), self.size(0)), f"{what} is not {d}")


def shift_of(num: Dim, den: Dim) -> Dim | None:
    """A size k for which num + k den is not negative whatever the symbols are; None if there is none."""
    if sizes.is_natural(num):
        return 0
    negative: Dim = 0
    for monomial, factor in () if isinstance(num, int) else num.terms:
        if factor < 0:
            negative = negative + (Size(((monomial, -factor),)) if monomial else -factor)
    shift = -(-negative // den) if isinstance(negative, int) and isinstance(den, int) else negative
    return shift if sizes.is_natural(num + shift * den) and sizes.is_natural(shift) else None


def repr_hex(data: str) -> str:
    """The hexadecimal digits of an array as a dense literal takes them."""
    return f'"0x{data}"' if data else ""


def ints(text: str) -> str:
    """An attribute that is a list of integers."""
    return f"array<i64: {text}>" if text else "array<i64>"
