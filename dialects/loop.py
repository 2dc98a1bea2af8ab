"""loop: kernels. A kernel is a domain of points, some dimensions of which are parallel and the rest are loops; its
body is a small program on tiles.

A tile `!loop.tile<d0xd1xf32>` holds one element for each point of the current block of the named dimensions. How
large a block is says the kernel's `tile` attribute alone, so a schedule changes one list of numbers and every
operation stays as it is; a tile that spans no dimension is a scalar. Operands of different dimensions broadcast.

Where a buffer is read or written says an access map: one expression per dimension of the buffer over the coordinates
`d0`, `d1`, ... of the point, the size symbols of the kernel, and `t0`, `t1`, ... for index tiles (a gather). Points
outside the domain (the last block may stick out) are never read or written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from mlc.dialects import arith
from mlc.ir import sizes
from mlc.ir.core import Op, Region, ResultType, Value
from mlc.ir.exact import fma
from mlc.ir.sizes import Dim, Size
from mlc.ir.types import TYPE_READERS, FloatType, IntType, MemRefType, ScalarType, Type, i1, i64, index, to_numpy

if TYPE_CHECKING:
    from mlc.ir.interp import Frame
    from mlc.ir.parser import Parser


@dataclass(frozen=True, slots=True)
class TileType(Type):
    """`!loop.tile<d0xd2xf32>`: one element per point of the block of dimensions 0 and 2 of the kernel."""

    dims: tuple[int, ...]
    dtype: ScalarType
    dialect: ClassVar[str] = "loop"

    def text(self, generic: bool = False) -> str:
        prefix = "mlc." if generic else ""
        return f"!{prefix}loop.tile<{''.join(f'd{d}x' for d in self.dims)}{self.dtype}>"


def _read_tile(parser: Parser) -> Type:
    from mlc.ir.types import SCALARS
    parser.expect("<")
    token = parser.kind("word", "dimensions and an element type such as d0xf32")
    m = re.fullmatch(r"((?:d\d{1,2}x)*)(\w+)", token.text)
    if m is None or m[2] not in SCALARS:
        parser.fail(f"bad tile {token.text!r}; write d0xd1xf32", "MLC0206", token)
    parser.expect(">")
    dims = tuple(int(d[1:]) for d in m[1].split("x") if d)
    if list(dims) != sorted(set(dims)):
        parser.fail("the dimensions of a tile ascend", "MLC0206", token)
    return TileType(dims, SCALARS[m[2]])


TYPE_READERS["loop.tile"] = _read_tile


def coordinate(d: int) -> Size:
    """The coordinate of dimension `d`, as it stands in access maps."""
    return sizes.sym(f"d{d}")


def is_reserved(name: str) -> bool:
    """Whether a name stands for a coordinate or an index tile, so that no size of a kernel can have it."""
    return re.fullmatch(r"[dt]\d+", name) is not None


def spanned(exprs: Sequence[Dim], tiles: Sequence[Value] = ()) -> tuple[int, ...]:
    """The dimensions that expressions and the index tiles they name depend on."""
    dims: set[int] = set()
    for name in {n for e in exprs for n in sizes.symbols(e)}:
        if m := re.fullmatch(r"d(\d+)", name):
            dims.add(int(m[1]))
        elif m := re.fullmatch(r"t(\d+)", name):
            dims |= set(tiles[int(m[1])].type.dims)
    return tuple(sorted(dims))


def union(values: Sequence[Value]) -> tuple[int, ...]:
    """The dimensions that a point-by-point combination of tiles spans."""
    return tuple(sorted({d for v in values for d in v.type.dims}))


@dataclass
class Activation:
    """Interpretation of one kernel: its sizes, and for each dimension in scope the coordinates of the block.

    Parallel dimensions are taken whole, for their points are independent; loops go block by block.
    """

    sizes: Mapping[str, int]
    extents: tuple[int, ...]
    coordinates: dict[int, np.ndarray[Any, Any]] = field(default_factory=dict)

    def axis(self, d: int, values: np.ndarray[Any, Any]) -> None:
        shape = [1] * len(self.extents)
        shape[d] = -1
        self.coordinates[d] = values.reshape(shape)

    def shape(self, dims: Sequence[int]) -> tuple[int, ...]:
        return tuple(self.coordinates[d].size if d in dims else 1 for d in range(len(self.extents)))

    def inside(self, dims: Sequence[int]) -> np.ndarray[Any, Any]:
        """Which points of the block are in the domain."""
        out = np.ones(self.shape(dims), bool)
        for d in dims:
            out &= self.coordinates[d] < self.extents[d]
        return out

    def evaluate(self, expr: Dim, tiles: Sequence[Any]) -> Any:
        """An expression over coordinates, sizes and index tiles, for every point."""
        if isinstance(expr, int):
            return expr
        total: Any = 0
        for monomial, coefficient in expr.terms:
            term: Any = coefficient
            for atom, power in monomial:
                if isinstance(atom, str):
                    value = self.symbol(atom, tiles)
                else:
                    num, den = self.evaluate(atom.num, tiles), self.evaluate(atom.den, tiles)
                    value = num // den if atom.op == "floordiv" else num % den
                term = term * value ** power
            total = total + term
        return total

    def symbol(self, name: str, tiles: Sequence[Any]) -> Any:
        if name in self.sizes:
            return self.sizes[name]
        position = int(name[1:])
        return self.coordinates[position] if name[0] == "d" else tiles[position]


class Kernel(Op, name="loop.kernel", pure=False):
    """For every point of the parallel domain, run the body.

    domain    the extent of each dimension, over `symbols`, whose values are the operands
    parallel  how many leading dimensions are parallel; the others are run by `loop.for` inside
    tile      the block size of each dimension
    vector    the dimension that lies in vector registers, or -1
    label     what it computes, for people
    """

    sizes: tuple[Value, ...]
    body: Region
    symbols: tuple[str, ...]
    domain: tuple[Dim, ...]
    parallel: int
    tile: tuple[int, ...]
    vector: int = -1
    label: str = ""
    schedule: tuple[str, ...] = ()

    def verify_op(self) -> None:
        if len(self.tile) != len(self.domain) or not 0 <= self.parallel <= len(self.domain):
            self.fail(f"domain {self.domain}, tile {self.tile} and parallel = {self.parallel} do not fit",
                      code="MLC0150")
        if any(t < 1 for t in self.tile) or not -1 <= self.vector < len(self.domain):
            self.fail("block sizes are positive and `vector` names a dimension", code="MLC0150")
        if len(self.symbols) != len(self.operands) or any(v.type != index for v in self.operands):
            self.fail("one index operand per symbol", code="MLC0150")
        if taken := [s for s in self.symbols if is_reserved(s) or self.symbols.count(s) > 1]:
            self.fail(f"{taken[0]} names a coordinate, an index tile or another size", code="MLC0150")
        known = {*self.symbols}
        if unknown := {n for d in self.domain for n in sizes.symbols(d)} - known:
            self.fail(f"the domain names {', '.join(unknown)}, which is no symbol of the kernel", code="MLC0150")
        self.verify_body(self.body)

    def verify_body(self, body: Region) -> None:
        """Every operation of a kernel and its loops is one on tiles; elements are for loop.map."""
        for op in body.block:
            if not isinstance(op, _InKernel | End | Yield):
                op.fail("is no operation on tiles, as a kernel is made of", code="MLC0150")
            if isinstance(op, For):
                self.verify_body(op.body)

    def interpret(self, frame: Frame) -> list[Any]:
        env = dict(zip(self.symbols, frame.all(self.operands)))
        extents = tuple(sizes.evaluate(d, env) for d in self.domain)
        activation = Activation(env, extents)
        for d, extent in enumerate(extents):
            activation.axis(d, np.arange(extent if d < self.parallel else self.tile[d]))
        frame.state[self] = activation
        frame.run(self.body)
        return []


class _InKernel(Op):
    """An operation inside a kernel."""

    def expressions(self) -> tuple[Dim, ...]:
        """What it computes from coordinates, sizes of the kernel and index tiles."""
        return ()

    def walked(self) -> set[int]:
        """The dimensions whose current block it asks for."""
        return {int(n[1:]) for e in self.expressions() for n in sizes.symbols(e) if re.fullmatch(r"d\d+", n)}

    def verify_op(self) -> None:
        kernel, loops = self.parent_op, set[int]()
        while kernel is not None and not isinstance(kernel, Kernel):
            if isinstance(kernel, For):
                loops.add(kernel.dim)
            kernel = kernel.parent_op
        if kernel is None:
            self.fail("stands outside a kernel", code="MLC0150")
            return
        rank = len(kernel.domain)
        for name in sorted({n for e in self.expressions() for n in sizes.symbols(e)} - {*kernel.symbols}):
            m = re.fullmatch(r"([dt])\d+", name)
            if m is None:
                self.fail(f"{name} is no symbol of the kernel", code="MLC0151")
            elif m[1] == "d" and int(name[1:]) >= rank:
                self.fail(f"there is no dimension {name}", code="MLC0151")
        dims = [d for r in self.results if isinstance(r.type, TileType) for d in r.type.dims]
        if not all(0 <= d < rank for d in (*dims, self.attrs.get("dim", 0))):
            self.fail(f"names a dimension that a domain of {rank} does not have", code="MLC0151")
        if outside := {d for d in self.walked() if d >= kernel.parallel} - loops:
            self.fail(f"d{min(outside)} has no coordinate outside of a loop.for", code="MLC0151")

    def activation(self, frame: Frame) -> Activation:
        found: Activation = frame.state[self.enclosing(Kernel)]
        return found


class End(Op, name="loop.end", terminator=True, pure=False):
    """The end of a kernel's body."""


