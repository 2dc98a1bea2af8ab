"""Lower the kernels of gpu.modules to the llvm and nvvm dialects.

takes  GPU
gives  NVVM: host functions unchanged, and in every gpu.module one llvm.func per kernel
why    PTX is generated from LLVM IR; the common dialects are lowered by the rules of scf_to_llvm

Shared memory is a global of address space 3, whose address is cast to a generic pointer; LLVM infers the address space.
"""

from __future__ import annotations

from collections.abc import Iterator

from mlc.dialects import gpu, llvm, nvgpu, nvvm
from mlc.dialects.builtin import Module
from mlc.ir.core import Op, Region, Symbol, Value, at_end
from mlc.ir.diag import BackendError
from mlc.ir.machine import WARP
from mlc.ir.passes import Pass
from mlc.ir.types import VectorType, f16, f32, f64, i1, i8, i32, i64
from mlc.passes.forms import GPU, NVVM
from mlc.passes.lower_to_llvm import arithmetic, control, memory, vectors  # noqa: F401  (they register their rules)
from mlc.passes.lower_to_llvm.lowering import (
    Lowering,
    Parts,
    convert,
    convert_all,
    convert_scalar,
    known,
    pool_constants,
    rule,
)

NAME = "gpu_to_nvvm"
DYNAMIC = "gpu.dynamic_shared"
"""Attribute with the bytes of dynamic shared memory of a kernel's launches."""


def run(module: Module) -> None:
    """Lower every kernel of `module`."""
    for holder in [op for op in module.body.block if isinstance(op, gpu.GPUModule)]:
        for kernel in holder.body.block.ops:
            if isinstance(kernel, gpu.Func):
                _kernel(holder, kernel)
                kernel.erase()


def _kernel(holder: gpu.GPUModule, kernel: gpu.Func) -> None:
    """Lower one kernel to a function inserted before it."""
    inputs = convert_all([a.type for a in kernel.args])
    target = llvm.function(kernel.sym_name, inputs)
    target.loc = kernel.loc
    target.attrs |= {"gpu.kernel": True, "nvvm.kernel": True}
    if kernel.known_block_size is not None:
        target.attrs["nvvm.maxntid"] = kernel.known_block_size
        products = any(isinstance(op, nvgpu.MmaSync) for op in kernel.walk())      # of a warp; those of four take all
        most = kernel.attrs.get("nvvm.minctasm", 1 + products)
        target.attrs["nvvm.minctasm"] = most              # else ptxas prefers spilling to lower occupancy
    holder.body.block.insert(target, kernel)
    low = Lowering(holder, target, target.body.blocks[0], {}, kernel.loc.through(NAME))  # type: ignore[arg-type]
    low.bind(kernel.args, target.args)
    if dynamic := kernel.dynamic_bytes:
        target.attrs[DYNAMIC] = dynamic
    with at_end(low.block, low.loc):
        for memory_, place in (_dynamic if dynamic else _static)(holder, kernel):
            low.bind([memory_], [place])
    for op in kernel.block:
        if isinstance(op, gpu.Return):
            with low.at(op):
                llvm.Return()
        else:
            low.lower(op)
    pool_constants(target)


def _static(holder: gpu.GPUModule, kernel: gpu.Func) -> Iterator[tuple[Value, Value]]:
    """The static shared memory of a kernel and its addresses: one global per buffer."""
    for i, memory_ in enumerate(kernel.shared):
        held: llvm.ArrayType | object = convert_scalar(memory_.type.dtype)
        for n in reversed(memory_.type.shape):
            held = llvm.ArrayType(n, held)  # type: ignore[arg-type]
        yield memory_, _address(holder, kernel, f"{kernel.sym_name}_shared_{i}", held, "internal")


def _dynamic(holder: gpu.GPUModule, kernel: gpu.Func) -> Iterator[tuple[Value, Value]]:
    """The same if it exceeds the static limit: buffers are laid out in the dynamic shared memory of the launch."""
    start = _address(holder, kernel, f"{kernel.sym_name}_dynamic", llvm.ArrayType(0, i8), "external")
    for memory_, (at, _) in zip(kernel.shared, kernel.placed()):
        yield memory_, llvm.element_address(start, at, i8)


def _address(holder: gpu.GPUModule, kernel: gpu.Func, name: str, type: object, linkage: str) -> Value:
    """Create a global in shared memory; returns its address."""
    holder.body.block.insert(llvm.Global.make([], {
        "sym_name": Symbol(name), "global_type": type, "linkage": linkage, "value": None, "constant": None,
        "alignment": kernel.alignment, "addr_space": nvvm.SHARED.space}, [], [Region()], loc=kernel.loc),
        holder.body.block.first)
    return llvm.AddrSpaceCast(llvm.AddressOf(Symbol(name), nvvm.SHARED).result, llvm.ptr).result


# -- threads ----------------------------------------------------------------------------------------------------------
_REGISTERS: dict[type[Op], type[nvvm.SpecialRegister]] = {
    gpu.ThreadId: nvvm.Tid, gpu.BlockId: nvvm.Ctaid, gpu.BlockDim: nvvm.Ntid, gpu.GridDim: nvvm.Nctaid}


@rule(*_REGISTERS)
def _place(low: Lowering, op: Op) -> list[Value]:
    register = nvvm.REGISTERS[_REGISTERS[type(op)], op.attrs["dimension"]]
    return [llvm.ZExt(register().result, i64).result]


@rule(gpu.Barrier)
def _barrier(low: Lowering, op: gpu.Barrier) -> None:
    nvvm.Barrier()


