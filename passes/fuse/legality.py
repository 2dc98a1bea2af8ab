"""Legality and profitability of merging fusion groups."""

from __future__ import annotations

from collections.abc import Iterable

from mlc.dialects import tensor as tn
from mlc.dialects.tensor.iteration import IterationDomain
from mlc.dialects.tensor.orders import lanes_of_product, order_of, terms_of_pairs, terms_of_tiles
from mlc.dialects.tensor.packed import panels_of
from mlc.dialects.tensor.reduce import Reduce
from mlc.dialects.tensor.traits import is_cheap, is_read_as_it_lies, moves_elements
from mlc.ir import sizes
from mlc.ir.core import Op, Value
from mlc.ir.types import ScalarType, bf16
from mlc.passes.fuse.graph import FusionGraph, Group
from mlc.passes.fuse.pieces import moved_in_pieces

FEW_ROWS, LONG_ROW = 16, 32768
"""Fewer and longer reduction slices than these are better parallelized within the slice, by separate kernels."""
FAR_ROW = 1024
"""Longest strided slice, one element per cache line, of which a tile stays in cache between stages."""
PACKED_ROWS = 16
"""Fewest rows of a contraction for which its other factor is packed into panels, in a tile of registers twice."""
MANY_COLUMNS = 1024
"""Columns from which on the rows of a product on tiles are rounded before it: several tasks would round them anew."""
FEW_OPERANDS = 4
"""Most operands of a concatenation that a contraction reads in pieces."""
SHORT_ROW = 8
"""Shorter slices leave most lanes of a vector empty."""


