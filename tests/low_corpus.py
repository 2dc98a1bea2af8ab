"""Programs of the low level, each with arguments: loops, conditions, views, masks, gathers, calls and globals."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.arrays import Array
from tests.low_programs import Argument

PROGRAMS: dict[str, tuple[str, list[list[Argument]]]] = {}
"""name -> (a module with @main, lists of arguments). The arrays @main writes are among its arguments."""


def add(name: str, text: str, *calls: list[Argument]) -> None:
    PROGRAMS[name] = (text, list(calls))


def rand(*shape: int, dtype: Any = np.float32, seed: int = 0) -> Array:
    rng = np.random.default_rng(seed + sum(shape))
    if np.dtype(dtype).kind in "iu":
        return rng.integers(-100, 100, shape).astype(dtype)
    return rng.standard_normal(shape).astype(dtype)


def zeros(*shape: int, dtype: Any = np.float32) -> Array:
    return np.zeros(shape, dtype)


add("matmul", """
func.func @main(%a: memref<?x?xf32>, %b: memref<?x?xf32>, %c: memref<?x?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %m = memref.dim %a, %c0 : memref<?x?xf32>
  %k = memref.dim %a, %c1 : memref<?x?xf32>
  %n = memref.dim %b, %c1 : memref<?x?xf32>
  scf.for %i = %c0 to %m step %c1 {
    scf.for %j = %c0 to %n step %c1 {
      %r = scf.for %l = %c0 to %k step %c1 iter_args(%acc = %zero) -> (f32) {
        %x = memref.load %a[%i, %l] : memref<?x?xf32>
        %y = memref.load %b[%l, %j] : memref<?x?xf32>
        %s = math.fma %x, %y, %acc : f32
        scf.yield %s : f32
      }
      memref.store %r, %c[%i, %j] : memref<?x?xf32>
    }
  }
  func.return
}""", [rand(3, 5), rand(5, 4), zeros(3, 4)], [rand(1, 1), rand(1, 1), zeros(1, 1)], [rand(2, 0), rand(0, 3),
                                                                                    zeros(2, 3)])

add("clamp and count", """
func.func @main(%x: memref<?xf64>, %out: memref<?xf64>, %count: memref<2xi64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %limit = arith.constant 0.5 : f64
  %n = memref.dim %x, %c0 : memref<?xf64>
  %many:2 = scf.for %i = %c0 to %n step %c1 iter_args(%above = %zero, %nans = %zero) -> (i64, i64) {
    %v = memref.load %x[%i] : memref<?xf64>
    %big = arith.cmpf ogt, %v, %limit : f64
    %nan = arith.cmpf uno, %v, %v : f64
    %r:2 = scf.if %big -> (f64, i64) {
      %more = arith.addi %above, %one : i64
      scf.yield %limit, %more : f64, i64
    } else {
      scf.yield %v, %above : f64, i64
    }
    %seen = arith.extui %nan : i1 to i64
    %total = arith.addi %nans, %seen : i64
    scf.if %nan {
      memref.store %limit, %out[%i] : memref<?xf64>
    } else {
      memref.store %r#0, %out[%i] : memref<?xf64>
    }
    scf.yield %r#1, %total : i64, i64
  }
  memref.store %many#0, %count[%c0] : memref<2xi64>
  scf.if %big_enough_never_false() {
  }
  func.return
}""".replace("""  scf.if %big_enough_never_false() {
  }
""", """  %yes = arith.constant true
  scf.if %yes {
    memref.store %many#1, %count[%c1] : memref<2xi64>
  }
