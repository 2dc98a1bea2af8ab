"""The limits of this machine, measured: multiply-adds in registers, and copies of several sizes.

The loops are LLVM IR with everything in registers, so that they show what the processor can do and not what a compiler
makes of a loop: as many independent accumulators as hide the latency of a multiply-add.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from ctypes import CFUNCTYPE, c_float, c_int32, c_int64
from typing import Any

import numpy as np

from mlc.backends.cpu.targets import host
from mlc.ir.machine import Cpu
from mlc.roofline import MEMORY, Level, Limits

TRIPS = 1 << 20
SIZES = {"L2": 1 << 17, "L3": 1 << 22, MEMORY: 1 << 28}
"""Bytes of an array that is copied into another; with its target twice as many are in use."""
PAGE = 4096


def _accumulators(features: str) -> int:
    """Number of independent accumulators: enough to hide the latency, and all in registers beside the factor."""
    return 24 if "+avx512f" in features else 12


def _loop(name: str, accumulator: str, factor: str, before: bool, count: int) -> str:
    """IR of a function that repeats a multiply-add on each of the accumulators, and adds these up.

    Args:
        name: The intrinsic.
        accumulator: The type of what is added to.
        factor: The type of what is multiplied.
        before: Whether the accumulator is the first operand; else it is the last.
        count: The number of accumulators.
    """
    element = accumulator.strip("<>").split(" x ")[1]
    floats = element == "float"
    add, numbers = ("fadd" if floats else "add"), range(count)
    phis = "\n".join(f"  %a{i} = phi {accumulator} [ zeroinitializer, %entry ], [ %b{i}, %loop ]" for i in numbers)
    steps = "\n".join(
        f"  %b{i} = call {accumulator} {name}(" + ", ".join(
            [f"{accumulator} %a{i}", *[f"{factor} %x"] * 2] if before else
            [*[f"{factor} %x"] * 2, f"{accumulator} %a{i}"]) + ")" for i in numbers)
    sums = "\n".join(f"  %s{i} = {add} {accumulator} " + (f"%s{i - 1}" if i else "zeroinitializer") + f", %b{i}"
                     for i in numbers)
    operands = [accumulator, factor, factor] if before else [factor, factor, accumulator]
    return f"""declare {accumulator} {name}({", ".join(operands)})
define {element} @f(i64 %n, {element} %v) "prefer-vector-width"="512" "min-legal-vector-width"="512" {{
entry:
  %x0 = insertelement {accumulator} zeroinitializer, {element} %v, i32 0
  %x = bitcast {accumulator} %x0 to {factor}
  br label %loop
loop:
  %k = phi i64 [ 0, %entry ], [ %next, %loop ]
{phis}
{steps}
  %next = add i64 %k, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %done
done:
{sums}
  %e = extractelement {accumulator} %s{count - 1}, i32 0
  ret {element} %e
}}
"""


TILES = 6
"""Tiles of sums: those of the eight that are no factors."""


def _tile_loop(name: str) -> str:
    """The same of an instruction that multiplies tiles of AMX, whose sums are stored. Its factors are in two registers,
    of which it may not be given one twice."""
    tile, numbers = "x86_amx", range(TILES)
    phis = "\n".join(f"  %a{i} = phi {tile} [ %zero, %entry ], [ %b{i}, %loop ]" for i in numbers)
    steps = "\n".join(f"  %b{i} = call {tile} {name}(i16 16, i16 64, i16 64, {tile} %a{i}, {tile} %x, {tile} %y)"
                      for i in numbers)
    stores = "\n".join(f"  call void @llvm.x86.tilestored64.internal(i16 16, i16 64, ptr %m, i64 64, {tile} %b{i})"
                       for i in numbers)
    return f"""declare {tile} {name}(i16, i16, i16, {tile}, {tile}, {tile})
