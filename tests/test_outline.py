"""outline: which kernels share a function, what such a function takes, and that dumps can be taken up after it."""
from __future__ import annotations

import re
from typing import Any

import numpy as np

import mlc
from mlc.backends.executable import build
from mlc.dialects import loop
from mlc.dialects.func import Call, Func
from mlc.ir.core import Op
from mlc.ir.parser import parse_module
from mlc.ir.passes import Pipeline, parse_pipeline
from mlc.ir.printer import to_text
from mlc.nn import functional as F
from mlc.passes import pipeline

LAYER = """
  %{y} = tensor.dot_general %{x}, %w{i} {{batch = [], contract = [[1, 0]]}}
      : (tensor<Bx8xf32>, tensor<8x8xf32>) -> tensor<Bx8xf32>"""


def layers(count: int) -> str:
    """A module that multiplies by `count` matrices, one after the other."""
    arguments = ", ".join(["%y0: tensor<Bx8xf32>", *(f"%w{i}: tensor<8x8xf32>" for i in range(count))])
    body = "".join(LAYER.format(x=f"y{i}", y=f"y{i + 1}", i=i) for i in range(count))
    return f"func.func @f({arguments}) -> tensor<Bx8xf32> {{{body}\n  func.return %y{count} : tensor<Bx8xf32>\n}}"


def outlined(text: str) -> Op:
    return pipeline.lower(parse_module(text), "loop")


def kernels(module: Op) -> list[str]:
    """The names of the functions that hold kernels."""
    return [f.sym_name for f in module.inside(Func) if next(f.inside(loop.Kernel), None) is not None]


def test_twelve_equal_layers_are_one_function() -> None:
    module = outlined(layers(12))
    assert kernels(module) == ["kernel_dot_general"]
    assert [call.callee for call in module.inside(Call)] == kernels(module) * 12
    lowered = pipeline.resume(module)
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(s).astype(np.float32) for s in [(5, 8), *[(8, 8)] * 12]]
    want = arrays[0].astype(np.float64)
    for w in arrays[1:]:
        want = want @ w
    np.testing.assert_allclose(build(lowered).entry("f").call(arrays)[0], want, rtol=1e-3, atol=1e-2)


def test_labels_do_not_make_kernels_differ() -> None:
    names = [str(step) for step in pipeline.steps("loop")]
    module = Pipeline(pipeline.steps("loop")[: names.index("outline")]).run(parse_module(layers(2)))
    for kernel, label in zip(module.inside(loop.Kernel), ("first", "second")):
        kernel.label = label
    Pipeline(parse_pipeline("outline")).run(module)
    assert kernels(module) == ["kernel_first"]


def test_again_is_no_change() -> None:
    module = outlined(layers(3))
    text = to_text(module)
    assert to_text(Pipeline(parse_pipeline("outline")).run(parse_module(text))) == text


def test_a_result_in_the_place_of_an_argument_is_one_argument() -> None:
    """A buffer is passed once, so that the function has the same aliasing information as its caller."""
    text = ("func.func @f(%x: tensor<100xf32>) -> tensor<100xf32> attributes {donate = [0]} {\n"
            "  %0 = tensor.exp %x : tensor<100xf32>\n  func.return %0 : tensor<100xf32>\n}")
    module = outlined(text)
    call, = module.inside(Call)
    assert len(call.args) == 1
    x = np.linspace(-1, 1, 100, dtype=np.float32)
    want = np.exp(x.astype(np.float64))
    np.testing.assert_allclose(build(pipeline.resume(module)).entry("f").call([x])[0], want, rtol=1e-6)


def test_names_are_made_of_labels() -> None:
    module = mlc.lower(lambda x, y: (mlc.exp(x) + y, (x * 2).sum()),
                       args=[mlc.spec(7), mlc.spec(7)], level="loop").module
    names = kernels(module)
    assert len(names) == len({*names}) and all(re.fullmatch(r"kernel_\w+", name) for name in names)


def test_products_with_one_matrix_of_several_share_code_and_read_that_one() -> None:
    x, w = (np.random.default_rng(0).standard_normal(s).astype(np.float32) for s in ((3, 4, 5), (3, 5, 6)))
    found = mlc.compile(lambda x, w: mlc.stack([x[i] @ w[2] for i in range(3)]))(x, w)
    np.testing.assert_allclose(found.numpy(), x @ w[2], rtol=1e-5, atol=1e-5)


def test_functions_that_take_an_operand_as_another_one_are_not_the_same() -> None:
    def weighted(x: Any, p: Any) -> Any:
        return F.layer_norm(x, (4,), weight=p).exp()

    def shifted(x: Any, p: Any) -> Any:
        return F.layer_norm(x, (4,), bias=p).exp()

    x, p = np.random.default_rng(0).standard_normal((3, 4)), np.arange(4.0)
    found = mlc.compile(lambda x, p: (mlc.checkpoint(weighted)(x, p), mlc.checkpoint(shifted)(x, p)))(x, p)
    for y, f in zip(found, (weighted, shifted)):
        np.testing.assert_allclose(y.numpy(), f(mlc.tensor(x), mlc.tensor(p)).numpy(), rtol=1e-12)