"""), [np.array([1, -2, np.nan, 0.5, np.inf, -0.0]), zeros(6, dtype="f8"), zeros(2, dtype="i8")])

add("steps to one", """
func.func @main(%x: memref<?xi64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %two = arith.constant 2 : i64
  %three = arith.constant 3 : i64
  %n = memref.dim %x, %c0 : memref<?xi64>
  scf.for %i = %c0 to %n step %c1 {
    %start = memref.load %x[%i] : memref<?xi64>
    %r:2 = scf.while (%v = %start, %steps = %zero) : (i64, i64) -> (i64, i64) {
      %going = arith.cmpi ne, %v, %one : i64
      scf.condition(%going) %v, %steps : i64, i64
    } do {
    ^bb0(%v: i64, %steps: i64):
      %odd = arith.remui %v, %two : i64
      %is_odd = arith.cmpi eq, %odd, %one : i64
      %half = arith.shrui %v, %one : i64
      %triple = arith.muli %v, %three : i64
      %up = arith.addi %triple, %one : i64
      %next = arith.select %is_odd, %up, %half : i64
      %count = arith.addi %steps, %one : i64
      scf.yield %next, %count : i64, i64
    }
    memref.store %r#1, %x[%i] : memref<?xi64>
  }
  func.return
}""", [np.array([1, 2, 3, 7, 27, 97], "i8")])

add("masked tail", """
func.func @main(%n: index, %x: memref<?xf32>, %y: memref<?xf32>, %sum: memref<16xf32>) {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %zero = arith.constant dense<0.0> : vector<16xf32>
  %scale = arith.constant dense<[1.0, -1.0, 2.0, 0.5, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.1, -0.0]> : vector<16xf32>
  %r = scf.for %i = %c0 to %n step %c16 iter_args(%acc = %zero) -> (vector<16xf32>) {
    %left = arith.subi %n, %i : index
    %mask = vector.create_mask %left : vector<16xi1>
    %v = vector.maskedload %x[%i], %mask, %zero : memref<?xf32>, vector<16xi1>, vector<16xf32> into vector<16xf32>
    %w = arith.mulf %v, %scale : vector<16xf32>
    vector.maskedstore %y[%i], %mask, %w : memref<?xf32>, vector<16xi1>, vector<16xf32>
    %s = arith.addf %acc, %w : vector<16xf32>
    scf.yield %s : vector<16xf32>
  }
  vector.store %r, %sum[%c0] : memref<16xf32>, vector<16xf32>
  func.return
}""", *[[n, rand(n), zeros(n), zeros(16)] for n in (0, 1, 15, 16, 17, 40)])

for kind, width, position in (("f32", 8, "i32"), ("f64", 4, "index"), ("i8", 16, "i32"), ("i64", 8, "i64"),
                              ("f32", 16, "i8")):
    numpy = {"f32": "f4", "f64": "f8", "i8": "i1", "i64": "i8"}[kind]
    at = {"i32": "i4", "index": "i8", "i64": "i8", "i8": "i1"}[position]
    zero = "0.0" if kind.startswith("f") else "0"
    add(f"gather {kind} at {position}", f"""
