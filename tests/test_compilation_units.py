"""Compilation units: the same functions, and one unit for equal code, whatever its name."""
from __future__ import annotations

import numpy as np

from mlc.backends.compilation_units import OUTLINE_THRESHOLD, CompilationUnit, compilation_units
from mlc.backends.cpu.targets import host
from mlc.backends.executable import build
from mlc.backends.image import compile_image
from mlc.backends.load import load
from mlc.ir.core import Op
from mlc.ir.parser import parse_module
from mlc.passes import pipeline


def chain(name: str, inner: str, count: int = OUTLINE_THRESHOLD) -> str:
    """A private function of so many additions."""
    lines = "".join(f"  %{i + 1} = llvm.add %{i}, %{inner} : i64\n" for i in range(count))
    return (f"llvm.func internal @{name}(%{inner}: i64) -> i64 {{\n  %0 = llvm.add %{inner}, %{inner} : i64\n{lines}"
            f"  llvm.return %{count} : i64\n}}\n")


def caller(name: str, *called: str, linkage: str = "internal") -> str:
    lines = "".join(f"  %{i + 1} = llvm.call @{f}(%{i}) : (i64) -> i64\n" for i, f in enumerate(called))
    more = "".join(f"  %{len(called) + i + 1} = llvm.add %{len(called) + i}, %0 : i64\n"
                   for i in range(OUTLINE_THRESHOLD))
    return (f"llvm.func {linkage} @{name}(%x: i64) -> i64 {{\n  %0 = llvm.add %x, %x : i64\n{lines}{more}"
            f"  llvm.return %{len(called) + OUTLINE_THRESHOLD} : i64\n}}\n")


def module(*functions: str) -> Op:
    """These functions, of which @main is called by the public one."""
    return parse_module("".join(functions) + caller("main_entry", "main", linkage=""))


def shared(found: list[CompilationUnit]) -> list[str]:
    return [unit.text for unit in found if unit.shared]


def test_equal_functions_are_one_unit() -> None:
    found = compilation_units(module(chain("a", "x"), chain("b", "y"), chain("c", "z", OUTLINE_THRESHOLD + 1),
                         caller("main", "a", "b", "c")), host())
    assert len(found) == 3 and [unit.shared for unit in found] == [True, True, False]


def test_units_are_the_same_in_other_modules() -> None:
    one = compilation_units(module(chain("a", "x"), caller("layer", "a"), caller("main", "layer")), host())
    two = compilation_units(module(caller("main", "l", "l"), caller("l", "kernel_7"), chain("kernel_7", "q")), host())
    assert len(shared(one)) == 2 and shared(one) == shared(two)


def test_small_functions_stay_with_the_public_ones() -> None:
    assert len(compilation_units(module(chain("a", "x", 3), caller("main", "a")), host())) == 1


def test_functions_that_call_each_other_in_a_circle_are_compiled_together() -> None:
    found = compilation_units(module(caller("a", "b"), caller("b", "a"), caller("main", "a")), host())
    assert [unit.shared for unit in found] == [False]


def test_units_that_call_each_other_are_linked() -> None:
    functions = chain("a", "x"), caller("layer", "a", "a"), caller("main", "layer", "a")
    assert len(compilation_units(module(*functions), host())) > 1
    load(compile_image(module(*functions), host(), 2).code)            # which fails where a symbol is not found


def test_a_program_in_units() -> None:
    text = """
func.func private @layer(%x: tensor<Bx8xf32>) -> tensor<Bx8xf32> {
  %0 = tensor.tanh %x : tensor<Bx8xf32>
  %1 = tensor.mul %0, %x : tensor<Bx8xf32>
  func.return %1 : tensor<Bx8xf32>
}
func.func @main(%x: tensor<Bx8xf32>) -> tensor<Bx8xf32> {
  %0 = func.call @layer(%x) : (tensor<Bx8xf32>) -> tensor<Bx8xf32>
  %1 = func.call @layer(%0) : (tensor<Bx8xf32>) -> tensor<Bx8xf32>
  func.return %1 : tensor<Bx8xf32>
}
"""
    x = np.linspace(-1, 1, 24, dtype=np.float32).reshape(3, 8)
    lowered = pipeline.lower(parse_module(text), "llvm", host().machine)
    got, = build(lowered).entry("main").call([x])
    once = np.tanh(x) * x
    assert np.allclose(got, np.tanh(once) * once, rtol=1e-5, atol=1e-6)
    again = pipeline.lower(parse_module(text), "llvm", host().machine)
    assert [unit.text for unit in compilation_units(again, host())] == [
        unit.text for unit in compilation_units(lowered, host())]


def test_a_kernel_that_threads_share_is_a_unit_with_its_part() -> None:
    """The function that hands the work over is short, and what it hands over is long."""
    lowered = pipeline.lower(parse_module("""
func.func @main(%x: tensor<512x512xf32>, %y: tensor<512x512xf32>) -> tensor<512x512xf32> {
  %0 = tensor.dot_general %x, %y {batch = [], contract = [[1, 0]]}
    : (tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32>
  func.return %0 : tensor<512x512xf32>
}
"""), "llvm", host().machine)
    part, = [text for text in shared(compilation_units(lowered, host())) if "noinline" in text]
    assert part.count("\ndefine ") == 2