class Yield(Op, name="loop.yield", terminator=True, pure=False):
    """Hand values to the enclosing loop.for or loop.map."""

    values: tuple[Value, ...]


def _tile(op: Op, value: Value, dtype: ScalarType | None = None) -> TileType:
    """The type of an operand that must be a tile, of `dtype` if one is given."""
    type = value.type
    if not isinstance(type, TileType) or dtype not in (None, type.dtype):
        op.fail(f"{type} is no tile" + (f" of {dtype}" if dtype is not None else ""), code="MLC0151")
    return type  # type: ignore[no-any-return]


def _check_tiles(op: Op, exprs: Sequence[Dim], tiles: Sequence[Value]) -> None:
    """Index tiles are of indices, and those that expressions name are there."""
    for t in tiles:
        _tile(op, t, index)
    for name in sorted({n for e in exprs for n in sizes.symbols(e)}):
        if re.fullmatch(r"t\d+", name) and int(name[1:]) >= len(tiles):
            op.fail(f"names {name}, but there are {len(tiles)} index tiles", code="MLC0151")


def _check_access(op: Op, buffer: Value, map: tuple[Dim, ...], tiles: Sequence[Value]) -> MemRefType:
    type = buffer.type
    if not isinstance(type, MemRefType):
        op.fail(f"{type} is no memref", code="MLC0151")
    if len(map) != type.rank:
        op.fail(f"{len(map)} expressions for a buffer of {type.rank} dimensions", code="MLC0151")
    _check_tiles(op, map, tiles)
    return type  # type: ignore[no-any-return]


