"""SIMT interpretation of kernels in the llvm dialect: as simt.py, but with basic blocks, branches and addresses.

An address is a number; memory is bytes. Of threads that have diverged, those in the earliest basic block run first, so
that they reconverge where control flow joins, as in structured code.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mlc.dialects import llvm, nvvm
from mlc.dialects.gpu import simt
from mlc.dialects.gpu.module import ALIGNMENT
from mlc.dialects.gpu.simt import Array, Threads, Traces, along, exchanged, meet
from mlc.dialects.memref import fresh
from mlc.ir.core import Block, Op, Value
from mlc.ir.diag import IRError
from mlc.ir.machine import WARP
from mlc.ir.types import MemRefType, Type, VectorType, element, i8, to_numpy

RULES: dict[type[Op], Callable[[Any, Instructions], Any]] = {}
"""Evaluation rules of operations that are not elementwise over threads."""


def rule(*targets: type[Op]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register the evaluation rule of operation classes."""
    def register(apply: Callable[..., Any]) -> Callable[..., Any]:
        RULES.update(dict.fromkeys(targets, apply))
        return apply
    return register


class Instructions(Threads):
    """Threads of a kernel in the llvm dialect; `addresses` are the address ranges that they may access."""

    __slots__ = ("addresses", "keep", "shared")

    def execute(self, args: Sequence[Any], types: Sequence[Type]) -> None:
        self.addresses = [(t.start, t.end) for t in self.traces]
        self.shared: dict[str, Any] = {}
        self.keep: list[Array] = []                          # keeps memory alive that is referenced by address only
        parts = [part for type, value in zip(types, args) for part in _parts(type, value)]
        blocks = self.kernel.regions[0].blocks
        order, place = {block: i for i, block in enumerate(blocks)}, np.zeros(self.mask.size, int)
        self.enter(blocks[0], parts, self.mask)
        alive = self.mask
        while alive.any():
            first = int(place[alive].min())
            self.mask = alive & (place == first)
            for op in blocks[first]:
                if op.terminator:
                    break
                self.step(op)
            ways = self.ways(blocks[first].terminator)
            if not ways:
                alive = alive & ~self.mask
            for block, values, mask in ways:
                self.enter(block, values, mask)
                place[mask] = order[block]

    def ways(self, op: Op) -> list[tuple[Block, list[Any], Array]]:
        """The successors of a terminator, with the values passed and the mask of threads that branch there."""
        if isinstance(op, llvm.Return):
            return []
        if isinstance(op, llvm.Br):
            return [(op.dest, self.all(op.args), self.mask)]
        if not isinstance(op, llvm.CondBr):
            raise IRError(f"{op.name} is no terminator that threads know", code="MLC0180", loc=op.loc)
        condition = self.each(self[op.condition])
        found = [(op.true_dest, self.all(op.true_args), self.mask & condition),
                 (op.false_dest, self.all(op.false_args), self.mask & ~condition)]
        return [way for way in found if way[2].any()]

    def enter(self, block: Block, values: Sequence[Any], mask: Array) -> None:
        for arg, value in zip(block.args, values):
            self.define(arg, value, mask)

    def define(self, name: Value, value: Any, mask: Array) -> None:
        """Set a value for the threads of a mask; others keep theirs."""
        old = self.env.get(name)
        if isinstance(value, tuple):
            old = old or value
            self.env[name] = tuple(self.merged(mask, v, o) for v, o in zip(value, old))
        else:
            self.env[name] = value if old is None else self.merged(mask, value, old)

    def step(self, op: Op) -> None:
        self.interpreter.steps += 1
        apply = RULES.get(type(op)) or simt.RULES.get(type(op))
        if apply is not None:
            out = apply(op, self)
        elif hasattr(op, "interpret"):
            op.fail("has no meaning for threads", code="MLC0180")
        else:
            out = op.ref(*self.all(op.operands))
        results = out if isinstance(out, list) else [out]
        for name, value in zip(op.results, results):
            self.define(name, value, self.mask)
        if self.interpreter.watch is not None:
            self.interpreter.watch(op, self.all(op.results))

    # -- memory ---------------------------------------------------------------------------------------------------
    def know(self, array: Array, traced: str = "") -> int:
        """Register memory; returns its address."""
        start = int(array.__array_interface__["data"][0])
        self.keep.append(array)
        self.addresses.append((start, start + array.nbytes))
        if traced:
            self.traces.append(Traces(start, start + array.nbytes, array.itemsize, self.per_block, traced))
        return start

    def bytes(self, op: Op, addresses: Any, count: int, alignment: int, write: bool, atomic: bool = False,
              traced: bool = True) -> tuple[Array, Array, Array]:
        """The active threads, the memory that contains their addresses, and the positions of each one's bytes in it."""
        here = np.nonzero(self.mask)[0]
        at = self.each(addresses, np.int64)[here]
        found = [(s, e) for s, e in self.addresses if s <= at[0] < e]
        start, end = found[0] if found else (0, 0)
        if (bad := (at < start) | (at + count > end)).any():
            n = here[bad.argmax()]
            raise IRError(f"{op.name}: thread {self.lane[n]} of block {self.block[n]} leaves the memory that it is "
                          "given", code="MLC0163", loc=op.loc)
        if (at % alignment).any():
            raise IRError(f"{op.name}: an address is no multiple of {alignment}", code="MLC0163", loc=op.loc)
        if traced:
            self.trace(op, at, count, write, atomic)
        memory = np.ctypeslib.as_array((ctypes.c_uint8 * (end - start)).from_address(start))
        return here, memory, (at - start)[:, None] + np.arange(count)