@rule(gpu.Shuffle)
def _shuffle(low: Lowering, op: gpu.Shuffle) -> list[Parts]:
    """In groups of `width` threads: the upper bits of the clamp operand are the segment mask, the lower the bound."""
    width = known(low.one(op.width))
    if not isinstance(width, int):
        raise BackendError("the width of a shuffle must be a constant", code="MLC0547", loc=op.loc)
    kind = {"xor": "bfly"}.get(op.mode, op.mode)
    clamp = llvm.constant((WARP - width) << 8 | (0 if kind == "up" else WARP - 1), i32)
    everyone, offset, x = llvm.constant(-1, i32), low.one(op.offset), low.one(op.value)
    if op.results[1].uses:
        probe = nvvm.ShflSync(everyone, llvm.constant(0, i32), offset, clamp, llvm.StructType((i32, i1)),
                              kind=kind, return_value_and_is_valid=True).result
        valid: Value = llvm.ExtractValue(probe, (1,)).result
    else:
        valid = llvm.constant(True, i1)
    return [[_exchanged(x, kind, everyone, offset, clamp)], [valid]]


def _exchanged(x: Value, kind: str, everyone: Value, offset: Value, clamp: Value) -> Value:
    """Shuffle a value between threads; 64-bit values are exchanged in two halves."""
    def half(part: Value) -> Value:
        return nvvm.ShflSync(everyone, part, offset, clamp, part.type, kind=kind).result

    if x.type in (i32, f32):
        return half(x)
    bits = llvm.Bitcast(x, i64).result if x.type == f64 else x
    low, high = llvm.Trunc(bits, i32).result, llvm.Trunc(llvm.LShr(bits, llvm.constant(32, i64)).result, i32).result
    low, high = (llvm.ZExt(half(part), i64).result for part in (low, high))
    whole = llvm.Or(llvm.Shl(high, llvm.constant(32, i64)).result, low).result
    return llvm.Bitcast(whole, f64).result if x.type == f64 else whole


@rule(nvvm.WgmmaFence, nvvm.WgmmaCommitGroup, nvvm.WgmmaWaitGroup, nvvm.FenceProxy, llvm.InlineAsm, llvm.ExtractValue)
def _as_it_is(low: Lowering, op: Op) -> list[Value]:
    """Instructions that stand among the operations of threads already."""
    made = op.insert_clone({v: low.one(v) for v in op.operands})
    return list(made.results)


# -- warps ------------------------------------------------------------------------------------------------------------
def _register(x: Value, kind: str) -> Value:
    """A register of a fragment as nvvm requires: f16 in pairs, anything else as i32."""
    type = VectorType((2,), f16) if kind == "f16" else i32
    return x if x.type == type else llvm.Bitcast(x, type).result


@rule(nvgpu.MmaSync)
def _mma(low: Lowering, op: nvgpu.MmaSync) -> list[Parts]:
    kind = "tf32" if op.tf32Enabled else str(op.a.type.dtype)
    a, b = (tuple(_register(part, kind) for part in low.env[v]) for v in (op.a, op.b))
    c = tuple(llvm.ExtractElement(row, llvm.constant(i, i64)).result for row in low.env[op.c] for i in range(2))
    made = nvvm.MmaSync(a, b, c, llvm.StructType((f32,) * 4), shape=op.mmaShape, multiplicandAPtxType=kind,
                        multiplicandBPtxType=kind).result
    parts: Parts = []
    for first in (0, 2):
        row: Value = llvm.Poison(VectorType((2,), f32)).result
        for i in range(2):
            row = llvm.InsertElement(row, llvm.ExtractValue(made, (first + i,)).result, llvm.constant(i, i64)).result
        parts.append(row)
    return [parts]


@rule(nvgpu.LdMatrix)
def _ldmatrix(low: Lowering, op: nvgpu.LdMatrix) -> list[Parts]:
    at = llvm.AddrSpaceCast(memory.address_of(low, op, op.memory, op.indices), nvvm.SHARED).result
    count, types = op.numTiles, convert(op.result.type)
    made = nvvm.LdMatrix(at, i32 if count == 1 else llvm.StructType((i32,) * count), num=count,
                         layout="col" if op.transpose else "row").result
    words = [made] if count == 1 else [llvm.ExtractValue(made, (i,)).result for i in range(count)]
    return [[llvm.Bitcast(word, type).result for word, type in zip(words, types)]]


@rule(nvgpu.DeviceAsyncCopy)
def _copy(low: Lowering, op: nvgpu.DeviceAsyncCopy) -> list[Parts]:
    dst = llvm.AddrSpaceCast(memory.address_of(low, op, op.dst, op.dst_at), nvvm.SHARED).result
    src = llvm.AddrSpaceCast(memory.address_of(low, op, op.src, op.src_at), nvvm.GLOBAL).result
    read = None
    if op.srcElements is not None:
        read = llvm.Trunc(llvm.Mul(low.one(op.srcElements), llvm.constant(op.dst.type.dtype.itemsize, i64)).result,
                          i32).result
    nvvm.CpAsyncSharedGlobal(dst, src, read, size=op.bytes, modifier="cg" if op.bypassL1 else "ca")
    return [[]]


@rule(nvgpu.DeviceAsyncCreateGroup)
def _group(low: Lowering, op: Op) -> list[Parts]:
    nvvm.CpAsyncCommitGroup()
    return [[]]


@rule(nvgpu.DeviceAsyncWait)
def _wait(low: Lowering, op: nvgpu.DeviceAsyncWait) -> None:
    nvvm.CpAsyncWaitGroup(n=op.numGroups or 0)


PASS = Pass(run, takes=GPU, gives=NVVM)