class Load(_InKernel, name="loop.load", pure=False):
    """result[p] = buffer[map(p)] where p is in the domain and mask[p] holds, else 0"""

    buffer: Value
    tiles: tuple[Value, ...]
    mask: Value | None
    map: tuple[Dim, ...]

    def infer(self) -> Type:
        type = _check_access(self, self.buffer, self.map, self.tiles)
        dims = set(spanned(self.map, self.tiles))
        if self.mask is not None:
            dims |= set(_tile(self, self.mask, i1).dims)
        return TileType(tuple(sorted(dims)), type.dtype)

    def expressions(self) -> tuple[Dim, ...]:
        return self.map

    def interpret(self, frame: Frame) -> Any:
        state = self.activation(frame)
        tiles = frame.all(self.tiles)
        dims = self.result.type.dims
        valid = state.inside(dims)
        if self.mask is not None:
            valid = valid & frame[self.mask]
        buffer = frame[self.buffer]
        out = np.zeros(state.shape(dims), buffer.dtype)
        if valid.any():
            where = np.nonzero(valid)
            position = [np.broadcast_to(state.evaluate(e, tiles), out.shape)[where] for e in self.map]
            out[where] = buffer[tuple(position)]
        return out


class Store(_InKernel, name="loop.store", pure=False):
    """buffer[map(p)] = value[p] for every point p of the domain where mask[p] holds"""

    value: Value
    buffer: Value
    tiles: tuple[Value, ...]
    mask: Value | None
    map: tuple[Dim, ...]

    def infer(self) -> tuple[Type, ...]:
        type = _check_access(self, self.buffer, self.map, self.tiles)
        if _tile(self, self.value).dtype != type.dtype:
            self.fail(f"{self.value.type} does not fit a buffer {type}", code="MLC0151")
        if self.mask is not None:
            _tile(self, self.mask, i1)
        return ()

    def expressions(self) -> tuple[Dim, ...]:
        return self.map

    def interpret(self, frame: Frame) -> list[Any]:
        state = self.activation(frame)
        tiles = frame.all(self.tiles)
        dims = sorted({*spanned(self.map, self.tiles), *self.value.type.dims})
        valid = state.inside(dims)
        if self.mask is not None:
            valid = valid & frame[self.mask]
        if valid.any():
            where = np.nonzero(valid)
            values = np.broadcast_to(frame[self.value], valid.shape)[where]
            position = [np.broadcast_to(state.evaluate(e, tiles), valid.shape)[where] for e in self.map]
            frame[self.buffer][tuple(position)] = values if position else values[-1]
        return []


