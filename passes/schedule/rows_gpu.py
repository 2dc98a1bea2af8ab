"""The schedule of reductions along rows, whose lanes are threads, and along columns, and of what uses their results.

Memory is busy if enough loads are in flight, and is read once if a thread keeps its part of the row in registers. So
groups of threads share a long row, a thread takes several blocks at a time, and several rows if they are short. Every
choice preserves the order in which lanes add.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from mlc.dialects import loop
from mlc.dialects.combining import CombiningKind
from mlc.dialects.loop import For, Kernel, ScratchType
from mlc.dialects.tensor.reduce import RUN
from mlc.ir import sizes
from mlc.ir.affine import AffineMap
from mlc.ir.core import Op, Value, before
from mlc.ir.machine import WARP, Gpu
from mlc.ir.sizes import Dim, product
from mlc.ir.types import i1
from mlc.passes.schedule.extents import ceil
from mlc.passes.schedule.transforms import record, tile

THREADS, SHARED_BY = 512, 4
"""Most threads of a row that is kept, and groups of threads of a row of unknown length."""
KEPT, OTHERS, CODE = 66, 31, 12288
"""Most registers of a thread for its part of a row, registers for everything else, and most operations of its code."""
AT_ONCE, STORING, FEWEST, BATCH = 32, 8, 4, 512
"""Most loads in flight of a thread, most blocks at a time of a loop that also stores, blocks at a time if registers are
scarce, and most operations of a batch of blocks."""
SHORT, RESIDENT = 8, 16
"""Elements of a thread to aim for, and CTAs of a multiprocessor without which rows stay apart."""
SECTOR = 32
"""Bytes that are read from memory at least."""
SIMPLE = (loop.Load, loop.Store, loop.Map, loop.Fold, loop.FoldFma, loop.Index, loop.Full, loop.InBounds,
          loop.LoadScratch, loop.StoreScratch)
"""Operations of loops whose blocks are independent but for what they carry."""
CTAS, PLENTY = 2, 48
"""Fewest CTAs of a multiprocessor to aim for, as one computes and stores while another one loads, and registers beside
those of a row that are plenty: more would be at the expense of CTAs."""


def schedule_rows(kernel: Kernel, machine: Gpu) -> None:
    """Schedule a kernel whose vector dimension has a thread per lane."""
    d = kernel.schedule.vector
    lanes, extent = kernel.schedule.tile[d], kernel.domain[d]
    tile(kernel, d, lanes, vector=True, lanes=1)
    kernel.reschedule(tiles_per_cta=1)
    loops = [op for op in kernel.inside(For) if op.dim == d]
    if extent == 0 or not all(map(is_independent, loops)):
        return
    for op in loops:
        in_runs(op)
    shared = all(op.run == RUN for op in loops if op.operands)
    if not isinstance(extent, int):
        if shared:
            share_rows(kernel, SHARED_BY)
        unroll_rows(kernel, d, at_once(kernel, d, AT_ONCE // 2, [KEPT] * len(loops)))
        return
    runs = max(1, -(-(extent // lanes) // RUN)) if shared else 1
    most = THREADS // lanes
    groups = balanced(fitting(kernel, runs if runs <= most else 1 << (most.bit_length() - 1), lanes, machine), runs)
    points = (RUN * -(-runs // groups) if groups > 1 else extent // lanes) + (extent % lanes > 0)
    code = sum(sum(1 for _ in op.walk()) for op in loops) * points
    rows = Rows(kernel)
    ctas = rows.place(lanes * groups, points, machine) if code <= CODE else 0
    if not ctas and runs >= 2 * groups and fitting(kernel, 2 * groups, lanes, machine) == 2 * groups:
        groups = balanced(2 * groups, runs)              # what is read again should not have left the cache
    if groups > 1:
        share_rows(kernel, groups)
    if ctas:
        keep_rows(kernel, rows.all, ctas)
    room = machine.registers // (lanes * groups * ctas) - OTHERS if ctas else KEPT
    unroll_rows(kernel, d, at_once(kernel, d, AT_ONCE, [room - points * rows.held(i) for i in range(len(loops))]))
    several_rows(kernel, SHORT // max(1, points), machine)


def balanced(groups: int, runs: int) -> int:
    """The fewest groups that take as many turns: with 16 groups for 25 runs, 7 would wait in the second turn.

    More than RUN runs have turns of their own for each RUN of them, whose buffers only powers of two alternate.
    """
    return ceil(runs, ceil(runs, groups)) if runs <= RUN else groups


def schedule_columns(kernel: Kernel, machine: Gpu, threads: int) -> None:
    """Schedule a kernel in which a thread reduces a column, of which groups of threads share the runs if it has few."""
    d = kernel.parallel
    loops = [op for op in kernel.inside(For) if op.dim == d]
    kernel.reschedule(tiles_per_cta=threads)
    if kernel.shared_dim != d or not all(op.step == 1 and is_independent(op) for op in kernel.inside(For)):
        return
    unroll_rows(kernel, d, at_once(kernel, d, AT_ONCE, [KEPT] * len(loops)))
    total, extent = product(kernel.domain[:d]), kernel.domain[d]
    columns = columns_of_cta(kernel, total, machine)
    most = min(THREADS // columns, RUN)                  # RUN runs are combined before there are more
    groups = min(most, extent // RUN) if isinstance(extent, int) else SHARED_BY
    enough = isinstance(total, int) and total >= machine.multiprocessors * THREADS
    if enough or sizes.modulo(total, columns) != 0 or groups < 2:
        return
    for op in loops:
        in_runs(op)
    if not all(op.run == RUN for op in loops if op.operands):
        return
    groups = fitting(kernel, 1 << (groups.bit_length() - 1), columns, machine)
    if groups > 1:
        kernel.reschedule(tiles_per_cta=columns)
        share_rows(kernel, groups)


def columns_of_cta(kernel: Kernel, total: Dim, machine: Gpu) -> int:
    """Columns that a CTA reduces: those of a warp, or fewer if there are multiprocessors left, down to a sector. Then
    each has more groups of threads, which have fewer turns, each as long as memory takes to answer."""
    inside = [op for op in kernel.inside(loop.Load) if kernel.parallel - 1 in op.bounded_dims()]
    least = SECTOR // min((op.buffer.type.dtype.itemsize for op in inside), default=1)
    columns = WARP
    while isinstance(total, int) and columns > least and total // columns < machine.multiprocessors:
        columns //= 2
    return columns


def fitting(kernel: Kernel, groups: int, threads: int, machine: Gpu) -> int:
    """As many groups of threads, up to a number, as can exchange what a kernel carries in half of the shared memory."""
    words = sum(2 * threads * v.type.dtype.itemsize for op in kernel.inside(For) for v in op.operands)
    while groups > 1 and groups * words > machine.most_shared // 2:
        groups //= 2
    return groups


def is_independent(op: For) -> bool:
    """Whether no block of a loop reads what another one writes, and none writes what another one does."""
    inside = [inner for inner in op.body.block if not inner.terminator]
    stores = [inner for inner in inside if isinstance(inner, loop.Store)]
    if not isinstance(op.parent_op, Kernel) or not all(isinstance(inner, SIMPLE) for inner in inside):
        return False
    return all(op.dim in store.map.used_dims and not store.tiles and all(
        load.map == store.map and not load.tiles for load in inside
        if isinstance(load, loop.Load) and load.buffer is store.buffer) for store in stores)


def share_rows(kernel: Kernel, groups: int) -> None:
    """Let several groups of threads share a row: they take turns with its runs."""
    kernel.reschedule(groups_per_tile=groups, blocks_per_group=RUN)
    record(kernel, "share_rows", groups=groups, blocks=RUN)


def in_runs(op: For) -> None:
    """Reduce in runs what does not depend on the order, so that threads can share it."""
    if op.run or not op.operands:
        return
    kinds = []
    for arg, end, result in zip(op.body.block.args, op.body.block.terminator.operands, op.results):
        kind = combining_kind(arg, end, result)
        if kind is None or not CombiningKind(kind).is_associative(arg.type.dtype):
            return
        kinds.append(kind)
    op.run, op.kinds = RUN, tuple(kinds)


def combining_kind(arg: Value, end: Value, result: Value) -> str | None:
    """The kind by which a loop combines a carried tile with one more of each block, if it does nothing else with it."""
    combining = end.op
    if len(arg.users) != 1 or arg.users[0] is not combining:
        return None
    if isinstance(combining, loop.Fold):
        return combining.kind if combining.acc is arg else None
    used = {user.kind if isinstance(user, loop.Reduce) else None for user in result.users}
    alone = isinstance(combining, loop.Map) and len(combining.body.block.ops) == 2
    return used.pop() if alone and len(used) == 1 else None


# -- rows in registers ------------------------------------------------------------------------------------------------
Place = tuple[Value, AffineMap]
"""A buffer, and the element of it that a point accesses."""


@dataclass
class Kept:
    """A tile that a loop loads, stores or computes, and the loads of later loops that give the same."""

    tile: Value
    op: Op
    first: int
    last: int
    loads: list[Op] = field(default_factory=list)
    overwritten: bool = False                            # whether the first loop need not store it
    place: str = ""                                      # registers, shared or, if it is not kept, nothing

    @property
    def words(self) -> int:
        width: int = self.tile.type.dtype.width
        return -(-width // 32)


class Rows:
    """The rows that a kernel accesses in several loops."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel, self.d = kernel, kernel.schedule.vector
        self.loops = loops_over(kernel, self.d)
        self.all: list[Kept] = []
        known: dict[Place, Kept] = {}
        for number, op in enumerate(self.loops):
            for access in op.body.block:
                if isinstance(access, loop.Load) and self.is_whole(access):
                    self.load(access, number, known)
                elif isinstance(access, loop.Store):
                    self.store(access, number, known)
                elif isinstance(access, loop.StoreScratch):
                    self.scratch(access, number)
        self.all = [row for row in self.all if row.loads]

    def is_whole(self, access: loop.Load | loop.Store) -> bool:
        """Whether every point accesses an element of its own, whatever the values are; what all rows share, such as
        weights, is in the cache."""
        dims = access.bounded_dims()
        if not all(d in dims or self.kernel.domain[d] == 1 for d in range(self.kernel.parallel)):
            return False
        value = access.value if isinstance(access, loop.Store) else access.result
        return access.mask is None and not access.tiles and self.d in dims and value.type.dims == dims and (
            value.type.dtype != i1)

    def load(self, op: loop.Load, number: int, known: dict[Place, Kept]) -> None:
        place = op.buffer, op.map
        found = known.get(place)
        if found is None:
            known[place] = Kept(op.result, op, number, number)
            self.all.append(known[place])
        elif found.first < number and found.tile.type == op.result.type:
            found.last = number
            found.loads.append(op)

    def store(self, op: loop.Store, number: int, known: dict[Place, Kept]) -> None:
        place, whole = (op.buffer, op.map), self.is_whole(op)
        before = known.get(place)
        if whole and before is not None and before.op.name == op.name and before.first < number:
            before.overwritten = not any(
                isinstance(user, loop.Load) and user not in before.loads and self.number(user) <= number
                for user in op.buffer.users)
        for other in [p for p in known if p[0] is op.buffer]:
            del known[other]
        if whole:
            known[place] = Kept(op.value, op, number, number)
            self.all.append(known[place])

    def scratch(self, op: loop.StoreScratch, number: int) -> None:
        """Note a scratch buffer, which has a row that a loop computes for later ones."""
        users = [user for user in op.scratch.users if user is not op]
        made = op.scratch.op
        if made is not None and made.parent_op is self.kernel and self.d in op.scratch.type.dims and all(
                isinstance(user, loop.LoadScratch) and user.parent_op in self.loops for user in users):
            self.all.append(Kept(op.value, op, number, max(map(self.number, users), default=0), users))

    def number(self, op: Op) -> int:
        """The number of the loop that an access is in; outside of loops it may be anywhere."""
        around = op.parent_op
        return self.loops.index(around) if around in self.loops else 0

    def place(self, threads: int, points: int, machine: Gpu) -> int:
        """Choose where the rows are kept; returns how many CTAs a multiprocessor then holds at least, 0 for no rows."""
        for ctas in (CTAS, 1):
            registers = min(KEPT, machine.registers // (threads * ctas) - (OTHERS if ctas > 1 else PLENTY)) // points
            left = machine.most_shared - exchanged(self.kernel, threads)
            for row in self.all:
                taken = threads * points * row.tile.type.dtype.itemsize
                row.place = "registers" if self.live(row) <= registers else "shared" if taken <= left else ""
                left -= taken if row.place == "shared" else 0
            if all(row.place for row in self.all):
                break
        if not any(row.place for row in self.all):
            return 0
        most = max(self.live(row) for row in self.all if row.place) * points
        return max(ctas, min(RESIDENT, machine.registers // (threads * (most + PLENTY))))

    def held(self, number: int) -> int:
        """The words of a point that are in registers when a loop starts."""
        return sum(row.words for row in self.all if row.place == "registers" and row.first < number <= row.last)

    def live(self, row: Kept) -> int:
        """The most words of a point that are in registers while a row is, if it is too."""
        before = self.all[: self.all.index(row)]
        return row.words + max((sum(k.words for k in before if k.place == "registers" and k.first <= i < k.last)
                                for i in range(row.first, row.last)), default=0)


def exchanged(kernel: Kernel, threads: int) -> int:
    """Bytes of shared memory for what groups, and then lanes, exchange, in buffers of 16 bytes each."""
    d = kernel.schedule.vector
    sizes = [v.type.dtype.itemsize for op in loops_over(kernel, d) for v in op.operands]
    return sum(2 * threads * size + kernel.schedule.tile[d] * size + 32 for size in sizes)


def keep_rows(kernel: Kernel, rows: Sequence[Kept], ctas: int) -> None:
    """Keep what a loop loads or computes for those after it, in registers or in shared memory."""
    d = kernel.schedule.vector
    for row in rows:
        if isinstance(row.op, loop.StoreScratch):
            made = row.op.scratch.op
            assert isinstance(made, loop.Scratch)
            made.registers = row.place == "registers"
        elif row.place:
            keep_row(kernel, row, d)
    kernel.reschedule(ctas_at_once=ctas)
    counts = {place: sum(row.place == place for row in rows) for place in ("registers", "shared")}
    record(kernel, "keep_rows", **counts)


def keep_row(kernel: Kernel, row: Kept, d: int) -> None:
    """Store one row where it is loaded or stored first, and load that instead."""
    assert kernel.body.block.first is not None
    dims = sorted(row.tile.type.dims, key=lambda i: (i == d, i))
    with before(kernel.body.block.first, row.op.loc):
        type = ScratchType(tuple(dims), row.tile.type.dtype)
        scratch = loop.Scratch(type, registers=row.place == "registers").result
    after = row.op.next if isinstance(row.op, loop.Load) else row.op
    assert after is not None
    with before(after, row.op.loc):
        loop.StoreScratch(row.tile, scratch)
    for load in row.loads:
        with before(load):
            value = loop.LoadScratch(scratch).result
        load.replace_by(value)
    if row.overwritten:
        row.op.erase()


# -- several blocks at a time -----------------------------------------------------------------------------------------
def loops_over(kernel: Kernel, dim: int) -> list[For]:
    """The loops over a dimension, one for each time that a row is gone through."""
    return [op for op in kernel.body.block if isinstance(op, For) and op.dim == dim]


def unroll_rows(kernel: Kernel, dim: int, blocks: Sequence[int]) -> None:
    """Let a thread take so many blocks at a time in each loop over dimension `dim`."""
    for op, count in zip(loops_over(kernel, dim), blocks, strict=True):
        op.unroll = count
    record(kernel, "unroll_rows", blocks=f"{[*blocks]}")


def at_once(kernel: Kernel, dim: int, most: int, room: Sequence[int]) -> list[int]:
    """The number of blocks that a thread can load at once into its registers, in each loop over dimension `dim`."""
    out = list[int]()
    for op, registers in zip(loops_over(kernel, dim), room):
        inside = list(op.walk())
        loads = max(1, sum(isinstance(o, loop.Load) for o in inside))
        limit = STORING if any(isinstance(o, loop.Store) for o in inside) else most
        count = min(limit, max(FEWEST, min(most, registers) // loads), BATCH // len(inside))
        out.append(1 << max(0, max(1, count).bit_length() - 1))
    return out


def several_rows(kernel: Kernel, most: int, machine: Gpu) -> None:
    """Let a thread take a point of several rows, if there are enough rows."""
    for d in reversed(range(kernel.parallel)):
        for count in _halves(most):
            rows = kernel.domain[d]
            if isinstance(rows, int) and rows % count == 0 and rows // count >= machine.multiprocessors * RESIDENT:
                tile(kernel, d, count)
                return


def _halves(n: int) -> Iterator[int]:
    """The powers of two from n down to 2."""
    size = 1 << max(0, n.bit_length() - 1)
    while size > 1:
        yield size
        size //= 2
