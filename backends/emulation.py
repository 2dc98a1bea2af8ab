"""Bitwise exact LLVM IR in place of what LLVM would make library calls of.

x86-64-v2 lacks instructions, which are emulated:

fma in f32: the product is exact in f64, and the sum is rounded to odd there before it is rounded to f32 (Boldo and
Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms using rounding to odd", 2008). In f64 the
exact sum is formed in 128-bit integers, lane by lane. f16 to f32 and back are integer arithmetic on the bits; denormals
are handled by a float multiplication or addition that rounds at the right bit.

With F16C the rounding of one f32 to f16 is written as the instruction. LLVM moves a `fptrunc` into a `copysign` before
it, and then rounds the number that only gives its sign from its own type, maybe f64, by a library call.
"""

from __future__ import annotations

import re
from collections.abc import Collection

_CALL = re.compile(r"call (\S+|<[^>]*>) @(llvm\.\S+?)\((.*)\)")
_FMA = re.compile(r"^declare \S.* @llvm\.fma\.(?:v(\d+))?f(32|64)\(.*\)\n", re.MULTILINE)
_EXTEND = re.compile(r"fpext (half|<(\d+) x half>) (\S+) to (float|<\d+ x float>)")
_TRUNCATE = re.compile(r"fptrunc (float|<(\d+) x float>) (\S+) to (half|<\d+ x half>)")
_TRUNCATE_ONE = re.compile(r"fptrunc float (\S+) to half")


def emulate(text: str, features: Collection[str]) -> str:
    """Replace the instructions that a machine with `features` ("+fma", ...) lacks by calls of added functions."""
    bodies: list[str] = []
    if "+fma" not in features:
        found = {(int(m[1] or 0), int(m[2])) for m in _FMA.finditer(text)}
        text = _FMA.sub("", text).replace("@llvm.fma.", "@mlc.fma.")
        bodies += [_fma_in_f64(lanes) if width == 32 else _fma_by_lanes(lanes) for lanes, width in sorted(found)
                   if width == 32 or lanes]
        if any(width == 64 for _, width in found):
            bodies.append(_FMA_IN_INTEGERS)
    if "+f16c" not in features:
        for cast, body in ((_EXTEND, _extend), (_TRUNCATE, _truncate)):
            bodies += [body(lanes) for lanes in sorted({int(m[2] or 0) for m in cast.finditer(text)})]
            text = cast.sub(_call_of_cast, text)
    elif "+avx512fp16" not in features and _TRUNCATE_ONE.search(text):
        text = _TRUNCATE_ONE.sub(r"call half @mlc.truncate.f16(float \1)", text)
        bodies.append(_TRUNCATE_BY_F16C)
    code = "".join(bodies)
    used = {(m[2], f"declare {m[1]} @{m[2]}({_parameters(m[3])})\n") for m in _CALL.finditer(code)}
    return text + code + "".join(line for name, line in sorted(used) if f"@{name}(" not in text)


def _call_of_cast(m: re.Match[str]) -> str:
    name = "extend" if m[0].startswith("fpext") else "truncate"
    return f"call {m[4]} {_name(name, int(m[2] or 0), 16)}({m[1]} {m[3]})"


def _parameters(arguments: str) -> str:
    """The types of the arguments of a call; vector types contain no comma."""
    return ", ".join(argument.rsplit(" ", 1)[0] for argument in arguments.split(", "))


def _types(lanes: int, *scalars: str) -> list[str]:
    return [f"<{lanes} x {s}>" if lanes else s for s in scalars]


def _name(function: str, lanes: int, width: int) -> str:
    return f"@mlc.{function}.{f'v{lanes}' if lanes else ''}f{width}"


def _integer(value: int, lanes: int, type: str) -> str:
    return f"splat ({type} {value})" if lanes else str(value)


def _extend(lanes: int) -> str:
    """The exponent of f16, read as one of f32, is too small by 112, for denormals too."""
    f16, f32, i16, i32, i1 = _types(lanes, "half", "float", "i16", "i32", "i1")
    scale = "splat (float 0x46F0000000000000)" if lanes else "0x46F0000000000000"
    return f"""
define internal {f32} {_name("extend", lanes, 16)}({f16} %x) #0 {{
  %short = bitcast {f16} %x to {i16}
  %bits = zext {i16} %short to {i32}
  %magnitude = and {i32} %bits, {_integer(0x7FFF, lanes, "i32")}
  %moved = shl {i32} %magnitude, {_integer(13, lanes, "i32")}
  %small = bitcast {i32} %moved to {f32}
  %scaled = fmul {f32} %small, {scale}
  %number = bitcast {f32} %scaled to {i32}
  %endless = or {i32} %moved, {_integer(0x7F800000, lanes, "i32")}
  %special = icmp uge {i32} %magnitude, {_integer(0x7C00, lanes, "i32")}
  %absolute = select {i1} %special, {i32} %endless, {i32} %number
  %sign.low = and {i32} %bits, {_integer(0x8000, lanes, "i32")}
  %sign = shl {i32} %sign.low, {_integer(16, lanes, "i32")}
  %all = or {i32} %absolute, %sign
  %result = bitcast {i32} %all to {f32}
  ret {f32} %result
}}
"""