declare {tile} @llvm.x86.tilezero.internal(i16, i16)
declare {tile} @llvm.x86.tileloadd64.internal(i16, i16, ptr, i64)
declare void @llvm.x86.tilestored64.internal(i16, i16, ptr, i64, {tile})
define float @f(i64 %n, float %v) {{
entry:
  %m = alloca [1024 x i8], align 64
  %zero = call {tile} @llvm.x86.tilezero.internal(i16 16, i16 64)
  call void @llvm.x86.tilestored64.internal(i16 16, i16 64, ptr %m, i64 64, {tile} %zero)
  %x = call {tile} @llvm.x86.tileloadd64.internal(i16 16, i16 64, ptr %m, i64 64)
  %y = call {tile} @llvm.x86.tileloadd64.internal(i16 16, i16 64, ptr %m, i64 0)
  br label %loop
loop:
  %k = phi i64 [ 0, %entry ], [ %next, %loop ]
{phis}
{steps}
  %next = add i64 %k, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %done
done:
{stores}
  ret float %v
}}
"""


def _programs(features: str) -> dict[str, tuple[str, int, Any]]:
    """By name, the IR of a loop, the operations of each trip, and the type of the function's number."""
    wide, count = 16 if "+avx512f" in features else 8, _accumulators(features)
    floats, integers = f"<{wide} x float>", "<16 x i32>"
    found: dict[str, tuple[str, int, Any]] = {"f32": (_loop(f"@llvm.fma.v{wide}f32", floats, floats, False, count),
                                              2 * wide * count, c_float)}
    machine, dots = host().machine, "@llvm.x86.avx512bf16.dpbf16ps.512"
    if isinstance(machine, Cpu) and machine.bf16_tiles:
        found["bf16"] = _tile_loop("@llvm.x86.tdpbf16ps.internal"), TILES * 2 * 16 * 16 * 32, c_float
    elif "+avx512bf16" in features:
        found["bf16"] = _loop(dots, floats, "<32 x bfloat>", True, count), 64 * count, c_float
    if isinstance(machine, Cpu) and machine.byte_tiles:
        found["int8"] = _tile_loop("@llvm.x86.tdpbusd.internal"), TILES * 2 * 16 * 16 * 64, c_float
    elif "+avx512vnni" in features:
        found["int8"] = _loop("@llvm.x86.avx512.vpdpbusd.512", integers, "<64 x i8>", True, count), 128 * count, c_int32
    return found


def multiply_adds(threads: int) -> dict[str, tuple[float, float]]:
    """Operations a second of one thread and of all, by kind of number: f32, and bf16 and int8 where there are
    instructions for their products. A multiply-add is two operations."""
    import llvmlite.binding as llvm
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    features = llvm.get_host_cpu_features().flatten()
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=features, opt=3)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    found = {}
    for name, (text, each, number) in _programs(features).items():
        engine.add_module(llvm.parse_assembly(text.replace("@f(", f"@{name}(")))
        engine.finalize_object()
        f = CFUNCTYPE(number, c_int64, number)(engine.get_function_address(name))
        operations = TRIPS * each
        found[name] = (operations / _seconds(lambda f=f: f(TRIPS, 0), 1),  # type: ignore[misc]
                       threads * operations / _seconds(lambda f=f: f(TRIPS, 0), threads))  # type: ignore[misc]
    return found


def _seconds(run: Callable[[], Any], threads: int, rounds: int = 5) -> float:
    """The least time of a call in each of several threads at once; calls of C do not hold the lock of Python."""
    best = float("inf")
    for _ in range(rounds):
        others = [threading.Thread(target=run) for _ in range(threads - 1)]
        start = time.perf_counter()
        for t in others:
            t.start()
        run()
        for t in others:
            t.join()
        best = min(best, time.perf_counter() - start)
    return best


def _pages(size: int) -> np.ndarray[Any, Any]:
    """An array of ones that begins at a page: copies between other offsets are a tenth as fast on some processors."""
    memory = np.ones(size + PAGE, np.uint8)
    first = -memory.ctypes.data % PAGE
    array: np.ndarray[Any, Any] = memory[first:first + size]
    return array


def copies(threads: int, volume: int = 1 << 28) -> dict[str, tuple[float, float]]:
    """Bytes a second that are read and written by copies within the caches and in memory, of one thread and of all.

    Args:
        threads: The number of all.
        volume: Bytes that each thread copies in a round; arrays are at most as long.
    """
    found = {}
    for name, size in SIZES.items():
        size = min(size, volume)
        pairs = [(_pages(size), _pages(size)) for _ in range(threads)]
        repeats = max(1, volume // size)

        def copy(i: int, pairs: Any = pairs, repeats: int = repeats) -> None:
            source, target = pairs[i]
            for _ in range(repeats):
                np.copyto(target, source)

        moved = 2.0 * size * repeats
        one = _seconds(lambda copy=copy: copy(0), 1, 3)  # type: ignore[misc]
        best = float("inf")
        for _ in range(3):
            numbers = iter(range(threads))
            best = min(best, _seconds(lambda copy=copy, numbers=numbers: copy(next(numbers)), threads, 1))  # type: ignore[misc]
        found[name] = (moved / one, threads * moved / best)
    return found


def limits(threads: int) -> Limits:
    """The limits of this machine, which takes two seconds.

    Args:
        threads: The number of all.
    """
    levels, best = list[Level](), (0.0, 0.0)
    for name, rates in reversed(copies(threads).items()):
        best = max(best[0], rates[0]), max(best[1], rates[1])          # a smaller cache is no slower than a larger one
        levels.insert(0, Level(name, SIZES[name], best))
    return Limits(multiply_adds(threads), tuple(levels), threads)