class Legality:
    """Reasons against merging two groups, or None. They are recorded on kernels, for diagnostics."""

    def __init__(self, graph: FusionGraph, max_ops: int, narrow: frozenset[ScalarType] = frozenset()) -> None:
        self.graph = graph
        self.copied = {value.op for op in graph.block if isinstance(op, tn.Blockwise)
                       for i in range(op.copied) if (value := moved_in_pieces(op, i)[1]).op is not None}
        self.max_ops = max_ops
        self.narrow = narrow

    def is_read_in_words(self, op: Op) -> bool:
        """Whether an operation is a product of narrow numbers, such as bf16, of many rows and columns, which multiplies
        several terms at a time, or moves or widens elements for such products alone."""
        if not self.narrow:
            return False
        if isinstance(op, tn.DotGeneral):
            types = [widened_from(v) for v in op.operands]
            if terms_of_tiles(order_of(op)) is not None:
                return True                              # a product of any size reads bf16, or bytes
            return not order_of(op).startswith("mma<") and self.narrow.issuperset(types) and (
                types[0] == bf16 or types[0] != types[1]) and not any(reads_few_rows(op, v) for v in op.operands)
        return (moves_elements(op) and not isinstance(op, tn.Pack) and not is_done_before_tensor_cores(op)
                and bool(op.results[0].uses) and all(self.is_read_in_words(user) for user in op.results[0].users))

    def why_not_share(self, producer: Group, consumer: Group) -> str | None:
        """Why two groups cannot share a loop."""
        if why := self.why_not_computed_with(producer, consumer):
            return why
        home, guest = (consumer, producer) if producer.kind == "pointwise" else (producer, consumer)
        if why := self.why_not_together(home, guest):
            return why
        for op, own in consumer.ops.items():
            at = home.domain.map_of(op.results[0].type.shape) if own is not None else None
            for s, read in self.graph.reads(op, at, home.domain):
                if self.graph.group_of[s] is not producer:         # possibly a loop with scalar results
                    continue
                there = home.domain.map_of(s.results[0].type.shape)
                at_own = read == there or (home.kind == "reduce" and there == home.domain.points
                                           and read == home.domain.in_slice)
                if producer.ops[s] is None or there is None or not at_own:
                    return "it reads other elements than its own"
        if self.graph.between(producer, consumer):
            return "another kernel runs between them"
        return self.why_not_epilogue(home, guest) or self.why_not_stages(home, guest)

    def why_not_computed_with(self, producer: Group, consumer: Group) -> str | None:
        """Why the kernel that computes a factor should not prepare it for tensor cores, nor widen it for a sum, or
        computes no blocks, and why functions are not computed of numbers, as those that a contraction adds in lanes
        are, but of vectors."""
        if any(map(is_read_as_it_lies, producer.ops)):
            return "blocks are read from memory as they lie"
        for one, other in ((producer, consumer), (consumer, producer)):
            if any(map(adds_in_lanes, one.ops)) and not all(map(is_cheap, other.ops)):
                return "sums of lanes are no vectors, of which a function costs less"
        if consumer.kind == "contract":
            return None
        for wanted, reader in ((is_read_by_tensor_cores, "tensor cores read their factors"),
                               (self.is_read_in_words, "products of narrow numbers read their factors"),
                               (is_widened_for_reduction, "sums read narrow numbers")):
            if all(map(wanted, consumer.ops)) and not all(map(wanted, producer.ops)):
                return f"{reader} as they are in memory"
        return None

    def why_not_epilogue(self, home: Group, guest: Group) -> str | None:
        """Why `guest` should not be an epilogue that reads further tensors: a contraction with short rows has strided
        vectors, and strided reads cost more than another kernel.
        """
        length = home.domain.shape[-1] if home.kind == "contract" and home.domain.shape else 0
        if not isinstance(length, int) or not 1 < length < SHORT_ROW or any(map(has_columns, home.ops)):
            return None
        own = any(v.op not in home.ops for v in self.graph.inputs(guest))
        return f"rows of {length} are too short to read beside a contraction" if own else None

    def why_not_together(self, home: Group, guest: Group) -> str | None:
        """Why the operations of `guest` cannot be evaluated in the domain of `home`."""
        if guest.kind == "pointwise" and home.domain.map_of(guest.domain.shape) is None:
            return f"the domains differ: {guest.extents} and {home.extents}"
        if guest.kind != "pointwise" and (
                home.kind != "reduce" or guest.kind != "reduce" or home.domain != guest.domain):
            return f"both have a loop of their own ({home.kind} and {guest.kind})"
        if home.kind == "scatter":
            return "a scatter is over when all updates are there"
        if home.kind == "scan" and self.has_results_of_slices(home, guest):
            return "a scan gives an element for each point, and the other one has one for a slice"
        if _is_updated(home, guest) or _is_updated(guest, home):
            return "updates of one tensor are done in place"
        if len(home.orders | guest.orders) > 1:
            return "they add in different orders"
        if home.work + guest.work > self.max_ops:
            return f"the kernel would have more than {self.max_ops} operations"
        return None

    def has_results_of_slices(self, home: Group, guest: Group) -> bool:
        """Whether an operation of `guest` has an element for each slice of `home`, and is read elsewhere, too."""
        return any(not home.domain.has_all_points(op.results[0].type.shape) and any(
            user not in home.ops and user not in guest.ops for user in self.graph.readers(op)) for op in guest.ops)

    def why_not_stages(self, home: Group, guest: Group) -> str | None:
        """Why a kernel with several stages, or with stores at every point of its slices, does not pay off."""
        domain, ops = home.domain, {**home.ops, **guest.ops}
        if home.kind != "reduce" or not self.has_stages(domain, ops):
            return None
        rows, length = sizes.product(domain.slices), sizes.product(domain.shape[a] for a in domain.reduced)
        if isinstance(rows, int) and isinstance(length, int) and rows < FEW_ROWS and length > LONG_ROW:
            return f"{rows} rows of {length} are too few"
        if home.across:
            return None if isinstance(length, int) and length <= FAR_ROW else f"rows of {length} lie across memory"
        return f"rows of {length} are too short" if isinstance(length, int) and length < SHORT_ROW else None

    def has_stages(self, domain: IterationDomain, ops: Iterable[Op]) -> bool:
        """Whether a kernel of `ops` uses a reduction at the points of its slice, or stores at every point."""
        inside = set(ops)
        for op in inside:
            at = domain.map_of(op.results[0].type.shape)
            if at is None or (domain.is_of_slice(at) and not isinstance(op, Reduce)):
                continue
            if not isinstance(op, Reduce) and any(user not in inside for user in self.graph.readers(op)):
                return True
            if any(s in inside and domain.is_of_slice(read) for s, read in self.graph.reads(op, at, domain)):
                return True
        return False

    def why_not_absorb(self, producer: Group, consumer: Group) -> str | None:
        """Why the consumer cannot recompute the producer's elements where it reads them."""
        if producer.kind != "pointwise":
            return f"a {producer.kind} is evaluated once"
        if _is_updated(producer, consumer):
            return "updates of one tensor are done in place"
        if why := self.why_not_computed_with(producer, consumer):
            return why
        if any(isinstance(op, tn.DotBlocks | tn.DotGroups) for op in consumer.ops):
            return "a product reads its factors many times"
        if any(isinstance(op, tn.Unpack) and are_panels(op.x) and op.x.op in producer.ops for op in consumer.ops):
            return "panels are read as they lie in memory"
        if not self.copied.isdisjoint(producer.ops):
            return "attention copies its operands as they are in memory"
        if consumer.kind == "contract" and not all(moves_elements(op) for op in producer.ops) and any(
                self.graph.group_of[s] is producer for op in consumer.ops if isinstance(op, tn.DotGeneral) or (
                    self.is_read_in_words(op)) for v in op.operands for s in self.graph.sources(v)):
            return "a contraction reads its factors many times"
        if any(is_done_before(op, user) for op in producer.ops for user in self.graph.readers(op)
               if self.graph.group_of.get(user) is consumer):
            return "a matrix unit reads its factors many times"
        if any(isinstance(op, tn.Windows | tn.DotGeneral) for op in consumer.ops) and any(
                is_below_copies(op) for op in producer.ops):
            return "a contraction reads its elements at several places"
        for op in producer.ops:
            for user in self.graph.readers(op):
                if self.graph.leaves(user) or self.graph.group_of.get(user) is not consumer:
                    return "its value is needed elsewhere too"
        if self.graph.read_count(producer, consumer) * producer.work + consumer.work > self.max_ops:
            return f"the kernel would have more than {self.max_ops} operations"
        users = {user for op in producer.ops for user in self.graph.readers(op)}
        repeats = any(len(list(self.graph.readers(op))) > 1 for op in producer.ops) or any(    # maybe at two
            sizes.product(producer.domain.shape) != self.graph.points(consumer, user) for user in users)
        staged = consumer.kind == "reduce" and self.has_stages(consumer.domain, consumer.ops)
        if (repeats or staged) and not all(is_cheap(op) for op in producer.ops):
            return "it would be computed more than once"
        return None