class Check(_InKernel, name="loop.check", pure=False):
    """Where condition[p] fails at a point of the domain: errors = [site, element(p)], unless one is there that is less

    Errors are ordered by site, then by element; [-1, -1] stands for none.
    """

    condition: Value
    errors: Value
    element: Dim
    site: int

    def infer(self) -> tuple[Type, ...]:
        _tile(self, self.condition, i1)
        _check_tiles(self, (self.element,), ())
        if self.errors.type != MemRefType((2,), i64):
            self.fail(f"{self.errors.type} is no error record", code="MLC0151")
        return ()

    def expressions(self) -> tuple[Dim, ...]:
        return (self.element,)

    def interpret(self, frame: Frame) -> list[Any]:
        state = self.activation(frame)
        dims = sorted({*spanned((self.element,)), *self.condition.type.dims})
        bad = state.inside(dims) & ~frame[self.condition]
        if bad.any():
            elements = np.broadcast_to(state.evaluate(self.element, ()), bad.shape)[bad]
            record = frame[self.errors]
            found = (self.site, int(elements.min()))
            if record[0] < 0 or found < (int(record[0]), int(record[1])):
                record[:] = found
        return []


class Index(_InKernel, name="loop.index"):
    """result[p] = expr(p), a number computed from the coordinates of the point"""

    tiles: tuple[Value, ...]
    expr: Dim

    def infer(self) -> Type:
        _check_tiles(self, (self.expr,), self.tiles)
        return TileType(spanned((self.expr,), self.tiles), index)

    def expressions(self) -> tuple[Dim, ...]:
        return (self.expr,)

    def interpret(self, frame: Frame) -> Any:
        state = self.activation(frame)
        value = state.evaluate(self.expr, frame.all(self.tiles))
        return np.broadcast_to(np.asarray(value, np.int64), state.shape(self.result.type.dims))


class InBounds(_InKernel, name="loop.in_bounds"):
    """result[p] = coordinate dim of p < extent of dim: false for points that stick out of the domain"""

    dim: int

    def infer(self) -> Type:
        return TileType((self.dim,), i1)

    def walked(self) -> set[int]:
        return {self.dim}

    def interpret(self, frame: Frame) -> Any:
        return self.activation(frame).inside((self.dim,))


