"""SIMT interpretation of kernels: all threads of several blocks at once, one numpy operation per IR operation.

A uniform value is one number, any other an array with one number per thread. Divergent control flow runs each path with
an active mask. Accesses to shared and global memory are traced (`Traces`), to detect pairs without a barrier between.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mlc.dialects import arith, memref, scf, vector
from mlc.dialects.gpu import thread
from mlc.dialects.gpu.module import ALIGNMENT, Func
from mlc.dialects.gpu.shared_region import SharedRegion
from mlc.ir.core import Op
from mlc.ir.diag import IRError
from mlc.ir.interp import Frame
from mlc.ir.machine import WARP
from mlc.ir.types import MemRefType, Type, VectorType, to_numpy

if TYPE_CHECKING:
    from mlc.dialects.gpu.launch import Launch

Array = np.ndarray[Any, Any]
MOST_THREADS, TOGETHER = 1024, 1 << 14
"""Most threads of a block, and the number of threads that are interpreted together, in whole blocks."""

RULES: dict[type[Op], Callable[[Any, Threads], Any]] = {}
"""Evaluation rules of operations that are not elementwise over threads."""


def rule(target: type[Op]) -> Callable[[Callable[[Any, Threads], Any]], Callable[[Any, Threads], Any]]:
    """Register the evaluation rule of an operation class."""
    def register(apply: Callable[[Any, Threads], Any]) -> Callable[[Any, Threads], Any]:
        RULES[target] = apply
        return apply
    return register


def launch(op: Launch, frame: Frame) -> None:
    """Run the kernel of a launch."""
    kernel = op.callee()
    if type(kernel) not in KINDS:
        op.fail(f"{kernel.name} @{op.kernel} is no function that threads can run", code="MLC0180")
    grid, block = ([int(frame[v]) for v in group] for group in (op.grid, op.threads))
    if min(*grid, *block) < 0 or np.prod(block) > MOST_THREADS:
        op.fail(f"{grid} blocks of {block} threads: numbers are positive, and a block has {MOST_THREADS} at most",
                code="MLC0180")
    made_for = kernel.attrs.get("known_block_size") or kernel.attrs.get("nvvm.maxntid")
    if made_for and list(made_for) != block:
        op.fail(f"blocks of {block} threads, but the kernel is made for {list(made_for)}", code="MLC0180")
    blocks, size = int(np.prod(grid)), int(np.prod(block))
    if not blocks or not size:
        return
    dynamic = 0 if op.dynamic_shared_memory_size is None else int(frame[op.dynamic_shared_memory_size])
    if isinstance(kernel, Func) and kernel.dynamic_bytes > dynamic:
        op.fail(f"{dynamic} bytes of dynamic shared memory, but a block of the kernel shares {kernel.dynamic_bytes}",
                code="MLC0180")
    args = frame.all(op.args)
    traces = [*_segments(args, size)]
    together = max(1, TOGETHER // size)
    for first in range(0, blocks, together):
        numbers = np.arange(first, min(first + together, blocks))
        KINDS[type(kernel)](frame, kernel, traces, grid, block, numbers, dynamic).execute(
            args, [v.type for v in op.args])


class Threads(Frame):
    """The threads of some blocks at the same point of a program; `mask` is the active mask."""

    __slots__ = ("block", "block_size", "blocks", "copies", "dynamic", "epoch", "grid", "inside", "kernel", "lane",
                 "mask", "products", "region", "traces")

    def __init__(self, frame: Frame, kernel: Op, traces: list[Traces], grid: Sequence[int], block: Sequence[int],
                 numbers: Array, dynamic: int = 0) -> None:
        super().__init__(frame.interpreter)
        self.dynamic = dynamic                               # bytes of dynamic shared memory
        size = int(np.prod(block))
        self.kernel, self.grid, self.block_size = kernel, grid, block
        self.blocks = numbers                                # of the grid
        self.inside = np.repeat(np.arange(numbers.size), size)      # index of each thread's block among them
        self.block = np.repeat(numbers, size)                # index of each thread's block in the grid
        self.lane = np.tile(np.arange(size), numbers.size)   # index of each thread in its block
        self.mask = np.ones(self.lane.size, bool)
        self.epoch = np.zeros(numbers.size, np.int64)        # number of barriers that each block has passed
        self.traces = list(traces)
        self.copies: Any = None                              # asynchronous copies in flight (warp.py)
        self.products: Any = None                            # products of warpgroups in flight (warpgroup.py)
        self.region: Any = None                              # shared memory that descriptors tell addresses in

    @property
    def per_block(self) -> int:
        """Number of threads of a block."""
        return int(np.prod(self.block_size))

    def execute(self, args: Sequence[Any], types: Sequence[Type]) -> None:
        """Run the kernel on the arguments of a launch."""
        assert isinstance(self.kernel, Func)
        if self.kernel.alignment > ALIGNMENT:
            self.make_region(self.kernel.shared_bytes)
            shared = [Shared(self.region.buffer(at, v.type), False)
                      for v, (at, _) in zip(self.kernel.shared, self.kernel.placed())]
        else:
            shared = [Shared.fresh(v.type, self.blocks.size) for v in self.kernel.shared]
            for array in (s.array for s in shared):
                start = _start(array)
                self.traces.append(Traces(start, start + array.nbytes, array.itemsize, self.per_block, "shared"))
        self.run(self.kernel.body, [*args, *shared])

    def make_region(self, size: int) -> None:
        """Make the shared memory of all blocks one region, which descriptors of matrices tell addresses in."""
        self.region = SharedRegion(self.blocks.size, size)
        start = self.region.address
        self.traces.append(Traces(start, start + self.region.bytes.size, 2, self.per_block, "shared"))

    def step(self, op: Op) -> None:
        interpreter = self.interpreter
        interpreter.steps += 1
        apply = RULES.get(type(op))
        if apply is not None:
            out = apply(op, self)
        elif interpret := getattr(op, "interpret", None):
            out = interpret(self)
        else:
            out = op.ref(*self.all(op.operands))
        results = op.results
        if len(results) == 1 and not isinstance(out, list):
            out = (out,)
        for result, value in zip(results, out or ()):
            self.env[result] = value
        if interpreter.watch is not None:
            interpreter.watch(op, [self.env[r] for r in results])

    def each(self, value: Any, dtype: Any = None) -> Array:
        """The value broadcast to one number per thread."""
        return np.broadcast_to(np.asarray(value, dtype), self.mask.shape)

    def merged(self, mask: Array, new: Any, old: Any) -> Any:
        """New values where a mask holds, else the old ones."""
        if new is old or mask.all():
            return new
        depth = max(np.ndim(new), np.ndim(old), 1)
        return np.where(mask.reshape(-1, *[1] * (depth - 1)), new, old)

    def trace(self, op: Op, addresses: Array, size: int, write: bool, atomic: bool = False,
              threads: Array | None = None) -> None:
        """Record an access of active threads to shared or global memory."""
        here = np.nonzero(self.mask)[0] if threads is None else threads
        if not here.size:
            return
        if write and self.region is not None:
            self.region.write(op, addresses, size, here)
        for trace in self.traces:
            if trace.start <= addresses[0] < trace.end:
                who, epoch = self.block[here] * self.per_block + self.lane[here], self.epoch[self.inside[here]]
                trace.access(op, addresses, size, who, epoch, write, atomic)
                return


KINDS: dict[type[Op], type[Threads]] = {Func: Threads}
"""Interpreters of functions that can be launched, by class."""


# -- memory -----------------------------------------------------------------------------------------------------------
class Shared:
    """Memory with one instance per block, or with `private` per thread: rows of one array."""

    def __init__(self, array: Array, private: bool) -> None:
        self.array, self.private = array, private

    @classmethod
    def fresh(cls, type: MemRefType, count: int, private: bool = False) -> Shared:
        """Uninitialized memory, with all bits set."""
        return cls(memref.fresh((count, *map(int, type.shape)), type.dtype), private)  # type: ignore[arg-type]

    def rows(self, threads: Threads) -> Array:
        return np.arange(threads.mask.size) if self.private else threads.inside


class Traces:
    """The last reader and writer of each memory cell, with the epoch of its block, to detect races.

    Two accesses to a cell, one of them a write, are ordered if they are by one thread, or by threads of one block in
    different epochs. Atomic accesses need no order among themselves.
    """

    NONE, MANY, ATOMIC = -1, -2, -3

    def __init__(self, start: int, end: int, cell: int, size: int, what: str = "global") -> None:
        count = -(-(end - start) // cell)
        self.start, self.end, self.cell, self.size, self.what = start, end, cell, size, what
        self.writer, self.reader = np.full(count, self.NONE), np.full(count, self.NONE)
        self.write_block, self.read_block = np.full(count, self.NONE), np.full(count, self.NONE)
        self.write_epoch, self.read_epoch = np.zeros(count, np.int64), np.zeros(count, np.int64)
        self.copier = np.full(count, self.NONE)              # thread with a copy in flight to it

    def cells(self, addresses: Array, size: int) -> Array:
        """The cells of accesses, one row per access."""
        return ((addresses - self.start) // self.cell)[:, None] + np.arange(max(1, size // self.cell))

    def access(self, op: Op, addresses: Array, size: int, threads: Array, epoch: Array, write: bool,
               atomic: bool) -> None:
        cells = self.cells(addresses, size)
        per = cells.shape[1]
        cells, who, when = cells.reshape(-1), np.repeat(threads, per), np.repeat(epoch, per)
        if (busy := self.copier[cells] != self.NONE).any():
            raise IRError(f"{op.name}: {self.name(who[busy][0])} {'writes' if write else 'reads'} what "
                          f"{self.name(self.copier[cells][busy][0])} copies and has not waited for", code="MLC0185",
                          loc=op.loc)
        block = who // self.size
        writer, reader = self.writer[cells], self.reader[cells]
        if self.what == "shared" and not write and (writer == self.NONE).any():
            self.fail(op, "reads shared memory that no thread wrote", who[writer == self.NONE][0])
        before = (self.write_block[cells] == block) & (self.write_epoch[cells] < when)
        bad = (writer != self.NONE) & (writer != who) & ~before & ~(atomic & (writer == self.ATOMIC))
        if bad.any():
            self.fail(op, f"{'writes' if write else 'reads'} what {self.name(writer[bad][0])} writes", who[bad][0])
        if write:
            before = (self.read_block[cells] == block) & (self.read_epoch[cells] < when)
            bad = (reader != self.NONE) & (reader != who) & ~before
            if bad.any():
                self.fail(op, f"writes what {self.name(reader[bad][0])} reads", who[bad][0])
            self.writer[cells], self.write_block[cells], self.write_epoch[cells] = who, block, when
            if not atomic and (lost := self.writer[cells] != who).any():
                self.fail(op, f"writes what {self.name(self.writer[cells][lost][0])} writes", who[lost][0])
            if atomic:
                self.writer[cells] = self.ATOMIC
                self.write_block[cells] = np.where(self.write_block[cells] == block, block, self.MANY)
            self.reader[cells] = self.NONE
            return
        again = (reader != self.NONE) & ~((self.read_block[cells] == block) & (self.read_epoch[cells] < when))
        old_reader, old_block = reader, self.read_block[cells]
        self.reader[cells], self.read_block[cells], self.read_epoch[cells] = who, block, when
        several = (self.reader[cells] != who) | (again & (old_reader != who))
        elsewhere = (self.read_block[cells] != block) | (again & (old_block != block))
        self.reader[cells[several]] = self.MANY
        self.read_block[cells[elsewhere]] = self.MANY

    def name(self, thread: int) -> str:
        if thread in (self.MANY, self.ATOMIC):
            return "others"
        return f"thread {thread % self.size} of block {thread // self.size}"

    def fail(self, op: Op, what: str, thread: int) -> None:
        hint = "" if "no thread" in what else f": no barrier orders the two accesses to {self.what} memory"
        raise IRError(f"{op.name}: {self.name(thread)} {what}{hint}", code="MLC0181", loc=op.loc)


def _start(array: Array) -> int:
    return int(array.__array_interface__["data"][0])


def _segments(args: Sequence[Any], size: int) -> list[Traces]:
    """The memory segments of the arguments of a kernel; overlapping ones are merged."""
    found: list[list[int]] = []
    arrays = [a for a in args if isinstance(a, np.ndarray) and a.size]
    for a in sorted(arrays, key=_start):
        start = _start(a)
        end = start + sum((n - 1) * s for n, s in zip(a.shape, a.strides)) + a.itemsize
        if found and start < found[-1][1]:
            found[-1][1:] = max(found[-1][1], end), min(found[-1][2], a.itemsize)
        else:
            found.append([start, end, a.itemsize])
    return [Traces(start, end, cell, size) for start, end, cell in found]


def positions_in(op: Op, threads: Threads, memory: Any, indices: Sequence[Any], lanes: int = 1) -> tuple[Array, Any]:
    """The array of a memref, and the index into it of every active thread, checked for bounds."""
    here = threads.mask
    private = isinstance(memory, Shared)
    array = memory.array if private else memory
    rows = [memory.rows(threads)[here]] if private else []
    at = [threads.each(i, np.int64)[here] for i in indices]
    for axis, (i, n) in enumerate(zip(at, array.shape[len(rows):])):
        reach = lanes if axis == len(at) - 1 else 1
        if (bad := (i < 0) | (i + reach > n)).any():
            first = np.nonzero(here)[0][bad.argmax()]
            raise IRError(f"{op.name}: index {i[bad][0]} on axis {axis} is outside of size {n}, in thread "
                          f"{threads.lane[first]} of block {threads.block[first]}", code="MLC0163", loc=op.loc)
    return array, (*rows, *at)


def addresses_of(array: Array, at: tuple[Array, ...], count: int) -> Array:
    total = np.full(count, _start(array), np.int64)
    for i, stride in zip(at, array.strides):
        total = total + i * stride
    return total


def move(op: Op, threads: Threads, memory: Any, indices: Sequence[Any], lanes: int, value: Any = None,
          alignment: int = 1) -> Any:
    """Read (value None) or write `lanes` adjacent elements (0: one scalar) per active thread."""
    array, at = positions_in(op, threads, memory, indices, max(1, lanes))
    here = np.nonzero(threads.mask)[0]
    if not (isinstance(memory, Shared) and memory.private):
        addresses = addresses_of(array, at, here.size)
        if (addresses % alignment).any():
            raise IRError(f"{op.name}: an address is no multiple of {alignment}", code="MLC0163", loc=op.loc)
        threads.trace(op, addresses, array.itemsize * max(1, lanes), value is not None)
    if lanes:
        at = (*(i[:, None] for i in at[:-1]), at[-1][:, None] + np.arange(lanes))
    if value is not None:
        wanted = np.broadcast_to(value, (threads.mask.size, *[lanes] * bool(lanes)))[here]
        array[at] = wanted if at else wanted[0]
        return []
    out = np.zeros((threads.mask.size, *[lanes] * bool(lanes)), array.dtype)
    out[here] = array[at]
    return out


@rule(memref.Load)
def _load(op: memref.Load, threads: Threads) -> Any:
    return move(op, threads, threads[op.memref], threads.all(op.indices), 0)


@rule(memref.Store)
def _store(op: memref.Store, threads: Threads) -> Any:
    return move(op, threads, threads[op.memref], threads.all(op.indices), 0, threads[op.value])


@rule(vector.Load)
def _load_vector(op: vector.Load, threads: Threads) -> Any:
    lanes = op.result.type.shape[0]
    return move(op, threads, threads[op.base], threads.all(op.indices), lanes, alignment=op.alignment or 1)


@rule(vector.Store)
def _store_vector(op: vector.Store, threads: Threads) -> Any:
    lanes = op.value.type.shape[0]
    return move(op, threads, threads[op.base], threads.all(op.indices), lanes, threads[op.value], op.alignment or 1)


@rule(memref.AtomicRMW)
def _atomic(op: memref.AtomicRMW, threads: Threads) -> Any:
    """Threads take effect in some order: here in ascending order."""
    array, at = positions_in(op, threads, threads[op.memref], threads.all(op.indices))
    here = np.nonzero(threads.mask)[0]
    threads.trace(op, addresses_of(array, at, here.size), array.itemsize, write=True, atomic=True)
    values, out = threads.each(threads[op.value]), np.zeros(threads.mask.size, array.dtype)
    for n, thread_ in enumerate(here):
        place = tuple(int(i[n]) for i in at)
        out[thread_] = array[place]
        array[place] = op.combine(array[place], values[thread_])
    return out


@rule(memref.Alloca)
def _alloca(op: memref.Alloca, threads: Threads) -> Any:
    return Shared.fresh(op.result.type, threads.mask.size, private=True)


# -- control ----------------------------------------------------------------------------------------------------------
@rule(scf.If)
def _if(op: scf.If, threads: Threads) -> Any:
    condition, outer = threads[op.condition], threads.mask
    if not np.ndim(condition):
        taken = op.then_body if condition else op.else_body
        return threads.run(taken) if taken.blocks else []
    out: list[Any] | None = None
    for region, mask in ((op.then_body, outer & condition), (op.else_body, outer & ~condition)):
        if region.blocks and (mask.any() or (region is op.else_body and out is None and op.results)):
            threads.mask = mask
            values = threads.run(region)
            out = values if out is None else [threads.merged(mask, v, w) for v, w in zip(values, out)]
    threads.mask = outer
    return out or []


@rule(scf.For)
def _for(op: scf.For, threads: Threads) -> Any:
    lower, upper, step = (threads[v] for v in (op.lower, op.upper, op.step))
    values = threads.all(op.init)
    if np.any(np.asarray(step)[...] <= 0):
        op.fail("the step is not positive", code="MLC0161")
    if not any(np.ndim(v) for v in (lower, upper, step)):
        for i in range(int(lower), int(upper), int(step)):
            values = threads.run(op.body, [i, *values])
        return values
    outer, counter = threads.mask, threads.each(lower, np.int64)
    while (mask := outer & (counter < upper)).any():
        threads.mask = mask
        new = threads.run(op.body, [counter, *values])
        values = [threads.merged(mask, v, w) for v, w in zip(new, values)]
        counter = counter + step
    threads.mask = outer
    return values


@rule(scf.While)
def _while(op: scf.While, threads: Threads) -> Any:
    outer, values, results = threads.mask, threads.all(op.init), None
    while threads.mask.any():
        going, *out = threads.run(op.before, values)
        results = out if results is None else [threads.merged(threads.mask, v, w) for v, w in zip(out, results)]
        threads.mask = threads.mask & threads.each(going)
        if threads.mask.any():
            new = threads.run(op.after, out)
            values = [threads.merged(threads.mask, v, w) for v, w in zip(new, values)]
    threads.mask = outer
    return results


# -- threads ----------------------------------------------------------------------------------------------------------
def along(number: Any, sizes: Sequence[int], axis: str) -> Any:
    """The coordinate along an axis of a linear index into a box, with x fastest."""
    x, y, _ = sizes
    return {"x": number % x, "y": number // x % y, "z": number // (x * y)}[axis]


@rule(thread.ThreadId)
def _thread_id(op: thread.ThreadId, threads: Threads) -> Any:
    return along(threads.lane, threads.block_size, op.dimension)


@rule(thread.BlockId)
def _block_id(op: thread.BlockId, threads: Threads) -> Any:
    return along(threads.block, threads.grid, op.dimension)


@rule(thread.BlockDim)
def _block_dim(op: thread.BlockDim, threads: Threads) -> Any:
    return threads.block_size[thread.AXES.index(op.dimension)]


@rule(thread.GridDim)
def _grid_dim(op: thread.GridDim, threads: Threads) -> Any:
    return threads.grid[thread.AXES.index(op.dimension)]


@rule(thread.Barrier)
def _barrier(op: thread.Barrier, threads: Threads) -> Any:
    return meet(op, threads)


def meet(op: Op, threads: Threads) -> list[Any]:
    """A barrier: all threads of a block must be active, or none."""
    present = threads.mask.reshape(-1, threads.per_block)
    if (torn := present.any(1) & ~present.all(1)).any():
        block = int(torn.argmax())
        missing = int(present[block].argmin())
        raise IRError(f"{op.name}: thread {missing} of block {threads.blocks[block]} does not reach this barrier, "
                      "which others of its block wait at", code="MLC0182", loc=op.loc)
    threads.epoch += present.all(1)
    return []


@rule(thread.Shuffle)
def _shuffle(op: thread.Shuffle, threads: Threads) -> Any:
    value = threads.each(threads[op.value])
    width = threads.each(threads[op.width], np.int64)
    offset = threads.each(threads[op.offset], np.int64)
    if ((width < 1) | (width > WARP) | (width & (width - 1) != 0))[threads.mask].any():
        op.fail("the width is no power of two up to 32", code="MLC0183")
    lane = threads.lane
    group, place = lane // width * width, lane % width
    other = {"xor": place ^ offset, "down": place + offset, "up": place - offset, "idx": offset}[op.mode]
    valid = (other >= 0) & (other < width) & (group + other < threads.per_block)
    return [exchanged(op, threads, value, np.where(valid, group + other, lane) - lane), valid]


def exchanged(op: Op, threads: Threads, value: Array, distance: Array) -> Array:
    """The values of threads at a distance; all threads of each warp must be active, or none."""
    lane = threads.lane
    warp = np.arange(lane.size) - lane + lane // WARP        # a distinct number for every warp of every block
    absent = np.isin(warp, warp[threads.mask]) & ~threads.mask
    if absent.any():
        first = int(absent.argmax())
        raise IRError(f"{op.name}: thread {lane[first]} of block {threads.block[first]} does not take part, which "
                      "others of its warp do", code="MLC0183", loc=op.loc)
    found: Array = value[np.arange(lane.size) + distance]
    return found


# -- vectors ----------------------------------------------------------------------------------------------------------
@rule(vector.Extract)
def _extract(op: vector.Extract, threads: Threads) -> Any:
    x = threads[op.source]
    at = op.static_position
    if op.dynamic_position or len(at) != len(op.source.type.shape):
        op.fail("threads take single elements at known places out of vectors", code="MLC0180")
    return x[(..., *at)]


@rule(vector.FromElements)
def _from_elements(op: vector.FromElements, threads: Threads) -> Any:
    dtype = to_numpy(op.result.type.dtype)
    return np.stack([threads.each(v, dtype) for v in threads.all(op.operands)], axis=-1).reshape(
        -1, *op.result.type.shape)


@rule(arith.Select)
def _select(op: arith.Select, threads: Threads) -> Any:
    condition, a, b = threads.all(op.operands)
    one_for_all_lanes = isinstance(op.result.type, VectorType) and not isinstance(op.condition.type, VectorType)
    return op.ref(condition[:, None] if one_for_all_lanes and np.ndim(condition) else condition, a, b)
