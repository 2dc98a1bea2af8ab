"""Quantised tensors on GPUs: every encoding, with every bit of its blocks, in loads and in products."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlc
from mlc.dialects import loop
from mlc.dialects.tensor.encodings import ENCODINGS
from mlc.frontend.functions.quantized import dequantize_blocks, quantized_linear
from mlc.ir.machine import GPU
from mlc.ir.passes import Pipeline
from mlc.passes import pipeline
from tests.public_case import thinned_by
from tests.test_gguf import blocks_of
from tests.test_gpu import check


@pytest.mark.parametrize("encoding", thinned_by(lambda name: name.endswith("_k"), [*ENCODINGS], 6))
def test_arbitrary_blocks(encoding: str) -> None:
    """Rows that are gathered, and products of odd numbers of rows, exact and by integers."""
    def f(x: Any, w: Any, at: Any) -> Any:
        wide = dequantize_blocks(w, encoding)
        return (wide, mlc.nn.functional.embedding(at, wide), mlc.nn.functional.linear(x, wide),
                quantized_linear(x, w, encoding))

    x = np.random.default_rng(1).normal(size=(3, 512)).astype(np.float32)
    arrays = [x, blocks_of(encoding, 5, 512), np.array([[4, 0, 3]])]
    check(mlc.lower(f, arrays, level="trace").module, arrays)


def test_blocks_of_stacked_weights() -> None:
    """A view of blocks, which are read as they lie in memory, is put there by a kernel of its own."""
    def f(x: Any, w: Any) -> Any:
        return dequantize_blocks(w[1], "q8_0") * 2, quantized_linear(x, w[1], "q8_0")

    arrays = [np.random.default_rng(1).normal(size=(3, 512)).astype(np.float32),
              blocks_of("q8_0", 10, 512).reshape(2, 5, -1)]
    check(mlc.lower(f, arrays, level="trace").module, arrays)


@pytest.mark.parametrize(("encoding", "products"), [("q8_0", "fma"), ("q4_k", "tf32"), ("q6_k", "fma")])
def test_products_with_numbers_in_shared_memory(encoding: str, products: str) -> None:
    """Numbers are unpacked once for all rows of a CTA tile, of a product with tiles that stick out."""
    def f(x: Any, w: Any) -> Any:
        return mlc.nn.functional.linear(x, dequantize_blocks(w, encoding))

    arrays = [np.random.default_rng(1).normal(size=(33, 256)).astype(np.float32), blocks_of(encoding, 40, 256)]
    module = mlc.lower(f, arrays, level="trace").module
    steps = pipeline.steps("llvm", machine=GPU, products=products)
    Pipeline(steps[: [s.transform.name for s in steps].index("distribute") + 1]).run(module)
    assert [type(op.parent_op) for op in module.inside(loop.Dequantize)] == [loop.Pack]
    assert any(module.inside(loop.Mma)) == (products == "tf32")
    check(mlc.lower(f, arrays, level="trace").module, arrays, products)


@pytest.mark.parametrize(("encoding", "columns"), [("q8_0", 352), ("q5_k", 1280)])
def test_rows_of_many_blocks(encoding: str, columns: int) -> None:
    """Several blocks are loaded at a time, and those that remain one by one."""
    arrays = [np.random.default_rng(1).normal(size=(1, columns)).astype(np.float32), blocks_of(encoding, 3, columns)]
    check(mlc.lower(lambda x, w: quantized_linear(x, w, encoding), arrays, level="trace").module, arrays)
