"""Shardings and collectives: every tensor operation, divided in every way its rule allows, equals the whole one."""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from mlc.dialects.func import Func
from mlc.dialects.shard import ranks
from mlc.dialects.shard.mesh import Mesh, Sharding
from mlc.ir.core import REGISTRY, Op
from mlc.ir.interp import Interpreter
from mlc.ir.passes import Pipeline, parse_pipeline
from mlc.ir.types import ComplexType
from tests.arrays import Array
from tests.op_samples import NUMBERS, Sample, samples_of

MESHES = Mesh.of({"a": 2, "b": 3}), Mesh.of({"a": 7})


def divided(module: Op, mesh: Mesh, args: Sequence[Sharding], *results: Sharding) -> Op:
    """@main of a module as the program of one rank."""
    function = next(module.inside(Func))
    function.attrs |= {"mesh": mesh, "arg_shardings": tuple(args), "result_shardings": results}
    Pipeline(parse_pipeline("propagate-shardings,partition")).run(module)
    return module


def on_all_ranks(module: Op, mesh: Mesh, args: Sequence[Any]) -> list[Array]:
    """The results of a partitioned @main, put together from those of all ranks."""
    attrs = next(module.inside(Func)).attrs
    pieces = zip(*(ranks.shards(np.asarray(x), s, mesh) for x, s in zip(args, attrs["arg_shardings"])))
    out = ranks.interpret(module, "main", mesh, list(pieces) if args else [()] * mesh.ranks)
    return [ranks.joined([np.asarray(of_rank[i]) for of_rank in out], s, mesh)
            for i, s in enumerate(attrs["result_shardings"])]


def ways(type: Any, mesh: Mesh) -> Iterator[Sharding]:
    """The shardings of a tensor along at most one dimension per axis of a mesh."""
    for at in itertools.product([None, *range(type.rank)], repeat=len(mesh.axes)):
        dims = tuple(tuple(axis for axis, d in zip(mesh.axes, at) if d == n) for n in range(type.rank))
        if Sharding(dims).problem(type.shape, mesh) is None:
            yield Sharding(dims)


def static(sample: Sample) -> Op:
    """A sample as a module of primitives, with numbers for its symbols."""
    whole = sample.build()[0].clone(env=NUMBERS)
    Pipeline(parse_pipeline("decompose")).run(whole)
    return whole


@pytest.mark.parametrize("name", sorted(n for n in REGISTRY if n.startswith("tensor.") and samples_of(n)))
def test_every_operation_divided_equals_the_whole(name: str) -> None:
    """In up to four ways for each sample, of meshes that divide its sizes."""
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    for sample in samples_of(name):
        whole = static(sample)
        if any(isinstance(r.type, ComplexType) for op in whole.walk() for r in op.results):
            continue
        args = sample.arguments()
        types = next(whole.inside(Func)).function_type
        expected = Interpreter(whole).call("main", args)
        for mesh in MESHES:
            choices = [list(ways(t, mesh)) for t in (*types.inputs, *types.results)]
            for _ in range(2 if any(len(c) > 1 for c in choices) else 0):
                chosen = [c[rng.integers(len(c))] for c in choices]
                rank = divided(whole.clone(), mesh, chosen[:len(args)], *chosen[len(args):])
                for got, want in zip(on_all_ranks(rank, mesh, args), expected, strict=True):
                    close(got, np.asarray(want))


def close(got: Array, want: Array) -> None:
    """Equal, but that sums of floats are added in another order."""
    assert got.shape == want.shape and got.dtype == want.dtype
    if want.dtype.kind in "biu":
        np.testing.assert_array_equal(got, want)
    else:
        tolerance = {2: 2e-2, 4: 1e-5, 8: 1e-12}[want.dtype.itemsize]
        np.testing.assert_allclose(got.astype(np.float64), want.astype(np.float64), tolerance, tolerance)
