"""The writer of graphs: names of values, constants, sizes, casts, and the table of operations."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from mlc.backends.onnx.graph import Array, Graph, Node, Program, data_type
from mlc.dialects.tensor.iteration import long_axes
from mlc.ir import sizes
from mlc.ir.affine import Algebra, fold
from mlc.ir.core import Block, Op, Value
from mlc.ir.diag import UNKNOWN, UserError
from mlc.ir.sizes import Dim, Leaf, Quotient, Size
from mlc.ir.types import (
    IndexType,
    ScalarType,
    TensorType,
    Type,
    bf16,
    f16,
    f32,
    i1,
    i8,
    i16,
    i32,
    i64,
    to_numpy,
    ui8,
    ui16,
    ui32,
    ui64,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

CODE = "MLC0848"
"""Of what cannot be written."""
Row = Callable[..., Any]
ROWS: dict[str, Row] = {}
"""Functions of the writer and an operation, by its name."""
KEPT: dict[str, Callable[[Any], bool]] = {}
"""Composite operations that are written as one, by name, with the condition for it."""
WIDER: dict[ScalarType, ScalarType] = {f16: f32, bf16: f32, i8: i32, i16: i32, ui8: i32, ui16: i32, ui32: i64,
                                       ui64: i64}
"""Types without loss of values, or of bits in the case of ui64, for which ONNX Runtime has every operation."""
LACKING: dict[str, frozenset[ScalarType]] = {
    "Where": frozenset({i16, ui16, ui64}), "Max": frozenset({i16, ui16}), "Min": frozenset({i16, ui16}),
    "Pad": frozenset({i16, ui16}), "Einsum": frozenset({i8, i16, ui8, ui16, ui32, ui64}),
    "MatMul": frozenset({i8, i16, ui8, ui16}), "CumSum": frozenset({i8, i16, ui8, ui16, ui32, ui64}),
    "ReduceSum": frozenset({i8, i16, ui8, ui16, ui32, ui64}), "ReduceProd": frozenset({i8, i16, ui8, ui16, ui32, ui64}),
    "ReduceMax": frozenset({i16, ui16, ui32}), "ReduceMin": frozenset({i16, ui16, ui32}),
    "Sign": frozenset({}), "TopK": frozenset({ui16, ui32})}
"""Types that operations are cast from, where the cast changes nothing: ONNX or ONNX Runtime does not have them."""


def row(*names: str, kept: Callable[[Any], bool] | None = None) -> Callable[[Row], Row]:
    """Make a function the row of these operations; `kept` says of composites which are not expanded."""
    def register(f: Row) -> Row:
        for name in names:
            ROWS[name] = f
            if kept is not None:
                KEPT[name] = kept
        return f
    return register


def array_type(type: Type, op: Op | None = None) -> TensorType:
    """The type of an array that holds a value."""
    if isinstance(type, ScalarType):
        return TensorType((), i64 if isinstance(type, IndexType) else type)
    if not isinstance(type, TensorType):
        raise refused(op, f"values of {type}")
    return type


def result(op: Op) -> TensorType:
    """The type of the only result."""
    return array_type(op.results[0].type, op)


def refused(op: Op | None, reason: str, hint: str = "write the function without the operation") -> UserError:
    """The error of an operation that is not written."""
    name = "" if op is None else f"{op.name}: "
    loc = UNKNOWN if op is None else op.loc
    return UserError(f"{name}{reason}; it is not written as ONNX", code=CODE, loc=loc, hint=hint)


@dataclass
class Scope:
    """One graph while it is written.

    known   names of what need not be computed again: sizes and the like
    checks  names of truth values that are true if the program is to fail
    """

    graph: Graph
    known: dict[Any, str] = field(default_factory=dict)
    checks: list[str] = field(default_factory=list)


class Writer:
    """Writes functions as graphs.

    names      of values
    types      of named values
    constants  arrays by name
    sources    per symbol of a size: the name and axis that has it, or the size of that axis in terms of it
    opset      the version of the operators
    """

    def __init__(self, opset: int) -> None:
        self.opset = opset
        self.names: dict[Value, str] = {}
        self.types: dict[str, TensorType] = {}
        self.constants: dict[str, tuple[Array, ScalarType]] = {}
        self.sources: dict[str, tuple[str, int, Dim]] = {}
        self.functions: dict[str, Any] = {}
        self.scopes: list[Scope] = []
        self._numbers: dict[str, int] = {}
        self._shared: dict[tuple[bytes, str, tuple[int, ...]], str] = {}

    # -- values ---------------------------------------------------------------------------------------------------
    def new(self, type: TensorType, stem: str) -> str:
        """A new name for a value of a type."""
        while True:
            number = self._numbers[stem] = self._numbers.get(stem, -1) + 1
            name = f"{stem}_{number}"
            if name not in self.types:
                self.types[name] = type
                return name

    def of(self, value: Value) -> str:
        """The name of a value."""
        return self.names[value]

    def all(self, values: Sequence[Value]) -> list[str]:
        """The names of values."""
        return [self.names[v] for v in values]

    def node(self, op: str, inputs: Sequence[str], types: Sequence[TensorType], **attrs: Any) -> list[str]:
        """Add a node of several results, and give their names."""
        outputs = [self.new(t, op.lower()) for t in types]
        self.scopes[-1].graph.nodes.append(Node(op, inputs, outputs, attrs))
        return outputs

    def op(self, op: str, inputs: Sequence[str], type: TensorType, **attrs: Any) -> str:
        """Add a node of one result, and give its name."""
        return self.node(op, inputs, [type], **attrs)[0]

    def compute(self, op: str, inputs: Sequence[str], type: TensorType, **attrs: Any) -> str:
        """`op`, by way of a wider type where it lacks the one of the inputs and result; other types stay."""
        dtype = type.dtype
        if dtype not in (f16, bf16) and dtype not in LACKING.get(op, ()):
            return self.op(op, inputs, type, **attrs)
        wide = WIDER[dtype]
        given = [self.cast(x, wide) if x and self.types[x].dtype == dtype else x for x in inputs]
        return self.cast(self.op(op, given, type.with_dtype(wide), **attrs), dtype)

    def constant(self, value: Any, dtype: ScalarType) -> str:
        """An array, or a number."""
        array = np.asarray(value)
        with np.errstate(all="ignore"):
            array = np.ascontiguousarray(array.astype(to_numpy(dtype))).reshape(array.shape)
        key = (array.tobytes(), str(dtype), array.shape)
        if key not in self._shared:
            self._shared[key] = self.new(TensorType(array.shape, dtype), "constant")
            self.constants[self._shared[key]] = array, dtype
        return self._shared[key]

    def like(self, value: Any, x: str) -> str:
        """A number in the element type of x."""
        return self.constant(value, self.types[x].dtype)

    def known(self, key: Any, make: Callable[[], str]) -> str:
        """The value that `make` gives, made once for this graph and those within."""
        for scope in self.scopes:
            if key in scope.known:
                return scope.known[key]
        name = self.scopes[-1].known[key] = make()
        return name

    def static(self, x: str) -> Array | None:
        """The elements of a constant; None for other values."""
        return self.constants[x][0] if x in self.constants and x in self._shared.values() else None

    # -- arithmetic -----------------------------------------------------------------------------------------------
    def cast(self, x: str, dtype: ScalarType) -> str:
        """Elements in a type that has them, or of integers the low bits."""
        type = self.types[x]
        if type.dtype == dtype:
            return x
        return self.op("Cast", [x], type.with_dtype(dtype), to=data_type(dtype))

    def broadcast_shape(self, *names: str) -> tuple[Dim, ...]:
        """The shape that values broadcast to, which they are known to."""
        shapes = [self.types[n].shape for n in names]
        rank = max(map(len, shapes))
        padded = [(1,) * (rank - len(s)) + tuple(s) for s in shapes]
        return tuple(next((d for d in ds if d != 1), 1) for ds in zip(*padded))

    def binary(self, op: str, x: str, y: str) -> str:
        """An operation on two values of one type."""
        return self.compute(op, [x, y], TensorType(self.broadcast_shape(x, y), self.types[x].dtype))

    def unary(self, op: str, x: str) -> str:
        """An operation on one value, whose result has its type."""
        return self.compute(op, [x], self.types[x])

    def compare(self, op: str, x: str, y: str) -> str:
        """Where elements compare so: Equal, Less, LessOrEqual, Greater or GreaterOrEqual."""
        dtype = self.types[x].dtype
        if dtype in (f16, bf16) or (dtype == i1 and op != "Equal"):
            x, y = (self.cast(v, f32 if dtype != i1 else i32) for v in (x, y))
        return self.op(op, [x, y], TensorType(self.broadcast_shape(x, y), i1))

    def logical(self, op: str, *xs: str) -> str:
        """And, Or, Xor or Not of truth values."""
        return self.op(op, xs, TensorType(self.broadcast_shape(*xs), i1))

    def where(self, which: str, x: str, y: str) -> str:
        """x where a condition holds, else y."""
        type = TensorType(self.broadcast_shape(which, x, y), self.types[x].dtype)
        if type.dtype == i1:
            found = self.op("Where", [which, self.cast(x, ui8), self.cast(y, ui8)], type.with_dtype(ui8))
            return self.cast(found, i1)
        return self.compute("Where", [which, x, y], type)

    def is_nan(self, x: str) -> str:
        """Where elements are NaN."""
        return self.op("IsNaN", [x], self.types[x].with_dtype(i1))

    # -- sizes ----------------------------------------------------------------------------------------------------
    def size(self, d: Dim) -> str:
        """A size, as one element of a vector."""
        if isinstance(d, int):
            return self.constant([d], i64)
        return self.known(("size", d), lambda: self._computed_size(d))

    def scalar_size(self, d: Dim) -> str:
        """A size, as an array without dimensions."""
        if isinstance(d, int):
            return self.constant(d, i64)
        return self.known(("scalar", d), lambda: self.op("Squeeze", [self.size(d)], TensorType((), i64)))

    def _computed_size(self, d: Size) -> str:
        if (name := sizes.symbol_name(d)) is not None:
            return self._symbol(name)
        return fold(d, _Sizes(self))

    def _symbol(self, name: str) -> str:
        if name not in self.sources:
            raise refused(None, f"no input has the size {name}", "give an argument whose shape has it as a size")
        value, axis, d = self.sources[name]
        found = self.op("Shape", [value], TensorType((1,), i64), start=axis, end=axis + 1)
        if sizes.symbol_name(d) is not None:
            return found
        factor = next(c for m, c in d.terms if m)          # type: ignore[union-attr]
        rest = next((c for m, c in d.terms if not m), 0)   # type: ignore[union-attr]
        return self.binary("Div", self.binary("Sub", found, self.size(rest)), self.size(factor))

    def bind(self, value: str) -> None:
        """Let the symbols of a value's type be found in its shape."""
        for axis, d in enumerate(self.types[value].shape):
            found = sizes.symbols(d)
            if len(found) != 1 or isinstance(d, int):
                continue
            name, = found
            linear = all(not m or m == ((name, 1),) for m, _ in d.terms)
            exact = sizes.symbol_name(d) is not None
            if linear and (name not in self.sources or (exact and sizes.symbol_name(self.sources[name][2]) is None)):
                self.sources[name] = value, axis, d

    def shape(self, dims: Sequence[Dim]) -> str:
        """A shape as a vector."""
        if all(isinstance(d, int) for d in dims):
            return self.constant(np.array(dims, np.int64), i64)
        return self.known(("shape", tuple(dims)), lambda: self._concatenated(dims))

    def _concatenated(self, dims: Sequence[Dim]) -> str:
        parts: list[str] = []
        numbers: list[int] = []
        for d in dims:
            if isinstance(d, int):
                numbers.append(d)
                continue
            if numbers:
                parts.append(self.constant(numbers, i64))
                numbers = []
            parts.append(self.size(d))
        if numbers:
            parts.append(self.constant(numbers, i64))
        return parts[0] if len(parts) == 1 else self.op("Concat", parts, TensorType((len(dims),), i64), axis=0)

    # -- shapes ---------------------------------------------------------------------------------------------------
    def reshape(self, x: str, shape: Sequence[Dim]) -> str:
        """The elements in another shape."""
        type = self.types[x].with_shape(shape)
        if type == self.types[x]:
            return x
        symbolic = [d for d in type.shape if not isinstance(d, int)]
        if not symbolic:
            zeros = {"allowzero": 1} if 0 in type.shape else {}
            return self.op("Reshape", [x, self.shape(type.shape)], type, **zeros)
        if len(symbolic) == 1 and 0 not in type.shape:     # which follows from the number of elements
            wanted = [d if isinstance(d, int) else -1 for d in type.shape]
            return self.op("Reshape", [x, self.constant(wanted, i64)], type)
        if long_axes(self.types[x].shape) == long_axes(type.shape):
            return self.unsqueeze(self.squeeze(x), [a for a, d in enumerate(type.shape) if d == 1])
        return self.op("Reshape", [x, self.shape(type.shape)], type, allowzero=1)

    def squeeze(self, x: str) -> str:
        """An array without its axes of size 1."""
        shape = self.types[x].shape
        axes = [a for a, d in enumerate(shape) if d == 1]
        if not axes:
            return x
        return self.op("Squeeze", [x, self.constant(axes, i64)], self.types[x].with_shape(long_axes(shape)))

    def unsqueeze(self, x: str, axes: Sequence[int]) -> str:
        """An array with more axes of size 1, where the result has them."""
        if not axes:
            return x
        shape = list(self.types[x].shape)
        for axis in sorted(axes):
            shape.insert(axis, 1)
        return self.op("Unsqueeze", [x, self.constant(list(axes), i64)], self.types[x].with_shape(shape))

    def expand(self, x: str, shape: Sequence[Dim]) -> str:
        """An array as numpy broadcasts it."""
        if self.types[x].shape == tuple(shape):
            return x
        return self.compute("Expand", [x, self.shape(shape)], self.types[x].with_shape(shape))

    def transpose(self, x: str, perm: Sequence[int]) -> str:
        """Axes in another order."""
        type = self.types[x]
        if list(perm) == list(range(type.rank)):
            return x
        return self.op("Transpose", [x], type.with_shape(type.shape[p] for p in perm), perm=list(perm))

    def slice(self, x: str, axis: int, start: str, stop: str, size: Dim) -> str:
        """A part of one axis, between places that are elements of vectors."""
        type = self.types[x]
        shape = [size if a == axis else d for a, d in enumerate(type.shape)]
        return self.op("Slice", [x, start, stop, self.constant([axis], i64)], type.with_shape(shape))

    # -- graphs ---------------------------------------------------------------------------------------------------
    @contextmanager
    def graph(self, name: str, types: Sequence[TensorType]) -> Iterator[tuple[Graph, list[str]]]:
        """A graph within the present one, and the names of its inputs."""
        inputs = [self.new(t, "given") for t in types]
        self.scopes.append(Scope(Graph(self._graph_name(name), inputs)))
        try:
            yield self.scopes[-1].graph, inputs
        finally:
            self.scopes.pop()

    def _graph_name(self, name: str) -> str:
        number = self._numbers[f"graph {name}"] = self._numbers.get(f"graph {name}", -1) + 1
        return f"{name}_{number}" if number else name

    def finish(self, outputs: Sequence[str], op: Op | None = None) -> None:
        """End the present graph; its checks make its first output fail."""
        scope = self.scopes[-1]
        outputs = list(outputs)
        if scope.checks:
            if not outputs:
                raise refused(op, "reports an error where there is no result")
            outputs[0] = self._guarded(outputs[0], scope.checks)
        inside = {n for node in scope.graph.nodes for n in node.outputs}
        for i, name in enumerate(outputs):                 # each output is a value of its own that is computed here
            if name not in inside or name in outputs[:i]:
                outputs[i] = self.op("Identity", [name], self.types[name])
        scope.graph.outputs = outputs

    def _guarded(self, x: str, checks: Sequence[str]) -> str:
        """A value as it is, or an index out of range if a check is true."""
        bad = checks[0]
        for check in checks[1:]:
            bad = self.logical("Or", bad, check)
        at = self.cast(self.reshape(bad, ()), i64)
        return self.op("Gather", [self.op("Unsqueeze", [x, self.constant([0], i64)],
                                          self.types[x].with_shape((1, *self.types[x].shape))), at],
                       self.types[x], axis=0)

    def fail_if(self, bad: str) -> None:
        """Have the present graph fail where a truth value is true."""
        self.scopes[-1].checks.append(bad)

    def block(self, block: Block) -> list[str]:
        """The operations of a block; the names of what it ends with."""
        for op in block.ops[:-1]:
            self.write(op)
        return self.all(block.ops[-1].operands)

    # -- operations -----------------------------------------------------------------------------------------------
    def write(self, op: Op) -> None:
        """Write an operation, and name its results."""
        f = ROWS.get(op.name)
        if f is None:
            raise refused(op, "has no counterpart")
        out = f(self, op)
        names = [] if out is None else [out] if isinstance(out, str) else list(out)
        for value, name in zip(op.results, names, strict=True):
            wanted = array_type(value.type, op)
            if self.types[name] != wanted:
                raise refused(op, f"{self.types[name]} in place of {wanted}")
            self.names[value] = name

    def program(self, graph: Graph) -> Program:
        """The program that is written, with the constants that it uses, and without nodes that nothing uses."""
        used = live(graph) | {*graph.inputs}
        return Program(graph, self.types, {n: x for n, x in self.constants.items() if n in used})


