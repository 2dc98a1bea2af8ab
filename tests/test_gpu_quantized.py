"""Quantised tensors on GPUs: every encoding, with every bit of its blocks, in loads and in products."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlc
from mlc.dialects.tensor.encodings import ENCODINGS
from mlc.frontend.functions.quantized import dequantize_blocks, quantized_linear
from tests.test_gguf import blocks_of
from tests.test_gpu import check


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_arbitrary_blocks(encoding: str) -> None:
    """Rows that are gathered, and products of odd numbers of rows, exact and by integers."""
    def f(x: Any, w: Any, at: Any) -> Any:
        wide = dequantize_blocks(w, encoding)
        return (wide, mlc.nn.functional.embedding(at, wide), mlc.nn.functional.linear(x, wide),
                quantized_linear(x, w, encoding))

    x = np.random.default_rng(1).normal(size=(3, 512)).astype(np.float32)
    arrays = [x, blocks_of(encoding, 5, 512), np.array([[4, 0, 3]])]
    check(mlc.lower(f, arrays, level="trace").module, arrays)