class Full(_InKernel, name="loop.full"):
    """result[p] = value"""

    value: int | float | bool
    type: ResultType

    def infer(self) -> Type:
        type = _tile(self, self.results[0])
        if isinstance(type.dtype, IntType) and not self.in_range(type.dtype.width):
            self.fail(f"{self.value} is no {type.dtype}", code="MLC0151")
        return type

    def in_range(self, width: int) -> bool:
        """Whether the value is an integer of `width` bits with a sign; one bit is true or false."""
        if width == 1:
            return self.value in (0, 1)
        whole = isinstance(self.value, int) or self.value.is_integer()
        return whole and -(1 << (width - 1)) <= self.value < 1 << (width - 1)

    def interpret(self, frame: Frame) -> Any:
        type = self.result.type
        return np.full(self.activation(frame).shape(type.dims), self.value, to_numpy(type.dtype))

    def attr_text(self, name: str, value: Any, generic: bool) -> str:
        from mlc.ir.printer import float_text
        dtype = self.result.type.dtype if self.results else None
        if name == "value" and isinstance(dtype, FloatType):
            return f"{float_text(value, dtype)} : {dtype}"
        return super().attr_text(name, value, generic)


class Map(_InKernel, name="loop.map"):
    """result[p] = body(tiles[p]...), scalar by scalar"""

    tiles: tuple[Value, ...]
    body: Region

    def infer(self) -> tuple[Type, ...]:
        block = self.body.block
        if tuple(a.type for a in block.args) != tuple(_tile(self, v).dtype for v in self.operands):
            self.fail("the body's arguments are not the elements of the tiles", code="MLC0151")
        dims = union(self.operands)
        return tuple(TileType(dims, v.type) for v in block.terminator.operands)

    def verify_op(self) -> None:
        super().verify_op()
        here = {*self.body.block.args, *(r for op in self.body.block for r in op.results)}
        for op in self.body.block:
            if (not op.terminator and (not op.pure or op.regions)) or not {*op.operands} <= here:
                op.fail("is no arithmetic on elements of the map's tiles", code="MLC0151")

    def interpret(self, frame: Frame) -> list[Any]:
        shape = self.activation(frame).shape(union(self.operands))
        out = frame.run(self.body, frame.all(self.operands))
        return [np.broadcast_to(np.asarray(x, to_numpy(r.type.dtype)), shape) for x, r in zip(out, self.results)]


class For(_InKernel, name="loop.for", pure=False):
    """Go through dimension `dim` block by block, in ascending order, carrying tiles from one block to the next."""

    inits: tuple[Value, ...]
    body: Region
    dim: int

    def infer(self) -> tuple[Type, ...]:
        types = tuple(v.type for v in self.operands)
        if tuple(a.type for a in self.body.block.args) != types or tuple(
                v.type for v in self.body.block.terminator.operands) != types:
            self.fail("initial values, arguments of the body and what it yields differ in type", code="MLC0152")
        return types

    def verify_op(self) -> None:
        super().verify_op()
        if self.dim < self.enclosing(Kernel).parallel:
            self.fail(f"d{self.dim} is no dimension for loops: it is parallel", code="MLC0152")
        outer = self.parent_op
        while isinstance(outer, For):
            if outer.dim == self.dim:
                self.fail(f"goes through d{self.dim}, and so does a loop around it", code="MLC0152")
            outer = outer.parent_op

    def interpret(self, frame: Frame) -> list[Any]:
        kernel = self.enclosing(Kernel)
        state = self.activation(frame)
        step = kernel.tile[self.dim]
        carried = frame.all(self.operands)
        shapes = [state.shape(v.type.dims) for v in self.operands]
        carried = [np.broadcast_to(c, s) for c, s in zip(carried, shapes)]
        for start in range(0, state.extents[self.dim], step):
            state.axis(self.dim, np.arange(start, start + step))
            carried = frame.run(self.body, carried)
        state.axis(self.dim, np.arange(step))
        return carried


