"""Attention to long sequences: what PyTorch computes, in memory for some of its queries."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlc
from mlc import nn
from tests.arrays import Array

torch = pytest.importorskip("torch")
QUERIES, KEYS, WIDTH = 2100, 2051, 8
"""Neither has a divisor near the number of queries of a block."""


def attention(functional: Any, causal: bool) -> Any:
    return lambda q, k, v: functional.scaled_dot_product_attention(q, k, v, is_causal=causal)


def gradients_of_torch(arrays: list[Array], causal: bool) -> list[Array]:
    """The result, and the gradients of its product with the last array."""
    *args, ct = (torch.from_numpy(x.astype(np.float64)).requires_grad_() for x in arrays)
    out = attention(torch.nn.functional, causal)(*args)
    out.backward(ct)
    return [out.detach().numpy(), *(x.grad.numpy() for x in args)]


@pytest.mark.parametrize("causal", [False, True])
def test_results_and_gradients_are_those_of_torch(causal: bool) -> None:
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal((1, n, WIDTH)).astype(np.float32) for n in (QUERIES, KEYS, KEYS, QUERIES)]

    @mlc.compile
    def f(q: Any, k: Any, v: Any, ct: Any) -> Any:
        out, pull = mlc.vjp(attention(nn.functional, causal), q, k, v)
        return out, *pull(ct)

    found = f(*map(mlc.tensor, arrays))
    for x, want in zip(found, gradients_of_torch(arrays, causal), strict=True):
        np.testing.assert_allclose(x.numpy(), want, rtol=2e-4, atol=2e-6)
    assert f.peak_bytes() < 4 * QUERIES * KEYS             # the bytes of all scores


def test_heads_and_queries_of_sixteen_bits() -> None:
    """Many heads that share keys, and a mask; in f32 the rounding of sixteen bits is that of the factors."""
    rng = np.random.default_rng(1)
    q, k, v = (rng.standard_normal((2, n, 600, WIDTH)).astype(np.float32) for n in (8, 2, 2))
    mask = rng.random((600, 600)) < 0.5

    def f(functional: Any, q: Any, k: Any, v: Any, mask: Any) -> Any:
        return functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=True)

    want = f(torch.nn.functional, *map(torch.from_numpy, (q, k, v, mask))).numpy()
    compiled = mlc.compile(lambda *args: f(nn.functional, *args))
    np.testing.assert_allclose(compiled(*map(mlc.tensor, (q, k, v, mask))).numpy(), want, rtol=2e-4, atol=2e-6)
    narrow = compiled(*(mlc.tensor(x).bfloat16() for x in (q, k, v)), mlc.tensor(mask))
    assert np.abs(narrow.float().numpy() - want).max() < 0.02