func.func @main(%n: index, %x: memref<3x?x{kind}>, %at: memref<?x{position}>, %y: memref<?x{kind}>) {{
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %lanes = arith.constant {width} : index
  %zero = arith.constant dense<{zero}> : vector<{width}x{kind}>
  %none = arith.constant dense<0> : vector<{width}x{position}>
  scf.for %i = %c0 to %n step %lanes {{
    %left = arith.subi %n, %i : index
    %mask = vector.create_mask %left : vector<{width}xi1>
    %p = vector.maskedload %at[%i], %mask, %none : memref<?x{position}>, vector<{width}xi1>, vector<{width}x{position}> into vector<{width}x{position}>
    %v = vector.gather %x[%c2, %c0][%p], %mask, %zero : memref<3x?x{kind}>, vector<{width}x{position}>, vector<{width}xi1>, vector<{width}x{kind}> into vector<{width}x{kind}>
    vector.maskedstore %y[%i], %mask, %v : memref<?x{kind}>, vector<{width}xi1>, vector<{width}x{kind}>
  }}
  func.return
}}""", [21, rand(3, 13, dtype=numpy), (np.arange(21) * 5 % 13).astype(at), zeros(21, dtype=numpy)])

add("arena", """
func.func @main(%n: index, %x: memref<?x3xf32>, %y: memref<3x?xf32>, %count: memref<i64>, %arena: memref<?xi8>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c12 = arith.constant 12 : index
  %bytes = arith.muli %n, %c12 : index
  %square = memref.view %arena[%c0][%n] : memref<?xi8> to memref<?x3xf32>
  %last = memref.view %arena[%bytes][] : memref<?xi8> to memref<2xi64>
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  memref.store %zero, %last[%c1] : memref<2xi64>
  scf.for %i = %c0 to %n step %c1 {
    scf.for %j = %c0 to %c3 step %c1 {
      %v = memref.load %x[%i, %j] : memref<?x3xf32>
      %w = arith.mulf %v, %v : f32
      memref.store %w, %square[%i, %j] : memref<?x3xf32>
      %seen = memref.load %last[%c1] : memref<2xi64>
      %more = arith.addi %seen, %one : i64
      memref.store %more, %last[%c1] : memref<2xi64>
    }
  }
  scf.for %i = %c0 to %n step %c1 {
    scf.for %j = %c0 to %c3 step %c1 {
      %v = memref.load %square[%i, %j] : memref<?x3xf32>
      memref.store %v, %y[%j, %i] : memref<3x?xf32>
    }
  }
  %all = memref.load %last[%c1] : memref<2xi64>
  memref.store %all, %count[] : memref<i64>
  func.return
}""", [4, rand(4, 3), zeros(3, 4), np.zeros((), "i8"), zeros(64, dtype="i1")])

add("windows", """
func.func @main(%a: memref<?x?xf32>, %i: index, %n: index, %out: memref<4x?xf32>, %flat: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %w = memref.subview %a[%i, 1] [4, %n] [2, %c2] : memref<?x?xf32> to memref<4x?xf32, strided<[?, ?], offset: ?>>
  %inner = memref.subview %w[1, 0] [2, %c2] [1, 1] : memref<4x?xf32, strided<[?, ?], offset: ?>> to memref<2x?xf32, strided<[?, ?], offset: ?>>
  scf.for %r = %c0 to %c4 step %c1 {
    scf.for %c = %c0 to %n step %c1 {
      %v = memref.load %w[%r, %c] : memref<4x?xf32, strided<[?, ?], offset: ?>>
      memref.store %v, %out[%r, %c] : memref<4x?xf32>
    }
  }
  %ten = arith.constant 10.0 : f32
  memref.store %ten, %inner[%c1, %c1] : memref<2x?xf32, strided<[?, ?], offset: ?>>
  %columns = memref.dim %w, %c1 : memref<4x?xf32, strided<[?, ?], offset: ?>>
  %size = memref.dim %a, %c1 : memref<?x?xf32>
  %rows = memref.dim %a, %c0 : memref<?x?xf32>
  %diagonal = arith.addi %size, %c1 : index
  %d = memref.reinterpret_cast %a to offset: [1], sizes: [%columns], strides: [%diagonal] : memref<?x?xf32> to memref<?xf32, strided<[?], offset: 1>>
  %four = memref.cast %out : memref<4x?xf32> to memref<?x?xf32>
  scf.for %c = %c0 to %columns step %c1 {
    %v = memref.load %d[%c] : memref<?xf32, strided<[?], offset: 1>>
    %u = memref.load %four[%c1, %c] : memref<?x?xf32>
    %s = arith.subf %v, %u : f32
    memref.store %s, %flat[%c] : memref<?xf32>
  }
  func.return
}""", [rand(9, 8), 1, 3, zeros(4, 3), zeros(3)], [rand(8, 7), 0, 2, zeros(4, 2), zeros(2)])

add("strided argument", """
func.func private @scaled(%x: memref<?x?xf32, strided<[?, 1]>>, %by: f32, %again: i1) -> (f32, index, i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %rows = memref.dim %x, %c0 : memref<?x?xf32, strided<[?, 1]>>
  %columns = memref.dim %x, %c1 : memref<?x?xf32, strided<[?, 1]>>
  %zero = arith.constant 0.0 : f32
  %r = scf.for %i = %c0 to %rows step %c1 iter_args(%outer = %zero) -> (f32) {
    %s = scf.for %j = %c0 to %columns step %c1 iter_args(%acc = %outer) -> (f32) {
      %v = memref.load %x[%i, %j] : memref<?x?xf32, strided<[?, 1]>>
      %w = arith.mulf %v, %by : f32
      memref.store %w, %x[%i, %j] : memref<?x?xf32, strided<[?, 1]>>
      %t = arith.addf %acc, %w : f32
      scf.yield %t : f32
    }
    scf.yield %s : f32
  }
  %n = arith.muli %rows, %columns : index
  %yes = arith.constant true
  %other = arith.xori %again, %yes : i1
  func.return %r, %n, %other : f32, index, i1
}
func.func @main(%x: memref<?x?xf32, strided<[?, 1]>>, %sum: memref<2xf32>, %count: memref<2xindex>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %by = arith.constant 3.0 : f32
  %no = arith.constant false
  %a:3 = func.call @scaled(%x, %by, %no) : (memref<?x?xf32, strided<[?, 1]>>, f32, i1) -> (f32, index, i1)
  memref.store %a#0, %sum[%c0] : memref<2xf32>
  scf.if %a#2 {
    memref.store %a#1, %count[%c1] : memref<2xindex>
  }
  func.return
}""", [np.lib.stride_tricks.as_strided(rand(40), (4, 5), (32, 4)), zeros(2), zeros(2, dtype="i8")])

add("globals", """
memref.global "private" constant @table : memref<2x4xf32> = dense<[[1.0, 2.0, -0.0, 4.0], [0.1, 1.0e30, -7.0, 0.5]]> : tensor<2x4xf32>
memref.global "private" constant @bytes : memref<5xi8> = dense<[1, -1, 127, -128, 34]> : tensor<5xi8>
memref.global "private" constant @halves : memref<3xbf16> = dense<[1.0, -2.5, 3.140625]> : tensor<3xbf16>
memref.global "private" constant @nothing : memref<2xi64> = dense<0> : tensor<2xi64>
func.func @main(%out: memref<4xf32>, %small: memref<5xi8>, %half: memref<3xf32>, %long: memref<2xi64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c5 = arith.constant 5 : index
  %t = memref.get_global @table : memref<2x4xf32>
  %row = vector.load %t[%c1, %c0] : memref<2x4xf32>, vector<4xf32>
  vector.store %row, %out[%c0] : memref<4xf32>, vector<4xf32>
  %b = memref.get_global @bytes : memref<5xi8>
  scf.for %i = %c0 to %c5 step %c1 {
    %v = memref.load %b[%i] : memref<5xi8>
    memref.store %v, %small[%i] : memref<5xi8>
  }
  %h = memref.get_global @halves : memref<3xbf16>
  scf.for %i = %c0 to %c3 step %c1 {
    %v = memref.load %h[%i] : memref<3xbf16>
    %w = arith.extf %v : bf16 to f32
    memref.store %w, %half[%i] : memref<3xf32>
  }
  %z = memref.get_global @nothing : memref<2xi64>
  %n = memref.load %z[%c1] : memref<2xi64>
  memref.store %n, %long[%c0] : memref<2xi64>
  func.return
}""", [zeros(4), zeros(5, dtype="i1"), zeros(3), np.ones(2, "i8")])

add("vectors of two dimensions", """
func.func @main(%x: memref<4x8xf32>, %y: memref<8x4xf32>, %z: memref<16xi16>, %l: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %none = arith.constant dense<0.0> : vector<4x8xf32>
  %r0 = vector.load %x[%c0, %c0] : memref<4x8xf32>, vector<8xf32>
  %r1 = vector.load %x[%c1, %c0] : memref<4x8xf32>, vector<8xf32>
  %r2 = vector.load %x[%c2, %c0] : memref<4x8xf32>, vector<8xf32>
  %r3 = vector.load %x[%c3, %c0] : memref<4x8xf32>, vector<8xf32>
  %m0 = vector.insert %r0, %none[0] : vector<8xf32> into vector<4x8xf32>
  %m1 = vector.insert %r1, %m0[1] : vector<8xf32> into vector<4x8xf32>
  %m2 = vector.insert %r2, %m1[2] : vector<8xf32> into vector<4x8xf32>
  %m3 = vector.insert %r3, %m2[3] : vector<8xf32> into vector<4x8xf32>
  %k = arith.constant dense<[[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0], [-1.0, -2.0, 1.0, 1.0, 1.0, 1.0, 1.0, -0.0]]> : vector<4x8xf32>
  %s = arith.addf %m3, %k : vector<4x8xf32>
  %mask = vector.create_mask %c3, %l : vector<4x8xi1>
  %chosen = arith.select %mask, %s, %m3 : vector<4x8xi1>, vector<4x8xf32>
  %five = arith.constant 5.0 : f32
  %marked = vector.insert %five, %chosen[2, 7] : f32 into vector<4x8xf32>
  %t = vector.transpose %marked, [1, 0] : vector<4x8xf32> to vector<8x4xf32>
  %e = vector.extract %t[1, 2] : f32 from vector<8x4xf32>
  %all = vector.broadcast %e : f32 to vector<8x4xf32>
  %u = arith.mulf %t, %all : vector<8x4xf32>
  %u0 = vector.extract %u[0] : vector<4xf32> from vector<8x4xf32>
  %u7 = vector.extract %u[7] : vector<4xf32> from vector<8x4xf32>
  vector.store %u0, %y[%c0, %c0] : memref<8x4xf32>, vector<4xf32>
  vector.store %u7, %y[%c3, %c0] : memref<8x4xf32>, vector<4xf32>
  %lane = vector.extract %r0[%l] : f32 from vector<8xf32>
  %put = vector.insert %lane, %u0[%c2] : f32 into vector<4xf32>
  %long = vector.shuffle %put, %r1 [0, 11, 4, 2] : vector<4xf32>, vector<8xf32>
  vector.store %long, %y[%c1, %c0] : memref<8x4xf32>, vector<4xf32>
  %wide = vector.broadcast %u0 : vector<4xf32> to vector<2x4xf32>
  %w1 = vector.extract %wide[1] : vector<4xf32> from vector<2x4xf32>
  vector.store %w1, %y[%c2, %c0] : memref<8x4xf32>, vector<4xf32>
  %bits = vector.bitcast %r0 : vector<8xf32> to vector<16xi16>
  vector.store %bits, %z[%c0] : memref<16xi16>, vector<16xi16>
  func.return
}""", [rand(4, 8), zeros(8, 4), zeros(16, dtype="i2"), 5])

REDUCED = {"i32": ("add", "mul", "and", "or", "xor", "minsi", "maxsi", "minui", "maxui"), "f32": ("minimumf", "maximumf"),
           "i8": ("add", "or", "minui", "maxsi"), "bf16": ("minimumf", "maximumf"), "f16": ("maximumf",)}


def _reductions(kind: str) -> str:
    lines = []
    for i, how in enumerate(REDUCED[kind]):
        lines.append(f"""  %r{i} = vector.reduction <{how}>, %v : vector<8x{kind}> into {kind}
  %s{i} = vector.reduction <{how}>, %v, %r{i} : vector<8x{kind}> into {kind}
  %at{i} = arith.constant {i} : index
  memref.store %s{i}, %y[%at{i}] : memref<?x{kind}>""")
    body = "\n".join(lines)
    return f"""