def _is_updated(producer: Group, consumer: Group) -> bool:
    """Whether an update in a group is of the result of one in another: both write their pieces only."""
    return any(isinstance(op, tn.DynamicUpdateSlice) and isinstance(op.x.op, tn.DynamicUpdateSlice)
               and op.x.op in producer.ops for op in consumer.ops)


def is_below_copies(op: Op) -> bool:
    """Whether a contraction reads each element of `op` several times, which is then materialized before it.

    Those are elements of windows and broadcasts. Padding is materialized for contractions of few rows, and for those
    whose other factor is in panels: they read it element by element, while others pack what they read. Rows that are
    taken from a table are materialized for the latter, as each panel reads them anew. A concatenation of many operands,
    each of which is asked for whether it has an element, is materialized before every contraction, and so are panels.
    """
    if isinstance(op, tn.Concat):
        return len(op.xs) > FEW_OPERANDS
    if isinstance(op, tn.Pack):
        return are_panels(op.result)
    if not isinstance(op, tn.Transpose | tn.Reverse | tn.Pad | tn.Take):
        return False
    work: list[tuple[Value, bool]] = [(op.results[0], isinstance(op, tn.Take))]
    while work:
        value, several = work.pop()
        for user in value.users:
            if isinstance(user, tn.DotGeneral) and several and (
                    not isinstance(op, tn.Pad | tn.Take) or reads_elements(user, value)
                    or (isinstance(op, tn.Pad) and reads_few_rows(user, value))):
                return True
            if moves_elements(user):
                work.append((user.results[0], several or isinstance(user, tn.Windows | tn.BroadcastTo)))
    return False


def are_panels(x: Value) -> bool:
    """Whether a tensor has elements in panels, as a product reads them."""
    return isinstance(x.op, tn.Pack) and any(isinstance(user, tn.Unpack) for user in x.users)


def is_done_before_tensor_cores(op: Op) -> bool:
    """Whether an operation on a factor of a product on tensor cores is done once, before the product, which copies the
    factor to shared memory without registers then: rounding to fewer bits, so that there is half as much to copy, and
    padding, except that of a convolution, whose windows would be stored."""
    if isinstance(op, tn.Pad):
        return all(isinstance(user, tn.Cast | tn.Transpose | tn.DotGeneral) for user in op.result.users)
    return isinstance(op, tn.Cast) and bool(op.result.type.dtype.width < op.operands[0].type.dtype.width)


def is_done_before(op: Op, reader: Op) -> bool:
    """Whether an operation on a factor is done once, before the product that `reader` is, or moves elements for: on
    tensor cores, or on tiles if it rounds the rows for many columns, as rows of bf16 are multiplied where they lie, or
    pads one of several axes of terms."""
    if not is_done_before_tensor_cores(op):
        return False
    if isinstance(op, tn.Pad) and is_padded_for_tiles(op.result, reader):
        return True
    return is_read_by_tensor_cores(reader) or (
        isinstance(op, tn.Cast) and not is_repeated(op.x) and are_rows_of_tiles(op.result, reader))