COMBINERS: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b, "mul": lambda a, b: a * b, "max": arith._maximum, "min": arith._minimum,
    "or": lambda a, b: a | b, "and": lambda a, b: a & b,
    "maxu": lambda a, b: np.maximum(_unsigned(a), _unsigned(b)).view(a.dtype),
    "minu": lambda a, b: np.minimum(_unsigned(a), _unsigned(b)).view(a.dtype),
}
"""How a reduction combines two elements; `u` reads integers as unsigned."""


def _unsigned(a: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return a if a.dtype == bool else a.view(f"u{a.dtype.itemsize}")


class Reduce(_InKernel, name="loop.reduce"):
    """result[p] = x combined over the block of dimension dim, as a tree: halves are combined until one is left

    With n lanes: lane[i] = combine(lane[i], lane[i + n/2]) for i < n/2, then the same with n/2. n is a power of two.
    """

    x: Value
    dim: int
    kind: str
    enums = {"kind": tuple(COMBINERS)}

    def infer(self) -> Type:
        if self.dim not in _tile(self, self.x).dims:
            self.fail(f"{self.x.type} does not span d{self.dim}", code="MLC0151")
        return TileType(tuple(d for d in self.x.type.dims if d != self.dim), self.x.type.dtype)

    def verify_op(self) -> None:
        super().verify_op()
        lanes = dict(enumerate(self.enclosing(Kernel).tile)).get(self.dim, 1)
        if lanes & (lanes - 1):
            self.fail(f"blocks of {lanes} points of d{self.dim} are no power of two", code="MLC0151")

    def ref(self, x: Any) -> Any:
        combine = COMBINERS[self.kind]
        while (n := x.shape[self.dim]) > 1:
            low, high = np.split(x, [n // 2], axis=self.dim)
            x = combine(low, high)
        return x


class Fold(_InKernel, name="loop.fold"):
    """result[p] = acc[p] combined with x at each point of the block of dimension dim, in ascending order"""

    acc: Value
    x: Value
    dim: int
    kind: str
    enums = {"kind": tuple(COMBINERS)}

    def infer(self) -> Type:
        acc, x = _tile(self, self.acc), _tile(self, self.x)
        if acc.dtype != x.dtype or not {*x.dims} <= {*acc.dims, self.dim}:
            self.fail(f"{x} does not fold into {acc}", code="MLC0151")
        return acc

    def walked(self) -> set[int]:
        return {self.dim}

    def interpret(self, frame: Frame) -> Any:
        acc, x, state = frame[self.acc], frame[self.x], self.activation(frame)
        for k in range(int(state.inside((self.dim,)).sum())):
            acc = COMBINERS[self.kind](acc, np.take(x, [min(k, x.shape[self.dim] - 1)], axis=self.dim))
        return acc


class Contract(_InKernel, name="loop.contract"):
    """result[p] = acc[p] + sum over the block of dimension dim, ascending, of lhs * rhs: one fused multiply-add each"""

    acc: Value
    lhs: Value
    rhs: Value
    dim: int

    def infer(self) -> Type:
        acc, lhs, rhs = (_tile(self, v) for v in self.operands)
        if lhs.dtype != acc.dtype or rhs.dtype != acc.dtype:
            self.fail(f"{lhs} and {rhs} do not accumulate into {acc}", code="MLC0151")
        if not {*lhs.dims, *rhs.dims} <= {*acc.dims, self.dim}:
            self.fail(f"{acc} does not span what its factors do", code="MLC0151")
        return acc

    def walked(self) -> set[int]:
        return {self.dim}

    def interpret(self, frame: Frame) -> Any:
        acc, lhs, rhs = frame.all(self.operands)
        for k in range(int(self.activation(frame).inside((self.dim,)).sum())):
            a, b = (np.take(x, [min(k, x.shape[self.dim] - 1)], axis=self.dim) for x in (lhs, rhs))
            if isinstance(self.acc.type.dtype, FloatType):
                a, b, acc = np.broadcast_arrays(a, b, acc)
                acc = fma(a, b, acc)
            else:
                acc = acc + a * b
        return acc
