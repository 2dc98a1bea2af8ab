"""The exact remainder of floats (C's fmod), for which LLVM emits a library call, as long division in integers.

It is one function per float type, added to the module on first use. Vectors call it lane by lane: it is meant to be
correct, not fast.
"""

from __future__ import annotations

from mlc.dialects import llvm
from mlc.ir.core import Value
from mlc.ir.parser import Parser
from mlc.ir.types import VectorType, element, f32, i64
from mlc.passes.lower_to_llvm.lowering import Lowering

# With |a| = x * 2^i and |b| = y * 2^j, x and y integers: x mod y, doubled i - j times modulo y, is the remainder in
# units of 2^j. Denormals have exponent 1 and no hidden bit. NaN operands, infinite a and zero b give NaN.
_TEXT = """
llvm.func internal @{name}(%a: {F}, %b: {F}) -> {F} {{
  %zero = llvm.mlir.constant(0 : {I}) : {I}
  %one = llvm.mlir.constant(1 : {I}) : {I}
  %digits = llvm.mlir.constant({digits} : {I}) : {I}
  %hidden = llvm.mlir.constant({hidden} : {I}) : {I}
  %fraction = llvm.mlir.constant({fraction} : {I}) : {I}
  %magnitude = llvm.mlir.constant({magnitude} : {I}) : {I}
  %infinity = llvm.mlir.constant({infinity} : {I}) : {I}
  %bits = llvm.bitcast %a : {F} to {I}
  %xa = llvm.and %bits, %magnitude : {I}
  %divisor = llvm.bitcast %b : {F} to {I}
  %xb = llvm.and %divisor, %magnitude : {I}
  %sign = llvm.xor %bits, %xa : {I}
  %a_bad = llvm.icmp uge %xa, %infinity : {I}
  %b_nan = llvm.icmp ugt %xb, %infinity : {I}
  %b_zero = llvm.icmp eq %xb, %zero : {I}
  %bad_0 = llvm.or %a_bad, %b_nan : i1
  %bad = llvm.or %bad_0, %b_zero : i1
  llvm.cond_br %bad, ^undefined, ^compare
^undefined:
  %product = llvm.fmul %a, %b : {F}
  %nan = llvm.fdiv %product, %product : {F}
  llvm.return %nan : {F}
^compare:
  %small = llvm.icmp ult %xa, %xb : {I}
  llvm.cond_br %small, ^unchanged, ^split
^unchanged:
  llvm.return %a : {F}
^split:
  %ea_raw = llvm.lshr %xa, %digits : {I}
  %eb_raw = llvm.lshr %xb, %digits : {I}
  %ea = llvm.intr.umax(%ea_raw, %one) : ({I}, {I}) -> {I}
  %eb = llvm.intr.umax(%eb_raw, %one) : ({I}, {I}) -> {I}
  %a_denormal = llvm.icmp eq %ea_raw, %zero : {I}
  %b_denormal = llvm.icmp eq %eb_raw, %zero : {I}
  %a_hidden = llvm.select %a_denormal, %zero, %hidden : i1, {I}
  %b_hidden = llvm.select %b_denormal, %zero, %hidden : i1, {I}
  %a_low = llvm.and %xa, %fraction : {I}
  %b_low = llvm.and %xb, %fraction : {I}
  %ma = llvm.or %a_low, %a_hidden : {I}
  %mb = llvm.or %b_low, %b_hidden : {I}
  %start = llvm.urem %ma, %mb : {I}
  llvm.br ^double(%start, %ea : {I}, {I})
^double(%r: {I}, %e: {I}):
  %more = llvm.icmp ugt %e, %eb : {I}
  llvm.cond_br %more, ^step, ^found
^step:
  %twice = llvm.shl %r, %one : {I}
  %rest = llvm.sub %twice, %mb : {I}
  %fits = llvm.icmp uge %twice, %mb : {I}
  %next = llvm.select %fits, %rest, %twice : i1, {I}
  %lower = llvm.sub %e, %one : {I}
  llvm.br ^double(%next, %lower : {I}, {I})
^found:
  %nothing = llvm.icmp eq %r, %zero : {I}
  llvm.cond_br %nothing, ^pack(%zero : {I}), ^normalise(%r, %eb : {I}, {I})
^normalise(%m: {I}, %k: {I}):
  %low = llvm.icmp ult %m, %hidden : {I}
  %above = llvm.icmp ugt %k, %one : {I}
  %again = llvm.and %low, %above : i1
  llvm.cond_br %again, ^up, ^exponent
^up:
  %m2 = llvm.shl %m, %one : {I}
  %k2 = llvm.sub %k, %one : {I}
  llvm.br ^normalise(%m2, %k2 : {I}, {I})
^exponent:
  %k1 = llvm.sub %k, %one : {I}
  %high = llvm.shl %k1, %digits : {I}
  %whole = llvm.add %m, %high : {I}
  llvm.br ^pack(%whole : {I})
^pack(%packed: {I}):
  %signed = llvm.or %packed, %sign : {I}
  %out = llvm.bitcast %signed : {I} to {F}
  llvm.return %out : {F}
}}
"""


def remainder(low: Lowering, a: Value, b: Value) -> Value:
    """a - b * trunc(a / b), exactly, for f32 or f64 scalars or vectors."""
    callee = _function(low, 32 if element(a.type) == f32 else 64)
    if not isinstance(a.type, VectorType):
        result = llvm.call(callee, [a, b])
        assert result is not None
        return result
    out = llvm.Poison(a.type).result
    for lane in range(a.type.shape[0]):
        at = llvm.constant(lane, i64)
        part = llvm.call(callee, [llvm.ExtractElement(x, at).result for x in (a, b)])
        assert part is not None
        out = llvm.InsertElement(out, part, at).result
    return out


def _function(low: Lowering, bits: int) -> llvm.Func:
    name = f"mlc.fmod.f{bits}"
    if name not in low.functions:
        digits = {32: 23, 64: 52}[bits]
        exponent = bits - 1 - digits
        text = _TEXT.format(name=name, F=f"f{bits}", I=f"i{bits}", digits=digits, hidden=1 << digits,
                            fraction=(1 << digits) - 1, magnitude=(1 << bits - 1) - 1,
                            infinity=((1 << exponent) - 1) << digits)
        function = Parser(text, "fmod").op()
        assert isinstance(function, llvm.Func)
        low.module.body.block.insert(function, low.module.body.block.first)
        low.functions[name] = function
    return low.functions[name]