def are_rows_of_tiles(x: Value, reader: Op) -> bool:
    """Whether a reader of x is a product of bf16 on tiles whose rows x has, with MANY_COLUMNS of the other factor, or
    moves or widens elements for such products alone."""
    if isinstance(reader, tn.DotGeneral):
        columns = sizes.product(reader.rhs.type.shape[axis] for axis in reader.free(1))
        last = x.type.rank - 1 in [axis for axis, _ in reader.contract]
        return terms_of_pairs(order_of(reader)) is not None and reader.lhs is x and last and (
            isinstance(columns, int) and columns >= MANY_COLUMNS)
    return moves_elements(reader) and not isinstance(reader, tn.Pack | tn.Pad) and bool(reader.results[0].uses) and all(
        are_rows_of_tiles(reader.results[0], user) for user in reader.results[0].users)


def is_padded_for_tiles(x: Value, reader: Op) -> bool:
    """Whether a reader of x, which is padded, is a product of bf16 on tiles with terms along several axes, which are
    packed by vectors if none is masked; it may be widened or transposed before."""
    if isinstance(reader, tn.DotGeneral):
        return terms_of_pairs(order_of(reader)) is not None and len(reader.contract) > 1
    return isinstance(reader, tn.Cast | tn.Transpose) and bool(reader.result.uses) and all(
        is_padded_for_tiles(reader.result, user) for user in reader.result.users)


def is_repeated(x: Value) -> bool:
    """Whether elements that x moves are at several of its places: there are fewer of them below."""
    while x.op is not None and moves_elements(x.op):
        if isinstance(x.op, tn.Windows | tn.BroadcastTo):
            return True
        x = x.op.operands[0]
    return False


def is_read_by_tensor_cores(op: Op) -> bool:
    """Whether an operation is a product on tensor cores, or moves or widens elements for such products alone: that
    costs nothing in their kernels, and elsewhere the wider elements would be stored."""
    if isinstance(op, tn.DotGeneral):
        return order_of(op).startswith("mma<")
    return moves_elements(op) and not is_done_before_tensor_cores(op) and bool(op.results[0].uses) and all(
        is_read_by_tensor_cores(user) for user in op.results[0].users)


def is_widened_for_reduction(op: Op) -> bool:
    """Whether an operation widens elements that only a reduction reads. In its kernel that costs nothing; with what
    computes the elements, the wider ones would be stored if the kernels stay apart."""
    return isinstance(op, tn.Cast) and bool(op.result.type.dtype.width > op.x.type.dtype.width) and [
        isinstance(user, Reduce) for user in op.result.users] == [True]


def widened_from(factor: Value) -> ScalarType | None:
    """The type from which a factor is extended, and then only moved; None if it is computed otherwise."""
    op = factor.op
    while op is not None and moves_elements(op) and not isinstance(op, tn.Cast):
        op = op.operands[0].op
    return op.operands[0].type.dtype if isinstance(op, tn.Cast) else None


def reads_few_rows(op: tn.DotGeneral, factor: Value) -> bool:
    """Whether the other factor of a contraction has so few rows that this one is not packed."""
    side = 1 if op.lhs is factor else 0
    shape = (op.lhs, op.rhs)[side].type.shape
    rows = sizes.product(shape[axis] for axis in op.free(side))
    return isinstance(rows, int) and rows < PACKED_ROWS


def reads_elements(op: tn.DotGeneral, factor: Value) -> bool:
    """Whether a contraction reads a factor where it is, as the other one is in panels of columns: element by element,
    or word by word, bytes whose columns are in words, or tile by tile, if blocks of terms lie along an axis. A word of
    bf16 that is no part of a tile has its elements in the other order."""
    other = op.rhs if op.lhs is factor else op.lhs
    panels = panels_of(other, widened=True)
    if panels_of(other) is not None or panels is None:
        return panels is not None
    if op.order is not None and (block := terms_of_tiles(op.order)) is not None:
        rows = [factor.type.shape[pair[op.rhs is factor]] for pair in op.contract[-2:]]
        return sizes.modulo(sizes.product(rows), block) == 0 or sizes.modulo(rows[-1], block) == 0
    return isinstance(panels.x.op, tn.Unpack) and panels.x.type.dtype.width == 8


def adds_in_lanes(op: Op) -> bool:
    """Whether an operation is a contraction that adds its terms in lanes."""
    return isinstance(op, tn.DotGeneral) and lanes_of_product(op) > 1


def has_columns(op: Op) -> bool:
    """Whether an operation is a contraction whose vectors are of columns in panels, and not of its result's rows."""
    return isinstance(op, tn.DotGeneral) and any(panels_of(v, widened=True) for v in op.operands)