func.func @main(%x: memref<8x{kind}>, %y: memref<?x{kind}>) {{
  %c0 = arith.constant 0 : index
  %v = vector.load %x[%c0] : memref<8x{kind}>, vector<8x{kind}>
{body}
  func.return
}}"""


def _half(values: list[float], kind: str) -> Array:
    from mlc.ir.types import SCALARS, to_numpy
    return np.array(values).astype(to_numpy(SCALARS[kind]))


for kind in REDUCED:
    ordinary: list[list[float]] = [[3, -1, 7, 2, -100, 5, 5, 0]]
    if "f" in kind:
        ordinary += [[0.0, -0.0, 0.0, -0.0, 0.0, -0.0, 0.0, -0.0], [1, 2, np.nan, 3, 4, 5, 6, 7],
                     [-np.inf, 2, 1e-30, 3, 4, np.inf, 6, 7]]
    add(f"reductions of {kind}", _reductions(kind),
        *[[_half(v, kind), _half([0.0] * len(REDUCED[kind]), kind)] for v in ordinary])

add("masks reduced", """
func.func @main(%x: memref<8xf32>, %any: memref<2xi8>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant dense<0.0> : vector<8xf32>
  %v = vector.load %x[%c0] : memref<8xf32>, vector<8xf32>
  %m = arith.cmpf olt, %v, %zero : vector<8xf32>
  %or = vector.reduction <or>, %m : vector<8xi1> into i1
  %and = vector.reduction <and>, %m : vector<8xi1> into i1
  %a = arith.extui %or : i1 to i8
  %b = arith.extui %and : i1 to i8
  memref.store %a, %any[%c0] : memref<2xi8>
  memref.store %b, %any[%c1] : memref<2xi8>
  func.return
}""", [rand(8), zeros(2, dtype="i1")], [np.ones(8, "f4"), zeros(2, dtype="i1")], [-np.ones(8, "f4"),
                                                                                zeros(2, dtype="i1")])

add("scratch on the stack", """
func.func @main(%n: index, %x: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %i = %c0 to %n step %c8 {
    %tmp = memref.alloca() : memref<8xf32>
    %v = vector.load %x[%i] : memref<?xf32>, vector<8xf32>
    vector.store %v, %tmp[%c0] : memref<8xf32>, vector<8xf32>
    scf.for %j = %c0 to %c8 step %c1 {
      %back = arith.constant 7 : index
      %k = arith.subi %back, %j : index
      %e = memref.load %tmp[%k] : memref<8xf32>
      %at = arith.addi %i, %j : index
      memref.store %e, %x[%at] : memref<?xf32>
    }
  }
  func.return
}""", [16, rand(16)])

add("counter of 32 bits", """
func.func @main(%x: memref<?xi32>) {
  %low = arith.constant -3 : i32
  %high = arith.constant 4 : i32
  %step = arith.constant 2 : i32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %low to %high step %step iter_args(%at = %c0) -> (index) : i32 {
    memref.store %i, %x[%at] : memref<?xi32>
    %next = arith.addi %at, %c1 : index
    scf.yield %next : index
  }
  %n = arith.index_cast %r : index to i32
  memref.store %n, %x[%r] : memref<?xi32>
  func.return
}""", [zeros(8, dtype="i4")])

add("memory carried round a loop", """
func.func @main(%n: index, %a: memref<?xf32>, %b: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %r:2 = scf.for %t = %c0 to %c3 step %c1 iter_args(%p = %a, %q = %b) -> (memref<?xf32>, memref<?xf32>) {
    %m = arith.subi %n, %c1 : index
    scf.for %i = %c0 to %m step %c1 {
      %j = arith.addi %i, %c1 : index
      %x = memref.load %p[%i] : memref<?xf32>
      %y = memref.load %p[%j] : memref<?xf32>
      %s = arith.addf %x, %y : f32
      memref.store %s, %q[%i] : memref<?xf32>
    }
    scf.yield %q, %p : memref<?xf32>, memref<?xf32>
  }
  %v = memref.load %r#0[%c0] : memref<?xf32>
  memref.store %v, %r#1[%c1] : memref<?xf32>
  func.return
}""", [6, rand(6), zeros(6)])
