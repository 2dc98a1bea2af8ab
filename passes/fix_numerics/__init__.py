"""Fix the order and precision of arithmetic; the passes below preserve every bit.

takes  DECOMPOSED
gives  FIXED: every float reduction and contraction has an `order`; elementary functions are arithmetic
why    results are bitwise reproducible across machines, schedules and batch sizes

- A reduction that includes the last axis adds in L interleaved lanes, then by a tree: `lanes<L>`, in few lanes along
  several axes, as those of an image; any other, and one of two elements, adds in ascending order, one chain per result:
  `chain`; a contraction in chains of B terms: `blocks<B>`, and in lanes along the rows of a factor that is stored in 16
  bits or quantised: `lanes<LANES>`. A long sum adds in runs of RUN, so that its rounding error is close to that of
  pairwise summation: `lanes<L, RUN>`.
- A reduction along non-adjacent axes, or of very many elements, is split in two: one along some of the axes, or
  within blocks of an axis, and one of its results.
- These choices depend on the operation, its dtype and the lengths of the reduced axes, never on the number of rows,
  the batch size or the threads. A reduction that has an order keeps it.
- Products of integers with quantised rows add groups of numbers in ascending order (`dot_groups`); for GPUs, they add
  the products of pairs in lanes (`dot_blocks`), which threads can share.
- With products=mma, a product of 16-bit floats with a multiple of 16 terms runs on tensor cores: `mma<16, T>`. With
  products=tf32, so does one of f32 with a multiple of 8 terms, of which tensor cores use 10 mantissa bits:
  `mma<8, tf32>`. Their results differ bitwise from the other lowerings.
- With tiles, which processors with AMX have, a product of factors of bf16 with a multiple of 32 terms has the order of
  their instructions: `pairs<32>`. Its results, too, differ bitwise from the other lowerings. With byte_tiles, one of
  bytes with a multiple of 64 terms has `quads<64>`, and the bits of every other order. Other numbers of terms,
  from 16 on, are padded with zeros along their last axis; of bytes, and of several axes, with a third as many at most.
- exp, log, tanh, ... become `tensor.map`s of the polynomials in dialects/expansions.
- f16 and bf16 are computed in f32 and rounded once per operation; in a module with the attribute `excess_precision`
  not between two operations on elements (roundings.py).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeGuard

from mlc.dialects import arith, math
from mlc.dialects import tensor as tn
from mlc.dialects.builtin import EXCESS_PRECISION
from mlc.dialects.tensor.base import broadcast_to
from mlc.dialects.tensor.elementwise import Elementwise
from mlc.dialects.tensor.map import map_elements
from mlc.dialects.tensor.reduce import Reduce
from mlc.dialects.tensor.scatter import Scattering
from mlc.ir import sizes
from mlc.ir.core import Op, Value, before
from mlc.ir.diag import UserError
from mlc.ir.passes import Pass
from mlc.ir.sizes import Dim
from mlc.ir.types import FloatType, ScalarType, Type, bf16, f16, f32, f64, i8, i32, i64, ui8
from mlc.passes.fix_numerics.roundings import remove_roundings
from mlc.passes.forms import DECOMPOSED, FIXED


class Emitter:
    """`expansions.Arithmetic` on scalar IR values: each primitive is one operation of arith or math."""

    def bits(self, x: Value) -> int:
        return x.type.width  # type: ignore[no-any-return]

    def const(self, value: float, like: Value) -> Value:
        return arith.constant(value, f64 if like.type.width == 64 else f32)

    def iconst(self, value: int, like: Value) -> Value:
        width = like.type.width
        value &= (1 << width) - 1
        return arith.constant(value - (1 << width) if value >> (width - 1) else value, i64 if width == 64 else i32)

    def fma(self, a: Value, b: Value, c: Value) -> Value:
        return math.Fma(a, b, c).result

    def neg(self, a: Value) -> Value:
        return arith.NegF(a).result

    def abs(self, a: Value) -> Value:
        return math.AbsF(a).result

    def copysign(self, a: Value, b: Value) -> Value:
        return math.CopySign(a, b).result

    def sqrt(self, a: Value) -> Value:
        return math.Sqrt(a).result

    def roundeven(self, a: Value) -> Value:
        return math.RoundEven(a).result

    def fptosi(self, a: Value) -> Value:
        return arith.FPToSI(a, self._int(a)).result

    def sitofp(self, a: Value) -> Value:
        return arith.SIToFP(a, self._float(a)).result

    def bitcast_int(self, a: Value) -> Value:
        return arith.Bitcast(a, self._int(a)).result

    def bitcast_float(self, a: Value) -> Value:
        return arith.Bitcast(a, self._float(a)).result

    def extf(self, a: Value) -> Value:
        return arith.ExtF(a, f64).result

    def truncf(self, a: Value) -> Value:
        return arith.TruncF(a, f32).result

    def cmp(self, predicate: str, a: Value, b: Value) -> Value:
        return arith.CmpF(predicate, a, b).result

    def icmp(self, predicate: str, a: Value, b: Value) -> Value:
        return arith.CmpI(predicate, a, b).result

    def select(self, condition: Value, a: Value, b: Value) -> Value:
        return arith.Select(condition, a, b).result

    def _int(self, a: Value) -> Type:
        return i64 if a.type.width == 64 else i32

    def _float(self, a: Value) -> Type:
        return f64 if a.type.width == 64 else f32


def _binary(op: type[Op]) -> Callable[[Emitter, Value, Value], Value]:
    return lambda self, a, b: op(a, b).result


for _name, _op in {"add": arith.AddF, "sub": arith.SubF, "mul": arith.MulF, "div": arith.DivF, "iadd": arith.AddI,
                   "isub": arith.SubI, "shl": arith.ShLI, "lshr": arith.ShRUI, "ashr": arith.ShRSI,
                   "iand": arith.AndI, "ior": arith.OrI, "ixor": arith.XorI}.items():
    setattr(Emitter, _name, _binary(_op))


PRODUCTS = ("fma", "mma", "tf32")
"""Lowerings of matrix products; each includes the ones before it."""


def run(module: Op, products: str = "fma", lanes: bool = True, tiles: bool = False, byte_tiles: bool = False) -> None:
    """Rewrite every function of `module`; without `lanes`, which GPUs have no use for, products add in blocks alone,
    and those of integers as GPUs can share them. With `tiles`, products of bf16 add as AMX does; with `byte_tiles`,
    those of bytes."""
    if products not in PRODUCTS:
        raise UserError(f"pass fix_numerics: products={products}", code="MLC0333", hint="one of " + ", ".join(PRODUCTS))
    of_tiles = frozenset((bf16,) * tiles + (i8, ui8) * byte_tiles)
    for op in list(module.walk()):
        if op.parent is None or not op.name.startswith("tensor."):
            continue
        with before(op, op.loc.through("fix_numerics")):
            _widen(op, products, lanes, of_tiles)
        if op.parent is not None:
            _fix(op, products, lanes, of_tiles)
    if module.attrs.get(EXCESS_PRECISION):
        remove_roundings(module)


def is_expanded(op: Op) -> TypeGuard[Elementwise]:
    """Whether an elementwise operation is expanded: a function on floats without an instruction."""
    return isinstance(op, Elementwise) and op.has_expansion() and isinstance(op.results[0].type.dtype, FloatType)


def _fix(op: Op, products: str, lanes: bool, tiles: OfTiles) -> None:
    if isinstance(op, Reduce):
        if op.order is None:                         # keep an explicit order
            _reduce(op, lanes)
    elif isinstance(op, tn.Cumulative):
        op.attrs["order"] = "chain"
    elif isinstance(op, tn.DotGeneral):
        order = mma_order(op, products) if products != "fma" else tiles_order(op, tiles)
        if order is None and (products != "fma" or tiles):
            padded = padded_for_mma(op, products) if products != "fma" else padded_for_tiles(op, tiles)
            if padded is not None:
                op.replace_by(padded.result)
                return
        op.attrs["order"] = order or product_order(op, lanes)
    elif isinstance(op, tn.DotGroups) and not lanes:
        with before(op, op.loc.through("fix_numerics")):
            op.replace_by(op.in_lanes())
    elif is_expanded(op):
        with before(op, op.loc.through("fix_numerics")):
            op.replace_by(map_elements(op.operands, partial(op.expansion(), Emitter())))


def is_fixed(module: Op) -> bool:
    """Whether fix_numerics has run on a module; False if nothing in it depends on the pass."""
    decided = False
    for op in module.walk():
        if _is_narrow(op):
            return False
        if isinstance(op, Reduce | tn.DotGeneral | tn.Cumulative):
            if op.order is None or (
                    isinstance(op, tn.DotGeneral) and op.order not in (
                        product_order(op), product_order(op, False), mma_order(op, "tf32"), tiles_order(op))):
                return False
            decided = True
        elif is_expanded(op):
            return False
        decided = decided or isinstance(op, tn.Map)
    return decided


TERMS = 256
"""Terms of a product that are added sequentially: enough to be fast, few enough to bound the rounding error."""
TERMS_OF_I32 = 1 << 10
"""Terms of a product of i32 that are added sequentially."""


LANES = 32
"""Lanes of a product with a stored factor: as many as the smallest block of a quantised tensor has numbers."""


def product_order(op: tn.DotGeneral, lanes: bool = True) -> str:
    """`chain` for few terms and for integers, whose sums are associative, else `blocks<TERMS>`; for i32
    `blocks<TERMS_OF_I32>`, so that panels of bytes, whose sums these are, hold a whole block and stay in cache.

    `lanes<LANES>` if one factor, and not the other, is stored in fewer bits and its rows are summed: code that adds
    along a row widens it in place, and passes over memory once.
    """
    stored = [stored_rows(v, [pair[side] for pair in op.contract]) for side, v in enumerate(op.operands)]
    if lanes and op.result.type.dtype == f32 and stored.count(None) == 1:
        row, = (row for row in stored if row is not None)
        if isinstance(row, int) and row and row % LANES == 0:
            return f"lanes<{LANES}>"
    terms = sizes.product(op.lhs.type.shape[a] for a, _ in op.contract)
    dtype = op.result.type.dtype
    block = TERMS if isinstance(dtype, FloatType) else TERMS_OF_I32 if dtype == i32 else 0
    few = isinstance(terms, int) and terms <= TERMS
    return "chain" if few or not block else f"blocks<{block}>"


def stored_rows(factor: Value, contract: list[int]) -> Dim | None:
    """The length of the rows of a factor that is stored in fewer bits, 0 if they are not what is summed; None if the
    factor is not stored in fewer bits. It may be transposed on the way."""
    op = factor.op
    while isinstance(op, tn.Transpose):
        contract, op = [op.perm[a] for a in contract], op.x.op
    if not isinstance(op, tn.Cast | tn.Dequantize) or op.operands[0].type.dtype not in (f16, bf16, ui8):
        return None
    shape: tuple[Dim, ...] = op.results[0].type.shape
    return shape[-1] if contract == [len(shape) - 1] else 0


ROWS_OF_TILES = 4
"""Fewest rows, and columns, of a product of bytes on tiles."""
BLOCKS_OF_TILES = {bf16: 32, i8: 64, ui8: 64}
"""Terms that a row of a tile of AMX has, by the type of factors."""
BLOCK_OF_MMA = {"bf16": 16, "f16": 16, "tf32": 8}
"""Terms that a tensor core adds at a time."""


def mma_order(op: tn.DotGeneral, products: str) -> str | None:
    """`mma<K, T>` for f32 products of factors extended from T (for tf32, from any type) and whole blocks; else None."""
    terms = sizes.product(op.lhs.type.shape[a] for a, _ in op.contract)
    if not isinstance(terms, int) or not terms:
        return None
    return next((f"mma<{BLOCK_OF_MMA[kind]}, {kind}>" for kind in mma_kinds(op, products)
                 if terms % BLOCK_OF_MMA[kind] == 0), None)


OfTiles = frozenset[ScalarType]
"""The types of factors that tiles of a processor multiply."""


def tiles_order(op: tn.DotGeneral, tiles: OfTiles = frozenset(BLOCKS_OF_TILES)) -> str | None:
    """`pairs<32>` or `quads<64>`, those of tiles of AMX, for products of whole blocks of factors extended from types
    that the tiles multiply; else None."""
    block = block_on_tiles(op, tiles)
    terms = sizes.product(op.lhs.type.shape[a] for a, _ in op.contract)
    if not block or not isinstance(terms, int) or not terms or terms % block:
        return None
    return f"pairs<{block}>" if op.lhs.type.dtype == f32 else f"quads<{block}>"


def block_on_tiles(op: tn.DotGeneral, tiles: OfTiles) -> int:
    """The terms of a block of a product whose factors tiles may multiply, whatever its own terms are; else 0."""
    from_ = {v.op.operands[0].type.dtype for v in op.operands if isinstance(v.op, tn.Cast)}
    wide = f32 if from_ == {bf16} else i32 if bf16 not in from_ else None
    extended = all(isinstance(v.op, tn.Cast) for v in op.operands) and op.lhs.type.dtype == wide
    if not extended or not from_ <= tiles or (wide == i32 and is_of_few_rows(op)):
        return 0
    return BLOCKS_OF_TILES[from_.pop()]


def is_of_few_rows(op: tn.DotGeneral) -> bool:
    """Whether a product is known to have so few rows, or columns, that its bytes are not on tiles."""
    counts = [sizes.product(v.type.shape[a] for a in op.free(i)) for i, v in enumerate(op.operands)]
    return any(isinstance(n, int) and n < ROWS_OF_TILES for n in counts)


def mma_kinds(op: tn.DotGeneral, products: str) -> list[str]:
    """The types that tensor cores may take for the factors of a product, the best first, whatever its terms are."""
    from_ = {v.op.operands[0].type.dtype if isinstance(v.op, tn.Cast) else None for v in op.operands}
    if op.lhs.type.dtype != f32:
        return []
    kinds = [str(from_.pop())] if len(from_) == 1 and from_ <= {*_NARROW} else []
    return kinds + ["tf32"] * (products == "tf32")


WORTH_PADDING, STAGE = 128, 64
"""Fewest rows, columns and terms of a product whose terms are padded for tensor cores: as many as their kernels copy at
a time, so that every row of a factor starts at a multiple of 16 bytes."""


WORTH_TILES = 16
"""Fewest terms of a product that are padded for tiles of AMX."""
WORTH_ZEROS = 3
"""Terms of a product of bytes, or along the last of several axes, that there are at least for each zero."""


def padded_for_mma(op: tn.DotGeneral, products: str) -> tn.DotGeneral | None:
    """The same product of factors with zeros as further terms, if tensor cores only lack whole blocks; else None."""
    sides = [sizes.product(v.type.shape[a] for a in op.free(i)) for i, v in enumerate(op.operands)]
    many = all(isinstance(n, int) and n >= WORTH_PADDING for n in sides)
    made = _padded_terms(op, WORTH_PADDING, STAGE) if many and mma_kinds(op, products) else None
    if made is not None:
        made.attrs["order"] = mma_order(made, products)
    return made


def padded_for_tiles(op: tn.DotGeneral, tiles: OfTiles) -> tn.DotGeneral | None:
    """The same for tiles of AMX, for any rows and columns, from WORTH_TILES terms on: also that of windows, with more
    elements and channels of zeros."""
    block, terms = block_on_tiles(op, tiles), sizes.product(op.lhs.type.shape[a] for a, _ in op.contract)
    of_bytes = op.lhs.type.dtype == i32                    # whose bits are the same with other instructions
    if not block or not isinstance(terms, int) or (of_bytes and WORTH_ZEROS * (-terms % block) > terms):
        return None
    made = _padded_windows(op, block) or _padded_terms(op, WORTH_TILES, block)
    if made is not None:
        made.attrs["order"] = tiles_order(made, tiles)
    return made


def _padded_terms(op: tn.DotGeneral, fewest: int, block: int) -> tn.DotGeneral | None:
    """The same product with zeros up to whole blocks of terms along the last axis of them, if there are enough."""
    total = sizes.product(op.lhs.type.shape[a] for a, _ in op.contract)
    terms = op.lhs.type.shape[op.contract[-1][0]] if op.contract else None
    if not isinstance(total, int) or not total or not isinstance(terms, int) or total < fewest:
        return None
    counts = [-terms % block]
    if len(op.contract) > 1:                             # or rows of half a block, if all together are whole blocks
        counts = [n for n in (*counts, -terms % (block // 2)) if WORTH_ZEROS * n <= terms and (
            total // terms * (terms + n) % block == 0)]
    if not counts:
        return None
    with before(op, op.loc.through("fix_numerics")):
        made = type(op).make([_padded(v, {axis: counts[0]}) for v, axis in zip(op.operands, op.contract[-1])],
                             dict(op.attrs), None, segments=op.segments, loc=op.loc)
        assert op.parent is not None
        op.parent.insert(made, op)
    return made


def _padded_windows(op: tn.DotGeneral, block: int) -> tn.DotGeneral | None:
    """The same product of weights and windows of an image, the rows of which are longer, and have further channels, so
    that the terms of each row are whole blocks; None for other products, and for channels that are whole blocks."""
    windows: list[tn.Windows] = []
    source = op.rhs.op.operands[0].op if isinstance(op.rhs.op, tn.Cast) else None
    while isinstance(source, tn.Windows):
        windows.insert(0, source)
        source = source.x.op
    if not windows or len(op.contract) != len(windows) + 1 or len({w.axis for w in windows}) != len(windows):
        return None
    image, last, (row, channels) = windows[0].x, windows[-1], op.contract[-2:]
    size, count = last.size, op.rhs.type.shape[channels[1]]
    if row[1] != last.axis + 1 or channels[1] >= windows[0].axis or not isinstance(size, int) or (
            not isinstance(count, int) or image.type.shape[channels[1]] != count or windows != sorted(
                windows, key=lambda w: w.axis)):
        return None
    terms = sizes.product(op.rhs.type.shape[axis] for _, axis in op.contract)
    more, wider = sizes_of_rows(size, count, block)
    if (more, wider) == (size, count) or not isinstance(terms, int) or terms < WORTH_TILES:
        return None
    with before(op, op.loc.through("fix_numerics")):
        axis = last.axis - len(windows) + 1
        x = _with_zeros(image, {axis: (more - size) * last.dilation, channels[1]: wider - count})
        for w in windows:
            x = tn.Windows(x, w.axis, more if w is last else w.size, w.stride, w.dilation).result
        weights = _padded(op.lhs, {row[0]: more - size, channels[0]: wider - count})
        return tn.DotGeneral(weights, tn.Cast(x, dtype=op.rhs.type.dtype).result, op.batch, op.contract)


def sizes_of_rows(size: int, channels: int, block: int = BLOCKS_OF_TILES[bf16]) -> tuple[int, int]:
    """The elements of a row of a window and the channels, no fewer than these, that make whole blocks of terms, and as
    few as possible."""
    powers = {1 << i for i in range(block.bit_length())}
    found = [(more, wider) for wider in {channels, *(n for n in powers if n >= channels)}
             for more in range(size, size + block) if more * wider % block == 0]
    return min(found, key=lambda pair: (pair[0] * pair[1], pair[1]))


def _padded(factor: Value, counts: dict[int, int]) -> Value:
    """A factor with so many zeros at the end of axes: below the conversion that widens it, and below its repetition for
    the samples of a batch, if that has the axes as they are."""
    x = factor.op.operands[0] if isinstance(factor.op, tn.Cast) else factor
    inner = x.op.x if isinstance(x.op, tn.BroadcastTo) else x
    lead = x.type.rank - inner.type.rank
    if all(axis >= lead and inner.type.shape[axis - lead] == x.type.shape[axis] for axis in counts):
        padded = _with_zeros(inner, {axis - lead: n for axis, n in counts.items()})
        padded = broadcast_to(padded, tuple(n + counts.get(axis, 0) for axis, n in enumerate(x.type.shape)))
    else:
        padded = _with_zeros(x, counts)
    return tn.Cast(padded, dtype=factor.type.dtype).result if isinstance(factor.op, tn.Cast) else padded


def _with_zeros(x: Value, counts: dict[int, int]) -> Value:
    """A tensor with so many zeros at the end of axes."""
    none = (0,) * x.type.rank
    high = tuple(counts.get(a, 0) for a in range(x.type.rank))
    return x if high == none else tn.Pad(x, tn.Full(0, (), x.type.dtype).result, none, high, none).result


# -- reductions -------------------------------------------------------------------------------------------------------
LONG, BLOCK, ENOUGH, SHORT = 1 << 17, 1 << 14, 1 << 10, 1 << 6
"""Reductions of more than LONG elements are split into parts of at most BLOCK elements, at least SHORT, and ENOUGH if
whole axes have as many."""


def _reduce(op: Reduce, across: bool) -> None:
    """Assign an order to a reduction, or split it in two recursively."""
    with before(op, op.loc.through("fix_numerics")):
        x, axes, first = _parts(op)
        if not first:
            op.attrs["order"] = op.default_order(across)
            return
        inner = type(op)(x, first)
        kept = [a for a in range(x.type.rank) if a not in first]
        outer = type(op)(inner.result, tuple(i for i, a in enumerate(kept) if a in axes))
    op.replace_by(outer.result)
    _reduce(inner, across)
    _reduce(outer, across)


def _parts(op: Reduce) -> tuple[Value, tuple[int, ...], tuple[int, ...]]:
    """The value to reduce, the axes of the reduction, and those to reduce first, which are empty for no split.

    Of non-adjacent axes, the inner ones come first, since they are contiguous in memory, unless they are very short.
    """
    x, shape = op.x, op.x.type.shape
    axes = tuple(a for a in op.axes if shape[a] != 1)
    between = [a for a in range(x.type.rank) if a not in op.axes and shape[a] != 1]
    if x.type.rank - 1 not in op.axes or not axes:
        return x, op.axes, ()
    inner = tuple(a for a in axes if not any(b > a for b in between))
    outer = tuple(a for a in axes if a not in inner)
    if outer and inner:
        length = sizes.product(shape[a] for a in inner)
        return x, op.axes, outer if isinstance(length, int) and length < SHORT else inner
    return _blocks(op, axes)


def _blocks(op: Reduce, axes: tuple[int, ...]) -> tuple[Value, tuple[int, ...], tuple[int, ...]]:
    """The same for adjacent axes of many elements: whole axes, starting with the last, and blocks of the next one."""
    x, shape = op.x, op.x.type.shape
    total = sizes.product(shape[a] for a in axes)
    if not isinstance(total, int) or total <= LONG:
        return x, op.axes, ()
    length, first = 1, [*axes]
    while length * shape[first[-1]] <= BLOCK:
        length *= shape[first.pop()]
    axis, whole = first[-1], axes[len(first):]
    size = next(n for n in range(BLOCK // length, 0, -1) if shape[axis] % n == 0)
    if size * length < SHORT:
        return x, op.axes, ()
    if length >= ENOUGH or size == 1:
        return x, op.axes, whole
    blocked = tn.Windows(x, axis, size, size, 1).result
    moved = tuple(a + (a > axis) for a in op.axes)
    return blocked, tuple(sorted((*moved, axis + 1))), (axis + 1, *(a + 1 for a in whole))


_NARROW = (f16, bf16)


def _is_narrow(op: Op) -> bool:
    """Whether an operation does arithmetic on 16-bit floats; data movement and selection do not count."""
    return isinstance(op, Elementwise | Reduce | tn.DotGeneral | tn.Cumulative | Scattering) and any(
        v.type.dtype in _NARROW for v in op.operands)


def _widen(op: Op, products: str, lanes: bool, tiles: OfTiles) -> None:
    """Compute an operation on 16-bit floats in f32."""
    if not _is_narrow(op):
        return
    wide = [tn.Cast(v, dtype=f32).result if v.type.dtype in _NARROW else v for v in op.operands]
    result = op.results[0].type
    copy = type(op).make(wide, dict(op.attrs), None, segments=op.segments, loc=op.loc)
    assert op.parent is not None
    op.parent.insert(copy, op)
    wide_result = copy.results[0]
    narrow = tn.Cast(wide_result, dtype=result.dtype).result if result.dtype in _NARROW else wide_result
    op.replace_by(narrow)
    _fix(copy, products, lanes, tiles)


PASS = Pass(run, takes=DECOMPOSED, gives=FIXED)