def _truncate(lanes: int) -> str:
    """To nearest even: by integer addition to the bits; for denormal results by adding 0.5, whose ulp is theirs."""
    f16, f32, i16, i32, i1 = _types(lanes, "half", "float", "i16", "i32", "i1")
    half = "splat (float 0.5)" if lanes else "0.5"

    def number(value: int) -> str:
        return _integer(value, lanes, "i32")

    return f"""
define internal {f16} {_name("truncate", lanes, 16)}({f32} %x) #0 {{
  %bits = bitcast {f32} %x to {i32}
  %magnitude = and {i32} %bits, {number(0x7FFFFFFF)}
  %last.low = lshr {i32} %magnitude, {number(13)}
  %last = and {i32} %last.low, {number(1)}
  %up = add {i32} %magnitude, %last
  %rounded = add {i32} %up, {number(0xFFF - (112 << 23))}
  %normal = lshr {i32} %rounded, {number(13)}
  %absolute = bitcast {i32} %magnitude to {f32}
  %sum = fadd {f32} %absolute, {half}
  %sum.bits = bitcast {f32} %sum to {i32}
  %denormal = sub {i32} %sum.bits, {number(0x3F000000)}
  %is.small = icmp ult {i32} %magnitude, {number(0x38800000)}
  %finite = select {i1} %is.small, {i32} %denormal, {i32} %normal
  %is.nan = icmp ugt {i32} %magnitude, {number(0x7F800000)}
  %special = select {i1} %is.nan, {i32} {number(0x7E00)}, {i32} {number(0x7C00)}
  %is.large = icmp uge {i32} %magnitude, {number(0x47800000)}
  %size = select {i1} %is.large, {i32} %special, {i32} %finite
  %sign.high = lshr {i32} %bits, {number(16)}
  %sign = and {i32} %sign.high, {number(0x8000)}
  %all = or {i32} %size, %sign
  %short = trunc {i32} %all to {i16}
  %result = bitcast {i16} %short to {f16}
  ret {f16} %result
}}
"""


# 4: to nearest even, by the mode of rounding that LLVM's own code for fptrunc goes by
_TRUNCATE_BY_F16C = """
define internal half @mlc.truncate.f16(float %x) alwaysinline #0 {
  %vector = insertelement <4 x float> poison, float %x, i32 0
  %rounded = call <8 x i16> @llvm.x86.vcvtps2ph.128(<4 x float> %vector, i32 4)
  %short = extractelement <8 x i16> %rounded, i32 0
  %result = bitcast i16 %short to half
  ret half %result
}
"""


def _fma_in_f64(lanes: int) -> str:
    f32, f64, i64, i1 = _types(lanes, "float", "double", "i64", "i1")

    def number(value: int) -> str:
        return _integer(value, lanes, "i64")

    zero = "zeroinitializer" if lanes else "0.0"
    infinity = "splat (double 0x7FF0000000000000)" if lanes else "0x7FF0000000000000"
    absolute = f"llvm.fabs.{f'v{lanes}' if lanes else ''}f64"
    return f"""
define internal {f32} {_name("fma", lanes, 32)}({f32} %a, {f32} %b, {f32} %c) #0 {{
  %a.wide = fpext {f32} %a to {f64}
  %b.wide = fpext {f32} %b to {f64}
  %c.wide = fpext {f32} %c to {f64}
  %product = fmul {f64} %a.wide, %b.wide
  %sum = fadd {f64} %product, %c.wide
  %part = fsub {f64} %sum, %product
  %rest = fsub {f64} %sum, %part
  %error.product = fsub {f64} %product, %rest
  %error.c = fsub {f64} %c.wide, %part
  %error = fadd {f64} %error.product, %error.c
  %size = call {f64} @{absolute}({f64} %sum)
  %finite = fcmp olt {f64} %size, {infinity}
  %wrong = fcmp one {f64} %error, {zero}
  %inexact = and {i1} %finite, %wrong
  %bits = bitcast {f64} %sum to {i64}
  %last = and {i64} %bits, {number(1)}
  %even = icmp eq {i64} %last, {number(0)}
  %move = and {i1} %inexact, %even
  %up = fcmp ogt {f64} %error, {zero}
  %positive = fcmp ogt {f64} %sum, {zero}
  %inwards = xor {i1} %up, %positive
  %direction = select {i1} %inwards, {i64} {number(-1)}, {i64} {number(1)}
  %step = select {i1} %move, {i64} %direction, {i64} {number(0)}
  %odd = add {i64} %bits, %step
  %sum.odd = bitcast {i64} %odd to {f64}
  %result = fptrunc {f64} %sum.odd to {f32}
  ret {f32} %result
}}
"""