simt.KINDS[llvm.Func] = Instructions


def _parts(type: Any, value: Any) -> list[Any]:
    """Lowered kernel arguments for an argument of a launch, for a kernel in the llvm dialect."""
    if not isinstance(type, MemRefType):
        return [value]
    address = int(value.__array_interface__["data"][0])
    sizes = [n for n, known in zip(value.shape, type.shape) if known is None]
    strides = [s // value.itemsize for s, known in zip(value.strides, type.strides or ()) if known is None]
    return [address, *sizes, *strides]


def _shape(type: Any) -> tuple[int, ...]:
    return type.shape if isinstance(type, VectorType) else ()


def _layout(type: Any) -> tuple[np.dtype[Any], tuple[int, ...], int]:
    """Memory layout of a value: element type, shape and size in bytes."""
    dtype, shape = to_numpy(element(type)), _shape(type)
    return dtype, shape, dtype.itemsize * int(np.prod(shape))


@rule(llvm.Load)
def _load(op: llvm.Load, threads: Instructions) -> Any:
    dtype, shape, count = _layout(op.result.type)
    here, memory, at = threads.bytes(op, threads[op.addr], count, op.alignment or 1, write=False)
    out = np.zeros((threads.mask.size, *shape), dtype)
    out[here] = memory[at].view(dtype).reshape(here.size, *shape)
    return out


@rule(llvm.Store)
def _store(op: llvm.Store, threads: Instructions) -> Any:
    dtype, shape, count = _layout(op.value.type)
    here, memory, at = threads.bytes(op, threads[op.addr], count, op.alignment or 1, write=True)
    values = np.broadcast_to(np.asarray(threads[op.value], dtype).reshape(-1, *shape), (threads.mask.size, *shape))
    memory[at] = np.ascontiguousarray(values[here]).view(np.uint8).reshape(here.size, count)
    return []


@rule(llvm.AtomicRMW)
def _atomic(op: llvm.AtomicRMW, threads: Instructions) -> Any:
    """Threads take effect in some order: here in ascending order."""
    dtype = to_numpy(op.val.type)
    here, memory, at = threads.bytes(op, threads[op.ptr], dtype.itemsize, dtype.itemsize, write=True, atomic=True)
    values, out = threads.each(threads[op.val]), np.zeros(threads.mask.size, dtype)
    for n, place in zip(here, at):
        out[n] = memory[place].view(dtype)[0]
        memory[place] = np.asarray(op.KINDS[op.bin_op].combine(out[n], values[n]), dtype).reshape(1).view(np.uint8)
    return out


@rule(llvm.GetElementPtr)
def _gep(op: llvm.GetElementPtr, threads: Instructions) -> Any:
    if len(op.indices) != 1:
        op.fail("threads take addresses of elements, not of parts of them", code="MLC0180")
    index = op.indices[0]
    number = index if isinstance(index, int) else np.asarray(threads[index], np.int64)
    return threads[op.base] + number * llvm.size_of(op.elem_type)


@rule(llvm.Alloca)
def _alloca(op: llvm.Alloca, threads: Instructions) -> Any:
    size = int(threads[op.count]) * llvm.size_of(op.elem_type)
    size = -(-size // 16) * 16
    return threads.know(fresh((threads.mask.size, size), i8)) + np.arange(threads.mask.size) * size


@rule(llvm.AddressOf)
def _address_of(op: llvm.AddressOf, threads: Instructions) -> Any:
    """Shared memory, with one instance per block."""
    name = str(op.global_name)
    if name not in threads.shared:
        holder = threads.kernel.parent_op
        assert holder is not None
        held = next(g for g in holder.regions[0].block if isinstance(g, llvm.Global) and g.sym_name == name)
        size, cell = llvm.size_of(held.global_type) or threads.dynamic, held.global_type
        if (held.alignment or 0) > ALIGNMENT:
            threads.make_region(size)
            threads.addresses.append((threads.region.address, threads.region.address + threads.region.bytes.size))
            threads.shared[name] = threads.region.address + threads.inside * threads.region.size
            return threads.shared[name]
        while isinstance(cell, llvm.ArrayType):
            cell = cell.element
        memory = fresh((threads.blocks.size, -(-size // 16) * 16 // llvm.size_of(cell)), cell)  # type: ignore[arg-type]
        start = threads.know(memory, "shared")
        threads.shared[name] = start + threads.inside * memory.strides[0]
    return threads.shared[name]


@rule(llvm.AddrSpaceCast, llvm.PtrToInt, llvm.IntToPtr)
def _same(op: Op, threads: Instructions) -> Any:
    return threads[op.operands[0]]


@rule(llvm.Bitcast)
def _bitcast(op: llvm.Bitcast, threads: Instructions) -> Any:
    before, after = (to_numpy(element(v.type)) for v in (op.x, op.result))
    x = np.ascontiguousarray(np.broadcast_to(np.asarray(threads[op.x], before),
                                             (threads.mask.size, *_shape(op.x.type))))
    return x.view(after).reshape(threads.mask.size, *_shape(op.result.type))


# -- vectors and structs ----------------------------------------------------------------------------------------------
@rule(llvm.ExtractElement)
def _extract(op: llvm.ExtractElement, threads: Instructions) -> Any:
    return threads[op.vector][..., int(threads[op.position])]


@rule(llvm.InsertElement)
def _insert(op: llvm.InsertElement, threads: Instructions) -> Any:
    out = np.array(np.broadcast_to(threads[op.vector], (threads.mask.size, *op.result.type.shape)))
    out[..., int(threads[op.position])] = threads[op.value]
    return out


# -- threads ----------------------------------------------------------------------------------------------------------
_READ: dict[type[Op], Callable[[Threads], tuple[Any, Sequence[int]]]] = {
    nvvm.Tid: lambda t: (t.lane, t.block_size), nvvm.Ctaid: lambda t: (t.block, t.grid)}


def _register(op: Op, threads: Instructions) -> Any:
    base, axis = next(key for key, cls in nvvm.REGISTERS.items() if cls is type(op))
    if base in _READ:
        number, sizes = _READ[base](threads)
        return along(number, sizes, axis).astype(np.int32)
    sizes = threads.block_size if base is nvvm.Ntid else threads.grid
    return np.int32(sizes[nvvm.AXES.index(axis)])


RULES.update(dict.fromkeys(nvvm.REGISTERS.values(), _register))


@rule(nvvm.ShflSync)
def _shuffle(op: nvvm.ShflSync, threads: Instructions) -> Any:
    """PTX's definition: the clamp's upper bits name the bits of a lane's number that its group keeps."""
    value = threads.each(threads[op.val])
    if (np.asarray(threads[op.thread_mask]) != -1).any():
        op.fail("takes all threads of the warp", code="MLC0183")
    offset, clamp = (threads.each(threads[v], np.int64) for v in (op.offset, op.mask_and_clamp))
    lane, keep, most = threads.lane % WARP, clamp >> 8 & 31, clamp & 31
    lowest, highest = lane & keep, (lane & keep) | (most & ~keep)
    other = {"bfly": lane ^ offset, "down": lane + offset, "up": lane - offset,
             "idx": lowest | (offset & ~keep)}[op.kind]
    valid = other >= highest if op.kind == "up" else other <= highest
    found = exchanged(op, threads, value, np.where(valid, other, lane) - lane)
    return (found, valid) if op.return_value_and_is_valid else found


@rule(nvvm.Barrier)
def _barrier(op: nvvm.Barrier, threads: Instructions) -> Any:
    return meet(op, threads)
