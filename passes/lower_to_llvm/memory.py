"""Lowering of memref, and of vector loads and stores; addresses are computed where they are used.

A memref has no descriptor: it is a pointer, and the sizes and strides that are dynamic in its type. Accesses claim
element alignment only, since a vector may start at any element; on x86 a larger alignment gains nothing. There are no
aliasing annotations: results may reuse the buffers of donated arguments, and callers may pass one array twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from mlc.dialects import amx, llvm, memref, vector
from mlc.dialects.nvvm import SHARED
from mlc.ir.core import Op, Symbol, Value, builder
from mlc.ir.diag import BackendError
from mlc.ir.types import MemRefType, ScalarType, Type, element, i1, i8, i64
from mlc.passes.lower_to_llvm.lowering import Lowering, Memory, Number, Parts, convert, convert_scalar, is_narrow, rule

ACCESSES = (memref.Load, memref.Store, memref.AtomicRMW, memref.Prefetch, vector.Load, vector.Store, vector.MaskedLoad,
            vector.MaskedStore, vector.Gather, amx.TileLoad, amx.TileStore)


def address_of(low: Lowering, op: Op, memory: Value, indices: Sequence[Value]) -> Value:
    """The address of an element of a memref: a constant offset from an address that other accesses share.

    An unrolled kernel has hundreds of accesses at constant distances, and instructions add a constant for free.
    """
    held = low.memory(memory)
    _check_element(op, held.dtype)
    constant, terms = 0, []
    for i, stride in zip(indices, held.strides):
        number, offset = low.term(i)
        if isinstance(stride, int):
            constant += offset * stride
        else:
            number = low.plus(number, offset)
        terms.append((number, stride))
    key = held.pointer, held.dtype, *terms
    if key not in low.bases:
        low.bases[key] = _offset(held, low.dot([n for n, _ in terms], held.strides))
    return _offset(replace(held, pointer=low.bases[key]), constant)


def is_in_addresses_only(op: Op) -> bool:
    """Whether the index that an operation computes occurs as an index of accesses only, in its own block."""
    return all(isinstance(user, ACCESSES) and user.parent is op.parent and getattr(user, "value", None) is not op.result
               for user, _ in op.result.uses)


def _offset(memory: Memory, offset: Number) -> Value:
    return memory.pointer if offset == 0 else llvm.element_address(memory.pointer, offset, memory.dtype)


def _check_element(op: Op, dtype: ScalarType) -> None:
    if dtype == i1:
        raise BackendError(f"{op.name}: i1 has no place in memory; store booleans as i8", code="MLC0542", loc=op.loc)


# -- elements and vectors ---------------------------------------------------------------------------------------------
@rule(memref.Load)
def _load(low: Lowering, op: memref.Load) -> list[Value]:
    type, = convert(op.result.type)
    return [llvm.Load(address_of(low, op, op.memref, op.indices), type, element(type).itemsize).result]


@rule(memref.Store)
def _store(low: Lowering, op: memref.Store) -> None:
    value = low.one(op.value)
    llvm.Store(value, address_of(low, op, op.memref, op.indices), element(value.type).itemsize)


@rule(memref.Prefetch)
def _prefetch(low: Lowering, op: memref.Prefetch) -> None:
    llvm.Prefetch(address_of(low, op, op.memref, op.indices), int(op.isWrite), op.localityHint, int(op.isDataCache))


@rule(memref.AtomicRMW)
def _atomic(low: Lowering, op: memref.AtomicRMW) -> list[Value]:
    value = low.one(op.value)
    address = address_of(low, op, op.memref, op.indices)
    kind, alignment = op.KINDS[op.kind].llvm_atomic, element(value.type).itemsize
    return [llvm.AtomicRMW(address, value, bin_op=kind, alignment=alignment).result]


@rule(vector.Load)
def _load_vector(low: Lowering, op: vector.Load) -> list[Value]:
    type, = convert(op.result.type)
    alignment = op.alignment or element(type).itemsize
    return [llvm.Load(address_of(low, op, op.base, op.indices), type, alignment).result]


@rule(vector.Store)
def _store_vector(low: Lowering, op: vector.Store) -> None:
    value = low.one(op.value)
    llvm.Store(value, address_of(low, op, op.base, op.indices), op.alignment or element(value.type).itemsize)


@rule(vector.MaskedLoad)
def _masked_load(low: Lowering, op: vector.MaskedLoad) -> list[Value]:
    address = address_of(low, op, op.base, op.indices)
    rest = low.one(op.pass_thru)
    return [llvm.MaskedLoad(address, low.one(op.mask), rest, element(rest.type).itemsize).result]


@rule(vector.MaskedStore)
def _masked_store(low: Lowering, op: vector.MaskedStore) -> None:
    value = low.one(op.value)
    address = address_of(low, op, op.base, op.indices)
    llvm.MaskedStore(value, address, low.one(op.mask), element(value.type).itemsize)


@rule(vector.Gather)
def _gather(low: Lowering, op: vector.Gather) -> list[Value]:
    address = address_of(low, op, op.base, op.indices)
    pass_thru = low.one(op.pass_thru)
    addresses = llvm.element_address(address, low.one(op.lanes_at), element(pass_thru.type))
    return [llvm.MaskedGather(addresses, low.one(op.mask), pass_thru, element(pass_thru.type).itemsize).result]


# -- views ------------------------------------------------------------------------------------------------------------
@rule(memref.Dim)
def _dim(low: Lowering, op: memref.Dim) -> list[Value]:
    sizes, axis = low.memory(op.source).sizes, low.number(op.axis)
    if isinstance(axis, int):
        return [low.value(sizes[axis])]
    size = low.value(sizes[0])
    for i, n in enumerate(sizes[1:], 1):
        size = llvm.Select(llvm.ICmp("eq", axis, low.value(i)).result, low.value(n), size).result
    return [size]


@rule(memref.Address)
def _address(low: Lowering, op: memref.Address) -> list[Value]:
    """Of shared memory of a GPU, the address in its own space: descriptors of matrices hold those."""
    pointer = low.memory(op.source).pointer
    if op.source.type.space == "workgroup":
        pointer = llvm.AddrSpaceCast(pointer, SHARED).result
    return [llvm.PtrToInt(pointer, i64).result]


@rule(memref.View)
def _view(low: Lowering, op: memref.View) -> list[Parts]:
    pointer = low.memory(op.source).pointer
    shift = low.number(op.byte_shift)
    if shift != 0:
        pointer = llvm.element_address(pointer, shift, i8)
    return [[pointer, *low.all(op.sizes)]]


@rule(memref.Cast)
def _cast(low: Lowering, op: memref.Cast) -> list[Parts]:
    held = low.memory(op.source)
    return [low.memref_parts(op.result.type, held.pointer, held.sizes, held.strides)]


@rule(memref.ReinterpretCast)
def _reinterpret(low: Lowering, op: memref.ReinterpretCast) -> list[Parts]:
    offset, = low.mixed(op.mixed("offsets"))
    pointer = _offset(low.memory(op.source), offset)
    return [low.memref_parts(op.result.type, pointer, low.mixed(op.mixed("sizes")), low.mixed(op.mixed("strides")))]


@rule(memref.SubView)
def _subview(low: Lowering, op: memref.SubView) -> list[Parts]:
    held = low.memory(op.source)
    pointer = _offset(held, low.dot(low.mixed(op.mixed("offsets")), held.strides))
    strides = [low.times(a, b) for a, b in zip(held.strides, low.mixed(op.mixed("strides")))]
    return [low.memref_parts(op.result.type, pointer, low.mixed(op.mixed("sizes")), strides)]


# -- allocation -------------------------------------------------------------------------------------------------------
@rule(memref.Alloca)
def _alloca(low: Lowering, op: memref.Alloca) -> list[Value]:
    """Allocate in the entry block, so that a loop does not grow the stack."""
    type = op.result.type
    if None in type.shape:
        raise BackendError(f"memref.alloca of {type}: stack memory must have a static size", code="MLC0543",
                           loc=op.loc)
    _check_element(op, type.dtype)
    dtype = convert_scalar(type.dtype)
    count = 1
    for n in type.shape:
        count *= n
    with low.in_entry():
        return [llvm.Alloca(llvm.constant(count, i64), llvm.ptr, dtype, op.alignment or 64).result]


@rule(memref.Alloc)
def _alloc(low: Lowering, op: memref.Alloc) -> list[Parts]:
    """Call the C library, with the size rounded up to the alignment; the program aborts if memory is exhausted."""
    type = op.result.type
    _check_element(op, type.dtype)
    dynamic = iter(low.mixed(op.sizes))
    shape = [next(dynamic) if n is None else n for n in type.shape]
    strides: list[Number] = [1] * len(shape)
    for i in reversed(range(len(shape) - 1)):
        strides[i] = low.times(strides[i + 1], shape[i + 1])
    count = low.times(strides[0], shape[0]) if shape else 1
    line = op.alignment or 64
    bytes = low.plus(low.times(count, type.dtype.itemsize), line)
    whole = llvm.And(low.value(bytes), llvm.constant(-line, i64)).result
    pointer = llvm.call(_external(low, "aligned_alloc", [i64, i64], llvm.ptr), [llvm.constant(line, i64), whole])
    assert pointer is not None
    return [low.memref_parts(type, pointer, shape, strides)]


@rule(memref.Dealloc)
def _dealloc(low: Lowering, op: memref.Dealloc) -> None:
    llvm.call(_external(low, "free", [llvm.ptr], None), [low.memory(op.memref).pointer])


def _external(low: Lowering, name: str, params: list[Type], result: Type | None) -> llvm.Func:
    """The declaration of a C library function, at the line that needs it first."""
    if name not in low.functions:
        low.functions[name] = llvm.declaration(name, params, result)
        low.functions[name].loc = builder.loc or low.functions[name].loc
        low.module.body.block.insert(low.functions[name], low.module.body.block.first)
    return low.functions[name]


@rule(memref.GetGlobal)
def _get_global(low: Lowering, op: memref.GetGlobal) -> list[Value]:
    return [llvm.AddressOf(Symbol(op.attrs["name"]), llvm.ptr).result]


def lower_global(op: memref.Global) -> llvm.Global:
    """The corresponding global of the llvm dialect, detached."""
    from mlc.ir.core import Region
    memory = op.type
    assert isinstance(memory, MemRefType)
    _check_element(op, memory.dtype)
    type: Type = convert_scalar(memory.dtype)
    for n in reversed(memory.shape):
        assert n is not None
        type = llvm.ArrayType(n, type)
    held = op.initial_value
    if held is not None and is_narrow(memory.dtype):
        held = np.ascontiguousarray(held).view(np.int16)
    return llvm.Global.make([], {
        "sym_name": Symbol(op.sym_name), "global_type": type, "linkage": "internal", "value": held,
        "constant": op.constant, "alignment": op.alignment or 64, "addr_space": 0}, [], [Region()], loc=op.loc)
