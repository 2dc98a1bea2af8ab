"""PTX generation from a gpu.module in the llvm dialect."""

from __future__ import annotations

from mlc.backends.cuda.targets import architecture
from mlc.backends.emit_llvm import emit
from mlc.backends.object_code import assembly
from mlc.backends.target import Target
from mlc.dialects import gpu, llvm, nvvm
from mlc.ir.core import Op
from mlc.ir.diag import BackendError
from mlc.ir.passes import Pipeline
from mlc.ir.types import VectorType, element

LEGAL: frozenset[type[Op]] = frozenset((
    llvm.Func, llvm.Global, llvm.AddressOf, llvm.Constant, llvm.Undef, llvm.Poison, llvm.Zero,
    *(cls for cls in llvm.INSTRUCTIONS.values() if not issubclass(cls, llvm.Intrinsic) or cls.in_ptx),
    llvm.Freeze, llvm.Bitcast, llvm.PtrToInt, llvm.IntToPtr, llvm.AddrSpaceCast, llvm.GetElementPtr,
    llvm.InsertElement, llvm.ExtractElement, llvm.ShuffleVector,
    llvm.InsertValue, llvm.ExtractValue, llvm.Load, llvm.Store, llvm.Alloca, llvm.AtomicRMW,
    llvm.Br, llvm.CondBr, llvm.Switch, llvm.Return, llvm.Unreachable, llvm.Call,
    nvvm.Barrier, nvvm.ShflSync, nvvm.MmaSync, nvvm.LdMatrix, nvvm.CpAsyncSharedGlobal, nvvm.CpAsyncCommitGroup,
    nvvm.CpAsyncWaitGroup, nvvm.WgmmaFence, nvvm.WgmmaCommitGroup, nvvm.WgmmaWaitGroup, nvvm.FenceProxy, llvm.InlineAsm,
    *nvvm.REGISTERS.values()))
"""Operations that LLVM can select for NVPTX; for many others it aborts instead of reporting an error."""
SINCE: dict[type[Op], int] = {nvvm.MmaSync: 80, nvvm.CpAsyncSharedGlobal: 80, nvvm.CpAsyncCommitGroup: 80,
                              nvvm.CpAsyncWaitGroup: 80, nvvm.FenceProxy: 90}
"""The first architecture with an instruction, for those that not all architectures have."""
HOPPER_ONLY = (nvvm.WgmmaFence, nvvm.WgmmaCommitGroup, nvvm.WgmmaWaitGroup, llvm.InlineAsm)
"""Instructions of sm_90a, which its successors do not have."""
LANES = 128
"""Bits of the longest vector; no vector instruction computes on more than two lanes."""


def kernels(module: Op) -> gpu.GPUModule:
    """The kernels of a program."""
    for op in module.regions[0].block:
        if isinstance(op, gpu.GPUModule):
            return op
    raise BackendError("the program has no kernel: nothing in it runs on a GPU", code="MLC0549", loc=module.loc)


def llvm_ir(module: gpu.GPUModule, target: Target) -> str:
    """The LLVM IR of all kernels of a module."""
    check_legal(module, architecture(target), is_hopper=target.cpu == "sm_90a")
    return emit(module, target)


def ptx(module: gpu.GPUModule, target: Target, opt_level: int = 2) -> str:
    """The PTX of all kernels of a module, for an architecture such as cuda:sm_90."""
    return assembly(llvm_ir(module, target), target, opt_level)


def assemble(module: Op, target: Target) -> bytes:
    """The PTX of all kernels of a program at level low, which is lowered in place."""
    from mlc.passes import pipeline
    done = len(pipeline.steps("low", target.machine))
    Pipeline(pipeline.steps("llvm", target.machine)[done:]).run(module)
    return ptx(kernels(module), target).encode()


def check_legal(module: gpu.GPUModule, architecture: int, is_hopper: bool = False) -> None:
    """Reject operations that LLVM cannot generate code for, before LLVM aborts on them."""
    for op in module.walk():
        if op is not module and type(op) not in LEGAL:
            raise BackendError(f"{op.name} has no instruction on a GPU", code="MLC0548", loc=op.loc)
        if type(op) in HOPPER_ONLY and not is_hopper:
            raise BackendError(f"{op.name} has no instruction on sm_{architecture}: only sm_90a has", code="MLC0548",
                               loc=op.loc)
        if isinstance(op, llvm.InlineAsm) and not (nvvm.Wgmma.of(op) or nvvm.is_finish(op)):
            raise BackendError(f"{op.name}: {op.asm_string!r} with {op.constraints!r} is no instruction that is known "
                               "here", code="MLC0548", loc=op.loc)
        if architecture < SINCE.get(type(op), 0):
            raise BackendError(f"{op.name} has no instruction on sm_{architecture}: there is one since "
                               f"sm_{SINCE[type(op)]}", code="MLC0548", loc=op.loc)
        for v in op.results:
            if isinstance(v.type, VectorType) and element(v.type).width * v.type.shape[0] > LANES:
                raise BackendError(f"{op.name}: a {v.type} is longer than {LANES} bits", code="MLC0548", loc=op.loc)