def _fma_by_lanes(lanes: int) -> str:
    type = f"<{lanes} x double>"
    lines, result = [], "poison"
    for i in range(lanes):
        lines += [f"  %{x}{i} = extractelement {type} %{x}, i32 {i}" for x in "abc"]
        lines.append(f"  %x{i} = call double {_name('fma', 0, 64)}(double %a{i}, double %b{i}, double %c{i})")
        lines.append(f"  %r{i} = insertelement {type} {result}, double %x{i}, i32 {i}")
        result = f"%r{i}"
    body = "\n".join(lines)
    return f"""
define internal {type} {_name("fma", lanes, 64)}({type} %a, {type} %b, {type} %c) #0 {{
{body}
  ret {type} {result}
}}
"""


_FMA_IN_INTEGERS = """
; |x| = mantissa * 2^exponent with 2^52 <= mantissa < 2^53, for x finite and not zero
define internal { i64, i64 } @mlc.fma.parts(double %x) #0 {
  %bits = bitcast double %x to i64
  %fraction = and i64 %bits, 4503599627370495
  %shifted = lshr i64 %bits, 52
  %biased = and i64 %shifted, 2047
  %is.normal = icmp ne i64 %biased, 0
  %whole = or i64 %fraction, 4503599627370496
  %zeros = call i64 @llvm.ctlz.i64(i64 %fraction, i1 false)
  %missing = sub i64 %zeros, 11
  %safe = select i1 %is.normal, i64 0, i64 %missing
  %scaled = shl i64 %fraction, %safe
  %mantissa = select i1 %is.normal, i64 %whole, i64 %scaled
  %exponent.normal = sub i64 %biased, 1075
  %exponent.tiny = sub i64 -1074, %safe
  %exponent = select i1 %is.normal, i64 %exponent.normal, i64 %exponent.tiny
  %first = insertvalue { i64, i64 } poison, i64 %mantissa, 0
  %both = insertvalue { i64, i64 } %first, i64 %exponent, 1
  ret { i64, i64 } %both
}

; x / 2^count, where the last bit also stands for all that is shifted out
define internal i128 @mlc.fma.jam(i128 %x, i64 %count) #0 {
  %least = call i64 @llvm.smin.i64(i64 %count, i64 127)
  %few = call i64 @llvm.smax.i64(i64 %least, i64 0)
  %wide = zext i64 %few to i128
  %quotient = lshr i128 %x, %wide
  %back = shl i128 %quotient, %wide
  %lost = icmp ne i128 %back, %x
  %sticky = zext i1 %lost to i128
  %result = or i128 %quotient, %sticky
  ret i128 %result
}

; 2^exponent for a normal result
define internal double @mlc.fma.power(i64 %exponent) #0 {
  %biased = add i64 %exponent, 1023
  %bits = shl i64 %biased, 52
  %power = bitcast i64 %bits to double
  ret double %power
}

define internal double @mlc.fma.f64(double %a, double %b, double %c) #0 {
  %product.rounded = fmul double %a, %b
  %plain.sum = fadd double %product.rounded, %c
  %a.size = call double @llvm.fabs.f64(double %a)
  %b.size = call double @llvm.fabs.f64(double %b)
  %c.size = call double @llvm.fabs.f64(double %c)
  %a.finite = fcmp olt double %a.size, 0x7FF0000000000000
  %b.finite = fcmp olt double %b.size, 0x7FF0000000000000
  %c.finite = fcmp olt double %c.size, 0x7FF0000000000000
  %a.some = fcmp one double %a, 0.0
  %b.some = fcmp one double %b, 0.0
  %ab.finite = and i1 %a.finite, %b.finite
  %ab.some = and i1 %a.some, %b.some
  %ab = and i1 %ab.finite, %ab.some
  br i1 %ab, label %look.at.c, label %plain
plain:
  ret double %plain.sum
look.at.c:
  br i1 %c.finite, label %exact, label %infinite
infinite:
  ret double %c
exact:
  %a.parts = call { i64, i64 } @mlc.fma.parts(double %a)
  %b.parts = call { i64, i64 } @mlc.fma.parts(double %b)
  %a.mantissa = extractvalue { i64, i64 } %a.parts, 0
  %b.mantissa = extractvalue { i64, i64 } %b.parts, 0
  %a.exponent = extractvalue { i64, i64 } %a.parts, 1
  %b.exponent = extractvalue { i64, i64 } %b.parts, 1
  %a.wide = zext i64 %a.mantissa to i128
  %b.wide = zext i64 %b.mantissa to i128
  %p = mul i128 %a.wide, %b.wide
  %p.high = shl i128 %p, 20
  %p.exponent.low = add i64 %a.exponent, %b.exponent
  %p.exponent = sub i64 %p.exponent.low, 20
  ; c as high, 2^125 <= mantissa < 2^126, unless it is zero
  %c.some = fcmp one double %c, 0.0
  %c.or.one = select i1 %c.some, double %c, double 1.0
  %c.parts = call { i64, i64 } @mlc.fma.parts(double %c.or.one)
  %c.mantissa = extractvalue { i64, i64 } %c.parts, 0
  %c.exponent.low = extractvalue { i64, i64 } %c.parts, 1
  %c.wide = zext i64 %c.mantissa to i128
  %c.shifted = shl i128 %c.wide, 73
  %c.high = select i1 %c.some, i128 %c.shifted, i128 0
  %c.exponent.own = sub i64 %c.exponent.low, 73
  %c.exponent = select i1 %c.some, i64 %c.exponent.own, i64 %p.exponent
  ; the smaller one is shifted to the exponent of the larger
  %exponent = call i64 @llvm.smax.i64(i64 %p.exponent, i64 %c.exponent)
  %p.down = sub i64 %exponent, %p.exponent
  %c.down = sub i64 %exponent, %c.exponent
  %p.aligned = call i128 @mlc.fma.jam(i128 %p.high, i64 %p.down)
  %c.aligned = call i128 @mlc.fma.jam(i128 %c.high, i64 %c.down)
  %a.bits = bitcast double %a to i64
  %b.bits = bitcast double %b to i64
  %c.bits = bitcast double %c to i64
  %p.bits = xor i64 %a.bits, %b.bits
  %p.negative = icmp slt i64 %p.bits, 0
  %c.negative = icmp slt i64 %c.bits, 0
  %p.minus = sub i128 0, %p.aligned
  %c.minus = sub i128 0, %c.aligned
  %p.signed = select i1 %p.negative, i128 %p.minus, i128 %p.aligned
  %c.signed = select i1 %c.negative, i128 %c.minus, i128 %c.aligned
  %sum = add i128 %p.signed, %c.signed
  %cancelled = icmp eq i128 %sum, 0
  br i1 %cancelled, label %nothing, label %round
nothing:
  ret double 0.0
round:
  %negative = icmp slt i128 %sum, 0
  %minus = sub i128 0, %sum
  %size = select i1 %negative, i128 %minus, i128 %sum
  %zeros.wide = call i128 @llvm.ctlz.i128(i128 %size, i1 true)
  %zeros = trunc i128 %zeros.wide to i64
  %mantissa = shl i128 %size, %zeros.wide
  %scale = sub i64 %exponent, %zeros
  ; 53 bits are kept, fewer where the result is denormal
  %scale.kept = add i64 %scale, 75
  %short = sub i64 -1074, %scale.kept
  %extra = call i64 @llvm.smax.i64(i64 %short, i64 0)
  %extra.most = call i64 @llvm.smin.i64(i64 %extra, i64 60)
  %jammed = call i128 @mlc.fma.jam(i128 %mantissa, i64 %extra.most)
  %kept = lshr i128 %jammed, 75
  %dropped = and i128 %jammed, 37778931862957161709567
  %above = icmp ugt i128 %dropped, 18889465931478580854784
  %half = icmp eq i128 %dropped, 18889465931478580854784
  %last = trunc i128 %kept to i1
  %tie.up = and i1 %half, %last
  %up = or i1 %above, %tie.up
  %more = zext i1 %up to i128
  %rounded = add i128 %kept, %more
  %integer = trunc i128 %rounded to i64
  %number = uitofp i64 %integer to double
  ; times 2^power, in two steps: neither it nor half of it need be a normal number, the result has no more bits
  %power.low = call i64 @llvm.smax.i64(i64 %scale.kept, i64 -1074)
  %power = call i64 @llvm.smin.i64(i64 %power.low, i64 2000)
  %power.half = ashr i64 %power, 1
  %power.rest = sub i64 %power, %power.half
  %factor = call double @mlc.fma.power(i64 %power.half)
  %factor.rest = call double @mlc.fma.power(i64 %power.rest)
  %scaled = fmul double %number, %factor
  %absolute = fmul double %scaled, %factor.rest
  %opposite = fneg double %absolute
  %result = select i1 %negative, double %opposite, double %absolute
  ret double %result
}
"""
