"""Calls down to native code: what is compiled once and called often means what it meant inlined, to the bit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import mlc
from mlc import nn
from mlc.backends.cpu.targets import host
from mlc.backends.executable import build
from mlc.dialects import func
from mlc.ir.core import Op
from mlc.ir.diag import IRError, UserIndexError
from mlc.ir.interp import run_function
from mlc.ir.parser import parse_module
from mlc.ir.passes import Pipeline, parse_pipeline
from mlc.ir.printer import to_text
from mlc.passes import pipeline
from tests.test_meaning import check, same_bits

Array = np.ndarray[Any, Any]


class Block(nn.Module):
    """A pre-norm transformer block without a mask."""

    def __init__(self, width: int, heads: int) -> None:
        self.width, self.heads = width, heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x: Any) -> Any:
        y = self.norm1(x)
        q, k, v = (self.split(f(y)) for f in (self.query, self.key, self.value))
        scores = nn.functional.softmax(q @ k.transpose(-1, -2) * 0.5, -1)
        x = x + self.out((scores @ v).transpose(1, 2).reshape(x.shape))
        return x + self.down(nn.functional.silu(self.up(self.norm2(x))))

    def split(self, x: Any) -> Any:
        return x.reshape((*x.shape[:2], self.heads, self.width // self.heads)).transpose(1, 2)


class Stack(nn.Module):
    def __init__(self, layers: int, width: int = 16, heads: int = 2) -> None:
        self.layers = [Block(width, heads) for _ in range(layers)]
        self.norm = nn.LayerNorm(width)

    def forward(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x)
        return self.norm(x)


def mlp(layers: int) -> nn.Sequential:
    """Equal layers, each large enough to stay a function."""
    class Layer(nn.Module):
        def __init__(self) -> None:
            self.linear, self.norm = nn.Linear(24, 24), nn.LayerNorm(24)

        def forward(self, x: Any) -> Any:
            return x + nn.functional.gelu(self.norm(self.linear(x))) * 0.5 + nn.functional.softplus(x)

    return nn.Sequential(*(Layer() for _ in range(layers)))


def loss(net: nn.Module, x: Any, y: Any) -> Any:
    return ((net(x) - y) ** 2).mean()


def gradients(net: nn.Module, x: Any, y: Any) -> Any:
    return mlc.value_and_grad(loss)(net, x, y)


def numbers(*shape: int) -> Array:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


PROGRAMS: dict[str, Callable[[], tuple[Any, list[Any], list[Array]]]] = {
    "equal layers": lambda: (lambda net, x: net(x), [mlp(3), numbers(7, 24)], []),
    "equal layers, symbolic batch, gradient": lambda: (
        gradients, [mlp(2), mlc.spec("B", 24), mlc.spec("B", 24)], [numbers(7, 24), numbers(7, 24)]),
    "transformer": lambda: (lambda net, x: net(x), [Stack(2), numbers(3, 5, 16)], []),
    "transformer, gradient": lambda: (gradients, [Stack(2), numbers(3, 5, 16), numbers(3, 5, 16)], []),
    "transformer, symbolic batch, gradient": lambda: (
        gradients, [Stack(2), mlc.spec("B", 5, 16), mlc.spec("B", 5, 16)], [numbers(3, 5, 16), numbers(3, 5, 16)]),
}
"""A function, its arguments, and arrays that take the place of specifications among them."""


def recorded(name: str) -> tuple[str, list[Array]]:
    """The module of a program as text, and arguments for it."""
    f, args, given = PROGRAMS[name]()
    text = to_text(mlc.lower(f, args, level="trace").module)
    parameters = [np.asarray(p.numpy()) for a in args if isinstance(a, nn.Module) for p in a.parameters()]
    return text, parameters + (given or [a for a in args if isinstance(a, np.ndarray)])


def native(text: str, inline: str, arguments: Sequence[Array]) -> tuple[list[Array], Op]:
    """The results of a module as native code, with another way to inline; and the module before LLVM."""
    module = parse_module(text)
    steps = [step for s in pipeline.steps("llvm", host().machine)
             for step in (parse_pipeline(inline) if s.transform.name == "inline" else [s])]
    Pipeline(steps).run(module)
    return build(module, host()).entry("main").call(list(arguments)), module


def bodies(text: str, last: str = "dce") -> dict[str, int]:
    """How many operations the functions have after the first pass `last`."""
    module = parse_module(text)
    steps = pipeline.steps()
    Pipeline(steps[: [s.transform.name for s in steps].index(last) + 1]).run(module)
    return {f.sym_name: len(f.block) for f in func.functions(module)}


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow) if n.startswith("transformer")
                                  or n == "equal layers, symbolic batch, gradient" else n
                                  for n in PROGRAMS])
def test_calls_change_no_bit(name: str) -> None:
    text, arguments = recorded(name)
    wanted, _ = native(text, "inline{all=true}", arguments)
    found, _ = native(text, "inline", arguments)
    assert any(n != "main" for n in bodies(text)), "something stays a function"
    same_bits(found, wanted, name)


def test_every_level_runs_calls() -> None:
    text, arguments = recorded("equal layers")
    check(parse_module(text), arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize("layers", [3, 12])
def test_equal_layers_are_one_pair_of_halves(layers: int) -> None:
    f, args, _ = gradients, [mlp(layers), numbers(7, 24), numbers(7, 24)], None
    names = bodies(to_text(mlc.lower(f, args, level="trace").module))
    assert sorted(n for n in names if n.startswith("Layer_")) == ["Layer_backward", "Layer_forward"]


@pytest.mark.slow
def test_second_derivatives_of_equal_layers_are_shared() -> None:
    def second(net: nn.Module, x: Any, y: Any) -> Any:
        def slope(net: nn.Module) -> Any:
            return sum((g * g).sum() for g in mlc.grad(loss)(net, x, y).parameters())
        return mlc.grad(slope)(net)

    def count(layers: int) -> int:
        args = [mlp(layers), numbers(7, 24), numbers(7, 24)]
        return sum(n.startswith("Layer") for n in bodies(to_text(mlc.lower(second, args, level="trace").module)))

    assert count(3) == count(5)


def test_the_first_index_that_is_wrong_is_reported_through_calls() -> None:
    def picked(x: Any, i: Any) -> Any:
        for _ in range(3):
            x = layer(x, i)
        return x

    def layer(x: Any, i: Any) -> Any:
        return call("layer", lambda: nn.functional.softplus(nn.functional.gelu(mlc.take(x, i)) * 2 + 1) * x.sum())

    from mlc.frontend.nested import call
    f = mlc.compile(picked)
    f(numbers(4), np.array([0, 1, 3, 2]))
    with pytest.raises(UserIndexError, match="an index of take is out of range for axis 0 of size 4"):
        f(numbers(4), np.array([0, 1, 4, 2]))


RECURSIVE = """
func.func private @f(%x: tensor<2xf32>, %c: tensor<i1>) -> tensor<2xf32> {
  %go = tensor.item %c : (tensor<i1>) -> i1
  %r = scf.if %go -> (tensor<2xf32>) {
    %n = tensor.logical_not %c : tensor<i1>
    %0 = func.call @f(%x, %n) : (tensor<2xf32>, tensor<i1>) -> tensor<2xf32>
    scf.yield %0 : tensor<2xf32>
  } else {
    %1 = tensor.exp %x : tensor<2xf32>
    scf.yield %1 : tensor<2xf32>
  }
  func.return %r : tensor<2xf32>
}
func.func @main(%x: tensor<2xf32>, %c: tensor<i1>) -> tensor<2xf32> {
  %0 = func.call @f(%x, %c) : (tensor<2xf32>, tensor<i1>) -> tensor<2xf32>
  func.return %0 : tensor<2xf32>
}
"""


def test_a_function_that_calls_itself_has_no_arena() -> None:
    x, c = numbers(2), np.asarray(True)
    np.testing.assert_allclose(run_function(parse_module(RECURSIVE), "main", [x, c])[0], np.exp(x), rtol=1e-6)
    with pytest.raises(IRError, match=r"@f is recursive through this call"):
        pipeline.lower(parse_module(RECURSIVE))


def test_a_recursion_without_end_is_refused_by_the_interpreter_too() -> None:
    with pytest.raises(IRError, match=r":2:\d+: error\[MLC0162\]: @f is recursive through this call"):
        run_function(parse_module("""func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> {
          %0 = func.call @f(%x) : (tensor<2xf32>) -> tensor<2xf32>
          func.return %0 : tensor<2xf32>
        }""", "f.mlir"), "f", [numbers(2)])


def test_containers_are_told_from_what_is_in_them() -> None:
    """Also by native code, which takes calls over after the first one."""
    x, y = mlc.tensor([1.0, 2.0]), mlc.tensor([10.0, 20.0])
    f: Any
    for f, one, two in ((lambda a: a[0] * 2, ([x],), (x,)),
                        (lambda d: d["a"] if isinstance(d, dict) else d * 5, ({"a": x},), (x,)),
                        (lambda a, b: a[0] if b is None else a[0] * b, ([x, y], None), (x, y))):
        compiled = mlc.compile(f)
        for args in (one, one, one, two, two, one):
            assert compiled(*args).tolist() == f(*args).tolist()