def live(graph: Graph) -> set[str]:
    """The names that a graph and those within use, after it lost the nodes whose results nothing uses."""
    used = {*graph.outputs}
    kept: list[Node] = []
    for node in reversed(graph.nodes):
        if used.isdisjoint(node.outputs):
            continue
        kept.append(node)
        used.update(node.inputs)
        for inner in node.attrs.values():
            if isinstance(inner, Graph):
                used |= live(inner)
    graph.nodes = kept[::-1]
    return used


class _Sizes(Algebra[str]):
    """Sizes as the nodes that compute them, each of which the writer makes once."""

    def __init__(self, writer: Writer) -> None:
        self.writer = writer

    def expression(self, expr: Dim) -> str:
        return self.writer.size(expr)

    def constant(self, value: int) -> str:
        return self.writer.size(value)

    def leaf(self, leaf: Leaf) -> str:
        return self.writer.size(sizes.of_atom(leaf))

    def add(self, a: str, b: str) -> str:
        return self.writer.binary("Add", a, b)

    def multiply(self, a: str, b: str) -> str:
        return self.writer.binary("Mul", a, b)

    def product(self, coefficient: int, factors: Iterator[str]) -> str:
        """The coefficient comes first."""
        parts = factors if coefficient == 1 else itertools.chain((self.constant(coefficient),), factors)
        first = next(parts, None)
        return self.constant(coefficient) if first is None else functools.reduce(self.multiply, parts, first)

    def quotient(self, quotient: Quotient, num: str, den: str) -> str:
        rest = self.writer.binary("Mod", num, den)         # which has the sign of den, as in mlc
        if quotient.op == "mod":
            return rest
        return self.writer.binary("Div", self.writer.binary("Sub", num, rest), den)
