"""Programs of the low level, each with arguments: loops, conditions, views, masks, gathers, calls and globals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tests.arrays import Array
from tests.low_programs import Argument

FOLDER = Path(__file__).parent / "low"
PROGRAMS: dict[str, tuple[str, list[list[Argument]]]] = {}
"""name -> (a module with @main, lists of arguments). The arrays @main writes are among its arguments."""


def add(name: str, *calls: list[Argument], text: str = "") -> None:
    """The program of this name, by default from a file, with arguments."""
    PROGRAMS[name] = (text or stored(name), list(calls))


def stored(name: str) -> str:
    """A program that lies in a file."""
    return (FOLDER / f"{name.replace(' ', '_')}.mlir").read_text(encoding="utf-8")


def rand(*shape: int, dtype: Any = np.float32, seed: int = 0) -> Array:
    rng = np.random.default_rng(seed + sum(shape))
    if np.dtype(dtype).kind in "iu":
        return rng.integers(-100, 100, shape).astype(dtype)
    return rng.standard_normal(shape).astype(dtype)


def arguments(*args: Argument) -> list[Argument]:
    return list(args)


def zeros(*shape: int, dtype: Any = np.float32) -> Array:
    return np.zeros(shape, dtype)


add("matmul",
    [rand(3, 5), rand(5, 4), zeros(3, 4)], [rand(1, 1), rand(1, 1), zeros(1, 1)],
    [rand(2, 0), rand(0, 3), zeros(2, 3)])

add("clamp and count",
    [np.array([1, -2, np.nan, 0.5, np.inf, -0.0]), zeros(6, dtype="f8"), zeros(2, dtype="i8")])

add("steps to one",
    [np.array([1, 2, 3, 7, 27, 97], "i8")])

add("masked tail",
    *(arguments(n, rand(n), zeros(n), zeros(16)) for n in (0, 1, 15, 16, 17, 40)))

for kind, width, position in (("f32", 8, "i32"), ("f64", 4, "index"), ("i8", 16, "i32"), ("i64", 8, "i64"),
                              ("f32", 16, "i8")):
    numpy = {"f32": "f4", "f64": "f8", "i8": "i1", "i64": "i8"}[kind]
    at = {"i32": "i4", "index": "i8", "i64": "i8", "i8": "i1"}[position]
    zero = "0.0" if kind.startswith("f") else "0"
    values, places, mask = f"vector<{width}x{kind}>", f"vector<{width}x{position}>", f"vector<{width}xi1>"
    text = f"""
func.func @main(%n: index, %x: memref<3x?x{kind}>, %at: memref<?x{position}>, %y: memref<?x{kind}>) {{
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %lanes = arith.constant {width} : index
  %zero = arith.constant dense<{zero}> : {values}
  %none = arith.constant dense<0> : {places}
  scf.for %i = %c0 to %n step %lanes {{
    %left = arith.subi %n, %i : index
    %mask = vector.create_mask %left : {mask}
    %p = vector.maskedload %at[%i], %mask, %none
        : memref<?x{position}>, {mask}, {places} into {places}
    %v = vector.gather %x[%c2, %c0][%p], %mask, %zero
        : memref<3x?x{kind}>, {places}, {mask}, {values} into {values}
    vector.maskedstore %y[%i], %mask, %v : memref<?x{kind}>, {mask}, {values}
  }}
  func.return
}}"""
    add(f"gather {kind} at {position}",
        [21, rand(3, 13, dtype=numpy), (np.arange(21) * 5 % 13).astype(at), zeros(21, dtype=numpy)], text=text)

add("shared iterations",
    *(arguments(m, n, start, rand(m, n), zeros(m, n), zeros(n))
      for m, n, start in ((5, 7, 0), (6, 3, 1), (1, 1, 0), (0, 4, 0), (4, 0, 0), (3, 2, 9))))

add("arena",
    [4, rand(4, 3), zeros(3, 4), np.zeros((), "i8"), zeros(64, dtype="i1")])

add("windows",
    [rand(9, 8), 1, 3, zeros(4, 3), zeros(3)], [rand(8, 7), 0, 2, zeros(4, 2), zeros(2)])

add("strided argument",
    [np.lib.stride_tricks.as_strided(rand(40), (4, 5), (32, 4)), zeros(2), zeros(2, dtype="i8")])

add("globals",
    [zeros(4), zeros(5, dtype="i1"), zeros(3), np.ones(2, "i8")])

add("vectors of two dimensions",
    [rand(4, 8), zeros(8, 4), zeros(16, dtype="i2"), 5])

REDUCED = {"i32": ("add", "mul", "and", "or", "xor", "minsi", "maxsi", "minui", "maxui"),
           "i8": ("add", "or", "minui", "maxsi"), "f32": ("minimumf", "maximumf"), "bf16": ("minimumf", "maximumf"),
           "f16": ("maximumf",)}


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
    buffer = _half([0.0] * len(REDUCED[kind]), kind)
    add(f"reductions of {kind}", *(arguments(_half(v, kind), buffer) for v in ordinary), text=_reductions(kind))

add("masks reduced",
    [rand(8), zeros(2, dtype="i1")], [np.ones(8, "f4"), zeros(2, dtype="i1")],
    [-np.ones(8, "f4"), zeros(2, dtype="i1")])

add("scratch on the stack",
    [16, rand(16)])

add("counter of 32 bits",
    [zeros(8, dtype="i4")])

add("memory carried round a loop",
    [6, rand(6), zeros(6)])
