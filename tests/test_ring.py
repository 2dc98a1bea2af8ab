"""Attention whose keys and values go around a ring of ranks: results of one device, and the bytes of the theory."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import mlc
import mlc.distributed as dist
from mlc import nn
from mlc.backends.transport import threads
from mlc.dialects.shard.mesh import Mesh, Sharding
from mlc.ir.diag import UserError
from mlc.ir.parser import parse_module
from tests import sharded_program

RNG = np.random.default_rng(0)
X = [RNG.standard_normal((2, 3, 16, 8)).astype(np.float32) for _ in range(4)]


def ring(blocks: int, causal: bool) -> Any:
    return lambda q, k, v, w: dist.ring_attention(q, k, v, blocks, is_causal=causal) * w


def whole(causal: bool) -> Any:
    return lambda q, k, v, w: nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal) * w


def with_gradients(attention: Any, x: Any) -> list[Any]:
    """The products of the results with the last argument, and the gradients of their sum."""
    def run(*args: Any) -> Any:
        return attention(*args), *mlc.func.grad(lambda *args: attention(*args).sum(), argnums=(0, 1, 2))(*args)
    return list(mlc.compile(run)(*x))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("axes", [{"sequence": 2}, {"sequence": 4}, {"data": 2, "sequence": 2}])
def test_results_and_gradients_are_those_of_one_device(axes: dict[str, int], causal: bool) -> None:
    wanted = with_gradients(whole(causal), [mlc.tensor(x) for x in X])
    spec = ("data" if "data" in axes else None, None, "sequence")

    def rank(number: int) -> Any:
        mesh = dist.mesh(axes, overlap=True)
        found = with_gradients(ring(axes["sequence"], causal), [dist.shard(x, *spec, mesh=mesh) for x in X])
        assert {dist.placement(x) for x in found} == {(*spec, None)}
        return [x.cpu().numpy() for x in found]

    for found in threads.run(math.prod(axes.values()), rank):
        for x, y in zip(found, wanted):
            np.testing.assert_allclose(x, y.numpy(), rtol=1e-4, atol=2e-6)


def test_eager_steps_on_one_device_and_second_derivatives() -> None:
    q, k, v, w = (mlc.tensor(x.astype(np.float64), requires_grad=True) for x in X)
    found = mlc.autograd.grad(ring(4, True)(q, k, v, w).sum(), (q, k, v), create_graph=True)
    wanted = mlc.autograd.grad(whole(True)(q, k, v, w).sum(), (q, k, v), create_graph=True)
    for x, y in zip(found, wanted):
        np.testing.assert_allclose(x.detach().numpy(), y.detach().numpy(), rtol=1e-9, atol=1e-12)
    again, other = (mlc.autograd.grad(sum((g * g).sum() for g in gradients), (q, v)) for gradients in (found, wanted))
    for x, y in zip(again, other):
        np.testing.assert_allclose(x.numpy(), y.numpy(), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("n", [2, 4])
def test_what_a_rank_sends_and_holds(n: int) -> None:
    """In forward as much as where keys and values are gathered, of which no rank ever holds more than two blocks."""
    mesh, rows, width = dist.mesh({"sequence": n}, abstract=True), 256, 16
    x = dist.shard(np.zeros((1, rows, width), np.float32), None, "sequence", mesh=mesh)
    block = rows * width * 4 // n
    forward = dist.report(lambda q, k, v: dist.ring_attention(q, k, v, n), x, x, x)
    gathered = dist.report(lambda q, k, v: nn.functional.scaled_dot_product_attention(q, k, v), x, x, x)
    assert forward.sent == gathered.sent == 2 * (n - 1) * block
    assert {c.kind for c in forward.collectives} == {"shift"} and sum(c.messages for c in forward.collectives) < 2 * n
    backward = dist.report(lambda *x: with_gradients(ring(n, False), x), x, x, x, x)
    assert backward.sent == (6 * n - 4) * block


def test_blocks_are_on_their_way_while_others_are_multiplied() -> None:
    mesh = dist.mesh({"sequence": 4}, abstract=True, overlap=True)
    x = dist.shard(np.zeros((8, 4096, 64), np.float32), None, "sequence", mesh=mesh)
    text = dist.lower(lambda x: dist.ring_attention(x, x, x, 4), x)
    assert text.count("shard.shift_start") == 3 and "shard.shift %" not in text


@pytest.mark.parametrize("offset", [0, 1, -1, 2, 5, 8])
def test_what_rolls_is_sent_where_it_is_divided(offset: int) -> None:
    x = np.arange(24, dtype=np.float32).reshape(8, 3)
    text = f"""func.func @main(%x: tensor<8x3xf32>) -> tensor<8x3xf32> {{
      %0 = shard.roll %x {{axis = 0, offset = {offset}}} : tensor<8x3xf32>
      func.return %0 : tensor<8x3xf32>
    }}"""
    for sharding in (Sharding((("a",), ())), Sharding((("a", "b"), ())), Sharding(((), ()))):
        module = sharded_program.divided(parse_module(text), Mesh.of({"a": 2, "b": 2}), [sharding])
        found, = sharded_program.on_all_ranks(module, [x])
        np.testing.assert_array_equal(found, np.roll(x, offset, 0))


def test_sequences_that_are_not_divided_are_refused() -> None:
    x, y = mlc.ones(6, 2), mlc.ones(4, 2)
    none = mlc.ones(0, 2)
    for args in ((x, x, x, 4), (x, y, y, 2), (x, x, x, 0), (none, none, none, 2)):
        with pytest.raises(UserError, match="are not divided into") as error:
            dist.ring_attention(*args)
        assert error.value.code == "MLC0962"
