"""LLVM IR of the nvvm dialect: one table row per operation, as in emit_llvm.py."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from mlc.dialects import nvvm
from mlc.ir.core import Op
from mlc.ir.types import Type, i32, i64


class Writer(Protocol):
    """The emitter of a function."""

    def intrinsic(self, op: Op, name: str, overloads: Sequence[Type], tail: Sequence[tuple[Type, str]] = ()) -> str:
        """A call of @llvm.NAME.TYPES with the operands of `op` and constants after them."""


def _register(w: Writer, op: Op) -> str:
    return w.intrinsic(op, op.name, ())


def _shuffle_threads(w: Writer, op: nvvm.ShflSync) -> str:
    """Variants of the intrinsic with a second result, the predicate, end in p."""
    return w.intrinsic(op, f"{op.name}.{op.kind}.{op.val.type}{'p' if op.return_value_and_is_valid else ''}", ())


def _mma(w: Writer, op: nvvm.MmaSync) -> str:
    """The accumulator type is part of the name if the factor type permits several."""
    m, n, k = op.extents
    kind = "f32.f32" if op.kind == "f16" else op.kind
    return w.intrinsic(op, f"nvvm.mma.m{m}n{n}k{k}.{op.layoutA}.{op.layoutB}.{kind}", ())


def _ldmatrix(w: Writer, op: nvvm.LdMatrix) -> str:
    transposed = ".trans" if op.layout == "col" else ""
    return w.intrinsic(op, f"nvvm.ldmatrix.sync.aligned.m8n8.x{op.num}{transposed}.b16", [op.ptr.type])


ROWS: dict[type[Op], Callable[[Any, Any], str]] = {
    **dict.fromkeys(nvvm.REGISTERS.values(), _register),
    nvvm.Barrier: lambda w, o: w.intrinsic(o, "nvvm.barrier.cta.sync.aligned.all", (), [(i32, "0")]),
    nvvm.ShflSync: _shuffle_threads, nvvm.MmaSync: _mma, nvvm.LdMatrix: _ldmatrix,
    nvvm.CpAsyncSharedGlobal: lambda w, o: w.intrinsic(
        o, f"nvvm.cp.async.{o.modifier}.shared.global.{o.size}{'.s' if o.cpSize is not None else ''}", ()),
    nvvm.CpAsyncCommitGroup: lambda w, o: w.intrinsic(o, "nvvm.cp.async.commit.group", ()),
    nvvm.CpAsyncWaitGroup: lambda w, o: w.intrinsic(o, "nvvm.cp.async.wait.group", (), [(i32, str(o.n))]),
    nvvm.WgmmaFence: lambda w, o: w.intrinsic(o, "nvvm.wgmma.fence.sync.aligned", ()),
    nvvm.WgmmaCommitGroup: lambda w, o: w.intrinsic(o, "nvvm.wgmma.commit_group.sync.aligned", ()),
    nvvm.WgmmaWaitGroup: lambda w, o: w.intrinsic(o, "nvvm.wgmma.wait_group.sync.aligned", (), [(i64, str(o.group))]),
    nvvm.FenceProxy: lambda w, o: w.intrinsic(o, "nvvm.fence.proxy.async.shared_cta", ()),
}
"""LLVM IR of each operation, after `%result = `."""
